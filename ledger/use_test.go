package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
)

// TestUseRefuses holds what a use may not be: nothing of it is written.
func TestUseRefuses(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 100)
	good := ledger.Use{Now: start, Org: 1, Service: "NOMINA", Price: 1}
	f := func(change func(*ledger.Use)) {
		t.Helper()
		u := good
		change(&u)
		if res, err := l.Do(ctx, 1, u); err == nil {
			t.Errorf("%+v: %+v", u, res)
		}
	}
	f(func(u *ledger.Use) { u.Price = -1 })
	f(func(u *ledger.Use) { u.Service = "" })
	f(func(u *ledger.Use) { u.Service = strings.Repeat("x", 65) })
	f(func(u *ledger.Use) { u.Basis = strings.Repeat("x", 1001) })
	f(func(u *ledger.Use) { u.Once = once(1, 1) }) // without an answer to repeat
	f(func(u *ledger.Use) { u.Once, u.Answer = once(1, 1), make([]byte, 64<<10+1) })
	f(func(u *ledger.Use) { u.Now = u.Now.AddDate(-100, 0, 0) })
	if _, err := l.Do(ctx, ledger.Global, good); err == nil {
		t.Error("the global group paid")
	}
	if w, err := l.Wallet(1, start); err != nil || w.Movements != 1 || w.Balance != 100 {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestFreeUsesAreCounted: by account, organization, mode, service and day, and kept
// when the ledger closes.
func TestFreeUsesAreCounted(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, fs)
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.CountUse(1, 1, false, "UTIL", 20261120)
	}
	l.CountUse(1, 1, false, "UTIL", 20261121)
	l.CountUse(1, 2, false, "UTIL", 20261120)
	l.CountUse(2, 3, true, "DATO", 20261120)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = ledger.Open(s, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	l.CountUse(1, 1, false, "UTIL", 20261120)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = ledger.Open(s, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	f := func(account ledger.AccountID, org ledger.OrgID, sandbox bool, want ...ledger.Usage) {
		t.Helper()
		var got []ledger.Usage
		err := l.Usage(account, org, sandbox, 0, 20991231, func(u ledger.Usage) error {
			got = append(got, u)
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d %d %v: %+v, %v; want %+v", account, org, sandbox, got, err, want)
		}
	}
	f(1, 1, false, ledger.Usage{Org: 1, Day: 20261120, Service: "UTIL", Answers: 4}, ledger.Usage{Org: 1, Day: 20261121, Service: "UTIL", Answers: 1})
	f(1, 1, true)
	f(1, 2, false, ledger.Usage{Org: 2, Day: 20261120, Service: "UTIL", Answers: 1})
	f(2, 3, true, ledger.Usage{Org: 3, Sandbox: true, Day: 20261120, Service: "DATO", Answers: 1})
	f(2, 3, false)
	f(2, 1, false)
	if rep, err := ledger.Check(ctx, s); err != nil {
		t.Errorf("%v %+v", err, rep)
	}
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
