package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/canon"
)

// Body is the JSON body that an operation reads.
type Body struct {
	// Schema is an object made with Members: what it does not declare is ignored
	// and reported. A text that is WriteOnly is never echoed. Limits are enforced, and
	// that a date (Day) exists; a Default stands for an absent member.
	Schema   *jsonschema.Schema
	MaxBytes int
}

// JSONError refuses a body that claims to be JSON and is not, or that two readers
// could understand differently. Nothing is charged.
type JSONError struct{ Reason error }

func (e *JSONError) Error() string { return "operation: " + e.Reason.Error() }
func (e *JSONError) Unwrap() error { return e.Reason }

// maxJSONDepth is how many objects and arrays may be open at once in a body.
const maxJSONDepth = 16

var errJSONDepth = errors.New("hay más de 16 niveles de objetos y listas; aplane la estructura")

// check refuses a schema that says more than read enforces.
func (b *Body) check(method string) error {
	switch {
	case method != "POST" && method != "PUT":
		return fmt.Errorf("a %s has no body", method)
	case b.MaxBytes <= 0:
		return errors.New("body without limit")
	case b.Schema == nil || b.Schema.Type != "object":
		return errors.New("body is not an object")
	}
	return checkReadable(b.Schema)
}

func checkReadable(s *jsonschema.Schema) error {
	rest := *s
	kind, _ := kindOf(s)
	switch kind {
	case "object":
		for _, name := range s.PropertyOrder {
			if err := checkReadable(s.Properties[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		rest.Properties, rest.PropertyOrder, rest.Required = nil, nil, nil
	case "array":
		if err := checkReadable(s.Items); err != nil {
			return err
		}
		rest.Items, rest.MinItems, rest.MaxItems = nil, nil, nil
	case "string":
		rest.Enum, rest.MinLength, rest.MaxLength, rest.Pattern, rest.WriteOnly = nil, nil, nil, "", false
		if rest.Format == "date" {
			rest.Format = ""
		}
	case "integer", "number":
		rest.Minimum, rest.ExclusiveMinimum, rest.Maximum = nil, nil, nil
	case "boolean":
	default:
		return fmt.Errorf("type %q", kind)
	}
	rest.Type, rest.Types, rest.Title, rest.Description, rest.Default = "", nil, "", "", nil
	if text, err := json.Marshal(rest); err != nil || string(text) != "true" && string(text) != "{}" {
		return fmt.Errorf("%s is not enforced", text)
	}
	return nil
}

// kindOf returns the one type of a schema beside null.
func kindOf(s *jsonschema.Schema) (kind string, orNull bool) {
	if s.Type == "" && len(s.Types) == 2 && s.Types[1] == "null" {
		return s.Types[0], true
	}
	return s.Type, false
}

// readable tells whether the body may be looked at, and the answer given as it is
// wanted: 415 before 406 before 413.
func (op *Operation) readable(r *Request) error {
	switch {
	case r.Encoded:
		return ErrEncoding
	case op.Body != nil && !isJSON(string(r.ContentType)):
		return ErrMediaType
	case op.Lot != nil && !op.Lot.reads(r.ContentType):
		return ErrListType
	}
	if op.Negotiates {
		offers := []string{mediaJSON}
		for _, m := range op.Media {
			offers = append(offers, m.Type)
		}
		var ok bool
		if r.Media, ok = negotiate(r.Accept, offers...); !ok {
			return ErrNotAcceptable
		}
	}
	switch most := op.MaxBody(); {
	case r.Refusal != nil:
		return r.Refusal
	case most > 0 && len(r.Body) > most:
		return ErrTooLarge
	}
	return nil
}

// MaxBody bounds the body of the operation in bytes; 0 when it reads none.
func (op *Operation) MaxBody() int {
	switch {
	case op.Body != nil:
		return op.Body.MaxBytes
	case op.Lot != nil:
		return op.Lot.MaxBytes
	}
	return 0
}

// isJSON accepts application/json, alone or in UTF-8: JSON has no other encoding.
func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset, said := params["charset"]
	return err == nil && media == "application/json" && (!said || strings.EqualFold(charset, "utf-8"))
}

// content is a body as it was read.
type content struct {
	value   map[string]any
	items   []Item   // everything that is wrong with it
	unknown []string // members that are not declared
}

// read parses and checks a body. The error is a *JSONError.
func (b *Body) read(text []byte) (c content, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		at := place{loc: []any{"body"}}
		c.items = append(c.items, *at.item("missing", "Falta el cuerpo: envíe un objeto JSON", nil, nil))
		return c, nil
	}
	if deeperThan(text, maxJSONDepth) {
		return c, &JSONError{errJSONDepth}
	}
	// Duplicate names, bad UTF-8 and what follows the value are refused here; the
	// numbers of the canonical form are rounded, so the text is read as it came.
	if _, err := canon.Transform(text); err != nil {
		return c, &JSONError{err}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return c, &JSONError{err}
	}
	c.value, _ = c.check(b.Schema, v, place{loc: []any{"body"}, name: "body"}).(map[string]any)
	return c, nil
}

// deeperThan counts brackets outside of strings, before anything recursive looks
// at the text.
func deeperThan(text []byte, limit int) bool {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// check returns v in the form that Get gives out and notes what is wrong with it.
func (c *content) check(s *jsonschema.Schema, v any, at place) any {
	kind, orNull := kindOf(s)
	if v == nil && orNull {
		return nil
	}
	at.description, at.secret = s.Description, at.secret || s.WriteOnly
	switch kind {
	case "object":
		if v, ok := v.(map[string]any); ok {
			return c.checkObject(s, v, at)
		}
		return c.wrong("dict_type", "un objeto", v, at)
	case "array":
		if v, ok := v.([]any); ok {
			return c.checkList(s, v, at)
		}
		return c.wrong("list_type", "una lista", v, at)
	case "string":
		if v, ok := v.(string); ok {
			c.note(at.textLimits(s, v))
			return v
		}
		return c.wrong("string_type", "un texto", v, at)
	case "boolean":
		if v, ok := v.(bool); ok {
			return v
		}
		return c.wrong("bool_type", "true o false", v, at)
	case "number":
		if v, ok := v.(json.Number); ok {
			f, _ := v.Float64() // the strict parser saw to the range
			c.note(at.limits(s, f, string(v)))
			return v
		}
		return c.wrong("float_type", unquoted("un número", v), v, at)
	default: // integer
		if v, ok := v.(json.Number); ok {
			n, ok := whole(v)
			if !ok {
				if item := at.beyond(s, v); item != nil {
					c.note(item)
					return nil
				}
				return c.wrong("int_from_float", "un número entero", v, at)
			}
			c.note(at.limits(s, float64(n), string(v)))
			return n
		}
		return c.wrong("int_type", unquoted("un número entero", v), v, at)
	}
}

func (c *content) checkObject(s *jsonschema.Schema, v map[string]any, at place) any {
	out := make(map[string]any, len(s.Properties))
	for _, name := range s.PropertyOrder {
		member := s.Properties[name]
		inner := place{loc: append(slices.Clip(at.loc), name), name: name, secret: at.secret}
		value, sent := v[name]
		switch {
		case sent:
			out[name] = c.check(member, value, inner)
		case member.Default != nil:
			dec := json.NewDecoder(bytes.NewReader(member.Default))
			dec.UseNumber()
			if dec.Decode(&value) == nil {
				out[name] = c.check(member, value, inner)
			}
		case slices.Contains(s.Required, name):
			c.note(inner.item("missing", "Falta «"+name+"»", nil, nil))
		}
	}
	for name := range v {
		if s.Properties[name] == nil {
			c.unknown = append(c.unknown, name)
		}
	}
	slices.Sort(c.unknown)
	return out
}

func (c *content) checkList(s *jsonschema.Schema, v []any, at place) any {
	switch n := len(v); {
	case s.MinItems != nil && n < *s.MinItems:
		c.note(at.item("too_short", "«"+at.name+"» debe tener al menos "+strconv.Itoa(*s.MinItems)+" elementos", nil, map[string]any{"min_length": *s.MinItems}))
		return nil
	case s.MaxItems != nil && n > *s.MaxItems:
		c.note(at.item("too_long", "«"+at.name+"» debe tener a lo más "+strconv.Itoa(*s.MaxItems)+" elementos", nil, map[string]any{"max_length": *s.MaxItems}))
		return nil
	}
	for i := range v {
		v[i] = c.check(s.Items, v[i], place{loc: append(slices.Clip(at.loc), i), name: at.name, secret: at.secret})
	}
	return v
}

// maxItems bounds the reasons of one answer: a body may hold thousands of errors.
const maxItems = 100

func (c *content) note(item *Item) {
	if item != nil && len(c.items) < maxItems {
		c.items = append(c.items, *item)
	}
}

// wrong notes a value of another type. Objects and lists are not echoed.
func (c *content) wrong(kind, want string, v any, at place) any {
	switch v.(type) {
	case map[string]any, []any:
		v = nil
	}
	c.note(at.item(kind, "«"+at.name+"» debe ser "+want, v, nil))
	return nil
}

// unquoted says how to write a number to whom sent it as a text: one is never read
// out of the other, since a text may be written in ways that not all read alike.
func unquoted(want string, v any) string {
	if _, text := v.(string); text {
		want += ", sin comillas"
	}
	return want
}

// beyond is the fault of a whole number that is outside of the limits of s, even
// of one that no int holds; nil of any other.
func (at place) beyond(s *jsonschema.Schema, n json.Number) *Item {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) {
		return nil
	}
	return at.limits(s, f, string(n))
}

// whole reads a number that has no fraction, however it is written.
func whole(n json.Number) (int, bool) {
	if i, err := strconv.Atoi(string(n)); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}
