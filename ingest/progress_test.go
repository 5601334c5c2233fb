package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cotejo/civil"
)

// clock advances by step at every look.
func clock(step time.Duration) func() time.Time {
	now := time.Date(2026, 11, 20, 5, 14, 0, 0, civil.Zone)
	return func() time.Time {
		now = now.Add(step)
		return now
	}
}

func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, now: clock(500 * time.Millisecond)}
	p.Report(Step{Source: "sat_69b", Phase: Waiting, Attempt: 2, Attempts: 4, Wait: 3500 * time.Millisecond, Reason: "respondió 503"})
	p.Report(Step{Source: "sat_69b", Phase: Obtaining, Bytes: 10, Total: 20})
	p.Report(Step{Source: "sat_69b", Phase: Obtaining, Bytes: 20, Total: 20, Done: true})
	p.Report(Step{Source: "sat_69b", Phase: Reading, Bytes: 20, Total: 20, Rows: 8, Done: true})
	p.Report(Step{Source: "sat_69b", Phase: Saving, Rows: 8})
	p.Done()
	const want = "2026-11-20T05:14:00-06:00 sat_69b esperando 2/4 3.500s respondió 503\n" +
		"2026-11-20T05:14:01-06:00 sat_69b descargando 0 20 0.500s\n2026-11-20T05:14:02-06:00 sat_69b leyendo 8 20 0.000s\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestProgressOfAnIngestion(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	f := newFixture(t)
	if _, err := f.ingest(Request{File: "testdata/listado_69b.csv", Progress: p.Report}); err != nil {
		t.Fatal(err)
	}
	p.Done()
	var phases []string
	for line := range strings.Lines(out.String()) {
		phases = append(phases, strings.Join(strings.Fields(line)[1:4], " "))
	}
	if got := strings.Join(phases, ", "); got != "sat_69b descargando 0, sat_69b leyendo 8, sat_69b guardando 8, sat_69b publicando 8" {
		t.Error(got)
	}
}

func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, terminal: true, now: clock(time.Second)}
	f := func(s Step, says, hides string) {
		t.Helper()
		out.Reset()
		s.Source = "sat_69b"
		p.Report(s)
		got := out.String()
		if !strings.Contains(got, says) || hides != "" && strings.Contains(got, hides) || strings.Contains(got, "\n") {
			t.Errorf("%+v: %q should contain %q, not %q", s, got, says, hides)
		}
	}
	f(Step{Phase: Obtaining, Bytes: 25 << 10, Total: 100 << 10}, "sat_69b  descargando", "quedan")
	f(Step{Phase: Obtaining, Bytes: 50 << 10, Total: 100 << 10}, "50%", "quedan")
	f(Step{Phase: Obtaining, Bytes: 50 << 10, Total: 100 << 10}, "quedan 3 s", "")
	f(Step{Phase: Obtaining, Bytes: 100 << 10, Total: 100 << 10, Done: true}, "\r", "descargando")
	f(Step{Phase: Reading, Bytes: 10, Rows: 8}, "leyendo  8 filas", "%")
	f(Step{Phase: "recibiendo", Bytes: 1 << 30, Rows: 250, Of: 1000}, "recibiendo  250 filas", "quedan")
	f(Step{Phase: "recibiendo", Bytes: 1 << 30, Rows: 250, Of: 1000}, "25%", "GB")
	f(Step{Phase: "recibiendo", Bytes: 2 << 30, Rows: 500, Of: 1000}, "quedan 3 s", "")
	out.Reset()
	p.Report(Step{Source: "sat_69b", Phase: Waiting, Attempt: 2, Attempts: 4, Wait: 3500 * time.Millisecond, Reason: "cortó la conexión"})
	if !strings.HasSuffix(out.String(), "\r  sat_69b  cortó la conexión; intento 2 de 4 en 4 s\n") {
		t.Errorf("%q", out.String())
	}
	p.Done()
}

func TestProgressGoesToAFileAsLines(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if NewProgress(f).terminal {
		t.Error("a file is not a terminal")
	}
}
