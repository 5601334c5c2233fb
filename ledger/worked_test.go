package ledger_test

import (
	"slices"
	"testing"
	"time"

	"cotejo/ledger"
)

// TestWorkedExamples runs the examples of docs/ledger.md on uses, two lots and
// expiry; the one on holds is TestHoldSettleRelease.
func TestWorkedExamples(t *testing.T) {
	type line struct {
		kind           ledger.Kind
		centavos, uses int64
		parts          []ledger.Split
		balance        int64
	}
	l, _ := newLedger(t)
	f := func(account ledger.AccountID, want ...line) {
		t.Helper()
		n := 0
		err := l.Movements(account, ledger.Page{}, func(m *ledger.Movement) error {
			if w := want[n]; m.Kind != w.kind || m.Centavos != w.centavos || m.Uses != w.uses || m.Balance != w.balance || !slices.Equal(m.Lots, w.parts) {
				t.Errorf("%+v; want %+v", *m, w)
			}
			n++
			return nil
		})
		if err != nil || n != len(want) {
			t.Errorf("%d movements, %v; want %d", n, err, len(want))
		}
	}
	verify := func(account ledger.AccountID, now time.Time, times int) {
		t.Helper()
		for range times {
			if _, _, err := charge(t, l, account, 1, now, 1200); err != nil {
				t.Fatal(err)
			}
		}
	}

	credit(t, l, 1, start, 50000)
	creditUses(t, l, 1, start, "COMPANY", 2)
	verify(1, start, 3)
	f(1,
		line{ledger.KindCredit, 50000, 0, []ledger.Split{{Lot: 1, Centavos: 50000}}, 50000},
		line{ledger.KindCredit, 0, 2, []ledger.Split{{Lot: 2, Uses: 2}}, 50000},
		line{ledger.KindCharge, 0, -1, []ledger.Split{{Lot: 2, Uses: 1}}, 50000},
		line{ledger.KindCharge, 0, -1, []ledger.Split{{Lot: 2, Uses: 1}}, 50000},
		line{ledger.KindCharge, -1200, 0, []ledger.Split{{Lot: 1, Centavos: 1200}}, 48800},
	)

	day := start.Add(24 * time.Hour)
	credit(t, l, 2, start, 1000)
	credit(t, l, 2, day, 1000)
	verify(2, day, 1)
	credit(t, l, 2, day.Add(ledger.LotLife), 5000)
	f(2,
		line{ledger.KindCredit, 1000, 0, []ledger.Split{{Lot: 1, Centavos: 1000}}, 1000},
		line{ledger.KindCredit, 1000, 0, []ledger.Split{{Lot: 2, Centavos: 1000}}, 2000},
		line{ledger.KindCharge, -1200, 0, []ledger.Split{{Lot: 1, Centavos: 1000}, {Lot: 2, Centavos: 200}}, 800},
		line{ledger.KindExpiry, -800, 0, []ledger.Split{{Lot: 2, Centavos: 800}}, 0},
		line{ledger.KindCredit, 5000, 0, []ledger.Split{{Lot: 5, Centavos: 5000}}, 5000},
	)
}
