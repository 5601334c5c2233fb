// Package wallet shows an organization what it can pay with, and what became of it:
// package money, individual uses, holds, and the movements of all of them.
//
// The wallet is the account's, and its organizations share it. What a sister
// organization did shows its amount and nothing that leads to what it asked. Start
// reading at Operations.
package wallet

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/ledger"
	op "cotejo/operation"
)

//go:embed examples
var examples embed.FS

// Movements of one answer.
const (
	defaultLimit = 50
	maxLimit     = 500
)

const (
	limitName  = "limite"
	cursorName = "despues_de"
)

// Operations lists what this family can do. now is the clock of its answers.
func Operations(book *ledger.Ledger, now func() time.Time) []op.Operation {
	return []op.Operation{{
		ID: "consultarWallet", Method: "GET", Path: "/v1/wallet", Tag: "Saldo", Auth: op.Keyed,
		Summary: "Saldo, usos individuales, retenciones y movimientos",
		Description: "Lo que la cuenta puede gastar ahora, cada abono con su vencimiento, y los movimientos, el más reciente primero. " +
			"Todas las organizaciones de una cuenta comparten el saldo: un movimiento de otra muestra su monto y nada de lo que preguntó. " +
			"Los usos individuales se consumen antes que el saldo, y de cada uno primero lo que antes vence. Gratuita.\n\n" +
			"Con una llave de prueba responde datos sintéticos, siempre los mismos; los verification_id que muestra no existen.\n\n" +
			"El saldo es el de este momento: una consulta en curso puede gastarlo.",
		Params: []op.Param{{
			Name: limitName, In: op.InQuery, Default: defaultLimit, Description: "Movimientos por respuesta.",
			Schema: &jsonschema.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(float64(maxLimit))},
		}, {
			Name: cursorName, In: op.InQuery,
			Description: "Sigue la lista después de este número de movimiento: el siguiente de la respuesta anterior.",
			Schema:      &jsonschema.Schema{Type: "integer", Minimum: new(1.0)},
		}},
		Output:   schema(),
		Examples: []op.Example{example("wallet", "Saldo y últimos movimientos", "/v1/wallet?limite=4")},
		Read: func(_ context.Context, call op.Call) (op.Response, error) {
			limit, _ := op.Get[int](call.Input, limitName)
			before, _ := op.Get[int](call.Input, cursorName)
			page := ledger.Page{Before: uint64(before), Newest: true, Limit: limit}
			if call.Principal.Mode != accounts.Live {
				a := newAnswer(synthetic(), 0)
				a.page(syntheticTrail, page)
				a.Sandbox = true
				return op.JSON(a)
			}
			return read(book, now(), call.Principal, page)
		},
	}}
}

// read answers from one view: lots and movements are of the same moment.
func read(book *ledger.Ledger, now time.Time, who accounts.Principal, page ledger.Page) (_ op.Response, err error) {
	v, err := book.View(who.Account)
	if err != nil {
		return op.Response{}, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	w, err := v.Wallet(now)
	if err != nil {
		return op.Response{}, err
	}
	a := newAnswer(w, who.Org)
	err = v.Movements(page, func(m *ledger.Movement) error {
		a.add(m)
		return nil
	})
	if err != nil {
		return op.Response{}, err
	}
	return op.JSON(a)
}

type answer struct {
	Currency  string     `json:"moneda"`
	Balance   string     `json:"saldo"`
	Lots      []lot      `json:"abonos"`
	Uses      []uses     `json:"usos_individuales"`
	Held      string     `json:"retenido"`
	Holds     []held     `json:"retenciones"`
	Movements []movement `json:"movimientos"`
	Next      *uint64    `json:"siguiente"`
	Sandbox   bool       `json:"sandbox,omitempty"`

	org ledger.OrgID // who asks
}

type lot struct {
	Number  uint64 `json:"lote"`
	Left    string `json:"saldo"`
	Expires string `json:"vence"`
}

type uses struct {
	Service string    `json:"servicio"`
	Left    int64     `json:"usos"`
	Lots    []usesLot `json:"abonos"`
}

type usesLot struct {
	Number  uint64 `json:"lote"`
	Left    int64  `json:"usos"`
	Expires string `json:"vence"`
}

type held struct {
	Number  uint64 `json:"retencion"`
	Service string `json:"servicio"`
	Balance string `json:"saldo"`
	Uses    int64  `json:"usos"`
	Until   string `json:"hasta"`
	Own     bool   `json:"propia"`
}

type movement struct {
	Number  uint64 `json:"numero"`
	Moment  string `json:"momento"`
	Kind    string `json:"tipo"`
	Service string `json:"servicio,omitempty"`
	Amount  string `json:"monto"`
	Uses    int64  `json:"usos"`
	Balance string `json:"saldo_despues"`
	Lots    []part `json:"lotes"`
	Own     bool   `json:"propio"`
	Record  string `json:"verification_id,omitempty"`
	Unit    string `json:"precio_unitario,omitempty"`
	Reason  string `json:"motivo,omitempty"`
	Hold    uint64 `json:"retencion,omitempty"`
	Order   string `json:"lote_id,omitempty"`
	From    int    `json:"desde,omitempty"`
	To      int    `json:"hasta,omitempty"`
}

type part struct {
	Lot    uint64 `json:"lote"`
	Amount string `json:"monto,omitempty"`
	Uses   int64  `json:"usos,omitempty"`
}

// newAnswer shows a wallet to one of its organizations.
func newAnswer(w ledger.Wallet, org ledger.OrgID) *answer {
	a := &answer{
		Currency: "MXN", Balance: op.Pesos(w.Balance), Lots: []lot{}, Uses: []uses{}, Holds: []held{}, Movements: []movement{}, org: org,
	}
	for _, l := range w.Lots {
		if l.Service == "" {
			a.Lots = append(a.Lots, lot{l.Number, op.Pesos(l.Left), civil.Timestamp(l.Expires)})
			continue
		}
		at := slices.IndexFunc(a.Uses, func(u uses) bool { return u.Service == l.Service })
		if at < 0 {
			at = len(a.Uses)
			a.Uses = append(a.Uses, uses{Service: l.Service})
		}
		u := &a.Uses[at]
		u.Left += l.Left
		u.Lots = append(u.Lots, usesLot{l.Number, l.Left, civil.Timestamp(l.Expires)})
	}
	slices.SortFunc(a.Uses, func(x, y uses) int { return cmp.Compare(x.Service, y.Service) })
	var centavos int64
	for _, h := range w.Holds {
		centavos += h.Centavos
		a.Holds = append(a.Holds, held{h.Number, h.Service, op.Pesos(h.Centavos), h.Uses, civil.Timestamp(h.Until), h.Org == org})
	}
	a.Held = op.Pesos(centavos)
	return a
}

// kinds are the words for why something moved.
var kinds = map[ledger.Kind]string{
	ledger.KindCredit: "abono", ledger.KindCharge: "cargo", ledger.KindUse: "cargo", ledger.KindExpiry: "vencimiento",
	ledger.KindHold: "retencion", ledger.KindRelease: "liberacion", ledger.KindOrder: "cargo",
}

// add shows the next older movement.
func (a *answer) add(m *ledger.Movement) {
	own := m.Org == a.org
	shown := movement{
		Number: m.Number, Moment: civil.Timestamp(m.Moment), Kind: kinds[m.Kind], Service: m.Service,
		Amount: op.Pesos(m.Centavos), Uses: m.Uses, Balance: op.Pesos(m.Balance), Lots: []part{}, Own: own, Hold: m.Hold,
	}
	for _, s := range m.Lots {
		p := part{Lot: s.Lot, Uses: s.Uses}
		if s.Uses == 0 {
			p.Amount = op.Pesos(s.Centavos)
		}
		shown.Lots = append(shown.Lots, p)
	}
	if m.Kind == ledger.KindCredit && m.Uses > 0 || m.Kind == ledger.KindOrder && m.Uses == 0 {
		shown.Unit = op.Pesos(m.Unit)
	}
	if own {
		shown.Reason = m.Reason
		switch m.Kind {
		case ledger.KindCharge:
			shown.Record = m.Record.String()
		case ledger.KindOrder:
			shown.Order, shown.From, shown.To = m.Order.String(), m.From, m.To
		}
	}
	a.Movements = append(a.Movements, shown)
	a.Next = nil
	if m.Number > 1 {
		a.Next = &shown.Number
	}
}

// example reads the expected answer of the same name.
func example(name, summary, target string) op.Example {
	body, err := examples.ReadFile("examples/" + name + ".json")
	if err != nil {
		panic(err) // embedded with the binary
	}
	return op.Example{Name: name, Summary: summary, Target: target, Body: body}
}
