package query

import (
	"bytes"
	"cmp"
	"slices"

	"cotejo/canon"
	"cotejo/snapshots"
)

// Where an event of the history is known from.
const (
	origenVersiones = "VERSIONES"        // two successive versions of the list differ
	origenFila      = "FECHAS_OFICIALES" // the row's own stage dates say so
)

// Where a stage was published on the day that a row gives for it.
const (
	publicacionSAT = "PUBLICACION_SAT" // the page of the SAT
	publicacionDOF = "PUBLICACION_DOF" // the Diario Oficial de la Federación
)

// listEvent is one line of historial_eventos.
type listEvent struct {
	fecha, evento, origen        string
	situacion, situacionAnterior string
	oficio, motivo               string
	columns                      uint64 // changed columns
}

// events returns the history of an RFC in order of date: what successive
// versions show, and, marked apart, what the stage dates of today's rows say.
func (l *listing) events(chain []snapshots.ChainVersion, history []snapshots.Past, rows []snapshots.Row) []listEvent {
	var events []listEvent
	for _, p := range history {
		events = append(events, l.versionEvents(chain, p, rows)...)
	}
	for i := range rows {
		events = append(events, l.stageEvents(&rows[i])...)
	}
	slices.SortStableFunc(events, func(a, b listEvent) int { return cmp.Compare(a.fecha, b.fecha) })
	return events
}

// versionEvents walks one row's history back from its newest state, so that
// each event is told with the situation of its time.
func (l *listing) versionEvents(chain []snapshots.ChainVersion, p snapshots.Past, rows []snapshots.Row) []listEvent {
	var state []string
	for i := range rows {
		if rows[i].Ordinal == p.Ordinal && slices.Equal(rows[i].ID, p.ID) {
			state = slices.Clone(rows[i].Norm)
		}
	}
	situacion := func() string {
		if l.situacion < len(state) {
			return state[l.situacion]
		}
		return ""
	}
	var events []listEvent
	for _, e := range slices.Backward(p.Events) {
		out := listEvent{fecha: chain[e.Version].OrderDate.String(), origen: origenVersiones}
		switch e.Kind {
		case snapshots.Added:
			out.evento, out.situacion = "ADDED", situacion()
		case snapshots.Removed:
			state = slices.Clone(e.Before)
			out.evento, out.situacion = "REMOVED", situacion()
			// A court may order a name out of the list: the row then comes back
			// without RFC, and only the count of such rows tells.
			if chain[e.Version].Suppressed > chain[e.Version-1].Suppressed {
				out.motivo = "SUPRIMIDO_POSIBLE"
			}
		case snapshots.Changed:
			out.evento, out.columns, out.situacion = "UPDATED", e.Mask, situacion()
			before := e.Before
			for c := range state {
				if e.Mask&(1<<c) != 0 {
					state[c], before = before[0], before[1:]
				}
			}
			out.situacionAnterior = situacion()
		}
		events = append(events, out)
	}
	if p.Since == 0 {
		// Older than what is kept here: no version shows when it entered.
		events = append(events, listEvent{
			fecha: chain[0].OrderDate.String(), origen: origenVersiones, evento: "INICIAL", situacion: situacion(),
		})
	}
	slices.Reverse(events)
	return events
}

// stageEvents reads the dates that a row itself carries. A cell may hold
// several, one for each oficio of the stage.
func (l *listing) stageEvents(r *snapshots.Row) []listEvent {
	var events []listEvent
	for _, stage := range l.stages {
		for _, medium := range [...]struct {
			evento string
			oficio int
		}{{publicacionSAT, stage.oficioSAT}, {publicacionDOF, stage.oficioDOF}} {
			published := dates(r.Norm[medium.oficio+1])
			for i, d := range published {
				events = append(events, listEvent{
					fecha: d, origen: origenFila, evento: medium.evento, situacion: stage.situacion,
					oficio: oficioOf(r.Norm[medium.oficio], i, len(published)),
				})
			}
		}
	}
	return events
}

func (l *listing) appendEvent(dst []byte, e *listEvent) []byte {
	dst = append(dst, '{')
	if e.columns != 0 {
		dst = append(dst, `"columnas":[`...)
		for c := range l.schema.Columns {
			if e.columns&(1<<c) != 0 {
				dst = canon.AppendString(dst, l.schema.Columns[c].Name)
				dst = append(dst, ',')
			}
		}
		dst = append(bytes.TrimSuffix(dst, []byte{','}), "],"...)
	}
	dst = append(dst, `"evento":"`...)
	dst = append(dst, e.evento...)
	dst = append(dst, `","fecha":"`...)
	dst = append(dst, e.fecha...)
	dst = append(dst, '"')
	dst = appendMember(dst, "motivo", e.motivo)
	dst = appendMember(dst, "oficio", e.oficio)
	dst = append(dst, `,"origen":"`...)
	dst = append(dst, e.origen...)
	dst = append(dst, `","situacion":`...)
	dst = canon.AppendString(dst, e.situacion)
	dst = appendMember(dst, "situacion_anterior", e.situacionAnterior)
	return append(dst, '}')
}

// appendMember appends a member behind others, or nothing when it is empty.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return canon.AppendString(dst, value)
}
