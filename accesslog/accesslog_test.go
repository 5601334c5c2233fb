package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"cotejo/civil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx  = context.Background()
	noon = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC) // in Mexico City
)

// begin starts a log in a folder; it is closed with the test.
func begin(t testing.TB, dir string) *Log {
	l := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(l.Close)
	return l
}

func entry(n int, at time.Time) Entry {
	return Entry{
		At: at, RequestID: fmt.Appendf(nil, "req_%016d", n), Method: "GET", Route: "/v1/empresa/{rfc}", Status: 200,
		Took: 1234 * time.Microsecond, Bytes: 1804, Cut: true, Client: netip.MustParseAddr("192.0.2.1"),
		Org: []byte("org_0000000000001"), Key: "abcdefgh", Cost: 1200,
	}
}

var alike = cmp.Options{
	cmpopts.IgnoreFields(Entry{}, "line"), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
}

func all() Query { return Query{To: noon.AddDate(1, 0, 0), From: noon.AddDate(-1, 0, 0), Limit: 1000} }

func read(t testing.TB, l *Log, q Query) Page {
	t.Helper()
	page, err := l.Read(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestWhatIsAddedIsRead(t *testing.T) {
	dir := t.TempDir() + "/accesos"
	l := begin(t, dir)
	a := entry(1, noon)
	b := Entry{At: noon.Add(time.Millisecond), RequestID: []byte("req_2"), Method: "-", Route: "-", Status: 401, Client: netip.MustParseAddr("2001:db8::1")}
	l.Add(&a)
	l.Add(&b)
	for range 2 { // while it is written, and packed
		if diff := cmp.Diff([]Entry{b, a}, read(t, l, all()).Entries, alike); diff != "" {
			t.Fatal(diff)
		}
		l.Close()
	}
	if files := must(filepath.Glob(dir + "/*")); len(files) != 1 || filepath.Base(files[0]) != "2026-11-20.0001.jsonl.zst" {
		t.Errorf("files %q", files)
	}
	if info := must(os.Stat(dir)); info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter: %v", info.Mode())
	}
	var none *Log
	none.Add(&a)
	none.Close()
	if page := read(t, none, all()); len(page.Entries) != 0 {
		t.Error("no log has entries")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReadIsAFilter compares pages of random queries with a list in memory, over
// days, segments, packed or not, and restarts.
func TestReadIsAFilter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		var model []Entry // oldest first
		l := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		defer func() { l.Close() }()
		at := noon
		for n := range rapid.IntRange(0, 60).Draw(r, "entries") {
			at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 60_000, 7_000_000, 90_000_000}).Draw(r, "ms")) * time.Millisecond)
			e := entry(n, at)
			e.Status = rapid.SampledFrom([]int{200, 401}).Draw(r, "status")
			if e.Status == 401 {
				e.Org, e.Key, e.Cost = nil, "", 0
			} else {
				e.Org = fmt.Appendf(nil, "org_%d", rapid.IntRange(1, 2).Draw(r, "org"))
			}
			model = append(model, e)
			l.Add(&e)
			switch rapid.IntRange(0, 9).Draw(r, "then") {
			case 0:
				l.Close()
				l = Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
			case 1:
				l.flush()
				l.writing.Lock()
				l.endSegment()
				l.writing.Unlock()
			}
		}
		for range 5 {
			q := Query{From: noon.Add(time.Duration(rapid.IntRange(-1, 60).Draw(r, "from")) * time.Hour), Limit: rapid.IntRange(1, 7).Draw(r, "limit")}
			q.To = q.From.Add(time.Duration(rapid.IntRange(1, 300).Draw(r, "hours")) * time.Hour)
			q.Status = rapid.SampledFrom([]int{0, 200, 401, 20}).Draw(r, "status")
			if rapid.Bool().Draw(r, "by org") {
				q.Orgs = map[string]bool{"org_1": true, "nadie": true}
			}
			var want []Entry
			for _, e := range slices.Backward(model) {
				if !e.At.Before(q.From) && e.At.Before(q.To) && (q.Status == 0 || q.Status == e.Status) && (q.Orgs == nil || q.Orgs[string(e.Org)]) {
					want = append(want, e)
				}
			}
			var got []Entry
			l.scanBytes = rapid.SampledFrom([]int{scanBytes, 400}).Draw(r, "scan")
			for {
				page, err := l.Read(ctx, q)
				if err != nil {
					r.Fatal(err)
				}
				if len(page.Entries) > q.Limit || page.Cut && l.scanBytes == scanBytes {
					r.Fatalf("%d of %d, cut %v", len(page.Entries), q.Limit, page.Cut)
				}
				got = append(got, page.Entries...)
				if page.Next == (Cursor{}) {
					break
				}
				var ok bool
				if q.Before, ok = ParseCursor(page.Next.String()); !ok || q.Before != page.Next {
					r.Fatalf("cursor %v is read as %v", page.Next, q.Before)
				}
			}
			if diff := cmp.Diff(want, got, alike); diff != "" {
				r.Fatal(diff)
			}
		}
	})
}

// TestAReadIsBounded: what looks at too much stops, says so, and can go on.
func TestAReadIsBounded(t *testing.T) {
	l := begin(t, t.TempDir())
	l.scanBytes = 1000
	for i := range 50 {
		e := entry(i, noon)
		if i == 0 {
			e.Status = 401
		}
		l.Add(&e)
	}
	q, reads := all(), 0
	q.Status = 401
	for {
		page := read(t, l, q)
		reads++
		if len(page.Entries) == 1 {
			if string(page.Entries[0].RequestID) != "req_0000000000000000" {
				t.Errorf("found %s", page.Entries[0].RequestID)
			}
			break
		}
		if !page.Cut || page.Next == (Cursor{}) {
			t.Fatalf("read %d: %+v", reads, page)
		}
		q.Before = page.Next
	}
	if reads < 8 || reads > 16 {
		t.Errorf("%d reads of 1,000 bytes each", reads)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Read(ended, all()); !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v", err)
	}
}

// TestAddNeverWaits holds that a disk that hangs costs lines, not requests, and that
// the log says how many.
func TestAddNeverWaits(t *testing.T) {
	l := begin(t, t.TempDir())
	l.writing.Lock() // a write hangs
	e := entry(0, noon)
	lost := lostLines.Get()
	const many = 3 * gatheredBytes / 250
	for range many {
		l.Add(&e) // the test hangs here if a request waits for the disk
	}
	kept := bytes.Count(l.pending.lines, []byte{'\n'})
	if len(l.pending.lines) > gatheredBytes+100 || kept < many/10 || kept+l.dropped != many || lostLines.Get()-lost != uint64(l.dropped) {
		t.Fatalf("%d bytes: %d lines kept, %d dropped of %d", len(l.pending.lines), kept, l.dropped, many)
	}
	dropped := l.dropped
	l.writing.Unlock()
	l.flush()
	l.Add(&e)
	page := read(t, l, Query{From: noon, To: noon.Add(time.Millisecond), Limit: 2})
	if page.Entries[0].Lost != dropped || page.Entries[1].Lost != 0 {
		t.Errorf("the log says that %d and %d were lost, not %d", page.Entries[0].Lost, page.Entries[1].Lost, dropped)
	}
}

// TestAFullDiskLosesLinesOnly: by the guard of free space, and by the disk itself.
func TestAFullDiskLosesLinesOnly(t *testing.T) {
	full := true
	var said bytes.Buffer
	l := Open(Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&said, nil)), Full: func() bool { return full }})
	defer l.Close()
	e := entry(1, noon)
	l.Add(&e)
	l.flush()
	if files := must(filepath.Glob(l.Dir + "/*")); len(files) != 0 || said.Len() != 0 {
		t.Fatalf("written: %q %s", files, &said)
	}
	full = false
	l.Add(&e)
	l.flush()
	if page := read(t, l, all()); len(page.Entries) != 1 || page.Entries[0].Lost != 1 {
		t.Fatalf("%+v", page)
	}
	l.writing.Lock()
	good := l.file
	l.file = must(os.OpenFile("/dev/full", os.O_WRONLY, 0))
	l.writing.Unlock()
	for range 3 {
		l.Add(&e)
		l.flush()
	}
	l.writing.Lock()
	bad := l.file
	l.file = good
	l.writing.Unlock()
	if err := bad.Close(); err != nil {
		t.Fatal(err)
	}
	l.Add(&e)
	if page := read(t, l, all()); len(page.Entries) != 2 || page.Entries[0].Lost != 3 {
		t.Fatalf("%+v", page)
	}
	if n := strings.Count(said.String(), "level=ERROR"); n != 1 || !strings.Contains(said.String(), "se vuelve a escribir") {
		t.Errorf("said %d times: %s", n, &said)
	}
}

// TestACutLineIsPassedOver: what kill -9 leaves.
func TestACutLineIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	a, b := entry(1, noon), entry(2, noon)
	whole := string(a.appendTo(nil)) + "}\n"
	cut := string(b.appendTo(nil))
	for name, text := range map[string]string{
		"2026-11-20.0001.jsonl":         whole + cut[:50],
		"2026-11-20.0002.jsonl":         cut[:50], // packed already, killed before it was removed
		"2026-11-20.0002.jsonl.zst.tmp": "nada",
		"2026-11-20.0003.jsonl.zst":     "no es zstd",
		"otra cosa":                     "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := begin(t, dir)
	l.Add(&b)
	page := read(t, l, all())
	if diff := cmp.Diff([]Entry{b, a}, page.Entries, alike); diff != "" {
		t.Error(diff)
	}
	l.Close()
	if diff := cmp.Diff([]Entry{b, a}, read(t, l, all()).Entries, alike); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, s := range must(list(dir)) {
		names = append(names, s.name())
	}
	if left := must(filepath.Glob(dir + "/*.tmp")); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
	if got := strings.Join(names, " "); got != "2026-11-20.0001.jsonl.zst 2026-11-20.0002.jsonl.zst 2026-11-20.0003.jsonl.zst 2026-11-20.0004.jsonl.zst" {
		t.Errorf("segments %s", got)
	}
}

// TestADayHasItsOwnSegments: also when midnight falls between two lines of one write.
func TestADayHasItsOwnSegments(t *testing.T) {
	l := begin(t, t.TempDir())
	midnight := civil.Of(noon).End()
	for i, at := range []time.Time{midnight.Add(-2 * time.Millisecond), midnight.Add(-1 * time.Millisecond), midnight} {
		e := entry(i, at)
		l.Add(&e)
		if i == 0 {
			l.flush()
		}
	}
	l.Close()
	segments := must(list(l.Dir))
	if len(segments) != 2 || segments[0].day != civil.Of(noon) || segments[1].day != civil.Of(midnight) {
		t.Fatalf("%+v", segments)
	}
	for i, want := range []int{2, 1} {
		if got := bytes.Count(must(readSegment(l.Dir, segments[i])), []byte{'\n'}); got != want {
			t.Errorf("segment %d has %d lines", i, got)
		}
	}
}

// TestTheLogStaysWithinItsSize writes many times what it may keep.
func TestTheLogStaysWithinItsSize(t *testing.T) {
	const most = 20_000
	l := Open(Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Keep: Keep{Bytes: most}})
	defer l.Close()
	for i := range 200 {
		e := entry(i, noon)
		for j := range 20 {
			e.RequestID = fmt.Appendf(nil, "req_%x", i*7919*(j+1)) // does not pack well
			l.Add(&e)
		}
		l.flush()
		l.writing.Lock()
		l.endSegment()
		l.writing.Unlock()
		l.packers.Wait()
	}
	l.Close()
	total := int64(0)
	segments := must(list(l.Dir))
	for _, s := range segments {
		total += s.bytes
	}
	if total > most || total < most/2 || segments[len(segments)-1].number != 200 {
		t.Errorf("%d bytes in %d segments, the last is %d", total, len(segments), segments[len(segments)-1].number)
	}
}

func TestClean(t *testing.T) {
	dir := t.TempDir()
	names := []string{"2026-11-10.0001.jsonl.zst", "2026-11-18.0001.jsonl.zst", "2026-11-18.0002.jsonl.zst", "2026-11-20.0001.jsonl"}
	for _, name := range append(names, "ajeno.txt") {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(keep Keep, want Cleaned, left int) {
		t.Helper()
		got, err := Clean(dir, keep, noon)
		if err != nil || got != want {
			t.Fatalf("%+v, %v", got, err)
		}
		files := must(os.ReadDir(dir))
		if len(files) != left+1 || files[0].Name() != names[len(names)-left] {
			t.Fatalf("%v are left", files)
		}
	}
	check(Keep{}, Cleaned{}, 4)
	check(Keep{Days: 11}, Cleaned{}, 4)
	check(Keep{Days: 10}, Cleaned{1, 100}, 3)
	check(Keep{Days: 10, Bytes: 250}, Cleaned{1, 100}, 2)
	check(Keep{Days: 1, Bytes: 1}, Cleaned{1, 100}, 1) // the newest stays
	if got, err := Clean(dir+"/nada", Keep{Days: 1}, noon); err != nil || got != (Cleaned{}) {
		t.Errorf("no folder: %+v, %v", got, err)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	l := begin(t, t.TempDir())
	l.writing.Lock()
	defer l.writing.Unlock()
	l.pending.lines = make([]byte, 0, gatheredBytes)
	e := entry(1, noon)
	l.Add(&e)
	if n := testing.AllocsPerRun(500, func() { l.Add(&e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAppendMoment(t *testing.T) {
	for _, nanos := range []int{0, 999_999, 1_000_000, 45_000_000, 999_999_999} {
		at := time.Date(2026, 11, 20, 23, 59, 59, nanos, time.FixedZone("", -6*3600))
		got, want := string(appendMoment([]byte("x"), at)), "x"+at.UTC().Format(moment)
		if got != want {
			t.Errorf("%d ns: %s, want %s", nanos, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	e := entry(1, noon)
	f.Add(append(e.appendTo(nil), '}'))
	f.Add([]byte(`{"t":"2026-11-20T18:00:00.000Z","direccion":"x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var e Entry
		known := e.parse(line) == nil
		s := scan{Query: Query{Limit: 100}, to: "~", most: 1 << 20}
		s.back(wholeLines(append(line, '\n')))
		if known && !bytes.Contains(line, []byte{'\n'}) && len(line) >= atEnd && line[atStart] < '~' && len(s.found) != 1 {
			t.Errorf("%q is read %d times", line, len(s.found))
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add("2026-11-20.0001.jsonl.zst")
	f.Add("2026-11-20.1.77")
	f.Fuzz(func(t *testing.T, name string) {
		if s, ok := parseSegment(name); ok && (s.name() != name || strings.ContainsAny(name, "/\\")) {
			t.Errorf("%q is %+v", name, s)
		}
		if c, ok := ParseCursor(name); ok && (c.day.IsZero() || c.number < 0 || c.offset < 0) {
			t.Errorf("%q is %+v", name, c)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	l := begin(b, b.TempDir())
	b.ReportAllocs()
	e := entry(1, noon)
	for b.Loop() {
		l.Add(&e)
	}
}
