package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cotejo/ingest"
	"cotejo/jobs"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// mirrorServer serves a stage of the mirror; a stage that is not there is 404.
func mirrorServer(t *testing.T) (url string, stage *atomic.Int64) {
	stage = new(atomic.Int64)
	server := httptest.NewServer(mirror.Handler(func() int { return int(stage.Load()) }))
	t.Cleanup(server.Close)
	return server.URL, stage
}

// mirrorConfig is a configuration file that names a mirror.
func mirrorConfig(t *testing.T) (path string, stage *atomic.Int64) {
	url, stage := mirrorServer(t)
	return writeConfig(t, "mirror: "+url+"\n"), stage
}

func jobNamed(t *testing.T, replies []jobReply, name string) jobReply {
	t.Helper()
	for _, r := range replies {
		if r.Job == name {
			return r
		}
	}
	t.Fatalf("no hay tarea %s: %+v", name, replies)
	return jobReply{}
}

func TestJobsByHand(t *testing.T) {
	data := newData(t)
	config, stage := mirrorConfig(t)
	cotejo(t, exitNotFound, "jobs", "list", "--data", data)
	cotejo(t, 0, "accounts", "create", "ALFA", "--data", data)
	list := func() jobReply {
		t.Helper()
		return jobNamed(t, cotejoJSON[[]jobReply](t, "jobs", "list", "--data", data), "sat_69b")
	}
	if r := list(); r.Status != string(jobs.Pending) || r.Last != "" || r.Next != "" || len(r.Runs) != 0 {
		t.Errorf("%+v", r)
	}

	r := cotejoJSON[jobs.Run](t, "jobs", "run", "sat_69b", "--data", data, "--config", config)
	if r.Status != jobs.OK || !r.ByHand || r.Detail != "versión 1, corte 2026-05-31, 43 filas" {
		t.Errorf("%+v", r)
	}
	if out := cotejo(t, 0, "jobs", "run", "sat_69b", "--data", data, "--config", config); !strings.Contains(out, "sat_69b  sin_cambio: sin cambio") {
		t.Errorf("%s", out)
	}
	if out := cotejo(t, 0, "jobs", "run", "limpieza", "--data", data); !strings.HasPrefix(out, "limpieza  ") {
		t.Errorf("%s", out)
	}
	cotejo(t, exitNotFound, "jobs", "run", "nada", "--data", data)

	stage.Store(mirror.Stages) // nothing is published any more
	if says := failing(t, exitUnavailable, "jobs", "run", "sat_69b", "--data", data, "--config", config); !strings.Contains(says, "sat_69b: la fuente no está disponible") {
		t.Errorf("%s", says)
	}
	got := list()
	if got.Status != string(jobs.Failed) || len(got.Runs) != 3 || got.Success != list().Runs[1].Start.Format(time.RFC3339) || !strings.Contains(got.Detail, "404") {
		t.Errorf("%+v", got)
	}
	if got.Runs[0].Status != jobs.Failed || got.Runs[0].Error == "" || got.Runs[2].Status != jobs.OK {
		t.Errorf("%+v", got.Runs)
	}
	if out := cotejo(t, 0, "jobs", "list", "--data", data); !strings.Contains(out, "error: sat_69b: la fuente no está disponible") {
		t.Errorf("%s", out)
	}
}

func TestAJobIsBusyOrPartialLikeAnIngest(t *testing.T) {
	data := loadedData(t, 1)
	config, _ := mirrorConfig(t) // of stage 0, older than what serves
	cotejo(t, 0, "accounts", "create", "ALFA", "--data", data)
	if says := failing(t, exitPartial, "jobs", "run", "sat_69b", "--data", data, "--config", config); !strings.Contains(says, "cotejo sources show sat_69b") {
		t.Errorf("%s", says)
	}
	dir, err := openDataDir(data, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.sources.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	cotejo(t, exitTryAgain, "jobs", "run", "sat_69b", "--data", data, "--config", config)
	if r := jobNamed(t, cotejoJSON[[]jobReply](t, "jobs", "list", "--data", data), "sat_69b"); r.Status != string(jobs.Busy) {
		t.Errorf("%+v", r)
	}
}

// TestJobsRunInTheServer speaks to a server, and leaves with its progress.
func TestJobsRunInTheServer(t *testing.T) {
	data := newData(t)
	config, _ := mirrorConfig(t)
	n, err := openNode(t.Context(), must(loadConfiguration(config, map[string]string{"data": data}, nil))(t), mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := startService(t.Context(), n, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if code := run(t.Context(), []string{"jobs", "run", "sat_69b", "--data", data}, &out, &progress); code != 0 {
		t.Errorf("código %d: %s%s", code, &out, &progress)
	}
	if !strings.Contains(out.String(), "sat_69b  ok: versión 1") || !strings.Contains(progress.String(), "sat_69b: leyendo, ") {
		t.Errorf("%s%s", &out, &progress)
	}
	states := n.jobStates()
	if states[0].Name != "sat_69b" || states[0].Status != "ok" || !states[0].Next.IsZero() {
		t.Errorf("sin quien siga el horario: %+v", states[0])
	}
	s.startJobs()
	waitFor(t, func() bool { return !n.jobStates()[0].Next.IsZero() }, func() string { return "nadie sigue el horario" })
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if states := n.jobStates(); states[0].Status != "ok" {
		t.Errorf("%+v", states)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestSourcesTakeTurns: one process loads one source at a time, and who waits
// for its turn ends with its context.
func TestSourcesTakeTurns(t *testing.T) {
	dir, err := openDataDir(newData(t), mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	turn := make(chan struct{}, 1)
	turn <- struct{}{} // another one loads
	job := sourceJob(dir, "sat_69b", sourceSpec(0), configuration{}, turn)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := job.Run(ctx, now(), func(string) {}); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

func TestSourceSpecsAreApart(t *testing.T) {
	f := func(i int, want string) {
		t.Helper()
		if got := sourceSpec(i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	f(0, "7 4,13 * * *")
	f(1, "17 4,13 * * *")
	f(5, "57 4,13 * * *")
	f(6, "7 5,14 * * *")
	f(40, "47 10,19 * * *")
	seen := map[string]bool{}
	for i := range 64 {
		if spec := sourceSpec(i); seen[spec] {
			t.Errorf("%d: %s twice", i, spec)
		} else {
			seen[spec] = true
		}
	}
}

func TestSourcesListAndShow(t *testing.T) {
	data := newData(t)
	cotejo(t, exitNotFound, "sources", "list", "--data", data)
	for stage := range 2 {
		cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, stage), "--data", data)
	}
	page := t.TempDir() + "/pagina.csv"
	if err := os.WriteFile(page, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	cotejo(t, exitPartial, "ingest", "--file", "sat_69b="+page, "--data", data)

	type state struct {
		Source  string `json:"source"`
		State   string `json:"estado"`
		Version int    `json:"source_version_id"`
		Corte   string `json:"corte"`
		Age     *int   `json:"antiguedad_dias"`
		URL     string `json:"url"`

		Quarantine *struct {
			Version int `json:"source_version_id"`
		} `json:"cuarentena"`
		Versions []versionReply `json:"versiones"`
	}
	list := cotejoJSON[[]state](t, "sources", "list", "--data", data)
	if s := list[0]; s.Source != "sat_69b" || s.State != "en_cuarentena" || s.Version != 2 || s.Corte != "2026-06-30" || s.Age == nil || s.Quarantine.Version != 3 {
		t.Errorf("%+v", s)
	}
	if s := list[1]; s.Source != "sat_69b_bis" || s.State != "no_cargada" || s.Age != nil {
		t.Errorf("%+v", s)
	}
	s := cotejoJSON[state](t, "sources", "show", "sat_69b", "--data", data)
	if len(s.Versions) != 3 || !strings.HasPrefix(s.URL, "https://") || s.State != "en_cuarentena" {
		t.Fatalf("%+v", s)
	}
	if v := s.Versions[0]; v.ID != 3 || v.State != "cuarentena" || v.Serving || len(v.Faults) != 1 || v.Faults[0].Code != "HTML" {
		t.Errorf("%+v", v)
	}
	if v := s.Versions[1]; v.ID != 2 || v.State != "aceptada" || !v.Serving || v.Rows == 0 || len(v.Faults) != 0 {
		t.Errorf("%+v", v)
	}
	if out := cotejo(t, 0, "sources", "list", "--data", data); !strings.Contains(out, "versión 3 en cuarentena; vea «cotejo sources show sat_69b»") {
		t.Errorf("%s", out)
	}
	if out := cotejo(t, 0, "sources", "show", "sat_69b", "--data", data); !strings.Contains(out, "*     2") || !strings.Contains(out, "HTML: ") {
		t.Errorf("%s", out)
	}
	cotejo(t, exitUsage, "sources", "show", "nada", "--data", data)
}

// TestDecisionsByHand takes a version with far fewer rows: once it stays out for
// good, and once it serves.
func TestDecisionsByHand(t *testing.T) {
	data := loadedData(t, 3)
	short := func(keep int) string {
		lines := strings.SplitAfter(string(mirrorFile(t, 3)), "\n")
		path := t.TempDir() + "/corto.csv"
		if err := os.WriteFile(path, []byte(strings.Join(lines[:keep], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second := short(24), short(30)
	cotejo(t, exitPartial, "ingest", "--file", "sat_69b="+first, "--data", data)
	cotejo(t, exitUsage, "sources", "reject", "2", "--data", data)
	cotejo(t, exitUsage, "sources", "reject", "2", "--who", " ", "--why", "nada", "--data", data)
	cotejo(t, exitNotFound, "sources", "reject", "9", "--who", "Ana Ruiz", "--why", "no existe", "--data", data)

	r := cotejoJSON[decisionReply](t, "sources", "reject", "2", "--who", "Ana Ruiz", "--why", "está cortado", "--data", data)
	if d := r.Decision; d.VersionID != 2 || d.Source != "sat_69b" || d.Decision != snapshots.DecisionRejected || d.Who != "Ana Ruiz" || d.Why != "está cortado" || r.Result != nil {
		t.Errorf("%+v", r)
	}
	cotejo(t, 0, "ingest", "--file", "sat_69b="+first, "--data", data)
	if out := cotejo(t, 0, "sources", "list", "--data", data); strings.Contains(out, "en_cuarentena") || !strings.Contains(out, "versión 2 en cuarentena, rechazada el ") {
		t.Errorf("%s", out)
	}

	cotejo(t, exitPartial, "ingest", "--file", "sat_69b="+second, "--data", data)
	out := cotejo(t, 0, "sources", "accept", "3", "--who", "Luis Paz", "--why", "el SAT retiró 20 filas por sentencia", "--data", data)
	if !strings.Contains(out, "versión 3 aceptada por Luis Paz") || !strings.Contains(out, "sat_69b  ✓ versión 4") {
		t.Errorf("%s", out)
	}
	show := cotejoJSON[sourceReply](t, "sources", "show", "sat_69b", "--data", data)
	if v := show.Versions[0]; v.ID != 4 || !v.Serving || v.Accepted != 3 || len(v.Decisions) != 0 || show.Quarantine != nil {
		t.Errorf("%+v", show)
	}
	if v := show.Versions[1]; v.ID != 3 || v.Serving || len(v.Decisions) != 1 || v.Decisions[0].Who != "Luis Paz" {
		t.Errorf("%+v", v)
	}
	if out := cotejo(t, 0, "sources", "show", "sat_69b", "--data", data); !strings.Contains(out, "rechazada por Ana Ruiz el ") || !strings.Contains(out, ": está cortado") {
		t.Errorf("%s", out)
	}
	// Nothing is left to decide.
	cotejo(t, exitUsage, "sources", "accept", "4", "--who", "Luis Paz", "--why", "otra vez", "--data", data)
	cotejo(t, 0, "verify", "all", "--data", data)
}

func TestPartialListsAreShown(t *testing.T) {
	data := loadedData(t, 0)
	dir, err := openDataDir(data, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.sources.Lock()
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := dir.sources.LastAttempt("sat_69b")
	if err != nil {
		t.Fatal(err)
	}
	last.Notices = []snapshots.Notice{{Code: "PARCIAL_DIFIERE", Message: "Presuntos.csv dice otra cosa"}}
	last.Partials = []snapshots.Partial{{File: "Presuntos.csv", Rows: 9, State: "difiere", Missing: 2, Extra: 1, Example: []string{"EFO010101AA1 Presunto"}}}
	err = dir.sources.RecordAttempt(last)
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	out := cotejo(t, 0, "sources", "show", "sat_69b", "--data", data)
	for _, want := range []string{"aviso PARCIAL_DIFIERE: Presuntos.csv dice otra cosa", "parcial Presuntos.csv: difiere", "faltan 2, sobran 1", "EFO010101AA1 Presunto"} {
		if !strings.Contains(out, want) {
			t.Errorf("falta %q:\n%s", want, out)
		}
	}
	s := cotejoJSON[struct {
		Partials []snapshots.Partial `json:"parciales"`
	}](t, "sources", "show", "sat_69b", "--data", data)
	if len(s.Partials) != 1 || len(s.Partials[0].Example) != 1 {
		t.Errorf("%+v", s)
	}
}

// TestEverySourceHasAJob, under its own name: health finds it by that.
func TestEverySourceHasAJob(t *testing.T) {
	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": newData(t)}}, mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	var names []string
	for _, s := range n.jobs.States() {
		names = append(names, s.Job)
	}
	for _, id := range append(ingest.Sources(), "limpieza", "reclamos") {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+id+" ") {
			t.Errorf("no hay tarea %s: %v", id, names)
		}
	}
}

// TestSourcesAreApart: each source has its ten minutes twice a day, after the clean-up
// and before offices open. The years that are over take none of them.
func TestSourcesAreApart(t *testing.T) {
	taken := map[string]string{}
	specs := sourceSpecs()
	daily := 0
	for i, id := range ingest.Sources() {
		spec := specs[i]
		if other := taken[spec]; other != "" {
			t.Errorf("%s and %s: %s", id, other, spec)
		}
		taken[spec] = id
		if rare, every := rareSpec(id); every > 0 {
			if spec != rare {
				t.Errorf("%s: %s, want %s", id, spec, rare)
			}
			continue
		}
		var minute, first, second int
		if _, err := fmt.Sscanf(spec, "%d %d,%d * * *", &minute, &first, &second); err != nil || first*60+minute != 4*60+7+10*daily || second != first+9 || first > 7 {
			t.Errorf("%s: %s, %v", id, spec, err)
		}
		daily++
	}
	if daily != 5+len(query.Art69Lists)+1 {
		t.Errorf("%d sources a day", daily)
	}
}

// TestRareSources: the contracts of a year that is over and the open-data table of
// sanctioned suppliers are looked at once a month, no two on one night; the files of
// sanctioned suppliers that operators load once a week, no two on one day; all others
// every day.
func TestRareSources(t *testing.T) {
	data := newData(t)
	n, err := openNode(t.Context(), must(loadConfiguration("", map[string]string{"data": data}, nil))(t), mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	taken := map[string]string{}
	monthly, weekly := 0, 0
	for _, id := range ingest.Sources() {
		spec, every := rareSpec(id)
		year, ofContracts := strings.CutPrefix(id, "compranet_")
		table := id == "sfp_proveedores_sancionados"
		dropped := strings.HasPrefix(id, "pdn_s3_") || strings.HasPrefix(id, "sabg_")
		switch {
		case ofContracts && year != "2026", table:
			monthly++
			day, err := strconv.Atoi(strings.Fields(spec + " x x x")[2])
			if every != 31*24*time.Hour || err != nil || day < 1 || day > 28 || !strings.HasSuffix(spec, " * *") {
				t.Errorf("%s: %q every %v", id, spec, every)
			}
		case dropped:
			weekly++
			if every != 7*24*time.Hour || !strings.Contains(spec, " * * ") || strings.HasSuffix(spec, "*") {
				t.Errorf("%s: %q every %v", id, spec, every)
			}
		case every != 0:
			t.Errorf("%s: every %v", id, every)
		}
		if other := taken[spec]; every > 0 && other != "" {
			t.Errorf("%s: %q, as %s", id, spec, other)
		}
		taken[spec] = id
	}
	if monthly != 9 || weekly != 5 {
		t.Errorf("%d monthly, %d weekly", monthly, weekly)
	}
	for _, j := range n.jobStates() {
		if _, every := rareSpec(j.Name); every != j.Every {
			t.Errorf("%s: every %v", j.Name, j.Every)
		}
	}
}
