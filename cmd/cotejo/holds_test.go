package main

import (
	"strings"
	"testing"
	"time"

	"cotejo/accounts"
	"cotejo/ledger"
)

// TestHoldsFromTheCommandLine: wallet show names what is held, and limpieza writes
// that a hold is over.
func TestHoldsFromTheCommandLine(t *testing.T) {
	data := newData(t)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "50", "--reason", "prueba", "--data", data)
	cotejo(t, 0, "wallet", "credit", "--org", org, "--uses", "SPEI:1", "--reason", "prueba", "--data", data)
	hold := func(began, until time.Time) {
		t.Helper()
		n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
		if err != nil {
			t.Fatal(err)
		}
		defer n.close()
		id, err := accounts.ParseOrg(org)
		if err != nil {
			t.Fatal(err)
		}
		o, err := n.accounts.Organization(id)
		if err != nil {
			t.Fatal(err)
		}
		h := ledger.Hold{Now: began, Org: id, Service: "SPEI", Units: 3, Centavos: 300, Until: until}
		if _, err := n.ledger.Do(t.Context(), o.Account, h); err != nil {
			t.Fatal(err)
		}
	}
	began := now()
	hold(began, began.Add(time.Hour))
	w := cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data)
	if w.Balance != "44.00" || len(w.Uses) != 0 || len(w.Holds) != 1 || w.Holds[0].Service != "SPEI" || w.Holds[0].Uses != 1 || w.Holds[0].Held != "6.00" {
		t.Errorf("%+v", w)
	}
	if said := cotejo(t, 0, "wallet", "show", "--org", org, "--data", data); !strings.Contains(said, "retención 3  SPEI  6.00 MXN y 1 usos") {
		t.Errorf("%s", said)
	}

	hold(began.Add(-2*time.Hour), began.Add(-time.Hour))
	if out := cotejo(t, 0, "jobs", "run", "limpieza", "--data", data); !strings.Contains(out, "1 cuentas con abonos o retenciones vencidos") {
		t.Errorf("%s", out)
	}
	w = cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data)
	if w.Balance != "44.00" || len(w.Holds) != 1 {
		t.Errorf("%+v", w)
	}
	if out := cotejo(t, 0, "jobs", "run", "limpieza", "--data", data); !strings.Contains(out, "nada que limpiar") {
		t.Errorf("%s", out)
	}
}
