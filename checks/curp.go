package checks

import (
	"fmt"

	"cotejo/civil"
)

// CURP is a validated population key: 18 characters, upper case, ASCII (the
// authority writes X for Ñ). The zero CURP is no CURP.
type CURP struct{ s string }

const charsCURP = 18

var curpForm = form{
	noun:  "una CURP",
	empty: "La CURP está vacía",
	size:  "lleva 18 caracteres",
	drop:  blanks + hyphens,
}

// ReadCURP normalises (trim, NFC, upper case, ASCII blanks and hyphens removed)
// and validates length, the official pattern t_CURP (sex H, M or X; the 32
// states and NE) and the calendar day, whose century the 17th character decides.
// A wrong check digit is a Fault. A day in the future is accepted: this package
// has no clock.
func ReadCURP(in string) (CURP, Changes, error) {
	if isCURP(in) {
		return CURP{in}, 0, nil
	}
	if p := curpForm.tooBig(in); p != nil {
		return CURP{}, 0, p
	}
	s, changes := clean(in, curpForm.drop)
	if !isCURP(s) {
		return CURP{}, 0, explainCURP(s)
	}
	return CURP{s}, changes, nil
}

// curpBirth is what a CURP says of the day of birth.
func curpBirth(s string) civil.Date {
	century := 2000
	if isDigit(s[16]) {
		century = 1900
	}
	return dayOf(century, s[4:10])
}

// isCURP accepts the official pattern, with a day that exists.
func isCURP(s string) bool {
	if len(s) != charsCURP || !isVowel(s[1]) || !isUpper(s[0]) || !isUpper(s[2]) || !isUpper(s[3]) || !allDigits(s[4:10]) {
		return false
	}
	if c := s[10]; c != 'H' && c != 'M' && c != 'X' {
		return false
	}
	if stateOf(s[11:13]) == "" {
		return false
	}
	return isConsonant(s[13]) && isConsonant(s[14]) && isConsonant(s[15]) && isAlnum(s[16]) && isDigit(s[17]) &&
		!curpBirth(s).IsZero()
}

func isUpper(c byte) bool { return c-'A' < 26 }

// isVowel and isConsonant both admit X, which stands for a letter that is not
// there. Outside A-Z they are false.
func isVowel(c byte) bool {
	switch c {
	case 'A', 'E', 'I', 'O', 'U', 'X':
		return true
	}
	return false
}

func isConsonant(c byte) bool { return isUpper(c) && (c == 'X' || !isVowel(c)) }

// explainCURP names the first rule that a normalised text breaks. It is called
// only for texts that isCURP refuses.
func explainCURP(s string) *Problem {
	if p := curpForm.length(s, charsCURP, charsCURP); p != nil {
		return p
	}
	if p := curpForm.character(s, "lleva solo letras A-Z, con X en lugar de Ñ, y dígitos del 0 al 9", func(_ int, r rune) bool {
		return r < 0x80 && isAlnum(byte(r))
	}); p != nil {
		return p
	}
	for i := range 4 {
		if !isUpper(s[i]) {
			return curpForm.mismatch(s, "debe empezar con cuatro letras; empieza con «%s».", s[:4])
		}
	}
	if !isVowel(s[1]) {
		return curpForm.mismatch(s, "la segunda letra es una vocal o X; es %s.", describe(rune(s[1])))
	}
	date := s[4:10]
	if p := curpForm.date(s, date, 4); p != nil {
		return p
	}
	if c := s[10]; c != 'H' && c != 'M' && c != 'X' {
		return curpForm.mismatch(s, "el carácter 11, el sexo, es H, M o X; es %s.", describe(rune(c)))
	}
	if state := s[11:13]; stateOf(state) == "" {
		return curpForm.mismatch(s, "los caracteres 12 y 13 son la clave de la entidad de nacimiento, como DF o NL, o NE en el extranjero; «%s» no es ninguna.", state)
	}
	for i, c := range s[13:16] {
		if !isConsonant(byte(c)) {
			return curpForm.mismatch(s, "los caracteres 14 a 16 son consonantes o X; el %d es %s.", 14+i, describe(c))
		}
	}
	if !isDigit(s[17]) {
		return curpForm.mismatch(s, "el último carácter, el dígito verificador, es del 0 al 9; es %s.", describe(rune(s[17])))
	}
	century, of := "20", "una letra"
	if isDigit(s[16]) {
		century, of = "19", "un dígito"
	}
	return &Problem{valueError, fmt.Sprintf(
		"«%s» no es una CURP: el día %s del mes %s no existe en %s%s, el año que indica %s en el carácter 17; revise la fecha AAMMDD «%s».",
		quote(s), date[4:6], date[2:4], century, date[:2], of, date)}
}

// String returns the CURP in normal form, "" for the zero CURP.
func (c CURP) String() string { return c.s }

// Birth returns the day of birth, the zero date for the zero CURP.
func (c CURP) Birth() civil.Date {
	if c.s == "" {
		return civil.Date{}
	}
	return curpBirth(c.s)
}

// Sex returns H (hombre), M (mujer) or X (no binario).
func (c CURP) Sex() string { return c.part(10, 11) }

// State returns the two letters of the state of birth, NE for abroad.
func (c CURP) State() string { return c.part(11, 13) }

// StateName returns the name of State, "Nacido en el extranjero" for NE.
func (c CURP) StateName() string { return stateOf(c.State()) }

// Homoclave returns the character that tells namesakes apart: a digit for who
// was born before 2000, a letter for who was born since.
func (c CURP) Homoclave() string { return c.part(16, 17) }

// Word returns the improper word that the first four letters form, "" for none.
// The authority avoids them, but not always did.
func (c CURP) Word() string { return wordIn(curpWords, c.s) }

// CheckDigit compares the last digit with the one that the algorithm gives.
func (c CURP) CheckDigit() Comparison {
	if c.s == "" {
		return Comparison{}
	}
	sum := 0
	for i := range charsCURP - 1 {
		value := int(alnumOf[c.s[i]])
		if c.s[i] > 'N' {
			value++ // 24 is kept for Ñ
		}
		sum += value * (charsCURP - i)
	}
	d := (10 - sum%10) % 10
	return Comparison{c.s[17:], checkDigits[d : d+1]}
}

// Fault returns what makes the CURP invalid, nil for nothing.
func (c CURP) Fault() *Fault { return c.CheckDigit().fault("La CURP") }

func (c CURP) part(from, to int) string {
	if c.s == "" {
		return ""
	}
	return c.s[from:to]
}

// stateOf returns the name of a state's code in a CURP (anexo 20, t_CURP), ""
// for none. Mexico City is DF here, whatever it is called elsewhere.
func stateOf(code string) string {
	switch code {
	case "AS":
		return "Aguascalientes"
	case "BC":
		return "Baja California"
	case "BS":
		return "Baja California Sur"
	case "CC":
		return "Campeche"
	case "CH":
		return "Chihuahua"
	case "CL":
		return "Coahuila"
	case "CM":
		return "Colima"
	case "CS":
		return "Chiapas"
	case "DF":
		return "Ciudad de México"
	case "DG":
		return "Durango"
	case "GR":
		return "Guerrero"
	case "GT":
		return "Guanajuato"
	case "HG":
		return "Hidalgo"
	case "JC":
		return "Jalisco"
	case "MC":
		return "México"
	case "MN":
		return "Michoacán"
	case "MS":
		return "Morelos"
	case "NE":
		return "Nacido en el extranjero"
	case "NL":
		return "Nuevo León"
	case "NT":
		return "Nayarit"
	case "OC":
		return "Oaxaca"
	case "PL":
		return "Puebla"
	case "QR":
		return "Quintana Roo"
	case "QT":
		return "Querétaro"
	case "SL":
		return "Sinaloa"
	case "SP":
		return "San Luis Potosí"
	case "SR":
		return "Sonora"
	case "TC":
		return "Tabasco"
	case "TL":
		return "Tlaxcala"
	case "TS":
		return "Tamaulipas"
	case "VZ":
		return "Veracruz"
	case "YN":
		return "Yucatán"
	case "ZS":
		return "Zacatecas"
	}
	return ""
}
