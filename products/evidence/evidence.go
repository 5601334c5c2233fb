// Package evidence is what an organization, or its auditor, needs in order to check
// this service without it: what was used and paid, the dossier of a period, and the
// official files and editions that answers rest on.
//
// It never shows what belongs to another organization: of the sister entities that
// share a wallet it tells sums. A dossier is read from one view of the account, so
// that its parts never contradict each other. Start reading at Operations, then
// dossier.write.
package evidence

import (
	"bytes"
	"embed"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	"cotejo/operation"
	"cotejo/snapshots"
)

//go:embed examples/*.json
var examples embed.FS

// Config is what the operations look at.
type Config struct {
	Catalogue *snapshots.Catalogue // real sources
	Sandbox   *snapshots.Catalogue // those of test keys
	Pipeline  *operation.Pipeline  // for its ledger, its accounts and its free space
	Now       func() time.Time
}

const (
	tag = "Uso y auditoría"

	periodText = "El periodo es mes=AAAA-MM, o desde y hasta (AAAA-MM-DD, ambos incluidos, un año a lo más), en días de la Ciudad de México; " +
		"sin parámetros, el mes en curso."
	ownText = "Solo lo de la propia organización; con una llave de prueba, solo lo que se hizo con llaves de prueba."
)

// Operations lists what this family can do.
func Operations(c Config) []operation.Operation {
	period := periodParams()
	return []operation.Operation{{
		ID: "consultarUso", Method: "GET", Path: "/v1/uso", Tag: tag, Auth: operation.Keyed,
		Summary: "Consultas, cobros y saldo de un periodo",
		Description: "Cuántas respuestas dio cada servicio en el periodo, cuántas se cobraron y cuánto costaron, con el saldo y los usos de este momento. " + ownText + " " +
			"Gratuita.\n\n" + periodText + "\n\n" +
			"Cada respuesta cuenta en el día de su movimiento. De las que no cuestan ni dejan registro pueden faltar las del último segundo.\n\n" +
			"Con detalle=true, además, una por una: primero las verificaciones, por día, prefijo y orden en que se dieron; después lo cobrado que no deja registro " +
			"(UTIL, DATO, LABORAL, NOMINA), por movimiento, con verification_id y result_code en null. Una página puede traer menos de limite, o nada, y tener siguiente: " +
			"termina cuando siguiente es null. De un periodo que ya terminó ninguna página repite ni omite nada.\n\n" +
			"No dice si una empresa aparece en alguna lista: para eso está cada verificación.",
		Params: append(periodParams(), operation.Param{
			Name: "detalle", In: operation.InQuery, Default: false,
			Description: "true agrega el registro consulta por consulta.",
			Schema:      &jsonschema.Schema{Type: "boolean"},
		}, operation.Param{
			Name: "limite", In: operation.InQuery, Default: 100,
			Description: "Renglones por página de detalle.",
			Schema:      &jsonschema.Schema{Type: "integer", Minimum: ptr(1.0), Maximum: ptr(1000.0)},
		}, operation.Param{
			Name: "cursor", In: operation.InQuery, Parse: parseCursor,
			Description: "El siguiente de la página anterior, con los mismos demás parámetros.",
			Schema:      &jsonschema.Schema{Type: "string"},
		}),
		Output: usageSchema(),
		Examples: []operation.Example{
			example("uso", "Un mes, con su detalle", "/v1/uso?mes=2026-11&detalle=true&limite=2"),
		},
		Read: c.usage,
	}, {
		ID: "emitirExpediente", Method: "GET", Path: "/v1/auditoria/expediente", Tag: tag, Auth: operation.Keyed,
		Summary: "Expediente de auditoría de un periodo",
		Description: "Todas las verificaciones del periodo, cada una con su respuesta completa, registro, acta, hashes y cargo; las versiones exactas de las fuentes; " +
			"los movimientos, con la suma de la cuenta antes y después; y dónde iba la cadena de hashes. Todo es de un mismo instante. " + ownText + " " +
			"De las otras entidades de la misma cuenta solo se dan sumas. Gratuita.\n\n" + periodText + "\n\n" +
			"Cada emisión tiene un identificador propio (EXP-AAAAMMDD-8 hexadecimales), queda anotada antes de enviarse y aparece en los expedientes siguientes, " +
			"con su SHA-256 si se escribió completa. contenido_sha256, el último miembro, es el SHA-256 de todos los bytes que están antes de él: " +
			"los del archivo menos los 87 últimos.\n\n" +
			"Se envía mientras se escribe, hasta 30 minutos. Si algo falla a la mitad la conexión se corta y el JSON o el ZIP quedan incompletos: " +
			"repita la petición, o pida periodos más cortos. Hasta dos descargas a la vez por organización. HEAD no emite nada.\n\n" +
			"Prueba qué se respondió y con qué fuente; no es una opinión sobre ninguna empresa.",
		Params: append(period, operation.Param{
			Name: "formato", In: operation.InQuery, Default: "json",
			Description: "json; o zip: el mismo JSON (expediente.json), registros.ndjson y actas.ndjson (uno por renglón), los manifiestos de versiones y ediciones, y LEEME.txt.",
			Schema:      &jsonschema.Schema{Type: "string", Enum: []any{"json", "zip"}},
		}),
		Output: dossierSchema(),
		Media:  []operation.Media{{Type: "application/zip", Description: "Con formato=zip."}},
		Examples: []operation.Example{
			example("expediente", "Un periodo sin consultas", "/v1/auditoria/expediente?mes=2026-10"),
		},
		Read: c.issue,
	}, {
		ID: "descargarFuente", Method: "GET", Path: "/v1/auditoria/fuente/{source_version_id}", Tag: tag, Auth: operation.Keyed,
		Summary: "El archivo oficial de una versión, tal como se recibió",
		Description: "Byte por byte lo que publicó la autoridad; su SHA-256 va en X-Sha256 y es el que nombra cada respuesta. Cada byte se comprueba mientras se envía: " +
			"si el archivo guardado está dañado la descarga se corta. Con una llave de prueba, los archivos sintéticos de prueba. Gratuita.\n\n" +
			"No se negocia con Accept-Encoding: así lo que se guarda es lo que se comprueba. formato=zst da los mismos bytes comprimidos (zstd -d los devuelve).\n\n" +
			"También da las versiones en cuarentena, desde las que nunca se respondió; el nombre del archivo empieza entonces con cuarentena-.\n\n" +
			"Que un archivo esté aquí no dice que siga vigente.",
		Params: []operation.Param{{
			Name: "source_version_id", In: operation.InPath,
			Description: "Número de la versión, como lo nombra cada respuesta.",
			Schema:      &jsonschema.Schema{Type: "integer", Minimum: ptr(1.0), Maximum: ptr(1e9)},
		}, {
			Name: "formato", In: operation.InQuery, Default: formatOfficial,
			Description: "oficial: los bytes como se recibieron. zst: los mismos, comprimidos con Zstandard.",
			Schema:      &jsonschema.Schema{Type: "string", Enum: []any{formatOfficial, formatPacked}},
		}},
		Media: []operation.Media{
			{Type: "application/octet-stream", Description: "El archivo oficial."},
			{Type: "application/zstd", Description: "Con formato=zst."},
		},
		Errors: []string{"VERSION_NO_ENCONTRADA"},
		Read:   c.official,
	}, {
		ID: "leerEdicion", Method: "GET", Path: "/v1/auditoria/edicion/{sha256}", Tag: tag, Auth: operation.Keyed,
		Summary: "El manifiesto de una edición",
		Description: "Qué versión de cada fuente forma la edición que nombra edicion_sha256, en JSON canónico (RFC 8785), como se publicó. De él se calcula edicion_sha256 otra vez, " +
			"sin este servicio. Si varias ediciones tienen el mismo SHA-256, la primera. Con una llave de prueba, las ediciones de prueba. Gratuita.\n\n" +
			"No contiene renglones de ninguna lista.",
		Params: []operation.Param{{
			Name: "sha256", In: operation.InPath,
			Description: "edicion_sha256 de una respuesta.",
			Schema:      &jsonschema.Schema{Type: "string", Pattern: `^[0-9a-f]{64}$`},
		}},
		Output: editionSchema(),
		Errors: []string{"EDICION_NO_ENCONTRADA"},
		Examples: []operation.Example{
			example("edicion", "La edición de prueba", "/v1/auditoria/edicion/"+sandboxEdition),
		},
		Read: c.edition,
	}}
}

// sandboxEdition is the edition of the synthetic files that an example shows.
const sandboxEdition = "9b845952737e9645ea16e6cf85eb99c02bd083f4b377a704f846ddfb4e4052bd"

// sources is the catalogue that a key's answers rest on.
func (c Config) sources(who *accounts.Principal) *snapshots.Catalogue {
	if who.Mode == accounts.Live {
		return c.Catalogue
	}
	return c.Sandbox
}

// example reads the expected answer of the same name.
func example(name, summary, target string) operation.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return operation.Example{Name: name, Summary: summary, Target: target, Body: body}
}

func answerJSON(v any) (operation.Response, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return operation.Response{Body: bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})}, err
}

func ptr[T any](v T) *T { return &v }
