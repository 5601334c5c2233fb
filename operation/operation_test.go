package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"cotejo/checks"
	"cotejo/query"
)

func contains(s, sub string) bool { return strings.Contains(s, sub) }

// listing is an operation with one parameter of each kind.
func listing() Operation {
	return Operation{
		ID: "listarCosas", Method: "GET", Path: "/v1/cosas/{nombre}", Tag: "Cosas", Summary: "Cosas", Description: "Lista cosas.", Auth: Open,
		Params: []Param{
			{Name: "nombre", In: InPath, Description: "Nombre.", Schema: &jsonschema.Schema{Type: "string", Pattern: "^[a-z]+$", MaxLength: ptr(5)}},
			{Name: "limite", In: InQuery, Description: "Límite.", Default: 50, Schema: &jsonschema.Schema{Type: "integer", Minimum: ptr(1.0), Maximum: ptr(500.0)}},
			{Name: "todo", In: InQuery, Description: "Todo.", Default: true, Schema: &jsonschema.Schema{Type: "boolean"}},
			{Name: "clave", In: InQuery, Description: "Clave.", Schema: &jsonschema.Schema{Type: "string"},
				Parse: func(s string) (any, error) {
					if s != "buena" {
						return nil, &checks.Problem{Type: "value_error", Rule: "la clave no es buena"}
					}
					return len(s), nil
				}},
		},
		Output: Titled("Cosas", Object(F("total", Integer("")))),
		Read:   func(context.Context, Call) (Response, error) { return Response{Body: []byte(`{"total":0}`)}, nil },
	}
}

func ptr[T any](v T) *T { return &v }

func TestDecode(t *testing.T) {
	op := listing()
	f := func(args []Arg, want []any, unknown []string) {
		t.Helper()
		in, u, err := op.decode(&Request{Args: args})
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		if !reflect.DeepEqual(in.values, want) || !reflect.DeepEqual(u, unknown) {
			t.Fatalf("%v: got %v, unknown %v", args, in.values, u)
		}
	}
	name := Arg{InPath, "nombre", "abc"}
	f([]Arg{name}, []any{"abc", 50, true, nil}, nil)
	f([]Arg{name, {InQuery, "limite", "500"}, {InQuery, "todo", "0"}, {InQuery, "clave", "buena"}}, []any{"abc", 500, false, 5}, nil)
	f([]Arg{name, {InQuery, "nombre", "x"}, {InQuery, "lmite", "9"}}, []any{"abc", 50, true, nil}, []string{"nombre", "lmite"})

	bad := func(args []Arg, want ...string) {
		t.Helper()
		_, _, err := op.decode(&Request{Args: args})
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("%v: got %v", args, err)
		}
		var got []string
		for _, item := range invalid.Items {
			got = append(got, where(item)+" "+item.Type)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: got %v, want %v", args, got, want)
		}
	}
	bad([]Arg{{InPath, "nombre", "ABC"}}, "path.nombre string_pattern_mismatch")
	bad([]Arg{{InPath, "nombre", "abcdef"}}, "path.nombre string_too_long")
	bad([]Arg{{InQuery, "limite", "0"}}, "query.limite greater_than_equal")
	bad([]Arg{{InQuery, "limite", "501"}}, "query.limite less_than_equal")
	bad([]Arg{{InQuery, "limite", ""}}, "query.limite int_parsing")
	bad([]Arg{{InQuery, "todo", "sí"}}, "query.todo bool_parsing")
	bad([]Arg{{InQuery, "clave", "mala"}}, "query.clave value_error")
	bad([]Arg{{InQuery, "todo", "1"}, {InQuery, "todo", "1"}}, "query.todo value_error")
	// All at once.
	bad([]Arg{{InPath, "nombre", "ABC"}, {InQuery, "limite", "x"}, {InQuery, "todo", "x"}},
		"path.nombre string_pattern_mismatch", "query.limite int_parsing", "query.todo bool_parsing")
}

// where is the place of an item as text: body.lista.0.
func where(item Item) string {
	words := make([]string, len(item.Loc))
	for i, w := range item.Loc {
		words[i] = fmt.Sprint(w)
	}
	return strings.Join(words, ".")
}

func TestGet(t *testing.T) {
	op := listing()
	in, _, _ := op.decode(&Request{})
	if n, ok := Get[int](in, "limite"); !ok || n != 50 {
		t.Fatalf("limite: %v %v", n, ok)
	}
	if _, ok := Get[string](in, "nombre"); ok {
		t.Fatal("an absent parameter has a value")
	}
	if _, ok := Get[string](in, "limite"); ok {
		t.Fatal("a value of another type was returned")
	}
}

// A long or hostile text is not echoed whole.
func TestDecodeEcho(t *testing.T) {
	op := listing()
	_, _, err := op.decode(&Request{Args: []Arg{{InPath, "nombre", strings.Repeat("Ñ", 300)}}})
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Items[0].Input != strings.Repeat("Ñ", 64)+"…" {
		t.Fatalf("got %v", err)
	}
}

func TestNewTableRefuses(t *testing.T) {
	f := func(break_ func(*Operation), want string) {
		t.Helper()
		op := listing()
		break_(&op)
		if _, err := NewTable([]Operation{op}); err == nil || !contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	f(func(o *Operation) { o.ID = "Listar" }, "bad id")
	f(func(o *Operation) { o.Path = "/v1/cosas/" }, "bad path")
	f(func(o *Operation) { o.Path = "/v1/cosas/{otro}" }, "path has parameters")
	f(func(o *Operation) { o.Auth = 0 }, "who may ask")
	f(func(o *Operation) { o.Description = "" }, "undocumented")
	f(func(o *Operation) { o.Output.Title = "" }, "without title")
	f(func(o *Operation) { o.Errors = []string{"NADA"} }, "unknown error code")
	f(func(o *Operation) { o.Ask = func(Input) (query.Question, error) { return nil, nil } }, "exactly one")
	f(func(o *Operation) { o.Service = "COMPANY" }, "free operation")
	f(func(o *Operation) { o.Charged = []string{"COSA_OK"} }, "free operation")
	f(func(o *Operation) { o.Params[1].Schema = nil }, "undocumented")
	f(func(o *Operation) { o.Params[1].Name = "todo" }, "declared twice")
	asks := func(o *Operation) {
		o.Read, o.Auth, o.Service, o.Prefix, o.Charged = nil, Keyed, "COMPANY", "COS", []string{"COSA_OK"}
		o.Ask = func(Input) (query.Question, error) { return nil, nil }
	}
	f(func(o *Operation) { asks(o); o.Charged = nil }, "which answers are charged")
	f(func(o *Operation) { asks(o); o.Params[1].Name = "simular" }, "declared twice")
	if _, err := NewTable([]Operation{listing()}, []Operation{listing()}); err == nil {
		t.Fatal("an operation was declared twice")
	}
	other := listing()
	other.ID, other.Path, other.Params[0].Name = "otraCosa", "/v1/cosas/{otro}", "otro"
	if _, err := NewTable([]Operation{listing()}, []Operation{other}); err == nil {
		t.Fatal("two operations share a route")
	}
	if table, err := NewTable([]Operation{listing()}); err != nil || table.Find("listarCosas") == nil || table.Find("x") != nil {
		t.Fatalf("got %v", err)
	}
}

func TestOpenAPIIsDeterministic(t *testing.T) {
	var last []byte
	for range 5 {
		table, err := NewTable([]Operation{listing()})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := table.OpenAPI()
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && !bytes.Equal(doc, last) {
			t.Fatal("two documents of one table differ")
		}
		last = doc
	}
	text, err := YAML(last)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON, fromYAML any
	if err := json.Unmarshal(last, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &fromYAML); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &fromYAML); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromJSON, fromYAML) {
		t.Fatal("the YAML document says something else")
	}
}

func TestPesos(t *testing.T) {
	f := func(centavos int64, want string) {
		t.Helper()
		if got := Pesos(centavos); got != want {
			t.Fatalf("%d: got %s, want %s", centavos, got, want)
		}
	}
	f(0, "0.00")
	f(5, "0.05")
	f(1200, "12.00")
	f(-1234, "-12.34")
	f(-9223372036854775808, "-92233720368547758.08")
}

// Marginal tiers leave no gap and no overlap.
func TestTiers(t *testing.T) {
	for _, tiers := range [][]Tier{BatchTiers, WatchTiers} {
		next := 1
		for i, tier := range tiers {
			if tier.From != next || (tier.To == 0) != (i == len(tiers)-1) || i > 0 && tier.Unit >= tiers[i-1].Unit {
				t.Errorf("%+v does not follow", tier)
			}
			next = tier.To + 1
		}
	}
	if first := WatchTiers[0]; int64(first.To)*first.Unit != WatchFirstTier {
		t.Errorf("the first tier of monitoring costs %d, not %d", int64(first.To)*first.Unit, WatchFirstTier)
	}
}
