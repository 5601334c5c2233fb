package canon

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestAppendString(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(AppendString([]byte("x"), in)); got != "x"+want {
			t.Errorf("AppendString(%q) = %s; want x%s", in, got, want)
		}
		if got := string(AppendString(nil, []byte(in))); got != want {
			t.Errorf("AppendString of bytes %q = %s; want %s", in, got, want)
		}
	}
	f("", `""`)
	f("EFO010101AA1", `"EFO010101AA1"`)
	f("Ñandú & Cía. <S.A.>", `"Ñandú & Cía. <S.A.>"`)
	f("€$\u000f\nA'B\"\\\\\"/", `"€$\u000f\nA'B\"\\\\\"/"`) // RFC 8785, 3.2.2.2
	f("\b\t\n\f\r\x00\x1f\x7f", `"\b\t\n\f\r\u0000\u001f`+"\x7f\"")
	f("\u2028\u2029\ufeff\U0001f600", "\"\u2028\u2029\ufeff\U0001f600\"")
	f("a\xffb\xc3", "\"a\ufffdb\ufffd\"")
	f("12345678\xed\xa0\x80", "\"12345678\ufffd\ufffd\ufffd\"")
	f("\xf4\x90\x80\x80\ufffd", "\"\ufffd\ufffd\ufffd\ufffd\ufffd\"")

	// Every byte, at every place of a word and after it.
	for b := range 256 {
		for before := range 18 {
			in := strings.Repeat("m", before) + string([]byte{byte(b)}) + "nnnnnnnnn"
			want := reference(in)
			if got := string(AppendString(nil, in)); got != want {
				t.Fatalf("AppendString(%q) = %s; want %s", in, got, want)
			}
		}
	}
}

// reference is encoding/json's form of s, with the two escapes removed that
// RFC 8785 does not know.
func reference(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Each invalid byte becomes U+FFFD, as in a conversion to runes.
	if err := e.Encode(string([]rune(s))); err != nil {
		panic(err)
	}
	out := strings.TrimSuffix(b.String(), "\n")
	if strings.ContainsAny(s, "\u2028\u2029") {
		out = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(out)
	}
	return out
}

func TestAppendStringIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(
			rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune("ab\"\\\n\x01ñ€😀\u2028<"))),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		).Draw(t, "in")
		got := AppendString(nil, in)
		if want := reference(in); string(got) != want {
			t.Fatalf("AppendString(%q) = %s; want %s", in, got, want)
		}
	})
}

func TestAppendStringDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	text := "Construcción \"Ñ\" 😀 \xff\n" + strings.Repeat("x", 40)
	raw := []byte(text)
	if n := testing.AllocsPerRun(100, func() {
		dst = AppendString(dst[:0], text)
		dst = AppendString(dst[:0], raw)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "EFO010101AA1", "a\"\\\n\x1f", "ñ€😀\u2028", "\xff\xed\xa0\x80\xf4\x90\x80\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		if !utf8.Valid(got) {
			t.Fatalf("%q: %q", s, got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(s)) {
			t.Fatalf("%q reads back as %q, %v", s, back, err)
		}
		again, err := Transform(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q: Transform changes %s to %s, %v", s, got, again, err)
		}
	})
}

func BenchmarkAppendString(b *testing.B) {
	f := func(name, text string) {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, 2*len(text)+2)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendString(dst[:0], text)
			}
		})
	}
	f("rfc", "EFO010101AA1")
	f("nombre", "CONSTRUCCIÓN Y DISEÑO DE LA PENÍNSULA, S.A. DE C.V.")
	f("ascii1k", strings.Repeat("El proveedor no aparece. ", 40))
}
