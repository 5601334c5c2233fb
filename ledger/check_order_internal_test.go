package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"
)

// filledOrder is an order of five: two uses, one at 12.00, two at 8.00, of which the
// blocks 1 to 3 and 4 to 5 are stored; its movements are 4, 5 and 6.
func filledOrder(t testing.TB, l *Ledger) Order {
	t.Helper()
	do(t, l, 1, Credit{Now: noon, Org: 2, Centavos: 10_000})                 // 1
	do(t, l, 1, CreditUses{Now: noon, Org: 2, Service: "COMPANY", Count: 2}) // 2
	id, err := l.NextID(context.Background(), OrderPrefix, noon)
	if err != nil {
		t.Fatal(err)
	}
	c := OpenOrder{Now: noon, ID: id, Org: 2, Service: "COMPANY", Operation: "company", Edition: [32]byte{1}, Units: 5, // 3
		Price: 1200, Steps: []Step{{4, 800}}, Until: noon.Add(time.Hour), Terms: []byte("t"), Input: [][]byte{[]byte("i")}}
	do(t, l, 1, c)
	k := OrderKey{Org: 2, ID: id}
	b, err := l.NewBlockBuilder()
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []int{1, 4} {
		ids, n, err := l.NextIDs(context.Background(), "COM", noon, min(3, 6-first))
		if err != nil {
			t.Fatal(err)
		}
		for b.Reset(&Order{OrderKey: k, Service: c.Service, Operation: c.Operation, Edition: c.Edition}, first, ids, n); b.Room(); {
			registro := fmt.Appendf(nil, `{"entrada":{"rfc":"AAA010101AA%d"},"fecha":"2026-11-20","motor":"COMPANY/1"}`, b.Next())
			acta := fmt.Appendf(nil, `{"registro_sha256":"%x","verification_id":"%s"}`, sha256.Sum256(registro), b.NextID())
			if err := b.Add("COMPANY_OK", registro, sha256.Sum256(registro), acta, nil); err != nil {
				t.Fatal(err)
			}
		}
		do(t, l, 1, FillOrder{Now: noon, Block: b.Block()})
	}
	o, err := l.Read(1).Order(k)
	if err != nil || o.State != OrderDone {
		t.Fatal(o, err)
	}
	return o
}

// TestCheckFindsOrderFaults breaks a ledger with an order in one place at a time.
func TestCheckFindsOrderFaults(t *testing.T) {
	f := func(what string, damage func(t *testing.T, l *Ledger, o Order)) {
		t.Run(what, func(t *testing.T) {
			l, s := openTest(t)
			o := filledOrder(t, l)
			if rep, err := Check(context.Background(), s); err != nil || rep.Orders != 1 || rep.Records != 5 || rep.Movements != 6 {
				t.Fatalf("before the damage: %+v, %v", rep, err)
			}
			damage(t, l, o)
			rep, err := Check(context.Background(), s)
			if !errors.Is(err, ErrIntegrity) || len(rep.Violations) == 0 {
				t.Errorf("Check = %+v, %v; want ErrIntegrity", rep, err)
			}
		})
	}
	head := func(edit func(*Order)) func(*testing.T, *Ledger, Order) {
		return func(t *testing.T, l *Ledger, o Order) {
			key := o.OrderKey.append(nil)
			edit(&o)
			do(t, l, 1, raw{spaceOrder, key, o.append(nil)})
		}
	}
	change := func(number uint64, edit func(*Movement)) func(*testing.T, *Ledger, Order) {
		return func(t *testing.T, l *Ledger, _ Order) {
			m, err := l.Read(1).Movement(number)
			if err != nil {
				t.Fatal(err)
			}
			edit(&m)
			do(t, l, 1, raw{spaceMovement, movementKey(number), m.append(nil)})
		}
	}
	// at is the key and value of a block of the order.
	at := func(t *testing.T, l *Ledger, space Space, number int) (key, value []byte) {
		t.Helper()
		err := l.Read(1).Scan(space, nil, func(k, v []byte) error {
			if number--; number == 0 {
				key, value = bytes.Clone(k), bytes.Clone(v)
			}
			return nil
		})
		if err != nil || key == nil {
			t.Fatal(err)
		}
		return key, value
	}
	block := func(number int, edit func(*storedBlock)) func(*testing.T, *Ledger, Order) {
		return func(t *testing.T, l *Ledger, _ Order) {
			key, value := at(t, l, spaceBlock, number)
			var b storedBlock
			if err := b.read(key, value); err != nil {
				t.Fatal(err)
			}
			edit(&b)
			again := Block{blockHead: b.blockHead, base: b.base, raw: b.raw, packed: b.packed, body: b.body}
			do(t, l, 1, raw{spaceBlock, key, again.append(nil, b.segments)})
		}
	}
	gone := func(space Space, number int) func(*testing.T, *Ledger, Order) {
		return func(t *testing.T, l *Ledger, _ Order) {
			key, _ := at(t, l, space, number)
			do(t, l, 1, erase{space, key})
		}
	}
	f("the order gone", gone(spaceOrder, 1))
	f("its terms gone", gone(spaceOrderInput, 1))
	f("a piece of its input gone", gone(spaceOrderInput, 2))
	f("the first block gone", gone(spaceBlock, 1))
	f("the last block gone", gone(spaceBlock, 2))
	f("a block without entry", gone(spaceOrderBlock, 2))
	f("fewer done", head(func(o *Order) { o.Done, o.State = 4, OrderOpen }))
	f("done too early", head(func(o *Order) { o.Units = 6 }))
	f("not done at the end", head(func(o *Order) { o.State = OrderOpen }))
	f("another sum", head(func(o *Order) { o.Centavos++ }))
	f("other uses", head(func(o *Order) { o.Uses-- }))
	f("another price", head(func(o *Order) { o.Price = 1199 }))
	f("another step", head(func(o *Order) { o.Steps[0].From = 5 }))
	f("another edition", head(func(o *Order) { o.Edition[0]++ }))
	f("a movement of another order", change(4, func(m *Movement) { m.Order.Counter++ }))
	f("a movement of other ordinals", change(5, func(m *Movement) { m.From, m.To = 4, 4 }))
	f("a movement of other records", change(5, func(m *Movement) { m.Record.Counter-- }))
	f("a movement of one more", change(6, func(m *Movement) { m.To++ }))
	f("a wrong tier", change(6, func(m *Movement) { m.Unit = 1200 }))
	f("a wrong tier all through", func(t *testing.T, l *Ledger, o Order) {
		change(6, func(m *Movement) { m.Unit, m.Centavos, m.Lots[0].Centavos, m.Balance = 700, -1400, 1400, m.Balance+200 })(t, l, o)
		block(2, func(b *storedBlock) { b.segments[0].unit = 700 })(t, l, o)
		head(func(o *Order) { o.Centavos -= 200 })(t, l, o)
		w, err := l.Read(1).wallet()
		if err != nil {
			t.Fatal(err)
		}
		w.lots[0].Left += 200
		do(t, l, 1, raw{spaceWallet, nil, w.append(nil)})
	})
	f("a use that paid nothing", change(4, func(m *Movement) { m.Uses, m.Lots[0].Uses = -1, 1 }))
	f("no hold pays", change(5, func(m *Movement) { m.Hold = 0 }))
	f("a block of other ordinals", block(2, func(b *storedBlock) { b.first = 3 }))
	f("a block of another order", block(2, func(b *storedBlock) { b.order.ID.Counter++ }))
	f("a block of another service", block(2, func(b *storedBlock) { b.service = "NOMINA" }))
	f("a block that says another movement", block(2, func(b *storedBlock) { b.segments[0].movement = 5 }))
	f("a block that was free", block(2, func(b *storedBlock) { b.segments[0] = segment{count: 2} }))
	f("a block that lacks a record", block(1, func(b *storedBlock) { b.count, b.segments = 2, b.segments[:1] }))
	f("a bit of its records", block(1, func(b *storedBlock) { b.body[len(b.body)/2] ^= 4 }))
	f("a mark of no order", func(t *testing.T, l *Ledger, o Order) {
		id := o.ID
		id.Counter++
		m := mark{moment: noon, id: id}
		do(t, l, 1, raw{spaceOnce, appendOnceKey(nil, 2, false, [32]byte{1}), m.append(nil)})
	})
}

// FuzzBlock reads blocks that nobody wrote.
func FuzzBlock(f *testing.F) {
	l, _ := openTest(f)
	filledOrder(f, l)
	var key []byte
	err := l.Read(1).Scan(spaceBlock, nil, func(k, v []byte) error {
		key = bytes.Clone(k)
		f.Add(bytes.Clone(v))
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	p := testPermutation(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		blockCount(value)
		var b storedBlock
		if b.read(key, value) != nil {
			return
		}
		var r Record
		for range b.count {
			c, err := b.step()
			if err != nil {
				return
			}
			if _, err := b.record(&r, &c, p, nil); err == nil && (len(r.Registro) > maxRegistro || len(r.Acta) > maxActa || len(r.Note) > 255) {
				t.Errorf("a record of %d and %d bytes with a note of %d", len(r.Registro), len(r.Acta), len(r.Note))
			}
		}
	})
}
