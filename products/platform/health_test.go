package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/sandbox"
	"cotejo/snapshots"
)

var noon = time.Date(2026, 10, 10, 12, 0, 0, 0, civil.Zone)

// healthFixture is a catalogue with the synthetic list in service.
type healthFixture struct {
	t    *testing.T
	dir  string
	c    *snapshots.Catalogue
	live *snapshots.Live
	now  time.Time
	jobs []Job
	body string // of the last answer
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
func (f *healthFixture) wants(state, checked string, alerts ...string) SourceState {
	f.t.Helper()
	h := &health{Config: Config{Catalogue: f.c, Live: f.live, Now: func() time.Time { return f.now }, Jobs: func() []Job { return f.jobs }}}
	resp, err := h.read()
	if err != nil {
		f.t.Fatal(err)
	}
	f.body = string(resp.Body)
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
	f.wants(upToDate, hour(0))
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
	if s := f.wants(upToDate, hour(3)); s.Quarantine != nil || s.Failure != nil {
		t.Errorf("%+v", s)
	}
	// A record older than what serves is of a process that died before it wrote its own.
	f.attempt(snapshots.Attempt{At: hour(-1), Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	f.wants(upToDate, hour(0))
}

// TestAQuarantineOutlivesAServerThatIsDown: what waits for a person does not stop
// waiting because a later download failed.
func TestAQuarantineOutlivesAServerThatIsDown(t *testing.T) {
	f := newHealthFixture(t)
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeQuarantined, VersionID: 5, Faults: []snapshots.Fault{{Code: "MENOS_FILAS", Message: "faltan"}}})
	before, _, err := f.c.LastAttempt("sat_69b")
	if err != nil {
		t.Fatal(err)
	}
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeFailed, Error: "respondió 403", Before: &before})
	s := f.wants(noAnswer, civil.Timestamp(f.now), "FUENTE_EN_CUARENTENA", "FUENTE_NO_RESPONDE")
	if s.Quarantine == nil || s.Quarantine.VersionID != 5 || s.Failure == nil {
		t.Errorf("%+v", s)
	}
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeUnchanged, VersionID: 1})
	f.wants(upToDate, civil.Timestamp(f.now))
}

// TestAClockThatWasAheadHidesNothing: what was written under a date in the future
// neither silences later failures nor counts as a look at the authority.
func TestAClockThatWasAheadHidesNothing(t *testing.T) {
	f := newHealthFixture(t) // its version was downloaded at noon
	f.now = noon.Add(-48 * time.Hour)
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	f.jobs = []Job{{Name: "sat_69b", Status: jobFailed, Success: noon, Next: f.now.Add(time.Hour)}}
	if s := f.wants(noAnswer, civil.Timestamp(f.now), "FUENTE_NO_RESPONDE"); !s.seen(f.jobs, f.now).IsZero() {
		t.Errorf("seen at %v", s.seen(f.jobs, f.now))
	}
}

// TestAgeIsMeasuredByTheDateOfTheVersion: the synthetic list is of 31 August,
// and 60 days are its rhythm.
func TestAgeIsMeasuredByTheDateOfTheVersion(t *testing.T) {
	f := newHealthFixture(t)
	check := func() { f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeUnchanged, VersionID: 1}) }
	day := func(n int) { // of October
		f.now = time.Date(2026, 10, n, 10, 0, 0, 0, civil.Zone)
		check()
	}
	day(30)
	if s := f.wants(upToDate, civil.Timestamp(f.now)); *s.Age != 60 || s.MaxAge == nil || *s.MaxAge != 60 {
		t.Errorf("%+v", s)
	}
	day(31)
	if s := f.wants(overdue, civil.Timestamp(f.now), "FUENTE_ATRASADA del 2026-08-31, de hace 61 días"); *s.Age != 61 {
		t.Errorf("%+v", s)
	}
	// Who does not answer is named first; the age is an alarm all the same.
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	f.wants(noAnswer, civil.Timestamp(f.now), "FUENTE_ATRASADA", "FUENTE_NO_RESPONDE")
	// A clock behind the version makes no negative age.
	checked := civil.Timestamp(f.now)
	f.now = time.Date(2026, 8, 1, 10, 0, 0, 0, civil.Zone)
	if s := f.wants(noAnswer, checked, "FUENTE_NO_RESPONDE"); *s.Age != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARejectedQuarantineRaisesNoAlarm(t *testing.T) {
	f := newHealthFixture(t)
	f.now = f.now.Add(time.Hour)
	if r, err := ingest.Ingest(context.Background(), f.c, ingest.Request{Source: "sat_69b", File: f.page(), Now: f.now}); err != nil || r.Version.ID != 2 {
		t.Fatal(r, err)
	}
	checked := civil.Timestamp(f.now)
	if s := f.wants(quarantined, checked, "FUENTE_EN_CUARENTENA cotejo sources show sat_69b"); s.Quarantine.Decision != nil {
		t.Errorf("%+v", s.Quarantine)
	}
	unlock, err := f.c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.c.Decide(snapshots.Decision{VersionID: 2, Decision: snapshots.DecisionRejected, Who: "Ana Prueba", Why: "es una página"}, f.now)
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	s := f.wants(upToDate, checked)
	if s.Quarantine == nil || s.Quarantine.VersionID != 2 || *s.Quarantine.Decision != (DecisionState{"rechazada", d.At}) {
		t.Errorf("%+v", s.Quarantine)
	}
	if strings.Contains(f.body, "Ana") || strings.Contains(f.body, "es una página") {
		t.Errorf("health tells who decided: %s", f.body)
	}
}

func TestNoticesAndPartialListsAreShown(t *testing.T) {
	f := newHealthFixture(t)
	f.attempt(snapshots.Attempt{
		Outcome: snapshots.OutcomeUnchanged, VersionID: 1,
		Notices: []snapshots.Notice{{Code: "PARCIAL_DIFIERE", Message: "Presuntos.csv dice otra cosa"}, {Code: "ENLACE_CAMBIO", Message: "cambió"}},
		Partials: []snapshots.Partial{
			{File: "Presuntos.csv", Corte: civil.Date{Year: 2026, Month: 8, Day: 31}, Rows: 9, State: "difiere", Missing: 2, Extra: 1, Example: []string{"EFO010101AA1 Presunto"}},
			{File: "Definitivos.csv", State: "no_obtenido", Message: "respondió 404"},
		},
	})
	s := f.wants(upToDate, civil.Timestamp(f.now), "FUENTE_CON_AVISOS (PARCIAL_DIFIERE, ENLACE_CAMBIO)")
	if len(s.Notices) != 2 || s.Notices[0].Message != "Presuntos.csv dice otra cosa" || len(s.Partials) != 2 {
		t.Fatalf("%+v", s)
	}
	p, q := s.Partials[0], s.Partials[1]
	if *p.Corte != "2026-08-31" || p.Rows != 9 || p.State != "difiere" || p.Missing != 2 || p.Extra != 1 || p.Message != nil || q.Corte != nil || *q.Message != "respondió 404" {
		t.Errorf("%+v %+v", p, q)
	}
}

// TestASourceThatNobodySeesIsAnAlarm: the last time that counts is that of the
// version, of an attempt that got an answer, or of the job that renews it.
func TestASourceThatNobodySeesIsAnAlarm(t *testing.T) {
	f := newHealthFixture(t)
	later := func(d time.Duration) time.Time { return noon.Add(d) }
	const limit = 36 * time.Hour
	job := func(success time.Time, scheduled bool) {
		j := Job{Name: "sat_69b", Status: "interrumpida", Success: success}
		if scheduled {
			j.Next = f.now.Add(time.Hour)
		}
		f.jobs = []Job{j}
	}
	checked := civil.Timestamp(noon)
	f.now = later(limit)
	job(time.Time{}, true)
	f.wants(upToDate, checked)
	f.now = later(limit + time.Second)
	f.wants(upToDate, checked, "FUENTE_SIN_REVISAR desde "+checked)
	job(later(time.Minute), true)
	f.wants(upToDate, checked)
	job(time.Time{}, false) // tasks are off: whoever turned them off looks by other means
	f.wants(upToDate, checked)
	f.jobs = []Job{{Name: "sat_69b", Status: jobRunning}}
	f.wants(upToDate, checked, "FUENTE_SIN_REVISAR")
	f.jobs = []Job{{Name: "otra", Status: jobFailed}}
	f.wants(upToDate, checked, "TAREA_FALLIDA otra")
	// A failure of the server is the source's alarm, not the task's.
	f.now = noon
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	f.jobs = []Job{{Name: "sat_69b", Status: jobFailed}}
	f.wants(noAnswer, civil.Timestamp(f.now), "FUENTE_NO_RESPONDE")
}

func TestMeasure(t *testing.T) {
	f := newHealthFixture(t)
	measured := func() string {
		var b strings.Builder
		Measure(Config{Catalogue: f.c, Live: f.live, Now: func() time.Time { return f.now }, Jobs: func() []Job { return f.jobs }})
		metrics.WritePrometheus(&b, false)
		return b.String()
	}
	has := func(text string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
	}
	ed := f.live.Acquire()
	rows := ed.Source("sat_69b").Version().Rows
	ed.Release()
	// From the start of 31 August to noon of 10 October.
	has(measured(), `cotejo_edition_id 1`, fmt.Sprintf(`cotejo_source_age_seconds{source="sat_69b"} %d`, 40*86400+12*3600),
		fmt.Sprintf(`cotejo_source_rows{source="sat_69b"} %d`, rows),
		`cotejo_source_quarantined{source="sat_69b"} 0`,
		`cotejo_source_age_seconds{source="sat_69b_bis"} NaN`, `cotejo_source_rows{source="sat_69b_bis"} 0`)
	const success = "cotejo_source_last_success_timestamp_seconds"
	has(measured(), fmt.Sprintf(`%s{source="sat_69b"} %d`, success, noon.Unix()), success+`{source="sat_69b_bis"} 0`)
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeQuarantined, VersionID: 5, Faults: []snapshots.Fault{{Code: "HTML", Message: "página"}}})
	has(measured(), `cotejo_source_quarantined{source="sat_69b"} 1`, fmt.Sprintf(`%s{source="sat_69b"} %d`, success, f.now.Unix()))
	// Of one that failed since, the task knows when it last did its work.
	f.attempt(snapshots.Attempt{Outcome: snapshots.OutcomeFailed, Error: "respondió 403"})
	f.jobs = []Job{{Name: "sat_69b", Success: f.now.Add(-time.Minute)}}
	has(measured(), fmt.Sprintf(`%s{source="sat_69b"} %d`, success, f.now.Add(-time.Minute).Unix()))
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
	f.wants(upToDate, checked, "ARCHIVO_DANADO versions/2.json", "ARCHIVO_DANADO checked/sat_69b.json")

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

// TestEveryIncludedListSaysWhy: one that no source renews has a reason, and the
// others name a source that there is.
func TestEveryIncludedListSaysWhy(t *testing.T) {
	ids := map[string]bool{}
	for _, schema := range known {
		ids[schema.Source] = true
	}
	lists := included(catalog.Embedded())
	if len(lists) != len(renewed) {
		t.Errorf("%d lists, %d reasons", len(lists), len(renewed))
	}
	for _, l := range lists {
		if l.Why == "" || l.Replaced != nil && !ids[*l.Replaced] || !l.Serves {
			t.Errorf("%+v", l)
		}
	}
}

// TestUnconfiguredIsNoFailure: what a source lacks is said, and raises no alarm.
func TestUnconfiguredIsNoFailure(t *testing.T) {
	f := newHealthFixture(t)
	lacks := func(id string) string {
		if id == "banxico_fix" || id == "sat_69b" {
			return "falta un token"
		}
		return ""
	}
	job := Job{Name: "sat_69b", Status: jobUnconfigured, Last: noon, Next: noon.Add(96 * time.Hour)}
	f.now = noon.Add(72 * time.Hour) // long unseen, but nobody was to look
	h := &health{Config: Config{
		Catalogue: f.c, Live: f.live, Now: func() time.Time { return f.now }, Lacks: lacks, Jobs: func() []Job { return []Job{job} },
	}}
	resp, err := h.read()
	if err != nil {
		t.Fatal(err)
	}
	var a healthAnswer
	if err := json.Unmarshal(resp.Body, &a); err != nil {
		t.Fatal(err)
	}
	f1 := func(i int, state, help string) {
		t.Helper()
		if s := a.Sources[i]; s.State != state || s.Help == nil && help != "" || s.Help != nil && *s.Help != help {
			t.Errorf("%+v", s)
		}
	}
	f1(0, upToDate, "falta un token") // it serves, and says why it will not be renewed
	f1(1, notLoaded, "Cargue la fuente con: cotejo ingest sat_69b_bis")
	f1(2, unconfigured, "falta un token")
	if len(a.Alerts) != 0 || a.Jobs[0].Status != "sin_configurar" {
		t.Errorf("%+v %+v", a.Alerts, a.Jobs)
	}
	// The same task that only failed to see it is an alarm.
	job.Status, f.now = "ocupada", f.now.Add(time.Hour)
	if resp, err = h.read(); err != nil || !strings.Contains(string(resp.Body), "FUENTE_SIN_REVISAR") {
		t.Errorf("%s %v", resp.Body, err)
	}
}
