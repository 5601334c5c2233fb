package ledger

import (
	"testing"
	"time"
)

// TestForgetLooksAgain: a mark that was written anew since it was listed as old
// stays.
func TestForgetLooksAgain(t *testing.T) {
	l, _ := openTest(t)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	o := Once{Key: [32]byte{1}}
	key := appendOnceKey(nil, 1, false, o.Key)
	charge := func(at time.Time) {
		r := testRecord(t, l, "x")
		r.Org = 1
		do(t, l, 1, Charge{Now: at, Record: r, Sum: sumOf(r), Once: &o})
	}
	charge(now)
	later := now.Add(OnceLife)
	charge(later)
	if n := do(t, l, 1, forget{[][]byte{key}, later}); n != 0 {
		t.Errorf("%v young marks were removed", n)
	}
	if n := do(t, l, 1, forget{[][]byte{key, key}, later.Add(OnceLife)}); n != 1 {
		t.Errorf("%v old marks were removed, want 1", n)
	}
}
