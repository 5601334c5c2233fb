package operation

import "github.com/google/jsonschema-go/jsonschema"

// Schemas of lots. Those of the answers are strict, as all are.

// lotID is the id of a lot.
func lotID() *jsonschema.Schema {
	return Form(`^LOT-[0-9]{8}-[0-9a-f]{8}$`, "Identifica el lote; con él se lee su avance y, hasta 7 días después de que termine, sus resultados.")
}

func tiersSchema(description string) *jsonschema.Schema {
	return List(Object(
		F("desde", Integer("Primera posición que el saldo paga a este precio.")),
		F("hasta", Integer("Última.")),
		F("consultas", Integer("")),
		F("precio_unitario", Money("")),
		F("importe", Money("consultas por precio_unitario.")),
	), description)
}

const tiersDescription = "Lo que paga el saldo, por escalón. La posición de una consulta es su lugar entre los elementos válidos y distintos de esta lista; " +
	"los usos individuales pagan las primeras posiciones, que también cuentan para el escalón. Vacío si nada se cobra."

// output describes an answer in JSON.
func (l *Lot) output(title string) *jsonschema.Schema {
	line := []Field{
		F("linea", Integer("Lugar en la lista JSON, o línea del archivo, desde 1.")),
		F(l.Entry.Name, Text("Normalizado.")),
		F("verification_id", Text("Con él se lee la respuesta entera.")),
		F("result_code", Text("")),
	}
	for _, c := range l.Columns {
		line = append(line, F(c.Name, c.Schema))
	}
	line = append(line, F("registro_sha256", SHA256("Hash del registro canónico que se guardó.")))
	full := any(l.Full)
	item := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{Object(line...)}}
	if l.Full.Title != "" {
		item.AnyOf = append(item.AnyOf, &jsonschema.Schema{Ref: "#/components/schemas/" + l.Full.Title})
	} else if s, ok := full.(*jsonschema.Schema); ok {
		item.AnyOf = append(item.AnyOf, s)
	}
	return Titled(title, Object(
		F("lote_id", lotID()),
		F("service", Text("")),
		F("estado", OneOf("TERMINADO: están todos los resultados. DETENIDO: solo los que se alcanzaron a hacer.", lotDone, lotStopped)),
		Maybe("motivo", Text("DETENIDO: por qué.")),
		F("consultado", Moment("Momento en que se recibió la lista: el de todas sus respuestas.")),
		F("edicion_sha256", SHA256("Conjunto de versiones desde el que se respondió toda la lista.")),
		F("motor", Text("Motor que respondió.")),
		F("recibidos", Integer("Elementos de la lista.")),
		F("consultados", Integer("Válidos y distintos que se consultaron.")),
		F("costo", Money("Pesos de saldo cobrados por toda la lista, IVA incluido.")),
		F("usos_individuales", Integer("Usos que pagaron las primeras posiciones.")),
		F("escalones", tiersSchema(tiersDescription)),
		F("duplicados", List(Object(
			F("linea", Integer("")), F(l.Entry.Name, Text("")), F("primera_linea", Integer("La que se consultó.")),
		), "Elementos que, normalizados, ya habían aparecido: no se consultan ni se cobran otra vez.")),
		F("invalidos", List(Object(
			F("linea", Integer("")), F("valor", Text("Como se recibió, hasta 40 caracteres.")), F("type", Text("Código de validación.")), F("msg", Text("Por qué, y qué hacer.")),
		), "Elementos que no se consultan ni se cobran.")),
		Maybe("sandbox", Always(true)),
		F("resultados", List(item, "En el orden de la lista: con detalle=completo, la respuesta entera; con detalle=resumen, un renglón.")),
	))
}

// LotState describes what is told of an order beside its results.
func LotState() *jsonschema.Schema {
	return Titled("Lote", Object(
		F("lote_id", lotID()),
		F("estado", OneOf("EN_ESPERA: otros lotes van antes. EN_CURSO. TERMINADO. DETENIDO: no seguirá; lo hecho queda cobrado y lo demás no.", lotWaiting, lotRunning, lotDone, lotStopped)),
		Maybe("motivo", Text("DETENIDO: por qué, y qué hacer.")),
		F("avance", Object(F("hechas", Integer("Consultas que ya están guardadas.")), F("total", Integer("")))),
		F("creado", Moment("")),
		F("terminado", OrNull(Moment(""))),
		F("vence", OrNull(Moment("Hasta cuándo se pueden leer los resultados del lote; cada verificación se puede leer también después."))),
		F("costo", Money("De toda la lista; de un lote detenido, de lo que se hizo.")),
		F("usos_individuales", Integer("")),
		F("resultados_url", Text("")),
		Maybe("sandbox", Always(true)),
	))
}

// lotQuoteSchema describes the quote of a list.
func lotQuoteSchema() *jsonschema.Schema {
	return Titled("CotizacionDeLote", Object(
		F("simulacion", Always(true)),
		F("servicio", Text("Código de precio.")),
		F("recibidos", Integer("Elementos de la lista.")),
		F("duplicados", Integer("")),
		F("invalidos", Integer("")),
		F("consultas", Integer("Válidos y distintos: los que se cobrarían.")),
		F("escalones", tiersSchema(tiersDescription)),
		F("costo", Money("Lo que la lista debitaría ahora del saldo; 0.00 si no se cobraría.")),
		F("usos_que_pagarian", Integer("Usos individuales que pagarían las primeras posiciones.")),
		F("saldo", Money("Saldo de paquete que queda.")),
		F("usos_individuales", Integer("Usos individuales vigentes de este servicio.")),
		F("alcanza", Flag("Usos y saldo pagan toda la lista; si no, la petición recibe 402 y no se ejecuta nada.")),
		F("alcanza_para", Integer("Cuántas de las consultas pagan.")),
		F("aviso", Text("")),
		Maybe("sandbox", Always(true)),
	))
}

// listSchema describes a list as JSON.
func (l *Lot) listSchema() *jsonschema.Schema {
	list := List(Text(""), "")
	max := l.Entry.Max
	list.MaxItems = &max
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{list, Members(F(l.Entry.List, list))}}
}

// LotMedia are the formats of the results of a lot beside JSON.
func LotMedia() []Media { return lotMedia }

// LotResults refers to the answer of an operation with a Lot, by its title.
func LotResults(title string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/components/schemas/" + title}
}
