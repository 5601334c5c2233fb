package ingest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// month is the list of the last day of a month of 2026, from February to August.
// It says in the name of NUE010101AA1 which one it is; the one of April lacks one
// of nine rows.
func month(t testing.TB, n int) string {
	t.Helper()
	days := []string{"", "", "28 de febrero", "31 de marzo", "30 de abril", "31 de mayo", "30 de junio", "31 de julio", "31 de agosto"}
	text := strings.Replace(list(t), "31 de Agosto", days[n], 1)
	text = strings.Replace(text, "NUEVA SITUACI\xd3N", fmt.Sprintf("LISTA %d", n), 1)
	if n != 4 {
		text += "14,OTR010101AA1,\"OTRA, S.A.\",Presunto" + strings.Repeat(",", 16) + "\r\n"
	}
	return text
}

// past ingests official bytes as an older file.
func (f *fixture) past(official string, want Outcome) Result {
	f.t.Helper()
	r, err := f.ingest(Request{History: true, Name: "viejo.csv", Content: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(official)), nil
	}})
	if err != nil || r.Outcome != want {
		f.t.Fatalf("got %q (%v), %v; want %q", r.Outcome, r.Faults, err, want)
	}
	return r
}

// serves is the version in service and the days of the history behind it.
func (f *fixture) serves() (e snapshots.EditionEntry, days []string) {
	f.t.Helper()
	m, err := f.c.LatestEdition()
	if err != nil {
		f.t.Fatal(err)
	}
	e = m.Sources[0]
	for _, id := range e.Chain {
		v, err := f.c.Version(id)
		if err != nil {
			f.t.Fatal(err)
		}
		days = append(days, v.OrderDate.String())
	}
	return e, days
}

func TestOlderFile(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 5), Activated)
	july := f.bytes(month(t, 7), Activated)
	attempt := f.attempted(Activated, july.Version.ID)
	before, _ := f.serves()

	march := f.past(month(t, 3), Activated)
	april := f.past(month(t, 4), Activated) // fewer rows: as the newest it would not serve
	june := f.past(month(t, 6), Activated)
	after, days := f.serves()
	if after.VersionID != july.Version.ID || after.PublishedReset != before.PublishedReset || june.Edition.Number != 5 ||
		strings.Join(days, " ") != "2026-03-31 2026-04-30 2026-05-31 2026-06-30 2026-07-31" {
		t.Errorf("version %d since %s, history of %v, edition %d", after.VersionID, after.PublishedReset, days, june.Edition.Number)
	}
	if april.Version.Rows >= march.Version.Rows || march.Version.RowsFile == nil {
		t.Errorf("%d rows after %d", april.Version.Rows, march.Version.Rows)
	}

	// Loading what is there already is no event.
	for _, known := range []Result{march, july} {
		text := month(t, 3)
		if known.Version.ID == july.Version.ID {
			text = month(t, 7)
		}
		if again := f.past(text, Unchanged); again.Version.ID != known.Version.ID {
			t.Errorf("version %d again: %d", known.Version.ID, again.Version.ID)
		}
	}
	if f.versions() != 5 || f.edition() != 5 {
		t.Errorf("%d versions, edition %d", f.versions(), f.edition())
	}
	// It says nothing about how current the source is.
	if a, _, err := f.c.LastAttempt("sat_69b"); err != nil || a.At != attempt.At || a.VersionID != attempt.VersionID {
		t.Errorf("the last attempt is %+v, %v", a, err)
	}

	_, err := f.ingest(Request{History: true, File: f.file("x.csv", month(t, 8))})
	if !errors.Is(err, snapshots.ErrNewer) || !strings.Contains(err.Error(), "sin --history") || f.versions() != 5 {
		t.Errorf("a newer file: %v, %d versions", err, f.versions())
	}
	if r := f.past(strings.Join(strings.SplitAfter(month(t, 2), "\r\n")[:3], "")+",,,\r\n", Quarantined); r.Faults[0].Code != tabular.NoRows {
		t.Errorf("%+v", r.Faults)
	}
	if r := f.past("<html>", Quarantined); r.Faults[0].Code != tabular.HTML || f.edition() != 5 {
		t.Errorf("%+v, edition %d", r.Faults, f.edition())
	}
	if _, err := f.ingest(Request{History: true}); err == nil || !strings.Contains(err.Error(), "--file") {
		t.Errorf("a download: %v", err)
	}
	// The next list goes on from the longer history.
	f.bytes(month(t, 8), Activated)
	if _, days := f.serves(); len(days) != 6 || days[5] != "2026-08-31" {
		t.Errorf("history of %v", days)
	}
}

// The date of an older file that states none is the operator's, and can be
// corrected.
func TestOlderFileWithoutDate(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 5), Activated)
	f.bytes(month(t, 8), Activated)
	path := f.file("x.csv", strings.Replace(bare(t), "NUEVA", "OTRA", 1))
	g := func(m time.Month, outcome Outcome, days string) {
		t.Helper()
		r, err := f.ingest(Request{History: true, File: path, Corte: civil.Date{Year: 2026, Month: m, Day: 1}})
		if _, have := f.serves(); err != nil || r.Outcome != outcome || strings.Join(have, " ") != days {
			t.Errorf("%s: history of %v, %v", r.Outcome, have, err)
		}
	}
	if _, err := f.ingest(Request{History: true, File: path}); !errors.Is(err, ErrUndated) {
		t.Errorf("undated: %v", err)
	}
	g(time.March, Activated, "2026-03-01 2026-05-31 2026-08-31")
	g(time.March, Unchanged, "2026-03-01 2026-05-31 2026-08-31")
	g(time.July, Activated, "2026-05-31 2026-07-01 2026-08-31")
	if _, err := f.ingest(Request{History: true, File: path, Corte: civil.Date{Year: 2026, Month: time.September, Day: 1}}); !errors.Is(err, snapshots.ErrNewer) {
		t.Errorf("a later day: %v", err)
	}
	if r, err := f.ingest(Request{History: true, File: path}); err != nil || r.Outcome != Unchanged {
		t.Errorf("without saying it again: %s, %v", r.Outcome, err)
	}
}

// The first file of a source serves, whatever it was loaded as.
func TestOlderFileOfAnEmptySource(t *testing.T) {
	f := newFixture(t)
	r := f.past(month(t, 5), Activated)
	f.attempted(Activated, r.Version.ID)
	if r := f.past(month(t, 3), Activated); r.Edition.Number != 2 {
		t.Errorf("edition %d", r.Edition.Number)
	}
}

// The same files in any order make the same edition.
func TestOlderFilesInAnyOrder(t *testing.T) {
	load := func(order []int) (evidence, history string) {
		t.Helper()
		f := newFixture(t)
		newest := 0
		for _, n := range order {
			if n > newest {
				newest = n
				if n != 4 { // too few rows to be served after a longer one
					f.bytes(month(t, n), Activated)
					continue
				}
				if r, err := f.ingest(Request{Name: "x", Content: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(month(t, n))), nil }}); err != nil {
					t.Fatal(err)
				} else if r.Outcome == Quarantined {
					if _, err := Accept(t.Context(), f.c, r.Version.ID, "Ana", "es así", f.now); err != nil {
						t.Fatal(err)
					}
				}
				continue
			}
			f.past(month(t, n), Activated)
		}
		m, err := f.c.LatestEdition()
		if err != nil {
			t.Fatal(err)
		}
		return m.SHA256, m.Sources[0].HistoryDigest
	}
	evidence, history := load([]int{2, 3, 4, 5, 6})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		order := []int{2, 3, 4, 5, 6}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if e, h := load(order); e != evidence || h != history {
			t.Errorf("%v: edition %s and history %s, want %s and %s", order, e, h, evidence, history)
		}
	}
}

// TestRealListsInAnyOrder does so with three real versions of the list.
func TestRealListsInAnyOrder(t *testing.T) {
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "shared")
	}
	lists := []struct {
		name  string
		corte civil.Date
	}{
		{"Listado_Completo_69-B_2021-05-18.csv.gz", civil.Date{}},
		{"Listado_Completo_69-B_2022-11-30.csv.gz", civil.Date{}},
		{"Listado_Completo_69-B_2023-07_no-preamble.csv.gz", civil.Date{Year: 2023, Month: time.July, Day: 1}},
	}
	load := func(history bool, order ...int) string {
		t.Helper()
		f := newFixture(t)
		var r Result
		for step, i := range order {
			path := filepath.Join(root, "data", "mx-sources", "sat-69b", lists[i].name)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !named {
				t.Skipf("no está la lista oficial %s: ponga COTEJO_SHARED", lists[i].name)
			}
			var err error
			if r, err = f.ingest(Request{File: path, Corte: lists[i].corte, History: history && step > 0}); err != nil || r.Outcome != Activated {
				t.Fatalf("%s: %s, %v, %v", lists[i].name, r.Outcome, r.Faults, err)
			}
		}
		return r.Edition.SHA256
	}
	want := load(false, 0, 1, 2)
	if got := load(true, 2, 1, 0); got != want {
		t.Errorf("the newest first: edition %s, want %s", got, want)
	}
	if got := load(true, 2, 0, 1); got != want {
		t.Errorf("the oldest last but one: edition %s, want %s", got, want)
	}
}

// TestUnpublishedOlderFile: a process died between accepting an older file and
// publishing its edition.
func TestUnpublishedOlderFile(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 7), Activated)
	left := f.unpublished(month(t, 3))
	if r := f.past(month(t, 3), Activated); r.Version.ID != left.ID || f.versions() != 2 || f.edition() != 2 {
		t.Errorf("version %d of %d, edition %d", r.Version.ID, f.versions(), f.edition())
	}
	// The same as a download is an old list still.
	f.unpublished(month(t, 2))
	if r := f.bytes(month(t, 2), Quarantined); r.Faults[0].Code != tabular.OlderCut {
		t.Errorf("%+v", r.Faults)
	}
}

// unpublished leaves an accepted version that is in no edition.
func (f *fixture) unpublished(official string) snapshots.Version {
	f.t.Helper()
	unlock, err := f.c.Lock()
	if err != nil {
		f.t.Fatal(err)
	}
	defer unlock()
	source, _ := Lookup("sat_69b")
	in := ingestion{
		Request: Request{Now: f.now, History: true, Content: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(official)), nil }},
		source:  &source, catalogue: f.c,
	}
	defer in.bytes.close()
	if err := in.obtain(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if in.stage, err = stageOf(f.c, "sat_69b", in.bytes.open()); err != nil {
		f.t.Fatal(err)
	}
	defer in.stage.Discard()
	if faults, err := in.read(f.t.Context()); err != nil || faults != nil {
		f.t.Fatal(faults, err)
	}
	v, err := in.stage.Accept(in.origin)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}
