package checks

import "strings"

// UKCompany is a validated company number of Companies House: eight characters.
// It has no check digit. The zero UKCompany is none.
type UKCompany struct{ s string }

const charsUKCompany = 8

var ukForm = form{
	noun:  "un número de Companies House",
	empty: "El número de Companies House está vacío",
	size:  "lleva 8 caracteres: ocho dígitos, o un prefijo de dos letras como SC y seis dígitos",
	drop:  blanks + hyphens,
}

// ReadUKCompany normalises (trim, upper case, ASCII blanks and hyphens removed,
// zeros put before a number of digits alone) and validates length, prefix and
// the suffixes that each register uses.
func ReadUKCompany(in string) (UKCompany, Changes, error) {
	if isUKCompany(in) {
		return UKCompany{in}, 0, nil
	}
	if p := ukForm.tooBig(in); p != nil {
		return UKCompany{}, 0, p
	}
	s, changes := clean(in, ukForm.drop)
	if s != "" && len(s) < charsUKCompany && allDigits(s) {
		s = strings.Repeat("0", charsUKCompany-len(s)) + s
		changes |= Zeros
	}
	if isUKCompany(s) {
		return UKCompany{s}, changes, nil
	}
	if p := ukForm.length(s, charsUKCompany, charsUKCompany); p != nil {
		return UKCompany{}, 0, p
	}
	if p := ukForm.character(s, "lleva solo letras A-Z y dígitos del 0 al 9", func(_ int, r rune) bool {
		return r < 0x80 && isAlnum(byte(r))
	}); p != nil {
		return UKCompany{}, 0, p
	}
	switch {
	case s == "00000000":
		return UKCompany{}, 0, ukForm.mismatch(s, "los números empiezan en 00000001.")
	case ukRegisterOf(s) == nil:
		return UKCompany{}, 0, ukForm.mismatch(s, "el prefijo %s no es de ningún registro; use uno como SC, NI u OC, u ocho dígitos.", s[:2])
	}
	return UKCompany{}, 0, ukForm.mismatch(s, "«%s» no puede seguir a %s en ese registro; lleva seis dígitos.", s[2:], s[:2])
}

// String returns the eight characters, "" for the zero UKCompany.
func (c UKCompany) String() string { return c.s }

// Prefix returns the two letters of the register, "" for England and Wales,
// whose companies have digits alone.
func (c UKCompany) Prefix() string {
	if c.s == "" || allDigits(c.s[:2]) {
		return ""
	}
	return c.s[:2]
}

// Jurisdiction returns the part of the United Kingdom whose register it is, in
// Spanish, "" where the prefix does not tell.
func (c UKCompany) Jurisdiction() string {
	if c.s == "" {
		return ""
	}
	return ukRegisterOf(c.s).jurisdiction
}

// Kind returns what the register holds, in the words of Companies House, ""
// where the prefix does not tell.
func (c UKCompany) Kind() string {
	if c.s == "" {
		return ""
	}
	return ukRegisterOf(c.s).kind
}

// ukRegister is what a prefix says of a number.
type ukRegister struct{ prefix, jurisdiction, kind string }

const (
	england  = "Inglaterra y Gales"
	scotland = "Escocia"
	ulster   = "Irlanda del Norte"
)

var ukDigits = ukRegister{"", england, "company"}

// ukRegisters are the prefixes in use. Those without words are known from
// numbers alone.
var ukRegisters = [...]ukRegister{
	{"SC", scotland, "company"},
	{"NI", ulster, "company"},
	{"R0", ulster, "company"},
	{"OC", england, "limited liability partnership"},
	{"SO", scotland, "limited liability partnership"},
	{"NC", ulster, "limited liability partnership"},
	{"LP", england, "limited partnership"},
	{"SL", scotland, "limited partnership"},
	{"NL", ulster, "limited partnership"},
	{"FC", england, "overseas company"},
	{"SF", scotland, "overseas company"},
	{"NF", ulster, "overseas company"},
	{"GE", england, "European economic interest grouping"},
	{"GS", scotland, "European economic interest grouping"},
	{"GN", ulster, "European economic interest grouping"},
	{"AC", england, "assurance company"},
	{"SA", scotland, "assurance company"},
	{"NA", ulster, "assurance company"},
	{"ZC", england, "unregistered company"},
	{"SZ", scotland, "unregistered company"},
	{"NZ", ulster, "unregistered company"},
	{"RC", england, "royal charter company"},
	{"SR", scotland, "royal charter company"},
	{"NR", ulster, "royal charter company"},
	{"IP", england, "industrial and provident society"},
	{"SP", scotland, "industrial and provident society"},
	{"NP", ulster, "industrial and provident society"},
	{"IC", england, "investment company with variable capital"},
	{"SI", scotland, "investment company with variable capital"},
	{"NV", ulster, "investment company with variable capital"},
	{"CE", england, "charitable incorporated organisation"},
	{"CS", scotland, "charitable incorporated organisation"},
	{"SE", "", "European company"},
	{"RS", "", "registered society"},
	{"NO", "", ""},
	{"ES", "", ""},
	{"EN", "", ""},
	{"SG", "", ""},
	{"FE", "", ""},
	{"PC", "", ""},
}

// ukRegisterOf returns the register of a number by its first two characters, nil
// for none.
func ukRegisterOf(s string) *ukRegister {
	if allDigits(s[:2]) {
		return &ukDigits
	}
	for i := range ukRegisters {
		if ukRegisters[i].prefix == s[:2] {
			return &ukRegisters[i]
		}
	}
	return nil
}

// isUKCompany accepts six digits after the prefix, and the endings seen in the
// register's own numbers: C or R for the last digit, and those of societies and
// partnerships.
func isUKCompany(s string) bool {
	if len(s) != charsUKCompany || s == "00000000" || ukRegisterOf(s) == nil {
		return false
	}
	tail, last := s[2:], s[7]
	if allDigits(tail[:5]) && (isDigit(last) || last == 'C' || last == 'R') {
		return true
	}
	switch s[:2] {
	case "NI", "SL":
		return allDigits(tail[:5]) && last == 'A'
	case "RS", "SO":
		return allDigits(tail[:5]) && strings.IndexByte("WSZF", last) >= 0 ||
			allDigits(tail[:4]) && oneOf(tail[4:], "FI", "RS", "SA", "IP", "US", "EN", "AS") ||
			allDigits(tail[:3]) && tail[3:] == "CUS"
	case "OC":
		return digitsOrP(tail[:5]) && strings.IndexByte("CWERTB", last) >= 0 ||
			digitsOrP(tail[:4]) && oneOf(tail[4:], "OC", "CU")
	}
	return false
}

func oneOf(s string, all ...string) bool {
	for _, one := range all {
		if s == one {
			return true
		}
	}
	return false
}

func digitsOrP(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) && s[i] != 'P' {
			return false
		}
	}
	return true
}
