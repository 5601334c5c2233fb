package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// answer writes a text of about 800 bytes and 170 for each row, shaped like the
// service's answers.
func answer(rfc, moment, edition string, rows ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"edicion_sha256":%q,"entrada":{"rfc":%q},"fecha":"2025-03-14","motor":"LISTAS_FISCALES/3","observado":null,`, edition, rfc)
	b.WriteString(`"resultado":{"alcance":"La ausencia en una lista no prueba que la empresa cumpla; sólo que la versión consultada no la nombra.",` +
		`"articulo":"69-B del Código Fiscal de la Federación","coincidencias":[`)
	for i, row := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"fuente":"SAT_69B","fila":%d,"numero_de_oficio":%q,"publicacion_dof":"2024-05-%02d","situacion":"Definitivo","supuesto":"ART. 69-B CFF"}`, i+1, row, row[len(row)-1]-'0'+10)
	}
	fmt.Fprintf(&b, `],"digito_verificador":{"coincide":true,"esperado":"1"},"fuentes":[`+
		`{"corte":"2025-02-28","estado":"consultada","id":"SAT_69B","publicada_en_reset":%q},`+
		`{"corte":"2025-03-01","estado":"consultada","id":"SAT_69_NO_LOCALIZADOS","publicada_en_reset":%q},`+
		`{"corte":null,"estado":"consultada","id":"SFP_SANCIONADOS","publicada_en_reset":"2025-03-02T03:00:00-06:00"}],`+
		`"rfc":%q,"tipo":"moral"}}`, moment, moment, rfc)
	return []byte(b.String())
}

const (
	editionA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	editionB = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
)

func rows(n int) []string {
	var r []string
	for i := range n {
		r = append(r, fmt.Sprintf("500-05-2024-%05d", i*i*7919%99991))
	}
	return r
}

// cases are pairs of a base and a target, from the usual to the hopeless.
var cases = []struct {
	name         string
	base, target []byte
	limit        int // bytes of code
}{
	{"igual-1.5KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...),
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...), 8},
	{"rfc-y-hora-1.5KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...),
		answer("SAT970701NN3", "2025-03-14T17:42:09-06:00", editionA, rows(4)...), 60},
	{"rfc-mas-largo-1.5KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...),
		answer("MHTR93041179A", "2025-03-14T17:42:09-06:00", editionA, rows(4)...), 70},
	{"otra-edicion-1.5KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...),
		answer("SAT970701NN3", "2025-03-15T04:00:00-06:00", editionB, rows(4)...), 140},
	{"una-fila-mas-8KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(42)...),
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, append([]string{"500-41-00-2025-771"}, rows(42)...)...), 600},
	{"sin-filas-0.9KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...),
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA), 16},
	{"rfc-y-hora-12KB",
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(66)...),
		answer("SAT970701NN3", "2025-03-14T17:42:09-06:00", editionA, rows(66)...), 60},
	{"ajeno-1.5KB",
		bytes.Repeat([]byte("Lorem ipsum dolor sit amet, "), 50),
		answer("EFO010101AA1", "2025-03-14T03:10:00-06:00", editionA, rows(4)...), 1600},
}

func TestCodeIsSmall(t *testing.T) {
	for _, c := range cases {
		code := NewBase(c.base).Append(nil, c.target)
		t.Logf("%s: %d bytes become %d", c.name, len(c.target), len(code))
		if len(code) > c.limit {
			t.Errorf("%s: %d bytes of code; want at most %d", c.name, len(code), c.limit)
		}
		got, err := Expand(nil, c.base, code, len(c.target))
		if err != nil || !bytes.Equal(got, c.target) {
			t.Errorf("%s: expands to %q, %v", c.name, got, err)
		}
	}
}

func TestAppendKeepsWhatPrecedes(t *testing.T) {
	base, target := cases[1].base, cases[1].target
	b := NewBase(base)
	code := b.Append([]byte("antes"), target)
	if !bytes.HasPrefix(code, []byte("antes")) {
		t.Fatalf("code begins with %q", code[:5])
	}
	got, err := Expand([]byte("previo"), base, code[5:], len(target))
	if err != nil || string(got) != "previo"+string(target) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNilBaseCodesPlainly(t *testing.T) {
	f := func(b *Base, target string, overhead int) {
		t.Helper()
		code := b.Append(nil, []byte(target))
		if len(code) != len(target)+overhead || !bytes.HasSuffix(code, []byte(target)) {
			t.Errorf("code of %q is %q", target, code)
		}
		got, err := Expand(nil, nil, code, len(target))
		if err != nil || string(got) != target {
			t.Errorf("%q expands to %q, %v", target, got, err)
		}
	}
	f(nil, "", 1)
	f(nil, "a", 2)
	f(nil, strings.Repeat("abc", 1000), 4)
	f(NewBase(nil), "a", 2)
	f(NewBase([]byte("abc")), "", 1)
}

func TestBaseCopiesItsText(t *testing.T) {
	text := []byte("un texto anterior de más de dieciséis bytes")
	want := string(text)
	b := NewBase(text)
	clear(text)
	if string(b.Bytes()) != want {
		t.Errorf("Bytes() = %q", b.Bytes())
	}
	if code := b.Append(nil, []byte(want)); len(code) > 5 {
		t.Errorf("the index followed the caller's slice: %q", code)
	}
}

func TestBaseBeyondTheIndex(t *testing.T) {
	var text []byte
	for i := 0; len(text) < 3*maxIndexed; i++ {
		text = fmt.Appendf(text, "%d;", i*i)
	}
	target := bytes.Clone(text)
	copy(target[2*maxIndexed:], "otro")
	b := NewBase(text)
	code := b.Append(nil, target)
	if len(code) > 40 {
		t.Errorf("%d bytes of code", len(code))
	}
	if got, err := Expand(nil, text, code, len(target)); err != nil || !bytes.Equal(got, target) {
		t.Errorf("does not expand: %v", err)
	}
}

func TestExpandRefuses(t *testing.T) {
	base := []byte("0123456789")
	f := func(want error, max int, code ...byte) {
		t.Helper()
		dst := []byte("previo")
		got, err := Expand(dst, base, code, max)
		if !errors.Is(err, want) || string(got) != "previo" {
			t.Errorf("Expand(%v) = %q, %v; want %v", code, got, err, want)
		}
	}
	huge := binary.AppendUvarint(nil, 1<<63)
	least := binary.AppendVarint(nil, -1<<63)
	most := binary.AppendVarint(nil, 1<<63-1)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

	if got, err := Expand(nil, base, []byte{4, 1, 'a', 3, 2}, 4); err != nil || string(got) != "a234" {
		t.Fatalf("the good code expands to %q, %v", got, err)
	}
	f(ErrTooLong, 3, 4, 1, 'a', 3, 2)
	f(ErrTooLong, -1, 0)
	f(ErrTooLong, 1<<30, huge...)
	f(ErrCorrupt, 9)
	f(ErrCorrupt, 9, 0x80)
	f(ErrCorrupt, 9, bytes.Repeat([]byte{0x80}, 11)...)
	f(ErrCorrupt, 9, 4)
	f(ErrCorrupt, 9, 4, 1)
	f(ErrCorrupt, 9, 4, 1, 'a')
	f(ErrCorrupt, 9, 4, 1, 'a', 3)
	f(ErrCorrupt, 9, 4, 1, 'a', 3, 2, 0)            // more than one code
	f(ErrCorrupt, 9, 4, 5, 'a', 'b', 'c', 'd', 'e') // literal beyond the end
	f(ErrCorrupt, 9, 4, 0, 0, 0)                    // a step that does nothing
	f(ErrCorrupt, 9, 4, 1, 'a', 4, 2)               // copy beyond the end
	f(ErrCorrupt, 99, 11, 0, 11, 0)                 // copy longer than the base
	f(ErrCorrupt, 9, 4, 0, 4, 1)                    // one byte before the base
	f(ErrCorrupt, 9, 4, 0, 4, 14)                   // one byte after
	f(ErrCorrupt, 9, 4, 1, 'a', 3, 14)
	f(ErrCorrupt, 9, join([]byte{4, 0, 4}, least)...)
	f(ErrCorrupt, 9, join([]byte{4, 0, 4}, most)...)
	f(ErrCorrupt, 9, join([]byte{4}, huge, []byte("abcd"))...)
	f(ErrCorrupt, 9, join([]byte{4, 0}, huge, []byte{0})...)
}

func TestCutCodeIsRefused(t *testing.T) {
	for _, c := range cases {
		code := NewBase(c.base).Append(nil, c.target)
		for n := range code {
			if got, err := Expand(nil, c.base, code[:n], 1<<20); !errors.Is(err, ErrCorrupt) || got != nil {
				t.Fatalf("%s: the first %d of %d bytes expand to %q, %v", c.name, n, len(code), got, err)
			}
		}
	}
}

// TestRoundTrip edits a text at random and codes the result.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]byte("abc\",:0"))
		base := rapid.SliceOfN(alphabet, 0, 600).Draw(t, "base")
		target := bytes.Clone(base)
		for range rapid.IntRange(0, 6).Draw(t, "edits") {
			from := rapid.IntRange(0, len(target)).Draw(t, "from")
			to := rapid.IntRange(from, min(len(target), from+40)).Draw(t, "to")
			middle := rapid.SliceOfN(alphabet, 0, 40).Draw(t, "middle")
			target = bytes.Join([][]byte{target[:from], middle, target[to:]}, nil)
		}
		code := NewBase(base).Append(nil, target)
		if len(code) > len(target)+8 {
			t.Fatalf("%d bytes become %d", len(target), len(code))
		}
		got, err := Expand(nil, base, code, len(target))
		if err != nil || !bytes.Equal(got, target) {
			t.Fatalf("expands to %q, %v", got, err)
		}
		if _, err := Expand(nil, base, code, len(target)-1); !errors.Is(err, ErrTooLong) {
			t.Fatalf("exceeds the limit: %v", err)
		}
	})
}

func TestAppendDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 16<<10)
	for _, c := range cases {
		b := NewBase(c.base)
		code := b.Append(nil, c.target)
		if n := testing.AllocsPerRun(20, func() { dst = b.Append(dst[:0], c.target) }); n != 0 {
			t.Errorf("%s: Append allocates %v times", c.name, n)
		}
		if n := testing.AllocsPerRun(20, func() { dst, _ = Expand(dst[:0], c.base, code, len(c.target)) }); n != 0 {
			t.Errorf("%s: Expand allocates %v times", c.name, n)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, c := range cases {
		f.Add(c.base, NewBase(c.base).Append(nil, c.target), 4096)
	}
	f.Add([]byte("0123456789"), []byte{4, 1, 'a', 3, 2}, 4)
	f.Fuzz(func(t *testing.T, base, code []byte, max int) {
		max = min(max, 1<<20)
		got, err := Expand([]byte("previo"), base, code, max)
		if !bytes.HasPrefix(got, []byte("previo")) || len(got) > len("previo")+max && err == nil {
			t.Fatalf("%d bytes of at most %d", len(got), max)
		}
		if err != nil && len(got) != len("previo") {
			t.Fatalf("%q beside %v", got, err)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	for _, c := range cases {
		f.Add(c.base, c.target)
	}
	f.Fuzz(func(t *testing.T, base, target []byte) {
		code := NewBase(base).Append(nil, target)
		got, err := Expand(nil, base, code, len(target))
		if err != nil || !bytes.Equal(got, target) {
			t.Fatalf("%q over %q expands to %q, %v", target, base, got, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			base := NewBase(c.base)
			code := base.Append(nil, c.target)
			b.SetBytes(int64(len(c.target)))
			b.ReportAllocs()
			for b.Loop() {
				code = base.Append(code[:0], c.target)
			}
			b.ReportMetric(float64(len(code)), "bytes")
		})
	}
}

func BenchmarkExpand(b *testing.B) {
	c := cases[1]
	code := NewBase(c.base).Append(nil, c.target)
	out := make([]byte, 0, len(c.target))
	b.SetBytes(int64(len(c.target)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if out, err = Expand(out[:0], c.base, code, len(c.target)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewBase(b *testing.B) {
	text := cases[1].base
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		NewBase(text)
	}
}

// BenchmarkZstd is what the package replaces: the same pairs by a general
// compressor that has the base as its dictionary.
func BenchmarkZstd(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			encoder, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(1, c.base),
				zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
			if err != nil {
				b.Fatal(err)
			}
			defer encoder.Close()
			code := encoder.EncodeAll(c.target, nil)
			b.SetBytes(int64(len(c.target)))
			b.ReportAllocs()
			for b.Loop() {
				code = encoder.EncodeAll(c.target, code[:0])
			}
			b.ReportMetric(float64(len(code)), "bytes")
		})
	}
}
