package checks

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is a rule of writing that a text breaks, so that no identifier can be
// read from it: Type is the validation code of the API (string_too_short,
// string_too_long, string_pattern_mismatch, value_error), Rule names what was
// expected, in Spanish, with the remedy. Rule may quote the text, never that of
// a card; it is plain text, not escaped for HTML.
type Problem struct {
	Type string
	Rule string
}

func (p *Problem) Error() string { return p.Rule }

const (
	stringTooShort        = "string_too_short"
	stringTooLong         = "string_too_long"
	stringPatternMismatch = "string_pattern_mismatch"
	valueError            = "value_error"
)

// Fault is a rule that a well-written identifier breaks: a fact to answer, not
// a reason to refuse the question. Code is one of the constants below, Rule
// says what is wrong and what to do, in Spanish.
type Fault struct {
	Code string
	Rule string
}

// The codes of a Fault.
const (
	FaultDigit  = "digito_verificador"   // the check digit is not the one that the algorithm gives
	FaultLength = "longitud_de_marca"    // no card of the brand has this length
	FaultRepeat = "caracteres_repetidos" // a filler, such as a number of zeros alone
	FaultSerie  = "serie"                // Serie does not follow from the UUID
	FaultNumero = "numero"               // Numero does not follow from the UUID

	FaultStructure     = "estructura"   // a FEL document lacks or repeats something
	FaultDate          = "fecha"        // a day or an hour that does not exist
	FaultIssuer        = "nit_emisor"   // the NIT of the issuer of a FEL document is none
	FaultReceiver      = "nit_receptor" // the id of its receiver is none
	FaultAuthorization = "autorizacion" // its authorization is no UUID with Serie and Numero
)

// Comparison sets what an identifier carries beside what its algorithm gives.
type Comparison struct {
	Found, Expected string
}

// Matches reports whether both are the same.
func (c Comparison) Matches() bool { return c.Found == c.Expected }

// fault says that the check digit of an identifier, named with its article, is
// another; nil if it matches.
func (c Comparison) fault(name string) *Fault {
	if c.Matches() {
		return nil
	}
	which := "el dígito verificador es"
	if len(c.Expected) > 1 {
		which = "los dígitos verificadores son"
	}
	return &Fault{FaultDigit, fmt.Sprintf(
		"%s termina en %s y según su algoritmo %s %s: revise que ningún carácter haya cambiado al copiar.",
		name, c.Found, which, c.Expected)}
}

// maxInput bounds the bytes that are looked at: the longest identifier with
// its marks, each character decomposed, fits with room to spare.
const maxInput = 64

// form is how an identifier is written and what its problems call it.
type form struct {
	noun  string // after "no es": "una CLABE"
	empty string // "La CLABE está vacía"
	size  string // "lleva 18 dígitos"
	drop  string // characters removed inside, beside the blanks around
}

// What forms drop.
const (
	blanks  = " \t"
	hyphens = "-"
	marks   = "./"
)

// tooBig refuses a text that is too long to be looked at; nil if it is not.
func (f form) tooBig(in string) *Problem {
	if len(in) <= maxInput {
		return nil
	}
	return &Problem{stringTooLong, fmt.Sprintf("«%s» no es %s: ocupa %d bytes; %s.", quote(in), f.noun, len(in), f.size)}
}

// length refuses a text of fewer than shortest or more than longest characters;
// nil if it has as many as it should.
func (f form) length(s string, shortest, longest int) *Problem {
	n := utf8.RuneCountInString(s)
	kind := stringTooShort
	switch {
	case n == 0:
		return &Problem{kind, f.empty + ": " + f.size + "."}
	case n > longest:
		kind = stringTooLong
	case n >= shortest:
		return nil
	}
	unit := "caracteres"
	if n == 1 {
		unit = "carácter"
	}
	return &Problem{kind, fmt.Sprintf("«%s» no es %s: tiene %d %s; %s.", quote(s), f.noun, n, unit, f.size)}
}

func (f form) mismatch(s, format string, args ...any) *Problem {
	return &Problem{stringPatternMismatch, fmt.Sprintf("«%s» no es %s: ", quote(s), f.noun) + fmt.Sprintf(format, args...)}
}

// character refuses the first character of s, counted from 1, that admitted
// does not admit; want says what goes there. nil if all are admitted.
func (f form) character(s, want string, admitted func(at int, r rune) bool) *Problem {
	at := 0
	for _, r := range s {
		at++
		if !admitted(at, r) {
			return f.mismatch(s, "el carácter %d es %s; %s.", at, describe(r), want)
		}
	}
	return nil
}

// date refuses the six digits of a date, AAMMDD, that follow some letters and
// whose month or day no calendar has; nil if they may be a date.
func (f form) date(s, date string, letters int) *Problem {
	for _, r := range date {
		if r < '0' || r > '9' {
			return f.mismatch(s, "después de %d letras lleva seis dígitos, la fecha AAMMDD; tiene «%s».", letters, quote(date))
		}
	}
	if month := date[2:4]; month < "01" || month > "12" {
		return f.mismatch(s, "en la fecha AAMMDD «%s» el mes es %s; debe ser de 01 a 12.", date, month)
	}
	if day := date[4:6]; day < "01" || day > "31" {
		return f.mismatch(s, "en la fecha AAMMDD «%s» el día es %s; debe ser de 01 a 31.", date, day)
	}
	return nil
}

// describe names a character that does not belong where it stands.
func describe(r rune) string {
	switch {
	case r == utf8.RuneError:
		return "un byte que no es UTF-8"
	case r > unicode.MaxASCII && unicode.IsDigit(r):
		return "«" + string(r) + "», un dígito de otra escritura"
	}
	return "«" + quote(string(r)) + "»"
}

// maxQuoted bounds how much of a hostile input a message repeats, in characters.
const maxQuoted = 20

// quote makes text safe to repeat in a message or a log line: at most maxQuoted
// characters, those that do not print (controls, bidirectional marks) escaped
// and invalid bytes shown as U+FFFD.
func quote(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n == maxQuoted {
			b.WriteString("…")
			break
		}
		n++
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}
