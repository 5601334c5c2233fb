package ledger_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"cotejo/ledger"
	"cotejo/store"
)

// The power fails before the k-th write to the disk, k random, in the middle of
// whatever the engine and four clients do; what was not synced survives in part
// or not at all, folder entries too. Then the store is opened again, and so on:
// ten losses of power in a row on one disk.
//
// A charge counts as acknowledged when its answer came before the power failed.
// After each reopening every acknowledged charge is there exactly once, whatever
// else is there is whole, and no id is given again.
const (
	crashesEach  = 10 // on one disk
	crashClients = 4
	crashWallets = 4
)

// TestCrash runs COTEJO_CRASHES losses of power (default 500). COTEJO_CRASH_SEED
// repeats a run that failed.
func TestCrash(t *testing.T) {
	crashes := envInt(t, "COTEJO_CRASHES", 500)
	seed := uint64(envInt(t, "COTEJO_CRASH_SEED", 1))
	var total tally
	for run := range uint64((crashes + crashesEach - 1) / crashesEach) {
		d := &disk{t: t, rng: rand.New(rand.NewPCG(seed, run)), mem: vfs.NewCrashableMem(),
			acknowledged: map[ledger.VerificationID]ledger.AccountID{}, given: map[ledger.VerificationID]bool{}, wrap: realStore}
		for range crashesEach {
			d.crash()
			if t.Failed() {
				t.Fatalf("seed %d run %d crash %d", seed, run, d.crashes)
			}
		}
		d.reopen()
		total.add(d.tally)
	}
	t.Logf("%d crashes (%d while opening), %d acknowledged, %d lost, %d double", total.crashes, total.opening, total.charges, total.lost, total.double)
	if total.charges == 0 || total.opening == 0 {
		t.Error("the test proves nothing")
	}
}

// TestCrashHasTeeth: the same test must find a store that answers before its
// write is durable.
func TestCrashHasTeeth(t *testing.T) {
	for run := range uint64(100) {
		d := &disk{t: t, rng: rand.New(rand.NewPCG(9, run)), mem: vfs.NewCrashableMem(),
			acknowledged: map[ledger.VerificationID]ledger.AccountID{}, given: map[ledger.VerificationID]bool{},
			mutant: true, wrap: func(s store.Store) store.Store { return &early{Store: s} }}
		for range crashesEach {
			d.crash()
			if d.lost > 0 {
				return
			}
		}
	}
	t.Error("answers before the commit were not noticed")
}

// early is the mutant: a batch is reported as durable and written later.
type early struct {
	store.Store
	mu    sync.Mutex
	later []store.Batch
}

func (e *early) Commit(batches ...store.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.Store.Commit(e.later...); err != nil {
		return err
	}
	e.later = e.later[:0]
	for _, b := range batches {
		puts := make([]store.Put, len(b.Puts))
		for i, p := range b.Puts {
			puts[i] = store.Put{Key: append([]byte(nil), p.Key...), Value: append([]byte(nil), p.Value...)}
		}
		b.Puts = puts
		e.later = append(e.later, b)
	}
	return nil
}

func realStore(s store.Store) store.Store { return s }

type tally struct{ crashes, opening, charges, lost, double int }

func (a *tally) add(b tally) {
	a.crashes += b.crashes
	a.opening += b.opening
	a.charges += b.charges
	a.lost += b.lost
	a.double += b.double
}

// disk is one chain of crashes.
type disk struct {
	t      *testing.T
	rng    *rand.Rand
	mem    *vfs.MemFS
	wrap   func(store.Store) store.Store
	mutant bool // losses are the aim

	mu           sync.Mutex
	acknowledged map[ledger.VerificationID]ledger.AccountID
	given        map[ledger.VerificationID]bool // ids, over all lives of the disk
	now          time.Time
	tally
}

func (d *disk) crash() {
	d.crashes++
	d.now = start.Add(time.Duration(d.crashes) * 60 * 24 * time.Hour) // some lots expire on the way
	mem := d.mem
	inside := d.rng.IntN(5) == 0 // while opening
	writes := int64(1 + d.rng.IntN(300))
	if inside {
		writes = int64(1 + d.rng.IntN(40))
	}
	cfg := vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 0, 10, 50, 100}[d.rng.IntN(5)],
		RNG:                 rand.New(rand.NewPCG(d.rng.Uint64(), 1)),
	}
	var crashing atomic.Bool
	var countdown atomic.Int64
	countdown.Store(writes)
	survived := make(chan *vfs.MemFS, 1)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && countdown.Add(-1) == 0 {
			crashing.Store(true)
			survived <- mem.CrashClone(cfg)
		}
		return nil
	}))
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs, MemTableBytes: 16 << 10})
	if err != nil {
		d.t.Fatalf("the store does not open: %v", err)
	}
	wrapped := d.wrap(s)
	l, err := ledger.Open(wrapped, ledger.Options{Random: seeded(5), Fatal: func(err error) { d.t.Error(err) }})
	if err != nil {
		d.t.Fatalf("the ledger does not open: %v", err)
	}
	if crashing.Load() {
		d.opening++
	}
	d.verify(s, l)
	stop, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for c := range crashClients {
		rng := rand.New(rand.NewPCG(d.rng.Uint64(), uint64(c)))
		clients.Go(func() { d.client(stop, l, rng, &crashing) })
	}
	d.mem = <-survived
	cancel()
	clients.Wait()
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		d.t.Fatal(err)
	}
}

// reopen verifies what the last crash left.
func (d *disk) reopen() {
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: d.mem})
	if err != nil {
		d.t.Fatalf("the store does not open: %v", err)
	}
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		d.t.Fatalf("the ledger does not open: %v", err)
	}
	d.verify(s, l)
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) client(stop context.Context, l *ledger.Ledger, rng *rand.Rand, crashing *atomic.Bool) {
	for stop.Err() == nil {
		account := ledger.AccountID(1 + rng.IntN(crashWallets))
		if rng.IntN(10) == 0 {
			if _, err := l.Do(stop, account, ledger.Credit{Now: d.now, Org: 1, Centavos: 10_000, Reason: "abono"}); err != nil && !errors.Is(err, context.Canceled) {
				d.t.Error(err)
			}
			continue
		}
		id, err := l.NextID(stop, "COM", d.now)
		if errors.Is(err, context.Canceled) {
			return
		}
		if err != nil {
			d.t.Error(err)
			return
		}
		r := record(id, 1, "XAXX010101000")
		r.Edition[0] = byte(rng.IntN(3))
		_, err = l.Do(stop, account, ledger.Charge{Now: d.now, Record: r, Sum: sumOf(r), Price: int64(rng.IntN(3)) * 700})
		answered := err == nil && !crashing.Load()
		var funds *ledger.FundsError
		if err != nil && !errors.As(err, &funds) && !errors.Is(err, context.Canceled) {
			d.t.Error(err)
			return
		}
		d.mu.Lock()
		// An id that the outside saw before the power failed is never given again.
		if d.given[id] && !d.mutant {
			d.t.Errorf("%v given twice", id)
		}
		if answered {
			d.given[id] = true
			d.acknowledged[id] = account
			d.charges++
		}
		d.mu.Unlock()
	}
}

// verify looks for every acknowledged charge.
func (d *disk) verify(s store.Store, l *ledger.Ledger) {
	if rep, err := ledger.Check(s); err != nil && !d.mutant {
		d.t.Errorf("Check: %v\n%+v", err, rep.Violations)
	}
	found := map[ledger.VerificationID]int{}
	err := l.Records(func(a ledger.AccountID, r ledger.Record) error {
		found[r.ID]++
		if want, ok := d.acknowledged[r.ID]; ok && want != a {
			d.t.Errorf("%v is in account %d, not in %d", r.ID, a, want)
		}
		return nil
	})
	if err != nil {
		d.t.Error(err)
	}
	for id := range d.acknowledged {
		switch n := found[id]; {
		case n == 0:
			d.lost++
		case n > 1:
			d.double++
		}
	}
	if (d.lost > 0 || d.double > 0) && !d.mutant {
		d.t.Errorf("%d acknowledged charges lost, %d double", d.lost, d.double)
	}
}

func envInt(t *testing.T, name string, fallback int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s=%s is no number", name, v)
	}
	return n
}
