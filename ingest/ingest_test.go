package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
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
		wrong, err := f.c.Verify(nil)
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
	all, err := f.c.Versions()
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
		v.Corte.String() != "2026-08-31" || v.Encoding != "windows-1252" || v.Counts["filas_vacias"] != 2 ||
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
	if at, err := f.c.LastChecked("sat_69b"); err != nil || !at.Equal(f.now) {
		t.Errorf("last checked %v, %v", at, err)
	}
}

// TestQuarantine: whatever is wrong with a file, the version before it goes on
// serving, and the same wrong file again is no news.
func TestQuarantine(t *testing.T) {
	good := list(t)
	newer := strings.Replace(good, "31 de Agosto de 2026", "30 de septiembre de 2026", 1)
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
		if at, err := f.c.LastChecked("sat_69b"); err != nil || !at.Equal(f.now) {
			t.Errorf("%s: last checked %v, %v", code, at, err)
		}
		f.bytes(newer, Activated)
	}
	f("<html>", tabular.HTML, "página web")
	f("", tabular.NoRows, "vacío")
	f("No,RFC\r\n", tabular.Header, "«Nombre del Contribuyente»")
	f(newer[:len(newer)/2], tabular.Truncated, "")
	f(strings.Join(rows[:3], "")+",,,\r\n", tabular.NoRows, "ninguna fila")
	f(strings.Replace(newer, "NUE010101AA1", "", 1), tabular.Broken, "no tiene RFC")
	f(strings.Replace(newer, "NUE010101AA1", strings.Repeat("N", 8<<10), 1), tabular.Broken, "no se puede guardar")
	f(strings.Replace(good, "31 de Agosto de 2026", "30 de agosto de 2026", 1), tabular.OlderCut, "2026-08-30")
	short := strings.Replace(newer, "5,NUE010101AA1,", ",,", 1)
	short = strings.Replace(short, ",\"NUEVA SITUACI\xd3N, S.A.\",En revisi\xf3n,500-05-2018-16632 de fecha 01 de junio de 2018,01/06/2018,", ",,,,,", 1)
	f(short, tabular.FewerRows, "7 filas, 12.5 % menos")
}

func TestFewerRowsBound(t *testing.T) {
	f := func(active, got int, refused bool) {
		t.Helper()
		faults := gates(&tabular.Summary{Rows: got}, &snapshots.Version{Rows: active})
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

func TestTwoReasons(t *testing.T) {
	faults := gates(&tabular.Summary{Rows: 1, Corte: civil.Date{Year: 2020, Month: 1, Day: 1}},
		&snapshots.Version{Rows: 10, Corte: civil.Date{Year: 2020, Month: 1, Day: 2}})
	if len(faults) != 2 || faults[0].Code != tabular.FewerRows || faults[1].Code != tabular.OlderCut {
		t.Errorf("%+v", faults)
	}
}

func TestFirstVersionInQuarantine(t *testing.T) {
	f := newFixture(t)
	if r := f.bytes("<html>", Quarantined); r.Edition.Number != 0 || f.edition() != 0 {
		t.Errorf("edition %d", f.edition())
	}
}

// TestCorteOfTheRequest is for files whose note was taken away.
func TestCorteOfTheRequest(t *testing.T) {
	f := newFixture(t)
	bare := list(t)
	bare = bare[strings.Index(bare, "No,RFC"):]
	said := civil.Date{Year: 2023, Month: time.July, Day: 1}
	r, err := f.ingest(Request{File: f.file("x.csv", bare), Corte: said})
	if err != nil || r.Version.Corte != said {
		t.Errorf("corte %v, %v", r.Version.Corte, err)
	}
	r, err = f.ingest(Request{File: f.file("x.csv", list(t)), Corte: said})
	if err != nil || r.Version.Corte.String() != "2026-08-31" {
		t.Errorf("the file states its own: %v, %v", r.Version.Corte, err)
	}
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
	if _, err := f.ingest(Request{File: f.file("x.gz", packed(t, strings.Repeat("\x00", 16<<20)))}); !errors.Is(err, tabular.ErrTooLarge) {
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
	stage, err := f.c.Stage("sat_69b")
	if err != nil {
		t.Fatal(err)
	}
	source, _ := Lookup("sat_69b")
	in := ingestion{
		Request: Request{Now: noon, Content: func() (io.ReadCloser, error) { return os.Open("testdata/listado_69b.csv") }},
		source:  &source, catalogue: f.c, stage: stage,
	}
	if err := in.obtain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if faults, err := in.read(t.Context()); err != nil || faults != nil {
		t.Fatal(faults, err)
	}
	left, err := stage.Accept(in.origin)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if r := f.bytes(list(t), Activated); r.Version.ID != left.ID || f.versions() != 1 || f.edition() != 1 {
		t.Errorf("version %d of %d, edition %d", r.Version.ID, f.versions(), f.edition())
	}
}

func TestPanicOfAReaderIsAReason(t *testing.T) {
	in := ingestion{source: &Source{Read: func(io.Reader, func(snapshots.Row) error) (tabular.Summary, error) {
		var rows []int
		return tabular.Summary{Rows: rows[3]}, nil
	}}}
	_, err := in.rows(nil, nil)
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
