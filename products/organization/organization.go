// Package organization lets an organization read and change what the service keeps
// of it: its name, its account and its fiscal data. Start reading at Operations.
package organization

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"time"

	"cotejo/accounts"
	"cotejo/catalog"
	"cotejo/civil"
	op "cotejo/operation"
)

//go:embed examples/*.json
var examples embed.FS

// maxBody is many times what fiscal data take, in bytes.
const maxBody = 8 << 10

// Config is what the operations look at.
type Config struct {
	Accounts *accounts.Service
	Set      *catalog.Set // must not change
	Now      func() time.Time
}

// Operations lists what this family can do.
func Operations(c Config) []op.Operation {
	return []op.Operation{{
		ID: "consultarOrganizacion", Method: "GET", Path: "/v1/organizacion", Tag: "Organización", Auth: op.Keyed,
		Summary: "La organización de la llave, sus datos fiscales y si están completos",
		Description: "Dice de qué cuenta y de qué organización es la llave, con qué datos se factura y, en pendientes, qué falta o dejó de servir " +
			"(una clave que el SAT retiró, por ejemplo). Un depósito que llega con los datos incompletos se factura al público en general y no se puede " +
			"volver a facturar. Gratuita.\n\nCon una llave de prueba responde de la organización de prueba, que tiene datos propios. " +
			"No dice que el SAT tenga registrados estos datos: se revisan contra sus catálogos, no contra su padrón.",
		Output:   output(),
		Examples: []op.Example{example("organizacion", "Una organización nueva, sin datos fiscales", "")},
		Read: func(_ context.Context, call op.Call) (op.Response, error) {
			f, err := c.Accounts.Fiscal(call.Principal.Account, call.Principal.Org)
			if err != nil {
				return op.Response{}, err
			}
			return c.answer(call.Principal, f)
		},
	}, {
		ID: "actualizarOrganizacion", Method: "PUT", Path: "/v1/organizacion", Tag: "Organización", Auth: op.Keyed,
		Summary: "Reemplaza los datos fiscales de la organización",
		Description: "Reemplaza los seis datos a la vez: envíe los seis, también los que no cambian. null (o un texto vacío) deja uno sin valor; " +
			"uno que no se envía es un error, para que un olvido no borre nada. Repetir la misma petición no cambia nada. Gratuita.\n\n" +
			"Cada dato se revisa por sí mismo y contra los demás: el RFC por su forma (uno genérico no se acepta), el código postal por su forma, el régimen y el uso del CFDI " +
			"por estar vigentes hoy en los catálogos del SAT, por admitir a la persona, física o moral, que dice el RFC, y el uso por admitir el régimen. Si algo no cumple, " +
			"la respuesta 422 nombra cada dato y no cambia ninguno.\n\n" +
			"Escriba la razón social como en su Constancia de Situación Fiscal, sin el régimen societario (sin S.A. de C.V.): es lo que el SAT compara al timbrar. " +
			"Con una llave de prueba cambia la organización de prueba y ninguna otra. Que se acepten no dice que el SAT los tenga así en su padrón.",
		Body: &op.Body{Schema: input(), MaxBytes: maxBody}, Output: output(),
		Examples: []op.Example{example("organizacion_completa", "Datos completos de una persona moral",
			`{"razon_social":"EMPAQUES DEL ÑANDU","rfc_fiscal":"ENA010101AB8","cp":"06600","regimen_fiscal":"601","uso_cfdi":"G03","email":"facturas@empaques.example"}`)},
		Act: c.update,
	}}
}

func (c Config) update(ctx context.Context, call op.Call) (op.Response, error) {
	text := func(name string) string {
		s, _ := op.Get[string](call.Input, name)
		return s
	}
	f, faults := accounts.ReadFiscal(c.Set, civil.Of(c.Now()), accounts.Fiscal{
		LegalName: text(accounts.FieldLegalName), RFC: text(accounts.FieldRFC), PostalCode: text(accounts.FieldPostalCode),
		Regime: text(accounts.FieldRegime), Use: text(accounts.FieldUse), Email: text(accounts.FieldEmail),
	})
	if len(faults) > 0 {
		refused := &op.InvalidError{}
		for _, fault := range faults {
			refused.Items = append(refused.Items, op.Item{Loc: []any{"body", fault.Field}, Msg: fault.Rule, Type: fault.Type})
		}
		return op.Response{}, refused
	}
	f, err := c.Accounts.SetFiscal(ctx, call.Principal.Account, call.Principal.Org, f)
	if err != nil {
		return op.Response{}, err
	}
	return c.answer(call.Principal, f)
}

// answer is the body of both operations.
type answer struct {
	Account  string    `json:"cuenta"`
	Org      string    `json:"organizacion"`
	Entity   string    `json:"entidad"`
	Name     *string   `json:"razon_social"`
	RFC      *string   `json:"rfc_fiscal"`
	Postal   *string   `json:"cp"`
	Regime   *string   `json:"regimen_fiscal"`
	Use      *string   `json:"uso_cfdi"`
	Email    *string   `json:"email"`
	Complete bool      `json:"datos_fiscales_completos"`
	Pending  []pending `json:"pendientes"`
	Updated  *string   `json:"actualizado"`
	Sandbox  bool      `json:"sandbox,omitempty"`
}

type pending struct {
	Field string `json:"campo"`
	Why   string `json:"motivo"`
}

func (c Config) answer(who accounts.Principal, f accounts.Fiscal) (op.Response, error) {
	o, err := c.Accounts.Organization(who.Org)
	if err != nil {
		return op.Response{}, err
	}
	a := answer{
		Account: accounts.FormatAccount(who.Account), Org: accounts.FormatOrg(who.Org), Entity: o.Name,
		Name: orNull(f.LegalName), RFC: orNull(f.RFC), Postal: orNull(f.PostalCode), Regime: orNull(f.Regime), Use: orNull(f.Use), Email: orNull(f.Email),
		Pending: []pending{}, Sandbox: who.Org.Sandbox(),
	}
	for _, fault := range f.Pending(c.Set, civil.Of(c.Now())) {
		a.Pending = append(a.Pending, pending{fault.Field, fault.Rule})
	}
	a.Complete = len(a.Pending) == 0
	if !f.Updated.IsZero() {
		a.Updated = orNull(civil.Timestamp(f.Updated))
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return op.Response{}, err
	}
	return op.Response{Body: bytes.TrimSuffix(body.Bytes(), []byte{'\n'})}, nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// example is one that the tests run; its answer is in examples.
func example(name, summary, request string) op.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err)
	}
	e := op.Example{Name: name, Summary: summary, Target: "/v1/organizacion", Body: body}
	if request != "" {
		e.Request = []byte(request)
	}
	return e
}
