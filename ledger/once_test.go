package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// once is a request of the tests.
func once(key, content byte) *ledger.Once {
	return &ledger.Once{Key: [32]byte{key}, Content: [32]byte{content}}
}

// chargeOnce charges a new record under o.
func chargeOnce(t testing.TB, l *ledger.Ledger, account ledger.AccountID, org ledger.OrgID, now time.Time, price int64, o *ledger.Once) (ledger.VerificationID, ledger.Charged, error) {
	t.Helper()
	r := record(nextID(t, l, now), org, "XAXX010101000")
	res, err := l.Do(ctx, account, ledger.Charge{Now: now, Record: r, Sum: sumOf(r), Price: price, Once: o})
	charged, _ := res.(ledger.Charged)
	return r.ID, charged, err
}

// TestOnceRace: however many repeat a request at once, one is charged and all
// learn which.
func TestOnceRace(t *testing.T) { onEachEngine(t, onceRace) }

func onceRace(t *testing.T, l *ledger.Ledger, s store.Store) {
	credit(t, l, 1, start, 100_000)
	var group sync.WaitGroup
	var charged atomic.Int32
	ids := make([]ledger.VerificationID, 64)
	for i := range ids {
		group.Go(func() {
			id, c, err := chargeOnce(t, l, 1, 1, start, 1400, once(1, 1))
			switch {
			case err != nil:
				t.Error(err)
			case c.Earlier != nil:
				ids[i] = *c.Earlier
			default:
				charged.Add(1)
				ids[i] = id
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("answered with %v and %v", ids[0], id)
		}
	}
	if rep := check(t, s); charged.Load() != 1 || rep.Movements != 2 || rep.Records != 1 || rep.Balance != 98_600 {
		t.Errorf("%d charged, %+v", charged.Load(), rep)
	}
}

// TestOnceRaceForMoney: each of 64 different requests is sent twice, and there is
// money for ten: ten are charged, once each.
func TestOnceRaceForMoney(t *testing.T) { onEachEngine(t, onceRaceForMoney) }

func onceRaceForMoney(t *testing.T, l *ledger.Ledger, s store.Store) {
	credit(t, l, 1, start, 10*1400+1399)
	var group sync.WaitGroup
	var paid, refused, repeated atomic.Int32
	for i := range 128 {
		group.Go(func() {
			_, c, err := chargeOnce(t, l, 1, 1, start, 1400, once(byte(i/2), 1))
			var funds *ledger.FundsError
			switch {
			case errors.As(err, &funds):
				refused.Add(1)
			case err != nil:
				t.Error(err)
			case c.Earlier != nil:
				repeated.Add(1)
			default:
				paid.Add(1)
			}
		})
	}
	group.Wait()
	if rep := check(t, s); paid.Load() != 10 || repeated.Load() != 10 || refused.Load() != 108 || rep.Movements != 11 || rep.Records != 10 || rep.Balance != 1399 {
		t.Errorf("%d paid, %d repeated, %d refused, %+v; want 10, 10 and 108", paid.Load(), repeated.Load(), refused.Load(), rep)
	}
}

func TestOnce(t *testing.T) {
	l, s := newLedger(t)
	credit(t, l, 1, start, 1400)
	first, c, err := chargeOnce(t, l, 1, 1, start, 1400, once(1, 1))
	if err != nil || c.Earlier != nil || c.Movement != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	// Nothing is left to pay with, and nothing is needed.
	after := seqs(t, s)
	id, c, err := chargeOnce(t, l, 1, 1, start.Add(ledger.OnceLife-1), 1400, once(1, 1))
	if err != nil || c.Earlier == nil || *c.Earlier != first || c.Movement != 0 || c.Centavos != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := seqs(t, s); got != withGlobal(after, got[store.Global]) {
		t.Error("a repeated charge was written")
	}
	if _, err := l.Find(1, 1, false, id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the record of a repeated charge: %v", err)
	}
	if _, _, err := chargeOnce(t, l, 1, 1, start, 0, once(1, 2)); !errors.Is(err, ledger.ErrKeyReused) {
		t.Errorf("other content: %v", err)
	}
	r, found, err := l.Recall(ctx, 1, 1, false, *once(1, 1), start)
	if want, _ := l.Find(1, 1, false, first); err != nil || !found || !bytes.Equal(r.Registro, want.Registro) || r.ID != first || r.Movement != 2 {
		t.Errorf("Recall = %+v, %v, %v", r, found, err)
	}
	// The key belongs to an organization, in one mode.
	f := func(what string, account ledger.AccountID, org ledger.OrgID, sandbox bool, o *ledger.Once, now time.Time) {
		t.Helper()
		if r, found, err := l.Recall(ctx, account, org, sandbox, *o, now); found || err != nil {
			t.Errorf("%s: Recall = %v, %v", what, r.ID, err)
		}
	}
	f("another account", 2, 1, false, once(1, 1), start)
	f("a sibling organization", 1, 2, false, once(1, 2), start)
	f("a test key", 1, 1, true, once(1, 1), start)
	f("another key", 1, 1, false, once(2, 1), start)
	f("later", 1, 1, false, once(1, 2), start.Add(ledger.OnceLife))
	if c, _, err := l.Recall(ctx, 1, 1, false, *once(1, 1), time.Time{}); err == nil {
		t.Errorf("no moment: %+v", c)
	}
	// A refused charge leaves nothing behind.
	var funds *ledger.FundsError
	if _, _, err := chargeOnce(t, l, 1, 1, start, 1, once(3, 1)); !errors.As(err, &funds) {
		t.Fatalf("charged: %v", err)
	}
	f("a refused charge", 1, 1, false, once(3, 1), start)
	credit(t, l, 1, start, 100)
	if id, c, err := chargeOnce(t, l, 1, 1, start, 1, once(3, 2)); err != nil || c.Earlier != nil || id == first {
		t.Errorf("after a refusal: %+v, %v", c, err)
	}
	// And after its life a key is new.
	id, c, err = chargeOnce(t, l, 1, 1, start.Add(ledger.OnceLife), 1, once(1, 2))
	if err != nil || c.Earlier != nil || c.Centavos != 1 {
		t.Errorf("a week later: %+v, %v", c, err)
	}
	if r, found, err := l.Recall(ctx, 1, 1, false, *once(1, 2), start.Add(ledger.OnceLife)); !found || err != nil || r.ID != id {
		t.Errorf("a week later: %v, %v, %v", r.ID, found, err)
	}
}

// TestOnceSurvives: what was acknowledged is remembered after a loss of power.
func TestOnceSurvives(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openStore(t, mem)
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	credit(t, l, 1, start, 1400)
	first, _, err := chargeOnce(t, l, 1, 1, start, 1400, once(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, after)
	defer s.Close()
	if l, err = ledger.Open(s, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, c, err := chargeOnce(t, l, 1, 1, start, 1400, once(1, 1)); err != nil || c.Earlier == nil || *c.Earlier != first {
		t.Errorf("%+v, %v; want %v", c, err, first)
	}
	if r, found, err := l.Recall(ctx, 1, 1, false, *once(1, 1), start); !found || err != nil || r.ID != first {
		t.Errorf("Recall = %v, %v, %v", r.ID, found, err)
	}
	check(t, s)
}

// lateStore writes at once and reports it when it is let go.
type lateStore struct {
	store.Store
	armed   atomic.Bool
	written chan struct{}
	release chan error
}

func (s *lateStore) Commit(batches ...store.Batch) error {
	err := s.Store.Commit(batches...)
	if err != nil || !s.armed.Load() {
		return err
	}
	close(s.written)
	return <-s.release
}

// TestRecallWaits: what can be read and may not be durable is not answered.
func TestRecallWaits(t *testing.T) {
	s := &lateStore{Store: openStore(t, vfs.NewMem()), written: make(chan struct{}), release: make(chan error)}
	defer s.Close()
	l, err := ledger.Open(s, ledger.Options{Fatal: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := record(nextID(t, l, start), 1, "X")
	s.armed.Store(true)
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := l.Do(ctx, 1, ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Once: once(1, 1)}); !errors.Is(err, ledger.ErrFailed) {
			t.Errorf("charge: %v", err)
		}
	})
	<-s.written
	if _, err := l.Find(1, 1, false, r.ID); err != nil {
		t.Fatalf("the test proves nothing: %v", err)
	}
	group.Go(func() {
		if got, found, err := l.Recall(ctx, 1, 1, false, *once(1, 1), start); found || !errors.Is(err, ledger.ErrFailed) {
			t.Errorf("Recall = %v, %v, %v; want ErrFailed", got.ID, found, err)
		}
	})
	s.release <- errors.New("disk on fire")
	group.Wait()
}

// TestForgetOnce removes more marks than one command may.
func TestForgetOnce(t *testing.T) {
	l, s := newLedger(t)
	const many = 2_500
	var group sync.WaitGroup
	for w := range 5 {
		group.Go(func() {
			for i := w; i < many; i += 5 {
				o := &ledger.Once{Key: [32]byte{byte(i), byte(i >> 8)}}
				if _, _, err := chargeOnce(t, l, ledger.AccountID(1+i%10/9), 1, start, 0, o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	kept := once(255, 1)
	kept.Key[31] = 1
	if _, _, err := chargeOnce(t, l, 2, 1, start.Add(time.Second), 0, kept); err != nil {
		t.Fatal(err)
	}
	f := func(now time.Time, want int) {
		t.Helper()
		before := seqs(t, s)
		n, err := l.ForgetOnce(ctx, now)
		if err != nil || n != want {
			t.Errorf("%v: ForgetOnce = %d, %v; want %d", now, n, err, want)
		}
		commands := uint64(0)
		for g, seq := range seqs(t, s) {
			commands += seq - before[g]
		}
		if least := uint64(want / 1000); commands < least {
			t.Errorf("%d marks were removed in %d writes", n, commands)
		}
	}
	f(start.Add(ledger.OnceLife-1), 0)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if n, err := l.ForgetOnce(gone, start.Add(ledger.OnceLife)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d, %v", n, err)
	}
	f(start.Add(ledger.OnceLife), many)
	f(start.Add(ledger.OnceLife), 0)
	if _, found, err := l.Recall(ctx, 2, 1, false, *kept, start.Add(ledger.OnceLife)); !found || err != nil {
		t.Errorf("a younger mark was forgotten: %v", err)
	}
}

// TestCheckFindsLooseMarks: a mark that names no record is a violation.
func TestCheckFindsLooseMarks(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	dropping := &droppingStore{Store: s}
	l, err := ledger.Open(dropping, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, _, err := chargeOnce(t, l, 1, 1, start, 0, once(1, 1)); err != nil {
		t.Fatal(err)
	}
	check(t, s)
	dropping.space.Store(0x12) // records
	if _, _, err := chargeOnce(t, l, 1, 1, start, 0, once(2, 1)); err != nil {
		t.Fatal(err)
	}
	rep, err := ledger.Check(ctx, s)
	if !errors.Is(err, ledger.ErrIntegrity) || len(rep.Violations) != 1 || rep.Violations[0].Account != 1 {
		t.Errorf("Check = %+v, %v", rep, err)
	}
	if _, found, err := l.Recall(ctx, 1, 1, false, *once(2, 1), start); found || err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("Recall = %v, %v; want an error of its own", found, err)
	}
}

// droppingStore loses what is written in one space.
type droppingStore struct {
	store.Store
	space atomic.Int32
}

func (d *droppingStore) Commit(batches ...store.Batch) error {
	const at = 1 + 8 // behind shard and account
	for i := range batches {
		var kept []store.Put
		for _, p := range batches[i].Puts {
			if int32(p.Key[at]) != d.space.Load() {
				kept = append(kept, p)
			}
		}
		batches[i].Puts = kept
	}
	return d.Store.Commit(batches...)
}
