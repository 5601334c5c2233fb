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
// be joined by hyphens or blanks; "de fecha", "de" and "del" may be missing; final
// question marks (a byte lost by the authority) and periods are dropped; oficios
// are separated by slashes, commas, semicolons, hyphens or blanks.
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
		if dst, ok = s.appendOficio(dst); !ok {
			return append(dst[:start], text...), false
		}
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
			if at := bytes.LastIndexByte(text[i:i+n], ' '); at > 0 && groups > minGroups && monthFollows(text[i+n:]) {
				n = at // what came last was the day of a date
			}
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

// appendOficio reads one oficio. Where nothing but a blank stands between number
// and date, the day looks like one more group of the number, until a month
// follows it.
func (s *scanner) appendOficio(dst []byte) ([]byte, bool) {
	dst, groups, before, ok := s.appendNumber(dst)
	if !ok {
		return dst, false
	}
	day, ok := s.writtenDate()
	if !ok && before.pos > 0 && groups > minGroups {
		s.pos, dst = before.pos, dst[:before.len]
		day, ok = s.writtenDate()
	}
	if !ok {
		return dst, false
	}
	return AppendDate(append(dst, " de "...), day), true
}

// mark is a place in the text and how much was written when it was reached.
type mark struct{ pos, len int }

// appendNumber reads the number of an oficio. before is where its last group
// starts if a blank alone joins it, else zero.
func (s *scanner) appendNumber(dst []byte) (out []byte, groups int, before mark, ok bool) {
	for {
		g := s.digits(8)
		if len(g) == 0 {
			return dst, groups, before, false
		}
		dst = append(dst, g...)
		groups++
		back := mark{s.pos, len(dst)}
		gap := s.skip(' ')
		hyphen := s.hyphen()
		if hyphen {
			s.skip(' ')
		}
		another := hyphen || gap && !s.end() && s.text[s.pos] >= '0' && s.text[s.pos] <= '9'
		if !another || groups == maxGroups {
			s.pos = back.pos
			return dst, groups, before, groups >= minGroups
		}
		if before = back; hyphen {
			before = mark{}
		}
		dst = append(dst, '-')
	}
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

// monthFollows reports whether text begins, after connectives, with a month.
func monthFollows(text []byte) bool {
	s := scanner{text: text}
	for s.connective() {
	}
	s.skip(' ')
	month := s.word()
	_, ok := monthNamed(month)
	return ok
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
