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
	"bufio"
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

// pass opens a file in its encoding and lets walk go through it.
func pass(l *layout, official snapshots.Opener, walk func(*reading) error) (sum tabular.Summary, err error) {
	sum.Counts = map[string]int{}
	if sum.Encoding, err = encoding(official); err != nil {
		return sum, err
	}
	in, err := official()
	if err != nil {
		return sum, err
	}
	defer in.Close()
	text := tabular.NewDecoder(in, sum.Encoding)
	buffered := bufio.NewReaderSize(text, 64<<10)
	r := reading{layout: l, records: tabular.NewReader(buffered), sum: sum}
	if err = tabular.Sniff(buffered); err == nil {
		err = walk(&r)
	}
	r.sum.Unended = r.records.Unended()
	if n := text.Unassigned(); n > 0 {
		r.sum.Counts[tabular.UnassignedBytes] = n
	}
	return r.sum, err
}

func encoding(official snapshots.Opener) (string, error) {
	in, err := official()
	if err != nil {
		return "", err
	}
	defer in.Close()
	return tabular.Encoding(in)
}

// reading is one pass over one file.
type reading struct {
	layout  *layout
	records *tabular.Reader
	sum     tabular.Summary
}

func (r *reading) table(add func(snapshots.Row) error) error {
	head, err := r.header()
	if err != nil {
		return err
	}
	m := newMapper(r.layout, head, r.sum.Counts)
	first, single := "", r.layout.parted
	for {
		cells, err := r.next()
		if errors.Is(err, io.EOF) {
			if single && r.sum.Rows > 1 {
				r.sum.Single = first
			}
			return nil
		}
		if err != nil {
			return err
		}
		if empty(cells) {
			r.sum.Counts[tabular.EmptyRows]++
			continue
		}
		if len(cells) < head.width {
			return r.short(len(cells), head.width)
		}
		if i := head.stray(cells); i >= 0 {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf(
				"el registro de la línea %d tiene texto en la celda %d, que no tiene título: sus celdas pueden estar recorridas; revise esa línea en el archivo oficial", r.records.Line(), i+1))
		}
		row := m.row(cells)
		if row.ID[0] == "" {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("el registro de la línea %d no tiene RFC; revise el archivo oficial", r.records.Line()))
		}
		if err := add(row); err != nil {
			return err
		}
		if r.sum.Rows == 0 {
			first = row.Norm[columnSituation]
		}
		single = single && row.Norm[columnSituation] == first
		r.sum.Rows++
		if row.Suppressed {
			r.sum.Suppressed++
		}
	}
}

// next is the next record; broken ones become refusals.
func (r *reading) next() ([][]byte, error) {
	cells, err := r.records.Next()
	if err == nil {
		return cells, nil
	}
	var broken *tabular.RecordError
	if errors.As(err, &broken) {
		code := tabular.Broken
		if errors.Is(err, tabular.ErrUnclosedQuote) {
			code = tabular.Truncated
		}
		return nil, tabular.Refuse(code, broken.Error()+"; descargue el archivo de nuevo y, si se repite, revise esa línea")
	}
	return nil, err
}

// short refuses a record with fewer cells than the header: the last one of a
// file was cut, one in the middle is broken.
func (r *reading) short(got, want int) error {
	line := r.records.Line()
	if _, err := r.records.Next(); errors.Is(err, io.EOF) {
		return tabular.Refuse(tabular.Truncated, fmt.Sprintf("el último registro (línea %d) tiene %d de %d columnas; descargue el archivo de nuevo", line, got, want))
	}
	return tabular.Refuse(tabular.Broken, fmt.Sprintf("el registro de la línea %d tiene %d de %d columnas; revise las comillas de esa línea", line, got, want))
}

// empty reports whether a record is one of the filler rows that spreadsheets
// leave at the end of a list.
func empty(cells [][]byte) bool {
	for _, c := range cells {
		if !tabular.Blank(c) {
			return false
		}
	}
	return true
}
