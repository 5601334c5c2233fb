package delta

import (
	"encoding/binary"
	"errors"
	"slices"
)

var (
	// ErrCorrupt is returned for a code that no call of Append wrote for a base
	// of this length: it is cut, damaged or was made for a longer base.
	ErrCorrupt = errors.New("delta: the code is damaged or belongs to another base")

	// ErrTooLong is returned for a code of a text longer than the caller admits.
	ErrTooLong = errors.New("delta: the text is longer than the limit")
)

// Expand appends to dst the text that code stands for, copied from base, which
// must not overlap dst's spare capacity. Hostile code cannot make it read
// outside base, append more than max bytes or grow dst for more than that. On
// an error it returns dst as it was.
func Expand(dst, base, code []byte, max int) ([]byte, error) {
	size, code, ok := uvarint(code)
	if !ok {
		return dst, ErrCorrupt
	}
	if max < 0 || size > uint64(max) {
		return dst, ErrTooLong
	}
	out := slices.Grow(dst, int(size))
	left := int(size)
	after := 0 // the base offset after the last copy and literal
	for left > 0 {
		var n uint64
		if n, code, ok = uvarint(code); !ok || n > uint64(left) || n > uint64(len(code)) {
			return dst, ErrCorrupt
		}
		literal := int(n)
		out = append(out, code[:literal]...)
		code = code[literal:]
		left -= literal
		if left == 0 {
			break
		}

		if n, code, ok = uvarint(code); !ok || n == 0 || n > uint64(left) || n > uint64(len(base)) {
			return dst, ErrCorrupt
		}
		length := int(n)
		distance, read := binary.Varint(code)
		if read <= 0 {
			return dst, ErrCorrupt
		}
		code = code[read:]
		after += literal
		if distance < int64(-after) || distance > int64(len(base)-length-after) {
			return dst, ErrCorrupt
		}
		at := after + int(distance)
		out = append(out, base[at:at+length]...)
		after = at + length
		left -= length
	}
	if len(code) != 0 {
		return dst, ErrCorrupt
	}
	return out, nil
}

func uvarint(code []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(code)
	if n <= 0 {
		return 0, nil, false
	}
	return v, code[n:], true
}
