package company

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
)

// sinCoincidencia is the word of the API for no match in this block alone.
const sinCoincidencia = "SIN_COINCIDENCIA"

// sanctions is the block of sanctioned suppliers. Only a file with RFC answers, and only
// the directory can say that an RFC is not in it.
func sanctions() *jsonschema.Schema {
	event := op.Object(
		op.Maybe("columnas", op.List(op.Text(""), "UPDATED: columnas que cambiaron.")),
		op.F("dependencia", op.OrNull(op.Text(""))),
		op.F("evento", op.OneOf("Compara versiones sucesivas del archivo. De lo que ya estaba en la primera versión que se conserva no hay evento. "+
			"REMOVED: dejó de publicarse; pudo suspenderse por un amparo, revocarse o retirarse, y el archivo no dice por qué.", "ADDED", "UPDATED", "REMOVED")),
		op.F("expediente", op.OrNull(op.Text(""))),
		op.F("fecha", op.Day("Fecha de la versión que lo muestra.")),
		op.F("fin", op.OrNull(op.Day("Fin de la sanción después del evento; en REMOVED, el último que tuvo."))),
		op.Maybe("fin_anterior", op.Day("UPDATED: fin de la sanción antes del evento, si cambió.")),
		op.F("fuente", op.Text("id del archivo.")),
	)
	version := op.Object(
		op.F("consultadas", op.List(sanctionSource(), "La versión de cada archivo en esa fecha.")),
		op.F("estado", op.OneOf("SIN_VERSION_EN_LA_FECHA: no aparece en ningún archivo de ese día y no se conserva el del directorio; no equivale a «no aparece».", match, sinCoincidencia, noVersion)),
		op.F("sanciones", sanctionList("Como las publicaron esas versiones.")),
		op.Maybe("sanciones_omitidas", op.Integer("Cuántas más hay.")),
		op.F("sin_version", op.List(op.Object(
			op.F("id", op.Text("")),
			op.F("primera_version", op.Day("Fecha de la primera versión que se conserva.")),
		), "Archivos de los que no se conserva ninguna versión de ese día.")),
	)
	past := op.Object(op.F("version_en_fecha", version))
	past.Description = "Qué decían los archivos el día de ?en_fecha=: la versión más reciente de cada uno hasta ese día. Qué sanciones de las que hoy se publican regían ese día lo dice vigente, en sanciones."
	s := op.Object(
		op.F("consultadas", op.List(sanctionSource(), "Archivos con RFC en los que se buscó, y en qué versión.")),
		op.Maybe("en_fecha", past),
		op.F("estado", op.OneOf("COINCIDENCIA: el RFC, exacto, está en un archivo que publica RFC; una sanción vencida también es una coincidencia (vea vigente). "+
			"SIN_COINCIDENCIA: se consultó el directorio y el RFC no está. "+
			"SOURCE_UNAVAILABLE: el directorio con RFC no está cargado y el RFC no está en lo demás: no se pudo consultar y no equivale a «no aparece».",
			match, sinCoincidencia, unavailable)),
		op.F("historial_eventos", op.List(event, "En orden de fecha.")),
		op.F("no_cargadas", op.List(op.Text("id"), "Archivos con RFC que no están cargados: de ellos no se dice nada.")),
		op.F("no_consultables", op.List(op.Object(
			op.F("corte", op.OrNull(op.Day("Fecha de corte dentro del archivo oficial."))),
			op.F("id", op.Text("")),
			op.F("motivo", op.OneOf("", "SIN_RFC")),
			op.F("registros_en_version", op.Integer("")),
			op.F("sha256", op.SHA256("Del archivo oficial, como se recibió.")),
			op.F("source_version_id", op.Integer("")),
			op.F("url", op.Text("Dirección oficial.")),
			op.F("obtenida_de", op.Text("De dónde se leyeron en realidad los bytes: una dirección o archivo:NOMBRE.")),
			op.F("publicada_en_reset", op.Moment("Cuándo empezó a responderse desde esta versión.")),
			op.F("descargada", op.Moment("")),
			op.F("ultima_modificacion_servidor", op.OrNull(op.Moment("Lo que dijo el servidor oficial; null si no lo dijo."))),
		), "Archivos cargados que no publican RFC: se conservan y no pueden responder por un RFC. No se compara por nombre.")),
		op.F("notas", op.List(op.Text(""), "Qué hay que saber para leer el bloque. Vacía si no hay nada que decir.")),
		op.F("sanciones", sanctionList("Por archivo y, en cada uno, la que termina más tarde primero; 200 cuando mucho, o las que caben en un registro.")),
		op.Maybe("sanciones_omitidas", op.Integer("Cuántas más hay.")),
	)
	s.Description = "Proveedores, contratistas y particulares sancionados. Solo por RFC exacto y solo en archivos que publican RFC: el directorio de la Secretaría Anticorrupción y Buen Gobierno " +
		"y el Sistema 3 de la Plataforma Digital Nacional, que carga el operador de este servicio. null con ?sancionados=false."
	return s
}

// sanctionSource is source with how many records nobody can ask for.
func sanctionSource() *jsonschema.Schema {
	return op.Object(append([]op.Field{
		op.Maybe("antiguedad_dias", op.Signed("Días de la fecha de orden de la versión al día de la consulta. Ausente con ?en_fecha=.")),
		op.F("corte", op.OrNull(op.Day("Fecha de corte; en estos archivos la indica quien los guardó."))),
		op.Maybe("desactualizada", op.Flag("true si la versión es más antigua de lo que se espera (esperada_cada_dias de /v1/fuentes): las sanciones cambian a diario. Ausente con ?en_fecha=.")),
		op.Maybe("fecha_de_orden", op.Day(orderDate+" Solo con ?en_fecha=.")),
		op.F("id", op.Text("")),
		op.F("registros_en_version", op.Integer("")),
		op.F("registros_sin_rfc", op.Integer("De ellos, los que no traen un RFC por el que se pueda preguntar, como los de extranjeros: de ellos no se dice nada.")),
		op.F("sha256", op.SHA256("Del archivo oficial, como se recibió.")),
	}, installed()...)...)
}

func sanctionList(description string) *jsonschema.Schema {
	return op.List(op.Object(
		op.F("dependencia", op.OrNull(op.Text("Quien sanciona o donde se cometió la falta, según el archivo."))),
		op.F("detalle", op.MapOf(op.Text(""), "Columnas del archivo, como se publicaron; vacías las que no trae. De personas no se reproducen domicilios, teléfonos ni CURP.")),
		op.F("expediente", op.OrNull(op.Text(""))),
		op.F("fin", op.OrNull(op.Day("Último día de la inhabilitación o suspensión. null si no hay o no se puede leer; vea detalle."))),
		op.F("fuente", op.Text("id del archivo, de consultadas.")),
		op.F("inicio", op.OrNull(op.Day("Primer día."))),
		op.F("moneda", op.OrNull(op.Form(`^[A-Z]{3}$`, "null si el archivo no la dice."))),
		op.F("monto", op.OrNull(money("De la multa; null si no hay ninguno legible."))),
		op.F("nombre", op.OrNull(op.Text("El que publica el archivo."))),
		op.F("plazo", op.OrNull(op.Text("Como lo publica el archivo: 1 año, 3 meses."))),
		op.F("tipo", op.OrNull(op.Text("Como lo publica el archivo; null si no lo dice."))),
		op.F("vigente", op.OrNull(op.Flag("Si el día de la consulta (o el de ?en_fecha=) está entre inicio y fin, ambos incluidos, según lo publicado. Un amparo puede suspender una sanción que se publica. null si no se puede decir; vea vigente_motivo."))),
		op.Maybe("vigente_motivo", op.OneOf("Por qué vigente es null: SIN_INHABILITACION (solo multa u otra sanción sin plazo), SIN_FECHA_DE_FIN, FECHA_NO_LEGIBLE, FECHAS_CONTRADICTORIAS (termina antes de empezar); "+
			"o por qué es false sin haber terminado: AUN_NO_INICIA.", "SIN_INHABILITACION", "SIN_FECHA_DE_FIN", "FECHA_NO_LEGIBLE", "FECHAS_CONTRADICTORIAS", "AUN_NO_INICIA")),
	), description)
}
