package ledger_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"cotejo/ledger"
	"cotejo/store"
)

// order is the plain model of an order.
type order struct {
	ledger.Order
	terms   []byte
	input   []string
	records []ledger.Record // as stored
}

// price is that of one position, and how many steps are behind it.
func (o *order) price(position int) (centavos int64, step int) {
	centavos = o.Price
	for i, s := range o.Steps {
		if int64(position) >= s.From {
			centavos, step = s.Centavos, i+1
		}
	}
	return centavos, step
}

// cost is what the positions from from on cost when uses cover the first of them.
func (o *order) cost(from, to int, uses int64) (centavos int64) {
	for p := from + int(min(uses, int64(to-from+1))); p <= to; p++ {
		price, _ := o.price(p)
		centavos += price
	}
	return centavos
}

// holdRest takes what the positions from first on may cost.
func (b *book) holdRest(o *order, first int, now, until time.Time) (ledger.Held, error) {
	balance, rest := b.left("", now), o.Units-first+1
	uses := min(int64(rest), b.left(o.Service, now))
	if cost := o.cost(first, o.Units, uses); cost > balance {
		units := uses
		for first+int(units) <= o.Units && o.cost(first, first+int(units), uses) <= balance {
			units++
		}
		return ledger.Held{}, &ledger.FundsError{Service: o.Service, Price: cost, Balance: balance, Wanted: int64(rest), Units: units}
	}
	b.expire(now)
	h := held{org: o.Org, service: o.Service, until: until}
	ofUses, takenUses := take(&b.lots, o.Service, uses)
	ofMoney, takenMoney := take(&b.lots, "", o.cost(first, o.Units, uses))
	h.number = b.move(ledger.Movement{Moment: now, Kind: ledger.KindHold, Org: o.Org, Service: o.Service, Until: until, Lots: append(ofUses, ofMoney...)}).Number
	h.parts = append(takenUses, takenMoney...)
	b.holds = append(b.holds, h)
	o.Hold = h.number
	return h.sum(), nil
}

// holdOf is the place of the order's hold, -1 when it is not there at now.
func (b *book) holdOf(o *order, now time.Time) int {
	return slices.IndexFunc(b.holds, func(h held) bool { return h.number == o.Hold && h.until.After(now) })
}

// fill stores records and pays each position: with a use while there is one.
func (b *book) fill(o *order, first int, records []ledger.Record, now time.Time) (filled ledger.OrderFilled, refused error) {
	switch {
	case first != o.Done+1:
		return filled, &ledger.OrdinalError{First: first, Done: o.Done}
	case o.State != ledger.OrderOpen:
		return filled, ledger.ErrOrderEnded
	}
	last := first + len(records) - 1
	if o.Price > 0 {
		at := b.holdOf(o, now)
		if at < 0 || o.cost(first, last, b.holds[at].sum().Uses) > b.holds[at].sum().Centavos {
			return filled, ledger.ErrNoHold
		}
		b.expire(now)
		h := &b.holds[b.holdOf(o, now)]
		for p := first; p <= last; {
			m := ledger.Movement{Moment: now, Kind: ledger.KindOrder, Org: o.Org, Service: o.Service, Hold: o.Hold, Order: o.ID, From: p, Record: records[p-first].ID}
			kind, uses := "", h.sum().Uses
			step := 0
			m.Unit, step = o.price(p)
			if uses > 0 {
				kind, m.Unit = o.Service, 0
			}
			for n := int64(0); p <= last; p, n = p+1, n+1 {
				if _, s := o.price(p); kind != "" && n == uses || kind == "" && s != step {
					break
				}
				m.To = p
				r := &records[p-first]
				r.Centavos, r.Movement = m.Unit, uint64(len(b.movements)+1)
			}
			count := int64(m.To - m.From + 1)
			if kind == "" {
				m.Centavos = -m.Unit * count
			} else {
				m.Uses = -count
			}
			m.Lots, _ = take(&h.parts, kind, -m.Centavos-m.Uses)
			filled.Centavos -= m.Centavos
			filled.Uses -= m.Uses
			b.move(m)
		}
		if len(h.parts) == 0 {
			at := b.holdOf(o, now)
			b.holds = slices.Delete(b.holds, at, at+1)
		}
	}
	for _, r := range records {
		paid := ledger.Charged{Movement: r.Movement, Centavos: r.Centavos}
		if r.Movement != 0 && r.Centavos == 0 {
			paid.Uses = 1
		}
		b.count(now, o.Org, o.Sandbox, o.Service, paid)
	}
	b.records = append(b.records, records...)
	o.records = append(o.records, records...)
	o.Done, o.Uses, o.Centavos = last, o.Uses+filled.Uses, o.Centavos+filled.Centavos
	if last == o.Units {
		o.State, o.Ended, filled.Ended = ledger.OrderDone, now, true
	}
	filled.Done, filled.Balance = last, b.left("", now)
	return filled, nil
}

func (m *machine) openOrder(t *rapid.T) step {
	a, b := m.account(t)
	c := ledger.OpenOrder{
		Now: m.now, ID: m.nextID(t, ledger.OrderPrefix), Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: "COMPANY", Operation: "company",
		Edition: [32]byte{byte(rapid.IntRange(1, 2).Draw(t, "edition"))}, Units: rapid.IntRange(1, 6).Draw(t, "units"),
		Terms: []byte("términos"), Until: m.now.Add(time.Duration(rapid.IntRange(1, 24).Draw(t, "hours")) * time.Hour),
	}
	for range rapid.IntRange(0, 2).Draw(t, "pieces") {
		c.Input = append(c.Input, []byte("parte"))
	}
	if rapid.IntRange(0, 3).Draw(t, "paid") > 0 {
		c.Price = rapid.Int64Range(1, 900).Draw(t, "price")
		if rapid.Bool().Draw(t, "steps") {
			c.Steps = []ledger.Step{{From: 2, Centavos: 300}, {From: 4, Centavos: 100}}
		}
	} else {
		c.Sandbox = rapid.Bool().Draw(t, "sandbox")
	}
	own := owner{c.Org, c.Sandbox, byte(5 * rapid.IntRange(0, 1).Draw(t, "key"))}
	content := byte(rapid.IntRange(1, 4).Draw(t, "content") / 4)
	if own.key > 0 {
		c.Once = once(own.key, content)
	}
	return step{a, c, func(res ledger.Result, err error) {
		opened, _ := res.(ledger.OrderOpened)
		if earlier, ok := b.earlier(own, m.now); ok && c.Once != nil {
			switch {
			case earlier.content != content && !errors.Is(err, ledger.ErrKeyReused):
				t.Fatalf("another order under a used key: %+v, %v", res, err)
			case earlier.content == content && (err != nil || opened.Earlier == nil || *opened.Earlier != earlier.id):
				t.Fatalf("repeated: %+v, %v; want %v", res, err, earlier.id)
			}
			return
		}
		o := &order{Order: ledger.Order{
			OrderKey: ledger.OrderKey{Org: c.Org, Sandbox: c.Sandbox, ID: c.ID}, Opened: m.now.UTC(), Service: c.Service, Operation: c.Operation,
			Edition: c.Edition, Units: c.Units, Price: c.Price, Steps: c.Steps, Pieces: len(c.Input), State: ledger.OrderOpen,
		}, terms: c.Terms}
		for _, p := range c.Input {
			o.input = append(o.input, string(p))
		}
		want := ledger.OrderOpened{}
		if c.Price > 0 {
			var refused error
			if want.Held, refused = b.holdRest(o, 1, m.now, c.Until); refused != nil {
				if !reflect.DeepEqual(err, refused) {
					t.Fatalf("OpenOrder = %+v, %v; want %+v", res, err, refused)
				}
				return
			}
		}
		want.Balance = b.left("", m.now)
		if err != nil || opened != want {
			t.Fatalf("OpenOrder = %+v, %v; want %+v", res, err, want)
		}
		b.orders = append(b.orders, o)
		if c.Once != nil {
			if b.marks == nil {
				b.marks = map[owner]mark{}
			}
			b.marks[own] = mark{content: content, moment: m.now, id: c.ID}
		}
	}}
}

// anyOrder is one of the account's orders, mostly one that is open; an empty one when
// there is none.
func (b *book) anyOrder(t *rapid.T) *order {
	if len(b.orders) == 0 {
		return &order{}
	}
	open := slices.DeleteFunc(slices.Clone(b.orders), func(o *order) bool { return o.State != ledger.OrderOpen })
	if len(open) > 0 && rapid.IntRange(0, 5).Draw(t, "ended") > 0 {
		return rapid.SampledFrom(open).Draw(t, "order")
	}
	return rapid.SampledFrom(b.orders).Draw(t, "order")
}

func (m *machine) fillOrder(t *rapid.T) step {
	a, b := m.account(t)
	o := b.anyOrder(t)
	if o.Units == 0 {
		return m.openOrder(t)
	}
	first := o.Done + 1
	if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 0 {
		first = rapid.IntRange(1, o.Units).Draw(t, "first")
	}
	ids := m.nextIDs(t, "COM", rapid.IntRange(1, max(1, o.Units-first+1)).Draw(t, "records"))
	if m.building == len(m.builders) {
		build, err := m.l.NewBlockBuilder()
		if err != nil {
			t.Fatal(err)
		}
		m.builders = append(m.builders, build)
	}
	build := m.builders[m.building]
	m.building++
	build.Reset(&o.Order, first, ids[0], len(ids))
	var records []ledger.Record
	for i, id := range ids {
		if build.NextID() != id || build.Next() != first+i {
			t.Fatalf("the next is %v, %d; want %v, %d", build.NextID(), build.Next(), id, first+i)
		}
		r := record(id, o.Org, rapid.StringN(0, 40, -1).Draw(t, "content"))
		r.Sandbox, r.Edition, r.Order, r.Ordinal = o.Sandbox, o.Edition, o.ID, first+i
		r.Code = rapid.SampledFrom([]string{"COMPANY_OK", "COMPANY_OTHER"}).Draw(t, "code")
		r.Note = []byte(rapid.StringN(0, 12, ledger.MaxNote).Draw(t, "note"))
		if err := build.Add(r.Code, r.Registro, sumOf(r), r.Acta, r.Note); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	c := ledger.FillOrder{Now: m.now, Block: build.Block()}
	return step{a, c, func(res ledger.Result, err error) {
		want, refused := b.fill(o, first, records, m.now)
		if refused != nil {
			if !reflect.DeepEqual(err, refused) {
				t.Fatalf("FillOrder = %+v, %v; want %v", res, err, refused)
			}
			return
		}
		if err != nil || res != want {
			t.Fatalf("FillOrder = %+v, %v; want %+v", res, err, want)
		}
	}}
}

func (m *machine) holdOrder(t *rapid.T) step {
	a, b := m.account(t)
	o := b.anyOrder(t)
	if o.Units == 0 {
		return m.openOrder(t)
	}
	c := ledger.HoldOrder{Now: m.now, Order: o.OrderKey, Until: m.now.Add(time.Hour)}
	return step{a, c, func(res ledger.Result, err error) {
		want, refused := ledger.Held{}, error(nil)
		switch {
		case o.State != ledger.OrderOpen:
			refused = ledger.ErrOrderEnded
		case o.Price > 0:
			tried, again := b.clone(), *o
			if at := tried.holdOf(o, m.now); at < 0 {
				want, refused = tried.holdRest(&again, o.Done+1, m.now, c.Until)
			} else if want = tried.holds[at].sum(); o.cost(o.Done+1, o.Units, want.Uses) > want.Centavos {
				tried.release(at, m.now)
				want, refused = tried.holdRest(&again, o.Done+1, m.now, c.Until)
			}
			if refused == nil {
				*b, o.Hold = *tried, again.Hold
			}
		}
		if refused != nil && !reflect.DeepEqual(err, refused) || refused == nil && (err != nil || res != want) {
			t.Fatalf("HoldOrder = %+v, %v; want %+v, %v", res, err, want, refused)
		}
	}}
}

func (m *machine) stopOrder(t *rapid.T) step {
	a, b := m.account(t)
	o := b.anyOrder(t)
	if o.Units == 0 {
		return m.openOrder(t)
	}
	return step{a, ledger.StopOrder{Now: m.now, Order: o.OrderKey, Reason: "motivo"}, func(res ledger.Result, err error) {
		if o.State != ledger.OrderOpen {
			if !errors.Is(err, ledger.ErrOrderEnded) {
				t.Fatalf("StopOrder = %+v, %v; want ErrOrderEnded", res, err)
			}
			return
		}
		want := ledger.Held{}
		if i := slices.IndexFunc(b.holds, func(h held) bool { return h.number == o.Hold }); i >= 0 {
			want = b.holds[i].sum()
			b.release(i, m.now)
			b.expire(m.now)
		}
		o.State, o.Ended, o.Reason = ledger.OrderStopped, m.now.UTC(), "motivo"
		if err != nil || res != want {
			t.Fatalf("StopOrder = %+v, %v; want %+v", res, err, want)
		}
	}}
}

func (m *machine) ForgetOrders(t *rapid.T) {
	want := 0
	for _, b := range m.books {
		for _, o := range b.orders {
			if o.State != ledger.OrderOpen && !o.Forgotten && m.now.Sub(o.Ended) >= ledger.OrderLife {
				o.Forgotten = true
				want++
			}
		}
	}
	if n, err := m.l.ForgetOrders(ctx, m.now); err != nil || n != want {
		t.Fatalf("ForgetOrders = %d, %v; want %d", n, err, want)
	}
}

func (m *machine) RecallOrder(t *rapid.T) {
	a, b := m.account(t)
	own := owner{ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), rapid.Bool().Draw(t, "sandbox"), 5}
	content := byte(rapid.IntRange(0, 1).Draw(t, "content"))
	id, found, err := m.l.RecallOrder(ctx, a, own.org, own.sandbox, *once(own.key, content), m.now)
	want, ok := b.earlier(own, m.now)
	switch {
	case !ok && (found || err != nil),
		ok && want.content != content && (found || !errors.Is(err, ledger.ErrKeyReused)),
		ok && want.content == content && (!found || err != nil || id != want.id):
		t.Fatalf("RecallOrder = %v, %v, %v; model %+v, %v", id, found, err, want, ok)
	}
}

// checkOrders compares what can be read of the account's orders with the model.
func (m *machine) checkOrders(t *rapid.T, a ledger.AccountID, b *book) {
	for _, o := range b.orders {
		got, err := m.l.Order(ctx, a, o.OrderKey)
		if o.State == ledger.OrderDone {
			o.Ended = o.Ended.UTC()
		}
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", o.Order) {
			t.Fatalf("account %d: Order = %+v, %v; model %+v", a, got, err, o.Order)
		}
		terms, err := m.l.Read(a).OrderTerms(o.OrderKey)
		if o.Forgotten != errors.Is(err, store.ErrNotFound) || !o.Forgotten && string(terms) != string(o.terms) {
			t.Fatalf("account %d: terms of %v are %q, %v", a, o.ID, terms, err)
		}
		var input, want []string
		if !o.Forgotten {
			want = o.input
		}
		err = m.l.Read(a).OrderInput(o.OrderKey, func(piece []byte) error {
			input = append(input, string(piece))
			return nil
		})
		if err != nil || !slices.Equal(input, want) {
			t.Fatalf("account %d: input of %v is %q, %v; model %q", a, o.ID, input, err, want)
		}
		from := rapid.IntRange(1, o.Units).Draw(t, "from")
		to := rapid.IntRange(from, o.Units+1).Draw(t, "to")
		next := from
		err = m.l.Read(a).OrderRecords(o.OrderKey, from, to, func(r *ledger.Record) error {
			if want := &o.records[next-1]; !sameRecord(r, want) || r.Centavos != want.Centavos || r.Movement != want.Movement {
				t.Fatalf("account %d: record %d of %v is %+v; model %+v", a, next, o.ID, r, want)
			}
			next++
			return nil
		})
		if err != nil || next != max(from, min(to, o.Done)+1) {
			t.Fatalf("account %d: records of %v from %d to %d end before %d, %v; %d are stored", a, o.ID, from, to, next, err, o.Done)
		}
	}
	var open, want []ledger.VerificationID
	err := m.l.OpenOrders(func(account ledger.AccountID, o ledger.Order) error {
		if account == a {
			open = append(open, o.ID)
		}
		return nil
	})
	for _, o := range b.orders {
		if o.State == ledger.OrderOpen {
			want = append(want, o.ID)
		}
	}
	if err != nil || len(open) != len(want) || slices.ContainsFunc(want, func(id ledger.VerificationID) bool { return !slices.Contains(open, id) }) {
		t.Fatalf("account %d: open orders %v, %v; model %v", a, open, err, want)
	}
}
