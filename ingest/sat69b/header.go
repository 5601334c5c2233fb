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
	"cotejo/query"
)

// headerRows is how many records may stand before and including the titles.
const headerRows = 20

// header says where the canonical columns are in a file.
type header struct {
	from   []int  // by canonical column: position in the file, -1 for a column that the layout lacks
	titled []bool // by position: whether there is a title; nothing but blanks may stand elsewhere
	width  int    // cells that every record must have
}

// titles2019 are the 18 columns of 2019 and before, folded, by position: titles
// repeat, so only their order tells SAT from DOF. canonical is where each one
// stands in query.Sat69B. That layout has a single oficio for who was cleared and
// for who is definitive; it fills the SAT column and leaves the DOF column empty.
var titles2019 = [...]struct {
	title     string
	canonical int
}{
	{"no", 0},
	{"rfc", 1},
	{"nombre del contribuyente", 2},
	{"situacion del contribuyente", 3},
	{"numero y fecha de oficio global de presuncion", 4},
	{"publicacion pagina sat presuntos", 5},
	{"numero y fecha de oficio global de presuncion", 6},
	{"publicacion dof presuntos", 7},
	{"publicacion pagina sat desvirtuados", 9},
	{"numero y fecha de oficio global de contribuyentes que desvirtuaron", 8},
	{"publicacion dof desvirtuados", 11},
	{"numero y fecha de oficio global de definitivos", 12},
	{"publicacion pagina sat definitivos", 13},
	{"publicacion dof definitivos", 15},
	{"numero y fecha de oficio global de sentencia favorable", 16},
	{"publicacion pagina sat sentencia favorable", 17},
	{"numero y fecha de oficio global de sentencia favorable", 18},
	{"publicacion dof sentencia favorable", 19},
}

// header reads up to the titles, the first record whose second cell is RFC, and
// takes the cut date from the note above them. A record with RFC in another place
// only serves to say what is wrong: what stood between it and here would be lost.
func (r *reading) header() (*header, error) {
	var nearest []string // its titles
	for range headerRows {
		cells, err := r.next()
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
			return match(titles)
		}
		for _, c := range cells {
			if r.sum.Corte.IsZero() {
				r.sum.Corte = corte(c)
			}
		}
	}
	if nearest == nil {
		nearest = []string{}
	}
	message := fmt.Sprintf("no hay una fila de títulos con RFC en la segunda celda entre los primeros %d registros", headerRows)
	var refusal *tabular.Refusal
	if _, err := match(nearest); errors.As(err, &refusal) {
		message += "; " + refusal.Fault.Message
	} else {
		message += fmt.Sprintf("; está en la celda %d, junto a las demás columnas. Compare los títulos con la publicación oficial: si el SAT los movió, hace falta un lector nuevo", 1+slices.Index(nearest, "rfc"))
	}
	return nil, tabular.Refuse(tabular.Header, message)
}

// match finds the canonical columns among folded titles.
func match(titles []string) (*header, error) {
	if h := match2019(titles); h != nil {
		return h, nil
	}
	h := &header{from: make([]int, len(query.Sat69B.Columns)), titled: make([]bool, len(titles))}
	known := make(map[string]int, len(h.from))
	for i, c := range query.Sat69B.Columns {
		h.from[i] = -1
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
	for i, c := range query.Sat69B.Columns {
		if h.from[i] < 0 {
			missing = append(missing, c.Name)
		}
	}
	if missing == nil && foreign == nil {
		return h, nil
	}
	var message []string
	if missing != nil {
		message = append(message, "faltan las columnas "+list(missing))
	}
	if foreign != nil {
		message = append(message, "no se conocen o se repiten las columnas "+list(foreign))
	}
	return nil, tabular.Refuse(tabular.Header, strings.Join(message, "; ")+". Compare los títulos con la publicación oficial: si el SAT los cambió, hace falta un lector nuevo")
}

func match2019(titles []string) *header {
	if len(titles) < len(titles2019) {
		return nil
	}
	h := &header{from: make([]int, len(query.Sat69B.Columns)), titled: make([]bool, len(titles)), width: len(titles2019)}
	for i := range h.from {
		h.from[i] = -1
	}
	for i, t := range titles {
		switch {
		case i < len(titles2019) && t == titles2019[i].title:
			h.from[titles2019[i].canonical], h.titled[i] = i, true
		case i >= len(titles2019) && t == "":
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

// listed bounds how many titles, and listedRunes how much of each, an error names:
// a file may have 256 columns with titles of any length.
const (
	listed      = 20
	listedRunes = 100
)

func list(titles []string) string {
	var b strings.Builder
	for i, t := range titles {
		if i == listed {
			fmt.Fprintf(&b, " y %d más", len(titles)-listed)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if runes := []rune(t); len(runes) > listedRunes {
			t = string(runes[:listedRunes]) + "…"
		}
		b.WriteString("«" + t + "»")
	}
	return b.String()
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
