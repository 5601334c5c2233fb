package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"cotejo/store"
	"cotejo/store/storetest"
)

func openPebble(t *testing.T, dir string, o store.PebbleOptions) *store.Pebble {
	t.Helper()
	p, err := store.OpenPebble(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPebbleConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	storetest.Run(t, func(t *testing.T) store.Store {
		return openPebble(t, "datos", store.PebbleOptions{FS: vfs.NewMem()})
	})
}

func TestPebbleOnDiskConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	storetest.Run(t, func(t *testing.T) store.Store {
		return openPebble(t, filepath.Join(t.TempDir(), "datos"), store.PebbleOptions{})
	})
}

func TestReopenKeepsEpochSeqAndValues(t *testing.T) {
	fs := vfs.NewMem()
	p := openPebble(t, "datos", store.PebbleOptions{FS: fs})
	epoch, _, err := p.Acquire(4)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Commit(store.Batch{Group: 4, Epoch: epoch, Seq: 1, Puts: []store.Put{{Key: []byte("k"), Value: []byte("v")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openPebble(t, "datos", store.PebbleOptions{FS: fs})
	defer p.Close()
	again, seq, err := p.Acquire(4)
	if err != nil || again != epoch+1 || seq != 1 {
		t.Errorf("Acquire after reopening = %d, %d, %v; want %d, 1", again, seq, err, epoch+1)
	}
	if v, err := p.Reader(4).Get([]byte("k")); err != nil || string(v) != "v" {
		t.Errorf("Get after reopening = %q, %v", v, err)
	}
}

func TestSecondOpenIsInUse(t *testing.T) {
	f := func(dir string, o store.PebbleOptions) {
		t.Helper()
		p := openPebble(t, dir, o)
		defer p.Close()
		if _, err := store.OpenPebble(dir, o); !errors.Is(err, store.ErrInUse) {
			t.Errorf("second open: %v; want ErrInUse", err)
		}
	}
	f("datos", store.PebbleOptions{FS: vfs.NewMem()})
	f(t.TempDir(), store.PebbleOptions{})
}

// TestFailedSyncIsFatal fails the n-th sync for every n of a short life: the
// write must not be reported as done, and nothing may be read afterwards, since
// the value may be readable now and gone after a restart.
func TestFailedSyncIsFatal(t *testing.T) {
	for n := range 12 {
		var armed atomic.Bool
		var syncs atomic.Int32
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
				if armed.Load() && strings.HasSuffix(op.Path, ".log") && int(syncs.Add(1)) == n+1 {
					return errorfs.ErrInjected
				}
			}
			return nil
		}))
		var fatal atomic.Int32
		p := openPebble(t, "datos", store.PebbleOptions{FS: fs, Fatal: func(error) { fatal.Add(1) }})
		epoch, seq, err := p.Acquire(0)
		if err != nil {
			t.Fatal(err)
		}
		armed.Store(true)
		for i := range 50 {
			seq++
			err = p.Commit(store.Batch{Group: 0, Epoch: epoch, Seq: seq,
				Puts: []store.Put{{Key: fmt.Append(nil, i), Value: []byte("v")}}})
			if err != nil {
				break
			}
		}
		if err == nil || fatal.Load() == 0 {
			t.Fatalf("sync %d failed: Commit = %v, Fatal called %d times", n, err, fatal.Load())
		}
		if _, err := p.Reader(0).Get(fmt.Append(nil, 0)); err == nil {
			t.Errorf("sync %d failed: the store still answers", n)
		}
		_ = p.Close()
	}
}

// TestPowerLossOpens crashes a store in chains, with folder entries lost at
// random.
func TestPowerLossOpens(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 26))
	const chains, crashes = 3, 60
	for chain := range chains {
		mem := vfs.NewCrashableMem()
		durable := uint64(0)
		for crash := range crashes {
			var countdown atomic.Int64
			countdown.Store(int64(1 + rng.IntN(120)))
			percent := []int{0, 10, 50, 100}[rng.IntN(4)]
			seed := rng.Uint64()
			var clone atomic.Pointer[vfs.MemFS]
			var crashing atomic.Bool // before the clone is taken: what commits meanwhile may miss it
			current := mem
			fs := errorfs.Wrap(current, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && countdown.Add(-1) == 0 {
					crashing.Store(true)
					clone.Store(current.CrashClone(vfs.CrashCloneCfg{
						UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 1))}))
				}
				return nil
			}))
			p, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs, MemTableBytes: 16 << 10})
			if err != nil {
				t.Fatalf("chain %d crash %d: the store does not open: %v", chain, crash, err)
			}
			epoch, seq, err := p.Acquire(0)
			if err != nil {
				t.Fatal(err)
			}
			if seq < durable {
				t.Fatalf("chain %d crash %d: seq %d after %d was durable", chain, crash, seq, durable)
			}
			durable = seq
			value := make([]byte, 900)
			for clone.Load() == nil {
				err := p.Commit(store.Batch{Group: 0, Epoch: epoch, Seq: seq + 1,
					Puts: []store.Put{{Key: fmt.Appendf(nil, "%09d", seq+1), Value: value}}})
				if err != nil {
					t.Fatal(err)
				}
				seq++
				if !crashing.Load() {
					durable = seq
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			mem = clone.Load()
		}
	}
	t.Logf("%d crashes", chains*crashes)
}

// TestFolderIsSyncedBeforeMarker holds the order that dirFS promises: when a
// marker appears, every file that it may name is already in the folder for good.
func TestFolderIsSyncedBeforeMarker(t *testing.T) {
	var mu sync.Mutex
	unsynced, markers := 0, 0
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		switch name := filepath.Base(op.Path); {
		case op.Kind == errorfs.OpFileSync && name == "datos":
			unsynced = 0
		case op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "marker."):
			markers++
			if unsynced > 0 {
				t.Errorf("%s created while %d folder entries were not synced", name, unsynced)
			}
		case op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "MANIFEST-"):
			unsynced++
		}
		return nil
	}))
	for range 3 {
		if err := openPebble(t, "datos", store.PebbleOptions{FS: fs}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if markers < 3 {
		t.Errorf("saw %d markers: the test looks at nothing", markers)
	}
}
