package payroll

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"cotejo/civil"
)

// example is a worked example of the reference: testdata holds some of them,
// COTEJO_SHARED all.
type example struct {
	ID       string
	Calculo  string
	Entrada  map[string]any
	Esperado map[string]any
	Fuente   string
}

func TestWorkedExamples(t *testing.T) {
	if n := runExamples(t, filepath.Join("testdata", "ejemplos.json")); n != 25 {
		t.Fatalf("%d examples were run; want 25", n)
	}
}

func TestWorkedExamplesOfTheReference(t *testing.T) {
	name := shared(t, "ejemplos.json")
	if n := runExamples(t, name); n < 58 {
		t.Fatalf("only %d examples were run", n)
	}
}

// shared returns the path of a reference file, which is no part of the
// repository: COTEJO_SHARED names its folder, and must be right when it is set.
func shared(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("COTEJO_SHARED")
	set := root != ""
	if !set {
		root = filepath.Join("..", "..", "shared")
	}
	path := filepath.Join(root, "data", "fiscal", name)
	if _, err := os.Stat(path); err != nil {
		if set {
			t.Fatal(err)
		}
		t.Skipf("no reference (set COTEJO_SHARED): %v", err)
	}
	return path
}

func runExamples(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		got, err := e.run()
		if err != nil {
			t.Errorf("%s: %v", e.ID, err)
			continue
		}
		for key, want := range e.Esperado {
			value, ok := got[key]
			if !ok {
				t.Errorf("%s: the result says nothing of %s", e.ID, key)
			} else if !same(value, want) {
				t.Errorf("%s (%s): %s = %v; want %v", e.ID, e.Fuente, key, value, want)
			}
		}
	}
	return len(all)
}

// run asks an example's question and returns every figure of the answer.
func (e *example) run() (map[string]any, error) {
	text := func(name string) string {
		if v, ok := e.Entrada[name]; ok && v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	var failed error
	note := func(p *Problem) {
		if p != nil {
			failed = p
		}
	}
	pesos := func(name string) Pesos {
		v, p := ParsePesos(name, text(name))
		note(p)
		return v
	}
	decimal := func(name string) Decimal {
		v, p := ParseDecimal(name, text(name))
		note(p)
		return v
	}
	number := func(name string) int { return int(decimal(name) / decimalUnit) }
	date := func(name string) civil.Date {
		d, err := civil.Parse(text(name))
		if err != nil {
			failed = err
		}
		return d
	}

	var result any
	var err error
	extra := map[string]any{}
	switch e.Calculo {
	case "aguinaldo":
		result, err = Aguinaldo(AguinaldoRequest{SalarioDiario: pesos("salario_diario"), DiasTrabajados: number("dias_trabajados"), DiasAguinaldo: number("dias_aguinaldo")})
	case "prima_vacacional":
		result, err = PrimaVacacional(PrimaVacacionalRequest{SalarioDiario: pesos("salario_diario"), AniosAntiguedad: decimal("anios_antiguedad"), Porcentaje: decimal("porcentaje")})
	case "finiquito":
		var f *FiniquitoResult
		f, err = Finiquito(FiniquitoRequest{SalarioDiario: pesos("salario_diario"), FechaIngreso: date("fecha_ingreso"), FechaBaja: date("fecha_baja"),
			DiasPendientesSalario: number("dias_pendientes_salario"), IncluirIndemnizacion: e.Entrada["incluir_indemnizacion"].(bool)})
		if err == nil {
			for i := range f.Lines {
				extra[f.Lines[i].Key] = f.Lines[i].Amount.String()
			}
		}
		result = f
	case "imss":
		r := IMSSRequest{SBCDiario: pesos("sbc_diario"), Dias: number("dias"), FechaCalculo: date("fecha_calculo")}
		if e.Entrada["prima_riesgo"] != nil {
			p := decimal("prima_riesgo")
			r.PrimaRiesgo = &p
		}
		var s *IMSSResult
		if s, err = IMSS(r); err == nil {
			extra["rango_ceav"], extra["ceav_pct"] = s.CEAV.Rango, s.CEAV.Cuota
			extra["veces_uma"] = ratio(int64(s.SBCTopado), int64(s.UMA), 2)
			branches := map[string]any{}
			for i := range s.Lines {
				key := s.Lines[i].Key
				branches[key] = []any{of(s.Lines, key, employer).String(), of(s.Lines, key, worker).String()}
			}
			extra["ramas"] = branches
		}
		result = s
	case "isr", "isr_periodo":
		result, err = ISR(ISRRequest{BaseGravable: pesos("base_gravable"), FechaCalculo: date("fecha_calculo"), Periodicidad: Period(text("periodicidad"))})
	case "ceav_rango":
		sbc, daily, day := pesos("sbc_diario"), pesos("uma"), date("fecha")
		v, noTable := ceavTable.at(day)
		w, noWage := minimumWage.at(day)
		if noTable != nil || noWage != nil {
			return nil, fmt.Errorf("%v %v", noTable, noWage)
		}
		sua, court := ceavBrackets(sbc, daily, w.figures.general, v.figures)
		extra["veces_uma"] = ratio(int64(sbc), int64(daily), 4)
		extra["criterio_sua"], extra["criterio_scjn"] = v.figures[sua].percent, v.figures[court].percent
	case "subsidio_periodo":
		period, ok := map[int]Period{1: Daily, 7: Weekly, 10: TenDays, 15: Fortnight}[number("dias")]
		day, bad := civil.Parse(text("mes") + "-15")
		if !ok || bad != nil {
			return nil, fmt.Errorf("%v days, %v", ok, bad)
		}
		r, wrong := ISR(ISRRequest{BaseGravable: 100, FechaCalculo: day, Periodicidad: period})
		if wrong != nil {
			return nil, wrong
		}
		if v, _ := subsidyTable.at(day); v.figures.month != pesos("subsidio_mensual") {
			return nil, fmt.Errorf("the subsidy of the month is %s", v.figures.month)
		}
		extra["subsidio"] = r.SubsidioCausado.String()
	default:
		return nil, fmt.Errorf("no calculation %q", e.Calculo)
	}
	if err == nil {
		err = failed
	}
	if err != nil || result == nil {
		return extra, err
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(encoded, &all); err != nil {
		return nil, err
	}
	for key, value := range extra {
		all[key] = value
	}
	return all, nil
}

// of returns the amount of a payer's line, 0 when there is none.
func of(lines []Line, key, payer string) Pesos {
	for i := range lines {
		if lines[i].Key == key && lines[i].Payer == payer {
			return lines[i].Amount
		}
	}
	return 0
}

// same compares numbers by value, whatever their form, and lists and objects
// member by member, in both directions.
func same(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for key := range want {
			if !same(g[key], want[key]) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for i := range want {
			if !same(g[i], want[i]) {
				return false
			}
		}
		return true
	}
	a, okA := new(big.Rat).SetString(fmt.Sprint(got))
	b, okB := new(big.Rat).SetString(fmt.Sprint(want))
	if okA && okB {
		return a.Cmp(b) == 0
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}
