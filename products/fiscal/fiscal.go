// Package fiscal is what Mexican labour and social security law says in numbers:
// aguinaldo, vacation premium, finiquito, IMSS contributions and the withholding
// of income tax. It declares the operations and their schemas, and reads what a
// request sends; the engine is package payroll.
//
// Start reading at Operations; calculate is what all of them share.
package fiscal

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/operation"
	"cotejo/payroll"
)

//go:embed examples/*.json
var examples embed.FS

const (
	labour  = "LABORAL"
	payment = "NOMINA"

	okCode      = "_OK" // behind the service
	unavailable = "SOURCE_UNAVAILABLE"

	// maxBody is some ten times the longest request that says something.
	maxBody = 4 << 10
)

// Operations lists what this family can do.
func Operations() []operation.Operation {
	list := []operation.Operation{aguinaldo(), primaVacacional(), finiquito(), imss(), isr()}
	for i := range list {
		op := &list[i]
		op.Method, op.Tag, op.Auth = "POST", "Cálculos laborales y de nómina", operation.Keyed
		op.Description += "\n\n" + terms(op.Service)
		op.Charged = []string{op.Service + okCode}
	}
	return list
}

// terms says what a calculation costs and how numbers are written.
func terms(service string) string {
	price, _ := operation.PriceOf(service)
	return "Cuesta " + operation.Pesos(price.Package) + " pesos con paquete y " + operation.Pesos(price.Single) + " individual, IVA incluido. Se cobra solo si result_code es " +
		service + okCode + ". Si una tabla no está vigente en la fecha pedida no se calcula: SOURCE_UNAVAILABLE, con una advertencia que nombra la tabla y su vigencia, y no se cobra; " +
		"tampoco una entrada no válida ni las llaves de prueba.\n\n" +
		"Los números van sin comillas, con punto decimal y sin exponente: importes con a lo más 2 decimales, por cientos y años con a lo más 5. Nada se redondea al leer."
}

// result is a calculation of package payroll: JSON, and what it rests on.
type result interface{ RestsOn() []payroll.Version }

// calculate is the Compute of an operation that asks package payroll.
func calculate[R result](service string, ask func(*fields) (R, error)) func([]byte, operation.Input) ([]byte, operation.Computed, error) {
	return func(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
		f := &fields{in: in}
		r, err := ask(f)
		if invalid := f.invalid(err); invalid != nil {
			return nil, operation.Computed{}, invalid
		}
		var none *payroll.ErrNoTable
		if errors.As(err, &none) {
			return notComputed(dst, none), operation.Computed{Code: unavailable}, nil
		}
		if err != nil {
			return nil, operation.Computed{}, err
		}
		dst, err = appendMembers(dst, r)
		return dst, operation.Computed{Code: service + okCode, Charged: true, Basis: basis(r.RestsOn())}, err
	}
}

// appendMembers appends what is between the braces of v's JSON.
func appendMembers(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
	return append(dst, text[1:len(text)-1]...), nil
}

// notComputed appends why there are no figures.
func notComputed(dst []byte, none *payroll.ErrNoTable) []byte {
	dst = append(dst, `"advertencias":[`...)
	dst = canon.AppendString(dst, none.Error())
	dst = append(dst, `],"tabla_no_vigente":{"tabla":`...)
	dst = canon.AppendString(dst, none.Table)
	day := func(name string, d civil.Date) {
		dst = append(dst, name...)
		dst = append(d.AppendTo(dst), '"')
	}
	day(`,"fecha":"`, none.Date)
	day(`,"vigencia_desde":"`, none.From)
	if !none.To.IsZero() {
		day(`,"vigencia_hasta":"`, none.To)
	}
	return append(dst, '}')
}

// basis names tables for the movement of a charge: uma 2026 sha256:0123456789abcdef.
func basis(tables []payroll.Version) string {
	var b []byte
	for i := range tables {
		v := &tables[i]
		if i > 0 {
			b = append(b, "; "...)
		}
		b = append(b, v.Table+" "+v.Version+" sha256:"+v.SHA256[:16]...)
	}
	return string(b)
}

// fields reads the members of a body as package payroll takes them, and keeps
// what is wrong with them. A member that cannot be read gives its zero value.
type fields struct {
	in    operation.Input
	items []operation.Item
}

func (f *fields) pesos(name string) payroll.Pesos { return read(f, name, payroll.ParsePesos) }

func (f *fields) decimal(name string) payroll.Decimal { return read(f, name, payroll.ParseDecimal) }

// optional returns nil for a member that is absent or null.
func (f *fields) optional(name string) *payroll.Decimal {
	if _, ok := operation.Get[json.Number](f.in, name); !ok {
		return nil
	}
	d := f.decimal(name)
	return &d
}

// read reads a number from the digits that were sent: no float is in between.
func read[T any](f *fields, name string, parse func(field, text string) (T, *payroll.Problem)) T {
	n, _ := operation.Get[json.Number](f.in, name)
	v, problem := parse(name, string(n))
	if problem != nil {
		f.refuse(problem)
	}
	return v
}

func (f *fields) whole(name string) int {
	n, _ := operation.Get[int](f.in, name)
	return n
}

func (f *fields) text(name string) string {
	s, _ := operation.Get[string](f.in, name)
	return s
}

// date returns the zero date for a member that is absent; a text that is no day
// does not come this far.
func (f *fields) date(name string) civil.Date {
	d, _ := civil.Parse(f.text(name))
	return d
}

func (f *fields) refuse(p *payroll.Problem) {
	f.items = append(f.items, operation.Item{Loc: []any{"body", p.Field}, Msg: p.Rule, Type: p.Type, Input: f.echo(p.Field)})
}

// echo is what was sent, as far as a person needs it to recognise it.
func (f *fields) echo(name string) any {
	text := f.text(name)
	if n, ok := operation.Get[json.Number](f.in, name); ok {
		text = string(n)
	} else if n, ok := operation.Get[int](f.in, name); ok {
		text = strconv.Itoa(n)
	}
	const echoed = 64
	if len(text) > echoed {
		text = text[:echoed] + "…" // ASCII: the digits of a number
	}
	if text == "" {
		return nil
	}
	return text
}

// invalid returns the refusal of an input: of members that could not be read and
// of those that package payroll refuses. What it says of the first is of their
// zero value and nobody's business. It is nil when there are none.
func (f *fields) invalid(err error) error {
	var problems payroll.Problems
	errors.As(err, &problems)
	unread := slices.Clone(f.items)
	for i := range problems {
		p := &problems[i]
		if !slices.ContainsFunc(unread, func(item operation.Item) bool { return item.Loc[1] == p.Field }) {
			f.refuse(p)
		}
	}
	if len(f.items) == 0 {
		return nil
	}
	return &operation.InvalidError{Items: f.items}
}

// example is a request and the expected answer of the same name.
func example(name, summary, target, request string) operation.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return operation.Example{Name: name, Summary: summary, Target: target, Request: []byte(request), Body: body}
}
