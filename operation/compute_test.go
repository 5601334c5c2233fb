package operation

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
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

// TestRepetitionIsDescribed: what an operation says of Idempotency-Key, and what
// it declares, follow from what it does.
func TestRepetitionIsDescribed(t *testing.T) {
	computed := func(service string, writeOnly bool) *Operation {
		op := listing()
		op.Auth, op.Service, op.Charged, op.Read = Keyed, service, []string{"X_OK"}, nil
		op.Compute = func(dst []byte, _ Input) ([]byte, Computed, error) { return dst, Computed{}, nil }
		op.Params[0].Schema = &jsonschema.Schema{Type: "string", WriteOnly: writeOnly}
		table, err := NewTable([]Operation{op})
		if err != nil {
			t.Fatal(err)
		}
		return table[0]
	}
	free := listing()
	f := func(name string, op *Operation, declares bool, says string) {
		t.Helper()
		doc, err := marshalPlain(op.describe())
		if err != nil {
			t.Fatal(err)
		}
		text := string(doc)
		for _, sign := range []string{"#/components/parameters/" + keyHeader, "#/components/responses/Error409", "#/components/headers/" + replayedHeader} {
			if strings.Contains(text, sign) != declares {
				t.Errorf("%s: %s declared %v, want %v", name, sign, !declares, declares)
			}
		}
		if says == "" && strings.Contains(text, keyHeader) || !strings.Contains(text, says) {
			t.Errorf("%s: want it to say %q: %s", name, says, op.description())
		}
	}
	f("free", &free, false, "")
	f("confidential", computed("LABORAL", true), false, "Idempotency-Key no tiene efecto: de lo enviado no se guarda nada")
	f("paid", computed("LABORAL", false), true, "sin otro cobro, si la primera se cobró; la que no costó se vuelve a calcular.")
	f("included", computed("UTIL", false), true, "la que no costó (con saldo de paquete, o con una llave de prueba) se vuelve a calcular.")

	// A header that does nothing refuses nothing.
	for _, writeOnly := range []bool{true, false} {
		_, _, err := computed("LABORAL", writeOnly).decode(&Request{Args: []Arg{{InPath, "nombre", "abc"}}, IdempotencyKeys: [][]byte{[]byte("a b")}})
		if (err == nil) != writeOnly {
			t.Errorf("confidential %v: %v", writeOnly, err)
		}
	}
}
