package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/snapshots"
)

const motorCompany = "COMPANY/4"

// Company asks what the official lists say about one RFC.
type Company struct {
	RFC checks.RFC
	// Sanciones asks the directory of sanctioned suppliers too
	// (?sancionados=false leaves it out, and its block is null).
	Sanciones bool
	// Past, when it is a date, asks what can be said of that earlier day too
	// (?en_fecha=).
	Past civil.Date
}

var _ AsOf = Company{}

// What every answer repeats. It is short, because every answer is hashed. Blocks
// of sources that are not loaded say so and claim nothing: null is not zero, and
// not loaded is not "no match".
const (
	advertenciaCompany = "Hechos publicados; no es una calificación crediticia. No aparecer no es una aprobación."

	listaNoCargada = `{"estado":"` + noCargada + `","fuente":null,"historial_eventos":[],"situaciones":[]}`
)

// Motor implements Question.
func (Company) Motor() string { return motorCompany }

// AppendEntrada implements Question.
func (c Company) AppendEntrada(dst []byte) []byte {
	dst = append(dst, '{')
	if !c.Past.IsZero() {
		dst = append(dst, `"en_fecha":`...)
		dst = appendDay(dst, c.Past)
		dst = append(dst, ',')
	}
	dst = append(dst, `"rfc":`...)
	dst = canon.AppendString(dst, c.RFC.String())
	dst = append(dst, `,"sancionados":`...)
	dst = strconv.AppendBool(dst, c.Sanciones)
	return append(dst, '}')
}

func parseCompany(entrada []byte) (Question, error) {
	var in struct {
		EnFecha   *string `json:"en_fecha"`
		RFC       *string `json:"rfc"`
		Sanciones *bool   `json:"sancionados"`
	}
	dec := json.NewDecoder(bytes.NewReader(entrada))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	if in.RFC == nil || in.Sanciones == nil {
		return nil, errors.New("faltan rfc o sancionados")
	}
	rfc, err := checks.ParseRFC(*in.RFC)
	if err != nil {
		return nil, err
	}
	c := Company{RFC: rfc, Sanciones: *in.Sanciones}
	if in.EnFecha != nil {
		if c.Past, err = ParseEnFecha(*in.EnFecha); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// EnFecha implements AsOf.
func (c Company) EnFecha() civil.Date { return c.Past }

// Sources implements AsOf.
func (Company) Sources() []string { return []string{Sat69B.Source, Sat69BBis.Source} }

// AppendServed implements AsOf.
func (c Company) AppendServed(dst []byte, s *Served) ([]byte, error) {
	for _, l := range [...]*listing{lista69B, lista69BBis} {
		if l.schema.Source == s.Entry.Source {
			return l.appendServed(dst, s, c.RFC.String())
		}
	}
	return dst, fmt.Errorf("query: %s no consulta %s", motorCompany, s.Entry.Source)
}

// Chargeable implements Question.
func (Company) Chargeable(ed *snapshots.Edition) bool { return ed.Source(Sat69B.Source) != nil }

// AppendResultado implements Question. The answer is charged iff the 69-B list
// was consulted. A clean RFC costs one probe of the edition table and no
// allocation beyond dst.
func (c Company) AppendResultado(dst []byte, fecha civil.Date, ed *snapshots.Edition) ([]byte, Outcome, error) {
	mentions := ed.Classify(c.RFC.Key())
	in := loadedIn(ed)
	texts := in.on(fecha)
	out := Outcome{Code: noDisponible, Consulted: in.lists, EnFecha: c.Past}
	var brief CompanyBrief
	if in.sat69B != nil {
		out.Code, out.Charged = "COMPANY_OK", true
	}
	if c.Sanciones {
		out.Consulted.AddAll(&in.sanctionsWithRFC)
	}
	if !c.Past.IsZero() {
		out.InPast = out.Consulted
	}
	if c.Sanciones {
		out.Consulted.AddAll(&in.sanctionsWithoutRFC)
	}
	out.Consulted.AddAll(&in.contracts)

	dst = append(dst, `{"advertencia":"`+advertenciaCompany+`","contratacion_publica":`...)
	dst, err := in.appendContratacion(dst, mentions, c.RFC, &texts.contracts, &brief)
	if err != nil {
		return dst, out, err
	}
	if !c.Past.IsZero() {
		dst = append(dst, `,"en_fecha":`...)
		dst = appendDay(dst, c.Past)
	}
	dst = append(dst, `,"proveedores_sancionados":`...)
	if !c.Sanciones {
		dst = append(dst, "null"...)
	} else if dst, err = c.appendSanciones(dst, &in.sanctions, mentions, fecha, &texts.sanctions, &brief); err != nil {
		return dst, out, err
	}
	dst = append(dst, `,"result_code":"`...)
	dst = append(dst, out.Code...)
	dst = append(dst, `","rfc":`...)
	dst = canon.AppendString(dst, c.RFC.String())
	dst = append(dst, `,"sat_69b":`...)
	if dst, brief.Sat69B, brief.Situacion, err = c.appendList(dst, lista69B, in.sat69B, mentions, &texts.sat69B); err != nil {
		return dst, out, err
	}
	dst = append(dst, `,"sat_69b_bis":`...)
	if dst, brief.Sat69BBis, _, err = c.appendList(dst, lista69BBis, in.bis, mentions, &texts.bis); err != nil {
		return dst, out, err
	}
	dst = append(dst, `,"sat_art69":`...)
	if dst, err = c.appendArt69(dst, &in.art69, mentions, &texts.art69, &brief); err != nil {
		return dst, out, err
	}
	dst = append(dst, `,"tipo_persona":"`...)
	if c.RFC.Moral() {
		dst = append(dst, `moral"}`...)
	} else {
		dst = append(dst, `fisica"}`...)
	}
	out.Note = brief.note()
	return dst, out, nil
}

// appendList appends the block of a list, and tells its state and the first
// situation in it; list is nil when it is not loaded. texts are those of the day
// asked about.
func (c Company) appendList(dst []byte, l *listing, list *snapshots.Source, mentions index.Mentions, texts *blockTexts) (_ []byte, estado, situacion string, err error) {
	if list == nil {
		return append(dst, listaNoCargada...), noCargada, "", nil
	}
	if block, ok := texts.ofNobody(mentions); ok && c.Past.IsZero() {
		return append(dst, block...), sinCoincidencia, "", nil
	}
	return l.append(dst, list, mentions.Rows(list.Bit()), c.RFC.String(), texts.fuentes, c.Past)
}
