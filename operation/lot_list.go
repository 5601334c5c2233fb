package operation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"cotejo/checks"
	"cotejo/ledger"
	"cotejo/operation/entries"
)

// listedKind is what became of an entry of a list.
type listedKind byte

const (
	listedItem     listedKind = iota // a question: the next ordinal of the order
	listedRepeated                   // an item that came before
	listedRefused                    // no item
	listedKinds
)

// listed is an entry of a list as it is kept.
type listed struct {
	kind  listedKind
	line  int
	key   uint64 // of an item, also of a repeated one
	first int    // line of the first, of a repeated one
	text  []byte // of a refused one, cut
}

// lotList is a list that was read. Its pieces are kept with the order.
type lotList struct {
	pieces [][]byte
	counts [listedKinds]int
	sample uint64 // key of the first item
	faults []Item // of the first entries that were refused
}

func (l *lotList) received() int {
	return l.counts[listedItem] + l.counts[listedRepeated] + l.counts[listedRefused]
}
func (l *lotList) units() int { return l.counts[listedItem] }

// format is the format of a list by its Content-Type.
func (l *Lot) format(contentType []byte) (entries.Format, bool) {
	media, params, err := mime.ParseMediaType(string(contentType))
	if err != nil {
		return 0, false
	}
	for _, m := range listMedia {
		if m.name != media {
			continue
		}
		charset, said := params["charset"]
		return m.format, m.format == entries.CSV || !said || strings.EqualFold(charset, "utf-8")
	}
	return 0, false
}

// reads reports whether a list may be sent as that.
func (l *Lot) reads(contentType []byte) bool {
	_, ok := l.format(contentType)
	return ok
}

// readList reads the body of a request. What is wrong with it as a list is in the
// items of the content; the error is a *JSONError.
func (l *Lot) readList(r *Request) (list *lotList, c content, err error) {
	list = new(lotList)
	format, _ := l.format(r.ContentType)
	seen := map[uint64]int32{} // lines
	w := listWriter{list: list}
	c.unknown, err = entries.Read(format, r.Body, l.Entry, func(line int, value []byte) error {
		key, problem := l.readEntry(value)
		if problem != nil {
			if len(list.faults) < maxItems {
				list.faults = append(list.faults, l.fault(line, value, problem))
			}
			w.add(&listed{kind: listedRefused, line: line, text: cutEntry(value)})
			return nil
		}
		if first, again := seen[key]; again {
			w.add(&listed{kind: listedRepeated, line: line, key: key, first: int(first)})
			return nil
		}
		if len(seen) == 0 {
			list.sample = key
		}
		seen[key] = int32(line)
		w.add(&listed{kind: listedItem, line: line, key: key})
		return nil
	})
	var broken *entries.Error
	switch {
	case errors.As(err, &broken) && broken.Kind == entries.Syntax && format != entries.CSV:
		return nil, c, &JSONError{broken}
	case errors.As(err, &broken):
		c.note(unreadable(broken))
	case err != nil:
		return nil, c, err
	case list.received() == 0:
		c.note(place{loc: []any{"body"}}.item("missing", "La lista está vacía; envíe al menos un elemento", nil, nil))
	case list.units() == 0:
		c.items = list.faults
	}
	return list, c, nil
}

// unreadable is why a body is no list.
func unreadable(broken *entries.Error) *Item {
	at := place{loc: []any{"body"}}
	if broken.Line > 0 {
		at.loc = append(at.loc, broken.Line)
	}
	kind := map[entries.Kind]string{entries.Syntax: "value_error", entries.Shape: "list_type", entries.TooLong: "too_long"}[broken.Kind]
	return at.item(kind, broken.Msg, nil, nil)
}

// readEntry reads an entry; blanks around it do not count.
func (l *Lot) readEntry(value []byte) (key uint64, err error) {
	text := bytes.TrimSpace(value)
	if long(text) {
		return 0, &checks.Problem{Type: "string_too_long", Rule: fmt.Sprintf("El elemento tiene más de %d caracteres; envíe uno por elemento", maxEcho)}
	}
	return l.Read(string(text))
}

func long(text []byte) bool { return len(text) > maxEcho && utf8.RuneCount(text) > maxEcho }

// cutEntry is what is kept of an entry that was refused: whole, or its first
// characters and a sign that there were more.
func cutEntry(value []byte) []byte {
	text := bytes.TrimSpace(value)
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	if long(text) {
		text = append([]byte(string([]rune(string(text[:min(len(text), 4*maxEcho)]))[:maxEcho])), "…"...)
	}
	return text
}

// refusal is why a kept entry was refused, as readEntry said it.
func (l *Lot) refusal(text []byte) *checks.Problem {
	_, err := l.readEntry(text)
	var problem *checks.Problem
	if !errors.As(err, &problem) {
		problem = &checks.Problem{Type: "value_error", Rule: "El elemento no es válido"}
	}
	return problem
}

func (l *Lot) fault(line int, value []byte, err error) Item {
	at := place{loc: []any{"body", line}}
	kind := "value_error"
	var problem *checks.Problem
	if errors.As(err, &problem) {
		kind = problem.Type
	}
	return *at.item(kind, err.Error(), string(cutEntry(value)), nil)
}

// listWriter codes entries into pieces. A piece begins with the line of its first
// entry; no entry is divided.
type listWriter struct {
	list *lotList
	line int
	room [3*binary.MaxVarintLen64 + 8]byte
}

func (w *listWriter) add(e *listed) {
	w.list.counts[e.kind]++
	pieces := &w.list.pieces
	if n := len(*pieces); n == 0 || len((*pieces)[n-1])+len(w.room)+len(e.text) > ledger.MaxOrderInput {
		*pieces, w.line = append(*pieces, make([]byte, 0, 4<<10)), 0
	}
	piece := &(*pieces)[len(*pieces)-1]
	b := binary.AppendUvarint(w.room[:0], uint64(e.line-w.line)<<2|uint64(e.kind))
	w.line = e.line
	switch e.kind {
	case listedItem:
		b = binary.BigEndian.AppendUint64(b, e.key)
	case listedRepeated:
		b = binary.BigEndian.AppendUint64(b, e.key)
		b = binary.AppendUvarint(b, uint64(e.first))
	default:
		b = binary.AppendUvarint(b, uint64(len(e.text)))
	}
	*piece = append(append(*piece, b...), e.text...)
}

// listReader reads them back.
type listReader struct {
	pieces [][]byte
	rest   []byte
	line   int
}

var errList = errors.New("operation: la lista guardada de un lote no se puede leer")

// next is the next entry; ok is false at the end. Its text is the piece's.
func (r *listReader) next() (e listed, ok bool, err error) {
	for len(r.rest) == 0 {
		if len(r.pieces) == 0 {
			return e, false, nil
		}
		r.rest, r.pieces, r.line = r.pieces[0], r.pieces[1:], 0
	}
	bad := false
	number := func() int {
		v, n := binary.Uvarint(r.rest)
		if n <= 0 || v > 1<<40 {
			bad = true
			return 0
		}
		r.rest = r.rest[n:]
		return int(v)
	}
	take := func(n int) []byte {
		if bad || n > len(r.rest) {
			bad = true
			return make([]byte, 8)
		}
		b := r.rest[:n]
		r.rest = r.rest[n:]
		return b
	}
	head := number()
	r.line += head >> 2
	e.kind, e.line = listedKind(head&3), r.line
	switch e.kind {
	case listedItem:
		e.key = binary.BigEndian.Uint64(take(8))
	case listedRepeated:
		e.key = binary.BigEndian.Uint64(take(8))
		e.first = number()
	case listedRefused:
		e.text = take(number())
	default:
		bad = true
	}
	if bad {
		return e, false, errList
	}
	return e, true, nil
}

// item is the next entry that is an item.
func (r *listReader) item() (e listed, ok bool, err error) {
	for {
		if e, ok, err = r.next(); !ok || e.kind == listedItem {
			return e, ok, err
		}
	}
}
