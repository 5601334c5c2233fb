package index

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	sourceBits = 8
	setBits    = 15
	// rare stands in a slot in the place of a set whose number has no room there.
	rare = 1<<setBits - 1
	// MaxKey bounds the keys of a Table: checks.PackRFC needs 49 bits.
	MaxKey = 1<<(64-setBits) - 1
)

// Table maps packed RFCs (checks.PackRFC) to sets of sources. It lives in
// memory of its own, outside the collected heap and in huge pages where the
// kernel has them: a lookup is one probe, and what a probe costs is the one line
// of memory and its page that it touches. It does not allocate. Safe for
// concurrent use until Close.
//
// A slot is 8 bytes, so that eight neighbours share a cache line and the whole
// table few pages: the key above, and below it the number of its set of
// sources, of which there are few however many keys there are. Zeroed pages are
// empty slots: sets count from 1. Should there be more sets than a slot can
// number, the keys of the others are found in a sorted list beside the table: a
// key that is not in the table still costs one probe.
type Table struct {
	slots []uint64 // key<<setBits | set; a power of two, at most half full
	sets  []Set    // by number
	shift uint     // 64 − log2(len(slots))
	n     int
	mem   []byte

	rareKeys []uint64 // ascending: those whose slot says rare
	rareSets []uint32 // the numbers of their sets
}

const slotSize = 8

// TableBuilder collects bits; Add may repeat a key. Its zero value is ready. It
// keeps 8 bytes for each distinct pair of key and source, at most four times
// that for a moment. Not safe for concurrent use.
type TableBuilder struct {
	pairs []uint64 // key<<sourceBits | source
	limit int      // at which repeated pairs are dropped
}

// Add says that source (below MaxSources) mentions key (at most MaxKey).
func (b *TableBuilder) Add(key uint64, source uint) {
	if key > MaxKey || source >= MaxSources {
		panic(fmt.Sprintf("index: key %d of source %d is out of range", key, source))
	}
	if len(b.pairs) >= b.limit {
		b.compact()
		b.limit = max(2*len(b.pairs), 1<<16)
		b.pairs = slices.Grow(b.pairs, b.limit-len(b.pairs))
	}
	b.pairs = append(b.pairs, key<<sourceBits|uint64(source))
}

func (b *TableBuilder) compact() {
	slices.Sort(b.pairs)
	b.pairs = slices.Compact(b.pairs)
}

// Build makes the table. It disappears with the process and is never evidence.
// The builder is empty afterwards.
func (b *TableBuilder) Build() (*Table, error) {
	b.compact()
	pairs := b.pairs
	*b = TableBuilder{}

	n := 0
	for i, p := range pairs {
		if i == 0 || p>>sourceBits != pairs[i-1]>>sourceBits {
			n++
		}
	}
	logSize := uint(bits.Len(uint(2*max(n, 4) - 1)))
	mem, err := mapZeroed(slotSize << logSize)
	if err != nil {
		return nil, fmt.Errorf("index: table of %d keys: %w", n, err)
	}
	t := &Table{
		slots: unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), 1<<logSize),
		sets:  make([]Set, 1),
		shift: 64 - logSize,
		n:     n,
		mem:   mem,
	}
	numbers := map[Set]uint32{}
	for i := 0; i < len(pairs); {
		key, sources := pairs[i]>>sourceBits, Set{}
		for ; i < len(pairs) && pairs[i]>>sourceBits == key; i++ {
			sources.Add(uint(pairs[i] & (MaxSources - 1)))
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
		at := mix(key) >> t.shift
		for t.slots[at] != 0 {
			at = (at + 1) & uint64(len(t.slots)-1)
		}
		t.slots[at] = key<<setBits | uint64(number)
	}
	if err := unix.Mprotect(mem, unix.PROT_READ); err != nil {
		return nil, errors.Join(fmt.Errorf("index: mprotect: %w", err), t.Close())
	}
	return t, nil
}

// Lookup returns the sources that mention key, nil when none does. The set must
// not be changed and lives as long as the table.
func (t *Table) Lookup(key uint64) *Set {
	slots := t.slots
	for at := mix(key) >> t.shift; ; at++ {
		switch s := slots[at&uint64(len(slots)-1)]; {
		case s>>setBits == key && s != 0:
			if s &= rare; s == rare {
				return t.lookupRare(key)
			}
			return &t.sets[s]
		case s == 0:
			return nil
		}
	}
}

func (t *Table) lookupRare(key uint64) *Set {
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

// mix spreads keys, of which neighbours differ in few low bits, over all 64
// bits (the finalizer of SplitMix64, a bijection).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
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
