package accounts_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cotejo/accounts"
)

// TestPowerFailsWhileConfirming loses power at each commit, before it and just after
// it, and asks again: there is one account, and whoever was shown keys can use them.
func TestPowerFailsWhileConfirming(t *testing.T) {
	outcomes := map[string]int{}
	for commits := range 4 {
		for _, after := range []bool{false, true} {
			d := newDesk(t, accounts.RegistrationKeySpec{})
			r := d.register("ana@empresa.mx")
			d.cut.left, d.cut.after = commits, after
			opened, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
			d.reopen(t)
			shown := err == nil
			again, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
			var confirmed *accounts.ConfirmedError
			switch {
			case err == nil && shown:
				t.Errorf("%d %v: keys were shown twice", commits, after)
			case err == nil:
				opened, shown = again, true
			case !errors.As(err, &confirmed):
				t.Errorf("%d %v: asked again: %v", commits, after, err)
			}
			if shown {
				d.checkOpened(opened, r.Fiscal)
			}
			if n := d.organizations(); n != 1 || d.state().Made != 1 || d.state().Pending != 0 {
				t.Errorf("%d %v: %d organizations, %+v", commits, after, n, d.state())
			}
			_, err = d.Confirm(ctx, d.key.ID, r.ID, r.Code)
			org := as[*accounts.ConfirmedError](t, err).Org
			if keys, err := d.Keys(org); err != nil || len(keys) != 2 {
				t.Errorf("%d %v: keys %v, %v", commits, after, keys, err)
			}
			d.wait(26 * time.Hour)
			if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done.Abandoned != 0 || done.Finished+done.Forgotten < 1 {
				t.Errorf("%d %v: %+v, %v", commits, after, done, err)
			}
			outcomes[fmt.Sprintf("shown %v", shown)]++
		}
	}
	// Only the answer that was lost after the account's own commit shows no keys.
	if outcomes["shown false"] != 1 || outcomes["shown true"] != 7 {
		t.Errorf("%v", outcomes)
	}
}

// TestNobodyComesBack: a claim that led to nothing is given up when its code is
// over, and the address may register again; what was opened is finished.
func TestNobodyComesBack(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	r := d.register("ana@empresa.mx")
	d.cut.left = 1 // the claim, and not the account
	if _, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code); err == nil {
		t.Fatal("the power did not fail")
	}
	d.reopen(t)
	if d.organizations() != 0 {
		t.Fatal("an account without its commit")
	}
	if again := d.register("ana@empresa.mx"); !again.Known {
		t.Error("a claimed address takes another code")
	}
	if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done != (accounts.PrunedRegistrations{}) {
		t.Errorf("whoever has the code may come back: %+v, %v", done, err)
	}
	d.wait(25 * time.Hour)
	// The power fails between giving up the account and freeing the address.
	d.cut.left = 1
	if _, err := d.PruneRegistrations(ctx, d.clock()); err == nil {
		t.Fatal("the power did not fail")
	}
	d.reopen(t)
	if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done != (accounts.PrunedRegistrations{Abandoned: 1, Forgotten: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	if k := d.state(); k.Made != 0 || k.Pending != 0 {
		t.Errorf("%+v", k)
	}
	fresh := d.register("ana@empresa.mx")
	if fresh.Known {
		t.Error("the address is not free")
	}
	d.cut.left = 2 // claim and account, and not the note that it is done
	opened := d.confirm(fresh)
	d.reopen(t)
	d.checkOpened(opened, fresh.Fiscal)
	if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done != (accounts.PrunedRegistrations{Finished: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	_, err := d.Confirm(ctx, d.key.ID, fresh.ID, fresh.Code)
	as[*accounts.ConfirmedError](t, err)
}

// TestClaimsLiveAsLongAsTheCode: the task that repairs claims leaves those of a
// registration to whoever has the code; when that is over they go, whichever task
// comes first, and what comes later makes nothing.
func TestClaimsLiveAsLongAsTheCode(t *testing.T) {
	claimed := func() (*desk, accounts.Issued) {
		d := newDesk(t, accounts.RegistrationKeySpec{})
		d.wait(20 * time.Hour)
		r := d.register("ana@empresa.mx")
		d.wait(20 * time.Hour)
		d.cut.left = 1 // the claim, and not the account
		if _, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code); err == nil {
			t.Fatal("the power did not fail")
		}
		d.reopen(t)
		return d, r
	}
	repair := func(d *desk, want accounts.Repaired) {
		t.Helper()
		if done, err := d.Repair(ctx); err != nil || done != want {
			t.Errorf("Repair = %+v, %v; want %+v", done, err, want)
		}
	}
	prune := func(d *desk, want accounts.PrunedRegistrations) {
		t.Helper()
		if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done != want {
			t.Errorf("PruneRegistrations = %+v, %v; want %+v", done, err, want)
		}
	}
	check := func(d *desk, halfWay int) {
		t.Helper()
		if found, err := d.Check(ctx); err != nil || len(found.HalfWay) != halfWay || len(found.Violations) > 0 {
			t.Errorf("Check = %+v, %v; want %d half-way", found, err, halfWay)
		}
	}

	d, r := claimed()
	d.wait(4*time.Hour - 1) // the last moment of the code
	check(d, 0)
	repair(d, accounts.Repaired{})
	prune(d, accounts.PrunedRegistrations{})
	d.checkOpened(d.confirm(r), r.Fiscal)
	d.wait(48 * time.Hour)
	repair(d, accounts.Repaired{})
	check(d, 0)

	for _, repairFirst := range []bool{true, false} {
		d, r = claimed()
		d.wait(5 * time.Hour) // the code is over for an hour
		repair(d, accounts.Repaired{})
		check(d, 0)
		d.wait(1)
		check(d, 4)
		if repairFirst {
			repair(d, accounts.Repaired{Freed: 4})
			_, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
			is(t, err, accounts.ErrCodeOver)
		}
		prune(d, accounts.PrunedRegistrations{Abandoned: 1})
		repair(d, accounts.Repaired{})
		prune(d, accounts.PrunedRegistrations{})
		check(d, 0)
		_, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
		is(t, err, accounts.ErrNoRegistration)
		again := d.register("ana@empresa.mx")
		if again.Known || d.organizations() != 0 || d.state().Made != 0 {
			t.Errorf("the address is not free: %+v, %+v", again, d.state())
		}
		d.checkOpened(d.confirm(again), again.Fiscal)
	}

	// The clock of who confirms was read before the claims were given up.
	d, r = claimed()
	d.wait(5*time.Hour + 1)
	repair(d, accounts.Repaired{Freed: 4})
	d.wait(-2 * time.Hour)
	_, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	is(t, err, accounts.ErrCodeOver)
	if d.organizations() != 0 {
		t.Error("an account of claims that were given up")
	}
}
