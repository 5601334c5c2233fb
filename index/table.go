package index

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	sourceBits = 8
	setBits    = 15
	keyBits    = 64 - setBits
	// rare stands in a slot in the place of a set whose number has no room there.
	rare = 1<<setBits - 1
	// MaxKey bounds the keys of a Table: checks.PackRFC needs 49 bits.
	MaxKey = 1<<keyBits - 1
	// lineSlots are the slots of a cache line.
	lineSlots = 8
)

// Table maps packed RFCs (checks.PackRFC) to the sources that mention them and to
// where their rows are. Its slots live in memory of their own, outside the
// collected heap and in huge pages where the kernel has them: a lookup is one
// probe, and what a probe costs is the one line of memory and its page that it
// touches. It does not allocate. Safe for concurrent use until Close.
//
// A slot is 8 bytes, so that eight neighbours share a cache line and the whole
// table few pages: the key above, scrambled, and below it the number of its set of
// sources, of which there are few however many keys there are. Zeroed pages are
// empty slots: sets count from 1. Should there be more sets than a slot can
// number, the keys of the others are found in a sorted list beside the table: a
// key that is not in the table still costs one probe.
//
// Scrambled keys ascend along the slots. Where their rows are is written beside
// them in the same order, and only who asks for the rows reads it.
type Table struct {
	slots []uint64 // scrambled key<<setBits | set; at most half full, the last one empty
	shift uint     // scrambled key>>shift is the slot where the key stands, or before it
	sets  []Set    // by number
	n     int
	mem   []byte // of slots

	rareKeys []uint64 // scrambled, ascending: those whose slot says rare
	rareSets []uint32 // the numbers of their sets

	rows  []byte   // by key, in the order of slots: appendRows
	lines []uint32 // by line of slots: where in rows its first key begins
}

const slotSize = 8

// TableBuilder collects what sources mention. Its zero value is ready. It keeps 16
// bytes for each pair of key and source, twice that for a moment. Not safe for
// concurrent use.
type TableBuilder struct{ pairs []pair }

type pair struct {
	key  uint64 // scrambled key<<sourceBits | source
	rows uint64 // First<<32 | N<<1 | Past
}

func (p pair) source() uint { return uint(p.key & (MaxSources - 1)) }

// Add says that source (below MaxSources) mentions key (at most MaxKey), and what
// rows it has of it. A pair is added once.
func (b *TableBuilder) Add(key uint64, source uint, rows Rows) {
	if key > MaxKey || source >= MaxSources || rows.N > maxRows {
		panic(fmt.Sprintf("index: key %d of source %d with %d rows is out of range", key, source, rows.N))
	}
	p := pair{scramble(key)<<sourceBits | uint64(source), uint64(rows.First)<<32 | uint64(rows.N)<<1}
	if rows.Past {
		p.rows |= 1
	}
	b.pairs = append(b.pairs, p)
}

// buildPause is after how many steps Build lets other goroutines go first: a table is
// built while another one answers.
const buildPause = 1 << 13

// Build makes the table. It disappears with the process and is never evidence.
// The builder is empty afterwards. It lets other goroutines go first.
func (b *TableBuilder) Build() (*Table, error) {
	pairs := b.pairs
	*b = TableBuilder{}
	compared := 0
	slices.SortFunc(pairs, func(x, y pair) int {
		if compared++; compared%buildPause == 0 {
			runtime.Gosched()
		}
		return cmp.Compare(x.key, y.key)
	})

	n := 0
	for i := range pairs {
		if i > 0 && pairs[i].key == pairs[i-1].key {
			return nil, fmt.Errorf("index: source %d mentions a key twice", pairs[i].source())
		}
		if i == 0 || pairs[i].key>>sourceBits != pairs[i-1].key>>sourceBits {
			n++
		}
	}
	logSize := uint(bits.Len(uint(2*max(n, 4) - 1)))
	t := &Table{shift: keyBits - logSize, sets: make([]Set, 1), n: n}
	// Keys that find their slot taken stand behind it, so that some may stand behind
	// the last slot that a key can name.
	end := uint64(0)
	for i := range pairs {
		if i == 0 || pairs[i].key>>sourceBits != pairs[i-1].key>>sourceBits {
			end = max(end, pairs[i].key>>sourceBits>>t.shift) + 1
		}
	}
	size := (max(end, 1<<logSize)/lineSlots + 1) * lineSlots
	mem, err := mapZeroed(int(size) * slotSize)
	if err != nil {
		return nil, fmt.Errorf("index: table of %d keys: %w", n, err)
	}
	t.mem, t.slots = mem, unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), size)
	if err := t.fill(pairs); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := unix.Mprotect(mem, unix.PROT_READ); err != nil {
		return nil, errors.Join(fmt.Errorf("index: mprotect: %w", err), t.Close())
	}
	return t, nil
}

// fill puts sorted pairs into the table.
func (t *Table) fill(pairs []pair) error {
	numbers := map[Set]uint32{}
	rows := make([]byte, 0, 6*len(pairs))
	t.lines = make([]uint32, 0, len(t.slots)/lineSlots)
	at := uint64(0)
	for i, filled := 0, 1; i < len(pairs); at, filled = at+1, filled+1 {
		if filled%buildPause == 0 {
			runtime.Gosched()
		}
		key, first, sources := pairs[i].key>>sourceBits, i, Set{}
		for ; i < len(pairs) && pairs[i].key>>sourceBits == key; i++ {
			sources.Add(pairs[i].source())
		}
		number, known := numbers[sources]
		if !known {
			number = uint32(len(t.sets))
			numbers[sources], t.sets = number, append(t.sets, sources)
		}
		if number >= rare {
			t.rareKeys, t.rareSets = append(t.rareKeys, key), append(t.rareSets, number)
			number = rare
		}
		at = max(at, key>>t.shift)
		t.slots[at] = key<<setBits | uint64(number)
		for uint64(len(t.lines)) <= at/lineSlots {
			t.lines = append(t.lines, uint32(len(rows)))
		}
		if rows = appendRows(rows, pairs[first:i]); len(rows) > math.MaxUint32 {
			return fmt.Errorf("index: where the rows of %d keys are takes more than %d bytes", t.n, math.MaxUint32)
		}
	}
	t.rows = slices.Clone(rows)
	return nil
}

// Lookup tells what mentions key. It lives as long as the table.
func (t *Table) Lookup(key uint64) Mentions {
	if key > MaxKey {
		return Mentions{}
	}
	key = scramble(key)
	slots := t.slots
	for at := key >> t.shift; ; at++ {
		switch s := slots[at]; {
		case s == 0 || s>>setBits > key:
			return Mentions{}
		case s>>setBits == key:
			if s &= rare; s == rare {
				return Mentions{t, t.rareSet(key), at}
			}
			return Mentions{t, &t.sets[s], at}
		}
	}
}

// Expect brings what Lookup reads first for each key near the processor, all of it at
// once where one Lookup after the other would wait for each in turn: for keys that
// are about to be looked up, few enough (some dozens) to stay there until then.
func (t *Table) Expect(keys []uint64) {
	slots, shift, all := t.slots, t.shift&63, uint64(0)
	var homes [32]uint64
	for len(keys) > 0 {
		n := min(len(keys), len(homes))
		for i, key := range keys[:n] {
			homes[i] = scramble(key&MaxKey) >> shift
		}
		for _, at := range homes[:n] { // little else, or fewer wait at once
			all |= slots[at]
		}
		keys = keys[n:]
	}
	runtime.KeepAlive(all) // or nothing would be read
}

func (t *Table) rareSet(key uint64) *Set {
	at, _ := slices.BinarySearch(t.rareKeys, key)
	return &t.sets[t.rareSets[at]]
}

// Len returns the number of keys.
func (t *Table) Len() int { return t.n }

// Close unmaps the table. No Lookup may be under way or follow.
func (t *Table) Close() error {
	mem := t.mem
	t.mem, t.slots = nil, nil
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}

// scramble spreads keys, of which neighbours differ in few low bits, over all of
// MaxKey: each to another number, its highest bits as if drawn by lot.
func scramble(key uint64) uint64 {
	key ^= key >> 25
	key = key * 0xbf58476d1ce4e5b9 & MaxKey
	key ^= key >> 24
	return key * 0x94d049bb133111eb & MaxKey
}

// mapZeroed maps size zero bytes. In pages of 4 KiB nearly every probe of a
// large table would miss the processor's page cache too: with 2 million keys
// that is half of its cost.
func mapZeroed(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	// Advice: a kernel without huge pages answers EINVAL and nothing is lost.
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	return mem, nil
}
