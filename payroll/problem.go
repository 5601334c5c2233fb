package payroll

import (
	"fmt"
	"strings"

	"cotejo/civil"
)

// Problem is one part of a request that cannot be used: Field is its name in
// the API, Type the validation code (missing, decimal_parsing, greater_than,
// greater_than_equal, less_than_equal, literal_error, value_error), Rule says in
// Spanish what was expected and what to do. Rule never repeats the input.
type Problem struct {
	Field string
	Type  string
	Rule  string
}

func (p *Problem) Error() string { return p.Rule }

const (
	missing          = "missing"
	decimalParsing   = "decimal_parsing"
	greaterThan      = "greater_than"
	greaterThanEqual = "greater_than_equal"
	lessThanEqual    = "less_than_equal"
	literalError     = "literal_error"
	valueError       = "value_error"
)

// Problems refuses a request with every reason at once, in the order of the
// fields. Nothing was computed.
type Problems []Problem

func (p Problems) Error() string {
	rules := make([]string, len(p))
	for i := range p {
		rules[i] = p[i].Rule
	}
	return strings.Join(rules, " ")
}

// err returns the problems as an error, nil when there are none.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func (p *Problems) add(field, kind, format string, args ...any) {
	*p = append(*p, Problem{field, kind, "«" + field + "» " + fmt.Sprintf(format, args...)})
}

// amount notes an amount outside (0, most].
func (p *Problems) amount(field string, value, most Pesos) {
	switch {
	case value <= 0:
		p.add(field, greaterThan, "debe ser mayor que 0.")
	case value > most:
		p.add(field, lessThanEqual, "debe ser a lo más %s.", most)
	}
}

// count notes a number outside [least, most].
func (p *Problems) count(field string, value, least, most int) {
	switch {
	case value < least:
		p.add(field, greaterThanEqual, "debe ser al menos %d.", least)
	case value > most:
		p.add(field, lessThanEqual, "debe ser a lo más %d.", most)
	}
}

// date notes a date that is absent or is no day of the calendar. Days that no
// table covers are not noted here: they are ErrNoTable.
func (p *Problems) date(field string, d civil.Date) (ok bool) {
	if d.IsZero() {
		p.add(field, missing, "falta: envíe una fecha AAAA-MM-DD.")
		return false
	}
	if _, ok = civil.New(d.Year, d.Month, d.Day); !ok {
		p.add(field, valueError, "no es un día del calendario; envíe una fecha AAAA-MM-DD que exista.")
	}
	return ok
}

// ErrNoTable says that no loaded version of a parameter table is in force on a
// date. Nothing was computed: the table has to be updated, or the date is older
// than what is loaded. From and To are the first and last day that the loaded
// versions cover; To is zero when the newest one has no end.
type ErrNoTable struct {
	Table string
	Date  civil.Date
	From  civil.Date
	To    civil.Date
}

func (e *ErrNoTable) Error() string {
	covered := "desde el " + e.From.String()
	if !e.To.IsZero() {
		covered = "del " + e.From.String() + " al " + e.To.String()
	}
	remedy := "pida una fecha cubierta."
	if !e.To.IsZero() && e.To.Before(e.Date) {
		remedy = "falta actualizar la tabla."
	}
	return fmt.Sprintf("No se calcula: la tabla «%s» no está vigente el %s; la cargada cubre %s; %s", e.Table, e.Date, covered, remedy)
}
