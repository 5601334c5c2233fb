// Package sancionados reads what is published of sanctioned suppliers, contractors and
// private persons into rows of query.Sancionados, query.SancionadosAbiertos and
// query.SancionadosExportacion.
//
// There are two tables without RFC, the open-data file (abiertos.go) and the workbook
// of the directory's export button (exportacion.go), and three kinds of JSON with RFC
// that an operator saves: the answer that the page of the directory gets (portal.go,
// whose field names nobody has published: fields.go is the one table of those that are
// believed) and the two versions of System 3 of the national platform (pdn.go).
//
// Columns are found by their names. A file that lacks a needed one is refused by naming
// it; so is a page of an answer that says there are more of them, since a part would
// answer «no match» for the rest. Personal data that no answer needs (addresses,
// telephones, CURP, names of officials) is not read into rows; the official bytes keep it.
//
// It is pure: the same bytes give the same rows in the same order. mapper.go turns one
// record into one row.
package sancionados

import (
	"cotejo/checks"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// What the readers count beside what all tables share.
const (
	WithoutRFC = "sin_rfc"              // in a publication with RFC: kept, counted in answers, never found
	Mended     = "registros_reparados"  // a thousands comma or a lost one had moved their cells
	Unreadable = "registros_ilegibles"  // not kept: their cells cannot be placed
	UnreadSums = "importes_no_leidos"   // kept as published
	Unmapped   = "campos_no_utilizados" // fields of the answer that no column takes
)

const advice = "; compare el archivo con la publicación oficial: si cambió de formato, hace falta un lector nuevo"

// kind is how the cells of a column are normalised.
type kind byte

const (
	plain kind = iota
	key        // an identifier: upper case, no blanks
	day
	sum
)

// kindsOf is by column of a schema with RFC.
func kindsOf(s *snapshots.Schema) []kind {
	kinds := make([]kind, len(s.Columns))
	kinds[query.ColSancionRFC], kinds[query.ColSancionMoneda] = key, key
	kinds[query.ColSancionInicio], kinds[query.ColSancionFin] = day, day
	kinds[query.ColSancionMonto] = sum
	return kinds
}

// mapper turns the cells of one record, by column of the schema, into one row.
type mapper struct {
	kinds  []kind
	counts map[string]int
	// id are the columns of the identity behind the RFC.
	id []int
	// rfc is its column, -1 in a publication without one.
	rfc int

	text []byte
}

// row maps a record. The row is add's as long as readers promise.
func (m *mapper) row(cells []string) snapshots.Row {
	row := snapshots.Row{Raw: cells, Norm: make([]string, len(cells)), ID: []string{""}}
	for i, c := range cells {
		row.Norm[i] = m.normal(m.kinds[i], c)
	}
	if m.rfc >= 0 {
		if rfc, err := checks.ParseRFC(row.Norm[m.rfc]); err == nil && !rfc.Generic() {
			row.ID[0] = rfc.String()
		} else {
			row.Suppressed = true
			m.counts[WithoutRFC]++
		}
	}
	for _, column := range m.id {
		row.ID = append(row.ID, string(shortened(tabular.AppendFolded(nil, []byte(cells[column])))))
	}
	return row
}

// maxIdentity bounds a part of an identity; names and offices have under 200 bytes.
const maxIdentity = 600

func shortened(text []byte) []byte { return text[:min(len(text), maxIdentity)] }

func (m *mapper) normal(k kind, cell string) string {
	if cell == "" {
		return ""
	}
	if k == key {
		return string(tabular.AppendKey(nil, []byte(cell)))
	}
	m.text = tabular.AppendText(m.text[:0], []byte(cell))
	text := m.text
	switch k {
	case day:
		return m.day(text)
	case sum:
		if len(text) == 0 {
			return ""
		}
		amount, ok := query.AppendImporte(nil, string(text))
		if !ok {
			m.counts[UnreadSums]++
			return string(text)
		}
		return string(amount)
	}
	return string(text)
}

// day is a day, or that of a moment: 21-02-2026, 2026-02-21, 2026-02-21T06:00:00.000Z.
// The day is the written one: whether a zone is meant or only printed is not known.
// What is no single day stays as it is published.
func (m *mapper) day(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	date := text
	if len(date) > 10 && (date[10] == 'T' || date[10] == ' ') && date[4] == '-' {
		date = date[:10]
	}
	read, seen, ok := tabular.AppendDates(nil, date)
	if !ok || seen.Read != 1 {
		m.counts[tabular.UnreadDates]++
		return string(text)
	}
	return string(read)
}
