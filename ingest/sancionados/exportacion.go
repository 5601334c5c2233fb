package sancionados

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"cotejo/ingest/tabular"
	"cotejo/ingest/xlsx"
	"cotejo/query"
	"cotejo/snapshots"
)

// MaxExportacion bounds the workbook of the export button.
const MaxExportacion = xlsx.MaxBytes

// headerWithin is how many rows may stand before the titles.
const headerWithin = 20

// Columns of query.SancionadosExportacion that the reader knows by place.
const (
	exportacionNombre     = 0
	exportacionOIC        = 1
	exportacionExpediente = 2
	exportacionInicio     = 5
	exportacionFin        = 6
	exportacionMonto      = 7
)

// ReadExportacion reads the first sheet of the workbook. It states no day of its own.
func ReadExportacion(official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	sum.Encoding, sum.Counts = tabular.UTF8, map[string]int{}
	content, err := whole(official, MaxExportacion)
	if err != nil {
		return sum, err
	}
	e := exportacion{sum: &sum, add: add}
	err = xlsx.Read(content, e.row)
	if bad, ok := errors.AsType[*xlsx.Error](err); ok {
		code := tabular.Broken
		if bad.Cut {
			code = tabular.Truncated
		}
		return sum, tabular.Refuse(code, bad.Reason+"; guarde de nuevo lo que da el botón de exportar del directorio, sin convertirlo")
	}
	if err == nil && e.from == nil {
		return sum, e.missing()
	}
	return sum, err
}

// whole reads a file of at most max bytes, and refuses what is empty or a web page.
func whole(official snapshots.Opener, max int64) ([]byte, error) {
	in, err := official()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	buffered := bufio.NewReader(in)
	if err := tabular.Sniff(buffered); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(buffered, max+1))
	if err == nil && int64(len(content)) > max {
		return nil, tabular.Refuse(tabular.Broken, fmt.Sprintf("el archivo pasa de %d bytes", max))
	}
	return content, err
}

// exportacion maps the rows of the sheet.
type exportacion struct {
	sum  *tabular.Summary
	add  func(snapshots.Row) error
	from []int // by column: its cell; nil before the titles
	seen int   // rows before the titles
	near []string

	m mapper
}

// row takes one row of the sheet; number is its own.
func (e *exportacion) row(number int, cells []string) error {
	if e.from == nil {
		return e.header(cells)
	}
	raw := make([]string, len(e.from))
	blank := true
	for i, c := range cells {
		switch column := slices.Index(e.from, i); {
		case tabular.Blank([]byte(c)):
		case column < 0:
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("el renglón %d tiene texto en la celda %d, que no tiene título: sus celdas pueden estar recorridas; revise el archivo oficial", number, i+1))
		default:
			blank = false
		}
	}
	if blank {
		e.sum.Counts[tabular.EmptyRows]++
		return nil
	}
	for column, at := range e.from {
		if at < len(cells) {
			raw[column] = cells[at]
		}
	}
	if err := e.add(e.m.row(raw)); err != nil {
		return err
	}
	e.sum.Rows++
	return nil
}

// header takes the row for the titles if it has all of them.
func (e *exportacion) header(cells []string) error {
	columns := query.SancionadosExportacion.Columns
	from := make([]int, len(columns))
	var missing []string
	for i, c := range columns {
		from[i] = slices.IndexFunc(cells, func(t string) bool { return tabular.Fold([]byte(t)) == tabular.Fold([]byte(c.Name)) })
		if from[i] < 0 {
			missing = append(missing, c.Name)
		}
	}
	if missing == nil {
		kinds := make([]kind, len(columns))
		kinds[exportacionInicio], kinds[exportacionFin], kinds[exportacionMonto] = day, day, sum
		e.from, e.m = from, mapper{kinds: kinds, counts: e.sum.Counts, rfc: -1, id: []int{exportacionNombre, exportacionExpediente, exportacionOIC}}
		return nil
	}
	if e.near == nil || len(missing) < len(e.near) {
		e.near = missing
	}
	if e.seen++; e.seen == headerWithin {
		return e.missing()
	}
	return nil
}

// missing refuses the workbook for the titles that its best row lacks.
func (e *exportacion) missing() error {
	if e.near == nil {
		return tabular.Refuse(tabular.NoRows, "la primera hoja del libro no tiene renglones; guárdelo de nuevo")
	}
	return tabular.Refuse(tabular.Header, fmt.Sprintf("en los primeros %d renglones de la primera hoja faltan las columnas %s%s", headerWithin, tabular.Titles(e.near), advice))
}
