package ledger

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestCheckFindsHoldFaults breaks a ledger with a hold in one place at a time.
func TestCheckFindsHoldFaults(t *testing.T) {
	until := noon.Add(time.Hour)
	f := func(what string, damage func(t *testing.T, l *Ledger)) {
		t.Run(what, func(t *testing.T) {
			l, s := openTest(t)
			do(t, l, 1, Credit{Now: noon, Org: 1, Centavos: 1000})                                          // 1
			do(t, l, 1, CreditUses{Now: noon, Org: 1, Service: "NOMINA", Count: 2})                         // 2
			do(t, l, 1, Hold{Now: noon, Org: 1, Service: "NOMINA", Units: 4, Centavos: 50, Until: until})   // 3: 2 uses, 100
			do(t, l, 1, Hold{Now: noon, Org: 1, Service: "COMPANY", Units: 1, Centavos: 300, Until: until}) // 4: 300
			do(t, l, 1, Use{Now: noon, Org: 1, Service: "NOMINA", Price: 50, Hold: 3})                      // 5: a use
			do(t, l, 1, Use{Now: noon, Org: 1, Service: "NOMINA", Price: 50, Hold: 3})                      // 6: a use
			do(t, l, 1, Use{Now: noon, Org: 1, Service: "NOMINA", Price: 50, Hold: 3})                      // 7: 50
			do(t, l, 1, Release{Now: noon, Hold: 4})                                                        // 8
			if rep, err := Check(context.Background(), s); err != nil || rep.Balance != 950 {
				t.Fatalf("before the damage: %+v, %v", rep, err)
			}
			damage(t, l)
			rep, err := Check(context.Background(), s)
			if !errors.Is(err, ErrIntegrity) || len(rep.Violations) == 0 {
				t.Errorf("Check = %+v, %v; want ErrIntegrity", rep, err)
			}
		})
	}
	wallets := func(edit func(*wallet)) func(*testing.T, *Ledger) {
		return func(t *testing.T, l *Ledger) {
			w, err := l.Read(1).wallet()
			if err != nil {
				t.Fatal(err)
			}
			edit(&w)
			do(t, l, 1, raw{spaceWallet, nil, w.append(nil)})
		}
	}
	change := func(number uint64, edit func(*Movement)) func(*testing.T, *Ledger) {
		return func(t *testing.T, l *Ledger) {
			v, err := l.Read(1).Get(spaceMovement, movementKey(number))
			var m Movement
			if err == nil {
				err = m.decode(v)
			}
			if err != nil {
				t.Fatal(err)
			}
			edit(&m)
			do(t, l, 1, raw{spaceMovement, movementKey(number), m.append(nil)})
		}
	}
	f("a hold gone", wallets(func(w *wallet) { w.holds = nil }))
	f("a hold spent in secret", wallets(func(w *wallet) {
		w.lots[0].Left += w.holds[0].lots[0].Left
		w.holds = nil
	}))
	f("a longer hold", wallets(func(w *wallet) { w.holds[0].until = until.Add(1) }))
	f("another owner of the hold", wallets(func(w *wallet) { w.holds[0].org = 2 }))
	f("another hold pays", change(7, func(m *Movement) { m.Hold = 4 }))
	f("no hold pays", change(7, func(m *Movement) { m.Hold = 0 }))
	f("money of the hold before its uses", change(6, func(m *Movement) {
		m.Uses, m.Centavos, m.Lots = 0, -1, []Split{{Lot: 1, Centavos: 1}}
	}))
	f("more is held than was there", change(4, func(m *Movement) { m.Lots[0].Centavos = 901 }))
	f("money is held while there are uses", change(3, func(m *Movement) { m.Lots = m.Lots[1:] }))
	f("a hold that lasts for ever", change(3, func(m *Movement) { m.Until = noon.Add(MaxHold + 1) }))
	f("a hold that moves money away", change(3, func(m *Movement) { m.Centavos = -100 }))
	f("a release of less", change(8, func(m *Movement) { m.Lots[0].Centavos = 299 }))
	f("a release of another hold", change(8, func(m *Movement) { m.Hold = 3 }))
	f("a hold that nobody released in time", change(7, func(m *Movement) { m.Moment = until }))
}
