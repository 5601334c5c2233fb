package ledger

import (
	"slices"
	"time"

	"cotejo/civil"
)

// movement replays one movement on the lots, which are kept in the order in
// which they must be spent.
func (c *checker) movement(m *Movement) error {
	c.report.Movements++
	c.last++
	if m.Number != c.last {
		c.fault("falta el movimiento %d: sigue el %d", c.last, m.Number)
		c.last = m.Number
	}
	c.day(m)
	c.sum += m.Centavos
	if c.sum != m.Balance || c.sum < 0 {
		c.fault("movimiento %d: dice saldo %d y los movimientos suman %d", m.Number, m.Balance, c.sum)
	}
	switch m.Kind {
	case KindCredit:
		lot := Lot{m.Number, m.Service, m.Centavos + m.Uses, m.Moment.Add(LotLife)}
		if lot.Left <= 0 || (m.Service == "") != (m.Uses == 0) || m.Centavos*m.Uses != 0 ||
			!slices.Equal(m.Lots, []Split{lot.split(lot.Left)}) {
			c.fault("movimiento %d: un abono abre un solo lote con su número, no %v", m.Number, m.Lots)
			return nil
		}
		c.open.add(lot)
	case KindCharge:
		c.spend(m)
		if r, err := c.find(m.Record, m.Org); err != nil {
			c.fault("movimiento %d: su registro %v: %v", m.Number, m.Record, err)
		} else if r.Movement != m.Number || r.Centavos != -m.Centavos || r.Service != m.Service {
			c.fault("movimiento %d: su registro %v dice movimiento %d, %d centavos de %s", m.Number, m.Record, r.Movement, r.Centavos, r.Service)
		}
	case KindUse:
		c.spend(m)
	case KindExpiry:
		c.expire(m)
	default:
		c.fault("movimiento %d: clase desconocida %d", m.Number, m.Kind)
	}
	return nil
}

// spend replays what paid for one answer.
func (c *checker) spend(m *Movement) {
	c.usage.spent(c.open.day, m)
	service := ""
	if m.Uses != 0 {
		service = m.Service
		if m.Uses != -1 || m.Centavos != 0 {
			c.fault("movimiento %d: una respuesta se paga con un uso o con saldo, no con %d usos y %d centavos", m.Number, -m.Uses, -m.Centavos)
		}
	} else if n := c.open.uses(m.Service, m.Moment); n > 0 {
		c.fault("movimiento %d: pagó el saldo y quedaban %d usos de %s", m.Number, n, m.Service)
	}
	c.parts(m)
	for i, s := range m.Lots {
		at := slices.IndexFunc(c.open.lots, func(l Lot) bool { return l.Service == service })
		if at < 0 || !c.take(m, s, at) {
			c.fault("movimiento %d: toma %d del lote %d y el que tocaba es otro o no alcanza", m.Number, s.Centavos+s.Uses, s.Lot)
			return
		}
		l := &c.open.lots[at]
		if !l.Expires.After(m.Moment) {
			c.fault("movimiento %d del %s: el lote %d venció el %s", m.Number,
				m.Moment.Format(time.RFC3339), l.Number, l.Expires.Format(time.RFC3339))
		}
		// Whatever a charge left behind in a lot must be its last.
		if l.Left > 0 && i < len(m.Lots)-1 {
			c.fault("movimiento %d: deja %d en el lote %d", m.Number, l.Left, l.Number)
		}
		c.empty()
	}
}

// expire replays the end of one lot.
func (c *checker) expire(m *Movement) {
	c.parts(m)
	if len(m.Lots) != 1 || len(c.open.lots) == 0 || !c.take(m, m.Lots[0], 0) {
		c.fault("movimiento %d: vence %v y el que tocaba es otro", m.Number, m.Lots)
		return
	}
	l := &c.open.lots[0]
	if l.Expires.After(m.Moment) || l.Left > 0 {
		c.fault("movimiento %d del %s: el lote %d vence el %s y le quedan %d", m.Number,
			m.Moment.Format(time.RFC3339), l.Number, l.Expires.Format(time.RFC3339), l.Left)
	}
	c.empty()
}

// parts tests that the amounts of a movement that takes are the sum of its parts.
func (c *checker) parts(m *Movement) {
	var centavos, uses int64
	for _, s := range m.Lots {
		centavos += s.Centavos
		uses += s.Uses
	}
	if centavos+uses <= 0 || centavos != -m.Centavos || uses != -m.Uses {
		c.fault("movimiento %d: %d centavos y %d usos en total, %d y %d por lotes", m.Number, m.Centavos, m.Uses, centavos, uses)
	}
}

// take takes a part from an open lot; false when it is not a part of that one.
func (c *checker) take(m *Movement, s Split, at int) bool {
	l := &c.open.lots[at]
	amount := s.Centavos + s.Uses
	if s.Lot != l.Number || s != l.split(amount) || amount <= 0 || amount > l.Left || l.Service != "" && l.Service != m.Service {
		return false
	}
	l.Left -= amount
	return true
}

// empty forgets lots of which nothing is left.
func (c *checker) empty() {
	c.open.lots = slices.DeleteFunc(c.open.lots, func(l Lot) bool { return l.Left == 0 })
}

// day follows the ledger days: the first movement of each has a note.
func (c *checker) day(m *Movement) {
	day := civil.Of(m.Moment).Compact()
	if day <= c.open.day {
		return
	}
	c.open.day = day
	c.usage.days++
	if number, err := c.at.firstOf(day); err != nil || number != m.Number {
		c.fault("movimiento %d: es el primero del %d, y de ese día se anotó el %d (%v)", m.Number, day, number, err)
	}
}
