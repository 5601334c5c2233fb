package main

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// An answer that was cut may end where a whole one could, or at a proxy that closes
// what it has as if it were all. So each format is read while it is stored, and it is
// whole when it ends as it must and holds as many results as were quoted.

// loteExpects is what a whole answer has; -1: not known.
type loteExpects struct {
	lot     string
	results int // records
	rows    int // entries of the list, with those that no record answers
}

// loteReader reads an answer in pieces, from its first byte.
type loteReader interface {
	read(piece []byte)
	results() int // that were read so far
	whole(loteExpects) bool
}

// loteIn finds the id of a batch in a text.
var loteIn = regexp.MustCompile(`\bLOT-[0-9]{8}-[0-9a-f]{8}\b`)

// isLote reports that a text is the id of a batch, and so harmless in a path, a file
// and on a screen.
func isLote(text string) bool { return text != "" && loteIn.FindString(text) == text }

// linesReader reads NDJSON: the batch, the results, and an end that counts them.
type linesReader struct {
	lines int
	tail  []byte // the last bytes, at most 2*maxLastLine
}

// maxLastLine is more than the last line has.
const maxLastLine = 1 << 10

func (r *linesReader) read(piece []byte) {
	r.lines += bytes.Count(piece, []byte{'\n'})
	if len(piece) >= maxLastLine {
		r.tail = append(r.tail[:0], piece[len(piece)-maxLastLine:]...)
		return
	}
	if r.tail = append(r.tail, piece...); len(r.tail) > maxLastLine {
		r.tail = append(r.tail[:0], r.tail[len(r.tail)-maxLastLine:]...)
	}
}

func (r *linesReader) results() int {
	n := max(0, r.lines-1)
	if r.end() != nil {
		n--
	}
	return n
}

type linesEnd struct {
	Lot     string `json:"lote_id"`
	Results int    `json:"resultados"`
}

// end is the last line, nil while it is another one.
func (r *linesReader) end() *linesEnd {
	line, ended := bytes.CutSuffix(r.tail, []byte{'\n'})
	if !ended {
		return nil
	}
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	if !bytes.HasPrefix(line, []byte(`{"fin":`)) {
		return nil
	}
	var last struct {
		End *linesEnd `json:"fin"`
	}
	if json.Unmarshal(line, &last) != nil {
		return nil
	}
	return last.End
}

func (r *linesReader) whole(want loteExpects) bool {
	end := r.end()
	return end != nil && end.Lot == want.lot && end.Results == r.results() && (want.results < 0 || end.Results == want.results)
}

// jsonReader reads one object whose last member is the list of results.
type jsonReader struct {
	depth   int
	text    bool // within a string
	escaped bool
	bad     bool // something stands behind the end, or closes what was not opened
	ended   bool
	objects int // of the list that was opened last among the members
}

func (r *jsonReader) read(piece []byte) {
	for i := 0; i < len(piece); i++ {
		if r.text && !r.escaped { // most of an answer: on to what may end it
			next := bytes.IndexByte(piece[i:], '"')
			if next < 0 {
				next = len(piece) - i
			}
			if escape := bytes.IndexByte(piece[i:i+next], '\\'); escape >= 0 {
				next = escape
			}
			if i += next; i == len(piece) {
				return
			}
		}
		switch b := piece[i]; {
		case r.escaped:
			r.escaped = false
		case r.text:
			r.escaped, r.text = b == '\\', b != '"'
		case b == '"':
			r.text = true
			r.bad = r.bad || r.depth == 0
		case b == '{' || b == '[':
			r.bad = r.bad || r.ended
			if r.depth++; r.depth == 2 && b == '[' {
				r.objects = 0
			} else if r.depth == 3 && b == '{' {
				r.objects++
			}
		case b == '}' || b == ']':
			r.depth--
			r.bad = r.bad || r.depth < 0
			r.ended = r.depth == 0
		case r.depth == 0 && b != ' ' && b != '\n' && b != '\r' && b != '\t':
			r.bad = true
		}
	}
}

func (r *jsonReader) results() int { return r.objects }

func (r *jsonReader) whole(want loteExpects) bool {
	return r.ended && !r.bad && (want.results < 0 || r.objects == want.results)
}

// csvReader reads a line of titles and a row for each entry of the list. It has no
// end of its own: whole is what has all rows.
type csvReader struct {
	rows   int
	quoted bool // within a quoted cell
	last   byte
}

func (r *csvReader) read(piece []byte) {
	for _, b := range piece {
		switch {
		case b == '"':
			r.quoted = !r.quoted
		case b == '\n' && !r.quoted:
			r.rows++
		}
		r.last = b
	}
}

func (r *csvReader) results() int { return max(0, r.rows-1) }

func (r *csvReader) whole(want loteExpects) bool {
	return r.rows > 0 && !r.quoted && r.last == '\n' && (want.rows < 0 || r.results() == want.rows)
}
