package safexml

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// blanks passes blanks and reports whether there were any.
func (r *Reader) blanks() bool {
	from := r.pos
	for r.pos < len(r.doc) && isBlank(r.doc[r.pos]) {
		r.pos++
	}
	return r.pos > from
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// take passes one byte, if it comes next.
func (r *Reader) take(c byte) bool {
	if r.pos < len(r.doc) && r.doc[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

// name reads a name with its prefix, if it has one.
func (r *Reader) name() (prefix, local string, err error) {
	at := r.pos
	local = r.word()
	if local != "" && r.take(':') {
		prefix = local
		local = r.word()
	}
	switch {
	case local == "":
		return "", "", r.fail(at, "se esperaba el nombre de un elemento o de un atributo; un «<» o un «&» en el texto se escriben &lt; y &amp;.")
	case r.pos-at > maxName:
		return "", "", r.exceed(at, "hay un nombre de más de %d bytes.", maxName)
	}
	return prefix, local, nil
}

// word reads a name without colon (NCName), "" if none comes next.
func (r *Reader) word() string {
	from := r.pos
	for r.pos < len(r.doc) {
		c := r.doc[r.pos]
		if c < utf8.RuneSelf {
			if !isLetter(c) && (r.pos == from || c != '-' && c != '.' && (c < '0' || c > '9')) {
				break
			}
			r.pos++
			continue
		}
		char, size := utf8.DecodeRuneInString(r.doc[r.pos:])
		if !isNameStart(char) && (r.pos == from || !isNamePart(char)) {
			break
		}
		r.pos += size
	}
	return r.doc[from:r.pos]
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// isNameStart and isNamePart are the productions of XML 1.0, fifth edition, beyond
// ASCII.
func isNameStart(c rune) bool {
	return c >= 0xC0 && c <= 0x2FF && c != 0xD7 && c != 0xF7 || c >= 0x370 && c <= 0x1FFF && c != 0x37E ||
		c == 0x200C || c == 0x200D || c >= 0x2070 && c <= 0x218F || c >= 0x2C00 && c <= 0x2FEF ||
		c >= 0x3001 && c <= 0xD7FF || c >= 0xF900 && c <= 0xFDCF || c >= 0xFDF0 && c <= 0xFFFD || c >= 0x10000 && c <= 0xEFFFF
}

func isNamePart(c rune) bool {
	return c == 0xB7 || c >= 0x300 && c <= 0x36F || c == 0x203F || c == 0x2040
}

// attributes reads those of a start tag, to its end. Namespace declarations go to
// bindings, from the place from on; of the others the prefix is in Name.Space.
func (r *Reader) attributes(from int) error {
	r.attrs = r.attrs[:0]
	for {
		apart := r.blanks()
		if r.take('>') {
			return nil
		}
		if r.take('/') {
			if !r.take('>') {
				return r.fail(r.pos, "se esperaba «>» después de «/».")
			}
			r.closing = true
			return nil
		}
		at := r.pos
		switch {
		case at == len(r.doc):
			return r.fail(at, "el documento termina dentro de una etiqueta; envíelo completo.")
		case !apart:
			return r.fail(at, "falta un espacio antes de un atributo, o un «>».")
		case len(r.attrs)+len(r.bindings)-from >= r.limits.Attributes:
			return r.exceed(at, "un elemento tiene más de %d atributos.", r.limits.Attributes)
		}
		prefix, local, err := r.name()
		if err != nil {
			return err
		}
		value, err := r.value()
		switch {
		case err != nil:
			return err
		case prefix == "xmlns":
			err = r.bind(at, from, local, value)
		case prefix == "" && local == "xmlns":
			err = r.bind(at, from, "", value)
		default:
			r.attrs = append(r.attrs, Attr{Name{prefix, local}, value})
		}
		if err != nil {
			return err
		}
	}
}

// value reads the «=» and the value of an attribute.
func (r *Reader) value() (string, error) {
	at := r.pos
	r.blanks()
	equals := r.take('=')
	r.blanks()
	if !equals || r.pos == len(r.doc) || r.doc[r.pos] != '"' && r.doc[r.pos] != '\'' {
		return "", r.fail(at, "un atributo se escribe nombre=\"valor\", con comillas.")
	}
	mark := r.doc[r.pos]
	r.pos++
	size := strings.IndexByte(r.doc[r.pos:], mark)
	if size < 0 {
		return "", r.fail(at, "un atributo no cierra sus comillas.")
	}
	if size > r.limits.Text {
		return "", r.exceed(at, "un atributo ocupa más de %d bytes.", r.limits.Text)
	}
	raw := r.doc[r.pos : r.pos+size]
	plain := true
	for i := range len(raw) {
		switch raw[i] {
		case '<':
			return "", r.fail(r.pos+i, "hay un «<» en un atributo; se escribe &lt;.")
		case '&', '\t', '\n', '\r':
			plain = false
		}
	}
	value, err := raw, error(nil)
	if !plain {
		value, err = r.resolve(r.pos, raw, true)
	}
	r.pos += size + 1
	return value, err
}

// text reads to the next «<», or to the end.
func (r *Reader) text() (string, error) {
	at := r.pos
	size := strings.IndexByte(r.doc[at:], '<')
	if size < 0 {
		size = len(r.doc) - at
	}
	raw := r.doc[at : at+size]
	r.pos += size
	if i := strings.Index(raw, "]]>"); i >= 0 {
		return "", r.fail(at+i, "hay un «]]>» en el texto; el «>» se escribe &gt;.")
	}
	if strings.IndexByte(raw, '&') < 0 && strings.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	return r.resolve(at, raw, false)
}

// section reads a CDATA section.
func (r *Reader) section() (string, error) {
	at := r.pos
	raw, ok := r.between("<![CDATA[", "]]>")
	if !ok {
		return "", r.fail(at, "una sección CDATA no se cierra.")
	}
	if strings.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	return strings.ReplaceAll(strings.ReplaceAll(raw, "\r\n", "\n"), "\r", "\n"), nil
}

func (r *Reader) comment() error {
	at := r.pos
	raw, ok := r.between("<!--", "-->")
	if !ok {
		return r.fail(at, "un comentario no se cierra.")
	}
	if strings.Contains(raw, "--") || strings.HasSuffix(raw, "-") {
		return r.fail(at, "un comentario no puede llevar «--» dentro.")
	}
	return nil
}

func (r *Reader) instruction() error {
	at := r.pos
	raw, ok := r.between("<?", "?>")
	target, _, _ := strings.Cut(raw, " ")
	switch r.instructions++; {
	case !ok:
		return r.fail(at, "una instrucción de proceso no se cierra.")
	case strings.EqualFold(strings.TrimSpace(target), "xml"):
		return r.fail(at, "la declaración <?xml …?> va una sola vez, al principio, sin nada antes.")
	case r.limits.Instructions == 0:
		return r.fail(at, "no se admiten instrucciones de proceso («<?…?>»); quítelas.")
	case r.instructions > r.limits.Instructions:
		return r.exceed(at, "hay más de %d instrucciones de proceso.", r.limits.Instructions)
	}
	target = (&Reader{doc: raw}).word()
	if rest := raw[len(target):]; target == "" || rest != "" && !isBlank(rest[0]) {
		return r.fail(at, "una instrucción de proceso no tiene nombre.")
	}
	return nil
}

// between passes what stands from one mark, which comes next, to another.
func (r *Reader) between(from, to string) (string, bool) {
	rest := r.doc[r.pos+len(from):]
	size := strings.Index(rest, to)
	if size < 0 {
		return "", false
	}
	r.pos += len(from) + size + len(to)
	return rest[:size], true
}

// resolve replaces the references of a text that begins at a place, and its line
// ends. In a value, a literal tab or line end is a blank.
func (r *Reader) resolve(at int, raw string, value bool) (string, error) {
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '&' {
			size := strings.IndexByte(raw[i:min(len(raw), i+maxReference)], ';')
			char := rune(-1)
			if size > 0 {
				char = referred(raw[i+1 : i+size])
			}
			if char < 0 {
				return "", r.fail(at+i, "hay un «&» que no es de una referencia conocida; se admiten &amp; &lt; &gt; &quot; &apos; y las de carácter, como &#209;.")
			}
			b = utf8.AppendRune(b, char)
			i += size
			continue
		}
		if c == '\r' {
			if i+1 < len(raw) && raw[i+1] == '\n' {
				i++
			}
			c = '\n'
		}
		if value && (c == '\n' || c == '\t') {
			c = ' '
		}
		b = append(b, c)
	}
	return string(b), nil
}

// maxReference is more than the longest reference takes, zeros apart.
const maxReference = 16

// referred returns the character of a reference without its marks, -1 for none.
func referred(name string) rune {
	switch name {
	case "amp":
		return '&'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "quot":
		return '"'
	case "apos":
		return '\''
	}
	digits, numeric := strings.CutPrefix(name, "#")
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	if !numeric || digits == "" || digits[0] == '+' || digits[0] == '-' {
		return -1
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || !isChar(rune(n)) {
		return -1
	}
	return rune(n)
}

// isChar is the production Char of XML 1.0.
func isChar(c rune) bool {
	return c == '\t' || c == '\n' || c == '\r' || c >= 0x20 && c <= 0xD7FF || c >= 0xE000 && c <= 0xFFFD || c >= 0x10000 && c <= 0x10FFFF
}

// maxQuoted bounds how much of a name a reason repeats, in characters.
const maxQuoted = 40

// quote makes a name of the document safe to repeat.
func quote(name string) string {
	n := 0
	return strings.Map(func(c rune) rune {
		switch n++; {
		case n > maxQuoted+1:
			return -1
		case n == maxQuoted+1:
			return '…'
		case !unicode.IsPrint(c):
			return utf8.RuneError
		}
		return c
	}, name)
}
