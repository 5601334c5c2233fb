package catalog

import (
	"errors"
	"fmt"
	"strings"

	"cotejo/checks"
	"cotejo/civil"
)

// AreaClass is what a national destination code is for.
type AreaClass string

const (
	Geographic AreaClass = "geografica"
	Satellite  AreaClass = "satelital"
	SharedCost AreaClass = "costo_compartido"
	Personal   AreaClass = "personal"
	TollFree   AreaClass = "gratuita"
	Premium    AreaClass = "tarifa_especial"
)

// AreaCode is a row of the numbering plan: 2 or 3 digits. It does not say whether
// a number is fixed or mobile, nor of which operator.
type AreaCode struct {
	Code  string
	Class AreaClass
	// Zone names the places as the source writes them («Huejotzingo/San
	// Buenaventura Nealtican, PUE»); empty where it names none, as for the codes
	// laid over another's zone (56 over 55).
	Zone string
}

func (AreaCode) check(key string) *checks.Problem {
	if isASCII(key, 2, 3, false) && key[0] >= '2' {
		return nil
	}
	return malformed("La clave de área son 2 o 3 dígitos y no empieza con 0 ni 1.")
}

func (AreaCode) standing(day civil.Date, version *Version) Standing { return listed(day, version) }

// listed is the standing of a key of a list without validity of its own: in force
// from the day that the list is of.
func listed(day civil.Date, version *Version) Standing {
	if day.Before(version.Date) {
		return Unknown
	}
	return InForce
}

// Phone is a national number in its parts.
type Phone struct {
	// Number has 10 digits: Area.Code and Local.
	Number, Local string
	Area          AreaCode
	// Dialled is the dialling prefix that was taken off (+52, 0052, 521, 01, 02,
	// 044, 045), in digits; empty when there was none. Those other than 52 and 0052
	// have been void since August 2019.
	Dialled string
	// Assigned is the range of the numbering plan that holds the number: nil when
	// none does, or when no plan is loaded (Phones.Plan). It is shared and read-only.
	Assigned *Assignment
}

// Format returns XX XXXX XXXX or XXX XXX XXXX.
func (p *Phone) Format() string {
	head := len(p.Local) - 4
	return p.Area.Code + " " + p.Local[:head] + " " + p.Local[head:]
}

// International returns the number with its country code, as E.164 writes it.
func (p *Phone) International() string { return "+52" + p.Number }

// VoidPrefix reports whether a prefix was taken off that nobody should dial.
func (p *Phone) VoidPrefix() bool {
	return p.Dialled != "" && p.Dialled != "52" && p.Dialled != "0052"
}

// Phones is the catalogue of area codes.
type Phones struct {
	table *Table[AreaCode]
	plan  *plan // nil: not loaded
	basis string
}

// with is the catalogue with a numbering plan.
func (p *Phones) with(plan *plan) *Phones {
	if plan == nil {
		return p
	}
	return &Phones{p.table, plan, p.basis + "; " + plan.version.Basis}
}

// Plan returns the version of the numbering plan; nil when none is loaded.
func (p *Phones) Plan() *Version {
	if p.plan == nil {
		return nil
	}
	return &p.plan.version
}

// Basis is what the movement of a paid answer says of the versions.
func (p *Phones) Basis() string { return p.basis }

// Version returns what the catalogue was read from.
func (p *Phones) Version() *Version { return p.table.Version() }

// All calls yield with each area code, in order.
func (p *Phones) All(yield func(string, AreaCode) bool) { p.table.All(yield) }

// maxPhone bounds the text of a number: 15 digits and what people put between them.
const maxPhone = 40

const digitsInNumber = 10

// diallingPrefixes are taken off a number that is longer than national by exactly
// their length. 521 is the mobile form of +52 that ended in 2019.
var diallingPrefixes = [...]string{"52", "0052", "521", "00521", "01", "02", "044", "045"}

// On reads a telephone number and returns its parts. Blanks, hyphens, dots,
// parentheses and one leading + are passed over; digits are ASCII. After a + comes
// the code of the country, 52. The error is a *checks.Problem for what is no
// national number, a *NotFoundError (of the first three digits) when no area code
// begins it.
func (p *Phones) On(in string, day civil.Date) (Answer[Phone], error) {
	digits, abroad, problem := dialled(in)
	if problem != nil {
		return Answer[Phone]{}, problem
	}
	if abroad && (len(digits) <= digitsInNumber || !strings.HasPrefix(digits, "52")) {
		// +55 1234 5678 would be a number of Brazil.
		return Answer[Phone]{}, malformed("Después de + van 52, la clave de México, y los 10 dígitos del número: +52 55 1234 5678. Sin +, solo los 10 dígitos.")
	}
	phone := Phone{Number: digits}
	if extra := len(digits) - digitsInNumber; extra != 0 {
		for _, prefix := range diallingPrefixes {
			if len(prefix) == extra && strings.HasPrefix(digits, prefix) {
				phone.Number, phone.Dialled = digits[extra:], prefix
			}
		}
		if phone.Dialled == "" {
			return Answer[Phone]{}, wrongDigits(len(digits))
		}
	}
	if phone.Number[0] < '2' {
		return Answer[Phone]{}, malformed("Un número nacional empieza con un dígito de 2 a 9; quite los prefijos 01, 044, 045 y el 1 después de +52.")
	}
	if p.plan != nil {
		phone.Assigned = p.plan.find(phone.Number)
	}
	for _, n := range []int{2, 3} {
		if i, ok := p.table.places[phone.Number[:n]]; ok {
			a := p.table.at(i, day)
			phone.Area, phone.Local = a.Row, phone.Number[n:]
			return Answer[Phone]{Row: phone, Day: day, Standing: a.Standing, Version: a.Version}, nil
		}
	}
	if phone.Assigned != nil {
		// An area code that is newer than the list. Those of two digits are known.
		phone.Area, phone.Local = AreaCode{Code: phone.Number[:3], Class: Geographic, Zone: phone.Assigned.Zone}, phone.Number[3:]
		return Answer[Phone]{Row: phone, Day: day, Standing: listed(day, &p.plan.version), Version: &p.plan.version}, nil
	}
	return Answer[Phone]{}, &NotFoundError{Key: phone.Number[:3], Version: p.Version()}
}

// wrongDigits is the problem of a text with n digits.
func wrongDigits(n int) *checks.Problem {
	problem := &checks.Problem{Type: "string_too_short", Rule: fmt.Sprintf(
		"Un número nacional tiene 10 dígitos, con su clave de área; el texto tiene %d.", n)}
	if n > digitsInNumber {
		problem.Type = "string_too_long"
	}
	return problem
}

// dialled returns the digits of a text, and whether a + comes before them.
func dialled(in string) (number string, abroad bool, problem *checks.Problem) {
	if len(in) > maxPhone {
		return "", false, &checks.Problem{Type: "string_too_long", Rule: fmt.Sprintf(
			"Un número nacional tiene 10 dígitos, con su clave de área; el texto ocupa %d bytes.", len(in))}
	}
	in, abroad = strings.CutPrefix(strings.Trim(in, " "), "+")
	digits := make([]byte, 0, len(in))
	for i := range len(in) {
		switch c := in[i]; c {
		case ' ', '-', '.', '(', ')':
		default:
			if c < '0' || c > '9' {
				return "", false, malformed("Un número de teléfono lleva dígitos, y entre ellos solo espacios, guiones, puntos o paréntesis.")
			}
			digits = append(digits, c)
		}
	}
	return string(digits), abroad, nil
}

// ReadPhones reads the catalogue telefono_nir.
func ReadPhones(data []byte) (*Phones, error) {
	table, err := readTable(data, "telefono_nir", []string{"nir", "clase", "zona"}, func(f []string) (AreaCode, error) {
		class := AreaClass(f[1])
		switch class {
		case Geographic, Satellite, SharedCost, Personal, TollFree, Premium:
			return AreaCode{Code: f[0], Class: class, Zone: f[2]}, nil
		}
		return AreaCode{}, errors.New("clase desconocida")
	})
	if err != nil {
		return nil, err
	}
	for key := range table.All {
		if _, ok := table.places[key[:2]]; ok && len(key) == 3 {
			return nil, fmt.Errorf("%s empieza con otra clave de área", key)
		}
	}
	return &Phones{table: table, basis: table.version.Basis}, nil
}
