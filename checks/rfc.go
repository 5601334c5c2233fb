// Package checks validates Mexican identifiers by structure alone: pure
// functions of the text, no list, no clock, no network. That an identifier is
// well formed never means that it exists.
//
// Start reading at ParseRFC.
package checks

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// RFC is a validated tax id: upper case, NFC, 12 characters (legal entity) or
// 13 (individual). Ñ takes two bytes. Two RFCs are the same tax id exactly when
// they are equal with ==. The zero RFC is no RFC.
type RFC struct {
	s   string
	key uint64
}

const (
	// charsMoral and charsFisica are the lengths of the two kinds of RFC, in
	// characters (anexo 20, types t_RFC_PM and t_RFC_PF).
	charsMoral  = 12
	charsFisica = 13

	// charsAfterLetters counts the date, the homoclave and the check digit.
	charsAfterLetters = 9

	// maxInput bounds the bytes that are normalised: 13 characters, each
	// decomposed, with blanks and hyphens between them, fit with room to spare.
	maxInput = 64
)

// ParseRFC normalises (trim, NFC, upper case, ASCII blanks and hyphens
// removed) and validates length, alphabet (CFF, anexo 20 t_RFC) and calendar
// day, in that order. The century is not known, so a day is accepted if it
// exists in 19yy or in 20yy. The check digit is not a condition: the authority
// itself has assigned RFCs that fail it. Generic RFCs are accepted.
//
// The error is a *Problem. An RFC that needs no normalising keeps in's bytes
// and costs no allocation.
func ParseRFC(in string) (RFC, error) {
	if key, ok := PackRFC(in); ok {
		return onCalendar(in, key)
	}
	if len(in) > maxInput {
		return RFC{}, &Problem{stringTooLong, fmt.Sprintf(
			"«%s» no es un RFC: ocupa %d bytes; una persona moral tiene 12 caracteres y una física 13.", quote(in), len(in))}
	}
	s := normalise(in)
	key, ok := PackRFC(s)
	if !ok {
		return RFC{}, explain(s)
	}
	return onCalendar(s, key)
}

// normalise removes only what people add around and between the parts of an
// RFC. It upper-cases ASCII and ñ alone: full case mapping would turn letters
// such as ı and ſ into ASCII ones that nobody typed.
func normalise(in string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '\t' || r == '-':
			return -1
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case r == 'ñ':
			return 'Ñ'
		}
		return r
	}, strings.TrimSpace(norm.NFC.String(in)))
}

// onCalendar completes an RFC of the official pattern, which alone admits
// 31 February.
func onCalendar(s string, key uint64) (RFC, error) {
	date := s[len(s)-charsAfterLetters:]
	if day := date[4:6]; day > "28" && day > lastDay(date[:2], date[2:4]) {
		return RFC{}, &Problem{valueError, fmt.Sprintf(
			"«%s» no es un RFC: el día %s del mes %s no existe en 19%s ni en 20%s; revise la fecha AAMMDD «%s».",
			quote(s), day, date[2:4], date[:2], date[:2], date[:6])}
	}
	return RFC{s, key}, nil
}

// lastDay returns the last day of a month, given as digits, in 19yy or 20yy.
// The two centuries differ only in 1900, which was no leap year.
func lastDay(year, month string) string {
	switch month {
	case "02":
		if ((year[0]-'0')*10+year[1]-'0')%4 == 0 {
			return "29"
		}
		return "28"
	case "04", "06", "09", "11":
		return "30"
	}
	return "31"
}

// explain names the first rule that a normalised text breaks. It is called only
// for texts outside the official pattern.
func explain(s string) *Problem {
	n := utf8.RuneCountInString(s)
	switch {
	case n == 0:
		return &Problem{stringTooShort, "El RFC está vacío: una persona moral tiene 12 caracteres y una física 13."}
	case n < charsMoral:
		return wrongLength(stringTooShort, s, n)
	case n > charsFisica:
		return wrongLength(stringTooLong, s, n)
	}
	mismatch := func(format string, args ...any) *Problem {
		return &Problem{stringPatternMismatch,
			fmt.Sprintf("«%s» no es un RFC: ", quote(s)) + fmt.Sprintf(format, args...)}
	}

	runes := []rune(s)
	letters := n - charsAfterLetters
	for _, r := range runes[:letters] {
		if (r < 'A' || r > 'Z') && r != '&' && r != 'Ñ' {
			return mismatch("con %d caracteres debe empezar con %d letras (A-Z, Ñ o &).", n, letters)
		}
	}
	date := string(runes[letters : letters+6])
	for _, r := range date {
		if r < '0' || r > '9' {
			return mismatch("después de %d letras lleva seis dígitos, la fecha AAMMDD; tiene «%s».", letters, quote(date))
		}
	}
	if month := date[2:4]; month < "01" || month > "12" {
		return mismatch("en la fecha AAMMDD «%s» el mes es %s; debe ser de 01 a 12.", date, month)
	}
	if day := date[4:6]; day < "01" || day > "31" {
		return mismatch("en la fecha AAMMDD «%s» el día es %s; debe ser de 01 a 31.", date, day)
	}
	for _, r := range runes[n-3 : n-1] {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return mismatch("los dos caracteres de la homoclave, después de la fecha, son letras A-Z o dígitos.")
		}
	}
	return mismatch("el último carácter, el dígito verificador, es un dígito o la letra A.")
}

func wrongLength(kind, s string, n int) *Problem {
	unit := "caracteres"
	if n == 1 {
		unit = "carácter"
	}
	return &Problem{kind, fmt.Sprintf(
		"«%s» no es un RFC: tiene %d %s; una persona moral tiene 12 y una física 13.", quote(s), n, unit)}
}

// String returns the RFC in normal form, "" for the zero RFC.
func (r RFC) String() string { return r.s }

// Key returns PackRFC of the RFC, 0 for the zero RFC. It was computed when the
// RFC was parsed.
func (r RFC) Key() uint64 { return r.key }

// Moral reports whether the RFC is a legal entity's: it has 12 characters.
func (r RFC) Moral() bool { return r.key != 0 && r.key <= keysMoral }

// Generic reports whether the RFC stands for no one in particular: sales to the
// general public (XAXX010101000) or to foreign residents (XEXX010101000).
func (r RFC) Generic() bool { return r.s == "XAXX010101000" || r.s == "XEXX010101000" }

// CheckDigit compares the last character with the one that the tax authority's
// algorithm gives. A difference is a fact to report beside a valid RFC, never a
// reason to refuse it. expected is '0' to '9' or 'A', 0 for the zero RFC.
func (r RFC) CheckDigit() (matches bool, expected byte) {
	if r.key == 0 {
		return false, 0
	}
	sum := 0
	weight := 13
	if r.Moral() {
		// A blank takes the place of the fourth letter.
		sum, weight = 37*13, 12
	}
	body, last := r.s[:len(r.s)-1], r.s[len(r.s)-1]
	for _, c := range body {
		sum += weight * checkValue(c)
		weight--
	}
	switch rest := sum % 11; rest {
	case 0:
		expected = '0'
	case 1:
		expected = 'A'
	default:
		expected = byte('0' + 11 - rest)
	}
	return last == expected, expected
}

// checkValue is a character's place in the authority's table
// "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ Ñ".
func checkValue(c rune) int {
	switch {
	case c <= '9' && c >= '0':
		return int(c - '0')
	case c == '&':
		return 24
	case c == 'Ñ':
		return 38
	case c <= 'N':
		return int(c-'A') + 10
	}
	return int(c-'O') + 25
}
