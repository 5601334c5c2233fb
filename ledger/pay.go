package ledger

import (
	"slices"
	"time"
)

// means is what pays for one answer: an individual use, or centavos of package
// money; out of a hold, or else out of what is free.
type means struct {
	use      bool
	centavos int64
	hold     uint64
}

// means decides what pays for one answer at now: a use of the service first, money
// else. It refuses with *FundsError, and with ErrNoHold.
func (w *wallet) means(now time.Time, org OrgID, service string, price int64, number uint64) (means, error) {
	uses, balance := w.uses(service, now), w.spendable(now)
	if number != 0 {
		at := w.holdAt(number)
		if at < 0 {
			return means{}, ErrNoHold
		}
		h := &w.holds[at]
		if h.lapsed(now) || h.org != org || h.service != service {
			return means{}, ErrNoHold
		}
		held := h.held()
		uses, balance = held.Uses, held.Centavos
	}
	if uses > 0 {
		return means{use: true, hold: number}, nil
	}
	if balance < price || price == 0 {
		return means{}, &FundsError{Service: service, Price: price, Balance: balance}
	}
	return means{centavos: price, hold: number}, nil
}

// debit takes the means, which the wallet must have at now, and begins the movement
// that says so. It is the caller's to complete, and to put with paid.
func (tx *Tx) debit(w *wallet, now time.Time, kind Kind, org OrgID, service string, pay means) *Movement {
	tx.advance(w, now)
	m := tx.begin(w, now, kind)
	m.Org, m.Service, m.Hold = org, service, pay.hold
	lots, at := &w.lots, -1
	if pay.hold != 0 {
		at = w.holdAt(pay.hold)
		lots = &w.holds[at].lots
	}
	if pay.use {
		m.Lots, *lots = take(m.Lots, *lots, service, 1)
	} else {
		m.Lots, *lots = take(m.Lots, *lots, "", pay.centavos)
	}
	if at >= 0 && len(*lots) == 0 {
		w.holds = slices.Delete(w.holds, at, at+1)
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
