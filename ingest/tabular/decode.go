// Package tabular reads the tables that authorities publish: bytes to text,
// text to records, cells to values that can be compared between versions. It
// knows what official files have in common and nothing about any one of them.
//
// It is pure: the same bytes give the same result on any machine, without
// clock, network or files. Every input is hostile: size, record length and
// cell count are bounded, and nothing in it panics. What it cannot read it
// refuses with a reason (Refusal) or keeps as text and counts; it never guesses.
//
// Start reading at Decoder (bytes to text), then Reader (text to records), then
// AppendText and its siblings (cells to normalised values).
package tabular

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxBytes is the most that one official table may have, unpacked.
const MaxBytes = 256 << 20

// ErrTooLarge says that a table has more bytes than its limit.
var ErrTooLarge = errors.New("el archivo rebasa el tamaño máximo")

// Encodings of official files, as written in manifests.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
)

const chunk = 64 << 10

// Decoder turns official bytes into UTF-8 text. It cannot fail on any content:
// a file that is valid UTF-8 as a whole and has something beyond ASCII (a BOM
// counts and is removed) is UTF-8; every other file is windows-1252, byte by
// byte, where the five bytes without a character become U+FFFD and are counted.
//
// Official files are windows-1252, and the first accent decides that, so they
// stream through a fixed buffer. A file that may be UTF-8 is held in memory from
// its first accent on, because only its end can tell: that costs its size.
type Decoder struct {
	src  io.Reader
	max  int64
	read int64 // official bytes taken from src

	buf     []byte // official bytes, delivered up to pos
	pos     int
	checked int // bytes of buf known to be ASCII or valid UTF-8
	plain   int // bytes of buf known to be ASCII from pos on: the same in both encodings

	encoding   string // "" until decided
	unassigned int
	pending    []byte // rest of a character that did not fit into the last Read
	err        error  // of src, io.EOF included
}

// NewDecoder returns a decoder of src that fails with ErrTooLarge once src has
// given more than max bytes.
func NewDecoder(src io.Reader, max int64) *Decoder {
	return &Decoder{src: src, max: max, buf: make([]byte, 0, chunk)}
}

// Encoding is "utf-8" or "windows-1252". It is known when Read has returned
// io.EOF; before, it may be empty. A file in pure ASCII is windows-1252.
func (d *Decoder) Encoding() string { return d.encoding }

// Unassigned counts the bytes without a character in windows-1252 so far.
func (d *Decoder) Unassigned() int { return d.unassigned }

// Read implements io.Reader. Its errors are those of the source, and ErrTooLarge.
func (d *Decoder) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(d.pending) > 0 {
			k := copy(p[n:], d.pending)
			d.pending = d.pending[k:]
			n += k
			continue
		}
		if k := d.deliver(p[n:]); k > 0 {
			n += k
			continue
		}
		if len(d.pending) > 0 {
			continue
		}
		if n > 0 {
			return n, nil
		}
		if d.err != nil {
			return 0, d.err
		}
		d.fill()
	}
	return n, nil
}

// deliver copies what is already decided, decoded, into p.
func (d *Decoder) deliver(p []byte) int {
	switch d.encoding {
	case UTF8:
		n := copy(p, d.buf[d.pos:])
		d.pos += n
		return n
	case Windows1252:
		return d.deliver1252(p)
	default:
		n := copy(p, d.buf[d.pos:d.pos+d.plain])
		d.pos += n
		d.plain -= n
		return n
	}
}

func (d *Decoder) deliver1252(p []byte) int {
	n := 0
	in := d.buf[d.pos:]
	i := 0
	for i < len(in) && n < len(p) {
		b := in[i]
		i++
		if b < utf8.RuneSelf {
			p[n] = b
			n++
			continue
		}
		r := windows1252[b-0x80]
		if r == utf8.RuneError {
			d.unassigned++
		}
		if len(p)-n >= utf8.UTFMax {
			n += utf8.EncodeRune(p[n:], r)
			continue
		}
		d.pending = utf8.AppendRune(nil, r)
		break
	}
	d.pos += i
	return n
}

// fill takes more bytes from the source and decides the encoding if they allow it.
func (d *Decoder) fill() {
	if d.pos == len(d.buf) {
		d.buf, d.pos, d.checked = d.buf[:0], 0, 0
	}
	if len(d.buf) == cap(d.buf) {
		grown := make([]byte, len(d.buf), 2*cap(d.buf))
		copy(grown, d.buf)
		d.buf = grown
	}
	n, err := d.src.Read(d.buf[len(d.buf):cap(d.buf)])
	d.buf = d.buf[:len(d.buf)+n]
	d.read += int64(n)
	switch {
	case d.read > d.max:
		d.err = fmt.Errorf("%w de %d bytes", ErrTooLarge, d.max)
	case err != nil:
		d.err = err
	}
	if d.encoding == "" {
		d.decide()
	}
}

// decide extends what is known to be valid UTF-8 and settles the encoding at the
// first byte that is not, or at the end.
func (d *Decoder) decide() {
	if d.checked == d.pos+d.plain {
		for d.checked < len(d.buf) && d.buf[d.checked] < utf8.RuneSelf {
			d.checked++
		}
		d.plain = d.checked - d.pos
	}
	for d.checked < len(d.buf) {
		rest := d.buf[d.checked:]
		if rest[0] < utf8.RuneSelf {
			d.checked++
			continue
		}
		if !utf8.FullRune(rest) && d.err == nil {
			return
		}
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			d.encoding = Windows1252
			return
		}
		d.checked += size
	}
	if d.err == nil {
		return
	}
	if d.checked == d.pos+d.plain {
		d.encoding = Windows1252
		return
	}
	d.encoding = UTF8
	const bom = "\ufeff"
	if d.pos == 0 && d.read == int64(len(d.buf)) && len(d.buf) >= len(bom) && string(d.buf[:len(bom)]) == bom {
		d.pos = len(bom)
	}
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
