package index

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cotejo/checks"
)

func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 3, 4, 5, 1000, 100_000} {
		var b TableBuilder
		want := map[uint64]uint64{}
		for range n {
			key, source := rng.Uint64N(max(1, uint64(n))*2), uint(rng.IntN(64))
			b.Add(key, source)
			b.Add(key, source)
			want[key] |= 1 << source
		}
		b.Add(MaxKey, 63)
		want[MaxKey] = 1 << 63

		table, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if table.Len() != len(want) {
			t.Errorf("Len = %d, want %d", table.Len(), len(want))
		}
		for key := range 2*uint64(n) + 10 {
			if got := table.Lookup(key); got != want[key] {
				t.Fatalf("n %d: Lookup(%d) = %x, want %x", n, key, got, want[key])
			}
		}
		if got := table.Lookup(MaxKey); got != 1<<63 {
			t.Errorf("Lookup(MaxKey) = %x", got)
		}
		if got := table.Lookup(1<<64 - 1); got != 0 {
			t.Errorf("a key that cannot be added was found: %x", got)
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
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
	f(0, 64)
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

func TestTableRefusesMoreSetsThanASlotCanName(t *testing.T) {
	var b TableBuilder
	add := func(sets int) {
		for i := range sets {
			for source := range uint(16) {
				if (i+1)&(1<<source) != 0 {
					b.Add(uint64(i), source)
				}
			}
		}
	}
	add(maxSets)
	table, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Lookup(maxSets - 1); got != maxSets {
		t.Errorf("Lookup = %x, want %x", got, maxSets)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
	add(maxSets + 1)
	if _, err := b.Build(); err == nil {
		t.Error("one set too many was taken")
	}
}

func TestTableLookupDoesNotAllocate(t *testing.T) {
	table, rfcs := benchTable(t, 1000)
	defer table.Close()
	sum := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		for _, r := range rfcs {
			if key, ok := checks.PackRFC(r); ok {
				sum += table.Lookup(key)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if sum == 0 {
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
		if bits := table.Lookup(keys[i]); bits != 0 {
			byRFC[r], byKey[keys[i]] = bits, bits
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
		return table.Lookup(key)
	})
	run("rfc/map", func(i int) uint64 { return byRFC[rfcs[i]] })
	run("rfc/pack", func(i int) uint64 { key, _ := checks.PackRFC(rfcs[i]); return key })
	run("key/table", func(i int) uint64 { return table.Lookup(keys[i]) })
	run("key/map", func(i int) uint64 { return byKey[keys[i]] })
}
