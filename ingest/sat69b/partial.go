package sat69b

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// The folded titles that ReadPartial asks for. Every layout since 2014 has them.
const (
	titleRFC       = "rfc"
	titleSituation = "situacion del contribuyente"
)

// ReadPartial gives RFC and situation of every row of any list under article
// 69-B, complete or partial, in the order of the file and normalised as Read
// does; every redacted row has the same RFC, XXXXXXXXXXXX. Nothing is answered
// from what it reads, so it is tolerant: other columns may be missing, repeated
// or unknown, records may be short, and titles may stand anywhere in the first
// records. A row of which neither cell has text is left out. Errors are as those
// of Read.
func ReadPartial(official snapshots.Opener, add func(rfc, situation string) error) (tabular.Summary, error) {
	return pass(&complete, official, func(r *reading) error { return r.standings(add) })
}

func (r *reading) standings(add func(rfc, situation string) error) error {
	atRFC, atSituation, err := r.standingColumns()
	if err != nil {
		return err
	}
	var rfc, situation, text []byte
	for {
		cells, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rfc = tabular.AppendKey(rfc[:0], cell(cells, atRFC))
		text = tabular.AppendText(text[:0], cell(cells, atSituation))
		if len(rfc) == 0 && len(text) == 0 {
			r.Sum.Counts[tabular.EmptyRows]++
			continue
		}
		var known bool
		if situation, known = r.layout.appendSituation(situation[:0], text); !known {
			r.Sum.Counts[tabular.UnknownSituations]++
		}
		name := string(rfc)
		if tabular.Suppressed(name) {
			name = tabular.SuppressedRFC
			r.Sum.Suppressed++
		}
		if err := add(name, string(situation)); err != nil {
			return err
		}
		r.Sum.Rows++
	}
}

// standingColumns reads up to the titles.
func (r *reading) standingColumns() (rfc, situation int, err error) {
	for range headerRows {
		cells, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		titles := make([]string, len(cells))
		for i, c := range cells {
			titles[i] = tabular.Fold(c)
		}
		rfc, situation = slices.Index(titles, titleRFC), slices.Index(titles, titleSituation)
		if rfc >= 0 && situation >= 0 {
			return rfc, situation, nil
		}
		r.note(cells)
	}
	return 0, 0, tabular.Refuse(tabular.Header, fmt.Sprintf(
		"no hay una fila con los títulos «RFC» y «Situación del contribuyente» entre los primeros %d registros; compare el archivo con la publicación oficial", headerRows))
}

// cell is a cell of a record, nil when the record ends before it.
func cell(cells [][]byte, at int) []byte {
	if at >= len(cells) {
		return nil
	}
	return cells[at]
}
