package ledger_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"cotejo/ledger"
	"cotejo/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(aloneEnv) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// TestRace: many at once can spend what is there, and not a centavo more.
func TestRace(t *testing.T) { onEachEngine(t, race) }

func race(t *testing.T, l *ledger.Ledger, s store.Store) {
	credit(t, l, 1, start, 10*1400+1399)
	var paid, refused atomic.Int32
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			_, _, err := charge(t, l, 1, 1, start, 1400)
			var funds *ledger.FundsError
			switch {
			case err == nil:
				paid.Add(1)
			case errors.As(err, &funds):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if paid.Load() != 10 || refused.Load() != 54 {
		t.Errorf("%d paid and %d refused; want 10 and 54", paid.Load(), refused.Load())
	}
	rep := check(t, s)
	if want := (ledger.Report{Accounts: 1, Movements: 11, Records: 10, Balance: 1399}); rep.Accounts != want.Accounts ||
		rep.Movements != want.Movements || rep.Records != want.Records || rep.Balance != want.Balance {
		t.Errorf("Check reports %+v, want %+v", rep, want)
	}
}

// TestSameRecordAtOnce: however many try, one record and one movement.
func TestSameRecordAtOnce(t *testing.T) {
	l, s := newLedger(t)
	credit(t, l, 1, start, 100_000)
	r := record(nextID(t, l, start), 1, "X")
	var paid, duplicate atomic.Int32
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			_, err := l.Do(ctx, 1, ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 100})
			switch {
			case err == nil:
				paid.Add(1)
			case errors.Is(err, ledger.ErrDuplicate):
				duplicate.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if rep := check(t, s); paid.Load() != 1 || duplicate.Load() != 63 || rep.Movements != 2 || rep.Balance != 99_900 {
		t.Errorf("%d paid, %d duplicates, %+v", paid.Load(), duplicate.Load(), rep)
	}
}

func TestIsolation(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 10_000)
	r, _, err := charge(t, l, 1, 11, start, 1400)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Find(1, 11, false, r.ID); err != nil {
		t.Errorf("its own organization: %v", err)
	}
	f := func(what string, account ledger.AccountID, org ledger.OrgID, sandbox bool) {
		t.Helper()
		if got, err := l.Find(account, org, sandbox, r.ID); err != store.ErrNotFound {
			t.Errorf("%s: Find = %+v, %v; want exactly ErrNotFound", what, got, err)
		}
	}
	f("another account", 2, 11, false)
	f("a sibling organization", 1, 12, false)
	f("a test key", 1, 11, true)
	f("the global group", ledger.Global, 11, false)

	// Two accounts of one shard are neighbours in the store.
	var other ledger.AccountID
	for a := ledger.AccountID(2); ; a++ {
		if ledger.Shard(a) == ledger.Shard(1) {
			other = a
			break
		}
	}
	if _, err := l.Do(ctx, 1, put{"\xff\xff", "mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Do(ctx, other, put{"", "theirs"}); err != nil {
		t.Fatal(err)
	}
	for account, want := range map[ledger.AccountID]string{1: "\xff\xff=mine ", other: "=theirs "} {
		if got, err := l.Do(ctx, account, list{}); err != nil || got != want {
			t.Errorf("account %d sees %q, %v; want %q", account, got, err, want)
		}
	}
	if _, err := l.Do(ctx, ledger.Global, ledger.Credit{Now: start, Centavos: 1}); err == nil {
		t.Error("the global group took money")
	}
}

// testSpace is one that no package of the tree uses.
const testSpace ledger.Space = 0xf0

type put struct{ key, value string }

func (c put) Apply(tx *ledger.Tx) (ledger.Result, error) {
	tx.Put(testSpace, []byte(c.key), []byte(c.value))
	return nil, nil
}

type list struct{}

func (list) Apply(tx *ledger.Tx) (ledger.Result, error) { return listing(tx, "") }

func listing(tx *ledger.Tx, prefix string) (string, error) {
	out := ""
	err := tx.Scan(testSpace, []byte(prefix), func(k, v []byte) error {
		out += string(k) + "=" + string(v) + " "
		return nil
	})
	return out, err
}

// script is a command made of a function.
type script func(tx *ledger.Tx) (ledger.Result, error)

func (s script) Apply(tx *ledger.Tx) (ledger.Result, error) { return s(tx) }

func TestTxSeesItsOwnWrites(t *testing.T) {
	l, _ := newLedger(t)
	for _, k := range []string{"b", "d", "e", "x"} {
		if _, err := l.Do(ctx, 1, put{k, "old"}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Do(ctx, 1, script(func(tx *ledger.Tx) (ledger.Result, error) {
		tx.Put(testSpace, []byte("a"), []byte("new"))
		tx.Put(testSpace, []byte("d"), []byte("new"))
		tx.Delete(testSpace, []byte("b"))
		tx.Delete(testSpace, []byte("c"))
		tx.Put(testSpace, []byte("f"), []byte("new"))
		tx.Delete(testSpace, []byte("f"))
		tx.Put(testSpace, []byte("z"), []byte("new"))
		if _, err := tx.Get(testSpace, []byte("b")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a deleted key: %v", err)
		}
		return listing(tx, "")
	}))
	if want := "a=new d=new e=old x=old z=new "; err != nil || got != want {
		t.Errorf("inside the command: %q, %v; want %q", got, err, want)
	}
	if got, err := l.Do(ctx, 1, list{}); err != nil || got != "a=new d=new e=old x=old z=new " {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

func TestRefusedCommandLeavesNothing(t *testing.T) {
	l, s := newLedger(t)
	credit(t, l, 1, start, 5000)
	if _, err := l.Do(ctx, 1, put{"k", "old"}); err != nil {
		t.Fatal(err)
	}
	before := seqs(t, s)
	refusal := errors.New("no")
	r := record(nextID(t, l, start), 1, "X")
	after := seqs(t, s)
	after[store.Global] = before[store.Global] // the lease
	if after != before {
		t.Error("taking an id wrote outside the global group")
	}
	_, err := l.Do(ctx, 1, script(func(tx *ledger.Tx) (ledger.Result, error) {
		tx.Put(testSpace, []byte("k"), []byte("1"))
		tx.Put(testSpace, []byte("k"), []byte("2"))
		tx.Delete(testSpace, []byte("k"))
		tx.Put(testSpace, []byte("new"), []byte("3"))
		if _, err := (ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 5000}).Apply(tx); err != nil {
			return nil, err
		}
		return "lost", refusal
	}))
	if err != refusal {
		t.Fatalf("Do = %v; want the command's own error", err)
	}
	if got := seqs(t, s); got[store.Global] == 0 || got != withGlobal(before, got[store.Global]) {
		t.Errorf("a refused command was written: %v after %v", got, before)
	}
	if got, err := l.Do(ctx, 1, list{}); err != nil || got != "k=old " {
		t.Errorf("after the refusal: %q, %v", got, err)
	}
	// Inside a larger command, the same charge goes through.
	res, err := l.Do(ctx, 1, script(func(tx *ledger.Tx) (ledger.Result, error) {
		tx.Put(testSpace, []byte("k"), []byte("paid"))
		return ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 5000}.Apply(tx)
	}))
	if want := (ledger.Charged{Movement: 2, Centavos: 5000}); err != nil || res != want {
		t.Errorf("charge within a command = %+v, %v; want %+v", res, err, want)
	}
}

func seqs(t *testing.T, s store.Store) (out [store.Groups + 1]uint64) {
	t.Helper()
	for g := range out {
		v, err := s.View(store.Group(g))
		if err != nil {
			t.Fatal(err)
		}
		out[g] = v.Seq()
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func withGlobal(seqs [store.Groups + 1]uint64, n uint64) [store.Groups + 1]uint64 {
	seqs[store.Global] = n
	return seqs
}

func TestLedgerSpacesAreClosed(t *testing.T) {
	l, _ := newLedger(t)
	for _, space := range []ledger.Space{0x10, 0x13, 0x3f} {
		_, err := l.Do(ctx, 1, script(func(tx *ledger.Tx) (_ ledger.Result, err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("refused")
				}
			}()
			tx.Put(space, nil, []byte("forged"))
			return nil, nil
		}))
		if err == nil {
			t.Errorf("another package wrote to space %#x", byte(space))
		}
	}
}

func TestChargeRefusesBadRecords(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 100_000)
	f := func(what string, change func(*ledger.Charge)) {
		t.Helper()
		r := record(nextID(t, l, start), 1, "X")
		c := ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 100}
		change(&c)
		if res, err := l.Do(ctx, 1, c); err == nil {
			t.Errorf("%s was charged: %+v", what, res)
		}
	}
	f("a negative price", func(c *ledger.Charge) { c.Price = -1 })
	f("a huge price", func(c *ledger.Charge) { c.Price = ledger.MaxCentavos + 1 })
	f("a sandbox record with a price", func(c *ledger.Charge) { c.Record.Sandbox = true })
	f("no moment", func(c *ledger.Charge) { c.Now = time.Time{} })
	f("an acta of another registro", func(c *ledger.Charge) { c.Sum[0]++ })
	f("an acta of another id", func(c *ledger.Charge) { c.Record.Acta = record(nextID(t, l, start), 1, "X").Acta })
	f("an invented id", func(c *ledger.Charge) { c.Record.ID.Code++ })
	f("no operation", func(c *ledger.Charge) { c.Record.Operation = "" })
	f("an empty registro", func(c *ledger.Charge) { c.Record.Registro = nil })
}

// stuckStore blocks every Commit until released.
type stuckStore struct {
	store.Store
	armed   atomic.Bool
	arrived chan struct{}
	release chan error
}

func (s *stuckStore) Commit(batches ...store.Batch) error {
	if !s.armed.Load() {
		return s.Store.Commit(batches...)
	}
	s.arrived <- struct{}{}
	if err := <-s.release; err != nil {
		return err
	}
	return s.Store.Commit(batches...)
}

func openStuck(t *testing.T, o ledger.Options) (*ledger.Ledger, *stuckStore) {
	t.Helper()
	s := &stuckStore{Store: openStore(t, vfs.NewMem()), arrived: make(chan struct{}, 1), release: make(chan error)}
	l, err := ledger.Open(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	credit(t, l, 1, start, 100_000)
	s.armed.Store(true)
	return l, s
}

func TestBusyWhenTheQueueIsFull(t *testing.T) {
	l, s := openStuck(t, ledger.Options{})
	var group sync.WaitGroup
	var busy, done atomic.Int64
	full := make(chan struct{})
	run := func() {
		group.Go(func() {
			_, err := l.Do(ctx, 1, put{"k", "v"})
			switch {
			case err == nil:
				done.Add(1)
			case errors.Is(err, ledger.ErrBusy):
				if busy.Add(1) == 1 {
					close(full)
				}
			default:
				t.Error(err)
			}
		})
	}
	run()
	<-s.arrived // the sequencer is in Commit: whatever comes now waits
	sent := 1
	for ; busy.Load() == 0 && sent < 3*4096; sent++ {
		run()
	}
	<-full
	s.armed.Store(false)
	s.release <- nil
	group.Wait()
	if done.Load()+busy.Load() != int64(sent) || done.Load() < 4096 {
		t.Errorf("%d sent: %d done, %d busy; want all answered and a queue of 4096 done", sent, done.Load(), busy.Load())
	}
}

// TestLateCommandIsDropped: what waits behind a slow write and is not waited for
// any more changes nothing; what the write holds already is answered.
func TestLateCommandIsDropped(t *testing.T) {
	l, s := openStuck(t, ledger.Options{})
	late, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := l.Do(late, 1, put{"first", "v"}); err != nil {
			t.Errorf("in the write: %v", err)
		}
	})
	<-s.arrived
	for i := range 20 {
		group.Go(func() {
			if res, err := l.Do(late, 1, put{"late", "v"}); !errors.Is(err, context.Canceled) || res != nil {
				t.Errorf("%d behind it: %v, %v", i, res, err)
			}
		})
	}
	for l.Waiting() < 20 {
		runtime.Gosched()
	}
	cancel()
	s.armed.Store(false)
	s.release <- nil
	group.Wait()
	if got, err := l.Do(ctx, 1, list{}); err != nil || got != "first=v " {
		t.Errorf("written: %v, %v", got, err)
	}
}

// TestFailedCommit: Fatal is told, and neither those who wait nor those who come
// later hear of success.
func TestFailedCommit(t *testing.T) {
	broken := errors.New("disk on fire")
	var fatal atomic.Pointer[error]
	l, s := openStuck(t, ledger.Options{Fatal: func(err error) { fatal.Store(&err) }})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if res, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, ledger.ErrFailed) || res != nil {
				t.Errorf("Do = %v, %v; want ErrFailed", res, err)
			}
		})
	}
	<-s.arrived
	s.release <- broken
	group.Wait()
	if err := fatal.Load(); err == nil || !errors.Is(*err, broken) {
		t.Errorf("Fatal got %v; want the store's error", fatal.Load())
	}
	if _, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, ledger.ErrFailed) {
		t.Errorf("a later command: %v; want ErrFailed", err)
	}
}

// TestFenced: who lost the store is told so, writes nothing and does not end the
// process.
func TestFenced(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	old, err := ledger.Open(s, ledger.Options{Fatal: func(err error) { t.Errorf("Fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	credit(t, old, 1, start, 1000)
	owner, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	for range 2 {
		if _, err := old.Do(ctx, 1, ledger.Credit{Now: start, Org: 1, Centavos: 500}); !errors.Is(err, store.ErrFenced) {
			t.Errorf("the old owner: %v; want ErrFenced", err)
		}
	}
	if got := credit(t, owner, 1, start, 500); got.Balance != 1500 || got.Movement != 2 {
		t.Errorf("the new owner: %+v; want movement 2 and 1500", got)
	}
	check(t, s)
}

func TestClosedAndCancelled(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Do(gone, 1, put{"k", "v"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Do(ctx, 1, put{"k", "v"}); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestFundsErrorText(t *testing.T) {
	got := (&ledger.FundsError{Service: "COMPANY", Price: 1400, Balance: 305}).Error()
	if want := "saldo insuficiente para COMPANY: cuesta 14.00 MXN y quedan 3.05 MXN; abone saldo y repita la consulta"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestLookupSearchesEveryAccount(t *testing.T) {
	l, _ := newLedger(t)
	var want []ledger.Record
	for account := ledger.AccountID(1); account <= 5; account++ {
		for org := ledger.OrgID(1); org <= 3; org++ {
			r, _, err := charge(t, l, account, org, start, 0)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, r)
		}
	}
	for _, r := range want {
		got, err := l.Lookup(r.ID)
		if err != nil || got.ID != r.ID || got.Org != r.Org || string(got.Registro) != string(r.Registro) {
			t.Errorf("Lookup(%v) = %+v, %v", r.ID, got, err)
		}
	}
	if _, err := l.Lookup(nextID(t, l, start)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an id without a record: %v; want ErrNotFound", err)
	}
}
