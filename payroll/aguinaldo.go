package payroll

import (
	"fmt"

	"cotejo/civil"
)

// Limits of the requests, so that every figure is far from overflow and every
// year of service has its line in the table.
const (
	MaxDailyWage   Pesos   = 1_000_000 * centavos
	MaxYears               = 60  // of service
	MaxDaysWorked          = 366 // of a year; the 366th adds nothing
	MaxDaysOfBonus         = 365
	MaxPremium     Decimal = 500 * decimalUnit // percent
)

// A year has daysOfYear days in every formula: so the reference examples and
// the usual practice have it, and no year is ever paid as more than one.
const (
	daysOfYear     = 365
	ruleDaysOfYear = "Un año son 365 días también cuando es bisiesto: el día 366 no agrega importe."
)

// AguinaldoRequest asks for the annual bonus. Nothing has a default here.
type AguinaldoRequest struct {
	SalarioDiario  Pesos // cuota diaria, not integrated; up to MaxDailyWage
	DiasTrabajados int   // of the calendar year, 1 to MaxDaysWorked
	DiasAguinaldo  int   // 1 to MaxDaysOfBonus; under the law's minimum gives a warning
	// Fecha is the day whose tables apply (fecha_calculo). Zero takes the newest
	// version of the law's minimums and leaves the tax exemption out.
	Fecha civil.Date
}

// AguinaldoResult is the annual bonus.
type AguinaldoResult struct {
	SalarioDiario  Pesos `json:"salario_diario"`
	DiasTrabajados int   `json:"dias_trabajados"`
	DiasComputados int   `json:"dias_computados"`
	DiasAguinaldo  int   `json:"dias_aguinaldo"`
	Aguinaldo      Pesos `json:"aguinaldo"`
	// Exemption is absent without a date.
	Exemption *Exemption `json:"exencion_isr,omitempty"`
	Calculation
}

// Aguinaldo computes the annual bonus of LFT 87, in proportion to the days
// worked. The error is Problems or *ErrNoTable.
func Aguinaldo(r AguinaldoRequest) (*AguinaldoResult, error) {
	var p Problems
	p.amount("salario_diario", r.SalarioDiario, MaxDailyWage)
	p.count("dias_trabajados", r.DiasTrabajados, 1, MaxDaysWorked)
	p.count("dias_aguinaldo", r.DiasAguinaldo, 1, MaxDaysOfBonus)
	if !r.Fecha.IsZero() {
		p.date("fecha_calculo", r.Fecha)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	law, err := labourRules.on(r.Fecha)
	if err != nil {
		return nil, err
	}

	out := &AguinaldoResult{SalarioDiario: r.SalarioDiario, DiasTrabajados: r.DiasTrabajados,
		DiasComputados: min(r.DiasTrabajados, daysOfYear), DiasAguinaldo: r.DiasAguinaldo,
		Calculation: newCalculation("Ley Federal del Trabajo, artículo 87")}
	out.rest(&law.Version)
	out.Aguinaldo = out.add(Line{Key: "aguinaldo", Concept: "Aguinaldo", Base: r.SalarioDiario,
		Factor: fmt.Sprintf("%d × %d / %d", r.DiasAguinaldo, out.DiasComputados, daysOfYear), LegalBasis: "LFT 87"},
		int64(r.DiasAguinaldo*out.DiasComputados), daysOfYear,
		"salario_diario × dias_aguinaldo × mínimo(dias_trabajados, 365) / 365")
	if least := law.figures.aguinaldoDays; r.DiasAguinaldo < least {
		out.warn("«dias_aguinaldo» es inferior al mínimo legal de %d días de salario (LFT 87).", least)
	}
	out.assume("La base es la cuota diaria, sin integrar otras prestaciones.")
	out.assume(ruleDaysOfYear)
	if out.Exemption, err = out.exemption(r.Fecha, "aguinaldo", out.Aguinaldo); err != nil {
		return nil, err
	}
	return out, nil
}

// exemption returns the tax exemption of an aguinaldo or a vacation premium,
// nil without a date. The error is *ErrNoTable.
func (c *Calculation) exemption(day civil.Date, key string, amount Pesos) (*Exemption, error) {
	if day.IsZero() {
		return nil, nil
	}
	free, daily, err := c.taxFree(day)
	if err != nil {
		return nil, err
	}
	times := free.aguinaldo
	if key != "aguinaldo" {
		times = free.vacationPremium
	}
	c.assume("La exención de ISR es anual y supone que no se usó antes en el año; el salario mínimo de LISR 93-XIV se lee como UMA.")
	e := exempt(key, amount, times, daily, "LISR 93-XIV")
	return &e, nil
}
