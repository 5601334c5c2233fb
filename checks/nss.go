package checks

// NSS is a validated social security number of the IMSS: 11 digits. The zero NSS
// is no NSS.
type NSS struct{ s string }

const digitsNSS = 11

// nssForm keeps blanks inside: where digits are copied in groups of no fixed
// size, a blank stands as often for a digit that was lost.
var nssForm = form{
	noun:  "un NSS",
	empty: "El NSS está vacío",
	size:  "lleva 11 dígitos seguidos, sin espacios",
	drop:  hyphens,
}

// ReadNSS normalises (trim, hyphens removed) and validates length and alphabet.
// A blank inside is refused. A wrong check digit is a Fault. No list of
// subdelegations is published, so none is refused.
func ReadNSS(in string) (NSS, Changes, error) {
	s, changes, err := readDigits(in, digitsNSS, nssForm)
	return NSS{s}, changes, err
}

// String returns the eleven digits, "" for the zero NSS.
func (n NSS) String() string { return n.s }

// Subdelegation returns the two digits of the office that registered the worker.
func (n NSS) Subdelegation() string { return n.part(0, 2) }

// Registered returns the last two digits of the year of registration. The number
// does not tell the century.
func (n NSS) Registered() string { return n.part(2, 4) }

// Born returns the last two digits of the year of birth. The number does not
// tell the century.
func (n NSS) Born() string { return n.part(4, 6) }

// Serial returns the four digits of the serial number.
func (n NSS) Serial() string { return n.part(6, 10) }

// Blank reports whether the number is eleven zeros, which the algorithm admits
// and no worker has: a remark to make, not a fault.
func (n NSS) Blank() bool { return n.s == "00000000000" }

// CheckDigit compares the last digit with the one of the Luhn algorithm.
func (n NSS) CheckDigit() Comparison {
	if n.s == "" {
		return Comparison{}
	}
	d := luhn(n.s[:10])
	return Comparison{n.s[10:], checkDigits[d : d+1]}
}

// Fault returns what makes the NSS invalid, nil for nothing.
func (n NSS) Fault() *Fault { return n.CheckDigit().fault("El NSS") }

func (n NSS) part(from, to int) string {
	if n.s == "" {
		return ""
	}
	return n.s[from:to]
}
