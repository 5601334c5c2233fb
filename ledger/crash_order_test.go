package ledger_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// begun is an order that was acknowledged, and how far its records were.
type begun struct {
	account ledger.AccountID
	done    int
}

// work opens an order or goes on with one, and fills a few blocks of it. Several
// clients may be at one.
func (d *disk) work(stop context.Context, l *ledger.Ledger, rng *rand.Rand, crashing *atomic.Bool) error {
	build, err := l.NewBlockBuilder()
	if err != nil {
		return err
	}
	account, o, err := d.pick(stop, l, rng, crashing)
	if o == nil || err != nil {
		return err
	}
	for range 1 + rng.IntN(3) {
		ids, n, err := l.NextIDs(stop, "COM", d.now, 1+rng.IntN(3))
		if err != nil {
			return err
		}
		n = min(n, o.Units-o.Done)
		var records []ledger.VerificationID
		for build.Reset(o, o.Done+1, ids, n); build.Room(); {
			r := record(build.NextID(), 1, "lote")
			records = append(records, r.ID)
			if err := build.Add(r.Code, r.Registro, sumOf(r), r.Acta, nil); err != nil {
				return err
			}
		}
		res, err := l.Do(stop, account, ledger.FillOrder{Now: d.now, Block: build.Block()})
		var wrong *ledger.OrdinalError
		switch {
		case errors.As(err, &wrong): // somebody else was faster
			o.Done = wrong.Done
			if o.Done == o.Units {
				return nil
			}
			continue
		case errors.Is(err, ledger.ErrNoHold):
			_, err := l.Do(stop, account, ledger.HoldOrder{Now: d.now, Order: o.OrderKey, Until: d.now.Add(time.Hour)})
			if err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		filled := res.(ledger.OrderFilled)
		if !crashing.Load() {
			d.filled(o.ID, account, filled.Done, records)
		}
		if o.Done = filled.Done; filled.Ended {
			return nil
		}
	}
	return nil
}

// pick opens an order, or takes one that is open.
func (d *disk) pick(stop context.Context, l *ledger.Ledger, rng *rand.Rand, crashing *atomic.Bool) (ledger.AccountID, *ledger.Order, error) {
	d.mu.Lock()
	var known []ledger.VerificationID
	for id := range d.orders {
		known = append(known, id)
	}
	d.mu.Unlock()
	if len(known) > 0 && rng.IntN(3) > 0 {
		id := known[rng.IntN(len(known))]
		d.mu.Lock()
		account := d.orders[id].account
		d.mu.Unlock()
		o, err := l.Order(stop, account, ledger.OrderKey{Org: 1, ID: id})
		if err != nil || o.State != ledger.OrderOpen {
			return 0, nil, err
		}
		return account, &o, nil
	}
	id, err := l.NextID(stop, ledger.OrderPrefix, d.now)
	if err != nil {
		return 0, nil, err
	}
	c := openOrder(id, 1+rng.IntN(12))
	c.Now, c.Org, c.Price, c.Steps, c.Until = d.now, 1, int64(rng.IntN(3))*300, nil, d.now.Add(time.Hour)
	account := ledger.AccountID(1 + rng.IntN(crashWallets))
	if _, err := l.Do(stop, account, c); err != nil {
		return 0, nil, err
	}
	if !crashing.Load() {
		d.filled(id, account, 0, nil)
	}
	return account, &ledger.Order{OrderKey: ledger.OrderKey{Org: 1, ID: id}, Service: c.Service, Operation: c.Operation, Edition: c.Edition, Units: c.Units}, nil
}

// filled notes what the outside saw of an order before the power failed.
func (d *disk) filled(order ledger.VerificationID, account ledger.AccountID, done int, records []ledger.VerificationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.orders[order] = begun{account, max(done, d.orders[order].done)}
	for _, id := range records {
		if d.given[id] {
			d.faults = append(d.faults, id.String()+" given twice")
		}
		d.given[id], d.acknowledged[id] = true, account
		d.filledRecords++
	}
}

// expected reports an error that an order may meet.
func expected(err error) bool {
	return errors.As(err, new(*ledger.FundsError)) || errors.Is(err, ledger.ErrTooManyHolds) || errors.Is(err, ledger.ErrOrderEnded) ||
		errors.Is(err, context.Canceled)
}

// verifyOrders looks for every acknowledged order.
func (d *disk) verifyOrders(l *ledger.Ledger) {
	for id, want := range d.orders {
		o, err := l.Order(ctx, want.account, ledger.OrderKey{Org: 1, ID: id})
		switch {
		case errors.Is(err, store.ErrNotFound):
			d.fault("0 acknowledged charges lost, but the order %v lost, ", id)
		case err != nil:
			d.fault("order %v: %v", id, err)
		case o.Done < want.done:
			d.fault("order %v: %d of %d acknowledged records lost, ", id, want.done-o.Done, want.done)
		}
	}
}
