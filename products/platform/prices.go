package platform

import (
	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
)

// prices renders the price list. Amounts are pesos with two decimals, as text.
func prices() map[string]any {
	list := map[string]any{}
	for _, p := range op.Prices {
		list[p.Service] = map[string]any{
			"precio_paquete": op.Pesos(p.Package), "precio_individual": op.Pesos(p.Single), "descripcion": p.Description,
		}
	}
	plans := map[string]any{}
	for _, p := range op.WatchPlans {
		plans[p.Code] = map[string]any{
			"maximo": p.Max, "precio_mensual": op.Pesos(p.Monthly), "verificaciones_incluidas": p.Included,
		}
	}
	return map[string]any{
		"moneda":   "MXN",
		"modelo":   "Prepago: se compra saldo de paquete o usos individuales; se consumen primero los usos y después el saldo.",
		"nota_iva": "Todos los precios incluyen IVA; el desglose aparece solo en la factura.",
		"formas_de_compra": map[string]any{
			"paquete": map[string]any{
				"descripcion": "Saldo general que paga cualquier servicio a precio de paquete.",
				"minimo":      op.Pesos(op.PackageMinimum), "multiplo": op.Pesos(op.PackageMultiple),
			},
			"individual": map[string]any{
				"descripcion": "Usos de un solo servicio a precio individual; no se transfieren ni se convierten.",
			},
		},
		"vigencia_dias":   op.CreditDays,
		"no_reembolsable": true,
		"precios":         list,
		"escalon_por_volumen": map[string]any{
			"servicio":    "COMPANY",
			"descripcion": "Precio marginal por posición dentro de cada lote; dividir la lista reinicia los escalones.",
			"escalones":   tiers(op.BatchTiers),
		},
		"vigilancia": map[string]any{
			"descripcion":  "Vigilancia mensual; cada escalón es marginal. El año cubre doce meses y se cobran diez.",
			"planes":       plans,
			"tope_tecnico": op.WatchPlanCap,
			"suscripcion": map[string]any{
				"minimo": op.WatchMinimum, "maximo": op.WatchMaximum, "primer_escalon_total": op.Pesos(op.WatchFirstTier),
				"meses_cobrados_por_anio": op.WatchYearMonths, "escalones": tiers(op.WatchTiers),
			},
		},
		"sandbox":  "Las llaves svc_test_ responden con datos sintéticos y no cuestan.",
		"postpago": "Pospago por contrato: más adelante.",
	}
}

func tiers(list []op.Tier) []map[string]any {
	var out []map[string]any
	for _, t := range list {
		var to any
		if t.To > 0 {
			to = t.To
		}
		out = append(out, map[string]any{"desde": t.From, "hasta": to, "precio_unitario": op.Pesos(t.Unit)})
	}
	return out
}

func pricesSchema() *jsonschema.Schema {
	var list, plans []op.Field
	for _, p := range op.Prices {
		list = append(list, op.F(p.Service, op.Object(
			op.F("precio_paquete", op.Money("")), op.F("precio_individual", op.Money("")), op.F("descripcion", op.Text("")),
		)))
	}
	for _, p := range op.WatchPlans {
		plans = append(plans, op.F(p.Code, op.Object(
			op.F("maximo", op.Integer("")), op.F("precio_mensual", op.Money("")), op.F("verificaciones_incluidas", op.Integer("")),
		)))
	}
	steps := op.List(op.Object(
		op.F("desde", op.Integer("")), op.F("hasta", op.OrNull(op.Integer("null: sin límite."))), op.F("precio_unitario", op.Money("")),
	), "")
	return op.Titled("TablaDePrecios", op.Object(
		op.F("moneda", op.OneOf("", "MXN")),
		op.F("modelo", op.Text("")),
		op.F("nota_iva", op.Text("")),
		op.F("formas_de_compra", op.Object(
			op.F("paquete", op.Object(op.F("descripcion", op.Text("")), op.F("minimo", op.Money("")), op.F("multiplo", op.Money("")))),
			op.F("individual", op.Object(op.F("descripcion", op.Text("")))),
		)),
		op.F("vigencia_dias", op.Integer("")),
		op.F("no_reembolsable", op.Flag("")),
		op.F("precios", op.Object(list...)),
		op.F("escalon_por_volumen", op.Object(
			op.F("servicio", op.Text("")), op.F("descripcion", op.Text("")), op.F("escalones", steps),
		)),
		op.F("vigilancia", op.Object(
			op.F("descripcion", op.Text("")),
			op.F("planes", op.Object(plans...)),
			op.F("tope_tecnico", op.Integer("")),
			op.F("suscripcion", op.Object(
				op.F("minimo", op.Integer("")), op.F("maximo", op.Integer("")), op.F("primer_escalon_total", op.Money("")),
				op.F("meses_cobrados_por_anio", op.Integer("")), op.F("escalones", steps),
			)),
		)),
		op.F("sandbox", op.Text("")),
		op.F("postpago", op.Text("")),
	))
}
