package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/canon"
)

// posting is an operation with a body that has a member of each kind.
func posting() Operation {
	op := listing()
	op.ID, op.Method, op.Path, op.Params = "crearCosa", "POST", "/v1/cosas", nil
	op.Body = &Body{MaxBytes: 1 << 10, Schema: Members(
		F("referencia", &jsonschema.Schema{Type: "string", Pattern: "^[A-Z]+$", MinLength: ptr(2), MaxLength: ptr(5), Description: "mayúsculas"}),
		F("monto", &jsonschema.Schema{Type: "number", ExclusiveMinimum: ptr(0.0), Maximum: ptr(999999999.99)}),
		Maybe("dias", &jsonschema.Schema{Type: "integer", Minimum: ptr(1.0), Maximum: ptr(366.0), Default: json.RawMessage(`15`)}),
		Maybe("anual", Flag("")),
		Maybe("tipo", OneOf("", "paquete", "individual")),
		Maybe("nota", OrNull(Text(""))),
		Maybe("dia", Day("")),
		Maybe("pan", &jsonschema.Schema{Type: "string", WriteOnly: true, MaxLength: ptr(19)}),
		Maybe("lista", &jsonschema.Schema{Type: "array", MaxItems: ptr(3), Items: Members(F("rfc", Text("")))}),
	)}
	return op
}

func TestBody(t *testing.T) {
	op := posting()
	if _, err := NewTable([]Operation{op}); err != nil {
		t.Fatal(err)
	}
	f := func(body string, want map[string]any, unknown ...string) {
		t.Helper()
		in, u, err := op.decode(&Request{Body: []byte(body)})
		if err != nil || !reflect.DeepEqual(in.body, want) || !reflect.DeepEqual(u, unknown) {
			t.Fatalf("%s: got %v, unknown %q, %v", body, in.body, u, err)
		}
	}
	f(`{"referencia":"AB","monto":10}`, map[string]any{"referencia": "AB", "monto": json.Number("10"), "dias": 15})
	// The digits of an amount are kept as sent.
	f(` {"monto":123456789.10,"referencia":"AB","dias":3.0,"anual":true,"tipo":"paquete","nota":null,"dia":"2024-02-29","lista":[{"rfc":"x"}]} `, map[string]any{
		"referencia": "AB", "monto": json.Number("123456789.10"), "dias": 3, "anual": true, "tipo": "paquete", "nota": nil, "dia": "2024-02-29",
		"lista": []any{map[string]any{"rfc": "x"}},
	})
	f(`{"referencia":"AB","monto":1,"zeta":{"a":1},"alfa":2,"lista":[{"rfc":"x","beta":1}]}`, map[string]any{
		"referencia": "AB", "monto": json.Number("1"), "dias": 15, "lista": []any{map[string]any{"rfc": "x"}},
	}, "alfa", "beta", "zeta")

	in, _, _ := op.decode(&Request{Body: []byte(`{"referencia":"AB","monto":1.50}`)})
	if n, ok := Get[json.Number](in, "monto"); !ok || n != "1.50" {
		t.Fatalf("monto = %v, %v", n, ok)
	}
	if n, ok := Get[int](in, "dias"); !ok || n != 15 {
		t.Fatalf("dias = %v, %v", n, ok)
	}
	if _, ok := Get[bool](in, "anual"); ok {
		t.Fatal("an absent member has a value")
	}
}

func TestBodyFaults(t *testing.T) {
	op := posting()
	f := func(body string, want ...string) *InvalidError {
		t.Helper()
		_, _, err := op.decode(&Request{Body: []byte(body)})
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("%s: got %v", body, err)
		}
		var got []string
		for _, item := range invalid.Items {
			got = append(got, where(item)+" "+item.Type)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %q, want %q", body, got, want)
		}
		return invalid
	}
	f(``, "body missing")
	f(" \n", "body missing")
	f(`null`, "body dict_type")
	f(`[]`, "body dict_type")
	f(`"x"`, "body dict_type")
	// All at once, in the order of the schema.
	f(`{}`, "body.referencia missing", "body.monto missing")
	f(`{"monto":"1","referencia":7,"dias":"x","anual":"true","tipo":"otro","nota":1,"lista":{}}`,
		"body.referencia string_type", "body.monto float_type", "body.dias int_type", "body.anual bool_type", "body.tipo enum",
		"body.nota string_type", "body.lista list_type")
	f(`{"monto":0,"referencia":"A","dias":1.5}`, "body.referencia string_too_short", "body.monto greater_than", "body.dias int_from_float")
	f(`{"monto":1e9,"referencia":"ABCDEF","dias":0}`, "body.referencia string_too_long", "body.monto less_than_equal", "body.dias greater_than_equal")
	f(`{"monto":null,"referencia":"ab","dias":367,"lista":[1,{},{"rfc":2}]}`, "body.referencia string_pattern_mismatch", "body.monto float_type",
		"body.dias less_than_equal", "body.lista.0 dict_type", "body.lista.1.rfc missing", "body.lista.2.rfc string_type")
	f(`{"monto":1,"referencia":"AB","lista":[{},{},{},{}]}`, "body.lista too_long")
	f(`{"monto":1,"referencia":"AB","dias":1e300}`, "body.dias less_than_equal")
	f(`{"monto":1,"referencia":"AB","dias":12345678901234567890}`, "body.dias less_than_equal")
	f(`{"monto":1,"referencia":"AB","dias":-12345678901234567890}`, "body.dias greater_than_equal")

	for _, day := range []string{"2026-02-30", "2026-2-3", "30/02/2026", "", "2026-02-03T00:00:00Z", "٢٠٢٦-02-03", "0000-01-01"} {
		if got := f(`{"monto":1,"referencia":"AB","dia":"`+day+`"}`, "body.dia date_parsing").Items[0].Input; got != day {
			t.Fatalf("the day is echoed as %v", got)
		}
	}
	if got := f(`{"monto":"1","referencia":"AB"}`, "body.monto float_type").Items[0].Msg; got != "«monto» debe ser un número, sin comillas" {
		t.Fatalf("a number in quotes: %s", got)
	}

	if got := f(`{"monto":1,"referencia":"AB","lista":[3]}`, "body.lista.0 dict_type").Items[0]; got.Loc[2] != 0 {
		t.Fatalf("a position is %v", got.Loc)
	}
	// What must not be kept is not echoed, and no more than needed of the rest.
	if got := f(`{"monto":1,"referencia":"AB","pan":"41111111111111111111"}`, "body.pan string_too_long").Items[0].Input; got != nil {
		t.Fatalf("the number is echoed: %v", got)
	}
	if got := f(`{"monto":{"a":"b"},"referencia":"AB"}`, "body.monto float_type").Items[0].Input; got != nil {
		t.Fatalf("an object is echoed: %v", got)
	}
	if got := f(`{"monto":1,"referencia":"`+strings.Repeat("A", 900)+`"}`, "body.referencia string_too_long").Items[0].Input; got != strings.Repeat("A", 64)+"…" {
		t.Fatalf("got %v", got)
	}
}

func TestBodyIsNotJSON(t *testing.T) {
	op := posting()
	f := func(body string, reason error) {
		t.Helper()
		_, _, err := op.decode(&Request{Body: []byte(body)})
		var broken *JSONError
		if !errors.As(err, &broken) || !errors.Is(err, reason) {
			t.Fatalf("%s: got %v", body, err)
		}
		if got := string(AppendFailure(nil, err, "r")); !contains(got, `"codigo":"JSON_INVALIDO"`) || !contains(got, `"detail":`+string(canon.AppendString(nil, broken.Reason.Error()))) {
			t.Fatalf("got %s", got)
		}
	}
	f(`{`, canon.ErrSyntax)
	f(`{"a":1,}`, canon.ErrSyntax)
	f(`{"a":1}x`, canon.ErrSyntax)
	f(`{"a":1}{"a":1}`, canon.ErrSyntax)
	f(`a=1`, canon.ErrSyntax)
	f("\ufeff{}", canon.ErrSyntax)
	f(`{"a":1,"a":1}`, canon.ErrDuplicateName)
	f(`{"a":1,"\u0061":1}`, canon.ErrDuplicateName)
	f(`{"x":[{"a":1,"b":2,"a":1}]}`, canon.ErrDuplicateName)
	f("{\"a\":\"\xff\"}", canon.ErrUnicode)
	f(`{"a":"\ud800"}`, canon.ErrUnicode)
	f(`{"monto":1e999}`, canon.ErrNumber)
	f(strings.Repeat("[", maxJSONDepth+1)+strings.Repeat("]", maxJSONDepth+1), errJSONDepth)
	f(`{"a":`+strings.Repeat("[", maxJSONDepth)+`"]]]"`+strings.Repeat("]", maxJSONDepth)+`}`, errJSONDepth)
	if _, _, err := op.decode(&Request{Body: []byte(`{"monto":1,"referencia":"AB","a":` + strings.Repeat("[", maxJSONDepth-1) + `"[[\"["` + strings.Repeat("]", maxJSONDepth-1) + `}`)}); err != nil {
		t.Fatalf("%d levels: %v", maxJSONDepth, err)
	}
}

func TestReadable(t *testing.T) {
	op := posting()
	refusal := errors.New("too large to read")
	f := func(r Request, want error) {
		t.Helper()
		if got := op.readable(&r); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Fatalf("%q: got %v, want %v", r.ContentType, got, want)
		}
	}
	kind := func(s string) []byte { return []byte(s) }
	f(Request{ContentType: kind("application/json")}, nil)
	f(Request{ContentType: kind("Application/JSON; charset=UTF-8")}, nil)
	f(Request{ContentType: kind(`application/json;charset="utf-8"`)}, nil)
	for _, s := range []string{"", "text/plain", "application/json; charset=latin1", "application/jsonp", "application/x-www-form-urlencoded", "application/json, text/plain", ";"} {
		f(Request{ContentType: kind(s)}, ErrMediaType)
	}
	large := bytes.Repeat([]byte{' '}, op.Body.MaxBytes+1)
	f(Request{ContentType: kind("application/json"), Body: large}, ErrTooLarge)
	f(Request{ContentType: kind("application/json"), Body: large[1:]}, nil)
	// 415 before 413, whoever finds the body too large.
	f(Request{ContentType: kind("text/plain"), Body: large}, ErrMediaType)
	f(Request{ContentType: kind("application/json"), Encoded: true, Body: large}, ErrEncoding)
	f(Request{ContentType: kind("text/plain"), Refusal: refusal}, ErrMediaType)
	f(Request{Encoded: true, Refusal: refusal}, ErrEncoding)
	f(Request{ContentType: kind("application/json"), Refusal: refusal}, refusal)
	// Without a body to read its type is nobody's business.
	op.Body = nil
	f(Request{ContentType: kind("text/plain"), Body: large}, nil)
	f(Request{Encoded: true}, ErrEncoding)
}

// A schema that says more than is enforced would be a promise nobody keeps.
func TestBodySchemaIsEnforced(t *testing.T) {
	f := func(change func(*Operation), want string) {
		t.Helper()
		op := posting()
		change(&op)
		if _, err := NewTable([]Operation{op}); err == nil || !contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	f(func(o *Operation) { o.Method = "GET" }, "no body")
	f(func(o *Operation) { o.Body.MaxBytes = 0 }, "without limit")
	f(func(o *Operation) { o.Body.Schema = Text("") }, "not an object")
	f(func(o *Operation) { o.Body.Schema = Object(F("a", Text(""))) }, "not enforced")
	f(func(o *Operation) { o.Body.Schema = Members(F("a", Moment(""))) }, "not enforced")
	f(func(o *Operation) { o.Body.Schema = Members(F("a", &jsonschema.Schema{})) }, "type")
	f(func(o *Operation) { o.Body.Schema = Members(F("a", List(Always(1), ""))) }, "a: ")
	f(func(o *Operation) {
		o.Params = []Param{{Name: "monto", In: InQuery, Description: "x", Schema: Text("")}}
	}, "is a parameter")
}

func FuzzBody(f *testing.F) {
	op := posting()
	for _, s := range []string{`{"referencia":"AB","monto":1,"lista":[{"rfc":"x"}],"nota":null}`, `{"dias":1e3,"x":{"a":[]}}`, `[`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, _, err := op.decode(&Request{Body: body})
		if err != nil {
			if text := AppendFailure(nil, err, "r"); !json.Valid(text) || len(text) > 64<<10 {
				t.Fatalf("%q: %s", body, text)
			}
			return
		}
		if !json.Valid(body) || in.body == nil {
			t.Fatalf("%q was accepted", body)
		}
		for name := range in.body {
			if op.Body.Schema.Properties[name] == nil {
				t.Fatalf("%q: %q came through", body, name)
			}
		}
	})
}
