package checks

import (
	"fmt"
	"strconv"
	"strings"
)

// Guatemala: the NIT, and the relation between the parts of the authorisation
// of an electronic tax document (FEL). The document itself is read in fel.go.

// NIT is a validated Guatemalan tax id, without hyphens or zeros at the left. The
// zero NIT is no NIT.
type NIT struct{ s string }

// longestNIT is the length of the longest that is in use: those of the test
// issuers of FEL.
const longestNIT = 12

var nitForm = form{
	noun:  "un NIT",
	empty: "El NIT está vacío",
	size:  "lleva de 2 a 12 caracteres, el último el dígito verificador",
	drop:  blanks + hyphens,
}

// ReadNIT normalises (trim, upper case, ASCII blanks, hyphens and zeros at the
// left removed) and validates length and alphabet. A wrong check digit is a
// Fault. CF, the final consumer of a DTE, is no NIT.
func ReadNIT(in string) (NIT, Changes, error) {
	if isNIT(in) && in[0] != '0' {
		return NIT{in}, 0, nil
	}
	if p := nitForm.tooBig(in); p != nil {
		return NIT{}, 0, p
	}
	written, changes := clean(in, nitForm.drop)
	s := strings.TrimLeft(written, "0")
	if s != written {
		changes |= Zeros
	}
	switch {
	case isNIT(s):
		return NIT{s}, changes, nil
	case s == "CF":
		return NIT{}, 0, nitForm.mismatch(s, "CF es consumidor final; envíe el NIT de un contribuyente.")
	case s == "" && written != "":
		return NIT{}, 0, &Problem{stringTooShort, "El NIT solo tiene ceros: " + nitForm.size + "."}
	}
	if p := nitForm.length(s, 2, longestNIT); p != nil {
		return NIT{}, 0, p
	}
	last := len([]rune(s))
	return NIT{}, 0, nitForm.character(s, "lleva dígitos del 0 al 9, y en el último lugar un dígito o K", func(at int, r rune) bool {
		return digitRune(at, r) || r == 'K' && at == last
	})
}

func isNIT(s string) bool {
	if len(s) < 2 || len(s) > longestNIT {
		return false
	}
	last := s[len(s)-1]
	return allDigits(s[:len(s)-1]) && (isDigit(last) || last == 'K')
}

// String returns the NIT without hyphens, "" for the zero NIT.
func (n NIT) String() string { return n.s }

// CheckDigit compares the last character with the one of the algorithm, modulo
// 11 with weights 2, 3, 4… from the right: 0 to 9 or K, which stands for ten.
func (n NIT) CheckDigit() Comparison {
	if n.s == "" {
		return Comparison{}
	}
	last := len(n.s) - 1
	sum := 0
	for i := range last {
		sum += digitOf(n.s[i]) * (last - i + 1)
	}
	d := (11 - sum%11) % 11
	const values = checkDigits + "K"
	return Comparison{n.s[last:], values[d : d+1]}
}

// Fault returns what makes the NIT invalid, nil for nothing.
func (n NIT) Fault() *Fault { return n.CheckDigit().fault("El NIT") }

// Autorizacion is the NumeroAutorizacion of a certified DTE: a UUID and, drawn
// from it, Serie and Numero. The zero Autorizacion is none.
type Autorizacion struct {
	uuid, serie string
	numero      uint32
}

// seriePruebas is the Serie of documents that a certifier issued in its test
// environment.
const seriePruebas = "PRUEBAS"

const (
	charsUUID  = 36
	charsSerie = 8
)

var (
	uuidForm = form{
		noun:  "un UUID",
		empty: "El número de autorización está vacío",
		size:  "lleva un UUID de 36 caracteres con guiones",
	}
	serieForm = form{
		noun:  "una Serie",
		empty: "La Serie está vacía",
		size:  "lleva 8 dígitos hexadecimales, o PRUEBAS",
	}
	numeroForm = form{
		noun:  "un Numero",
		empty: "El Numero está vacío",
		size:  "lleva de 1 a 10 dígitos, hasta 4294967295",
	}
)

// ReadAutorizacion reads the text of NumeroAutorizacion and its attributes Serie
// and Numero. It normalises (trim, upper case, zeros at the left of Numero) and
// validates length and alphabet of each. A Serie or a Numero that does not follow
// from the UUID is a Fault.
func ReadAutorizacion(uuid, serie, numero string) (Autorizacion, Changes, error) {
	u, changes, err := readPart(uuid, uuidForm, isUUID, charsUUID, charsUUID,
		"lleva dígitos hexadecimales en grupos de 8, 4, 4, 4 y 12, separados con guiones",
		func(at int, r rune) bool { return r < 0x80 && uuidAdmits(at-1, byte(r)) })
	if err != nil {
		return Autorizacion{}, 0, err
	}
	s, more, err := readPart(serie, serieForm, isSerie, charsSerie, charsSerie,
		serieForm.size, func(_ int, r rune) bool { return r < 0x80 && isHex(byte(r)) })
	if err != nil {
		return Autorizacion{}, 0, err
	}
	changes |= more
	n, more, err := readPart(numero, numeroForm, isNumero, 1, 10, "lleva solo dígitos del 0 al 9", digitRune)
	if err != nil {
		return Autorizacion{}, 0, err
	}
	changes |= more
	value, err := strconv.ParseUint(n, 10, 32)
	if err != nil {
		return Autorizacion{}, 0, &Problem{valueError, fmt.Sprintf("«%s» no es un Numero: es mayor que 4294967295.", n)}
	}
	if len(n) > 1 && n[0] == '0' {
		changes |= Zeros
	}
	return Autorizacion{u, s, uint32(value)}, changes, nil
}

// readPart reads one part: written says whether a text is in normal form, the
// rest explains one that is not.
func readPart(in string, f form, written func(string) bool, shortest, longest int, want string, admitted func(int, rune) bool) (string, Changes, error) {
	if written(in) {
		return in, 0, nil
	}
	if p := f.tooBig(in); p != nil {
		return "", 0, p
	}
	s, changes := clean(in, f.drop)
	if written(s) {
		return s, changes, nil
	}
	if p := f.length(s, shortest, longest); p != nil {
		return "", 0, p
	}
	return "", 0, f.character(s, want, admitted)
}

func isUUID(s string) bool {
	if len(s) != charsUUID {
		return false
	}
	for i := range len(s) {
		if !uuidAdmits(i, s[i]) {
			return false
		}
	}
	return true
}

func uuidAdmits(i int, c byte) bool {
	if i == 8 || i == 13 || i == 18 || i == 23 {
		return c == '-'
	}
	return isHex(c)
}

func isSerie(s string) bool {
	if s == seriePruebas {
		return true
	}
	if len(s) != charsSerie {
		return false
	}
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isNumero(s string) bool { return len(s) >= 1 && len(s) <= 10 && allDigits(s) }

// isHex knows upper case only.
func isHex(c byte) bool { return isDigit(c) || c-'A' < 6 }

// String returns the UUID in upper case, "" for the zero Autorizacion.
func (a Autorizacion) String() string { return a.uuid }

// Test reports whether the document is of a test environment: Serie is PRUEBAS.
func (a Autorizacion) Test() bool { return a.serie == seriePruebas }

// Serie compares Serie with the first group of the UUID. They differ, without a
// fault, in a test document.
func (a Autorizacion) Serie() Comparison {
	if a.uuid == "" {
		return Comparison{}
	}
	return Comparison{a.serie, a.uuid[:charsSerie]}
}

// Numero compares Numero, without zeros at the left, with the value of the second
// and third groups of the UUID.
func (a Autorizacion) Numero() Comparison {
	if a.uuid == "" {
		return Comparison{}
	}
	return Comparison{strconv.FormatUint(uint64(a.numero), 10), strconv.FormatUint(uint64(a.expectedNumero()), 10)}
}

func (a Autorizacion) expectedNumero() uint32 {
	n := uint32(0)
	for _, c := range []byte(a.uuid[9:18]) {
		if c != '-' {
			n = n<<4 | uint32(alnumOf[c])
		}
	}
	return n
}

// Fault returns the first relation that does not hold, nil if both do.
func (a Autorizacion) Fault() *Fault {
	switch {
	case a.uuid == "":
		return nil
	case !a.Test() && !a.Serie().Matches():
		return &Fault{FaultSerie, fmt.Sprintf(
			"La Serie es %s y el UUID empieza con %s: no son del mismo documento, pida el XML certificado al emisor.", a.serie, a.uuid[:charsSerie])}
	case a.numero != a.expectedNumero():
		return &Fault{FaultNumero, fmt.Sprintf(
			"El Numero es %d y el que corresponde al UUID es %d: no son del mismo documento, pida el XML certificado al emisor.", a.numero, a.expectedNumero())}
	}
	return nil
}
