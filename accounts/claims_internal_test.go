package accounts

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// halfway is a service whose steps a test takes one by one.
type halfway struct {
	*Service
	t   *testing.T
	now time.Time
}

func newHalfway(t *testing.T) *halfway {
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: vfs.NewMem()})
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
	h := &halfway{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	h.Service = New(l, bytes.Repeat([]byte{1}, 32), nil, func() time.Time { return h.now })
	return h
}

func (h *halfway) do(account ledger.AccountID, cmd ledger.Command) error {
	_, err := h.ledger.Do(context.Background(), account, cmd)
	return err
}

func (h *halfway) repair(want Repaired) {
	h.t.Helper()
	if got, err := h.Repair(context.Background()); err != nil || got != want {
		h.t.Errorf("Repair = %+v, %v; want %+v", got, err, want)
	}
}

func (h *halfway) check(halfWay, violations int) {
	h.t.Helper()
	f, err := h.Check(context.Background())
	if err != nil || len(f.HalfWay) != halfWay || len(f.Violations) != violations {
		h.t.Errorf("Check = %+v, %v; want %d half-way and %d violations", f, err, halfWay, violations)
	}
}

// account claims an account without writing it.
func (h *halfway) account(ref string) putAccount {
	h.t.Helper()
	const id, org = 77, 88
	c := putAccount{a: Account{ID: id, Name: "Uno", Created: h.now}, orgs: []Organization{{ID: org, Account: id, Name: "Uno", Created: h.now}}}
	c.claims = []Claim{h.claim(spaceAccountClaim, id, id, h.now, ref), h.claim(spaceOrgClaim, org, id, h.now, ref)}
	if err := h.do(ledger.Global, claimIDs{c.claims}); err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *halfway) unusable() {
	h.t.Helper()
	if _, err := h.Account(77); !errors.Is(err, ErrNotFound) {
		h.t.Errorf("Account = %v", err)
	}
	if _, err := h.Organization(88); !errors.Is(err, ErrNotFound) {
		h.t.Errorf("Organization = %v", err)
	}
	if _, err := h.AddOrganization(context.Background(), OrganizationRequest{Account: 77, Name: "Dos"}); !errors.Is(err, ErrNotFound) {
		h.t.Errorf("AddOrganization = %v", err)
	}
	if _, _, err := h.CreateKey(context.Background(), KeyRequest{Org: 88, Mode: Live}); !errors.Is(err, ErrNotFound) {
		h.t.Errorf("CreateKey = %v", err)
	}
}

// TestALateSecondStepIsRefused: an id that was freed gets no second owner.
func TestALateSecondStepIsRefused(t *testing.T) {
	h := newHalfway(t)
	late := h.account("")
	h.unusable()
	h.now = h.now.Add(claimAge)
	h.repair(Repaired{}) // not old enough
	h.check(0, 0)
	h.now = h.now.Add(time.Nanosecond)
	h.check(2, 0)
	h.repair(Repaired{Freed: 2})
	h.repair(Repaired{})
	h.check(0, 0)
	if err := h.do(77, late); !errors.Is(err, errGivenUp) {
		t.Errorf("the second step came late: %v", err)
	}
	h.unusable()
	// The ids are free: whoever claims them now makes them.
	again := h.account("")
	if err := h.do(77, again); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Organization(88); err != nil {
		t.Error(err)
	}
	h.now = h.now.Add(2 * claimAge)
	h.repair(Repaired{Settled: 2})
	h.check(0, 0)
}

// TestRepairGoesOnWhereItWasCut takes its steps one by one.
func TestRepairGoesOnWhereItWasCut(t *testing.T) {
	h := newHalfway(t)
	late := h.account("")
	h.now = h.now.Add(2 * claimAge)
	if err := h.do(77, giveUp{late.claims[0]}); err != nil {
		t.Fatal(err)
	}
	if err := h.do(77, late); !errors.Is(err, errGivenUp) {
		t.Errorf("of two claims one was given up: %v", err)
	}
	h.repair(Repaired{Freed: 2})
	h.check(0, 0)
}

// TestAClaimThatWasMadeAgainStays: a repair that is under way frees only what it saw.
func TestAClaimThatWasMadeAgainStays(t *testing.T) {
	h := newHalfway(t)
	first := h.account("registro")
	h.now = h.now.Add(2 * claimAge)
	for _, c := range first.claims {
		if err := h.do(77, giveUp{c}); err != nil {
			t.Fatal(err)
		}
	}
	second := h.account("registro") // between the two steps of the repair
	for _, c := range first.claims {
		if err := h.do(ledger.Global, settle{Claim: c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.do(77, second); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Organization(88); err != nil {
		t.Error(err)
	}
	h.now = h.now.Add(2 * claimAge)
	h.repair(Repaired{Settled: 2})
	h.check(0, 0)
}

func TestAClaimIsOfOneCaller(t *testing.T) {
	h := newHalfway(t)
	h.account("registro 1")
	f := func(account ledger.AccountID, ref string, want error) {
		t.Helper()
		if err := h.do(ledger.Global, claimIDs{[]Claim{h.claim(spaceOrgClaim, 88, account, h.now, ref)}}); !errors.Is(err, want) {
			t.Errorf("account %d, %q: %v; want %v", account, ref, err, want)
		}
	}
	f(77, "", errTaken)
	f(77, "registro 2", errTaken)
	f(78, "registro 1", errTaken)
	f(77, "registro 1", nil)
	if err := h.do(ledger.Global, claimIDs{[]Claim{h.claim(spaceOrgClaim, 99, 77, h.now, "")}}); err != nil {
		t.Fatal(err)
	}
	if err := h.do(ledger.Global, claimIDs{[]Claim{h.claim(spaceOrgClaim, 99, 77, h.now, "")}}); !errors.Is(err, errTaken) {
		t.Errorf("without a ref: %v", err)
	}
}

// raw writes what no command of this package would.
type raw func(*ledger.Tx)

func (c raw) Apply(tx *ledger.Tx) (ledger.Result, error) { c(tx); return nil, nil }

func TestCheckSeesWhatNoInterruptionExplains(t *testing.T) {
	h := newHalfway(t)
	made := h.account("")
	if err := h.do(77, made); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(2 * claimAge)
	h.check(0, 0)
	if err := h.do(77, raw(func(tx *ledger.Tx) { tx.Delete(spaceOrg, idKey(88)) })); err != nil {
		t.Fatal(err)
	}
	h.check(1, 0)
	if err := h.do(ledger.Global, settle{made.claims[1], true}); err != nil {
		t.Fatal(err)
	}
	h.check(0, 1) // a claim without a note
	if err := h.do(77, raw(func(tx *ledger.Tx) { tx.Put(spaceOrg, idKey(90), named(h.now, "X")) })); err != nil {
		t.Fatal(err)
	}
	h.check(0, 2) // and something that nobody claimed
	if err := h.do(ledger.Global, raw(func(tx *ledger.Tx) { tx.Put(spaceKey, []byte("abcdefgh"), []byte("x")) })); err != nil {
		t.Fatal(err)
	}
	h.check(0, 3)
}
