package operation

import (
	"errors"
	"net/netip"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/accounts"
	"cotejo/ratelimit"
)

// Throttle bounds how often one caller may ask. A part that is nil bounds nothing.
//
// Requests with a valid key count for the key and for nothing else: neither many
// keys behind one address nor somebody who guesses there keeps a valid one out. All
// others count for the address that they come from, and so do requests with a
// registration key, which may stand on a public page: it does not tell who asks.
type Throttle struct {
	Keys      *ratelimit.Limiter  // requests under one key
	Addresses *ratelimit.Limiter  // requests of one client's network without a valid API key
	Guesses   *ratelimit.Attempts // wrong keys of one client's network
	LookUps   *ratelimit.Limiter  // keys of everybody that are not in memory: reads of the store
}

// Rates of a Throttle, in the form of ratelimit.ParseRate.
//
// A program that verifies a list asks as fast as it is answered, some thousand
// times a second at most, and rightly so: the rate of a key is above that, and its
// burst takes a list of ten thousand. What it ends is a loop that nobody watches.
// Without a key there is little to ask, and no reason to ask it often.
const (
	DefaultKeyRate     = "5000/s,10000"
	DefaultAddressRate = "200/s,1000"
)

// Guessing slows down wrong keys. A key has 256 random bits, so nobody finds one:
// the limit protects the machine, and shows in the metrics and the access log.
var guessing = ratelimit.Guessing{
	Free: ratelimit.Rate{N: 20, Per: time.Minute, Burst: 20},
	Wait: 15 * time.Second, Longest: 15 * time.Minute,
}

// lookUpRate is what may be read of the store for keys that may not exist: a tenth
// of what it can, at some microseconds each.
var lookUpRate = ratelimit.Rate{N: 2000, Per: time.Second, Burst: 4000}

// Keys and networks that are remembered at once: less than 4 MB together.
const (
	rememberedKeys      = 1 << 14
	rememberedAddresses = 1 << 16
	rememberedGuessers  = 1 << 15
)

// NewThrottle reads the two rates that are a matter of taste; the rest is fixed.
func NewThrottle(keys, addresses string, clock ratelimit.Clock) (Throttle, error) {
	t := Throttle{
		Guesses: ratelimit.NewAttempts(guessing, rememberedGuessers, clock),
		LookUps: ratelimit.New(lookUpRate, 1, clock),
	}
	for _, l := range []struct {
		text    string
		to      **ratelimit.Limiter
		entries int
	}{{keys, &t.Keys, rememberedKeys}, {addresses, &t.Addresses, rememberedAddresses}} {
		rate, limited, err := ratelimit.ParseRate(l.text)
		if err != nil {
			return Throttle{}, err
		}
		if limited {
			*l.to = ratelimit.New(rate, l.entries, clock)
		}
	}
	return t, nil
}

// Names of limits: in answers, in metrics and in the OpenAPI document.
const (
	limitKey      = "llave"
	limitAddress  = "direccion"
	limitAttempts = "intentos"
)

// Quota is where a caller stands with the limit that a request counted for. The
// zero Quota says that it counted for none.
type Quota struct {
	Limit string // its name: llave, direccion
	ratelimit.Rate
	ratelimit.Status
}

// limitedError refuses a request because its caller made too many.
type limitedError struct {
	limit string
	wait  time.Duration
}

func (e *limitedError) Error() string { return "operation: demasiadas peticiones: " + e.limit }

// detail says which limit it was, and what to do.
func (e *limitedError) detail() string {
	switch e.limit {
	case limitKey:
		return "La llave hizo más peticiones de las que admite su límite (encabezado RateLimit-Policy). Esta no se ejecutó ni se cobró."
	case limitAttempts:
		return "Desde esta red llegaron demasiadas llaves que no son válidas. Esta no se revisó. Una llave válida sigue funcionando."
	}
	return "Desde esta red llegaron demasiadas peticiones sin una llave válida de organización. Esta no se ejecutó."
}

var limited = map[string]*metrics.Counter{
	limitKey:      metrics.NewCounter(`cotejo_limited_total{limit="` + limitKey + `"}`),
	limitAddress:  metrics.NewCounter(`cotejo_limited_total{limit="` + limitAddress + `"}`),
	limitAttempts: metrics.NewCounter(`cotejo_limited_total{limit="` + limitAttempts + `"}`),
}

func refuse(limit string, wait time.Duration) error {
	limited[limit].Inc()
	return &limitedError{limit: limit, wait: wait}
}

// take counts a request for a limit that may be nil.
func take(l *ratelimit.Limiter, limit string, k ratelimit.Key) (Quota, error) {
	if l == nil {
		return Quota{}, nil
	}
	q := Quota{Limit: limit, Rate: l.Rate(), Status: l.Take(k)}
	if !q.Allowed {
		return q, refuse(limit, q.Retry)
	}
	return q, nil
}

// Anonymous counts a request without a valid key for the network that it came from.
// A transport calls it for what is a request of no operation; Do does for the rest.
// The error, for too many, is one of the table.
func (p *Pipeline) Anonymous(client netip.Addr) (Quota, error) {
	return take(p.Throttle.Addresses, limitAddress, ratelimit.OfAddress(client))
}

// authorise tells who asks and whether they may, now.
func (p *Pipeline) authorise(r *Request, resp *Response) (err error) {
	op := r.Operation
	if op.Auth == Open {
		if !op.Probe {
			_, err = p.Anonymous(r.Client) // not told: a cache would keep it
		}
		return err
	}
	// Who does not own the accounts knows of no key for sure.
	if err := p.Ledger.Serving(); err != nil {
		return err
	}
	who, err := p.identify(r, resp)
	if err != nil {
		return err
	}
	resp.Principal = who
	if op.Auth == Registration {
		return nil // it counted for its address
	}
	if resp.Quota, err = take(p.Throttle.Keys, limitKey, ratelimit.OfText(who.KeyID)); err != nil {
		return err
	}
	if (op.Auth == Admin) != (who.Mode == accounts.Admin) || !who.May(op.ID) {
		return ErrForbidden
	}
	return nil
}

// Admits tells, before anything of a body was read, whether a key may ask for an
// operation. Do asks again, and counts.
func (p *Pipeline) Admits(op *Operation, key []byte) bool {
	if op.Auth != Keyed || p.Ledger.Serving() != nil {
		return false
	}
	who, remembered, err := p.Accounts.Recognize(key)
	if !remembered {
		if p.Throttle.LookUps != nil && !p.Throttle.LookUps.Take(0).Allowed {
			return false
		}
		who, err = p.Accounts.Authenticate(key)
	}
	return err == nil && who.Mode != accounts.Admin && who.May(op.ID)
}

// identify tells whose key it is. A valid one that is in memory, as all are but in
// the largest installations, is let in whatever else comes from its network; any
// other costs its network a request, and no look into the store while it waits for
// having guessed too often.
func (p *Pipeline) identify(r *Request, resp *Response) (accounts.Principal, error) {
	recognize, authenticate := p.Accounts.Recognize, p.Accounts.Authenticate
	if r.Operation.Auth == Registration {
		recognize, authenticate = p.Accounts.RecognizeRegistrar, p.Accounts.AuthenticateRegistrar
	}
	who, remembered, err := recognize(r.Key)
	valid := remembered && err == nil
	if valid && r.Operation.Auth != Registration {
		return who, nil
	}
	var limits error
	if resp.Quota, limits = p.Anonymous(r.Client); limits != nil {
		return accounts.Principal{}, limits
	}
	if valid {
		return who, nil
	}
	t, network := &p.Throttle, ratelimit.OfAddress(r.Client)
	guessed := t.Guesses != nil && len(r.Key) > 0
	if guessed {
		if wait := t.Guesses.Wait(network); wait > 0 {
			return accounts.Principal{}, refuse(limitAttempts, wait)
		}
	}
	if !remembered {
		if t.LookUps != nil && !t.LookUps.Take(0).Allowed {
			return accounts.Principal{}, p.overloaded(r.Operation.Class(), shedLookUps, errLookUps)
		}
		who, err = authenticate(r.Key)
	}
	if guessed && (errors.Is(err, accounts.ErrUnauthorized) || errors.Is(err, accounts.ErrRegistrationKey)) {
		t.Guesses.Failed(network)
	}
	return who, err
}
