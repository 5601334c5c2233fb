package sat69b

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"cotejo/civil"
	"cotejo/ingest/tabular"
)

// headerRows is how many records may stand before and including the titles.
const headerRows = 20

// header says where the canonical columns are in a file.
type header struct {
	from   []int  // by canonical column: position in the file, -1 for a column that the layout lacks
	titled []bool // by position: whether there is a title; nothing but blanks may stand elsewhere
	width  int    // cells that every record must have
}

// header reads up to the titles, the first record whose second cell is RFC, and
// takes the cut date from the note above them. A record with RFC in another place
// only serves to say what is wrong: what stood between it and here would be lost.
func (r *reading) header() (*header, error) {
	var nearest []string // its titles
	for range headerRows {
		cells, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		titles := make([]string, len(cells))
		for i, c := range cells {
			titles[i] = tabular.Fold(c)
			if titles[i] == "rfc" && nearest == nil {
				nearest = titles
			}
		}
		if len(titles) > 1 && titles[1] == "rfc" {
			return r.layout.match(titles)
		}
		r.note(cells)
	}
	if nearest == nil {
		nearest = []string{}
	}
	message := fmt.Sprintf("no hay una fila de títulos con RFC en la segunda celda entre los primeros %d registros", headerRows)
	var refusal *tabular.Refusal
	if _, err := r.layout.match(nearest); errors.As(err, &refusal) {
		message += "; " + refusal.Fault.Message
	} else {
		message += fmt.Sprintf("; está en la celda %d, junto a las demás columnas. Compare los títulos con la publicación oficial: si el SAT los movió, hace falta un lector nuevo", 1+slices.Index(nearest, "rfc"))
	}
	return nil, tabular.Refuse(tabular.Header, message)
}

// note takes the cut date from a record above the titles, if none before it had one.
func (r *reading) note(cells [][]byte) {
	for _, c := range cells {
		if r.Sum.Corte.IsZero() {
			r.Sum.Corte = corte(c)
		}
	}
}

// match finds the canonical columns among folded titles.
func (l *layout) match(titles []string) (*header, error) {
	for _, older := range l.older {
		if h := l.matchOlder(older, titles); h != nil {
			return h, nil
		}
	}
	h := l.newHeader(titles)
	known := make(map[string]int, len(h.from))
	for i, c := range l.schema.Columns {
		known[tabular.Fold([]byte(c.Name))] = i
	}
	var foreign []string
	for i, t := range titles {
		column, ok := known[t]
		switch {
		case t == "":
		case !ok, h.from[column] >= 0:
			foreign = append(foreign, t)
		default:
			h.from[column], h.titled[i] = i, true
			h.width = max(h.width, i+1)
		}
	}
	var missing []string
	for i, c := range l.schema.Columns {
		if h.from[i] < 0 {
			missing = append(missing, c.Name)
		}
	}
	if missing == nil && foreign == nil {
		return h, nil
	}
	var message []string
	if missing != nil {
		message = append(message, "faltan las columnas "+tabular.Titles(missing))
	}
	if foreign != nil {
		message = append(message, "no se conocen o se repiten las columnas "+tabular.Titles(foreign))
	}
	return nil, tabular.Refuse(tabular.Header, strings.Join(message, "; ")+". Compare los títulos con la publicación oficial: si el SAT los cambió, hace falta un lector nuevo")
}

// newHeader knows no column yet.
func (l *layout) newHeader(titles []string) *header {
	h := &header{from: make([]int, len(l.schema.Columns)), titled: make([]bool, len(titles))}
	for i := range h.from {
		h.from[i] = -1
	}
	return h
}

// matchOlder matches titles by position, all of them and no other; nil when they
// are not those.
func (l *layout) matchOlder(older []placed, titles []string) *header {
	if len(titles) < len(older) {
		return nil
	}
	h := l.newHeader(titles)
	h.width = len(older)
	for i, t := range titles {
		switch {
		case i < len(older) && t == older[i].title:
			h.from[older[i].canonical], h.titled[i] = i, true
		case i >= len(older) && t == "":
		default:
			return nil
		}
	}
	return h
}

// stray returns the position of the first cell with text and without a title, -1
// when there is none.
func (h *header) stray(cells [][]byte) int {
	for i, c := range cells {
		if len(c) > 0 && (i >= len(h.titled) || !h.titled[i]) && !tabular.Blank(c) {
			return i
		}
	}
	return -1
}

var corteNote = regexp.MustCompile(`(?i)actualizada\s+al\s+(\d{1,2})\s+de\s+(\p{L}+)\s+de\s+(\d{4})`)

// corte is the cut date that a note states ("Información actualizada al 31 de
// enero de 2026"), zero when it states none that exists.
func corte(cell []byte) civil.Date {
	m := corteNote.FindSubmatch(tabular.AppendText(nil, cell))
	if m == nil {
		return civil.Date{}
	}
	d, ok := tabular.WrittenDate(m[1], m[2], m[3])
	if !ok {
		return civil.Date{}
	}
	return d
}
