package index

import (
	"encoding/binary"
	"iter"
)

// Rows tells what a source has of a key.
type Rows struct {
	// First is the number of its first row among all rows of the source that can be
	// found, in key order, from 0; the others follow it. It is 0 when there is none.
	First uint32
	N     uint32 // how many rows; none when only the history mentions the key
	// Past tells that the history has more to say of them than that they were there
	// from the first version on and did not change.
	Past bool
}

// maxRows bounds Rows.N.
const maxRows = 1<<31 - 1

// Mentions is what a Table holds of a key: which sources mention it, and their
// rows. Its zero value says that none does.
type Mentions struct {
	table   *Table
	sources *Set
	slot    uint64
}

// None reports whether no source mentions the key.
func (m Mentions) None() bool { return m.sources == nil }

// Has reports whether source mentions the key.
func (m Mentions) Has(source uint) bool { return m.sources.Has(source) }

// Rows tells what source has of the key; the zero value when it does not mention it.
func (m Mentions) Rows(source uint) Rows {
	if m.Has(source) {
		for s, rows := range m.All() {
			if s == source {
				return rows
			}
		}
	}
	return Rows{}
}

// In returns how many rows sources have of the key.
func (m Mentions) In(sources *Set) (rows int) {
	if !m.sources.Meets(sources) {
		return 0
	}
	for s, of := range m.All() {
		if sources.Has(s) {
			rows += int(of.N)
		}
	}
	return rows
}

// All yields the sources that mention the key, ascending, and what they have of it.
func (m Mentions) All() iter.Seq2[uint, Rows] {
	return func(yield func(uint, Rows) bool) {
		if m.sources == nil {
			return
		}
		text := m.table.rowsOf(m.slot)
		for source := range m.sources.All() {
			var rows Rows
			if rows, text = cutRows(text); !yield(source, rows) {
				return
			}
		}
	}
}

// rowsOf is what appendRows wrote for the key in a slot, without its length, and
// more behind it.
func (t *Table) rowsOf(slot uint64) []byte {
	first := slot &^ (lineSlots - 1)
	text := t.rows[t.lines[first/lineSlots]:]
	for _, before := range t.slots[first:slot] {
		if before != 0 {
			size, n := binary.Uvarint(text)
			text = text[n+int(size):]
		}
	}
	_, n := binary.Uvarint(text)
	return text[n:]
}

// appendRows appends what sources have of one key, so that it can be passed over:
// its length and, by source, N and Past and, of one that has rows, the First.
func appendRows(dst []byte, pairs []pair) []byte {
	dst = binary.AppendUvarint(dst, uint64(sourcesLen(pairs)))
	for _, p := range pairs {
		n, first := p.rows&(1<<32-1), p.rows>>32
		dst = binary.AppendUvarint(dst, n)
		if n > 1 {
			dst = binary.AppendUvarint(dst, first)
		}
	}
	return dst
}

// sourcesLen is the length that appendRows writes first.
func sourcesLen(pairs []pair) (size int) {
	for _, p := range pairs {
		n, first := p.rows&(1<<32-1), p.rows>>32
		size += uvarintLen(n)
		if n > 1 {
			size += uvarintLen(first)
		}
	}
	return size
}

// rowsLen is how many bytes appendRows appends.
func rowsLen(pairs []pair) int {
	size := sourcesLen(pairs)
	return uvarintLen(uint64(size)) + size
}

// uvarintLen is how many bytes binary.AppendUvarint appends.
func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// cutRows reads what one source has.
func cutRows(text []byte) (Rows, []byte) {
	v, n := binary.Uvarint(text)
	text = text[n:]
	rows := Rows{N: uint32(v >> 1), Past: v&1 != 0}
	if rows.N > 0 {
		v, n = binary.Uvarint(text)
		rows.First, text = uint32(v), text[n:]
	}
	return rows, text
}
