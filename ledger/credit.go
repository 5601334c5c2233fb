package ledger

import (
	"fmt"
	"time"
)

// maxReason bounds the reason of a credit, in bytes.
const maxReason = 2000

// MaxUses bounds the individual uses of one credit.
const MaxUses = 1_000_000

// Credit adds a lot of prepaid package money that expires after 365 days.
type Credit struct {
	Now      time.Time
	Org      OrgID
	Centavos int64 // > 0
	Reason   string
}

// CreditUses adds a lot of individual uses of one service that expires after 365
// days. They pay for that service alone, and for one answer each.
type CreditUses struct {
	Now     time.Time
	Org     OrgID
	Service string
	Count   int64 // > 0
	Unit    int64 // centavos that were paid for each; kept, and never computed with
	Reason  string
}

// Apply implements Command. Its result is a Charged.
func (c Credit) Apply(tx *Tx) (Result, error) {
	if c.Centavos <= 0 || c.Centavos > MaxCentavos {
		return nil, fmt.Errorf("ledger: el abono debe ser de 1 a %d centavos, no de %d", MaxCentavos, c.Centavos)
	}
	return tx.credit(c.Now, c.Reason, Lot{Left: c.Centavos}, func(m *Movement) { m.Org, m.Reason = c.Org, c.Reason })
}

// Apply implements Command. Its result is a Charged.
func (c CreditUses) Apply(tx *Tx) (Result, error) {
	switch {
	case c.Service == "" || len(c.Service) > maxName:
		return nil, fmt.Errorf("ledger: el servicio lleva de 1 a %d bytes", maxName)
	case c.Count <= 0 || c.Count > MaxUses:
		return nil, fmt.Errorf("ledger: se abonan de 1 a %d usos, no %d", MaxUses, c.Count)
	case c.Unit < 0 || c.Unit > MaxCentavos:
		return nil, fmt.Errorf("ledger: el precio de cada uso debe ser de 0 a %d centavos, no de %d", MaxCentavos, c.Unit)
	}
	return tx.credit(c.Now, c.Reason, Lot{Service: c.Service, Left: c.Count}, func(m *Movement) {
		m.Org, m.Reason, m.Service, m.Unit = c.Org, c.Reason, c.Service, c.Unit
	})
}

// size is how many lots there are, with what holds took from them.
func (w *wallet) size() int {
	n := len(w.lots)
	for i := range w.holds {
		n += len(w.holds[i].lots)
	}
	return n
}

// credit opens a lot. complete adds to its movement who brought it.
func (tx *Tx) credit(now time.Time, reason string, lot Lot, complete func(*Movement)) (Result, error) {
	if tx.account == Global {
		return nil, errNoWallet
	}
	if err := validMoment(now); err != nil {
		return nil, err
	}
	if len(reason) > maxReason {
		return nil, fmt.Errorf("ledger: el motivo pasa de %d bytes", maxReason)
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	tx.advance(w, now)
	if w.size() >= maxLots {
		return nil, fmt.Errorf("ledger: la cuenta ya tiene %d abonos con saldo; consuma alguno antes de abonar", maxLots)
	}
	m := tx.begin(w, now, KindCredit)
	lot.Number, lot.Expires = m.Number, now.Add(LotLife)
	w.add(lot)
	m.Lots = append(m.Lots, lot.split(lot.Left))
	complete(m)
	tx.putMovement(w, m)
	tx.putWallet(w)
	c := Charged{Movement: m.Number, Centavos: m.Centavos, Uses: m.Uses, Balance: w.spendable(now)}
	if lot.Service != "" {
		c.Lot, c.UsesLeft = lot.Number, w.uses(lot.Service, now)
	}
	return c, nil
}
