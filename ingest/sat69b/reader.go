// Package sat69b reads the SAT's lists of taxpayers under articles 69-B and 69-B
// Bis of the Código Fiscal de la Federación: the complete list into rows of
// query.Sat69B, that of 69-B Bis into rows of query.Sat69BBis.
//
// Of the complete list it accepts the 20-column layout in use since 2021, the same
// with empty columns at its end (the SAT's partial lists are padded so), and the
// 18-column layout of 2019 and before, which it maps onto the 20; of 69-B Bis the
// 12-column layout and the 8 columns of the «Listado Global Definitivo». It refuses
// every other header by naming what is missing, and a record with text outside the
// titled columns: its cells are shifted. It is pure: the same bytes give the same
// rows in the same order, so a stored file can be read again years later; whoever
// makes the same bytes give other rows raises Reader in the schema.
//
// layout.go says what the lists look like, reader.go walks through a file,
// header.go finds its columns and cut date, mapper.go turns one record into one
// row; partial.go is the tolerant look at the partial lists.
package sat69b

import (
	"errors"
	"fmt"
	"io"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// Read gives every row of the complete list to add, in the order of the file.
// The slices of a row are valid until add returns; its strings stay.
//
// It reads the bytes twice: only the end of a file tells its encoding, and a file
// may be larger than the memory that its reading deserves.
//
// A table that must not be served gives a *tabular.Refusal; by then add may have
// had some rows. Errors of official and of add come back as they are.
func Read(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return complete.read(official, add)
}

// ReadBis is Read for the list under article 69-B Bis.
func ReadBis(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return bis.read(official, add)
}

func (l *layout) read(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return pass(l, official, func(r *reading) error { return r.table(add) })
}

// pass lets walk go through a file.
func pass(l *layout, official snapshots.Opener, walk func(*reading) error) (tabular.Summary, error) {
	return tabular.Pass(official, func(t *tabular.Table) error { return walk(&reading{layout: l, Table: t}) })
}

// reading is one pass over one file.
type reading struct {
	*tabular.Table
	layout *layout
}

func (r *reading) table(add func(snapshots.Row) error) error {
	head, err := r.header()
	if err != nil {
		return err
	}
	m := newMapper(r.layout, head, r.Sum.Counts)
	first, single := "", r.layout.parted
	for {
		cells, err := r.Next()
		if errors.Is(err, io.EOF) {
			if single && r.Sum.Rows > 1 {
				r.Sum.Single = first
			}
			return nil
		}
		if err != nil {
			return err
		}
		if tabular.BlankRecord(cells) {
			r.Sum.Counts[tabular.EmptyRows]++
			continue
		}
		if len(cells) < head.width {
			return r.Short(len(cells), head.width)
		}
		if i := head.stray(cells); i >= 0 {
			return r.Stray(i)
		}
		row := m.row(cells)
		if row.ID[0] == "" {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("el registro de la línea %d no tiene RFC; revise el archivo oficial", r.Line()))
		}
		if err := add(row); err != nil {
			return err
		}
		if r.Sum.Rows == 0 {
			first = row.Norm[columnSituation]
		}
		single = single && row.Norm[columnSituation] == first
		r.Sum.Rows++
		if row.Suppressed {
			r.Sum.Suppressed++
		}
	}
}
