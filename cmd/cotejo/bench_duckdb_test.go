package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cotejo/bench"
)

// benchHost builds the program that benches compare with, and lets them run this one.
func benchHost(t *testing.T) bench.Host {
	t.Helper()
	if path, err := exec.Command("cc", "-print-file-name=libstdc++.so").Output(); err != nil || !filepath.IsAbs(string(path)) {
		t.Skip("no C++ library to build bench/duckdb with: install g++")
	}
	duckDB := filepath.Join(t.TempDir(), "cotejo-duckdb")
	build := exec.Command("go", "build", "-tags", "duckdb", "-o", duckDB, "cotejo/bench/duckdb")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bench.Host{
		Prepare: prepareBench, Edition: prepareEdition, Command: program, DuckDB: duckDB,
		Progress: func(format string, args ...any) { t.Logf(format, args...) },
	}
}

func wantFigures(t *testing.T, r bench.Report, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := r.Figures[name]; !ok {
			t.Errorf("%s lacks %s", r.Bench, name)
		}
	}
	if len(r.Figures) != len(names) {
		t.Errorf("%s has %v, want %v", r.Bench, r.Figures, names)
	}
}

// TestBenches runs both over a few rows: they fail by themselves when the sides that
// they compare do not answer the same (bench.ErrOtherAnswer). What is measured of so
// little says nothing.
func TestBenches(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program with DuckDB")
	}
	h := benchHost(t)
	h.From = filepath.Join(t.TempDir(), "archivos")
	cotejo(t, 0, "bench", "generate", "--out", h.From, "--scale", "0.002")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	company, err := bench.Company(ctx, h, bench.Size{
		Keys: 1000, RFCs: 2000, Growth: [2]int{400, 4000}, Records: 100, Repeats: 1, Window: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFigures(t, company, "lookup_vs_map", "lookup_allocs", "classify_vs_duckdb_join", "engine_rfc_per_s_core", "miss_allocs",
		"growth_10m_vs_1m", "http_vs_bare", "http_vs_floor", "floor_vs_bare", "http_per_cpu_s", "http_per_s", "rss_anon_mb", "record_bytes")
	if n := company.Figures["miss_allocs"]; n != 0 {
		t.Errorf("%v allocations for an RFC that no list mentions", n)
	}

	ingest, err := bench.Ingest(ctx, h, bench.Size{Swaps: 2, Window: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	wantFigures(t, ingest, "cpu_vs_readcsv", "rss_anon_mb", "swap_dropped_requests", "swap_added_ms")
	if n := ingest.Figures["swap_dropped_requests"]; n != 0 {
		t.Errorf("%v requests were dropped while editions replaced each other", n)
	}
}
