package sancionados

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// MaxDirectorio is some twenty times what 2,400 records take.
const MaxDirectorio = 32 << 20

// maxFields bounds the field names of all records together.
const maxFields = 2000

// ReadDirectorio reads the answer that the page of the directory gets,
// {"data":{"results":[…]}}: all records in one. Which field is which column is decided
// for the file as a whole, by the names of fields. A file in which RFC, name, beginning
// or end cannot be found is refused by naming them and what it has, and so is one in
// which the field taken for the RFC, or no date at all, reads as one. It states no day
// of its own.
func ReadDirectorio(official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	sum.Encoding, sum.Counts = tabular.UTF8, map[string]int{}
	has, shown := map[string]bool{}, map[string]bool{}
	records := 0
	err = results(official, func(n node) error {
		records++
		flat(n, "", 1, func(path, name, _ string) { has[path], shown[name] = true, true })
		if len(has) > maxFields || len(shown) > maxFields {
			return tooMuch("más de %d campos distintos", maxFields)
		}
		return nil
	})
	if err != nil || records == 0 {
		return sum, err
	}
	taken, missing := chosen(has)
	if missing != nil {
		return sum, unknownFields(missing, shown)
	}
	columns := map[string][]int{}
	for column, path := range taken {
		if path != "" {
			columns[path] = append(columns[path], column)
		}
	}
	if n := len(has) - len(columns); n > 0 {
		sum.Counts[Unmapped] = n
	}
	schema := &query.Sancionados[0]
	m := mapper{kinds: kindsOf(schema), counts: sum.Counts, rfc: query.ColSancionRFC, id: []int{query.ColSancionExpediente, query.ColSancionDependencia}}
	m.kinds[directoryResolved] = day
	dates, read := 0, 0
	err = results(official, func(n node) error {
		raw := make([]string, len(schema.Columns))
		flat(n, "", 1, func(path, _, text string) {
			for _, column := range columns[path] {
				raw[column] = text
			}
		})
		row := m.row(raw)
		for _, column := range [...]int{query.ColSancionInicio, query.ColSancionFin} {
			if row.Norm[column] == "" {
				continue
			}
			dates++
			if _, err := civil.Parse(row.Norm[column]); err == nil {
				read++
			}
		}
		if err := add(row); err != nil {
			return err
		}
		sum.Rows++
		return nil
	})
	if err != nil {
		return sum, err
	}
	if sum.Suppressed = sum.Counts[WithoutRFC]; 2*sum.Suppressed > sum.Rows {
		return sum, tabular.Refuse(tabular.Header, fmt.Sprintf("%d de sus %d registros no traen un RFC en «%s», la columna que parece la del RFC; revise de cuál es con la tabla de nombres%s", sum.Suppressed, sum.Rows, taken[query.ColSancionRFC], advice))
	}
	if dates > 0 && read == 0 {
		return sum, tabular.Refuse(tabular.Header, fmt.Sprintf("ninguna fecha de «%s» y «%s» se puede leer; se esperan como 21-02-2026 o 2026-02-21%s", taken[query.ColSancionInicio], taken[query.ColSancionFin], advice))
	}
	return sum, nil
}

// results walks through data.results.
func results(official snapshots.Opener, record func(node) error) error {
	return over(official, func(d *document) error {
		found := false
		err := d.object("la respuesta", func(name string) error {
			if name != "data" {
				_, err := d.record()
				return err
			}
			return d.object("data", func(name string) error {
				if name != "results" {
					_, err := d.record()
					return err
				}
				found = true
				return d.list("data.results", func() error {
					n, err := d.record()
					if err != nil {
						return err
					}
					if n.members == nil {
						return shape("un elemento de data.results no es un objeto")
					}
					return record(n)
				})
			})
		})
		if err != nil {
			return err
		}
		if !found {
			return shape("falta data.results; guarde la respuesta de la consulta «particularesSancionadosPro» de la página del directorio")
		}
		return d.end()
	})
}

// unknownFields names what was looked for and what the file has.
func unknownFields(missing []int, shown map[string]bool) error {
	var names []string
	for _, column := range missing {
		names = append(names, "«"+query.Sancionados[0].Columns[column].Name+"»")
	}
	have := slices.Sorted(maps.Keys(shown))
	return tabular.Refuse(tabular.Header, fmt.Sprintf("ningún campo se reconoce como %s; el archivo tiene %s. Si alguno lo es, agregue su nombre a la tabla de nombres del lector (ingest/sancionados/fields.go)",
		strings.Join(names, ", "), tabular.Titles(have)))
}
