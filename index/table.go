package index

import (
	"runtime"
	"slices"

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
	mem   []byte // of slots, lines and rows

	rareKeys []uint64 // scrambled, ascending: those whose slot says rare
	rareSets []uint32 // the numbers of their sets

	lines []uint32 // by line of slots: where in rows its first key begins
	rows  []byte   // by key, in the order of slots: appendRows
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
	t.mem, t.slots, t.lines, t.rows = nil, nil, nil, nil
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
