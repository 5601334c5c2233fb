package ledger

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/store"
)

// TestFreeUsesOutlastALostTurn: what was counted by who then finds that another
// process has the accounts is written when it has them again, once.
func TestFreeUsesOutlastALostTurn(t *testing.T) {
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := Open(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := Open(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	l.usage.finish() // the test says when
	l.CountUse(1, 1, false, "UTIL", 20261120)
	l.usage.flush(l)
	if err := l.Serving(); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("Serving = %v; want ErrFenced", err)
	}
	if err := l.Lead(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.usage.flush(l)
		var answers int64
		err = l.Usage(1, 1, false, 0, maxDay, func(u Usage) error {
			answers += u.Answers
			return nil
		})
		if err != nil || answers != 1 {
			t.Errorf("%d counted, %v", answers, err)
		}
	}
}
