package payroll

import (
	"fmt"
	"slices"
	"strings"

	"cotejo/civil"
)

// MaxTaxBase bounds the income of a period.
const MaxTaxBase Pesos = 1_000_000_000 * centavos

// Period is what a tariff is for; the empty one is Monthly.
type Period string

const (
	Daily     Period = "diaria"
	Weekly    Period = "semanal"
	TenDays   Period = "decenal"
	Fortnight Period = "quincenal"
	Monthly   Period = "mensual"
	Annual    Period = "anual"
)

// Periods lists what ISR computes; there is no published tariff of 14 days.
var Periods = []Period{Daily, Weekly, TenDays, Fortnight, Monthly, Annual}

// monthDays10 is the month of the tariffs, 30.4 days, in tenths of a day.
const monthDays10 = 304

// days10 returns the length of a period in tenths of a day; 0 for the annual
// one, which the employment subsidy does not know.
func (p Period) days10() (n int64, ok bool) {
	switch p {
	case Daily:
		return 10, true
	case Weekly:
		return 70, true
	case TenDays:
		return 100, true
	case Fortnight:
		return 150, true
	case Monthly:
		return monthDays10, true
	case Annual:
		return 0, true
	}
	return 0, false
}

// ISRRequest asks for the income tax on wages.
type ISRRequest struct {
	BaseGravable Pesos      // of the period, up to MaxTaxBase
	FechaCalculo civil.Date // decides every table
	Periodicidad Period     // empty: Monthly, which is what LISR 96 withholds by
}

// ISRResult is the tax of a period: cuota_fija and impuesto_marginal, less
// subsidio_acreditado. In JSON, limite_superior is absent in the last bracket.
type ISRResult struct {
	BaseGravable   Pesos      `json:"base_gravable"`
	FechaCalculo   civil.Date `json:"fecha_calculo"`
	Periodicidad   Period     `json:"periodicidad"`
	LimiteInferior Pesos      `json:"limite_inferior"`
	LimiteSuperior Pesos      `json:"limite_superior,omitzero"`
	Excedente      Pesos      `json:"excedente"`
	CuotaFija      Pesos      `json:"cuota_fija"`
	Porcentaje     string     `json:"porcentaje"`
	ISRTarifa      Pesos      `json:"isr_tarifa"`

	SubsidioCausado    Pesos `json:"subsidio_causado"`
	SubsidioAcreditado Pesos `json:"subsidio_acreditado"`
	// SubsidioAEntregar is what the table in force until April 2024 paid out to
	// the worker in cash; always 0 since.
	SubsidioAEntregar Pesos `json:"subsidio_a_entregar"`

	ISRARetener Pesos `json:"isr_a_retener"`
	Calculation
}

// ISR computes the tax of a period by the tariff in force on FechaCalculo and
// takes the employment subsidy off, except from the annual tax. The error is
// Problems or *ErrNoTable, also for a subsidy that is not published for the
// period (other than monthly before May 2024).
//
// The published tariffs are rounded, so at the joint of two brackets the tax
// may step down by some centavos: by 2 at most in the monthly, annual and daily
// tariffs, by 11 in the others.
func ISR(r ISRRequest) (*ISRResult, error) {
	if r.Periodicidad == "" {
		r.Periodicidad = Monthly
	}
	var p Problems
	p.amount("base_gravable", r.BaseGravable, MaxTaxBase)
	p.date("fecha_calculo", r.FechaCalculo)
	if _, ok := r.Periodicidad.days10(); !ok {
		names := make([]string, len(Periods))
		for i, period := range Periods {
			names[i] = string(period)
		}
		p.add("periodicidad", literalError, "debe ser una de: %s.", strings.Join(names, ", "))
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	tariff, err := isrTable.at(r.FechaCalculo)
	if err != nil {
		return nil, err
	}
	minimum, err := minimumWage.at(r.FechaCalculo)
	if err != nil {
		return nil, err
	}

	law := "Ley del Impuesto sobre la Renta, artículo 96; Anexo 8 de la Resolución Miscelánea Fiscal"
	if r.Periodicidad == Annual {
		law = "Ley del Impuesto sobre la Renta, artículo 152; Anexo 8 de la Resolución Miscelánea Fiscal"
	}
	s := bracketOf(r.BaseGravable, tariff.figures[r.Periodicidad])
	out := &ISRResult{BaseGravable: r.BaseGravable, FechaCalculo: r.FechaCalculo, Periodicidad: r.Periodicidad,
		LimiteInferior: s.lower, LimiteSuperior: s.upper, Excedente: r.BaseGravable - s.lower,
		CuotaFija: s.fee, Porcentaje: s.percent, Calculation: newCalculation(law)}
	out.rest(&tariff.Version)
	article := "LISR 96"
	if r.Periodicidad == Annual {
		article = "LISR 152"
	}
	out.ISRTarifa = out.add(Line{Key: "cuota_fija", Concept: "Cuota fija", Base: s.fee, Factor: "1", LegalBasis: article}, 1, 1, "cuota fija del renglón")
	out.ISRTarifa += out.add(Line{Key: "impuesto_marginal", Concept: "Impuesto sobre el excedente del límite inferior", Base: out.Excedente,
		Factor: s.percent + " %", LegalBasis: article}, int64(s.rate), 100*decimalUnit,
		fmt.Sprintf("(base_gravable − limite_inferior) (%s − %s) × porcentaje", r.BaseGravable, s.lower))
	out.formula("isr_tarifa = cuota_fija + impuesto_marginal = %s", out.ISRTarifa)
	out.ISRARetener = out.ISRTarifa

	if r.Periodicidad == Annual {
		out.assume("El cálculo anual no resta el subsidio para el empleo ni las retenciones del año: isr_a_retener es el impuesto del ejercicio.")
		return out, nil
	}
	if err := out.subsidise(r); err != nil {
		return nil, err
	}
	days, _ := r.Periodicidad.days10()
	// LISR 96: one minimum wage in the month and nothing else is not withheld from.
	if floor := Pesos(halfUp(int64(minimum.figures.general)*days, 10)); r.BaseGravable <= floor {
		out.rest(&minimum.Version)
		out.warn("Si en el mes la persona percibe únicamente un salario mínimo general (%s por el periodo), no se le retiene (LISR 96).", floor)
	}
	out.assume("«base_gravable» es la del periodo completo y de un solo patrón.")
	return out, nil
}

// bracketOf returns the line of a tariff for a base of at least one centavo:
// every lower limit is the upper one before it and a centavo.
func bracketOf(base Pesos, tariff []step) *step {
	s := &tariff[0]
	for i := range tariff {
		if base >= tariff[i].lower {
			s = &tariff[i]
		}
	}
	return s
}

// subsidise takes the employment subsidy off.
func (out *ISRResult) subsidise(r ISRRequest) error {
	table, err := subsidyTable.at(r.FechaCalculo)
	if err != nil {
		return err
	}
	s := &table.figures
	out.rest(&table.Version)
	out.Basis.LegalBasis = append(out.Basis.LegalBasis, "Decreto del subsidio para el empleo")
	if s.lines != nil {
		if r.Periodicidad != Monthly {
			i := slices.IndexFunc(subsidyTable, func(v version[subsidy]) bool { return v.figures.lines == nil })
			return &ErrNoTable{table.Table + " " + string(r.Periodicidad), r.FechaCalculo, subsidyTable[i].From, subsidyTable[len(subsidyTable)-1].To}
		}
		for i := range s.lines {
			if r.BaseGravable >= s.lines[i].lower {
				out.SubsidioCausado = s.lines[i].amount
			}
		}
		out.formula("subsidio_causado = renglón de la tabla mensual para %s = %s", r.BaseGravable, out.SubsidioCausado)
	} else {
		out.perUMA(r, s)
		out.assume("El ingreso que se compara con el límite excluye prima de antigüedad, retiro e indemnizaciones.")
	}
	out.SubsidioAcreditado = min(out.SubsidioCausado, out.ISRTarifa)
	if s.lines != nil {
		out.SubsidioAEntregar = out.SubsidioCausado - out.SubsidioAcreditado
	}
	if credited := out.SubsidioAcreditado; credited > 0 {
		out.Lines = append(out.Lines, Line{Key: "subsidio_acreditado", Concept: "Subsidio para el empleo acreditado", Base: credited,
			Factor: "-1", Amount: -credited, LegalBasis: table.LegalBasis})
	}
	out.ISRARetener = out.ISRTarifa - out.SubsidioAcreditado
	out.formula("subsidio_acreditado = mínimo(subsidio_causado, isr_tarifa) = %s", out.SubsidioAcreditado)
	out.formula("isr_a_retener = isr_tarifa − subsidio_acreditado = %s − %s = %s", out.ISRTarifa, out.SubsidioAcreditado, out.ISRARetener)
	return nil
}

// perUMA gives the subsidy of a base up to the ceiling: a percentage of the
// monthly UMA, in proportion to the days of the period.
func (out *ISRResult) perUMA(r ISRRequest, s *subsidy) {
	ceiling := prorate(s.ceiling, r.Periodicidad)
	days, _ := r.Periodicidad.days10()
	if r.Periodicidad != Monthly {
		out.formula("ingreso máximo del periodo = ingreso máximo mensual / 30.4 × días = %s / 30.4 × %d = %s", s.ceiling, days/10, ceiling)
		out.assume("Con varios pagos en el mes, el subsidio de todos no puede exceder el mensual.")
	}
	if r.BaseGravable > ceiling {
		out.formula("subsidio_causado = 0, porque base_gravable %s > %s", r.BaseGravable, ceiling)
		return
	}
	out.SubsidioCausado = prorate(s.month, r.Periodicidad)
	out.formula("subsidio mensual = porcentaje × UMA mensual = %s %% × %s = %s", s.percent, s.uma, s.month)
	if r.Periodicidad == Monthly {
		out.formula("subsidio_causado = subsidio mensual = %s, porque base_gravable %s ≤ %s", s.month, r.BaseGravable, ceiling)
	} else {
		out.formula("subsidio_causado = subsidio mensual / 30.4 × días = %s / 30.4 × %d = %s", s.month, days/10, out.SubsidioCausado)
	}
}

// prorate returns the part of a monthly amount for a period: / 30.4 × days,
// rounded once.
func prorate(month Pesos, p Period) Pesos {
	days, _ := p.days10()
	return Pesos(halfUp(int64(month)*days, monthDays10))
}
