package ingest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
