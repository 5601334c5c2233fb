package company

import (
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
	"cotejo/query"
)

// States of a source inside an answer.
const (
	match       = "COINCIDENCIA"
	noMatch     = "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA"
	notLoaded   = "SOURCE_NOT_LOADED"
	unavailable = "SOURCE_UNAVAILABLE"
	noVersion   = "SIN_VERSION_EN_LA_FECHA"
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
		op.Maybe("en_fecha", op.Day("Día pasado por el que se preguntó. Solo con ?en_fecha=.")),
		op.F("proveedores_sancionados", op.OrNull(sanctions())),
		op.F("result_code", op.OneOf("COMPANY_OK: se consultó el listado 69-B y se cobra. SOURCE_UNAVAILABLE: no se pudo consultar y no se cobra.",
			"COMPANY_OK", unavailable)),
		op.F("rfc", op.Text("RFC consultado, normalizado.")),
		op.F("sat_69b", list69B("Listado completo del artículo 69-B del Código Fiscal de la Federación.")),
		op.F("sat_69b_bis", list69B("Listado del artículo 69-B Bis del Código Fiscal de la Federación.")),
		op.F("sat_art69", art69()),
		op.F("tipo_persona", op.OneOf("", "moral", "fisica")),
		op.Maybe("conocida", served()),
		op.F("consultado", op.Moment("Momento de la respuesta.")),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.F("motor", op.Form(`^COMPANY/[0-9]+$`, "Motor que respondió. Con él, edicion_sha256, rfc, sancionados y el día (en_fecha o, sin ella, el día civil de consultado) se vuelve a calcular el registro.")),
		op.F("edicion_sha256", op.Form(`^[0-9a-f]{64}$`, "Conjunto de versiones desde el que se respondió.")),
		op.F("registro_sha256", op.SHA256("Hash del registro canónico que se guardó.")),
		op.Maybe("sandbox", op.Always(true)),
	))
}

func list69B(description string) *jsonschema.Schema {
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
		op.Maybe("en_fecha", inPast()),
		op.F("estado", sourceState()),
		op.F("fuente", op.OrNull(source())),
		op.F("historial_eventos", op.List(event, "En orden de fecha.")),
		op.F("situaciones", situations("Un elemento por procedimiento; el más reciente primero.")),
	)
	s.Description = description
	return s
}

func situations(description string) *jsonschema.Schema {
	return op.List(op.Object(
		op.Maybe("anotacion", op.Text("Nota que la autoridad escribió junto al nombre.")),
		op.F("detalle", op.MapOf(op.Text(""), "Columnas del listado oficial, como se publicaron.")),
		op.F("nombre", op.Text("")),
		op.F("situacion", situation()),
	), description)
}

func situation() *jsonschema.Schema {
	return op.Known("Como la publicó la autoridad. Hasta hoy son cuatro; una nueva se entrega tal cual.",
		"Definitivo", "Presunto", "Desvirtuado", "Sentencia Favorable")
}

// inPast is what a list says of the day of ?en_fecha=. That a version of that
// day exists is never supposed.
func inPast() *jsonschema.Schema {
	version := op.Object(
		op.F("estado", op.OneOf("SIN_VERSION_EN_LA_FECHA: el día es anterior a la primera versión que se conserva; no equivale a «no aparece».", match, noMatch, noVersion)),
		op.F("fuente", op.OrNull(source())),
		op.F("primera_version", op.Day("Fecha de la primera versión que se conserva.")),
		op.F("situaciones", situations("Como las publicó esa versión.")),
	)
	version.Description = "Qué dice la versión más reciente con fecha_de_orden hasta ese día: el listado de la autoridad a esa fecha. " +
		"No dice que ese día ya se pudiera descargar (los listados se publican semanas después de su corte) ni qué estaba vigente."
	effect := op.Object(
		op.F("fecha", op.OrNull(op.Day("Día oficial en que se apoya: publicación en la página del SAT o, si el renglón solo da esa, en el DOF."))),
		op.Maybe("motivo", op.OneOf("Por qué situacion es null. SIN_FECHAS_LEGIBLES: el renglón no da ninguna. ETAPA_SIN_FECHA: una etapa que pudo haber empezado para ese día no tiene fecha. "+
			"FECHAS_CONTRA_LA_SITUACION: la última etapa por fecha no es la situación publicada, como cuando una sentencia se revocó. "+
			"YA_NO_APARECE: el renglón salió del listado después de ese día y había empezado antes (vea historial_eventos).",
			"SIN_FECHAS_LEGIBLES", "ETAPA_SIN_FECHA", "FECHAS_CONTRA_LA_SITUACION", "YA_NO_APARECE")),
		op.F("nombre", op.Text("")),
		op.Maybe("oficio", op.Text("Número y fecha del oficio de esa etapa.")),
		op.F("origen", op.OrNull(op.OneOf("", "PUBLICACION_SAT", "PUBLICACION_DOF"))),
		op.F("situacion", op.OrNull(situation())),
		op.F("situacion_en_la_version", op.OrNull(op.Text("La que publica hoy el renglón; null si ya no aparece."))),
	)
	effective := op.Object(
		op.F("estado", op.OneOf("CON_SITUACION: al menos un procedimiento estaba en una etapa ese día. SIN_SITUACION: no hay renglones, o ninguno había empezado. "+
			"INDETERMINADA: hay renglones, o los había, y no permiten decirlo.", "CON_SITUACION", "SIN_SITUACION", "INDETERMINADA")),
		op.F("fuente", source()),
		op.F("situaciones", op.List(effect, "Un elemento por procedimiento que había empezado; el cambio más reciente primero, y al final los que no se pueden decir.")),
	)
	effective.Description = "Qué situación estaba vigente ese día según las fechas oficiales de los renglones de la versión más reciente: cada etapa desde su publicación hasta la siguiente. " +
		"Las fechas no muestran un retroceso que no dejó fecha (una sentencia favorable que se revocó y se quitó del renglón), ni qué fue de un renglón que ya no está: " +
		"para eso está version_en_fecha."
	s := op.Object(
		op.F("efectiva", effective),
		op.F("version_en_fecha", version),
	)
	s.Description = "Qué se puede afirmar del día de ?en_fecha=. Ausente sin ese parámetro o si la fuente no está cargada."
	return s
}

// served is what the service answered from at the end of the day of ?en_fecha=.
func served() *jsonschema.Schema {
	one := func(list string) *jsonschema.Schema {
		s := op.OrNull(op.Object(
			op.F("edicion", op.Integer("Número de la edición en esta instalación.")),
			op.F("edicion_sha256", op.SHA256("")),
			op.F("estado", op.OneOf("", match, noMatch)),
			op.F("fuente", op.Object(
				op.F("corte", op.OrNull(op.Day("Fecha de corte dentro del archivo oficial."))),
				op.F("descargada", op.Moment("")),
				op.F("fecha_de_orden", op.Day(orderDate)),
				op.F("id", op.Text("")),
				op.F("obtenida_de", op.Text("")),
				op.F("publicada_en_reset", op.Moment("")),
				op.F("registros_en_version", op.Integer("")),
				op.F("sha256", op.SHA256("")),
				op.F("source_version_id", op.Integer("")),
				op.F("ultima_modificacion_servidor", op.OrNull(op.Moment(""))),
				op.F("url", op.Text("")),
			)),
			op.F("publicada", op.Moment("Cuándo se publicó esa edición.")),
			op.F("situaciones", situations("Como las entregaba el servicio.")),
			op.Maybe("situaciones_omitidas", op.Integer("Cuántas más había: las que no caben en el acta.")),
		))
		s.Description = list + " null: el servicio todavía no respondía desde esta fuente."
		return s
	}
	s := op.Object(
		op.F("sat_69b", one("Artículo 69-B.")),
		op.F("sat_69b_bis", one("Artículo 69-B Bis.")),
	)
	s.Description = "Desde qué edición y versión respondía este servicio al final del día de ?en_fecha= (Ciudad de México), y qué decía de este RFC; si el día es hoy, en el momento de la respuesta. " +
		"Depende de la instalación: está en el acta, fuera del registro y de registro_sha256. Solo con ?en_fecha=."
	return s
}

const orderDate = "Día por el que se ordenan las versiones: el corte o, si el archivo no lo dice, el de publicación o descarga."

// source is the provenance of one version.
func source() *jsonschema.Schema {
	return op.Object(append([]op.Field{
		op.Maybe("antiguedad_dias", op.Signed("Días de la fecha de orden de la versión (corte o, si el archivo no lo dice, publicación o descarga) al día de la consulta. Ausente con ?en_fecha=.")),
		op.F("corte", op.OrNull(op.Day("Fecha de corte dentro del archivo oficial."))),
		op.Maybe("desactualizada", op.Flag("true si la versión es más antigua de lo que el ritmo de la autoridad deja esperar ("+strconv.Itoa(query.Sat69B.MaxAge)+" días en 69-B, "+strconv.Itoa(query.Sat69BBis.MaxAge)+" en 69-B Bis, "+strconv.Itoa(query.Art69Lists[0].Schema.MaxAge)+" en FIRMES, "+strconv.Itoa(query.Contratos[len(query.Contratos)-1].MaxAge)+" en los contratos del año en curso; las demás, en esperada_cada_dias de /v1/fuentes): hay o debería haber una más nueva. "+
			"Lo que dice estado sigue siendo cierto de esta versión. Ausente con ?en_fecha=.")),
		op.Maybe("fecha_de_orden", op.Day(orderDate+" Solo con ?en_fecha=.")),
		op.F("id", op.Text("")),
		op.F("registros_en_version", op.Integer("")),
		op.F("sha256", op.SHA256("Del archivo oficial, como se recibió.")),
	}, installed()...)...)
}

// installed is what the acta adds to the provenance of a version: what only this
// installation knows of it.
func installed() []op.Field {
	return []op.Field{
		op.F("source_version_id", op.Integer("")),
		op.F("url", op.Text("Dirección oficial.")),
		op.F("obtenida_de", op.Text("De dónde se leyeron en realidad los bytes: una dirección o archivo:NOMBRE.")),
		op.F("publicada_en_reset", op.OrNull(op.Moment("Cuándo empezó a responderse desde esta versión; null en version_en_fecha si no es la versión más reciente (vea conocida)."))),
		op.F("descargada", op.Moment("")),
		op.F("ultima_modificacion_servidor", op.OrNull(op.Moment("Lo que dijo el servidor oficial; null si no lo dijo."))),
	}
}

// art69 is the block of the lists under article 69. Only lists that are loaded are
// consulted, and the others are named: they are never «no match».
func art69() *jsonschema.Schema {
	version := op.Object(
		op.F("estado", op.OneOf("SIN_VERSION_EN_LA_FECHA: el día es anterior a la primera versión de todas; no equivale a «no aparece».", match, noMatch, noVersion)),
		op.F("listas", art69Lists("Como las publicaron esas versiones.")),
		op.F("listas_consultadas", op.List(source(), "La versión de cada lista en esa fecha.")),
		op.F("listas_sin_version", op.List(op.Object(
			op.F("id", op.Text("")),
			op.F("lista", art69Code()),
			op.F("primera_version", op.Day("Fecha de la primera versión que se conserva.")),
		), "Listas de las que no se conserva ninguna versión de ese día: no se consultaron.")),
	)
	past := op.Object(op.F("version_en_fecha", version))
	past.Description = "Qué decían las listas el día de ?en_fecha=: la versión más reciente de cada una hasta ese día. " +
		"No hay efectiva: los renglones dicen cuándo se publicaron por primera vez y no hasta cuándo. Ausente sin ese parámetro o si no hay ninguna lista cargada."
	event := op.Object(
		op.F("en_lista", op.Flag("Si el RFC seguía en esa lista después del evento. REMOVED con true: salió un registro y quedan otros, o entró otro en su lugar (ADDED de la misma fecha), como cuando la autoridad corrige un dato.")),
		op.F("evento", op.OneOf("Compara versiones sucesivas de la lista. De lo que ya estaba en la primera versión que se conserva no hay evento.", "ADDED", "REMOVED")),
		op.F("fecha", op.Day("Fecha de la versión que lo muestra.")),
		op.F("lista", art69Code()),
		op.F("registros", op.Integer("Cuántos registros entraron o salieron.")),
	)
	s := op.Object(
		op.F("advertencia", op.Text("El estado pudo cambiar después de la fecha de la versión; y, si faltan listas, que no se consultaron.")),
		op.Maybe("en_fecha", past),
		op.F("estado", sourceState()),
		op.F("historial_eventos", op.List(event, "En orden de fecha.")),
		op.F("listas", art69Lists("Las listas en que aparece, un elemento por lista.")),
		op.F("listas_consultadas", op.List(source(), "La versión de cada lista que se consultó. SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA vale para estas y para ninguna otra.")),
		op.F("listas_no_cargadas", op.List(op.Object(
			op.F("id", op.Text("")),
			op.F("lista", art69Code()),
		), "Listas que no están cargadas y no se consultaron: de ellas no se dice nada.")),
	)
	s.Description = "Listas del artículo 69 del Código Fiscal de la Federación y las que la autoridad publica junto a ellas. Las personas físicas aparecen solo por RFC exacto. " +
		"Estar en CANCELADOS no extingue la deuda (artículo 146-A, último párrafo)."
	return s
}

func art69Lists(description string) *jsonschema.Schema {
	return op.List(op.Object(
		op.F("etiqueta_oficial", op.Text("Texto con que la autoridad enlaza la lista.")),
		op.F("etiqueta_verificada", op.Flag("false: el texto es nuestro; no se ha visto el de la autoridad.")),
		op.F("fundamento", op.Text("Fundamento legal de la publicación.")),
		op.F("fundamento_verificado", op.Flag("false: el archivo oficial no lo dice y no lo ha revisado un abogado; no lo cite sin comprobarlo.")),
		op.F("lista", art69Code()),
		op.F("nombre", op.Text("El del registro más reciente.")),
		op.F("registros_oficiales", op.List(op.MapOf(op.Text(""), "Columnas del archivo oficial, como se publicaron."), "El más reciente primero; 200 cuando mucho.")),
		op.Maybe("registros_omitidos", op.Integer("Cuántos más hay.")),
		op.F("tipo_persona", op.OneOf("", query.Moral, query.Fisica)),
		op.F("tipo_persona_derivado", op.Flag("true: la lista no lo dice y se sigue de la longitud del RFC (12 moral, 13 física).")),
	), description)
}

func art69Code() *jsonschema.Schema {
	var codes []string
	for _, l := range query.Art69Lists {
		codes = append(codes, l.Code)
	}
	return op.OneOf("", codes...)
}
