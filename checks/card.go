package checks

import (
	"fmt"
	"strings"
)

// Card is what may be known of a card number after it was read: the number is
// not in it, so that two numbers may give equal Cards. All ways of printing a
// Card show the last four digits alone. The zero Card is no card.
type Card struct {
	bin      [8]byte
	last     [4]byte
	digits   uint8
	brand    uint8 // place in cardBrands plus 1, 0 for none
	expected byte  // check digit
	zeros    bool  // nothing but zeros
}

const (
	shortestPAN = 12
	longestPAN  = 19 // ISO/IEC 7812-1

	// shortestBIN8 is the length from which eight digits identify the issuer
	// (ISO/IEC 7812-1:2017).
	shortestBIN8 = 16
)

// UnknownBrand is the brand of a number that no range of the table contains.
const UnknownBrand = "desconocida"

// ReadCard reads a card number of 12 to 19 digits, with ASCII blanks and hyphens
// anywhere. It keeps no reference to in, and no problem quotes it. A wrong check
// digit, a length that the brand does not have and a number of zeros alone are
// Faults; an unknown brand is not.
func ReadCard(in string) (Card, Changes, error) {
	problem := func(kind, why string) (Card, Changes, error) {
		return Card{}, 0, &Problem{kind, "El número de tarjeta " + why}
	}
	if len(in) > maxInput {
		return problem(stringTooLong, fmt.Sprintf("ocupa %d bytes; lleva de 12 a 19 dígitos.", len(in)))
	}
	text := strings.TrimSpace(in)
	var changes Changes
	if text != in {
		changes = Blanks
	}
	var pan [longestPAN]byte
	n, at := 0, 0
	zeros := true
	for _, r := range text {
		at++
		switch {
		case '0' <= r && r <= '9':
			if n < longestPAN {
				pan[n] = byte(r)
			}
			zeros = zeros && r == '0'
			n++
		case r == ' ' || r == '\t':
			changes |= Blanks
		case r == '-':
			changes |= Hyphens
		default:
			return problem(stringPatternMismatch, fmt.Sprintf("lleva solo dígitos del 0 al 9; el carácter %d es %s.", at, describe(r)))
		}
	}
	switch {
	case n == 0:
		return problem(stringTooShort, "está vacío: lleva de 12 a 19 dígitos.")
	case n < shortestPAN:
		return problem(stringTooShort, fmt.Sprintf("tiene %d dígitos; lleva de 12 a 19.", n))
	case n > longestPAN:
		return problem(stringTooLong, fmt.Sprintf("tiene %d dígitos; lleva de 12 a 19.", n))
	}
	card := Card{
		bin:      [8]byte(pan[:8]),
		last:     [4]byte(pan[n-4 : n]),
		digits:   uint8(n),
		brand:    brandOf(pan[:8]),
		expected: byte('0' + luhn(pan[:n-1])),
		zeros:    zeros,
	}
	return card, changes, nil
}

// String returns the number masked: "•••• 1881"; "" for the zero Card.
func (c Card) String() string {
	if c.digits == 0 {
		return ""
	}
	return "•••• " + c.Last4()
}

// GoString returns String, so that no verb prints more.
func (c Card) GoString() string { return c.String() }

// Format prints String whatever the verb.
func (c Card) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// Length returns how many digits the number has.
func (c Card) Length() int { return int(c.digits) }

// BIN6 returns the first six digits, which identify the issuer.
func (c Card) BIN6() string {
	if c.digits == 0 {
		return ""
	}
	return string(c.bin[:6])
}

// BIN8 returns the first eight digits, "" for numbers shorter than sixteen,
// whose issuer has six.
func (c Card) BIN8() string {
	if c.digits < shortestBIN8 {
		return ""
	}
	return string(c.bin[:])
}

// Last4 returns the last four digits.
func (c Card) Last4() string {
	if c.digits == 0 {
		return ""
	}
	return string(c.last[:])
}

// Brand returns the name of the brand in lower case, such as visa or
// american-express, UnknownBrand when no range contains the number.
func (c Card) Brand() string {
	if c.brand == 0 {
		return UnknownBrand
	}
	return cardBrands[c.brand-1].name
}

// CheckDigit compares the last digit with the one of the Luhn algorithm.
func (c Card) CheckDigit() Comparison {
	if c.digits == 0 {
		return Comparison{}
	}
	found, expected := digitOf(c.last[3]), digitOf(c.expected)
	return Comparison{checkDigits[found : found+1], checkDigits[expected : expected+1]}
}

// Fault returns the first rule that the number breaks, nil for none.
func (c Card) Fault() *Fault {
	switch {
	case c.zeros:
		return &Fault{FaultRepeat, "El número de tarjeta solo tiene ceros: ninguna tarjeta lo lleva, envíe el número de la tarjeta."}
	case c.brand != 0 && cardBrands[c.brand-1].lengths&(1<<c.digits) == 0:
		return &Fault{FaultLength, fmt.Sprintf(
			"Las tarjetas %s no tienen %d dígitos: revise que no falte ni sobre ninguno.", c.Brand(), c.digits)}
	}
	if c.CheckDigit().Matches() {
		return nil
	}
	return &Fault{FaultDigit, "El número de tarjeta no cumple el algoritmo de Luhn: revise que ningún dígito haya cambiado al copiar."}
}
