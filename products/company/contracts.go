package company

import (
	"fmt"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	op "cotejo/operation"
	"cotejo/query"
)

const defaultLimit = 50

// contracts is the operation that lists the public contracts of an RFC.
func contracts() op.Operation {
	return op.Operation{
		ID:      "listarContratos",
		Method:  "GET",
		Path:    "/v1/empresa/{rfc}/contratos",
		Tag:     "Empresa",
		Summary: "Contratos públicos de un RFC",
		Description: "Lista los contratos que el gobierno federal publica a nombre de un RFC en CompraNet y Compras MX, el más reciente primero, con la fuente, el SHA-256 y las fechas de cada archivo anual consultado. " +
			"Solo por RFC exacto; no hay búsqueda por nombre.\n\n" +
			"Es una verificación COMPANY por sí misma, con su registro: cuesta 12.00 pesos con paquete y 14.00 individual, IVA incluido, también si no hay contratos. " +
			"Se cobra solo si result_code es COMPANY_OK, es decir, si se consultó al menos un año; SOURCE_UNAVAILABLE, un RFC mal formado y las llaves de prueba no se cobran. " +
			"Si basta con cuántos son y cuánto suman por año, contratacion_publica de GET /v1/empresa/{rfc} ya lo dice.\n\n" +
			"Cobertura: el RFC está en cerca de dos tercios de los contratos de 2018 a 2022 y en prácticamente todos desde 2023; antes no se publica. Solo se busca en anios_cargados. " +
			"Los proveedores extranjeros figuran con una clave que no es un RFC y no se pueden buscar. Cero contratos no prueba que no los haya.\n\n" +
			"Un contrato con el mismo código, título y proveedor en varios renglones (convenios modificatorios, partidas) se da una vez, como lo dice el último; registros cuenta todos los renglones.",
		Service: "COMPANY",
		Prefix:  "COM",
		Charged: []string{"COMPANY_OK"},
		Auth:    op.Keyed,
		Params: []op.Param{
			rfcParam(),
			{
				Name: "limite", In: op.InQuery, Default: defaultLimit,
				Description: "Cuántos contratos listar. total_contratos los cuenta todos.",
				Schema:      &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(1.0), Maximum: jsonschema.Ptr(float64(query.MaxContracts))},
			},
		},
		Output: contractsAnswer(),
		Examples: []op.Example{
			example("contratos", "RFC con contratos", "/v1/empresa/CON010101AA1/contratos"),
		},
		Ask: func(in op.Input) (query.Question, error) {
			rfc, _ := op.Get[checks.RFC](in, "rfc")
			limit, _ := op.Get[int](in, "limite")
			return query.Contracts{RFC: rfc, Limit: limit}, nil
		},
	}
}

func contractsAnswer() *jsonschema.Schema {
	item := op.Object(
		op.F("anio", op.Integer("El del código del contrato; si no lo dice, el de fecha; si no hay fecha, el del archivo.")),
		op.F("anuncio", op.Text("Dirección del anuncio, como se publicó.")),
		op.F("dependencia", op.Text("Institución que contrata.")),
		op.F("fecha", op.OrNull(op.Day("De firma; si falta, del fallo; si falta, de inicio. null si ninguna se puede leer."))),
		op.F("fecha_de", op.OrNull(op.OneOf("Cuál de ellas es.", "FIRMA", "FALLO", "INICIO"))),
		op.F("fuente", op.Text("id del archivo anual, de fuentes.")),
		op.F("moneda", op.OrNull(op.Form(`^[A-Z]{3}$`, "null si el archivo no la dice."))),
		op.F("monto", op.OrNull(money("null si no hay ninguno legible."))),
		op.F("monto_de", op.OrNull(op.OneOf("De qué columna es: Importe, o en un contrato abierto sin importe, su monto máximo o mínimo sin impuestos. De Importe la autoridad no dice si incluye impuestos.",
			"IMPORTE", "MAXIMO", "MINIMO"))),
		op.F("monto_no_plausible", op.Flag("true si pasa de 10000000000.00: parece un error de captura. Está como se publicó y no se suma en ningún total.")),
		op.F("num_contrato", op.Text("Código del contrato.")),
		op.F("procedimiento", op.Text("Número del procedimiento de contratación.")),
		op.F("proveedor", op.Text("")),
		op.F("registro", op.Integer("Número del registro en el archivo oficial, desde 1 después de los títulos.")),
		op.F("titulo", op.Text("Título del contrato.")),
		op.F("unidad_compradora", op.Text("")),
	)
	return op.Titled("ContratosDeUnRFC", op.Object(
		op.F("verification_id", op.Form(`^COM-[0-9]{8}-[0-9a-f]{8}$`, "Identifica la verificación; con él se vuelve a leer esta misma respuesta.")),
		op.F("service", op.OneOf("", "COMPANY")),
		op.F("advertencia", op.Text("Lo que este resultado no es.")),
		op.F("anios_cargados", loadedYears()),
		op.F("cobertura", coverage()),
		op.F("contratos", op.List(item, "El más reciente primero; los que no tienen fecha, al final de su año. Menos de limite si la respuesta ya no cabe en un registro.")),
		op.F("estado", sourceState()),
		op.F("fuentes", op.List(source(), "Archivos anuales consultados.")),
		op.F("limite", op.Integer("")),
		op.F("notas", notes()),
		op.F("registros", rowCount()),
		op.F("result_code", op.OneOf("COMPANY_OK: se consultó al menos un año y se cobra. SOURCE_UNAVAILABLE: no hay ninguno cargado y no se cobra.", "COMPANY_OK", unavailable)),
		op.F("rfc", op.Text("RFC consultado, normalizado.")),
		op.F("total_contratos", op.OrNull(op.Integer("Todos, se listen o no. null si no se pudo consultar; null no es cero."))),
		op.F("consultado", op.Moment("Momento de la respuesta.")),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.F("motor", op.Form(`^COMPANY/CONTRATOS/[0-9]+$`, "Motor que respondió. Con él, edicion_sha256, rfc, limite y el día civil de consultado se vuelve a calcular el registro.")),
		op.F("edicion_sha256", op.Form(`^[0-9a-f]{64}$`, "Conjunto de versiones desde el que se respondió.")),
		op.F("registro_sha256", op.SHA256("Hash del registro canónico que se guardó.")),
		op.Maybe("sandbox", op.Always(true)),
	))
}

// procurement is the block of a company verification.
func procurement() *jsonschema.Schema {
	other := op.Object(
		op.F("contratos", op.Integer("")),
		op.F("moneda", op.OrNull(op.Form(`^[A-Z]{3}$`, "null si el archivo no la dice."))),
		op.F("monto_total", money("")),
	)
	year := op.Object(
		op.F("anio", op.Integer("El del código del contrato; si no lo dice, el de su fecha; si no hay fecha, el del archivo.")),
		op.F("contratos", op.Integer("")),
		op.F("contratos_sin_sumar", op.Integer("De ellos, los que no tienen un importe legible y plausible.")),
		op.F("monto_otras_monedas", op.List(other, "Por moneda; nunca se suman entre sí ni con los pesos.")),
		op.F("monto_total", money("Suma de los que están en pesos (MXN).")),
	)
	s := op.Object(
		op.F("anios_cargados", loadedYears()),
		op.F("cobertura", coverage()),
		op.F("contratos", op.OrNull(op.Integer("null mientras no se pueda consultar; null no es cero."))),
		op.F("estado", sourceState()),
		op.F("fuentes", op.List(source(), "Archivos anuales consultados.")),
		op.F("notas", notes()),
		op.F("por_anio", op.List(year, "El más reciente primero.")),
		op.F("registros", rowCount()),
	)
	s.Description = "Contratación pública federal (CompraNet, Compras MX), según la versión más reciente de cada archivo anual, también con ?en_fecha=. Un contrato en varios renglones con el mismo código, título y proveedor se cuenta una vez, como lo dice el último."
	return s
}

func loadedYears() *jsonschema.Schema {
	return op.List(op.Integer(""), fmt.Sprintf("Años cuyo archivo está cargado, de %d a %d: solo en ellos se buscó.", query.FirstContractYear, query.LastContractYear))
}

func coverage() *jsonschema.Schema { return op.Text("Hasta dónde llega la búsqueda por RFC.") }

func notes() *jsonschema.Schema {
	return op.List(op.Text(""), "Qué no entra en los totales, y por qué. Vacía si no hay nada que decir.")
}

func rowCount() *jsonschema.Schema {
	return op.OrNull(op.Integer("Renglones oficiales en los que están esos contratos."))
}

func money(description string) *jsonschema.Schema {
	return op.Form(`^-?[0-9]+\.[0-9]{2,`+strconv.Itoa(18)+`}$`, "Decimal exacto, con dos lugares o los que publicó el archivo. "+description)
}
