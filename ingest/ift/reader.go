// Package ift reads the national numbering plan, as the Mexican regulator of
// telecommunications publishes it, into rows of catalog.NumberingSource.
//
// The columns are found by their titles and every record must fit them: first and
// last number have ten digits, and nothing but one empty cell may follow the titled
// ones. Data lines of the real file end in one comma more than the titles, so a
// reader that takes the first cell for a row name shifts all the others.
//
// It is pure: the same bytes give the same rows. Start reading at Read.
package ift

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"cotejo/catalog"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// MaxBytes is several times what the plan has ever measured (14.6 MB).
const MaxBytes = 64 << 20

// What the reader counts beside what all tables share.
const (
	UnknownModes = "modalidad_desconocida"  // kept as published
	OtherCounts  = "ocupacion_no_concuerda" // the range has more or fewer numbers than it says
	UnreadDates  = tabular.UnreadDates      // kept as published
	maxRange     = 10_000_000               // numbers: more than any area code has
	advice       = "; compare el archivo con la publicación oficial: si cambió de formato, hace falta un lector nuevo"
)

// Read gives every range to add, in the order of the file. The slices of a row are
// valid until add returns. A *tabular.Refusal says why the table must not be
// served; by then add may have had some rows.
func Read(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return tabular.Pass(official, func(t *tabular.Table) error { return (&reading{Table: t}).table(add) })
}

// reading is one pass over one file.
type reading struct {
	*tabular.Table
	at    []int // by column: position in the file
	width int   // titled cells

	raw, norm []string
}

func (r *reading) table(add func(snapshots.Row) error) error {
	if err := r.header(); err != nil {
		return err
	}
	r.raw, r.norm = make([]string, len(r.at)), make([]string, len(r.at))
	for {
		cells, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if tabular.BlankRecord(cells) {
			r.Sum.Counts[tabular.EmptyRows]++
			continue
		}
		row, err := r.row(cells)
		if err != nil {
			return err
		}
		if err := add(row); err != nil {
			return err
		}
		r.Sum.Rows++
	}
}

// header finds the columns by their titles.
func (r *reading) header() error {
	titles, err := r.Next()
	if errors.Is(err, io.EOF) {
		return tabular.Refuse(tabular.NoRows, "el archivo no tiene renglones; descárguelo de nuevo")
	}
	if err != nil {
		return err
	}
	r.width = len(titles)
	for r.width > 0 && tabular.Blank(titles[r.width-1]) {
		r.width--
	}
	var missing []string
	for _, c := range catalog.NumberingSource.Columns {
		found := -1
		for i, t := range titles[:r.width] {
			if tabular.Fold(t) != tabular.Fold([]byte(c.Name)) {
				continue
			}
			if found >= 0 {
				return tabular.Refuse(tabular.Header, "la columna «"+c.Name+"» está dos veces"+advice)
			}
			found = i
		}
		if found < 0 {
			missing = append(missing, "«"+c.Name+"»")
		}
		r.at = append(r.at, found)
	}
	if missing != nil {
		return tabular.Refuse(tabular.Header, "faltan las columnas "+strings.Join(missing, ", ")+advice)
	}
	return nil
}

// row maps a record.
func (r *reading) row(cells [][]byte) (row snapshots.Row, err error) {
	line := r.Line()
	if n := len(cells); n < r.width {
		return row, r.Short(n, r.width)
	}
	if len(cells) > r.width+1 || len(cells) == r.width+1 && !tabular.Blank(cells[r.width]) {
		return row, tabular.Refuse(tabular.Broken, fmt.Sprintf("el registro de la línea %d tiene texto después de la última columna: sus celdas pueden estar recorridas; revise sus comillas", line))
	}
	for i, at := range r.at {
		r.raw[i] = string(cells[at])
		r.norm[i] = string(tabular.AppendText(nil, cells[at]))
	}
	first, last, ok := numbers(r.norm[catalog.ColFirst], r.norm[catalog.ColLast])
	if !ok {
		return row, tabular.Refuse(tabular.Broken, fmt.Sprintf(
			"en la línea %d, NUMERACION_INICIAL «%.20s» y NUMERACION_FINAL «%.20s» no son un rango de números de 10 dígitos: las celdas pueden estar recorridas%s",
			line, r.norm[catalog.ColFirst], r.norm[catalog.ColLast], advice))
	}
	if n, err := strconv.ParseInt(r.norm[catalog.ColCount], 10, 64); err != nil || n != last-first+1 {
		r.Sum.Counts[OtherCounts]++
	}
	mode := strings.ToUpper(r.norm[catalog.ColMode])
	r.norm[catalog.ColMode] = mode
	if mode != "FIJO" && mode != "CPP" && mode != "MPP" {
		r.Sum.Counts[UnknownModes]++
	}
	date, _, ok := tabular.AppendDates(nil, []byte(r.norm[catalog.ColAssigned]))
	if !ok {
		r.Sum.Counts[UnreadDates]++
	}
	r.norm[catalog.ColAssigned] = string(date)
	return snapshots.Row{ID: []string{r.norm[catalog.ColFirst], r.norm[catalog.ColLast]}, Raw: r.raw, Norm: r.norm}, nil
}

// numbers reads the ends of a range.
func numbers(first, last string) (from, to int64, ok bool) {
	if len(first) != 10 || len(last) != 10 || strings.Trim(first+last, "0123456789") != "" || first[0] < '2' {
		return 0, 0, false
	}
	from, _ = strconv.ParseInt(first, 10, 64)
	to, _ = strconv.ParseInt(last, 10, 64)
	return from, to, from <= to && to-from < maxRange
}
