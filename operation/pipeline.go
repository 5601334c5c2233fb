package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// Pipeline runs operations. Its fields are set once; it is safe for concurrent
// use.
type Pipeline struct {
	Live     *snapshots.Live // what live keys are answered from
	Sandbox  *snapshots.Live // what test keys are answered from
	Ledger   *ledger.Ledger
	Accounts *accounts.Service
	Now      func() time.Time
}

// scratch holds the buffers of one recorded answer.
type scratch struct{ registro, acta []byte }

// maxKept bounds the buffers that are kept for the next request: one large
// answer must not hold memory for ever.
const maxKept = 256 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Do runs one request. A recorded answer is appended to dst; any other brings
// its own bytes, which must not be changed. With an error, the Response still
// says who asked, once that is known, and which names were not understood.
//
// The errors come in one order: key (401), what the body is (415), its size
// (413), JSON (400), input (422), money (402, before the engine runs). ctx bounds
// the wait; it ends nothing that may be charged already.
//
// When a recorded answer returns, its record and its charge are durable. When
// an error returns, nothing was charged, but for ledger.ErrFailed: only the
// restarted service knows.
func (p *Pipeline) Do(ctx context.Context, r *Request, dst []byte) (Response, error) {
	op := r.Operation
	resp := Response{Private: op.Auth == Keyed}
	if op.Auth == Keyed {
		who, err := p.Accounts.Authenticate(r.Key)
		if err != nil {
			return resp, err
		}
		resp.Principal = who
	}
	if err := op.readable(r); err != nil {
		return resp, err
	}
	in, unknown, err := op.decode(r)
	resp.Unknown = unknown
	if err != nil {
		return resp, err
	}
	if op.Read != nil {
		answer, err := op.Read(ctx, Call{Principal: resp.Principal, Input: in, op: op})
		if err != nil {
			return resp, err
		}
		resp.Body = answer.Body
		return resp, nil
	}
	q, err := op.Ask(in)
	if err != nil {
		return resp, err
	}
	s := scratches.Get().(*scratch)
	err = p.verify(ctx, op, q, s, &resp, dst)
	if cap(s.registro) <= maxKept {
		scratches.Put(s)
	}
	return resp, err
}

// verify answers, records and charges one question.
func (p *Pipeline) verify(ctx context.Context, op *Operation, q query.Question, s *scratch, resp *Response, dst []byte) error {
	who := resp.Principal
	live, sandbox := p.Live, who.Mode != accounts.Live
	if sandbox {
		live = p.Sandbox
	}
	ed := live.Acquire()
	defer ed.Release()

	price, _ := PriceOf(op.Service) // NewTable saw to it
	now := p.Now()
	paid := !sandbox && q.Chargeable(ed)
	if paid {
		if balance, ok := p.Ledger.Funded(who.Account, now, price.Package); !ok {
			return &ledger.FundsError{Service: op.Service, Price: price.Package, Balance: balance}
		}
	}
	registro, outcome, err := query.AppendRegistro(s.registro[:0], q, civil.Of(now), ed)
	s.registro = registro
	if err != nil {
		return fmt.Errorf("%s: %w", q.Motor(), err)
	}
	sum := sha256.Sum256(registro)
	var sumHex [2 * sha256.Size]byte
	hex.Encode(sumHex[:], sum[:])

	id, err := p.Ledger.NextID(ctx, op.Prefix, now)
	if err != nil {
		return err
	}
	s.acta = appendActa(s.acta[:0], id, now, sumHex[:], outcome.Consulted, ed)
	charge := ledger.Charge{Now: now, Sum: sum, Record: ledger.Record{
		ID: id, Org: who.Org, Sandbox: sandbox, Service: op.Service, Code: outcome.Code,
		Operation: op.ID, Registro: registro, Acta: s.acta,
	}}
	if _, err := hex.Decode(charge.Record.Edition[:], []byte(ed.Manifest().SHA256)); err != nil {
		return fmt.Errorf("edicion_sha256: %w", err)
	}
	if outcome.Charged && paid {
		charge.Price = price.Package
	}
	// All that can fail comes before the charge: what is paid for is delivered.
	answer, err := AppendAnswer(dst, &charge.Record)
	if err != nil {
		return err
	}
	result, err := p.Ledger.Do(ctx, who.Account, charge)
	if err != nil {
		return err
	}
	if charged, ok := result.(ledger.Charged); ok && charge.Price > 0 {
		resp.Charged, resp.Cost, resp.Balance = true, charged.Centavos, charged.Balance
	}
	resp.Body = answer
	return nil
}
