package checks

// CNPJ is a validated tax id of a Brazilian legal entity: 14 characters, numeric
// or, since July 2026 (IN RFB 2.229/2024), with letters in root and order. The
// zero CNPJ is no CNPJ.
type CNPJ struct{ s string }

const charsCNPJ = 14

var cnpjForm = form{
	noun:  "un CNPJ",
	empty: "El CNPJ está vacío",
	size:  "lleva 14 caracteres, los dos últimos dígitos",
	drop:  blanks + hyphens + marks,
}

// ReadCNPJ normalises (trim, upper case, ASCII blanks and the marks of
// AA.AAA.AAA/AAAA-DD removed) and validates length and alphabet. Wrong check
// digits and fillers are Faults.
func ReadCNPJ(in string) (CNPJ, Changes, error) {
	s, changes, err := readCode(in, charsCNPJ, cnpjForm)
	return CNPJ{s}, changes, err
}

// String returns the fourteen characters without marks, "" for the zero CNPJ.
func (c CNPJ) String() string { return c.s }

// Masked returns the CNPJ as it is printed: 12.ABC.345/01DE-35.
func (c CNPJ) Masked() string {
	if c.s == "" {
		return ""
	}
	return c.s[:2] + "." + c.s[2:5] + "." + c.s[5:8] + "/" + c.s[8:12] + "-" + c.s[12:]
}

// Root returns the eight characters of the entity.
func (c CNPJ) Root() string { return c.part(0, 8) }

// Order returns the four characters of the establishment.
func (c CNPJ) Order() string { return c.part(8, 12) }

// Alphanumeric reports whether the CNPJ has letters.
func (c CNPJ) Alphanumeric() bool { return !allDigits(c.s) }

// CheckDigit compares the last two digits with those that the algorithm gives,
// modulo 11 over the ASCII codes less 48.
func (c CNPJ) CheckDigit() Comparison {
	if c.s == "" {
		return Comparison{}
	}
	// The weights, from the right, are 2 to 9 again and again; the second sum
	// has one character more, the first digit, so each weight is one place on.
	first, second := 0, 0
	for i := range 12 {
		value := int(c.s[i]) - '0'
		fromRight := 11 - i
		first += value * (2 + fromRight%8)
		second += value * (2 + (fromRight+1)%8)
	}
	d1 := cnpjDigit(first)
	d2 := cnpjDigit(second + 2*d1)
	at := 2 * (10*d1 + d2)
	return Comparison{c.s[12:], pairs[at : at+2]}
}

func cnpjDigit(sum int) int {
	if rest := sum % 11; rest >= 2 {
		return 11 - rest
	}
	return 0
}

// Fault returns the first rule that the CNPJ breaks, nil for none.
func (c CNPJ) Fault() *Fault {
	if c.s == "" {
		return nil
	}
	if c.s[:12] == "000000000000" || repeated(c.s) {
		return &Fault{FaultRepeat, "El CNPJ repite un solo carácter: ninguna entidad lo tiene, envíe el CNPJ de la entidad."}
	}
	return c.CheckDigit().fault("El CNPJ")
}

// repeated reports whether all bytes of s are the same.
func repeated(s string) bool {
	for i := range len(s) {
		if s[i] != s[0] {
			return false
		}
	}
	return true
}

func (c CNPJ) part(from, to int) string {
	if c.s == "" {
		return ""
	}
	return c.s[from:to]
}
