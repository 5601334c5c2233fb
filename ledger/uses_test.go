package ledger_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"cotejo/ledger"
)

func creditUses(t testing.TB, l *ledger.Ledger, account ledger.AccountID, now time.Time, service string, count int64) ledger.Charged {
	t.Helper()
	res, err := l.Do(ctx, account, ledger.CreditUses{Now: now, Org: 1, Service: service, Count: count, Unit: 1400, Reason: "usos"})
	if err != nil {
		t.Fatal(err)
	}
	return res.(ledger.Charged)
}

// TestUsesPayFirst: the oldest use of the service, then money; and what an answer
// says of it.
func TestUsesPayFirst(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 2000)
	creditUses(t, l, 1, start.Add(time.Hour), "COMPANY", 1)
	creditUses(t, l, 1, start, "COMPANY", 1) // is older
	creditUses(t, l, 1, start, "SCREEN", 9)
	now := start.Add(2 * time.Hour)
	f := func(want ledger.Charged) {
		t.Helper()
		r, got, err := charge(t, l, 1, 1, now, 1200)
		if err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		stored, err := l.Find(1, 1, false, r.ID)
		if err != nil || stored.Movement != got.Movement || stored.Centavos != got.Centavos {
			t.Errorf("the record says %d and %d, %v", stored.Movement, stored.Centavos, err)
		}
	}
	f(ledger.Charged{Movement: 5, Uses: 1, Lot: 3, UsesLeft: 1, Balance: 2000})
	f(ledger.Charged{Movement: 6, Uses: 1, Lot: 2, UsesLeft: 0, Balance: 2000})
	f(ledger.Charged{Movement: 7, Centavos: 1200, Balance: 800})
	var funds *ledger.FundsError
	if _, _, err := charge(t, l, 1, 1, now, 1200); !errors.As(err, &funds) || *funds != (ledger.FundsError{Service: "COMPANY", Price: 1200, Balance: 800}) {
		t.Errorf("%v", err)
	}
}

// TestUsesExpire: an expired use pays for nothing, and leaves by a movement.
func TestUsesExpire(t *testing.T) {
	l, _ := newLedger(t)
	creditUses(t, l, 1, start, "COMPANY", 3)
	credit(t, l, 1, start.Add(time.Hour), 1200)
	now := start.Add(ledger.LotLife)
	if _, got, err := charge(t, l, 1, 1, now, 1200); err != nil || got != (ledger.Charged{Movement: 4, Centavos: 1200}) {
		t.Fatalf("%+v, %v", got, err)
	}
	var expiry ledger.Movement
	err := l.Movements(1, ledger.Page{After: 2, Limit: 1}, func(m *ledger.Movement) error {
		expiry = *m
		return nil
	})
	if err != nil || expiry.Kind != ledger.KindExpiry || expiry.Uses != -3 || expiry.Centavos != 0 || expiry.Service != "COMPANY" {
		t.Errorf("%+v, %v", expiry, err)
	}
}

// TestCreditUsesRefuses holds what may not come in: nothing of it is written.
func TestCreditUsesRefuses(t *testing.T) {
	l, _ := newLedger(t)
	good := ledger.CreditUses{Now: start, Org: 1, Service: "COMPANY", Count: 1}
	f := func(change func(*ledger.CreditUses)) {
		t.Helper()
		c := good
		change(&c)
		if res, err := l.Do(ctx, 1, c); err == nil {
			t.Errorf("%+v: %+v", c, res)
		}
	}
	f(func(c *ledger.CreditUses) { c.Count = 0 })
	f(func(c *ledger.CreditUses) { c.Count = ledger.MaxUses + 1 })
	f(func(c *ledger.CreditUses) { c.Service = "" })
	f(func(c *ledger.CreditUses) { c.Service = strings.Repeat("x", 65) })
	f(func(c *ledger.CreditUses) { c.Unit = -1 })
	f(func(c *ledger.CreditUses) { c.Reason = strings.Repeat("x", 2001) })
	f(func(c *ledger.CreditUses) { c.Now = c.Now.AddDate(-100, 0, 0) })
	if _, err := l.Do(ctx, ledger.Global, good); err == nil {
		t.Error("the global group has uses")
	}
	if w, err := l.Wallet(1, start); err != nil || w.Movements != 0 {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestRaceForFunds: of 64 charges at once, 3 uses and money for 7 pay exactly 10.
func TestRaceForFunds(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 7*1200+1199)
	creditUses(t, l, 1, start, "COMPANY", 3)
	var mu sync.Mutex
	var uses, money, refused int
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_, got, err := charge(t, l, 1, 1, start, 1200)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.As(err, new(*ledger.FundsError)):
				refused++
			case err != nil:
				t.Error(err)
			case got.Uses == 1 && got.Centavos == 0:
				uses++
			case got.Uses == 0 && got.Centavos == 1200:
				money++
			default:
				t.Errorf("%+v", got)
			}
		})
	}
	wg.Wait()
	if uses != 3 || money != 7 || refused != 54 {
		t.Errorf("%d uses and %d times money paid, %d refused; want 3, 7 and 54", uses, money, refused)
	}
	if w, err := l.Wallet(1, start); err != nil || w.Balance != 1199 || w.Uses("COMPANY") != 0 {
		t.Errorf("%+v, %v", w, err)
	}
}
