package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"cotejo/accounts"
	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/snapshots"
)

func TestFailureOf(t *testing.T) {
	f := func(err error, status int, code string) {
		t.Helper()
		for _, e := range []error{err, fmt.Errorf("contexto: %w", err)} {
			if got := FailureOf(e); got.Status != status || got.Code != code {
				t.Fatalf("%v: got %d %s, want %d %s", e, got.Status, got.Code, status, code)
			}
		}
	}
	f(ErrRoute, 404, "RUTA_NO_ENCONTRADA")
	f(ErrMethod, 405, "METODO_NO_PERMITIDO")
	f(accounts.ErrUnauthorized, 401, "NO_AUTORIZADO")
	f(refuse(limitKey, time.Second), 429, "DEMASIADAS_PETICIONES")
	f(&overloadError{3, errLookUps}, 503, "SOBRECARGA")
	f(accounts.ErrRegistrationKey, 401, "REGISTRO_NO_AUTORIZADO")
	f(accounts.ErrRegistrationLimit, 403, "CUPO_DE_REGISTRO_AGOTADO")
	f(accounts.ErrNoRegistration, 404, "REGISTRO_NO_ENCONTRADO")
	f(accounts.ErrCodeOver, 409, "CODIGO_NO_VIGENTE")
	f(accounts.ErrEmailTaken, 409, "CORREO_CON_CUENTA")
	f(&accounts.ConfirmedError{}, 409, "REGISTRO_CONFIRMADO")
	f(&accounts.ThrottledError{}, 429, "DEMASIADAS_PETICIONES")
	f(ErrEncoding, 415, "CODIFICACION_NO_ADMITIDA")
	f(ErrMediaType, 415, "TIPO_NO_ADMITIDO")
	f(&JSONError{errors.New("x")}, 400, "JSON_INVALIDO")
	f(ErrTooLarge, 413, "CUERPO_DEMASIADO_GRANDE")
	f(ErrRequest, 400, "PETICION_INVALIDA")
	f(&InvalidError{}, 422, "INPUT_INVALID")
	f(&ledger.FundsError{}, 402, "SALDO_INSUFICIENTE")
	f(ErrNoRecord, 404, "VERIFICACION_NO_ENCONTRADA")
	f(ErrNoLot, 404, "LOTE_NO_ENCONTRADO")
	f(ErrLotRunning, 409, "LOTE_EN_CURSO")
	f(&LotStoppedError{}, 409, "LOTE_DETENIDO")
	f(ErrTooManyLots, 429, "DEMASIADOS_LOTES")
	f(&overloadError{3, errLotsFull}, 503, "SOBRECARGA")
	f(ErrBodies, 503, "SOBRECARGA")
	f(ErrListType, 415, "TIPO_DE_LISTA_NO_ADMITIDO")
	f(ErrNotAcceptable, 406, "RESPUESTA_NO_ACEPTABLE")
	f(&catalog.NotFoundError{Version: new(catalog.Version)}, 404, "CLAVE_NO_ENCONTRADA")
	f(ledger.ErrBusy, 503, "SOBRECARGA")
	f(ErrConnections, 503, "SOBRECARGA")
	f(&overloadError{3, errQueueWait}, 503, "SOBRECARGA")
	f(&overloadError{3, ledger.ErrBusy}, 503, "SOBRECARGA")
	f(ErrFull, 503, "ALMACENAMIENTO_LLENO")
	f(ErrKeyRunning, 409, "LLAVE_EN_CURSO")
	f(ledger.ErrKeyReused, 422, "LLAVE_REUTILIZADA")
	f(ledger.ErrClosed, 503, "EN_CIERRE")
	f(ledger.ErrExhausted, 503, "IDENTIFICADORES_AGOTADOS")
	f(&snapshots.CorruptError{}, 503, "FUENTE_DANADA")
	f(context.DeadlineExceeded, 503, "TIEMPO_DE_ESPERA")
	f(errors.New("lo que sea"), 500, "ERROR_INTERNO")
}

// A wait is told in whole seconds, rounded up: who comes back then is let in.
func TestRetryAfterOfThrottle(t *testing.T) {
	f := func(wait time.Duration, want int) {
		t.Helper()
		if got := FailureOf(fmt.Errorf("x: %w", &accounts.ThrottledError{Wait: wait})).RetryAfter; got != want {
			t.Errorf("%v: %d; want %d", wait, got, want)
		}
	}
	f(time.Minute, 60)
	f(time.Minute-time.Nanosecond, 60)
	f(time.Nanosecond, 1)
	f(24*time.Hour, 86400)
}

// Each refused client is told its own moment to come back.
func TestRetryAfterOfOverload(t *testing.T) {
	if got := FailureOf(fmt.Errorf("x: %w", &overloadError{4, errQueueFull})); got.RetryAfter != 4 {
		t.Fatalf("got %d", got.RetryAfter)
	}
	last := 0
	p := &Pipeline{Random: func(n int) int { last = (last + 1) % n; return last }}
	seen := map[int]bool{}
	for range 50 {
		seen[FailureOf(p.overloaded(ClassAsk, shedWait, errQueueWait)).RetryAfter] = true
	}
	for want := 1; want <= 5; want++ {
		if !seen[want] || len(seen) != 5 {
			t.Fatalf("got %v", seen)
		}
	}
	p.Random = nil
	for range 200 {
		if got := FailureOf(p.overloaded(ClassAsk, shedWait, errQueueWait)).RetryAfter; got < 1 || got > 5 {
			t.Fatalf("got %d", got)
		}
	}
}

// Every line says what happened and what to do; a 503 and a 429 say when, and so
// does a 409 that passes.
func TestFailuresAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range failures {
		if f.Title == "" || f.Help == "" || f.Detail == "" && f.Status != 422 {
			t.Errorf("%s: title, detail or help missing", f.Code)
		}
		if (f.Status == 503 || f.Status == 429 || f.Code == "LLAVE_EN_CURSO" || f.Code == "LOTE_EN_CURSO") != (f.RetryAfter > 0) {
			t.Errorf("%s: status %d with Retry-After %d", f.Code, f.Status, f.RetryAfter)
		}
		if seen[f.Code] {
			t.Errorf("%s: declared twice", f.Code)
		}
		seen[f.Code] = true
	}
}

func TestAppendFailure(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		got := AppendFailure([]byte("kept"), err, "req_1")
		if string(got) != "kept"+want {
			t.Fatalf("got  %s\nwant kept%s", got, want)
		}
		if !json.Valid(got[len("kept"):]) {
			t.Fatal("not JSON")
		}
	}
	f(ErrRoute, `{"detail":"No hay ninguna operación en esta ruta.","codigo":"RUTA_NO_ENCONTRADA","title":"La ruta no existe",`+
		`"status":404,"request_id":"req_1","ayuda":"Revise la ruta, sin diagonal final; la lista completa está en /openapi.json."}`)
	f(&ledger.FundsError{Service: "COMPANY", Price: 1200, Balance: 50},
		`{"detail":{"error":"No quedan usos individuales ni saldo de paquete suficiente. La consulta no se ejecutó ni se cobró.",`+
			`"servicio":"COMPANY","saldo":"0.50","precio_individual":"14.00"},"codigo":"SALDO_INSUFICIENTE","title":"Sin usos ni saldo",`+
			`"status":402,"request_id":"req_1","ayuda":"Abone saldo por una de las dos formas de opciones_de_compra y repita la petición.",`+
			`"opciones_de_compra":[{"forma":"paquete","precio":"12.00","minimo":"500.00","multiplo":"100.00",`+
			`"nota":"Saldo general: paga cualquier servicio a precio de paquete."},{"forma":"individual","servicio":"COMPANY","precio":"14.00",`+
			`"nota":"Usos exclusivos de este servicio; no se transfieren ni se convierten."}]}`)
	f(ledger.ErrKeyReused, `{"detail":[{"loc":["header","Idempotency-Key"],"msg":"Esa llave ya se usó con otra ruta, otros parámetros u otro cuerpo; envíe una nueva",`+
		`"type":"value_error"}],"codigo":"LLAVE_REUTILIZADA","title":"Idempotency-Key usada con otra petición","status":422,"request_id":"req_1",`+
		`"ayuda":"Envíe una llave nueva con cada petición distinta; la misma llave solo repite la misma petición. Se recuerda 7 días."}`)
	f(&catalog.NotFoundError{Key: "005", Version: &catalog.Version{ID: "bancos", Date: civil.Date{Year: 2026, Month: 3, Day: 25}}},
		`{"detail":"La clave 005 no está en el catálogo bancos, versión 2026-03-25; revise la clave.","codigo":"CLAVE_NO_ENCONTRADA",`+
			`"title":"La clave no está en el catálogo","status":404,"request_id":"req_1","ayuda":"Revise la clave y que sea de ese catálogo; `+
			`detail dice en cuál y en qué versión se buscó. Lo que la autoridad haya publicado después de esa versión todavía no está."}`)
	f(&InvalidError{Items: []Item{{Loc: []any{"query", "limite"}, Msg: "m", Type: "less_than_equal", Input: "501", Ctx: map[string]any{"le": 500}}}},
		`{"detail":[{"loc":["query","limite"],"msg":"m","type":"less_than_equal","input":"501","ctx":{"le":500}}],"codigo":"INPUT_INVALID",`+
			`"title":"Entrada no válida","status":422,"request_id":"req_1","ayuda":"Corrija los campos que indica detail y repita la petición."}`)
}

// An unexpected error's text stays inside.
func TestFailureHidesInternals(t *testing.T) {
	got := string(AppendFailure(nil, errors.New("open /var/lib/secreto: RFC EFO010101AA1"), "r"))
	if want := `"codigo":"ERROR_INTERNO"`; !contains(got, want) || contains(got, "secreto") || contains(got, "EFO") {
		t.Fatalf("got %s", got)
	}
}
