// Package catalogs answers from the official code lists and the FIX exchange rate:
// one key, the facts, whether it is in force on a day, and the version that says
// so. It declares the operations and writes their answers; the lists are package
// catalog, those of the edition that a request is answered from.
//
// Start reading at Operations; lists.go and fix.go write the answers.
package catalogs

import (
	"embed"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/catalog"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/operation"
	"cotejo/query"
)

//go:embed examples/*.json
var examples embed.FS

const (
	service = "DATO"
	answers = "DATO_OK"
	missing = "CLAVE_NO_ENCONTRADA"
)

// cost is what the description of a list says of money.
const cost = "\n\nCuesta 0.05 pesos, también con paquete. Solo se cobra DATO_OK: una clave mal escrita (422), una que no está en el catálogo (404) " +
	"y las llaves de prueba, que reciben los datos incluidos en el programa, no se cobran."

// Operations lists what this family can do.
func Operations() []operation.Operation {
	list := []operation.Operation{{
		ID: "consultarBanco", Path: "/v1/catalogo/banco/{clave}",
		Summary: "Banco por su clave de tres dígitos",
		Description: "Dice qué institución tiene una clave de banco, los tres primeros dígitos de una CLABE: sus nombres, cada uno con su lista, su clase y si participa en el SPEI." + cost +
			"\n\nUna clave sobrevive a su titular: los nombres son de las listas y fechas que se indican, y pueden ser de instituciones distintas. No dice que una cuenta exista.",
		Params: []operation.Param{{
			Name: keyParam, In: operation.InPath, Description: "Tres dígitos, con sus ceros: 002.",
			Schema: &jsonschema.Schema{Type: "string", Pattern: `^[0-9]{3}$`}, Parse: bankKey,
		}, dayParam()},
		Output: bankSchema(),
		Examples: []operation.Example{
			example("catalogo_banco", "Una clave que cambió de titular", "/v1/catalogo/banco/124"),
			example("catalogo_banco_retirado", "Una clave que terminó", "/v1/catalogo/banco/134?en_fecha=2020-01-31"),
		},
		Compute: banks,
	}, {
		ID: "consultarClaveSAT", Path: "/v1/catalogo/sat/{tipo}/{clave}",
		Summary: "Clave de un catálogo del SAT (CFDI 4.0)",
		Description: "Dice qué es una clave de c_RegimenFiscal, c_UsoCFDI o c_FormaPago, a quién aplica y si está vigente en un día." + cost +
			"\n\nQue una clave esté vigente no dice que sea la que corresponde a un contribuyente o a una operación.",
		Params: []operation.Param{{
			Name: "tipo", In: operation.InPath, Description: "Catálogo.",
			Schema: &jsonschema.Schema{Type: "string", Enum: []any{typeRegime, typeUse, typeForm}},
		}, {
			Name: keyParam, In: operation.InPath, Description: "En mayúsculas y con sus ceros: 601 (regimen), G03 (uso_cfdi), 01 (forma_pago).",
			Schema: &jsonschema.Schema{Type: "string", Pattern: `^[0-9A-Z]{2,4}$`},
		}, dayParam()},
		Output: satSchema(),
		Examples: []operation.Example{
			example("catalogo_regimen", "Régimen fiscal", "/v1/catalogo/sat/regimen/626"),
			example("catalogo_uso_cfdi", "Uso del CFDI, con los regímenes que lo admiten", "/v1/catalogo/sat/uso_cfdi/D04"),
			example("catalogo_forma_pago", "Forma de pago, un día anterior al catálogo", "/v1/catalogo/sat/forma_pago/03?en_fecha=2021-12-31"),
		},
		Compute: satKeys,
	}, {
		ID: "consultarTelefono", Path: "/v1/catalogo/telefono/{numero}",
		Summary: "Número telefónico nacional: formato, clave de área y zona",
		Description: "Separa un número nacional en clave de área y número local, y dice de qué zona es la clave. Se aceptan espacios, guiones, puntos, paréntesis y los prefijos +52, 01, 044 y 045." + cost +
			"\n\nSi el plan de numeración está cargado, numeracion dice en qué rango asignado está el número, si el rango es fijo o móvil y a qué proveedor se asignó; " +
			"sin él, o si el número no es geográfico y el plan no lo tiene, es null y no se sabe. No dice quién usa el número ni a qué proveedor se portó.",
		Params: []operation.Param{{
			Name: "numero", In: operation.InPath, Description: "Diez dígitos, con su clave de área; el signo + del prefijo puede ir como %2B.",
			Schema: &jsonschema.Schema{Type: "string"}, Parse: phoneNumber,
		}},
		Output: phoneSchema(),
		Examples: []operation.Example{
			example("catalogo_telefono", "Número con un prefijo que ya no se marca", "/v1/catalogo/telefono/044%2033%201234%205678"),
		},
		Compute: phones,
	}, {
		ID: "consultarTipoCambio", Path: "/v1/economia/tipo-cambio",
		Summary: "Tipo de cambio FIX de un día, y conversión de dólares a pesos",
		Description: "Da el FIX de Banco de México (pesos por dólar) de un día, con sus tres fechas: en cuál se determinó, en cuál lo publica el Diario Oficial y en cuál sirve para pagos. " +
			"base dice con cuál de las tres se compara fecha. Si ese día no es hábil bancario, responde el último anterior y dice por qué. " +
			"Con monto, convierte dólares a pesos con todos los decimales y un solo redondeo." +
			"\n\nSe responde desde la versión de la serie que se descargó de Banco de México (fuente.origen serie_cargada) o, mientras no hay ninguna, desde la incluida en el " +
			"programa (serie_incluida); llega hasta el día que dice fuente.hasta. De un día que la serie no cubre la respuesta es 200 con " +
			"SOURCE_UNAVAILABLE, sin valor y sin cobro: nunca se inventa uno. Ninguna consulta pregunta a Banco de México en el momento." +
			"\n\nCuesta 0.05 pesos, también con paquete. Solo se cobra DATO_OK; con una llave de prueba se responde siempre desde la serie incluida y no se cobra." +
			"\n\nQué fecha corresponde a una obligación lo dice la ley que la rige; la respuesta no lo decide.",
		Params: []operation.Param{{
			Name: dateParam, In: operation.InQuery, Parse: parseDate,
			Description: "Día, AAAA-MM-DD. Sin él, hoy en la Ciudad de México.",
			Schema:      &jsonschema.Schema{Type: "string", Format: "date"},
		}, {
			Name: "monto", In: operation.InQuery, Parse: func(text string) (any, error) { return catalog.ParseAmount(text) },
			Description: "Dólares de Estados Unidos (USD) que se convierten a pesos (MXN): hasta 12 dígitos enteros y 6 decimales, sin signo, comas ni exponente.",
			Schema:      &jsonschema.Schema{Type: "string", Pattern: `^[0-9]{1,12}(\.[0-9]{1,6})?$`},
		}, {
			Name: "base", In: operation.InQuery, Default: catalog.Determination.String(),
			Description: "Con cuál de las tres fechas del FIX se compara fecha: la de su determinación, la de su publicación en el Diario Oficial o la de los pagos para los que sirve.",
			Schema:      basisSchema(""),
		}},
		Output: rateSchema(),
		Examples: []operation.Example{
			example("tipo_cambio", "Un domingo, con conversión", "/v1/economia/tipo-cambio?fecha=2024-12-29&monto=1250.50"),
			example("tipo_cambio_pagos", "El que sirve para pagos de un día", "/v1/economia/tipo-cambio?fecha=2025-01-02&base=pagos"),
			example("tipo_cambio_no_disponible", "Un día al que la serie no llega: no se cobra", "/v1/economia/tipo-cambio?fecha=2026-11-19&monto=100"),
		},
		Compute: rates,
	}}
	for i := range list {
		op := &list[i]
		op.Method, op.Tag, op.Auth = "GET", "Catálogos y datos", operation.Keyed
		op.Service, op.Charged = service, []string{answers}
		if op.ID != "consultarTipoCambio" {
			op.Errors = []string{missing}
		}
	}
	return list
}

const (
	keyParam  = "clave"
	dateParam = "fecha"
	asOf      = "en_fecha"
)

func dayParam() operation.Param {
	return operation.Param{
		Name: asOf, In: operation.InQuery, Parse: parseAsOf,
		Description: "Día, AAAA-MM-DD, del 1900-01-01 a hoy, en que se pregunta si la clave está vigente. Sin él, hoy en la Ciudad de México.",
		Schema:      &jsonschema.Schema{Type: "string", Format: "date"},
	}
}

func parseAsOf(text string) (any, error) {
	d, err := query.ParseEnFecha(text)
	if err != nil {
		return nil, &checks.Problem{Type: "date_parsing", Rule: "«" + asOf + "» debe ser un día que exista, AAAA-MM-DD, desde 1900-01-01"}
	}
	return d, nil
}

func parseDate(text string) (any, error) {
	d, err := civil.Parse(text)
	if err != nil {
		return nil, &checks.Problem{Type: "date_parsing", Rule: "«" + dateParam + "» debe ser un día que exista, AAAA-MM-DD"}
	}
	return d, nil
}

// bankKey and phoneNumber refuse a text that cannot be a key while the request is
// read, so that it is told together with what is wrong elsewhere. The form is the
// same in every version; a key that is only unknown is for Compute to say.
func bankKey(text string) (any, error) {
	_, err := catalog.Embedded().Banks.On(text, civil.Date{})
	return text, malformed(err)
}

func phoneNumber(text string) (any, error) {
	_, err := catalog.Embedded().Phones.On(text, civil.Date{})
	return text, malformed(err)
}

func malformed(err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

// dayOf returns the day that standing is asked of, and what is wrong with it. A
// future one is refused: a version does not know what will end before then.
func dayOf(in operation.Input) (civil.Date, []operation.Item) {
	today := in.Today()
	day, ok := operation.Get[civil.Date](in, asOf)
	if !ok {
		return today, nil
	}
	if !today.Before(day) {
		return day, nil
	}
	return day, []operation.Item{{
		Loc: []any{string(operation.InQuery), asOf}, Type: "less_than_equal", Input: day.String(),
		Msg: "«" + asOf + "» no puede ser posterior a hoy, " + today.String() + " (Ciudad de México); envíe hoy, un día pasado o quite el parámetro",
		Ctx: map[string]any{"le": today.String()},
	}}
}

// refusal is the error of a request that has such faults and whose key gave err:
// nil when there is nothing to say.
func refusal(faults []operation.Item, err error, key string) error {
	var problem *checks.Problem
	if errors.As(err, &problem) {
		faults = append(faults, operation.Item{Loc: []any{string(operation.InPath), keyParam}, Type: problem.Type, Msg: problem.Rule, Input: key})
	}
	if len(faults) > 0 {
		return &operation.InvalidError{Items: faults}
	}
	return err
}

// example reads the expected answer of the same name.
func example(name, summary, target string) operation.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return operation.Example{Name: name, Summary: summary, Target: target, Body: body}
}
