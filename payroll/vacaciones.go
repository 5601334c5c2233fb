package payroll

import (
	"fmt"

	"cotejo/civil"
)

// PrimaVacacionalRequest asks for the vacation premium. Nothing has a default
// here.
type PrimaVacacionalRequest struct {
	SalarioDiario   Pesos   // up to MaxDailyWage
	AniosAntiguedad Decimal // completed years, 0 to MaxYears; a fraction is dropped
	Porcentaje      Decimal // over 0, to MaxPremium; under the law's minimum gives a warning
	// Fecha is the day whose tables apply (fecha_calculo). Zero takes the newest
	// versions and leaves the tax exemption out.
	Fecha civil.Date
}

// PrimaVacacionalResult is the vacation premium.
type PrimaVacacionalResult struct {
	SalarioDiario     Pesos      `json:"salario_diario"`
	AniosAntiguedad   int        `json:"anios_antiguedad"`
	Porcentaje        Decimal    `json:"porcentaje"`
	DiasVacaciones    int        `json:"dias_vacaciones"`
	SalarioVacaciones Pesos      `json:"salario_vacaciones"`
	Prima             Pesos      `json:"prima"`
	Exemption         *Exemption `json:"exencion_isr,omitempty"` // absent without a date
	Calculation
}

// PrimaVacacional computes the premium of LFT 80 on the vacation days that LFT
// 76 gives for the completed years of service. Before the first year there is
// no right yet: 0 days, and a warning. The error is Problems or *ErrNoTable.
func PrimaVacacional(r PrimaVacacionalRequest) (*PrimaVacacionalResult, error) {
	var p Problems
	p.amount("salario_diario", r.SalarioDiario, MaxDailyWage)
	switch {
	case r.AniosAntiguedad < 0:
		p.add("anios_antiguedad", greaterThanEqual, "debe ser al menos 0.")
	case r.AniosAntiguedad > MaxYears*decimalUnit:
		p.add("anios_antiguedad", lessThanEqual, "debe ser a lo más %d.", MaxYears)
	}
	switch {
	case r.Porcentaje <= 0:
		p.add("porcentaje", greaterThan, "debe ser mayor que 0.")
	case r.Porcentaje > MaxPremium:
		p.add("porcentaje", lessThanEqual, "debe ser a lo más %s.", MaxPremium)
	}
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
	table, err := vacationTable.on(r.Fecha)
	if err != nil {
		return nil, err
	}

	years := int(r.AniosAntiguedad / decimalUnit)
	out := &PrimaVacacionalResult{SalarioDiario: r.SalarioDiario, AniosAntiguedad: years, Porcentaje: r.Porcentaje,
		Calculation: newCalculation("Ley Federal del Trabajo, artículos 76 y 80")}
	out.rest(&table.Version)
	out.rest(&law.Version)
	if years > 0 {
		out.DiasVacaciones = table.figures.days(years)
	} else {
		out.warn("Antes del primer año completo no hay derecho a vacaciones; al terminar la relación se pagan en proporción (LFT 79): use el cálculo de finiquito.")
	}
	if r.AniosAntiguedad%decimalUnit != 0 {
		out.warn("«anios_antiguedad» cuenta años completos: se tomó %d.", years)
	}
	if least := law.figures.vacationPremium; r.Porcentaje < Decimal(least*decimalUnit) {
		out.warn("«porcentaje» es inferior al mínimo legal de %d %% (LFT 80).", least)
	}
	out.SalarioVacaciones = r.SalarioDiario * Pesos(out.DiasVacaciones)
	out.formula("salario_vacaciones = salario_diario × dias_vacaciones = %s × %d = %s", r.SalarioDiario, out.DiasVacaciones, out.SalarioVacaciones)
	out.Prima = out.add(Line{Key: "prima_vacacional", Concept: "Prima vacacional", Base: out.SalarioVacaciones,
		Factor: fmt.Sprintf("%s %%", r.Porcentaje), LegalBasis: "LFT 76 y 80"},
		int64(r.Porcentaje), 100*decimalUnit, "salario_vacaciones × porcentaje")
	out.assume("Los días son los mínimos de LFT 76 por años de servicio completos.")
	if out.Exemption, err = out.exemption(r.Fecha, "prima_vacacional", out.Prima); err != nil {
		return nil, err
	}
	return out, nil
}
