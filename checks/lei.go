package checks

// LEI is a validated legal entity identifier (ISO 17442): 20 characters. The
// zero LEI is no LEI.
type LEI struct{ s string }

const charsLEI = 20

var leiForm = form{
	noun:  "un LEI",
	empty: "El LEI está vacío",
	size:  "lleva 20 caracteres, los dos últimos dígitos",
	drop:  blanks + hyphens,
}

// ReadLEI normalises (trim, upper case, ASCII blanks and hyphens removed) and
// validates length and alphabet. Wrong check digits are a Fault.
func ReadLEI(in string) (LEI, Changes, error) {
	s, changes, err := readCode(in, charsLEI, leiForm)
	return LEI{s}, changes, err
}

// String returns the twenty characters, "" for the zero LEI.
func (l LEI) String() string { return l.s }

// Issuer returns the four characters of the unit that issued the LEI.
func (l LEI) Issuer() string { return l.part(0, 4) }

// Entity returns the fourteen characters between Issuer and the check digits.
// Newer LEIs have 00 in the first two of them, older ones do not.
func (l LEI) Entity() string { return l.part(4, 18) }

// CheckDigit compares the last two digits with those of ISO/IEC 7064, MOD 97-10:
// 02 to 98. It is stricter than the remainder alone, which also admits 00, 01
// and 99, digits that no issuer computes.
func (l LEI) CheckDigit() Comparison {
	if l.s == "" {
		return Comparison{}
	}
	rest := 0
	for i := range charsLEI - 2 {
		if value := int(alnumOf[l.s[i]]); value < 10 {
			rest = (rest*10 + value) % 97
		} else {
			rest = (rest*100 + value) % 97
		}
	}
	at := 2 * (98 - rest*100%97)
	return Comparison{l.s[18:], pairs[at : at+2]}
}

// Fault returns what makes the LEI invalid, nil for nothing.
func (l LEI) Fault() *Fault { return l.CheckDigit().fault("El LEI") }

func (l LEI) part(from, to int) string {
	if l.s == "" {
		return ""
	}
	return l.s[from:to]
}
