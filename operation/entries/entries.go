// Package entries reads a list of short texts out of a body: a JSON list, lines
// of JSON, or a column of a CSV file.
//
// A body is a stranger's: its encoding, its shape and how much of it there is are
// checked on one pass, and what is kept of it meanwhile is one entry. It judges no
// entry; it refuses what is no list, with the line and what to do, and then
// nothing of it counts.
//
// Start reading at Read; json.go and csv.go are one format each.
package entries

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Format is how a list is written.
type Format byte

const (
	JSON   Format = iota + 1 // ["A","B"], or {"list":["A","B"]}
	NDJSON                   // a line is "A", or {"name":"A"}
	CSV                      // a column
)

// Spec is what a list is expected to be.
type Spec struct {
	Name string // of an entry: the title of its column, the member of a line's object
	List string // the member of a JSON object that holds the list
	Max  int    // entries
}

// Kind is what is wrong with a body.
type Kind byte

const (
	Syntax  Kind = iota + 1 // it is not what its type says
	Shape                   // it is, and no list of texts
	TooLong                 // it has more than Max entries
)

// Error refuses a body.
type Error struct {
	Kind Kind
	Line int    // where, from 1; 0: nowhere in particular
	Msg  string // Spanish: what is wrong and what to do
}

func (e *Error) Error() string { return e.Msg }

// maxLine bounds a line of NDJSON, and a row of CSV, in bytes.
const maxLine = 64 << 10

// Read calls fn for each entry, in order, until fn returns an error, which Read
// returns. line is the position in a JSON list, or the line in a file on which the
// entry begins, from 1. value is valid until fn returns. The names of JSON members
// that mean nothing are unknown.
//
// The error is an *Error, or that of fn.
func Read(f Format, body []byte, s Spec, fn func(line int, value []byte) error) (unknown []string, err error) {
	count := 0
	each := func(line int, value []byte) error {
		if count++; count > s.Max {
			return &Error{TooLong, line, fmt.Sprintf("La lista tiene más de %s elementos; divídala en varias y envíe una petición por cada una", thousands(s.Max))}
		}
		return fn(line, value)
	}
	if err := text(f, body); err != nil {
		return nil, err
	}
	switch f {
	case JSON:
		return readJSON(body, s, each)
	case NDJSON:
		return nil, readLines(body, s, each)
	default:
		return nil, readCSV(body, s, each)
	}
}

// text refuses what is no text in the encodings of its format.
func text(f Format, body []byte) *Error {
	if bytes.HasPrefix(body, []byte{0xff, 0xfe}) || bytes.HasPrefix(body, []byte{0xfe, 0xff}) {
		return &Error{Syntax, 0, "El cuerpo está en UTF-16; guárdelo en UTF-8 y envíelo de nuevo"}
	}
	if at := bytes.IndexByte(body, 0); at >= 0 {
		line := 1 + bytes.Count(body[:at], []byte{'\n'})
		return &Error{Syntax, line, fmt.Sprintf("La línea %d tiene un byte nulo: no es texto; guarde la lista en UTF-8 y envíela de nuevo", line)}
	}
	if f != CSV && !utf8.Valid(body) {
		return &Error{Syntax, 0, "El cuerpo no es UTF-8 válido; JSON no tiene otra codificación"}
	}
	return nil
}

// thousands writes 100000 as 100,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
