package tabular

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"cotejo/snapshots"
)

// SuppressedRFC stands for the RFC of a taxpayer whom a court ordered to be
// removed from a list of the SAT: the row stays without a name.
const SuppressedRFC = "XXXXXXXXXXXX"

// Suppressed reports whether a normalised RFC is that of a redacted row.
func Suppressed(rfc string) bool {
	return len(rfc) >= len(SuppressedRFC) && strings.Trim(rfc, "X") == ""
}

// Table is one pass over the records of an official file.
type Table struct {
	Sum     Summary
	records *Reader
}

// Pass opens a file in its encoding, refuses what is empty or a web page, and lets
// walk go through its records. It reads the bytes twice: only the end of a file
// tells its encoding, and a file may be larger than the memory that its reading
// deserves. Errors of official and of walk come back as they are.
func Pass(official snapshots.Opener, walk func(*Table) error) (Summary, error) {
	t := Table{Sum: Summary{Counts: map[string]int{}}}
	var err error
	if t.Sum.Encoding, err = encodingOf(official); err != nil {
		return t.Sum, err
	}
	in, err := official()
	if err != nil {
		return t.Sum, err
	}
	defer in.Close()
	text := NewDecoder(in, t.Sum.Encoding)
	buffered := bufio.NewReaderSize(text, chunk)
	t.records = NewReader(buffered)
	if err = Sniff(buffered); err == nil {
		err = walk(&t)
	}
	t.Sum.Unended = t.records.Unended()
	if n := text.Unassigned(); n > 0 {
		t.Sum.Counts[UnassignedBytes] = n
	}
	return t.Sum, err
}

func encodingOf(official snapshots.Opener) (string, error) {
	in, err := official()
	if err != nil {
		return "", err
	}
	defer in.Close()
	return Encoding(in)
}

// Line is where the last record starts, counted from 1.
func (t *Table) Line() int { return t.records.Line() }

// Next is the next record, io.EOF behind the last one; a broken one is a
// *Refusal. Its cells are valid until the next call.
func (t *Table) Next() ([][]byte, error) {
	cells, err := t.records.Next()
	broken, ok := errors.AsType[*RecordError](err)
	if !ok {
		return cells, err
	}
	code := Broken
	if errors.Is(err, ErrUnclosedQuote) {
		code = Truncated
	}
	return nil, Refuse(code, broken.Error()+"; descargue el archivo de nuevo y, si se repite, revise esa línea")
}

// Short refuses a record with fewer cells than the titles ask for: the last one of
// a file was cut, one in the middle is broken. The pass ends with it.
func (t *Table) Short(got, want int) error {
	line := t.records.Line()
	if _, err := t.records.Next(); errors.Is(err, io.EOF) {
		return Refuse(Truncated, fmt.Sprintf("el último registro (línea %d) tiene %d de %d columnas; descargue el archivo de nuevo", line, got, want))
	}
	return Refuse(Broken, fmt.Sprintf("el registro de la línea %d tiene %d de %d columnas; revise las comillas de esa línea", line, got, want))
}

// Stray refuses the last record for text in a cell (from 0) without a title.
func (t *Table) Stray(cell int) error {
	return Refuse(Broken, fmt.Sprintf(
		"el registro de la línea %d tiene texto en la celda %d, que no tiene título: sus celdas pueden estar recorridas; revise esa línea en el archivo oficial", t.records.Line(), cell+1))
}

// BlankRecord reports whether a record is one of the filler rows that spreadsheets
// leave at the end of a list.
func BlankRecord(cells [][]byte) bool {
	for _, c := range cells {
		if !Blank(c) {
			return false
		}
	}
	return true
}

// listed bounds how many titles, and listedRunes how much of each, an error names:
// a file may have 256 columns with titles of any length.
const (
	listed      = 20
	listedRunes = 100
)

// Titles names titles in an error, in their order.
func Titles(titles []string) string {
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
