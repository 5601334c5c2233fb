// Package identifiers declares the structural validators: CLABE, RFC, CURP, NSS
// and card numbers. They answer from the text alone, and name the bank and the
// plaza of a CLABE from the catalogues: a well-formed identifier may not exist.
// Of a card number nothing but its first digits, its last four, its
// brand and its length leaves this package. Start reading at Operations.
package identifiers

import (
	"embed"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/operation"
)

//go:embed examples
var examples embed.FS

const (
	service = "UTIL"
	code    = "UTIL_OK"

	// maxCardBody is many times what a card number takes, in bytes.
	maxCardBody = 1 << 10
)

// Operations returns what this family can do. Names of banks and plazas are those
// of the edition that serves.
func Operations() []operation.Operation {
	banks := new(book)
	return []operation.Operation{
		described(readingPath(operation.Operation{
			ID: "validarClabe", Path: "/v1/utilidades/clabe/{clabe}",
			Summary: "Valida una CLABE y dice de qué banco y plaza es su clave",
			Description: "Comprueba los 18 dígitos y el dígito verificador, y separa banco, plaza y cuenta. " +
				"Dice qué institución tiene la clave de banco, con sus nombres, cada uno con su lista, y a qué poblaciones corresponde la plaza. " +
				"Una clave que no está en las listas es null y no invalida la CLABE: el dígito verificador es la única regla. " +
				"La CLABE no se guarda, ni siquiera como hash.",
			Output: clabeAnswer(),
			Examples: []operation.Example{
				example("clabe_valida", "CLABE bien formada", "/v1/utilidades/clabe/002010077777777771"),
				example("clabe_digito", "Dígito verificador distinto", "/v1/utilidades/clabe/0020-1007-7777-7777-79"),
				example("clabe_desconocidos", "Banco y plaza que no están en las listas", "/v1/utilidades/clabe/000000077777777770"),
			},
			Compute: banks.answer,
		}, operation.Param{
			Name:        clabe,
			Description: "18 dígitos. Se aceptan espacios y guiones.",
			Schema:      &jsonschema.Schema{Type: "string", WriteOnly: true},
		}, checks.ReadCLABE)),
		validator(operation.Operation{
			ID: "validarRfc", Path: "/v1/utilidades/rfc/{rfc}",
			Summary: "Valida la forma de un RFC y lo descompone",
			Description: "Comprueba longitud, alfabeto y que la fecha exista, y dice de qué tipo de persona es. " +
				"Un dígito verificador distinto se informa y no invalida: la autoridad ha asignado RFC que no lo cumplen. " +
				"Los RFC genéricos son válidos y se señalan.",
			Output: rfcAnswer(),
			Examples: []operation.Example{
				example("rfc_moral", "RFC de una persona moral", "/v1/utilidades/rfc/EFO010101AA1"),
				example("rfc_generico", "RFC genérico: no identifica a nadie", "/v1/utilidades/rfc/xaxx010101000"),
			},
		}, operation.Param{
			Name:        "rfc",
			Description: "12 caracteres (persona moral) o 13 (persona física). Se aceptan minúsculas, espacios y guiones; & y Ñ van codificados como en cualquier URL (%26, %C3%91).",
			Schema:      &jsonschema.Schema{Type: "string"},
		}, checks.ReadRFC, appendRFC),
		validator(operation.Operation{
			ID: "validarCurp", Path: "/v1/utilidades/curp/{curp}",
			Summary:     "Valida una CURP y dice fecha de nacimiento, sexo y entidad",
			Description: "Comprueba longitud, alfabeto, fecha, entidad y dígito verificador, y los descifra.",
			Output:      curpAnswer(),
			Examples: []operation.Example{
				example("curp_valida", "CURP bien formada", "/v1/utilidades/curp/GOMC000229XDFMRRA3"),
			},
		}, operation.Param{
			Name:        "curp",
			Description: "18 caracteres, con X en lugar de Ñ. Se aceptan minúsculas, espacios y guiones.",
			Schema:      &jsonschema.Schema{Type: "string"},
		}, checks.ReadCURP, appendCURP),
		validator(operation.Operation{
			ID: "validarNss", Path: "/v1/utilidades/nss/{nss}",
			Summary: "Valida un número de seguridad social (NSS) del IMSS",
			Description: "Comprueba los 11 dígitos y el dígito verificador (Luhn), y separa subdelegación, años y folio. " +
				"El número no dice el siglo de los años.",
			Output: nssAnswer(),
			Examples: []operation.Example{
				example("nss_valido", "NSS bien formado", "/v1/utilidades/nss/72795608040"),
			},
		}, operation.Param{
			Name:        "nss",
			Description: "11 dígitos. Se aceptan guiones; un espacio en medio no, porque puede ser un dígito que se perdió.",
			Schema:      &jsonschema.Schema{Type: "string"},
		}, checks.ReadNSS, appendNSS),
		described(operation.Operation{
			ID: "validarTarjeta", Method: "POST", Path: "/v1/utilidades/tarjeta",
			Summary: "Valida un número de tarjeta y dice su marca",
			Description: "Comprueba el algoritmo de Luhn y que la longitud sea de la marca. " +
				"El número completo no se guarda, no se devuelve y no se escribe en ninguna bitácora, ni siquiera como hash. " +
				"No consulta al emisor.",
			Output: cardAnswer(),
			Body: &operation.Body{MaxBytes: maxCardBody, Schema: operation.Members(operation.F(pan, &jsonschema.Schema{
				Type: "string", WriteOnly: true, Description: "Número de 12 a 19 dígitos, como texto. Se aceptan espacios y guiones.",
			}))},
			Examples: []operation.Example{
				withBody(example("tarjeta_valida", "Número de prueba de una marca", "/v1/utilidades/tarjeta"), `{"pan":"4012 8888 8888 1881"}`),
			},
			Compute: checkCard,
		}),
	}
}

// described completes what all validators have in common.
func described(op operation.Operation) operation.Operation {
	op.Description += "\n\nIncluido mientras quede saldo de paquete; sin él, 0.10 pesos, IVA incluido. " +
		"Una longitud o un alfabeto que no corresponden responden 422, sin cargo; una regla que no se cumple, valido: false. " +
		"Un identificador bien formado puede no existir."
	op.Tag, op.Service, op.Charged, op.Auth = "Utilidades", service, []string{code}, operation.Keyed
	return op
}

// reading is an identifier and how its text was brought to normal form.
type reading[T any] struct {
	id      T
	changes checks.Changes
}

// validator completes an operation that reads one identifier from its path.
// answer appends the members of the answer; today is the day in Mexico City.
func validator[T any](op operation.Operation, p operation.Param, read func(string) (T, checks.Changes, error),
	answer func(dst []byte, r reading[T], today civil.Date) []byte) operation.Operation {
	op = readingPath(op, p, read)
	op.Compute = func(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
		r, _ := operation.Get[reading[T]](in, p.Name)
		return answer(dst, r, in.Today()), operation.Computed{Code: code, Charged: true}, nil
	}
	return described(op)
}

// readingPath gives an operation its one parameter, a reading of the path.
func readingPath[T any](op operation.Operation, p operation.Param, read func(string) (T, checks.Changes, error)) operation.Operation {
	p.In = operation.InPath
	p.Parse = func(text string) (any, error) {
		id, changes, err := read(text)
		if err != nil {
			return nil, err
		}
		return reading[T]{id, changes}, nil
	}
	op.Method, op.Params = "GET", []operation.Param{p}
	return op
}

const (
	clabe = "clabe"
	pan   = "pan"
)

func checkCard(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
	text, _ := operation.Get[string](in, pan)
	card, changes, err := checks.ReadCard(text)
	if err != nil {
		item := operation.Item{Loc: []any{"body", pan}, Type: "value_error", Msg: err.Error()}
		if problem := new(checks.Problem); errors.As(err, &problem) {
			item.Type = problem.Type
		}
		return nil, operation.Computed{}, &operation.InvalidError{Items: []operation.Item{item}}
	}
	return appendCard(dst, reading[checks.Card]{card, changes}), operation.Computed{Code: code, Charged: true}, nil
}

// example reads the expected answer of the same name.
func example(name, summary, target string) operation.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return operation.Example{Name: name, Summary: summary, Target: target, Body: body}
}

func withBody(e operation.Example, body string) operation.Example {
	e.Request = []byte(body)
	return e
}
