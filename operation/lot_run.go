package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/store"
)

// lotRetry is how long the work waits for what passes by itself: a full queue or
// disk, a store that does not answer.
const lotRetry = time.Second

// RunLots works off the orders that are open, those that this process opens and those
// that it finds, until ctx ends; nothing of a block that was begun then is stored. Each
// time taken is sent on, another process may have had the accounts, and it looks for
// open orders again. It is called once.
func (p *Pipeline) RunLots(ctx context.Context, t Table, taken <-chan struct{}, log *slog.Logger) {
	l := &p.lots
	newestLots.Lock()
	newestLots.lots = l
	newestLots.Unlock()
	r := &lotRunner{Pipeline: p, table: t, log: log, workers: make(chan struct{}, runtime.GOMAXPROCS(0))}
	l.mu.Lock()
	wake := l.woken()
	l.mu.Unlock()
	l.look()
	for {
		again := r.takeUp()
		for o := l.next(); o != nil; o = l.next() {
			r.running.Go(func() { r.workOff(ctx, o) })
		}
		var later <-chan time.Time
		if again {
			later = time.After(lotRetry)
		}
		select {
		case <-wake:
		case <-later:
		case <-taken:
			l.look()
		case <-ctx.Done():
			r.running.Wait()
			l.drop(ledger.ErrClosed)
			return
		}
	}
}

// lotRunner is what the orders at work share.
type lotRunner struct {
	*Pipeline
	table   Table
	log     *slog.Logger
	workers chan struct{} // one for each block that is computed at this moment
	idle    sync.Pool     // of *lotWorker
	running sync.WaitGroup
}

// takeUp queues the open orders that are not known here, if it was asked to. again
// says that it could not, and should be called later.
func (r *lotRunner) takeUp() (again bool) {
	l := &r.lots
	l.mu.Lock()
	asked := l.takeUp
	l.mu.Unlock()
	if !asked {
		return false
	}
	if r.Ledger.Serving() != nil {
		return true
	}
	type found struct {
		of    lotOf
		op    *Operation
		order ledger.Order
	}
	var all []found
	err := r.Ledger.OpenOrders(func(account ledger.AccountID, o ledger.Order) error {
		op := r.table.Find(o.Operation)
		if op == nil || op.Lot == nil {
			r.log.Error("un lote es de una operación que este programa no tiene; queda en espera", "lote", o.ID.String(), "operacion", o.Operation)
			return nil
		}
		all = append(all, found{lotOf{account, o.OrderKey}, op, o})
		return nil
	})
	if err != nil {
		r.log.Warn("no se pudieron buscar los lotes sin terminar; se reintenta", "error", err.Error())
		return true
	}
	l.mu.Lock()
	l.takeUp = false
	l.mu.Unlock()
	slices.SortStableFunc(all, func(a, b found) int { return a.order.Opened.Compare(b.order.Opened) })
	for _, f := range all {
		l.add(f.of, f.op, f.order, nil)
	}
	return false
}

// workOff fills an order until it ends, or until this process must not go on with it.
func (r *lotRunner) workOff(ctx context.Context, o *openLot) {
	o.update(func() { o.started = true })
	err := r.fillAll(ctx, o)
	switch {
	case err == nil:
		lotsEnded.Inc()
	case elsewhere(err):
		r.lots.look()
	}
	// Whoever asks from here on reads what the ledger says of it.
	r.lots.leave(o)
	o.update(func() { o.ended, o.err = true, err })
}

// elsewhere reports that another process goes on with an order, or this one later.
func elsewhere(err error) bool {
	return errorIsAny(err, ledger.ErrStandby, store.ErrFenced, ledger.ErrClosed, ledger.ErrFailed, store.ErrClosed)
}

// passing reports that the same work may succeed a little later.
func passing(err error) bool {
	return errorIsAny(err, ErrFull, ledger.ErrBusy, ledger.ErrUnknown, ledger.ErrDuplicate, ledger.ErrTooManyHolds, store.ErrUnavailable)
}

func errorIsAny(err error, targets ...error) bool { return anyOf(targets...)(err) }

// fillAll returns nil when all of the order is stored, a *LotStoppedError when it was
// stopped, and otherwise why this process must not go on.
func (r *lotRunner) fillAll(ctx context.Context, o *openLot) error {
	for {
		err := r.fill(ctx, o)
		var behind *ledger.OrdinalError
		var stopped *LotStoppedError
		switch {
		case err == nil, errors.As(err, &stopped), elsewhere(err):
			return err
		case ctx.Err() != nil:
			return ledger.ErrClosed
		case errors.As(err, &behind), errors.Is(err, ledger.ErrOrderEnded):
			// What was thought lost was stored, or another process was here: it is
			// read anew how far the order is.
			continue
		case !passing(err):
			r.log.Error("un lote se detiene", "lote", o.ID.String(), "error", err.Error())
			if err = r.stop(ctx, o, stopReason(err)); elsewhere(err) || errors.As(err, &stopped) {
				return err
			}
		}
		select {
		case <-time.After(lotRetry):
		case <-ctx.Done():
			return ledger.ErrClosed
		}
	}
}

// stopReason is what the client is told.
func stopReason(err error) string {
	var funds *ledger.FundsError
	switch {
	case errors.As(err, &funds):
		return "La retención del saldo venció mientras el servicio estaba detenido, y el saldo ya no alcanza para el resto. Lo hecho se cobró; envíe el resto en otra lista después de abonar."
	case as[*snapshots.CorruptError](err):
		return "El archivo de una fuente está dañado y no se responde desde él. Lo hecho se cobró; envíe el resto en otra lista más tarde."
	case errors.Is(err, snapshots.ErrNotFound):
		return "La edición con la que empezó ya no está en este servicio. Lo hecho se cobró; envíe el resto en otra lista."
	}
	return "Ocurrió un error inesperado. Lo hecho se cobró; envíe el resto en otra lista. Si continúa, comunique el identificador del lote a quien opera el servicio."
}

// stop ends an order that cannot go on. When it did, its error is a *LotStoppedError.
func (r *lotRunner) stop(ctx context.Context, o *openLot, reason string) error {
	_, err := r.Ledger.Do(ctx, o.account, ledger.StopOrder{Now: r.Now(), Order: o.OrderKey, Reason: reason})
	if err == nil {
		lotsHalted.Inc()
		return &LotStoppedError{o.ID.String(), reason}
	}
	return err
}

// hold holds anew what the rest of the order may cost, where that is not held any
// more, and learns what all of it costs.
func (r *lotRunner) hold(ctx context.Context, o *openLot, order *ledger.Order) error {
	now := r.Now()
	res, err := r.Ledger.Do(ctx, o.account, ledger.HoldOrder{Now: now, Order: o.OrderKey, Until: now.Add(ledger.MaxHold)})
	if err != nil {
		return err
	}
	held := res.(ledger.Held)
	o.update(func() { o.priced, o.uses, o.centavos = true, order.Uses+held.Uses, order.Centavos+held.Centavos })
	return nil
}

// lotWork is an order at work.
type lotWork struct {
	*lotRunner
	o     *openLot
	order ledger.Order
	live  *snapshots.Live
	ed    *snapshots.Edition
	fecha civil.Date
	ask   func(key uint64) query.Question
	keys  []uint64 // of the items, from the first on
}

// fill works on the order until its end or an error.
func (r *lotRunner) fill(ctx context.Context, o *openLot) error {
	order, err := r.Ledger.Order(ctx, o.account, o.OrderKey)
	if err != nil {
		return err
	}
	switch order.State {
	case ledger.OrderDone:
		o.update(func() { o.priced, o.uses, o.centavos, o.done = true, order.Uses, order.Centavos, order.Done })
		return nil
	case ledger.OrderStopped:
		return &LotStoppedError{o.ID.String(), order.Reason}
	}
	o.update(func() { o.done = order.Done })
	if !o.state().priced {
		if err := r.hold(ctx, o, &order); err != nil {
			return err
		}
	}
	w := lotWork{lotRunner: r, o: o, order: order, live: r.edition(o.Sandbox), fecha: civil.Of(order.Opened)}
	terms, err := r.terms(o.lotOf)
	if err != nil {
		return err
	}
	in, err := o.op.input(terms.Args)
	if err != nil {
		return err
	}
	in.today = w.fecha
	if w.ask, err = o.op.Lot.Ask(in); err != nil {
		return err
	}
	if w.keys, err = r.keys(o.lotOf, order.Units); err != nil {
		return err
	}
	if w.ed, err = w.live.At(terms.Edition, editionHex(order.Edition)); err != nil {
		return err
	}
	defer w.ed.Release()
	return w.fillFrom(ctx, order.Done+1)
}

// keys are the items of an order.
func (p *Pipeline) keys(of lotOf, units int) ([]uint64, error) {
	keys := make([]uint64, 0, units)
	err := p.Ledger.Read(of.account).OrderInput(of.OrderKey, func(piece []byte) error {
		list := listReader{pieces: [][]byte{piece}}
		for {
			e, ok, err := list.item()
			if err != nil || !ok {
				return err
			}
			keys = append(keys, e.key)
		}
	})
	if err == nil && len(keys) != units {
		err = errList
	}
	return keys, err
}

// lotJob is a block that is computed.
type lotJob struct {
	first, count int // ordinals that it is for
	ids          ledger.VerificationID
	worker       *lotWorker
	block        *ledger.Block // of the first of them, as many as it has room for
	err          error
	ready        chan struct{} // closed when block or err is set
}

// fillFrom computes blocks, several at once, and stores them in order, each while the
// next ones are computed.
func (w *lotWork) fillFrom(ctx context.Context, next int) error {
	ctx, cancel := context.WithCancel(ctx)
	var jobs []*lotJob // in order
	defer func() {
		cancel()
		for _, j := range jobs {
			<-j.ready // it reads the edition
		}
	}()
	ahead, size := cap(w.workers)+1, ledger.MaxBlockRecords
	for {
		for len(jobs) < ahead && next <= w.order.Units {
			ids, count, err := w.Ledger.NextIDs(ctx, w.o.op.Prefix, w.Now(), min(size, w.order.Units-next+1))
			if err != nil {
				return err
			}
			jobs = append(jobs, w.start(ctx, &lotJob{first: next, count: count, ids: ids}))
			next += count
		}
		if len(jobs) == 0 {
			return nil
		}
		j := jobs[0]
		<-j.ready
		if j.err != nil {
			return j.err
		}
		got := j.block.Count()
		jobs = jobs[1:]
		if rest := j.count - got; rest > 0 { // long answers: the block was full before
			ids := j.ids
			ids.Counter += uint32(got)
			jobs = append([]*lotJob{w.start(ctx, &lotJob{first: j.first + got, count: rest, ids: ids})}, jobs...)
			size = max(16, got)
		} else {
			size = min(ledger.MaxBlockRecords, 2*size)
		}
		err := w.store(ctx, j.block)
		w.idle.Put(j.worker)
		if err != nil {
			return err
		}
	}
}

// store fills the order with its next block.
func (w *lotWork) store(ctx context.Context, block *ledger.Block) error {
	if w.Full != nil && w.Full() {
		return ErrFull
	}
	fill := ledger.FillOrder{Now: w.Now(), Block: block}
	res, err := w.Ledger.Do(ctx, w.o.account, fill)
	if errors.Is(err, ledger.ErrNoHold) {
		var order ledger.Order
		if order, err = w.Ledger.Order(ctx, w.o.account, w.o.OrderKey); err != nil {
			return err
		}
		if err = w.hold(ctx, w.o, &order); err != nil {
			return err
		}
		res, err = w.Ledger.Do(ctx, w.o.account, fill)
	}
	if err != nil {
		return err
	}
	filled := res.(ledger.OrderFilled)
	lotRecords.Add(block.Count())
	lotBlocks.Update(float64(block.Count()))
	w.o.update(func() { w.o.done = filled.Done })
	return nil
}

// start computes a block in a goroutine of its own, when there is a worker free.
func (w *lotWork) start(ctx context.Context, j *lotJob) *lotJob {
	j.ready = make(chan struct{})
	go func() {
		defer close(j.ready)
		select {
		case w.workers <- struct{}{}:
			defer func() { <-w.workers }()
		case <-ctx.Done():
			j.err = ctx.Err()
			return
		}
		if j.worker, _ = w.idle.Get().(*lotWorker); j.worker == nil {
			j.worker = new(lotWorker)
		}
		defer func() {
			if r := recover(); r != nil {
				w.log.Error("pánico al responder un lote", "lote", w.o.ID.String(), "error", fmt.Sprint(r), "pila", string(debug.Stack()))
				j.err = fmt.Errorf("pánico: %v", r)
			}
		}()
		j.block, j.err = j.worker.compute(ctx, w, j)
	}()
	return j
}
