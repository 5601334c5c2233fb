//go:build mutants

package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/store"
)

// Each mutant is a mistake that a store, an engine or a ledger could make. The
// crash test has to find it, by what the client saw alone or by the anchor alone:
// a test that passes here proves that TestCrash can fail.

// mutantCrashes is within how many crashes a mutant must be found.
const mutantCrashes = 5000

// found crashes disks until one shows a fault that says what, and fails if none
// does.
func found(t *testing.T, what string, mutate func(*disk)) {
	t.Helper()
	crashes := 0
	for run := uint64(0); crashes < mutantCrashes; run++ {
		d := newDisk(9, run)
		mutate(d)
		d.live(crashesEach)
		crashes += d.crashes
		for _, f := range d.faults {
			if strings.Contains(f, what) {
				t.Logf("found after %d crashes: %s", crashes, f)
				return
			}
		}
	}
	t.Errorf("%d crashes and nobody noticed", crashes)
}

const (
	lost      = " lost, "
	byAnchor  = "le faltan"
	unwhole   = "clave ausente"
	duplicate = "0 acknowledged charges lost, "
)

func TestMutantAnswersBeforeCommit(t *testing.T) {
	early := func(s store.Store) store.Store { return &early{Store: s} }
	t.Run("seen by the client", func(t *testing.T) {
		found(t, lost, func(d *disk) { d.wrapStore, d.unguarded = early, true })
	})
	t.Run("seen by the anchor", func(t *testing.T) {
		found(t, byAnchor, func(d *disk) { d.wrapStore, d.onDisk = early, false })
	})
}

// early reports a batch as durable and writes it with the next one.
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
		e.later = append(e.later, cloneBatch(b))
	}
	return nil
}

func TestMutantRecordInASecondBatch(t *testing.T) {
	f := func(name, fault string, space byte) {
		t.Run(name, func(t *testing.T) {
			found(t, fault, func(d *disk) {
				d.wrapStore, d.unguarded = func(s store.Store) store.Store { return &twoBatches{s, space} }, true
			})
		})
	}
	f("alone", unwhole, spaceRecord)
	f("in a block", "falta el bloque", spaceBlock)
}

const (
	spaceAt     = 1 + 8 // of a key within its group
	spaceRecord = 0x12
	spaceOnce   = 0x14
	spaceBlock  = 0x1a
)

// twoBatches writes the records of each batch, alone or in blocks, in a second one.
// Its own sequence numbers are two for one of the ledger's.
type twoBatches struct {
	store.Store
	space byte
}

func (s *twoBatches) Acquire(g store.Group) (epoch, seq uint64, err error) {
	epoch, seq, err = s.Store.Acquire(g)
	if err == nil && seq%2 == 1 { // the second half never came
		seq++
		err = s.Store.Commit(store.Batch{Group: g, Epoch: epoch, Seq: seq})
	}
	return epoch, seq / 2, err
}

func (s *twoBatches) View(g store.Group) (store.View, error) {
	v, err := s.Store.View(g)
	return halved{v}, err
}

type halved struct{ store.View }

func (v halved) Seq() uint64 { return (v.View.Seq() + 1) / 2 }

func (s *twoBatches) Commit(batches ...store.Batch) error {
	isRecord := func(p store.Put) bool { return p.Key[spaceAt] == s.space }
	first, second := slices.Clone(batches), slices.Clone(batches)
	for i, b := range batches {
		first[i].Seq, second[i].Seq = 2*b.Seq-1, 2*b.Seq
		first[i].Puts = slices.DeleteFunc(slices.Clone(b.Puts), isRecord)
		second[i].Puts = slices.DeleteFunc(slices.Clone(b.Puts), func(p store.Put) bool { return !isRecord(p) })
		second[i].Deletes = nil
	}
	if err := s.Store.Commit(first...); err != nil {
		return err
	}
	return s.Store.Commit(second...)
}

func TestMutantForgetsSomeKeys(t *testing.T) {
	found(t, duplicate, func(d *disk) {
		d.wrapStore = func(s store.Store) store.Store { return forgetful{s} }
	})
}

// forgetful leaves out one mark of a request in eight.
type forgetful struct{ store.Store }

func (f forgetful) Commit(batches ...store.Batch) error {
	batches = slices.Clone(batches)
	for i := range batches {
		batches[i].Puts = slices.DeleteFunc(slices.Clone(batches[i].Puts), func(p store.Put) bool {
			return p.Key[spaceAt] == spaceOnce && p.Key[len(p.Key)-1]%8 == 0
		})
	}
	return f.Store.Commit(batches...)
}

func TestMutantNoSync(t *testing.T) {
	wrap := func(fs vfs.FS) vfs.FS { return unsynced{fs} }
	t.Run("seen by the client", func(t *testing.T) {
		found(t, lost, func(d *disk) { d.wrapFS, d.unguarded = wrap, true })
	})
	t.Run("seen by the anchor", func(t *testing.T) {
		found(t, byAnchor, func(d *disk) { d.wrapFS, d.onDisk = wrap, false })
	})
}

// unsynced is a disk that reports the log as synced and does nothing.
type unsynced struct{ vfs.FS }

func (u unsynced) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return u.log(name)(u.FS.Create(name, c))
}

func (u unsynced) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return u.log(to)(u.FS.ReuseForWrite(from, to, c))
}

func (u unsynced) log(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err == nil && strings.HasSuffix(name, ".log") {
			f = idleFile{f}
		}
		return f, err
	}
}

type idleFile struct{ vfs.File }

func (idleFile) Sync() error                        { return nil }
func (idleFile) SyncData() error                    { return nil }
func (idleFile) SyncTo(int64) (fully bool, _ error) { return true, nil }

func TestMutantAnchorWithoutSync(t *testing.T) {
	found(t, "dañada", func(d *disk) {
		d.onDisk = true
		d.wrapFS = func(fs vfs.FS) vfs.FS { return lazyAnchor{fs} }
	})
}

// lazyAnchor is a disk that does not sync the anchor, and all else.
type lazyAnchor struct{ vfs.FS }

func (l lazyAnchor) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".json.nuevo") {
		f = idleFile{f}
	}
	return f, err
}

// TestMutantBlindRetry: who takes a lost answer for a refusal charges twice.
func TestMutantBlindRetry(t *testing.T) {
	got, fault := cutConnections(t, 100, func(s store.Store) store.Store { return blind{s} })
	if !strings.Contains(fault, " double") || strings.Contains(fault, " 0 double") {
		t.Errorf("%d cuts and nobody noticed: %q", got.cuts, fault)
	}
	t.Logf("found after %d cuts: %s", got.cuts, fault)
}

// blind says of a lost answer that nothing was written.
type blind struct{ store.Store }

func (b blind) Commit(batches ...store.Batch) error {
	err := b.Store.Commit(batches...)
	if errors.Is(err, store.ErrUnknown) {
		err = store.ErrUnavailable
	}
	return err
}
