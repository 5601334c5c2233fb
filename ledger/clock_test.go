package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/ledger"
	"cotejo/store"
)

// TestClockJumps moves the moment of the commands by up to 400 days at a time,
// back and forth: no id is given twice, no centavo is made or lost, and what once
// expired never comes back.
func TestClockJumps(t *testing.T) {
	steps, expiries := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, err := store.OpenPebble("datos", store.PebbleOptions{FS: vfs.NewMem(), MemTableBytes: 16 << 10})
		if err != nil {
			t.Fatal(err)
		}
		l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(l.Close(), s.Close()); err != nil {
				t.Error(err)
			}
		}()
		now := start
		ids := map[ledger.VerificationID]bool{}
		expired := map[uint64]bool{} // lots of the account
		seen := uint64(0)            // movements
		var lastDay uint32
		for range rapid.IntRange(50, 150).Draw(t, "steps") {
			steps++
			if rapid.Bool().Draw(t, "jump") {
				now = now.Add(time.Duration(rapid.IntRange(-400*24, 400*24).Draw(t, "hours")) * time.Hour)
				if y := now.Year(); y < 2010 || y > 2100 {
					now = start
				}
			}
			id, err := l.NextID(ctx, "COM", now)
			if err != nil {
				t.Fatal(err)
			}
			if ids[id] || id.Day < lastDay {
				t.Fatalf("%v at %v: given before, or of a day before %d", id, now, lastDay)
			}
			ids[id], lastDay = true, id.Day
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				_, err = l.Do(ctx, 1, ledger.Credit{Now: now, Org: 1, Centavos: rapid.Int64Range(1, 3000).Draw(t, "credit")})
			} else {
				r := record(id, 1, "XAXX010101000")
				_, err = l.Do(ctx, 1, ledger.Charge{Now: now, Record: r, Sum: sumOf(r), Price: rapid.Int64Range(0, 1000).Draw(t, "price")})
			}
			var funds *ledger.FundsError
			if err != nil && !errors.As(err, &funds) {
				t.Fatal(err)
			}
			balance := int64(0)
			err = l.Movements(1, ledger.Page{}, func(m *ledger.Movement) error {
				balance += m.Centavos
				if m.Number <= seen {
					return nil
				}
				seen = m.Number
				for _, part := range m.Lots {
					if expired[part.Lot] {
						t.Fatalf("movement %d takes from lot %d, which had expired", m.Number, part.Lot)
					}
				}
				if m.Kind == ledger.KindExpiry {
					expired[m.Lots[0].Lot] = true
					expiries++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// Long before every lot's end, the wallet shows all that there is.
			w, err := l.Wallet(1, start.AddDate(-50, 0, 0))
			if err != nil || w.Balance != balance || w.Movements != seen {
				t.Fatalf("wallet %+v, %v; the movements add up to %d", w, err, balance)
			}
			for _, lot := range w.Lots {
				if expired[lot.Number] {
					t.Fatalf("lot %d came back", lot.Number)
				}
			}
		}
		if rep, err := ledger.Check(ctx, s); err != nil {
			t.Fatalf("%v\n%v", err, rep.Violations)
		}
	})
	t.Logf("%d steps, %d expiries", steps, expiries)
	if expiries == 0 {
		t.Error("nothing ever expired: the test proves nothing")
	}
}
