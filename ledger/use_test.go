package ledger_test

import (
	"errors"
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
	f(func(u *ledger.Use) { u.Price = 0 })
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

// TestFreeUsesAreCounted: by account, organization, service and day, and kept
// when the ledger closes.
func TestFreeUsesAreCounted(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, fs)
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.CountUse(1, 1, "UTIL", 20261120)
	}
	l.CountUse(1, 1, "UTIL", 20261121)
	l.CountUse(1, 2, "UTIL", 20261120)
	l.CountUse(2, 3, "DATO", 20261120)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = ledger.Open(s, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	l.CountUse(1, 1, "UTIL", 20261120)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = ledger.Open(s, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	f := func(account ledger.AccountID, org ledger.OrgID, service string, day uint32, want uint64) {
		t.Helper()
		if got, err := l.FreeUses(account, org, service, day); err != nil || got != want {
			t.Errorf("%d %d %s %d: %d, %v; want %d", account, org, service, day, got, err, want)
		}
	}
	f(1, 1, "UTIL", 20261120, 4)
	f(1, 1, "UTIL", 20261121, 1)
	f(1, 2, "UTIL", 20261120, 1)
	f(2, 3, "DATO", 20261120, 1)
	f(2, 3, "UTIL", 20261120, 0)
	f(2, 1, "UTIL", 20261120, 0)
	if rep, err := ledger.Check(ctx, s); err != nil {
		t.Errorf("%v %+v", err, rep)
	}
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
