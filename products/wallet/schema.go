package wallet

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
)

func schema() *jsonschema.Schema {
	number := func(description string) *jsonschema.Schema { return op.Integer(description) }
	return op.Titled("Wallet", op.Object(
		op.F("moneda", op.OneOf("", "MXN")),
		op.F("saldo", op.Money("Saldo de paquete que se puede gastar ahora, sin lo retenido.")),
		op.F("abonos", op.List(op.Object(
			op.F("lote", number("Número del movimiento que lo trajo.")),
			op.F("saldo", op.Money("Lo que queda de él.")),
			op.F("vence", op.Moment("Desde entonces ya no paga nada.")),
		), "Los vigentes, en el orden en que se gastan.")),
		op.F("usos_individuales", op.List(op.Object(
			op.F("servicio", op.Text("Código de precio.")),
			op.F("usos", op.Integer("Los que quedan.")),
			op.F("abonos", op.List(op.Object(
				op.F("lote", number("Número del movimiento que los trajo.")),
				op.F("usos", op.Integer("")),
				op.F("vence", op.Moment("")),
			), "En el orden en que se gastan.")),
		), "Por servicio; se consumen antes que el saldo.")),
		op.F("retenido", op.Money("Saldo apartado por operaciones en curso; se cobra o vuelve al saldo.")),
		op.F("retenciones", op.List(op.Object(
			op.F("retencion", number("Número del movimiento que la abrió.")),
			op.F("servicio", op.Text("")),
			op.F("saldo", op.Money("Apartado y aún no cobrado.")),
			op.F("usos", op.Integer("Usos individuales apartados y aún no cobrados.")),
			op.F("hasta", op.Moment("Lo que entonces quede vuelve a sus abonos.")),
			op.F("propia", op.Flag("De esta organización, no de otra de la cuenta.")),
		), "")),
		op.F("movimientos", op.List(op.Object(
			op.F("numero", number("Consecutivo dentro de la cuenta, sin huecos.")),
			op.F("momento", op.Moment("")),
			op.F("tipo", op.OneOf("retencion y liberacion apartan y devuelven: su monto y sus usos son 0, y lotes dice cuánto.",
				"abono", "cargo", "vencimiento", "retencion", "liberacion")),
			op.Maybe("servicio", op.Text("De un cargo, de una retención y de los usos individuales.")),
			op.F("monto", op.Money("Con signo; 0.00 si se movieron usos.")),
			op.F("usos", op.Signed("Usos individuales del servicio, con signo; 0 si se movió saldo.")),
			op.F("saldo_despues", op.Money("Suma de todos los movimientos hasta este, retenido o no.")),
			op.F("lotes", op.List(op.Object(
				op.F("lote", number("")), op.Maybe("monto", op.Money("")), op.Maybe("usos", op.Integer("")),
			), "De qué abonos, en el orden en que se gastaron.")),
			op.F("propio", op.Flag("De esta organización. De las demás de la cuenta no se muestra qué preguntaron.")),
			op.Maybe("verification_id", op.Text("Verificación que se cobró, si es propia.")),
			op.Maybe("precio_unitario", op.Money("Lo que costó cada uso de un abono de usos, o cada consulta del lote que pagó el saldo.")),
			op.Maybe("motivo", op.Text("De un abono propio.")),
			op.Maybe("retencion", number("La que pagó el cargo, o la que se liberó.")),
			op.Maybe("lote_id", op.Text("Lote de consultas que se cobró, si es propio: de sus consultas distintas, las de desde a hasta, todas al mismo precio.")),
			op.Maybe("desde", number("")),
			op.Maybe("hasta", number("")),
		), "El más reciente primero.")),
		op.F("siguiente", op.OrNull(op.Integer("Envíelo en despues_de para los anteriores; null: no hay más."))),
		op.Maybe("sandbox", op.Always(true)),
	))
}
