// Package contratos reads the yearly files of public contracts of the federal
// government (CompraNet, Compras MX) into rows of query.Contratos.
//
// It knows the layouts of 2018 to 2022 (44 or 45 columns) and of 2023 on (73
// columns), and maps both by the names of their columns: the order of the second is
// not known, and two of its titles come twice, of which the first counts. A file
// that lacks a needed column is refused by naming it.
//
// The files quote badly: quotes inside unquoted cells are never escaped. They are
// read loosely (tabular.Reader.Loose), and what that guessed wrongly shows as a
// record that does not have the cells of the titles: its RFC cannot be believed, so
// it is counted (tabular.UnreadRecords) and not kept. Whether a file with so many of
// them serves is not decided here; one of hardly anything else is refused.
//
// It is pure: the same bytes give the same rows in the same order. layout.go says
// which columns are found under which titles, mapper.go turns one record into one
// row. Start reading at Reader.
package contratos

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// MaxBytes is more than twice what the largest year has ever measured (188 MB).
const MaxBytes = 512 << 20

// What the reader counts beside what all tables share.
const (
	WithoutRFC  = "sin_rfc"                // kept and never found
	ForeignRFCs = "rfc_de_extranjeros"     // EXT…: stands for a supplier without RFC; kept and never found
	LooseQuotes = "comillas_supuestas"     // cells whose quotes were guessed
	UnreadSums  = "importes_no_leidos"     // kept as published
	Implausible = "importes_no_plausibles" // kept, and in no total
	Undated     = "sin_fecha"              // none of signature, award and beginning can be read
	OtherYears  = "de_otros_anios"         // contracts that say they are of another year
)

// Of a file, less than one record in unreadableShare may be unreadable, and
// unreadableFew in any; and one in ownShare of the records that tell their year must
// be of the file's.
const (
	unreadableShare = 10
	unreadableFew   = 100
	ownShare        = 10
)

const advice = "; compare el archivo con la publicación oficial: si cambió de formato, hace falta un lector nuevo"

// Reader reads the file of a year: every contract is given to add, in the order of
// the file. The slices of a row are valid until add returns; its strings stay. It
// opens the bytes twice, since only their end tells the encoding.
//
// A *tabular.Refusal says why the table must not be served; by then add may have had
// some rows. Errors of official and of add come back as they are.
func Reader(year int) func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return func(official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
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
		if err := tabular.Sniff(buffered); err != nil {
			return sum, err
		}
		r := reading{year: year, records: tabular.NewReader(buffered), sum: &sum}
		r.records.Loose = true
		err = r.table(add)
		sum.Unended = r.records.Unended()
		count(sum.Counts, tabular.UnassignedBytes, text.Unassigned())
		count(sum.Counts, LooseQuotes, r.records.LooseQuotes())
		return sum, err
	}
}

// count adds to what was counted; nothing is not mentioned.
func count(counts map[string]int, name string, n int) {
	if n > 0 {
		counts[name] += n
	}
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
	year    int
	records *tabular.Reader
	sum     *tabular.Summary
	record  int // behind the titles, from 1; unreadable and empty ones count

	dated, own int // rows that tell their year; those of r.year
}

func (r *reading) table(add func(snapshots.Row) error) error {
	titles, err := r.next()
	if errors.Is(err, io.EOF) {
		return tabular.Refuse(tabular.NoRows, "el archivo no tiene renglones; descárguelo de nuevo")
	}
	if err != nil {
		return err
	}
	head, err := match(titles)
	if err != nil {
		return err
	}
	m := newMapper(head, r.sum.Counts)
	for {
		cells, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.end()
		}
		if err != nil {
			return err
		}
		r.record++
		if empty(cells) {
			count(r.sum.Counts, tabular.EmptyRows, 1)
			continue
		}
		if !head.fits(cells) {
			if err := r.unreadable(len(cells), head.width); err != nil {
				return err
			}
			continue
		}
		row, err := m.row(cells, r.record)
		if err != nil {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("el registro de la línea %d %v%s", r.records.Line(), err, advice))
		}
		if err := add(row); err != nil {
			return err
		}
		r.sum.Rows++
		if year, ok := query.ContractYear(row.Norm); ok {
			r.dated++
			if year == r.year {
				r.own++
			} else {
				r.sum.Counts[OtherYears]++
			}
		}
	}
}

// end judges the file as a whole.
func (r *reading) end() error {
	if r.dated > 0 && r.own*ownShare < r.dated {
		return tabular.Refuse(tabular.OtherList, fmt.Sprintf(
			"solo %d de los %d contratos que dicen su año son de %d: parece el archivo de otro año; cárguelo con la fuente del suyo", r.own, r.dated, r.year))
	}
	return nil
}

// unreadable counts a record whose cells do not fit the titles. What is far beyond
// any file that could pass is not read to its end.
func (r *reading) unreadable(got, want int) error {
	r.sum.Counts[tabular.UnreadRecords]++
	if bad := r.sum.Counts[tabular.UnreadRecords]; bad > max(unreadableFew, r.record/unreadableShare) {
		return tabular.Refuse(tabular.Broken, fmt.Sprintf(
			"%d de %d registros no tienen las celdas de los títulos; el último visto empieza en la línea %d. Revise sus comillas%s", bad, r.record, r.records.Line(), advice))
	}
	// The last record may have been cut.
	line := r.records.Line()
	if got < want && r.records.Unended() {
		return tabular.Refuse(tabular.Truncated, fmt.Sprintf("el último registro (línea %d) tiene %d de %d columnas; descargue el archivo de nuevo", line, got, want))
	}
	return nil
}

// next is the next record; broken ones become refusals.
func (r *reading) next() ([][]byte, error) {
	cells, err := r.records.Next()
	var broken *tabular.RecordError
	if errors.As(err, &broken) {
		code := tabular.Broken
		if errors.Is(err, tabular.ErrUnclosedQuote) {
			code = tabular.Truncated
		}
		return nil, tabular.Refuse(code, broken.Error()+"; descargue el archivo de nuevo y, si se repite, revise esa línea")
	}
	return cells, err
}

func empty(cells [][]byte) bool {
	for _, c := range cells {
		if !tabular.Blank(c) {
			return false
		}
	}
	return true
}
