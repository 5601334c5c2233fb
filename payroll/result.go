package payroll

import (
	"fmt"
	"slices"
	"strings"

	"cotejo/civil"
)

// Line is one item of a result: Amount is Base times Factor, rounded to
// centavos. Factor is an expression of numbers, ×, /, +, % and parentheses.
type Line struct {
	Key        string `json:"clave"` // stable, for programs
	Concept    string `json:"concepto"`
	Base       Pesos  `json:"base"`
	Factor     string `json:"factor"`
	Amount     Pesos  `json:"importe"`
	LegalBasis string `json:"fundamento"`
	// Payer is patron or trabajador for contributions, otherwise empty.
	Payer string `json:"a_cargo_de,omitempty"`
}

// Exemption is how much of a payment the income tax leaves free, as a fact
// beside the result: nothing is withheld from the lines.
type Exemption struct {
	Concept    string `json:"concepto"`
	Limit      Pesos  `json:"limite"`
	Factor     string `json:"factor"`
	Exempt     Pesos  `json:"exento"`
	Taxable    Pesos  `json:"gravado"`
	LegalBasis string `json:"fundamento"`
}

// Basis is what a result rests on (base_calculo): with it, anyone can compute
// the figures again.
type Basis struct {
	LegalBasis  []string  `json:"fundamento"`
	Tables      []Version `json:"tablas"`
	Formulas    []string  `json:"formula"` // with the numbers put in
	Assumptions []string  `json:"supuestos"`
	Rounding    string    `json:"redondeo"`
	Notice      string    `json:"aviso"`
}

// Notice is the notice of every result.
const Notice = "Resultado matemático con los datos recibidos y las tablas citadas; no es una resolución oficial ni sustituye la de la autoridad o asesoría profesional."

// Calculation is what every result carries: its items in order, what the reader
// should know about this input, and its basis. Lists are never nil.
type Calculation struct {
	Lines    []Line   `json:"renglones"`
	Warnings []string `json:"advertencias"`
	Basis    Basis    `json:"base_calculo"`
}

func newCalculation(laws ...string) Calculation {
	return Calculation{
		Lines: []Line{}, Warnings: []string{},
		Basis: Basis{LegalBasis: laws, Tables: []Version{}, Formulas: []string{}, Assumptions: []string{}, Rounding: Rounding, Notice: Notice},
	}
}

// Amount returns the sum of the lines with a key, 0 when there is none.
func (c *Calculation) Amount(key string) Pesos {
	sum := Pesos(0)
	for i := range c.Lines {
		if c.Lines[i].Key == key {
			sum += c.Lines[i].Amount
		}
	}
	return sum
}

// add appends a line and its formula, written out in general and in numbers.
// num/den is what l.Factor says.
func (c *Calculation) add(l Line, num, den int64, formula string) Pesos {
	l.Amount = Pesos(halfUp(int64(l.Base)*num, den))
	c.Lines = append(c.Lines, l)
	c.formula("%s = %s = %s × %s = %s", l.Key, formula, l.Base, l.Factor, l.Amount)
	return l.Amount
}

func (c *Calculation) formula(format string, args ...any) {
	c.Basis.Formulas = append(c.Basis.Formulas, fmt.Sprintf(format, args...))
}

func (c *Calculation) assume(text string) { c.Basis.Assumptions = append(c.Basis.Assumptions, text) }

func (c *Calculation) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// fromMemory begins the verification of figures that no text was compared with.
const fromMemory = "recordada"

// rest notes that the result rests on a version, once.
func (c *Calculation) rest(v *Version) {
	if slices.Contains(c.Basis.Tables, *v) {
		return
	}
	c.Basis.Tables = append(c.Basis.Tables, *v)
	if strings.HasPrefix(v.Verification, fromMemory) {
		c.warn("La tabla «%s», versión %s, no se ha cotejado con el texto oficial: confirme sus cifras.", v.Table, v.Version)
	}
}

// RestsOn returns the versions of tables that the result rests on. It must not
// be changed.
func (c *Calculation) RestsOn() []Version { return c.Basis.Tables }

// exempt returns what the tax leaves free of an amount, times daily UMA.
func exempt(concept string, amount Pesos, times int, daily Pesos, basis string) Exemption {
	limit := Pesos(times) * daily
	free := min(amount, limit)
	return Exemption{concept, limit, fmt.Sprintf("%d × %s", times, daily), free, amount - free, basis}
}

// taxFree returns the exemptions in force on a day and the daily UMA, noting
// both tables. The error is *ErrNoTable.
func (c *Calculation) taxFree(day civil.Date) (free exemptions, daily Pesos, err error) {
	e, err := taxExemptions.at(day)
	if err != nil {
		return exemptions{}, 0, err
	}
	u, err := umaTable.at(day)
	if err != nil {
		return exemptions{}, 0, err
	}
	c.rest(&e.Version)
	c.rest(&u.Version)
	return e.figures, u.figures.daily, nil
}
