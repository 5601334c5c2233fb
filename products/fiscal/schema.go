package fiscal

import (
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
	"cotejo/payroll"
)

func body(members ...op.Field) *op.Body {
	return &op.Body{MaxBytes: maxBody, Schema: op.Members(members...)}
}

// bound is a limit of a schema. Those of package payroll are whole numbers, which
// a float holds exactly.
func bound(n float64) *float64 { return &n }

// pesos and percent are limits of package payroll as a request writes them.
func pesos(p payroll.Pesos) float64     { return must(strconv.ParseFloat(p.String(), 64)) }
func percent(d payroll.Decimal) float64 { return must(strconv.ParseFloat(d.String(), 64)) }

func must(n float64, err error) float64 {
	if err != nil {
		panic(err) // a literal of this program
	}
	return n
}

func amount(description string, most payroll.Pesos) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "number", ExclusiveMinimum: bound(0), Maximum: bound(pesos(most)), Description: description}
}

func count(description string, least, most int, normal string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: bound(float64(least)), Maximum: bound(float64(most)), Default: []byte(normal), Description: description}
}

func tablesDay() *jsonschema.Schema { return op.Day("Día cuyas tablas se aplican, AAAA-MM-DD.") }

func zoneField() *jsonschema.Schema {
	s := op.OneOf("Zona del salario mínimo: general, o frontera, la zona libre de la frontera norte.", string(payroll.General), string(payroll.Border))
	s.Default = []byte(`"` + string(payroll.General) + `"`)
	return s
}

func periodField() *jsonschema.Schema {
	s := op.OneOf("Periodo de base_gravable. No hay tarifa publicada de 14 días.")
	for _, p := range payroll.Periods {
		s.Enum = append(s.Enum, string(p))
	}
	s.Default = []byte(`"` + string(payroll.Monthly) + `"`)
	return s
}

// decimal is a number as text that is no amount.
func decimal(description string) *jsonschema.Schema {
	return op.Form(`^[0-9]+(\.[0-9]+)?$`, description)
}

func warnings() op.Field {
	return op.F("advertencias", op.List(op.Text(""), "Lo que hay que saber de esta entrada."))
}

// answer is the schema of a calculation with its own members, or of why there is
// none.
func answer(title, service string, figures ...op.Field) *jsonschema.Schema {
	line := op.Object(
		op.F("clave", op.Text("Para programas; estable.")),
		op.F("concepto", op.Text("")),
		op.F("base", op.Money("")),
		op.F("factor", op.Text("Expresión de números: base × factor, redondeado a centavos, es importe.")),
		op.F("importe", op.Money("")),
		op.F("fundamento", op.Text("")),
		op.Maybe("a_cargo_de", op.OneOf("Quién paga la cuota.", "patron", "trabajador")),
	)
	envelope := func(code, says string) []op.Field {
		return []op.Field{
			op.F("result_code", op.OneOf(says, code)),
			op.F("engine_version", op.Text("Versión de la API.")),
			op.Maybe("sandbox", op.Always(true)),
		}
	}
	members := append([]op.Field{op.F("service", op.OneOf("", service))}, figures...)
	members = append(members, op.F("renglones", op.List(line, "Los conceptos, en orden; los totales los suman.")), warnings(), op.F("base_calculo", basisSchema()))
	done := op.Object(append(members, envelope(service+okCode, "Se calculó y se cobra.")...)...)
	done.Description = "El cálculo."

	table := op.Object(
		op.F("tabla", op.Text("")),
		op.F("fecha", op.Day("La que se pidió.")),
		op.F("vigencia_desde", op.Day("Primer día que cubren las versiones cargadas.")),
		op.Maybe("vigencia_hasta", op.Day("Último día; ausente si no se conoce fin.")),
	)
	none := op.Object(append([]op.Field{op.F("service", op.OneOf("", service)), warnings(), op.F("tabla_no_vigente", table)},
		envelope(unavailable, "Una tabla no está vigente en la fecha pedida: no se calculó y no se cobra.")...)...)
	none.Description = "Por qué no se calculó."
	return op.Titled(title, &jsonschema.Schema{Type: "object", AnyOf: []*jsonschema.Schema{done, none}})
}

// basisSchema is what a result rests on.
func basisSchema() *jsonschema.Schema {
	version := op.Object(
		op.F("tabla", op.Text("")),
		op.F("version", op.Text("")),
		op.F("vigencia_desde", op.Day("")),
		op.Maybe("vigencia_hasta", op.Day("Ausente si la ley no le pone fin.")),
		op.F("fundamento", op.Text("")),
		op.F("fuente", op.Text("La publicación oficial.")),
		op.F("verificacion", op.Text("Cómo se comprobaron sus cifras.")),
		op.F("sha256", op.SHA256("Del archivo de la versión, publicado con el programa.")),
	)
	s := op.Object(
		op.F("fundamento", op.List(op.Text(""), "Leyes y artículos.")),
		op.F("tablas", op.List(version, "Versiones de las tablas que se usaron.")),
		op.F("formula", op.List(op.Text(""), "En general y con los números puestos.")),
		op.F("supuestos", op.List(op.Text(""), "Lo que se dio por cierto y la entrada no dice.")),
		op.F("redondeo", op.Text("")),
		op.F("aviso", op.Text("")),
	)
	s.Description = "En qué se apoya: con ello cualquiera rehace las cifras."
	return s
}

// exemption is what the income tax leaves free of a payment.
func exemption(description string) *jsonschema.Schema {
	s := op.Object(
		op.F("concepto", op.Text("")),
		op.F("limite", op.Money("Del año.")),
		op.F("factor", op.Text("Días de UMA × UMA diaria.")),
		op.F("exento", op.Money("")),
		op.F("gravado", op.Money("")),
		op.F("fundamento", op.Text("")),
	)
	s.Description = description
	return s
}
