package operation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/ledger"
)

// keyHeader makes a request that records safe to repeat: under the same key,
// the same request is answered from its record and charged once.
const keyHeader = "Idempotency-Key"

// replayedHeader marks an answer that was given before.
const replayedHeader = "Idempotent-Replayed"

// keyForm is the form of a key.
const keyForm = "^[!-~]{1,255}$"

// repeats reports whether the header makes the operation safe to repeat: without
// a price there is nothing to pay twice, and what may not be kept cannot be
// recognized.
func (op *Operation) repeats() bool { return op.priced() && !op.confidential() }

// repetition says, in Spanish, what repeating a request for the operation does.
func (op *Operation) repetition() string {
	const again = "Idempotency-Key: la misma petición con la misma llave recibe durante 7 días la misma respuesta, byte por byte, sin otro cobro"
	switch {
	case !op.repeats():
		return "Idempotency-Key no tiene efecto: de lo enviado no se guarda nada con que reconocer la repetición, y cada respuesta se cobra como la primera."
	case op.Lot != nil:
		return "Idempotency-Key: la misma lista, con los mismos parámetros y la misma llave, se une durante 7 días al mismo lote: recibe sus resultados desde el principio, también mientras se trabaja, " +
			"en el formato que pida Accept y sin otro cobro. Si la conexión se corta, el lote sigue; repita la petición con la misma llave."
	case op.Ask != nil:
		return again + ", también con una llave de prueba."
	case op.included():
		return again + ", si la primera se cobró; la que no costó (con saldo de paquete, o con una llave de prueba) se vuelve a calcular."
	}
	return again + ", si la primera se cobró; la que no costó se vuelve a calcular."
}

// keyParameter describes the header in the OpenAPI document.
func keyParameter() object {
	return object{
		{"name", keyHeader}, {"in", "header"},
		{"description", "Hace que repetir la petición sea seguro; un UUID nuevo por petición. La misma petición con la misma llave, de la misma organización " +
			"y modo, recibe durante 7 días la respuesta que se guardó, sin otro cobro (Idempotent-Replayed: true), también con otro saldo o con fuentes más nuevas. " +
			"Qué respuestas se guardan lo dice cada operación. " +
			"Con otra ruta, parámetros o cuerpo: 422 LLAVE_REUTILIZADA. Mientras la primera está en curso: 409 LLAVE_EN_CURSO. " +
			"Un error no se guarda: la petición se puede repetir con la misma llave."},
		{"schema", Form(keyForm, "")},
	}
}

// maxKeyBytes bounds a key, in bytes.
const maxKeyBytes = 255

// ErrKeyRunning refuses a request whose Idempotency-Key another one, that is not
// answered yet, was sent with.
var ErrKeyRunning = errors.New("operation: otra petición con esa llave de idempotencia está en curso")

var replays = metrics.NewCounter("cotejo_idempotent_replays_total")

// checkKey reports what is wrong with the header, nil when nothing is.
func checkKey(values [][]byte) *Item {
	at := place{loc: []any{"header", keyHeader}, name: keyHeader, secret: true}
	if len(values) > 1 {
		return at.item("value_error", "«"+keyHeader+"» aparece más de una vez; envíelo una sola vez", nil, nil)
	}
	const form = "«" + keyHeader + "» debe tener de 1 a 255 caracteres ASCII visibles, sin espacios; use un UUID nuevo por petición"
	switch text := values[0]; {
	case len(text) == 0:
		return at.item("string_too_short", form, nil, map[string]any{"min_length": 1})
	case len(text) > maxKeyBytes:
		return at.item("string_too_long", form, nil, map[string]any{"max_length": maxKeyBytes})
	case slices.ContainsFunc(text, func(c byte) bool { return c <= ' ' || c > '~' }):
		return at.item("string_pattern_mismatch", form, nil, map[string]any{"pattern": keyForm})
	}
	return nil
}

// onceOf returns what stands for the request in the ledger. The key itself is
// kept nowhere. room is used up.
func onceOf(r *Request, room []byte) (once ledger.Once, _ []byte) {
	once.Key = sha256.Sum256(r.IdempotencyKeys[0])
	room = appendContent(room[:0], r)
	once.Content = sha256.Sum256(room)
	return once, room
}

// appendContent appends what makes a request the same request: the operation,
// the arguments whatever their order, and the body as it was sent. Every text has
// its length before it, so that no two requests give the same bytes.
func appendContent(dst []byte, r *Request) []byte {
	text := func(s string) {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	text(r.Operation.ID)
	text(r.Operation.Method)
	args := slices.Clone(r.Args)
	slices.SortStableFunc(args, func(a, b Arg) int {
		return cmp.Or(cmp.Compare(a.In, b.In), cmp.Compare(a.Name, b.Name))
	})
	dst = binary.AppendUvarint(dst, uint64(len(args)))
	for i := range args {
		text(string(args[i].In))
		text(args[i].Name)
		text(args[i].Value)
	}
	return append(dst, r.Body...)
}

// repeatable is whose key it is: another organization's, or the same one's in the
// other mode, is another key.
type repeatable struct {
	account ledger.AccountID
	org     ledger.OrgID
	sandbox bool
	key     [sha256.Size]byte
}

// running are the keys of requests that are not answered yet, and what they ask.
// Each belongs to one request, so a transport that bounds its connections bounds
// them too.
type running struct {
	mu   sync.Mutex
	keys map[repeatable][sha256.Size]byte
}

// begin refuses with ErrKeyRunning or ledger.ErrKeyReused when another request
// runs under the key. With nil the caller owns the key until end.
func (r *running) begin(k repeatable, content [sha256.Size]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, taken := r.keys[k]; taken {
		if other != content {
			return ledger.ErrKeyReused
		}
		return ErrKeyRunning
	}
	if r.keys == nil {
		r.keys = make(map[repeatable][sha256.Size]byte)
	}
	r.keys[k] = content
	return nil
}

func (r *running) end(k repeatable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, k)
}

// recorded answers from a record that was made before: nothing is charged.
func (resp *Response) recorded(record *ledger.Record, dst []byte) error {
	answer, err := AppendAnswer(dst, record)
	if err != nil {
		return err
	}
	replays.Inc()
	resp.Body, resp.Replayed = answer, true
	return nil
}

// verifyOnce verifies under the request's key, unless that was done before.
func (p *Pipeline) verifyOnce(ctx context.Context, r *Request, a *asking, resp *Response) error {
	who := a.who
	var once ledger.Once
	once, a.scratch.acta = onceOf(r, a.scratch.acta)
	k := repeatable{who.Account, who.Org, a.sandbox, once.Key}
	if err := p.running.begin(k, once.Content); err != nil {
		return err
	}
	defer p.running.end(k)
	a.once = &once
	return p.verify(ctx, a, resp)
}

// repeat answers from the record that was made under the key, if there is one.
func (p *Pipeline) repeat(ctx context.Context, a *asking, resp *Response) (found bool, err error) {
	who := a.who
	record, found, err := p.Ledger.Recall(ctx, who.Account, who.Org, a.sandbox, *a.once, p.Now())
	if err != nil || !found {
		return false, err
	}
	return true, resp.recorded(&record, a.dst)
}
