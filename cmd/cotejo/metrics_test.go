package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
)

// metricRow is a line of docs/metrics.md.
var metricRow = regexp.MustCompile("(?m)^\\| `(cotejo_[a-z0-9_]+)` \\| (counter|gauge|histogram) \\| .* \\| (`[a-z/, `]+`) \\|$")

// metricName is the beginning of a metric in the code.
var metricName = regexp.MustCompile(`^cotejo_[a-z0-9_]+`)

// TestMetricsPageIsComplete holds that docs/metrics.md has every metric of the
// code, with the package that moves it, and no other; and that a service exposes
// none but those.
func TestMetricsPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		if listed[m[1]] != "" {
			t.Errorf("%s está dos veces en la página", m[1])
		}
		listed[m[1]] = strings.ReplaceAll(m[3], "`", "")
	}
	if len(listed) < 15 || len(listed) != strings.Count(string(page), "\n| `cotejo_") {
		t.Errorf("%d renglones legibles", len(listed))
	}
	coded := metricsOfTheCode(t)
	for name, room := range coded {
		if listed[name] != room {
			t.Errorf("%s se mueve en %s; la página dice %q", name, room, listed[name])
		}
	}
	for name := range listed {
		if coded[name] == "" {
			t.Errorf("%s está en la página y no en el código", name)
		}
	}

	r := startHere(t, map[string]string{"data": loadedData(t, 0)}, nil)
	r.mustGet(t, 200, "/v1/salud", "")
	for _, name := range metrics.ListMetricNames() {
		if family, _, _ := strings.Cut(name, "{"); listed[family] == "" {
			t.Errorf("el servicio expone %s, que no está en la página", family)
		}
	}
}

// metricsOfTheCode maps each name that begins a string of the code to the folders
// that have it, in order.
func metricsOfTheCode(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() == "bin" || e.Name()[0] == '.' && e.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("../..", filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(literal.Value); err == nil {
				name, room := metricName.FindString(text), filepath.ToSlash(folder)
				switch {
				case name == "" || slices.Contains(strings.Split(found[name], ", "), room):
				case found[name] == "":
					found[name] = room
				default: // the walk is in order
					found[name] += ", " + room
				}
			}
			return true
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
