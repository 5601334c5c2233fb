package entries

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	// maxDepth is how many objects and lists may be open at once.
	maxDepth = 16
	// maxUnknown bounds how many members that mean nothing are named.
	maxUnknown = 8
)

const listOfTexts = "envíe una lista JSON de textos"

// readJSON reads a whole JSON value.
func readJSON(body []byte, s Spec, fn func(int, []byte) error) (unknown []string, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, &Error{Shape, 0, "Falta el cuerpo: " + listOfTexts}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	first, err := token(d)
	if err != nil {
		return nil, err
	}
	switch first {
	case json.Delim('['):
		err = items(d, fn)
	case json.Delim('{'):
		unknown, err = object(d, s, fn)
	default:
		return nil, &Error{Shape, 0, "El cuerpo no es una lista: " + listOfTexts}
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Syntax, 0, "Hay algo después del valor JSON; " + listOfTexts + " y nada más"}
	}
	return unknown, nil
}

// token is the next one.
func token(d *json.Decoder) (json.Token, error) {
	t, err := d.Token()
	if err != nil {
		return nil, &Error{Syntax, 0, fmt.Sprintf("El cuerpo no es JSON válido cerca del byte %d; revise comillas, comas y corchetes", d.InputOffset())}
	}
	return t, nil
}

// items reads the texts of a list up to its end.
func items(d *json.Decoder, fn func(int, []byte) error) error {
	var room [64]byte
	for n := 1; ; n++ {
		t, err := token(d)
		if err != nil {
			return err
		}
		switch v := t.(type) {
		case string:
			if err := fn(n, append(room[:0], v...)); err != nil {
				return err
			}
		case json.Delim:
			if v == ']' {
				return nil
			}
			return &Error{Shape, n, fmt.Sprintf("El elemento %d de la lista no es un texto; %s", n, listOfTexts)}
		default:
			return &Error{Shape, n, fmt.Sprintf("El elemento %d de la lista no es un texto; póngalo entre comillas", n)}
		}
	}
}

// object reads {"list":[…]}.
func object(d *json.Decoder, s Spec, fn func(int, []byte) error) (unknown []string, err error) {
	found := false
	for d.More() {
		name, err := token(d)
		if err != nil {
			return nil, err
		}
		if name != s.List {
			if n, _ := name.(string); len(unknown) < maxUnknown && !slices.Contains(unknown, n) {
				unknown = append(unknown, n)
			}
			if err := skip(d); err != nil {
				return nil, err
			}
			continue
		}
		if found {
			return nil, &Error{Syntax, 0, fmt.Sprintf("«%s» aparece más de una vez; envíelo una sola vez", s.List)}
		}
		found = true
		open, err := token(d)
		if err != nil {
			return nil, err
		}
		if open != json.Delim('[') {
			return nil, &Error{Shape, 0, fmt.Sprintf("«%s» debe ser una lista de textos", s.List)}
		}
		if err := items(d, fn); err != nil {
			return nil, err
		}
	}
	if _, err := token(d); err != nil { // the closing brace, or what stands in its place
		return nil, err
	}
	if !found {
		return nil, &Error{Shape, 0, fmt.Sprintf("Falta «%s»: una lista de textos", s.List)}
	}
	return unknown, nil
}

// skip passes over one value.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := token(d)
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			if depth++; depth >= maxDepth {
				return &Error{Syntax, 0, fmt.Sprintf("Hay más de %d niveles de objetos y listas; %s", maxDepth, listOfTexts)}
			}
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// readLines reads a JSON value on each line.
func readLines(body []byte, s Spec, fn func(int, []byte) error) error {
	for line := 1; len(body) > 0; line++ {
		var row []byte
		row, body, _ = bytes.Cut(body, []byte{'\n'})
		row = bytes.TrimSpace(row)
		switch {
		case len(row) == 0:
			continue
		case len(row) > maxLine:
			return tooLong(line)
		}
		value, err := lineValue(row, line, s)
		if err == nil {
			err = fn(line, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func tooLong(line int) *Error {
	return &Error{Shape, line, fmt.Sprintf("La línea %d tiene más de %d bytes; ponga un elemento en cada línea", line, maxLine)}
}

// lineValue is the text that a line holds.
func lineValue(row []byte, line int, s Spec) ([]byte, error) {
	if n := len(row); n > 1 && row[0] == '"' && row[n-1] == '"' && plain(row[1:n-1]) {
		return row[1 : n-1], nil
	}
	wrong := &Error{Shape, line, fmt.Sprintf(`La línea %d no es un texto ni un objeto con «%s»: escriba "…" o {"%s":"…"}`, line, s.Name, s.Name)}
	if !json.Valid(row) {
		wrong.Kind = Syntax
		return nil, wrong
	}
	var text *string
	if row[0] == '{' {
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(row, &members); err != nil {
			return nil, wrong
		}
		row = members[s.Name]
	}
	if json.Unmarshal(row, &text) != nil || text == nil {
		return nil, wrong
	}
	return []byte(*text), nil
}

// plain reports that a JSON string stands for itself.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
