package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
	"cotejo/store/storetest"
)

// TestTurnBeginsAgain: what fails for a while when a node was given the accounts is
// tried again, and nothing is answered before; what is wrong for good ends the node.
func TestTurnBeginsAgain(t *testing.T) {
	db, err := store.OpenPostgres(context.Background(), storetest.PostgresURL(t), store.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	turn := newTurn(db, store.Node{Instance: "1"}, time.Minute)
	if turn.ledger, err = ledger.Open(db, ledger.Options{Turn: turn.held}); err != nil {
		t.Fatal(err)
	}
	defer turn.ledger.Close()
	var results []error
	turn.doubt = func() {
		if err := turn.ledger.Serving(); !errors.Is(err, ledger.ErrStandby) {
			t.Errorf("keys are doubted while the node answers: %v", err)
		}
	}
	turn.begin = func() error {
		err := results[0]
		results = results[1:]
		return err
	}
	for _, passing := range []error{ledger.ErrUnknown, ledger.ErrBusy, store.ErrUnavailable} {
		results = []error{passing, nil}
		turn.step()
		if err := turn.ledger.Serving(); !errors.Is(err, ledger.ErrStandby) || len(turn.failed) > 0 {
			t.Fatalf("%v: Serving = %v, %d reasons to end", passing, err, len(turn.failed))
		}
		turn.step()
		if err := turn.ledger.Serving(); err != nil || len(results) > 0 {
			t.Fatalf("after %v: Serving = %v; %d left", passing, err, len(results))
		}
		if err := turn.ledger.Rest(); err != nil {
			t.Fatal(err)
		}
	}
	results = []error{accounts.ErrPepper}
	turn.step()
	if err := turn.ledger.Serving(); !errors.Is(err, ledger.ErrStandby) || len(turn.failed) != 1 {
		t.Errorf("another secret: Serving = %v, %d reasons to end", err, len(turn.failed))
	}
}
