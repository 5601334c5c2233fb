package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cotejo/bench"
	"cotejo/bench/generate"
)

// TestGeneratedFilesAreLoaded runs the command that bench generate prints: every source
// ends in service with the rows of the manifest.
func TestGeneratedFilesAreLoaded(t *testing.T) {
	out, data := filepath.Join(t.TempDir(), "carpeta con 'blancos'"), newData(t)
	printed := cotejo(t, 0, "bench", "generate", "--out", out, "--scale", "0.001", "--seed", "3")
	text, err := os.ReadFile(filepath.Join(out, generate.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var m generate.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}

	// What sh would make of it.
	head, files, _ := strings.Cut(printed, " \\\n")
	args := append(strings.Fields(head)[1:], "--data", data)
	for line := range strings.SplitSeq(strings.TrimSpace(files), " \\\n") {
		_, file, _ := strings.Cut(line, "--file ")
		file = strings.ReplaceAll(file, `'\''`, "\x00")
		args = append(args, "--file", strings.ReplaceAll(strings.ReplaceAll(file, "'", ""), "\x00", "'"))
	}
	replies := cotejoJSON[[]ingestReply](t, args...)
	if len(replies) != len(m.Files) {
		t.Fatalf("%d sources of %d: %s", len(replies), len(m.Files), printed)
	}
	for i, r := range replies {
		if f := m.Files[i]; r.Source != f.Source || r.Result != "activada" || r.Rows != f.Rows || r.SHA256 != f.SHA256 || r.Corte != m.Corte {
			t.Errorf("%+v, the manifest says %+v", r, f)
		}
	}
	sample, err := os.ReadFile(filepath.Join(out, generate.SampleName))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sample)) {
		rfc, source, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if source == "sat_69b" {
			if answer := cotejo(t, 0, "check", rfc, "--data", data, "--json"); !strings.Contains(answer, `"estado":"COINCIDENCIA"`) {
				t.Errorf("%s is on the list: %s", rfc, answer)
			}
			break
		}
	}

	failing(t, exitUsage, "bench", "generate", "--out", out, "--scale", "0.001") // not empty
	failing(t, exitUsage, "bench", "generate", "--out", newData(t), "--scale", "3")
	failing(t, exitUsage, "bench", "nothing")
	failing(t, exitUsage, "bench", "batch", "--scale", "3")
}

// TestBenchBatch measures small lists on a real server: every figure is there, and
// what cannot depend on the machine is right.
func TestBenchBatch(t *testing.T) {
	report, err := bench.Batch(t.Context(), bench.Host{
		Prepare: prepareBench, Command: program, Progress: t.Logf,
	}, bench.BatchSize{Scale: 0.0005, Large: 3000, Small: 100, Repeats: 1, Window: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"rfc_per_s_resumen", "rfc_per_s_completo", "resumen_per_cpu_s", "completo_per_cpu_s", "resumen_vs_single", "completo_vs_single",
		"resumen_cpu_vs_single", "completo_cpu_vs_single", "bytes_per_record", "bytes_vs_single", "rss_growth_mb_100k_vs_1k",
	} {
		if v, there := report.Figures[name]; !there || v <= 0 && name != "rss_growth_mb_100k_vs_1k" {
			t.Errorf("%s = %v, %t", name, v, there)
		}
	}
	if len(report.Figures) != 11 {
		t.Errorf("%v", report.Figures)
	}
}
