package expedientes_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/expedientes"
	"cotejo/ledger"
	"cotejo/store"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestIssued: what was noted is read again by its organization alone, once.
func TestIssued(t *testing.T) {
	s := must(store.OpenPebble("cuentas", store.PebbleOptions{FS: vfs.NewMem()}))
	l := must(ledger.Open(s, ledger.Options{}))
	defer func() {
		if _, err := ledger.Check(context.Background(), s); err != nil {
			t.Error(err)
		}
		l.Close()
		s.Close()
	}()
	const account, org = ledger.AccountID(7), ledger.OrgID(20)
	now := time.Date(2026, 11, 20, 16, 15, 0, 5, time.UTC)
	do := func(c ledger.Command) error {
		_, err := l.Do(context.Background(), account, c)
		return err
	}
	var want []expedientes.Issued
	for n := range 3 {
		id := must(l.NextID(context.Background(), expedientes.Prefix, now))
		i := expedientes.Issued{ID: id, Org: org, Moment: now, From: 20261001, To: 20261031, Format: expedientes.ZIP}
		if n == 2 {
			i.Org, i.Format = org.Twin(), expedientes.JSON
		}
		if err := do(expedientes.Issue{Issued: i}); err != nil {
			t.Fatal(err)
		}
		if err := do(expedientes.Issue{Issued: i}); err == nil {
			t.Error("the same dossier was noted twice")
		}
		want = append(want, i)
	}
	want[1].Sum, want[1].Whole = sha256.Sum256([]byte("x")), true
	if err := do(expedientes.Finish{Org: org, ID: want[1].ID, Sum: want[1].Sum}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []expedientes.Finish{
		{Org: org, ID: want[1].ID},        // has its hash
		{Org: org, ID: want[2].ID},        // the twin's
		{Org: org.Twin(), ID: want[0].ID}, // the entity's
	} {
		if err := do(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	read := func(org ledger.OrgID) (list []expedientes.Issued) {
		if err := expedientes.Each(l.Read(account), org, func(i expedientes.Issued) error {
			i.Moment = i.Moment.UTC()
			list = append(list, i)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := read(org); !slices.Equal(got, want[:2]) {
		t.Errorf("got %+v\nwant %+v", got, want[:2])
	}
	if got := read(org.Twin()); !slices.Equal(got, want[2:]) {
		t.Errorf("got %+v\nwant %+v", got, want[2:])
	}
}
