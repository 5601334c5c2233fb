// Package platform is what belongs to the service itself: its health, its price
// list, its own description, and the answers it has given.
package platform

import (
	"context"
	"errors"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accesslog"
	"cotejo/accounts"
	"cotejo/operation"
	"cotejo/snapshots"
	"cotejo/store"
)

// Config is what the operations look at.
type Config struct {
	Catalogue *snapshots.Catalogue // real sources, for the state of what was downloaded
	Live      *snapshots.Live      // the edition that live keys are answered from
	Pipeline  *operation.Pipeline  // for its ledger: recorded answers
	Now       func() time.Time
	// Conditions must hold for /readyz, beside those that it looks at itself.
	Conditions []Condition
	// Notices are further alerts of /v1/salud; nil: there are none.
	Notices func() []Notice
	// Lacks says, in Spanish, what has to be configured before a source can be
	// downloaded, "" when nothing is; nil: nothing ever is.
	Lacks func(source string) string
	// Jobs lists the scheduled tasks; nil: there are none.
	Jobs func() []Job
	// Access is the access log, for its readers; nil: there is none. Of it AccessDays
	// civil days are kept, today included; 0: all.
	Access     *accesslog.Log
	AccessDays int
}

// Operations lists what this family can do.
func Operations(c Config) []operation.Operation {
	h := &health{Config: c}
	return append(probes(c), []operation.Operation{{
		ID: "consultarSalud", Method: "GET", Path: "/v1/salud", Tag: "Servicio", Auth: operation.Open,
		Summary: "Estado del servicio y de sus fuentes",
		Description: "Dice qué versión de cada fuente oficial responde ahora, cuándo se descargó, cuándo se revisó por última vez " +
			"y, si la última descarga está en cuarentena, por qué; qué fuentes pasan de la antigüedad que se espera de ellas, y cómo van las " +
			"tareas que las renuevan. Una alerta no cambia el código 200. Gratuita y sin llave.\n\n" +
			"Que una fuente esté al día no dice nada sobre ningún RFC.",
		Output: healthSchema(),
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return h.read()
		},
	}, {
		ID: "consultarFuentes", Method: "GET", Path: "/v1/fuentes", Tag: "Servicio", Auth: operation.Open,
		Summary: "Fuentes oficiales y listas que trae el programa",
		Description: "Dice de cada fuente oficial qué versión responde, con su hash y sus fechas, y de cada lista que trae el programa de dónde salió, de qué día es, " +
			"qué fuente la renueva y, si ninguna, por qué. Gratuita y sin llave.\n\n" +
			"Las llaves de prueba se responden desde archivos sintéticos y desde las listas que trae el programa, no desde estas fuentes.",
		Output: sourcesSchema(),
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return h.readSources()
		},
	}, {
		ID: "consultarPrecios", Method: "GET", Path: "/v1/precios", Tag: "Servicio", Auth: operation.Open,
		Summary: "Tabla de precios",
		Description: "Todos los precios, en pesos con IVA incluido. Es la tabla que se aplica. Gratuita y sin llave.\n\n" +
			"No muestra el saldo de ninguna organización.",
		Output: pricesSchema(),
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return operation.JSON(prices())
		},
	}, {
		ID: "describirAPI", Method: "GET", Path: "/openapi.json", Tag: "Servicio", Auth: operation.Open,
		Summary: "Esta descripción en OpenAPI 3.1",
		Description: "El documento OpenAPI del que salen las rutas, las validaciones y la referencia. Gratuita y sin llave.\n\n" +
			"Describe las respuestas; no contiene ningún dato oficial.",
		Output: operation.Titled("DocumentoOpenAPI", &jsonschema.Schema{
			Type: "object", Required: []string{"openapi", "info", "paths", "components"},
			Properties: map[string]*jsonschema.Schema{
				"openapi": operation.Form(`^3\.1\.[0-9]+$`, ""), "info": {Type: "object"},
				"paths": {Type: "object"}, "components": {Type: "object"},
			},
			PropertyOrder: []string{"openapi", "info", "paths", "components"},
		}),
		Read: func(_ context.Context, call operation.Call) (operation.Response, error) {
			doc, err := call.Document()
			return operation.Response{Body: doc}, err
		},
	}, {
		ID: "leerVerificacion", Method: "GET", Path: "/v1/verificaciones/{verification_id}", Tag: "Verificaciones", Auth: operation.Keyed,
		Summary: "Una verificación anterior, tal como se generó",
		Description: "Devuelve byte por byte la respuesta que se dio. Solo las de la propia organización y del mismo modo de llave " +
			"(live o test); cualquier otra es 404. Gratuita.\n\n" +
			"Es lo que se respondió entonces: no consulta de nuevo y no dice nada de hoy.",
		Params: []operation.Param{{
			Name: "verification_id", In: operation.InPath,
			Description: "Identificador de la respuesta: PREFIJO-AAAAMMDD-8 dígitos hexadecimales.",
			Schema:      &jsonschema.Schema{Type: "string", Pattern: `^[A-Z]{3}-[0-9]{8}-[0-9a-f]{8}$`},
		}},
		Output: operation.AnyRecord,
		Errors: []string{"VERIFICACION_NO_ENCONTRADA"},
		Read: func(_ context.Context, call operation.Call) (operation.Response, error) {
			return readRecord(c.Pipeline, call)
		},
	}, readAccesses(c)}...)
}

// readRecord gives a recorded answer back. What does not exist, what belongs to
// another organization and what was asked in another mode are one and the same.
func readRecord(p *operation.Pipeline, call operation.Call) (operation.Response, error) {
	text, _ := operation.Get[string](call.Input, "verification_id")
	id, ok := p.Ledger.ParseID(text)
	if !ok {
		return operation.Response{}, operation.ErrNoRecord
	}
	who := call.Principal
	record, err := p.Ledger.Find(who.Account, who.Org, who.Mode != accounts.Live, id)
	if errors.Is(err, store.ErrNotFound) {
		return operation.Response{}, operation.ErrNoRecord
	}
	if err != nil {
		return operation.Response{}, err
	}
	body, err := operation.AppendAnswer(nil, &record)
	return operation.Response{Body: body}, err
}
