package query

import (
	"fmt"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/snapshots"
)

// A question about an earlier day D (?en_fecha=) has three answers, and each
// names the version that it is from:
//
//   - version_en_fecha: what the newest version of D says;
//   - efectiva: what was in effect on D by the official dates in the rows of the
//     newest version of today;
//   - conocida: what this service answered from at the end of D.
//
// The first two follow from input and edition and are part of the registro. The
// third depends on the installation: it stands in the acta.

// sinVersion is the state of a source on a day before its first version.
const sinVersion = "SIN_VERSION_EN_LA_FECHA"

// AsOf is a Question that may be about an earlier day.
type AsOf interface {
	Question
	// EnFecha is the day asked about, the zero date when that is the day of asking.
	EnFecha() civil.Date
	// Sources lists whose answers of that day AppendServed can tell, ascending.
	Sources() []string
	// AppendServed appends in canonical JSON what a version of one of Sources
	// answers, as this installation served it: an item of the acta's conocida.
	AppendServed(dst []byte, s *Served) ([]byte, error)
}

// Served is a version as this installation served it. Only Find is evidence; the
// rest is what the catalogue of the installation says.
type Served struct {
	Edition   int    // number of the edition
	SHA256    string // its edicion_sha256
	Published string // RFC 3339: when it was published
	Entry     *snapshots.EditionEntry
	Version   *snapshots.Version
	Find      func(lookup string, fn func(snapshots.Row) error) error
}

// AppendConocida appends the acta's member conocida: by source, what served
// returns, or null where it returns nil.
func AppendConocida(dst []byte, q AsOf, served func(source string) (*Served, error)) ([]byte, error) {
	dst = append(dst, '{')
	for i, source := range q.Sources() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(canon.AppendString(dst, source), ':')
		s, err := served(source)
		if err == nil && s == nil {
			dst = append(dst, "null"...)
		} else if err == nil {
			dst, err = q.AppendServed(dst, s)
		}
		if err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

var firstDay = civil.Date{Year: 1900, Month: 1, Day: 1}

// ParseEnFecha reads the day of a question about an earlier one. That it is not
// to come is for whoever knows today.
func ParseEnFecha(text string) (civil.Date, error) {
	d, err := civil.Parse(text)
	if err != nil {
		return d, err
	}
	if d.Before(firstDay) {
		return civil.Date{}, fmt.Errorf("%s es anterior a %s", d, firstDay)
	}
	return d, nil
}

// appendEnFecha appends the member en_fecha of a block: what can be said of day
// d, from the source's newest rows of the RFC, their history, and its version of
// d.
func (l *listing) appendEnFecha(dst []byte, list *snapshots.Source, rfc string, rows []snapshots.Row, history []snapshots.Past, d civil.Date) ([]byte, error) {
	chain := list.Chain()
	dst = append(dst, `{"efectiva":`...)
	dst = l.appendEfectiva(dst, rows, chain, history, d)
	dst = append(dst, `,"version_en_fecha":{`...)
	if at, ok := list.VersionAt(d); ok {
		then, err := l.rows(func(lookup string, fn func(snapshots.Row) error) error { return list.FindAt(at, lookup, fn) }, rfc)
		if err != nil {
			return dst, err
		}
		dst = appendEstado(dst, len(then) > 0)
		dst = append(dst, `,"fuente":`...)
		dst = appendFuenteEnFecha(dst, l.schema.Source, &chain[at])
		dst = append(dst, `,"primera_version":"`...)
		dst = firstOf(chain).AppendTo(dst)
		dst = append(dst, `",`...)
		dst = l.appendSituaciones(dst, then)
	} else {
		dst = append(dst, `"estado":"`+sinVersion+`","fuente":null,"primera_version":"`...)
		dst = firstOf(chain).AppendTo(dst)
		dst = append(dst, `","situaciones":[]`...)
	}
	return append(dst, `}}`...), nil
}

// firstOf returns the earliest day of which a chain has a version.
func firstOf(chain []snapshots.ChainVersion) civil.Date {
	first := chain[0].OrderDate
	for _, v := range chain[1:] {
		if v.OrderDate.Before(first) {
			first = v.OrderDate
		}
	}
	return first
}

// maxServed bounds what a source has of conocida: that of all of them has to fit
// into an acta.
const maxServed = 16 << 10

// appendServed appends what a version answers about an RFC, with everything that
// this installation knows of that version. Rows beyond maxServed are counted.
func (l *listing) appendServed(dst []byte, s *Served, rfc string) ([]byte, error) {
	rows, err := l.rows(s.Find, rfc)
	if err != nil {
		return dst, err
	}
	v, start := s.Version, len(dst)
	dst = append(dst, `{"edicion":`...)
	dst = appendInt(dst, s.Edition)
	dst = append(dst, `,"edicion_sha256":`...)
	dst = canon.AppendString(dst, s.SHA256)
	dst = append(dst, ',')
	dst = appendEstado(dst, len(rows) > 0)
	dst = append(dst, `,"fuente":{"corte":`...)
	dst = appendDay(dst, v.Corte)
	dst = append(dst, `,"descargada":`...)
	dst = canon.AppendString(dst, v.Downloaded)
	dst = append(dst, `,"fecha_de_orden":`...)
	dst = appendDay(dst, v.OrderDate)
	dst = append(dst, `,"id":`...)
	dst = canon.AppendString(dst, v.Source)
	dst = append(dst, `,"obtenida_de":`...)
	dst = canon.AppendString(dst, v.Obtained)
	dst = append(dst, `,"publicada_en_reset":`...)
	dst = canon.AppendString(dst, s.Entry.PublishedReset)
	dst = append(dst, `,"registros_en_version":`...)
	dst = appendInt(dst, v.Rows)
	dst = append(dst, `,"sha256":`...)
	dst = canon.AppendString(dst, v.SHA256)
	dst = append(dst, `,"source_version_id":`...)
	dst = appendInt(dst, v.ID)
	dst = append(dst, `,"ultima_modificacion_servidor":`...)
	if v.Published != "" {
		dst = canon.AppendString(dst, v.Published)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"url":`...)
	dst = canon.AppendString(dst, v.URL)
	dst = append(dst, `},"publicada":`...)
	dst = canon.AppendString(dst, s.Published)
	dst = append(dst, `,"situaciones":[`...)
	told := 0
	for end := len(dst); told < len(rows); end = len(dst) {
		if told > 0 {
			dst = append(dst, ',')
		}
		dst = l.appendSituacion(dst, &rows[told])
		if len(dst)-start > maxServed {
			dst = dst[:end]
			break
		}
		told++
	}
	dst = append(dst, ']')
	if told < len(rows) {
		dst = append(dst, `,"situaciones_omitidas":`...)
		dst = appendInt(dst, len(rows)-told)
	}
	return append(dst, '}'), nil
}
