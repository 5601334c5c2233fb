package tabular

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits of one record. The longest official cell known has under 1,000
// characters and the widest table 73 columns.
const (
	MaxRecord = 1 << 20 // bytes of text
	MaxCells  = 256
)

var (
	// ErrUnclosedQuote says that the text ended inside a quoted cell.
	ErrUnclosedQuote = errors.New("la comilla que abre una celda no se cierra antes del fin del archivo")
	// ErrStrayQuote says that a quoted cell goes on after its closing quote.
	ErrStrayQuote = errors.New("hay texto después de la comilla que cierra una celda")
	// ErrRecordTooLong says that a record has more than MaxRecord bytes, which
	// is how an unclosed quote in the middle of a file shows.
	ErrRecordTooLong = errors.New("el registro mide más de 1 MiB; revise si falta cerrar una comilla")
	// ErrTooManyCells says that a record has more than MaxCells cells.
	ErrTooManyCells = errors.New("el registro tiene más de 256 celdas")
)

// RecordError says in which record a table is broken.
type RecordError struct {
	Line int // where the record starts, counted from 1 in line feeds
	Err  error
}

func (e *RecordError) Error() string { return fmt.Sprintf("línea %d: %v", e.Line, e.Err) }
func (e *RecordError) Unwrap() error { return e.Err }

// Reader reads comma-separated records as RFC 4180 defines them: cells may be
// quoted, a doubled quote stands for one, and a quoted cell may hold commas and
// line ends, which are kept as they are. Records end at LF or CRLF; lines
// without any character are skipped.
//
// It is lenient in one thing: a quote inside an unquoted cell is a character
// like any other (DR. "LICEAGA"), because procurement files never escape it. It
// is strict where leniency would hide damage: text after a closing quote and an
// unclosed quote are errors, and no record grows beyond MaxRecord.
//
// A Loose reader is for tables whose quotes nobody escapes: see Loose; an Unquoted one
// for those without any quoting.
type Reader struct {
	// Loose takes a quoted cell that goes on after its closing quote for what it most
	// likely is, and counts it (LooseQuotes), in the place of ErrStrayQuote. A cell
	// that has had no comma and no line end so far never needed quoting: its first
	// quote is a character and it ends at the next comma ("LICEAGA" HOSPITAL). In any
	// other the quote that closes nothing is a character ("PISO 2, "A" Y B"). Either
	// can be wrong, which shows as a record with another number of cells: whoever
	// sets it compares that. Set it before the first Next.
	Loose bool
	// Unquoted is for a table in which no cell is ever quoted: a quote is a character
	// like any other, wherever it stands. Set it before the first Next.
	Unquoted bool

	src  io.Reader
	in   []byte // unread input is in[pos:]
	pos  int
	err  error // of src, io.EOF included
	line int   // line feeds consumed
	from int   // line of the record that Next returned
	open bool  // the last record of the text lacks its line end

	loose int  // cells that were read loosely
	bare  bool // the quoted cell has had no comma and no line end
	text  []byte
	ends  []int // end of each cell in text
	cells [][]byte
}

// NewReader returns a reader of UTF-8 text.
func NewReader(src io.Reader) *Reader {
	return &Reader{src: src, in: make([]byte, 0, chunk)}
}

// Line is the line on which the last record started, counted from 1.
func (r *Reader) Line() int { return r.from }

// Unended reports, after io.EOF, whether the text ended in a record without its
// line end: who knows how much more the last cell had.
func (r *Reader) Unended() bool { return r.open }

// LooseQuotes counts the cells so far whose quotes had to be guessed.
func (r *Reader) LooseQuotes() int { return r.loose }

type position byte

const (
	cellStart position = iota
	unquoted
	quoted
	quoteInQuoted   // closes the cell or is the first of a doubled quote
	returnAfterCell // CR after a closing quote: only LF may follow
)

// Next returns the cells of the next record, or io.EOF after the last one. They
// are valid until the next call. A broken record gives a *RecordError; the
// reader cannot go on after any error.
func (r *Reader) Next() ([][]byte, error) {
	for {
		r.text, r.ends = r.text[:0], r.ends[:0]
		r.from = r.line + 1
		blank, err := r.record()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(r.err, err) {
				err = &RecordError{Line: r.from, Err: err}
			}
			return nil, err
		}
		if blank {
			continue
		}
		r.cells = r.cells[:0]
		start := 0
		for _, end := range r.ends {
			r.cells = append(r.cells, r.text[start:end:end])
			start = end
		}
		return r.cells, nil
	}
}

// record reads one record into text and ends; blank when its line was empty.
func (r *Reader) record() (blank bool, err error) {
	first := cellStart // of a cell
	if r.Unquoted {
		first = unquoted
	}
	at, start := first, 0
	begun := false // whether the record has any byte
	for {
		if r.pos == len(r.in) {
			if r.err == nil {
				r.fill()
				continue
			}
			if !errors.Is(r.err, io.EOF) {
				return false, r.err
			}
			return r.last(at, start, begun)
		}
		if at == cellStart || at == unquoted || at == quoted {
			// The bytes that need no decision are copied in one piece.
			rest := r.in[r.pos:]
			n := plainRun(rest, at)
			if n > 0 {
				if at == quoted && r.bare {
					r.bare = bytes.IndexByte(rest[:n], ',') < 0
				}
				r.text = append(r.text, rest[:n]...)
				r.pos += n
				begun = true
				if at == cellStart {
					at = unquoted
				}
				if len(r.text) > MaxRecord {
					return false, ErrRecordTooLong
				}
				continue
			}
		}
		b := r.in[r.pos]
		r.pos++
		if b == '\n' {
			r.line++
		}
		switch at {
		case cellStart, unquoted:
			switch b {
			case ',':
				if start, err = r.endCell(); err != nil {
					return false, err
				}
				at = first
			case '\n':
				if n := len(r.text); n > start && r.text[n-1] == '\r' {
					r.text = r.text[:n-1]
				}
				blank = len(r.ends) == 0 && len(r.text) == 0
				_, err = r.endCell()
				return blank, err
			default: // a quote that opens the cell
				at, r.bare = quoted, true
			}
		case quoted:
			if b == '"' {
				at = quoteInQuoted
			} else {
				r.text, r.bare = append(r.text, b), false // a line end
			}
		case quoteInQuoted:
			switch b {
			case '"':
				r.text = append(r.text, b)
				at = quoted
			case ',':
				if start, err = r.endCell(); err != nil {
					return false, err
				}
				at = cellStart
			case '\n':
				_, err = r.endCell()
				return false, err
			case '\r':
				at = returnAfterCell
			default:
				if !r.Loose {
					return false, ErrStrayQuote
				}
				at = r.reopen(start)
				r.text = append(append(r.text, '"'), b)
			}
		case returnAfterCell:
			if b != '\n' {
				return false, ErrStrayQuote
			}
			_, err = r.endCell()
			return false, err
		}
		begun = true
		if len(r.text) > MaxRecord {
			return false, ErrRecordTooLong
		}
	}
}

// reopen says how a loose cell goes on after a quote that closed nothing.
func (r *Reader) reopen(start int) position {
	r.loose++
	if !r.bare {
		return quoted
	}
	r.text = slices.Insert(r.text, start, '"')
	return unquoted
}

// last ends the record that the end of the text cut short of its line end.
func (r *Reader) last(at position, start int, begun bool) (blank bool, err error) {
	switch {
	case at == quoted:
		return false, ErrUnclosedQuote
	case !begun:
		return false, io.EOF
	}
	r.open = true
	if n := len(r.text); at == unquoted && n > 0 && r.text[n-1] == '\r' {
		r.text = r.text[:n-1]
		if len(r.ends) == 0 && len(r.text) == 0 {
			return true, nil
		}
	}
	_, err = r.endCell()
	return false, err
}

func (r *Reader) endCell() (start int, err error) {
	if len(r.ends) == MaxCells {
		return 0, ErrTooManyCells
	}
	r.ends = append(r.ends, len(r.text))
	return len(r.text), nil
}

// plainRun counts the bytes at the start of b that only belong to the cell.
func plainRun(b []byte, at position) int {
	if at == quoted {
		for i, c := range b {
			if c == '"' || c == '\n' {
				return i
			}
		}
		return len(b)
	}
	for i, c := range b {
		if c == ',' || c == '\n' || (c == '"' && i == 0 && at == cellStart) {
			return i
		}
	}
	return len(b)
}

func (r *Reader) fill() {
	n, err := r.src.Read(r.in[:cap(r.in)])
	r.in, r.pos = r.in[:n], 0
	r.err = err
}
