package sancionados

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// MaxAbiertos is sixteen times what the open-data file has ever measured (1.0 MB).
const MaxAbiertos = 16 << 20

// Of the open-data file, at most one record in unreadableShare may be unreadable, and
// unreadableFew in any.
const (
	unreadableShare = 100
	unreadableFew   = 5
)

// Columns of query.SancionadosAbiertos that the reader knows by place.
const (
	abiertosNombre      = 0
	abiertosDependencia = 1
	abiertosExpediente  = 2
	abiertosNotificado  = 6
	abiertosResuelto    = 7
	abiertosMonto       = 9
	abiertosActualizado = 11
)

// ReadAbiertos reads the open-data table. It has no quoting: what keeps its cells apart
// is a comma with a tab behind it, so a comma without one belongs to the cell
// (70,200.00), and a tab inside a cell is where a comma was lost. A record that this
// does not place is counted (Unreadable) and not kept. Its day is the latest that the
// rows say they were updated on.
func ReadAbiertos(official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	sum.Counts = map[string]int{}
	in, err := official()
	if err != nil {
		return sum, err
	}
	sum.Encoding, err = tabular.Encoding(in)
	if err = errors.Join(err, in.Close()); err != nil {
		return sum, err
	}
	if in, err = official(); err != nil {
		return sum, err
	}
	defer in.Close()
	text := tabular.NewDecoder(in, sum.Encoding)
	buffered := bufio.NewReaderSize(text, 64<<10)
	if err := tabular.Sniff(buffered); err != nil {
		return sum, err
	}
	r := abiertos{records: tabular.NewReader(buffered), sum: &sum}
	r.records.Unquoted = true
	err = r.table(add)
	sum.Unended = r.records.Unended()
	if n := text.Unassigned(); n > 0 {
		sum.Counts[tabular.UnassignedBytes] = n
	}
	return sum, err
}

type abiertos struct {
	records *tabular.Reader
	sum     *tabular.Summary
	tabbed  bool // cells begin with a tab
}

func (r *abiertos) table(add func(snapshots.Row) error) error {
	schema := &query.SancionadosAbiertos
	width := len(schema.Columns)
	if err := r.header(schema); err != nil {
		return err
	}
	kinds := make([]kind, width)
	kinds[abiertosNotificado], kinds[abiertosResuelto], kinds[abiertosMonto] = day, day, sum
	m := mapper{kinds: kinds, counts: r.sum.Counts, rfc: -1, id: []int{abiertosNombre, abiertosExpediente, abiertosDependencia}}
	for record := 1; ; record++ {
		cells, err := r.next()
		if errors.Is(err, io.EOF) {
			if bad := r.sum.Counts[Unreadable]; bad > max(unreadableFew, record/unreadableShare) {
				return tabular.Refuse(tabular.Broken, fmt.Sprintf("%d de %d registros no tienen las %d celdas de los títulos%s", bad, record-1, width, advice))
			}
			return nil
		}
		if err != nil {
			return err
		}
		if tabular.BlankRecord(cells) {
			r.sum.Counts[tabular.EmptyRows]++
			continue
		}
		placed, mended := cells, false
		if r.tabbed {
			placed, mended = place(cells)
		}
		if len(placed) != width {
			if len(placed) < width && r.records.Unended() {
				return tabular.Refuse(tabular.Truncated, fmt.Sprintf("el último registro (línea %d) tiene %d de %d columnas; descargue el archivo de nuevo", r.records.Line(), len(placed), width))
			}
			r.sum.Counts[Unreadable]++
			continue
		}
		if mended {
			r.sum.Counts[Mended]++
		}
		raw := make([]string, width)
		for i, c := range placed {
			raw[i] = string(c)
		}
		if err := add(m.row(raw)); err != nil {
			return err
		}
		r.sum.Rows++
		if updated, ok := dayOf(raw[abiertosActualizado]); ok && r.sum.Corte.Before(updated) {
			r.sum.Corte = updated
		}
	}
}

// place puts the cells of a record where they belong: behind the first, each begins
// with a tab and is ended by a comma. mended says that a comma stood inside a cell, or
// was lost behind one.
func place(cells [][]byte) (placed [][]byte, mended bool) {
	placed = bytes.Split(bytes.Join(cells, []byte(",")), []byte("\t"))
	for i := range placed {
		if i < len(placed)-1 {
			ended := len(placed[i])
			placed[i] = bytes.TrimSuffix(placed[i], []byte(","))
			mended = mended || ended == len(placed[i])
		}
		mended = mended || bytes.IndexByte(placed[i], ',') >= 0
	}
	return placed, mended
}

// dayOf is the day of 14/01/2021 08:01.
func dayOf(cell string) (civil.Date, bool) {
	fields := bytes.Fields([]byte(cell))
	if len(fields) == 0 {
		return civil.Date{}, false
	}
	text, seen, ok := tabular.AppendDates(nil, fields[0])
	if !ok || seen.Read != 1 || seen.Serial > 0 {
		return civil.Date{}, false
	}
	d, err := civil.Parse(string(text))
	return d, err == nil
}

// header wants the twelve titles in their order.
func (r *abiertos) header(schema *snapshots.Schema) error {
	cells, err := r.next()
	if errors.Is(err, io.EOF) {
		return tabular.Refuse(tabular.NoRows, "el archivo no tiene renglones; descárguelo de nuevo")
	}
	if err != nil {
		return err
	}
	r.tabbed = len(cells) > 1 && bytes.IndexByte(cells[1], '\t') >= 0
	var missing []string
	for i, c := range schema.Columns {
		if i >= len(cells) || tabular.Fold(cells[i]) != tabular.Fold([]byte(c.Name)) {
			missing = append(missing, c.Name)
		}
	}
	if missing != nil || len(cells) != len(schema.Columns) {
		return tabular.Refuse(tabular.Header, fmt.Sprintf("en su primer renglón faltan, o no están en su lugar, las columnas %s entre %d títulos; se esperan los %d de la publicación oficial, en su orden%s",
			tabular.Titles(missing), len(cells), len(schema.Columns), advice))
	}
	return nil
}

// next is the next record; broken ones become refusals.
func (r *abiertos) next() ([][]byte, error) {
	cells, err := r.records.Next()
	if broken, ok := errors.AsType[*tabular.RecordError](err); ok {
		return nil, tabular.Refuse(tabular.Broken, broken.Error()+"; descargue el archivo de nuevo y, si se repite, revise esa línea")
	}
	return cells, err
}
