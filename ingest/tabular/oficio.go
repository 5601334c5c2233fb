package tabular

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"cotejo/civil"
)

// minGroups is the least number of digit groups in the number of an oficio. They
// have four (500-05-2018-16632) or more (900-04-00-00-00-2024-80); three groups
// are a date.
const minGroups = 4

const maxGroups = 10

// AppendOficios appends a cell that lists oficios, "500-05-2018-16632 de fecha 01
// de junio de 2018", in canonical form: NUMBER de YYYY-MM-DD, joined by " // ", in
// their own order (official lists put the newest first). Groups of a number may
// be joined by hyphens or blanks; "de fecha", "de" and "del" may be missing; a
// final question mark (a byte lost by the authority) or period is dropped;
// oficios are separated by slashes, hyphens or blanks.
//
// text must come from AppendText. ok is false, and text itself is appended, when
// anything else stands in the cell: a note may carry meaning.
func AppendOficios(dst, text []byte) (out []byte, ok bool) {
	start := len(dst)
	s := scanner{text: text}
	for !s.end() {
		if len(dst) > start {
			dst = append(dst, " // "...)
		}
		var day civil.Date
		if dst, ok = s.appendNumber(dst); ok {
			day, ok = s.writtenDate()
		}
		if !ok {
			return append(dst[:start], text...), false
		}
		dst = AppendDate(append(dst, " de "...), day)
		for s.skip('?') || s.skip('.') {
		}
		if s.separators() == 0 && !s.end() {
			return append(dst[:start], text...), false
		}
	}
	return dst, true
}

// AppendOficioNumber appends the number of the oficio listed last in a cell,
// groups joined by hyphens. When the cell is not a plain list of oficios it is the
// last thing in it that looks like a number, and the text itself when nothing
// does: an identity must not be lost because of a note.
func AppendOficioNumber(dst, text []byte) []byte {
	start := len(dst)
	if list, ok := AppendOficios(dst, text); ok {
		last := list[start:]
		if i := bytes.LastIndex(last, []byte(" // ")); i >= 0 {
			last = last[i+len(" // "):]
		}
		if i := bytes.IndexByte(last, ' '); i >= 0 {
			last = last[:i]
		}
		return append(dst, last...)
	}
	from, to := 0, 0
	for i := 0; i < len(text); {
		first, n, groups := tightNumber(text[i:])
		if groups >= minGroups {
			from, to = i, i+n
			i += n
			continue
		}
		i += max(first, 1)
	}
	if to == 0 {
		return append(dst, text...)
	}
	for _, c := range text[from:to] {
		if c == ' ' {
			c = '-'
		}
		dst = append(dst, c)
	}
	return dst
}

// appendNumber reads the number of an oficio.
func (s *scanner) appendNumber(dst []byte) ([]byte, bool) {
	for groups := 1; groups <= maxGroups; groups++ {
		g := s.digits(8)
		if len(g) == 0 {
			return dst, false
		}
		dst = append(dst, g...)
		back := s.pos
		gap := s.skip(' ')
		if s.hyphen() {
			s.skip(' ')
		} else if !gap || s.end() || s.text[s.pos] < '0' || s.text[s.pos] > '9' {
			s.pos = back
			return dst, groups >= minGroups
		}
		dst = append(dst, '-')
	}
	return dst, false
}

// writtenDate reads "de fecha 01 de junio de 2018" and its abbreviations.
func (s *scanner) writtenDate() (civil.Date, bool) {
	for s.connective() {
	}
	s.skip(' ')
	dom := s.digits(2)
	for s.connective() {
	}
	s.skip(' ')
	month := s.word()
	for s.connective() {
	}
	s.skip(' ')
	return WrittenDate(dom, month, s.digits(4))
}

// connective skips one of the words that only hold the date together.
func (s *scanner) connective() bool {
	back := s.pos
	s.skip(' ')
	w := s.word()
	if bytes.EqualFold(w, []byte("de")) || bytes.EqualFold(w, []byte("del")) || bytes.EqualFold(w, []byte("fecha")) {
		return true
	}
	s.pos = back
	return false
}

func (s *scanner) word() []byte {
	from := s.pos
	for s.pos < len(s.text) {
		r, size := utf8.DecodeRune(s.text[s.pos:])
		if !unicode.IsLetter(r) {
			break
		}
		s.pos += size
	}
	return s.text[from:s.pos]
}

// tightNumber measures the digit groups at the start of text that are joined by
// one and the same byte, a hyphen or a blank: the first group, all of them, and
// how many they are.
func tightNumber(text []byte) (first, n, groups int) {
	var join byte
	i := 0
	for i < len(text) {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		if i == from {
			break
		}
		n = i
		if groups == 0 {
			first = n
		}
		groups++
		if i == len(text) || (text[i] != '-' && text[i] != ' ') || (join != 0 && text[i] != join) {
			break
		}
		join = text[i]
		i++
	}
	return first, n, groups
}
