package tabular

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func decode(t testing.TB, official string) (text string, d *Decoder) {
	t.Helper()
	d = NewDecoder(strings.NewReader(official), MaxBytes)
	out, err := io.ReadAll(d)
	if err != nil {
		t.Fatalf("%q: %v", official, err)
	}
	return string(out), d
}

func TestDecoder(t *testing.T) {
	f := func(official, want, encoding string, unassigned int) {
		t.Helper()
		got, d := decode(t, official)
		if got != want || d.Encoding() != encoding || d.Unassigned() != unassigned {
			t.Errorf("%q: got %q in %s with %d unassigned bytes, want %q in %s with %d", official, got, d.Encoding(), d.Unassigned(), want, encoding, unassigned)
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
	// Surrogates and overlong forms are not UTF-8.
	f("\xed\xa0\x80", "í\u00a0€", Windows1252, 0)
	f("\xc0\xaf", "À¯", Windows1252, 0)
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
		want, whole := decode(t, official)
		for _, src := range []io.Reader{
			iotest.OneByteReader(strings.NewReader(official)),
			iotest.HalfReader(strings.NewReader(official)),
			iotest.DataErrReader(strings.NewReader(official)),
		} {
			d := NewDecoder(src, MaxBytes)
			got, err := io.ReadAll(iotest.OneByteReader(d))
			if err != nil || string(got) != want || d.Encoding() != whole.Encoding() || d.Unassigned() != whole.Unassigned() {
				t.Errorf("%.20q (%T): %d bytes in %s (%v), want %d in %s", official, src, len(got), d.Encoding(), err, len(want), whole.Encoding())
			}
		}
	}
}

// TestDecoderStreams fails when a windows-1252 file is held in memory.
func TestDecoderStreams(t *testing.T) {
	d := NewDecoder(io.LimitReader(repeating("Situaci\xf3n,"), 8<<20), MaxBytes)
	n, err := io.Copy(io.Discard, d)
	if err != nil || n < 8<<20 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if cap(d.buf) > 2*chunk {
		t.Errorf("the buffer grew to %d bytes", cap(d.buf))
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

func TestDecoderLimit(t *testing.T) {
	f := func(official string, max int64, want error) {
		t.Helper()
		_, err := io.ReadAll(NewDecoder(strings.NewReader(official), max))
		if !errors.Is(err, want) {
			t.Errorf("%d bytes of %d: got %v, want %v", len(official), max, err, want)
		}
	}
	f("12345", 5, nil)
	f("123456", 5, ErrTooLarge)
	f("ñññ", 5, ErrTooLarge)
}

func TestDecoderPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	got, err := io.ReadAll(NewDecoder(io.MultiReader(strings.NewReader("\xf3 y "), iotest.ErrReader(broken)), MaxBytes))
	if string(got) != "ó y " || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzDecoder(f *testing.F) {
	for _, s := range []string{"", "a", "\xef\xbb\xbfa", "Situaci\xf3n", "Situación", "\x93\x94\x8d", "ñ\xc3"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, official []byte, piece uint8) {
		d := NewDecoder(bytes.NewReader(official), MaxBytes)
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
			if want := bytes.TrimPrefix(official, []byte("\ufeff")); d.Encoding() != UTF8 || !bytes.Equal(got, want) {
				t.Fatalf("%q in %s became %q", official, d.Encoding(), got)
			}
			return
		}
		if n := utf8.RuneCount(got); d.Encoding() != Windows1252 || n != len(official) {
			t.Fatalf("%q in %s became %d characters", official, d.Encoding(), n)
		}
	})
}
