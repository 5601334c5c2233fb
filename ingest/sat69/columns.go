package sat69

import (
	"slices"
	"strings"

	"cotejo/checks"
	"cotejo/ingest/tabular"
	"cotejo/query"
)

// kind is how the cells of a column are normalised.
type kind byte

const (
	text   kind = iota // without accents, upper case
	rfc                // an identifier
	person             // query.Moral or query.Fisica
	dates
	amount
)

// titles says of each canonical title, folded, how its column is read and under
// which other titles, folded too, it has been published. Case, accents and blanks
// are gone from them; the blanks in " MONTO " with the rest.
var titles = map[string]struct {
	kind kind
	also []string
}{
	"rfc":                                 {rfc, nil},
	"razon social":                        {text, []string{"nombre, denominacion o razon social"}},
	"nombre o razon social":               {text, []string{"razon social"}},
	"nombre, denominacion o razon social": {text, []string{"razon social"}},
	"contribuyente":                       {text, nil},
	"tipo persona":                        {person, []string{"tipo de persona"}},
	"tipo de persona":                     {person, []string{"tipo persona"}},
	"supuesto":                            {text, nil},
	"supuesto de cancelacion csd":         {text, nil},
	"fecha de primera publicacion":        {dates, []string{"fechas de primera publicacion"}},
	"fechas de primera publicacion":       {dates, []string{"fecha de primera publicacion"}},
	"fecha de cancelacion":                {dates, nil},
	"fecha de cancelacion csd":            {dates, nil},
	"fecha de autorizacion":               {dates, nil},
	"fecha de publicacion":                {dates, []string{longPublication}},
	"monto":                               {amount, nil},
	"importe":                             {amount, []string{"importe pesos"}},
	"importe condonado":                   {amount, nil},
	"motivo":                              {text, nil},
	"motivo de condonacion":               {text, nil},
	"entidad federativa":                  {text, nil},
	"ejercicio":                           {text, nil},
	"periodo":                             {text, nil},
	"ano":                                 {text, nil},
	"administracion general responsable de la cancelacion": {text, nil},
}

// longPublication begins the title of the day of publication in lists of 2024;
// copies of it end at different places.
const longPublication = "fecha de publicacion (con monto de acuerdo a la ley de transparencia"

// layout is a list as the reader sees it.
type layout struct {
	list    *query.Art69List
	columns []column
	rfc     int
	ground  int // column of the SUPUESTO of a list that has others with the same titles, else -1
}

type column struct {
	kind     kind
	titles   []string // folded
	optional bool
}

func layoutOf(list *query.Art69List) *layout {
	l := &layout{list: list, ground: -1}
	for i, c := range list.Schema.Columns {
		name := tabular.Fold([]byte(c.Name))
		t, known := titles[name]
		if !known {
			panic("sat69: nobody says how to read " + c.Name) // a test reads every list
		}
		l.columns = append(l.columns, column{
			kind: t.kind, titles: append([]string{name}, t.also...),
			// The titles of this list are known, and not all of its columns in one file.
			optional: list.Code == "REDUCCION_ART74" && name == "fecha de publicacion",
		})
		switch name {
		case "rfc":
			l.rfc = i
		case "supuesto":
			if alike[strings.ReplaceAll(list.Code, "_", " ")] == list.Code {
				l.ground = i
			}
		}
	}
	return l
}

// columnOf returns the column with a folded title, -1 when there is none.
func (l *layout) columnOf(title string) int {
	return slices.IndexFunc(l.columns, func(c column) bool {
		return slices.Contains(c.titles, title) ||
			slices.Contains(c.titles, longPublication) && strings.HasPrefix(title, longPublication)
	})
}

// alike are the lists with the same titles, by what their SUPUESTO says: only that
// tells one that comes under the name of another.
var alike = map[string]string{
	"FIRMES": "FIRMES", "EXIGIBLES": "EXIGIBLES", "NO LOCALIZADOS": "NO_LOCALIZADOS", "SENTENCIAS": "SENTENCIAS",
}

// otherList reports whether a normalised row says that it is of another list with
// the same titles; ok is false when it says nothing.
func (l *layout) otherList(norm []string) (other, ok bool) {
	if l.ground < 0 || norm[l.ground] == "" {
		return false, false
	}
	code, known := alike[norm[l.ground]]
	return known && code != l.list.Code, true
}

// append appends a cell normalised.
func (k kind) append(dst, cell []byte, counts map[string]int) []byte {
	if len(cell) == 0 {
		return dst
	}
	switch k {
	case rfc:
		return tabular.AppendKey(dst, cell)
	case person:
		return appendPerson(dst, cell, counts)
	case dates:
		dst, seen, ok := tabular.AppendDates(dst, tabular.AppendText(nil, cell))
		if !ok {
			counts[tabular.UnreadDates]++
		}
		if seen.Serial > 0 {
			counts[tabular.SerialDates] += seen.Serial
		}
		if seen.ShortYear > 0 {
			counts[tabular.ShortYears] += seen.ShortYear
		}
		return dst
	case amount:
		dst, ok := tabular.AppendAmount(dst, tabular.AppendText(nil, cell))
		if !ok {
			counts[UnreadAmounts]++
		}
		return dst
	default:
		return tabular.AppendFolded(dst, cell)
	}
}

// appendPerson appends query.Moral or query.Fisica, and any other text as it is,
// counted. One old file was written in a code page of DOS: its í is read as ¡.
func appendPerson(dst, cell []byte, counts map[string]int) []byte {
	start := len(dst)
	dst = tabular.AppendFolded(dst, cell)
	switch strings.TrimPrefix(string(dst[start:]), "PERSONA ") {
	case "":
		return dst
	case "M", "MORAL":
		return append(dst[:start], query.Moral...)
	case "F", "FISICA", "F¡SICA":
		return append(dst[:start], query.Fisica...)
	}
	counts[UnknownPersons]++
	return dst
}

// isRFC reports whether anyone can ask for it.
func isRFC(rfc string) bool {
	_, ok := checks.PackRFC(rfc)
	return ok
}
