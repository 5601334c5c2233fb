// Package checks validates identifiers by structure alone: pure functions of the
// text, no list, no clock, no network. That an identifier is well formed never
// means that it exists.
//
// Every identifier has a function Read that returns three things: a value, its
// normal form with the parts decoded; the Changes that led from the text to it;
// and an error, always a *Problem, when the text is too short, too long or out
// of the alphabet, or names a day or a place that does not exist. Values compare
// with ==, and the zero value is no identifier. A rule that a well-written
// identifier breaks, such as its check digit, is no error: Fault tells it, and
// CheckDigit what was found and expected. An identifier without the method
// Fault has no rule left to break. A text that is in normal form already costs
// no allocation and keeps its bytes. Inputs of any length are bounded first.
// FEL alone is no identifier but a document of many facts, read from its XML.
//
// Start reading at ReadRFC.
package checks

import (
	"fmt"
	"time"
	"unicode/utf8"

	"cotejo/civil"
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
)

var rfcForm = form{
	noun:  "un RFC",
	empty: "El RFC está vacío",
	size:  "una persona moral tiene 12 caracteres y una física 13",
	drop:  blanks + hyphens,
}

// ReadRFC normalises (trim, NFC, upper case, ASCII blanks and hyphens removed)
// and validates length, alphabet (CFF, anexo 20 t_RFC) and calendar day, in that
// order. The century is not known, so a day is accepted if it exists in 19yy or
// in 20yy. The check digit is not a condition: the authority itself has assigned
// RFCs that fail it. Generic RFCs are accepted.
func ReadRFC(in string) (RFC, Changes, error) {
	if key, ok := PackRFC(in); ok {
		rfc, err := onCalendar(in, key)
		return rfc, 0, err
	}
	if p := rfcForm.tooBig(in); p != nil {
		return RFC{}, 0, p
	}
	s, changes := clean(in, rfcForm.drop)
	key, ok := PackRFC(s)
	if !ok {
		return RFC{}, 0, explainRFC(s)
	}
	rfc, err := onCalendar(s, key)
	if err != nil {
		return RFC{}, 0, err
	}
	return rfc, changes, nil
}

// ParseRFC is ReadRFC for callers that do not answer how the text was written.
func ParseRFC(in string) (RFC, error) {
	rfc, _, err := ReadRFC(in)
	return rfc, err
}

// onCalendar completes an RFC of the official pattern, which alone admits
// 31 February.
func onCalendar(s string, key uint64) (RFC, error) {
	date := s[len(s)-charsAfterLetters:][:6]
	if day := date[4:]; day > "28" && dayOf(1900, date).IsZero() && dayOf(2000, date).IsZero() {
		return RFC{}, &Problem{valueError, fmt.Sprintf(
			"«%s» no es un RFC: el día %s del mes %s no existe en 19%s ni en 20%s; revise la fecha AAMMDD «%s».",
			quote(s), day, date[2:4], date[:2], date[:2], date)}
	}
	return RFC{s, key}, nil
}

// explainRFC names the first rule that a normalised text breaks. It is called
// only for texts outside the official pattern.
func explainRFC(s string) *Problem {
	if p := rfcForm.length(s, charsMoral, charsFisica); p != nil {
		return p
	}
	runes := []rune(s)
	n := len(runes)
	letters := n - charsAfterLetters
	for i, r := range runes[:letters] {
		switch {
		case r == utf8.RuneError:
			return rfcForm.mismatch(s, "el carácter %d es %s; envíe la Ñ en UTF-8 (%%C3%%91 en una URL).", i+1, describe(r))
		case (r < 'A' || r > 'Z') && r != '&' && r != 'Ñ':
			return rfcForm.mismatch(s, "con %d caracteres debe empezar con %d letras (A-Z, Ñ o &).", n, letters)
		}
	}
	if p := rfcForm.date(s, string(runes[letters:letters+6]), letters); p != nil {
		return p
	}
	for _, r := range runes[n-3 : n-1] {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return rfcForm.mismatch(s, "los dos caracteres de la homoclave, después de la fecha, son letras A-Z o dígitos.")
		}
	}
	return rfcForm.mismatch(s, "el último carácter, el dígito verificador, es un dígito o la letra A.")
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

// Letters returns the three or four letters that come before the date.
func (r RFC) Letters() string { return r.s[:r.lettersEnd()] }

// Date returns the six digits AAMMDD: the day on which a legal entity was founded
// or an individual was born.
func (r RFC) Date() string {
	if r.key == 0 {
		return ""
	}
	return r.s[len(r.s)-9 : len(r.s)-3]
}

// Days returns the two days that Date may stand for, of 19yy and of 20yy. One of
// them is the zero date when it does not exist: 29 February 1900.
func (r RFC) Days() (in1900s, in2000s civil.Date) {
	if r.key == 0 {
		return civil.Date{}, civil.Date{}
	}
	date := r.Date()
	return dayOf(1900, date), dayOf(2000, date)
}

// Homoclave returns the two characters that tell namesakes apart.
func (r RFC) Homoclave() string {
	if r.key == 0 {
		return ""
	}
	return r.s[len(r.s)-3 : len(r.s)-1]
}

// Word returns the improper word that the letters of an individual form, "" for
// none. The authority avoids them, but not always did.
func (r RFC) Word() string {
	if r.key == 0 || r.Moral() {
		return ""
	}
	return wordIn(rfcWords, r.s)
}

func (r RFC) lettersEnd() int { return max(0, len(r.s)-charsAfterLetters) }

// CheckDigit compares the last character with the one that the tax authority's
// algorithm gives: '0' to '9' or 'A'. A difference is a fact to report beside a
// valid RFC, never a fault.
func (r RFC) CheckDigit() Comparison {
	if r.key == 0 {
		return Comparison{}
	}
	sum := 0
	weight := 13
	if r.Moral() {
		// A blank takes the place of the fourth letter.
		sum, weight = 37*13, 12
	}
	last := len(r.s) - 1
	for _, c := range r.s[:last] {
		sum += weight * checkValue(c)
		weight--
	}
	const byRest = "0A987654321"
	rest := sum % 11
	return Comparison{r.s[last:], byRest[rest : rest+1]}
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

// dayOf returns the day that six digits AAMMDD name in a century, the zero date
// if there is none.
func dayOf(century int, date string) civil.Date {
	year := century + digitOf(date[0])*10 + digitOf(date[1])
	month := digitOf(date[2])*10 + digitOf(date[3])
	day := digitOf(date[4])*10 + digitOf(date[5])
	last := 31
	switch month {
	case 2:
		if last = 28; year%4 == 0 && year != 1900 { // from 1900 to 2099
			last = 29
		}
	case 4, 6, 9, 11:
		last = 30
	}
	if month < 1 || month > 12 || day < 1 || day > last {
		return civil.Date{}
	}
	return civil.Date{Year: year, Month: time.Month(month), Day: day}
}
