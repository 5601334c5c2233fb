package tabular

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// decode reads official bytes twice, as readers do.
func decode(t testing.TB, open func() io.Reader) (text, encoding string, unassigned int) {
	t.Helper()
	encoding, err := Encoding(open())
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(open(), encoding)
	out, err := io.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), encoding, d.Unassigned()
}

func TestDecoder(t *testing.T) {
	f := func(official, want, encoding string, unassigned int) {
		t.Helper()
		got, in, missing := decode(t, func() io.Reader { return strings.NewReader(official) })
		if got != want || in != encoding || missing != unassigned {
			t.Errorf("%q: got %q in %s with %d unassigned bytes, want %q in %s with %d", official, got, in, missing, want, encoding, unassigned)
		}
	}
	f("", "", Windows1252, 0)
	f("RFC,Nombre\r\n", "RFC,Nombre\r\n", Windows1252, 0)
	f("Situaci\xf3n", "Situación", Windows1252, 0)
	f("Situación", "Situación", UTF8, 0)
	f("\xef\xbb\xbfRFC", "RFC", UTF8, 0)
	f("\xef\xbb\xbf", "", UTF8, 0)
	// A byte order mark is one only at the start, and only in UTF-8.
	f("á\ufeff", "á\ufeff", UTF8, 0)
	f("\xef\xbb\xbf\xf3", "ï»¿ó", Windows1252, 0)
	// Quotes 0x93 and 0x94 are not control characters.
	f("\x93A&L CONSULTORES\x94, S.C.", "“A&L CONSULTORES”, S.C.", Windows1252, 0)
	f("\x80\x9f\xa0\xff", "€Ÿ\u00a0ÿ", Windows1252, 0)
	f("a\x81\x8d\x8f\x90\x9dz", "a\ufffd\ufffd\ufffd\ufffd\ufffdz", Windows1252, 5)
	// Valid until its last byte is not valid.
	f("Situación \xf3", "SituaciÃ³n ó", Windows1252, 0)
	f("ñ\xc3", "Ã±Ã", Windows1252, 0)
	// UTF-8 that was read in a code page and written as UTF-8 again: by latin-1, by
	// windows-1252, by a program that writes a byte order mark.
	f("SituaciÃ³n, MUÃ\u0091OZ", "SituaciÃ³n, MUÃ\u0091OZ", Recoded, 0)
	f("SituaciÃ³n, MUÃ‘OZ, â€œA&Lâ€\u009d", "SituaciÃ³n, MUÃ‘OZ, â€œA&Lâ€\u009d", Recoded, 0)
	f("\ufeffSituaciÃ³n", "SituaciÃ³n", Recoded, 0)
	f("ï»¿SituaciÃ³n", "ï»¿SituaciÃ³n", Recoded, 0)
	// One letter of another kind shows that it was not.
	f("SituaciÃ³n, MUÑOZ", "SituaciÃ³n, MUÑOZ", UTF8, 0)
	f("JOÃO", "JOÃO", UTF8, 0)
	f("SituaciÃ³n…", "SituaciÃ³n…", UTF8, 0)
	f("SituaciÃ³n\ufffd", "SituaciÃ³n\ufffd", UTF8, 0)
	f("SituaciÃ³n日", "SituaciÃ³n日", UTF8, 0)
	f("SituaciÃ³nÃ", "SituaciÃ³nÃ", UTF8, 0)
	f("SituaciÃ³\ufeffn", "SituaciÃ³\ufeffn", UTF8, 0)
	// Surrogates and overlong forms are not UTF-8.
	f("\xed\xa0\x80", "í\u00a0€", Windows1252, 0)
	f("\xc0\xaf", "À¯", Windows1252, 0)
}

// TestRecoded: Spanish letters in UTF-8 are never taken for a damaged copy of
// themselves, and a damaged copy always for one. A quote behind an accented capital
// (É”) is not drawn: alone in a whole file it could be either.
func TestRecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aZ &,.\"\r\náéíóúüñÁÉÍÓÚÜÑ"))).Draw(t, "text")
		var again []byte // each byte taken for a character of latin-1
		for _, b := range []byte(text) {
			again = utf8.AppendRune(again, rune(b))
		}
		want, recoded := UTF8, Recoded
		if len(again) == len(text) { // nothing beyond ASCII
			want, recoded = Windows1252, Windows1252
		}
		for official, want := range map[string]string{text: want, string(again): recoded} {
			if got, err := Encoding(strings.NewReader(official)); err != nil || got != want {
				t.Fatalf("%q is %s (%v), want %s", official, got, err, want)
			}
		}
	})
}

// TestDecoderInAnyPieces fails when the result depends on how the bytes arrive or
// on how they are asked for.
func TestDecoderInAnyPieces(t *testing.T) {
	long := strings.Repeat("x", chunk)
	for _, official := range []string{
		"\xef\xbb\xbfÑandú, S.A. “de” C.V. €",
		"\xd1and\xfa \x93de\x94 \x80 \x8d",
		long + "á" + long,
		long + "\x93" + long + "á",
		long[:chunk-1] + "€" + long,
	} {
		type result struct {
			text, encoding string
			unassigned     int
		}
		var want result
		want.text, want.encoding, want.unassigned = decode(t, func() io.Reader { return strings.NewReader(official) })
		for _, cut := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			var got result
			got.text, got.encoding, got.unassigned = decode(t, func() io.Reader { return cut(strings.NewReader(official)) })
			if got != want {
				t.Errorf("%.20q: %d bytes in %s, want %d in %s", official, len(got.text), got.encoding, len(want.text), want.encoding)
			}
			d := NewDecoder(cut(strings.NewReader(official)), want.encoding)
			if slowly, err := io.ReadAll(iotest.OneByteReader(d)); err != nil || string(slowly) != want.text {
				t.Errorf("%.20q: byte by byte %d bytes (%v), want %d", official, len(slowly), err, len(want.text))
			}
		}
	}
}

// TestDecodingStreams fails when memory grows with a file, of either encoding.
func TestDecodingStreams(t *testing.T) {
	for _, text := range []string{"Situaci\xf3n,", "Situación,"} {
		const size = 18 << 20 / 11 * 11
		open := func() io.Reader { return io.LimitReader(repeating(text), int64(size/len(text)*len(text))) }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		encoding, err := Encoding(open())
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, NewDecoder(open(), encoding))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err != nil || n < size-1<<10 || used > 1<<20 {
			t.Errorf("%s: %d bytes, %v: %d bytes allocated", encoding, n, err, used)
		}
	}
}

// repeating gives its text for ever.
func repeating(text string) io.Reader { return &loop{text: text} }

type loop struct {
	text string
	pos  int
}

func (l *loop) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = l.text[l.pos]
		l.pos = (l.pos + 1) % len(l.text)
	}
	return len(p), nil
}

func TestDecodingPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for _, encoding := range []string{UTF8, Windows1252} {
		for _, head := range []string{"", "o y "} {
			src := func() io.Reader { return io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)) }
			if _, err := Encoding(src()); err != broken {
				t.Errorf("Encoding after %q: %v", head, err)
			}
			if got, err := io.ReadAll(NewDecoder(src(), encoding)); string(got) != head || err != broken {
				t.Errorf("%s after %q: got %q, %v", encoding, head, got, err)
			}
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, s := range []string{"", "a", "\xef\xbb\xbfa", "Situaci\xf3n", "Situación", "\x93\x94\x8d", "ñ\xc3"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, official []byte, piece uint8) {
		encoding, err := Encoding(iotest.OneByteReader(bytes.NewReader(official)))
		if err != nil {
			t.Fatal(err)
		}
		d := NewDecoder(bytes.NewReader(official), encoding)
		var got []byte
		buf := make([]byte, int(piece)+1)
		for {
			n, err := d.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q became %q, which is not UTF-8", official, got)
		}
		ascii := bytes.IndexFunc(official, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
		if utf8.Valid(official) && !ascii {
			if want := bytes.TrimPrefix(official, []byte("\ufeff")); encoding != UTF8 || !bytes.Equal(got, want) {
				t.Fatalf("%q in %s became %q", official, encoding, got)
			}
			return
		}
		if n := utf8.RuneCount(got); encoding != Windows1252 || n != len(official) {
			t.Fatalf("%q in %s became %d characters", official, encoding, n)
		}
	})
}
