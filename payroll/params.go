package payroll

import "strconv"

// The parameter tables. Their files, and who says what they say, are listed in
// data/README.md.
var (
	umaTable      = load("uma", readUMA)
	minimumWage   = load("salario_minimo", readWage)
	vacationTable = load("vacaciones", readVacations)
	labourRules   = load("lft_prestaciones", readLabour)
	taxExemptions = load("lisr_exenciones", readExemptions)
	imssRates     = load("imss_cuotas", readRates)
	imssLimits    = load("imss_limites", readLimits)
	ceavTable     = load("ceav_patronal", readCEAV)
	isrTable      = load("isr_tarifa", readTariffs)
	subsidyTable  = load("subsidio_empleo", readSubsidy)
)

type uma struct{ daily, monthly, annual Pesos }

func readUMA(r rows) uma {
	l := r.lines[0]
	return uma{r.pesos(l, "diario"), r.pesos(l, "mensual"), r.pesos(l, "anual")}
}

// wage is the daily minimum wage; border is 0 before that zone existed.
type wage struct{ general, border Pesos }

func readWage(r rows) wage {
	l := r.lines[0]
	return wage{r.pesos(l, "general"), r.pesos(l, "frontera")}
}

// Zone is the area of a minimum wage; the empty one is the general area.
type Zone string

const (
	General Zone = "general"
	Border  Zone = "frontera" // zona libre de la frontera norte
)

// zone notes an area that does not exist.
func (p *Problems) zone(z Zone) {
	if z != "" && z != General && z != Border {
		p.add("zona", literalError, "debe ser general o frontera.")
	}
}

func (w wage) of(z Zone) Pesos {
	if z == Border && w.border != 0 {
		return w.border
	}
	return w.general
}

// vacations holds the days of each year of service, from the first one.
type vacations []int

func readVacations(r rows) vacations {
	var v vacations
	for _, l := range r.lines {
		if r.whole(l, "anios_desde") != len(v)+1 {
			r.of.broken("a year of service is missing")
		}
		for range r.whole(l, "anios_hasta") - len(v) {
			v = append(v, r.whole(l, "dias"))
		}
	}
	if len(v) <= MaxYears {
		r.of.broken("it does not reach year " + strconv.Itoa(MaxYears+1))
	}
	return v
}

// days of the n-th year of service, n >= 1.
func (v vacations) days(n int) int { return v[n-1] }

// labour holds the minimums of the Ley Federal del Trabajo.
type labour struct {
	aguinaldoDays      int
	vacationPremium    int // percent
	indemnityDays      int
	indemnityPerYear   int
	seniorityPerYear   int
	seniorityCap       int // in minimum wages
	seniorityVoluntary int // years from which it is due on resignation
}

func readLabour(r rows) labour {
	p := readParameters(r)
	return labour{
		aguinaldoDays: p.whole("aguinaldo_dias_minimo"), vacationPremium: p.whole("prima_vacacional_minima"),
		indemnityDays: p.whole("indemnizacion_dias"), indemnityPerYear: p.whole("indemnizacion_dias_por_anio"),
		seniorityPerYear: p.whole("prima_antiguedad_dias_por_anio"), seniorityCap: p.whole("prima_antiguedad_tope_en_salarios_minimos"),
		seniorityVoluntary: p.whole("prima_antiguedad_anios_retiro_voluntario"),
	}
}

// exemptions are how many daily UMA the income tax leaves free.
type exemptions struct{ aguinaldo, vacationPremium, separationPerYear int }

func readExemptions(r rows) exemptions {
	p := readParameters(r)
	return exemptions{p.whole("aguinaldo_uma"), p.whole("prima_vacacional_uma"), p.whole("separacion_uma_por_anio")}
}

// limits bound what contributions are computed on, in daily UMA, and the risk
// premium, in percent.
type limits struct {
	capUMA, excessUMA   int
	riskLeast, riskMost Decimal
}

func readLimits(r rows) limits {
	p := readParameters(r)
	return limits{
		capUMA: p.whole("tope_sbc_en_uma"), excessUMA: p.whole("excedente_desde_uma"),
		riskLeast: p.decimal("prima_riesgo_minima"), riskMost: p.decimal("prima_riesgo_maxima"),
	}
}

// parameters are a file of named values.
type parameters struct{ rows }

func readParameters(r rows) parameters { return parameters{r} }

func (p parameters) line(key string) []string {
	for _, l := range p.lines {
		if p.text(l, "clave") == key {
			return l
		}
	}
	p.of.broken("it has no " + key)
	return nil
}

func (p parameters) whole(key string) int       { return p.rows.whole(p.line(key), "valor") }
func (p parameters) decimal(key string) Decimal { return p.rows.decimal(p.line(key), "valor") }

// rate is a branch of the social security: what it is computed on (sbc, uma or
// excedente) and percentages of it.
type rate struct {
	key, concept, base string
	employer, worker   Decimal // employer is 0 where another table or the request says it
	legalBasis         string
}

func readRates(r rows) []rate {
	var out []rate
	for _, l := range r.lines {
		out = append(out, rate{r.text(l, "clave"), r.text(l, "concepto"), r.text(l, "base"),
			r.decimal(l, "patron"), r.decimal(l, "obrero"), r.text(l, "fundamento")})
	}
	return out
}

// bracket is a line of the CEAV table. from and to are in UMA, 0 where the law
// speaks of minimum wages or of no limit.
type bracket struct {
	text     string
	from, to Decimal
	employer Decimal
	percent  string // employer as published
}

func readCEAV(r rows) []bracket {
	var out []bracket
	for i, l := range r.lines {
		if r.whole(l, "rango") != i+1 {
			r.of.broken("a bracket is missing")
		}
		out = append(out, bracket{r.text(l, "texto"), r.decimal(l, "desde_uma"), r.decimal(l, "hasta_uma"),
			r.decimal(l, "cuota_patronal"), r.text(l, "cuota_patronal")})
	}
	return out
}

// step is a line of a tariff; upper is 0 in the last one.
type step struct {
	lower, upper, fee Pesos
	rate              Decimal
	percent           string // rate as published
}

func readTariffs(r rows) map[Period][]step {
	out := map[Period][]step{}
	for _, l := range r.lines {
		p := Period(r.text(l, "periodicidad"))
		if _, ok := p.days10(); !ok {
			r.of.broken("it names a period that nothing computes")
		}
		out[p] = append(out[p], step{r.pesos(l, "limite_inferior"), r.pesos(l, "limite_superior"),
			r.pesos(l, "cuota_fija"), r.decimal(l, "porcentaje"), r.text(l, "porcentaje")})
	}
	return out
}

// subsidy is the employment subsidy of a month: one amount up to an income, or,
// until April 2024, an amount per line of income.
type subsidy struct {
	percent             string
	uma, ceiling, month Pesos
	lines               []subsidyLine
}

type subsidyLine struct{ lower, upper, amount Pesos }

func readSubsidy(r rows) subsidy {
	if r.has("monto_mensual") {
		l := r.lines[0]
		s := subsidy{percent: r.text(l, "porcentaje"), uma: r.pesos(l, "uma_mensual"),
			ceiling: r.pesos(l, "tope_ingreso_mensual"), month: r.pesos(l, "monto_mensual")}
		if percentOf(s.uma, r.decimal(l, "porcentaje")) != s.month {
			r.of.broken("its amount is not that percentage of the UMA")
		}
		return s
	}
	var s subsidy
	for _, l := range r.lines {
		s.lines = append(s.lines, subsidyLine{r.pesos(l, "limite_inferior"), r.pesos(l, "limite_superior"), r.pesos(l, "monto")})
	}
	return s
}

// named returns the area that the empty one stands for.
func (z Zone) named() Zone {
	if z == "" {
		return General
	}
	return z
}
