package api

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"cotejo/operation"
)

// TestExamples asks what the reference shows, over the sandbox, and compares
// with the answer it shows, to the byte but for white space. Rewrite them with
// make openapi.
func TestExamples(t *testing.T) {
	f := newFixture(t)
	ran := 0
	for _, op := range f.table {
		for _, e := range op.Examples {
			ran++
			key := "test"
			if op.Auth == operation.Registration { // its ids, code and keys are those of no other test
				key = "registro"
				f.random.reseed(9)
			}
			a := f.sendBody(op.Method, e.Target, e.Request, f.keyHeader(key)...)
			if a.status != 200 {
				t.Fatalf("%s: %d %s", e.Name, a.status, a.body)
			}
			var want bytes.Buffer
			if err := json.Compact(&want, e.Body); err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(a.body, want.Bytes()) {
				continue
			}
			if *update {
				files := must(filepath.Glob("../products/*/examples/" + e.Name + ".json"))
				if len(files) != 1 {
					t.Fatalf("%s: found %v", e.Name, files)
				}
				var b bytes.Buffer
				if err := json.Indent(&b, a.body, "", "  "); err != nil {
					t.Fatal(err)
				}
				b.WriteByte('\n')
				if err := os.WriteFile(files[0], b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			t.Errorf("%s %s:\n got %s\nwant %s", op.Method, e.Target, a.body, want.Bytes())
		}
	}
	if ran == 0 {
		t.Fatal("no examples")
	}
}
