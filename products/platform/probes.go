package platform

import (
	"context"
	"errors"
	"sync"
	"time"

	op "cotejo/operation"
)

// Condition is one thing that must hold for the service to be ready.
type Condition struct {
	Name string // Spanish, as the answer names it: disco
	// Unmet says what is wrong, in Spanish, "" when nothing is. It is asked for
	// each request, so it must cost nothing, and anyone may read the answer.
	Unmet func() string
}

// Notice is an alert of the health answer.
type Notice struct{ Kind, Message string }

// probes are what a supervisor and a load balancer ask. The process probe looks
// at nothing: a process that answers is alive, and restarting it mends no disk.
func probes(c Config) []op.Operation {
	alive := &storeProbe{ask: func(ctx context.Context) error { return c.Pipeline.Ledger.Alive(ctx) }, now: time.Now}
	state := func(word string) op.Response { return op.Response{Body: []byte(`{"estado":"` + word + `"}`)} }
	return []op.Operation{{
		ID: "sondearProceso", Method: "GET", Path: "/livez", Tag: "Servicio", Auth: op.Open, Probe: true,
		Summary: "El proceso responde",
		Description: "Para quien reinicia procesos: responde mientras el proceso atienda peticiones; no mira disco ni datos. Gratuita y sin llave.\n\n" +
			"No dice que el servicio pueda responder consultas: eso lo dice /readyz.",
		Output: op.Titled("ProcesoVivo", op.Object(op.F("estado", op.OneOf("", "vivo")))),
		Read:   func(context.Context, op.Call) (op.Response, error) { return state("vivo"), nil },
	}, {
		ID: "sondearServicio", Method: "GET", Path: "/readyz", Tag: "Servicio", Auth: op.Open, Probe: true,
		Summary: "El servicio puede responder consultas",
		Description: "Para quien reparte peticiones: 200 si las cuentas contestan en un segundo, hay al menos una fuente cargada, hay espacio en el disco " +
			"y el servicio no se está cerrando; si no, 503 con todo lo que falta en detail. Gratuita y sin llave.\n\n" +
			"Una fuente atrasada no quita el servicio: eso lo dice /v1/salud.",
		Output: op.Titled("ServicioListo", op.Object(op.F("estado", op.OneOf("", "listo")))),
		Errors: []string{"NO_LISTO"},
		Read: func(ctx context.Context, _ op.Call) (op.Response, error) {
			var unmet []string
			check := func(name, what string) {
				if what != "" {
					unmet = append(unmet, name+": "+what)
				}
			}
			for _, condition := range c.Conditions {
				check(condition.Name, condition.Unmet())
			}
			check("fuentes", c.sourcesUnmet())
			check("cuentas", alive.unmet(ctx))
			if len(unmet) > 0 {
				return op.Response{}, &op.UnreadyError{Unmet: unmet}
			}
			return state("listo"), nil
		},
	}}
}

// sourcesUnmet: a service without a source answers every check with
// SOURCE_UNAVAILABLE. What is served may be old; that is no reason.
func (c *Config) sourcesUnmet() string {
	ed := c.Live.Acquire()
	defer ed.Release()
	if len(ed.Manifest().Sources) == 0 {
		return "no hay ninguna cargada"
	}
	return ""
}

const (
	storePatience = time.Second
	storeFresh    = time.Second // for how long one answer of the store stands
)

// storeProbe asks the account data whether it takes writes, once for everybody
// who wants to know within a second.
type storeProbe struct {
	ask func(context.Context) error
	now func() time.Time

	mu   sync.Mutex // held while asking: the others wait for the same answer
	last string
	at   time.Time
}

func (p *storeProbe) unmet(ctx context.Context) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.at.IsZero() || now.Sub(p.at) >= storeFresh {
		// The one who asks may go away; the answer is for all.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
		defer cancel()
		switch err := p.ask(ctx); {
		case err == nil:
			p.last = ""
		case errors.Is(err, context.DeadlineExceeded):
			p.last = "no contestan en un segundo"
		default:
			p.last = "no aceptan escrituras"
		}
		p.at = p.now()
	}
	return p.last
}
