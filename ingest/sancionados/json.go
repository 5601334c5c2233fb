package sancionados

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// Limits of one record of an answer; the known ones have some 60 fields, five deep.
const (
	maxDepth   = 12
	maxMembers = 300  // of one object
	maxItems   = 1000 // of one list inside a record
	maxString  = 64 << 10
	maxNodes   = 20_000 // of one record
)

// document reads JSON as it comes: one answer, or several one behind the other.
type document struct {
	dec   *json.Decoder
	nodes int // of the record that is read
}

// open prepares to read a file, and refuses what is empty, a web page or no UTF-8.
func open(in io.Reader) (*document, error) {
	text := bufio.NewReader(in)
	if mark, _ := text.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = text.Discard(len(mark))
	}
	if err := tabular.Sniff(text); err != nil {
		return nil, err
	}
	d := &document{dec: json.NewDecoder(transform.NewReader(text, encoding.UTF8Validator))}
	d.dec.UseNumber()
	return d, nil
}

// over reads a file with walk. Errors of official and of walk come back as they are.
func over(official snapshots.Opener, walk func(*document) error) error {
	in, err := official()
	if err != nil {
		return err
	}
	defer in.Close()
	d, err := open(in)
	if err != nil {
		return err
	}
	return walk(d)
}

// token is the next token; what is no JSON becomes a refusal, and other errors of
// reading stay.
func (d *document) token() (json.Token, error) {
	t, err := d.dec.Token()
	switch syntax, wrong := errors.AsType[*json.SyntaxError](err); {
	case err == nil:
		return t, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, tabular.Refuse(tabular.Truncated, "la respuesta termina antes de tiempo; guárdela de nuevo, completa")
	case errors.Is(err, encoding.ErrInvalidUTF8):
		return nil, tabular.Refuse(tabular.Broken, "el archivo no está en UTF-8; guarde la respuesta como la da el servidor, sin abrirla en otro programa")
	case wrong:
		return nil, tabular.Refuse(tabular.Broken, fmt.Sprintf("no es JSON (byte %d); guarde la respuesta como la da el servidor", syntax.Offset))
	}
	return nil, err
}

// more reports whether another answer follows.
func (d *document) more() bool { return d.dec.More() }

// end wants nothing to follow.
func (d *document) end() error {
	if d.dec.More() {
		return tabular.Refuse(tabular.Broken, "hay texto después de la respuesta; guarde una sola, como la da el servidor")
	}
	_, err := d.dec.Token()
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return tabular.Refuse(tabular.Broken, "hay texto después de la respuesta; guarde una sola, como la da el servidor")
}

func shape(what string) error {
	return tabular.Refuse(tabular.Header, "no tiene la forma esperada: "+what+advice)
}

// object reads an object; member is called before each value and reads it.
func (d *document) object(what string, member func(name string) error) error {
	if t, err := d.token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return shape(what + " no es un objeto")
	}
	seen := map[string]bool{}
	for d.dec.More() {
		t, err := d.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if seen[name] || len(seen) == maxMembers || len(name) > maxString {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("%s repite un nombre, o tiene más de %d", what, maxMembers))
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// list reads a list; item reads each of its items.
func (d *document) list(what string, item func() error) error {
	if t, err := d.token(); err != nil {
		return err
	} else if t != json.Delim('[') {
		return shape(what + " no es una lista")
	}
	for d.dec.More() {
		if err := item(); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// node is a value of JSON: a text (numbers and truth values as they are written), an
// object or a list. null is the zero node.
type node struct {
	text    string
	members map[string]node // of an object, nil otherwise
	items   []node          // of a list
}

// record reads one value within the limits of a record.
func (d *document) record() (node, error) {
	d.nodes = 0
	return d.value(1)
}

func tooMuch(format string, args ...any) error {
	return tabular.Refuse(tabular.Broken, "un registro es más grande de lo que se admite: "+fmt.Sprintf(format, args...))
}

func (d *document) value(depth int) (n node, err error) {
	if d.nodes++; depth > maxDepth || d.nodes > maxNodes {
		return n, tooMuch("más de %d niveles o de %d datos", maxDepth, maxNodes)
	}
	t, err := d.token()
	if err != nil {
		return n, err
	}
	switch t := t.(type) {
	case string:
		n.text = t
	case json.Number:
		n.text = t.String()
	case bool:
		n.text = fmt.Sprint(t)
	case json.Delim:
		if t == '[' {
			return d.items(depth)
		}
		return d.members(depth)
	}
	if len(n.text) > maxString {
		return n, tooMuch("un texto de más de %d bytes", maxString)
	}
	return n, nil
}

func (d *document) items(depth int) (n node, err error) {
	for d.dec.More() {
		item, err := d.value(depth + 1)
		if err != nil {
			return n, err
		}
		if n.items = append(n.items, item); len(n.items) > maxItems {
			return n, tooMuch("una lista de más de %d", maxItems)
		}
	}
	_, err = d.token()
	return n, err
}

func (d *document) members(depth int) (n node, err error) {
	n.members = map[string]node{}
	for d.dec.More() {
		t, err := d.token()
		if err != nil {
			return n, err
		}
		name, _ := t.(string)
		if _, twice := n.members[name]; twice || len(n.members) == maxMembers || len(name) > maxString {
			return n, tooMuch("un objeto con más de %d nombres, o con uno repetido", maxMembers)
		}
		if n.members[name], err = d.value(depth + 1); err != nil {
			return n, err
		}
	}
	_, err = d.token()
	return n, err
}

// at is what stands below, the zero node when nothing does.
func (n node) at(path ...string) node {
	for _, name := range path {
		n = n.members[name]
	}
	return n
}

// of is the text below.
func (n node) of(path ...string) string { return n.at(path...).text }

// joined are the texts that pick finds in the items of a list, or in the node itself
// when it is none, in their order.
func (n node) joined(pick func(node) string) string {
	if n.items == nil {
		return pick(n)
	}
	var all []string
	for _, item := range n.items {
		if text := pick(item); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
