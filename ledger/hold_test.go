package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"cotejo/ledger"
)

func place(t testing.TB, l *ledger.Ledger, h ledger.Hold) ledger.Held {
	t.Helper()
	res, err := l.Do(ctx, 1, h)
	if err != nil {
		t.Fatal(err)
	}
	return res.(ledger.Held)
}

func chargeHeld(t testing.TB, l *ledger.Ledger, now time.Time, price int64, hold uint64) (ledger.Charged, error) {
	t.Helper()
	r := record(nextID(t, l, now), 1, "XAXX010101000")
	res, err := l.Do(ctx, 1, ledger.Charge{Now: now, Record: r, Sum: sumOf(r), Price: price, Hold: hold})
	if err != nil {
		return ledger.Charged{}, err
	}
	return res.(ledger.Charged), nil
}

// TestHoldSettleRelease is the last example of docs/ledger.md: a batch of four with
// two uses, of which three are charged.
func TestHoldSettleRelease(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 3000)
	creditUses(t, l, 1, start, "COMPANY", 2)
	h := place(t, l, ledger.Hold{Now: start, Org: 1, Service: "COMPANY", Units: 4, Centavos: 1200, Until: start.Add(time.Hour)})
	want := ledger.Held{Number: 3, Org: 1, Service: "COMPANY", Until: start.Add(time.Hour), Uses: 2, Centavos: 2400}
	if h != want {
		t.Fatalf("%+v; want %+v", h, want)
	}
	if w, err := l.Wallet(1, start); err != nil || w.Balance != 600 || w.Uses("COMPANY") != 0 || !slices.Equal(w.Holds, []ledger.Held{want}) {
		t.Fatalf("%+v, %v", w, err)
	}
	// What is held pays for nothing else.
	if _, _, err := charge(t, l, 1, 1, start, 1200); !errors.As(err, new(*ledger.FundsError)) {
		t.Errorf("a charge beside the hold: %v", err)
	}
	f := func(want ledger.Charged) {
		t.Helper()
		if got, err := chargeHeld(t, l, start, 1200, h.Number); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	f(ledger.Charged{Movement: 4, Uses: 1, Lot: 2, Balance: 600})
	f(ledger.Charged{Movement: 5, Uses: 1, Lot: 2, Balance: 600})
	f(ledger.Charged{Movement: 6, Centavos: 1200, Balance: 600})
	res, err := l.Do(ctx, 1, ledger.Release{Now: start, Hold: h.Number})
	if given, _ := res.(ledger.Held); err != nil || given.Uses != 0 || given.Centavos != 1200 || given.Number != h.Number {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err := l.Do(ctx, 1, ledger.Release{Now: start, Hold: h.Number}); err != nil || res != (ledger.Held{}) {
		t.Errorf("released again: %+v, %v", res, err)
	}
	var trail []ledger.Kind
	err = l.Movements(1, ledger.Page{}, func(m *ledger.Movement) error {
		trail = append(trail, m.Kind)
		return nil
	})
	kinds := []ledger.Kind{
		ledger.KindCredit, ledger.KindCredit, ledger.KindHold, ledger.KindCharge, ledger.KindCharge, ledger.KindCharge, ledger.KindRelease,
	}
	if err != nil || !slices.Equal(trail, kinds) {
		t.Errorf("trail %v, %v", trail, err)
	}
	if w, err := l.Wallet(1, start); err != nil || w.Balance != 1800 || len(w.Holds) != 0 || w.Movements != 7 {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestHoldBySteps: uses cover the first units, and the rest cost what their
// positions say.
func TestHoldBySteps(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 2*12+3*9+2*6)
	creditUses(t, l, 1, start, "COMPANY", 1)
	batch := ledger.Hold{
		Now: start, Org: 1, Service: "COMPANY", Units: 8, Centavos: 12, Steps: []ledger.Step{{From: 4, Centavos: 9}, {From: 7, Centavos: 6}},
		Until: start.Add(time.Hour),
	}
	more := batch
	more.Units = 10
	var funds *ledger.FundsError
	if _, err := l.Do(ctx, 1, more); !errors.As(err, &funds) ||
		*funds != (ledger.FundsError{Service: "COMPANY", Price: 75, Balance: 63, Wanted: 10, Units: 8}) {
		t.Fatalf("%v", err)
	}
	if h := place(t, l, batch); h.Uses != 1 || h.Centavos != 63 {
		t.Errorf("%+v", h)
	}
}

// TestHoldEnds: at Until it is free again, written or not, and pays for nothing.
func TestHoldEnds(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 1200)
	end := start.Add(time.Hour)
	h := place(t, l, ledger.Hold{Now: start, Org: 1, Service: "COMPANY", Units: 1, Centavos: 1200, Until: end})
	if w, err := l.Wallet(1, end.Add(-1)); err != nil || w.Balance != 0 {
		t.Errorf("before its end: %+v, %v", w, err)
	}
	if w, err := l.Wallet(1, end); err != nil || w.Balance != 1200 || len(w.Holds) != 0 || w.Movements != 2 {
		t.Errorf("at its end: %+v, %v", w, err)
	}
	if _, err := chargeHeld(t, l, end, 1200, h.Number); !errors.Is(err, ledger.ErrNoHold) {
		t.Errorf("paid from a hold that ended: %v", err)
	}
	if n, err := l.Sweep(ctx, end.Add(-1)); n != 0 || err != nil {
		t.Errorf("Sweep before = %d, %v", n, err)
	}
	if n, err := l.Sweep(ctx, end); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v", n, err)
	}
	if n, err := l.Sweep(ctx, end); n != 0 || err != nil {
		t.Errorf("Sweep again = %d, %v", n, err)
	}
	if _, got, err := charge(t, l, 1, 1, end, 1200); err != nil || got.Movement != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHeldLotExpires: what is held pays after its lot expired; the rest of it
// expires when it is given back, by a movement.
func TestHeldLotExpires(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 2400)
	late := start.Add(ledger.LotLife)
	h := place(t, l, ledger.Hold{Now: late.Add(-time.Hour), Org: 1, Service: "COMPANY", Units: 2, Centavos: 1200, Until: late.Add(time.Hour)})
	if got, err := chargeHeld(t, l, late, 1200, h.Number); err != nil || got != (ledger.Charged{Movement: 3, Centavos: 1200}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := l.Do(ctx, 1, ledger.Release{Now: late, Hold: h.Number}); err != nil {
		t.Fatal(err)
	}
	var last ledger.Movement
	err := l.Movements(1, ledger.Page{Newest: true, Limit: 1}, func(m *ledger.Movement) error {
		last = *m
		return nil
	})
	if err != nil || last.Number != 5 || last.Kind != ledger.KindExpiry || last.Centavos != -1200 || last.Balance != 0 {
		t.Errorf("%+v, %v", last, err)
	}
}

// TestHoldRefuses holds what a hold may not be, and whom it pays for nothing.
func TestHoldRefuses(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 100)
	good := ledger.Hold{Now: start, Org: 1, Service: "COMPANY", Units: 1, Centavos: 1, Until: start.Add(time.Hour)}
	f := func(change func(*ledger.Hold)) {
		t.Helper()
		h := good
		change(&h)
		if res, err := l.Do(ctx, 1, h); err == nil {
			t.Errorf("%+v: %+v", h, res)
		}
	}
	f(func(h *ledger.Hold) { h.Units = 0 })
	f(func(h *ledger.Hold) { h.Units = ledger.MaxHoldUnits + 1 })
	f(func(h *ledger.Hold) { h.Centavos = 0 })
	f(func(h *ledger.Hold) { h.Service = "" })
	f(func(h *ledger.Hold) { h.Until = h.Now })
	f(func(h *ledger.Hold) { h.Until = h.Now.Add(ledger.MaxHold + 1) })
	f(func(h *ledger.Hold) { h.Steps = []ledger.Step{{From: 1, Centavos: 1}} })
	f(func(h *ledger.Hold) { h.Steps = []ledger.Step{{From: 3, Centavos: 1}, {From: 3, Centavos: 1}} })
	f(func(h *ledger.Hold) { h.Steps = []ledger.Step{{From: 3}} })
	f(func(h *ledger.Hold) { h.Now = h.Now.AddDate(-100, 0, 0) })
	if _, err := l.Do(ctx, ledger.Global, good); err == nil {
		t.Error("the global group held")
	}
	if w, err := l.Wallet(1, start); err != nil || w.Movements != 1 || w.Balance != 100 {
		t.Errorf("%+v, %v", w, err)
	}
	h := place(t, l, good)
	use := ledger.Use{Now: start, Org: 1, Service: "COMPANY", Price: 1, Hold: h.Number}
	g := func(want error, change func(*ledger.Use)) {
		t.Helper()
		u := use
		change(&u)
		if _, err := l.Do(ctx, 1, u); !errors.Is(err, want) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	g(ledger.ErrNoHold, func(u *ledger.Use) { u.Org = 2 })
	g(ledger.ErrNoHold, func(u *ledger.Use) { u.Service = "SCREEN" })
	g(ledger.ErrNoHold, func(u *ledger.Use) { u.Hold++ })
	u := use
	u.Price = 2
	if _, err := l.Do(ctx, 1, u); !errors.As(err, new(*ledger.FundsError)) {
		t.Errorf("more than is held: %v", err)
	}
	for range 63 {
		place(t, l, good)
	}
	if _, err := l.Do(ctx, 1, good); !errors.Is(err, ledger.ErrTooManyHolds) {
		t.Errorf("the 65th hold: %v", err)
	}
	// Those whose time is over make room.
	next := good
	next.Now = good.Until
	next.Until = next.Now.Add(time.Hour)
	place(t, l, next)
}
