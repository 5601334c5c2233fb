package query

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strings"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/snapshots"
)

// Where an event of the history is known from.
const (
	origenVersiones = "VERSIONES"        // two successive versions of the list differ
	origenFila      = "FECHAS_OFICIALES" // the row's own stage dates say so
)

// stages69B are the stages of the procedure of article 69-B in their legal
// order, with the columns that date them.
var stages69B = []struct {
	situacion string
	oficioSAT int // the oficio; the column after it holds its publication date
	oficioDOF int
}{
	{"Presunto", col69bPresuncionOficioSAT, col69bPresuncionOficioDOF},
	{"Desvirtuado", col69bDesvirtuadoOficioSAT, col69bDesvirtuadoOficioDOF},
	{"Definitivo", col69bDefinitivoOficioSAT, col69bDefinitivoOficioDOF},
	{"Sentencia Favorable", col69bSentenciaOficioSAT, col69bSentenciaOficioDOF},
}

// titles69B are the official titles as JSON names in canonical order, each with
// its column.
var titles69B = func() []struct {
	name   []byte
	column int
} {
	type title = struct {
		name   []byte
		column int
	}
	titles := make([]title, len(Sat69B.Columns))
	for i, c := range Sat69B.Columns {
		titles[i] = title{append(canon.AppendString(nil, c.Name), ':'), i}
	}
	// All titles lie in the Basic Multilingual Plane, where the order of UTF-8
	// bytes is the order of UTF-16 code units that RFC 8785 asks for.
	sort.Slice(titles, func(i, j int) bool {
		return Sat69B.Columns[titles[i].column].Name < Sat69B.Columns[titles[j].column].Name
	})
	return titles
}()

// event69B is one line of historial_eventos.
type event69B struct {
	fecha, evento, origen        string
	situacion, situacionAnterior string
	oficio, motivo               string
	columns                      uint64 // changed columns
}

// append69B appends the block sat_69b. found tells whether the edition table
// knows the RFC in this source at all.
func append69B(dst []byte, list *snapshots.Source, found bool, rfc string) ([]byte, error) {
	var rows []snapshots.Row
	var events []event69B
	if found {
		var err error
		if rows, err = rows69B(list, rfc); err != nil {
			return dst, err
		}
		if events, err = events69B(list, rfc, rows); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `{"estado":"`...)
	if len(rows) > 0 {
		dst = append(dst, coincidencia...)
	} else {
		dst = append(dst, sinCoincidencia...)
	}
	dst = append(dst, `","fuente":`...)
	dst = appendFuente(dst, list)
	dst = append(dst, `,"historial_eventos":[`...)
	for i := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = events[i].append(dst)
	}
	dst = append(dst, `],"situaciones":[`...)
	for i := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendSituacion69B(dst, &rows[i])
	}
	return append(dst, "]}"...), nil
}

// rows69B returns the rows of an RFC, the procedure with the latest stage
// first: an RFC may win one case and be listed again in a new one.
func rows69B(list *snapshots.Source, rfc string) ([]snapshots.Row, error) {
	var rows []snapshots.Row
	err := list.Find(rfc, func(r snapshots.Row) error {
		rows = append(rows, r)
		return nil
	})
	slices.SortStableFunc(rows, func(a, b snapshots.Row) int {
		return cmp.Compare(latestDate69B(&b), latestDate69B(&a))
	})
	return rows, err
}

// latestDate69B returns the latest day of any stage, "" when none is dated.
func latestDate69B(r *snapshots.Row) string {
	latest := ""
	for _, stage := range stages69B {
		for _, column := range [...]int{stage.oficioSAT + 1, stage.oficioDOF + 1} {
			for _, d := range dates(r.Norm[column]) {
				latest = max(latest, d)
			}
		}
	}
	return latest
}

// appendSituacion69B appends one item of situaciones[]. The authority writes
// notes into the name behind `//`; the name is what stands before.
func appendSituacion69B(dst []byte, r *snapshots.Row) []byte {
	name, note, hasNote := strings.Cut(r.Norm[col69bNombre], "//")
	dst = append(dst, '{')
	if hasNote {
		dst = append(dst, `"anotacion":`...)
		dst = canon.AppendString(dst, strings.TrimSpace(note))
		dst = append(dst, ',')
	}
	dst = append(dst, `"detalle":{`...)
	for i, t := range titles69B {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, t.name...)
		dst = canon.AppendString(dst, r.Raw[t.column])
	}
	dst = append(dst, `},"nombre":`...)
	dst = canon.AppendString(dst, strings.TrimSpace(name))
	dst = append(dst, `,"situacion":`...)
	dst = canon.AppendString(dst, r.Norm[col69bSituacion])
	return append(dst, '}')
}

// events69B returns the history of an RFC in order of date: what successive
// versions show, and, marked apart, what the stage dates of today's rows say.
func events69B(list *snapshots.Source, rfc string, rows []snapshots.Row) ([]event69B, error) {
	var events []event69B
	chain := list.Chain()
	err := list.Past(rfc, func(p snapshots.Past) error {
		events = append(events, versionEvents69B(chain, p, rows)...)
		return nil
	})
	for i := range rows {
		events = append(events, stageEvents69B(&rows[i])...)
	}
	slices.SortStableFunc(events, func(a, b event69B) int { return cmp.Compare(a.fecha, b.fecha) })
	return events, err
}

// versionEvents69B walks one row's history back from its newest state, so that
// each event is told with the situation of its time.
func versionEvents69B(chain []snapshots.ChainVersion, p snapshots.Past, rows []snapshots.Row) []event69B {
	var state []string
	for i := range rows {
		if rows[i].Ordinal == p.Ordinal && slices.Equal(rows[i].ID, p.ID) {
			state = slices.Clone(rows[i].Norm)
		}
	}
	situacion := func() string {
		if col69bSituacion < len(state) {
			return state[col69bSituacion]
		}
		return ""
	}
	var events []event69B
	for _, e := range slices.Backward(p.Events) {
		out := event69B{fecha: chain[e.Version].OrderDate.String(), origen: origenVersiones}
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
		events = append(events, event69B{
			fecha: chain[0].OrderDate.String(), origen: origenVersiones, evento: "INICIAL", situacion: situacion(),
		})
	}
	slices.Reverse(events)
	return events
}

// stageEvents69B reads the dates that a row itself carries. A cell may hold
// several, one for each oficio of the stage.
func stageEvents69B(r *snapshots.Row) []event69B {
	var events []event69B
	for _, stage := range stages69B {
		for _, medium := range [...]struct {
			evento string
			oficio int
		}{{"PUBLICACION_SAT", stage.oficioSAT}, {"PUBLICACION_DOF", stage.oficioDOF}} {
			published := dates(r.Norm[medium.oficio+1])
			oficios := strings.Split(r.Norm[medium.oficio], " // ")
			for i, d := range published {
				e := event69B{fecha: d, origen: origenFila, evento: medium.evento, situacion: stage.situacion}
				if len(oficios) == len(published) {
					e.oficio = oficios[i]
				}
				events = append(events, e)
			}
		}
	}
	return events
}

// dates returns the days in a normalised date cell; what is no day is left out,
// however much it looks like one.
func dates(cell string) []string {
	return slices.DeleteFunc(strings.Fields(cell), func(f string) bool {
		_, err := civil.Parse(f)
		return err != nil
	})
}

func (e *event69B) append(dst []byte) []byte {
	dst = append(dst, '{')
	if e.columns != 0 {
		dst = append(dst, `"columnas":[`...)
		for c := range Sat69B.Columns {
			if e.columns&(1<<c) != 0 {
				dst = canon.AppendString(dst, Sat69B.Columns[c].Name)
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
