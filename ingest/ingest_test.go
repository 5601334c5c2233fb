package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 9, 19, 12, 0, 0, 0, civil.Zone)

func list(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/listado_69b.csv")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fixture is a catalogue that is checked whole when the test ends.
type fixture struct {
	t   testing.TB
	c   *snapshots.Catalogue
	dir string
	now time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), now: noon}
	var err error
	if f.c, err = snapshots.OpenCatalogue(f.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		wrong, err := f.c.Verify(context.Background(), nil)
		if err != nil || len(wrong) > 0 {
			t.Errorf("the catalogue is damaged: %v, %v", wrong, err)
		}
		f.noTemporaryFiles()
	})
	return f
}

func (f *fixture) noTemporaryFiles() {
	f.t.Helper()
	left, err := os.ReadDir(filepath.Join(f.dir, "tmp"))
	if err != nil || len(left) > 0 {
		f.t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func (f *fixture) versions() int {
	f.t.Helper()
	all, _, err := f.c.Versions()
	if err != nil {
		f.t.Fatal(err)
	}
	return len(all)
}

// edition is the number of the newest edition, 0 when there is none.
func (f *fixture) edition() int {
	f.t.Helper()
	m, err := f.c.LatestEdition()
	if err != nil && !errors.Is(err, snapshots.ErrNoEdition) {
		f.t.Fatal(err)
	}
	return m.Number
}

func (f *fixture) ingest(r Request) (Result, error) {
	f.now = f.now.Add(time.Hour)
	r.Source, r.Now = "sat_69b", f.now
	return Ingest(context.Background(), f.c, r)
}

// bytes ingests official bytes and wants an outcome.
func (f *fixture) bytes(official string, want Outcome) Result {
	f.t.Helper()
	r, err := f.ingest(Request{Name: "Listado_completo_69-B.csv", Content: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(official)), nil
	}})
	if err != nil || r.Outcome != want {
		f.t.Fatalf("got %q (%v), %v; want %q", r.Outcome, r.Version.Faults, err, want)
	}
	return r
}

// attempted wants the record of the last attempt.
func (f *fixture) attempted(outcome Outcome, version int) snapshots.Attempt {
	f.t.Helper()
	a, ok, err := f.c.LastAttempt("sat_69b")
	if err != nil || !ok || a.Outcome != string(outcome) || a.VersionID != version || a.At != civil.Timestamp(f.now) {
		f.t.Errorf("the last attempt is %+v, %v; want %s of version %d at %s", a, err, outcome, version, civil.Timestamp(f.now))
	}
	return a
}

func (f *fixture) file(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func packed(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestActivation(t *testing.T) {
	f := newFixture(t)
	official := list(t)
	r, err := f.ingest(Request{File: f.file("Listado.csv", official)})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(official))
	v := r.Version
	if r.Outcome != Activated || v.SHA256 != hex.EncodeToString(sum[:]) || v.Bytes != int64(len(official)) || v.Rows != 8 || v.Suppressed != 3 ||
		v.Corte.String() != "2026-08-31" || v.CorteFrom != "archivo" || v.Encoding != "windows-1252" || v.Counts["filas_vacias"] != 2 ||
		v.Obtained != "archivo:Listado.csv" || v.Published != "" || v.Downloaded != civil.Timestamp(f.now) ||
		v.URL != "https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv" {
		t.Errorf("%s: %+v", r.Outcome, v)
	}
	if m, err := f.c.LatestEdition(); err != nil || m.SHA256 != r.Edition.SHA256 || m.Sources[0].VersionID != v.ID {
		t.Errorf("the edition is %+v, %v", m, err)
	}
	stored, err := f.c.Official(v)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	if got, err := io.ReadAll(stored); err != nil || string(got) != official {
		t.Errorf("%d official bytes come back (%v), want %d", len(got), err, len(official))
	}
	ed, err := f.c.OpenEdition(r.Edition)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	var situations []string
	if err := ed.Source("sat_69b").Find("DIN010101AA1", func(row snapshots.Row) error {
		situations = append(situations, row.Norm[3])
		return nil
	}); err != nil || strings.Join(situations, ", ") != "Sentencia Favorable, Desvirtuado" {
		t.Errorf("DIN010101AA1: %q, %v", situations, err)
	}
}

func TestUnchanged(t *testing.T) {
	f := newFixture(t)
	first := f.bytes(list(t), Activated)
	again, err := f.ingest(Request{File: f.file("x.csv.gz", packed(t, list(t)))})
	if err != nil || again.Outcome != Unchanged || again.Version.ID != first.Version.ID || f.versions() != 1 || f.edition() != 1 {
		t.Errorf("%s, version %d, %d versions, %v", again.Outcome, again.Version.ID, f.versions(), err)
	}
	f.attempted(Unchanged, first.Version.ID)
}

// TestQuarantine: whatever is wrong with a file, the version before it goes on
// serving, and the same wrong file again is no news.
func TestQuarantine(t *testing.T) {
	good := list(t)
	newer := strings.Replace(good, "31 de Agosto de 2026", "15 de septiembre de 2026", 1)
	rows := strings.SplitAfter(newer, "\r\n")
	f := func(official, code, says string) {
		t.Helper()
		f := newFixture(t)
		active := f.bytes(good, Activated)
		r := f.bytes(official, Quarantined)
		if len(r.Version.Faults) != 1 || r.Version.Faults[0].Code != code || !strings.Contains(r.Version.Faults[0].Message, says) {
			t.Errorf("%s: %+v", code, r.Version.Faults)
		}
		if r.Edition.SHA256 != active.Edition.SHA256 || f.edition() != active.Edition.Number || f.versions() != 2 {
			t.Errorf("%s: edition %d, %d versions", code, f.edition(), f.versions())
		}
		again := f.bytes(official, Quarantined)
		if again.Version.ID != r.Version.ID || f.versions() != 2 {
			t.Errorf("%s: the second time: version %d, %d versions", code, again.Version.ID, f.versions())
		}
		if a := f.attempted(Quarantined, r.Version.ID); len(a.Faults) != 1 || a.Faults[0] != again.Faults[0] {
			t.Errorf("%s: the attempt found %+v", code, a.Faults)
		}
		// The good file again ends the quarantine, although it makes no version.
		f.bytes(good, Unchanged)
		f.attempted(Unchanged, active.Version.ID)
		f.attempted(Activated, f.bytes(newer, Activated).Version.ID)
	}
	f("<html>", tabular.HTML, "página web")
	f("", tabular.NoRows, "vacío")
	f("No,RFC\r\n", tabular.Header, "«Nombre del Contribuyente»")
	f(newer[:len(newer)/2], tabular.Truncated, "")
	f(strings.Join(rows[:3], "")+",,,\r\n", tabular.NoRows, "ninguna fila")
	f(strings.Replace(newer, "NUE010101AA1", "", 1), tabular.Broken, "no tiene RFC")
	f(strings.Replace(newer, "NUE010101AA1", strings.Repeat("N", 8<<10), 1), tabular.Broken, "no se puede guardar")
	f(strings.Replace(good, "31 de Agosto de 2026", "30 de agosto de 2026", 1), tabular.OlderCut, "2026-08-30")
	f(strings.Replace(good, "31 de Agosto de 2026", "1 de octubre de 2026", 1), tabular.FutureCut, "2026-10-01")
	short := strings.Replace(newer, "5,NUE010101AA1,", ",,", 1)
	short = strings.Replace(short, ",\"NUEVA SITUACI\xd3N, S.A.\",En revisi\xf3n,500-05-2018-16632 de fecha 01 de junio de 2018,01/06/2018,", ",,,,,", 1)
	f(short, tabular.FewerRows, "7 filas, 12.5 % menos")
}

func TestFewerRowsBound(t *testing.T) {
	f := func(active, got int, refused bool) {
		t.Helper()
		faults := gates(&tabular.Summary{Rows: got}, &snapshots.Origin{Downloaded: noon}, &snapshots.Version{Rows: active}, nil)
		if (len(faults) > 0) != refused {
			t.Errorf("%d after %d: %v", got, active, faults)
		}
	}
	f(1000, 900, false)
	f(1000, 899, true)
	f(3, 3, false)
	f(3, 2, true)
	f(10, 20, false)
}

// TestDateGates: what serves is followed by nothing older, whatever dates both,
// and nothing is of a day to come.
func TestDateGates(t *testing.T) {
	day := func(n int) civil.Date { return civil.Date{Year: 2026, Month: time.September, Day: n} }
	server := func(n int) time.Time { return time.Date(2026, 9, n, 12, 0, 0, 0, civil.Zone) }
	corte := func(n int) *snapshots.Version {
		return &snapshots.Version{ID: 7, Rows: 1, Corte: day(n), CorteFrom: "archivo", OrderDate: day(n)}
	}
	f := func(o snapshots.Origin, older *snapshots.Version, code, says string) {
		t.Helper()
		o.Downloaded = noon // the 19th
		faults := gates(&tabular.Summary{Rows: 1}, &o, nil, older)
		switch {
		case code == "" && len(faults) > 0, code != "" && (len(faults) != 1 || faults[0].Code != code || !strings.Contains(faults[0].Message, says)):
			t.Errorf("%+v after %+v: %+v, want %s", o, older, faults, code)
		}
	}
	f(snapshots.Origin{Corte: day(8)}, corte(9), tabular.OlderCut, "2026-09-08 (fecha de corte)")
	f(snapshots.Origin{Corte: day(9)}, corte(9), "", "")
	f(snapshots.Origin{Published: server(8)}, corte(9), tabular.OlderCut, "2026-09-08 (fecha del servidor)")
	f(snapshots.Origin{Published: server(10)}, corte(9), "", "")
	f(snapshots.Origin{}, corte(9), "", "")
	f(snapshots.Origin{Corte: day(19)}, nil, "", "")
	f(snapshots.Origin{Corte: day(20)}, nil, tabular.FutureCut, "2026-09-20")
	f(snapshots.Origin{Published: server(20)}, corte(9), tabular.FutureCut, "fecha del servidor")
	// The server's date of a list without corte holds, and the message says how to mend it.
	published := &snapshots.Version{ID: 7, Rows: 1, Published: civil.Timestamp(server(17)), OrderDate: day(17)}
	f(snapshots.Origin{Corte: day(1)}, published, tabular.OlderCut, "--corte")
	// The day of a download says nothing of what was downloaded.
	downloaded := &snapshots.Version{ID: 7, Rows: 1, OrderDate: day(19)}
	f(snapshots.Origin{Corte: day(1)}, downloaded, "", "")

	faults := gates(&tabular.Summary{Rows: 1}, &snapshots.Origin{Corte: day(8), Downloaded: noon}, &snapshots.Version{Rows: 10}, corte(9))
	if len(faults) != 2 || faults[0].Code != tabular.FewerRows || faults[1].Code != tabular.OlderCut {
		t.Errorf("two reasons: %+v", faults)
	}
}

func TestFirstVersionInQuarantine(t *testing.T) {
	f := newFixture(t)
	if r := f.bytes("<html>", Quarantined); r.Edition.Number != 0 || f.edition() != 0 {
		t.Errorf("edition %d", f.edition())
	}
}

// bare is the list without the note that dates it.
func bare(t testing.TB) string { return list(t)[strings.Index(list(t), "No,RFC"):] }

// TestCorteOfTheRequest is for files whose note was taken away.
func TestCorteOfTheRequest(t *testing.T) {
	f := newFixture(t)
	path := f.file("x.csv", bare(t))
	day := func(m time.Month) civil.Date { return civil.Date{Year: 2023, Month: m, Day: 1} }
	g := func(said civil.Date, outcome Outcome, recorded civil.Date, version, edition int) {
		t.Helper()
		r, err := f.ingest(Request{File: path, Corte: said})
		v := r.Version
		if err != nil || r.Outcome != outcome || v.Corte != recorded || v.CorteFrom != "operador" || v.OrderDate != recorded || v.ID != version || r.Edition.Number != edition {
			t.Errorf("said %v: %s, version %d of %v (%s), edition %d, %v %v", said, r.Outcome, v.ID, v.Corte, v.CorteFrom, r.Edition.Number, r.Faults, err)
		}
	}
	g(day(time.July), Activated, day(time.July), 1, 1)
	g(day(time.July), Unchanged, day(time.July), 1, 1)
	g(civil.Date{}, Unchanged, day(time.July), 1, 1)
	// Another date of the same bytes corrects the one recorded, in both directions.
	g(day(time.August), Activated, day(time.August), 2, 2)
	g(day(time.June), Activated, day(time.June), 3, 3)
	g(day(time.June), Unchanged, day(time.June), 3, 3)
	if m, err := f.c.LatestEdition(); err != nil || len(m.Sources[0].Chain) != 1 {
		t.Errorf("a correction is no event of the history: %+v, %v", m.Sources[0].Chain, err)
	}

	r, err := f.ingest(Request{File: f.file("x.csv", list(t)), Corte: day(time.July)})
	if err != nil || r.Version.Corte.String() != "2026-08-31" || r.Version.CorteFrom != "archivo" {
		t.Errorf("the file states its own: %v, %v", r.Version.Corte, err)
	}
	if r, err = f.ingest(Request{File: f.file("x.csv", list(t)), Corte: day(time.July)}); err != nil || r.Outcome != Unchanged {
		t.Errorf("again: %s, %v", r.Outcome, err)
	}
	// A date before the version that it follows is none that can be corrected to.
	newer := strings.Replace(bare(t), "Definitivo", "Presunto", 1)
	if r, err = f.ingest(Request{File: f.file("x.csv", newer), Corte: civil.Of(noon)}); err != nil || r.Outcome != Activated {
		t.Fatalf("%s %v, %v", r.Outcome, r.Faults, err)
	}
	if r, err = f.ingest(Request{File: f.file("x.csv", newer), Corte: day(time.July)}); err != nil || r.Outcome != Quarantined || r.Faults[0].Code != tabular.OlderCut {
		t.Errorf("%s %v, %v", r.Outcome, r.Faults, err)
	}
	if r, err = f.ingest(Request{File: f.file("x.csv", newer), Corte: civil.Date{Year: 2026, Month: time.September, Day: 1}}); err != nil || r.Outcome != Activated {
		t.Errorf("%s %v, %v", r.Outcome, r.Faults, err)
	}
}

// TestUndated: nothing dates a file that someone had, so whoever has it must.
func TestUndated(t *testing.T) {
	f := newFixture(t)
	for _, r := range []Request{
		{File: f.file("x.csv", bare(t))},
		{Name: "x.csv", Content: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(bare(t))), nil }},
	} {
		if _, err := f.ingest(r); !errors.Is(err, ErrUndated) || !strings.Contains(err.Error(), "--corte") || f.versions() != 0 {
			t.Errorf("%v, %d versions", err, f.versions())
		}
		f.unrecorded()
	}
	// A download is of its day, until the next publication says better.
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, bare(t)) }))
	defer s.Close()
	r, err := f.ingest(Request{Mirror: s.URL})
	if err != nil || r.Outcome != Activated || r.Version.OrderDate != civil.Of(f.now) || r.Version.CorteFrom != "" {
		t.Fatalf("%s, %v of %q, %v", r.Outcome, r.Version.OrderDate, r.Version.CorteFrom, err)
	}
	if r := f.bytes(list(t), Activated); r.Version.OrderDate.String() != "2026-08-31" {
		t.Errorf("%v", r.Version.OrderDate)
	}
}

// unrecorded wants no attempt to be recorded.
func (f *fixture) unrecorded() {
	f.t.Helper()
	if a, ok, err := f.c.LastAttempt("sat_69b"); ok || err != nil {
		f.t.Errorf("%+v, %v", a, err)
	}
}

// TestFileThatCannotBeLoaded: whoever gave it is told; of the source it says nothing.
func TestFileThatCannotBeLoaded(t *testing.T) {
	f := newFixture(t)
	if _, err := f.ingest(Request{File: "/no/existe.csv"}); err == nil {
		t.Fatal("no error")
	}
	f.unrecorded()
}

// TestFailureIsRecorded: what failed here is not told to everyone.
func TestFailureIsRecorded(t *testing.T) {
	f := newFixture(t)
	f.bytes(list(t), Activated)
	path := filepath.Join(f.dir, "versions", "1.json")
	if err := os.Rename(path, path+"x"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ingest(Request{Mirror: "http://127.0.0.1:1"}); err == nil {
		t.Fatal("no error")
	}
	if err := os.Rename(path+"x", path); err != nil {
		t.Fatal(err)
	}
	if a := f.attempted(snapshots.OutcomeFailed, 0); a.Error != "falló en el equipo que carga las fuentes; vea ahí el error" {
		t.Errorf("%+v", a)
	}
}

// TestFailuresForgetNothing: what the last answer of the authority brought, a
// quarantine above all, stands through any number of failures.
func TestFailuresForgetNothing(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	f.bytes(list(t), Activated)
	f.bytes("<html>", Quarantined)
	for range 2 {
		if _, err := f.ingest(Request{Mirror: "http://127.0.0.1:1"}); err == nil {
			t.Fatal("no error")
		}
	}
	a, _, err := f.c.LastAttempt("sat_69b")
	if err != nil || a.Outcome != snapshots.OutcomeFailed || a.Before == nil || a.Before.Outcome != snapshots.OutcomeQuarantined || a.Before.VersionID != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	f.bytes(list(t), Unchanged)
	if a, _, err := f.c.LastAttempt("sat_69b"); err != nil || a.Before != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestNewFaultsOfOldBytes: the record tells what was found this time.
func TestNewFaultsOfOldBytes(t *testing.T) {
	f := newFixture(t)
	f.now = noon.AddDate(0, 0, -40)
	august := list(t) // of 31 August, which has not come
	first := f.bytes(august, Quarantined)
	f.now = noon
	f.bytes(strings.Replace(august, "31 de Agosto", "15 de septiembre", 1), Activated)
	r := f.bytes(august, Quarantined)
	if r.Version.ID != first.Version.ID || first.Faults[0].Code != tabular.FutureCut || r.Faults[0].Code != tabular.OlderCut {
		t.Errorf("version %d: %+v, then version %d: %+v", first.Version.ID, first.Faults, r.Version.ID, r.Faults)
	}
	if a := f.attempted(Quarantined, r.Version.ID); a.Faults[0].Code != tabular.OlderCut {
		t.Errorf("%+v", a)
	}
}

// TestADamagedManifestIsPassedOver: one that nothing serves from.
func TestADamagedManifestIsPassedOver(t *testing.T) {
	f := newFixture(t)
	f.bytes("<html>", Quarantined)
	path := filepath.Join(f.dir, "versions", "1.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(text []byte) {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.WriteFile(path, text, 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	replace([]byte("{}\n"))
	f.bytes(list(t), Activated)
	if r := f.bytes("<html>", Quarantined); r.Version.ID != 3 {
		t.Errorf("version %d", r.Version.ID)
	}
	replace(whole)
}

func TestUnpacking(t *testing.T) {
	f := newFixture(t)
	whole := packed(t, list(t))
	r, err := f.ingest(Request{File: f.file("x.gz", whole[:len(whole)-200])})
	if err != nil || r.Outcome != Quarantined || r.Version.Faults[0].Code != tabular.Truncated {
		t.Errorf("cut: %s %v, %v", r.Outcome, r.Version.Faults, err)
	}
	versions := f.versions()
	damaged := []byte(whole)
	damaged[len(damaged)-6] ^= 1
	if _, err := f.ingest(Request{File: f.file("x.gz", string(damaged))}); !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := f.ingest(Request{File: f.file("x.gz", packed(t, strings.Repeat("\x00", 16<<20)))}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("bomb: %v", err)
	}
	if _, err := f.ingest(Request{File: t.TempDir()}); err == nil {
		t.Error("a folder was read")
	}
	if f.versions() != versions {
		t.Errorf("%d versions, want %d", f.versions(), versions)
	}
}

// TestInterruption ends the context at every step: nothing is published.
func TestInterruption(t *testing.T) {
	for _, phase := range []Phase{Obtaining, Reading} {
		f := newFixture(t)
		why := errors.New("the operator left")
		ctx, cancel := context.WithCancelCause(context.Background())
		_, err := Ingest(ctx, f.c, Request{
			Source: "sat_69b", File: f.file("x.csv", list(t)), Now: noon,
			Progress: func(s Step) {
				if s.Phase == phase {
					cancel(why)
				}
			},
		})
		if err != why || f.versions() != 0 || f.edition() != 0 {
			t.Errorf("%s: %v, %d versions, edition %d", phase, err, f.versions(), f.edition())
		}
		if a, ok, err := f.c.LastAttempt("sat_69b"); ok || err != nil {
			t.Errorf("%s: it says nothing about the source: %+v, %v", phase, a, err)
		}
		f.noTemporaryFiles()
		f.bytes(list(t), Activated)
	}
}

// TestUnpublishedVersion: a process died between accepting a version and
// publishing its edition.
func TestUnpublishedVersion(t *testing.T) {
	f := newFixture(t)
	unlock, err := f.c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	source, _ := Lookup("sat_69b")
	in := ingestion{
		Request: Request{Now: noon, Content: func() (io.ReadCloser, error) { return os.Open("testdata/listado_69b.csv") }},
		source:  &source, catalogue: f.c,
	}
	defer in.bytes.close()
	if err := in.obtain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if in.stage, err = stageOf(f.c, "sat_69b", in.bytes.open()); err != nil {
		t.Fatal(err)
	}
	defer in.stage.Discard()
	if faults, err := in.read(t.Context()); err != nil || faults != nil {
		t.Fatal(faults, err)
	}
	left, err := in.stage.Accept(in.origin)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if r := f.bytes(list(t), Activated); r.Version.ID != left.ID || f.versions() != 1 || f.edition() != 1 {
		t.Errorf("version %d of %d, edition %d", r.Version.ID, f.versions(), f.edition())
	}
}

func TestPanicOfAReaderIsAReason(t *testing.T) {
	_, err := readRows(&Source{Read: func(snapshots.Opener, func(snapshots.Row) error) (tabular.Summary, error) {
		var rows []int
		return tabular.Summary{Rows: rows[3]}, nil
	}}, nil, nil)
	var refusal *tabular.Refusal
	if !errors.As(err, &refusal) || refusal.Fault.Code != tabular.Failed {
		t.Errorf("got %v", err)
	}
}

func TestUnknownSourceAndBusyCatalogue(t *testing.T) {
	f := newFixture(t)
	if _, err := Ingest(t.Context(), f.c, Request{Source: "sat_70"}); err == nil || !strings.Contains(err.Error(), "sat_69b") {
		t.Errorf("unknown: %v", err)
	}
	other, err := snapshots.OpenCatalogue(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := other.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := f.ingest(Request{File: "testdata/listado_69b.csv"}); !errors.Is(err, snapshots.ErrBusy) {
		t.Errorf("busy: %v", err)
	}
}
