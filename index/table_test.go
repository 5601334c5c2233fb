package index

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/checks"
)

// TestTable holds a table to what Go maps say, whatever was added and however many
// sets there are.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 1000, 3000}).Draw(t, "n")
		sources := rapid.SampledFrom([]int{1, 3, 64, MaxSources}).Draw(t, "fuentes")
		space := rapid.SampledFrom([]uint64{uint64(n) + 1, MaxKey + 1}).Draw(t, "claves")
		rng := rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "semilla")))
		want := tableContent{}
		for range n {
			rows := Rows{Past: rng.IntN(2) == 0}
			if rng.IntN(3) > 0 {
				rows.N, rows.First = 1+rng.Uint32N(1<<rng.IntN(31)), rng.Uint32()>>rng.IntN(32)
			}
			want.add(rng.Uint64N(space), uint(rng.IntN(sources)), rows)
		}
		want.add(MaxKey, MaxSources-1, Rows{First: math.MaxUint32, N: maxRows, Past: true})
		checkTable(t, want)
	})
}

// tableContent is what a table should tell, by key and source.
type tableContent map[uint64]map[uint]Rows

func (c tableContent) add(key uint64, source uint, rows Rows) {
	if c[key] == nil {
		c[key] = map[uint]Rows{}
	}
	c[key][source] = rows
}

// checkTable builds a table and compares it with its content.
func checkTable(t interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, want tableContent) *Table {
	t.Helper()
	table, err := NewTable(func(yield func(Pair) bool) {
		for key, sources := range want {
			for source, rows := range sources {
				if !yield(Pair{key, source, rows}) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if table.Len() != len(want) {
		t.Errorf("Len = %d, want %d", table.Len(), len(want))
	}
	odd := Set{}
	for source := uint(1); source < MaxSources; source += 2 {
		odd.Add(source)
	}
	for key := range want {
		near := []uint64{key, key + 1, key ^ 1<<40}
		table.Expect(near)
		for _, asked := range near {
			m, sources := table.Lookup(asked), want[asked]
			if m.None() != (len(sources) == 0) {
				t.Fatalf("Lookup(%d).None() = %v; %d sources", asked, m.None(), len(sources))
			}
			last, n, inOdd := -1, 0, 0
			for source, rows := range m.All() {
				if listed, ok := sources[source]; !ok || rows != listed || int(source) <= last {
					t.Fatalf("Lookup(%d): source %d after %d has %v, want %v", asked, source, last, rows, listed)
				}
				if last, n = int(source), n+1; source%2 != 0 {
					inOdd += int(rows.N)
				}
			}
			if n != len(sources) || m.In(&odd) != inOdd {
				t.Fatalf("Lookup(%d): %d sources, want %d; %d rows in odd ones, want %d", asked, n, len(sources), m.In(&odd), inOdd)
			}
		}
		m := table.Lookup(key)
		for _, source := range []uint{0, 1, 63, 64, MaxSources - 1} {
			if rows, listed := want[key][source]; m.Has(source) != listed || m.Rows(source) != rows {
				t.Fatalf("key %d, source %d: %v, want %v", key, source, m.Rows(source), rows)
			}
		}
	}
	table.Expect([]uint64{1<<64 - 1, MaxKey + 1})
	if !table.Lookup(1<<64-1).None() || !table.Lookup(MaxKey+1).None() {
		t.Errorf("a key that cannot be added was found")
	}
	if err := table.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return table
}

// TestTableOfKeysForOneSlot: keys that all want the last slot stand behind it.
func TestTableOfKeysForOneSlot(t *testing.T) {
	want := tableContent{}
	for i := uint64(0); len(want) < 100; i++ {
		if key := i * 0x9e3779b97f4a7c15 & MaxKey; scramble(key)>>(keyBits-9) == 1<<9-1 {
			want.add(key, 3, Rows{First: uint32(i), N: 1})
		}
	}
	checkTable(t, want)
}

// TestScrambleIsOneToOne: it can be undone, step by step.
func TestScrambleIsOneToOne(t *testing.T) {
	inverse := func(odd uint64) uint64 { // modulo 2^64, and so modulo MaxKey+1
		x := odd
		for range 6 {
			x *= 2 - odd*x
		}
		return x
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Uint64Range(0, MaxKey).Draw(t, "clave")
		x := scramble(key)
		if x > MaxKey {
			t.Fatalf("scramble(%d) = %d", key, x)
		}
		x = x * inverse(0x94d049bb133111eb) & MaxKey
		x ^= x>>24 ^ x>>48
		x = x * inverse(0xbf58476d1ce4e5b9) & MaxKey
		if x ^= x >> 25; x != key {
			t.Fatalf("%d came back as %d", key, x)
		}
	})
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

func TestNewTableRefuses(t *testing.T) {
	f := func(key uint64, source uint, rows Rows) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("(%d, %d, %v) was taken", key, source, rows)
			}
		}()
		_, _ = NewTable(slices.Values([]Pair{{key, source, rows}}))
	}
	f(MaxKey+1, 0, Rows{})
	f(0, MaxSources, Rows{})
	f(0, 0, Rows{N: maxRows + 1})

	if _, err := NewTable(slices.Values([]Pair{{7, 1, Rows{N: 1}}, {7, 2, Rows{N: 1}}, {7, 1, Rows{N: 2}}})); err == nil {
		t.Error("a pair is there twice")
	}
}

// TestTableOfMoreSetsThanASlotCanNumber: every key has a set of its own, which
// no official data come near to.
func TestTableOfMoreSetsThanASlotCanNumber(t *testing.T) {
	f := func(sets int) *Table {
		t.Helper()
		want := tableContent{}
		for i := range sets {
			for bit := range uint(18) {
				if (i+1)&(1<<bit) != 0 {
					want.add(uint64(3*i), 11*bit, Rows{First: uint32(i), N: 1})
				}
			}
			// A key with a frequent set among those with rare ones.
			want.add(uint64(3*i+1), 0, Rows{Past: true})
		}
		return checkTable(t, want)
	}
	if table := f(rare - 1); len(table.rareKeys) != 0 {
		t.Errorf("%d keys beside the slots that have room", len(table.rareKeys))
	}
	if table := f(rare); len(table.rareKeys) != 1 {
		t.Errorf("%d keys beside the slots, want 1", len(table.rareKeys))
	}
	f(60_000)
}

// TestNewTableLeavesTheHeapAlone: what grows with the keys is not on the heap, where it
// would begin a collection while another table answers.
func TestNewTableLeavesTheHeapAlone(t *testing.T) {
	const n, most = 200_000, 256 << 10 // bytes; of pairs alone there are 3.2 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	table, err := NewTable(func(yield func(Pair) bool) {
		for i := range uint64(n) {
			if !yield(Pair{Key: i * i, Source: uint(i % 9), Rows: Rows{N: 1, First: uint32(i)}}) {
				return
			}
		}
	})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if took := after.TotalAlloc - before.TotalAlloc; took > most || table.Len() != n {
		t.Errorf("%d keys, %d bytes of the heap", table.Len(), took)
	}
}

func TestTableLookupDoesNotAllocate(t *testing.T) {
	table, rfcs := benchTable(t, 1000)
	defer table.Close()
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		for _, r := range rfcs {
			key, _ := checks.PackRFC(r)
			for _, rows := range table.Lookup(key).All() {
				found += int(rows.N)
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
	table, err := NewTable(func(yield func(Pair) bool) {
		for i, r := range rfcs[:n] {
			key, ok := checks.PackRFC(r)
			if !ok {
				t.Fatalf("PackRFC refuses %s", r)
			}
			if !yield(Pair{key, uint(len(r) % 7), Rows{First: uint32(i / 7), N: 1}}) {
				return
			}
		}
	})
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
		if m := table.Lookup(keys[i]); !m.None() {
			byRFC[r], byKey[keys[i]] = firstWord(m), firstWord(m)
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
	var ahead [32]uint64
	run("rfc/expected", func(i int) uint64 {
		if i%len(ahead) == 0 {
			n := min(len(ahead), len(rfcs)-i)
			for k, rfc := range rfcs[i : i+n] {
				ahead[k], _ = checks.PackRFC(rfc)
			}
			table.Expect(ahead[:n])
		}
		return firstWord(table.Lookup(ahead[i%len(ahead)]))
	})
	run("rfc/map", func(i int) uint64 { return byRFC[rfcs[i]] })
	run("rfc/pack", func(i int) uint64 { key, _ := checks.PackRFC(rfcs[i]); return key })
	run("key/table", func(i int) uint64 { return firstWord(table.Lookup(keys[i])) })
	run("key/rows", func(i int) (n uint64) {
		for _, rows := range table.Lookup(keys[i]).All() {
			n += uint64(rows.First)
		}
		return n
	})
	run("key/map", func(i int) uint64 { return byKey[keys[i]] })
}

func firstWord(m Mentions) uint64 {
	if m.None() {
		return 0
	}
	return m.sources[0]
}
