package operation

import (
	"context"
	"errors"
	"strconv"

	"cotejo/accounts"
	"cotejo/canon"
	"cotejo/query"
	"cotejo/store"
)

// lotPath is where an order of the operation is read.
func (op *Operation) lotPath(id string) string { return op.Path + "s/" + id }

// notKept is the answer for an order that is not there.
func notKept(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return ErrNoLot
	}
	return err
}

// Lots reads the orders of one operation, of a table, for whoever has their id.
type Lots struct {
	Pipeline  *Pipeline
	Operation string // id of the one that has the Lot, in the table of the caller
}

// read finds an order of the caller's.
func (l Lots) read(ctx context.Context, call Call, id string) (a lotAnswer, err error) {
	op := call.op.table.Find(l.Operation)
	of, err := l.Pipeline.keyOf(call.Principal, id)
	if err != nil {
		return a, err
	}
	a = lotAnswer{p: l.Pipeline, of: of, op: op, brief: call.Input.brief(), media: call.Media}
	if err := a.attach(ctx); err != nil {
		return a, err
	}
	if a.order.Operation != op.ID {
		return a, ErrNoLot
	}
	return a, nil
}

// State tells how far an order is.
func (l Lots) State(ctx context.Context, call Call, id string) (Response, error) {
	a, err := l.read(ctx, call, id)
	if err != nil {
		return Response{}, err
	}
	return Response{Body: a.job(nil)}, nil
}

// Results answers with the results of an order that ended. ErrLotRunning before; of
// one that was stopped, those that there are.
func (l Lots) Results(ctx context.Context, call Call, id string) (Response, error) {
	a, err := l.read(ctx, call, id)
	if err != nil {
		return Response{}, err
	}
	if a.open != nil {
		return Response{}, ErrLotRunning
	}
	return Response{Stream: a.stream(), Lot: a.of.ID.String()}, nil
}

// quoteLot answers a list with its quote.
func (p *Pipeline) quoteLot(ctx context.Context, op *Operation, who accounts.Principal, q query.Question, list *lotList, dst []byte, resp *Response) error {
	if err := p.enter(ctx, ClassRead, who.Org); err != nil {
		return err
	}
	defer p.leave(ClassRead, who.Org)
	sandbox := who.Mode != accounts.Live
	ed := p.edition(sandbox).Acquire()
	defer ed.Release()
	quote, err := p.priceLot(op, who, list.units(), p.Now())
	if err != nil {
		return err
	}
	resp.Body = quote.append(dst, list, sandbox, chargeable(q, who, ed))
	return nil
}

// append appends the JSON answer.
func (q *lotQuote) append(dst []byte, list *lotList, sandbox, charged bool) []byte {
	number := func(name string, n int) {
		dst = append(dst, name...)
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	money := func(name string, centavos int64) {
		dst = append(dst, name...)
		dst = append(AppendPesos(dst, centavos), '"')
	}
	if !charged {
		q.uses, q.tiers, q.centavos, q.pays = 0, nil, 0, q.units
	}
	dst = append(dst, `{"simulacion":true,"servicio":`...)
	dst = canon.AppendString(dst, q.op.Service)
	number(`,"recibidos":`, list.received())
	number(`,"duplicados":`, list.counts[listedRepeated])
	number(`,"invalidos":`, list.counts[listedRefused])
	number(`,"consultas":`, q.units)
	dst = append(dst, `,"escalones":`...)
	dst = appendTiers(dst, q.tiers)
	money(`,"costo":"`, q.centavos)
	number(`,"usos_que_pagarian":`, q.uses)
	money(`,"saldo":"`, q.funds.Balance)
	dst = append(dst, `,"usos_individuales":`...)
	dst = strconv.AppendInt(dst, q.funds.Uses, 10)
	dst = append(dst, `,"alcanza":`...)
	dst = strconv.AppendBool(dst, q.pays == q.units)
	number(`,"alcanza_para":`, q.pays)
	notice := quoteNotice
	switch {
	case q.pays < q.units:
		notice += quotePoor
	case sandbox:
		notice += quoteSandbox
	case !charged:
		notice += quoteFree
	}
	dst = append(dst, `,"aviso":`...)
	dst = canon.AppendString(dst, notice)
	if sandbox {
		dst = append(dst, `,"sandbox":true`...)
	}
	return append(dst, '}')
}
