// Package safexml reads XML that a stranger sent: a pull reader that goes once
// through a whole document in memory, with a bound on everything.
//
// It reads the part of XML 1.0 with namespaces that tax and payment documents
// use, and refuses the rest: document types and entities of any kind, and what
// is not well formed, with duplicate attributes, undeclared prefixes, a second
// root and text outside the root among it. Nothing is fetched, and nothing
// expands: every reference is longer than what it stands for. Processing
// instructions are refused unless Limits admits some; comments are passed over.
//
// Names are resolved: match elements by namespace and local name, never by
// prefix. Values are normalised as XML asks: line ends become one line feed, and
// a literal tab or line end in an attribute becomes a blank, while &#10; stays.
//
// Documents are UTF-8, or ISO-8859-1 or windows-1252 where they declare it, which
// Encoding tells. Whoever hashes or verifies a document uses the bytes received.
//
// Start reading at New, then Reader.Next; lexer.go reads names and values.
package safexml

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits bound a document. What passes one is refused with an *Error whose Limit
// is set. Zero admits none.
type Limits struct {
	Bytes        int // the document as received
	Depth        int // elements open at once, the root included
	Elements     int // in the whole document
	Attributes   int // of one element, namespace declarations included
	Text         int // bytes of one attribute's value, or of the text of one element read with Text
	Instructions int // processing instructions that are passed over; none by default
}

// Default admits every invoice and receipt of ordinary size. It must not be
// changed: copy it, and raise what a caller needs.
var Default = Limits{Bytes: 1 << 20, Depth: 64, Elements: 100_000, Attributes: 128, Text: 256 << 10}

const (
	// maxName bounds a name with its prefix, in bytes.
	maxName = 256
	// maxBindings bounds the namespace declarations in force at one place: each
	// prefix is looked up among them.
	maxBindings = 128
)

// Error says why a document is refused. Reason is Spanish, for whoever sent the
// document, and quotes nothing of it but names.
type Error struct {
	Line   int // from 1
	Reason string
	Limit  bool // the document may be right, and is more than is admitted
}

func (e *Error) Error() string { return fmt.Sprintf("XML, línea %d: %s", e.Line, e.Reason) }

// Kind is what an event is about.
type Kind byte

// What Next returns.
const (
	Start Kind = iota + 1
	End
	Text
)

// Name is the name of an element or an attribute. Space is the URI of its
// namespace, "" for none: attributes without prefix have none.
type Name struct{ Space, Local string }

// Attr is an attribute with its value normalised.
type Attr struct {
	Name  Name
	Value string
}

// Event is one step through a document. Its strings may be kept; each keeps the
// memory of the document.
type Event struct {
	Kind   Kind
	Name   Name   // of the element, with Start and End
	Prefix string // as the document writes it, with Start and End
	// Attrs are those of a Start, in the order of the document and without the
	// namespace declarations. They are the Reader's: valid until its next call.
	Attrs []Attr
	// Text is a piece of text: comments, CDATA sections and processing instructions
	// divide the text of an element into several.
	Text string
	// Offset is where the event begins in Document, in bytes: with Offset of the
	// Reader, a part of a document can be cut out of it.
	Offset int
}

// Is reports whether the event is about an element of this name.
func (e *Event) Is(space, local string) bool { return e.Name.Local == local && e.Name.Space == space }

// Attr returns the value of an attribute that has no namespace, as nearly all
// have, and whether it is there.
func (e *Event) Attr(local string) (string, bool) {
	for i := range e.Attrs {
		if a := &e.Attrs[i]; a.Name.Local == local && a.Name.Space == "" {
			return a.Value, true
		}
	}
	return "", false
}

// Reader goes through one document, once. It is for one goroutine.
type Reader struct {
	doc      string // UTF-8, without byte order mark
	start    int    // where its declaration ends
	pos      int    // of the next byte
	limits   Limits
	encoding string

	open         []element
	bindings     []binding // namespace declarations in force, the innermost last
	attrs        []Attr    // of the last Start; room for the next
	closing      bool      // the last Start was an empty element: its End comes next
	rooted       bool
	elements     int
	instructions int
	err          error // ends every further call

	counted, line int // the line of a place that was asked for
}

// element is one that is open.
type element struct {
	written  string // with its prefix
	prefix   string
	name     Name
	bindings int // those in force outside of it
}

type binding struct{ prefix, space string }

const (
	spaceXML   = "http://www.w3.org/XML/1998/namespace"
	spaceXMLNS = "http://www.w3.org/2000/xmlns/"
)

// New prepares to read a document. It copies doc, which the caller may reuse, and
// refuses with an *Error what is too large, of another encoding, or not made of
// characters that XML has.
func New(doc []byte, limits Limits) (*Reader, error) {
	r := &Reader{limits: limits, line: 1}
	if len(doc) > limits.Bytes {
		return nil, &Error{Line: 1, Reason: fmt.Sprintf("el documento ocupa %d bytes y se admiten %d.", len(doc), limits.Bytes), Limit: true}
	}
	if err := r.decode(doc); err != nil {
		return nil, err
	}
	return r, nil
}

// Encoding returns UTF-8, ISO-8859-1 or windows-1252.
func (r *Reader) Encoding() string { return r.encoding }

// Document returns the document in UTF-8, without byte order mark and without
// declaration: bytes that any reader of XML takes for what they are.
func (r *Reader) Document() string { return r.doc[r.start:] }

// Offset returns the place in Document, in bytes, that has been read up to.
func (r *Reader) Offset() int { return r.pos - r.start }

// Line returns the line, from 1, that has been read up to.
func (r *Reader) Line() int { return r.lineOf(r.pos) }

func (r *Reader) lineOf(pos int) int {
	if pos < r.counted {
		return 1 + lineEnds(r.doc[:pos])
	}
	r.line += lineEnds(r.doc[r.counted:pos])
	r.counted = pos
	return r.line
}

func lineEnds(s string) int { return strings.Count(s, "\n") }

// fail refuses the document at a place, for good.
func (r *Reader) fail(pos int, format string, args ...any) error {
	r.err = &Error{Line: r.lineOf(pos), Reason: fmt.Sprintf(format, args...)}
	return r.err
}

// exceed refuses the document for its size.
func (r *Reader) exceed(pos int, format string, args ...any) error {
	r.err = &Error{Line: r.lineOf(pos), Reason: fmt.Sprintf(format, args...), Limit: true}
	return r.err
}

// Next returns the next event, io.EOF after the last, an *Error for a document
// that is refused. What came before an error is no document.
func (r *Reader) Next() (Event, error) {
	for {
		switch {
		case r.err != nil:
			return Event{}, r.err
		case r.closing:
			r.closing = false
			return r.end(r.pos), nil
		case len(r.open) == 0:
			if err := r.outside(); err != nil {
				return Event{}, err
			}
		case r.pos == len(r.doc):
			return Event{}, r.fail(r.pos, "el documento termina y «%s» no se cerró; envíelo completo.", quote(r.open[len(r.open)-1].written))
		case r.doc[r.pos] != '<':
			at := r.Offset()
			text, err := r.text()
			return Event{Kind: Text, Text: text, Offset: at}, err
		}
		// Here stands a «<».
		rest, at := r.doc[r.pos:], r.Offset()
		switch {
		case strings.HasPrefix(rest, "</"):
			return r.endTag()
		case strings.HasPrefix(rest, "<!--"):
			if err := r.comment(); err != nil {
				return Event{}, err
			}
		case strings.HasPrefix(rest, "<![CDATA[") && len(r.open) > 0:
			text, err := r.section()
			return Event{Kind: Text, Text: text, Offset: at}, err
		case strings.HasPrefix(rest, "<!"):
			return Event{}, r.fail(r.pos, "no se admiten DOCTYPE, ENTITY ni otras declaraciones; quítelas.")
		case strings.HasPrefix(rest, "<?"):
			if err := r.instruction(); err != nil {
				return Event{}, err
			}
		case r.rooted && len(r.open) == 0:
			return Event{}, r.fail(r.pos, "hay un segundo elemento raíz; envíe un solo documento.")
		default:
			return r.startTag()
		}
	}
}

// outside passes blanks before and after the root. It returns nil at a «<».
func (r *Reader) outside() error {
	r.blanks()
	switch {
	case r.pos < len(r.doc) && r.doc[r.pos] == '<':
		return nil
	case r.pos < len(r.doc):
		return r.fail(r.pos, "hay texto fuera del elemento raíz; quítelo.")
	case !r.rooted:
		return r.fail(r.pos, "no hay ningún elemento; envíe el documento completo.")
	}
	r.err = io.EOF
	return r.err
}

// end closes the innermost element, whose end tag is at a place.
func (r *Reader) end(at int) Event {
	last := len(r.open) - 1
	e := r.open[last]
	r.open = r.open[:last]
	r.bindings = r.bindings[:e.bindings]
	return Event{Kind: End, Name: e.name, Prefix: e.prefix, Offset: at - r.start}
}

func (r *Reader) endTag() (Event, error) {
	at := r.pos
	if len(r.open) == 0 {
		return Event{}, r.fail(at, "se cierra un elemento que no está abierto.")
	}
	open := r.open[len(r.open)-1].written
	r.pos += len("</")
	if !strings.HasPrefix(r.doc[r.pos:], open) {
		return Event{}, r.fail(at, "se esperaba el cierre de «%s».", quote(open))
	}
	r.pos += len(open)
	r.blanks()
	if !r.take('>') {
		return Event{}, r.fail(at, "se esperaba el cierre de «%s».", quote(open))
	}
	return r.end(at), nil
}

func (r *Reader) startTag() (Event, error) {
	at := r.pos
	r.pos++
	e := element{bindings: len(r.bindings)}
	var err error
	if e.prefix, e.name.Local, err = r.name(); err != nil {
		return Event{}, err
	}
	e.written = r.doc[at+1 : r.pos]
	switch r.elements++; {
	case len(r.open) >= r.limits.Depth:
		return Event{}, r.exceed(at, "hay más de %d elementos uno dentro de otro.", r.limits.Depth)
	case r.elements > r.limits.Elements:
		return Event{}, r.exceed(at, "hay más de %d elementos.", r.limits.Elements)
	}
	if err := r.attributes(e.bindings); err != nil {
		return Event{}, err
	}
	var ok bool
	if e.name.Space, ok = r.spaceOf(e.prefix); !ok {
		return Event{}, r.fail(at, "el prefijo «%s» no está declarado.", quote(e.prefix))
	}
	for i := range r.attrs {
		// Until here Space was the prefix; that of no prefix is no namespace.
		a := &r.attrs[i]
		if a.Name.Space != "" {
			if a.Name.Space, ok = r.spaceOf(a.Name.Space); !ok {
				return Event{}, r.fail(at, "el prefijo de un atributo de «%s» no está declarado.", quote(e.written))
			}
		}
		if slices.ContainsFunc(r.attrs[:i], func(b Attr) bool { return b.Name.Local == a.Name.Local && b.Name.Space == a.Name.Space }) {
			return Event{}, r.fail(at, "«%s» repite el atributo «%s».", quote(e.written), quote(a.Name.Local))
		}
	}
	r.rooted = true
	r.open = append(r.open, e)
	return Event{Kind: Start, Name: e.name, Prefix: e.prefix, Attrs: r.attrs, Offset: at - r.start}, nil
}

// spaceOf returns the namespace of a prefix, "" being the default one's.
func (r *Reader) spaceOf(prefix string) (string, bool) {
	for i := len(r.bindings) - 1; i >= 0; i-- {
		if b := &r.bindings[i]; b.prefix == prefix {
			return b.space, true
		}
	}
	switch prefix {
	case "":
		return "", true
	case "xml":
		return spaceXML, true
	}
	return "", false
}

// bind declares a namespace in the element whose first binding is at from.
func (r *Reader) bind(at, from int, prefix, space string) error {
	switch {
	case prefix == "xmlns" || space == spaceXMLNS || (prefix == "xml") != (space == spaceXML):
		return r.fail(at, "los prefijos xml y xmlns no se declaran de otro modo.")
	case prefix != "" && space == "":
		return r.fail(at, "el prefijo «%s» se declara sin espacio de nombres.", quote(prefix))
	case len(r.bindings) >= maxBindings:
		return r.exceed(at, "hay más de %d espacios de nombres declarados.", maxBindings)
	}
	if slices.ContainsFunc(r.bindings[from:], func(b binding) bool { return b.prefix == prefix }) {
		return r.fail(at, "el prefijo «%s» se declara dos veces en un elemento.", quote(prefix))
	}
	r.bindings = append(r.bindings, binding{prefix, space})
	return nil
}

// Children calls each with the Start of every element inside the one whose Start
// was read last, in order, and takes its End. each may go into the element with
// Children, Text or Skip; what it leaves unread is passed over, with the same
// checks. Text beside the elements is passed over. An error of each ends it.
func (r *Reader) Children(each func(Event) error) error {
	depth := len(r.open)
	for {
		e, err := r.inside()
		switch {
		case err != nil:
			return err
		case len(r.open) < depth:
			return nil
		case e.Kind != Start:
			continue
		}
		if err := each(e); err != nil {
			return err
		}
		for len(r.open) > depth {
			if _, err := r.inside(); err != nil {
				return err
			}
		}
	}
}

// Skip passes over the rest of the element whose Start was read last, and takes
// its End. What it passes over is checked like the rest.
func (r *Reader) Skip() error { return r.Children(func(Event) error { return nil }) }

// Text returns the text of the element whose Start was read last, its pieces
// joined, and takes its End. An element inside is an *Error.
func (r *Reader) Text() (string, error) {
	depth := len(r.open)
	first, size := "", 0
	var more strings.Builder // of a second piece on
	for {
		e, err := r.inside()
		switch {
		case err != nil:
			return "", err
		case len(r.open) < depth && more.Len() > 0:
			return more.String(), nil
		case len(r.open) < depth:
			return first, nil
		case e.Kind == Start:
			return "", r.fail(r.pos, "«%s» lleva solo texto y tiene dentro «%s».", quote(r.open[depth-1].written), quote(r.open[depth].written))
		}
		if size += len(e.Text); size > r.limits.Text {
			return "", r.exceed(r.pos, "el texto de «%s» ocupa más de %d bytes.", quote(r.open[depth-1].written), r.limits.Text)
		}
		if more.Len() == 0 && first == "" {
			first = e.Text
			continue
		}
		if more.Len() == 0 {
			more.WriteString(first)
		}
		more.WriteString(e.Text)
	}
}

// errOutside is a mistake of the caller.
var errOutside = errors.New("safexml: no element is open")

// inside is Next within an element.
func (r *Reader) inside() (Event, error) {
	if len(r.open) == 0 {
		return Event{}, errOutside
	}
	return r.Next()
}
