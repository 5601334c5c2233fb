package query

import (
	"cmp"
	"slices"
	"strings"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/snapshots"
)

// States of what was in effect on a day.
const (
	conSituacion  = "CON_SITUACION"
	sinSituacion  = "SIN_SITUACION"
	indeterminada = "INDETERMINADA" // rows that do not tell, and none that does
)

// Why a row does not tell what was in effect.
const (
	sinFechas          = "SIN_FECHAS_LEGIBLES"        // no stage has a date that can be read
	etapaSinFecha      = "ETAPA_SIN_FECHA"            // a stage that may have begun by then has none
	fechasNoConcuerdan = "FECHAS_CONTRA_LA_SITUACION" // the last stage by date is not the situation that the row states
	yaNoAparece        = "YA_NO_APARECE"              // the row left the list since
)

// change is the beginning of a stage by the official dates of a row.
type change struct {
	fecha  string
	stage  int
	medium string // publicacionSAT or publicacionDOF
	oficio string
}

// effect is what a row says was in effect on a day: a change, or why it does not
// tell.
type effect struct {
	row *snapshots.Row
	change
	motivo string
}

// timeline returns the changes of a row in order of date, and as bits the stages
// that it has without a date (undated) and those that may have begun before
// their first date (early). A stage begins on the day that the SAT's page
// published it, or that of the Diario Oficial when only that is dated: then it is
// early if there is text in the place of the other. A cell with several days
// begins it several times.
func (l *listing) timeline(r *snapshots.Row) (changes []change, undated, early uint64) {
	for i, s := range l.stages {
		medium, oficio := publicacionSAT, s.oficioSAT
		days := wholeDates(r.Norm[oficio+1])
		if len(days) == 0 {
			medium, oficio = publicacionDOF, s.oficioDOF
			days = wholeDates(r.Norm[oficio+1])
			if len(days) > 0 && r.Norm[s.oficioSAT+1] != "" {
				early |= 1 << i
			}
		}
		for at, d := range days {
			changes = append(changes, change{d, i, medium, oficioOf(r.Norm[oficio], at, len(days))})
		}
		// Every procedure has had the first stage, whatever its row says.
		named := i == 0 || r.Norm[s.oficioSAT]+r.Norm[s.oficioSAT+1]+r.Norm[s.oficioDOF]+r.Norm[s.oficioDOF+1] != ""
		if named && len(days) == 0 {
			undated |= 1 << i
		}
	}
	// Of two stages that begin on one day the later one is in effect.
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.fecha, b.fecha), cmp.Compare(a.stage, b.stage))
	})
	return changes, undated, early
}

// wholeDates returns the days of a cell that holds days and nothing else: beside
// other text, another day may stand that cannot be read.
func wholeDates(cell string) []string {
	days := dates(cell)
	if len(days) != len(strings.Fields(cell)) {
		return nil
	}
	return days
}

// effectOn returns what a row says was in effect on the day d; ok is false when
// its procedure had not begun. Between two changes of the row the answer is the
// same for every day.
func (l *listing) effectOn(r *snapshots.Row, d string) (e effect, ok bool) {
	e.row = r
	changes, undated, early := l.timeline(r)
	if len(changes) == 0 {
		e.motivo = sinFechas
		return e, true
	}
	next, _ := slices.BinarySearchFunc(changes, d, func(c change, d string) int {
		if c.fecha <= d {
			return -1
		}
		return 1
	})
	from := -1 // the stage in effect by date
	if next > 0 {
		e.change = changes[next-1]
		from = e.stage
	}
	to := len(l.stages) // the stage that follows by date; a step back passes through any
	if next < len(changes) && changes[next].stage > from {
		to = changes[next].stage
	}
	for i := from + 1; i < to; i++ {
		if undated&(1<<i) != 0 {
			return effect{row: r, motivo: etapaSinFecha}, true
		}
	}
	for i, c := range changes[next:] {
		if early&(1<<c.stage) != 0 && c.stage != from && (i == 0 || from < c.stage && c.stage < to) {
			return effect{row: r, motivo: etapaSinFecha}, true
		}
	}
	// A situation that was taken back, as by a ruling that was reverted, leaves its
	// date in the row: since then the row is right and its dates are not.
	if next == len(changes) && l.stages[from].situacion != r.Norm[l.situacion] {
		return effect{row: r, motivo: fechasNoConcuerdan}, true
	}
	return e, from >= 0
}

// goneAfter returns the rows that left the list after the day d and are not back,
// as they were before that.
func goneAfter(d civil.Date, chain []snapshots.ChainVersion, history []snapshots.Past) (gone []snapshots.Row) {
	for _, p := range history {
		if p.Present || len(p.Events) == 0 {
			continue
		}
		if last := p.Events[len(p.Events)-1]; d.Before(chain[last.Version].OrderDate) {
			gone = append(gone, snapshots.Row{ID: p.ID, Ordinal: p.Ordinal, Norm: last.Before})
		}
	}
	return gone
}

// appendEfectiva appends what was in effect on the day d by the dates in rows,
// which are those of the newest version of chain: the latest change first, then
// what cannot be told. A row that left since is among that: none of today says
// what became of it.
func (l *listing) appendEfectiva(dst []byte, rows []snapshots.Row, chain []snapshots.ChainVersion, history []snapshots.Past, d civil.Date) []byte {
	var effects []effect
	for i := range rows {
		if e, ok := l.effectOn(&rows[i], d.String()); ok {
			effects = append(effects, e)
		}
	}
	gone := goneAfter(d, chain, history)
	for i := range gone {
		if _, ok := l.effectOn(&gone[i], d.String()); ok {
			effects = append(effects, effect{row: &gone[i], motivo: yaNoAparece})
		}
	}
	slices.SortStableFunc(effects, func(a, b effect) int { return cmp.Compare(b.fecha, a.fecha) })
	estado := sinSituacion
	if len(effects) > 0 && effects[0].motivo == "" {
		estado = conSituacion
	} else if len(effects) > 0 {
		estado = indeterminada
	}
	dst = append(dst, `{"estado":"`...)
	dst = append(dst, estado...)
	dst = append(dst, `","fuente":`...)
	dst = appendFuenteEnFecha(dst, l.schema.Source, &chain[len(chain)-1])
	dst = append(dst, `,"situaciones":[`...)
	for i := range effects {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.appendEffect(dst, &effects[i])
	}
	return append(dst, "]}"...)
}

func (l *listing) appendEffect(dst []byte, e *effect) []byte {
	name, _ := l.name(e.row)
	if e.motivo != "" {
		dst = append(dst, `{"fecha":null,"motivo":"`...)
		dst = append(dst, e.motivo...)
		dst = append(dst, `","nombre":`...)
		dst = canon.AppendString(dst, name)
		dst = append(dst, `,"origen":null,"situacion":null`...)
	} else {
		dst = append(dst, `{"fecha":"`...)
		dst = append(dst, e.fecha...)
		dst = append(dst, `","nombre":`...)
		dst = canon.AppendString(dst, name)
		dst = appendMember(dst, "oficio", e.oficio)
		dst = append(dst, `,"origen":"`...)
		dst = append(dst, e.medium...)
		dst = append(dst, `","situacion":`...)
		dst = canon.AppendString(dst, l.stages[e.stage].situacion)
	}
	dst = append(dst, `,"situacion_en_la_version":`...)
	if e.motivo == yaNoAparece {
		return append(dst, `null}`...)
	}
	dst = canon.AppendString(dst, e.row.Norm[l.situacion])
	return append(dst, '}')
}
