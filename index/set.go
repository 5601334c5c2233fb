package index

import (
	"iter"
	"math/bits"
)

// MaxSources bounds how many sources a Set tells apart. A Table costs as much with
// one as with all of them.
const MaxSources = 1 << sourceBits

// Set is a set of sources, each a number below MaxSources. Its zero value is
// empty, and so is nil.
type Set [MaxSources / 64]uint64

// Add puts a source into s.
func (s *Set) Add(source uint) { s[source/64] |= 1 << (source % 64) }

// Has reports whether source is in s.
func (s *Set) Has(source uint) bool { return s != nil && s[source/64]>>(source%64)&1 != 0 }

// AddAll puts every source of others into s.
func (s *Set) AddAll(others *Set) {
	for i := range others {
		s[i] |= others[i]
	}
}

// Meets reports whether s and others have a source in common.
func (s *Set) Meets(others *Set) bool {
	if s == nil || others == nil {
		return false
	}
	for i := range s {
		if s[i]&others[i] != 0 {
			return true
		}
	}
	return false
}

// All yields the sources of s, ascending.
func (s *Set) All() iter.Seq[uint] {
	return func(yield func(uint) bool) {
		if s == nil {
			return
		}
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(uint(64*i + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
