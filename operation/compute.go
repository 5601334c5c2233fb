package operation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"time"

	"cotejo/accounts"
	"cotejo/canon"
	"cotejo/civil"
	"cotejo/ledger"
)

// Computed is what the pipeline must know of a computed answer without reading it.
type Computed struct {
	Code    string // result_code
	Charged bool   // whether it is an answer that is paid for
	Basis   string // tables that it rests on, with their versions; kept in the movement
}

// included reports whether the operation costs nothing while the account has a
// valid package balance.
func (op *Operation) included() bool { return op.Service != "" && op.price.Package == 0 }

// confidential reports whether nothing that depends on the input may be kept, not
// even a hash: the input has few enough values to be guessed from it.
func (op *Operation) confidential() bool {
	for i := range op.Params {
		if op.Params[i].Schema.WriteOnly {
			return true
		}
	}
	if op.Body == nil {
		return false
	}
	for _, member := range op.Body.Schema.Properties {
		if member.WriteOnly {
			return true
		}
	}
	return false
}

// compute answers by a calculation. The errors come in the order of Do; that of the
// calculation itself before money is looked at, since it costs next to nothing.
// now is when the request was let in.
func (p *Pipeline) compute(ctx context.Context, r *Request, in Input, now time.Time, resp *Response, dst []byte) error {
	op, who := r.Operation, resp.Principal
	if in.simulated() {
		if err := p.enter(ctx, ClassRead, who.Org); err != nil {
			return err
		}
		defer p.leave(ClassRead, who.Org)
		return p.answerQuote(op, true, dst, resp)
	}
	var once *ledger.Once
	// What costs nothing is computed again: it gives the same answer.
	if len(r.IdempotencyKeys) > 0 && who.Mode == accounts.Live && op.repeats() {
		o, _ := onceOf(r, nil)
		k := repeatable{who.Account, who.Org, false, o.Key}
		if err := p.running.begin(k, o.Content); err != nil {
			return err
		}
		defer p.running.end(k)
		once = &o
	}
	class := op.Class()
	if err := p.enter(ctx, class, who.Org); err != nil {
		return err
	}
	defer p.leave(class, who.Org)
	if once != nil {
		answer, found, err := p.Ledger.RecallUse(ctx, who.Account, who.Org, *once, now)
		if err != nil {
			return err
		}
		if found {
			resp.replayed(answer, dst)
			return nil
		}
	}

	ed := p.edition(who.Mode != accounts.Live).Acquire()
	defer ed.Release()
	in.ed = ed
	dst = append(dst, `{"service":`...)
	dst = canon.AppendString(dst, op.Service)
	dst = append(dst, ',')
	body, computed, err := op.Compute(dst, in)
	if err != nil {
		return err
	}
	body = append(body, `,"result_code":`...)
	body = canon.AppendString(body, computed.Code)
	body = append(body, `,"engine_version":"`+EngineVersion+`"`...)
	if who.Mode != accounts.Live {
		body = append(body, `,"sandbox":true`...)
	}
	body = append(body, '}')
	if computed.Charged && who.Mode == accounts.Live {
		if body, err = p.use(ctx, r, now, &computed, once, body, resp); err != nil {
			return err
		}
	} else {
		p.count(r, who, now)
	}
	resp.Body = body
	return nil
}

// count counts an answer that costs nothing.
func (p *Pipeline) count(r *Request, who accounts.Principal, now time.Time) {
	p.Ledger.CountUse(who.Account, who.Org, who.Mode != accounts.Live, r.Operation.Service, civil.Of(now).Compact())
}

// use pays for a computed answer, and returns what is to be answered: another
// process may have been faster under the same key.
func (p *Pipeline) use(ctx context.Context, r *Request, now time.Time, computed *Computed, once *ledger.Once, body []byte, resp *Response) ([]byte, error) {
	op, who := r.Operation, resp.Principal
	price, err := p.quote(op, true, who, now, false)
	if err == nil {
		err = price.refusal()
	}
	if err != nil {
		return nil, err
	}
	if price.included() {
		p.count(r, who, now)
		return body, nil
	}
	if p.Full != nil && p.Full() {
		return nil, ErrFull
	}
	use := ledger.Use{Now: now, Org: who.Org, Service: op.Service, Price: op.price.Package, Basis: computed.Basis}
	if !op.confidential() {
		if use.Input, err = p.inputMark(r); err != nil {
			return nil, err
		}
	}
	if once != nil {
		use.Once, use.Answer = once, body
	}
	result, err := p.Ledger.Do(ctx, who.Account, use)
	if err != nil {
		return nil, err
	}
	used, _ := result.(ledger.Used)
	if used.Answer != nil {
		resp.replayed(used.Answer, body[:0])
		return resp.Body, nil
	}
	resp.charged(op.Service, &used.Charged)
	return body, nil
}

// InputKey makes the key of Pipeline.InputKey from the secret of the API keys.
// Neither it nor what it marks tells anything of that secret.
func InputKey(secret []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("cotejo: clave de las entradas de los movimientos, 1"))
	return h.Sum(nil)
}

// inputMark stands for a request in its movement: HMAC-SHA256 over what makes it
// the same request (docs/data-formats.md). A hash without key would tell the
// input to whoever tries all RFCs or CURPs.
func (p *Pipeline) inputMark(r *Request) (mark [sha256.Size]byte, err error) {
	if len(p.InputKey) == 0 {
		return mark, errors.New("operation: a pipeline without InputKey keeps nothing of an input")
	}
	h := hmac.New(sha256.New, p.InputKey)
	h.Write(appendContent(nil, r))
	h.Sum(mark[:0])
	return mark, nil
}

// replayed answers what was answered before: nothing is charged.
func (resp *Response) replayed(answer, dst []byte) {
	replays.Inc()
	resp.Body, resp.Replayed = append(dst, answer...), true
}
