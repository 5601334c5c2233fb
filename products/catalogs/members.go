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

// source is the version that answers are given from, written once.
type source struct {
	json  []byte // the value of fuente
	basis string // what a movement says of it
}

// sourceOf describes a version; more writes further members of fuente.
func sourceOf(v *catalog.Version, more func(*members)) source {
	m := members("{")
	m.text("id", v.ID)
	m.text("nombre", v.Source)
	m.known("url", v.URL)
	m.known("obtenida_de", v.Retrieved)
	m.day("version", v.Date)
	m.text("sha256", v.SHA256)
	m.name("registros")
	m = strconv.AppendInt(m, int64(v.Rows), 10)
	m.known("cobertura", v.Coverage)
	if more != nil {
		more(&m)
	}
	m.close()
	return source{json: m, basis: v.ID + " " + v.Date.String() + " sha256 " + v.SHA256[:12]}
}

// end writes what every answer ends with, and returns what the pipeline is told
// of a charged one.
func (s *source) end(m members, notice string) ([]byte, operation.Computed, error) {
	m.name("fuente")
	m = append(m, s.json...)
	m.text("advertencia", notice)
	return m, operation.Computed{Code: answers, Charged: true, Basis: s.basis}, nil
}
