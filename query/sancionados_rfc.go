package query

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/snapshots"
)

// The block proveedores_sancionados. Its state is one of three words. COINCIDENCIA is an
// RFC, exactly, in a file that has RFCs. SIN_COINCIDENCIA says that it is not in the
// directory: only the directory can say that of itself, so without it what is not found
// is SOURCE_UNAVAILABLE, whatever else is loaded. Names are not compared: the question
// has none, and a name is no proof of an RFC.

const (
	sinSancion = "SIN_COINCIDENCIA" // the API's word in this block alone

	notaRetirada = "Una sanción que se publicaba dejó de publicarse (REMOVED en historial_eventos): pudo suspenderse por un amparo, revocarse o retirarse; el archivo no dice por qué."
	notaSinRFC   = "En los archivos consultados hay registros sin un RFC por el que se pueda preguntar (registros_sin_rfc): de ellos no se dice nada."
)

// Why nothing can be said of whether a sanction was in force, or why it was not yet.
const (
	sinInhabilitacion = "SIN_INHABILITACION"     // a fine alone: neither beginning, end nor term
	sinFin            = "SIN_FECHA_DE_FIN"       // a term without its last day
	fechaIlegible     = "FECHA_NO_LEGIBLE"       // a text that is no day
	fechasContrarias  = "FECHAS_CONTRADICTORIAS" // it ends before it begins
	aunNoInicia       = "AUN_NO_INICIA"
)

// sanctions are the sources of an edition, nil for one that is not loaded.
type sanctions struct {
	withRFC    [4]*snapshots.Source // by Sancionados
	withoutRFC [len(sancionadosSinRFC)]*snapshots.Source
}

// sanctionsOf returns them, and which sources they are.
func sanctionsOf(ed *snapshots.Edition) (s sanctions, withRFC, withoutRFC index.Set) {
	for i := range Sancionados {
		if s.withRFC[i] = ed.Source(Sancionados[i].Source); s.withRFC[i] != nil {
			withRFC.Add(s.withRFC[i].Bit())
		}
	}
	for i, schema := range sancionadosSinRFC {
		if s.withoutRFC[i] = ed.Source(schema.Source); s.withoutRFC[i] != nil {
			withoutRFC.Add(s.withoutRFC[i].Bit())
		}
	}
	return s, withRFC, withoutRFC
}

// sanction is a row of an RFC.
type sanction struct {
	of  int // in Sancionados
	row snapshots.Row
}

// appendSanciones appends the block. mentions tells which sources know the RFC at all;
// texts are those of fecha.
func (c Company) appendSanciones(dst []byte, s *sanctions, mentions index.Mentions, fecha civil.Date, texts *blockTexts, brief *CompanyBrief) ([]byte, error) {
	brief.Sancionados = sanctionState(false, s.withRFC[0] != nil, noDisponible)
	if block, ok := texts.ofNobody(mentions); ok && c.Past.IsZero() {
		return append(dst, block...), nil
	}
	found, err := c.sanctioned(s, mentions, func(l *snapshots.Source) find { return l.Find })
	if err != nil {
		return dst, err
	}
	events, err := c.sanctionEvents(s, mentions, found)
	if err != nil {
		return dst, err
	}
	withoutRFC := false
	dst = append(dst, `{"consultadas":[`...)
	for i, l := range s.withRFC {
		if l == nil {
			continue
		}
		chain := l.Chain()
		newest := &chain[len(chain)-1]
		dst = c.appendSanctionSource(dst, &Sancionados[i], newest, fecha)
		dst = append(dst, ',')
		withoutRFC = withoutRFC || newest.Suppressed > 0
	}
	dst = append(bytes.TrimSuffix(dst, []byte{','}), ']')
	if !c.Past.IsZero() && consultedWithRFC(s) {
		dst = append(dst, `,"en_fecha":{"version_en_fecha":`...)
		if dst, err = c.appendSanctionsInPast(dst, s, mentions); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `,"estado":"`...)
	brief.Sancionados = sanctionState(len(found) > 0, s.withRFC[0] != nil, noDisponible)
	dst = append(dst, brief.Sancionados...)
	dst = append(dst, `","historial_eventos":[`...)
	removed := false
	for i := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = events[i].append(dst)
		removed = removed || events[i].evento == "REMOVED"
	}
	dst = append(dst, `],"no_cargadas":[`...)
	for i, l := range s.withRFC {
		if l == nil {
			dst = canon.AppendString(dst, Sancionados[i].Source)
			dst = append(dst, ',')
		}
	}
	dst = append(bytes.TrimSuffix(dst, []byte{','}), `],"no_consultables":[`...)
	for i, l := range s.withoutRFC {
		if l == nil {
			continue
		}
		chain := l.Chain()
		dst = append(dst, `{"corte":`...)
		dst = appendDay(dst, chain[len(chain)-1].Corte)
		dst = append(dst, `,"id":`...)
		dst = canon.AppendString(dst, sancionadosSinRFC[i].Source)
		dst = append(dst, `,"motivo":"SIN_RFC","registros_en_version":`...)
		dst = appendInt(dst, chain[len(chain)-1].Rows)
		dst = append(dst, `,"sha256":"`...)
		dst = append(dst, chain[len(chain)-1].SHA256...)
		dst = append(dst, `"},`...)
	}
	dst = append(bytes.TrimSuffix(dst, []byte{','}), `],"notas":[`...)
	if removed {
		dst = append(dst, `"`+notaRetirada+`",`...)
	}
	if withoutRFC {
		dst = append(dst, `"`+notaSinRFC+`",`...)
	}
	dst = append(bytes.TrimSuffix(dst, []byte{','}), ']', ',')
	return append(appendSanctions(dst, found, fecha), '}'), nil
}

func consultedWithRFC(s *sanctions) bool {
	return slices.ContainsFunc(s.withRFC[:], func(l *snapshots.Source) bool { return l != nil })
}

// sanctionState is the state by whether a row was found and the directory consulted;
// otherwise is the word for neither.
func sanctionState(found, directory bool, otherwise string) string {
	switch {
	case found:
		return coincidencia
	case directory:
		return sinSancion
	}
	return otherwise
}

// appendSanctionSource is appendFuente, or appendFuenteEnFecha, with how many rows have
// no RFC that somebody could ask for.
func (c Company) appendSanctionSource(dst []byte, schema *snapshots.Schema, v *snapshots.ChainVersion, fecha civil.Date) []byte {
	if c.Past.IsZero() {
		dst = appendFuente(dst, schema, v, fecha)
	} else {
		dst = appendFuenteEnFecha(dst, schema.Source, v)
	}
	// In canonical order it stands before the hash, which is last.
	dst = append(dst[:len(dst)-len(`,"sha256":""}`)-len(v.SHA256)], `,"registros_sin_rfc":`...)
	dst = appendInt(dst, v.Suppressed)
	dst = append(dst, `,"sha256":"`...)
	dst = append(dst, v.SHA256...)
	return append(dst, `"}`...)
}

// sanctioned finds the rows of an RFC, by source and, in each, the one that ends last
// first. in says where the rows of a source are looked up.
func (c Company) sanctioned(s *sanctions, mentions index.Mentions, in func(*snapshots.Source) find) (found []sanction, err error) {
	for i, l := range s.withRFC {
		if l == nil || !mentions.Has(l.Bit()) {
			continue
		}
		rows, err := sanctionRows(i, in(l), c.RFC.String())
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// sanctionRows finds those of one source.
func sanctionRows(of int, in find, rfc string) (rows []sanction, err error) {
	err = in(rfc, func(r snapshots.Row) error {
		if n := len(Sancionados[of].Columns); len(r.Norm) != n || len(r.Raw) != n {
			return fmt.Errorf("query: %s: una versión tiene %d columnas; este motor lee %d", Sancionados[of].Source, len(r.Norm), n)
		}
		rows = append(rows, sanction{of, r})
		return nil
	})
	slices.SortStableFunc(rows, func(a, b sanction) int {
		return cmp.Or(
			cmp.Compare(readDay(b.row.Norm[ColSancionFin]), readDay(a.row.Norm[ColSancionFin])),
			cmp.Compare(readDay(b.row.Norm[ColSancionInicio]), readDay(a.row.Norm[ColSancionInicio])),
			slices.Compare(a.row.Norm, b.row.Norm))
	})
	return rows, err
}

// readDay is a normalised cell when it is a day, else "".
func readDay(cell string) string {
	if _, err := civil.Parse(cell); err != nil {
		return ""
	}
	return cell
}

// What is told of one RFC; the others are counted. A registro holds a megabyte.
const (
	maxSanctions      = 200
	maxSanctionsBytes = 192 << 10
)

// appendSanctions appends the member sanciones, and how many it leaves out.
func appendSanctions(dst []byte, found []sanction, fecha civil.Date) []byte {
	start, told := len(dst), 0
	dst = append(dst, `"sanciones":[`...)
	for told < min(len(found), maxSanctions) {
		end := len(dst)
		if told > 0 {
			dst = append(dst, ',')
		}
		if dst = found[told].append(dst, fecha); len(dst)-start > maxSanctionsBytes {
			dst = dst[:end]
			break
		}
		told++
	}
	dst = append(dst, ']')
	if told < len(found) {
		dst = append(dst, `,"sanciones_omitidas":`...)
		dst = appendInt(dst, len(found)-told)
	}
	return dst
}

// append appends one sanction as it stood on a day.
func (s *sanction) append(dst []byte, fecha civil.Date) []byte {
	norm := s.row.Norm
	text := func(name string, column int) {
		dst = append(append(append(dst, `,"`...), name...), `":`...)
		dst = appendTextOrNull(dst, norm[column])
	}
	date := func(name string, column int) {
		dst = append(append(append(dst, `,"`...), name...), `":`...)
		dst = appendTextOrNull(dst, readDay(norm[column]))
	}
	dst = append(dst, `{"dependencia":`...)
	dst = appendTextOrNull(dst, norm[ColSancionDependencia])
	dst = append(dst, `,"detalle":{`...)
	for i, t := range sanctionTitles[s.of] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, t.name...)
		dst = canon.AppendString(dst, s.row.Raw[t.column])
	}
	dst = append(dst, '}')
	text("expediente", ColSancionExpediente)
	date("fin", ColSancionFin)
	dst = append(dst, `,"fuente":`...)
	dst = canon.AppendString(dst, Sancionados[s.of].Source)
	date("inicio", ColSancionInicio)
	dst = append(dst, `,"moneda":`...)
	dst = appendTextOrNull(dst, currencyOf(norm[ColSancionMoneda]))
	dst = append(dst, `,"monto":`...)
	if _, ok := parseImporte(norm[ColSancionMonto]); ok {
		dst = canon.AppendString(dst, norm[ColSancionMonto])
	} else {
		dst = append(dst, "null"...)
	}
	text("nombre", ColSancionNombre)
	text("plazo", ColSancionPlazo)
	text("tipo", ColSancionTipo)
	inForce, motivo := Vigente(norm[ColSancionInicio], norm[ColSancionFin], norm[ColSancionPlazo], fecha)
	dst = append(dst, `,"vigente":`...)
	if inForce == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendBool(dst, *inForce)
	}
	dst = appendMember(dst, "vigente_motivo", motivo)
	return append(dst, '}')
}

var sanctionTitles = func() (all [][]title) {
	for i := range Sancionados {
		all = append(all, newListing(Sancionados[i], 0, 0, nil).titles)
	}
	return all
}()

// Vigente says whether a debarment was in force on a day, by the normalised cells of its
// beginning, its end and its term: from the first to the last of its days, both
// included. nil, with the reason, where the cells do not say.
func Vigente(inicio, fin, plazo string, fecha civil.Date) (inForce *bool, motivo string) {
	yes, no := true, false
	if inicio == "" && fin == "" && plazo == "" {
		return nil, sinInhabilitacion
	}
	if fin == "" {
		return nil, sinFin
	}
	last, err := civil.Parse(fin)
	if err != nil {
		return nil, fechaIlegible
	}
	if inicio != "" {
		first, err := civil.Parse(inicio)
		switch {
		case err != nil:
			return nil, fechaIlegible
		case last.Before(first):
			return nil, fechasContrarias
		case fecha.Before(first):
			return &no, aunNoInicia
		}
	}
	if last.Before(fecha) {
		return &no, ""
	}
	return &yes, ""
}

// currencyOf is a currency when the text is the three letters of one.
func currencyOf(text string) string {
	if len(text) != 3 {
		return ""
	}
	for i := range len(text) {
		if text[i] < 'A' || text[i] > 'Z' {
			return ""
		}
	}
	return text
}

// sanctionEvent is a row of an RFC that two successive versions of a file do not share,
// or not alike.
type sanctionEvent struct {
	fecha, evento, fuente string
	expediente            string
	dependencia           string
	fin, finBefore        string // days
	columns               uint64
	schema                *snapshots.Schema
}

// sanctionEvents returns the events of all sources in order of date.
func (c Company) sanctionEvents(s *sanctions, mentions index.Mentions, found []sanction) (events []sanctionEvent, err error) {
	for i, l := range s.withRFC {
		if l == nil || !mentions.Has(l.Bit()) {
			continue
		}
		more, err := eventsOf(&Sancionados[i], l, found, c.RFC.String())
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	slices.SortStableFunc(events, func(a, b sanctionEvent) int { return cmp.Compare(a.fecha, b.fecha) })
	return events, nil
}

// eventsOf returns those of one source; found are the rows of today, of all sources.
func eventsOf(schema *snapshots.Schema, l *snapshots.Source, found []sanction, rfc string) (events []sanctionEvent, err error) {
	identity := func(id []string, ordinal int) string {
		return strings.Join(id, "\x00") + "\x00" + strconv.Itoa(ordinal)
	}
	now := map[string][]string{} // normalised cells by identity
	for i := range found {
		if r := &found[i].row; &Sancionados[found[i].of] == schema {
			now[identity(r.ID, r.Ordinal)] = r.Norm
		}
	}
	err = l.Past(rfc, func(p snapshots.Past) error {
		more, err := sanctionHistory(schema, l.Chain(), p, now[identity(p.ID, p.Ordinal)])
		events = append(events, more...)
		return err
	})
	return events, err
}

// sanctionHistory walks the history of one row back from its newest state, nil when it
// is gone.
func sanctionHistory(schema *snapshots.Schema, chain []snapshots.ChainVersion, p snapshots.Past, state []string) ([]sanctionEvent, error) {
	var events []sanctionEvent
	state = slices.Clone(state)
	for _, e := range slices.Backward(p.Events) {
		out := sanctionEvent{fecha: chain[e.Version].OrderDate.String(), fuente: schema.Source, schema: schema}
		switch e.Kind {
		case snapshots.Added:
			out.evento = "ADDED"
			out.tell(state)
		case snapshots.Removed:
			if len(e.Before) != len(schema.Columns) {
				return nil, fmt.Errorf("query: %s: la historia tiene %d columnas; este motor lee %d", schema.Source, len(e.Before), len(schema.Columns))
			}
			state = slices.Clone(e.Before)
			out.evento = "REMOVED"
			out.tell(state)
		case snapshots.Changed:
			out.evento, out.columns = "UPDATED", e.Mask
			out.tell(state)
			before := e.Before
			for column := range state {
				if e.Mask&(1<<column) != 0 && len(before) > 0 {
					state[column], before = before[0], before[1:]
				}
			}
			if e.Mask&(1<<ColSancionFin) != 0 && len(state) > ColSancionFin {
				out.finBefore = readDay(state[ColSancionFin])
			}
		}
		events = append(events, out)
	}
	slices.Reverse(events)
	return events, nil
}

// tell takes from the cells of a row what an event says of it.
func (e *sanctionEvent) tell(norm []string) {
	if len(norm) != len(e.schema.Columns) {
		return
	}
	e.expediente, e.dependencia, e.fin = norm[ColSancionExpediente], norm[ColSancionDependencia], readDay(norm[ColSancionFin])
}

func (e *sanctionEvent) append(dst []byte) []byte {
	dst = append(dst, '{')
	if e.columns != 0 {
		dst = append(dst, `"columnas":[`...)
		for i := range e.schema.Columns {
			if e.columns&(1<<i) != 0 {
				dst = canon.AppendString(dst, e.schema.Columns[i].Name)
				dst = append(dst, ',')
			}
		}
		dst = append(bytes.TrimSuffix(dst, []byte{','}), "],"...)
	}
	dst = append(dst, `"dependencia":`...)
	dst = appendTextOrNull(dst, e.dependencia)
	dst = append(dst, `,"evento":"`...)
	dst = append(dst, e.evento...)
	dst = append(dst, `","expediente":`...)
	dst = appendTextOrNull(dst, e.expediente)
	dst = append(dst, `,"fecha":"`...)
	dst = append(dst, e.fecha...)
	dst = append(dst, `","fin":`...)
	dst = appendTextOrNull(dst, e.fin)
	dst = appendMember(dst, "fin_anterior", e.finBefore)
	dst = append(dst, `,"fuente":`...)
	dst = canon.AppendString(dst, e.fuente)
	return append(dst, '}')
}

// appendSanctionsInPast appends what the versions of c.Past say. That a version of that
// day exists is never supposed.
func (c Company) appendSanctionsInPast(dst []byte, s *sanctions, mentions index.Mentions) ([]byte, error) {
	then := sanctions{withRFC: s.withRFC}
	dst = append(dst, `{"consultadas":[`...)
	for i, l := range s.withRFC {
		if l == nil {
			continue
		}
		at, ok := l.VersionAt(c.Past)
		if !ok {
			then.withRFC[i] = nil
			continue
		}
		dst = c.appendSanctionSource(dst, &Sancionados[i], &l.Chain()[at], c.Past)
		dst = append(dst, ',')
	}
	found, err := c.sanctioned(&then, mentions, func(l *snapshots.Source) find {
		return func(lookup string, fn func(snapshots.Row) error) error {
			at, _ := l.VersionAt(c.Past)
			return l.FindAt(at, lookup, fn)
		}
	})
	if err != nil {
		return dst, err
	}
	dst = append(bytes.TrimSuffix(dst, []byte{','}), `],"estado":"`...)
	dst = append(dst, sanctionState(len(found) > 0, then.withRFC[0] != nil, sinVersion)...)
	dst = append(dst, `",`...)
	dst = appendSanctions(dst, found, c.Past)
	dst = append(dst, `,"sin_version":[`...)
	for i, l := range s.withRFC {
		if l == nil || then.withRFC[i] != nil {
			continue
		}
		dst = append(dst, `{"id":`...)
		dst = canon.AppendString(dst, Sancionados[i].Source)
		dst = append(dst, `,"primera_version":"`...)
		dst = firstOf(l.Chain()).AppendTo(dst)
		dst = append(dst, `"},`...)
	}
	return append(bytes.TrimSuffix(dst, []byte{','}), "]}"...), nil
}
