package payroll

import (
	"errors"
	"strings"
	"testing"

	"cotejo/civil"
)

func day(text string) civil.Date {
	d, err := civil.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

func TestParsePesos(t *testing.T) {
	f := func(in string, want Pesos, kind string) {
		t.Helper()
		got, problem := ParsePesos("salario_diario", in)
		if problem == nil && (kind != "" || got != want) {
			t.Errorf("ParsePesos(%q) = %s; want %s %s", in, got, want, kind)
		}
		if problem != nil && (problem.Type != kind || !strings.Contains(problem.Rule, "«salario_diario»")) {
			t.Errorf("ParsePesos(%q): %+v; want %q", in, problem, kind)
		}
	}
	f("315.04", 31504, "")
	f("315.4", 31540, "")
	f("315", 31500, "")
	f("0.01", 1, "")
	f("0", 0, "")
	f("999999999999.99", 99999999999999, "")
	f("-1", 0, greaterThanEqual)
	f("-0.01", 0, greaterThanEqual)
	for _, in := range []string{
		"", " ", "315.040", "315.", ".5", "315,04", "1,000.00", "1e3", "+1", " 1", "1 ", "1\n", "0x10", "007", "00.5", "--1", "-x",
		"NaN", "Infinity", "١٢٣", "１２", "1.0.0", "9999999999999", "1" + strings.Repeat("0", 40), "$1", "null", "1_000",
	} {
		f(in, 0, decimalParsing)
	}
}

func TestNumbersAreWrittenAsRead(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	f(Pesos(-53565).String(), "-535.65")
	f(Pesos(-5).String(), "-0.05")
	f(Pesos(0).String(), "0.00")
	f(Pesos(5).String(), "0.05")
	f(Decimal(54355).String(), "0.54355")
	f(Decimal(25*decimalUnit).String(), "25")
	f(Decimal(1_200_000_0).String(), "120")
	f(Decimal(0).String(), "0")
	if halfUp(5, 10) != 1 || halfUp(4, 10) != 0 || halfUp(15, 10) != 2 || halfUp(25, 10) != 3 {
		t.Error("halves are not rounded up")
	}
}

// refused holds the fields and types of a refusal, in order.
func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	var p Problems
	if !errors.As(err, &p) || len(p) != len(want) {
		t.Fatalf("%v; want problems with %v", err, want)
	}
	for i := range p {
		if got := p[i].Field + " " + p[i].Type; got != want[i] {
			t.Errorf("%s (%s); want %s", got, p[i].Rule, want[i])
		}
		if !strings.HasPrefix(p[i].Rule, "«"+p[i].Field+"» ") {
			t.Errorf("the rule %q does not name %s", p[i].Rule, p[i].Field)
		}
	}
}

func TestRequestsAreRefused(t *testing.T) {
	never := civil.Date{Year: 2026, Month: 2, Day: 30}

	_, err := Aguinaldo(AguinaldoRequest{SalarioDiario: -1, DiasTrabajados: 367, DiasAguinaldo: 0, Fecha: never})
	refused(t, err, "salario_diario greater_than", "dias_trabajados less_than_equal", "dias_aguinaldo greater_than_equal", "fecha_calculo value_error")
	_, err = Aguinaldo(AguinaldoRequest{SalarioDiario: MaxDailyWage + 1, DiasTrabajados: 0, DiasAguinaldo: 366})
	refused(t, err, "salario_diario less_than_equal", "dias_trabajados greater_than_equal", "dias_aguinaldo less_than_equal")

	_, err = PrimaVacacional(PrimaVacacionalRequest{AniosAntiguedad: -1, Porcentaje: 0})
	refused(t, err, "salario_diario greater_than", "anios_antiguedad greater_than_equal", "porcentaje greater_than")
	_, err = PrimaVacacional(PrimaVacacionalRequest{SalarioDiario: 1, AniosAntiguedad: MaxYears*decimalUnit + 1, Porcentaje: MaxPremium + 1})
	refused(t, err, "anios_antiguedad less_than_equal", "porcentaje less_than_equal")

	f := func(in, end civil.Date, pending int, want ...string) {
		t.Helper()
		_, err := Finiquito(FiniquitoRequest{SalarioDiario: 40000, FechaIngreso: in, FechaBaja: end, DiasPendientesSalario: pending})
		refused(t, err, want...)
	}
	f(civil.Date{}, civil.Date{}, -1, "fecha_ingreso missing", "fecha_baja missing", "dias_pendientes_salario greater_than_equal")
	f(never, day("2026-06-30"), 0, "fecha_ingreso value_error")
	f(day("2026-01-01"), never, 0, "fecha_baja value_error")
	f(day("2026-06-30"), day("2026-06-29"), 0, "fecha_baja value_error")
	f(day("1900-01-01"), day("2026-06-30"), 0, "fecha_ingreso value_error")
	f(day("1966-06-30"), day("2026-06-30"), 0, "fecha_ingreso value_error")
	f(day("2026-06-30"), day("2026-06-30"), 2, "dias_pendientes_salario value_error")
	_, err = Finiquito(FiniquitoRequest{FechaIngreso: day("2026-01-01"), FechaBaja: day("2026-06-30"), Zona: "norte"})
	refused(t, err, "salario_diario greater_than", "zona literal_error")

	_, err = IMSS(IMSSRequest{SBCDiario: -1, Dias: 63, Zona: "x"})
	refused(t, err, "sbc_diario greater_than", "dias less_than_equal", "fecha_calculo missing", "zona literal_error")
	risk := func(p Decimal) *Decimal { return &p }
	_, err = IMSS(IMSSRequest{SBCDiario: 31503, Dias: 30, FechaCalculo: day("2026-03-15"), PrimaRiesgo: risk(15*decimalUnit + 1)})
	refused(t, err, "sbc_diario value_error", "prima_riesgo value_error")
	_, err = IMSS(IMSSRequest{SBCDiario: 44086, Dias: 30, FechaCalculo: day("2026-03-15"), Zona: Border, PrimaRiesgo: risk(543)})
	refused(t, err, "sbc_diario value_error", "prima_riesgo value_error")

	_, err = ISR(ISRRequest{BaseGravable: 0, FechaCalculo: never, Periodicidad: "catorcenal"})
	refused(t, err, "base_gravable greater_than", "fecha_calculo value_error", "periodicidad literal_error")
	_, err = ISR(ISRRequest{BaseGravable: MaxTaxBase + 1})
	refused(t, err, "base_gravable less_than_equal", "fecha_calculo missing")
}

func TestNothingIsComputedOutsideValidity(t *testing.T) {
	ask := map[string]func(civil.Date) (bool, error){
		"aguinaldo": func(d civil.Date) (bool, error) {
			r, err := Aguinaldo(AguinaldoRequest{SalarioDiario: 40000, DiasTrabajados: 365, DiasAguinaldo: 15, Fecha: d})
			return r != nil, err
		},
		"prima": func(d civil.Date) (bool, error) {
			r, err := PrimaVacacional(PrimaVacacionalRequest{SalarioDiario: 40000, AniosAntiguedad: decimalUnit, Porcentaje: 25 * decimalUnit, Fecha: d})
			return r != nil, err
		},
		"finiquito": func(d civil.Date) (bool, error) {
			r, err := Finiquito(FiniquitoRequest{SalarioDiario: 40000, FechaIngreso: d, FechaBaja: d})
			return r != nil, err
		},
		"imss": func(d civil.Date) (bool, error) {
			r, err := IMSS(IMSSRequest{SBCDiario: 50000, Dias: 30, FechaCalculo: d})
			return r != nil, err
		},
		"isr": func(d civil.Date) (bool, error) {
			r, err := ISR(ISRRequest{BaseGravable: 1000000, FechaCalculo: d})
			return r != nil, err
		},
		"isr semanal": func(d civil.Date) (bool, error) {
			r, err := ISR(ISRRequest{BaseGravable: 1000000, FechaCalculo: d, Periodicidad: Weekly})
			return r != nil, err
		},
		"isr anual": func(d civil.Date) (bool, error) {
			r, err := ISR(ISRRequest{BaseGravable: 1000000, FechaCalculo: d, Periodicidad: Annual})
			return r != nil, err
		},
	}
	f := func(what, date, table, from, to string) {
		t.Helper()
		computed, err := ask[what](day(date))
		if table == "" {
			if err != nil || !computed {
				t.Errorf("%s on %s: %v", what, date, err)
			}
			return
		}
		var none *ErrNoTable
		if computed || !errors.As(err, &none) || none.Table != table || none.Date != day(date) || none.From.String() != from || none.To.String() != to {
			t.Errorf("%s on %s: %v, %v; want %s from %s to %s", what, date, computed, err, table, from, to)
		}
	}
	for what := range ask {
		f(what, "2026-12-31", "", "", "")
		f(what, "2026-01-15", "", "", "")
	}
	f("aguinaldo", "1900-01-01", "lft_prestaciones", "2016-01-01", "")
	// The minimums of the law have no end, but what is exempt that day is not known.
	f("aguinaldo", "2027-01-31", "", "", "")
	f("aguinaldo", "2027-02-01", "uma", "2016-01-28", "2027-01-31")
	f("aguinaldo", "2100-01-01", "uma", "2016-01-28", "2027-01-31")
	f("prima", "2022-12-31", "", "", "")
	f("prima", "2027-02-01", "uma", "2016-01-28", "2027-01-31")
	f("finiquito", "2016-01-28", "", "", "")
	f("finiquito", "2016-01-27", "lisr_exenciones", "2016-01-28", "")
	f("finiquito", "2015-12-31", "lft_prestaciones", "2016-01-01", "")
	f("finiquito", "2027-01-01", "salario_minimo", "2016-01-01", "2026-12-31")
	f("finiquito", "2100-01-01", "salario_minimo", "2016-01-01", "2026-12-31")
	f("imss", "1900-01-01", "uma", "2016-01-28", "2027-01-31")
	f("imss", "2022-12-31", "imss_cuotas", "2023-01-01", "")
	f("imss", "2023-01-01", "", "", "")
	f("imss", "2027-01-01", "salario_minimo", "2016-01-01", "2026-12-31")
	f("imss", "2027-02-01", "uma", "2016-01-28", "2027-01-31")
	f("isr", "1900-01-01", "isr_tarifa", "2023-01-01", "2026-12-31")
	f("isr", "2022-12-31", "isr_tarifa", "2023-01-01", "2026-12-31")
	f("isr", "2023-01-01", "", "", "")
	f("isr", "2027-01-01", "isr_tarifa", "2023-01-01", "2026-12-31")
	f("isr", "2100-12-31", "isr_tarifa", "2023-01-01", "2026-12-31")
	// The subsidy before May 2024 is published by month only here.
	f("isr semanal", "2024-04-30", "subsidio_empleo semanal", "2024-05-01", "2026-12-31")
	f("isr semanal", "2024-05-01", "", "", "")
	f("isr anual", "2023-12-31", "", "", "")
}
