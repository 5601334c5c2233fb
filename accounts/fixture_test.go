package accounts_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

var (
	ctx    = context.Background()
	pepper = bytes.Repeat([]byte("pimienta"), 4)
)

// fixture is a service on a ledger in memory with a clock that steps.
type fixture struct {
	*accounts.Service
	t      rapid.TB
	ledger *ledger.Ledger
	store  store.Store
	mu     sync.Mutex
	now    time.Time // under mu
	stands bool      // the clock
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stands {
		f.now = f.now.Add(time.Second)
	}
	return f.now
}

func (f *fixture) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// open starts a service over fs; the second start on the same fs sees the data
// of the first.
func open(t *testing.T, fs vfs.FS, random interface{ Read([]byte) (int, error) }) *fixture {
	t.Helper()
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ledger: l, store: s, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	f.Service = accounts.New(l, pepper, random, f.clock)
	return f
}

func (f *fixture) close() {
	f.t.Helper()
	if _, err := ledger.Check(context.Background(), f.store); err != nil {
		f.t.Error(err)
	}
	if err := errors.Join(f.ledger.Close(), f.store.Close()); err != nil {
		f.t.Error(err)
	}
}

func (f *fixture) organization(name string) accounts.Organization {
	f.t.Helper()
	_, orgs, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	return orgs[0]
}

func (f *fixture) key(org ledger.OrgID, mode accounts.Mode) (string, accounts.Key) {
	f.t.Helper()
	secret, key, err := f.CreateKey(ctx, accounts.KeyRequest{Org: org, Mode: mode})
	if err != nil {
		f.t.Fatal(err)
	}
	return secret, key
}

func (f *fixture) globalKeys() (n int) {
	f.t.Helper()
	const space, link = 9, 0x01 // each write of the ledger also leaves a link of its chain
	err := f.store.Reader(store.Global).Scan(nil, nil, func(key, _ []byte) error {
		if key[space] != link {
			n++
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}
