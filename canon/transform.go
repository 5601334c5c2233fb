package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// The reasons to refuse a text. Errors carry the byte, counted from 0, at which
// the rule was broken.
var (
	ErrSyntax        = errors.New("no es JSON válido (RFC 8259); corrija el texto en ese lugar")
	ErrDuplicateName = errors.New("el objeto repite un nombre; deje uno solo")
	ErrDepth         = errors.New("hay más de 64 niveles de objetos y listas; aplane la estructura")
	ErrNumber        = errors.New("el número no cabe en un flotante de 64 bits; escríbalo como texto")
	ErrUnicode       = errors.New("el texto no es Unicode válido; envíelo en UTF-8, sin sustitutos \\uD800 a \\uDFFF sueltos")
)

// maxDepth is how many objects and arrays may be open at once.
const maxDepth = 64

// Transform returns the canonical form of a JSON text. It refuses duplicate
// names, invalid UTF-8, lone surrogates, numbers outside binary64, nesting
// deeper than 64 and anything after the value. A number that binary64 holds
// only approximately is rounded, as RFC 8785 says: integers beyond 2^53 belong
// in strings.
//
// The result shares no memory with text. Its size is at most about six times
// that of text (1e20 becomes 21 digits), so the caller's limit on text is a
// limit on the result.
func Transform(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, fail(invalidUTF8(text), ErrUnicode)
	}
	p := parser{in: text, out: make([]byte, 0, len(text)), members: make([]member, 0, 16)}
	p.blanks()
	if err := p.value(0); err != nil {
		return nil, err
	}
	p.blanks()
	if p.pos < len(p.in) {
		return nil, fail(p.pos, ErrSyntax)
	}
	return p.out, nil
}

// Marshal is Transform of encoding/json's output, for cold paths.
func Marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Transform(text)
}

func fail(pos int, reason error) error { return fmt.Errorf("JSON, byte %d: %w", pos, reason) }

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// parser reads in once, which is valid UTF-8, and writes every value to out as
// soon as it is read; only an object whose members were not in order is written
// a second time.
type parser struct {
	in  []byte
	pos int
	out []byte

	members []member // of all open objects, the innermost last
	scratch []byte
}

// member is a name, decoded, and the place of `"name":value` in out.
type member struct {
	name       []byte
	start, end int
}

func (p *parser) blanks() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end of the text; a NUL in the text is
// nowhere valid either.
func (p *parser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) error {
	switch c := p.peek(); c {
	case '{', '[':
		if depth == maxDepth {
			return fail(p.pos, ErrDepth)
		}
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case '"':
		s, err := p.string()
		if err != nil {
			return err
		}
		p.out = AppendString(p.out, s)
		return nil
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	default:
		return p.number()
	}
}

func (p *parser) literal(word string) error {
	if !bytes.HasPrefix(p.in[p.pos:], []byte(word)) {
		return fail(p.pos, ErrSyntax)
	}
	p.pos += len(word)
	p.out = append(p.out, word...)
	return nil
}

func (p *parser) array(depth int) error {
	p.pos++
	p.out = append(p.out, '[')
	p.blanks()
	if p.peek() != ']' {
		for {
			if err := p.value(depth + 1); err != nil {
				return err
			}
			p.blanks()
			if p.peek() != ',' {
				break
			}
			p.pos++
			p.out = append(p.out, ',')
			p.blanks()
		}
	}
	if p.peek() != ']' {
		return fail(p.pos, ErrSyntax)
	}
	p.pos++
	p.out = append(p.out, ']')
	return nil
}

func (p *parser) object(depth int) error {
	at := p.pos
	p.pos++
	p.out = append(p.out, '{')
	start, first := len(p.out), len(p.members)
	inOrder := true
	p.blanks()
	if p.peek() != '}' {
		for {
			if p.peek() != '"' {
				return fail(p.pos, ErrSyntax)
			}
			m := member{start: len(p.out)}
			nameAt := p.pos
			var err error
			if m.name, err = p.string(); err != nil {
				return err
			}
			if len(p.members) > first {
				switch order := compareUTF16(p.members[len(p.members)-1].name, m.name); {
				case order == 0:
					return fail(nameAt, ErrDuplicateName)
				case order > 0:
					inOrder = false
				}
			}
			p.blanks()
			if p.peek() != ':' {
				return fail(p.pos, ErrSyntax)
			}
			p.pos++
			p.out = append(AppendString(p.out, m.name), ':')
			p.blanks()
			if err := p.value(depth + 1); err != nil {
				return err
			}
			m.end = len(p.out)
			p.members = append(p.members, m)
			p.blanks()
			if p.peek() != ',' {
				break
			}
			p.pos++
			p.out = append(p.out, ',')
			p.blanks()
		}
	}
	if p.peek() != '}' {
		return fail(p.pos, ErrSyntax)
	}
	p.pos++
	if !inOrder {
		if err := p.sort(start, first, at); err != nil {
			return err
		}
	}
	p.members = p.members[:first]
	p.out = append(p.out, '}')
	return nil
}

// sort writes again, in order, the members of the object that opened at byte at
// and whose text begins at out[start].
func (p *parser) sort(start, first, at int) error {
	members := p.members[first:]
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	p.scratch = append(p.scratch[:0], p.out[start:]...)
	p.out = p.out[:start]
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(members[i-1].name, m.name) {
				return fail(at, ErrDuplicateName)
			}
			p.out = append(p.out, ',')
		}
		p.out = append(p.out, p.scratch[m.start-start:m.end-start]...)
	}
	return nil
}

// compareUTF16 orders two texts of valid UTF-8 by their UTF-16 code units. That
// is the order of their bytes, except that surrogates, which stand for what
// takes four bytes in UTF-8, come before U+E000 to U+FFFF.
func compareUTF16(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		const fourBytes, private = 0xF0, 0xEE
		if a[i] >= private && b[i] >= private && (a[i] >= fourBytes) != (b[i] >= fourBytes) {
			return int(b[i]) - int(a[i])
		}
		return int(a[i]) - int(b[i])
	}
	return len(a) - len(b)
}

// string reads a JSON string and returns it decoded. The result is part of the
// text where that has no escapes.
func (p *parser) string() ([]byte, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case c == '"':
			p.pos++
			return p.in[start : p.pos-1], nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return nil, fail(p.pos, ErrSyntax)
		}
		p.pos++
	}
	return nil, fail(p.pos, ErrSyntax)
}

// escaped reads the rest of a string from its first backslash on.
func (p *parser) escaped(start int) ([]byte, error) {
	s := append([]byte(nil), p.in[start:p.pos]...)
	for p.pos < len(p.in) {
		c := p.in[p.pos]
		switch {
		case c == '"':
			p.pos++
			return s, nil
		case c < ' ':
			return nil, fail(p.pos, ErrSyntax)
		case c != '\\':
			s = append(s, c)
			p.pos++
			continue
		}
		p.pos++
		switch c = p.peek(); c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, err := p.unicodeEscape()
			if err != nil {
				return nil, err
			}
			s = utf8.AppendRune(s, r)
			continue
		default:
			return nil, fail(p.pos, ErrSyntax)
		}
		s = append(s, c)
		p.pos++
	}
	return nil, fail(p.pos, ErrSyntax)
}

// unicodeEscape reads uXXXX, or the pair uXXXX\uXXXX.
func (p *parser) unicodeEscape() (rune, error) {
	at := p.pos - 1
	r, ok := p.hex4()
	if !ok {
		return 0, fail(at, ErrSyntax)
	}
	if r < 0xD800 || r > 0xDFFF {
		return r, nil
	}
	if r >= 0xDC00 || !bytes.HasPrefix(p.in[p.pos:], []byte(`\u`)) {
		return 0, fail(at, ErrUnicode)
	}
	p.pos++
	low, ok := p.hex4()
	if !ok {
		return 0, fail(p.pos, ErrSyntax)
	}
	if low < 0xDC00 || low > 0xDFFF {
		return 0, fail(at, ErrUnicode)
	}
	return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, nil
}

// hex4 reads u and four hexadecimal digits.
func (p *parser) hex4() (r rune, ok bool) {
	if len(p.in)-p.pos < 5 {
		return 0, false
	}
	for _, c := range p.in[p.pos+1 : p.pos+5] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	p.pos += 5
	return r, true
}
