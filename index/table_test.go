package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/checks"
)

// TestTable holds a table to what a Go map says, whatever was added and however
// many sets there are.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 1000, 3000}).Draw(t, "n")
		sources := rapid.SampledFrom([]int{1, 3, 64, MaxSources}).Draw(t, "fuentes")
		space := rapid.SampledFrom([]uint64{uint64(n) + 1, MaxKey + 1}).Draw(t, "claves")
		rng := rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "semilla")))
		var b TableBuilder
		want := map[uint64]Set{}
		for range n {
			key, source := rng.Uint64N(space), uint(rng.IntN(sources))
			b.Add(key, source)
			b.Add(key, source)
			set := want[key]
			set.Add(source)
			want[key] = set
		}
		b.Add(MaxKey, MaxSources-1)
		last := want[MaxKey]
		last.Add(MaxSources - 1)
		want[MaxKey] = last
		checkTable(t, &b, want)
	})
}

// checkTable builds a table and compares it with a map.
func checkTable(t interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, b *TableBuilder, want map[uint64]Set) *Table {
	t.Helper()
	table, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if table.Len() != len(want) {
		t.Errorf("Len = %d, want %d", table.Len(), len(want))
	}
	for key, set := range want {
		for _, asked := range []uint64{key, key + 1, key ^ 1<<40} {
			got := table.Lookup(asked)
			set, listed := want[asked]
			if listed != (got != nil) || listed && *got != set {
				t.Fatalf("Lookup(%d) = %x, want %x", asked, got, set)
			}
		}
		for _, source := range []uint{0, 1, 63, 64, MaxSources - 1} {
			if table.Lookup(key).Has(source) != set.Has(source) {
				t.Fatalf("key %d, source %d: %v", key, source, !set.Has(source))
			}
		}
	}
	if got := table.Lookup(1<<64 - 1); got != nil {
		t.Errorf("a key that cannot be added was found: %x", got)
	}
	if err := table.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return table
}

func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (s Set, want []uint) {
			want = rapid.SliceOfDistinct(rapid.UintMax(MaxSources-1), func(v uint) uint { return v }).Draw(t, name)
			for _, source := range want {
				s.Add(source)
			}
			slices.Sort(want)
			return s, want
		}
		a, inA := draw("a")
		b, inB := draw("b")
		if got := slices.Collect(a.All()); !slices.Equal(got, inA) {
			t.Fatalf("All = %v, want %v", got, inA)
		}
		common := slices.ContainsFunc(inA, func(s uint) bool { return slices.Contains(inB, s) })
		if a.Meets(&b) != common {
			t.Fatalf("%v meets %v: %v", inA, inB, !common)
		}
		both := a
		both.AddAll(&b)
		for source := range uint(MaxSources) {
			if both.Has(source) != (slices.Contains(inA, source) || slices.Contains(inB, source)) {
				t.Fatalf("%v and %v: %d is %v", inA, inB, source, both.Has(source))
			}
		}
	})
	var none *Set
	if none.Has(3) || none.Meets(&Set{1}) || (&Set{1}).Meets(none) || len(slices.Collect(none.All())) != 0 {
		t.Error("nil is no empty set")
	}
}

func TestTableBuilderRefusesKeysOutOfRange(t *testing.T) {
	f := func(key uint64, source uint) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("Add(%d, %d) was taken", key, source)
			}
		}()
		var b TableBuilder
		b.Add(key, source)
	}
	f(MaxKey+1, 0)
	f(0, MaxSources)
}

// Repeated pairs do not pile up: the builder stays within a small multiple of
// the distinct ones.
func TestTableBuilderMemory(t *testing.T) {
	var b TableBuilder
	const distinct = 100_000
	for i := range 3_000_000 {
		b.Add(uint64(i%distinct), 1)
	}
	if cap(b.pairs) > 4*distinct {
		t.Errorf("%d pairs held for %d distinct ones", cap(b.pairs), distinct)
	}
}

// TestTableOfMoreSetsThanASlotCanNumber: every key has a set of its own, which
// no official data come near to.
func TestTableOfMoreSetsThanASlotCanNumber(t *testing.T) {
	f := func(sets int) *Table {
		t.Helper()
		var b TableBuilder
		want := map[uint64]Set{}
		for i := range sets {
			var set Set
			for bit := range uint(18) {
				if (i+1)&(1<<bit) != 0 {
					set.Add(11 * bit)
					b.Add(uint64(3*i), 11*bit)
				}
			}
			want[uint64(3*i)] = set
			// A key with a frequent set among those with rare ones.
			b.Add(uint64(3*i+1), 0)
			want[uint64(3*i+1)] = Set{1}
		}
		return checkTable(t, &b, want)
	}
	if table := f(rare - 1); len(table.rareKeys) != 0 {
		t.Errorf("%d keys beside the slots that have room", len(table.rareKeys))
	}
	if table := f(rare); len(table.rareKeys) != 1 {
		t.Errorf("%d keys beside the slots, want 1", len(table.rareKeys))
	}
	f(200_000)
}

func TestTableLookupDoesNotAllocate(t *testing.T) {
	table, rfcs := benchTable(t, 1000)
	defer table.Close()
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		for _, r := range rfcs {
			if key, ok := checks.PackRFC(r); ok && table.Lookup(key).Has(uint(len(r)%7)) {
				found++
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}

// benchTable fills a table with half of the returned RFCs, which are in random
// order.
func benchTable(t testing.TB, n int) (*Table, []string) {
	t.Helper()
	rfcs := benchRFCs(2 * n)
	var b TableBuilder
	for _, r := range rfcs[:n] {
		key, ok := checks.PackRFC(r)
		if !ok {
			t.Fatalf("PackRFC refuses %s", r)
		}
		b.Add(key, uint(len(r)%7))
	}
	table, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(rfcs), func(i, j int) { rfcs[i], rfcs[j] = rfcs[j], rfcs[i] })
	return table, rfcs
}

func benchRFCs(n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := make(map[string]bool, n)
	out := make([]string, 0, n)
	for len(out) < n {
		letters := []byte{'A', 'A', 'A', 'A'}[:3+rng.IntN(2)]
		for i := range letters {
			letters[i] = 'A' + byte(rng.IntN(26))
		}
		tail := []byte("000")
		for i := range tail {
			tail[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rng.IntN(36)]
		}
		tail[2] = "0123456789A"[rng.IntN(11)]
		r := fmt.Sprintf("%s%02d%02d%02d%s", letters, rng.IntN(100), 1+rng.IntN(12), 1+rng.IntN(28), tail)
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return out
}

const benchKeys = 2_000_000

var sink uint64

// Two million keys, half of the questions hit, random order.
func BenchmarkLookup(b *testing.B) {
	table, rfcs := benchTable(b, benchKeys)
	defer table.Close()
	keys := make([]uint64, len(rfcs))
	byRFC := make(map[string]uint64, benchKeys)
	byKey := make(map[uint64]uint64, benchKeys)
	for i, r := range rfcs {
		keys[i], _ = checks.PackRFC(r)
		if set := table.Lookup(keys[i]); set != nil {
			byRFC[r], byKey[keys[i]] = set[0], set[0]
		}
	}
	if len(byRFC) != benchKeys {
		b.Fatalf("%d keys", len(byRFC))
	}
	// A question has just been read from a request: its text is at hand, and it
	// is never the very string that the map holds.
	text := strings.Join(rfcs, "")
	for i, at := 0, 0; i < len(rfcs); i++ {
		n := len(rfcs[i])
		rfcs[i] = text[at : at+n]
		at += n
	}
	run := func(name string, ask func(i int) uint64) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == len(rfcs) {
					i = 0
				}
				sink += ask(i)
			}
		})
	}
	run("rfc/table", func(i int) uint64 {
		key, _ := checks.PackRFC(rfcs[i])
		return firstWord(table.Lookup(key))
	})
	run("rfc/map", func(i int) uint64 { return byRFC[rfcs[i]] })
	run("rfc/pack", func(i int) uint64 { key, _ := checks.PackRFC(rfcs[i]); return key })
	run("key/table", func(i int) uint64 { return firstWord(table.Lookup(keys[i])) })
	run("key/map", func(i int) uint64 { return byKey[keys[i]] })
}

func firstWord(s *Set) uint64 {
	if s == nil {
		return 0
	}
	return s[0]
}
