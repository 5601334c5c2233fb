package operation

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// lot answers a list: with a quote, with the results as they are made, or, if the
// request prefers, with where they will be. The errors come in the order of Do.
func (p *Pipeline) lot(ctx context.Context, r *Request, in Input, now time.Time, resp *Response, dst []byte) error {
	op, who := r.Operation, resp.Principal
	ask, err := op.Lot.Ask(in)
	if err != nil {
		return err
	}
	if in.simulated() {
		return p.quoteLot(ctx, op, who, ask(in.list.sample), in.list, dst, resp)
	}
	var once *ledger.Once
	if len(r.IdempotencyKeys) > 0 {
		o, _ := onceOf(r, nil)
		once = &o
	}
	sandbox := who.Mode != accounts.Live
	ed := p.edition(sandbox).Acquire()
	defer ed.Release()
	refusal := p.preflightLot(op, who, ask(in.list.sample), in.list.units(), ed, now)
	if refusal != nil && once == nil {
		return refusal
	}
	if err := p.enter(ctx, ClassLot, who.Org); err != nil {
		return err
	}
	leave := func() { p.leave(ClassLot, who.Org) }
	defer func() { leave() }()

	of := lotOf{who.Account, ledger.OrderKey{Org: who.Org, Sandbox: sandbox}}
	var o *openLot
	found := false
	if once != nil {
		if of.ID, found, err = p.Ledger.RecallOrder(ctx, who.Account, who.Org, sandbox, *once, now); err != nil {
			return err
		}
	}
	if !found {
		if refusal != nil {
			return refusal
		}
		if o, found, err = p.openLot(ctx, r, in, &of, once, ed, ask(in.list.sample), now, resp); err != nil {
			return err
		}
	}
	answer := lotAnswer{p: p, of: of, op: op, open: o, brief: in.brief(), media: r.Media}
	if found {
		replays.Inc()
		resp.Replayed = true
		if err := answer.attach(ctx); err != nil {
			return err
		}
	} else {
		answer.order, answer.pieces = o.order, in.list.pieces
		if answer.terms, err = p.terms(of); err != nil {
			return err
		}
	}
	resp.Lot = of.ID.String()
	if prefersAsync(r.Prefer) && answer.open != nil {
		resp.Location = op.lotPath(resp.Lot)
		resp.Body = answer.job(dst)
		return nil
	}
	if err := answer.whole(); err != nil {
		return err
	}
	resp.Stream = answer.stream().handOver(leave)
	leave = func() {}
	return nil
}

// brief tells whether a summary is asked for.
func (in Input) brief() bool {
	detail, _ := Get[string](in, detailName)
	return detail == detailBrief
}

// chargeable reports whether the answers of a lot are charged.
func chargeable(q query.Question, who accounts.Principal, ed *snapshots.Edition) bool {
	return who.Mode == accounts.Live && q.Chargeable(ed)
}

// preflightLot returns why a lot cannot be opened, nil when it can.
func (p *Pipeline) preflightLot(op *Operation, who accounts.Principal, q query.Question, units int, ed *snapshots.Edition, now time.Time) error {
	if chargeable(q, who, ed) {
		quote, err := p.priceLot(op, who, units, now)
		if err == nil {
			err = quote.refusal()
		}
		if err != nil {
			return err
		}
	}
	if p.Full != nil && p.Full() {
		return ErrFull
	}
	return nil
}

// openLot opens an order and queues it. found says that another request with the same
// key was faster: of names its order.
func (p *Pipeline) openLot(ctx context.Context, r *Request, in Input, of *lotOf, once *ledger.Once, ed *snapshots.Edition, sample query.Question, now time.Time, resp *Response) (o *openLot, found bool, err error) {
	op, who := r.Operation, resp.Principal
	if err := p.lots.reserve(who.Org); err != nil {
		return nil, false, p.lotsRefused(err)
	}
	defer p.lots.unreserve(who.Org)
	m := ed.Manifest()
	terms := lotTerms{
		Edition: m.Number, Args: op.kept(r),
		Received: in.list.received(), Repeated: in.list.counts[listedRepeated], Refused: in.list.counts[listedRefused], Sample: in.list.sample,
	}
	open := ledger.OpenOrder{
		Now: now, Org: who.Org, Sandbox: of.Sandbox, Service: op.Service, Operation: op.ID,
		Units: in.list.units(), Until: now.Add(ledger.MaxHold), Input: in.list.pieces, Once: once,
	}
	if open.Terms, err = json.Marshal(terms); err != nil {
		return nil, false, err
	}
	if _, err := hex.Decode(open.Edition[:], []byte(m.SHA256)); err != nil {
		return nil, false, fmt.Errorf("edicion_sha256: %w", err)
	}
	if chargeable(sample, who, ed) {
		open.Price, open.Steps = op.Lot.price()
	}
	if open.ID, err = p.Ledger.NextID(ctx, ledger.OrderPrefix, now); err != nil {
		return nil, false, err
	}
	res, err := p.Ledger.Do(ctx, who.Account, open)
	if err != nil {
		return nil, false, err
	}
	opened := res.(ledger.OrderOpened)
	if opened.Earlier != nil {
		of.ID = *opened.Earlier
		return nil, true, nil
	}
	of.ID = open.ID
	order, err := p.Ledger.Read(who.Account).Order(of.OrderKey) // durable since Do returned
	if err != nil {
		return nil, false, err
	}
	if open.Price > 0 {
		resp.Charged, resp.Cost, resp.Balance = true, opened.Held.Centavos, opened.Balance
	}
	return p.lots.add(*of, op, order, &opened.Held), false, nil
}

// lotsRefused says when to come back.
func (p *Pipeline) lotsRefused(err error) error {
	if errors.Is(err, errLotsFull) {
		return p.overloaded(ClassLot, shedQueue, err)
	}
	return err
}

// lotQuote is what a list would cost its asker now.
type lotQuote struct {
	op       *Operation
	units    int
	uses     int // that would pay the first positions
	tiers    []tier
	centavos int64
	funds    ledger.Funds
	pays     int // how many can be paid
}

func (q *lotQuote) refusal() error {
	if q.pays == q.units {
		return nil
	}
	return &ledger.FundsError{Service: q.op.Service, Price: q.centavos, Balance: q.funds.Balance, Wanted: int64(q.units), Units: int64(q.pays)}
}

// priceLot is the rule of OpenOrder.
func (p *Pipeline) priceLot(op *Operation, who accounts.Principal, units int, now time.Time) (q lotQuote, err error) {
	q.op, q.units = op, units
	if q.funds, _, err = p.Ledger.Funded(who.Account, now, op.Service, op.price.Package); err != nil {
		return q, err
	}
	q.uses = int(min(q.funds.Uses, int64(units)))
	q.tiers = op.Lot.tiers(q.uses+1, units)
	for i := range q.tiers {
		q.centavos += q.tiers[i].cost()
	}
	q.pays = units
	if q.centavos > q.funds.Balance {
		q.pays = q.uses + op.Lot.affordable(q.uses+1, units, q.funds.Balance)
	}
	return q, nil
}
