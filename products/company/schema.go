package company

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
)

// States of a source inside an answer.
const (
	match       = "COINCIDENCIA"
	noMatch     = "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA"
	notLoaded   = "SOURCE_NOT_LOADED"
	unavailable = "SOURCE_UNAVAILABLE"
)

func sourceState() *jsonschema.Schema {
	return op.OneOf("Estado de la fuente. Solo COINCIDENCIA y "+noMatch+" son respuestas de la fuente.",
		match, noMatch, notLoaded, unavailable)
}

// answer is the schema of the whole answer.
func answer() *jsonschema.Schema {
	return op.Titled("VerificacionDeEmpresa", op.Object(
		op.F("verification_id", op.Form(`^COM-[0-9]{8}-[0-9a-f]{8}$`, "Identifica la verificación; con él se vuelve a leer esta misma respuesta.")),
		op.F("service", op.OneOf("", "COMPANY")),
		op.F("advertencia", op.Text("Lo que este resultado no es.")),
		op.F("contratacion_publica", procurement()),
		op.F("proveedores_sancionados", op.OrNull(op.Object(
			op.F("estado", op.OneOf("", unavailable)),
		))),
		op.F("result_code", op.OneOf("COMPANY_OK: se consultó el listado 69-B y se cobra. SOURCE_UNAVAILABLE: no se pudo consultar y no se cobra.",
			"COMPANY_OK", unavailable)),
		op.F("rfc", op.Text("RFC consultado, normalizado.")),
		op.F("sat_69b", list69B("Listado completo del artículo 69-B del Código Fiscal de la Federación.")),
		op.F("sat_69b_bis", list69B("Listado del artículo 69-B Bis del Código Fiscal de la Federación.")),
		op.F("sat_art69", art69()),
		op.F("tipo_persona", op.OneOf("", "moral", "fisica")),
		op.F("consultado", op.Moment("Momento de la respuesta.")),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.F("motor", op.Form(`^COMPANY/[0-9]+$`, "Motor que respondió. Con él, edicion_sha256, rfc, sancionados y el día civil de consultado se vuelve a calcular el registro.")),
		op.F("edicion_sha256", op.Form(`^[0-9a-f]{64}$`, "Conjunto de versiones desde el que se respondió.")),
		op.F("registro_sha256", op.SHA256("Hash del registro canónico que se guardó.")),
		op.Maybe("sandbox", op.Always(true)),
	))
}

func list69B(description string) *jsonschema.Schema {
	situation := op.Object(
		op.Maybe("anotacion", op.Text("Nota que la autoridad escribió junto al nombre.")),
		op.F("detalle", op.MapOf(op.Text(""), "Columnas del listado oficial, como se publicaron.")),
		op.F("nombre", op.Text("")),
		op.F("situacion", op.Known("Como la publicó la autoridad. Hasta hoy son cuatro; una nueva se entrega tal cual.",
			"Definitivo", "Presunto", "Desvirtuado", "Sentencia Favorable")),
	)
	event := op.Object(
		op.Maybe("columnas", op.List(op.Text(""), "UPDATED: columnas que cambiaron.")),
		op.F("evento", op.OneOf("ADDED, UPDATED, REMOVED e INICIAL comparan versiones sucesivas; INICIAL ya estaba en la primera versión que se conserva. "+
			"PUBLICACION_SAT y PUBLICACION_DOF son fechas que da el propio renglón.",
			"ADDED", "UPDATED", "REMOVED", "INICIAL", "PUBLICACION_SAT", "PUBLICACION_DOF")),
		op.F("fecha", op.Day("")),
		op.Maybe("motivo", op.OneOf("REMOVED: la autoridad pudo suprimir el nombre por orden judicial.", "SUPRIMIDO_POSIBLE")),
		op.Maybe("oficio", op.Text("Número y fecha del oficio.")),
		op.F("origen", op.OneOf("De dónde se sabe.", "VERSIONES", "FECHAS_OFICIALES")),
		op.F("situacion", op.Text("Situación después del evento; en REMOVED, la última que tuvo.")),
		op.Maybe("situacion_anterior", op.Text("UPDATED: situación antes del evento.")),
	)
	s := op.Object(
		op.F("estado", sourceState()),
		op.F("fuente", op.OrNull(source())),
		op.F("historial_eventos", op.List(event, "En orden de fecha.")),
		op.F("situaciones", op.List(situation, "Un elemento por procedimiento; el más reciente primero.")),
	)
	s.Description = description
	return s
}

// source is the provenance of one version.
func source() *jsonschema.Schema {
	return op.Object(
		op.F("corte", op.OrNull(op.Day("Fecha de corte dentro del archivo oficial."))),
		op.F("id", op.Text("")),
		op.F("registros_en_version", op.Integer("")),
		op.F("sha256", op.SHA256("Del archivo oficial, como se recibió.")),
		op.F("source_version_id", op.Integer("")),
		op.F("url", op.Text("Dirección oficial.")),
		op.F("obtenida_de", op.Text("De dónde se leyeron en realidad los bytes: una dirección o archivo:NOMBRE.")),
		op.F("publicada_en_reset", op.Moment("Cuándo empezó a responderse desde esta versión.")),
		op.F("descargada", op.Moment("")),
		op.F("ultima_modificacion_servidor", op.OrNull(op.Moment("Lo que dijo el servidor oficial; null si no lo dijo."))),
	)
}

// art69 has empty lists until the files of article 69 are read.
func art69() *jsonschema.Schema {
	s := op.Object(
		op.F("advertencia", op.Text("")),
		op.F("estado", op.OneOf("", notLoaded)),
		op.F("historial_eventos", op.Empty("")),
		op.F("listas", op.Empty("")),
		op.F("listas_consultadas", op.Empty("")),
	)
	s.Description = "Listas del artículo 69 del Código Fiscal de la Federación."
	return s
}

func procurement() *jsonschema.Schema {
	s := op.Object(
		op.F("contratos", op.OrNull(op.Integer("null mientras no se pueda consultar; null no es cero."))),
		op.F("estado", op.OneOf("", notLoaded)),
		op.F("por_anio", op.Empty("")),
	)
	s.Description = "Contratación pública federal."
	return s
}
