package index

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pair says that a source mentions a key, and what rows it has of it.
type Pair struct {
	Key    uint64 // at most MaxKey
	Source uint   // below MaxSources
	Rows   Rows
}

// NewTable makes a table of pairs, of which no two have the same key and source. It
// ranges over them twice, and they must be the same both times. A Pair out of range
// panics.
//
// A table is built while another one answers: all that is large here is memory outside
// the collected heap, so that no collection begins because of it (while it works it
// takes 16 bytes for each pair besides the table), and other goroutines go first.
//
// The table disappears with the process and is never evidence.
func NewTable(pairs iter.Seq[Pair]) (_ *Table, err error) {
	sorted, err := sortPairs(pairs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sorted.free()) }()
	t := &Table{sets: make([]Set, 1)}
	size, err := t.measure(sorted.pairs)
	if err != nil {
		return nil, err
	}
	if err := t.allocate(size); err != nil {
		return nil, fmt.Errorf("index: table of %d keys: %w", t.n, err)
	}
	t.fill(sorted.pairs)
	if err := unix.Mprotect(t.mem, unix.PROT_READ); err != nil {
		return nil, errors.Join(fmt.Errorf("index: mprotect: %w", err), t.Close())
	}
	return t, nil
}

// pair is a Pair as it is sorted.
type pair struct {
	key  uint64 // scrambled key<<sourceBits | source
	rows uint64 // First<<32 | N<<1 | Past
}

func (p pair) source() uint { return uint(p.key & (MaxSources - 1)) }

func (p *Pair) packed() pair {
	if p.Key > MaxKey || p.Source >= MaxSources || p.Rows.N > maxRows {
		panic(fmt.Sprintf("index: key %d of source %d with %d rows is out of range", p.Key, p.Source, p.Rows.N))
	}
	packed := pair{scramble(p.Key)<<sourceBits | uint64(p.Source), uint64(p.Rows.First)<<32 | uint64(p.Rows.N)<<1}
	if p.Rows.Past {
		packed.rows |= 1
	}
	return packed
}

// pause lets other goroutines go first, now and then.
type pause int

// pauseEvery is after how many steps of some nanoseconds.
const pauseEvery = 1 << 13

func (p *pause) steps(n int) {
	if *p += pause(n); *p >= pauseEvery {
		*p = 0
		runtime.Gosched()
	}
}

// sortedPairs lie in memory of their own until free.
type sortedPairs struct {
	pairs []pair
	mem   []byte
}

func (s *sortedPairs) free() error { return unix.Munmap(s.mem) }

// bucketBits: scrambled keys are spread evenly, so pairs are dealt by the first bits
// of their keys to 1<<bucketBits places, and only those of one place are compared.
const bucketBits = 13

// sortPairs sorts by key, then by source.
func sortPairs(pairs iter.Seq[Pair]) (*sortedPairs, error) {
	const shift = keyBits + sourceBits - bucketBits
	var rest pause
	ends := make([]int, 1<<bucketBits+1) // where the bucket before this one ends
	for p := range pairs {
		ends[p.packed().key>>shift+1]++
		rest.steps(1)
	}
	for i := range 1 << bucketBits {
		ends[i+1] += ends[i]
	}
	total := ends[1<<bucketBits]
	mem, err := mapZeroed(max(total, 1) * int(unsafe.Sizeof(pair{})))
	if err != nil {
		return nil, fmt.Errorf("index: %d pairs: %w", total, err)
	}
	s := &sortedPairs{unsafe.Slice((*pair)(unsafe.Pointer(&mem[0])), total), mem}
	for p := range pairs {
		packed := p.packed()
		at := &ends[packed.key>>shift] // becomes the end of its own
		s.pairs[*at] = packed
		*at++
		rest.steps(1)
	}
	begin := 0
	for _, end := range ends[:1<<bucketBits] {
		slices.SortFunc(s.pairs[begin:end], func(x, y pair) int { return cmp.Compare(x.key, y.key) })
		rest.steps(8 * (end - begin))
		begin = end
	}
	return s, nil
}

// keysOf yields each scrambled key and its pairs.
func keysOf(pairs []pair) iter.Seq2[uint64, []pair] {
	return func(yield func(uint64, []pair) bool) {
		var rest pause
		for len(pairs) > 0 {
			key, n := pairs[0].key>>sourceBits, 1
			for n < len(pairs) && pairs[n].key>>sourceBits == key {
				n++
			}
			if !yield(key, pairs[:n]) {
				return
			}
			pairs = pairs[n:]
			rest.steps(n)
		}
	}
}

// tableSize is how large a table is.
type tableSize struct{ slots, rows int }

// measure counts the keys of sorted pairs and finds out how large their table is.
func (t *Table) measure(pairs []pair) (size tableSize, err error) {
	for key, of := range keysOf(pairs) {
		for i := range of[1:] {
			if of[i].key == of[i+1].key {
				return size, fmt.Errorf("index: source %d mentions key %d twice", of[i].source(), key)
			}
		}
		t.n++
		size.rows += rowsLen(of)
	}
	if size.rows > math.MaxUint32 {
		return size, fmt.Errorf("index: where the rows of %d keys are takes more than %d bytes", t.n, math.MaxUint32)
	}
	logSize := uint(bits.Len(uint(2*max(t.n, 4) - 1)))
	t.shift = keyBits - logSize
	// Keys that find their slot taken stand behind it, so that some may stand behind
	// the last slot that a key can name.
	end := uint64(0)
	for key := range keysOf(pairs) {
		end = max(end, key>>t.shift) + 1
	}
	size.slots = int((max(end, 1<<logSize)/lineSlots + 1) * lineSlots)
	return size, nil
}

// allocate maps the memory of an empty table.
func (t *Table) allocate(size tableSize) error {
	lines := size.slots / lineSlots
	mem, err := mapZeroed(8*size.slots + 4*lines + size.rows)
	if err != nil {
		return err
	}
	t.mem = mem
	t.slots = unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), size.slots)
	t.lines = unsafe.Slice((*uint32)(unsafe.Pointer(&mem[8*size.slots])), lines)
	t.rows = mem[8*size.slots+4*lines:]
	return nil
}

// fill puts sorted pairs into an empty table.
func (t *Table) fill(pairs []pair) {
	numbers := map[Set]uint32{}
	var alone [MaxSources]uint32 // numbers of the sets of one source
	rows, lines, at := t.rows[:0], 0, uint64(0)
	for key, of := range keysOf(pairs) {
		number := uint32(0)
		if len(of) == 1 {
			number = alone[of[0].source()]
		}
		if number == 0 {
			sources := Set{}
			for _, p := range of {
				sources.Add(p.source())
			}
			if number = numbers[sources]; number == 0 {
				number = uint32(len(t.sets))
				numbers[sources], t.sets = number, append(t.sets, sources)
			}
			if len(of) == 1 {
				alone[of[0].source()] = number
			}
		}
		if number >= rare {
			t.rareKeys, t.rareSets = append(t.rareKeys, key), append(t.rareSets, number)
			number = rare
		}
		at = max(at, key>>t.shift)
		t.slots[at] = key<<setBits | uint64(number)
		for ; uint64(lines) <= at/lineSlots; lines++ {
			t.lines[lines] = uint32(len(rows))
		}
		rows = appendRows(rows, of)
		at++
	}
}
