package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// Pipeline runs operations. Its fields are set once; it is safe for concurrent
// use and must not be copied.
type Pipeline struct {
	Live     *snapshots.Live // what live keys are answered from
	Sandbox  *snapshots.Live // what test keys are answered from
	Ledger   *ledger.Ledger
	Accounts *accounts.Service
	Now      func() time.Time
	// InputKey keys what a movement says of its input (see InputKey). Without it no
	// computed answer can be charged.
	InputKey []byte
	// Full reports that the disk has no room for one more record; nil means that
	// it always has.
	Full func() bool
	// Limits bound what is worked on at once, in every class; zero means
	// DefaultLimits.
	Limits Limits
	// Throttle bounds how often one caller may ask; zero means not at all.
	Throttle Throttle
	// Random gives a number from 0 to below n; nil means math/rand/v2. It spreads
	// the moments at which refused clients come back.
	Random func(n int) int

	gates   [Classes]gate
	running running
	lots    lots
}

var unfunded = metrics.NewCounter("cotejo_wallet_402_total")

// asking is one question on its way through the pipeline.
type asking struct {
	op       *Operation
	question query.Question
	sandbox  bool
	who      accounts.Principal
	once     *ledger.Once // nil: it may be asked again and again
	scratch  *scratch
	dst      []byte // the answer is appended to it
}

// scratch holds the buffers of one recorded answer.
type scratch struct{ registro, conocida, versions, acta []byte }

// maxKept bounds the buffers that are kept for the next request: one large
// answer must not hold memory for ever.
const maxKept = 256 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Do runs one request. A recorded answer or a quote is appended to dst; any other
// brings its own bytes, which must not be changed. With an error, the Response
// still says who asked, once that is known, where they stand with their limit, and
// which names were not understood.
//
// The errors come in one order: key and how often it is used (401, 429, 403; a
// network that is held back gets 429 in the place of 401), what the body is (415) and what the
// answer may be (406), its size (413), JSON (400), input (422), a repeated request (422 for another under a used
// key, 409 while the first runs), money (402), room and slots (503), all before
// the engine runs. What a key stands for is looked up in a slot, so with one the
// slot comes before money and room. ctx bounds the wait; it ends nothing that may
// be charged already.
//
// When a recorded answer returns, its record and its charge are durable. When
// an error returns, nothing was charged, but for ledger.ErrUnknown, where a repeated
// request tells, and ledger.ErrFailed: only the
// restarted service knows.
func (p *Pipeline) Do(ctx context.Context, r *Request, dst []byte) (Response, error) {
	resp := Response{Private: r.Operation.Auth != Open}
	err := p.do(ctx, r, &resp, dst)
	if err != nil {
		err = p.refused(r.Operation.Class(), err)
	}
	return resp, err
}

// refused counts what was refused for want of money, time or room.
func (p *Pipeline) refused(c Class, err error) error {
	var funds *ledger.FundsError
	switch {
	case errors.As(err, &funds):
		unfunded.Inc()
	case errors.Is(err, ErrFull):
		shed[c][shedStorage].Inc()
	case errors.Is(err, ledger.ErrBusy):
		return p.overloaded(c, shedLedger, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		shed[c][shedDeadline].Inc()
	}
	return err
}

func (p *Pipeline) do(ctx context.Context, r *Request, resp *Response, dst []byte) error {
	op := r.Operation
	if err := p.authorise(r, resp); err != nil {
		return err
	}
	if err := op.readable(r); err != nil {
		return err
	}
	in, unknown, err := op.decode(r)
	if len(unknown) > 0 && !op.confidential() { // a misplaced secret may be among them
		resp.Unknown = unknown
	}
	if err != nil {
		return err
	}
	if !op.priced() {
		return p.serve(ctx, op, Call{Principal: resp.Principal, Input: in, Head: r.Head, Media: r.Media, op: op}, resp)
	}
	now := p.Now()
	in.today = civil.Of(now)
	if op.Compute != nil {
		return p.compute(ctx, r, in, now, resp, dst)
	}
	if op.Lot != nil {
		return p.lot(ctx, r, in, now, resp, dst)
	}
	q, err := op.Ask(in)
	if err != nil {
		return err
	}
	s := scratches.Get().(*scratch)
	a := asking{op: op, question: q, who: resp.Principal, sandbox: resp.Principal.Mode != accounts.Live, scratch: s, dst: dst}
	switch {
	case in.simulated():
		err = p.simulate(ctx, &a, resp)
	case len(r.IdempotencyKeys) > 0:
		err = p.verifyOnce(ctx, r, &a, resp)
	default:
		err = p.verify(ctx, &a, resp)
	}
	if max(cap(s.registro), cap(s.conocida), cap(s.acta)) <= maxKept {
		scratches.Put(s)
	}
	return err
}

// serve answers for free, by Read or Act.
func (p *Pipeline) serve(ctx context.Context, op *Operation, call Call, resp *Response) error {
	leave := func() {}
	if c, org := op.Class(), resp.Principal.Org; c != ClassOpen {
		if err := p.enter(ctx, c, org); err != nil {
			return err
		}
		leave = func() { p.leave(c, org) }
	}
	defer func() { leave() }()
	run := op.Read
	if op.Act != nil {
		if run = op.Act; p.Full != nil && p.Full() {
			return ErrFull
		}
	}
	answer, err := run(ctx, call)
	if err != nil {
		return err
	}
	if resp.Body, resp.Lot = answer.Body, answer.Lot; answer.Stream != nil {
		resp.Stream = answer.Stream.handOver(leave)
		leave = func() {}
	}
	return nil
}

// edition is where answers to live keys, or to test keys, come from.
func (p *Pipeline) edition(sandbox bool) *snapshots.Live {
	if sandbox {
		return p.Sandbox
	}
	return p.Live
}

// preflight returns why the question cannot be answered at all, nil when it can: it
// costs no slot and no work.
func (p *Pipeline) preflight(a *asking, ed *snapshots.Edition) error {
	q, err := p.quote(a.op, a.question.Chargeable(ed), a.who, p.Now(), false)
	if err == nil {
		err = q.refusal()
	}
	if err == nil && p.Full != nil && p.Full() {
		err = ErrFull
	}
	return err
}

// charged tells what paid, if anything did.
func (resp *Response) charged(service string, c *ledger.Charged) {
	if c.Movement == 0 {
		return
	}
	resp.Charged, resp.Cost, resp.Balance = true, c.Centavos, c.Balance
	if c.Uses > 0 {
		resp.Used, resp.UsesLeft = service, c.UsesLeft
	}
}

// verify answers, records and charges one question.
func (p *Pipeline) verify(ctx context.Context, a *asking, resp *Response) error {
	op, who, s := a.op, a.who, a.scratch
	live := p.edition(a.sandbox)
	ed := live.Acquire()
	defer ed.Release()

	refusal := p.preflight(a, ed)
	if refusal != nil && a.once == nil {
		return refusal
	}
	if err := p.enter(ctx, ClassAsk, who.Org); err != nil {
		return err
	}
	defer p.leave(ClassAsk, who.Org)
	if a.once != nil {
		// What was answered before is answered again, whatever would refuse it now.
		if found, err := p.repeat(ctx, a, resp); found || err != nil {
			return err
		}
	}
	if refusal != nil {
		return refusal
	}

	now := p.Now()
	registro, outcome, err := query.AppendRegistro(s.registro[:0], a.question, civil.Of(now), ed)
	s.registro = registro
	if err != nil {
		return fmt.Errorf("%s: %w", a.question.Motor(), err)
	}
	if s.conocida, err = appendConocida(s.conocida[:0], a.question, now, live, ed); err != nil {
		return err
	}
	sum := sha256.Sum256(registro)
	var sumHex [2 * sha256.Size]byte
	hex.Encode(sumHex[:], sum[:])

	id, err := p.Ledger.NextID(ctx, op.Prefix, now)
	if err != nil {
		return err
	}
	s.versions = appendVersions(s.versions[:0], &outcome, ed)
	s.acta = appendActa(s.acta[:0], id, now, sumHex[:], s.conocida, s.versions)
	charge := ledger.Charge{Now: now, Sum: sum, Once: a.once, Record: ledger.Record{
		ID: id, Org: who.Org, Sandbox: a.sandbox, Service: op.Service, Code: outcome.Code,
		Operation: op.ID, Registro: registro, Acta: s.acta,
	}}
	if _, err := hex.Decode(charge.Record.Edition[:], []byte(ed.Manifest().SHA256)); err != nil {
		return fmt.Errorf("edicion_sha256: %w", err)
	}
	if outcome.Charged && !a.sandbox {
		charge.Price = op.price.Package
	}
	// All that can fail comes before the charge: what is paid for is delivered.
	answer, err := AppendAnswer(a.dst, &charge.Record)
	if err != nil {
		return err
	}
	// A ctx that ended meanwhile is noticed here, before anything is charged.
	result, err := p.Ledger.Do(ctx, who.Account, charge)
	if err != nil {
		return err
	}
	charged, _ := result.(ledger.Charged)
	if charged.Earlier != nil { // by another process: this one looked before it asked
		record, err := p.Ledger.Find(who.Account, who.Org, a.sandbox, *charged.Earlier)
		if err != nil {
			return err
		}
		return resp.recorded(&record, a.dst)
	}
	resp.charged(op.Service, &charged)
	resp.Body = answer
	return nil
}
