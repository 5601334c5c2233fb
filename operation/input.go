package operation

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
)

// Request is what a transport read, decoded from its own encoding and not yet
// believed.
type Request struct {
	Operation *Operation
	Key       []byte // the API key as sent; nil when absent or sent twice
	Args      []Arg
	// Faults are parts of the request that the transport could not decode. They
	// are reported with the others, once the caller is known to be let in.
	Faults []Item
	// Refusal is the transport's reason not to read the body, nil when it did.
	Refusal error
}

// Arg is one parameter as text.
type Arg struct {
	In    In
	Name  string
	Value string
}

// Item is one reason of a 422 answer.
type Item struct {
	Loc   []string       `json:"loc"` // where it stands: "path", "query" …, then names
	Msg   string         `json:"msg"` // Spanish: what was expected and what to do
	Type  string         `json:"type"`
	Input any            `json:"input,omitempty"`
	Ctx   map[string]any `json:"ctx,omitempty"`
}

// InvalidError refuses an input that cannot be processed, with every reason at
// once. Nothing is charged.
type InvalidError struct{ Items []Item }

func (e *InvalidError) Error() string {
	if len(e.Items) == 0 {
		return "operation: entrada no válida"
	}
	return "operation: entrada no válida: " + e.Items[0].Msg
}

// Input holds the values of an operation's parameters.
type Input struct {
	params []Param
	values []any
}

// Get returns the value of a declared parameter that is present or has a
// default; ok is false otherwise. T is what its Parse returns, or bool, int or
// string by its schema.
func Get[T any](in Input, name string) (value T, ok bool) {
	for i := range in.params {
		if in.params[i].Name == name {
			value, ok = in.values[i].(T)
			return value, ok
		}
	}
	return value, false
}

// decode reads every parameter. It returns the names of parameters that the
// operation does not know: they change nothing and are reported to the caller,
// who may have mistyped one.
func (op *Operation) decode(r *Request) (Input, []string, error) {
	in := Input{params: op.Params, values: make([]any, len(op.Params))}
	items := slices.Clone(r.Faults)
	var unknown []string
	seen := uint64(0)
	for _, a := range r.Args {
		i := slices.IndexFunc(op.Params, func(p Param) bool { return p.In == a.In && p.Name == a.Name })
		if i < 0 {
			unknown = append(unknown, a.Name)
			continue
		}
		p := &op.Params[i]
		if seen&(1<<i) != 0 {
			items = append(items, Item{
				Loc: []string{string(p.In), p.Name}, Type: "value_error",
				Msg: "«" + p.Name + "» aparece más de una vez; envíelo una sola vez",
			})
			continue
		}
		seen |= 1 << i
		v, problem := p.read(a.Value)
		if problem != nil {
			items = append(items, *problem)
			continue
		}
		in.values[i] = v
	}
	for i := range op.Params {
		if seen&(1<<i) == 0 {
			in.values[i] = op.Params[i].Default
		}
	}
	if len(items) > 0 {
		return in, unknown, &InvalidError{Items: items}
	}
	return in, unknown, nil
}

func (p *Param) read(text string) (any, *Item) {
	if p.Parse != nil {
		v, err := p.Parse(text)
		if err == nil {
			return v, nil
		}
		var problem *checks.Problem
		if errors.As(err, &problem) {
			return nil, p.item(problem.Type, problem.Rule, text, nil)
		}
		return nil, p.item("value_error", err.Error(), text, nil)
	}
	switch p.Schema.Type {
	case "boolean":
		switch text {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, p.item("bool_parsing", "«"+p.Name+"» debe ser true o false", text, nil)
	case "integer":
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, p.item("int_parsing", "«"+p.Name+"» debe ser un número entero", text, nil)
		}
		return n, p.limits(n, text)
	default:
		return text, p.textLimits(text)
	}
}

func (p *Param) limits(n int, text string) *Item {
	if low := p.Schema.Minimum; low != nil && float64(n) < *low {
		return p.item("greater_than_equal", "«"+p.Name+"» debe ser al menos "+number(*low), text, map[string]any{"ge": *low})
	}
	if high := p.Schema.Maximum; high != nil && float64(n) > *high {
		return p.item("less_than_equal", "«"+p.Name+"» debe ser a lo más "+number(*high), text, map[string]any{"le": *high})
	}
	return nil
}

func (p *Param) textLimits(text string) *Item {
	n := utf8.RuneCountInString(text)
	if low := p.Schema.MinLength; low != nil && n < *low {
		return p.item("string_too_short", "«"+p.Name+"» debe tener al menos "+strconv.Itoa(*low)+" caracteres", text, map[string]any{"min_length": *low})
	}
	if high := p.Schema.MaxLength; high != nil && n > *high {
		return p.item("string_too_long", "«"+p.Name+"» debe tener a lo más "+strconv.Itoa(*high)+" caracteres", text, map[string]any{"max_length": *high})
	}
	if p.Schema.Pattern != "" && !pattern(p.Schema).MatchString(text) {
		return p.item("string_pattern_mismatch", "«"+p.Name+"» no tiene la forma esperada: "+p.Description, text, map[string]any{"pattern": p.Schema.Pattern})
	}
	return nil
}

// item describes what is wrong with p. The input is echoed only up to what a
// person needs to recognise it.
func (p *Param) item(kind, msg, text string, ctx map[string]any) *Item {
	const echoed = 64
	if runes := []rune(text); len(runes) > echoed {
		text = string(runes[:echoed]) + "…"
	}
	return &Item{Loc: []string{string(p.In), p.Name}, Msg: msg, Type: kind, Input: text, Ctx: ctx}
}

func number(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// patterns holds the compiled patterns of schemas, which never change.
var patterns sync.Map // string → *regexp.Regexp

func pattern(s *jsonschema.Schema) *regexp.Regexp {
	if re, ok := patterns.Load(s.Pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(s.Pattern)
	patterns.Store(s.Pattern, re)
	return re
}
