package catalogs

import (
	"strconv"

	"cotejo/canon"
	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/operation"
)

// members is the text of an answer as it grows, member after member.
type members []byte

// name begins a member: the value follows.
func (m *members) name(name string) {
	if n := len(*m); n > 0 && (*m)[n-1] != '{' && (*m)[n-1] != ',' {
		*m = append(*m, ',')
	}
	*m = append(canon.AppendString(*m, name), ':')
}

func (m *members) text(name, value string) {
	m.name(name)
	*m = canon.AppendString(*m, value)
}

// known writes null for what nothing states.
func (m *members) known(name, value string) {
	if value == "" {
		m.null(name)
		return
	}
	m.text(name, value)
}

func (m *members) null(name string) {
	m.name(name)
	*m = append(*m, "null"...)
}

func (m *members) flag(name string, value bool) {
	m.name(name)
	*m = strconv.AppendBool(*m, value)
}

// day writes null for no date.
func (m *members) day(name string, d civil.Date) {
	if d.IsZero() {
		m.null(name)
		return
	}
	m.name(name)
	*m = append(*m, '"')
	*m = append(d.AppendTo(*m), '"')
}

func (m *members) open(name string) {
	m.name(name)
	*m = append(*m, '{')
}

func (m *members) close() { *m = append(*m, '}') }

// standing writes whether a key is in force on a day.
func (m *members) standing(day civil.Date, s catalog.Standing) {
	m.day(asOf, day)
	if yes, known := s.Vigente(); known {
		m.flag("vigente", yes)
	} else {
		m.null("vigente")
	}
	m.text("estado", standings[s])
}

var standings = [...]string{
	catalog.Unknown: "DESCONOCIDO", catalog.NotYet: "NO_INICIADA", catalog.InForce: "VIGENTE", catalog.Ended: "TERMINADA",
}

func (m *members) validity(v catalog.Validity) {
	m.open("vigencia")
	m.day("desde", v.From)
	m.day("hasta", v.To)
	m.close()
}

// What a version is of: fuente.origen says lista_incluida, or serie_cargada.
const (
	list   = "lista"
	series = "serie"
)

// source writes fuente, the version of a list that an answer is from.
func (m *members) source(v *catalog.Version) {
	m.open("fuente")
	*m = v.AppendMembers(*m, list)
	m.close()
}

// further writes the version of a loaded source that an answer is also from, null
// for nil.
func (m *members) further(v *catalog.Version) {
	if v == nil {
		m.null("fuente_adicional")
		return
	}
	m.open("fuente_adicional")
	*m = v.AppendMembers(*m, list)
	m.close()
}

// listed ends an answer that is from one list.
func (m members) listed(v *catalog.Version, notice string) ([]byte, operation.Computed, error) {
	m.source(v)
	return m.end(notice, v.Basis)
}

// end writes what every answer ends with, and returns what the pipeline is told
// of a charged one.
func (m members) end(notice, basis string) ([]byte, operation.Computed, error) {
	m.text("advertencia", notice)
	return m, operation.Computed{Code: answers, Charged: true, Basis: basis}, nil
}
