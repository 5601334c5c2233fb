package delta

import "encoding/binary"

const (
	// minAligned is the shortest copy worth its three bytes of code when it
	// keeps the alignment of the copy before it.
	minAligned = 8

	// sureAligned is the length from which an aligned copy is taken without
	// looking for a longer one elsewhere.
	sureAligned = 32

	// Most searches within a literal are spared: every second byte of a short
	// one is looked up and every eighth of a long one, where a hash or a random
	// id has taken the place of another. A copy that begins between two searches
	// is found by the next and extended backwards, unless it is shorter than
	// the step and a window.
	shortLiteral = 16
	shortStep    = 2
	longStep     = 8
)

// Append appends the code of target to dst. A nil Base codes it plainly: a few
// bytes more than target itself. It allocates only to grow dst.
//
// The code is the length of target and then steps until that length is reached.
// A step is the length of a literal, the literal and, unless the target ends
// there, the length of a copy (not 0) and where it begins in the base: as the
// distance from the place that follows the copy before it by as many bytes as
// the literal has. That distance is 0 wherever bytes were replaced by as many
// others. Lengths are uvarints, the distance is a zigzag varint.
func (b *Base) Append(dst, target []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(target)))
	if b == nil || len(b.text) == 0 {
		return appendLast(dst, target)
	}
	text := b.text
	done := 0  // target[:done] is coded
	after := 0 // the base offset after the last copy
	for pos := 0; len(target)-pos >= minAligned; {
		var at, n int
		if same := after + pos - done; same < len(text) {
			at, n = same, aligned(target[pos:], text[same:])
		}
		if n < sureAligned && searched(pos-done) && len(target)-pos >= window {
			// A moved copy costs up to three bytes for its distance.
			if moved, m := b.find(target[pos:]); m > n+3 {
				at, n = moved, m
			}
		}
		if n == 0 {
			// The longer nothing is found, the less is looked for.
			pos += 1 + (pos-done)>>6
			continue
		}
		for pos > done && at > 0 && target[pos-1] == text[at-1] {
			pos--
			at--
			n++
		}
		literal := target[done:pos]
		dst = binary.AppendUvarint(dst, uint64(len(literal)))
		dst = append(dst, literal...)
		dst = binary.AppendUvarint(dst, uint64(n))
		dst = binary.AppendVarint(dst, int64(at-after-len(literal)))
		pos += n
		done, after = pos, at+n
	}
	return appendLast(dst, target[done:])
}

// searched tells whether a copy is looked for so many bytes into a literal.
func searched(literal int) bool {
	if literal < shortLiteral {
		return literal%shortStep == 0
	}
	return literal%longStep == 0
}

// aligned returns the length of the common prefix, 0 if it is not worth a copy.
func aligned(target, text []byte) int {
	if len(target) < minAligned || len(text) < minAligned ||
		binary.LittleEndian.Uint64(target) != binary.LittleEndian.Uint64(text) {
		return 0
	}
	return common(target, text)
}

// appendLast appends the literal that ends the target, if there is one.
func appendLast(dst, literal []byte) []byte {
	if len(literal) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(literal)))
	return append(dst, literal...)
}
