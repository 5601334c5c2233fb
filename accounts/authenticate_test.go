package accounts_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

func TestKeysAuthenticate(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	o := f.organization("Uno")
	live, liveKey := f.key(o.ID, accounts.Live)
	test, testKey := f.key(o.ID, accounts.Test)
	admin, adminKey := f.key(0, accounts.Admin)
	if !strings.HasPrefix(live, "svc_live_") || !strings.HasPrefix(test, "svc_test_") || !strings.HasPrefix(admin, "svc_admin_") ||
		len(live) != 66 || len(test) != 66 || len(admin) != 67 {
		t.Errorf("keys look like %q, %q and %q", live, test, admin)
	}
	who := func(secret string, account ledger.AccountID, org ledger.OrgID, key accounts.Key) {
		t.Helper()
		want := accounts.Principal{Account: account, Org: org, Mode: key.Mode, KeyID: key.ID}
		for range 2 { // from the store, then from memory
			if got, err := f.Authenticate([]byte(secret)); err != nil || got != want {
				t.Errorf("Authenticate = %+v, %v; want %+v", got, err, want)
			}
		}
	}
	who(live, o.Account, o.ID, liveKey)
	who(test, o.Account, o.ID+1, testKey) // the twin
	who(admin, ledger.Global, 0, adminKey)
	f.close()
	f = open(t, fs, nil)
	defer f.close()
	for _, org := range []ledger.OrgID{o.ID, o.ID.Twin()} {
		if keys, err := f.Keys(org); err != nil || !reflect.DeepEqual(keys, []accounts.Key{liveKey, testKey}) {
			t.Errorf("Keys = %+v, %v", keys, err)
		}
	}
	if keys, err := f.AdminKeys(); err != nil || !reflect.DeepEqual(keys, []accounts.Key{adminKey}) {
		t.Errorf("AdminKeys = %+v, %v", keys, err)
	}
	who(live, o.Account, o.ID, liveKey)
}

// TestRefusalsAreEqual changes a valid key in every way that a caller can.
func TestRefusalsAreEqual(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	secret, _ := f.key(o.ID, accounts.Live)
	other, _ := f.key(o.ID, accounts.Live)

	refused := func(what, key string) {
		t.Helper()
		p, err := f.Authenticate([]byte(key))
		if err != accounts.ErrUnauthorized || p != (accounts.Principal{}) {
			t.Errorf("%s: %+v, %v; want ErrUnauthorized alone", what, p, err)
		}
	}
	refused("empty", "")
	refused("short", secret[:65])
	refused("long", secret+"0")
	refused("typing error", secret[:20]+"~"+secret[21:])
	refused("another key's secret", accounts.WithCheck(secret[:17]+other[17:60]))
	refused("one bit of the secret", accounts.WithCheck(secret[:59]+flip(secret[59:60])))
	refused("unknown lookup id", accounts.WithCheck("svc_live_00000000"+secret[17:60]))
	refused("other mode", accounts.WithCheck("svc_test_"+secret[9:60]))
	refused("other prefix", accounts.WithCheck("svc_adm__"+secret[9:60]))
	refused("upper case lookup id", accounts.WithCheck(secret[:9]+strings.ToUpper("abcdefgh")+secret[17:60]))
	if _, err := f.Authenticate([]byte(secret)); err != nil {
		t.Errorf("the key itself: %v", err)
	}
}

func flip(s string) string {
	if s == "A" {
		return "E"
	}
	return "A"
}

func TestKeyIsNeverStored(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	secret, key := f.key(o.ID, accounts.Live)
	if _, err := f.Authenticate([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	m := hmac.New(sha256.New, pepper)
	m.Write([]byte(secret))
	sum := m.Sum(nil)
	hashes := 0
	for g := range store.Group(store.Groups + 1) {
		err := f.store.Reader(g).Scan(nil, nil, func(k, v []byte) error {
			row := append(append([]byte(nil), k...), v...)
			if bytes.Contains(row, []byte(secret[17:60])) || bytes.Contains(row, []byte(secret[:20])) {
				t.Errorf("group %d keeps the key under %x", g, k)
			}
			if bytes.Contains(row, sum) {
				hashes++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if hashes != 1 {
		t.Errorf("the keyed hash of %s is stored %d times, want once", key.ID, hashes)
	}
}

// TestKeysAreKnownFromMemory: what a service of ordinary size has is known without
// the store, after a start as after a creation.
func TestKeysAreKnownFromMemory(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	secret, key, err := f.CreateKey(ctx, accounts.KeyRequest{Mode: accounts.Admin})
	if err != nil {
		t.Fatal(err)
	}
	want := accounts.Principal{Mode: accounts.Admin, KeyID: key.ID}
	remembered := func(secret string, known bool, who accounts.Principal, refusal error) {
		t.Helper()
		got, is, err := f.Recognize([]byte(secret))
		if got != who || is != known || err != refusal {
			t.Errorf("Recognize = %+v, %v, %v; want %+v, %v, %v", got, is, err, who, known, refusal)
		}
	}
	remembered(secret, true, want, nil)
	f.close()

	f = open(t, fs, nil)
	defer f.close()
	remembered(secret, false, accounts.Principal{}, nil)
	if err := f.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	remembered(secret, true, want, nil)
	body := secret[:len(secret)-6]
	remembered(accounts.WithCheck(body[:len(body)-1]+flip(body[len(body)-1:])), true, accounts.Principal{}, accounts.ErrUnauthorized)
	remembered(accounts.WithCheck("svc_live_"+body[len("svc_admin_"):]), true, accounts.Principal{}, accounts.ErrUnauthorized)
	remembered(secret[1:], true, accounts.Principal{}, accounts.ErrUnauthorized)
	remembered(accounts.WithCheck("svc_live_00000000"+strings.Repeat("A", 43)), false, accounts.Principal{}, nil)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.Warm(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Warm = %v", err)
	}
}

func TestAuthenticateDoesNotAllocate(t *testing.T) {
	if testing.Short() {
		t.Skip("make race is short: under the race detector a sync.Pool forgets at random")
	}
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	secret, _ := f.key(f.organization("Uno").ID, accounts.Live)
	f.stands = true
	key := []byte(secret)
	if n := testing.AllocsPerRun(200, func() {
		if _, err := f.Authenticate(key); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Authenticate allocates %v times on a hit", n)
	}
}

func FuzzAuthenticate(f *testing.F) {
	fix := open(&testing.T{}, vfs.NewMem(), nil)
	defer fix.close()
	_, o, err := fix.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno"})
	if err != nil {
		f.Fatal(err)
	}
	secret, _, err := fix.CreateKey(ctx, accounts.KeyRequest{Org: o[0].ID, Mode: accounts.Live})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(secret)[:40])
	f.Add([]byte("svc_test_" + secret[9:]))
	f.Add(binary.BigEndian.AppendUint64(nil, 7))
	f.Add([]byte(accounts.WithCheck(fmt.Sprintf("svc_live_%08d%043d", 1, 1))))
	f.Fuzz(func(t *testing.T, key []byte) {
		_, err := fix.Authenticate(key)
		if valid := string(key) == secret; valid != (err == nil) {
			t.Errorf("Authenticate(%q) = %v", key, err)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	f := open(&testing.T{}, vfs.NewMem(), nil)
	defer f.close()
	f.stands = true
	_, orgs, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno"})
	if err != nil {
		b.Fatal(err)
	}
	secret, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: orgs[0].ID, Mode: accounts.Live})
	if err != nil {
		b.Fatal(err)
	}
	key := []byte(secret)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Authenticate(key); err != nil {
			b.Fatal(err)
		}
	}
}
