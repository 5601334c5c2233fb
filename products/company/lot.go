package company

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	"cotejo/operation"
	"cotejo/operation/entries"
	"cotejo/query"
)

const (
	maxList      = 100_000
	maxListBytes = 8 << 20
)

// verifyList is the operation that verifies the companies of a list.
func verifyList() operation.Operation {
	return operation.Operation{
		ID:      "verificarEmpresas",
		Method:  "POST",
		Path:    "/v1/empresa/lote",
		Tag:     "Empresa",
		Summary: "Verificación de una lista de empresas",
		Description: "Hace de cada RFC de la lista la misma verificación que GET /v1/empresa/{rfc}, con su propio verification_id y registro. " +
			"Toda la lista se responde desde una sola edición de las fuentes y con un solo momento (consultado).\n\n" +
			"La lista lleva de 1 a 100,000 RFC en 8 MiB: application/json (una lista de textos, o {\"rfcs\":[…]}), text/csv (la columna «rfc», o la primera) o " +
			"application/x-ndjson. Se aceptan minúsculas, espacios y guiones. Los duplicados se consultan y se cobran una sola vez, y los que no son un RFC, o son genéricos, " +
			"no se consultan ni se cobran: la respuesta los enumera con su línea.\n\n" +
			"Precio por la posición del RFC entre los válidos y distintos de la lista, IVA incluido: 12.00 pesos de la 1 a la 49, 9.00 de la 50 a la 249 y 6.00 desde la 250. " +
			"Los usos individuales pagan las primeras posiciones. El precio de toda la lista se aparta al recibirla; si no alcanza, la respuesta es 402 y no se consulta nada. " +
			"Con simular=1 se cotiza. Si el listado 69-B no está cargado, y con llaves de prueba, no se cobra.\n\n" +
			"Una vez recibida, la lista se trabaja hasta el final aunque la conexión se corte o el servicio se reinicie. Los resultados se entregan mientras se hacen; " +
			"con Prefer: respond-async la respuesta es 202 y se leen después en /v1/empresa/lotes/{lote_id}/resultados, hasta 7 días después de que termina. " +
			"Una entrega que se corta no termina en una respuesta que parezca completa. Cada organización puede tener 8 listas sin terminar.\n\n" +
			"Lo que el resultado no dice es lo mismo que en una verificación: que un RFC no aparezca no es una aprobación.",
		Service: "COMPANY",
		Prefix:  "COM",
		Charged: []string{"COMPANY_OK"},
		Auth:    operation.Keyed,
		Params:  []operation.Param{operation.DetailParam(), sanctionsParam(), pastParam()},
		Errors:  []string{"DEMASIADOS_LOTES", "LOTE_DETENIDO"},
		Examples: []operation.Example{
			{Name: "lote_resumen", Summary: "Dos RFC, un duplicado y uno que no lo es", Target: "/v1/empresa/lote?detalle=resumen",
				Request: []byte(`["EFO010101AA1","lim-010101-aa1","EFO010101AA1","EFO01010"]`), Body: exampleBody("lote_resumen")},
			{Name: "lote_completo", Summary: "La respuesta entera de cada RFC", Target: "/v1/empresa/lote?sancionados=false",
				Request: []byte(`{"rfcs":["LIM010101AA1"]}`), Body: exampleBody("lote_completo")},
			{Name: "lote_simulacion", Summary: "Cotización: nada se ejecuta ni se cobra", Target: "/v1/empresa/lote?simular=1",
				Request: []byte(`["EFO010101AA1","PRE010101AA1"]`), Body: exampleBody("lote_simulacion")},
		},
		Lot: &operation.Lot{
			Entry:    entries.Spec{Name: "rfc", List: "rfcs", Max: maxList},
			MaxBytes: maxListBytes,
			Tiers:    operation.BatchTiers,
			Read: func(text string) (uint64, error) {
				rfc, err := parseRFC(text)
				if err != nil {
					return 0, err
				}
				return rfc.(checks.RFC).Key(), nil
			},
			Text: func(key uint64) string {
				rfc, _ := checks.UnpackRFC(key)
				return rfc.String()
			},
			Ask: func(in operation.Input) (func(uint64) query.Question, error) {
				q, err := question(in)
				if err != nil {
					return nil, err
				}
				return func(key uint64) query.Question {
					asked := q
					asked.RFC, _ = checks.UnpackRFC(key)
					return asked
				}, nil
			},
			Columns: briefColumns(),
			Brief:   appendBrief,
			Full:    answer(),
		},
	}
}

// briefColumns are the columns of a summary.
func briefColumns() []operation.Column {
	state := func(description string, words ...string) *jsonschema.Schema {
		return operation.OneOf(description, append([]string{match, noMatch, notLoaded, unavailable}, words...)...)
	}
	return []operation.Column{
		{Name: "sat_69b", Schema: state("sat_69b.estado de la respuesta entera.")},
		{Name: "situacion_69b", Schema: operation.OrNull(operation.Text("La más reciente de sat_69b.situaciones; null si no aparece. Si hay más de una, la respuesta entera las tiene."))},
		{Name: "sat_69b_bis", Schema: state("sat_69b_bis.estado.")},
		{Name: "sat_art69", Schema: state("sat_art69.estado.")},
		{Name: "listas_art69", Schema: operation.List(art69Code(), "Listas del artículo 69 en las que aparece.")},
		{Name: "proveedores_sancionados", Schema: operation.OrNull(state("proveedores_sancionados.estado; null con sancionados=false.", "SIN_COINCIDENCIA"))},
		{Name: "contratos", Schema: operation.OrNull(operation.Integer("contratacion_publica.contratos; null si no se pudo consultar."))},
	}
}

// appendBrief appends them.
func appendBrief(dst []operation.Cell, note []byte) ([]operation.Cell, error) {
	b, err := query.ReadCompanyBrief(note)
	if err != nil {
		return dst, err
	}
	lists := operation.Cell{Kind: operation.ListCell}
	for i := range query.Art69Lists {
		if b.Listas&(1<<i) != 0 {
			lists.List = append(lists.List, query.Art69Lists[i].Code)
		}
	}
	contracts := operation.Cell{Kind: operation.NumberCell, Number: b.Contratos}
	if b.Contratos < 0 {
		contracts = operation.Cell{}
	}
	text := operation.TextOrNull
	return append(dst, text(b.Sat69B), text(b.Situacion), text(b.Sat69BBis), text(b.SatArt69), lists, text(b.Sancionados), contracts), nil
}

// lots are the operations that read lists which were sent before.
func lots(sent operation.Lots) []operation.Operation {
	id := operation.Param{
		Name: "lote_id", In: operation.InPath, Description: "lote_id de la lista, también en el encabezado X-Lote.",
		Schema: &jsonschema.Schema{Type: "string"},
	}
	return []operation.Operation{
		{
			ID: "leerLote", Method: "GET", Path: "/v1/empresa/lotes/{lote_id}", Tag: "Empresa",
			Summary:     "Avance de una lista",
			Description: "Dice cómo va una lista que envió la misma organización, en el mismo modo (live o test). Es gratis.",
			Auth:        operation.Keyed,
			Params:      []operation.Param{id},
			Output:      operation.LotState(),
			Errors:      []string{"LOTE_NO_ENCONTRADO"},
			Read: func(ctx context.Context, call operation.Call) (operation.Response, error) {
				id, _ := operation.Get[string](call.Input, "lote_id")
				return sent.State(ctx, call, id)
			},
		},
		{
			ID: "leerResultadosDeLote", Method: "GET", Path: "/v1/empresa/lotes/{lote_id}/resultados", Tag: "Empresa",
			Summary: "Resultados de una lista",
			Description: "Entrega los resultados de una lista que terminó, como los da POST /v1/empresa/lote, en el formato que pida Accept. Es gratis y se puede repetir " +
				"hasta 7 días después de que la lista termina. De una lista que se detuvo, entrega los que se hicieron. Mientras la lista se trabaja: 409 LOTE_EN_CURSO.",
			Auth:       operation.Keyed,
			Params:     []operation.Param{id, operation.DetailParam()},
			Negotiates: true,
			Output:     operation.LotResults("LoteDe" + answer().Title),
			Media:      operation.LotMedia(),
			Errors:     []string{"LOTE_NO_ENCONTRADO", "LOTE_EN_CURSO"},
			Read: func(ctx context.Context, call operation.Call) (operation.Response, error) {
				id, _ := operation.Get[string](call.Input, "lote_id")
				return sent.Results(ctx, call, id)
			},
		},
	}
}
