package identifiers

import (
	"strconv"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
)

// Every answer says, in this order: valido, the identifier in normal form and what
// it spells, digito_verificador, regla, observaciones, normalizaciones,
// advertencia. A fact that is not known has no member, but what a catalogue does
// not know is null.

// Codes of observaciones: what is odd about an identifier that breaks no rule.
const (
	noteGeneric = "rfc_generico"
	noteDigit   = "digito_discordante"
	noteWord    = "palabra_inconveniente"
	noteFuture  = "fecha_futura"
	noteZeros   = "solo_ceros"
)

func appendRFC(dst []byte, r reading[checks.RFC], today civil.Date) []byte {
	dst = appendHead(dst, nil)
	dst = appendText(dst, `,"rfc":`, r.id.String())
	generic, digit, word := r.id.Generic(), r.id.CheckDigit(), r.id.Word()
	dst = appendFlag(dst, `,"generico":`, generic)
	if !generic {
		person := "fisica"
		if r.id.Moral() {
			person = "moral"
		}
		dst = appendText(dst, `,"tipo_persona":`, person)
		dst = append(dst, `,"fechas_posibles":[`...)
		in1900s, in2000s := r.id.Days()
		for _, d := range [...]civil.Date{in1900s, in2000s} {
			if !d.IsZero() && !today.Before(d) {
				dst = appendDay(appendComma(dst), d)
			}
		}
		dst = append(dst, ']')
		dst = appendText(dst, `,"homoclave":`, r.id.Homoclave())
	}
	dst = appendVerdict(dst, digit, nil)
	switch {
	case generic:
		dst = appendNote(dst, noteGeneric, "Es un RFC genérico, de operaciones con el público en general (XAXX010101000) o con residentes en el extranjero (XEXX010101000): no identifica a nadie.")
	case !digit.Matches():
		dst = appendNote(dst, noteDigit, "El dígito verificador no es el del algoritmo. No invalida el RFC, porque la autoridad ha asignado RFC así; revise que ningún carácter haya cambiado al copiar.")
	}
	if word != "" {
		dst = appendNote(dst, noteWord, "Sus letras forman una palabra inconveniente, que la autoridad evita y no siempre evitó.")
	}
	return appendTail(dst, r.changes, "Un RFC bien formado puede no estar inscrito; esto no consulta al SAT.")
}

func appendCURP(dst []byte, r reading[checks.CURP], today civil.Date) []byte {
	fault := r.id.Fault()
	dst = appendHead(dst, fault)
	dst = appendText(dst, `,"curp":`, r.id.String())
	dst = append(dst, `,"fecha_nacimiento":`...)
	dst = appendDay(dst, r.id.Birth())
	dst = appendText(dst, `,"sexo":`, r.id.Sex())
	dst = appendText(dst, `,"clave_entidad":`, r.id.State())
	dst = appendText(dst, `,"entidad":`, r.id.StateName())
	dst = appendText(dst, `,"homoclave":`, r.id.Homoclave())
	dst = appendVerdict(dst, r.id.CheckDigit(), fault)
	if today.Before(r.id.Birth()) {
		dst = appendNote(dst, noteFuture, "La fecha de nacimiento todavía no llega; revise el carácter 17, que decide el siglo: un dígito es 19AA y una letra 20AA.")
	}
	if r.id.Word() != "" {
		dst = appendNote(dst, noteWord, "Sus letras forman una palabra inconveniente, que la autoridad evita y no siempre evitó.")
	}
	return appendTail(dst, r.changes, "Una CURP bien formada puede no existir; esto no consulta al RENAPO.")
}

func appendNSS(dst []byte, r reading[checks.NSS], _ civil.Date) []byte {
	fault := r.id.Fault()
	dst = appendHead(dst, fault)
	dst = appendText(dst, `,"nss":`, r.id.String())
	dst = appendText(dst, `,"subdelegacion":`, r.id.Subdelegation())
	dst = appendText(dst, `,"anio_alta":`, r.id.Registered())
	dst = appendText(dst, `,"anio_nacimiento":`, r.id.Born())
	dst = appendText(dst, `,"folio":`, r.id.Serial())
	dst = appendVerdict(dst, r.id.CheckDigit(), fault)
	if r.id.Blank() {
		dst = appendNote(dst, noteZeros, "Son once ceros: el algoritmo los admite y ningún trabajador los tiene; envíe el NSS del trabajador.")
	}
	return appendTail(dst, r.changes, "Un NSS bien formado puede no estar asignado; esto no consulta al IMSS.")
}

func appendCard(dst []byte, r reading[checks.Card]) []byte {
	fault := r.id.Fault()
	dst = appendHead(dst, fault)
	dst = appendText(dst, `,"bin":`, r.id.BIN6())
	if bin := r.id.BIN8(); bin != "" {
		dst = appendText(dst, `,"bin8":`, bin)
	}
	dst = appendText(dst, `,"ultimos4":`, r.id.Last4())
	dst = appendText(dst, `,"marca":`, r.id.Brand())
	dst = append(dst, `,"longitud":`...)
	dst = strconv.AppendInt(dst, int64(r.id.Length()), 10)
	dst = appendVerdict(dst, r.id.CheckDigit(), fault)
	return appendTail(dst, r.changes, "Un número bien formado puede no ser de ninguna tarjeta; esto no consulta al emisor ni dice si tiene fondos.")
}

func appendHead(dst []byte, fault *checks.Fault) []byte {
	return appendFlag(dst, `"valido":`, fault == nil)
}

// appendVerdict leaves the list of observations open.
func appendVerdict(dst []byte, digit checks.Comparison, fault *checks.Fault) []byte {
	dst = appendText(dst, `,"digito_verificador":{"encontrado":`, digit.Found)
	dst = appendText(dst, `,"esperado":`, digit.Expected)
	dst = appendFlag(dst, `,"coincide":`, digit.Matches())
	dst = append(dst, `},"regla":`...)
	if fault == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendRule(dst, fault.Code, fault.Rule)
	}
	return append(dst, `,"observaciones":[`...)
}

func appendNote(dst []byte, code, message string) []byte {
	return appendRule(appendComma(dst), code, message)
}

func appendRule(dst []byte, code, message string) []byte {
	dst = appendText(dst, `{"codigo":`, code)
	dst = appendText(dst, `,"mensaje":`, message)
	return append(dst, '}')
}

// appendTail closes the list of observations and appends what follows it.
func appendTail(dst []byte, changes checks.Changes, notice string) []byte {
	return appendText(appendChanges(dst, changes), `,"advertencia":`, notice)
}

// appendChanges closes the list of observations and appends that of changes.
func appendChanges(dst []byte, changes checks.Changes) []byte {
	dst = append(dst, `],"normalizaciones":[`...)
	for _, name := range changes.Names() {
		dst = canon.AppendString(appendComma(dst), name)
	}
	return append(dst, ']')
}

// appendText appends a name with what stands around it, and a text.
func appendText(dst []byte, name, value string) []byte {
	return canon.AppendString(append(dst, name...), value)
}

// appendKnown appends null for a text that nothing states.
func appendKnown(dst []byte, name, value string) []byte {
	if value == "" {
		return append(append(dst, name...), "null"...)
	}
	return appendText(dst, name, value)
}

func appendFlag(dst []byte, name string, value bool) []byte {
	return strconv.AppendBool(append(dst, name...), value)
}

// appendComma appends what stands before an item of a list: nothing before the
// first.
func appendComma(dst []byte) []byte {
	if dst[len(dst)-1] == '[' {
		return dst
	}
	return append(dst, ',')
}

func appendDay(dst []byte, d civil.Date) []byte {
	return append(d.AppendTo(append(dst, '"')), '"')
}
