package fiscal

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
	"cotejo/payroll"
)

func imss() op.Operation {
	const target = "/v1/fiscal/imss"
	reading := []op.Field{
		op.F("rango", op.Integer("Del 1 al 8, en el orden de la tabla.")),
		op.F("texto", op.Text("El rango como lo nombra la ley.")),
		op.F("cuota_patronal", decimal("Por ciento.")),
		op.F("criterio", op.OneOf("SUA: el programa del IMSS, que es lo que se factura. SCJN: la lectura de la Suprema Corte.", "SUA", "SCJN")),
	}
	other := op.Object(append(reading[:len(reading):len(reading)],
		op.F("importe_patron", op.Money("Lo que daría.")),
		op.F("diferencia", op.Money("Sobre el renglón ceav del patrón.")))...)
	other.Description = "La otra lectura; solo si el SBC cae entre dos rangos de la tabla, donde la ley no dice cuál aplica."
	return op.Operation{
		ID: "calcularIMSS", Path: target, Service: payment, Summary: "Cuotas al IMSS",
		Description: "Calcula por rama las cuotas obrero-patronales de una persona (Ley del Seguro Social), con las tablas de fecha_calculo: la UMA cambia el 1 de febrero y " +
			"lo demás el 1 de enero. El SBC se topa en 25 UMA. Entre dos rangos de la tabla de CEAV se usa el inferior, como el programa SUA, y se muestra la otra lectura (SCJN).\n\n" +
			"Lo que el resultado no dice: no incluye Infonavit, impuesto sobre nóminas ni aportaciones del Estado, y no sustituye la cédula del IMSS.",
		Body: body(
			op.F("sbc_diario", amount("Salario base de cotización diario en pesos, integrado; no menor que el salario mínimo de fecha_calculo.", payroll.MaxDailyWage)),
			op.Maybe("dias", count("Días del periodo.", 1, payroll.MaxDaysContributed, "30")),
			op.F(asOf, tablesDay()),
			op.Maybe("prima_riesgo", op.OrNull(&jsonschema.Schema{Type: "number",
				Description: "Prima de riesgos de trabajo en por ciento, de 0.5 a 15: 0.54355 es 0.54355 %. Sin ella no se calcula esa rama."})),
			op.Maybe(zone, zoneField()),
		),
		Output: answer("CuotasIMSS", payment,
			op.F("sbc_diario", op.Money("Como se recibió.")),
			op.F("sbc_topado", op.Money("Sobre el que se cotiza: a lo más 25 UMA.")),
			op.F("dias", op.Integer("")),
			op.F(asOf, op.Day("")),
			op.F("uma", op.Money("Diaria.")),
			op.F("veces_uma", decimal("sbc_topado entre uma, a cuatro decimales.")),
			op.F(zone, zoneField()),
			op.F("salario_minimo", op.Money("Diario, de la zona.")),
			op.F("ceav", op.Object(append(reading, op.Maybe("alternativa", other))...)),
			op.F("total_patron", op.Money("Suma de los renglones a cargo del patrón.")),
			op.F("total_obrero", op.Money("Suma de los renglones a cargo del trabajador.")),
			op.F("total", op.Money("")),
			op.F("articulo_36", op.Flag("true: el salario es el mínimo y el patrón paga también la cuota del trabajador (LSS 36).")),
			op.F("paga_patron", op.Money("Con el artículo 36 aplicado.")),
			op.F("paga_trabajador", op.Money("Con el artículo 36 aplicado.")),
		),
		Examples: []op.Example{
			example("imss", "Un mes, con prima de riesgo", target, `{"sbc_diario":500,"fecha_calculo":"2026-03-15","prima_riesgo":0.54355}`),
			example("imss_entre_rangos", "Un SBC entre dos rangos de la tabla de CEAV", target, `{"sbc_diario":470,"fecha_calculo":"2026-03-01"}`),
		},
		Compute: calculate(payment, func(f *fields) (*payroll.IMSSResult, error) {
			return payroll.IMSS(payroll.IMSSRequest{
				SBCDiario: f.pesos("sbc_diario"), Dias: f.whole("dias"), FechaCalculo: f.date(asOf),
				PrimaRiesgo: f.optional("prima_riesgo"), Zona: payroll.Zone(f.text(zone)),
			})
		}),
	}
}

func isr() op.Operation {
	const target, period = "/v1/fiscal/isr", "periodicidad"
	return op.Operation{
		ID: "calcularISR", Path: target, Service: payment, Summary: "Retención de ISR sobre salarios",
		Description: "Calcula el ISR de un periodo con la tarifa de fecha_calculo (LISR 96 y Anexo 8) y le resta el subsidio para el empleo, que desde mayo de 2024 no se entrega en efectivo. " +
			"Sin periodicidad, base_gravable es la del mes. Con anual, isr_a_retener es el impuesto del ejercicio, sin subsidio ni retenciones.\n\n" +
			"Lo que el resultado no dice: qué ingresos están exentos (base_gravable es solo lo gravado) ni qué se pagó antes en el mes.",
		Body: body(
			op.F("base_gravable", amount("Ingreso gravado del periodo en pesos.", payroll.MaxTaxBase)),
			op.F(asOf, tablesDay()),
			op.Maybe(period, periodField()),
		),
		Output: answer("RetencionISR", payment,
			op.F("base_gravable", op.Money("")),
			op.F(asOf, op.Day("")),
			op.F(period, periodField()),
			op.F("limite_inferior", op.Money("Del renglón de la tarifa.")),
			op.Maybe("limite_superior", op.Money("Ausente en el último renglón, «en adelante».")),
			op.F("excedente", op.Money("Sobre el límite inferior.")),
			op.F("cuota_fija", op.Money("")),
			op.F("porcentaje", decimal("Sobre el excedente.")),
			op.F("isr_tarifa", op.Money("Antes del subsidio.")),
			op.F("subsidio_causado", op.Money("El que corresponde a la base.")),
			op.F("subsidio_acreditado", op.Money("El que se restó: a lo más isr_tarifa.")),
			op.F("subsidio_a_entregar", op.Money("Hasta abril de 2024, lo que excedía del impuesto; desde mayo, 0.00.")),
			op.F("isr_a_retener", op.Money("")),
		),
		Examples: []op.Example{
			example("isr", "Mes, con subsidio para el empleo", target, `{"base_gravable":10000,"fecha_calculo":"2026-03-31"}`),
			example("isr_fuera_de_vigencia", "Una fecha que la tarifa no cubre: no se calcula ni se cobra", target, `{"base_gravable":10000,"fecha_calculo":"2100-01-31"}`),
		},
		Compute: calculate(payment, func(f *fields) (*payroll.ISRResult, error) {
			return payroll.ISR(payroll.ISRRequest{
				BaseGravable: f.pesos("base_gravable"), FechaCalculo: f.date(asOf), Periodicidad: payroll.Period(f.text(period)),
			})
		}),
	}
}
