package accounts_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

// counted counts what is read of a store: on a database each is a way there and back.
type counted struct {
	store.Store
	reads atomic.Int64
}

func (c *counted) Reader(g store.Group) store.Reader { return countedReader{c, c.Store.Reader(g)} }

type countedReader struct {
	of *counted
	store.Reader
}

func (r countedReader) Get(key []byte) ([]byte, error) {
	r.of.reads.Add(1)
	return r.Reader.Get(key)
}

func (r countedReader) Scan(lower, upper []byte, fn func(key, value []byte) error) error {
	r.of.reads.Add(1)
	return r.Reader.Scan(lower, upper, fn)
}

// TestWarmReadsAccountsNotKeys: a start on a database does not wait for each key.
func TestWarmReadsAccountsNotKeys(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	const organizations, each = 5, 6
	var secrets []string
	for range organizations {
		o := f.organization("Uno")
		for range each {
			secret, _ := f.key(o.ID, accounts.Live)
			secrets = append(secrets, secret)
		}
	}
	ended, key := f.key(f.organization("Dos").ID, accounts.Test)
	if _, err := f.DeactivateKey(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	if err := f.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	db := &counted{Store: f.store}
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := accounts.New(l, pepper, nil, func() time.Time { return f.now })
	db.reads.Store(0)
	if err := s.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	// Two scans of the claims, one of them of registration keys.
	if n := db.reads.Load(); n > organizations+3 {
		t.Errorf("%d reads for %d keys of %d accounts", n, len(secrets)+1, organizations+1)
	}
	db.reads.Store(0)
	for _, secret := range secrets {
		if _, remembered, err := s.Recognize([]byte(secret)); !remembered || err != nil {
			t.Errorf("Recognize = %v, %v", remembered, err)
		}
	}
	if _, remembered, _ := s.Recognize([]byte(ended)); remembered || db.reads.Load() > 0 {
		t.Errorf("a key that ended is remembered: %v; %d reads", remembered, db.reads.Load())
	}
}

// TestANewTurnTrustsNothing: what another node ended is not let in by the node that
// takes over, however short ago it read the key; a valid key stays no stranger.
func TestANewTurnTrustsNothing(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	f.stands = true
	o := f.organization("Uno")
	ended, key := f.key(o.ID, accounts.Live)
	valid, _ := f.key(o.ID, accounts.Live)
	other := accounts.New(f.ledger, pepper, nil, f.clock)
	if err := other.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeactivateKey(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	other.Doubt()
	if _, remembered, err := other.Recognize([]byte(ended)); !remembered || !errors.Is(err, accounts.ErrUnauthorized) {
		t.Errorf("a key that ended: %v, %v", remembered, err)
	}
	if _, err := other.Authenticate([]byte(ended)); !errors.Is(err, accounts.ErrUnauthorized) {
		t.Errorf("a key that ended: %v", err)
	}
	for range 2 { // from the store, then from memory
		if _, remembered, err := other.Recognize([]byte(valid)); !remembered || err != nil {
			t.Errorf("a valid key: %v, %v", remembered, err)
		}
	}
}
