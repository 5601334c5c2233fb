package ledger_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// remote is an engine whose answers get lost as a test says.
type remote struct {
	mu    sync.Mutex
	inner store.Store

	lose  atomic.Int32  // commits whose answer gets lost
	write atomic.Bool   // those are written all the same
	leave atomic.Bool   // and then nothing is reached
	away  atomic.Bool   // nothing is reached
	taken atomic.Bool   // another process may not lose the groups
	tried chan struct{} // receives when an Acquire was refused, if somebody looks
}

func newRemote(t *testing.T) *remote {
	r := &remote{inner: openStore(t, vfs.NewMem()), tried: make(chan struct{})}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *remote) at() store.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inner
}

func (r *remote) Acquire(g store.Group) (epoch, seq uint64, err error) {
	if r.away.Load() {
		select {
		case r.tried <- struct{}{}:
		default:
		}
		return 0, 0, store.ErrUnavailable
	}
	if r.taken.Load() {
		return 0, 0, store.ErrFenced
	}
	return r.at().Acquire(g)
}

func (r *remote) Commit(batches ...store.Batch) error {
	if r.lose.Load() > 0 {
		r.lose.Add(-1)
		if r.write.Load() {
			if err := r.at().Commit(batches...); err != nil {
				return err
			}
		}
		if r.leave.Load() {
			r.away.Store(true)
		}
		return store.ErrUnknown
	}
	if r.away.Load() {
		return store.ErrUnavailable
	}
	return r.at().Commit(batches...)
}

func (r *remote) Reader(g store.Group) store.Reader      { return remoteReader{r, g} }
func (r *remote) View(g store.Group) (store.View, error) { return r.at().View(g) }
func (r *remote) Close() error                           { return r.at().Close() }

type remoteReader struct {
	r *remote
	g store.Group
}

func (r remoteReader) Get(key []byte) ([]byte, error) {
	if r.r.away.Load() {
		return nil, store.ErrUnavailable
	}
	return r.r.at().Reader(r.g).Get(key)
}

func (r remoteReader) Scan(lower, upper []byte, fn func(key, value []byte) error) error {
	if r.r.away.Load() {
		return store.ErrUnavailable
	}
	return r.r.at().Reader(r.g).Scan(lower, upper, fn)
}

// TestUnknownOutcomeIsResolved: an answer that got lost is found out, and the ledger
// goes on in the same process.
func TestUnknownOutcomeIsResolved(t *testing.T) {
	for _, written := range []bool{true, false} {
		r := newRemote(t)
		l := openOn(t, r, ledger.Options{})
		defer l.Close()
		credit(t, l, 1, start, 10_000)
		_, before, err := charge(t, l, 1, 1, start, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.write.Store(written)
		r.lose.Store(1)
		rec, got, err := charge(t, l, 1, 1, start, 100)
		want := before.Balance
		if written {
			want -= 100
			if err != nil || got.Movement != before.Movement+1 || got.Balance != want {
				t.Errorf("written: %+v, %v", got, err)
			}
		} else if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("not written: %+v, %v; want ErrUnavailable", got, err)
		}
		if _, err := l.Find(1, 1, false, rec.ID); (err == nil) != written {
			t.Errorf("written %v, and Find says %v", written, err)
		}
		_, got, err = charge(t, l, 1, 1, start, 10)
		if err != nil || got.Balance != want-10 {
			t.Errorf("the next one: %+v, %v; want a balance of %d", got, err, want-10)
		}
		if funds, ok, err := l.Funded(1, start, "COMPANY", 1); err != nil || !ok || funds.Balance != want-10 {
			t.Errorf("Funded = %+v, %v, %v; want %d", funds, ok, err, want-10)
		}
		check(t, r)
	}
}

// TestDoubtEndsWithTheCaller: while nobody can tell, callers are answered in their
// own time, others are refused at once, and both are true when the store is back.
func TestDoubtEndsWithTheCaller(t *testing.T) {
	r := newRemote(t)
	l := openOn(t, r, ledger.Options{})
	defer l.Close()
	credit(t, l, 1, start, 10_000)
	id := nextID(t, l, start)
	r.leave.Store(true)
	r.write.Store(true)
	r.lose.Store(1)
	mine, cancel := context.WithCancel(ctx)
	answered := make(chan error, 1)
	rec := record(id, 1, "XAXX010101000")
	go func() {
		_, err := l.Do(mine, 1, ledger.Charge{Now: start, Record: rec, Sum: sumOf(rec), Price: 100})
		answered <- err
	}()
	<-r.tried        // the sequencer is at it
	for range 5000 { // more than the queue holds
		if _, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("while it is away: %v; want ErrUnavailable", err)
		}
	}
	if err := l.Alive(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Alive while it is away: %v; want ErrUnavailable", err)
	}
	cancel()
	if err := <-answered; !errors.Is(err, ledger.ErrUnknown) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the caller who gave up: %v; want ErrUnknown", err)
	}
	r.away.Store(false)
	await(t, l)
	if _, err := l.Find(1, 1, false, id); err != nil {
		t.Errorf("it was written: %v", err)
	}
	if _, got, err := charge(t, l, 1, 1, start, 1); err != nil || got.Balance != 9_899 {
		t.Errorf("the next one: %+v, %v; want 9899", got, err)
	}
	check(t, r)
}

// await waits until the ledger serves again.
func await(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	for l.Serving() != nil {
		if err := l.Serving(); err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// TestReadFailsInACommand: a command that cannot read is refused, what came before it
// in the batch is stored, and the ledger goes on.
func TestReadFailsInACommand(t *testing.T) {
	r := newRemote(t)
	l := openOn(t, r, ledger.Options{})
	defer l.Close()
	credit(t, l, 1, start, 10_000)
	r.away.Store(true)
	if _, err := l.Do(ctx, 2, ledger.Credit{Now: start, Org: 1, Centavos: 5, Reason: "abono"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a wallet that cannot be read: %v; want ErrUnavailable", err)
	}
	r.away.Store(false)
	await(t, l)
	if got := credit(t, l, 2, start, 5); got.Balance != 5 {
		t.Errorf("%+v", got)
	}
	check(t, r)
}

// TestCloseWhileAway: Close does not wait for the store.
func TestCloseWhileAway(t *testing.T) {
	r := newRemote(t)
	l := openOn(t, r, ledger.Options{})
	credit(t, l, 1, start, 10_000)
	r.leave.Store(true)
	r.lose.Store(1)
	answered := make(chan error, 1)
	go func() {
		_, err := l.Do(ctx, 1, put{"k", "v"})
		answered <- err
	}()
	<-r.tried
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answered; !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("in doubt at the end: %v; want ErrUnknown", err)
	}
	if _, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := l.Lead(); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("Lead after Close: %v", err)
	}
}

// TestForeignWriteWhileAway: when another process wrote meanwhile this one is fenced,
// and what it had sent is answered truly.
func TestForeignWriteWhileAway(t *testing.T) {
	r := newRemote(t)
	l := openOn(t, r, ledger.Options{})
	defer l.Close()
	credit(t, l, 1, start, 10_000)
	r.leave.Store(true)
	r.write.Store(true)
	r.lose.Store(1)
	answered := make(chan error, 1)
	go func() {
		_, err := l.Do(ctx, 1, put{"k", "mine"})
		answered <- err
	}()
	<-r.tried
	other, err := ledger.Open(r.at(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	credit(t, other, 1, start, 7)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	r.away.Store(false)
	if err := <-answered; err != nil {
		t.Errorf("it was written before the other came: %v", err)
	}
	for l.Serving() == nil || errors.Is(l.Serving(), store.ErrUnavailable) {
	}
	if _, err := l.Do(ctx, 1, put{"k", "again"}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("afterwards: %v; want ErrFenced", err)
	}
	if err := l.Lead(); err != nil {
		t.Fatal(err)
	}
	if got := credit(t, l, 1, start, 1); got.Balance != 10_008 {
		t.Errorf("leading again: %+v; want 10008", got)
	}
	check(t, r)
}

// TestTurnLostInDoubt: who may not take the store any more cannot find out what became
// of its last write, and says so.
func TestTurnLostInDoubt(t *testing.T) {
	for _, written := range []bool{true, false} {
		r := newRemote(t)
		l := openOn(t, r, ledger.Options{})
		defer l.Close()
		r.taken.Store(true)
		r.write.Store(written)
		r.lose.Store(1)
		if _, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("in doubt, written %v: %v; want ErrUnknown", written, err)
		}
		for errors.Is(l.Serving(), store.ErrUnavailable) {
		}
		if err := l.Serving(); !errors.Is(err, store.ErrFenced) {
			t.Errorf("afterwards: %v; want ErrFenced", err)
		}
		r.taken.Store(false)
		if err := l.Lead(); err != nil {
			t.Fatal(err)
		}
		want := ""
		if written {
			want = "k=v "
		}
		if got, err := l.Do(ctx, 1, list{}); err != nil || got != want {
			t.Errorf("leading again, written %v: %q, %v", written, got, err)
		}
	}
}

// TestTurns lets two ledgers take turns on one store: who rests is refused, who leads
// sees all that the other wrote, and no id is given twice.
func TestTurns(t *testing.T) {
	r := newRemote(t)
	var turn [2]atomic.Bool
	var ledgers [2]*ledger.Ledger
	for i := range ledgers {
		ledgers[i] = openOn(t, r, ledger.Options{Turn: turn[i].Load})
		defer ledgers[i].Close()
		if _, err := ledgers[i].Do(ctx, 1, put{"k", "v"}); !errors.Is(err, ledger.ErrStandby) {
			t.Errorf("before the first turn: %v; want ErrStandby", err)
		}
		if _, ok := ledgers[i].ParseID("COM-20261120-00000000"); ok {
			t.Error("an id of nobody")
		}
	}
	given := map[ledger.VerificationID]bool{}
	balance := int64(0)
	for round := range 6 {
		l, other := ledgers[round%2], ledgers[1-round%2]
		turn[round%2].Store(true)
		if err := l.Lead(); err != nil {
			t.Fatal(err)
		}
		if got := credit(t, l, 1, start, 1000); got.Balance != balance+1000 {
			t.Fatalf("round %d: a balance of %d; want %d", round, got.Balance, balance+1000)
		}
		balance += 1000
		for range 3 {
			rec, got, err := charge(t, l, 1, 1, start, 10)
			balance -= 10
			if err != nil || got.Balance != balance || given[rec.ID] {
				t.Fatalf("round %d: %+v, %v, given before: %v", round, got, err, given[rec.ID])
			}
			given[rec.ID] = true
		}
		if funds, ok, err := l.Funded(1, start, "COMPANY", balance); err != nil || !ok || funds.Balance != balance {
			t.Errorf("round %d: Funded = %+v, %v, %v; want %d", round, funds, ok, err, balance)
		}
		if err := other.Serving(); !errors.Is(err, ledger.ErrStandby) {
			t.Errorf("round %d: the other serves: %v", round, err)
		}
		// A turn may end without anybody saying so.
		turn[round%2].Store(false)
		if _, err := l.Do(ctx, 1, list{}); !errors.Is(err, ledger.ErrStandby) {
			t.Errorf("after its turn: %v; want ErrStandby", err)
		}
		if round%3 != 0 {
			if err := l.Rest(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rep := check(t, r); rep.Balance != balance || rep.Records != len(given) {
		t.Errorf("%+v; want a balance of %d and %d records", rep, balance, len(given))
	}
}

// TestTurnEndsInTheMiddle: what was only read is not answered by who lost the turn
// meanwhile.
func TestTurnEndsInTheMiddle(t *testing.T) {
	r := newRemote(t)
	var turn atomic.Bool
	turn.Store(true)
	l := openOn(t, r, ledger.Options{Turn: turn.Load})
	defer l.Close()
	if err := l.Lead(); err != nil {
		t.Fatal(err)
	}
	res, err := l.Do(ctx, 1, endTurn{&turn})
	if !errors.Is(err, ledger.ErrStandby) || res != nil {
		t.Errorf("a refusal from before: %v, %v; want ErrStandby", res, err)
	}
}

type endTurn struct{ turn *atomic.Bool }

func (c endTurn) Apply(*ledger.Tx) (ledger.Result, error) {
	c.turn.Store(false)
	return "what was true once", errors.New("refused")
}

// TestLostWritesAreNoticedAtOnce: a store that came back without what was durable, as
// after a failover to a server that lagged behind, is not led any more, with no
// anchor and in the same process.
func TestLostWritesAreNoticedAtOnce(t *testing.T) {
	r := newRemote(t)
	l := openOn(t, r, ledger.Options{})
	defer l.Close()
	credit(t, l, 1, start, 10_000)
	kept := r.at()
	defer kept.Close()
	r.mu.Lock()
	r.inner = openStore(t, vfs.NewMem())
	r.mu.Unlock()
	other, err := ledger.Open(r.at(), ledger.Options{Random: seeded(7)}) // some of it is there
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	r.lose.Store(1)
	if _, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("what was asked for then: %v", err)
	}
	for l.Serving() == nil || errors.Is(l.Serving(), store.ErrUnavailable) {
	}
	var anchor *ledger.AnchorError
	if err := l.Lead(); !errors.As(err, &anchor) || anchor.Missing() == 0 {
		t.Errorf("Lead: %v; want an AnchorError", err)
	}
	if err := l.Serving(); err == nil {
		t.Error("it serves")
	}
}
