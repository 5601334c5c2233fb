package identifiers

import (
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	op "cotejo/operation"
)

// answer is the schema of an answer with its own facts.
func answer(title string, facts ...op.Field) *jsonschema.Schema {
	return answerFrom(title, nil, facts...)
}

// answerFrom is answer with what follows advertencia.
func answerFrom(title string, sources []op.Field, facts ...op.Field) *jsonschema.Schema {
	digit := op.Object(
		op.F("encontrado", op.Text("El que trae.")),
		op.F("esperado", op.Text("El que da el algoritmo.")),
		op.F("coincide", op.Flag("")),
	)
	digit.Description = "El dígito verificador que trae y el que da su algoritmo."
	fields := []op.Field{
		op.F("service", op.OneOf("", service)),
		op.F("valido", op.Flag("true si no incumple ninguna regla. No significa que exista.")),
	}
	fields = append(fields, facts...)
	fields = append(fields,
		op.F("digito_verificador", digit),
		op.F("regla", op.OrNull(rule("La primera regla que no se cumple; null si es válido.",
			op.OneOf("", checks.FaultDigit, checks.FaultLength, checks.FaultRepeat)))),
		op.F("observaciones", op.List(rule("", op.OneOf("", noteGeneric, noteDigit, noteWord, noteFuture, noteZeros, noteNoBank, noteNoSPEI, noteChanged, noteNoPlaza)),
			"Lo que conviene saber y no lo invalida.")),
		op.F("normalizaciones", op.List(op.OneOf("", (checks.Blanks|checks.Hyphens|checks.Upper|checks.Composed).Names()...),
			"Lo que se hizo al texto para llegar a su forma normal. Vacía si ya la tenía.")),
		op.F("advertencia", op.Text("Lo que este resultado no es.")),
	)
	fields = append(append(fields, sources...),
		op.F("result_code", op.OneOf("", code)),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.Maybe("sandbox", op.Always(true)),
	)
	return op.Titled(title, op.Object(fields...))
}

func rule(description string, codes *jsonschema.Schema) *jsonschema.Schema {
	s := op.Object(op.F("codigo", codes), op.F("mensaje", op.Text("Qué pasa y qué hacer.")))
	s.Description = description
	return s
}

func clabeAnswer() *jsonschema.Schema {
	bank := op.Object(op.CatalogBank()...)
	bank.Description = "Como en /v1/catalogo/banco. null: la clave no está en la lista, lo que no invalida la CLABE."
	plaza := op.Object(op.F("poblaciones", op.List(op.Object(
		op.F("nombre", op.Text("")),
		op.F("estado", op.OrNull(op.Form(`^MX-[A-Z]{3}$`, "ISO 3166-2; null donde la recopilación no lo dice."))),
	), "Las que comparten la clave.")))
	plaza.Description = "null: la clave no está en la recopilación, que no es oficial; no invalida la CLABE."
	return answerFrom("ValidacionDeCLABE", []op.Field{op.F("fuentes", op.List(op.CatalogVersion("lista"), "De dónde son los nombres: la lista de bancos, la de participantes que se cargó si hay una, y la de plazas."))},
		op.F("clabe", op.Form(`^[0-9]{18}$`, "Normalizada.")),
		op.F("clave_banco", op.Form(`^[0-9]{3}$`, "Clave del banco: los dígitos 1 a 3.")),
		op.F("banco", op.OrNull(bank)),
		op.F("clave_plaza", op.Form(`^[0-9]{3}$`, "Clave de la plaza: los dígitos 4 a 6.")),
		op.F("plaza", op.OrNull(plaza)),
		op.F("cuenta", op.Form(`^[0-9]{11}$`, "Cuenta en el banco: los dígitos 7 a 17.")),
	)
}

func rfcAnswer() *jsonschema.Schema {
	return answer("ValidacionDeRFC",
		op.F("rfc", op.Text("Normalizado.")),
		op.F("generico", op.Flag("true en XAXX010101000 y XEXX010101000, que no identifican a nadie; entonces faltan tipo_persona, fechas_posibles y homoclave.")),
		op.Maybe("tipo_persona", op.OneOf("Por su longitud: 12 caracteres moral, 13 fisica.", "moral", "fisica")),
		op.Maybe("fechas_posibles", op.List(op.Day(""), "Días de constitución o nacimiento que pueden ser: el RFC no dice el siglo. Sin los que todavía no llegan.")),
		op.Maybe("homoclave", op.Form(`^[A-Z0-9]{2}$`, "Los dos caracteres que distinguen a homónimos.")),
	)
}

func curpAnswer() *jsonschema.Schema {
	return answer("ValidacionDeCURP",
		op.F("curp", op.Form(`^[A-Z0-9]{18}$`, "Normalizada.")),
		op.F("fecha_nacimiento", op.Day("")),
		op.F("sexo", op.OneOf("H hombre, M mujer, X no binario.", "H", "M", "X")),
		op.F("clave_entidad", op.Form(`^[A-Z]{2}$`, "Entidad de nacimiento; NE, en el extranjero.")),
		op.F("entidad", op.Text("Nombre de la entidad.")),
		op.F("homoclave", op.Form(`^[A-Z0-9]$`, "El carácter 17: un dígito si nació antes de 2000, una letra si después.")),
	)
}

func nssAnswer() *jsonschema.Schema {
	return answer("ValidacionDeNSS",
		op.F("nss", op.Form(`^[0-9]{11}$`, "Normalizado.")),
		op.F("subdelegacion", op.Form(`^[0-9]{2}$`, "Clave de la subdelegación que lo asignó.")),
		op.F("anio_alta", op.Form(`^[0-9]{2}$`, "Dos últimas cifras del año de alta; el número no dice el siglo.")),
		op.F("anio_nacimiento", op.Form(`^[0-9]{2}$`, "Dos últimas cifras del año de nacimiento; el número no dice el siglo.")),
		op.F("folio", op.Form(`^[0-9]{4}$`, "Número consecutivo.")),
	)
}

func cardAnswer() *jsonschema.Schema {
	return answer("ValidacionDeTarjeta",
		op.F("bin", op.Form(`^[0-9]{6}$`, "Los primeros seis dígitos.")),
		op.Maybe("bin8", op.Form(`^[0-9]{8}$`, "Los primeros ocho, que identifican al emisor en números de 16 dígitos o más.")),
		op.F("ultimos4", op.Form(`^[0-9]{4}$`, "")),
		op.F("marca", op.Known("Por sus primeros dígitos; "+checks.UnknownBrand+" si ninguna marca conocida los usa.",
			"visa", "mastercard", "american-express", checks.UnknownBrand)),
		op.F("longitud", op.Integer("Cuántos dígitos tiene.")),
	)
}
