package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/ledger"
	"cotejo/store"
)

func do[R any](t testing.TB, l *ledger.Ledger, account ledger.AccountID, cmd ledger.Command) R {
	t.Helper()
	res, err := l.Do(ctx, account, cmd)
	if err != nil {
		t.Fatalf("%T: %v", cmd, err)
	}
	r, _ := res.(R)
	return r
}

func orderID(t testing.TB, l *ledger.Ledger, now time.Time) ledger.VerificationID {
	t.Helper()
	id, err := l.NextID(ctx, ledger.OrderPrefix, now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func builder(t testing.TB, l *ledger.Ledger) *ledger.BlockBuilder {
	t.Helper()
	b, err := l.NewBlockBuilder()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openOrder is an order of COMPANY, 12.00 each and 8.00 from the fourth on.
func openOrder(id ledger.VerificationID, units int) ledger.OpenOrder {
	return ledger.OpenOrder{
		Now: start, ID: id, Org: 2, Service: "COMPANY", Operation: "company", Edition: [32]byte{7}, Units: units,
		Price: 1200, Steps: []ledger.Step{{From: 4, Centavos: 800}}, Until: start.Add(time.Hour),
		Terms: []byte("términos"), Input: [][]byte{[]byte("uno"), []byte("dos")},
	}
}

func withPrice(c ledger.OpenOrder, centavos int64) ledger.OpenOrder {
	c.Price, c.Steps = centavos, nil
	return c
}

func orderOf(c ledger.OpenOrder) *ledger.Order {
	return &ledger.Order{OrderKey: ledger.OrderKey{Org: c.Org, Sandbox: c.Sandbox, ID: c.ID}, Service: c.Service, Operation: c.Operation, Edition: c.Edition}
}

// build codes n records from an ordinal on and returns them with the block.
func build(t testing.TB, l *ledger.Ledger, b *ledger.BlockBuilder, o *ledger.Order, first, n int) (*ledger.Block, []ledger.Record) {
	t.Helper()
	ids, got, err := l.NextIDs(ctx, "COM", start, n)
	if err != nil {
		t.Fatal(err)
	}
	var records []ledger.Record
	b.Reset(o, first, ids, got)
	for b.Room() {
		r := record(b.NextID(), o.Org, fmt.Sprintf("consulta %d", b.Next()))
		r.Note, r.Ordinal, r.Order, r.Sandbox = fmt.Appendf(nil, "nota %d", b.Next()), b.Next(), o.ID, o.Sandbox
		if err := b.Add(r.Code, r.Registro, sumOf(r), r.Acta, r.Note); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return b.Block(), records
}

func sameRecord(a, b *ledger.Record) bool {
	return a.ID == b.ID && a.Org == b.Org && a.Sandbox == b.Sandbox && a.Service == b.Service && a.Code == b.Code &&
		a.Operation == b.Operation && a.Edition == b.Edition && bytes.Equal(a.Registro, b.Registro) && bytes.Equal(a.Acta, b.Acta) &&
		a.Order == b.Order && a.Ordinal == b.Ordinal && bytes.Equal(a.Note, b.Note)
}

// TestOrder is the example of docs/ledger.md.
func TestOrder(t *testing.T) {
	onEachEngine(t, func(t *testing.T, l *ledger.Ledger, s store.Store) {
		credit(t, l, 1, start, 10_000)
		do[ledger.Charged](t, l, 1, ledger.CreditUses{Now: start, Org: 2, Service: "COMPANY", Count: 2, Reason: "usos"})
		c := openOrder(orderID(t, l, start), 7)
		opened := do[ledger.OrderOpened](t, l, 1, c)
		// Two uses, one at 12.00, four at 8.00.
		if h := opened.Held; h.Uses != 2 || h.Centavos != 1200+4*800 || opened.Balance != 10_000-h.Centavos {
			t.Errorf("held %+v", opened)
		}
		o, b := orderOf(c), builder(t, l)
		block, records := build(t, l, b, o, 1, 5)
		if filled := do[ledger.OrderFilled](t, l, 1, ledger.FillOrder{Now: start, Block: block}); filled != (ledger.OrderFilled{Done: 5, Uses: 2, Centavos: 1200 + 2*800, Balance: opened.Balance}) {
			t.Errorf("filled %+v", filled)
		}
		var repeated *ledger.OrdinalError
		if _, err := l.Do(ctx, 1, ledger.FillOrder{Now: start, Block: block}); !errors.As(err, &repeated) || repeated.Done != 5 {
			t.Errorf("the same block again: %v", err)
		}
		block, more := build(t, l, b, o, 6, 2)
		if filled := do[ledger.OrderFilled](t, l, 1, ledger.FillOrder{Now: start, Block: block}); filled != (ledger.OrderFilled{Done: 7, Ended: true, Centavos: 1600, Balance: opened.Balance}) {
			t.Errorf("filled %+v", filled)
		}
		records = append(records, more...)
		got, err := l.Order(ctx, 1, o.OrderKey)
		if err != nil || got.State != ledger.OrderDone || got.Done != 7 || got.Uses != 2 || got.Centavos != 4400 || got.Pieces != 2 {
			t.Errorf("order %+v, %v", got, err)
		}
		paid := []int64{0, 0, 1200, 800, 800, 800, 800}
		for i := range records {
			r, err := l.Find(1, 2, false, records[i].ID)
			if err != nil || !sameRecord(&r, &records[i]) || r.Centavos != paid[i] {
				t.Errorf("found %+v, %v", r, err)
			}
			m, err := l.Read(1).Movement(r.Movement)
			if err != nil || !m.Covers(&r) {
				t.Errorf("%v is not covered by %+v, %v", r.ID, m, err)
			}
			if l2, err := l.Lookup(r.ID); err != nil || !sameRecord(&l2, &r) {
				t.Errorf("Lookup = %+v, %v", l2, err)
			}
		}
		n := 3
		err = l.Read(1).OrderRecords(o.OrderKey, 3, 6, func(r *ledger.Record) error {
			if !sameRecord(r, &records[n-1]) {
				t.Errorf("ordinal %d is %+v", n, r)
			}
			n++
			return nil
		})
		if err != nil || n != 7 {
			t.Errorf("%d records, %v", n, err)
		}
		w, err := l.Wallet(1, start)
		if err != nil || len(w.Holds) != 0 || w.Balance != 10_000-4400 || w.Uses("COMPANY") != 0 {
			t.Errorf("wallet %+v, %v", w, err)
		}
		check(t, s)
	})
}

// TestBlocksAreApart: what one order asked is in no block of another, also when one
// builder made both.
func TestBlocksAreApart(t *testing.T) {
	l, s := newLedger(t)
	b := builder(t, l)
	for account := ledger.AccountID(1); account <= 2; account++ {
		credit(t, l, account, start, 100_000)
		c := openOrder(orderID(t, l, start), 4)
		do[ledger.OrderOpened](t, l, account, c)
		o := orderOf(c)
		for first := 1; first <= 4; first += 2 {
			ids, n, err := l.NextIDs(ctx, "COM", start, 2)
			if err != nil {
				t.Fatal(err)
			}
			for b.Reset(o, first, ids, n); b.Room(); {
				r := record(b.NextID(), 2, fmt.Sprintf("secreto de la cuenta %d", account))
				if err := b.Add(r.Code, r.Registro, sumOf(r), r.Acta, nil); err != nil {
					t.Fatal(err)
				}
			}
			raw := string(b.Raw())
			if mine, other := fmt.Sprintf("cuenta %d", account), fmt.Sprintf("cuenta %d", 3-account); !strings.Contains(raw, mine) || strings.Contains(raw, other) {
				t.Errorf("a block of account %d has %q", account, raw)
			}
			do[ledger.OrderFilled](t, l, account, ledger.FillOrder{Now: start, Block: b.Block()})
		}
	}
	check(t, s)
}

// TestUnknownBlockIsResolved: when the answer to a block got lost, it is stored once,
// and paid if it is stored.
func TestUnknownBlockIsResolved(t *testing.T) {
	for _, written := range []bool{true, false} {
		r := newRemote(t)
		l := openOn(t, r, ledger.Options{})
		defer l.Close()
		credit(t, l, 1, start, 10_000)
		c := openOrder(orderID(t, l, start), 5)
		do[ledger.OrderOpened](t, l, 1, c)
		block, records := build(t, l, builder(t, l), orderOf(c), 1, 3)
		r.write.Store(written)
		r.lose.Store(1)
		fill := ledger.FillOrder{Now: start, Block: block}
		if _, err := l.Do(ctx, 1, fill); (err == nil) != written || err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("written %v: %v", written, err)
		}
		_, err := l.Do(ctx, 1, fill) // the runner does not know and tries again
		var stored *ledger.OrdinalError
		if written != (errors.As(err, &stored) && stored.Done == 3) || !written && err != nil {
			t.Errorf("written %v, and again: %v", written, err)
		}
		if o, err := l.Order(ctx, 1, orderOf(c).OrderKey); err != nil || o.Done != 3 || o.Centavos != 3600 {
			t.Errorf("written %v: %+v, %v", written, o, err)
		}
		if got, err := l.Find(1, 2, false, records[2].ID); err != nil || !sameRecord(&got, &records[2]) {
			t.Errorf("written %v: found %+v, %v", written, got, err)
		}
		check(t, r)
	}
}

// TestOrderInterrupted: whatever happens to whoever does the work, each position is
// paid as if nothing had.
func TestOrderInterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 40).Draw(t, "units")
		uses := rapid.Int64Range(0, 45).Draw(t, "uses")
		steps := rapid.SampledFrom([][]ledger.Step{nil, {{From: 2, Centavos: 300}}, {{From: 5, Centavos: 300}, {From: 6, Centavos: 200}, {From: 30, Centavos: 10}}}).Draw(t, "steps")
		whole := runOrder(t, units, uses, steps, false)
		broken := runOrder(t, units, uses, steps, true)
		if !slices.Equal(whole, broken) {
			t.Fatalf("%d units, %d uses, %v:\n%v\nand interrupted\n%v", units, uses, steps, whole, broken)
		}
		for p, paid := range whole {
			want := int64(500)
			for _, s := range steps {
				if int64(p+1) >= s.From {
					want = s.Centavos
				}
			}
			if int64(p) < uses {
				want = 0
			}
			if paid != want {
				t.Fatalf("position %d cost %d; want %d", p+1, paid, want)
			}
		}
	})
}

// runOrder works off an order and returns what each position cost: 0 is a use. When it
// is disturbed the process ends at any point, answers are lost, holds lapse, and a
// block is sent twice or too early.
func runOrder(t *rapid.T, units int, uses int64, steps []ledger.Step, disturbed bool) (paid []int64) {
	fs := vfs.NewMem()
	var s store.Store
	var l *ledger.Ledger
	open := func() {
		engine, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		if l, err = ledger.Open(engine, ledger.Options{Random: seeded(7)}); err != nil {
			t.Fatal(err)
		}
		s = engine
	}
	shut := func() {
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	open()
	defer func() { shut() }()
	now := start
	must := func(cmd ledger.Command) ledger.Result {
		res, err := l.Do(ctx, 1, cmd)
		if err != nil {
			t.Fatalf("%T: %v", cmd, err)
		}
		return res
	}
	must(ledger.Credit{Now: now, Org: 2, Centavos: 40 * 500, Reason: "abono"})
	if uses > 0 {
		must(ledger.CreditUses{Now: now, Org: 2, Service: "COMPANY", Count: uses, Reason: "usos"})
	}
	id, err := l.NextID(ctx, ledger.OrderPrefix, now)
	if err != nil {
		t.Fatal(err)
	}
	c := openOrder(id, units)
	c.Price, c.Steps = 500, steps
	must(c)
	o := orderOf(c)
	var build *ledger.BlockBuilder
	for first := 1; ; {
		got, err := l.Order(ctx, 1, o.OrderKey)
		if err != nil {
			t.Fatal(err)
		}
		if got.State == ledger.OrderDone {
			break
		}
		if disturbed {
			switch rapid.IntRange(0, 5).Draw(t, "disturbance") {
			case 0:
				shut()
				open()
				build = nil
			case 1:
				now = now.Add(25 * time.Hour)
			case 2:
				first = rapid.IntRange(1, units).Draw(t, "too early or late")
			default:
				first = got.Done + 1
			}
		}
		if build == nil {
			if build, err = l.NewBlockBuilder(); err != nil {
				t.Fatal(err)
			}
		}
		ids, n, err := l.NextIDs(ctx, "COM", now, rapid.IntRange(1, units-first+1).Draw(t, "records"))
		if err != nil {
			t.Fatal(err)
		}
		for build.Reset(o, first, ids, n); build.Room(); {
			r := record(build.NextID(), 2, "consulta")
			if err := build.Add(r.Code, r.Registro, sumOf(r), r.Acta, nil); err != nil {
				t.Fatal(err)
			}
		}
		res, err := l.Do(ctx, 1, ledger.FillOrder{Now: now, Block: build.Block()})
		var wrong *ledger.OrdinalError
		switch {
		case err == nil:
			first = res.(ledger.OrderFilled).Done + 1
		case errors.As(err, &wrong) && wrong.Done == got.Done && first != got.Done+1:
			first = wrong.Done + 1
		case errors.Is(err, ledger.ErrNoHold):
			must(ledger.HoldOrder{Now: now, Order: o.OrderKey, Until: now.Add(time.Hour)})
		default:
			t.Fatal(err)
		}
	}
	if rep, err := ledger.Check(ctx, s); err != nil {
		t.Fatalf("Check: %v\n%+v", err, rep.Violations)
	}
	err = l.Movements(1, ledger.Page{}, func(m *ledger.Movement) error {
		for range m.To - m.From + 1 {
			if m.Kind == ledger.KindOrder {
				paid = append(paid, m.Unit)
			}
		}
		return nil
	})
	if err != nil || len(paid) != units {
		t.Fatalf("%d positions were paid, %v; want %d", len(paid), err, units)
	}
	return paid
}
