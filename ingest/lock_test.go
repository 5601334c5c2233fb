package ingest

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// TestOthersWriteDuringADownload: a slow server keeps nobody from the catalogue.
func TestOthersWriteDuringADownload(t *testing.T) {
	hurried(t)
	other := func(t *testing.T, f *fixture) *snapshots.Catalogue {
		t.Helper()
		c, err := snapshots.OpenCatalogue(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// download asks for the list, does something else meanwhile, and gets it.
	download := func(t *testing.T, f *fixture, content string, meanwhile func()) (Result, error) {
		t.Helper()
		done := false
		s := faultless(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, content[:len(content)/2])
			if !done {
				done = true
				meanwhile()
			}
			_, _ = io.WriteString(w, content[len(content)/2:])
		})
		return f.ingest(Request{Mirror: s})
	}
	t.Run("accept", func(t *testing.T) {
		f := newFixture(t)
		f.bytes(month(t, 3), Activated)
		held := f.bytes(month(t, 4), Quarantined)
		when := f.now
		r, err := download(t, f, month(t, 5), func() {
			if _, err := Accept(t.Context(), other(t, f), held.Version.ID, "Ana", "x", when); err != nil {
				t.Errorf("while a download runs: %v", err)
			}
		})
		// What serves changed: it is looked at again, and the record is the other's.
		if !errors.Is(err, snapshots.ErrBusy) || !strings.Contains(err.Error(), "repita la carga") || f.edition() != 2 {
			t.Errorf("%s, %v, edition %d", r.Outcome, err, f.edition())
		}
		if a, _, err := f.c.LastAttempt("sat_69b"); err != nil || a.Outcome != snapshots.OutcomeActivated {
			t.Errorf("%+v, %v", a, err)
		}
		if r, err := download(t, f, month(t, 5), func() {}); err != nil || r.Outcome != Activated {
			t.Errorf("%s %v, %v", r.Outcome, r.Faults, err)
		}
	})
	t.Run("another source", func(t *testing.T) {
		f := newFixture(t)
		bis, ok := mirror.File(0, mirror.Listado69BBis)
		if !ok {
			t.Fatal("no list")
		}
		r, err := download(t, f, month(t, 3), func() {
			r, err := Ingest(t.Context(), other(t, f), Request{Source: "sat_69b_bis", File: f.file("x.csv", string(bis)), Now: f.now})
			if err != nil || r.Outcome != Activated {
				t.Errorf("%s, %v", r.Outcome, err)
			}
		})
		if err != nil || r.Outcome != Activated || len(r.Edition.Sources) != 2 {
			t.Errorf("%s %+v, %v", r.Outcome, r.Edition, err)
		}
	})
	t.Run("the same bytes", func(t *testing.T) {
		f := newFixture(t)
		r, err := download(t, f, month(t, 3), func() {
			if _, err := Ingest(t.Context(), other(t, f), Request{Source: "sat_69b", File: f.file("x.csv", month(t, 3)), Now: f.now}); err != nil {
				t.Error(err)
			}
		})
		if err != nil || r.Outcome != Unchanged || f.versions() != 1 {
			t.Errorf("%s, %v, %d versions", r.Outcome, err, f.versions())
		}
	})
	t.Run("304 for bytes that were replaced", func(t *testing.T) {
		f := newFixture(t)
		tag := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			_, _ = io.WriteString(w, month(t, 3))
		}
		address := faultless(t, func(w http.ResponseWriter, r *http.Request) { tag(w, r) })
		if r, err := f.ingest(Request{Mirror: address}); err != nil || r.Outcome != Activated {
			t.Fatal(r.Outcome, err)
		}
		tag = func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("If-None-Match") == "" {
				t.Error("not conditional")
			}
			if _, err := Ingest(t.Context(), other(t, f), Request{Source: "sat_69b", File: f.file("x.csv", month(t, 6)), Now: f.now}); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusNotModified)
		}
		if r, err := f.ingest(Request{Mirror: address}); !errors.Is(err, snapshots.ErrBusy) {
			t.Errorf("%s, %v", r.Outcome, err)
		}
	})
	t.Run("a writer who is about to end", func(t *testing.T) {
		f := newFixture(t)
		held := make(chan func(), 1)
		r, err := download(t, f, month(t, 3), func() {
			unlock, err := other(t, f).Lock()
			if err != nil {
				t.Error(err)
			}
			held <- func() { time.AfterFunc(10*time.Millisecond, unlock) }
			(<-held)()
		})
		if err != nil || r.Outcome != Activated {
			t.Errorf("%s, %v", r.Outcome, err)
		}
	})
}

// faultless serves the list, and neither an index page nor partial lists.
func faultless(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	tr := &trial{fixture: &fixture{t: t}}
	tr.source, _ = Lookup("sat_69b")
	return tr.serve(h).URL
}

// TestCutInTheLastCell: nothing tells but that the last line does not end.
func TestCutInTheLastCell(t *testing.T) {
	hurried(t)
	for _, source := range Sources() {
		tr := newTrial(t, source)
		// One column has text in the last row of each list, and the filler rows go.
		whole := strings.TrimRight(string(tr.good), ",\r\n")
		whole = whole[:strings.LastIndexByte(whole, '\n')+1]
		for _, cut := range []int{1, 2} {
			content := whole[:len(whole)-cut]
			s := tr.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) })
			r, err := tr.ingest(Request{Mirror: s.URL})
			if err != nil || r.Outcome != Quarantined || r.Faults[0].Code != tabular.Unended {
				t.Errorf("%s without its last %d bytes: %s %v, %v", source, cut, r.Outcome, r.Faults, err)
			}
			tr.unharmed(snapshots.OutcomeQuarantined, "fin de línea")
		}
	}
	// A person who has compared it may let it serve; the history takes it from nobody.
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	held := f.bytes(strings.TrimSuffix(month(t, 5), "\r\n"), Quarantined)
	f.accepted(held.Version.ID)
	if r := f.past(strings.TrimSuffix(month(t, 2), "\r\n"), Quarantined); r.Faults[0].Code != tabular.Unended {
		t.Errorf("%+v", r.Faults)
	}
}

// TestPartialsBesideTheList: they are looked for where the list was found.
func TestPartialsBesideTheList(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	const moved = "/Datos_abiertos/Documents_2027/"
	s := newSite(t, map[string]string{
		indexPath:                                       index(anchor(official+"Documents_2027/Listado_completo_69-B.csv", "Listado completo")),
		moved + "Listado_completo_69-B.csv":             list(t),
		moved + "Presuntos.csv":                         partial(cut31, "1,PELJ800101AA1,x,Presunto", "2,XXXXXXXXXXXX,x,Presunto"),
		path.Dir(mirror.Presuntos) + "/Definitivos.csv": partial(cut31),
	})
	for _, want := range []Outcome{Activated, Unchanged} {
		if r, err := f.ingest(Request{Mirror: s.URL}); err != nil || r.Outcome != want {
			t.Fatalf("%s, %v", r.Outcome, err)
		}
		a := f.attempted(want, 1)
		if len(a.Partials) != 4 || a.Partials[0].State != "no_obtenido" || a.Partials[1].State != "concuerda" || a.Partials[1].URL != s.URL+moved+"Presuntos.csv" {
			t.Errorf("%+v", a.Partials)
		}
	}
}

// TestCutPartial: it is not compared with.
func TestCutPartial(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	whole := partial(cut31, "1,PELJ800101AA1,x,Presunto", "2,XXXXXXXXXXXX,x,Presunto")
	s := newSite(t, map[string]string{mirror.Listado69B: list(t), mirror.Presuntos: whole[:strings.Index(whole, "XXXXX")]})
	if _, err := f.ingest(Request{Mirror: s.URL}); err != nil {
		t.Fatal(err)
	}
	if p := f.attempted(Activated, 1).Partials[1]; p.State != "no_obtenido" || !strings.Contains(p.Message, "cortada") {
		t.Errorf("%+v", p)
	}
}
