package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

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
