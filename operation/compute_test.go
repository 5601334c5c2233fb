package operation

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestInputMark computes the example of docs/data-formats.md, which was made with
// openssl, and holds that nothing is marked without a key.
func TestInputMark(t *testing.T) {
	request := &Request{
		Operation: &Operation{ID: "validarRfc", Method: "GET"},
		Args:      []Arg{{InPath, "rfc", "EFO010101AA1"}},
	}
	p := &Pipeline{InputKey: InputKey([]byte("0123456789abcdef0123456789abcdef"))}
	mark, err := p.inputMark(request)
	const want = "1cd09cb3f05197869c47603f609efcb7daf46c9bb02ebf3a04d5a8a74cdb91fc"
	if got := hex.EncodeToString(mark[:]); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	page, err := os.ReadFile("../docs/data-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "gives `"+want+"`") {
		t.Error("docs/data-formats.md shows another mark")
	}

	other := &Pipeline{InputKey: InputKey([]byte("0123456789abcdef0123456789abcdeg"))}
	if again, err := other.inputMark(request); err != nil || again == mark {
		t.Errorf("another secret gives the same mark, %v", err)
	}
	request.Args[0].Value = "EFO010101AA2"
	if again, err := p.inputMark(request); err != nil || again == mark {
		t.Errorf("another input gives the same mark, %v", err)
	}
	if mark, err := new(Pipeline).inputMark(request); err == nil || mark != [32]byte{} {
		t.Errorf("without a key: %x, %v", mark, err)
	}
}
