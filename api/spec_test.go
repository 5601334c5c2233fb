package api

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSpecIsKept holds that nothing of the specification is lost, and that
// nothing is served before its turn.
func TestSpecIsKept(t *testing.T) {
	c := committed()
	served := 0
	for i, line := range strings.Split(string(must(os.ReadFile("testdata/spec_fields.txt"))), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		what, mark := line[:cut], line[cut+1:]
		have, err := c.promises(what)
		switch {
		case err != nil:
			t.Errorf("spec_fields.txt:%d: %v", i+1, err)
		case mark == "ok" && !have:
			t.Errorf("spec_fields.txt:%d: lost: %s", i+1, what)
		case mark != "ok" && have:
			t.Errorf("spec_fields.txt:%d: served already, mark it ok: %s", i+1, what)
		case have:
			served++
		}
	}
	if served < 110 {
		t.Errorf("only %d lines are served", served)
	}
}

// TestPromises holds that a line is looked for where it belongs.
func TestPromises(t *testing.T) {
	f := func(line string, want bool) {
		t.Helper()
		if got, err := committed().promises(line); err != nil || got != want {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
	empresa := "GET /v1/empresa/{rfc} "
	f("code field "+empresa+"tipo_persona moral", true)
	f("code field "+empresa+"service moral", false)
	f("code field "+empresa+"nada moral", false)
	f("code field "+empresa+"sat_69b.situaciones[].situacion Sentencia Favorable", true)
	f("code field "+empresa+"sat_69b.situaciones.situacion Definitivo", false)
	f("code field "+empresa+"sandbox true", true)
	f("code field GET /v1/precios result_code COMPANY_OK", false)
	f("code query "+empresa+"sancionados COMPANY", false)
	f("status 415 TIPO_NO_ADMITIDO", true)
	f("status 400 TIPO_NO_ADMITIDO", false)
	f("field "+empresa+"status:402 detail.saldo", true)
	f("field "+empresa+"status:401 detail.saldo", false)
	f("body "+empresa+"rfc", false)
	f("path EVENT MONITOREO_69B", false)
	f("header "+empresa+"X-Api-Key", true)
	f("header "+empresa+"X-Registro-Key", false)
	f("header POST /v1/registro X-Registro-Key", true)
	f("header POST /v1/registro X-Api-Key", false)
	f("header GET /v1/salud X-Api-Key", false)
	for _, line := range []string{"code moral", "status 400", "path GET", "nada GET /v1/salud x", "code nada GET /v1/salud x y"} {
		if _, err := committed().promises(line); err == nil {
			t.Errorf("%s is understood", line)
		}
	}
}

// promises tells whether the document has what a line names.
func (c *contract) promises(line string) (bool, error) {
	unreadable := fmt.Errorf("cannot read %q", line)
	kind, rest, _ := strings.Cut(line, " ")
	if kind == "status" {
		status, code, ok := strings.Cut(rest, " ")
		if !ok {
			return false, unreadable
		}
		return c.at("components", "responses", "Error"+status, "content", "application/json", "examples", code) != nil, nil
	}
	isCode := kind == "code"
	if isCode {
		kind, rest, _ = strings.Cut(rest, " ")
	}
	method, rest, _ := strings.Cut(rest, " ")
	path, rest, _ := strings.Cut(rest, " ")
	operation := c.operation(method, path)
	if kind == "path" && !isCode {
		if path == "" || rest != "" {
			return false, unreadable
		}
		return operation != nil, nil
	}
	status := "200"
	if after, ok := strings.CutPrefix(rest, "status:"); ok {
		status, rest, _ = strings.Cut(after, " ")
	}
	name, word, _ := strings.Cut(rest, " ")
	if name == "" || isCode != (word != "") {
		return false, unreadable
	}
	var found []map[string]any
	switch kind {
	case "path", "query", "header":
		if kind == "header" && c.secures(operation, name) {
			return true, nil
		}
		list, _ := operation["parameters"].([]any)
		for _, p := range list {
			if p := p.(map[string]any); p["in"] == kind && p["name"] == name {
				found = append(found, p["schema"].(map[string]any))
			}
		}
	case "body":
		content, _ := at(operation, "requestBody", "content").(map[string]any)
		for _, media := range content {
			found = append(found, c.find(media.(map[string]any)["schema"], strings.Split(name, "."))...)
		}
	case "field":
		response := at(operation, "responses", status)
		if method == "ERROR" {
			response = c.at("components", "responses", "Error"+path)
		} else if ref, ok := at(response, "$ref").(string); ok {
			response = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		found = c.find(at(response, "content", "application/json", "schema"), strings.Split(name, "."))
	default:
		return false, unreadable
	}
	for _, s := range found {
		if !isCode || names(s, word) {
			return true, nil
		}
	}
	return false, nil
}

// secures tells whether an operation asks for a key in that header.
func (c *contract) secures(operation map[string]any, header string) bool {
	security, _ := operation["security"].([]any)
	for _, one := range security {
		for scheme := range one.(map[string]any) {
			if s, _ := c.at("components", "securitySchemes", scheme).(map[string]any); s["in"] == "header" && s["name"] == header {
				return true
			}
		}
	}
	return false
}

// operation is what the document says of one, or of an event that is sent.
func (c *contract) operation(method, path string) map[string]any {
	at := c.at("paths", path, strings.ToLower(method))
	if method == "EVENT" {
		at = c.at("webhooks", path, "post")
	}
	operation, _ := at.(map[string]any)
	return operation
}

// find follows member names through a schema, in every alternative; "[]" behind a
// name is any item.
func (c *contract) find(schema any, names []string) []map[string]any {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return c.find(c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), names)
	}
	if list, ok := s["anyOf"].([]any); ok {
		var found []map[string]any
		for _, alternative := range list {
			found = append(found, c.find(alternative, names)...)
		}
		return found
	}
	if len(names) == 0 {
		return []map[string]any{s}
	}
	name, items := strings.CutSuffix(names[0], "[]")
	member := at(s, "properties", name)
	if items {
		member = at(member, "items")
	}
	return c.find(member, names[1:])
}

// names tells whether a schema names a value: as the only one, as one of a few,
// or as a known one.
func names(s map[string]any, word string) bool {
	for _, list := range []any{s["enum"], s["examples"], []any{s["const"]}} {
		list, _ := list.([]any)
		for _, v := range list {
			if v != nil && fmt.Sprint(v) == word {
				return true
			}
		}
	}
	return false
}
