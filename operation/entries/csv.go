package entries

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// maxColumns bounds the cells of a row.
const maxColumns = 1000

// csv reads rows cell by cell (RFC 4180, with the separators that spreadsheets
// write): a quoted cell may hold separators and line ends. A cell that is not UTF-8
// in a file that is not either is windows-1252.
type csv struct {
	rest      []byte
	separator byte
	ansi      bool // windows-1252
	line      int  // of what is next
	cell      []byte
	decoded   []byte
}

// readCSV reads the column of a file.
func readCSV(body []byte, s Spec, fn func(int, []byte) error) error {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	r := &csv{rest: body, separator: separatorOf(body), ansi: !utf8.Valid(body), line: 1}
	column, err := r.titled(s.Name)
	if err != nil {
		return err
	}
	var value []byte
	for len(r.rest) > 0 {
		line, blank := r.line, true
		value = value[:0]
		err := r.row(func(i int, cell []byte) {
			if i == column {
				value = append(value, cell...)
			}
			blank = blank && len(bytes.TrimSpace(cell)) == 0
		})
		if err == nil && !blank {
			err = fn(line, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// separatorOf is the first separator outside of quotes in the first row that has
// something; a comma when there is none.
func separatorOf(body []byte) byte {
	quoted := false
	for _, c := range bytes.TrimLeft(body, "\r\n") {
		switch c {
		case '"':
			quoted = !quoted
		case ',', ';', '\t':
			if !quoted {
				return c
			}
		case '\n', '\r':
			if !quoted {
				return ','
			}
		}
	}
	return ','
}

// titled finds the column with a title in the first row that is not blank, and
// leaves that row behind; without such a title it is the first column, and the row
// is an entry.
func (r *csv) titled(name string) (column int, err error) {
	for len(r.rest) > 0 {
		before := *r
		found, blank := -1, true
		err := r.row(func(i int, cell []byte) {
			cell = bytes.TrimSpace(cell)
			blank = blank && len(cell) == 0
			if found < 0 && strings.EqualFold(string(cell), name) {
				found = i
			}
		})
		if err != nil {
			return 0, err
		}
		if found >= 0 {
			return found, nil
		}
		if !blank {
			r.rest, r.line = before.rest, before.line
			return 0, nil
		}
	}
	return 0, nil
}

// row reads one row. The cells are valid until the next one.
func (r *csv) row(fn func(i int, cell []byte)) error {
	begin, line := len(r.rest), r.line
	for i := 0; ; i++ {
		if i == maxColumns {
			return &Error{Shape, line, fmt.Sprintf("La línea %d tiene más de %d columnas; envíe solo la columna que hace falta", line, maxColumns)}
		}
		end, err := r.next(begin, line)
		if err != nil {
			return err
		}
		fn(i, r.text())
		if end {
			return nil
		}
	}
}

// next reads a cell into r.cell. end says that it was the last of its row.
func (r *csv) next(begin, line int) (end bool, err error) {
	r.cell = r.cell[:0]
	quoted := len(r.rest) > 0 && r.rest[0] == '"'
	if quoted {
		r.rest = r.rest[1:]
	}
	for {
		if begin-len(r.rest) > maxLine {
			if quoted {
				return false, &Error{Shape, line, fmt.Sprintf("La línea %d abre unas comillas que no se cierran en %d bytes; ciérrelas o quítelas", line, maxLine)}
			}
			return false, tooLong(line)
		}
		if len(r.rest) == 0 {
			if quoted {
				return false, &Error{Syntax, line, fmt.Sprintf("La línea %d abre unas comillas que no se cierran; ciérrelas o quítelas", line)}
			}
			return true, nil
		}
		c := r.rest[0]
		r.rest = r.rest[1:]
		switch {
		case quoted && c == '"':
			if len(r.rest) > 0 && r.rest[0] == '"' {
				r.cell = append(r.cell, '"')
				r.rest = r.rest[1:]
			} else {
				quoted = false // what follows the quotes belongs to the cell
			}
		case c == '\r' && !quoted:
			if len(r.rest) > 0 && r.rest[0] == '\n' {
				r.rest = r.rest[1:]
			}
			r.line++
			return true, nil
		case c == '\n':
			r.line++
			if !quoted {
				return true, nil
			}
			r.cell = append(r.cell, c)
		case c == r.separator && !quoted:
			return false, nil
		default:
			r.cell = append(r.cell, c)
		}
	}
}

// text is the cell in UTF-8.
func (r *csv) text() []byte {
	if !r.ansi || utf8.Valid(r.cell) {
		return r.cell
	}
	r.decoded = r.decoded[:0]
	for _, c := range r.cell {
		r.decoded = utf8.AppendRune(r.decoded, charmap.Windows1252.DecodeByte(c))
	}
	return r.decoded
}
