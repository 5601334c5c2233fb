package export

import (
	"context"
	"encoding/hex"

	"cotejo/canon"
	"cotejo/ledger"
)

// orderLine is one line of the orders.
type orderLine struct {
	Centavos int64      `json:"centavos"`
	Units    int        `json:"consultas"`
	Edition  string     `json:"edicion_sha256"`
	Prices   []stepLine `json:"escalones"`
	State    string     `json:"estado"`
	Done     int        `json:"guardadas"`
	ID       string     `json:"lote_id"`
	Service  string     `json:"service"`
	Uses     int64      `json:"usos"`
}

// stepLine is what each verification costs from a position on.
type stepLine struct {
	Centavos int64 `json:"centavos"`
	From     int64 `json:"desde"`
}

// chargeLine is one line of what paid for them.
type chargeLine struct {
	Centavos int64    `json:"centavos"`
	From     int      `json:"desde"`
	To       int      `json:"hasta"`
	Order    string   `json:"lote_id"`
	Movement *uint64  `json:"movimiento"`
	Unit     int64    `json:"precio_unitario"`
	Uses     int64    `json:"usos"`
	Records  []string `json:"verificaciones"`
}

var orderStates = map[ledger.OrderState]string{ledger.OrderOpen: "abierto", ledger.OrderDone: "terminado", ledger.OrderStopped: "detenido"}

// order writes the line of an order, and one for each movement that paid for
// verifications of it.
func (e *evidence) order(ctx context.Context, v ledger.GroupView, account ledger.AccountID, o *ledger.Order) error {
	line := orderLine{
		Centavos: o.Centavos, Units: o.Units, Edition: hex.EncodeToString(o.Edition[:]), Prices: []stepLine{}, State: orderStates[o.State],
		Done: o.Done, ID: o.ID.String(), Service: o.Service, Uses: o.Uses,
	}
	if o.Price > 0 {
		line.Prices = append(line.Prices, stepLine{o.Price, 1})
	}
	for _, s := range o.Steps {
		line.Prices = append(line.Prices, stepLine{s.Centavos, s.From})
	}
	if err := writeLine(e.orders, line); err != nil {
		return err
	}
	return v.OrderCharges(account, o.OrderKey, func(c ledger.OrderCharge) error {
		if err := e.step(ctx, e.folder, v); err != nil {
			return err
		}
		paid := chargeLine{Centavos: c.Centavos, From: c.From, To: c.To, Order: line.ID, Unit: c.Unit, Uses: c.Uses}
		if c.Movement != 0 {
			paid.Movement = &c.Movement
		}
		for _, id := range c.Records {
			paid.Records = append(paid.Records, id.String())
		}
		return writeLine(e.charges, paid)
	})
}

func writeLine(to *output, v any) error {
	text, err := canon.Marshal(v)
	if err != nil {
		return err
	}
	return to.line(text)
}
