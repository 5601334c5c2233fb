package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/ledger"
	"cotejo/store"
)

// standbyEvery is how often a node that waits asks whether the turn is free, at most.
const standbyEvery = time.Second

var (
	takeovers = metrics.NewCounter("cotejo_turn_taken_total")
	followed  atomic.Pointer[turn] // that the gauge tells of
	_         = metrics.NewGauge("cotejo_turn_held", func() float64 {
		if t := followed.Load(); t != nil && t.held() {
			return 1
		}
		return 0
	})
)

// turn decides, for a node whose accounts are in a database that others share, when
// it owns them: while it holds the database's lease. Everything that writes goes
// through the ledger, which asks held for each command.
type turn struct {
	db   *store.Postgres
	node store.Node
	ttl  time.Duration
	// doubt is called each time before the node is given the accounts, begin each time
	// after it was. Either may be nil.
	doubt func()
	begin func() error

	ledger *ledger.Ledger // set before the first step
	leads  bool           // as far as the last step knows; of whoever steps
	term   atomic.Uint64  // of the lease that the ledger leads under
	failed chan error     // capacity 1: why this node must not go on

	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	holder store.Holder
	fault  error // the database did not answer last time
}

func newTurn(db *store.Postgres, node store.Node, ttl time.Duration) *turn {
	return &turn{db: db, node: node, ttl: ttl, failed: make(chan error, 1)}
}

// held is ledger.Options.Turn.
func (t *turn) held() bool { return t.db.Held(t.term.Load()) }

// follow keeps the lease, or waits for it, until close.
func (t *turn) follow() {
	ctx, stop := context.WithCancel(context.Background())
	t.stop, t.done = stop, make(chan struct{})
	followed.Store(t)
	go func() {
		defer close(t.done)
		for {
			every := t.ttl / 3
			if !t.held() {
				every = min(every, standbyEvery)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
			}
			t.step()
		}
	}()
}

// step asks for the lease once and makes the ledger follow.
func (t *turn) step() {
	term, err := t.db.Take(t.node, t.ttl)
	if t.note(err); err != nil {
		return // who holds the lease goes on until it ends
	}
	if term == 0 {
		t.wait()
		return
	}
	if term != t.term.Load() {
		// Another may have had the accounts meanwhile.
		if err := t.ledger.Rest(); err != nil {
			t.fail(err)
			return
		}
		t.term.Store(term)
	}
	if err := t.ledger.Serving(); err == nil || !errors.Is(err, ledger.ErrStandby) && !errors.Is(err, store.ErrFenced) {
		return // it leads, or finds its way back by itself
	}
	switch err := t.lead(); {
	case err == nil:
		takeovers.Inc()
		t.leads = true
		if t.done != nil { // a command does its work and says no more
			slog.Info("cuentas: este nodo tiene el turno", "base", t.db.Where(), "turno", term)
		}
	case passes(err):
		slog.Warn("cuentas: no se pudo tomar el turno; se reintenta", "error", err.Error())
	default:
		t.fail(errors.Join(err, t.db.HandOver()))
	}
}

// passes reports that an error of lead is no reason to end: the next step tries again.
func passes(err error) bool {
	for _, e := range []error{store.ErrUnavailable, store.ErrFenced, ledger.ErrStandby, ledger.ErrUnknown, ledger.ErrBusy} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (t *turn) lead() error {
	if t.doubt != nil {
		t.doubt()
	}
	if err := t.ledger.Lead(); err != nil {
		return err
	}
	if t.begin == nil {
		return nil
	}
	if err := t.begin(); err != nil {
		return errors.Join(err, t.ledger.Rest()) // so that nothing is answered before it succeeds
	}
	return nil
}

// note remembers whether the database answered, and logs when that turns.
func (t *turn) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && t.fault == nil:
		slog.Error("cuentas: la base de datos no contesta; se reintenta", "base", t.db.Where(), "error", err.Error())
	case err == nil && t.fault != nil:
		slog.Info("cuentas: la base de datos contesta otra vez", "base", t.db.Where())
	}
	t.fault = err
}

// wait lets another node answer for the accounts.
func (t *turn) wait() {
	if t.leads {
		t.leads = false
		slog.Warn("cuentas: otro nodo tomó el turno; este queda en espera")
	}
	if err := t.ledger.Serving(); !errors.Is(err, ledger.ErrStandby) {
		if err := t.ledger.Rest(); err != nil {
			t.fail(err)
			return
		}
	}
	holder, err := t.db.Holder()
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if holder.Node != t.holder.Node && t.done != nil {
		slog.Info("cuentas: en espera del turno", "lo_tiene", holder.Name, "url", holder.URL)
	}
	t.holder = holder
}

// fail says why this node must not go on; the first reason counts.
func (t *turn) fail(err error) {
	select {
	case t.failed <- err:
	default:
	}
}

// close ends the wait or the renewal. The lease stays until handOver.
func (t *turn) close() {
	if t.stop != nil {
		t.stop()
		<-t.done
	}
}

// handOver lets another node begin at once. Nothing may write any more.
func (t *turn) handOver() {
	followed.CompareAndSwap(t, nil)
	if err := t.db.HandOver(); err != nil && !errors.Is(err, store.ErrClosed) {
		slog.Warn("cuentas: no se pudo ceder el turno; otro nodo espera a que venza", "error", err.Error())
	}
}

// unmet says why this node should not be asked about accounts, "" when it should. It
// names nobody.
func (t *turn) unmet() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.fault != nil:
		return "la base de datos de las cuentas no contesta"
	case !t.held():
		return "este nodo está en espera: otro atiende las cuentas"
	}
	return ""
}

// elsewhere refuses a command that must own the accounts.
func (t *turn) elsewhere() error {
	select {
	case err := <-t.failed:
		return err
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		return t.fault
	}
	who := t.holder.Name
	if t.holder.URL != "" {
		who = fmt.Sprintf("%s (%s)", who, t.holder.URL)
	}
	return exitWith(exitInUse, "las cuentas las atiende el nodo %s: corra el comando en él", who)
}
