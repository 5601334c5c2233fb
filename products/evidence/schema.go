package evidence

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
)

func totalsFields() []op.Field {
	return []op.Field{
		op.F("consultas", op.Integer("Respuestas, cobradas o no. Una repetida con la misma Idempotency-Key cuenta una vez.")),
		op.F("cobradas", op.Integer("De ellas, las que se pagaron, con saldo o con un uso.")),
		op.F("monto", op.Money("Saldo de paquete que pagaron, IVA incluido.")),
		op.F("usos_individuales", op.Integer("Usos individuales que pagaron.")),
	}
}

func usageSchema() *jsonschema.Schema {
	line := op.Object(
		op.F("verification_id", op.OrNull(op.Text("null: no deja registro."))),
		op.F("momento", op.Moment("")),
		op.F("servicio", op.Text("")),
		op.F("result_code", op.OrNull(op.Text("null: no se guarda el de lo que no deja registro."))),
		op.F("monto", op.Money("Saldo de paquete cobrado; 0.00 si no se cobró o lo pagó un uso.")),
		op.F("uso_individual", op.Flag("Lo pagó un uso individual.")),
		op.F("movimiento", op.OrNull(op.Integer("null: no se cobró."))),
		op.F("constancia", op.OrNull(op.Text("Folio de su constancia, si tiene."))),
	)
	return op.Titled("Uso", op.Object(
		op.F("desde", op.Day("")),
		op.F("hasta", op.Day("Incluido.")),
		op.F("servicios", op.List(op.Object(append([]op.Field{op.F("servicio", op.Text(""))}, totalsFields()...)...), "Los que se usaron, por código.")),
		op.F("total", op.Object(totalsFields()...)),
		op.F("saldo", op.Money("De paquete, de toda la cuenta, en este momento.")),
		op.F("usos", op.List(op.Object(
			op.F("servicio", op.Text("")),
			op.F("disponibles", op.Integer("")),
			op.F("primer_vencimiento", op.Moment("Del lote que se consume primero.")),
		), "Usos individuales de toda la cuenta que se pueden gastar en este momento.")),
		op.Maybe("detalle", op.List(line, "Con detalle=true.")),
		op.Maybe("siguiente", op.OrNull(op.Text("cursor de la página siguiente; null: no hay más. Con detalle=true."))),
		op.Maybe("sandbox", op.Always(true)),
	))
}

func headSchema(description string) *jsonschema.Schema {
	s := op.Object(
		op.F("grupo", op.Integer("")),
		op.F("lote", op.Integer("")),
		op.F("cabeza", op.SHA256("Hash de todos los lotes hasta ese.")),
	)
	s.Description = description
	return s
}

func movementFields() []op.Field {
	return []op.Field{
		op.F("movimiento", op.Integer("Número dentro de la cuenta, sin huecos.")),
		op.F("momento", op.Moment("")),
		op.F("tipo", op.OneOf("cargo: de una verificación. uso: de una respuesta que no deja registro. lote: de verificaciones seguidas de un lote, todas al mismo precio. "+
			"retencion y liberacion: apartan y devuelven, sin mover nada.", "abono", "cargo", "uso", "lote", "vencimiento", "retencion", "liberacion", "desconocido")),
		op.F("servicio", op.OrNull(op.Text("null: saldo de paquete."))),
		op.F("monto", op.Money("Con signo.")),
		op.F("usos_individuales", op.Signed("Con signo.")),
		op.F("lotes", op.List(op.Object(
			op.F("lote", op.Integer("Número del movimiento que lo abonó.")),
			op.F("monto", op.Money("")),
			op.F("usos_individuales", op.Integer("")),
		), "De qué abonos salió, o cuál entró.")),
		op.F("suma", op.Money("De todos los movimientos de la cuenta hasta este.")),
		op.Maybe("verification_id", op.Text("De un cargo.")),
		op.Maybe("entrada_hmac", op.OrNull(op.SHA256("De un uso: marca de lo consultado; null: no se guarda."))),
		op.Maybe("tablas", op.Text("De un uso: tablas en que se basó.")),
		op.Maybe("precio_unitario", op.Money("De un abono de usos, y de un lote: de cada verificación; 0.00 si las pagaron usos.")),
		op.Maybe("lote_id", op.Text("De un lote.")),
		op.Maybe("desde", op.Integer("De un lote: posición de la primera verificación.")),
		op.Maybe("hasta", op.Integer("De un lote: posición de la última.")),
		op.Maybe("concepto", op.Text("De un abono.")),
	}
}

func tallySchema(description string) *jsonschema.Schema {
	s := op.Object(op.F("movimientos", op.Integer("")), op.F("monto", op.Money("Con signo.")), op.F("usos_individuales", op.Signed("Con signo.")))
	s.Description = description
	return s
}

func dossierSchema() *jsonschema.Schema {
	object := func(description string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Description: description}
	}
	verification := op.Object(
		op.F("verification_id", op.Text("")),
		op.F("service", op.Text("")),
		op.F("result_code", op.Text("")),
		op.F("respuesta", op.AnyRecord),
		op.F("respuesta_sha256", op.SHA256("De los bytes de respuesta, tal como están aquí y como se enviaron.")),
		op.F("registro", object("JSON canónico: lo que se puede volver a calcular.")),
		op.F("registro_sha256", op.SHA256("")),
		op.F("acta", object("JSON canónico: lo que ocurrió al responder.")),
		op.F("acta_sha256", op.SHA256("")),
		op.F("cargo", op.OrNull(op.Object(movementFields()...))),
		op.Maybe("posicion", op.Integer("En su lote, si se pidió con otras.")),
		op.Maybe("importe", op.Money("Lo que costó, si la pagó el cargo de un lote junto con otras; 0.00: un uso.")),
	)
	return op.Titled("Expediente", op.Object(
		op.F("expediente_id", op.Form(`^EXP-[0-9]{8}-[0-9a-f]{8}$`, "")),
		op.F("emitido", op.Moment("")),
		op.F("formato", op.Integer("Generación de esta forma.")),
		op.F("engine_version", op.Text("")),
		op.F("organizacion", op.Object(op.F("id", op.Text("")), op.F("nombre", op.Text("El de la organización en este servicio.")))),
		op.Maybe("sandbox", op.Always(true)),
		op.F("periodo", op.Object(op.F("desde", op.Day("")), op.F("hasta", op.Day("Incluido.")))),
		op.F("cadena", headSchema("Dónde iba la cadena de hashes del grupo de la cuenta: cubre todo lo que está aquí.")),
		op.F("ancla", op.OrNull(headSchema("Lo último de ella que ya se había guardado fuera de la base; null: no hay ancla."))),
		op.F("cuenta", op.OrNull(op.Object(
			op.F("id", op.Text("")),
			op.F("movimiento_antes", op.Integer("Último antes del periodo; 0: ninguno.")),
			op.F("suma_antes", op.Money("De todos los movimientos de la cuenta hasta él.")),
			op.F("movimiento_despues", op.Integer("Último del periodo.")),
			op.F("suma_despues", op.Money("")),
		))),
		op.F("verificaciones", op.List(verification, "Por día, prefijo y orden en que se dieron.")),
		op.F("movimientos", op.List(op.Object(movementFields()...), "Los de la organización y los vencimientos de la cuenta, por número.")),
		op.F("constancias", op.Empty("Todavía no se emiten.")),
		op.F("versiones", op.List(op.Object(
			op.F("source_version_id", op.Integer("")),
			op.F("source", op.Text("")),
			op.F("sha256", op.SHA256("Del archivo oficial.")),
			op.F("url", op.Text("")),
			op.F("obtenida_de", op.Text("")),
			op.F("descargada", op.Moment("")),
			op.F("publicada_en_reset", op.OrNull(op.Moment(""))),
			op.F("ultima_modificacion_servidor", op.OrNull(op.Moment(""))),
			op.F("archivo_oficial", op.Text("Ruta de la que se descarga.")),
		), "Las que se consultaron, por número.")),
		op.F("ediciones", op.List(op.Object(op.F("edicion_sha256", op.SHA256("")), op.F("manifiesto", op.Text("Ruta."))), "")),
		op.F("expedientes_emitidos", op.List(op.Object(
			op.F("expediente_id", op.Text("")),
			op.F("emitido", op.Moment("")),
			op.F("desde", op.Day("")),
			op.F("hasta", op.Day("")),
			op.F("formato", op.OneOf("", "json", "zip")),
			op.F("contenido_sha256", op.OrNull(op.SHA256("null: no se terminó de escribir."))),
		), "Todos los que se empezaron antes que este.")),
		op.F("resumen", op.Object(
			op.F("verificaciones", op.Object(totalsFields()...)),
			op.F("servicios", op.List(op.Object(append([]op.Field{op.F("servicio", op.Text(""))}, totalsFields()...)...), "")),
			op.F("movimientos", op.Object(
				op.F("propios", tallySchema("De la organización: los de movimientos, sin los vencimientos.")),
				op.F("de_la_cuenta", tallySchema("Vencimientos.")),
				op.F("otras_entidades", tallySchema("De las demás entidades de la cuenta; sus detalles no se muestran.")),
			)),
		)),
		op.F("contenido_sha256", op.SHA256("De todos los bytes que están antes de este miembro, sin la coma que lo precede.")),
	))
}

func editionSchema() *jsonschema.Schema {
	day := op.Form(`^([0-9]{4}-[0-9]{2}-[0-9]{2})?$`, "AAAA-MM-DD; vacío: no se conoce.")
	return op.Titled("Edicion", op.Object(
		op.F("edicion", op.Integer("Número; 0: la edición sin fuentes.")),
		op.F("edicion_sha256", op.SHA256("")),
		op.F("fuentes", op.List(op.Object(
			op.F("corte", day),
			op.F("fecha_de_orden", day),
			op.F("filas_digest", op.SHA256("")),
			op.F("historia", op.List(op.Integer(""), "source_version_id de las versiones de la historia, en orden.")),
			op.F("historia_archivo", op.Object(op.F("bytes", op.Integer("")), op.F("ruta", op.Text("")), op.F("sha256", op.SHA256("")))),
			op.F("historia_digest", op.SHA256("")),
			op.F("lector", op.Integer("")),
			op.F("publicada_en_reset", op.Moment("")),
			op.F("sha256", op.SHA256("Del archivo oficial.")),
			op.F("source", op.Text("")),
			op.F("source_version_id", op.Integer("")),
		), "Por source.")),
		op.F("manifiesto_sha256", op.SHA256("Del JSON canónico sin este miembro.")),
		op.F("publicada", op.Text("RFC 3339; vacío en la edición sin fuentes.")),
	))
}
