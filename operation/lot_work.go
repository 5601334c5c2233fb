package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"

	"cotejo/civil"
	"cotejo/index"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// lotWorker computes blocks, one at a time. A block is its builder's, so a worker is
// not used again before its block is stored.
type lotWorker struct {
	builder                  *ledger.BlockBuilder
	registro, conocida, acta []byte
	versions                 []byte // items of the acta's versiones, for consulted in ed
	consulted, inPast        index.Set
	enFecha                  civil.Date
	ed                       *snapshots.Edition
}

// yieldEvery is after how many answers a worker lets others run: a single question
// must not wait for a whole block of an order. So many are expected of the edition.
const yieldEvery = 8

// compute answers the items of a job, as many as one block has room for.
func (k *lotWorker) compute(ctx context.Context, w *lotWork, j *lotJob) (_ *ledger.Block, err error) {
	if k.builder == nil {
		if k.builder, err = w.Ledger.NewBlockBuilder(); err != nil {
			return nil, err
		}
	}
	k.ed = nil // versions are those of another order
	b, end := k.builder, j.first+j.count
	b.Reset(&w.order, j.first, j.ids, j.count)
	for n := 0; b.Next() < end && b.Room(); n++ {
		if n%yieldEvery == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			runtime.Gosched()
			w.ed.Expect(w.keys[b.Next()-1 : min(b.Next()-1+yieldEvery, end-1)])
		}
		if err := k.add(w, w.ask(w.keys[b.Next()-1])); err != nil {
			return nil, err
		}
	}
	return b.Block(), nil
}

// add answers one question as Pipeline.verify does, with the moment of the order.
func (k *lotWorker) add(w *lotWork, q query.Question) error {
	b, moment := k.builder, w.order.Opened
	registro, outcome, err := query.AppendRegistro(k.registro[:0], q, w.fecha, w.ed)
	k.registro = registro
	if err != nil {
		return fmt.Errorf("%s: %w", q.Motor(), err)
	}
	if outcome.Charged != (w.order.Price > 0) && !w.order.Sandbox {
		return fmt.Errorf("operation: %s: of one order some answers are charged and some are not", q.Motor())
	}
	if k.conocida, err = appendConocida(k.conocida[:0], q, moment, w.live, w.ed); err != nil {
		return err
	}
	if k.ed != w.ed || k.consulted != outcome.Consulted || k.inPast != outcome.InPast || k.enFecha != outcome.EnFecha {
		k.ed, k.consulted, k.inPast, k.enFecha = w.ed, outcome.Consulted, outcome.InPast, outcome.EnFecha
		k.versions = appendVersions(k.versions[:0], &outcome, w.ed)
	}
	sum := sha256.Sum256(registro)
	var sumHex [2 * sha256.Size]byte
	hex.Encode(sumHex[:], sum[:])
	k.acta = appendActa(k.acta[:0], b.NextID(), moment, sumHex[:], k.conocida, k.versions)
	return b.Add(outcome.Code, registro, sum, k.acta, outcome.Note.Bytes())
}
