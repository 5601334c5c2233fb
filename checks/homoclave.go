package checks

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxName bounds the bytes of a name: the longest that the authority prints fits
// several times over.
const maxName = 1024

var nameForm = form{
	noun:  "un nombre para calcular la homoclave",
	empty: "El nombre está vacío",
	size:  "lleva paterno, materno y nombres, o la denominación",
}

// Homoclave returns the two characters that the authority's algorithm gives for
// a full name: paterno, materno and nombres, or the name of a legal entity. Case,
// accents other than that of Ñ, runs of blanks and the characters -'., do not
// count. The error is a *Problem. What the authority assigned may be another: it
// computed from the name as registered then, and tells namesakes apart.
func Homoclave(name string) (string, error) {
	if len(name) > maxName {
		return "", &Problem{stringTooLong, "«" + quote(name) + "» no es un nombre: envíe hasta 1024 bytes."}
	}
	var clean strings.Builder
	for _, r := range norm.NFC.String(name) {
		switch {
		case strings.ContainsRune("-'.,", r):
		case r == 'ñ' || r == 'Ñ':
			clean.WriteRune('Ñ')
		default:
			// The base letter is the first of the decomposition.
			base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
			if 'a' <= base && base <= 'z' {
				base -= 'a' - 'A'
			}
			clean.WriteRune(base)
		}
	}
	s := strings.Join(strings.Fields(clean.String()), " ")
	if s == "" {
		return "", nameForm.length(s, 1, maxName)
	}
	if p := nameForm.character(s, "lleva solo letras, dígitos, espacios y &", func(_ int, r rune) bool {
		_, ok := nameValue(r)
		return ok
	}); p != nil {
		return "", p
	}

	// Consecutive digits of "0" followed by two of each character: the number that
	// each pair writes, times its second digit.
	sum, before := 0, 0
	add := func(d int) {
		sum += (10*before + d) * d
		before = d
	}
	for _, r := range s {
		value, _ := nameValue(r)
		add(value / 10)
		add(value % 10)
	}
	const alphabet = "123456789ABCDEFGHIJKLMNPQRSTUVWXYZ"
	sum %= 1000
	return string([]byte{alphabet[sum/34], alphabet[sum%34]}), nil
}

// nameValue is the number that the authority's table gives a character of a name.
func nameValue(r rune) (int, bool) {
	switch {
	case r == ' ':
		return 0, true
	case '0' <= r && r <= '9':
		return int(r - '0'), true
	case r == '&':
		return 10, true
	case 'A' <= r && r <= 'I':
		return int(r-'A') + 11, true
	case 'J' <= r && r <= 'R':
		return int(r-'J') + 21, true
	case 'S' <= r && r <= 'Z':
		return int(r-'S') + 32, true
	case r == 'Ñ':
		return 40, true
	}
	return 0, false
}
