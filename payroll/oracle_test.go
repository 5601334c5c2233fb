package payroll

import (
	"math/big"
	"strings"
	"time"

	"pgregory.net/rapid"

	"cotejo/civil"
)

// The oracle computes with rationals and the calendar of package time, straight
// from the formulas of the law, without the code under test.

func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

func ints(n int) *big.Rat      { return big.NewRat(int64(n), 1) }
func money(p Pesos) *big.Rat   { return big.NewRat(int64(p), 100) }
func exact(d Decimal) *big.Rat { return big.NewRat(int64(d), decimalUnit) }

func product(factors ...*big.Rat) *big.Rat {
	out := big.NewRat(1, 1)
	for _, f := range factors {
		out.Mul(out, f)
	}
	return out
}

func plus(terms ...*big.Rat) *big.Rat {
	out := new(big.Rat)
	for _, t := range terms {
		out.Add(out, t)
	}
	return out
}

func over(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

// centavosOf rounds half up, by floor(100·r + 1/2).
func centavosOf(r *big.Rat) Pesos {
	scaled := plus(product(r, ints(100)), big.NewRat(1, 2))
	return Pesos(new(big.Int).Div(scaled.Num(), scaled.Denom()).Int64())
}

// evaluate reads an expression of Line.Factor.
func evaluate(t rapid.TB, text string) *big.Rat {
	t.Helper()
	p := &expression{strings.Fields(strings.NewReplacer("(", "( ", ")", " )").Replace(text)), 0}
	out := p.sum()
	if out == nil || p.at != len(p.words) {
		t.Fatalf("factor %q is no expression", text)
	}
	return out
}

type expression struct {
	words []string
	at    int
}

func (p *expression) next(word string) bool {
	if p.at < len(p.words) && p.words[p.at] == word {
		p.at++
		return true
	}
	return false
}

func (p *expression) sum() *big.Rat {
	out := p.term()
	for out != nil && p.next("+") {
		if out = plus(out, p.term()); out == nil {
			return nil
		}
	}
	return out
}

func (p *expression) term() *big.Rat {
	out := p.atom()
	for out != nil {
		switch {
		case p.next("×"):
			out = product(out, p.atom())
		case p.next("/"):
			out = over(out, p.atom())
		default:
			return out
		}
	}
	return out
}

func (p *expression) atom() *big.Rat {
	var out *big.Rat
	if p.next("(") {
		out = p.sum()
		if !p.next(")") {
			return nil
		}
	} else if p.at < len(p.words) {
		out, _ = new(big.Rat).SetString(p.words[p.at])
		p.at++
	}
	if out != nil && p.next("%") {
		out = over(out, ints(100))
	}
	return out
}

// checkLines holds what is true of every result.
func checkLines(t rapid.TB, c *Calculation) {
	t.Helper()
	for i := range c.Lines {
		l := &c.Lines[i]
		want := centavosOf(product(money(l.Base), evaluate(t, l.Factor)))
		if l.Factor == "-1" {
			want = -l.Base
		}
		if l.Amount != want {
			t.Fatalf("%s: %s × %s = %s; want %s", l.Key, l.Base, l.Factor, l.Amount, want)
		}
		if l.Concept == "" || l.LegalBasis == "" {
			t.Fatalf("%s has no concept or no legal basis", l.Key)
		}
	}
	b := &c.Basis
	if len(b.LegalBasis) == 0 || len(b.Tables) == 0 || len(b.Formulas) == 0 || b.Rounding != Rounding || b.Notice != Notice {
		t.Fatalf("base_calculo is not complete: %+v", b)
	}
}

func lines(c *Calculation) (sum Pesos) {
	for i := range c.Lines {
		sum += c.Lines[i].Amount
	}
	return sum
}

// figuresOf finds a version's figures the long way.
func figuresOf[T any](t rapid.TB, versions table[T], day civil.Date) T {
	t.Helper()
	var found []T
	for i := range versions {
		v := &versions[i].Version
		if day.Compact() >= v.From.Compact() && (v.To.IsZero() || day.Compact() <= v.To.Compact()) {
			found = append(found, versions[i].figures)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d versions cover %s", len(found), day)
	}
	return found[0]
}

// oracleFiniquito returns the lines by key.
func oracleFiniquito(t rapid.TB, r FiniquitoRequest) map[string]Pesos {
	t.Helper()
	clock := func(d civil.Date) time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }
	between := func(a, b time.Time) int { return int(b.Sub(a).Hours() / 24) }
	in, end := clock(r.FechaIngreso), clock(r.FechaBaja)
	n := 0
	// time.Date turns 29 February of a common year into 1 March.
	for !time.Date(in.Year()+n+1, in.Month(), in.Day(), 0, 0, 0, 0, time.UTC).After(end) {
		n++
	}
	course := min(365, between(time.Date(in.Year()+n, in.Month(), in.Day(), 0, 0, 0, 0, time.UTC), end)+1)
	first := time.Date(end.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	if in.After(first) {
		first = in
	}
	calendar := min(365, between(first, end)+1)
	// LFT 76: twelve days, two more a year up to twenty, then two every five.
	vacation := 22 + 2*((n+1-6)/5)
	if n+1 < 6 {
		vacation = 10 + 2*(n+1)
	}
	if end.Year() < 2023 {
		vacation = 14 + 2*((n+1-5)/5)
		if n+1 < 5 {
			vacation = 4 + 2*(n+1)
		}
	}
	wages := figuresOf(t, minimumWage, r.FechaBaja)
	least := wages.general
	if r.Zona == Border && wages.border > 0 {
		least = wages.border
	}
	year, sd := ints(365), money(r.SalarioDiario)
	served := plus(ints(n), over(ints(course), year))
	integrated := product(sd, over(plus(ints(365+15), product(ints(vacation), rat("0.25"))), year))
	proportional := over(product(sd, ints(vacation), ints(course)), year)
	out := map[string]Pesos{
		"salario_pendiente":         centavosOf(product(sd, ints(r.DiasPendientesSalario))),
		"aguinaldo_proporcional":    centavosOf(over(product(sd, ints(15), ints(calendar)), year)),
		"vacaciones_proporcionales": centavosOf(proportional),
		"prima_vacacional":          centavosOf(product(proportional, rat("0.25"))),
	}
	if r.IncluirIndemnizacion {
		out["tres_meses"] = centavosOf(product(integrated, ints(90)))
		out["veinte_dias_por_anio"] = centavosOf(product(integrated, ints(20), served))
	}
	if r.IncluirIndemnizacion || served.Cmp(ints(15)) >= 0 {
		base := min(max(r.SalarioDiario, least), 2*least)
		out["prima_antiguedad"] = centavosOf(product(money(base), ints(12), served))
	}
	return out
}

// oracleIMSS returns the lines by key and payer, with the rates of the law typed
// in, and ceav as given.
func oracleIMSS(t rapid.TB, r IMSSRequest, ceav Decimal) map[[2]string]Pesos {
	t.Helper()
	daily := figuresOf(t, umaTable, r.FechaCalculo).daily
	capped := min(r.SBCDiario, 25*daily)
	days := ints(r.Dias)
	wage := product(money(capped), days)
	units := product(money(daily), days)
	excess := new(big.Rat)
	if capped > 3*daily {
		excess = product(money(capped-3*daily), days)
	}
	percent := func(base *big.Rat, rate string) Pesos { return centavosOf(over(product(base, rat(rate)), ints(100))) }
	out := map[[2]string]Pesos{
		{"eym_cuota_fija", employer}:             percent(units, "20.40"),
		{"eym_excedente", employer}:              percent(excess, "1.10"),
		{"eym_excedente", worker}:                percent(excess, "0.40"),
		{"gastos_medicos_pensionados", employer}: percent(wage, "1.05"),
		{"gastos_medicos_pensionados", worker}:   percent(wage, "0.375"),
		{"eym_dinero", employer}:                 percent(wage, "0.70"),
		{"eym_dinero", worker}:                   percent(wage, "0.25"),
		{"invalidez_vida", employer}:             percent(wage, "1.75"),
		{"invalidez_vida", worker}:               percent(wage, "0.625"),
		{"guarderias", employer}:                 percent(wage, "1"),
		{"retiro", employer}:                     percent(wage, "2"),
		{"ceav", employer}:                       centavosOf(over(product(wage, exact(ceav)), ints(100))),
		{"ceav", worker}:                         percent(wage, "1.125"),
	}
	if r.PrimaRiesgo != nil {
		out[[2]string{"riesgos_trabajo", employer}] = centavosOf(over(product(wage, exact(*r.PrimaRiesgo)), ints(100)))
	}
	return out
}

// oracleTariff returns the tax of a tariff.
func oracleTariff(t rapid.TB, r ISRRequest) Pesos {
	t.Helper()
	for _, s := range figuresOf(t, isrTable, r.FechaCalculo)[r.Periodicidad] {
		if r.BaseGravable >= s.lower && (s.upper == 0 || r.BaseGravable <= s.upper) {
			return centavosOf(plus(money(s.fee), over(product(money(r.BaseGravable-s.lower), rat(s.percent)), ints(100))))
		}
	}
	t.Fatalf("no bracket for %s", r.BaseGravable)
	return 0
}
