package payroll

import (
	"fmt"
	"time"

	"cotejo/civil"
)

// FiniquitoRequest asks what is owed when a relationship of indefinite term
// ends. Nothing has a default here, except Zona.
type FiniquitoRequest struct {
	SalarioDiario         Pesos // cuota diaria, not integrated; up to MaxDailyWage
	FechaIngreso          civil.Date
	FechaBaja             civil.Date // the last day of service; decides every table
	DiasPendientesSalario int        // 0 to the days of service, at most MaxDaysWorked
	// IncluirIndemnizacion tells an unjustified dismissal from a resignation.
	IncluirIndemnizacion bool
	Zona                 Zone
}

// FiniquitoResult is the breakdown of what is owed. Its lines, by key:
// salario_pendiente, aguinaldo_proporcional, vacaciones_proporcionales,
// prima_vacacional always; tres_meses and veinte_dias_por_anio with indemnity;
// prima_antiguedad when it is due.
type FiniquitoResult struct {
	SalarioDiario    Pesos      `json:"salario_diario"`
	FechaIngreso     civil.Date `json:"fecha_ingreso"`
	FechaBaja        civil.Date `json:"fecha_baja"`
	AniosCompletos   int        `json:"anios_completos"`
	DiasAnioEnCurso  int        `json:"dias_anio_en_curso"` // of service, both ends counted, at most 365
	AniosServicio    string     `json:"anios_servicio"`     // to four decimals
	DiasAguinaldo    int        `json:"dias_aguinaldo"`     // of the calendar year, at most 365
	DiasVacaciones   int        `json:"dias_vacaciones_anio_en_curso"`
	FactorIntegrado  string     `json:"factor_integracion"`       // to four decimals
	SalarioIntegrado Pesos      `json:"salario_diario_integrado"` // to centavos, as a fact
	Zona             Zone       `json:"zona"`
	SalarioMinimo    Pesos      `json:"salario_minimo"`
	// BasePrimaAntiguedad is the daily wage between the minimum wage and its cap.
	BasePrimaAntiguedad    Pesos       `json:"base_prima_antiguedad"`
	ProcedePrimaAntiguedad bool        `json:"procede_prima_antiguedad"`
	SubtotalPrestaciones   Pesos       `json:"subtotal_prestaciones"` // the first four lines
	SubtotalSeparacion     Pesos       `json:"subtotal_separacion"`   // the others
	Total                  Pesos       `json:"total"`
	Exemptions             []Exemption `json:"exenciones_isr"`
	Calculation
}

// Finiquito computes what is owed at the end of a relationship. The error is
// Problems or *ErrNoTable.
//
// With a fixed FechaBaja, no line but the two of vacation ever falls when
// service is longer; those two start again at every anniversary, because the
// vacation of completed years is taken to be enjoyed.
func Finiquito(r FiniquitoRequest) (*FiniquitoResult, error) {
	s, err := r.service()
	if err != nil {
		return nil, err
	}
	law, err := labourRules.at(r.FechaBaja)
	if err != nil {
		return nil, err
	}
	table, err := vacationTable.at(r.FechaBaja)
	if err != nil {
		return nil, err
	}
	minimum, err := minimumWage.at(r.FechaBaja)
	if err != nil {
		return nil, err
	}

	least := minimum.figures.of(r.Zona)
	out := &FiniquitoResult{SalarioDiario: r.SalarioDiario, FechaIngreso: r.FechaIngreso, FechaBaja: r.FechaBaja,
		AniosCompletos: s.years, DiasAnioEnCurso: s.days, AniosServicio: ratio(s.total(), daysOfYear, 4),
		DiasAguinaldo: s.calendar, DiasVacaciones: table.figures.days(s.years + 1),
		Zona: r.Zona.named(), SalarioMinimo: least, Exemptions: []Exemption{},
		Calculation: newCalculation("Ley Federal del Trabajo, artículos 48, 49, 50, 76, 79, 80, 84, 87, 89, 162, 485 y 486")}
	out.rest(&law.Version)
	out.rest(&table.Version)
	out.rest(&minimum.Version)
	out.benefits(r, &law.figures)
	out.separation(r, s, &law.figures)
	out.Total = out.SubtotalPrestaciones + out.SubtotalSeparacion
	out.formula("total = suma de renglones = %s", out.Total)

	if r.SalarioDiario < least {
		out.warn("«salario_diario» es inferior al salario mínimo de %s vigente el %s (LFT 90): se calculó con el salario recibido, salvo la prima de antigüedad (LFT 485).", least, r.FechaBaja)
	}
	if r.Zona.named() == General && minimum.figures.border != 0 {
		out.assume(fmt.Sprintf("Salario mínimo general; en la zona libre de la frontera norte es %s: pida zona frontera.", minimum.figures.border))
	}
	out.assume("Los días se cuentan con ambos extremos. " + ruleDaysOfYear)
	out.assume("Relación por tiempo indeterminado; no cubre el tiempo determinado (LFT 50-I) ni las plataformas digitales (LFT 50-IV).")
	out.assume("Las vacaciones de años anteriores ya se disfrutaron y el aguinaldo del año no se ha pagado.")
	out.assume("Las prestaciones son las mínimas de la ley y sobre ellas se integra el salario (LFT 84 y 89).")
	if err := out.exemptions(r, s); err != nil {
		return nil, err
	}
	return out, nil
}

// service is the time that a relationship lasted.
type service struct {
	years    int  // completed
	days     int  // of the year in course, both ends counted, at most 365
	calendar int  // days of the last calendar year, at most 365
	half     bool // the year in course has more than six months
}

// total returns the service in days, a year of service being 365.
func (s service) total() int64 { return int64(s.years*daysOfYear + s.days) }

// service checks the request and measures the time.
func (r *FiniquitoRequest) service() (s service, err error) {
	var p Problems
	p.amount("salario_diario", r.SalarioDiario, MaxDailyWage)
	began := p.date("fecha_ingreso", r.FechaIngreso)
	ended := p.date("fecha_baja", r.FechaBaja)
	p.count("dias_pendientes_salario", r.DiasPendientesSalario, 0, MaxDaysWorked)
	p.zone(r.Zona)
	if !began || !ended {
		return s, p
	}
	in, end := r.FechaIngreso, r.FechaBaja
	if end.Before(in) {
		p.add("fecha_baja", valueError, "es anterior a «fecha_ingreso»; revise las dos fechas.")
		return s, p
	}
	s.years = end.Year - in.Year
	if end.Before(anniversary(in, end.Year)) {
		s.years--
	}
	if s.years >= MaxYears {
		p.add("fecha_ingreso", valueError, "da %d años de servicio; el límite es menos de %d: revise las dos fechas.", s.years, MaxYears)
		return s, p
	}
	if worked := in.Days(end) + 1; r.DiasPendientesSalario > worked && r.DiasPendientesSalario <= MaxDaysWorked {
		p.add("dias_pendientes_salario", valueError, "debe ser a lo más %d, los días entre «fecha_ingreso» y «fecha_baja».", worked)
	}
	last := anniversary(in, in.Year+s.years)
	s.days = min(last.Days(end)+1, daysOfYear)
	s.half = !end.Before(monthsAfter(last, 6))
	first := civil.Date{Year: end.Year, Month: time.January, Day: 1}
	if first.Before(in) {
		first = in
	}
	s.calendar = min(first.Days(end)+1, daysOfYear)
	return s, p.err()
}

// anniversary returns the day of a year on which a relationship completes a
// year; for 29 February it is 1 March in common years.
func anniversary(in civil.Date, year int) civil.Date {
	return monthsAfter(civil.Date{Year: in.Year, Month: in.Month, Day: in.Day}, 12*(year-in.Year))
}

// monthsAfter returns the day n months later; a day that the month lacks is the
// first of the next one.
func monthsAfter(d civil.Date, n int) civil.Date {
	months := d.Year*12 + int(d.Month) - 1 + n
	year, month := months/12, time.Month(months%12+1)
	if day, ok := civil.New(year, month, d.Day); ok {
		return day
	}
	return civil.Date{Year: year, Month: month + 1, Day: 1}
}

// benefits adds what is owed however the relationship ends.
func (out *FiniquitoResult) benefits(r FiniquitoRequest, law *labour) {
	line := func(key, concept, factor, basis string, num, den int, formula string) {
		out.SubtotalPrestaciones += out.add(Line{Key: key, Concept: concept, Base: r.SalarioDiario, Factor: factor, LegalBasis: basis},
			int64(num), int64(den), formula)
	}
	pending, bonus, year := r.DiasPendientesSalario, law.aguinaldoDays, daysOfYear
	line("salario_pendiente", "Salario pendiente", fmt.Sprint(pending), "LFT 82 y 88",
		pending, 1, "salario_diario × dias_pendientes_salario")
	line("aguinaldo_proporcional", "Aguinaldo proporcional", fmt.Sprintf("%d × %d / %d", bonus, out.DiasAguinaldo, year), "LFT 87",
		bonus*out.DiasAguinaldo, year, "salario_diario × días mínimos de aguinaldo × dias_aguinaldo / 365")
	vacation := fmt.Sprintf("%d × %d / %d", out.DiasVacaciones, out.DiasAnioEnCurso, year)
	line("vacaciones_proporcionales", "Vacaciones proporcionales", vacation, "LFT 76 y 79",
		out.DiasVacaciones*out.DiasAnioEnCurso, year, "salario_diario × dias_vacaciones_anio_en_curso × dias_anio_en_curso / 365")
	line("prima_vacacional", "Prima vacacional", fmt.Sprintf("%s × %d %%", vacation, law.vacationPremium), "LFT 80",
		out.DiasVacaciones*out.DiasAnioEnCurso*law.vacationPremium, 100*year, "vacaciones_proporcionales sin redondear × prima mínima")
}

// separation adds the indemnity and the seniority premium.
func (out *FiniquitoResult) separation(r FiniquitoRequest, s service, law *labour) {
	// The integrated wage is SD × num / den.
	num := int64(100*(daysOfYear+law.aguinaldoDays) + out.DiasVacaciones*law.vacationPremium)
	den := int64(100 * daysOfYear)
	integrated := fmt.Sprintf("(%d + %d + %d × %d %%) / %d", daysOfYear, law.aguinaldoDays, out.DiasVacaciones, law.vacationPremium, daysOfYear)
	served := fmt.Sprintf("(%d × %d + %d) / %d", s.years, daysOfYear, s.days, daysOfYear)
	out.FactorIntegrado = ratio(num, den, 4)
	out.SalarioIntegrado = Pesos(halfUp(int64(r.SalarioDiario)*num, den))
	out.BasePrimaAntiguedad = min(max(r.SalarioDiario, out.SalarioMinimo), Pesos(law.seniorityCap)*out.SalarioMinimo)
	out.formula("salario_diario_integrado = %s × %s = %s (se usa sin redondear)", r.SalarioDiario, integrated, out.SalarioIntegrado)
	out.formula("base_prima_antiguedad = mínimo(máximo(%s, %s), %d × %s) = %s", r.SalarioDiario, out.SalarioMinimo, law.seniorityCap, out.SalarioMinimo, out.BasePrimaAntiguedad)

	if r.IncluirIndemnizacion {
		out.SubtotalSeparacion += out.add(Line{Key: "tres_meses", Concept: "Indemnización de tres meses", Base: r.SalarioDiario,
			Factor: fmt.Sprintf("%s × %d", integrated, law.indemnityDays), LegalBasis: "LFT 48, 50-III, 84 y 89"},
			num*int64(law.indemnityDays), den, "salario_diario_integrado × 90")
		out.SubtotalSeparacion += out.add(Line{Key: "veinte_dias_por_anio", Concept: "Veinte días por año de servicio", Base: r.SalarioDiario,
			Factor: fmt.Sprintf("%s × %d × %s", integrated, law.indemnityPerYear, served), LegalBasis: "LFT 50-II, 84 y 89; aplicable en los supuestos de LFT 49 y 52"},
			num*int64(law.indemnityPerYear)*s.total(), den*daysOfYear, "salario_diario_integrado × 20 × años de servicio")
		out.warn("Los veinte días por año son aplicables en los supuestos de los artículos 49 y 52 de la LFT; si no es el caso, reste el renglón veinte_dias_por_anio.")
		out.assume("Despido injustificado: la prima de antigüedad procede siempre (LFT 162-III). No incluye salarios vencidos.")
	} else {
		out.assume(fmt.Sprintf("Renuncia: la prima de antigüedad procede desde %d años de servicio (LFT 162-III).", law.seniorityVoluntary))
	}
	out.ProcedePrimaAntiguedad = r.IncluirIndemnizacion || s.total() >= int64(law.seniorityVoluntary*daysOfYear)
	if out.ProcedePrimaAntiguedad {
		out.SubtotalSeparacion += out.add(Line{Key: "prima_antiguedad", Concept: "Prima de antigüedad", Base: out.BasePrimaAntiguedad,
			Factor: fmt.Sprintf("%d × %s", law.seniorityPerYear, served), LegalBasis: "LFT 162, 485 y 486"},
			int64(law.seniorityPerYear)*s.total(), daysOfYear, "base_prima_antiguedad × 12 × años de servicio")
		out.assume("Las fracciones de año se pagan en proporción, que es el criterio usual y no texto literal de la ley.")
	}
}

// exemptions adds what the income tax leaves free of each kind of payment. The
// error is *ErrNoTable.
func (out *FiniquitoResult) exemptions(r FiniquitoRequest, s service) error {
	free, daily, err := out.taxFree(r.FechaBaja)
	if err != nil {
		return err
	}
	out.Exemptions = append(out.Exemptions,
		exempt("aguinaldo_proporcional", out.Amount("aguinaldo_proporcional"), free.aguinaldo, daily, "LISR 93-XIV"),
		exempt("prima_vacacional", out.Amount("prima_vacacional"), free.vacationPremium, daily, "LISR 93-XIV"))
	if out.SubtotalSeparacion > 0 {
		years := s.years
		if s.half {
			years++
		}
		out.Exemptions = append(out.Exemptions,
			exempt("separacion", out.SubtotalSeparacion, free.separationPerYear*years, daily, "LISR 93-XIII"))
	}
	out.assume("Las exenciones de ISR son límites del año, sin lo ya usado; no se retiene impuesto en los renglones (LISR 95 y 96).")
	return nil
}
