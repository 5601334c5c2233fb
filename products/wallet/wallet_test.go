package wallet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/accounts"
	"cotejo/ledger"
	op "cotejo/operation"
	"cotejo/store"
)

var now = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)

func openLedger(t *testing.T) *ledger.Ledger {
	t.Helper()
	s, err := store.OpenPebble("cuentas", store.PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func ask(t *testing.T, l *ledger.Ledger, org ledger.OrgID, mode accounts.Mode) (a answer, body []byte) {
	t.Helper()
	r, err := Operations(l, func() time.Time { return now })[0].Read(context.Background(),
		op.Call{Principal: accounts.Principal{Account: 1, Org: org, Mode: mode}})
	if err == nil {
		err = json.Unmarshal(r.Body, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, r.Body
}

// TestSistersShareMoneyAlone: two organizations of one account see the same money
// and the same amounts, and of the other's questions and reasons nothing.
func TestSistersShareMoneyAlone(t *testing.T) {
	l := openLedger(t)
	do := func(c ledger.Command) ledger.Result {
		t.Helper()
		res, err := l.Do(context.Background(), 1, c)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	do(ledger.Credit{Now: now, Org: 2, Centavos: 5000, Reason: "secreto de la hermana"})
	use := ledger.Use{Now: now, Org: 2, Service: "NOMINA", Price: 50, Basis: "tabla secreta"}
	do(use)
	held := do(ledger.Hold{Now: now, Org: 2, Service: "SPEI", Units: 2, Centavos: 300, Until: now.Add(time.Hour)}).(ledger.Held)
	use.Service, use.Price, use.Hold = "SPEI", 300, held.Number
	do(use)
	id := charge(t, l, 2)

	mine, body := ask(t, l, 1, accounts.Live)
	theirs, _ := ask(t, l, 2, accounts.Live)
	if mine.Balance != "31.50" || mine.Held != "3.00" || mine.Balance != theirs.Balance || mine.Held != theirs.Held {
		t.Errorf("balances %s and %s, held %s and %s", mine.Balance, theirs.Balance, mine.Held, theirs.Held)
	}
	if len(mine.Holds) != 1 || mine.Holds[0].Own || !theirs.Holds[0].Own || mine.Holds[0].Balance != "3.00" {
		t.Errorf("holds %+v and %+v", mine.Holds, theirs.Holds)
	}
	for i, m := range mine.Movements {
		other := theirs.Movements[i]
		if m.Amount != other.Amount || m.Own || !other.Own || m.Record != "" || m.Reason != "" {
			t.Errorf("%+v and %+v", m, other)
		}
	}
	if theirs.Movements[0].Record != id || theirs.Movements[0].Amount != "-12.00" || theirs.Movements[4].Reason == "" {
		t.Errorf("%+v", theirs.Movements)
	}
	if bytes.Contains(body, []byte("secret")) || bytes.Contains(body, []byte(id)) {
		t.Errorf("%s", body)
	}
	// A hold says how much, and moves nothing.
	if m := mine.Movements[2]; m.Kind != "retencion" || m.Amount != "0.00" || m.Balance != "49.50" || m.Lots[0] != (part{1, "6.00", 0}) {
		t.Errorf("%+v", m)
	}
	if m := mine.Movements[1]; m.Hold != held.Number || m.Amount != "-3.00" {
		t.Errorf("%+v", m)
	}
}

// charge charges a record of an organization and returns its id.
func charge(t *testing.T, l *ledger.Ledger, org ledger.OrgID) string {
	t.Helper()
	id, err := l.NextID(context.Background(), "COM", now)
	if err != nil {
		t.Fatal(err)
	}
	registro := []byte("{}")
	sum := sha256.Sum256(registro)
	c := ledger.Charge{Now: now, Price: 1200, Sum: sum, Record: ledger.Record{
		ID: id, Org: org, Service: "COMPANY", Code: "COMPANY_OK", Operation: "x", Registro: registro,
		Acta: fmt.Appendf(nil, `{"registro_sha256":"%x","verification_id":"%v"}`, sum, id),
	}}
	if _, err := l.Do(context.Background(), 1, c); err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// TestOrder: what paid for an order shows from where to where and at which price; to a
// sister organization its amount alone.
func TestOrder(t *testing.T) {
	l := openLedger(t)
	do := func(c ledger.Command) {
		t.Helper()
		if _, err := l.Do(context.Background(), 1, c); err != nil {
			t.Fatal(err)
		}
	}
	do(ledger.Credit{Now: now, Org: 2, Centavos: 5000, Reason: "abono"})
	id, err := l.NextID(context.Background(), ledger.OrderPrefix, now)
	if err != nil {
		t.Fatal(err)
	}
	o := ledger.Order{OrderKey: ledger.OrderKey{Org: 2, ID: id}, Service: "COMPANY", Operation: "x"}
	do(ledger.OpenOrder{Now: now, ID: id, Org: 2, Service: "COMPANY", Operation: "x", Units: 3, Price: 1200, Steps: []ledger.Step{{From: 3, Centavos: 800}}, Until: now.Add(time.Hour)})
	b, err := l.NewBlockBuilder()
	if err != nil {
		t.Fatal(err)
	}
	ids, n, err := l.NextIDs(context.Background(), "COM", now, 3)
	if err != nil {
		t.Fatal(err)
	}
	for b.Reset(&o, 1, ids, n); b.Room(); {
		registro := []byte("{}")
		sum := sha256.Sum256(registro)
		if err := b.Add("COMPANY_OK", registro, sum, fmt.Appendf(nil, `{"registro_sha256":"%x","verification_id":"%v"}`, sum, b.NextID()), nil); err != nil {
			t.Fatal(err)
		}
	}
	do(ledger.FillOrder{Now: now, Block: b.Block()})
	mine, _ := ask(t, l, 2, accounts.Live)
	theirs, body := ask(t, l, 1, accounts.Live)
	m := mine.Movements[1]
	if m.Kind != "cargo" || m.Service != "COMPANY" || m.Amount != "-24.00" || m.Unit != "12.00" || m.Order != id.String() || m.From != 1 || m.To != 2 || m.Hold != 2 || m.Record != "" {
		t.Errorf("%+v", m)
	}
	if m := mine.Movements[0]; m.Amount != "-8.00" || m.Unit != "8.00" || m.From != 3 || m.To != 3 || m.Balance != "18.00" {
		t.Errorf("%+v", m)
	}
	if m := theirs.Movements[1]; m.Amount != "-24.00" || m.Own || m.Order != "" || m.From != 0 || bytes.Contains(body, []byte(id.String())) {
		t.Errorf("%+v", m)
	}
}

// TestSyntheticAddsUp: what test keys see obeys the rules that real money does.
func TestSyntheticAddsUp(t *testing.T) {
	w := synthetic()
	var centavos, uses, held int64
	for i, m := range syntheticTrail {
		centavos += m.Centavos
		uses += m.Uses
		if m.Number != uint64(i+1) || m.Balance != centavos {
			t.Errorf("%+v after %d centavos", m, centavos)
		}
	}
	for _, h := range w.Holds {
		held += h.Centavos
	}
	if w.Balance+held != centavos || w.Uses("COMPANY") != uses || w.Movements != uint64(len(syntheticTrail)) {
		t.Errorf("%+v; the trail leaves %d centavos and %d uses", w, centavos, uses)
	}
	a, _ := ask(t, nil, 7, accounts.Test)
	if !a.Sandbox || a.Balance != "476.00" || len(a.Movements) != 5 || !a.Movements[2].Own {
		t.Errorf("%+v", a)
	}
}
