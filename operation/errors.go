package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cotejo/accounts"
	"cotejo/catalog"
	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
)

// What a transport or an operation refuses.
var (
	ErrRoute    = errors.New("operation: la ruta no existe")
	ErrMethod   = errors.New("operation: método no permitido")
	ErrEncoding = errors.New("operation: Content-Encoding no admitido")
	// ErrMediaType says that a body is not declared as JSON.
	ErrMediaType = errors.New("operation: Content-Type no admitido")
	// ErrListType says that a list is not declared as one of the types it may have.
	ErrListType = errors.New("operation: Content-Type de la lista no admitido")
	// ErrNotAcceptable says that the header Accept allows none of the answer's types.
	ErrNotAcceptable = errors.New("operation: ningún tipo de respuesta admitido")
	// ErrBodies says that there are too many large bodies at once.
	ErrBodies   = errors.New("operation: demasiados cuerpos grandes a la vez")
	ErrTooLarge = errors.New("operation: cuerpo demasiado grande")
	ErrHeaders  = errors.New("operation: encabezados demasiado grandes")
	ErrSlow     = errors.New("operation: la petición no llegó completa a tiempo")
	ErrRequest  = errors.New("operation: petición HTTP mal formada")
	// ErrConnections refuses a connection, before anything of it was read.
	ErrConnections = errors.New("operation: demasiadas conexiones simultáneas")
	// ErrForbidden says that the key is valid and not for this operation.
	ErrForbidden = errors.New("operation: la llave no permite esta operación")
	// ErrNoRecord is the one answer for a verification that does not exist and
	// for one of another organization.
	ErrNoRecord = errors.New("operation: la verificación no existe")
	// ErrNoVersion and ErrNoEdition say that no version of a source, or no edition, has
	// that name.
	ErrNoVersion = errors.New("operation: la versión de la fuente no existe")
	ErrNoEdition = errors.New("operation: la edición no existe")
	// ErrFull refuses what would be recorded while the disk has no room for it.
	ErrFull = errors.New("operation: no queda espacio para guardar otro registro")
)

// UnreadyError answers a readiness probe: what is unmet, one thing each, in
// Spanish.
type UnreadyError struct{ Unmet []string }

func (e *UnreadyError) Error() string { return strings.Join(e.Unmet, "; ") }

// Failure is an error as the caller sees it.
type Failure struct {
	Status     int
	Code       string // codigo: for programs, stable
	Title      string
	Detail     string
	Help       string // ayuda: the next step
	RetryAfter int    // seconds, 0: retrying does not help
}

// Ours reports that neither the caller nor the load is the cause: whoever runs the
// service has something to mend and learns of it nowhere else.
func (f *Failure) Ours() bool { return f.Status == 500 || f.Code == damagedCode }

const damagedCode = "FUENTE_DANADA"

// failures is the one table from an error to its answer; the first line that
// matches wins. Nothing is charged on any of them, but for ErrFailed, where only
// the restarted service knows, and ErrUnknown, where a repeated request tells.
var failures = []struct {
	matches func(error) bool
	Failure
}{
	{is(ErrRoute), Failure{404, "RUTA_NO_ENCONTRADA", "La ruta no existe",
		"No hay ninguna operación en esta ruta.",
		"Revise la ruta, sin diagonal final; la lista completa está en /openapi.json.", 0}},
	{is(ErrMethod), Failure{405, "METODO_NO_PERMITIDO", "Método no permitido",
		"La ruta existe, pero no con este método.",
		"Use uno de los métodos del encabezado Allow.", 0}},
	{is(accounts.ErrUnauthorized), Failure{401, "NO_AUTORIZADO", "Llave ausente o no válida",
		"El encabezado X-Api-Key falta, aparece más de una vez o no contiene una llave activa.",
		"Envíe una sola vez el encabezado X-Api-Key con su llave svc_live_… o svc_test_….", 0}},
	{is(accounts.ErrRegistrationKey), Failure{401, "REGISTRO_NO_AUTORIZADO", "Llave de registro ausente o no válida",
		"El encabezado X-Registro-Key falta, aparece más de una vez o no contiene una llave de registro activa.",
		"Envíe una sola vez el encabezado X-Registro-Key con la llave svc_reg_… que le dio quien opera el servicio; las llaves svc_live_… y svc_test_… no registran cuentas.", 0}},
	{is(ErrForbidden), Failure{403, "SIN_PERMISO", "La llave no permite esta operación",
		"La llave es válida y no sirve para esta operación: está limitada a otras, o es de otra clase.",
		"Use una llave de la organización que tenga esta operación; las rutas de administración piden una llave svc_admin_….", 0}},
	{func(err error) bool { _, _, ok := throttled(err); return ok }, Failure{429, "DEMASIADAS_PETICIONES", "Demasiadas peticiones",
		"Se hicieron más peticiones de las que admite el límite. Esta no se ejecutó ni se cobró.",
		"Espere los segundos que indica Retry-After y siga más despacio; RateLimit dice cuántas quedan. Si su uso normal necesita más, pídalo a quien opera el servicio.", 1}},
	{is(accounts.ErrRegistrationLimit), Failure{403, "CUPO_DE_REGISTRO_AGOTADO", "La llave de registro no admite otra cuenta",
		"La llave de registro ya hizo todas las cuentas que puede hacer.",
		"Pida otra llave de registro a quien opera el servicio; lo pendiente se conserva 24 horas desde que se emitió su código.", 0}},
	{is(ErrEncoding), Failure{415, "CODIFICACION_NO_ADMITIDA", "Codificación no admitida",
		"No se aceptan cuerpos comprimidos (Content-Encoding).",
		"Envíe el cuerpo sin comprimir y sin el encabezado Content-Encoding.", 0}},
	{is(ErrMediaType), Failure{415, "TIPO_NO_ADMITIDO", "Content-Type ausente o no admitido",
		"Esta operación lee un cuerpo JSON y el encabezado Content-Type no lo declara.",
		"Envíe Content-Type: application/json, con el cuerpo en UTF-8.", 0}},
	{is(ErrListType), Failure{415, "TIPO_DE_LISTA_NO_ADMITIDO", "Content-Type ausente o no admitido",
		"Esta operación lee una lista y el encabezado Content-Type no dice de qué tipo.",
		"Envíe Content-Type: application/json, text/csv o application/x-ndjson, según la lista.", 0}},
	{is(ErrNotAcceptable), Failure{406, "RESPUESTA_NO_ACEPTABLE", "Ningún tipo de respuesta admitido",
		"El encabezado Accept no admite ninguno de los tipos en que esta operación responde. No se ejecutó ni se cobró nada.",
		"Quite Accept, o pida application/json, application/x-ndjson o text/csv.", 0}},
	{is(ErrTooLarge), Failure{413, "CUERPO_DEMASIADO_GRANDE", "El cuerpo excede el tamaño permitido",
		"El cuerpo de la petición excede el tamaño permitido para esta operación.",
		"Envíe menos datos por petición.", 0}},
	{is(ErrHeaders), Failure{431, "ENCABEZADOS_DEMASIADO_GRANDES", "Encabezados demasiado grandes",
		"La línea de petición y los encabezados exceden 32 KiB o 64 campos.",
		"Quite los encabezados que no hagan falta.", 0}},
	{is(ErrSlow), Failure{408, "TIEMPO_AGOTADO", "La petición no llegó completa a tiempo",
		"La petición no llegó completa dentro del plazo.",
		"Repita la petición; si continúa, revise la conexión.", 0}},
	{is(ErrRequest), Failure{400, "PETICION_INVALIDA", "Petición HTTP mal formada",
		"La petición no cumple el protocolo HTTP.",
		"Use un cliente HTTP estándar; no combine Content-Length con Transfer-Encoding.", 0}},
	{as[*JSONError], Failure{400, "JSON_INVALIDO", "El cuerpo no es JSON válido",
		"El cuerpo dice ser JSON y no lo es, o se puede leer de más de una forma.",
		"Envíe un solo valor JSON (RFC 8259) en UTF-8, sin nombres repetidos y con 16 niveles a lo más.", 0}},
	{as[*InvalidError], Failure{422, "INPUT_INVALID", "Entrada no válida", "",
		"Corrija los campos que indica detail y repita la petición.", 0}},
	{is(ledger.ErrKeyReused), Failure{422, "LLAVE_REUTILIZADA", "Idempotency-Key usada con otra petición", "",
		"Envíe una llave nueva con cada petición distinta; la misma llave solo repite la misma petición. Se recuerda 7 días.", 0}},
	{is(ErrKeyRunning), Failure{409, "LLAVE_EN_CURSO", "La petición con esa Idempotency-Key está en curso",
		"La primera petición con esa Idempotency-Key aún no termina. Esta no se ejecutó ni se cobró.",
		"Repita la petición con la misma llave después de los segundos que indica Retry-After: recibirá la misma respuesta.", 1}},
	{as[*ledger.FundsError], Failure{402, "SALDO_INSUFICIENTE", "Sin usos ni saldo",
		"No quedan usos individuales ni saldo de paquete suficiente. La consulta no se ejecutó ni se cobró.",
		"Abone saldo por una de las dos formas de opciones_de_compra y repita la petición.", 0}},
	{is(ErrNoRecord), Failure{404, "VERIFICACION_NO_ENCONTRADA", "La verificación no existe",
		"No hay ninguna verificación con ese identificador en su organización.",
		"Revise verification_id y que la llave sea de la organización y del modo (live o test) que la generó.", 0}},
	{is(ErrNoLot), Failure{404, "LOTE_NO_ENCONTRADO", "El lote no existe",
		"No hay ningún lote con ese identificador en su organización, o ya no se conserva.",
		"Revise lote_id y que la llave sea de la organización y del modo (live o test) que lo envió. Los resultados de un lote se leen hasta 7 días después de que termina; cada verificación, también después, con su verification_id.", 0}},
	{is(ErrLotRunning), Failure{409, "LOTE_EN_CURSO", "El lote aún no termina",
		"Los resultados todavía no están completos.",
		"Espere los segundos que indica Retry-After y repita la petición; el avance está en GET /v1/empresa/lotes/{lote_id}.", 2}},
	{as[*LotStoppedError], Failure{409, "LOTE_DETENIDO", "El lote se detuvo",
		"El lote se detuvo antes de terminar.",
		"Lea lo que se hizo en los resultados del lote, y envíe el resto en otra lista con otra Idempotency-Key.", 0}},
	{is(ErrTooManyLots), Failure{429, "DEMASIADOS_LOTES", "Demasiados lotes sin terminar",
		"La organización tiene ya el máximo de lotes sin terminar. Este no se abrió ni se cobró.",
		"Espere a que termine uno y repita la petición.", 5}},
	{is(ErrNoVersion), Failure{404, "VERSION_NO_ENCONTRADA", "La versión de la fuente no existe",
		"No hay ninguna versión de una fuente con ese source_version_id.",
		"Tome source_version_id de una respuesta o de /v1/salud. Los de una llave de prueba son otros que los de una llave live.", 0}},
	{is(ErrNoEdition), Failure{404, "EDICION_NO_ENCONTRADA", "La edición no existe",
		"Ninguna edición tiene ese SHA-256.",
		"Tome edicion_sha256 de una respuesta. Los de una llave de prueba son otros que los de una llave live.", 0}},
	{is(catalog.ErrNotFound), Failure{404, "CLAVE_NO_ENCONTRADA", "La clave no está en el catálogo",
		"La clave está bien escrita y ningún renglón del catálogo la tiene. No se cobró.",
		"Revise la clave y que sea de ese catálogo; detail dice en cuál y en qué versión se buscó. Lo que la autoridad haya publicado después de esa versión todavía no está.", 0}},
	{is(accounts.ErrNoRegistration), Failure{404, "REGISTRO_NO_ENCONTRADO", "El registro no existe",
		"No hay ningún registro con ese identificador que se haya hecho con esta llave de registro.",
		"Revise registro_id y que X-Registro-Key sea la llave con la que se registró; un registro sin confirmar se borra después de 24 horas. Repita POST /v1/registro.", 0}},
	{is(accounts.ErrCodeOver), Failure{409, "CODIGO_NO_VIGENTE", "El código ya no sirve",
		"El código venció o agotó sus 5 intentos. No se creó ninguna cuenta.",
		"Repita POST /v1/registro con los mismos datos: se enviará otro código al mismo correo.", 0}},
	{is(accounts.ErrEmailTaken), Failure{409, "CORREO_CON_CUENTA", "Ese correo ya tiene cuenta",
		"El código es correcto y, mientras tanto, otra confirmación dio una cuenta a ese correo. No se creó otra.",
		"Use las llaves de esa cuenta, o pida otras a quien opera el servicio; para una cuenta distinta registre otro correo.", 0}},
	{as[*accounts.ConfirmedError], Failure{409, "REGISTRO_CONFIRMADO", "El registro ya se confirmó",
		"La cuenta ya existe y sus llaves se mostraron una sola vez.",
		"Use las llaves que se entregaron. Si se perdió la respuesta, pida llaves nuevas a quien opera el servicio con el identificador de organización que da detail: no hace falta otra cuenta.", 0}},
	{is(ErrFull), Failure{503, "ALMACENAMIENTO_LLENO", "Sin espacio para guardar",
		"El disco del servicio no tiene espacio para guardar otro registro. La consulta no se ejecutó ni se cobró; lo ya guardado se puede leer.",
		"Repita la petición después de los segundos que indica Retry-After; si continúa, avise a quien opera el servicio.", 60}},
	{anyOf(ledger.ErrBusy, ErrConnections, ledger.ErrTooManyHolds, ErrBodies, errLotsFull, errQueueFull, errQueueShare, errQueueWait, errLookUps), Failure{503, "SOBRECARGA", "El servicio está saturado",
		"Hay demasiadas conexiones u operaciones en espera. Esta no se ejecutó.",
		"Repita la petición después de los segundos que indica Retry-After.", 1}},
	{anyOf(ledger.ErrClosed, store.ErrClosed), Failure{503, "EN_CIERRE", "El servicio se está reiniciando",
		"El servicio está terminando y ya no acepta operaciones. Esta no se ejecutó.",
		"Repita la petición después de los segundos que indica Retry-After.", 5}},
	{anyOf(store.ErrFenced, ledger.ErrStandby), Failure{503, "NODO_SIN_TURNO", "Este nodo no atiende las cuentas",
		"Las cuentas las atiende otro nodo, o cambian de nodo en este momento. La operación no se ejecutó ni se cobró.",
		"Repita la petición después de los segundos que indica Retry-After; si continúa, envíela al nodo cuyo /readyz responde 200.", 2}},
	{is(ledger.ErrUnknown), Failure{503, "RESULTADO_DESCONOCIDO", "No se sabe aún si quedó guardada",
		"Se perdió la conexión con la base de datos mientras se guardaba la operación. Quedó guardada y cobrada completa, o no quedó nada.",
		"Repita la petición con la misma Idempotency-Key: si quedó guardada recibirá la misma respuesta sin otro cargo. Si no envió una, revise antes su saldo.", 5}},
	{is(store.ErrUnavailable), Failure{503, "CUENTAS_NO_DISPONIBLES", "Las cuentas no están disponibles",
		"La base de datos de las cuentas no contesta. La operación no se ejecutó ni se cobró.",
		"Repita la petición después de los segundos que indica Retry-After.", 2}},
	{as[*UnreadyError], Failure{503, "NO_LISTO", "El servicio no está listo",
		"Falta lo que nombra detail.",
		"Envíe las peticiones a otro nodo, o espere; /v1/salud dice más.", 1}},
	{is(ledger.ErrExhausted), Failure{503, "IDENTIFICADORES_AGOTADOS", "Sin identificadores por hoy",
		"Se agotaron los identificadores de verificación de este día.",
		"Repita la petición mañana (hora de la Ciudad de México).", 3600}},
	{is(ledger.ErrFailed), Failure{503, "ESCRITURA_FALLIDA", "No se pudo guardar",
		"Falló una escritura y el servicio se reinicia. No se sabe aún si la operación quedó guardada.",
		"Espere a que el servicio vuelva y repita la petición con la misma Idempotency-Key; si no envió una, revise antes su saldo.", 30}},
	{as[*snapshots.CorruptError], Failure{503, damagedCode, "El archivo de una fuente está dañado",
		"Un archivo publicado no coincide con su hash y no se responde desde él.",
		"Repita la petición más tarde; /v1/salud muestra el estado de las fuentes.", 60}},
	{anyOf(context.DeadlineExceeded, context.Canceled), Failure{503, "TIEMPO_DE_ESPERA", "La operación no alcanzó a ejecutarse",
		"La operación esperó demasiado y no se ejecutó.",
		"Repita la petición después de los segundos que indica Retry-After.", 2}},
	{func(error) bool { return true }, Failure{500, "ERROR_INTERNO", "Error interno",
		"Ocurrió un error inesperado. No se cobró.",
		"Repita la petición; si continúa, comunique el request_id.", 0}},
}

// throttled tells of a refusal for too many requests of one kind what there was too
// much of, and how long to wait.
func throttled(err error) (detail string, wait time.Duration, ok bool) {
	var limited *limitedError
	var registering *accounts.ThrottledError
	switch {
	case errors.As(err, &limited):
		return limited.detail(), limited.wait, true
	case errors.As(err, &registering):
		return "No se hizo nada: " + registering.What + ".", registering.Wait, true
	}
	return "", 0, false
}

// wholeSeconds rounds up: who comes back then is let in.
func wholeSeconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func anyOf(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// FailureOf returns what the caller sees of err, which must not be nil.
func FailureOf(err error) Failure {
	for i := range failures {
		if !failures[i].matches(err) {
			continue
		}
		f := failures[i].Failure
		var overload *overloadError
		if errors.As(err, &overload) {
			f.RetryAfter = overload.retryAfter
		}
		if _, wait, ok := throttled(err); ok {
			f.RetryAfter = wholeSeconds(wait)
		}
		return f
	}
	panic("operation: the error table has no last line")
}

func failureByCode(code string) (Failure, bool) {
	for i := range failures {
		if failures[i].Code == code {
			return failures[i].Failure, true
		}
	}
	return Failure{}, false
}

// fundsDetail is the detail of a 402 answer.
type fundsDetail struct {
	Error   string `json:"error"`
	Service string `json:"servicio"`
	Balance string `json:"saldo"`
	Single  string `json:"precio_individual"`
	Wanted  int64  `json:"consultas,omitempty"`    // of a list
	Units   *int64 `json:"alcanza_para,omitempty"` // of a list
}

// purchase is one way to buy what is missing.
type purchase struct {
	Form     string `json:"forma"`
	Service  string `json:"servicio,omitempty"`
	Price    string `json:"precio"`
	Minimum  string `json:"minimo,omitempty"`
	Multiple string `json:"multiplo,omitempty"`
	Note     string `json:"nota"`
}

// failureBody is the shape of every error answer. Detail is a text, except for
// 402 (an object) and 422 (a list).
type failureBody struct {
	Detail    any        `json:"detail"`
	Code      string     `json:"codigo"`
	Title     string     `json:"title"`
	Status    int        `json:"status"`
	RequestID string     `json:"request_id"`
	Help      string     `json:"ayuda"`
	Options   []purchase `json:"opciones_de_compra,omitempty"`
}

// AppendFailure appends the JSON answer to err.
func AppendFailure(dst []byte, err error, requestID string) []byte {
	return appendFailure(dst, FailureOf(err), err, requestID)
}

func appendFailure(dst []byte, f Failure, err error, requestID string) []byte {
	body := failureBody{
		Detail: f.Detail, Code: f.Code, Title: f.Title, Status: f.Status, RequestID: requestID, Help: f.Help,
	}
	var broken *JSONError
	var invalid *InvalidError
	var funds *ledger.FundsError
	var unready *UnreadyError
	var missing *catalog.NotFoundError
	var confirmed *accounts.ConfirmedError
	var stopped *LotStoppedError
	why, _, many := throttled(err)
	switch {
	case many:
		body.Detail = why
	case errors.As(err, &stopped):
		body.Detail = stopped.Error()
	case errors.As(err, &confirmed):
		body.Detail = "La cuenta ya existe, es de la organización " + accounts.FormatOrg(confirmed.Org) + ", y sus llaves se mostraron una sola vez."
	case errors.As(err, &missing):
		body.Detail = missing.Error()
	case errors.As(err, &unready):
		body.Detail = unready.Error()
	case errors.As(err, &broken):
		body.Detail = broken.Reason.Error()
	case errors.As(err, &invalid):
		body.Detail = invalid.Items
	case errors.Is(err, ledger.ErrKeyReused):
		body.Detail = []Item{{
			Loc: []any{"header", keyHeader}, Type: "value_error",
			Msg: "Esa llave ya se usó con otra ruta, otros parámetros u otro cuerpo; envíe una nueva",
		}}
	case errors.As(err, &funds):
		price, _ := PriceOf(funds.Service)
		detail := fundsDetail{
			Error: f.Detail, Service: funds.Service, Balance: Pesos(funds.Balance), Single: Pesos(price.Single),
		}
		if funds.Wanted > 0 {
			detail.Error = fmt.Sprintf("Usos y saldo alcanzan para %d de las %d consultas. No se ejecutó ni se cobró ninguna.", funds.Units, funds.Wanted)
			detail.Wanted, detail.Units = funds.Wanted, &funds.Units
		}
		body.Detail = detail
		body.Options = purchaseOptions(price)
	}
	text, err := marshalPlain(body)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return append(dst, text...)
}

// purchaseOptions are the two ways to pay for a service.
func purchaseOptions(p Price) []purchase {
	return []purchase{{
		Form: "paquete", Price: Pesos(p.Package),
		Minimum: Pesos(PackageMinimum), Multiple: Pesos(PackageMultiple),
		Note: "Saldo general: paga cualquier servicio a precio de paquete.",
	}, {
		Form: "individual", Service: p.Service, Price: Pesos(p.Single),
		Note: "Usos exclusivos de este servicio; no se transfieren ni se convierten.",
	}}
}
