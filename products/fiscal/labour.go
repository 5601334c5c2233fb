package fiscal

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
	"cotejo/payroll"
)

// Fields that more than one request has.
const (
	dailyWage = "salario_diario"
	asOf      = "fecha_calculo"
	zone      = "zona"
)

func aguinaldo() op.Operation {
	const target = "/v1/fiscal/aguinaldo"
	return op.Operation{
		ID: "calcularAguinaldo", Path: target, Service: labour, Summary: "Aguinaldo",
		Description: "Calcula el aguinaldo (LFT 87): salario_diario × dias_aguinaldo × días trabajados, a lo más 365, entre 365. " +
			"Con fecha_calculo se aplican las tablas de ese día y se dice qué parte exenta el ISR, lo que necesita la UMA de ese día; sin ella, las más recientes y sin exención.\n\n" +
			"Lo que el resultado no dice: no retiene impuestos y no sabe si el contrato da más que la ley.",
		Body: body(
			op.F(dailyWage, amount("Cuota diaria en pesos, sin integrar.", payroll.MaxDailyWage)),
			op.Maybe("dias_trabajados", count("Días trabajados del año; el 366 no agrega importe.", 1, payroll.MaxDaysWorked, "365")),
			op.Maybe("dias_aguinaldo", count("Días de salario que se pagan; con menos que el mínimo de ley, 15, se advierte.", 1, payroll.MaxDaysOfBonus, "15")),
			op.Maybe(asOf, tablesDay()),
		),
		Output: answer("Aguinaldo", labour,
			op.F(dailyWage, op.Money("")),
			op.F("dias_trabajados", op.Integer("Como se recibieron.")),
			op.F("dias_computados", op.Integer("A lo más 365.")),
			op.F("dias_aguinaldo", op.Integer("")),
			op.F("aguinaldo", op.Money("")),
			op.Maybe("exencion_isr", exemption("Solo con fecha_calculo.")),
		),
		Examples: []op.Example{
			example("aguinaldo", "Año completo con el mínimo de ley", target, `{"salario_diario":278.80,"fecha_calculo":"2026-12-20"}`),
		},
		Compute: calculate(labour, func(f *fields) (*payroll.AguinaldoResult, error) {
			return payroll.Aguinaldo(payroll.AguinaldoRequest{
				SalarioDiario: f.pesos(dailyWage), DiasTrabajados: f.whole("dias_trabajados"), DiasAguinaldo: f.whole("dias_aguinaldo"), Fecha: f.date(asOf),
			})
		}),
	}
}

func primaVacacional() op.Operation {
	const target = "/v1/fiscal/prima-vacacional"
	return op.Operation{
		ID: "calcularPrimaVacacional", Path: target, Service: labour, Summary: "Prima vacacional",
		Description: "Calcula la prima vacacional (LFT 80) sobre los días de vacaciones que da la ley por años completos de servicio (LFT 76). " +
			"Con fecha_calculo se aplican las tablas de ese día y se dice qué parte exenta el ISR, lo que necesita la UMA de ese día; sin ella, las más recientes y sin exención.\n\n" +
			"Lo que el resultado no dice: no retiene impuestos y no sabe si el contrato da más días que la ley.",
		Body: body(
			op.F(dailyWage, amount("Cuota diaria en pesos, sin integrar.", payroll.MaxDailyWage)),
			op.F("anios_antiguedad", &jsonschema.Schema{Type: "number", Minimum: bound(0), Maximum: bound(payroll.MaxYears),
				Description: "Años de servicio; cuentan los completos. Con 0 aún no hay derecho: 0 días y una advertencia."}),
			op.Maybe("porcentaje", &jsonschema.Schema{Type: "number", ExclusiveMinimum: bound(0), Maximum: bound(percent(payroll.MaxPremium)), Default: []byte("25"),
				Description: "Por ciento de la prima; con menos que el mínimo de ley, 25, se advierte."}),
			op.Maybe(asOf, tablesDay()),
		),
		Output: answer("PrimaVacacional", labour,
			op.F(dailyWage, op.Money("")),
			op.F("anios_antiguedad", op.Integer("Años completos.")),
			op.F("porcentaje", decimal("")),
			op.F("dias_vacaciones", op.Integer("Los mínimos de LFT 76.")),
			op.F("salario_vacaciones", op.Money("")),
			op.F("prima", op.Money("")),
			op.Maybe("exencion_isr", exemption("Solo con fecha_calculo.")),
		),
		Examples: []op.Example{
			example("prima_vacacional", "Seis años de servicio", target, `{"salario_diario":400,"anios_antiguedad":6}`),
		},
		Compute: calculate(labour, func(f *fields) (*payroll.PrimaVacacionalResult, error) {
			return payroll.PrimaVacacional(payroll.PrimaVacacionalRequest{
				SalarioDiario: f.pesos(dailyWage), AniosAntiguedad: f.decimal("anios_antiguedad"), Porcentaje: f.decimal("porcentaje"), Fecha: f.date(asOf),
			})
		}),
	}
}

func finiquito() op.Operation {
	const target = "/v1/fiscal/finiquito"
	return op.Operation{
		ID: "calcularFiniquito", Path: target, Service: labour, Summary: "Finiquito e indemnización",
		Description: "Calcula, renglón por renglón, lo que se debe al terminar una relación de trabajo por tiempo indeterminado: salario pendiente, aguinaldo y vacaciones " +
			"proporcionales con su prima y, si procede, prima de antigüedad. Con incluir_indemnizacion es un despido injustificado y se agregan tres meses y veinte días por año; " +
			"sin ella es una renuncia. Las tablas son las de fecha_baja.\n\n" +
			"Lo que el resultado no dice: quién tuvo la razón, ni salarios vencidos, vacaciones de años anteriores, adeudos o prestaciones superiores a la ley; no retiene impuestos. " +
			"Los veinte días por año solo son aplicables en los supuestos de LFT 49 y 52: van en su propio renglón para poder restarlos.",
		Body: body(
			op.F(dailyWage, amount("Cuota diaria en pesos, sin integrar.", payroll.MaxDailyWage)),
			op.F("fecha_ingreso", op.Day("Primer día de la relación, AAAA-MM-DD.")),
			op.F("fecha_baja", op.Day("Último día de la relación, AAAA-MM-DD; decide las tablas.")),
			op.Maybe("dias_pendientes_salario", count("Días trabajados y no pagados.", 0, payroll.MaxDaysWorked, "0")),
			op.Maybe("incluir_indemnizacion", &jsonschema.Schema{Type: "boolean", Default: []byte("false"), Description: "true: despido injustificado. false: renuncia."}),
			op.Maybe(zone, zoneField()),
		),
		Output: answer("Finiquito", labour,
			op.F(dailyWage, op.Money("")),
			op.F("fecha_ingreso", op.Day("")),
			op.F("fecha_baja", op.Day("")),
			op.F("anios_completos", op.Integer("")),
			op.F("dias_anio_en_curso", op.Integer("Desde el último aniversario, con ambos extremos; a lo más 365.")),
			op.F("anios_servicio", decimal("A cuatro decimales.")),
			op.F("dias_aguinaldo", op.Integer("Del año de calendario, con ambos extremos; a lo más 365.")),
			op.F("dias_vacaciones_anio_en_curso", op.Integer("Los de LFT 76 para el año de servicio en curso.")),
			op.F("factor_integracion", decimal("A cuatro decimales; se usa sin redondear.")),
			op.F("salario_diario_integrado", op.Money("Se usa sin redondear.")),
			op.F(zone, zoneField()),
			op.F("salario_minimo", op.Money("Diario, de la zona, en fecha_baja.")),
			op.F("base_prima_antiguedad", op.Money("Entre el salario mínimo y su doble (LFT 485 y 486).")),
			op.F("procede_prima_antiguedad", op.Flag("LFT 162: siempre en el despido; en la renuncia, desde 15 años.")),
			op.F("subtotal_prestaciones", op.Money("Lo que se debe siempre.")),
			op.F("subtotal_separacion", op.Money("Indemnización y prima de antigüedad.")),
			op.F("total", op.Money("Suma de los renglones.")),
			op.F("exenciones_isr", op.List(exemption(""), "Lo que exenta el ISR de cada clase de pago.")),
		),
		Examples: []op.Example{
			example("finiquito_despido", "Despido injustificado", target,
				`{"salario_diario":400,"fecha_ingreso":"2023-03-16","fecha_baja":"2026-06-30","dias_pendientes_salario":5,"incluir_indemnizacion":true}`),
			example("finiquito_renuncia", "Renuncia", target, `{"salario_diario":400,"fecha_ingreso":"2023-03-16","fecha_baja":"2026-06-30"}`),
		},
		Compute: calculate(labour, func(f *fields) (*payroll.FiniquitoResult, error) {
			dismissed, _ := op.Get[bool](f.in, "incluir_indemnizacion")
			return payroll.Finiquito(payroll.FiniquitoRequest{
				SalarioDiario: f.pesos(dailyWage), FechaIngreso: f.date("fecha_ingreso"), FechaBaja: f.date("fecha_baja"),
				DiasPendientesSalario: f.whole("dias_pendientes_salario"), IncluirIndemnizacion: dismissed, Zona: payroll.Zone(f.text(zone)),
			})
		}),
	}
}
