package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cotejo/checks"
	"cotejo/index"
)

// openResources counts what this process holds open inside dir: descriptors and
// mappings, also of files that were unlinked.
func openResources(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir) {
			n++
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return n + strings.Count(string(maps), dir)
}

// 200 editions replace each other under 8 readers. Each reader sees one whole
// edition at a time; in the end nothing stays open.
func TestLiveSwapsUnderReaders(t *testing.T) {
	c := newTest(t)
	const swaps, readers, texts = 200, 8, 4
	other := testSchema
	other.Source = "otra"
	var editions []EditionManifest
	for n := range texts {
		schema := []Schema{testSchema, other}[n%2]
		editions = append(editions, publish(t, c, schema, 1+n, fmt.Sprintf("1|AAA010101AAA|1|Alfa|s%d\n", n)))
	}
	// The editions after those repeat their evidence under new numbers.
	for n := texts; n <= swaps; n++ {
		m := editions[n%texts]
		m.Number = n + 1
		if err := c.publishManifest(editionPath(m.Number), &m); err != nil {
			t.Fatal(err)
		}
	}
	hidden := c.path("oculta")
	if err := os.Mkdir(hidden, 0o755); err != nil {
		t.Fatal(err)
	}
	move := func(n int, from, to string) {
		t.Helper()
		name := fmt.Sprintf("%d.json", n)
		if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	for n := 2; n <= swaps+1; n++ {
		move(n, c.path(editionsDir), hidden)
	}
	locked := openResources(t, c.dir)
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := checks.PackRFC("AAA010101AAA")

	var done atomic.Bool
	var reads atomic.Int64
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for last := 0; !done.Load(); reads.Add(1) {
				e := live.Acquire()
				n := e.Manifest().Number
				if n < last {
					t.Errorf("edition %d after %d", n, last)
				}
				last = n
				which := (n - 1) % texts
				s := e.Source([]Schema{testSchema, other}[which%2].Source)
				if !e.Classify(key).Has(s.Bit()) {
					t.Errorf("edition %d lost a mention", n)
				}
				if rows := found(t, s, "AAA010101AAA"); len(rows) != 1 || rows[0].Raw[4] != fmt.Sprintf("s%d", which) {
					t.Errorf("edition %d answers %v", n, rows)
				}
				if past := pasts(t, s, "AAA010101AAA"); len(past) != 1 || len(past[0].Events) != len(s.Chain())-1 {
					t.Errorf("edition %d: history %+v", n, past)
				}
				e.Release()
			}
		})
	}
	for n := 2; n <= swaps+1; n++ {
		move(n, hidden, c.path(editionsDir))
		if swapped, err := live.Refresh(); err != nil || !swapped {
			t.Fatalf("edition %d: %v, %v", n, swapped, err)
		}
	}
	if swapped, err := live.Refresh(); err != nil || swapped {
		t.Errorf("nothing new: %v, %v", swapped, err)
	}
	done.Store(true)
	wg.Wait()
	if reads.Load() < swaps {
		t.Errorf("only %d reads", reads.Load())
	}
	// The newest edition has one source: its rows and its history.
	if got, want := openResources(t, c.dir), locked+2; got != want {
		t.Errorf("%d descriptors open, want %d", got, want)
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	if got := openResources(t, c.dir); got != locked {
		t.Errorf("%d descriptors open after Close, want %d", got, locked)
	}
	if e := live.Acquire(); len(e.Manifest().Sources) != 0 || !e.Classify(key).None() {
		t.Error("a closed Live serves an edition")
	}
}

// An edition that a request holds outlives its replacement and the Live.
func TestEditionOutlivesLive(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, textOne)
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	e := live.Acquire()
	publish(t, c, testSchema, 2, textTwo)
	if _, err := live.Refresh(); err != nil {
		t.Fatal(err)
	}
	live.Close()
	if rows := found(t, e.Source("lista"), "AAA010101AAA"); len(rows) != 1 || rows[0].Raw[4] != "Presunto" {
		t.Errorf("rows %v", rows)
	}
	e.Release()
	if e.retain() {
		t.Error("a closed edition was taken again")
	}
	defer func() {
		if recover() == nil {
			t.Error("a release too many went unnoticed")
		}
	}()
	e.Release()
}

func TestLiveWithoutEdition(t *testing.T) {
	c := newTest(t)
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	e := live.Acquire()
	if len(e.Manifest().Sources) != 0 || e.Source("lista") != nil || !e.Classify(1).None() {
		t.Error("an empty catalogue serves something")
	}
	e.Release()
	if swapped, err := live.Refresh(); swapped || err != nil {
		t.Errorf("Refresh = %v, %v", swapped, err)
	}
	if _, err := c.LatestEdition(); !errors.Is(err, ErrNoEdition) {
		t.Errorf("LatestEdition: %v", err)
	}
	publish(t, c, testSchema, 1, textOne)
	if swapped, err := live.Refresh(); !swapped || err != nil {
		t.Errorf("Refresh = %v, %v", swapped, err)
	}
}

// A damaged newest edition leaves the one before in service, says so, and is
// taken up again once its file is restored.
func TestLiveFallsBack(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, textOne)
	m := publish(t, c, testSchema, 2, textTwo)
	v, err := c.Version(m.Sources[0].VersionID)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, c.path(v.RowsFile.Path), []byte("dañado"))

	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	serves := func(want int) {
		t.Helper()
		e := live.Acquire()
		defer e.Release()
		if got := e.Manifest().Number; got != want {
			t.Errorf("edition %d is served, want %d", got, want)
		}
	}
	serves(1)
	wantCorrupt(t, live.Fault(), v.RowsFile.Path)
	for range 3 {
		swapped, err := live.Refresh()
		if swapped {
			t.Error("a damaged edition was taken")
		}
		wantCorrupt(t, err, v.RowsFile.Path)
	}
	if _, err := c.Rebuild(v, testSchema, readLista); err != nil {
		t.Fatal(err)
	}
	if swapped, err := live.Refresh(); !swapped || err != nil || live.Fault() != nil {
		t.Errorf("after the repair: %v, %v, %v", swapped, err, live.Fault())
	}
	serves(2)

	// A newer edition that is damaged keeps the older one; a good one ends it.
	m = publish(t, c, testSchema, 3, textOne)
	good, err := os.ReadFile(c.path(m.Sources[0].History.Path))
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, c.path(m.Sources[0].History.Path), good[1:])
	_, err = live.Refresh()
	wantCorrupt(t, err, m.Sources[0].History.Path)
	serves(2)
	overwrite(t, c.path(m.Sources[0].History.Path), good)
	publish(t, c, testSchema, 4, textTwo)
	if swapped, err := live.Refresh(); !swapped || err != nil {
		t.Errorf("Refresh = %v, %v", swapped, err)
	}
	serves(4)
}

// A server starts although nothing can be opened, says that nothing is loaded,
// and takes the edition up once it is repaired.
func TestLiveWithNothingGood(t *testing.T) {
	c := newTest(t)
	m := publish(t, c, testSchema, 1, textOne)
	v, err := c.Version(m.Sources[0].VersionID)
	if err != nil {
		t.Fatal(err)
	}
	before := openResources(t, c.dir)
	overwrite(t, c.path(v.RowsFile.Path), []byte("dañado"))
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	e := live.Acquire()
	if e.Manifest().SHA256 != emptyEdition().SHA256 || e.Source("lista") != nil {
		t.Errorf("edition %d is served", e.Manifest().Number)
	}
	e.Release()
	wantCorrupt(t, live.Fault(), v.RowsFile.Path)
	if got := openResources(t, c.dir); got != before {
		t.Errorf("%d resources open, want %d", got, before)
	}
	if _, err := c.Rebuild(v, testSchema, readLista); err != nil {
		t.Fatal(err)
	}
	if swapped, err := live.Refresh(); !swapped || err != nil || live.Fault() != nil {
		t.Errorf("after the repair: %v, %v, %v", swapped, err, live.Fault())
	}
}

// watchedDisk tells when a folder is synced.
type watchedDisk struct {
	fastDisk
	synced func(path string) error
}

func (d watchedDisk) SyncDir(path string) error { return d.synced(path) }

// An edition is not answered from before its link is durable, and whoever asks
// for the fault meanwhile does not wait.
func TestLiveSyncsBeforeItSwaps(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, textOne)
	var live *Live
	syncs, failing := 0, error(nil)
	reader, err := openCatalogue(c.dir, watchedDisk{synced: func(path string) error {
		if path == c.path(editionsDir) {
			syncs++
		}
		if live == nil {
			return nil
		}
		if !live.mu.TryLock() {
			t.Error("Fault would have to wait for the files")
		} else {
			live.mu.Unlock()
		}
		if e := live.Acquire(); e.Manifest().Number != 1 {
			t.Errorf("edition %d answers before it is durable", e.Manifest().Number)
		} else {
			e.Release()
		}
		return failing
	}})
	if err != nil {
		t.Fatal(err)
	}
	if live, err = NewLive(reader); err != nil || syncs != 1 {
		t.Fatalf("%d syncs, %v", syncs, err)
	}
	defer live.Close()
	publish(t, c, testSchema, 2, textTwo)
	failing = errInjected
	if swapped, err := live.Refresh(); swapped || !errors.Is(err, errInjected) || syncs != 2 {
		t.Errorf("%v, %v, %d syncs", swapped, err, syncs)
	}
	failing = nil
	if swapped, err := live.Refresh(); !swapped || err != nil || syncs != 3 {
		t.Errorf("%v, %v, %d syncs", swapped, err, syncs)
	}
}

// A file that is damaged while it is open is named, whatever reads it; the
// errors of the caller are the caller's.
func TestDamageWhileServing(t *testing.T) {
	c := newTest(t)
	m := publish(t, c, testSchema, 1, textOne)
	e := openEdition(t, c, m)
	mine := errors.New("mine")
	if err := e.Source("lista").Find("AAA010101AAA", func(Row) error { return mine }); err != mine {
		t.Errorf("Find: %v", err)
	}
	if err := e.Source("lista").Past("AAA010101AAA", func(Past) error { return mine }); err != mine {
		t.Errorf("Past: %v", err)
	}
	// A reader that has not yet read the files into memory.
	s, err := c.openSource(&m.Sources[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.opened.leaveServed(s.served)
	for file, unread := range map[File]**index.Sorted{*s.version.RowsFile: &s.rows, s.entry.History: &s.history} {
		if *unread, err = c.openSorted(file); err != nil {
			t.Fatal(err)
		}
		defer (*unread).Close()
	}
	find := func() error { return s.Find("AAA010101AAA", func(Row) error { return nil }) }
	past := func() error { return s.Past("AAA010101AAA", func(Past) error { return nil }) }
	scribble(t, c.path(s.version.RowsFile.Path))
	scribble(t, c.path(s.entry.History.Path))
	wantCorrupt(t, find(), s.version.RowsFile.Path)
	wantCorrupt(t, past(), s.entry.History.Path)
}

// scribble changes the first data block of a file in its place.
func scribble(t *testing.T, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("garabato"), 8); err != nil {
		t.Fatal(err)
	}
}

func TestMentionsDoesNotAllocate(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, textOne)
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	key, _ := checks.PackRFC("ZZZ010101ZZ1")
	if n := testing.AllocsPerRun(100, func() {
		e := live.Acquire()
		if !e.Classify(key).None() {
			t.Error("a stranger is mentioned")
		}
		e.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAccept(b *testing.B) {
	text := benchText(100_000)
	dir := b.TempDir()
	b.SetBytes(int64(len(text)))
	for i := 0; b.Loop(); i++ {
		c := openTest(b, filepath.Join(dir, fmt.Sprint(i)))
		unlock, err := c.Lock()
		if err != nil {
			b.Fatal(err)
		}
		v := accept(b, c, testSchema, 1, text)
		b.ReportMetric(float64(v.RowsFile.Bytes)/float64(v.Rows), "sst-bytes/row")
		b.ReportMetric(float64(v.Official.Bytes)/float64(v.Rows), "zst-bytes/row")
		unlock()
	}
}

func BenchmarkFoldAndOpen(b *testing.B) {
	c := openTest(b, filepath.Join(b.TempDir(), "c"))
	unlock, err := c.Lock()
	if err != nil {
		b.Fatal(err)
	}
	defer unlock()
	text := benchText(100_000)
	publish(b, c, testSchema, 1, text)
	v := accept(b, c, testSchema, 2, strings.ReplaceAll(text, "7|Presunto", "7|Definitivo"))
	m, err := c.Publish(v, moment(2))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("fold", func(b *testing.B) {
		chain, err := c.chain(&m.Sources[0])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			d, _, err := c.foldAll(chain)
			if err != nil {
				b.Fatal(err)
			}
			d.discard()
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			e, err := c.OpenEdition(m)
			if err != nil {
				b.Fatal(err)
			}
			e.Release()
		}
	})
	e, err := c.OpenEdition(m)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Release()
	s := e.Source("lista")
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := s.Find(benchRFC(i*7919%100_000), func(Row) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchRFC(i int) string {
	return fmt.Sprintf("%c%c%c%06d%02d%d", 'A'+i%26, 'A'+i/26%26, 'A'+i/676%26, 10101, i%100, i%10)
}

func benchText(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d|%s|500-05-2018-%d de fecha 01 de junio de 2018|Comercializadora %d, S.A. de C.V.|Presunto\n", i, benchRFC(i), i, i*7919)
	}
	return b.String()
}

// TestSwapOpensWhatIsNew: an edition takes the files that the one before has open,
// and they outlive whichever of the two ends first. With the last one they are
// closed, and compared again when they are opened.
func TestSwapOpensWhatIsNew(t *testing.T) {
	c := newTest(t)
	other := testSchema
	other.Source = "otra"
	publish(t, c, other, 1, "1|QQQ020202QQ1|1|Beta|Presunto\n")
	publish(t, c, testSchema, 1, textOne)
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	first := live.Acquire()
	kept := first.Source("otra")
	rows, aside := c.path(kept.Version().RowsFile.Path), filepath.Join(t.TempDir(), "filas")
	if err := os.Rename(rows, aside); err != nil {
		t.Fatal(err)
	}
	publish(t, c, testSchema, 2, textTwo)
	if swapped, err := live.Refresh(); !swapped || err != nil {
		t.Fatalf("Refresh = %v, %v: a file that was open is opened again", swapped, err)
	}
	first.Release()
	second := live.Acquire()
	s := second.Source("otra")
	if rows := found(t, s, "QQQ020202QQ1"); len(rows) != 1 || s.rows != kept.rows {
		t.Errorf("the second edition finds %v, in the files of the first: %v", rows, s.rows == kept.rows)
	}
	if key, _ := checks.PackRFC("QQQ020202QQ1"); !second.Classify(key).Has(s.Bit()) {
		t.Errorf("the second edition mentions it in %v", second.Classify(key))
	}
	m := *second.Manifest()
	second.Release()
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	if len(c.opened.served) != 0 {
		t.Errorf("%d pairs of files stay open", len(c.opened.served))
	}
	_, err = c.OpenEdition(m)
	wantCorrupt(t, err, kept.Version().RowsFile.Path)
	if len(c.opened.served) != 0 {
		t.Errorf("%d pairs of files stay open after an opening that failed", len(c.opened.served))
	}
	if err := os.Rename(aside, rows); err != nil {
		t.Fatal(err)
	}
	openEdition(t, c, m)
}
