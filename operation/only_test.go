package operation

import (
	"errors"
	"strings"
	"testing"

	"cotejo/accounts"
)

// TestCheckOnly: a key is limited to what it could ask, under ids that exist.
func TestCheckOnly(t *testing.T) {
	table := Table{{ID: "verSalud", Auth: Open}, {ID: "verUso", Auth: Keyed}, {ID: "verAccesos", Auth: Admin}, {ID: "registrarCuenta", Auth: Registration}}
	f := func(mode accounts.Mode, ids, names string) {
		t.Helper()
		err := table.CheckOnly(mode, strings.Fields(ids))
		if (err != nil) != (names != "") || err != nil && (!errors.Is(err, accounts.ErrInvalid) || !strings.Contains(err.Error(), names)) {
			t.Errorf("CheckOnly(%d, %s) = %v; want one about %q", mode, ids, err, names)
		}
	}
	f(accounts.Live, "", "")
	f(accounts.Live, "verUso verUso", "")
	f(accounts.Test, "verUso", "")
	f(accounts.Admin, "verAccesos", "")
	f(accounts.Live, "verUso verUsos", "verUsos")
	f(accounts.Live, "verSalud", "verSalud")
	f(accounts.Live, "verAccesos", "verAccesos")
	f(accounts.Admin, "verUso", "verUso")
	f(accounts.Live, "registrarCuenta", "registrarCuenta")
	f(accounts.Admin, "registrarCuenta", "registrarCuenta")
	f(accounts.Live, strings.Repeat("x", 1000), strings.Repeat("x", 64)+"»")
}
