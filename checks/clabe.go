package checks

// CLABE is a validated bank account number: 18 digits. That its bank or plaza
// is known is for a catalogue to say; accounts of banks that no longer exist are
// well formed. The zero CLABE is no CLABE.
type CLABE struct{ s string }

const digitsCLABE = 18

var clabeForm = form{
	noun:  "una CLABE",
	empty: "La CLABE está vacía",
	size:  "lleva 18 dígitos",
	drop:  blanks + hyphens,
}

// ReadCLABE normalises (trim, ASCII blanks and hyphens removed) and validates
// length and alphabet. A wrong check digit is a Fault.
func ReadCLABE(in string) (CLABE, Changes, error) {
	s, changes, err := readDigits(in, digitsCLABE, clabeForm)
	return CLABE{s}, changes, err
}

// String returns the eighteen digits, "" for the zero CLABE. They identify an
// account: what is kept is Last4 and a keyed hash.
func (c CLABE) String() string { return c.s }

// Bank returns the three digits of the bank.
func (c CLABE) Bank() string { return c.part(0, 3) }

// Plaza returns the three digits of the plaza, the place of the branch.
func (c CLABE) Plaza() string { return c.part(3, 6) }

// Account returns the eleven digits of the account in its bank.
func (c CLABE) Account() string { return c.part(6, 17) }

// Last4 returns the last four digits, which may be shown and kept.
func (c CLABE) Last4() string { return c.part(14, 18) }

var clabeWeights = [digitsCLABE - 1]int{3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7}

// CheckDigit compares the last digit with the one of the algorithm: weights
// 3, 7, 1 over seventeen digits, each product modulo 10.
func (c CLABE) CheckDigit() Comparison {
	if c.s == "" {
		return Comparison{}
	}
	sum := 0
	for i, weight := range clabeWeights {
		sum += digitOf(c.s[i]) * weight // that each product is taken modulo 10 changes no remainder
	}
	d := (10 - sum%10) % 10
	return Comparison{c.s[17:], checkDigits[d : d+1]}
}

// Fault returns what makes the CLABE invalid, nil for nothing.
func (c CLABE) Fault() *Fault { return c.CheckDigit().fault("La CLABE") }

func (c CLABE) part(from, to int) string {
	if c.s == "" {
		return ""
	}
	return c.s[from:to]
}
