package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// memoryAnchor is the anchor of a test: on a disk that loses nothing.
type memoryAnchor struct {
	mu     sync.Mutex
	text   []byte // nil: absent
	fresh  []byte // written, not yet in place
	writes int
	fails  error
}

func newMemoryAnchor() *memoryAnchor { return new(memoryAnchor) }

func (m *memoryAnchor) Read(string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.text == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(m.text), nil
}

func (m *memoryAnchor) WriteSynced(_ string, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fresh = slices.Clone(text)
	return m.fails
}

func (m *memoryAnchor) Rename(string, string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = m.fresh
	m.writes++
	return nil
}

func (m *memoryAnchor) SyncDir(string) error { return nil }

// put sets what it holds and returns what it held.
func (m *memoryAnchor) put(text []byte) (before []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.text = m.text, text
	return before
}

func (m *memoryAnchor) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

func (m *memoryAnchor) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

// anchored runs a ledger with an anchor over s and closes it.
func anchored(t *testing.T, s store.Store, path string, do func(l *ledger.Ledger)) {
	t.Helper()
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7), Anchor: path})
	if err != nil {
		t.Fatal(err)
	}
	do(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAnchorRefusesALostTail: an older copy of the store opens cleanly, as one
// whose log lost its end does; the anchor tells.
func TestAnchorRefusesALostTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ancla.json")
	mem := vfs.NewCrashableMem()
	s := openStore(t, mem)
	var older *vfs.MemFS
	anchored(t, s, path, func(l *ledger.Ledger) {
		credit(t, l, 1, start, 5000)
		older = mem.CrashClone(vfs.CrashCloneCfg{})
		for range 7 {
			credit(t, l, 1, start, 5000)
		}
	})
	want := groupOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	heads, err := ledger.ReadAnchor(path)
	if err != nil || heads[want.Group] != want {
		t.Fatalf("ReadAnchor = %v, %v; want %v of the group", heads, err, want)
	}

	s = openStore(t, older)
	defer s.Close()
	_, err = ledger.Open(s, ledger.Options{Anchor: path})
	var refused *ledger.AnchorError
	if !errors.As(err, &refused) || !errors.Is(err, ledger.ErrIntegrity) {
		t.Fatalf("Open = %v; want an *AnchorError", err)
	}
	if refused.Group != want.Group || refused.Missing() != 7 || refused.Groups != 1 {
		t.Errorf("%+v; want 7 missing batches of group %d", refused, want.Group)
	}
	for _, part := range []string{"le faltan lotes (7)", "tiene hasta el 1", "hasta el 8", path, "restaure el respaldo"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}

	// The operator wants the older data: the anchor goes, and a new one comes.
	if err := os.Rename(path, path+".anterior"); err != nil {
		t.Fatal(err)
	}
	anchored(t, s, path, func(*ledger.Ledger) {})
	if heads, err := ledger.ReadAnchor(path); err != nil || heads[want.Group].Seq != 1 {
		t.Errorf("the new anchor: %v, %v", heads, err)
	}
}

// TestAnchorRefusesAnotherHistory: a store that went on from an older copy has as
// many batches, or more, but not those that the anchor remembers.
func TestAnchorRefusesAnotherHistory(t *testing.T) {
	for _, more := range []int{2, 5} {
		path := filepath.Join(t.TempDir(), "ancla.json")
		mem := vfs.NewCrashableMem()
		s := openStore(t, mem)
		var older *vfs.MemFS
		anchored(t, s, path, func(l *ledger.Ledger) {
			credit(t, l, 1, start, 5000)
			older = mem.CrashClone(vfs.CrashCloneCfg{})
			credit(t, l, 1, start, 5000)
			credit(t, l, 1, start, 5000)
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, older)
		anchored(t, s, "", func(l *ledger.Ledger) {
			for range more {
				credit(t, l, 1, start, 4000)
			}
		})
		_, err := ledger.Open(s, ledger.Options{Anchor: path})
		var refused *ledger.AnchorError
		if !errors.As(err, &refused) || refused.Missing() != 0 || refused.Anchored != 3 || refused.Stored != uint64(1+more) ||
			!strings.Contains(err.Error(), "no es el que recuerda") {
			t.Errorf("%d batches later: Open = %v", more, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnchorBehindIsFine: the machine stopped between a commit and the anchor.
func TestAnchorBehindIsFine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ancla.json")
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	anchored(t, s, path, func(l *ledger.Ledger) { credit(t, l, 1, start, 5000) })
	anchored(t, s, "", func(l *ledger.Ledger) { credit(t, l, 1, start, 5000) })
	anchored(t, s, path, func(*ledger.Ledger) {})
	h := groupOf(t, s)
	if heads, err := ledger.ReadAnchor(path); err != nil || heads[h.Group] != h || h.Seq != 2 {
		t.Errorf("after opening: %v, %v; want %v", heads, err, h)
	}
}

// TestDamagedAnchor changes each byte, and cuts at each.
func TestDamagedAnchor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ancla.json")
	heads := make([]ledger.Head, store.Groups+1)
	for g := range heads {
		heads[g] = ledger.Head{Group: store.Group(g), Seq: uint64(g * 1000), Sum: [32]byte{byte(g)}}
	}
	if _, err := ledger.ReadAnchor(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if err := ledger.WriteAnchor(path, heads); err != nil {
		t.Fatal(err)
	}
	if got, err := ledger.ReadAnchor(path); err != nil || !slices.Equal(got, heads) {
		t.Fatalf("ReadAnchor = %v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, at int, changed []byte) {
		t.Helper()
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *ledger.AnchorError
		if heads, err := ledger.ReadAnchor(path); !errors.As(err, &damaged) || damaged.Damage == nil || !errors.Is(err, ledger.ErrIntegrity) {
			t.Errorf("%s %d: ReadAnchor = %v, %v", what, at, heads, err)
		}
	}
	for i := range text {
		for _, bit := range []byte{1, 32, 128} {
			changed := bytes.Clone(text)
			changed[i] ^= bit
			refused("byte", i, changed)
		}
		refused("cut at", i, text[:i])
	}
	refused("more at", len(text), append(bytes.Clone(text), '\n'))

	s := openStore(t, vfs.NewMem())
	defer s.Close()
	if _, err := ledger.Open(s, ledger.Options{Anchor: path}); !errors.Is(err, ledger.ErrIntegrity) || !strings.Contains(err.Error(), "dañada") {
		t.Errorf("Open = %v; want ErrIntegrity", err)
	}
}

// TestWhereAnAnchorMayBe: a place that cannot hold an anchor is refused before
// anything is served without one, and a link stays a link.
func TestWhereAnAnchorMayBe(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	dir := t.TempDir()
	refused := func(path string) {
		t.Helper()
		if l, err := ledger.Open(s, ledger.Options{Anchor: path}); !errors.Is(err, ledger.ErrAnchor) {
			t.Errorf("%s: Open = %v, %v; want ErrAnchor", path, l, err)
		}
	}
	refused(dir)
	refused(filepath.Join(dir, "falta", "ancla.json"))
	if err := os.WriteFile(filepath.Join(dir, "archivo"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(filepath.Join(dir, "archivo", "ancla.json"))

	link, target := filepath.Join(dir, "enlace"), filepath.Join(dir, "otro disco", "ancla.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(target), 0o700), os.Symlink("otro disco/ancla.json", link)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		anchored(t, s, link, func(l *ledger.Ledger) { credit(t, l, 1, start, 5000) })
		heads, err := ledger.ReadAnchor(target)
		if want := groupOf(t, s); err != nil || heads[want.Group] != want {
			t.Errorf("behind the link: %v, %v; want %v", heads, err, want)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

// TestAnchorOfTwoServices gives two ledgers one anchor by mistake: the one that
// notices leaves it alone, so that the other's stays true.
func TestAnchorOfTwoServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newMemoryAnchor()
		open := func() *ledger.Ledger {
			l, err := ledger.Open(&memoryStore{}, ledger.Options{Random: seeded(7)}.AnchoredOn(files, 0))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		first := open()
		credit(t, first, 1, start, 5000)
		time.Sleep(2 * time.Second)
		text := files.put(nil) // the second starts before the first has written
		second := open()
		time.Sleep(2 * time.Second)
		files.put(text)
		credit(t, second, 2, start, 4000)
		credit(t, first, 1, start, 5000)
		time.Sleep(time.Minute)
		if age := second.AnchorAge(); age < 50*time.Second {
			t.Errorf("the second thinks that it is anchored: age %v", age)
		}
		if err := errors.Join(second.Close(), first.Close()); err != nil {
			t.Fatal(err)
		}
		if heads, err := ledger.ReadAnchorOn(files); err != nil || !slices.Equal(heads, first.Heads()) || first.AnchorAge() != 0 {
			t.Errorf("the anchor holds %v, %v; want that of the first", heads, err)
		}
	})
}

// TestAnchorIsWrittenOnceASecond, and only when something moved.
func TestAnchorIsWrittenOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newMemoryAnchor()
		s := &memoryStore{}
		l, err := ledger.Open(s, ledger.Options{Random: seeded(7)}.AnchoredOn(files, 0))
		if err != nil {
			t.Fatal(err)
		}
		wrote := func(want int, age time.Duration) {
			t.Helper()
			synctest.Wait()
			if files.count() != want || l.AnchorAge() != age {
				t.Errorf("at %v: %d writes, age %v; want %d, %v", time.Now().Format("05.000"), files.count(), l.AnchorAge(), want, age)
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		first := files.count() // of the id key
		wrote(first, 0)
		credit(t, l, 1, start, 5000)
		wrote(first+1, 0)
		time.Sleep(300 * time.Millisecond)
		for range 10 {
			credit(t, l, 1, start, 5000)
		}
		wrote(first+1, 0)
		time.Sleep(600 * time.Millisecond)
		wrote(first+1, 600*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		wrote(first+2, 0)
		time.Sleep(time.Hour)
		wrote(first+2, 0)

		files.fail(errors.New("disco lleno"))
		credit(t, l, 1, start, 5000)
		time.Sleep(90 * time.Second)
		wrote(first+2, 90*time.Second)
		credit(t, l, 1, start, 5000) // and the ledger goes on
		files.fail(nil)
		time.Sleep(time.Second)
		wrote(first+3, 0)

		time.Sleep(time.Second)
		credit(t, l, 1, start, 5000)
		wrote(first+4, 0)
		credit(t, l, 1, start, 5000)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if heads, err := ledger.ReadAnchorOn(files); err != nil || !slices.Equal(heads, l.Heads()) || files.count() != first+5 {
			t.Errorf("after Close: %d writes, %v, %v; want %v", files.count(), heads, err, l.Heads())
		}
	})
}

// TestAnchored: what the anchor holds of an account's group is told, and nothing
// where there is none.
func TestAnchored(t *testing.T) {
	const account = ledger.AccountID(3)
	without, _ := newLedger(t)
	if head, ok := without.Anchored(account); ok {
		t.Errorf("without an anchor: %+v", head)
	}
	s := openStore(t, vfs.NewMem())
	path := filepath.Join(t.TempDir(), "ancla")
	open := func() *ledger.Ledger {
		l, err := ledger.Open(s, ledger.Options{Random: seeded(7), Anchor: path})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	if head, ok := l.Anchored(account); !ok || head.Seq != 0 {
		t.Errorf("at first: %+v, %v", head, ok)
	}
	credit(t, l, account, start, 100)
	for l.AnchorAge() != 0 {
		runtime.Gosched()
	}
	head, ok := l.Anchored(account)
	if !ok || head != l.Heads()[head.Group] || head.Seq == 0 {
		t.Errorf("behind a write: %+v, %v", head, ok)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	if again, ok := l.Anchored(account); !ok || again != head {
		t.Errorf("opened again: %+v, %v", again, ok)
	}
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAlive hangs the store: Alive gives up when it is told to, and leaves
// nothing behind.
func TestAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{}
		l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Alive(ctx); err != nil {
			t.Errorf("Alive = %v", err)
		}
		s.hang = make(chan struct{})
		done := make(chan struct{})
		go func() {
			credit(t, l, 1, start, 5000)
			close(done)
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := l.Alive(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Alive while a write hangs = %v; want DeadlineExceeded", err)
		}
		close(s.hang)
		<-done
		if err := l.Alive(ctx); err != nil {
			t.Errorf("Alive again = %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Alive(ctx); !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("Alive after Close = %v; want ErrClosed", err)
		}
	})
}

// TestMaxBatch holds a write while commands gather, and counts what they become.
func TestMaxBatch(t *testing.T) {
	f := func(most, commands, commits int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := &memoryStore{}
			l, err := ledger.Open(s, ledger.Options{Random: seeded(7), MaxBatch: most})
			if err != nil {
				t.Fatal(err)
			}
			s.hang = make(chan struct{})
			before := s.commits
			var callers sync.WaitGroup
			callers.Go(func() { credit(t, l, 1, start, 5000) })
			synctest.Wait()
			for range commands {
				callers.Go(func() { credit(t, l, 1, start, 5000) })
			}
			synctest.Wait()
			close(s.hang)
			callers.Wait()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if got := s.commits - before - 1; got != commits {
				t.Errorf("MaxBatch %d: %d commands were %d writes; want %d", most, commands, got, commits)
			}
		})
	}
	f(1, 7, 7)
	f(3, 7, 3)
	f(0, 600, 2)
}

// memoryStore is a store without a disk or a goroutine, for fake clocks.
type memoryStore struct {
	mu      sync.Mutex
	values  map[string][]byte
	seqs    [store.Groups + 1]uint64
	commits int
	hang    chan struct{} // not nil: Commit waits for it
}

func (s *memoryStore) Acquire(g store.Group) (epoch, seq uint64, err error) { return 1, s.seqs[g], nil }

func (s *memoryStore) Reader(g store.Group) store.Reader { return memoryReader{s, g} }

func (s *memoryStore) View(store.Group) (store.View, error) { return nil, errors.ErrUnsupported }

func (s *memoryStore) Close() error { return nil }

func (s *memoryStore) Commit(batches ...store.Batch) error {
	if s.hang != nil {
		<-s.hang
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	for _, b := range batches {
		s.seqs[b.Group] = b.Seq
		for _, p := range cloneBatch(b).Puts {
			s.values[string(b.Group)+string(p.Key)] = p.Value
		}
		for _, key := range b.Deletes {
			delete(s.values, string(b.Group)+string(key))
		}
	}
	return nil
}

type memoryReader struct {
	s *memoryStore
	g store.Group
}

func (r memoryReader) Get(key []byte) ([]byte, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if v, ok := r.s.values[string(r.g)+string(key)]; ok {
		return slices.Clone(v), nil
	}
	return nil, store.ErrNotFound
}

func (r memoryReader) Scan(lower, upper []byte, fn func(key, value []byte) error) error {
	r.s.mu.Lock()
	var keys []string
	for k := range r.s.values {
		key := k[1:]
		if k[:1] == string(r.g) && key >= string(lower) && (upper == nil || key < string(upper)) {
			keys = append(keys, key)
		}
	}
	r.s.mu.Unlock()
	slices.Sort(keys)
	for _, key := range keys {
		v, err := r.Get([]byte(key))
		if err == nil {
			err = fn([]byte(key), v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
