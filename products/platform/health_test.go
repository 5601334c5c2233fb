package platform

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/sandbox"
	"cotejo/snapshots"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, civil.Zone)

// healthFixture is a catalogue with the synthetic list in service.
type healthFixture struct {
	t    *testing.T
	dir  string
	c    *snapshots.Catalogue
	live *snapshots.Live
	now  time.Time
}

func newHealthFixture(t *testing.T) *healthFixture {
	t.Helper()
	f := &healthFixture{t: t, dir: t.TempDir(), now: noon}
	var err error
	if f.c, err = snapshots.OpenCatalogue(f.dir); err != nil {
		t.Fatal(err)
	}
	file := sandbox.Files()[0]
	if _, err := ingest.Ingest(context.Background(), f.c, ingest.Request{Source: file.Source, Name: file.Name, Content: file.Open, Now: noon}); err != nil {
		t.Fatal(err)
	}
	if f.live, err = snapshots.NewLive(f.c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.live.Close() })
	return f
}

// attempt records how one ended, an hour after the one before.
func (f *healthFixture) attempt(a snapshots.Attempt) {
	f.t.Helper()
	unlock, err := f.c.Lock()
	if err != nil {
		f.t.Fatal(err)
	}
	defer unlock()
	f.now = f.now.Add(time.Hour)
	a.Source = "sat_69b"
	if a.At == "" {
		a.At = civil.Timestamp(f.now)
	}
	if err := f.c.RecordAttempt(a); err != nil {
		f.t.Fatal(err)
	}
}

func (f *healthFixture) overwrite(path string) {
	f.t.Helper()
	path = filepath.Join(f.dir, path)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("dañado"), 0o444)); err != nil {
		f.t.Fatal(err)
	}
}

// wants compares what health says of the source, and the kinds of its alerts.
func (f *healthFixture) wants(state, checked string, alerts ...string) sourceState {
	f.t.Helper()
	h := &health{Config: Config{Catalogue: f.c, Live: f.live, Now: func() time.Time { return f.now }}}
	resp, err := h.read()
	if err != nil {
		f.t.Fatal(err)
	}
	var a healthAnswer
	if err := json.Unmarshal(resp.Body, &a); err != nil {
		f.t.Fatal(err)
	}
	s := a.Sources[0]
	if s.State != state || s.Checked == nil && checked != "" || s.Checked != nil && *s.Checked != checked {
		f.t.Errorf("%s", resp.Body)
	}
	if len(a.Alerts) != len(alerts) {
		f.t.Fatalf("alerts %+v, want %q", a.Alerts, alerts)
	}
	for i, want := range alerts {
		kind, says, _ := strings.Cut(want, " ")
		if a.Alerts[i].Kind != kind || !strings.Contains(a.Alerts[i].Message, says) {
			f.t.Errorf("alert %+v, want %q", a.Alerts[i], want)
		}
	}
	return s
}

func TestStateIsThatOfTheLastAttempt(t *testing.T) {
	f := newHealthFixture(t)
	hour := func(n int) string { return civil.Timestamp(noon.Add(time.Duration(n) * time.Hour)) }
	f.wants(loaded, hour(0))
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	if s := f.wants(noAnswer, hour(1), "FUENTE_NO_RESPONDE sat_69b"); s.Failure == nil || *s.Failure != "respondió 403" || *s.VersionID != 1 {
		t.Errorf("%+v", s)
	}
	fault := snapshots.Fault{Code: "MENOS_FILAS", Message: "faltan"}
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeQuarantined, VersionID: 5, Faults: []snapshots.Fault{fault}})
	if s := f.wants(quarantined, hour(2), "FUENTE_EN_CUARENTENA sat_69b"); s.Failure != nil || s.Quarantine.VersionID != 5 || s.Quarantine.Faults[0] != fault {
		t.Errorf("%+v", s)
	}
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeUnchanged, VersionID: 1})
	if s := f.wants(loaded, hour(3)); s.Quarantine != nil || s.Failure != nil {
		t.Errorf("%+v", s)
	}
	// A record older than what serves is of a process that died before it wrote its own.
	f.attempt(snapshots.Attempt{At: hour(-1), Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	f.wants(loaded, hour(0))
}

func TestHealthNamesDamagedFiles(t *testing.T) {
	f := newHealthFixture(t)
	checked := civil.Timestamp(noon)
	quarantine := func() {
		t.Helper()
		f.now = f.now.Add(time.Hour)
		r, err := ingest.Ingest(context.Background(), f.c, ingest.Request{Source: "sat_69b", File: f.page(), Now: f.now})
		if err != nil || r.Outcome != ingest.Quarantined || r.Version.ID != 2 {
			t.Fatal(r, err)
		}
	}
	quarantine()
	f.overwrite("versions/2.json")
	f.wants(quarantined, civil.Timestamp(f.now), "ARCHIVO_DANADO versions/2.json", "FUENTE_EN_CUARENTENA sat_69b")
	f.overwrite("checked/sat_69b.json")
	f.wants(loaded, checked, "ARCHIVO_DANADO versions/2.json", "ARCHIVO_DANADO checked/sat_69b.json")

	f.overwrite("editions/1.json")
	live, err := snapshots.NewLive(f.c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	f.live.Close()
	f.live = live
	s := f.wants(notLoaded, "", "EDICION_DANADA editions/1.json", "ARCHIVO_DANADO versions/2.json", "ARCHIVO_DANADO checked/sat_69b.json")
	if s.Help != nil {
		t.Errorf("loading it again does not mend it: %s", *s.Help)
	}
}

func (f *healthFixture) page() string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte("<html>"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}
