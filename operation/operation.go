// Package operation describes each thing the service can do, once, and runs it.
//
// From the list of operations come the routes, the checks of the input, the
// OpenAPI document and the tests that hold them together. A recorded
// verification goes through one pipeline: authorise, decode, pin an edition,
// ask the engine, record and charge in one durable batch, answer. The answer is
// computed from the record alone, so that reading it again years later gives
// the same bytes.
//
// The package knows no product, no HTTP library and no storage engine. Start
// reading at Operation, then Pipeline.Do; errors.go is the one table from an
// error to what the caller sees.
package operation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	"cotejo/query"
)

// Auth says who may ask.
type Auth byte

const (
	// Open answers anyone; a key is neither needed nor read.
	Open Auth = iota + 1
	// Keyed asks for the API key of an organization.
	Keyed
	// Admin asks for an operator's key, which no Keyed operation accepts.
	Admin
	// Registration asks for a registration key, in a header of its own: there is no
	// organization yet. Its Principal names the key alone.
	Registration
)

// KeyHeader is the header that carries the key of those who ask.
func (a Auth) KeyHeader() string {
	if a == Registration {
		return "X-Registro-Key"
	}
	return "X-Api-Key"
}

// Operation is one thing the service can do. Exactly one of Ask, Lot, Compute, Read and
// Act is set.
type Operation struct {
	ID          string   // Spanish verb in camel case, unique: verificarEmpresa
	Method      string   // GET, POST …
	Path        string   // template: /v1/empresa/{rfc}; a parameter is a whole segment
	Tag         string   // heading in the reference
	Summary     string   // one line, Spanish
	Description string   // Spanish: what it does, what it costs, what the result does not mean
	Service     string   // price code; empty when it is free
	Prefix      string   // of its verification ids, with Ask and Lot only
	Charged     []string // result_code of the answers that are charged, not with Read and Act
	Auth        Auth
	Probe       bool // asked by who watches the process, without a key: no limit, not in the access log
	Params      []Param
	Body        *Body              // nil: a body is not read, but for that of a Lot
	Output      *jsonschema.Schema // of a 200 answer; its Title names it in the OpenAPI document; nil with Media only
	// Negotiates says that the header Accept picks the type of a 200 answer: JSON unless
	// it prefers one of Media. 406 when it allows none. NewTable sets it for a Lot.
	Negotiates bool
	// Media are the contents of 200 answers that are no JSON. With them, or with
	// Streams, answers may be streams (Response.Stream) and have slots of their own.
	Media    []Media
	Streams  bool
	Errors   []string // codes of the error table, beyond those that follow from the rest
	Examples []Example

	// Ask turns the input into a question. The pipeline answers, records and
	// charges it; NewTable gives the operation the parameter simular, and every
	// request may carry an Idempotency-Key. An *InvalidError refuses the input.
	Ask func(Input) (query.Question, error)
	// Lot answers a list of questions as one order. It has simular and Idempotency-Key
	// as Ask has. NewTable sets Output and Media.
	Lot *Lot
	// Compute answers from the input alone, or from tables of this program or of the
	// edition (Input.Edition), and leaves no record: a charged answer leaves a
	// movement. It appends the members of the answer to dst, the first without a comma
	// before it. It has simular as Ask has, and Idempotency-Key unless a part of its
	// input is WriteOnly. An *InvalidError refuses the input.
	Compute func(dst []byte, in Input) ([]byte, Computed, error)
	// Read answers for free and leaves no record. An operation that notes what it gives
	// out does so before it answers, and not for Call.Head.
	Read func(context.Context, Call) (Response, error)
	// Act changes what an organization keeps here, for free, and leaves no
	// verification record. What it changed is durable when it returns; asked twice it
	// does no harm, since it knows no Idempotency-Key.
	Act func(context.Context, Call) (Response, error)

	// NewTable sets the rest.

	price Price // of Service
	table Table // that it is in
	// document is the OpenAPI document of the table.
	document func() ([]byte, error)
}

// Param is one parameter in the path or the query.
type Param struct {
	Name        string
	In          In
	Description string // Spanish
	// Schema is of type boolean, integer or string; limits are enforced unless Parse
	// is set. Of a value that is WriteOnly nothing is kept (see confidential).
	Schema  *jsonschema.Schema
	Default any // value when a query parameter is absent
	// Parse reads the text in the place of Schema. A *checks.Problem becomes an
	// item of the 422 answer.
	Parse func(text string) (any, error)
}

// In is where a parameter stands.
type In string

const (
	InPath  In = "path"
	InQuery In = "query"
)

// Example is a request and its exact answer, shown in the reference and run by
// the tests over the sandbox edition.
type Example struct {
	Name    string // one word, unique within the operation
	Summary string // Spanish
	Target  string // path and query as sent
	Request []byte // the JSON body, of an operation that reads one
	Body    []byte // the JSON answer
}

// Call is a request that was let in: who asks, and the decoded input.
type Call struct {
	Principal accounts.Principal // zero for Open operations
	Input     Input
	Head      bool   // the content will not be sent
	Media     string // type of the answer, of an operation that Negotiates
	op        *Operation
}

// Document returns the OpenAPI document, as JSON, of the table that the called
// operation belongs to. It must not be changed.
func (c Call) Document() ([]byte, error) { return c.op.document() }

// Response is an answer with status 200. An operation's Read or Act sets Body,
// which nobody changes afterwards, or Stream; the rest is the pipeline's.
type Response struct {
	Body      []byte             // JSON
	Stream    *Stream            // in the place of Body; whoever gets it closes it
	Private   bool               // must not be stored by any cache
	Principal accounts.Principal // who asked, for the log
	Quota     Quota              // of the limit that the request counted for
	Charged   bool               // what follows is known
	Cost      int64              // centavos of package money debited
	Used      string             // service of which an individual use paid; "" when package money did
	UsesLeft  int64              // of that service
	Balance   int64              // centavos of package money left
	Replayed  bool               // it was given and charged before: an Idempotency-Key was repeated
	Unknown   []string           // query parameters and members of the body that the operation does not know
	Lot       string             // id of the order that it answers
	Location  string             // set in the answer 202: where the order is read; Body says how far it is
}

// JSON is the answer of a Read that is v as JSON, members in the order of their
// declaration.
func JSON(v any) (Response, error) {
	body, err := marshalPlain(v)
	return Response{Body: body}, err
}

// Table is the list of everything the service can do.
type Table []*Operation

var (
	idForm       = regexp.MustCompile(`^[a-z][A-Za-z]+$`)
	pathForm     = regexp.MustCompile(`^(/([a-z0-9._-]+|\{[a-z][a-z0-9_]*\}))+$`)
	prefixForm   = regexp.MustCompile(`^[A-Z]{3}$`)
	paramInPath  = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)
	knownMethods = []string{"GET", "POST", "PUT", "DELETE"}
)

// NewTable joins lists of operations and checks that they describe themselves
// fully and do not contradict each other. An error is a programming mistake.
func NewTable(lists ...[]Operation) (Table, error) {
	var t Table
	ids, routes := map[string]bool{}, map[string]bool{}
	for _, list := range lists {
		for i := range list {
			op := new(Operation)
			*op = list[i]
			if op.Lot != nil {
				op.Negotiates, op.Media, op.Output = true, lotMedia, op.Lot.output(op.lotTitle())
			}
			if op.priced() {
				op.Params = append(slices.Clip(op.Params), simulateParam())
			}
			if err := op.check(); err != nil {
				return nil, fmt.Errorf("operation %s %s %q: %w", op.Method, op.Path, op.ID, err)
			}
			route := op.Method + " " + paramInPath.ReplaceAllString(op.Path, "{}")
			if ids[op.ID] || routes[route] {
				return nil, fmt.Errorf("operation %s %s %q: declared twice", op.Method, op.Path, op.ID)
			}
			ids[op.ID], routes[route] = true, true
			if op.priced() && op.Lot == nil && len(op.Examples) > 0 {
				op.Examples = append(slices.Clip(op.Examples), op.quoteExample())
			}
			t = append(t, op)
		}
	}
	document := sync.OnceValues(t.OpenAPI)
	for _, op := range t {
		op.table, op.document = t, document
	}
	return t, nil
}

// Find returns the operation with an id, nil when there is none.
func (t Table) Find(id string) *Operation {
	for _, op := range t {
		if op.ID == id {
			return op
		}
	}
	return nil
}

// priced reports whether answers of the operation can cost something.
func (op *Operation) priced() bool { return op.Ask != nil || op.Lot != nil || op.Compute != nil }

// streams reports whether answers of the operation can be streams.
func (op *Operation) streams() bool { return op.Streams || op.Media != nil }

func (op *Operation) oneWay() bool {
	ways := 0
	for _, set := range [...]bool{op.Ask != nil, op.Lot != nil, op.Compute != nil, op.Read != nil, op.Act != nil} {
		if set {
			ways++
		}
	}
	return ways == 1
}

func (op *Operation) check() error {
	switch {
	case !idForm.MatchString(op.ID):
		return fmt.Errorf("bad id")
	case !slices.Contains(knownMethods, op.Method):
		return fmt.Errorf("bad method")
	case !pathForm.MatchString(op.Path):
		return fmt.Errorf("bad path")
	case op.Tag == "" || op.Summary == "" || op.Description == "":
		return fmt.Errorf("undocumented")
	case op.Auth < Open || op.Auth > Registration:
		return fmt.Errorf("says not who may ask")
	case op.Probe && op.Auth != Open:
		return fmt.Errorf("a probe has no key")
	case op.Output == nil && op.Media == nil || op.Output != nil && op.Output.Title == "" && op.Output.Ref == "":
		return fmt.Errorf("output schema without title")
	case op.streams() && (op.Read == nil && op.Lot == nil || op.Auth != Keyed):
		return fmt.Errorf("only a reading with a key can be a stream")
	case !op.oneWay():
		return fmt.Errorf("needs exactly one of Ask, Lot, Compute, Read and Act")
	case op.Negotiates && (op.Output == nil || op.Media == nil):
		return fmt.Errorf("negotiates between one type")
	case op.Ask != nil && (op.Auth != Keyed || op.Service == "" || !prefixForm.MatchString(op.Prefix)):
		return fmt.Errorf("a recorded operation needs a key, a service and a prefix")
	case op.Compute != nil && (op.Auth != Keyed || op.Service == "" || op.Prefix != ""):
		return fmt.Errorf("a computed operation needs a key and a service, and has no prefix")
	case op.priced() && len(op.Charged) == 0:
		return fmt.Errorf("says not which answers are charged")
	case op.Act != nil && op.Method == "GET":
		return fmt.Errorf("a GET changes nothing")
	case !op.priced() && (op.Service != "" || op.Prefix != "" || op.Charged != nil):
		return fmt.Errorf("a free operation has no service, no prefix and charges nothing")
	}
	if op.Lot != nil {
		if err := op.checkLot(); err != nil {
			return err
		}
	}
	if op.Service != "" {
		var ok bool
		if op.price, ok = PriceOf(op.Service); !ok {
			return fmt.Errorf("no price for %s", op.Service)
		}
	}
	for _, code := range op.Errors {
		if _, ok := failureByCode(code); !ok {
			return fmt.Errorf("unknown error code %s", code)
		}
	}
	var inPath, declared []string
	for _, m := range paramInPath.FindAllStringSubmatch(op.Path, -1) {
		inPath = append(inPath, m[1])
	}
	for i := range op.Params {
		p := &op.Params[i]
		if p.Name == "" || p.Description == "" || p.Schema == nil {
			return fmt.Errorf("parameter %q undocumented", p.Name)
		}
		switch p.Schema.Type {
		case "boolean", "integer", "string":
		default:
			return fmt.Errorf("parameter %q: type %q", p.Name, p.Schema.Type)
		}
		if slices.ContainsFunc(op.Params[:i], func(other Param) bool { return other.Name == p.Name }) {
			return fmt.Errorf("parameter %q: declared twice", p.Name)
		}
		if p.In == InPath {
			declared = append(declared, p.Name)
		} else if p.In != InQuery || strings.Contains(op.Path, "{"+p.Name+"}") {
			return fmt.Errorf("parameter %q: bad place", p.Name)
		}
	}
	if !slices.Equal(inPath, declared) {
		return fmt.Errorf("path has parameters %v, declared in order are %v", inPath, declared)
	}
	if op.Body == nil {
		return nil
	}
	if err := op.Body.check(op.Method); err != nil {
		return err
	}
	for i := range op.Params {
		if name := op.Params[i].Name; op.Body.Schema.Properties[name] != nil {
			return fmt.Errorf("%q is a parameter and a member of the body", name)
		}
	}
	return nil
}
