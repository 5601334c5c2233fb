package accounts_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/accounts"
	"cotejo/store"
)

// admitted tells whether a key is let in.
func (f *fixture) admitted(secret string) bool {
	f.t.Helper()
	_, err := f.Authenticate([]byte(secret))
	if err != nil && err != accounts.ErrUnauthorized {
		f.t.Fatal(err)
	}
	return err == nil
}

func TestKeysAreLimitedToOperations(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	o := f.organization("Uno")
	secret, key, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: accounts.Live, Only: []string{"verUso", "consultarA", "verUso"}})
	if err != nil || !slices.Equal(key.Only, []string{"consultarA", "verUso"}) {
		t.Fatalf("CreateKey = %+v, %v", key, err)
	}
	all, _ := f.key(o.ID, accounts.Live)
	f.close()
	f = open(t, fs, nil)
	defer f.close()
	may := func(secret, operation string, want bool) {
		t.Helper()
		who, err := f.Authenticate([]byte(secret))
		if err != nil || who.May(operation) != want {
			t.Errorf("May(%q) = %v, %v; want %v", operation, !want, err, want)
		}
	}
	may(secret, "consultarA", true)
	may(secret, "verUso", true)
	may(secret, "consultar", false)
	may(secret, "consultarA,verUso", false)
	may(secret, "verUsos", false)
	may(secret, "", false)
	may(all, "verUsos", true)

	next, key, err := f.RotateKey(ctx, key.ID, time.Hour)
	if err != nil || len(key.Only) != 2 {
		t.Fatalf("RotateKey = %+v, %v", key, err)
	}
	may(next, "consultarA", true)
	may(next, "verUsos", false)
}

func TestRotation(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	f.stands = true
	o := f.organization("Uno")
	old, oldKey := f.key(o.ID, accounts.Test)
	if !f.admitted(old) {
		t.Fatal("a new key is refused")
	}
	next, nextKey, err := f.RotateKey(ctx, oldKey.ID, 24*time.Hour)
	if err != nil || nextKey.Org != o.ID.Twin() || nextKey.Mode != accounts.Test {
		t.Fatalf("RotateKey = %+v, %v", nextKey, err)
	}
	f.advance(24*time.Hour - time.Nanosecond)
	if !f.admitted(old) || !f.admitted(next) {
		t.Error("both are good until the grace ends")
	}
	f.advance(time.Nanosecond)
	if f.admitted(old) || !f.admitted(next) {
		t.Error("the old key outlives its grace, or the new one does not")
	}
	if _, _, err := f.RotateKey(ctx, oldKey.ID, 0); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("an ended key is rotated: %v", err)
	}
	if _, _, err := f.RotateKey(ctx, nextKey.ID, -1); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("a grace below zero: %v", err)
	}
	last, _, err := f.RotateKey(ctx, nextKey.ID, 0)
	if err != nil || f.admitted(next) || !f.admitted(last) {
		t.Errorf("without grace the old key ends at once: %v", err)
	}
}

// TestRotationIsBounded: keys in their grace take no place of the ten, and are ten at
// most.
func TestRotationIsBounded(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	_, key := f.key(o.ID, accounts.Live)
	for range 9 {
		f.key(o.ID, accounts.Live)
	}
	var err error
	for range 10 {
		if _, key, err = f.RotateKey(ctx, key.ID, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	before := f.globalKeys()
	if _, _, err := f.RotateKey(ctx, key.ID, time.Hour); !errors.Is(err, accounts.ErrTooManyKeys) {
		t.Errorf("the eleventh key in its grace: %v", err)
	}
	if n := f.globalKeys(); n != before {
		t.Errorf("a refused rotation left %d rows in the global group", n-before)
	}
	if k, err := f.Keys(o.ID); err != nil || len(k) != 20 || !k[19].Until.IsZero() {
		t.Errorf("a refused rotation changed something: %+v, %v", k, err)
	}
	f.advance(2 * time.Hour)
	if _, _, err := f.RotateKey(ctx, key.ID, time.Hour); err != nil {
		t.Errorf("after the graces: %v", err)
	}
}

func TestDeactivation(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	f.stands = true
	o := f.organization("Uno")
	secret, key := f.key(o.ID, accounts.Live)
	if !f.admitted(secret) {
		t.Fatal("a new key is refused")
	}
	got, err := f.DeactivateKey(ctx, key.ID)
	if err != nil || !got.Deactivated.Equal(f.now) || got.Active(f.now) {
		t.Errorf("DeactivateKey = %+v, %v", got, err)
	}
	if f.admitted(secret) {
		t.Error("a deactivated key is let in")
	}
	f.advance(time.Hour)
	if again, err := f.DeactivateKey(ctx, key.ID); err != nil || !again.Deactivated.Equal(got.Deactivated) {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	if _, err := f.DeactivateKey(ctx, "00000000"); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("unknown key: %v", err)
	}
	if _, err := f.DeactivateKey(ctx, secret); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("the key in the place of its id: %v", err)
	}
	for range 10 { // it takes no place
		f.key(o.ID, accounts.Live)
	}
	f.close()
	f = open(t, fs, nil)
	defer f.close()
	if f.admitted(secret) {
		t.Error("a deactivated key is let in after a restart")
	}
}

// TestAnotherNodeLearnsOfIt: two services over one ledger, as two nodes would be.
func TestAnotherNodeLearnsOfIt(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	f.stands = true
	secret, key := f.key(f.organization("Uno").ID, accounts.Live)
	other := accounts.New(f.ledger, pepper, nil, f.clock)
	if _, err := other.Authenticate([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeactivateKey(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	f.advance(5*time.Second + 1)
	if _, err := other.Authenticate([]byte(secret)); !errors.Is(err, accounts.ErrUnauthorized) {
		t.Errorf("five seconds later the other node says %v", err)
	}
}

// TestAClockSetBackTrustsNothing: what was read in the future is read again.
func TestAClockSetBackTrustsNothing(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	f.stands = true
	secret, key := f.key(f.organization("Uno").ID, accounts.Live)
	other := accounts.New(f.ledger, pepper, nil, f.clock)
	if _, err := other.Authenticate([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeactivateKey(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	f.advance(-time.Hour)
	if _, err := other.Authenticate([]byte(secret)); !errors.Is(err, accounts.ErrUnauthorized) {
		t.Errorf("with the clock set back the other node says %v", err)
	}
}

// TestNobodyIsLetInAfterDeactivation deactivates keys while 64 requests ask with them,
// from memory and from the store (the clock that steps makes what is known stale).
func TestNobodyIsLetInAfterDeactivation(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	for range 4 {
		secret, key := f.key(o.ID, accounts.Live)
		var ended atomic.Bool
		var before, after atomic.Int64
		var started, wg sync.WaitGroup
		stop := make(chan struct{})
		started.Add(64)
		for range 64 {
			wg.Go(func() {
				for first := true; ; first = false {
					late := ended.Load()
					_, err := f.Authenticate([]byte(secret))
					switch {
					case err == nil && late:
						after.Add(1)
					case err == nil:
						before.Add(1)
					case err != accounts.ErrUnauthorized:
						t.Error(err)
					}
					if first {
						started.Done()
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		started.Wait()
		if _, err := f.DeactivateKey(ctx, key.ID); err != nil {
			t.Fatal(err)
		}
		ended.Store(true)
		if f.admitted(secret) {
			t.Error("let in after its deactivation")
		}
		close(stop)
		wg.Wait()
		if before.Load() == 0 || after.Load() > 0 {
			t.Fatalf("%d let in before, %d after", before.Load(), after.Load())
		}
	}
}

func TestParallelKeysKeepTheMaximum(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	before := f.globalKeys()
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: accounts.Live})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, accounts.ErrTooManyKeys):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	keys, err := f.Keys(o.ID)
	if made.Load() != 10 || refused.Load() != 54 || len(keys) != 10 || err != nil {
		t.Errorf("%d made, %d refused, %d there: %v", made.Load(), refused.Load(), len(keys), err)
	}
	if n := f.globalKeys() - before; n != 20 { // a claim and a note each
		t.Errorf("ten keys left %d rows in the global group", n)
	}
}

// TestARepeatedConfirmation: what a caller began it can finish, once.
func TestARepeatedConfirmation(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	register := func() (accounts.Account, accounts.Organization, string, accounts.Key) {
		t.Helper()
		a, orgs, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno", Entities: []string{"Dos"}, Ref: "registro 7"})
		if err != nil {
			t.Fatal(err)
		}
		secret, key, err := f.CreateKey(ctx, accounts.KeyRequest{Org: orgs[1].ID, Mode: accounts.Test, Ref: "registro 7"})
		if err != nil {
			t.Fatal(err)
		}
		return a, orgs[1], secret, key
	}
	a, o, secret, key := register()
	if !f.admitted(secret) {
		t.Error("the key is refused")
	}
	rows := f.globalKeys()
	f.close()
	f = open(t, fs, nil)
	defer f.close()
	f.advance(2 * time.Hour)
	if !f.admitted(secret) {
		t.Error("the key is refused after a restart")
	}
	again, same, next, nextKey := register()
	if again != a || same != o || nextKey.ID != key.ID || next == secret {
		t.Errorf("again: %+v, %+v, %+v; want %+v, %+v and the same key with another secret", again, same, nextKey, a, o)
	}
	if f.admitted(secret) || !f.admitted(next) {
		t.Error("the secret that was lost is good, or the new one is not")
	}
	if all, err := f.Accounts(ctx); err != nil || len(all) != 1 {
		t.Errorf("Accounts = %+v, %v", all, err)
	}
	if keys, err := f.Keys(o.ID); err != nil || len(keys) != 1 {
		t.Errorf("Keys = %+v, %v", keys, err)
	}
	if n := f.globalKeys(); n != rows {
		t.Errorf("%d rows in the global group, %d before", n, rows)
	}
	if _, err := f.DeactivateKey(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: accounts.Test, Ref: "registro 7"}); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("a deactivated key came back: %v", err)
	}
	if _, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: accounts.Live, Ref: "registro 7"}); err != nil {
		t.Errorf("the other mode is another key: %v", err)
	}
	if _, orgs, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno", Ref: "registro 8"}); err != nil || orgs[0].Account == a.ID {
		t.Errorf("another registration: %+v, %v", orgs, err)
	}
}

func TestLastUse(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	f.stands = true
	o := f.organization("Uno")
	secret, key := f.key(o.ID, accounts.Live)
	used := func(want time.Time) {
		t.Helper()
		keys, err := f.Keys(o.ID)
		if err != nil || !keys[0].LastUsed.Equal(want) {
			t.Errorf("LastUsed = %v, %v; want %v", keys[0].LastUsed, err, want)
		}
	}
	commits := func() uint64 {
		v, err := f.store.View(store.Global)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		return v.Seq()
	}
	used(time.Time{})
	first := f.now
	before := commits()
	for range 50 {
		f.admitted(secret)
		f.advance(time.Minute)
	}
	if n := commits(); n != before {
		t.Errorf("using a key wrote %d times", n-before)
	}
	used(first) // known before it is saved
	for range 3 {
		if err := f.SaveUses(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := commits() - before; n != 1 {
		t.Errorf("an hour's uses wrote %d times, want once", n)
	}
	f.close()

	now := f.now
	f = open(t, fs, nil)
	f.stands, f.now = true, now
	defer f.close()
	used(first)
	f.admitted(secret) // within the hour still
	if err := f.SaveUses(ctx); err != nil {
		t.Fatal(err)
	}
	used(first)
	f.advance(11 * time.Minute)
	f.admitted(secret)
	used(f.now)
	f.advance(-48 * time.Hour) // a clock that is set back tells nothing
	f.admitted(secret)
	used(f.now.Add(48 * time.Hour))
	f.advance(48 * time.Hour)
	if got, err := f.DeactivateKey(ctx, key.ID); err != nil || !got.LastUsed.Equal(f.now) {
		t.Errorf("DeactivateKey = %+v, %v", got, err)
	}
	f.advance(2 * time.Hour)
	f.admitted(secret) // refused: not a use
	used(f.now.Add(-2 * time.Hour))
}
