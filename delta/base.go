// Package delta writes a text as copies from an earlier, similar one: for small
// texts that differ in a few places, such as two answers of the same service.
//
// A code does not name its base and holds no checksum: with another base of
// sufficient length it expands to another text without an error. Whoever keeps
// codes keeps the base's identity and the text's digest beside them. The format
// is described at Append; a stored code can be expanded by any later version.
//
// Start reading at Base.Append.
package delta

import (
	"encoding/binary"
	"math/bits"
)

const (
	// window is the length of the pieces of the base that are found wherever
	// they moved to. Shorter ones abound in JSON and lead astray.
	window = 16

	// maxIndexed bounds the offsets in the index. What lies beyond is copied
	// only where the two texts are already aligned.
	maxIndexed = 1<<16 - 1

	// maxTries bounds how many equal windows are compared for the longest copy.
	maxTries = 8

	// block and longBlock are how much of two texts is compared at once. Every block
	// costs a call; a long one that differs is read twice.
	block     = 64
	longBlock = 1024
)

// Base is an earlier text prepared to be copied from. Immutable, safe for
// concurrent use. It takes five to seven bytes of memory for each byte of text.
type Base struct {
	text []byte

	// first holds, by hash, 1 + the lowest offset of a window with that hash;
	// next holds, by offset, the same for the following one. 0 ends a chain.
	first, next []uint16
	shift       uint // of a hash, to an index of first
}

// NewBase indexes text, which it copies.
func NewBase(text []byte) *Base {
	b := &Base{text: append([]byte(nil), text...)}
	n := min(len(text)-window+1, maxIndexed)
	if n <= 0 {
		return b
	}
	log := uint(bits.Len(uint(n - 1)))
	b.shift = 64 - log
	b.first = make([]uint16, 1<<log)
	b.next = make([]uint16, n)
	for offset := n - 1; offset >= 0; offset-- {
		slot := &b.first[hash(b.text[offset:])>>b.shift]
		b.next[offset] = *slot
		*slot = uint16(offset + 1)
	}
	return b
}

// Bytes returns the text; it must not be changed.
func (b *Base) Bytes() []byte { return b.text }

// find returns the longest copy among the first windows equal to target's
// beginning; n is 0 when there is none. target is a window long at least.
func (b *Base) find(target []byte) (offset, n int) {
	if len(b.first) == 0 {
		return 0, 0
	}
	link := b.first[hash(target)>>b.shift]
	head := binary.LittleEndian.Uint64(target)
	for tries := 0; link != 0 && tries < maxTries; tries++ {
		at := int(link - 1)
		if head == binary.LittleEndian.Uint64(b.text[at:]) {
			if m := common(target, b.text[at:]); m >= window && m > n {
				offset, n = at, m
			}
		}
		link = b.next[at]
	}
	return offset, n
}

// hash mixes the first window of text.
func hash(text []byte) uint64 {
	text = text[:window]
	hi, lo := bits.Mul64(
		binary.LittleEndian.Uint64(text)^0x9e3779b97f4a7c15,
		binary.LittleEndian.Uint64(text[8:])^0xd6e8feb86659fd93)
	return hi ^ lo
}

// common returns the length of the longest common prefix.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	// Long runs go by blocks, which the runtime compares with vector code: by long ones
	// until one differs, and then by short ones.
	for len(a) >= longBlock && string(a[:longBlock]) == string(b[:longBlock]) {
		a, b = a[longBlock:], b[longBlock:]
	}
	for len(a) >= block && string(a[:block]) == string(b[:block]) {
		a, b = a[block:], b[block:]
	}
	for len(a) >= 8 && len(b) >= 8 {
		if x := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b); x != 0 {
			return n - len(a) + bits.TrailingZeros64(x)/8
		}
		a, b = a[8:], b[8:]
	}
	for i := range a {
		if a[i] != b[i] {
			return n - len(a) + i
		}
	}
	return n
}
