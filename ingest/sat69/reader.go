// Package sat69 reads the SAT's lists under article 69 of the Código Fiscal de la
// Federación, and those published beside them, into rows of query.Art69Lists.
//
// Columns are found by their titles, in the first record: accents, case, blanks
// and the variants in columns.go do not matter, their order neither. A file that
// lacks a column, or has one that nobody here knows, is refused by naming it, and
// so is a record with text outside the titled columns: its cells are shifted. No
// list states a day of its own.
//
// It is pure: the same bytes give the same rows in the same order. columns.go says
// what the columns are called and how their cells are normalised; whoever makes the
// same bytes give other rows raises Reader in the schema.
package sat69

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// What the reader counts beside what all tables share, as written in manifests.
const (
	UnknownPersons = "tipo_persona_desconocido" // kept as published
	UnreadAmounts  = "importes_no_leidos"       // kept as published
)

const advice = "Compare los títulos con la publicación oficial: si el SAT los cambió, hace falta un lector nuevo"

// Reader returns the reader of one of query.Art69Lists. It gives every row to add,
// in the order of the file; the slices of a row are valid until add returns, its
// strings stay. A *tabular.Refusal says why a table must not be served; by then add
// may have had some rows. Errors of official and of add come back as they are.
func Reader(list *query.Art69List) func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	l := layoutOf(list)
	return func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
		return tabular.Pass(official, func(t *tabular.Table) error {
			return (&reading{Table: t, layout: l}).table(add)
		})
	}
}

// reading is one pass over one file.
type reading struct {
	*tabular.Table
	layout *layout
	from   []int  // by column: position in the file, -1 for one that may be missing and is
	titled []bool // by position
	width  int    // cells that every record must have

	strings   tabular.Strings
	raw, norm []string
	id        [2]string
	text      []byte // normalised cells, each with end behind it
	hash      []byte
}

func (r *reading) table(add func(snapshots.Row) error) error {
	if err := r.header(); err != nil {
		return err
	}
	columns := len(r.layout.columns)
	r.raw, r.norm = make([]string, columns), make([]string, columns)
	own, other := false, "" // whether a row says that it is of this list, and what another one says
	for {
		cells, err := r.Next()
		if errors.Is(err, io.EOF) {
			if other != "" && !own {
				return tabular.Refuse(tabular.OtherList, fmt.Sprintf("todas sus %d filas dicen «%s» en SUPUESTO: es esa lista y no «%s»; revise la dirección y descargue la que es", r.Sum.Rows, other, r.layout.list.Label))
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
		if len(cells) < r.width {
			return r.Short(len(cells), r.width)
		}
		for i, c := range cells {
			if (i >= len(r.titled) || !r.titled[i]) && !tabular.Blank(c) {
				return r.Stray(i)
			}
		}
		row := r.row(cells)
		if row.ID[0] == "" {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("el registro de la línea %d no tiene RFC; revise el archivo oficial", r.Line()))
		}
		if err := add(row); err != nil {
			return err
		}
		if another, ok := r.layout.otherList(row.Norm); ok && another {
			other = row.Norm[r.layout.ground]
		} else if ok {
			own = true
		}
		r.Sum.Rows++
		if row.Suppressed {
			r.Sum.Suppressed++
		}
	}
}

// header finds the columns by the titles of the first record.
func (r *reading) header() error {
	cells, err := r.Next()
	if errors.Is(err, io.EOF) {
		return tabular.Refuse(tabular.NoRows, "el archivo no tiene renglones; descárguelo de nuevo")
	}
	if err != nil {
		return err
	}
	r.from, r.titled = slices.Repeat([]int{-1}, len(r.layout.columns)), make([]bool, len(cells))
	var foreign []string
	for i, c := range cells {
		t := tabular.Fold(c)
		column := r.layout.columnOf(t)
		switch {
		case t == "":
		case column < 0, r.from[column] >= 0:
			foreign = append(foreign, t)
		default:
			r.from[column], r.titled[i] = i, true
			r.width = max(r.width, i+1)
		}
	}
	var missing []string
	for i, c := range r.layout.list.Schema.Columns {
		if r.from[i] < 0 && !r.layout.columns[i].optional {
			missing = append(missing, c.Name)
		}
	}
	var message []string
	if missing != nil {
		message = append(message, "faltan las columnas "+tabular.Titles(missing))
	}
	if foreign != nil {
		message = append(message, "no se conocen o se repiten las columnas "+tabular.Titles(foreign))
	}
	if message != nil {
		return tabular.Refuse(tabular.Header, strings.Join(message, "; ")+". "+advice)
	}
	return nil
}

// row maps a record, which has at least r.width cells.
func (r *reading) row(cells [][]byte) snapshots.Row {
	r.text = r.text[:0]
	for i, c := range r.layout.columns {
		r.raw[i], r.norm[i] = "", ""
		if r.from[i] >= 0 {
			cell := cells[r.from[i]]
			r.raw[i] = r.strings.Make(cell)
			start := len(r.text)
			r.text = c.kind.append(r.text, cell, r.Sum.Counts)
			if r.norm[i] = r.raw[i]; r.raw[i] != string(r.text[start:]) {
				r.norm[i] = r.strings.Make(r.text[start:])
			}
		}
		r.text = append(r.text, end)
	}
	rfc := r.norm[r.layout.rfc]
	row := snapshots.Row{Suppressed: tabular.Suppressed(rfc), Raw: r.raw, Norm: r.norm}
	if row.Suppressed {
		rfc = tabular.SuppressedRFC
	} else if !isRFC(rfc) {
		r.Sum.Counts[tabular.UnreadRFCs]++
	}
	sum := sha256.Sum256(r.text)
	r.hash = hex.AppendEncode(r.hash[:0], sum[:])
	r.id[0], r.id[1] = rfc, r.strings.Make(r.hash)
	row.ID = r.id[:]
	return row
}

// end stands behind each cell in what is hashed: normalised cells hold no control
// character.
const end = 0x1f
