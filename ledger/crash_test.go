package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
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
// whatever the engine, the anchor and four clients do; what was not synced
// survives in part or not at all, folder entries too. Then the store is opened
// again, and so on: ten losses of power in a row on one disk.
//
// A charge counts as acknowledged when its answer came before the power failed.
// A quarter of the charges ask again for what was asked for before, under the same
// ledger.Once. After each reopening every acknowledged charge is there exactly
// once, what was asked for under one key is there at most once, whatever else is
// there is whole, and no id is given again. The anchor, which lies on the same disk or on one
// that loses nothing, never refuses the store.
const (
	crashesEach  = 10 // on one disk
	crashClients = 4
	crashWallets = 4
)

// TestCrash runs COTEJO_CRASHES losses of power (default 5000), independent disks
// side by side. COTEJO_CRASH_SEED repeats a run that failed.
func TestCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // small heaps, many of them: a quarter faster
	disks := (envInt(t, "COTEJO_CRASHES", 5000) + crashesEach - 1) / crashesEach
	seed := uint64(envInt(t, "COTEJO_CRASH_SEED", 1))
	var mu sync.Mutex
	var total tally
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for run := next.Add(1) - 1; int(run) < disks && !t.Failed(); run = next.Add(1) - 1 {
				d := newDisk(seed, uint64(run))
				d.live(crashesEach)
				for _, f := range d.faults {
					t.Errorf("seed %d run %d, after %d crashes: %s", seed, run, d.crashes, f)
				}
				mu.Lock()
				total.add(d.tally)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d crashes (%d while opening), %d acknowledged, %d of orders, %d replays, %d lost, %d double",
		total.crashes, total.opening, total.charges, total.filledRecords, total.replays, total.lost, total.double)
	if total.charges == 0 || total.opening == 0 || total.replays == 0 || total.filledRecords == 0 {
		t.Error("the test proves nothing")
	}
}

type tally struct{ crashes, opening, charges, replays, filledRecords, lost, double int }

func (a *tally) add(b tally) {
	a.crashes += b.crashes
	a.opening += b.opening
	a.charges += b.charges
	a.replays += b.replays
	a.filledRecords += b.filledRecords
	a.lost += b.lost
	a.double += b.double
}

// disk is one chain of crashes.
type disk struct {
	rng *rand.Rand
	mem *vfs.MemFS
	// Where the anchor lies: on the disk, where it can be lost with the rest, or in
	// kept, which holds what was written before the power failed.
	onDisk bool
	kept   memoryAnchor

	// What a mutant puts in between; nil: nothing.
	wrapStore func(store.Store) store.Store
	wrapFS    func(vfs.FS) vfs.FS
	unguarded bool // without an anchor

	mu           sync.Mutex
	acknowledged map[ledger.VerificationID]ledger.AccountID
	given        map[ledger.VerificationID]bool // ids, over all lives of the disk
	asked        []asked                        // of late: what may be asked for again
	orders       map[ledger.VerificationID]begun
	now          time.Time
	faults       []string
	tally
}

// asked is a charge that was asked for under a key.
type asked struct {
	account ledger.AccountID
	once    ledger.Once
	id      *ledger.VerificationID // of the record that was acknowledged, if any
}

func newDisk(seed, run uint64) *disk {
	d := &disk{
		rng: rand.New(rand.NewPCG(seed, run)), mem: vfs.NewCrashableMem(), onDisk: run%2 == 0, now: start,
		acknowledged: map[ledger.VerificationID]ledger.AccountID{}, given: map[ledger.VerificationID]bool{},
		orders: map[ledger.VerificationID]begun{},
	}
	err := d.mem.MkdirAll("ancla", 0o700)
	if err == nil {
		err = vfsFiles{d.mem}.SyncDir("")
	}
	if err != nil {
		d.fault("%v", err)
	}
	return d
}

func (d *disk) fault(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, fmt.Sprintf(format, args...))
}

// live crashes so many times, unless it finds a fault before, and verifies what
// the last crash left.
func (d *disk) live(crashes int) {
	for range crashes {
		d.crash()
		if len(d.faults) > 0 {
			return
		}
	}
	var never atomic.Bool
	s, l := d.open(d.mem, &never)
	if l != nil {
		d.verify(s, l)
		d.close(s, l)
	}
}

// open opens the store and the ledger; nil after a fault.
func (d *disk) open(fs vfs.FS, crashing *atomic.Bool) (store.Store, *ledger.Ledger) {
	if d.wrapFS != nil {
		fs = d.wrapFS(fs)
	}
	fatal := func(err error) { d.fault("fatal: %v", err) }
	engine, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs, MemTableBytes: 16 << 10, Fatal: fatal})
	if err != nil {
		d.fault("the store does not open: %v", err)
		return nil, nil
	}
	s := store.Store(engine)
	if d.wrapStore != nil {
		s = d.wrapStore(s)
	}
	o := ledger.Options{Random: seeded(5), Fatal: fatal}
	switch {
	case d.unguarded:
	case d.onDisk:
		o = o.AnchoredOn(vfsFiles{fs}, 1)
	default:
		d.kept.fresh = nil // of the life before
		o = o.AnchoredOn(keptAnchor{&d.kept, crashing}, 1)
	}
	l, err := ledger.Open(s, o)
	if err != nil {
		d.fault("the ledger does not open: %v", err)
		_ = s.Close()
		return nil, nil
	}
	return s, l
}

func (d *disk) close(s store.Store, l *ledger.Ledger) {
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		d.fault("closing: %v", err)
	}
}

func (d *disk) crash() {
	d.crashes++
	if d.rng.IntN(3) == 0 { // some lots expire on the way, and every key
		d.now = d.now.Add(60 * 24 * time.Hour)
		d.asked = nil
	}
	mem := d.mem
	inside := d.rng.IntN(5) == 0 // while opening
	writes := int64(1 + d.rng.IntN(220))
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
	s, l := d.open(fs, &crashing)
	if l == nil {
		return
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
	d.close(s, l)
}

func (d *disk) client(stop context.Context, l *ledger.Ledger, rng *rand.Rand, crashing *atomic.Bool) {
	for stop.Err() == nil {
		account := ledger.AccountID(1 + rng.IntN(crashWallets))
		if rng.IntN(10) == 0 {
			if _, err := l.Do(stop, account, d.funding(rng)); err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, new(*ledger.FundsError)) && !errors.Is(err, ledger.ErrTooManyHolds) {
				d.fault("credit: %v", err)
				cancelled(stop)
				return
			}
			continue
		}
		if rng.IntN(12) == 0 {
			if err := d.work(stop, l, rng, crashing); err != nil && !expected(err) {
				d.fault("order: %v", err)
				cancelled(stop)
				return
			}
			continue
		}
		id, err := l.NextID(stop, "COM", d.now)
		if errors.Is(err, context.Canceled) {
			return
		}
		if err != nil {
			d.fault("NextID: %v", err)
			cancelled(stop)
			return
		}
		c := ledger.Charge{Now: d.now, Price: int64(rng.IntN(3)) * 700}
		at := -1
		note := "XAXX010101000"
		if rng.IntN(2) == 0 { // half of them ask for something that was asked for before
			at, account, c.Once = d.ask(rng, account)
			note = "llave " + hex.EncodeToString(c.Once.Key[:])
		}
		c.Record = record(id, 1, note)
		c.Record.Edition[0] = byte(rng.IntN(3))
		c.Sum = sumOf(c.Record)
		res, err := l.Do(stop, account, c)
		answered := err == nil && !crashing.Load()
		var funds *ledger.FundsError
		if err != nil && !errors.As(err, &funds) && !errors.Is(err, context.Canceled) {
			d.fault("charge: %v", err)
			cancelled(stop)
			return
		}
		if answered {
			d.answered(id, account, at, res.(ledger.Charged))
		}
	}
}

// funding is a command that brings money or uses, or moves them aside.
func (d *disk) funding(rng *rand.Rand) ledger.Command {
	switch rng.IntN(6) {
	case 0:
		return ledger.CreditUses{Now: d.now, Org: 1, Service: "COMPANY", Count: 3, Reason: "usos"}
	case 1:
		return ledger.Hold{Now: d.now, Org: 1, Service: "COMPANY", Units: 2, Centavos: 700, Until: d.now.Add(time.Hour)}
	}
	return ledger.Credit{Now: d.now, Org: 1, Centavos: 10_000, Reason: "abono"}
}

// cancelled waits for the end of this life: the power still has to fail.
func cancelled(stop context.Context) { <-stop.Done() }

// ask gives a key: half the time one that was used before.
func (d *disk) ask(rng *rand.Rand, account ledger.AccountID) (at int, _ ledger.AccountID, _ *ledger.Once) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) > 0 && rng.IntN(2) == 0 {
		at = rng.IntN(len(d.asked))
	} else {
		at = len(d.asked)
		var once ledger.Once
		once.Key = sha256.Sum256(strconv.AppendUint(nil, rng.Uint64(), 16))
		once.Content = sha256.Sum256(once.Key[:])
		d.asked = append(d.asked, asked{account: account, once: once})
	}
	once := d.asked[at].once
	return at, d.asked[at].account, &once
}

// answered notes what the outside saw before the power failed.
func (d *disk) answered(id ledger.VerificationID, account ledger.AccountID, at int, got ledger.Charged) {
	d.mu.Lock()
	again := false
	if got.Earlier != nil {
		id = *got.Earlier
		d.replays++
	} else {
		again = d.given[id]
		d.given[id] = true
		d.charges++
	}
	d.acknowledged[id] = account
	var before *ledger.VerificationID
	if at >= 0 {
		before, d.asked[at].id = d.asked[at].id, &id
	}
	d.mu.Unlock()
	if again {
		d.fault("%v given twice", id)
	}
	if before != nil && *before != id {
		d.fault("the same request was answered with %v and with %v", *before, id)
	}
}

var noted = regexp.MustCompile(`llave [0-9a-f]{64}`)

// verify looks for every acknowledged charge.
func (d *disk) verify(s store.Store, l *ledger.Ledger) {
	if rep, err := ledger.Check(ctx, s); err != nil {
		d.fault("Check: %v\n%+v", err, rep.Violations)
	}
	d.verifyOrders(l)
	found := map[ledger.VerificationID]int{}
	under := map[string]int{}
	err := l.Records(func(a ledger.AccountID, r ledger.Record) error {
		found[r.ID]++
		if want, ok := d.acknowledged[r.ID]; ok && want != a {
			d.fault("%v is in account %d, not in %d", r.ID, a, want)
		}
		if key := noted.Find(r.Registro); key != nil {
			under[string(key)]++
		}
		return nil
	})
	if err != nil {
		d.fault("Records: %v", err)
	}
	lost, double := 0, 0
	for id := range d.acknowledged {
		switch n := found[id]; {
		case n == 0:
			lost++
		case n > 1:
			double++
		}
	}
	for _, n := range under {
		if n > 1 {
			double++
		}
	}
	if lost > 0 || double > 0 {
		d.lost, d.double = d.lost+lost, d.double+double
		d.fault("%d acknowledged charges lost, %d double", lost, double)
	}
}

// keptAnchor is an anchor on a disk of its own, which stops with the power.
type keptAnchor struct {
	*memoryAnchor
	crashing *atomic.Bool
}

func (k keptAnchor) Rename(from, to string) error {
	if k.crashing.Load() {
		return nil
	}
	return k.memoryAnchor.Rename(from, to)
}

// Read gives whoever goes on without power what it wrote without power.
func (k keptAnchor) Read(name string) ([]byte, error) {
	k.mu.Lock()
	fresh := k.fresh
	k.mu.Unlock()
	if k.crashing.Load() && fresh != nil {
		return slices.Clone(fresh), nil
	}
	return k.memoryAnchor.Read(name)
}

// vfsFiles is an anchor on the simulated disk.
type vfsFiles struct{ vfs.FS }

func (f vfsFiles) at(name string) string { return f.PathJoin("ancla", name) }

func (f vfsFiles) Read(name string) ([]byte, error) {
	file, err := f.Open(f.at(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

func (f vfsFiles) WriteSynced(name string, text []byte) error {
	file, err := f.Create(f.at(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (f vfsFiles) Rename(from, to string) error { return f.FS.Rename(f.at(from), f.at(to)) }

func (f vfsFiles) SyncDir(dir string) error {
	if dir == "." {
		dir = "ancla"
	}
	d, err := f.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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
