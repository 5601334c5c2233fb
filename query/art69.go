package query

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/index"
	"cotejo/snapshots"
)

const (
	advertenciaArt69 = "Pudo cambiar después de la fecha de la versión."
	// A list that was not consulted is never «no match».
	advertenciaArt69Partial = advertenciaArt69 + " No se consultaron las listas de listas_no_cargadas."

	// maxRecords bounds how many records of one RFC in one list are told; the others
	// are counted. Public bodies have some seven on average.
	maxRecords = 200
)

// Person types, normalised.
const (
	Moral  = "moral"
	Fisica = "fisica"
)

// art69 is a list as answers are made from it.
type art69 struct {
	*Art69List
	place        int     // in Art69Lists
	nombre, tipo int     // columns; tipo is -1 in a list without person types
	dated        []int   // columns that date a record
	titles       []title // in canonical order
	label        []byte  // the members of an item that are the same for every RFC
	named        []byte  // {"id":…,"lista":…}
}

// maxArt69 bounds how many lists there are: an answer without a match keeps them
// on its stack.
const maxArt69 = 16

var art69s = func() []art69 {
	var all []art69
	for i := range Art69Lists {
		a := newArt69(&Art69Lists[i])
		a.place = i
		all = append(all, a)
	}
	return all
}()

func newArt69(l *Art69List) art69 {
	a := art69{Art69List: l, nombre: -1, tipo: -1}
	for i, c := range l.Schema.Columns {
		a.titles = append(a.titles, title{append(canon.AppendString(nil, c.Name), ':'), i})
		switch name := strings.ToUpper(c.Name); {
		case strings.Contains(name, "SOCIAL"), name == "CONTRIBUYENTE":
			a.nombre = i
		case strings.HasPrefix(name, "TIPO"):
			a.tipo = i
		case strings.HasPrefix(name, "FECHA"), name == "AÑO":
			a.dated = append(a.dated, i)
		}
	}
	sort.Slice(a.titles, func(i, j int) bool {
		return l.Schema.Columns[a.titles[i].column].Name < l.Schema.Columns[a.titles[j].column].Name
	})
	a.label = canon.AppendString([]byte(`"etiqueta_oficial":`), l.Label)
	a.label = fmt.Appendf(a.label, `,"etiqueta_verificada":%t,"fundamento":`, l.LabelSeen)
	a.label = canon.AppendString(a.label, l.Basis)
	a.label = fmt.Appendf(a.label, `,"fundamento_verificado":%t,"lista":%q`, l.BasisSeen, l.Code)
	a.named = fmt.Appendf(nil, `{"id":%q,"lista":%q}`, l.Schema.Source, l.Code)
	return a
}

// art69Source is the id of the source of a list.
func art69Source(code string) string { return "sat_art69_" + strings.ToLower(code) }

// art69Sources are the lists of an edition, by art69s; nil for one that is not
// loaded.
type art69Sources [maxArt69]*snapshots.Source

// appendArt69 appends the block of the lists under article 69. mentions tells
// which sources know the RFC at all.
func (c Company) appendArt69(dst []byte, lists *art69Sources, mentions index.Mentions, texts *blockTexts, brief *CompanyBrief) ([]byte, error) {
	partial, loaded := false, false
	for i := range art69s {
		loaded = loaded || lists[i] != nil
		partial = partial || lists[i] == nil && !art69s[i].WhenLinked
	}
	if brief.SatArt69 = noCargada; loaded {
		brief.SatArt69 = sinCoincidencia
	}
	if block, ok := texts.ofNobody(mentions); ok && c.Past.IsZero() {
		return append(dst, block...), nil
	}
	dst = append(dst, `{"advertencia":"`...)
	if partial && loaded {
		dst = append(dst, advertenciaArt69Partial...)
	} else {
		dst = append(dst, advertenciaArt69...)
	}
	dst = append(dst, '"', ',')
	if !loaded {
		dst = append(dst, `"estado":"`+noCargada+`","historial_eventos":[],"listas":[],"listas_consultadas":[]`...)
		return append(appendMissing(dst, lists), '}'), nil
	}
	found, err := c.records(lists, mentions, func(s *snapshots.Source) find {
		if mentions.Rows(s.Bit()).N == 0 {
			return nil
		}
		return s.Find
	})
	if err != nil {
		return dst, err
	}
	if !c.Past.IsZero() {
		dst = append(dst, `"en_fecha":{"version_en_fecha":`...)
		if dst, err = c.appendArt69InPast(dst, lists, mentions); err != nil {
			return dst, err
		}
		dst = append(dst, "},"...)
	}
	dst = appendEstado(dst, len(found) > 0)
	brief.SatArt69 = estado(len(found) > 0)
	for i := range found {
		brief.Listas |= 1 << found[i].place
	}
	dst = append(dst, `,"historial_eventos":[`...)
	if dst, err = c.appendArt69Events(dst, lists, mentions); err != nil {
		return dst, err
	}
	dst = append(dst, `],`...)
	dst = c.appendListas(dst, found)
	dst = append(dst, `,"listas_consultadas":[`...)
	if c.Past.IsZero() {
		dst = append(dst, texts.fuentes...)
	} else {
		for i, list := range lists {
			if list != nil {
				chain := list.Chain()
				dst = appendFuenteEnFecha(dst, art69s[i].Schema.Source, &chain[len(chain)-1])
				dst = append(dst, ',')
			}
		}
		dst = bytes.TrimSuffix(dst, []byte{','})
	}
	dst = append(dst, ']')
	return append(appendMissing(dst, lists), '}'), nil
}

// appendMissing appends which lists are not loaded.
func appendMissing(dst []byte, lists *art69Sources) []byte {
	dst = append(dst, `,"listas_no_cargadas":[`...)
	for i := range art69s {
		if lists[i] == nil && !art69s[i].WhenLinked {
			dst = append(append(dst, art69s[i].named...), ',')
		}
	}
	return append(bytes.TrimSuffix(dst, []byte{','}), ']')
}

// appendArt69InPast appends what the versions of c.Past say. That a version of that
// day exists is never supposed. What was in effect cannot be told: the rows say when
// they were first published and not until when.
func (c Company) appendArt69InPast(dst []byte, lists *art69Sources, mentions index.Mentions) ([]byte, error) {
	then := *lists
	consulted := false
	for i, s := range lists {
		if s == nil {
			continue
		}
		if _, ok := s.VersionAt(c.Past); ok {
			consulted = true
		} else {
			then[i] = nil
		}
	}
	found, err := c.records(&then, mentions, func(s *snapshots.Source) find {
		return func(lookup string, fn func(snapshots.Row) error) error {
			at, _ := s.VersionAt(c.Past)
			return s.FindAt(at, lookup, fn)
		}
	})
	if err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	if consulted {
		dst = appendEstado(dst, len(found) > 0)
	} else {
		dst = append(dst, `"estado":"`+sinVersion+`"`...)
	}
	dst = append(dst, ',')
	dst = c.appendListas(dst, found)
	dst = append(dst, `,"listas_consultadas":[`...)
	for i, s := range then {
		if s != nil {
			at, _ := s.VersionAt(c.Past)
			dst = appendFuenteEnFecha(dst, art69s[i].Schema.Source, &s.Chain()[at])
			dst = append(dst, ',')
		}
	}
	dst = append(bytes.TrimSuffix(dst, []byte{','}), `],"listas_sin_version":[`...)
	for i, s := range lists {
		if s != nil && then[i] == nil {
			dst = append(dst, bytes.TrimSuffix(art69s[i].named, []byte{'}'})...)
			dst = append(dst, `,"primera_version":"`...)
			dst = firstOf(s.Chain()).AppendTo(dst)
			dst = append(dst, `"},`...)
		}
	}
	return append(bytes.TrimSuffix(dst, []byte{','}), "]}"...), nil
}

// listed69 is the rows of an RFC in a list, at least one, the newest first.
type listed69 struct {
	*art69
	rows []snapshots.Row
}

// records finds the rows of an RFC. in says where the rows of a list that mentions it
// are looked up, nil where there are none.
func (c Company) records(lists *art69Sources, mentions index.Mentions, in func(s *snapshots.Source) find) (found []listed69, err error) {
	for i := range art69s {
		s := lists[i]
		if s == nil || !mentions.Has(s.Bit()) {
			continue
		}
		l, look := listed69{art69: &art69s[i]}, in(s)
		if look == nil {
			continue
		}
		err := look(c.RFC.String(), func(r snapshots.Row) error {
			if n := len(l.Schema.Columns); len(r.Norm) != n || len(r.Raw) != n {
				return fmt.Errorf("query: %s: una versión tiene %d columnas; este motor lee %d", l.Schema.Source, len(r.Norm), n)
			}
			l.rows = append(l.rows, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(l.rows) == 0 {
			continue
		}
		slices.SortStableFunc(l.rows, func(a, b snapshots.Row) int {
			return cmp.Or(cmp.Compare(l.latest(&b), l.latest(&a)), slices.Compare(a.Norm, b.Norm))
		})
		found = append(found, l)
	}
	return found, nil
}

// latest is the latest day, or else year, of a row.
func (a *art69) latest(r *snapshots.Row) (latest string) {
	for _, column := range a.dated {
		latest = max(latest, r.Norm[column])
	}
	return latest
}

// appendListas appends the member listas.
func (c Company) appendListas(dst []byte, found []listed69) []byte {
	dst = append(dst, `"listas":[`...)
	for i := range found {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = found[i].append(dst, c.RFC)
	}
	return append(dst, ']')
}

// append appends one item of listas.
func (l *listed69) append(dst []byte, rfc checks.RFC) []byte {
	dst = append(dst, '{')
	dst = append(dst, l.label...)
	dst = append(dst, `,"nombre":`...)
	dst = canon.AppendString(dst, strings.Join(strings.Fields(l.rows[0].Raw[l.nombre]), " "))
	dst = append(dst, `,"registros_oficiales":[`...)
	told := min(len(l.rows), maxRecords)
	for i := range told {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		for at, t := range l.titles {
			if at > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, t.name...)
			dst = canon.AppendString(dst, l.rows[i].Raw[t.column])
		}
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if told < len(l.rows) {
		dst = append(dst, `,"registros_omitidos":`...)
		dst = appendInt(dst, len(l.rows)-told)
	}
	kind, stated := l.person()
	if !stated {
		kind = Fisica
		if rfc.Moral() {
			kind = Moral
		}
	}
	dst = append(dst, `,"tipo_persona":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","tipo_persona_derivado":`...)
	if stated {
		return append(dst, `false}`...)
	}
	return append(dst, `true}`...)
}

// person is the person type that the newest row with one states.
func (l *listed69) person() (kind string, stated bool) {
	if l.tipo < 0 {
		return "", false
	}
	for i := range l.rows {
		if kind := l.rows[i].Norm[l.tipo]; kind == Moral || kind == Fisica {
			return kind, true
		}
	}
	return "", false
}

// art69Event is one line of historial_eventos: rows of an RFC that two successive
// versions of a list do not share.
type art69Event struct {
	fecha, evento, lista string
	rows                 int
	stays                bool // the RFC is on the list after it
}

// appendArt69Events appends the events of all lists in order of date.
func (c Company) appendArt69Events(dst []byte, lists *art69Sources, mentions index.Mentions) ([]byte, error) {
	var events []art69Event
	for i := range art69s {
		s := lists[i]
		if s == nil || !mentions.Rows(s.Bit()).Past {
			continue
		}
		chain := s.Chain()
		added, removed := make([]int, len(chain)), make([]int, len(chain))
		rows := 0 // of the RFC in a version
		err := s.Past(c.RFC.String(), func(p snapshots.Past) error {
			if p.Since == 0 {
				rows++
			}
			for _, e := range p.Events {
				switch e.Kind {
				case snapshots.Added:
					added[e.Version]++
				case snapshots.Removed:
					removed[e.Version]++
				}
			}
			return nil
		})
		if err != nil {
			return dst, err
		}
		for v := range chain {
			rows += added[v] - removed[v]
			event := art69Event{fecha: chain[v].OrderDate.String(), lista: art69s[i].Code, stays: rows > 0}
			if removed[v] > 0 {
				event.evento, event.rows = "REMOVED", removed[v]
				events = append(events, event)
			}
			if added[v] > 0 {
				event.evento, event.rows = "ADDED", added[v]
				events = append(events, event)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b art69Event) int { return cmp.Compare(a.fecha, b.fecha) })
	for i, e := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, `{"en_lista":%t,"evento":%q,"fecha":%q,"lista":%q,"registros":%d}`, e.stays, e.evento, e.fecha, e.lista, e.rows)
	}
	return dst, nil
}
