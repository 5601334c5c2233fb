package ledger

import (
	"encoding/binary"
	"errors"
	"slices"

	"cotejo/store"
)

// spendOrder replays what paid for consecutive verifications of an order. That its
// block says the same, and the price of each position, is for orders.
func (c *checker) spendOrder(m *Movement) {
	c.spend(m)
	if m.Hold == 0 {
		c.fault("movimiento %d: un lote se paga de una retención", m.Number)
	}
	b, err := c.at.blockOf(appendRecordKey(nil, m.Org, false, m.Record))
	if err != nil {
		c.fault("movimiento %d: el bloque de su registro %v: %v", m.Number, m.Record, err)
		return
	}
	at := b.first
	i := slices.IndexFunc(b.segments, func(s segment) bool {
		at += s.count
		return s.movement == m.Number
	})
	if i < 0 || !sameOrder(&b.order.ID, &m.Order) || b.service != m.Service || at-1 != m.To || m.From != at-b.segments[i].count ||
		b.segments[i].unit != m.Unit || m.Record.Counter-b.ids.Counter != uint32(m.From-b.first) {
		c.fault("movimiento %d: paga las consultas %d a %d de %v desde %v, y su bloque no dice eso", m.Number, m.From, m.To, m.Order, m.Record)
	}
}

// sameOrder compares ids of orders of which one may lack its code.
func sameOrder(a, b *VerificationID) bool {
	return a.Prefix == b.Prefix && a.Day == b.Day && a.Counter == b.Counter
}

// orders tests that the blocks of each order hold its ordinals from 1 on without gap or
// overlap, that each position cost what the order says, and that the sums agree.
func (c *checker) orders() error {
	blocks, pieces := 0, 0
	err := c.at.Scan(spaceOrder, nil, func(key, value []byte) error {
		c.report.Orders++
		o, err := decodeOrder(key, value, c.perm)
		if err != nil {
			c.fault("el lote de consultas %x es ilegible", key)
			return nil
		}
		n, err := c.orderBlocks(&o)
		blocks += n
		if !o.Forgotten {
			pieces += o.Pieces + 1
			for i := range o.Pieces + 1 {
				if _, err := c.at.Get(spaceOrderInput, o.appendPart(nil, i)); errors.Is(err, store.ErrNotFound) {
					c.fault("lote %v: falta la parte %d de su entrada", o.ID, i)
				} else if err != nil {
					return err
				}
			}
		}
		c.order(&o)
		return err
	})
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		space Space
		want  int
		what  string
	}{{spaceOrderBlock, blocks, "bloques anotados"}, {spaceBlock, blocks, "bloques"}, {spaceOrderInput, pieces, "partes de entradas"}} {
		n := 0
		if err := c.at.Scan(kind.space, nil, func(_, _ []byte) error { n++; return nil }); err != nil {
			return err
		}
		if n != kind.want {
			c.fault("los lotes de consultas tienen %d %s y hay %d", kind.want, kind.what, n)
		}
	}
	return nil
}

// order tests what an order says of itself, and its hold.
func (c *checker) order(o *Order) {
	if v := c.leases[OrderPrefix]; !v.gave(&o.ID) {
		c.fault("lote %v: su identificador no estaba apartado", o.ID)
	}
	if o.Units < 1 || o.Done > o.Units || (o.State == OrderDone) != (o.Done == o.Units) || (o.Price == 0) != (o.Hold == 0) ||
		o.Price > 0 && (o.Sandbox || o.prices().valid() != nil) {
		c.fault("lote %v: dice estado %d con %d de %d consultas, a %d centavos y con la retención %d", o.ID, o.State, o.Done, o.Units, o.Price, o.Hold)
	}
	at := c.open.holdAt(o.Hold)
	if o.Hold == 0 || at < 0 {
		return
	}
	if h := &c.open.holds[at]; o.State != OrderOpen || h.org != o.Org || h.service != o.Service {
		c.fault("lote %v: terminó o es de otra organización, y su retención %d sigue abierta", o.ID, o.Hold)
	}
}

// orderBlocks tests the blocks of an order, and says how many there are.
func (c *checker) orderBlocks(o *Order) (n int, err error) {
	var b storedBlock
	var uses, centavos int64
	done := 0
	err = c.at.Scan(spaceOrderBlock, o.OrderKey.append(nil), func(key, value []byte) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n++
		if err := c.at.orderBlock(o.OrderKey, value, &b); errors.Is(err, errValue) || errors.Is(err, errOther) {
			c.fault("lote %v, después de la consulta %d: %v", o.ID, done, err)
			return nil
		} else if err != nil {
			return err
		}
		if b.first != done+1 || len(key) != orderKeyLen+4 || int(binary.BigEndian.Uint32(key[orderKeyLen:])) != b.last() {
			c.fault("lote %v: tras la consulta %d sigue un bloque de la %d a la %d", o.ID, done, b.first, b.last())
		}
		if b.service != o.Service || b.operation != o.Operation || b.edition != o.Edition {
			c.fault("lote %v: el bloque de la consulta %d es de otro servicio, operación o edición", o.ID, b.first)
		}
		at := b.first
		for i := range b.segments {
			s := &b.segments[i]
			c.segment(o, &b, s, at)
			uses += s.uses()
			centavos += s.centavos()
			at += s.count
		}
		done = b.last()
		return nil
	})
	if done != o.Done || uses != o.Uses || centavos != o.Centavos {
		c.fault("lote %v: dice %d consultas, %d usos y %d centavos, y sus bloques suman %d, %d y %d",
			o.ID, o.Done, o.Uses, o.Centavos, done, uses, centavos)
	}
	return n, err
}

// segment tests what records from an ordinal on cost.
func (c *checker) segment(o *Order, b *storedBlock, s *segment, from int) {
	if o.Price == 0 {
		if s.movement != 0 || s.unit != 0 {
			c.fault("lote %v: la consulta %d costó %d centavos y el lote no se cobra", o.ID, from, s.unit)
		}
		return
	}
	m, err := c.at.Movement(s.movement)
	if err != nil {
		c.fault("lote %v: el movimiento %d de la consulta %d: %v", o.ID, s.movement, from, err)
		return
	}
	if m.Kind != KindOrder || m.Org != o.Org || !sameOrder(&m.Order, &o.ID) || m.From != from || m.To != from+s.count-1 || m.Unit != s.unit {
		c.fault("lote %v: el movimiento %d no es el de la consulta %d", o.ID, s.movement, from)
	}
	if price, last := o.prices().stretch(int64(from)); s.unit != 0 && (s.unit != price || from+s.count-1 > int(last)) {
		c.fault("lote %v: las consultas %d a %d costaron %d centavos cada una, y desde la %d son %d hasta la %d",
			o.ID, from, from+s.count-1, s.unit, from, price, last)
	}
}

// blocks tests the records that lie in blocks.
func (c *checker) blocks() error {
	var b storedBlock
	var r Record
	return c.at.Scan(spaceBlock, nil, func(key, value []byte) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := b.read(key, value); err != nil {
			c.fault("el bloque %x es ilegible", key)
			return nil
		}
		for range b.count {
			read, err := b.step()
			if err == nil {
				b.text, err = b.record(&r, &read, c.perm, b.text[:0])
			}
			if err != nil {
				c.fault("%v", b.broken(err))
				return nil
			}
			c.report.Records++
			c.usage.records[usageKey{org: r.Org, sandbox: r.Sandbox, service: r.Service}]++
			c.record(&r)
		}
		return nil
	})
}
