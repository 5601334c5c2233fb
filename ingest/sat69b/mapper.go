package sat69b

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"cotejo/checks"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// mapper turns records into rows. It reuses the slices of the row and makes two
// strings per record, one for what was published and one for what was changed by
// normalising; the cells are pieces of them.
type mapper struct {
	layout *layout
	head   *header
	counts map[string]int

	reused snapshots.Row
	raw    []byte
	norm   []byte
	ends   []end // by column
	text   []byte
}

// end is where a cell ends in mapper.raw and in mapper.norm.
type end struct {
	raw, norm int
	same      bool // the normalised value is the published one
}

// newMapper returns a mapper that counts into counts.
func newMapper(l *layout, head *header, counts map[string]int) *mapper {
	return &mapper{
		layout: l,
		head:   head,
		counts: counts,
		reused: snapshots.Row{
			ID:   make([]string, 2),
			Raw:  make([]string, len(l.kinds)),
			Norm: make([]string, len(l.kinds)),
		},
		ends: make([]end, len(l.kinds)),
	}
}

// row maps one record, which has at least head.width cells.
func (m *mapper) row(cells [][]byte) snapshots.Row {
	m.raw, m.norm = m.raw[:0], m.norm[:0]
	for i, kind := range m.layout.kinds {
		var cell []byte
		if from := m.head.from[i]; from >= 0 {
			cell = cells[from]
		}
		m.raw = append(m.raw, cell...)
		start := len(m.norm)
		m.norm = m.appendNormal(m.norm, kind, cell)
		m.ends[i].same = bytes.Equal(m.norm[start:], cell)
		if m.ends[i].same {
			m.norm = m.norm[:start]
		}
		m.ends[i].raw, m.ends[i].norm = len(m.raw), len(m.norm)
	}
	identity := len(m.norm)
	m.norm = m.appendProcedure(m.norm, cells)

	row := m.reused
	raw, norm := string(m.raw), string(m.norm)
	r, n := 0, 0
	for i, end := range m.ends {
		row.Raw[i] = raw[r:end.raw]
		row.Norm[i] = norm[n:end.norm]
		if end.same {
			row.Norm[i] = row.Raw[i]
		}
		r, n = end.raw, end.norm
	}
	row.Suppressed = tabular.Suppressed(row.Norm[columnRFC])
	if row.Suppressed {
		row.ID[0], row.ID[1] = tabular.SuppressedRFC, suppressedID(row.Norm)
		return row
	}
	row.ID[0], row.ID[1] = row.Norm[columnRFC], norm[identity:]
	if _, ok := checks.PackRFC(row.ID[0]); !ok {
		m.counts[tabular.UnreadRFCs]++
	}
	return row
}

// appendProcedure appends what tells the procedures against one taxpayer apart:
// the number of the oficio with which one begins.
//
// When the cell lists several it is the last one: lists put the newest first, so
// an oficio that is added later leaves the last one where it is. (In the lists of
// 2019 to 2026 no such cell holds more than one.)
func (m *mapper) appendProcedure(dst []byte, cells [][]byte) []byte {
	m.text = tabular.AppendText(m.text[:0], cells[m.head.from[m.layout.identity]])
	return tabular.AppendOficioNumber(dst, m.text)
}

// suppressedID tells redacted rows apart by everything that is left of them.
func suppressedID(norm []string) string {
	h := sha256.New()
	for i, value := range norm {
		if i != columnNo {
			h.Write([]byte(value))
			h.Write([]byte{0x1f}) // normalised values hold no control character
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (m *mapper) appendNormal(dst []byte, k kind, cell []byte) []byte {
	if len(cell) == 0 {
		return dst
	}
	switch k {
	case rfc:
		return tabular.AppendKey(dst, cell)
	case plain:
		return tabular.AppendText(dst, cell)
	}
	m.text = tabular.AppendText(m.text[:0], cell)
	switch k {
	case situation:
		var known bool
		if dst, known = m.layout.appendSituation(dst, m.text); !known {
			m.counts[tabular.UnknownSituations]++
		}
		return dst
	case oficios:
		dst, ok := tabular.AppendOficios(dst, m.text)
		if !ok {
			m.counts[tabular.UnreadOficios]++
		}
		return dst
	default:
		dst, seen, ok := tabular.AppendDates(dst, m.text)
		if !ok {
			m.counts[tabular.UnreadDates]++
		}
		if seen.Serial > 0 {
			m.counts[tabular.SerialDates] += seen.Serial
		}
		if seen.ShortYear > 0 {
			m.counts[tabular.ShortYears] += seen.ShortYear
		}
		return dst
	}
}

// appendSituation appends the canonical form of a known situation, and any other
// text as it is: a new situation must be seen, not dropped. Nothing at all is known.
func (l *layout) appendSituation(dst, text []byte) (out []byte, known bool) {
	if len(text) == 0 {
		return dst, true
	}
	for _, s := range l.situations {
		if bytes.EqualFold(text, s) {
			return append(dst, s...), true
		}
	}
	folded := []byte(tabular.Fold(text))
	for _, s := range l.situations {
		if bytes.EqualFold(folded, s) {
			return append(dst, s...), true
		}
	}
	return append(dst, text...), false
}
