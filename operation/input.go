package operation

import (
	"errors"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/snapshots"
)

// Request is what a transport read, decoded from its own encoding and not yet
// believed.
type Request struct {
	Operation *Operation
	Key       []byte     // as sent in Auth.KeyHeader; nil when absent or sent twice
	Client    netip.Addr // where it comes from, as far as the transport can tell
	Args      []Arg
	// Faults are parts of the request that the transport could not decode. They
	// are reported with the others, once the caller is known to be let in.
	Faults []Item

	// IdempotencyKeys are the values of the header Idempotency-Key as sent. Only
	// operations that record look at them.
	IdempotencyKeys [][]byte

	Head        bool   // only the headers of the answer are wanted
	Encoded     bool   // Content-Encoding was sent
	ContentType []byte // as sent
	Body        []byte
	Accept      []byte // as sent; of several lines, joined by commas
	Prefer      []byte // the same
	// Media is the type of the answer that Accept picked: Do sets it.
	Media string
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
	Loc   []any          `json:"loc"` // where it stands: "path", "query", "header" or "body", then names and positions
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

// Input holds the values of an operation's parameters and body.
type Input struct {
	params []Param
	values []any
	body   map[string]any
	list   *lotList // of an operation with a Lot
	today  civil.Date
	ed     *snapshots.Edition
}

// Today is the civil day on which a question is asked (Operation.Ask): for
// limits that move with it. What is recorded must not depend on it.
func (in Input) Today() civil.Date { return in.today }

// Edition is what a calculation answers from (Operation.Compute), that of live or
// of test keys; nil elsewhere. It is valid until Compute returns.
func (in Input) Edition() *snapshots.Edition { return in.ed }

// Get returns the value of a declared parameter, or member of the body, that is
// present or has a default; ok is false otherwise. T is what a parameter's Parse
// returns, or by its schema bool, int, string, json.Number (number: the digits as
// sent), []any or map[string]any.
func Get[T any](in Input, name string) (value T, ok bool) {
	for i := range in.params {
		if in.params[i].Name == name {
			value, ok = in.values[i].(T)
			return value, ok
		}
	}
	value, ok = in.body[name].(T)
	return value, ok
}

// simulated tells whether a quote is asked for.
func (in Input) simulated() bool {
	yes, _ := Get[bool](in, simulateName)
	return yes
}

// decode reads every parameter, the body and the header Idempotency-Key. It returns the names of parameters
// and members that the operation does not know: they change nothing and are
// reported to the caller, who may have mistyped one.
func (op *Operation) decode(r *Request) (Input, []string, error) {
	items := slices.Clone(r.Faults)
	var body content
	var list *lotList
	var err error
	switch {
	case op.Body != nil:
		body, err = op.Body.read(r.Body)
	case op.Lot != nil:
		list, body, err = op.Lot.readList(r)
	}
	if err != nil {
		return Input{}, nil, err
	}
	in, unknown, items := op.decodeParams(r, append(items, body.items...))
	in.body, in.list, unknown = body.value, list, append(body.unknown, unknown...)
	if len(items) > 0 {
		return in, unknown, &InvalidError{Items: items}
	}
	return in, unknown, nil
}

// decodeParams reads the parameters and the header. It adds what is wrong with them
// to items.
func (op *Operation) decodeParams(r *Request, items []Item) (Input, []string, []Item) {
	in := Input{params: op.Params, values: make([]any, len(op.Params))}
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
			items = append(items, *p.place().item("value_error", "«"+p.Name+"» aparece más de una vez; envíelo una sola vez", nil, nil))
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
	if op.repeats() && len(r.IdempotencyKeys) > 0 && !in.simulated() {
		if problem := checkKey(r.IdempotencyKeys); problem != nil {
			items = append(items, *problem)
		}
	}
	return in, unknown, items
}

func (p *Param) place() place {
	return place{loc: []any{string(p.In), p.Name}, name: p.Name, description: p.Description, secret: p.Schema.WriteOnly}
}

func (p *Param) read(text string) (any, *Item) {
	if p.Parse != nil {
		v, err := p.Parse(text)
		if err == nil {
			return v, nil
		}
		var problem *checks.Problem
		if errors.As(err, &problem) {
			return nil, p.place().item(problem.Type, problem.Rule, text, nil)
		}
		return nil, p.place().item("value_error", err.Error(), text, nil)
	}
	switch p.Schema.Type {
	case "boolean":
		switch text {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, p.place().item("bool_parsing", "«"+p.Name+"» debe ser true o false", text, nil)
	case "integer":
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, p.place().item("int_parsing", "«"+p.Name+"» debe ser un número entero", text, nil)
		}
		return n, p.place().limits(p.Schema, float64(n), text)
	default:
		return text, p.place().textLimits(p.Schema, text)
	}
}

// place is where a value stands in a request.
type place struct {
	loc               []any
	name, description string
	secret            bool // the value is not echoed
}

func (at place) limits(s *jsonschema.Schema, n float64, text string) *Item {
	switch {
	case s.Minimum != nil && n < *s.Minimum:
		return at.item("greater_than_equal", "«"+at.name+"» debe ser al menos "+number(*s.Minimum), text, map[string]any{"ge": *s.Minimum})
	case s.ExclusiveMinimum != nil && n <= *s.ExclusiveMinimum:
		return at.item("greater_than", "«"+at.name+"» debe ser mayor que "+number(*s.ExclusiveMinimum), text, map[string]any{"gt": *s.ExclusiveMinimum})
	case s.Maximum != nil && n > *s.Maximum:
		return at.item("less_than_equal", "«"+at.name+"» debe ser a lo más "+number(*s.Maximum), text, map[string]any{"le": *s.Maximum})
	}
	return nil
}

func (at place) textLimits(s *jsonschema.Schema, text string) *Item {
	n := utf8.RuneCountInString(text)
	switch {
	case s.Enum != nil && !slices.Contains(s.Enum, any(text)):
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i], _ = w.(string)
		}
		expected := strings.Join(words, ", ")
		return at.item("enum", "«"+at.name+"» debe ser uno de: "+expected, text, map[string]any{"expected": expected})
	case s.MinLength != nil && n < *s.MinLength:
		return at.item("string_too_short", "«"+at.name+"» debe tener al menos "+strconv.Itoa(*s.MinLength)+" caracteres", text, map[string]any{"min_length": *s.MinLength})
	case s.MaxLength != nil && n > *s.MaxLength:
		return at.item("string_too_long", "«"+at.name+"» debe tener a lo más "+strconv.Itoa(*s.MaxLength)+" caracteres", text, map[string]any{"max_length": *s.MaxLength})
	case s.Format == "date" && !isDay(text):
		return at.item("date_parsing", "«"+at.name+"» debe ser un día que exista, AAAA-MM-DD", text, nil)
	case s.Pattern != "" && !pattern(s).MatchString(text):
		return at.item("string_pattern_mismatch", "«"+at.name+"» no tiene la forma esperada: "+at.description, text, map[string]any{"pattern": s.Pattern})
	}
	return nil
}

func isDay(text string) bool {
	_, err := civil.Parse(text)
	return err == nil
}

// item describes what is wrong at a place. The input is echoed only up to what a
// person needs to recognise it.
func (at place) item(kind, msg string, input any, ctx map[string]any) *Item {
	const echoed = 64
	if text, ok := input.(string); ok && utf8.RuneCountInString(text) > echoed {
		input = string([]rune(text)[:echoed]) + "…"
	}
	if at.secret {
		input = nil
	}
	return &Item{Loc: at.loc, Msg: msg, Type: kind, Input: input, Ctx: ctx}
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
