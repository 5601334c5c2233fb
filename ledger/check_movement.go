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
	if m.Kind != KindExpiry && m.Kind != KindRelease && c.open.late(m.Moment) {
		c.fault("movimiento %d del %s: antes debió vencer un lote o liberarse una retención", m.Number, m.Moment.Format(time.RFC3339))
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
	case KindOrder:
		c.spendOrder(m)
	case KindHold:
		c.hold(m)
	case KindRelease:
		c.release(m)
	case KindExpiry:
		c.expire(m)
	default:
		c.fault("movimiento %d: clase desconocida %d", m.Number, m.Kind)
	}
	return nil
}

// spend replays what paid for answers: one, or several of an order.
func (c *checker) spend(m *Movement) {
	c.usage.spent(c.open.day, m)
	c.parts(m)
	lots, uses := &c.open.lots, c.open.uses(m.Service, m.Moment)
	at := -1
	if m.Hold != 0 {
		at = c.open.holdAt(m.Hold)
		if at < 0 {
			c.fault("movimiento %d: lo paga la retención %d, que no está abierta", m.Number, m.Hold)
			return
		}
		h := &c.open.holds[at]
		if h.org != m.Org || h.service != m.Service {
			c.fault("movimiento %d: lo paga la retención %d, que es de la organización %d y de %s", m.Number, m.Hold, h.org, h.service)
		}
		lots, uses = &h.lots, h.held().Uses
	}
	service := ""
	if m.Uses != 0 {
		service = m.Service
		if m.Uses != -int64(m.Answers()) || m.Centavos != 0 || m.Unit != 0 {
			c.fault("movimiento %d: una respuesta se paga con un uso o con saldo, no %d con %d usos y %d centavos", m.Number, m.Answers(), -m.Uses, -m.Centavos)
		}
	} else if uses > 0 {
		c.fault("movimiento %d: pagó el saldo y quedaban %d usos de %s", m.Number, uses, m.Service)
	}
	if m.Kind == KindOrder && m.Centavos != -m.Unit*int64(m.Answers()) {
		c.fault("movimiento %d: %d respuestas a %d centavos costaron %d", m.Number, m.Answers(), m.Unit, -m.Centavos)
	}
	*lots = c.takeInOrder(m, m.Lots, *lots, service)
	if at >= 0 && len(*lots) == 0 {
		c.open.holds = slices.Delete(c.open.holds, at, at+1)
	}
}

// takeInOrder takes parts from the lots of one kind, which must be the first of them
// and leave nothing behind but in the last.
func (c *checker) takeInOrder(m *Movement, parts []Split, lots []Lot, service string) []Lot {
	for i, s := range parts {
		at := slices.IndexFunc(lots, func(l Lot) bool { return l.Service == service })
		if at < 0 || !takePart(s, &lots[at]) {
			c.fault("movimiento %d: toma %d del lote %d y el que tocaba es otro o no alcanza", m.Number, s.amount(), s.Lot)
			return lots
		}
		l := lots[at]
		if m.Hold == 0 && !l.Expires.After(m.Moment) {
			c.fault("movimiento %d del %s: el lote %d venció el %s", m.Number,
				m.Moment.Format(time.RFC3339), l.Number, l.Expires.Format(time.RFC3339))
		}
		if l.Left > 0 && i < len(parts)-1 {
			c.fault("movimiento %d: deja %d en el lote %d", m.Number, l.Left, l.Number)
		}
		if l.Left == 0 {
			lots = slices.Delete(lots, at, at+1)
		}
	}
	return lots
}

// hold replays a reservation: what it takes from the lots stays the account's.
func (c *checker) hold(m *Movement) {
	h := hold{number: m.Number, org: m.Org, service: m.Service, until: m.Until}
	ofUses := 0
	for i, s := range m.Lots {
		at := slices.IndexFunc(c.open.lots, func(l Lot) bool { return l.Number == s.Lot })
		if s.Uses != 0 && ofUses == i {
			ofUses++
		}
		if at < 0 {
			continue // takeInOrder says so
		}
		part := c.open.lots[at]
		part.Left = s.amount()
		h.lots = append(h.lots, part)
	}
	uses := c.open.uses(m.Service, m.Moment)
	c.open.lots = c.takeInOrder(m, m.Lots[:ofUses], c.open.lots, m.Service)
	c.open.lots = c.takeInOrder(m, m.Lots[ofUses:], c.open.lots, "")
	if left := c.open.uses(m.Service, m.Moment); left > 0 && ofUses < len(m.Lots) || left > uses {
		c.fault("movimiento %d: retiene saldo y quedaban %d usos de %s", m.Number, left, m.Service)
	}
	if m.Centavos != 0 || m.Uses != 0 || len(h.lots) == 0 || len(c.open.holds) >= maxHolds ||
		!m.Until.After(m.Moment) || m.Until.After(m.Moment.Add(MaxHold)) {
		c.fault("movimiento %d: no es una retención: %d centavos, %d usos, %d partes, hasta %s",
			m.Number, m.Centavos, m.Uses, len(h.lots), m.Until.Format(time.RFC3339))
	}
	c.open.holds = append(c.open.holds, h)
}

// release replays what a hold gives back: all that it has.
func (c *checker) release(m *Movement) {
	at := c.open.holdAt(m.Hold)
	if at < 0 {
		c.fault("movimiento %d: libera la retención %d, que no está abierta", m.Number, m.Hold)
		return
	}
	h := &c.open.holds[at]
	var rest []Split
	for i := range h.lots {
		rest = append(rest, h.lots[i].split(h.lots[i].Left))
	}
	if m.Centavos != 0 || m.Uses != 0 || m.Org != h.org || m.Service != h.service || !slices.Equal(rest, m.Lots) {
		c.fault("movimiento %d: libera %v de la retención %d, que tiene %v", m.Number, m.Lots, m.Hold, rest)
	}
	c.open.giveBack(at)
}

// expire replays the end of one lot.
func (c *checker) expire(m *Movement) {
	c.parts(m)
	if len(m.Lots) != 1 || len(c.open.lots) == 0 || !takePart(m.Lots[0], &c.open.lots[0]) || c.open.lots[0].Service != m.Service {
		c.fault("movimiento %d: vence %v y el que tocaba es otro", m.Number, m.Lots)
		return
	}
	l := c.open.lots[0]
	c.open.lots = slices.Delete(c.open.lots, 0, 1)
	if l.Expires.After(m.Moment) || l.Left > 0 {
		c.fault("movimiento %d del %s: el lote %d vence el %s y le quedan %d", m.Number,
			m.Moment.Format(time.RFC3339), l.Number, l.Expires.Format(time.RFC3339), l.Left)
	}
}

// parts tests that the amounts of a movement that takes are the sum of its parts.
func (c *checker) parts(m *Movement) {
	centavos, uses := total(m.Lots)
	if centavos+uses <= 0 || centavos != -m.Centavos || uses != -m.Uses {
		c.fault("movimiento %d: %d centavos y %d usos en total, %d y %d por lotes", m.Number, m.Centavos, m.Uses, centavos, uses)
	}
}

// takePart takes a part from a lot; false when it is not a part of that one.
func takePart(s Split, l *Lot) bool {
	amount := s.amount()
	if s.Lot != l.Number || s != l.split(amount) || amount <= 0 || amount > l.Left {
		return false
	}
	l.Left -= amount
	return true
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
