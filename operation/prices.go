package operation

import "strconv"

// Price is what one verification of a service costs, in centavos with VAT
// included.
type Price struct {
	Service     string
	Package     int64 // paid from the general balance
	Single      int64 // paid with a use bought for this service alone
	Description string
}

// Prices is the published price list, in the order it is shown.
var Prices = []Price{
	{"COMPANY", 1200, 1400, "Verificación de empresa por RFC en listas oficiales"},
	{"SCREEN", 1200, 1400, "Búsqueda en listas de sanciones, PEP y listas nacionales"},
	{"CFDI", 200, 300, "Validación de factura electrónica"},
	{"SPEI", 300, 400, "Comprobante de transferencia (CEP) y conciliación"},
	{"COMBO", 1800, 2200, "Empresa, factura y pago en una sola llamada"},
	{"LABORAL", 100, 150, "Cálculo laboral"},
	{"NOMINA", 50, 75, "Cálculo de nómina"},
	{"LEGAL", 10, 15, "Artículo o búsqueda de legislación; solo si hay resultado"},
	{"DATO", 5, 5, "Catálogo o dato oficial; se cobra siempre, también con paquete"},
	{"UTIL", 0, 10, "Validador estructural; incluido con un paquete vigente"},
}

// PriceOf returns the price of a service.
func PriceOf(service string) (Price, bool) {
	for _, p := range Prices {
		if p.Service == service {
			return p, true
		}
	}
	return Price{}, false
}

// Terms of the prepaid model.
const (
	PackageMinimum  int64 = 50000 // centavos: smallest package
	PackageMultiple int64 = 10000 // centavos: packages come in multiples of this
	CreditDays            = 365   // credits and uses expire; they are not refundable
)

// Tier is one step of a marginal price: from From to To units (To 0: no upper
// end), each unit costs Unit centavos.
type Tier struct {
	From, To int
	Unit     int64
}

// BatchTiers price a batch of company verifications by position in the batch.
var BatchTiers = []Tier{{1, 49, 1200}, {50, 249, 900}, {250, 0, 600}}

// WatchTiers price a month of monitoring by number of watched items.
var WatchTiers = []Tier{
	{1, 25, 396}, {26, 100, 200}, {101, 500, 100}, {501, 1000, 80}, {1001, 2000, 60},
	{2001, 5000, 50}, {5001, 10000, 35}, {10001, 25000, 20}, {25001, 0, 12},
}

// Terms of monitoring.
const (
	WatchMinimum          = 25     // smallest subscription
	WatchMaximum          = 100000 // largest subscription
	WatchFirstTier  int64 = 9900   // centavos: the first 25 together
	WatchYearMonths       = 10     // months charged for twelve
	WatchPlanCap          = 500    // technical cap per account of the fixed plans
)

// WatchPlan is a fixed monthly plan of monitoring.
type WatchPlan struct {
	Code     string
	Max      int   // watched items
	Monthly  int64 // centavos
	Included int   // verifications included
}

// WatchPlans are the fixed plans.
var WatchPlans = []WatchPlan{
	{"vigilancia_25", 25, 9900, 3},
	{"vigilancia_100", 100, 24900, 8},
	{"vigilancia_500", 500, 59900, 20},
}

// AppendPesos appends centavos as decimal pesos with two places: 1200 is 12.00.
func AppendPesos(dst []byte, centavos int64) []byte {
	n := uint64(centavos)
	if centavos < 0 {
		dst = append(dst, '-')
		n = -n
	}
	dst = strconv.AppendUint(dst, n/100, 10)
	return append(dst, '.', byte('0'+n/10%10), byte('0'+n%10))
}

// Pesos is AppendPesos as a string.
func Pesos(centavos int64) string { return string(AppendPesos(nil, centavos)) }
