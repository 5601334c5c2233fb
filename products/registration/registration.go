// Package registration lets whoever holds a registration key make an account
// alone: what it asks for, the letter with the code, and the answer with the keys.
// What is kept, counted and refused is package accounts'.
//
// It never answers differently for an address that has an account: only its letter
// does. A code is in that letter and nowhere else. Start reading at Operations.
package registration

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/accounts"
	"cotejo/catalog"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/mail"
	"cotejo/operation"
)

//go:embed examples/*.json
var examples embed.FS

// Send takes a letter over, to be tried for so long, in the place of an earlier one
// about the same that waits.
type Send func(about string, m mail.Message, life time.Duration) error

// Config is what the operations work with.
type Config struct {
	Accounts *accounts.Service
	Catalogs *catalog.Set
	Now      func() time.Time
	// Send is nil when there is no mail server, and the operator hands the codes on.
	Send Send
}

var (
	begunTotal     = metrics.NewCounter(`cotejo_registrations_total{result="registrado"}`)
	confirmedTotal = metrics.NewCounter(`cotejo_registrations_total{result="confirmado"}`)
	wrongTotal     = metrics.NewCounter(`cotejo_registrations_total{result="codigo_errado"}`)
	throttledTotal = metrics.NewCounter(`cotejo_registrations_total{result="frenado"}`)
)

const (
	tag     = "Registro"
	maxBody = 4 << 10

	// The words of the member envio.
	queued     = "en_cola"
	repeated   = "ya_enviado"
	notSent    = "no_enviado"
	byOperator = "por_operador"
)

// Operations lists what this family can do.
func Operations(c Config) []operation.Operation {
	r := &registry{c}
	return []operation.Operation{{
		ID: "registrarCuenta", Method: "POST", Path: "/v1/registro", Tag: tag, Auth: operation.Registration,
		Summary: "Pide una cuenta nueva",
		Description: "Guarda los datos de quien pide una cuenta y manda a su correo un código de 8 caracteres, que se muestra en " +
			"POST /v1/registro/confirmar. Todavía no hay cuenta ni llaves. Gratuita. Basta un POST: un agente puede registrarse, si lee ese correo.\n\n" +
			"El código vale 24 horas y 5 intentos. Repetir la petición igual manda otro código, que deja sin efecto el anterior; registro_id no " +
			"cambia. En menos de un minuto (porque se perdió la respuesta) da la misma respuesta sin otro correo. Con otros datos es otro registro, " +
			"con su registro_id y su código: nadie cambia lo que otro está por confirmar, y vale el primero que se confirme. A una dirección se mandan a lo más 3 códigos en 24 horas; una llave de registro admite 120 registros por hora. Más allá: 429.\n\n" +
			"La respuesta es la misma si ese correo ya tiene cuenta: entonces el correo lo dice, y no lleva código. Una cuenta por correo; se " +
			"comparan sin distinguir mayúsculas. Los datos fiscales se revisan contra los catálogos del SAT; que estén bien escritos no quiere " +
			"decir que sean los de la constancia de situación fiscal.\n\n" +
			"El envío no detiene la respuesta: envio dice «en_cola», «ya_enviado» (nada nuevo que mandar), «no_enviado» (la cola está llena: " +
			"repita en un minuto) o «por_operador» (este servicio no manda correo: pida el código a quien lo opera).",
		Body:   &operation.Body{MaxBytes: maxBody, Schema: requestSchema()},
		Output: registeredSchema(),
		Errors: []string{"DEMASIADAS_PETICIONES"},
		Examples: []operation.Example{example("registro", "Una persona moral", "/v1/registro",
			`{"razon_social":"Empaques del Ñandú","rfc_fiscal":"ENA010101AA1","cp":"06600","regimen_fiscal":"601","uso_cfdi":"G03","email":"facturas@empaques.example","acepta_terminos":true}`)},
		Act: r.register,
	}, {
		ID: "confirmarRegistro", Method: "POST", Path: "/v1/registro/confirmar", Tag: tag, Auth: operation.Registration,
		Summary: "Confirma el correo y entrega las llaves",
		Description: "Con el código correcto crea la cuenta, su organización con los datos fiscales registrados, y una llave de cada clase, " +
			"de una vez: svc_test_… responde con datos sintéticos y no cuesta; svc_live_… consulta fuentes reales cuando la cuenta tenga saldo. Gratuita.\n\n" +
			"Las llaves se muestran esta única vez: el servicio no las guarda. Mayúsculas, guion y espacios del código dan igual, y O vale por 0, I y L por 1.\n\n" +
			"Nunca se hacen dos cuentas. Si la petición se cortó o dio 503, repítala con el mismo código: termina lo que haya quedado a medias. " +
			"Si la cuenta ya estaba hecha responde 409 REGISTRO_CONFIRMADO con su organización, sin llaves: si se perdió la respuesta que las " +
			"llevaba, quien opera el servicio da otras. Un código errado es 422 y dice cuántos intentos quedan; al quinto, o a las 24 horas, " +
			"409 CODIGO_NO_VIGENTE: repita POST /v1/registro y se manda otro.",
		Body:   &operation.Body{MaxBytes: maxBody, Schema: confirmSchema()},
		Output: confirmedSchema(),
		Errors: []string{"REGISTRO_NO_ENCONTRADO", "CODIGO_NO_VIGENTE", "CORREO_CON_CUENTA", "REGISTRO_CONFIRMADO", "CUPO_DE_REGISTRO_AGOTADO", "DEMASIADAS_PETICIONES"},
		Examples: []operation.Example{example("registro_confirmado", "El código del correo", "/v1/registro/confirmar",
			`{"registro_id":"reg_262GC02Y1Z3JX","codigo":"EZ38-CV4P"}`)},
		Act: r.confirm,
	}}
}

// example is a request and the expected answer of the same name.
func example(name, summary, target, request string) operation.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return operation.Example{Name: name, Summary: summary, Target: target, Request: []byte(request), Body: body}
}

type registry struct{ Config }

// registered is the answer of register.
type registered struct {
	ID      string   `json:"registro_id"`
	State   string   `json:"estado"`
	Expires string   `json:"vence"`
	Tries   int      `json:"intentos"`
	Mail    delivery `json:"correo"`
	Next    string   `json:"siguiente"`
}

type delivery struct {
	To   string `json:"destino"`
	Sent string `json:"envio"`
}

func (r *registry) register(ctx context.Context, call operation.Call) (operation.Response, error) {
	data, err := r.read(call.Input)
	if err != nil {
		return operation.Response{}, err
	}
	issued, err := r.Accounts.Register(ctx, call.Principal.KeyID, data)
	if err != nil {
		return operation.Response{}, counted(err)
	}
	begunTotal.Inc()
	email, _, err := checks.ReadEmail(data.Email)
	if err != nil {
		return operation.Response{}, err
	}
	sent := r.deliver(&issued)
	return answer(registered{
		ID: issued.ID.String(), State: "pendiente", Expires: civil.Timestamp(issued.Expires), Tries: issued.Left,
		Mail: delivery{email.Masked(), sent}, Next: next[sent],
	})
}

// next says what to do, by the word of the member envio.
var next = map[string]string{
	queued:     "Lea el código que llegará a ese correo y envíelo, con registro_id, a POST /v1/registro/confirmar. Si no llega en unos minutos, revise el correo no deseado y repita esta petición.",
	repeated:   "El código ya se envió: léalo en ese correo y envíelo, con registro_id, a POST /v1/registro/confirmar. Pasado un minuto, repetir esta petición envía otro.",
	notSent:    "El registro quedó guardado, pero el correo no se pudo poner en cola: repita esta petición dentro de un minuto.",
	byOperator: "Este servicio no envía correo: pida el código a quien lo opera, con registro_id, y envíelo a POST /v1/registro/confirmar.",
}

// read checks the body as a whole.
func (r *registry) read(in operation.Input) (accounts.Fiscal, error) {
	text := func(name string) string {
		s, _ := operation.Get[string](in, name)
		return s
	}
	data, faults := accounts.ReadFiscal(r.Catalogs, civil.Of(r.Now()), accounts.Fiscal{
		LegalName: text(accounts.FieldLegalName), RFC: text(accounts.FieldRFC), PostalCode: text(accounts.FieldPostalCode),
		Regime: text(accounts.FieldRegime), Use: text(accounts.FieldUse), Email: text(accounts.FieldEmail),
	})
	var items []operation.Item
	for _, f := range faults {
		items = append(items, operation.Item{Loc: []any{"body", f.Field}, Msg: f.Rule, Type: f.Type})
	}
	if accepted, _ := operation.Get[bool](in, "acepta_terminos"); !accepted {
		items = append(items, operation.Item{Loc: []any{"body", "acepta_terminos"}, Type: "literal_error", Ctx: map[string]any{"expected": "true"},
			Msg: "«acepta_terminos» debe ser true: sin aceptar los términos del servicio no hay cuenta"})
	}
	if items != nil {
		return data, &operation.InvalidError{Items: items}
	}
	return data, nil
}

// deliver hands the letter over and says how that went.
func (r *registry) deliver(issued *accounts.Issued) string {
	switch {
	case r.Send == nil:
		return byOperator
	case issued.Code == "":
		return repeated
	}
	if err := r.Send(issued.ID.String(), letter(issued), accounts.RegistrationLife); err != nil {
		return notSent
	}
	return queued
}

// confirmed is the answer of confirm.
type confirmed struct {
	ID    string `json:"registro_id"`
	State string `json:"estado"`
	Org   string `json:"organizacion"`
	Name  string `json:"razon_social"`
	Live  string `json:"llave_live"`
	Test  string `json:"llave_test"`
	Note  string `json:"aviso"`
	Next  string `json:"siguiente"`
}

func (r *registry) confirm(ctx context.Context, call operation.Call) (operation.Response, error) {
	text, _ := operation.Get[string](call.Input, "registro_id")
	code, _ := operation.Get[string](call.Input, "codigo")
	id, err := accounts.ParseRegistration(text)
	if err != nil {
		return operation.Response{}, err
	}
	opened, err := r.Accounts.Confirm(ctx, call.Principal.KeyID, id, code)
	var wrong *accounts.WrongCodeError
	switch {
	case errors.As(err, &wrong):
		wrongTotal.Inc()
		return operation.Response{}, wrongCode(wrong.Left)
	case err != nil:
		return operation.Response{}, counted(err)
	}
	confirmedTotal.Inc()
	return answer(confirmed{
		ID: id.String(), State: "confirmado", Org: accounts.FormatOrg(opened.ID), Name: opened.Name, Live: opened.Live, Test: opened.Test,
		Note: "Guarde ambas llaves ahora, donde se guardan los secretos: no se conservan y no se pueden mostrar otra vez.",
		Next: "Pruebe con llave_test, sin costo: GET /v1/empresa/EFO010101AA1 con el encabezado X-Api-Key. llave_live consulta fuentes reales cuando la cuenta tenga saldo.",
	})
}

// wrongCode refuses a code. It never repeats it.
func wrongCode(left int) error {
	msg := "El código no es el que se envió; queda 1 intento"
	switch left {
	case 0:
		msg = "El código no es el que se envió y ya no quedan intentos: repita POST /v1/registro para recibir otro"
	case 1:
	default:
		msg = "El código no es el que se envió; quedan " + strconv.Itoa(left) + " intentos"
	}
	return &operation.InvalidError{Items: []operation.Item{{
		Loc: []any{"body", "codigo"}, Type: "value_error", Msg: msg, Ctx: map[string]any{"intentos": left},
	}}}
}

func counted(err error) error {
	var throttled *accounts.ThrottledError
	if errors.As(err, &throttled) {
		throttledTotal.Inc()
	}
	return err
}

func answer(v any) (operation.Response, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return operation.Response{Body: bytes.TrimSuffix(b.Bytes(), []byte{'\n'})}, err
}
