package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// canonical refuses a text that is not canonical JSON (RFC 8785): it is read and
// written again. Duplicate members, other spellings and invalid characters do not
// survive that.
func canonical(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("no es JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("sigue algo después del JSON")
	}
	again, err := appendValue(nil, v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, text) {
		return errors.New("no es JSON canónico (RFC 8785)")
	}
	return nil
}

func appendValue(dst []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v), nil
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, err
		}
		if f == 0 {
			return append(dst, '0'), nil // also for -0
		}
		text, err := json.Marshal(f) // the shortest form, as ECMAScript writes it
		return append(dst, text...), err
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, item); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.SortFunc(names, byUnits)
		dst = append(dst, '{')
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			if dst, err = appendValue(dst, v[name]); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	return nil, fmt.Errorf("valor de tipo %T", v)
}

// byUnits orders by UTF-16 code units. That is the order of bytes in UTF-8, but for
// characters beyond the first plane, whose units begin with D8 to DB.
func byUnits(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	if n == len(a) || n == len(b) || a[n] < 0x80 || b[n] < 0x80 {
		return strings.Compare(a[n:], b[n:])
	}
	return slices.Compare(utf16.Encode([]rune(a[n:])), utf16.Encode([]rune(b[n:])))
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// decodeStrict reads canonical JSON into a structure that must know every member by
// its exact name, and hold every one: written again it gives the same text.
func decodeStrict(text []byte, into any) error {
	if err := canonical(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	plain, err := json.Marshal(into)
	if err != nil {
		return err
	}
	var v any
	d = json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	again, err := appendValue(nil, v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, text) {
		return errors.New("le falta un miembro o tiene uno que no se conoce")
	}
	return nil
}
