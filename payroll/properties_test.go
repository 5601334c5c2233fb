package payroll

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cotejo/civil"
)

func anyDay(first, last string) *rapid.Generator[civil.Date] {
	from, to := day(first), day(last)
	return rapid.Custom(func(t *rapid.T) civil.Date {
		n := rapid.IntRange(0, from.Days(to)).Draw(t, "days")
		return civil.Of(time.Date(from.Year, from.Month, from.Day+n, 12, 0, 0, 0, civil.Zone))
	})
}

func anyAmount(least, most Pesos) *rapid.Generator[Pesos] {
	return rapid.Map(rapid.Int64Range(int64(least), int64(most)), func(n int64) Pesos { return Pesos(n) })
}

func finiquitoRequest(t *rapid.T) FiniquitoRequest {
	end := anyDay("2016-01-28", "2026-12-31").Draw(t, "fecha_baja")
	served := rapid.IntRange(0, 59*365).Draw(t, "served")
	in := civil.Of(time.Date(end.Year, end.Month, end.Day-served, 12, 0, 0, 0, civil.Zone))
	return FiniquitoRequest{
		SalarioDiario: anyAmount(1, 2_000_00).Draw(t, "salario"), FechaIngreso: in, FechaBaja: end,
		DiasPendientesSalario: rapid.IntRange(0, min(served+1, 31)).Draw(t, "pendientes"),
		IncluirIndemnizacion:  rapid.Bool().Draw(t, "indemnizacion"),
		Zona:                  rapid.SampledFrom([]Zone{"", General, Border}).Draw(t, "zona"),
	}
}

func TestFiniquitoIsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := finiquitoRequest(t)
		out, err := Finiquito(r)
		if err != nil {
			t.Fatal(err)
		}
		checkLines(t, &out.Calculation)
		want := oracleFiniquito(t, r)
		sum := Pesos(0)
		for key, amount := range want {
			sum += amount
			if got := out.Amount(key); got != amount {
				t.Fatalf("%s = %s; the oracle says %s", key, got, amount)
			}
		}
		if len(want) != len(out.Lines) || out.Total != sum || out.Total != lines(&out.Calculation) || out.Total != out.SubtotalPrestaciones+out.SubtotalSeparacion {
			t.Fatalf("%d lines and a total of %s; the oracle says %d and %s", len(out.Lines), out.Total, len(want), sum)
		}
	})
}

// TestFiniquitoAtItsLimits has the highest wage and the longest service, where
// an overflow would show.
func TestFiniquitoAtItsLimits(t *testing.T) {
	r := FiniquitoRequest{SalarioDiario: MaxDailyWage, FechaIngreso: day("1966-07-01"), FechaBaja: day("2026-06-30"), DiasPendientesSalario: 366, IncluirIndemnizacion: true}
	out, err := Finiquito(r)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range oracleFiniquito(t, r) {
		if got := out.Amount(key); got != want || got <= 0 {
			t.Errorf("%s = %s; want %s", key, got, want)
		}
	}
	if out.AniosCompletos != 59 || out.AniosServicio != "60.0000" || out.DiasVacaciones != 42 {
		t.Errorf("%d years, %s, %d days", out.AniosCompletos, out.AniosServicio, out.DiasVacaciones)
	}
}

// TestLongerServiceNeverLowersAFiniquito moves the day of entry back. Vacation
// starts again at each anniversary, because what was earned before is taken to
// be enjoyed: with that vacation and its premium added back, the total of a
// longer service is never lower; without it, the other lines never are.
func TestLongerServiceNeverLowersAFiniquito(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short := finiquitoRequest(t)
		long := short
		earlier := rapid.IntRange(0, 800).Draw(t, "earlier")
		long.FechaIngreso = civil.Of(time.Date(short.FechaIngreso.Year, short.FechaIngreso.Month, short.FechaIngreso.Day-earlier, 12, 0, 0, 0, civil.Zone))
		a, err := Finiquito(short)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Finiquito(long)
		var p Problems
		if errors.As(err, &p) && p[0].Field == "fecha_ingreso" {
			return // over MaxYears
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"salario_pendiente", "aguinaldo_proporcional", "tres_meses", "veinte_dias_por_anio", "prima_antiguedad"} {
			if b.Amount(key) < a.Amount(key) {
				t.Fatalf("%s falls from %s to %s", key, a.Amount(key), b.Amount(key))
			}
		}
		enjoyed := Pesos(0)
		table := figuresOf(t, vacationTable, short.FechaBaja)
		for n := a.AniosCompletos + 1; n <= b.AniosCompletos; n++ {
			enjoyed += short.SalarioDiario * Pesos(table.days(n))
			enjoyed += centavosOf(product(money(short.SalarioDiario), ints(table.days(n)), rat("0.25")))
		}
		if b.Total+enjoyed < a.Total {
			t.Fatalf("the total falls from %s to %s, with %s of vacation", a.Total, b.Total, enjoyed)
		}
		if a.AniosCompletos == b.AniosCompletos && b.Total < a.Total {
			t.Fatalf("within a year of service the total falls from %s to %s", a.Total, b.Total)
		}
	})
}

// TestSeniorityPremiumOnResignation walks over the day that makes it due.
func TestSeniorityPremiumOnResignation(t *testing.T) {
	f := func(in, end string, dismissed, want bool) {
		t.Helper()
		out, err := Finiquito(FiniquitoRequest{SalarioDiario: 40000, FechaIngreso: day(in), FechaBaja: day(end), IncluirIndemnizacion: dismissed})
		if err != nil || out.ProcedePrimaAntiguedad != want || (out.Amount("prima_antiguedad") > 0) != want {
			t.Errorf("%s to %s: %+v, %v; want %v", in, end, out, err, want)
		}
	}
	f("2011-06-30", "2026-06-28", false, false)
	f("2011-06-30", "2026-06-29", false, true) // both ends counted: exactly 15 years
	f("2011-06-30", "2026-06-30", false, true)
	f("2026-06-30", "2026-06-30", true, true)
}

func TestServiceOverLeapDays(t *testing.T) {
	f := func(in, end string, years, days, calendar int, half bool) {
		t.Helper()
		r := FiniquitoRequest{SalarioDiario: 40000, FechaIngreso: day(in), FechaBaja: day(end)}
		if s, err := r.service(); err != nil || s != (service{years, days, calendar, half}) {
			t.Errorf("%s to %s: %+v, %v", in, end, s, err)
		}
	}
	f("2020-02-29", "2021-02-28", 0, 365, 59, true)
	f("2020-02-29", "2021-03-01", 1, 1, 60, false)
	f("2020-02-29", "2024-02-28", 3, 365, 59, true)
	f("2020-02-29", "2024-02-29", 4, 1, 60, false)
	f("2024-01-01", "2024-12-31", 0, 365, 365, true)
	f("2026-01-15", "2026-07-14", 0, 181, 181, false) // six months are not more than six
	f("2026-01-15", "2026-07-15", 0, 182, 182, true)
	f("2025-08-31", "2026-02-28", 0, 182, 59, false)
	f("2025-08-31", "2026-03-01", 0, 183, 60, true)
}

func imssRequest(t *rapid.T) IMSSRequest {
	r := IMSSRequest{
		SBCDiario: anyAmount(440_87, 4_000_00).Draw(t, "sbc"), Dias: rapid.IntRange(1, MaxDaysContributed).Draw(t, "dias"),
		FechaCalculo: anyDay("2023-01-01", "2026-12-31").Draw(t, "fecha"),
		Zona:         rapid.SampledFrom([]Zone{"", General, Border}).Draw(t, "zona"),
	}
	// Half of the wages lie about a bound of the CEAV brackets.
	if daily := figuresOf(t, umaTable, r.FechaCalculo).daily; rapid.Bool().Draw(t, "bound") {
		halves := Pesos(rapid.IntRange(5, 8).Draw(t, "halves"))
		r.SBCDiario = max(440_87, daily*halves/2+Pesos(rapid.IntRange(-2, 140).Draw(t, "beyond")))
	}
	if rapid.Bool().Draw(t, "riesgo") {
		p := Decimal(rapid.Int64Range(50_000, 15*decimalUnit).Draw(t, "prima"))
		r.PrimaRiesgo = &p
	}
	return r
}

func TestIMSSIsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := imssRequest(t)
		out, err := IMSS(r)
		if err != nil {
			t.Fatal(err)
		}
		checkLines(t, &out.Calculation)
		rate, problem := ParseDecimal("cuota", out.CEAV.Cuota)
		if problem != nil {
			t.Fatal(problem)
		}
		want := oracleIMSS(t, r, rate)
		var paid, kept Pesos
		for key, amount := range want {
			if got := of(out.Lines, key[0], key[1]); got != amount {
				t.Fatalf("%v = %s; the oracle says %s", key, got, amount)
			}
			if key[1] == employer {
				paid += amount
			} else {
				kept += amount
			}
		}
		if len(want) != len(out.Lines) || out.TotalPatron != paid || out.TotalObrero != kept || out.Total != paid+kept || out.Total != lines(&out.Calculation) {
			t.Fatalf("totals %s + %s = %s; the branches give %s and %s", out.TotalPatron, out.TotalObrero, out.Total, paid, kept)
		}
		if out.PagaPatron+out.PagaTrabajador != out.Total || out.Articulo36 != (out.PagaTrabajador == 0) {
			t.Fatalf("who pays: %s and %s, article 36 %v", out.PagaPatron, out.PagaTrabajador, out.Articulo36)
		}
		checkCEAV(t, out)
	})
}

// checkCEAV places the wage by quotients of UMA, rounded bounds recomputed.
func checkCEAV(t *rapid.T, out *IMSSResult) {
	lower := []string{"1.51", "2.01", "2.51", "3.01", "3.51", "4.01"}
	upper := []string{"1.50", "2.00", "2.50", "3.00", "3.50", "4.00"}
	sua, court := 2, 2
	for i := range lower {
		if out.SBCTopado >= centavosOf(product(money(out.UMA), rat(lower[i]))) {
			sua = i + 3
		}
		if out.SBCTopado > centavosOf(product(money(out.UMA), rat(upper[i]))) {
			court = i + 3
		}
	}
	if out.SBCTopado == out.SalarioMinimo {
		sua, court = 1, 1
	}
	gap := sua != court
	if out.CEAV.Rango != sua || (out.CEAV.Alternativa != nil) != gap || gap && out.CEAV.Alternativa.Rango != court {
		t.Fatalf("%s at %s: %+v; want brackets %d and %d", out.SBCTopado, out.UMA, out.CEAV, sua, court)
	}
	if gap && (out.CEAV.Alternativa.Diferencia != out.CEAV.Alternativa.Importe-of(out.Lines, "ceav", employer) || out.CEAV.Alternativa.Diferencia <= 0) {
		t.Fatalf("%+v", out.CEAV.Alternativa)
	}
}

// TestGapsBetweenBrackets walks over 4.00 and 4.01 UMA of 2026: 469.24 and
// 470.41 (470.4131).
func TestGapsBetweenBrackets(t *testing.T) {
	f := func(sbc Pesos, sua, court int) {
		t.Helper()
		out, err := IMSS(IMSSRequest{SBCDiario: sbc, Dias: 30, FechaCalculo: day("2026-03-01")})
		if err != nil {
			t.Fatal(err)
		}
		other := out.CEAV.Rango
		if out.CEAV.Alternativa != nil {
			other = out.CEAV.Alternativa.Rango
		}
		if out.CEAV.Rango != sua || other != court {
			t.Errorf("%s: brackets %d and %d; want %d and %d", sbc, out.CEAV.Rango, other, sua, court)
		}
	}
	f(46924, 7, 7)
	f(46925, 7, 8)
	f(47040, 7, 8)
	f(47041, 8, 8)
}

func TestMinimumWageOfEachZone(t *testing.T) {
	f := func(sbc Pesos, z Zone, bracket int, article36 bool) {
		t.Helper()
		out, err := IMSS(IMSSRequest{SBCDiario: sbc, Dias: 30, FechaCalculo: day("2026-03-15"), Zona: z})
		if err != nil || out.CEAV.Rango != bracket || out.Articulo36 != article36 {
			t.Errorf("%s, %s: %+v, %v", sbc, z, out, err)
		}
		if err == nil && article36 && (out.PagaTrabajador != 0 || out.PagaPatron != out.Total || out.TotalObrero == 0) {
			t.Errorf("%s: the employer pays %s of %s", sbc, out.PagaPatron, out.Total)
		}
	}
	f(31504, General, 1, true)
	f(31505, General, 5, false)
	f(44087, General, 7, false)
	f(44087, Border, 1, true)
	f(44088, Border, 7, false)
}

func isrRequest(t *rapid.T, most Pesos) ISRRequest {
	r := ISRRequest{
		BaseGravable: anyAmount(1, most).Draw(t, "base"), FechaCalculo: anyDay("2023-01-01", "2026-12-31").Draw(t, "fecha"),
		Periodicidad: rapid.SampledFrom(Periods).Draw(t, "periodo"),
	}
	if r.FechaCalculo.Before(day("2024-05-01")) && r.Periodicidad != Annual {
		r.Periodicidad = Monthly
	}
	return r
}

func TestISRIsTheTariff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := isrRequest(t, rapid.SampledFrom([]Pesos{20_000_00, 600_000_00, MaxTaxBase}).Draw(t, "most"))
		out, err := ISR(r)
		if err != nil {
			t.Fatal(err)
		}
		checkLines(t, &out.Calculation)
		if want := oracleTariff(t, r); out.ISRTarifa != want {
			t.Fatalf("isr_tarifa = %s; the oracle says %s", out.ISRTarifa, want)
		}
		if out.ISRARetener != lines(&out.Calculation) || out.ISRARetener != out.ISRTarifa-out.SubsidioAcreditado || out.ISRARetener < 0 {
			t.Fatalf("isr_a_retener = %s of %s less %s", out.ISRARetener, out.ISRTarifa, out.SubsidioAcreditado)
		}
		if want := oracleSubsidy(r); out.SubsidioCausado != want || out.SubsidioAcreditado != min(want, out.ISRTarifa) {
			t.Fatalf("subsidio %s, acreditado %s; the oracle says %s", out.SubsidioCausado, out.SubsidioAcreditado, want)
		}
		cash := Pesos(0)
		if r.FechaCalculo.Before(day("2024-05-01")) {
			cash = out.SubsidioCausado - out.SubsidioAcreditado
		}
		if out.SubsidioAEntregar != cash {
			t.Fatalf("subsidio_a_entregar = %s; want %s", out.SubsidioAEntregar, cash)
		}
	})
}

// oracleSubsidy has the decrees typed in.
func oracleSubsidy(r ISRRequest) Pesos {
	days := map[Period]string{Daily: "1", Weekly: "7", TenDays: "10", Fortnight: "15", Monthly: "30.4"}[r.Periodicidad]
	if days == "" {
		return 0
	}
	if r.FechaCalculo.Before(day("2024-05-01")) {
		upper := []Pesos{176896, 265338, 347284, 353787, 444615, 471718, 533542, 622467, 711390, 738233}
		for i, amount := range []Pesos{40702, 40683, 40662, 39277, 38246, 35423, 32487, 29463, 25354, 21761} {
			if r.BaseGravable <= upper[i] {
				return amount
			}
		}
		return 0
	}
	month, most := "535.65", "11492.66"
	switch d := r.FechaCalculo.String(); {
	case d < "2025-01-01":
		month, most = "390.12", "9081.00"
	case d < "2025-02-01":
		month, most = "474.95", "10171.00"
	case d < "2026-01-01":
		month, most = "474.65", "10171.00"
	case d < "2026-02-01":
		month = "536.21"
	}
	part := func(monthly string) Pesos { return centavosOf(over(product(rat(monthly), rat(days)), rat("30.4"))) }
	if r.BaseGravable > part(most) {
		return 0
	}
	return part(month)
}

// TestISRNeverFalls holds what ISR promises: more income never means less tax,
// but for the centavos that the published tariffs lost in rounding.
func TestISRNeverFalls(t *testing.T) {
	slack := func(p Period) Pesos {
		if p == Monthly || p == Annual || p == Daily {
			return 2
		}
		return 11
	}
	rapid.Check(t, func(t *rapid.T) {
		low := isrRequest(t, 600_000_00)
		high := low
		high.BaseGravable += Pesos(rapid.Int64Range(0, 100_000).Draw(t, "more"))
		a, err := ISR(low)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ISR(high)
		if err != nil {
			t.Fatal(err)
		}
		if b.ISRTarifa+slack(low.Periodicidad) < a.ISRTarifa || b.ISRARetener+slack(low.Periodicidad) < a.ISRARetener {
			t.Fatalf("%s pays %s, withheld %s; %s pays %s, withheld %s", low.BaseGravable, a.ISRTarifa, a.ISRARetener, high.BaseGravable, b.ISRTarifa, b.ISRARetener)
		}
	})
	for i := range isrTable {
		for _, p := range Periods {
			tariff := isrTable[i].figures[p]
			for k := 1; k < len(tariff); k++ {
				before := oracleTariff(t, ISRRequest{BaseGravable: tariff[k-1].upper, FechaCalculo: isrTable[i].From, Periodicidad: p})
				if after := tariff[k].fee; after+slack(p) < before {
					t.Errorf("%s %s, line %d: the tax steps down from %s to %s", isrTable[i].File, p, k+1, before, after)
				}
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	f := func(got []string, want ...string) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("%q; want %d", got, len(want))
			return
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%q; want %q", got[i], want[i])
			}
		}
	}
	a, _ := Aguinaldo(AguinaldoRequest{SalarioDiario: 40000, DiasTrabajados: 365, DiasAguinaldo: 14, Fecha: day("2026-12-15")})
	f(a.Warnings, "mínimo legal de 15 días")
	if a.Exemption == nil || a.Exemption.Limit != 351930 || a.Exemption.Taxable != 5600_00-351930 {
		t.Errorf("exemption %+v", a.Exemption)
	}
	p, _ := PrimaVacacional(PrimaVacacionalRequest{SalarioDiario: 40000, AniosAntiguedad: 99_999, Porcentaje: 24 * decimalUnit})
	f(p.Warnings, "no hay derecho", "se tomó 0", "mínimo legal de 25 %")
	if p.DiasVacaciones != 0 || p.Prima != 0 {
		t.Errorf("%+v", p)
	}
	p, _ = PrimaVacacional(PrimaVacacionalRequest{SalarioDiario: 40000, AniosAntiguedad: 6*decimalUnit + 99_999, Porcentaje: 25 * decimalUnit, Fecha: day("2022-12-31")})
	f(p.Warnings, "no se ha cotejado con el texto oficial", "se tomó 6")
	if p.DiasVacaciones != 14 || p.Exemption == nil || p.Exemption.Limit != 15*9622 {
		t.Errorf("%+v", p)
	}
	i, _ := IMSS(IMSSRequest{SBCDiario: 350000, Dias: 30, FechaCalculo: day("2026-01-31")})
	f(i.Warnings, "límite superior de 25 UMA (2828.50)")
	i, _ = IMSS(IMSSRequest{SBCDiario: 47000, Dias: 30, FechaCalculo: day("2026-03-01")})
	f(i.Warnings, "criterio del rango superior (SCJN) la cuota es 7.513 %")
	s, _ := ISR(ISRRequest{BaseGravable: 957722, FechaCalculo: day("2026-03-01")})
	f(s.Warnings, "9577.22")
	s, _ = ISR(ISRRequest{BaseGravable: 957723, FechaCalculo: day("2026-03-01")})
	f(s.Warnings)
}

// FuzzRequests asks every calculation with whatever comes: the answer is
// complete and adds up, or it is a refusal that names its field, or no table.
func FuzzRequests(f *testing.F) {
	f.Add(uint8(0), "400", "15", 365, 2026, 3, 16, 2026, 6, 30, "mensual", true)
	f.Add(uint8(1), "512.35", "25.5", 10, 2020, 2, 29, 2024, 2, 29, "general", false)
	f.Add(uint8(2), "1000000", "0", 366, 1966, 7, 1, 2026, 6, 30, "frontera", true)
	f.Add(uint8(3), "3500", "2.5984", 62, 2026, 1, 31, 2027, 2, 1, "", true)
	f.Add(uint8(4), "-1", "1e9", -1, 1900, 2, 30, 2100, 12, 31, "semanal", false)
	f.Add(uint8(4), "11492.67", "", 0, 2024, 4, 30, 0, 0, 0, "quincenal", false)
	f.Fuzz(func(t *testing.T, kind uint8, amount, decimal string, n, y1, m1, d1, y2, m2, d2 int, word string, yes bool) {
		pesos, wrong := ParsePesos("monto", amount)
		if wrong == nil && !same(pesos.String(), amount) {
			t.Fatalf("%q was read as %s", amount, pesos)
		}
		percent, _ := ParseDecimal("porcentaje", decimal)
		first, last := civil.Date{Year: y1, Month: time.Month(m1), Day: d1}, civil.Date{Year: y2, Month: time.Month(m2), Day: d2}
		var c *Calculation
		var err error
		var total Pesos
		switch kind % 5 {
		case 0:
			var r *AguinaldoResult
			if r, err = Aguinaldo(AguinaldoRequest{pesos, n, int(percent / decimalUnit), first}); err == nil {
				c, total = &r.Calculation, r.Aguinaldo
			}
		case 1:
			var r *PrimaVacacionalResult
			if r, err = PrimaVacacional(PrimaVacacionalRequest{pesos, Decimal(n), percent, first}); err == nil {
				c, total = &r.Calculation, r.Prima
			}
		case 2:
			var r *FiniquitoResult
			if r, err = Finiquito(FiniquitoRequest{pesos, first, last, n, yes, Zone(word)}); err == nil {
				c, total = &r.Calculation, r.Total
			}
		case 3:
			q := IMSSRequest{pesos, n, first, nil, Zone(word)}
			if yes {
				q.PrimaRiesgo = &percent
			}
			var r *IMSSResult
			if r, err = IMSS(q); err == nil {
				c, total = &r.Calculation, r.Total
			}
		case 4:
			var r *ISRResult
			if r, err = ISR(ISRRequest{pesos, first, Period(word)}); err == nil {
				c, total = &r.Calculation, r.ISRARetener
			}
		}
		var p Problems
		var none *ErrNoTable
		switch {
		case err == nil:
			checkLines(t, c)
			if total < 0 || total != lines(c) {
				t.Fatalf("total %s of lines %s", total, lines(c))
			}
		case errors.As(err, &p):
			for i := range p {
				if p[i].Field == "" || p[i].Type == "" || !strings.Contains(p[i].Rule, "«"+p[i].Field+"»") || len(p[i].Rule) > 300 {
					t.Fatalf("problem %+v", p[i])
				}
			}
			if len(p) == 0 {
				t.Fatal("a refusal without a reason")
			}
		case errors.As(err, &none):
			if none.Date != first && none.Date != last || none.From.IsZero() {
				t.Fatalf("%+v", none)
			}
		default:
			t.Fatal(err)
		}
	})
}
