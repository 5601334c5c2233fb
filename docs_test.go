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
