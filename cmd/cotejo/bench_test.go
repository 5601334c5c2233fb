package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
