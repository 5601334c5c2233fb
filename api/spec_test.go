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
	words := map[string]bool{}
	collectWords(c.doc, words)
	served := 0
	for i, line := range strings.Split(string(must(os.ReadFile("testdata/spec_fields.txt"))), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		what, mark := line[:cut], line[cut+1:]
		have, err := c.promises(what, words)
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
	if served < 80 {
		t.Errorf("only %d lines are served", served)
	}
}

// promises tells whether the document has what a line names.
func (c *contract) promises(line string, words map[string]bool) (bool, error) {
	f := strings.Fields(line)
	switch {
	case f[0] == "code":
		return words[strings.TrimPrefix(line, "code ")], nil
	case f[0] == "status" && len(f) == 2:
		return c.at("components", "responses", "Error"+f[1]) != nil, nil
	case f[0] == "field" && len(f) == 4 && f[1] == "ERROR":
		schema := c.at("components", "responses", "Error"+f[2], "content", "application/json", "schema")
		return c.has(schema, strings.Split(f[3], ".")), nil
	}
	if len(f) < 3 {
		return false, fmt.Errorf("cannot read %q", line)
	}
	op := c.at("paths", f[2], strings.ToLower(f[1]))
	operation, _ := op.(map[string]any)
	if f[0] == "path" && len(f) == 3 {
		return operation != nil, nil
	}
	if len(f) != 4 {
		return false, fmt.Errorf("cannot read %q", line)
	}
	switch f[0] {
	case "query", "header":
		if f[0] == "header" && f[3] == "X-Api-Key" {
			security, _ := operation["security"].([]any)
			return len(security) > 0, nil
		}
		list, _ := operation["parameters"].([]any)
		for _, p := range list {
			if p := p.(map[string]any); p["in"] == f[0] && p["name"] == f[3] {
				return true, nil
			}
		}
		return false, nil
	case "body":
		content, _ := c.at("paths", f[2], strings.ToLower(f[1]), "requestBody", "content").(map[string]any)
		for _, media := range content {
			if c.has(media.(map[string]any)["schema"], strings.Split(f[3], ".")) {
				return true, nil
			}
		}
		return false, nil
	case "field":
		schema := c.at("paths", f[2], strings.ToLower(f[1]), "responses", "200", "content", "application/json", "schema")
		return c.has(schema, strings.Split(f[3], ".")), nil
	}
	return false, fmt.Errorf("cannot read %q", line)
}

// has follows member names through a schema; "[]" behind a name is any item.
func (c *contract) has(schema any, names []string) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	if ref, ok := s["$ref"].(string); ok {
		return c.has(c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), names)
	}
	if list, ok := s["anyOf"].([]any); ok {
		for _, alternative := range list {
			if c.has(alternative, names) {
				return true
			}
		}
	}
	if len(names) == 0 {
		return true
	}
	name, items := strings.CutSuffix(names[0], "[]")
	properties, _ := s["properties"].(map[string]any)
	member, ok := properties[name].(map[string]any)
	if !ok {
		return false
	}
	if items {
		return member["items"] != nil && c.has(member["items"], names[1:])
	}
	return c.has(member, names[1:])
}

// collectWords gathers every value that some schema names.
func collectWords(v any, words map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if list, ok := v["enum"].([]any); ok {
			for _, w := range list {
				words[fmt.Sprint(w)] = true
			}
		}
		for name, child := range v {
			if name != "examples" {
				collectWords(child, words)
			}
		}
	case []any:
		for _, child := range v {
			collectWords(child, words)
		}
	}
}
