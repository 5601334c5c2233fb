// Package company is the verification of a legal entity or individual by RFC:
// what the official lists say, in the versions that this service holds. It
// declares the operation and its schemas; the engine is query.Company.
package company

import (
	"embed"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	"cotejo/operation"
	"cotejo/query"
)

//go:embed examples/*.json
var examples embed.FS

// Operations lists what this family can do.
func Operations() []operation.Operation {
	return []operation.Operation{{
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
			"y un bloque con SOURCE_NOT_LOADED o SOURCE_UNAVAILABLE no se pudo consultar y no equivale a «no aparece».",
		Service: "COMPANY",
		Prefix:  "COM",
		Auth:    operation.Keyed,
		Params: []operation.Param{
			{
				Name: "rfc", In: operation.InPath, Parse: parseRFC,
				Description: "RFC de 12 caracteres (persona moral) o 13 (persona física). Se aceptan minúsculas, espacios y guiones; & y Ñ van codificados como en cualquier URL (%26, %C3%91).",
				Schema:      &jsonschema.Schema{Type: "string"},
			},
			{
				Name: "sancionados", In: operation.InQuery, Default: true,
				Description: "false deja fuera el directorio de proveedores sancionados: el bloque proveedores_sancionados es null.",
				Schema:      &jsonschema.Schema{Type: "boolean"},
			},
		},
		Output: answer(),
		Examples: []operation.Example{
			example("definitivo", "RFC en el listado 69-B, situación Definitivo", "/v1/empresa/EFO010101AA1"),
			example("sin_coincidencia", "RFC que no aparece en la versión consultada", "/v1/empresa/LIM010101AA1?sancionados=false"),
		},
		Ask: func(in operation.Input) (query.Question, error) {
			rfc, _ := operation.Get[checks.RFC](in, "rfc")
			sanctions, _ := operation.Get[bool](in, "sancionados")
			return query.Company{RFC: rfc, Sanciones: sanctions}, nil
		},
	}}
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
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return operation.Example{Name: name, Summary: summary, Target: target, Body: body}
}
