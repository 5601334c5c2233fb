package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"cotejo/ledger"
	"cotejo/store"
)

// alone reports whether this is the process of its own that a test asked for by
// calling it; the first process runs that one and passes on what it says. Engines
// that died are never closed: what they leave running ends with their process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=4m",
		fmt.Sprintf("-test.short=%t", testing.Short()))
	child.Env = append(os.Environ(), aloneEnv+"="+t.Name())
	out, err := child.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "_test.go:") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-8<<10):])
	}
	return false
}

const aloneEnv = "COTEJO_TEST_ALONE"

// TestFailingDisk fails the n-th sync or write of a working ledger's disk, for
// every n (with -short, every tenth): a failure of the log ends the engine, and
// every command that was acknowledged before is there after the restart, whether
// or not the kernel still wrote what it could not sync.
func TestFailingDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	f := func(name string, failure error, stays bool, most int, match func(errorfs.Op) bool) {
		var total failed
		step := 1
		if testing.Short() {
			step = 10
		}
		for n := 0; n < most; n += step {
			d := &failingDisk{t: t, failure: failure, stays: stays, match: match, n: int64(n + 1)}
			d.run(rand.New(rand.NewPCG(uint64(n), 74)))
			if t.Failed() {
				t.Fatalf("%s %d failed", name, n+1)
			}
			total.add(d.failed)
		}
		t.Logf("%s: %d faults, %d ended the engine, %d acknowledged, 0 lost, %d not acknowledged of which %d survived",
			name, total.faults, total.died, total.acknowledged, total.ghosts, total.survived)
		if total.died == 0 || total.faults != most/step || total.ghosts == 0 {
			t.Errorf("%s: the test proves nothing", name)
		}
	}
	isSync := func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	}
	isWrite := func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }
	isLog := func(op errorfs.Op) bool { return path.Ext(op.Path) == ".log" }
	f("EIO at a sync", syscall.EIO, false, 200, isSync)
	f("EIO at a write", syscall.EIO, false, 200, isWrite)
	f("ENOSPC from a write of the log on", syscall.ENOSPC, true, 60, func(op errorfs.Op) bool { return isLog(op) && isWrite(op) })
}

type failed struct{ faults, died, acknowledged, ghosts, survived int }

func (a *failed) add(b failed) {
	a.faults += b.faults
	a.died += b.died
	a.acknowledged += b.acknowledged
	a.ghosts += b.ghosts
	a.survived += b.survived
}

// failingDisk is a disk whose n-th operation of a kind fails, or all from it on.
type failingDisk struct {
	t       *testing.T
	failure error
	stays   bool
	match   func(errorfs.Op) bool
	n       int64
	failed
}

func (d *failingDisk) run(rng *rand.Rand) {
	mem := vfs.NewCrashableMem()
	var armed atomic.Bool
	var seen atomic.Int64
	var where atomic.Pointer[string]
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !armed.Load() || !d.match(op) {
			return nil
		}
		if n := seen.Add(1); n == d.n || d.stays && n > d.n {
			where.CompareAndSwap(nil, &op.Path)
			return d.failure
		}
		return nil
	}))
	died := make(chan struct{})
	var dead atomic.Bool
	fatal := func(error) { // as the end of a process, it does not return
		if dead.CompareAndSwap(false, true) {
			close(died)
		}
		select {}
	}
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs, MemTableBytes: 16 << 10, Fatal: fatal})
	if err != nil {
		d.t.Fatal(err)
	}
	anchor := newMemoryAnchor()
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7), Fatal: fatal}.AnchoredOn(anchor, 1))
	if err != nil {
		d.t.Fatal(err)
	}
	for account := range ledger.AccountID(4) {
		credit(d.t, l, account+1, start, ledger.MaxCentavos)
	}
	armed.Store(true)

	// Two clients charge until the disk fails, and a little longer where the engine
	// lives on.
	var mu sync.Mutex
	answered, waiting := map[ledger.VerificationID]ledger.AccountID{}, map[ledger.VerificationID]ledger.AccountID{}
	var left atomic.Int64
	left.Store(3000)
	var clients sync.WaitGroup
	for c := range ledger.AccountID(2) {
		clients.Go(func() {
			for left.Add(-1) > 0 && !dead.Load() {
				if where.Load() != nil && left.Load() > 20 {
					left.Store(20)
				}
				id, err := l.NextID(ctx, "COM", start)
				if err != nil {
					break
				}
				r := record(id, 1, "XAXX010101000")
				mu.Lock()
				waiting[id] = c + 1
				mu.Unlock()
				_, err = l.Do(ctx, c+1, ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 700})
				mu.Lock()
				if err == nil {
					answered[id] = c + 1
					delete(waiting, id)
				}
				mu.Unlock()
				if err != nil && !dead.Load() {
					d.t.Errorf("a charge was refused: %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		clients.Wait()
		close(done)
	}()
	select {
	case <-died:
	case <-done:
	}
	mu.Lock()
	acknowledged, ghosts := maps.Clone(answered), maps.Clone(waiting)
	mu.Unlock()
	if where.Load() == nil {
		d.t.Errorf("operation %d never came", d.n)
		return
	}
	d.faults++
	if dead.Load() {
		d.died++
		for _, ids := range []map[ledger.VerificationID]ledger.AccountID{acknowledged, ghosts} {
			for id, account := range ids {
				if _, err := l.Find(account, 1, false, id); err == nil {
					d.t.Errorf("the dead engine still answers with %v", id)
				}
				break
			}
		}
		if err := s.Commit(); err == nil {
			d.t.Error("the dead engine still writes")
		}
	} else if path.Ext(*where.Load()) == ".log" {
		d.t.Errorf("%v of %s did not end the engine", d.failure, *where.Load())
	} else if len(ghosts) > 0 {
		d.t.Errorf("a living engine refused %d charges", len(ghosts))
	}
	d.acknowledged, d.ghosts = len(acknowledged), len(ghosts)
	text, _ := anchor.Read("") // perhaps not written yet
	percent := []int{0, 50, 100}[d.n%3]
	d.restart(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), text, acknowledged, ghosts)
	if dead.Load() {
		return
	}
	// What failed in the background may end the engine only now.
	closed := make(chan error, 1)
	go func() { closed <- errors.Join(l.Close(), s.Close()) }()
	select {
	case err := <-closed:
		if err != nil && !dead.Load() {
			d.t.Error(err)
		}
	case <-died:
		d.died++
	}
}

// restart opens what the dead process left.
func (d *failingDisk) restart(fs vfs.FS, anchor []byte, acknowledged, ghosts map[ledger.VerificationID]ledger.AccountID) {
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs, MemTableBytes: 16 << 10})
	if err != nil {
		d.t.Errorf("the store does not open: %v", err)
		return
	}
	l, err := ledger.Open(s, ledger.Options{}.AnchoredOn(&memoryAnchor{text: anchor}, 1))
	if err != nil {
		d.t.Errorf("the ledger does not open: %v", err)
		return
	}
	check(d.t, s)
	for id, account := range acknowledged {
		if _, err := l.Find(account, 1, false, id); err != nil {
			d.t.Errorf("%v was acknowledged and is lost: %v", id, err)
		}
	}
	for id, account := range ghosts {
		if _, err := l.Find(account, 1, false, id); err == nil {
			d.survived++
		}
	}
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		d.t.Error(err)
	}
}
