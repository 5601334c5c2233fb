package cotejo_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cotejo/testdata/mirror"
)

// pages are what people read.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "testdata/mirror/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(text)
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages were found", len(found))
	}
	return found
}

// TestLinksLeadSomewhere holds that every relative link of a page exists.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for name, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := filepath.Join(filepath.Dir(name), m[1])
			if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	}
}

// TestReadmesAreTwins holds that both languages show the same commands and the
// same answer: what stands in their code blocks differs in the remarks only.
func TestReadmesAreTwins(t *testing.T) {
	remark := regexp.MustCompile(`(?m)\s+(//|#) .*$`)
	code := func(name string) []string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```")
		var blocks []string
		for i := 3; i < len(parts); i += 2 { // the first is the picture
			blocks = append(blocks, remark.ReplaceAllString(parts[i], ""))
		}
		return blocks
	}
	english, spanish := code("README.md"), code("README.es.md")
	if len(english) != len(spanish) {
		t.Fatalf("README.md has %d code blocks, README.es.md %d", len(english), len(spanish))
	}
	for i := range english {
		if english[i] != spanish[i] {
			t.Errorf("code block %d differs:\n%s\n--- README.es.md\n%s", i+2, english[i], spanish[i])
		}
	}
}

// TestReadmeQuotesTheMirror holds that the answer shown is the one the demo gives.
func TestReadmeQuotesTheMirror(t *testing.T) {
	content, ok := mirror.File(mirror.Stages-1, mirror.Listado69B)
	if !ok {
		t.Fatal("the mirror has no last stage")
	}
	sum := sha256.Sum256(content)
	if want := `"sha256": "` + hex.EncodeToString(sum[:])[:12] + `…"`; !strings.Contains(pages(t)["README.md"], want) {
		t.Errorf("README.md does not show %s", want)
	}
}

// TestFaultsHaveTheirTests holds that every fault which operations.md lists has a
// test, and that each test named there exists, down to its parts.
func TestFaultsHaveTheirTests(t *testing.T) {
	_, section, ok := strings.Cut(pages(t)["docs/operations.md"], "\n## Faults and their tests\n")
	if !ok {
		t.Fatal("docs/operations.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	named := regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)(?:/([^`]+))?`")
	rows := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault ") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range tests {
			var code strings.Builder
			files, err := filepath.Glob(m[1] + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				code.Write(text)
			}
			if !strings.Contains(code.String(), "\nfunc "+m[2]+"(t *testing.T)") {
				t.Errorf("%s has no %s", m[1], m[2])
			}
			// go test writes a blank of a name as an underscore.
			if part := strings.ReplaceAll(m[3], "_", " "); part != "" && !strings.Contains(code.String(), `"`+part+`"`) {
				t.Errorf("%s of %s has no part %q", m[2], m[1], part)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d faults are listed", rows)
	}
}

// TestAlertsAreExplained holds that operations.md says what to do about every kind
// of alert that health can raise.
func TestAlertsAreExplained(t *testing.T) {
	page := pages(t)["docs/operations.md"]
	kind := regexp.MustCompile(`(?:alert\(|Kind: )"([A-Z_]+)"`)
	found := 0
	for _, pattern := range []string{"products/platform/*.go", "cmd/cotejo/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range kind.FindAllStringSubmatch(string(text), -1) {
				found++
				if !regexp.MustCompile("(?m)^\\|.*`" + m[1] + "`").MatchString(page) {
					t.Errorf("%s raises %s, which docs/operations.md does not explain", file, m[1])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d alerts were found", found)
	}
}

// TestMakefileTargetsExist holds that every make target that a page names is in
// the Makefile.
func TestMakefileTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("(?m)(?:`|^)make ([a-z]+)")
	for name, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s names «make %s», which the Makefile lacks", name, m[1])
			}
		}
	}
}
