package generate

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRecordsComeBack: what is written is read again by a reader that is not ours, and
// quotes stand only where they have to.
func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("AÑ ,\"\n"))), 2, 12).Draw(t, "cells")
		var r record
		for range 2 { // begin forgets what was before
			r.begin()
			for _, c := range cells {
				r.add(c)
			}
		}
		written := string(r.end())
		read, err := csv.NewReader(strings.NewReader(written)).ReadAll()
		if err != nil || len(read) != 1 || !slices.Equal(read[0], cells) {
			t.Fatalf("%q: %q, %v", written, read, err)
		}
		if !strings.ContainsAny(strings.Join(cells, ""), ",\"\n") && strings.Contains(written, `"`) {
			t.Fatalf("%q needs no quotes", written)
		}
	})
}

func TestDays(t *testing.T) {
	d := dayOf(2020, time.July, 2)
	if got := string(d.appendSlashed(nil)) + " " + string(d.appendUnpadded(nil)) + " " + string(d.appendISO(nil)); got != "02/07/2020 2/7/2020 2020-07-02" {
		t.Error(got)
	}
	if d.serial() != 44014 { // of a real row
		t.Errorf("serial %d", d.serial())
	}
}

func TestGrouped(t *testing.T) {
	f := func(n int, want string) {
		t.Helper()
		if got := string(appendGrouped(nil, n)); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	f(0, "0")
	f(999, "999")
	f(1000, "1,000")
	f(1390273, "1,390,273")
}

// TestOrderAndTurns: every taxpayer of a list comes once, and kinds of rows exactly so
// often.
func TestOrderAndTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		fresh, again, others := rapid.IntRange(1, 300).Draw(t, "fresh"), rapid.IntRange(0, 50).Draw(t, "again"), rapid.IntRange(0, 50).Draw(t, "others")
		seen := make([]bool, fresh)
		for i, o := 0, newOrder(seed, fresh); i < fresh; i++ {
			seen[o.at(i)] = true
		}
		if slices.Contains(seen, false) {
			t.Fatal("not a permutation")
		}
		var kinds [3]int
		turns := newTurns(seed, "x", fresh, again, others)
		for range fresh + again + others {
			kind, at := turns.next()
			if kind == turnNew && at != kinds[turnNew] || kind == turnAgain && at >= kinds[turnNew] {
				t.Fatalf("%v %d, %v", kind, at, kinds)
			}
			kinds[kind]++
		}
		if kinds != [3]int{fresh, again, others} {
			t.Fatal(kinds)
		}
	})
}
