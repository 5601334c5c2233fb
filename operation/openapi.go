package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"cotejo/ledger"
	"cotejo/operation/entries"
)

// object is a JSON object whose members keep their order, so that the document
// reads well and is the same on every machine.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(rawJSON(m.name))
		buf.WriteByte(':')
		v, err := marshalPlain(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		buf.Write(v)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

func marshalPlain(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), err
}

const apiDescription = `Respuestas deterministas a partir de fuentes oficiales versionadas: la misma entrada y la misma
versión de la fuente dan siempre el mismo resultado. Cada respuesta nombra la fuente, el SHA-256 de la versión consultada y sus fechas.

Que algo no aparezca en una lista no es una aprobación. Una fuente que no se pudo consultar no equivale a «no aparece».

Cada verificación se puede volver a calcular a partir de edicion_sha256, motor, la entrada y el día civil (Ciudad de México) de
consultado; registro_sha256 es el hash de lo que ese cálculo da.

Las operaciones que declaran el encabezado Idempotency-Key se pueden repetir sin riesgo de otro cobro: con la misma llave y la misma
petición, durante 7 días, la respuesta que se guardó se devuelve byte por byte con Idempotent-Replayed: true. Cada operación que puede
cobrarse dice al final de su descripción qué se guarda; las que no guardan nada de lo enviado no declaran el encabezado y lo ignoran.
Con simular=1 no se ejecuta: se cotiza.

Los encabezados RateLimit y RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers) dicen cuántas peticiones quedan a la llave. Sobre el
límite la respuesta es 429 con Retry-After, y no se cobra nada. Sin una llave válida, y al registrar una
cuenta, el límite es de la red de la que se pide.

Las consultas GET gratuitas admiten también HEAD; las que se cobran no (405), porque se pagaría por una respuesta que no se recibe.`

// OpenAPI returns the OpenAPI 3.1 document of the table as JSON. The same table
// gives the same bytes.
func (t Table) OpenAPI() ([]byte, error) {
	var tags, paths, schemas object
	seenTag, seenSchema := map[string]bool{}, map[string]bool{}
	var records []any
	for _, quote := range [...]struct {
		needed func(*Operation) bool
		schema *jsonschema.Schema
	}{
		{(*Operation).priced, quoteSchema()},
		{func(op *Operation) bool { return op.Lot != nil }, lotQuoteSchema()},
		{func(op *Operation) bool { return op.Lot != nil }, LotState()},
	} {
		if slices.ContainsFunc(t, quote.needed) {
			schemas, seenSchema[quote.schema.Title] = append(schemas, member{quote.schema.Title, quote.schema}), true
		}
	}
	for _, op := range t {
		if !seenTag[op.Tag] {
			seenTag[op.Tag] = true
			tags = append(tags, member{"", object{{"name", op.Tag}}})
		}
		if op.Output != nil && op.Output.Title != "" && !seenSchema[op.Output.Title] {
			seenSchema[op.Output.Title] = true
			schemas = append(schemas, member{op.Output.Title, op.Output})
		}
		if op.Ask != nil {
			records = append(records, object{{"$ref", "#/components/schemas/" + op.Output.Title}})
		}
		item := object{{strings.ToLower(op.Method), op.describe()}}
		if i := slices.IndexFunc(paths, func(m member) bool { return m.name == op.Path }); i >= 0 {
			paths[i].value = append(paths[i].value.(object), item...)
		} else {
			paths = append(paths, member{op.Path, item})
		}
	}
	if records != nil {
		schemas = append(schemas, member{"Verificacion", object{
			{"description", "Una respuesta guardada, tal como se generó."}, {"anyOf", records}}})
	}
	schemas = append(schemas, errorSchemas()...)
	tagList := make([]any, len(tags))
	for i := range tags {
		tagList[i] = tags[i].value
	}
	return marshalPlain(object{
		{"openapi", "3.1.0"},
		{"info", object{
			{"title", "cotejo"}, {"version", EngineVersion}, {"description", apiDescription},
		}},
		{"servers", []any{object{{"url", "/"}}}},
		{"tags", tagList},
		{"paths", paths},
		{"components", object{
			{"securitySchemes", object{{"ApiKey", object{
				{"type", "apiKey"}, {"in", "header"}, {"name", Keyed.KeyHeader()},
				{"description", "Llave de la organización: svc_live_… consulta fuentes reales y consume saldo; svc_test_… responde con datos sintéticos y no cuesta; svc_admin_… solo sirve para la administración."},
			}}, {"RegistroKey", object{
				{"type", "apiKey"}, {"in", "header"}, {"name", Registration.KeyHeader()},
				{"description", "Llave de registro, svc_reg_…: la entrega quien opera el servicio y solo sirve para registrar cuentas nuevas."},
			}}}},
			{"parameters", object{{keyHeader, keyParameter()}}},
			{"headers", headerComponents()},
			{"responses", errorResponses()},
			{"schemas", schemas},
		}},
	})
}

// YAML turns a JSON document into YAML with the same members in the same order.
func YAML(doc []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(doc, &node); err != nil {
		return nil, err
	}
	plainStyle(&node)
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return nil, err
	}
	return buf.Bytes(), enc.Close()
}

func plainStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// describe is the OpenAPI operation object.
func (op *Operation) describe() object {
	o := object{
		{"operationId", op.ID}, {"tags", []string{op.Tag}},
		{"summary", op.Summary}, {"description", op.description()},
		{"security", op.security()}, {"x-precio", op.priceObject()},
	}
	var params []any
	for i := range op.Params {
		params = append(params, op.Params[i].describe())
	}
	if op.repeats() {
		params = append(params, object{{"$ref", "#/components/parameters/" + keyHeader}})
	}
	if op.Lot != nil {
		params = append(params, object{{"name", "Prefer"}, {"in", "header"},
			{"description", "respond-async: la lista se trabaja después, y la respuesta 202 dice dónde leer su avance y sus resultados."},
			{"schema", Text("")}})
	}
	if params != nil {
		o = append(o, member{"parameters", params})
	}
	if op.Body != nil {
		o = append(o, member{"requestBody", object{
			{"required", true},
			{"description", "JSON en UTF-8, " + strconv.Itoa(op.Body.MaxBytes) + " bytes a lo más. Los campos que no se declaran se ignoran y se informan en X-Advertencias."},
			{"content", object{{"application/json", op.requestContent()}}},
		}})
	}
	if l := op.Lot; l != nil {
		o = append(o, member{"requestBody", object{
			{"required", true},
			{"description", fmt.Sprintf("La lista: de 1 a %s elementos, %d bytes a lo más.", thousands(l.Entry.Max), l.MaxBytes)},
			{"content", op.listContents()},
		}})
	}
	responses := object{{"200", op.okResponse()}}
	if op.Lot != nil {
		responses = append(responses, member{"202", op.acceptedResponse()})
	}
	for _, status := range op.Statuses() {
		if status != 200 {
			responses = append(responses, member{strconv.Itoa(status), object{{"$ref", "#/components/responses/" + responseName(status)}}})
		}
	}
	return append(o, member{"responses", responses})
}

// description is Description and, of an operation that can cost something, what
// repeating it does.
func (op *Operation) description() string {
	if !op.priced() {
		return op.Description
	}
	return op.Description + "\n\n" + op.repetition()
}

// listContents describes the types that a list may be sent as.
func (op *Operation) listContents() (contents object) {
	l := op.Lot
	for _, m := range listMedia {
		schema := any(l.listSchema())
		switch m.format {
		case entries.CSV:
			schema = object{{"type", "string"}, {"description", fmt.Sprintf("La columna «%s», o la primera si ninguna se titula así. Comas, punto y coma o tabuladores; UTF-8 o windows-1252.", l.Entry.Name)}}
		case entries.NDJSON:
			schema = object{{"type", "string"}, {"description", fmt.Sprintf(`En cada línea, "…" o {"%s":"…"}.`, l.Entry.Name)}}
		}
		content := object{{"schema", schema}}
		if m.format == entries.JSON {
			content = op.withExamples(content)
		}
		contents = append(contents, member{m.name, content})
	}
	return contents
}

// acceptedResponse is the answer to whom does not wait.
func (op *Operation) acceptedResponse() object {
	headers := []string{"X-Request-Id", "X-Advertencias", rateHeader, policyHeader, "X-Costo", "X-Saldo", replayedHeader, "X-Lote", "Location", "Preference-Applied"}
	return object{{"description", "La lista se recibió y se trabaja; con Prefer: respond-async"}, {"headers", headerRefs(headers...)},
		{"content", object{{mediaJSON, object{{"schema", object{{"$ref", "#/components/schemas/" + LotState().Title}}}}}}}}
}

func (op *Operation) requestContent() object {
	return op.withExamples(object{{"schema", op.Body.Schema}})
}

func (op *Operation) withExamples(content object) object {
	var examples object
	for _, e := range op.Examples {
		if e.Request != nil && e.Name != quoteName {
			examples = append(examples, member{e.Name, object{{"summary", e.Summary}, {"value", json.RawMessage(e.Request)}}})
		}
	}
	if examples != nil {
		content = append(content, member{"examples", examples})
	}
	return content
}

func (op *Operation) security() []any {
	switch op.Auth {
	case Open:
		return []any{}
	case Registration:
		return []any{object{{"RegistroKey", []any{}}}}
	}
	return []any{object{{"ApiKey", []any{}}}}
}

func (op *Operation) priceObject() object {
	p, ok := PriceOf(op.Service)
	if !ok {
		return object{{"servicio", nil}, {"precio_paquete", Pesos(0)}, {"precio_individual", Pesos(0)}}
	}
	return object{{"servicio", p.Service}, {"precio_paquete", Pesos(p.Package)}, {"precio_individual", Pesos(p.Single)}}
}

func (p *Param) describe() object {
	s := *p.Schema
	if p.Default != nil {
		s.Default = rawJSON(p.Default)
	}
	o := object{{"name", p.Name}, {"in", string(p.In)}}
	if p.In == InPath {
		o = append(o, member{"required", true})
	}
	return append(o, member{"description", p.Description}, member{"schema", &s})
}

func (op *Operation) okResponse() object {
	headers := []string{"X-Request-Id", "X-Advertencias"}
	if op.Auth != Open {
		headers = append(headers, rateHeader, policyHeader)
	}
	if op.priced() {
		headers = append(headers, "X-Costo", "X-Saldo", "X-Uso-Individual")
	}
	if op.repeats() {
		headers = append(headers, replayedHeader)
	}
	if op.streams() {
		headers = append(headers, "Content-Disposition", "X-Sha256")
	}
	if op.Negotiates {
		headers = append(headers, "X-Lote")
	}
	var contents object
	if op.Output != nil {
		contents = object{{"application/json", op.okContent()}}
	}
	for _, m := range op.Media {
		// OpenAPI 3.1: bytes that are no text have no type.
		contents = append(contents, member{m.Type, object{{"schema", object{{"description", m.Description}, {"contentMediaType", m.Type}}}}})
	}
	return object{{"description", op.Summary}, {"headers", headerRefs(headers...)}, {"content", contents}}
}

// okContent describes the JSON answer.
func (op *Operation) okContent() object {
	schema := any(op.Output)
	if op.Output.Title != "" {
		schema = object{{"$ref", "#/components/schemas/" + op.Output.Title}}
	}
	if op.priced() {
		quote := quoteSchema().Title
		if op.Lot != nil {
			quote = lotQuoteSchema().Title
		}
		schema = object{{"anyOf", []any{schema, object{{"$ref", "#/components/schemas/" + quote}}}}}
	}
	content := object{{"schema", schema}}
	var examples object
	for _, e := range op.Examples {
		examples = append(examples, member{e.Name, object{
			{"summary", e.Summary}, {"description", op.exampleRequest(e)}, {"value", json.RawMessage(e.Body)},
		}})
	}
	if examples != nil {
		content = append(content, member{"examples", examples})
	}
	return content
}

func (op *Operation) exampleRequest(e Example) string {
	switch op.Auth {
	case Keyed:
		return op.Method + " " + e.Target + " con una llave svc_test_"
	case Admin:
		return op.Method + " " + e.Target + " con una llave svc_admin_"
	case Registration:
		return op.Method + " " + e.Target + " con una llave svc_reg_ en X-Registro-Key"
	}
	return op.Method + " " + e.Target
}

// Statuses lists the status codes that the operation may answer with, 200
// included, ascending. 404 and 405 of the router and malformed HTTP come before
// any operation is known.
func (op *Operation) Statuses() []int {
	statuses := []int{200, 400, 413, 415, 422, 500, 503}
	if !op.Probe {
		statuses = append(statuses, 429)
	}
	if op.Auth != Open {
		statuses = append(statuses, 401, 403)
	}
	if op.priced() {
		statuses = append(statuses, 402)
	}
	if op.repeats() {
		statuses = append(statuses, 409)
	}
	if op.Negotiates {
		statuses = append(statuses, 406)
	}
	for _, code := range op.Errors {
		f, _ := failureByCode(code)
		statuses = append(statuses, f.Status)
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// Headers of the limits; their values are the transport's to write.
const (
	rateHeader   = "RateLimit"
	policyHeader = "RateLimit-Policy"
)

func responseName(status int) string { return "Error" + strconv.Itoa(status) }

func headerRefs(names ...string) object {
	var o object
	for _, n := range names {
		o = append(o, member{n, object{{"$ref", "#/components/headers/" + n}}})
	}
	return o
}

func headerComponents() object {
	var o object
	for _, h := range []struct{ name, description, pattern string }{
		{"X-Request-Id", "Identifica la petición en el registro de accesos. Se acepta el del cliente, salvo que tenga la forma de una tarjeta, una cuenta, un RFC, una CURP o una llave.", `^[A-Za-z0-9_-]{8,64}$`},
		{"X-Advertencias", "Parámetros de la consulta y campos del cuerpo que no existen y se ignoraron.", ``},
		{"X-Costo", "Pesos de saldo de paquete cobrados por esta respuesta, IVA incluido; 0.00 si la pagó un uso individual. No aparece si no se cobró.", `^[0-9]+\.[0-9]{2}$`},
		{"X-Saldo", "Pesos de paquete que quedan.", `^[0-9]+\.[0-9]{2}$`},
		{"X-Uso-Individual", "Servicio cuyo uso individual pagó esta respuesta, y cuántos de él quedan. No aparece si la pagó el saldo.", `^[A-Z]+; quedan=[0-9]+$`},
		{"Content-Disposition", "Nombre con que guardar el archivo.", `^attachment; filename="[A-Za-z0-9._-]+"$`},
		{"X-Sha256", "SHA-256, en hexadecimal, del archivo oficial tal como se recibió, sin comprimir. No aparece si no se conoce antes de enviar.", `^[0-9a-f]{64}$`},
		{"X-Lote", "Identifica el lote de la lista.", `^LOT-[0-9]{8}-[0-9a-f]{8}$`},
		{"Location", "Dónde leer el avance del lote.", ``},
		{"Preference-Applied", "La preferencia que se atendió.", `^respond-async$`},
		{replayedHeader, "Esta respuesta ya se había dado a una petición con la misma Idempotency-Key: no se cobró otra vez.", `^true$`},
		{"Retry-After", "Segundos que conviene esperar antes de repetir.", `^[0-9]+$`},
		{rateHeader, "Cuántas peticiones quedan ahora (r) y en cuántos segundos vuelven a estar todas (t). Límite «llave»: las de una llave; «direccion»: las de una red sin llave válida, y las de registro.",
			`^"(llave|direccion)";r=[0-9]+;t=[0-9]+$`},
		{policyHeader, "El límite: cuántas peticiones juntas (q) y en cuántos segundos vuelven a estar todas (w).", `^"(llave|direccion)";q=[0-9]+;w=[0-9]+$`},
		{"WWW-Authenticate", "Forma de autenticarse.", ``},
		{"Allow", "Métodos que la ruta admite.", ``},
	} {
		o = append(o, member{h.name, object{{"description", h.description}, {"schema", Form(h.pattern, "")}}})
	}
	return o
}

// errorResponses describes every status of the error table once.
func errorResponses() object {
	var statuses []int
	for _, f := range failures {
		statuses = append(statuses, f.Status)
	}
	slices.Sort(statuses)
	var o object
	for _, status := range slices.Compact(statuses) {
		headers := []string{"X-Request-Id", "X-Advertencias", rateHeader, policyHeader}
		switch status {
		case 401:
			headers = append(headers, "WWW-Authenticate")
		case 405:
			headers = append(headers, "Allow")
		case 409, 429, 503:
			headers = append(headers, "Retry-After")
		}
		var titles []string
		var examples object
		for _, f := range failures {
			if f.Status == status {
				titles = append(titles, f.Title)
				examples = append(examples, member{f.Code, object{{"summary", f.Title}, {"value", f.example()}}})
			}
		}
		o = append(o, member{responseName(status), object{
			{"description", strings.Join(titles, " / ")}, {"headers", headerRefs(headers...)},
			{"content", object{{"application/json", object{
				{"schema", object{{"$ref", "#/components/schemas/" + errorSchemaName(status)}}},
				{"examples", examples},
			}}}},
		}})
	}
	return o
}

// example is an answer of this line of the error table.
func (f *Failure) example() json.RawMessage {
	err := error(sampleError{f})
	switch f.Code {
	case "INPUT_INVALID":
		err = &InvalidError{Items: []Item{{
			Loc: []any{"path", "rfc"}, Type: "string_too_short", Input: "EFO01010",
			Msg: "Un RFC tiene 12 caracteres (persona moral) o 13 (persona física)",
		}}}
	case "LLAVE_REUTILIZADA":
		err = ledger.ErrKeyReused
	case "SALDO_INSUFICIENTE":
		err = &ledger.FundsError{Service: "COMPANY", Price: 1200, Balance: 350}
	}
	return appendFailure(nil, *f, err, "req_0123456789abcdef")
}

type sampleError struct{ *Failure }

func (e sampleError) Error() string { return e.Title }

func errorSchemaName(status int) string {
	switch status {
	case 402:
		return "ErrorDeSaldo"
	case 422:
		return "ErrorDeEntrada"
	}
	return "Error"
}

func errorSchemas() object {
	var codes []string
	for _, f := range failures {
		if f.Status != 402 && f.Status != 422 {
			codes = append(codes, f.Code)
		}
	}
	tail := func(codes ...string) []Field {
		return []Field{
			F("codigo", OneOf("Para programas; no cambia.", codes...)), F("title", Text("")),
			F("status", Integer("")), F("request_id", Text("")), F("ayuda", Text("Siguiente paso.")),
		}
	}
	loc := Text("")
	loc.Type, loc.Types = "", []string{"string", "integer"}
	item := Object(
		F("loc", List(loc, "Dónde está: path, query, header o body, y después nombres o posiciones.")),
		F("msg", Text("Qué se esperaba y qué hacer.")),
		F("type", Text("Código de validación.")),
		Maybe("input", &jsonschema.Schema{Description: "Lo recibido, abreviado."}),
		Maybe("ctx", MapOf(nil, "Límites que se excedieron.")),
	)
	option := Object(
		F("forma", OneOf("", "paquete", "individual")), Maybe("servicio", Text("")), F("precio", Money("")),
		Maybe("minimo", Money("")), Maybe("multiplo", Money("")), F("nota", Text("")),
	)
	funds := Object(F("error", Text("")), F("servicio", Text("")), F("saldo", Money("")), F("precio_individual", Money("")),
		Maybe("consultas", Integer("De una lista: cuántas se pidieron.")), Maybe("alcanza_para", Integer("De una lista: cuántas pagan los usos y el saldo.")))
	return object{
		{"Error", Object(append([]Field{F("detail", Text(""))}, tail(codes...)...)...)},
		{"ErrorDeSaldo", Object(append(append([]Field{F("detail", funds)}, tail("SALDO_INSUFICIENTE")...),
			F("opciones_de_compra", List(option, "Las dos formas de compra.")))...)},
		{"ErrorDeEntrada", Object(append([]Field{F("detail", List(item, ""))}, tail("INPUT_INVALID", "LLAVE_REUTILIZADA")...)...)},
	}
}
