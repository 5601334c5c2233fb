package ledger

import "time"

// means is what pays for one answer: an individual use, or centavos of package
// money.
type means struct {
	use      bool
	centavos int64
}

// means decides what pays for one answer at now: a use of the service first, money
// else. It refuses with *FundsError.
func (w *wallet) means(now time.Time, service string, price int64) (means, error) {
	if w.uses(service, now) > 0 {
		return means{use: true}, nil
	}
	balance := w.spendable(now)
	if balance < price || price == 0 {
		return means{}, &FundsError{Service: service, Price: price, Balance: balance}
	}
	return means{centavos: price}, nil
}

// debit takes the means, which the wallet must have at now, and begins the movement
// that says so. It is the caller's to complete, and to put with paid.
func (tx *Tx) debit(w *wallet, now time.Time, kind Kind, org OrgID, service string, pay means) *Movement {
	tx.expireLots(w, now)
	m := tx.begin(w, now, kind)
	m.Org, m.Service = org, service
	if pay.use {
		m.Lots = w.take(m.Lots, service, 1)
	} else {
		m.Lots = w.take(m.Lots, "", pay.centavos)
	}
	return m
}

// paid writes a movement of debit, and the wallet.
func (tx *Tx) paid(w *wallet, m *Movement) Charged {
	tx.putMovement(w, m)
	tx.putWallet(w)
	c := Charged{Movement: m.Number, Centavos: -m.Centavos, Uses: -m.Uses, Balance: w.spendable(m.Moment)}
	if c.Uses > 0 {
		c.Lot, c.UsesLeft = m.Lots[0].Lot, w.uses(m.Service, m.Moment)
	}
	return c
}

// usage is what the answer that was charged adds to the counts of a day.
func (c *Charged) usage(org OrgID, sandbox bool, day uint32, service string) Usage {
	u := Usage{Org: org, Sandbox: sandbox, Day: day, Service: service, Answers: 1, Centavos: c.Centavos, Uses: c.Uses}
	if c.Movement != 0 {
		u.Charged = 1
	}
	return u
}
