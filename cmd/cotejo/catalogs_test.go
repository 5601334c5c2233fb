package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/jobs"
	"cotejo/products/platform"
	"cotejo/query"
	"cotejo/testdata/mirror"
)

// TestWithoutAToken: said plainly where the source is named, passed over where all
// are asked for, and no failure of a job.
func TestWithoutAToken(t *testing.T) {
	data := newData(t)
	const how = "https://www.banxico.org.mx/SieAPIRest/service/v1/token"
	if says := failing(t, exitConfig, "ingest", "banxico_fix", "--data", data); !strings.Contains(says, how) || !strings.Contains(says, "banxico_token_file") {
		t.Errorf("%s", says)
	}
	if says := failing(t, exitConfig, "ingest", "ift_numeracion", "--data", data); !strings.Contains(says, "descarga-publica.xhtml") {
		t.Errorf("%s", says)
	}
	cotejo(t, 0, "accounts", "create", "ALFA", "--data", data)
	if says := failing(t, exitConfig, "jobs", "run", "banxico_fix", "--data", data); !strings.Contains(says, how) {
		t.Errorf("%s", says)
	}
	j := jobNamed(t, cotejoJSON[[]jobReply](t, "jobs", "list", "--data", data), "banxico_fix")
	if j.Status != string(jobs.Unconfigured) || j.Success != "" || j.Runs[0].Error != "" || !strings.Contains(j.Detail, how) {
		t.Errorf("%+v", j)
	}
	fix := func(args ...string) platform.SourceState {
		t.Helper()
		for _, s := range cotejoJSON[[]platform.SourceState](t, append([]string{"sources", "list", "--data", data}, args...)...) {
			if s.Source == "banxico_fix" {
				return s
			}
		}
		t.Fatal("no hay banxico_fix")
		return platform.SourceState{}
	}
	if s := fix(); s.State != "sin_configurar" || s.Help == nil || !strings.Contains(*s.Help, how) || s.Failure != nil {
		t.Errorf("%+v", s)
	}
	// With one it is a source that was not loaded.
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("c4a4", 16)), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := fix("--banxico-token-file", token); s.State != "no_cargada" || s.Help != nil {
		t.Errorf("%+v", s)
	}
	if out := cotejo(t, 0, "config", "show", "--banxico-token-file", token); !strings.Contains(out, token) || strings.Contains(out, "c4a4") {
		t.Errorf("%s", out)
	}
	if err := os.Chmod(token, 0o644); err != nil {
		t.Fatal(err)
	}
	if says := failing(t, exitConfig, "sources", "list", "--data", data, "--banxico-token-file", token); !strings.Contains(says, "chmod 600") || strings.Contains(says, "c4a4") {
		t.Errorf("%s", says)
	}
}

// TestIngestOfAll takes what a mirror has; without one, what cannot be had is said
// and is no failure.
func TestIngestOfAll(t *testing.T) {
	config, stage := mirrorConfig(t)
	stage.Store(mirror.Stages - 1)
	replies := cotejoJSON[[]ingestReply](t, "ingest", "--data", newData(t), "--config", config)
	if len(replies) != len(ingest.Sources()) {
		t.Fatalf("%+v", replies)
	}
	for _, r := range replies {
		want := "activada"
		if r.Source == "sat_art69_eliminados" { // no page links it
			want = notOffered
			if !strings.HasPrefix(r.text(), r.Source+"  - la página de la autoridad no enlaza") {
				t.Errorf("%s", r.text())
			}
		}
		if r.Result != want || r.Lacks != "" {
			t.Errorf("%+v", r)
		}
	}
	asked := func(sources ...string) (ids, lacking []string) {
		t.Helper()
		requests, replies, err := (&ingestCmd{Sources: sources}).requests(&app{config: configuration{values: map[string]string{}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			ids = append(ids, r.Source)
		}
		for _, r := range replies {
			lacking = append(lacking, r.Source)
			if r.Lacks == "" || r.Result != "sin_configurar" || !strings.HasPrefix(r.text(), r.Source+"  - sin configurar: ") {
				t.Errorf("%+v", r)
			}
		}
		return ids, lacking
	}
	art69 := ingest.Sources()[5 : 5+len(query.Art69Lists)]
	if ids, lacking := asked(); strings.Join(ids, " ") != "sat_69b sat_69b_bis banxico_spei "+strings.Join(art69, " ")+" compranet_2023 compranet_2024 compranet_2025 compranet_2026 sfp_proveedores_sancionados" ||
		strings.Join(lacking, " ") != "banxico_fix ift_numeracion compranet_2018 compranet_2019 compranet_2020 compranet_2021 compranet_2022 "+
			"sabg_proveedores_sancionados pdn_s3_particulares pdn_s3_faltas_graves_personas_morales pdn_s3_faltas_graves_personas_fisicas sabg_proveedores_sancionados_xlsx" {
		t.Errorf("%v %v", ids, lacking)
	}
	// One that is named is asked for, and refused by name (TestWithoutAToken).
	if ids, lacking := asked("banxico_fix"); strings.Join(ids, " ") != "banxico_fix" || lacking != nil {
		t.Errorf("%v %v", ids, lacking)
	}
}

// TestIngestOfAFileOfACatalogue: with its day, where the file states none.
func TestIngestOfAFileOfACatalogue(t *testing.T) {
	data := newData(t)
	file := func(name string) string {
		content, ok := mirror.File(3, name)
		if !ok {
			t.Fatal(name)
		}
		path := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cotejo(t, exitUsage, "ingest", "ift_numeracion", "--file", file(mirror.Numbering), "--data", data)
	f := func(source, name, corte, want string) {
		t.Helper()
		args := []string{"ingest", source, "--file", file(name), "--data", data}
		if corte != "" {
			args = append(args, "--corte", corte)
		}
		if r := cotejoJSON[[]ingestReply](t, args...); len(r) != 1 || r[0].Source != source || r[0].Result != "activada" || r[0].Corte != want {
			t.Errorf("%+v", r)
		}
	}
	f("ift_numeracion", mirror.Numbering, "2026-09-02", "2026-09-02")
	f("banxico_spei", mirror.SPEI, "2026-09-01", "2026-09-01")
	f("banxico_fix", mirror.FIX, "", mirror.LastFIX(3).String()) // the file states it
}

// TestFIXIsAskedOnBankingDays, and on others only for a value that is missing.
func TestFIXIsAskedOnBankingDays(t *testing.T) {
	data := newData(t)
	config, stage := mirrorConfig(t)
	stage.Store(mirror.Stages - 1)
	dir, err := openDataDir(data, mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	job := dir.onBankingDays("banxico_fix", func(context.Context, time.Time, func(string)) (jobs.Result, error) {
		asked++
		return jobs.Result{}, nil
	})
	run := func(day string, want int) {
		t.Helper()
		d, err := civil.Parse(day)
		if err != nil {
			t.Fatal(err)
		}
		asked = 0
		r, err := job(t.Context(), d.End().Add(-6*time.Hour), func(string) {})
		if err != nil || asked != want || want == 0 && r.Status != jobs.Unchanged {
			t.Errorf("%s: asked %d times, %+v %v", day, asked, r, err)
		}
	}
	last := mirror.LastFIX(mirror.Stages - 1)
	if last != (civil.Date{Year: 2026, Month: 9, Day: 17}) || catalog.BankingDay(civil.Date{Year: 2026, Month: 9, Day: 16}) {
		t.Fatal(last)
	}
	run("2026-09-20", 1) // a Sunday, and nothing is loaded
	cotejo(t, 0, "ingest", "banxico_fix", "--data", data, "--config", config)
	run("2026-09-17", 1) // a Thursday
	run("2026-09-16", 0) // Independence Day
	run("2026-09-18", 1)
	run("2026-09-19", 1) // a Saturday, and Friday's value is missing
}
