package operation

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	"cotejo/canon"
	"cotejo/ledger"
)

// simulateName is the parameter of every operation that records: with it, nothing
// is executed and the answer is a quote.
const simulateName = "simular"

func simulateParam() Param {
	return Param{
		Name: simulateName, In: InQuery, Default: false,
		Description: "true devuelve una cotización (Cotizacion) en lugar de la respuesta: no se ejecuta, no se guarda y no se cobra nada. Idempotency-Key no se toma en cuenta.",
		Schema:      &jsonschema.Schema{Type: "boolean"},
	}
}

// quote is what a question would cost its asker now.
type quote struct {
	price      Price
	chargeable bool  // by a live key, and its answer may be charged
	cost       int64 // centavos that a charged answer debits; 0 when nothing or a use pays
	enough     bool
	funds      ledger.Funds // when cost is looked at, or shown
}

// Forms of payment, as the price list calls them.
const (
	payPackage = "paquete"
	paySingle  = "individual"
	payNothing = "sin_cargo"
)

// form is what would pay.
func (q *quote) form() string {
	switch {
	case !q.chargeable:
		return payNothing
	case q.enough && q.cost == 0 && !q.included():
		return paySingle
	}
	return payPackage
}

// included reports that nothing is debited because the package covers it.
func (q *quote) included() bool { return q.price.Package == 0 && q.funds.Balance > 0 }

// quote prices an answer that is charged if chargeable. It is the one place that
// decides whether it can be paid: what ?simular=1 says is what the request itself
// meets. A charge may still find less: money is only certain in the ledger's order.
// What the account has is looked at only if it matters, or is shown.
func (p *Pipeline) quote(op *Operation, chargeable bool, who accounts.Principal, now time.Time, shown bool) (q quote, err error) {
	q.price, q.enough = op.price, true
	q.chargeable = who.Mode == accounts.Live && chargeable
	if !q.chargeable && !shown {
		return q, nil
	}
	var ok bool
	q.funds, ok, err = p.Ledger.Funded(who.Account, now, op.Service, q.price.Package)
	if !q.chargeable {
		return q, err
	}
	q.enough = ok
	if q.cost = q.price.Package; q.funds.Uses > 0 {
		q.cost = 0
	} else if !ok && q.cost == 0 {
		q.cost = q.price.Single // of what could be bought
	}
	return q, err
}

// simulate answers a question with its quote.
func (p *Pipeline) simulate(ctx context.Context, a *asking, resp *Response) error {
	if err := p.enter(ctx, ClassRead, a.who.Org); err != nil {
		return err
	}
	defer p.leave(ClassRead, a.who.Org)
	ed := p.edition(a.sandbox).Acquire()
	defer ed.Release()
	return p.answerQuote(a.op, a.question.Chargeable(ed), a.dst, resp)
}

func (p *Pipeline) answerQuote(op *Operation, chargeable bool, dst []byte, resp *Response) error {
	q, err := p.quote(op, chargeable, resp.Principal, p.Now(), true)
	if err != nil {
		return err
	}
	resp.Body = q.append(dst, op, resp.Principal.Mode != accounts.Live)
	return nil
}

// refusal is the 402 of a question that cannot be paid, nil when it can.
func (q *quote) refusal() error {
	if q.enough {
		return nil
	}
	return &ledger.FundsError{Service: q.price.Service, Price: q.cost, Balance: q.funds.Balance}
}

// quoteName is the name of the example that is a quote.
const quoteName = "simulacion"

// Texts of a quote.
const (
	quoteNotice  = "Es una cotización: no se ejecutó, no se guardó y no se cobró nada. El precio incluye IVA; saldo y costo son los de este momento."
	quotePoor    = " El saldo no alcanza: abone antes de consultar."
	quoteFree    = " Ahora no se cobraría: la fuente de la que depende el cobro no está cargada."
	quoteWith    = " No se cobra mientras quede saldo de paquete vigente."
	quoteUse     = " Se pagaría con un uso individual, que se consume antes que el saldo."
	quoteSandbox = " Con una llave de prueba nada se cobra."
)

// append appends the JSON answer.
func (q *quote) append(dst []byte, op *Operation, sandbox bool) []byte {
	dst = append(dst, `{"simulacion":true,"servicio":`...)
	dst = canon.AppendString(dst, q.price.Service)
	money := func(name string, centavos int64) {
		dst = append(dst, name...)
		dst = AppendPesos(dst, centavos)
		dst = append(dst, '"')
	}
	money(`,"precio_paquete":"`, q.price.Package)
	money(`,"precio_individual":"`, q.price.Single)
	money(`,"costo":"`, q.cost)
	dst = append(dst, `,"se_cobraria_si":`...)
	dst = canon.AppendString(dst, "result_code es "+strings.Join(op.Charged, " o "))
	dst = append(dst, `,"forma_de_pago":"`...)
	dst = append(append(dst, q.form()...), '"')
	money(`,"saldo":"`, q.funds.Balance)
	dst = append(dst, `,"usos_individuales":`...)
	dst = strconv.AppendInt(dst, q.funds.Uses, 10)
	dst = append(dst, `,"alcanza":`...)
	notice := quoteNotice
	if q.enough {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
		notice += quotePoor
	}
	switch {
	case sandbox:
		notice += quoteSandbox
	case !q.chargeable:
		notice += quoteFree
	case op.included():
		notice += quoteWith
	case q.form() == paySingle:
		notice += quoteUse
	}
	dst = append(dst, `,"aviso":`...)
	dst = canon.AppendString(dst, notice)
	if sandbox {
		dst = append(dst, `,"sandbox":true`...)
	}
	return append(dst, '}')
}

// quoteSchema describes what append writes.
func quoteSchema() *jsonschema.Schema {
	return Titled("Cotizacion", Object(
		F("simulacion", Always(true)),
		F("servicio", Text("Código de precio.")),
		F("precio_paquete", Money("Con saldo de paquete.")),
		F("precio_individual", Money("Con un uso individual.")),
		F("costo", Money("Lo que esta consulta debitaría ahora del saldo si se cobra; 0.00 si la pagaría un uso individual, con llave de prueba o si su respuesta no se puede cobrar.")),
		F("se_cobraria_si", Text("Cuándo se cobra, por result_code.")),
		F("forma_de_pago", OneOf("Con qué se pagaría ahora, como en formas_de_compra de /v1/precios: un uso individual si queda alguno, si no el saldo; sin_cargo si la respuesta no se cobraría.", paySingle, payPackage, payNothing)),
		F("saldo", Money("Saldo de paquete que queda.")),
		F("usos_individuales", Integer("Usos individuales vigentes de este servicio.")),
		F("alcanza", Flag("Quedan usos, o el saldo cubre el costo.")),
		F("aviso", Text("")),
		Maybe("sandbox", Always(true)),
	))
}

// quoteExample is the operation's first example as a quote: what a test key
// without money gets.
func (op *Operation) quoteExample() Example {
	target, mark := op.Examples[0].Target, "?"
	if strings.Contains(target, mark) {
		mark = "&"
	}
	q := quote{price: op.price, enough: true}
	return Example{
		Name: quoteName, Request: op.Examples[0].Request, Summary: "Cotización: nada se ejecuta ni se cobra",
		Target: target + mark + simulateName + "=1", Body: q.append(nil, op, true),
	}
}
