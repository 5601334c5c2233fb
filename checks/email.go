package checks

import "strings"

// Email is a validated e-mail address: a local part of letters, digits and the
// signs of RFC 5322's atom, with single dots inside, @, and a domain of two names
// or more, all ASCII. Quoted local parts, addresses of a machine and display
// names are not accepted, so an address is written in one way only. The zero Email
// is no address.
type Email struct{ s string }

// Limits of an address (RFC 5321, 4.5.3.1, with the erratum on the whole).
const (
	maxEmail      = 254
	maxEmailLocal = 64
	maxEmailLabel = 63
)

// ReadEmail trims blanks around and writes the domain in lower case; the local
// part stays as it is, because only its own server knows whether case counts.
func ReadEmail(in string) (Email, Changes, error) {
	if len(in) > 2*maxEmail {
		return Email{}, 0, &Problem{stringTooLong, "Una dirección de correo tiene a lo más 254 caracteres."}
	}
	s := strings.Trim(in, blanks)
	at := strings.LastIndexByte(s, '@')
	switch {
	case s == "":
		return Email{}, 0, &Problem{stringTooShort, "La dirección de correo está vacía: nombre@dominio."}
	case len(s) > maxEmail:
		return Email{}, 0, &Problem{stringTooLong, "Una dirección de correo tiene a lo más 254 caracteres."}
	case at < 0:
		return Email{}, 0, badEmail(s, "le falta la arroba: nombre@dominio.")
	case !isEmailLocal(s[:at]):
		return Email{}, 0, badEmail(s, "antes de la arroba van de 1 a 64 letras sin acento, dígitos o signos como . _ + -, sin punto al principio, al final ni dos seguidos.")
	case !isDomain(s[at+1:]):
		return Email{}, 0, badEmail(s, "después de la arroba va un dominio con punto, como empresa.mx, en letras sin acento (un dominio con ñ o acentos se escribe en su forma xn--).")
	}
	var done Changes
	if len(s) != len(in) {
		done |= Blanks
	}
	if domain := strings.ToLower(s[at:]); domain != s[at:] {
		s = s[:at] + domain
		done |= Lower
	}
	return Email{s}, done, nil
}

func badEmail(s, rule string) *Problem {
	return &Problem{stringPatternMismatch, "«" + quote(s) + "» no es una dirección de correo: " + rule}
}

// isEmailLocal tests for a dot-atom (RFC 5322, 3.2.3).
func isEmailLocal(s string) bool {
	if s == "" || len(s) > maxEmailLocal {
		return false
	}
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for i := range len(atom) {
			if c := atom[i]; !isAlnumFold(c) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", rune(c)) {
				return false
			}
		}
	}
	return true
}

// isDomain tests for two labels or more (RFC 1123, 2.1), the last of which cannot
// be part of an IP address.
func isDomain(s string) bool {
	labels := 0
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxEmailLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !isAlnumFold(label[i]) && label[i] != '-' {
				return false
			}
		}
		labels++
		last = label
	}
	return labels > 1 && len(last) > 1 && last[0] > '9'
}

// isAlnumFold is isAlnum in either case.
func isAlnumFold(c byte) bool { return isAlnum(c) || c-'a' < 26 }

// String returns the address as mail is sent to it, "" for the zero Email.
func (e Email) String() string { return e.s }

// Folded returns the address in lower case: what two spellings of one mailbox have
// in common on every server that is in use.
func (e Email) Folded() string { return strings.ToLower(e.s) }

// Masked returns the address as it may be shown to who need not know it: the first
// character of the name, and the domain.
func (e Email) Masked() string {
	at := strings.LastIndexByte(e.s, '@')
	if at < 1 {
		return ""
	}
	return e.s[:1] + "***" + e.s[at:]
}
