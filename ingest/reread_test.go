package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cotejo/civil"
	"cotejo/ingest/sat69b"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// raise gives the source a reader of the next generation, which sees one thing
// otherwise.
func raise(t *testing.T) {
	t.Helper()
	before := registry[0]
	t.Cleanup(func() { registry[0] = before })
	registry[0].Schema.Reader++
	registry[0].Read = func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
		return sat69b.Read(official, func(row snapshots.Row) error {
			row.Norm[2] += " (leído otra vez)"
			return add(row)
		})
	}
}

// TestRaisedReader: the bytes in service are read again, with all the history,
// under the dates that are recorded.
func TestRaisedReader(t *testing.T) {
	f := newFixture(t)
	said := civil.Date{Year: 2026, Month: 8, Day: 1}
	if r, err := f.ingest(Request{File: f.file("x.csv", bare(t)), Corte: said}); err != nil || r.Outcome != Activated {
		t.Fatal(r.Outcome, err)
	}
	active := f.bytes(strings.Replace(list(t), "Desvirtuado,", "Presunto,", 1), Activated)
	raise(t)
	again := f.bytes(strings.Replace(list(t), "Desvirtuado,", "Presunto,", 1), Activated)
	e := again.Edition.Sources[0]
	if again.Version.Reader != active.Version.Reader+1 || again.Version.SHA256 != active.Version.SHA256 || e.Reader != again.Version.Reader ||
		len(e.Chain) != 2 || f.versions() != 4 || e.PublishedReset != again.Edition.Published {
		t.Errorf("version %+v, entry %+v", again.Version, e)
	}
	old, err := f.c.Version(e.Chain[0])
	if err != nil || old.Corte != said || old.CorteFrom != "operador" || old.Reader != again.Version.Reader {
		t.Errorf("%+v, %v", old, err)
	}
	ed, err := f.c.OpenEdition(again.Edition)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	rows, events := 0, 0
	if err := errors.Join(
		ed.Source("sat_69b").Find("DIN010101AA1", func(r snapshots.Row) error {
			if rows++; !strings.HasSuffix(r.Norm[2], "otra vez)") {
				t.Errorf("%q", r.Norm[2])
			}
			return nil
		}),
		ed.Source("sat_69b").Past("DIN010101AA1", func(p snapshots.Past) error { events += len(p.Events); return nil }),
	); err != nil || rows != 2 || events != 1 {
		t.Errorf("%d rows, %d events, %v", rows, events, err)
	}
	f.bytes(strings.Replace(list(t), "Desvirtuado,", "Presunto,", 1), Unchanged)
	// A raised reader and new bytes at once.
	raise(t)
	if r := f.bytes(list(t), Activated); len(r.Edition.Sources[0].Chain) != 3 || r.Version.Reader != active.Version.Reader+2 {
		t.Errorf("%+v", r.Edition.Sources[0])
	}
}

// TestRaisedReaderKeepsTheDates of bytes that state none.
func TestRaisedReaderKeepsTheDates(t *testing.T) {
	f := newFixture(t)
	said := civil.Date{Year: 2026, Month: 8, Day: 1}
	path := f.file("x.csv", bare(t))
	if _, err := f.ingest(Request{File: path, Corte: said}); err != nil {
		t.Fatal(err)
	}
	raise(t)
	r, err := f.ingest(Request{File: path})
	if err != nil || r.Outcome != Activated || r.Version.Corte != said || r.Version.CorteFrom != "operador" {
		t.Errorf("%s: %+v, %v", r.Outcome, r.Version, err)
	}
}

func TestRebuild(t *testing.T) {
	f := newFixture(t)
	first := f.bytes(strings.Replace(list(t), "31 de Agosto", "30 de agosto", 1), Activated)
	f.bytes("<html>", Quarantined)
	last := f.bytes(list(t), Activated)
	g := func(checked int, restored []string, differs ...string) {
		t.Helper()
		var steps []string
		report, err := Rebuild(t.Context(), f.c, func(s string) { steps = append(steps, s) })
		if err != nil || report.Checked != checked || len(steps) != checked || !slices.Equal(report.Restored, restored) || len(report.Differs) != len(differs) {
			t.Fatalf("%+v, %v; steps %q", report, err, steps)
		}
		for i, want := range differs {
			if !strings.Contains(report.Differs[i], want) {
				t.Errorf("%q does not say %q", report.Differs[i], want)
			}
		}
	}
	g(4, nil)

	rows, history := last.Version.RowsFile.Path, last.Edition.Sources[0].History.Path
	if err := errors.Join(os.Remove(filepath.Join(f.dir, rows)), os.Remove(filepath.Join(f.dir, history))); err != nil {
		t.Fatal(err)
	}
	g(4, []string{rows, history})
	g(4, nil)

	official := filepath.Join(f.dir, first.Version.Official.Path)
	if err := os.Rename(official, official+".x"); err != nil {
		t.Fatal(err)
	}
	g(4, nil, "filas de la versión 1")
	if err := os.Rename(official+".x", official); err != nil {
		t.Fatal(err)
	}

	// Rows of another reader are only compared.
	raise(t)
	g(4, nil)
	kept := filepath.Join(f.dir, rows)
	if err := os.Rename(kept, kept+".x"); err != nil {
		t.Fatal(err)
	}
	g(4, nil, "la leyó el lector 1", "historia de la edición 2")
	if err := os.Rename(kept+".x", kept); err != nil {
		t.Fatal(err)
	}

	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := Rebuild(ctx, f.c, func(string) { cancel(why) }); err != why {
		t.Errorf("interrupted: %v", err)
	}
}
