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
	"encoding/binary"
	"io"
	"slices"
	"unicode/utf8"
)

// Encodings of official files, as written in manifests.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
	// Recoded is UTF-8 that somebody read as windows-1252 or latin-1 and wrote as
	// UTF-8 again ("SituaciÃ³n"). It is decoded as UTF-8: what its bytes meant is not
	// for us to say.
	Recoded = "utf-8 recodificado"
)

const (
	chunk = 64 << 10
	bom   = "\ufeff"
)

// Encoding reads official bytes and says how they are to be decoded: a file that
// is valid UTF-8 as a whole and has something beyond ASCII (a byte order mark
// counts) is UTF-8, every other file is windows-1252, one in pure ASCII included.
// UTF-8 is Recoded when all of its text is: a single "ñ" shows that it is not, so a
// name that the authority itself damaged makes no file suspect.
// It reads no further than it must. Its errors are those of the source.
func Encoding(official io.Reader) (string, error) {
	buf := make([]byte, chunk)
	kept := 0 // bytes at the start of buf: a character that the last piece cut
	ascii, again := true, recoding{start: true}
	for {
		n, err := official.Read(buf[kept:])
		if err != nil && err != io.EOF {
			return "", err
		}
		text := buf[:kept+n]
		for len(text) > 0 && (err == io.EOF || utf8.FullRune(text)) {
			if n := asciiRun(text); n > 0 {
				again.add(rune(text[0])) // the others say no more
				text = text[n:]
				continue
			}
			r, size := utf8.DecodeRune(text)
			if r == utf8.RuneError && size == 1 {
				return Windows1252, nil
			}
			ascii = false
			again.add(r)
			text = text[size:]
		}
		if err == io.EOF {
			switch {
			case ascii:
				return Windows1252, nil
			case again.found && !again.refuted && again.n == 0:
				return Recoded, nil
			}
			return UTF8, nil
		}
		kept = copy(buf, text)
	}
}

// recoding takes the bytes back of which each character was made, if it was one of
// windows-1252 or latin-1, and looks whether they are UTF-8 themselves.
type recoding struct {
	start, found, refuted bool // before the first character; a character beyond ASCII; anything else
	bytes                 [utf8.UTFMax]byte
	n                     int // of them, at the start of a character
}

func (d *recoding) add(r rune) {
	mark := d.start && r == '\ufeff' // of who wrote it last
	d.start = false
	if d.refuted || mark || r < utf8.RuneSelf && d.n == 0 {
		return
	}
	b, ok := byteOf(r)
	d.bytes[d.n] = b
	d.n++
	if d.refuted = !ok; ok && utf8.FullRune(d.bytes[:d.n]) {
		_, size := utf8.DecodeRune(d.bytes[:d.n])
		d.refuted, d.found, d.n = size == 1, true, 0
	}
}

// byteOf is the byte of a character in latin-1, else in windows-1252.
func byteOf(r rune) (b byte, ok bool) {
	if r <= 0xff {
		return byte(r), true
	}
	i := slices.Index(windows1252[:0xa0-0x80], string(r))
	return byte(0x80 + i), i >= 0 && r != utf8.RuneError
}

// Decoder turns official bytes into UTF-8 text as they come. It cannot fail on
// any content: of UTF-8 the byte order mark is dropped; of windows-1252 each byte
// is a character, and the five that have none become U+FFFD and are counted.
type Decoder struct {
	io.Reader
	table *fromWindows1252 // nil of UTF-8
}

// NewDecoder decodes bytes that Encoding has judged. Its errors are those of src.
func NewDecoder(src io.Reader, encoding string) *Decoder {
	if encoding != Windows1252 {
		return &Decoder{Reader: &withoutMark{src: src}}
	}
	table := &fromWindows1252{src: src, in: make([]byte, 0, chunk)}
	return &Decoder{Reader: table, table: table}
}

// Unassigned counts the bytes without a character in windows-1252 so far.
func (d *Decoder) Unassigned() int {
	if d.table == nil {
		return 0
	}
	return d.table.unassigned
}

// withoutMark passes text on, apart from a byte order mark at its start.
type withoutMark struct {
	src  io.Reader
	head []byte // the first bytes of the text that are still to be passed on
	seen bool   // whether there may be a mark no more
	err  error  // of src, met behind head
}

func (w *withoutMark) Read(p []byte) (n int, err error) {
	if !w.seen {
		w.seen = true
		first := make([]byte, len(bom))
		at := 0
		for at < len(first) && w.err == nil {
			n, w.err = w.src.Read(first[at:])
			at += n
		}
		if w.head = first[:at]; string(w.head) == bom {
			w.head = nil
		}
	}
	if len(w.head) > 0 {
		n = copy(p, w.head)
		w.head = w.head[n:]
		return n, nil
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.src.Read(p)
}

// fromWindows1252 decodes the code page.
type fromWindows1252 struct {
	src        io.Reader
	in         []byte // in[pos:] is still to be decoded
	pos        int
	rest       string // of a character that p of the last Read cut
	err        error  // of src, met behind in
	unassigned int
}

func (w *fromWindows1252) Read(p []byte) (n int, err error) {
	n = copy(p, w.rest)
	w.rest = w.rest[n:]
	for n < len(p) {
		if w.pos == len(w.in) {
			if n > 0 {
				break
			}
			if w.err != nil {
				return 0, w.err
			}
			at, err := w.src.Read(w.in[:cap(w.in)])
			w.in, w.pos, w.err = w.in[:at], 0, err
			continue
		}
		plain := w.in[w.pos:]
		plain = plain[:asciiRun(plain[:min(len(plain), len(p)-n)])]
		n += copy(p[n:], plain)
		if w.pos += len(plain); w.pos == len(w.in) || n == len(p) {
			continue
		}
		c := windows1252[w.in[w.pos]-0x80]
		w.pos++
		if c == unassigned {
			w.unassigned++
		}
		took := copy(p[n:], c)
		n, w.rest = n+took, c[took:]
	}
	return n, nil
}

// asciiRun counts the bytes at the start of b that are ASCII.
func asciiRun(b []byte) int {
	const highs = 0x8080808080808080
	n := 0
	for len(b)-n >= 8 && binary.LittleEndian.Uint64(b[n:])&highs == 0 {
		n += 8
	}
	for n < len(b) && b[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// windows1252 maps the bytes 0x80 to 0xFF. Below 0xA0 it is the code page's own
// table; 0x81, 0x8D, 0x8F, 0x90 and 0x9D have no character there. Official files
// do contain such bytes, and converters that stop at one have lost most of a
// list without an error.
var windows1252 = func() (t [128]string) {
	for i := range t {
		t[i] = string(rune(0x80 + i))
	}
	for i, r := range []rune{
		'€', utf8.RuneError, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', utf8.RuneError, 'Ž', utf8.RuneError,
		utf8.RuneError, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', utf8.RuneError, 'ž', 'Ÿ',
	} {
		t[i] = string(r)
	}
	return t
}()

// unassigned stands for a byte without a character.
const unassigned = string(utf8.RuneError)
