// Package company is the verification of a legal entity or individual by RFC:
// what the official lists say, in the versions that this service holds. It
// declares the operations and their schemas; the engines are query.Company and
// query.Contracts.
package company

import (
	"embed"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/operation"
	"cotejo/query"
)

//go:embed examples/*.json
var examples embed.FS

// Operations lists what this family can do. The pipeline is asked for the lots that it
// works on.
func Operations(p *operation.Pipeline) []operation.Operation {
	lote := verifyList()
	return append([]operation.Operation{verify(), contracts(), lote}, lots(operation.Lots{Pipeline: p, Operation: lote.ID})...)
}

// verify is the operation that verifies a company.
func verify() operation.Operation {
	return operation.Operation{
		ID:      "verificarEmpresa",
		Method:  "GET",
		Path:    "/v1/empresa/{rfc}",
		Tag:     "Empresa",
		Summary: "Verificación de empresa por RFC",
		Description: "Dice qué publican las listas oficiales sobre un RFC, con la fuente, el SHA-256 de la versión consultada y sus fechas. " +
			"Solo por RFC exacto; no hay búsqueda por nombre.\n\n" +
			"Cuesta 12.00 pesos con paquete y 14.00 individual, IVA incluido. Se cobra solo si result_code es COMPANY_OK, es decir, " +
			"si se consultó el listado 69-B; SOURCE_UNAVAILABLE, un RFC mal formado y las llaves de prueba no se cobran.\n\n" +
			"Lo que el resultado no dice: no es una calificación crediticia, fiscal ni de riesgo; que un RFC no aparezca no es una aprobación, " +
			"y un bloque con SOURCE_NOT_LOADED o SOURCE_UNAVAILABLE no se pudo consultar y no equivale a «no aparece».\n\n" +
			"Con ?en_fecha=AAAA-MM-DD dice además, de los listados 69-B y 69-B Bis, qué se puede afirmar de ese día, en tres partes que no son lo mismo: " +
			"version_en_fecha (qué dice el listado de la autoridad a esa fecha), efectiva (qué situación estaba vigente según las fechas oficiales de los renglones de hoy) y " +
			"conocida (desde qué versión respondía este servicio). De las listas del artículo 69 y de los proveedores sancionados dice version_en_fecha. Cuesta lo mismo.",
		Service: "COMPANY",
		Prefix:  "COM",
		Charged: []string{"COMPANY_OK"},
		Auth:    operation.Keyed,
		Params:  []operation.Param{rfcParam(), sanctionsParam(), pastParam()},
		Output:  answer(),
		Examples: []operation.Example{
			example("definitivo", "RFC en el listado 69-B, situación Definitivo", "/v1/empresa/EFO010101AA1"),
			example("sin_coincidencia", "RFC que no aparece en la versión consultada", "/v1/empresa/LIM010101AA1?sancionados=false"),
			example("articulo_69", "RFC en la lista Firmes del artículo 69", "/v1/empresa/FIR010101AA1"),
			example("sancionado", "Proveedor sancionado: una inhabilitación, una vencida y una multa", "/v1/empresa/SAN010101AA1"),
			example("en_fecha", "Qué se puede afirmar de un día pasado", "/v1/empresa/SEN010101AA1?en_fecha=2018-12-31"),
		},
		Ask: ask,
	}
}

func rfcParam() operation.Param {
	return operation.Param{
		Name: "rfc", In: operation.InPath, Parse: parseRFC,
		Description: "RFC de 12 caracteres (persona moral) o 13 (persona física). Se aceptan minúsculas, espacios y guiones; & y Ñ van codificados como en cualquier URL (%26, %C3%91).",
		Schema:      &jsonschema.Schema{Type: "string"},
	}
}

func sanctionsParam() operation.Param {
	return operation.Param{
		Name: "sancionados", In: operation.InQuery, Default: true,
		Description: "false deja fuera el directorio de proveedores sancionados: el bloque proveedores_sancionados es null. El precio es el mismo.",
		Schema:      &jsonschema.Schema{Type: "boolean"},
	}
}

func pastParam() operation.Param {
	return operation.Param{
		Name: enFecha, In: operation.InQuery, Parse: parseEnFecha,
		Description: "Día pasado, AAAA-MM-DD (Ciudad de México), del 1900-01-01 a hoy. Los bloques sat_69b, sat_69b_bis, sat_art69 y proveedores_sancionados llevan entonces en_fecha, y la respuesta, conocida.",
		Schema:      &jsonschema.Schema{Type: "string", Format: "date"},
	}
}

const enFecha = "en_fecha"

func ask(in operation.Input) (query.Question, error) {
	rfc, _ := operation.Get[checks.RFC](in, "rfc")
	q, err := question(in)
	if err != nil {
		return nil, err
	}
	q.RFC = rfc
	return q, nil
}

// question is what the parameters say, about no RFC yet.
func question(in operation.Input) (q query.Company, err error) {
	q.Sanciones, _ = operation.Get[bool](in, "sancionados")
	past, _ := operation.Get[civil.Date](in, enFecha)
	if today := in.Today(); today.Before(past) {
		return q, &operation.InvalidError{Items: []operation.Item{{
			Loc: []any{string(operation.InQuery), enFecha}, Type: "less_than_equal", Input: past.String(),
			Msg: "«" + enFecha + "» no puede ser posterior a hoy, " + today.String() + " (Ciudad de México); envíe un día pasado o quite el parámetro",
			Ctx: map[string]any{"le": today.String()},
		}}}
	}
	q.Past = past
	return q, nil
}

func parseEnFecha(text string) (any, error) {
	d, err := query.ParseEnFecha(text)
	if err != nil {
		return nil, &checks.Problem{Type: "date_parsing",
			Rule: "«" + enFecha + "» debe ser un día que exista, AAAA-MM-DD, desde 1900-01-01"}
	}
	return d, nil
}

// parseRFC refuses generic RFCs too: they stand for the public at large and for
// foreigners, so no list can say anything about them.
func parseRFC(text string) (any, error) {
	rfc, err := checks.ParseRFC(text)
	if err != nil {
		return nil, err
	}
	if rfc.Generic() {
		return nil, &checks.Problem{Type: "value_error",
			Rule: "RFC genérico: " + rfc.String() + " no identifica a una persona; envíe el RFC del contribuyente"}
	}
	return rfc, nil
}

// example reads the expected answer of the same name.
func example(name, summary, target string) operation.Example {
	return operation.Example{Name: name, Summary: summary, Target: target, Body: exampleBody(name)}
}

func exampleBody(name string) []byte {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return body
}
