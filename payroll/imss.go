package payroll

import (
	"fmt"

	"cotejo/civil"
)

// MaxDaysContributed is the longest period of payment, two months.
const MaxDaysContributed = 62

// IMSSRequest asks for the contributions of one worker. Nothing has a default
// here, except Zona.
type IMSSRequest struct {
	SBCDiario    Pesos      // integrated daily wage; not under the minimum wage, up to MaxDailyWage
	Dias         int        // 1 to MaxDaysContributed
	FechaCalculo civil.Date // decides every table
	PrimaRiesgo  *Decimal   // percent: 0.54355 is 0.54355 %; nil leaves the branch out
	Zona         Zone
}

// IMSSResult is the breakdown by branch. Each branch is a line with Payer
// patron and, where the law gives the worker a part, one with Payer trabajador:
// eym_cuota_fija, eym_excedente, gastos_medicos_pensionados, eym_dinero,
// invalidez_vida, guarderias, riesgos_trabajo, retiro, ceav.
type IMSSResult struct {
	SBCDiario     Pesos      `json:"sbc_diario"`
	SBCTopado     Pesos      `json:"sbc_topado"`
	Dias          int        `json:"dias"`
	FechaCalculo  civil.Date `json:"fecha_calculo"`
	UMA           Pesos      `json:"uma"`
	VecesUMA      string     `json:"veces_uma"` // to four decimals, of SBCTopado
	Zona          Zone       `json:"zona"`
	SalarioMinimo Pesos      `json:"salario_minimo"`
	CEAV          CEAV       `json:"ceav"`
	TotalPatron   Pesos      `json:"total_patron"` // the lines of the employer
	TotalObrero   Pesos      `json:"total_obrero"` // the lines of the worker
	Total         Pesos      `json:"total"`
	// Articulo36 says that the employer also pays the worker's lines, because the
	// wage is the minimum one. The lines stay as the law divides them.
	Articulo36     bool  `json:"articulo_36"`
	PagaPatron     Pesos `json:"paga_patron"`
	PagaTrabajador Pesos `json:"paga_trabajador"`
	Calculation
}

// CEAV says which line of the employer's CEAV table applies, and by which
// reading of the gaps that the law leaves between 2.00 and 2.01 UMA, and so on.
type CEAV struct {
	Rango    int    `json:"rango"`
	Texto    string `json:"texto"`
	Cuota    string `json:"cuota_patronal"` // percent
	Criterio string `json:"criterio"`       // SUA
	// Alternativa is the other reading, only for a wage inside a gap.
	Alternativa *CEAVReading `json:"alternativa,omitempty"`
}

// CEAVReading is what the reading not used would give.
type CEAVReading struct {
	Rango    int    `json:"rango"`
	Texto    string `json:"texto"`
	Cuota    string `json:"cuota_patronal"`
	Criterio string `json:"criterio"` // SCJN
	Importe  Pesos  `json:"importe_patron"`
	// Diferencia is Importe less the line ceav of the employer.
	Diferencia Pesos `json:"diferencia"`
}

const (
	employer = "patron"
	worker   = "trabajador"
)

// IMSS computes the contributions of a period. The error is Problems or
// *ErrNoTable; a wage under the minimum one is a problem, because contributions
// on it are not received (LSS 28).
func IMSS(r IMSSRequest) (*IMSSResult, error) {
	var p Problems
	p.amount("sbc_diario", r.SBCDiario, MaxDailyWage)
	p.count("dias", r.Dias, 1, MaxDaysContributed)
	p.date("fecha_calculo", r.FechaCalculo)
	p.zone(r.Zona)
	if err := p.err(); err != nil {
		return nil, err
	}
	t, err := imssTables(r.FechaCalculo)
	if err != nil {
		return nil, err
	}
	least, daily := t.wage.figures.of(r.Zona), t.uma.figures.daily
	if r.SBCDiario < least {
		p.add("sbc_diario", valueError, "es inferior al salario mínimo diario de %s vigente el %s, límite inferior del salario base de cotización (LSS 28).", least, r.FechaCalculo)
	}
	if risk := r.PrimaRiesgo; risk != nil && (*risk < t.limits.figures.riskLeast || *risk > t.limits.figures.riskMost) {
		p.add("prima_riesgo", valueError, "debe estar entre %s y %s (LSS 72 y 74); va en por ciento: 0.54355 es 0.54355 %%.", t.limits.figures.riskLeast, t.limits.figures.riskMost)
	}
	if err := p.err(); err != nil {
		return nil, err
	}

	ceiling := daily * Pesos(t.limits.figures.capUMA)
	out := &IMSSResult{SBCDiario: r.SBCDiario, SBCTopado: min(r.SBCDiario, ceiling), Dias: r.Dias, FechaCalculo: r.FechaCalculo,
		UMA: daily, Zona: r.Zona.named(), SalarioMinimo: least,
		Calculation: newCalculation("Ley del Seguro Social, artículos 25, 28, 36, 70 a 74, 106, 107, 147, 168, 211 y 212")}
	out.VecesUMA = ratio(int64(out.SBCTopado), int64(daily), 4)
	for _, v := range []*Version{&t.uma.Version, &t.wage.Version, &t.rates.Version, &t.limits.Version, &t.ceav.Version} {
		out.rest(v)
	}
	if r.SBCDiario > ceiling {
		out.warn("«sbc_diario» excede el límite superior de %d UMA (%s): se cotiza sobre el límite (LSS 28).", t.limits.figures.capUMA, ceiling)
	}
	billed, other := ceavBrackets(out.SBCTopado, daily, least, t.ceav.figures)
	out.branches(r, t, &t.ceav.figures[billed])
	out.readCEAV(t.ceav.figures, billed, other)

	out.Total = out.TotalPatron + out.TotalObrero
	out.Articulo36 = out.SBCTopado <= least
	out.PagaPatron, out.PagaTrabajador = out.TotalPatron, out.TotalObrero
	if out.Articulo36 {
		out.PagaPatron, out.PagaTrabajador = out.Total, 0
		out.warn("El salario es el mínimo: el patrón paga también la cuota del trabajador (LSS 36).")
	} else {
		out.assume("Si la cuota diaria del trabajador, sin integrar, es el salario mínimo, el patrón paga también su cuota (LSS 36).")
	}
	out.formula("total = total_patron + total_obrero = %s + %s = %s", out.TotalPatron, out.TotalObrero, out.Total)
	out.assume("Se lee UMA donde la ley dice salario mínimo del Distrito Federal, salvo el límite inferior del SBC (decreto constitucional publicado en el DOF el 2016-01-27).")
	if r.Zona.named() == General && t.wage.figures.border != 0 {
		out.assume(fmt.Sprintf("Salario mínimo general; en la zona libre de la frontera norte es %s: pida zona frontera.", t.wage.figures.border))
	}
	out.assume("Retiro y CEAV se pagan por bimestre y las demás ramas por mes; las tablas son las de «fecha_calculo» para todo el periodo.")
	out.assume("No incluye Infonavit, impuesto sobre nóminas ni aportaciones del Estado.")
	if r.PrimaRiesgo == nil {
		out.assume("Sin «prima_riesgo» no se calcula la rama de riesgos de trabajo.")
	}
	return out, nil
}

// tables are the versions in force on one day.
type tables struct {
	uma    *version[uma]
	wage   *version[wage]
	rates  *version[[]rate]
	limits *version[limits]
	ceav   *version[[]bracket]
}

// imssTables finds the tables of a day. The UMA changes in February and the
// others in January, so each has its own version.
func imssTables(day civil.Date) (t tables, err error) {
	if t.uma, err = umaTable.at(day); err != nil {
		return t, err
	}
	if t.wage, err = minimumWage.at(day); err != nil {
		return t, err
	}
	if t.rates, err = imssRates.at(day); err != nil {
		return t, err
	}
	if t.limits, err = imssLimits.at(day); err != nil {
		return t, err
	}
	t.ceav, err = ceavTable.at(day)
	return t, err
}

// branches adds the lines of every branch.
func (out *IMSSResult) branches(r IMSSRequest, t tables, ceav *bracket) {
	days := Pesos(r.Dias)
	threshold := Pesos(t.limits.figures.excessUMA) * out.UMA
	for _, b := range t.rates.figures {
		var base Pesos
		var what string
		switch b.base {
		case "uma":
			base, what = out.UMA*days, fmt.Sprintf("uma × dias (%s × %d)", out.UMA, r.Dias)
		case "excedente":
			base = max(0, out.SBCTopado-threshold) * days
			what = fmt.Sprintf("máximo(0, sbc_topado − %d × uma) × dias (máximo(0, %s − %s) × %d)", t.limits.figures.excessUMA, out.SBCTopado, threshold, r.Dias)
		case "sbc":
			base, what = out.SBCTopado*days, fmt.Sprintf("sbc_topado × dias (%s × %d)", out.SBCTopado, r.Dias)
		}
		percent := b.employer
		switch {
		case b.key == "ceav":
			percent = ceav.employer
		case b.key == "riesgos_trabajo" && r.PrimaRiesgo == nil:
			continue
		case b.key == "riesgos_trabajo":
			percent = *r.PrimaRiesgo
		}
		line := func(payer string, percent Decimal) Pesos {
			return out.add(Line{Key: b.key, Concept: b.concept, Base: base, Factor: percent.String() + " %", LegalBasis: b.legalBasis, Payer: payer},
				int64(percent), 100*decimalUnit, what+" × cuota del "+payer)
		}
		out.TotalPatron += line(employer, percent)
		if b.worker > 0 {
			out.TotalObrero += line(worker, b.worker)
		}
	}
}

// ceavBrackets returns the bracket of a wage by the two published readings.
// Bracket 0 is one minimum wage; every other one is told by UMA. SUA, the
// program that bills, keeps a wage in a bracket until it reaches the lower bound
// of the next; the other reading leaves a bracket at its own upper bound. Bounds
// are UMA times their number, rounded to centavos.
func ceavBrackets(sbc, daily, least Pesos, table []bracket) (sua, court int) {
	if sbc <= least {
		return 0, 0
	}
	bound := func(times Decimal) Pesos { return Pesos(halfUp(int64(daily)*int64(times), decimalUnit)) }
	sua, court = 1, 1
	for i := 2; i < len(table); i++ {
		if sbc >= bound(table[i].from) {
			sua = i
		}
		if sbc > bound(table[i-1].to) {
			court = i
		}
	}
	return sua, court
}

// readCEAV states the bracket, and the other reading where the two differ.
func (out *IMSSResult) readCEAV(table []bracket, billed, other int) {
	b := &table[billed]
	out.CEAV = CEAV{Rango: billed + 1, Texto: b.text, Cuota: b.percent, Criterio: "SUA"}
	if billed == other {
		return
	}
	a := &table[other]
	amount := percentOf(out.SBCTopado*Pesos(out.Dias), a.employer)
	paid := percentOf(out.SBCTopado*Pesos(out.Dias), b.employer)
	out.CEAV.Alternativa = &CEAVReading{Rango: other + 1, Texto: a.text, Cuota: a.percent, Criterio: "SCJN", Importe: amount, Diferencia: amount - paid}
	out.warn("El SBC cae entre dos rangos de la tabla de CEAV: se usó el inferior (%s %%), como el programa SUA del IMSS; con el criterio del rango superior (SCJN) la cuota es %s %% y el importe %s.", b.percent, a.percent, amount)
}
