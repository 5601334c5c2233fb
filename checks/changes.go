package checks

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Changes says what was done to a text to reach the normal form of an
// identifier. They belong to the text, not to the identifier: two spellings of
// one identifier give equal values and different changes.
type Changes uint8

// What a Read function may do. Digits of other scripts, full-width ones too,
// are never taken for ASCII digits, and no letter is ever dropped.
const (
	Blanks   Changes = 1 << iota // blanks removed
	Hyphens                      // hyphens removed
	Marks                        // points and slashes removed; the point of a ticker became a hyphen
	Upper                        // lower case made upper case: a to z and ñ
	Composed                     // brought to Unicode NFC: N with U+0303 became Ñ
	Zeros                        // zeros added or removed at the left
	Prefix                       // the letters CIK removed
	Lower                        // upper case made lower case: the domain of an address
)

var changeNames = [...]string{"espacios", "guiones", "signos", "mayusculas", "unicode_nfc", "ceros_a_la_izquierda", "prefijo", "minusculas"}

// Names returns the stable names of the changes, in the order of the
// constants; nil for none.
func (c Changes) Names() []string {
	var names []string
	for i, name := range changeNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// clean brings a text, no longer than maxInput, to the spelling that the
// parsers know: NFC, no blanks around, no characters of drop, upper case. It
// upper-cases ASCII and ñ alone: full case mapping would turn letters such as ı
// and ſ into ASCII ones that nobody typed. Invalid bytes become U+FFFD.
func clean(in, drop string) (string, Changes) {
	var done Changes
	s := norm.NFC.String(in)
	if s != in {
		done |= Composed
	}
	if trimmed := strings.TrimSpace(s); trimmed != s {
		s = trimmed
		done |= Blanks
	}
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(drop, r):
			switch r {
			case ' ', '\t':
				done |= Blanks
			case '-':
				done |= Hyphens
			default:
				done |= Marks
			}
			return -1
		case 'a' <= r && r <= 'z':
			done |= Upper
			return r - 'a' + 'A'
		case r == 'ñ':
			done |= Upper
			return 'Ñ'
		}
		return r
	}, s), done
}
