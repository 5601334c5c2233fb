package query

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/snapshots"
)

// listing describes a list of the SAT with one row for each procedure against a
// taxpayer, which goes through stages: the lists under articles 69-B and 69-B
// Bis of the Código Fiscal de la Federación. What is asked about an RFC is asked
// of both in the same way.
type listing struct {
	schema            *snapshots.Schema
	nombre, situacion int     // columns
	stages            []stage // in their legal order; every procedure begins with the first
	titles            []title // in canonical order
}

// stage is a stage of the procedure with the columns that date it.
type stage struct {
	situacion string
	oficioSAT int // the oficio; the column after it holds its publication date
	oficioDOF int
}

// title is an official title as a JSON name, with its column.
type title struct {
	name   []byte
	column int
}

func newListing(schema snapshots.Schema, nombre, situacion int, stages []stage) *listing {
	l := &listing{schema: &schema, nombre: nombre, situacion: situacion, stages: stages}
	for i, c := range schema.Columns {
		l.titles = append(l.titles, title{append(canon.AppendString(nil, c.Name), ':'), i})
	}
	// All titles lie in the Basic Multilingual Plane, where the order of UTF-8
	// bytes is the order of UTF-16 code units that RFC 8785 asks for.
	sort.Slice(l.titles, func(i, j int) bool {
		return schema.Columns[l.titles[i].column].Name < schema.Columns[l.titles[j].column].Name
	})
	return l
}

// find is Source.Find in the rows of some version.
type find func(lookup string, fn func(snapshots.Row) error) error

// append appends the block of a list that is loaded. of is what the edition table
// tells of the RFC in this source; fuente is the member of that name; past, when it
// is a date, asks for the member en_fecha too. It tells the block's state and the
// situation of its first item.
func (l *listing) append(dst []byte, list *snapshots.Source, of index.Rows, rfc string, fuente []byte, past civil.Date) (_ []byte, state, situacion string, err error) {
	var rows []snapshots.Row
	var history []snapshots.Past
	if of.N > 0 {
		if rows, err = l.rows(list.Find, rfc); err != nil {
			return dst, "", "", err
		}
	}
	if of.Past {
		if history, err = l.history(list, rfc); err != nil {
			return dst, "", "", err
		}
	} else {
		history = unchanged(rows)
	}
	if state = estado(len(rows) > 0); len(rows) > 0 {
		situacion = rows[0].Norm[l.situacion]
	}
	chain := list.Chain()
	dst = append(dst, '{')
	if !past.IsZero() {
		dst = append(dst, `"en_fecha":`...)
		if dst, err = l.appendEnFecha(dst, list, rfc, rows, history, past); err != nil {
			return dst, "", "", err
		}
		dst = append(dst, ',')
	}
	dst = appendEstado(dst, len(rows) > 0)
	dst = append(dst, `,"fuente":`...)
	if past.IsZero() {
		dst = append(dst, fuente...)
	} else {
		dst = appendFuenteEnFecha(dst, l.schema.Source, &chain[len(chain)-1])
	}
	dst = append(dst, `,"historial_eventos":[`...)
	for i, e := range l.events(chain, history, rows) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.appendEvent(dst, &e)
	}
	dst = append(dst, `],`...)
	dst = l.appendSituaciones(dst, rows)
	return append(dst, '}'), state, situacion, nil
}

func appendEstado(dst []byte, match bool) []byte {
	dst = append(dst, `"estado":"`...)
	dst = append(dst, estado(match)...)
	return append(dst, '"')
}

// estado is the state of a source that was asked.
func estado(match bool) string {
	if match {
		return coincidencia
	}
	return sinCoincidencia
}

// rows returns the rows of an RFC, the procedure with the latest stage first: an
// RFC may win one case and be listed again in a new one.
func (l *listing) rows(in find, rfc string) ([]snapshots.Row, error) {
	var rows []snapshots.Row
	err := in(rfc, func(r snapshots.Row) error {
		if err := cmp.Or(l.fits(r.Norm), l.fits(r.Raw)); err != nil {
			return err
		}
		rows = append(rows, r)
		return nil
	})
	slices.SortStableFunc(rows, func(a, b snapshots.Row) int {
		return cmp.Compare(l.latestDate(&b), l.latestDate(&a))
	})
	return rows, err
}

// history returns what became of each row of an RFC in the versions of the list.
func (l *listing) history(list *snapshots.Source, rfc string) (history []snapshots.Past, err error) {
	err = list.Past(rfc, func(p snapshots.Past) error {
		for _, e := range p.Events {
			if e.Kind == snapshots.Removed {
				if err := l.fits(e.Before); err != nil {
					return err
				}
			}
		}
		history = append(history, p)
		return nil
	})
	return history, err
}

// unchanged is the history of rows that were there from the first version on and
// did not change, in key order.
func unchanged(rows []snapshots.Row) []snapshots.Past {
	history := make([]snapshots.Past, len(rows))
	for i := range rows {
		history[i] = snapshots.Past{ID: rows[i].ID, Ordinal: rows[i].Ordinal, Present: true}
	}
	slices.SortFunc(history, func(a, b snapshots.Past) int {
		return cmp.Or(slices.Compare(a.ID, b.ID), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return history
}

// fits refuses cells that are not those of this list.
func (l *listing) fits(cells []string) error {
	if n := len(l.schema.Columns); len(cells) != n {
		return fmt.Errorf("query: %s: una versión tiene %d columnas; este motor lee %d", l.schema.Source, len(cells), n)
	}
	return nil
}

// latestDate returns the latest day of any stage, "" when none is dated.
func (l *listing) latestDate(r *snapshots.Row) string {
	latest := ""
	for _, stage := range l.stages {
		for _, column := range [...]int{stage.oficioSAT + 1, stage.oficioDOF + 1} {
			for _, d := range dates(r.Norm[column]) {
				latest = max(latest, d)
			}
		}
	}
	return latest
}

func (l *listing) appendSituaciones(dst []byte, rows []snapshots.Row) []byte {
	dst = append(dst, `"situaciones":[`...)
	for i := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.appendSituacion(dst, &rows[i])
	}
	return append(dst, ']')
}

// appendSituacion appends one item of situaciones[].
func (l *listing) appendSituacion(dst []byte, r *snapshots.Row) []byte {
	name, note := l.name(r)
	dst = append(dst, '{')
	if note != "" {
		dst = append(dst, `"anotacion":`...)
		dst = canon.AppendString(dst, note)
		dst = append(dst, ',')
	}
	dst = append(dst, `"detalle":{`...)
	for i, t := range l.titles {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, t.name...)
		dst = canon.AppendString(dst, r.Raw[t.column])
	}
	dst = append(dst, `},"nombre":`...)
	dst = canon.AppendString(dst, name)
	dst = append(dst, `,"situacion":`...)
	dst = canon.AppendString(dst, r.Norm[l.situacion])
	return append(dst, '}')
}

// name returns the name of a row. The authority writes notes into it behind
// `//`; the name is what stands before.
func (l *listing) name(r *snapshots.Row) (name, note string) {
	name, note, _ = strings.Cut(r.Norm[l.nombre], "//")
	return strings.TrimSpace(name), strings.TrimSpace(note)
}

// dates returns the days in a normalised date cell; what is no day is left out,
// however much it looks like one.
func dates(cell string) []string {
	return slices.DeleteFunc(strings.Fields(cell), func(f string) bool {
		_, err := civil.Parse(f)
		return err != nil
	})
}

// oficioOf returns the oficio that belongs to the i-th of so many dates: cells
// list both in the same order, when they list as many.
func oficioOf(cell string, i, dates int) string {
	if oficios := strings.Split(cell, " // "); len(oficios) == dates {
		return oficios[i]
	}
	return ""
}
