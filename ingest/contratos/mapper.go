package contratos

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"cotejo/checks"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// maxKey bounds the RFC and the code of a contract: they are part of an identity.
const maxKey = 200 // bytes

// maxRow bounds what is kept of one record, in bytes of text as published.
const maxRow = 256 << 10

// foreign is how the pseudo-RFC of a supplier from abroad begins: EXT190501US001.
const foreign = "EXT"

// mapper turns records into rows. It reuses the slices of the row; the cells are
// pieces of two strings per record.
type mapper struct {
	head   *header
	counts map[string]int

	reused    snapshots.Row
	strings   tabular.Strings
	raw, norm []byte
	ends      []end // by column
	text      []byte
}

// end is where a cell ends in mapper.raw and in mapper.norm.
type end struct {
	raw, norm int
	same      bool // the normalised value is the published one
}

func newMapper(head *header, counts map[string]int) *mapper {
	n := len(columns) + 1
	return &mapper{
		head: head, counts: counts, ends: make([]end, n),
		reused: snapshots.Row{ID: make([]string, 3), Raw: make([]string, n), Norm: make([]string, n)},
	}
}

// row maps one record that fits the header; record is its number.
func (m *mapper) row(cells [][]byte, record int) (snapshots.Row, error) {
	m.raw, m.norm = m.raw[:0], m.norm[:0]
	for i := range m.ends {
		start := len(m.norm)
		if i == query.ColContratoRegistro {
			m.raw = strconv.AppendInt(m.raw, int64(record), 10)
			m.ends[i] = end{len(m.raw), start, true}
			continue
		}
		var cell []byte
		if from := m.head.from[i]; from >= 0 {
			cell = cells[from]
		}
		m.raw = append(m.raw, cell...)
		m.norm = m.appendNormal(m.norm, columns[i].kind, cell)
		same := bytes.Equal(m.norm[start:], cell)
		if same {
			m.norm = m.norm[:start]
		}
		m.ends[i] = end{len(m.raw), len(m.norm), same}
	}
	row := m.reused
	if len(m.raw) > maxRow || len(m.norm) > maxRow {
		return row, fmt.Errorf("mide %d bytes", len(m.raw))
	}
	raw, norm := m.strings.Make(m.raw), m.strings.Make(m.norm)
	r, n := 0, 0
	for i, e := range m.ends {
		row.Raw[i], row.Norm[i] = raw[r:e.raw], norm[n:e.norm]
		if e.same {
			row.Norm[i] = row.Raw[i]
		}
		r, n = e.raw, e.norm
	}
	row.ID[0], row.ID[1] = row.Norm[query.ColContratoRFC], row.Norm[query.ColContratoCodigo]
	for i, name := range [...]string{"RFC", "código de contrato"} {
		if len(row.ID[i]) > maxKey {
			return row, fmt.Errorf("tiene un %s de %d bytes", name, len(row.ID[i]))
		}
	}
	row.ID[2] = m.contract(row.Norm)
	m.tell(&row)
	return row, nil
}

// contract is the last part of the identity: a hash of title and supplier.
func (m *mapper) contract(norm []string) string {
	m.text = append(append(append(m.text[:0], norm[query.ColContratoTitulo]...), 0x1f), norm[query.ColContratoProveedor]...)
	sum := sha256.Sum256(m.text)
	m.text = hex.AppendEncode(m.text[:0], sum[:16])
	return m.strings.Make(m.text)
}

// tell counts what a row lacks.
func (m *mapper) tell(row *snapshots.Row) {
	rfc := row.ID[0]
	if rfc == "" {
		m.counts[WithoutRFC]++
	} else if _, ok := checks.PackRFC(rfc); !ok {
		if len(rfc) >= len(foreign) && rfc[:len(foreign)] == foreign {
			m.counts[ForeignRFCs]++
		} else {
			m.counts[tabular.UnreadRFCs]++
		}
	}
	if _, origin := query.ContractDate(row.Norm); origin == "" {
		m.counts[Undated]++
	}
}

func (m *mapper) appendNormal(dst []byte, k kind, cell []byte) []byte {
	if len(cell) == 0 {
		return dst
	}
	switch k {
	case key, currency:
		return tabular.AppendKey(dst, cell)
	case plain:
		return tabular.AppendText(dst, cell)
	}
	m.text = tabular.AppendText(m.text[:0], cell)
	if len(m.text) == 0 {
		return dst
	}
	start := len(dst)
	if k == day {
		dst, ok := appendDay(dst, m.text)
		if !ok {
			m.counts[tabular.UnreadDates]++
			return append(dst[:start], m.text...)
		}
		return dst
	}
	dst, ok := query.AppendImporte(dst, m.strings.Make(m.text))
	if !ok {
		m.counts[UnreadSums]++
		return append(dst[:start], m.text...)
	}
	if query.Implausible(dst[start:]) {
		m.counts[Implausible]++
	}
	return dst
}

// appendDay appends the day of a moment: 2026-01-21 11:57:32, 01/01/2026, either
// with GMT behind it. The day is the written one. Whether GMT is meant or only
// printed is not known; moving the day by it would put midnight into the day before.
func appendDay(dst, text []byte) (out []byte, ok bool) {
	date, clock := text, []byte(nil)
	if at := bytes.IndexAny(text, " T"); at > 0 {
		date, clock = text[:at], bytes.TrimSpace(text[at+1:])
	}
	out, seen, ok := tabular.AppendDates(dst, date)
	return out, ok && seen.Read == 1 && seen.Serial == 0 && isClock(clock)
}

// isClock reports whether text is nothing, or a time of day with or without a zone.
func isClock(text []byte) bool {
	for _, zone := range [...]string{"GMT", "UTC", "Z"} {
		if rest, ok := bytes.CutSuffix(text, []byte(zone)); ok {
			text = bytes.TrimSpace(rest)
			break
		}
	}
	if len(text) == 0 {
		return true
	}
	text, fraction, point := bytes.Cut(text, []byte("."))
	parts := bytes.Split(text, []byte(":"))
	if len(parts) < 2 || len(parts) > 3 || point && (len(parts) != 3 || !number(fraction, 9)) {
		return false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(string(p))
		if !number(p, 2) || err != nil || n > 59 || i == 0 && n > 23 {
			return false
		}
	}
	return true
}

func number(text []byte, max int) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= max
}
