// Package tabular reads the tables that authorities publish: bytes to text,
// text to records, cells to values that can be compared between versions. It
// knows what official files have in common and nothing about any one of them.
//
// It is pure: the same bytes give the same result on any machine, without
// clock, network or files. Every input is hostile: record length and cell count
// are bounded, the bytes by whoever obtained them, and nothing in it panics. What it cannot read it
// refuses with a reason (Refusal) or keeps as text and counts; it never guesses.
//
// Start reading at Encoding and Decoder (bytes to text), then Reader (text to
// records), then
// AppendText and its siblings (cells to normalised values).
package tabular

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// Encodings of official files, as written in manifests.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
)

const (
	chunk = 64 << 10
	bom   = "\ufeff"
)

// Encoding reads official bytes and says how they are to be decoded: a file that
// is valid UTF-8 as a whole and has something beyond ASCII (a byte order mark
// counts) is UTF-8, every other file is windows-1252, one in pure ASCII included.
// It reads no further than it must. Its errors are those of the source.
func Encoding(official io.Reader) (string, error) {
	buf := make([]byte, chunk)
	kept := 0 // bytes at the start of buf: a character that the last piece cut
	ascii := true
	for {
		n, err := official.Read(buf[kept:])
		if err != nil && err != io.EOF {
			return "", err
		}
		text := buf[:kept+n]
		for len(text) > 0 && (err == io.EOF || utf8.FullRune(text)) {
			r, size := utf8.DecodeRune(text)
			if r == utf8.RuneError && size == 1 {
				return Windows1252, nil
			}
			ascii = ascii && size == 1
			text = text[size:]
		}
		if err == io.EOF {
			if ascii {
				return Windows1252, nil
			}
			return UTF8, nil
		}
		kept = copy(buf, text)
	}
}

// Decoder turns official bytes into UTF-8 text as they come. It cannot fail on
// any content: of UTF-8 the byte order mark is dropped; of windows-1252 each byte
// is a character, and the five that have none become U+FFFD and are counted.
type Decoder struct {
	io.Reader
	table *fromWindows1252
}

// NewDecoder decodes bytes that Encoding has judged. Its errors are those of src.
func NewDecoder(src io.Reader, encoding string) *Decoder {
	d := &Decoder{table: &fromWindows1252{}}
	if encoding == UTF8 {
		d.Reader = transform.NewReader(src, &withoutMark{})
	} else {
		d.Reader = transform.NewReader(src, d.table)
	}
	return d
}

// Unassigned counts the bytes without a character in windows-1252 so far.
func (d *Decoder) Unassigned() int { return d.table.unassigned }

// withoutMark passes text on, apart from a byte order mark at its start.
type withoutMark struct {
	transform.NopResetter
	begun bool
}

func (w *withoutMark) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if !w.begun {
		if len(src) < len(bom) && !atEOF {
			return 0, 0, transform.ErrShortSrc
		}
		w.begun = true
		if bytes.HasPrefix(src, []byte(bom)) {
			nSrc = len(bom)
		}
	}
	nDst = copy(dst, src[nSrc:])
	if nSrc += nDst; nSrc < len(src) {
		err = transform.ErrShortDst
	}
	return nDst, nSrc, err
}

// fromWindows1252 decodes the code page.
type fromWindows1252 struct {
	transform.NopResetter
	unassigned int
}

func (w *fromWindows1252) Transform(dst, src []byte, _ bool) (nDst, nSrc int, err error) {
	for _, b := range src {
		if b < utf8.RuneSelf {
			if nDst == len(dst) {
				return nDst, nSrc, transform.ErrShortDst
			}
			dst[nDst] = b
			nDst++
			nSrc++
			continue
		}
		r := windows1252[b-0x80]
		if len(dst)-nDst < utf8.RuneLen(r) {
			return nDst, nSrc, transform.ErrShortDst
		}
		if r == utf8.RuneError {
			w.unassigned++
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
		nSrc++
	}
	return nDst, nSrc, nil
}

// windows1252 maps the bytes 0x80 to 0xFF. Below 0xA0 it is the code page's own
// table; 0x81, 0x8D, 0x8F, 0x90 and 0x9D have no character there. Official files
// do contain such bytes, and converters that stop at one have lost most of a
// list without an error.
var windows1252 = func() (t [128]rune) {
	for i := range t {
		t[i] = rune(0x80 + i)
	}
	copy(t[:], []rune{
		'€', utf8.RuneError, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', utf8.RuneError, 'Ž', utf8.RuneError,
		utf8.RuneError, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', utf8.RuneError, 'ž', 'Ÿ',
	})
	return t
}()
