package store_test

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"cotejo/store"
)

// fill commits n batches, each one key with its own number.
func fill(t *testing.T, p *store.Pebble, g store.Group, n int) {
	t.Helper()
	epoch, seq, err := p.Acquire(g)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		seq++
		err := p.Commit(store.Batch{Group: g, Epoch: epoch, Seq: seq,
			Puts: []store.Put{{Key: fmt.Appendf(nil, "%09d", seq), Value: []byte("v")}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// whole returns the seq of a group whose keys must be exactly 1 to seq.
func whole(t *testing.T, p *store.Pebble, g store.Group) uint64 {
	t.Helper()
	v, err := p.View(g)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	n := uint64(0)
	err = v.Scan(nil, nil, func(key, _ []byte) error {
		if n++; string(key) != fmt.Sprintf("%09d", n) {
			return fmt.Errorf("key %s in place %d", key, n)
		}
		return nil
	})
	if err != nil || n != v.Seq() {
		t.Fatalf("%d keys under seq %d: %v", n, v.Seq(), err)
	}
	return n
}

// TestCheckpoint copies a store while it is written: each copy is whole, holds
// what was committed before it was asked for, and does not change any more.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	p := openPebble(t, filepath.Join(dir, "datos"), store.PebbleOptions{MemTableBytes: 16 << 10})
	defer p.Close()
	epoch, _, err := p.Acquire(3)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for seq := uint64(1); ; seq++ {
			select {
			case <-stop:
				return
			default:
			}
			err := p.Commit(store.Batch{Group: 3, Epoch: epoch, Seq: seq,
				Puts: []store.Put{{Key: fmt.Appendf(nil, "%09d", seq), Value: make([]byte, 500)}}})
			if err != nil {
				t.Error(err)
				return
			}
			done.Store(seq)
		}
	}()
	var held [4]uint64
	for i := range held {
		for before := done.Load(); done.Load() < before+20 && !t.Failed(); {
			runtime.Gosched()
		}
		least := done.Load()
		to := filepath.Join(dir, fmt.Sprint("copia", i))
		if err := p.Checkpoint(to); err != nil {
			t.Fatal(err)
		}
		c := openPebble(t, to, store.PebbleOptions{ReadOnly: true})
		if held[i] = whole(t, c, 3); held[i] < least {
			t.Errorf("copy %d holds %d batches; %d were committed", i, held[i], least)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	for i, want := range held {
		c := openPebble(t, filepath.Join(dir, fmt.Sprint("copia", i)), store.PebbleOptions{})
		if got := whole(t, c, 3); got != want {
			t.Errorf("copy %d held %d batches and holds %d now", i, want, got)
		}
		fill(t, c, 3, 5) // a copy is a store like any other
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := whole(t, p, 3); got != done.Load() {
		t.Errorf("the store holds %d batches after %d", got, done.Load())
	}
	if err := p.Checkpoint(filepath.Join(dir, "copia0")); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("over a folder that is there: %v", err)
	}
	if err := p.Checkpoint(filepath.Join(dir, "falta", "copia")); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("into a folder that is not there: %v", err)
	}
}

// TestCheckpointOnAFailingDisk fails each operation on the disk of the copy in
// turn: that is no failure of the store, which goes on.
func TestCheckpointOnAFailingDisk(t *testing.T) {
	failures := 0
	for n := int32(1); ; n++ {
		var seen atomic.Int32
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.HasPrefix(op.Path, "copia") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && seen.Add(1) == n {
				return syscall.ENOSPC
			}
			return nil
		}))
		p := openPebble(t, "datos", store.PebbleOptions{FS: fs, MemTableBytes: 16 << 10, Fatal: func(err error) { t.Errorf("operation %d: %v", n, err) }})
		fill(t, p, 6, 40)
		err := p.Checkpoint("copia")
		if err != nil {
			failures++
			if _, left := fs.Stat("copia"); !errors.Is(err, syscall.ENOSPC) || !errors.Is(left, iofs.ErrNotExist) {
				t.Errorf("operation %d: Checkpoint = %v; the folder: %v", n, err, left)
			}
		}
		fill(t, p, 6, 1)
		if n := whole(t, p, 6); n != 41 {
			t.Errorf("%d batches; want 41", n)
		}
		if err := p.Close(); err != nil {
			t.Errorf("operation %d: Close = %v", n, err)
		}
		if seen.Load() < n || t.Failed() {
			break
		}
	}
	t.Logf("%d failures", failures)
	if failures < 10 {
		t.Error("the test proves nothing")
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	mem := vfs.NewCrashableMem()
	p := openPebble(t, "datos", store.PebbleOptions{FS: mem})
	fill(t, p, 2, 3)
	// As a crash would leave it: everything is in the log only.
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	before := files(t, crashed)
	p = openPebble(t, "datos", store.PebbleOptions{FS: crashed, ReadOnly: true})
	if n := whole(t, p, 2); n != 3 {
		t.Errorf("%d batches; want 3", n)
	}
	if _, _, err := p.Acquire(2); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Acquire: %v; want ErrReadOnly", err)
	}
	if err := p.Commit(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Commit: %v; want ErrReadOnly", err)
	}
	if err := p.Checkpoint("copia"); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Checkpoint: %v; want ErrReadOnly", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if after := files(t, crashed); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if _, err := store.OpenPebble("otra", store.PebbleOptions{FS: crashed, ReadOnly: true}); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// files lists the folder with the size of each file; LOCK is nobody's data.
func files(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("datos")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin("datos", name))
		if err != nil {
			t.Fatal(err)
		}
		if name != "LOCK" {
			list = append(list, fmt.Sprint(name, " ", info.Size()))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestCloseLeavesNothingInTheLog: a store that was closed is whole without its
// log.
func TestCloseLeavesNothingInTheLog(t *testing.T) {
	fs := vfs.NewMem()
	p := openPebble(t, "datos", store.PebbleOptions{FS: fs})
	fill(t, p, 6, 40)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("datos")
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs++
			if err := fs.Remove(fs.PathJoin("datos", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p = openPebble(t, "datos", store.PebbleOptions{FS: fs})
	defer p.Close()
	if n := whole(t, p, 6); n != 40 || logs == 0 {
		t.Errorf("%d batches after %d logs were removed; want 40", n, logs)
	}
}

// TestCloseOnFullDisk: what cannot be flushed any more stays in the log, and
// Close returns.
func TestCloseOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	var full atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}))
	p := openPebble(t, "datos", store.PebbleOptions{FS: fs, Fatal: func(error) {}})
	fill(t, p, 6, 40)
	full.Store(true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openPebble(t, "datos", store.PebbleOptions{FS: mem})
	defer p.Close()
	if n := whole(t, p, 6); n != 40 {
		t.Errorf("%d batches; want 40", n)
	}
}

// TestFailedSyncExits runs this test in a process of its own, whose disk fails
// the fifth sync of the log: it must end at once, with the code that tells the
// service manager not to start it again.
func TestFailedSyncExits(t *testing.T) {
	dir := os.Getenv("COTEJO_TEST_FAILING_DISK")
	if dir == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestFailedSyncExits$")
		child.Env = append(os.Environ(), "COTEJO_TEST_FAILING_DISK="+filepath.Join(t.TempDir(), "datos"))
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != store.ExitIO || !strings.Contains(string(out), "cotejo verify all") {
			t.Errorf("the process ended with %v; want exit code %d and the next step\n%s", err, store.ExitIO, out)
		}
		return
	}
	var syncs atomic.Int32
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if strings.HasSuffix(op.Path, ".log") && syncs.Add(1) == 5 {
				return syscall.EIO
			}
		}
		return nil
	}))
	p := openPebble(t, dir, store.PebbleOptions{FS: fs})
	fill(t, p, 0, 50)
	t.Error("50 batches were committed on a disk that fails")
}

// TestCompact holds that a compacted folder keeps all that is stored and nothing else:
// the same keys, written many times, take no more room than once.
func TestCompact(t *testing.T) {
	size := func(rounds int) (total int64) {
		dir := t.TempDir()
		p, err := store.OpenPebble(dir, store.PebbleOptions{MemTableBytes: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, p, 3, 200)
		epoch, seq, err := p.Acquire(4)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range rounds {
			seq++
			b := store.Batch{Group: 4, Epoch: epoch, Seq: seq}
			for i := range 500 {
				value := make([]byte, 1000)
				for j := range value {
					value[j] = byte(random.Uint32())
				}
				b.Puts = append(b.Puts, store.Put{Key: fmt.Appendf(nil, "%04d", i), Value: value})
			}
			if err := p.Commit(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(p.Compact(t.Context()), p.Close()); err != nil {
			t.Fatal(err)
		}
		tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatal(tables, err)
		}
		for _, name := range tables {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		p, err = store.OpenPebble(dir, store.PebbleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := whole(t, p, 3); n != 200 {
			t.Errorf("%d of 200 keys", n)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Compact(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
		return total
	}
	if once, often := size(1), size(8); often > once+once/20 {
		t.Errorf("%d bytes once, %d after being written again", once, often)
	}
}
