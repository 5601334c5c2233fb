// Package canon writes canonical JSON (RFC 8785): one value, one text, so that
// a digest over the text is a digest over the value.
//
// Code that produces records appends JSON itself, members in order, with
// AppendString for the texts. Transform is for JSON that comes from elsewhere:
// it is strict, and it never accepts a text that two readers could understand
// differently. The package never repairs a number or a name.
package canon

import (
	"math/bits"
	"unicode/utf8"
)

// AppendString appends s as a canonical JSON string. Invalid UTF-8 becomes
// U+FFFD, one for each invalid byte. It does not allocate beyond dst.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	run, i := 0, 0 // s[run:i] is copied as it is
	for i < len(s) {
		if len(s)-i >= 8 {
			w := s[i : i+8]
			special := notPlain(uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
				uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56)
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		} else if c := s[i]; c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}

		c := s[i]
		if c < utf8.RuneSelf {
			dst = append(dst, s[run:i]...)
			dst = appendEscape(dst, c)
			i++
			run = i
			continue
		}
		// Two-byte sequences, the letters of Spanish, need no decoding.
		if c >= 0xC2 && c <= 0xDF && i+1 < len(s) && s[i+1]&0xC0 == 0x80 {
			i += 2
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[run:i]...)
			dst = append(dst, "\uFFFD"...)
			run = i + 1
		}
		i += size
	}
	dst = append(dst, s[run:]...)
	return append(dst, '"')
}

// notPlain marks, in their high bits, the bytes of word that cannot be copied
// without a look: controls, quotes, backslashes and all that is not ASCII. The
// lowest mark is exact; a borrow may set false ones above it.
func notPlain(word uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	quote := word ^ '"'*ones
	slash := word ^ '\\'*ones
	return (word | (word-' '*ones)&^word | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
