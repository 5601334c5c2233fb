package organization

import (
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	op "cotejo/operation"
)

// fiscal are the six members that a request and an answer share.
func fiscal() []op.Field {
	return []op.Field{
		op.F(accounts.FieldLegalName, text(300, "Razón social o nombre, como en la Constancia de Situación Fiscal y sin el régimen societario.")),
		op.F(accounts.FieldRFC, text(64, "RFC con el que se factura, de 12 o 13 caracteres. Se aceptan minúsculas, espacios y guiones; se guarda sin ellos.")),
		op.F(accounts.FieldPostalCode, text(5, "Código postal del domicilio fiscal, 5 dígitos con su cero: 06600.")),
		op.F(accounts.FieldRegime, text(3, "Clave de c_RegimenFiscal: 601, por ejemplo.")),
		op.F(accounts.FieldUse, text(4, "Clave de c_UsoCFDI: G03, por ejemplo.")),
		op.F(accounts.FieldEmail, text(254, "Correo al que se escribe: una sola dirección, sin nombre, en ASCII (dominios internacionales en su forma xn--).")),
	}
}

func text(limit int, description string) *jsonschema.Schema {
	s := op.Text(description)
	s.MaxLength = &limit
	return op.OrNull(s)
}

func input() *jsonschema.Schema { return op.Titled("DatosFiscales", op.Members(fiscal()...)) }

func output() *jsonschema.Schema {
	fields := []op.Field{
		op.F("cuenta", op.Form(`^cta_[0-9A-HJKMNP-TV-Z]{13}$`, "Cuenta madre: la dueña del saldo que comparten sus organizaciones.")),
		op.F("organizacion", op.Form(`^org_[0-9A-HJKMNP-TV-Z]{13}$`, "Organización de la llave; con una llave de prueba, la de prueba.")),
		op.F("entidad", op.Text("Nombre con el que se dio de alta la organización.")),
	}
	fields = append(fields, fiscal()...)
	fields = append(fields,
		op.F("datos_fiscales_completos", op.Flag("true si con estos datos se puede facturar hoy; email no hace falta para ello.")),
		op.F("pendientes", op.List(op.Object(
			op.F("campo", op.Text("Nombre del dato.")),
			op.F("motivo", op.Text("Qué falta o qué dejó de servir, y qué hacer.")),
		), "Qué falta para que estén completos.")),
		op.F("actualizado", op.OrNull(op.Moment("Cuándo cambiaron por última vez; null: nunca."))),
		op.Maybe("sandbox", op.Always(true)),
	)
	return op.Titled("Organizacion", op.Object(fields...))
}
