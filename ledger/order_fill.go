package ledger

import (
	"fmt"
	"slices"
)

// segment is consecutive records of an order that one movement paid, or that nothing
// did.
type segment struct {
	count    int
	unit     int64  // centavos of each; 0: uses paid, or nothing
	movement uint64 // 0: nothing paid
}

// uses and centavos are what the segment cost.
func (s *segment) uses() int64 {
	if s.movement != 0 && s.unit == 0 {
		return int64(s.count)
	}
	return 0
}

func (s *segment) centavos() int64 { return int64(s.count) * s.unit }

// pays divides the verifications from first to last by what pays for them out of held,
// uses before money. ok is false when that is too little.
func (o *Order) pays(held Held, first, last int) (plan []segment, ok bool) {
	if n := min(int64(last-first+1), held.Uses); n > 0 {
		plan = append(plan, segment{count: int(n)})
		first += int(n)
	}
	for first <= last {
		price, end := o.prices().stretch(int64(first))
		s := segment{count: min(last, int(end)) - first + 1, unit: price}
		plan = append(plan, s)
		held.Centavos -= s.centavos()
		first += s.count
	}
	return plan, held.Centavos >= 0
}

// Apply implements Command.
func (c FillOrder) Apply(tx *Tx) (Result, error) {
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	b := c.Block
	o, err := tx.order(&b.order)
	if err != nil {
		return nil, err
	}
	switch {
	case b.count == 0:
		return nil, fmt.Errorf("ledger: el bloque del lote %v no tiene registros", o.ID)
	case b.first != o.Done+1:
		return nil, &OrdinalError{First: b.first, Done: o.Done}
	case o.State != OrderOpen:
		return nil, ErrOrderEnded
	case o.Service != b.service || o.Operation != b.operation || o.Edition != b.edition || b.last() > o.Units:
		return nil, errOther
	}
	if taken, err := tx.hasAny(b); err != nil {
		return nil, err
	} else if taken {
		return nil, ErrDuplicate
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	filled, plan := OrderFilled{Done: b.last()}, []segment{{count: b.count}}
	if o.Price > 0 {
		if plan, err = tx.payOrder(w, c, &o); err != nil {
			return nil, err
		}
	}
	day := tx.ledgerDay(w, c.Now)
	u := Usage{Org: o.Org, Sandbox: o.Sandbox, Day: day, Service: o.Service, Answers: int64(b.count)}
	for i := range plan {
		s := &plan[i]
		filled.Uses += s.uses()
		filled.Centavos += s.centavos()
		if s.movement != 0 {
			u.Charged += int64(s.count)
		}
	}
	u.Centavos, u.Uses = filled.Centavos, filled.Uses
	if err := tx.addUsage(u); err != nil {
		return nil, err
	}
	var room [max(recordKeyLen, orderKeyLen+4)]byte
	tx.value = b.append(tx.value[:0], plan)
	tx.put(spaceBlock, appendRecordKey(room[:0], o.Org, o.Sandbox, b.lastID()), tx.value)
	tx.seq.pending.blocks++
	tx.value = b.lastID().append(append(tx.value[:0], schema))
	tx.put(spaceOrderBlock, o.appendPart(room[:0], b.last()), tx.value)
	o.Done = b.last()
	o.Uses += filled.Uses
	o.Centavos += filled.Centavos
	if o.Done == o.Units {
		o.State, o.Ended, filled.Ended = OrderDone, c.Now, true
	}
	tx.putOrder(&o)
	filled.Balance = w.spendable(c.Now)
	return filled, nil
}

// payOrder pays for a block out of what the order holds: one movement for each stretch
// of one price and one means. When it refuses nothing was written.
func (tx *Tx) payOrder(w *wallet, c FillOrder, o *Order) ([]segment, error) {
	b := c.Block
	at := w.holdAt(o.Hold)
	if at < 0 || w.holds[at].lapsed(c.Now) {
		return nil, ErrNoHold
	}
	plan, ok := o.pays(w.holds[at].held(), b.first, b.last())
	if !ok {
		return nil, ErrNoHold // something else was paid from it
	}
	tx.advance(w, c.Now)
	at = w.holdAt(o.Hold)
	from := b.first
	for i := range plan {
		s := &plan[i]
		m := tx.begin(w, c.Now, KindOrder)
		m.Org, m.Service, m.Hold = o.Org, o.Service, o.Hold
		m.Order, m.Record, m.Unit = o.ID, b.ids, s.unit
		m.From, m.To = from, from+s.count-1
		m.Record.Counter += uint32(from - b.first)
		lots := &w.holds[at].lots
		if s.unit == 0 {
			m.Lots, *lots = take(m.Lots, *lots, o.Service, int64(s.count))
		} else {
			m.Lots, *lots = take(m.Lots, *lots, "", s.centavos())
		}
		tx.putMovement(w, m)
		s.movement = m.Number
		from += s.count
	}
	if len(w.holds[at].lots) == 0 {
		w.holds = slices.Delete(w.holds, at, at+1)
	}
	tx.putWallet(w)
	return plan, nil
}
