package catalogs

import (
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/catalog"
	op "cotejo/operation"
)

// lists are the members about the lists that an answer is from; two says that a
// loaded source can complete what the program carries.
func lists(two bool) []op.Field {
	fields := []op.Field{op.F("fuente", op.CatalogVersion(list))}
	if two {
		further := op.CatalogVersion(list)
		further.Description = "Fuente oficial que se cargó y que completa o sustituye lo que dice su cobertura; null mientras no hay ninguna."
		fields = append(fields, op.F("fuente_adicional", op.OrNull(further)))
	}
	return fields
}

// answer is the schema of an answer: its facts and sources between what all have.
func answer(title string, codes []string, facts, sources []op.Field) *jsonschema.Schema {
	fields := append([]op.Field{op.F("service", op.OneOf("", service))}, facts...)
	return op.Titled(title, op.Object(append(append(fields, sources...),
		op.F("advertencia", op.Text("Lo que la respuesta no dice.")),
		op.F("result_code", op.OneOf("", codes...)),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.Maybe("sandbox", op.Always(true)),
	)...))
}

// standing are the members about being in force.
func standing() []op.Field {
	return []op.Field{
		op.F(asOf, op.Day("Día del que se dice si está vigente.")),
		op.F("vigente", op.OrNull(op.Flag("null: la versión no lo dice."))),
		op.F("estado", op.OneOf("DESCONOCIDO: vigente es null. NO_INICIADA y TERMINADA: existe en el catálogo y vigente es false.", standings[:]...)),
	}
}

func validity() op.Field {
	return op.F("vigencia", op.Object(
		op.F("desde", op.OrNull(op.Day(""))),
		op.F("hasta", op.OrNull(op.Day("Último día, incluido; null: sin fin declarado."))),
	))
}

func bankSchema() *jsonschema.Schema {
	facts := append([]op.Field{op.F("clave", op.Form(`^[0-9]{3}$`, ""))}, op.CatalogBank()...)
	return answer("Banco", []string{answers}, append(facts, standing()...), lists(true))
}

func satSchema() *jsonschema.Schema {
	account := op.Object(
		op.F("permite_cuenta", op.Flag("Se puede declarar la cuenta.")),
		op.F("permite_rfc_banco", op.Flag("Se puede declarar el RFC de su banco.")),
		op.F("patron_cuenta", op.OrNull(op.Text("Como lo escribe el SAT; null si no exige ninguno."))),
	)
	payment := op.Object(
		op.F("bancarizado", op.Flag("")),
		op.F("requiere_numero_operacion", op.Flag("")),
		op.F("permite_tipo_cadena_pago", op.Flag("")),
		op.F("requiere_nombre_banco_extranjero", op.Flag("Si la cuenta ordenante es de un banco extranjero.")),
		op.F("ordenante", account),
		op.F("beneficiario", account),
	)
	payment.Description = "Reglas del complemento de pagos. Solo de forma_pago."
	persons := op.Object(op.F("fisica", op.Flag("")), op.F("moral", op.Flag("")))
	persons.Description = "A quién aplica. Solo de regimen y uso_cfdi."
	facts := append([]op.Field{
		op.F("tipo", op.OneOf("", typeRegime, typeUse, typeForm)),
		op.F("clave", op.Text("")),
		op.F("texto", op.Text("Como lo escribe el SAT.")),
		op.Maybe("personas", persons),
		op.Maybe("regimenes_receptor", op.List(op.Form(`^[0-9]{3}$`, ""), "Regímenes de los receptores que pueden declarar este uso. Solo de uso_cfdi.")),
		op.Maybe("pago", payment),
	}, standing()...)
	return answer("ClaveSAT", []string{answers}, append(facts, validity()), lists(false))
}

func phoneSchema() *jsonschema.Schema {
	return answer("Telefono", []string{answers}, append([]op.Field{
		op.F("numero", op.Form(`^[2-9][0-9]{9}$`, "Diez dígitos.")),
		op.F("formato", op.Text("Con espacios, como se acostumbra escribir.")),
		op.F("internacional", op.Form(`^\+52[2-9][0-9]{9}$`, "E.164.")),
		op.F("clave_area", op.Form(`^[0-9]{2,3}$`, "")),
		op.F("numero_local", op.Form(`^[0-9]{7,8}$`, "")),
		op.F("clase", op.OneOf("De la clave de área.", string(catalog.Geographic), string(catalog.Satellite), string(catalog.SharedCost),
			string(catalog.Personal), string(catalog.TollFree), string(catalog.Premium))),
		op.F("zona", op.OrNull(op.Text("Como la nombra la fuente; null si no la nombra."))),
		op.F("prefijo_retirado", op.OrNull(op.Text("Prefijo de marcación que traía el número."))),
		op.F("numeracion", op.OrNull(planSchema())),
	}, standing()...), lists(true))
}

func planSchema() *jsonschema.Schema {
	s := op.Object(
		op.F("asignada", op.Flag("Un rango del plan tiene el número.")),
		op.F("en_varios_rangos", op.Flag("Más de uno lo tiene: lo demás es null.")),
		op.F("linea", op.OrNull(op.OneOf("", string(catalog.Fixed), string(catalog.Mobile)))),
		op.F("modalidad", op.OrNull(op.Text("Como la publica el regulador: FIJO, CPP o MPP (las dos últimas, móviles)."))),
		op.F("proveedor", op.OrNull(op.Text("A quién se asignó el rango; el número pudo portarse."))),
		op.F("zona", op.OrNull(op.Text("Del rango."))),
		op.F("fecha_asignacion", op.OrNull(op.Day(""))),
	)
	s.Description = "Rango del plan nacional de numeración, el de fuente_adicional; null si el plan no está cargado o si no tiene el número y este no es geográfico: entonces no se sabe."
	return s
}

func basisSchema(description string) *jsonschema.Schema {
	return op.OneOf(description, catalog.Determination.String(), catalog.Publication.String(), catalog.Payment.String())
}

func rateSchema() *jsonschema.Schema {
	date := func(description string) *jsonschema.Schema {
		s := op.Object(op.F("fecha", op.Day("")), op.F("prevista", op.Flag("Sale del calendario bancario: la serie no llega a ese día.")))
		s.Description = description
		return s
	}
	rate := op.Object(
		op.F("valor", op.Form(`^[0-9]{1,4}\.[0-9]{4}$`, "Con cuatro decimales, como se publica.")),
		op.F("unidad", op.OneOf("", "MXN por USD")),
		op.F("determinacion", date("Día en que Banco de México lo determinó.")),
		op.F("publicacion_dof", date("Día hábil bancario siguiente: lo publica el Diario Oficial de la Federación.")),
		op.F("pagos", date("Segundo día hábil bancario siguiente: sirve para las obligaciones que se pagan ese día.")),
	)
	rate.Description = "null con SOURCE_UNAVAILABLE."
	conversion := op.Object(
		op.F("monto", op.Form(`^[0-9]+\.[0-9]{2,6}$`, "")),
		op.F("moneda", op.OneOf("", "USD")),
		op.F("exacto", op.Form(`^[0-9]+\.[0-9]{2,10}$`, "Producto completo, sin redondear.")),
		op.F("resultado", op.Money("exacto redondeado una vez al centavo; el medio centavo, hacia arriba.")),
		op.F("moneda_resultado", op.OneOf("", "MXN")),
	)
	conversion.Description = "null sin monto o con SOURCE_UNAVAILABLE."
	coverage := op.Object(op.F("desde", op.Day("")), op.F("hasta", op.Day("")))
	coverage.Description = "Días que tienen respuesta con esta base. Solo con SOURCE_UNAVAILABLE."
	return answer("TipoDeCambio", []string{answers, unavailable}, []op.Field{
		op.F("fecha", op.Day("Día por el que se preguntó.")),
		op.F("base", basisSchema("Con cuál de las tres fechas se compara fecha.")),
		op.F("serie", op.OneOf("Del SIE de Banco de México.", catalog.SeriesFIX)),
		op.F("fecha_dato", op.OrNull(op.Day("La fecha del valor en esa base: fecha o, si ese día no tiene valor, la última anterior."))),
		op.F("fecha_dato_prevista", op.Flag("fecha_dato sale del calendario bancario: la serie no llega a ella.")),
		op.F("motivo", op.OrNull(op.OneOf("Por qué fecha_dato es anterior a fecha, o por qué no hay valor. inhabil_bancario: la serie dice N/E.",
			string(catalog.Saturday), string(catalog.Sunday), string(catalog.BankHoliday), beforeSeries, afterSeries, futureDay))),
		op.F("motivo_previsto", op.Flag("inhabil_bancario sale del calendario bancario: la serie no llega a fecha.")),
		op.F("explicacion", op.Text("Qué valor se tomó y por qué.")),
		op.F("tipo_cambio", op.OrNull(rate)),
		op.F("conversion", op.OrNull(conversion)),
		op.Maybe("cobertura", coverage),
	}, []op.Field{op.F("fuente", op.CatalogVersion(series,
		op.F("desde", op.Day("Primer día con valor.")),
		op.F("hasta", op.Day("Último día con valor.")),
		op.F("dias_distintos_de_la_incluida", op.Integer("Días de los que la serie incluida en el programa tiene otro valor; 0 en ella misma.")),
	))})
}
