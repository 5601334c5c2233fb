package registration

import (
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	op "cotejo/operation"
)

const (
	idForm  = `^reg_[0-9A-F][0-9A-HJKMNP-TV-Z]{12}$`
	orgForm = `^org_[0-9A-F][0-9A-HJKMNP-TV-Z]{12}$`
)

func limited(most int, description string) *jsonschema.Schema {
	s := op.Text(description)
	s.MinLength, s.MaxLength = new(int), &most
	*s.MinLength = 1
	return s
}

func requestSchema() *jsonschema.Schema {
	return op.Members(
		op.F(accounts.FieldLegalName, limited(300, "Nombre o razón social, como en la constancia de situación fiscal.")),
		op.F(accounts.FieldRFC, limited(20, "RFC de quien recibe las facturas; no se acepta uno genérico.")),
		op.F(accounts.FieldPostalCode, limited(5, "Código postal del domicilio fiscal, 5 dígitos.")),
		op.F(accounts.FieldRegime, limited(3, "Clave de c_RegimenFiscal del SAT, que admita esa clase de persona: 601, por ejemplo.")),
		op.F(accounts.FieldUse, limited(4, "Clave de c_UsoCFDI del SAT, que admita esa persona y ese régimen: G03, por ejemplo.")),
		op.F(accounts.FieldEmail, limited(254, "A dónde se manda el código. Después es el correo de la cuenta.")),
		op.F("acepta_terminos", op.Flag("true: acepta los términos del servicio. Se guarda el momento.")),
	)
}

func registeredSchema() *jsonschema.Schema {
	return op.Titled("Registro", op.Object(
		op.F("registro_id", op.Form(idForm, "Va con el código al confirmar. No es secreto.")),
		op.F("estado", op.OneOf("", "pendiente")),
		op.F("vence", op.Moment("Hasta cuándo vale el código.")),
		op.F("intentos", op.Integer("Cuántas veces se puede probar un código.")),
		op.F("correo", op.Object(
			op.F("destino", op.Text("A dónde va el código, abreviado.")),
			op.F("envio", op.OneOf("Qué pasó con el correo.", queued, repeated, notSent, byOperator)),
		)),
		op.F("siguiente", op.Text("Siguiente paso.")),
	))
}

func confirmSchema() *jsonschema.Schema {
	code := op.Form(`^[0-9A-Za-z]{4}[ -]?[0-9A-Za-z]{4}$`, "El código del correo, 8 letras o dígitos, con guion o sin él.")
	code.WriteOnly = true
	return op.Members(op.F("registro_id", op.Form(idForm, "El que dio POST /v1/registro.")), op.F("codigo", code))
}

func confirmedSchema() *jsonschema.Schema {
	return op.Titled("RegistroConfirmado", op.Object(
		op.F("registro_id", op.Form(idForm, "")),
		op.F("estado", op.OneOf("", "confirmado")),
		op.F("organizacion", op.Form(orgForm, "La organización que se creó.")),
		op.F("razon_social", op.Text("")),
		op.F("llave_live", op.Form(`^svc_live_[0-9A-Za-z_-]{57}$`, "Consulta fuentes reales y consume saldo. Se muestra esta única vez.")),
		op.F("llave_test", op.Form(`^svc_test_[0-9A-Za-z_-]{57}$`, "Responde con datos sintéticos, sin costo. Se muestra esta única vez.")),
		op.F("aviso", op.Text("Qué hacer con las llaves.")),
		op.F("siguiente", op.Text("Siguiente paso.")),
	))
}
