// Package cotejo_test holds the one rule that no single package can hold: which
// way data flows. Imports point down the layers of docs/design.md, technology
// stays at the rim, and the columnar engine stays in its room.
//
// Start reading at layers. A new folder gets its place there, and in
// docs/design.md, with its first line of code.
package cotejo_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers is the table of docs/design.md: a package imports packages of lower
// lines only, and those below its own folder. Packages of one line never import
// each other; a star stands for any one folder, each a room of its own.
const layers = `cmd/cotejo
bench
testdata/mirror
api mcp jobs admin backup export
products/*
operation documents ingest
query snapshots/columnar
accounts obligations monitoring funding constancias expedientes
legal catalog
ledger snapshots
index cep cfdi
fuzzy checks payroll reconcile tlog store canon delta sandbox machine ratelimit accesslog mail
civil safexml
`

const (
	module = "cotejo"
	// domain is the first line that knows no transport and no SQL.
	domain = "query"
	// columnar is the only room that may open a DuckDB file.
	columnar = "snapshots/columnar"
	// baseline is a program of its own that benches compare with: nothing imports it.
	baseline = "bench/duckdb"
	// verifier is a module of its own: what it finds must not rest on our code.
	verifier = "verificador"
)

// columnarUsers load and export; the server answers from immutable lookup files.
var columnarUsers = []string{"ingest", "export"}

// database is the driver of PostgreSQL, which only store may use.
const database, databaseRoom = "github.com/jackc/pgx", "store"

// transports are what domain packages must not know.
var transports = []string{"net/http", "github.com/valyala/fasthttp", "database/sql"}

// room is a line of the table and the folder on it that a package belongs to.
type room struct {
	line int
	name string
}

// roomOf returns the room of a folder (slash-separated, below the module root):
// the longest entry of the table that is the folder or contains it.
func roomOf(folder string) (best room, ok bool) {
	for line, names := range strings.Split(strings.TrimSpace(layers), "\n") {
		for _, name := range strings.Fields(names) {
			depth := strings.Count(name, "/") + 1
			parts := strings.Split(folder, "/")
			if len(parts) < depth {
				continue
			}
			head := strings.Join(parts[:depth], "/")
			if match, err := path.Match(name, head); err == nil && match && len(head) > len(best.name) {
				best, ok = room{line, head}, true
			}
		}
	}
	return best, ok
}

// violations checks one import of a non-test file and says what is wrong with it.
func violations(folder, imported string) []string {
	from, ok := roomOf(folder)
	if !ok {
		return []string{fmt.Sprintf("%s has no place in the layers: give it one in layers_test.go and docs/design.md", folder)}
	}
	var found []string
	domainRoom, _ := roomOf(domain)
	for _, t := range transports {
		known := imported == t || strings.HasPrefix(imported, t+"/")
		if known && from.line >= domainRoom.line && from.name != columnar {
			found = append(found, fmt.Sprintf("%s imports %s: domain packages know no transport and no SQL", folder, imported))
		}
	}
	if strings.HasPrefix(imported, database) && from.name != databaseRoom {
		found = append(found, fmt.Sprintf("%s imports %s: only %s may", folder, imported, databaseRoom))
	}
	if imported == module {
		return append(found, fmt.Sprintf("%s imports the root, which holds no package", folder))
	}
	target, own := strings.CutPrefix(imported, module+"/")
	if !own {
		return found
	}
	to, ok := roomOf(target)
	switch {
	case !ok:
		found = append(found, fmt.Sprintf("%s imports %s, which has no place in the layers", folder, target))
	case to.name == columnar && from.name != columnar && !slices.Contains(columnarUsers, from.name):
		found = append(found, fmt.Sprintf("%s imports %s: only %s may", folder, target, strings.Join(columnarUsers, " and ")))
	case to.name != from.name && to.line <= from.line:
		found = append(found, fmt.Sprintf("%s imports %s, which is not on a lower line", folder, target))
	}
	return found
}

// TestImportsPointDown reads the imports of every non-test file of the module,
// whatever its build constraints.
func TestImportsPointDown(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			fixtures := d.Name() == "testdata" && name != "testdata"
			if name == verifier {
				return filepath.SkipDir // TestTheSecondVerifierIsApart
			}
			if name != "." && (fixtures || d.Name()[0] == '.' || d.Name()[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		folder := path.Dir(name)
		if folder == "." {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		if _, ok := roomOf(folder); !ok {
			t.Errorf("%s: %s has no place in the layers: give it one in layers_test.go and docs/design.md", name, folder)
			return nil
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			for _, v := range violations(folder, imported) {
				t.Errorf("%s: %s", name, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d files were read: the walk is broken", files)
	}
}

// TestViolationsAreSeen feeds the checker what it must refuse and accept.
func TestViolationsAreSeen(t *testing.T) {
	f := func(folder, imported, want string) {
		t.Helper()
		got := strings.Join(violations(folder, imported), "; ")
		if want == "" && got != "" {
			t.Errorf("%s may import %s, but: %s", folder, imported, got)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s imports %s: got %q, want it to say %q", folder, imported, got, want)
		}
	}
	// Down is allowed, also over several lines, and so is one's own folder.
	f("cmd/cotejo", "cotejo/testdata/mirror", "")
	f("bench", "cotejo/testdata/mirror", "")
	f("query", "cotejo/snapshots", "")
	f("query", "cotejo/civil", "")
	f("checks", "cotejo/safexml", "")
	f("ledger", "cotejo/store", "")
	f("ingest/sat69b", "cotejo/ingest", "")
	f("ingest", "cotejo/ingest/sat69b", "")
	f("ingest", "cotejo/snapshots/columnar", "")
	f("snapshots/columnar", "cotejo/snapshots", "")
	f("snapshots/columnar", "database/sql", "")
	f("snapshots/columnar", "github.com/duckdb/duckdb-go/v2", "")
	f("products/company", "cotejo/operation", "")
	f("api", "net/http", "")
	f("api", "github.com/valyala/fasthttp", "")
	f("operation", "net/http", "")

	f("snapshots", "cotejo/query", "not on a lower line")
	f("ledger", "cotejo/snapshots", "not on a lower line")
	f("canon", "cotejo/store", "not on a lower line")
	f("civil", "cotejo/canon", "not on a lower line")
	f("safexml", "cotejo/checks", "not on a lower line")
	f("safexml", "cotejo/civil", "not on a lower line")
	f("api", "cotejo/testdata/mirror", "not on a lower line")
	f("products/company", "cotejo/products/service", "not on a lower line")
	f("snapshots", "cotejo/snapshots/columnar", "only ingest and export may")
	f("api", "cotejo/snapshots/columnar", "only ingest and export may")
	f("bench", "cotejo/snapshots/columnar", "only ingest and export may")
	f("query", "net/http", "know no transport")
	f("query", "net/http/httptest", "know no transport")
	f("store", "database/sql", "know no transport")
	f("civil", "github.com/valyala/fasthttp", "know no transport")
	f("util", "fmt", "has no place in the layers")
	f("products", "fmt", "has no place in the layers")
	f("api", "cotejo/util", "has no place in the layers")
	f("api", "cotejo", "holds no package")
}

// TestTheSecondVerifierIsApart holds that it is another module, so that no package of
// this one can be imported there, and that nothing here imports it.
func TestTheSecondVerifierIsApart(t *testing.T) {
	text, err := os.ReadFile(verifier + "/go.mod")
	if err != nil || strings.Contains(string(text), "require") || strings.Contains(string(text), "replace") {
		t.Errorf("%s/go.mod: %v\n%s", verifier, err, text)
	}
	if found := violations("cmd/cotejo", module+"/"+verifier); len(found) != 1 {
		t.Errorf("its import is accepted: %q", found)
	}
}

// TestDesignShowsTheLayers keeps the page and the test one law.
func TestDesignShowsTheLayers(t *testing.T) {
	page, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+layers+"```\n") {
		t.Error("docs/design.md does not show the table of layers_test.go: copy it there, in a code block of its own")
	}
}

// duckDB says what is wrong with an import in any file of a folder, tests and
// the root included: the engine is a large C++ library that only its own room, and
// the program that benches compare with, should have to link.
func duckDB(folder, imported string) string {
	room, _ := roomOf(folder)
	if !strings.Contains(strings.ToLower(imported), "duckdb") || room.name == columnar {
		return ""
	}
	if folder == baseline && !strings.HasPrefix(imported, module+"/") {
		return ""
	}
	return fmt.Sprintf("imports %s: only %s and the program %s may", imported, columnar, baseline)
}

// TestDuckDBStaysInItsRoom reads every Go file of the module, at any depth.
func TestDuckDBStaysInItsRoom(t *testing.T) {
	tests, root := 0, 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && d.Name()[0] == '.' {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(filepath.ToSlash(name))
		if strings.HasSuffix(name, "_test.go") {
			tests++
		}
		if folder == "." {
			root++
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if what := duckDB(folder, imported); what != "" {
				t.Errorf("%s %s", name, what)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tests < 10 || root < 2 {
		t.Fatalf("only %d test files and %d of the root were read: the walk is broken", tests, root)
	}
}

func TestDuckDBIsSeen(t *testing.T) {
	const engine = "github.com/duckdb/duckdb-go/v2"
	f := func(folder, imported string, want bool) {
		t.Helper()
		if got := duckDB(folder, imported) != ""; got != want {
			t.Errorf("%s imports %s: refused %v, want %v", folder, imported, got, want)
		}
	}
	f(columnar, engine, false)
	f(columnar+"/arrow", engine, false)
	f(baseline, engine, false)
	f("bench", engine, true)
	f("bench", "cotejo/"+baseline, true)
	f(".", engine, true)
	f("api", engine, true)
	f("ingest/sat69b", engine, true)
	f("products/company/deep/deeper", engine, true)
	f("snapshots", "github.com/marcboeker/go-duckdb", true)
	f("snapshots/columnarly", engine, true)
	f("api", "cotejo/snapshots", false)
}
