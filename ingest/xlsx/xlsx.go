// Package xlsx reads the first sheet of a workbook that a stranger sent (Office Open
// XML, .xlsx) as rows of text.
//
// It reads the little of the format that a table needs: which part is the first sheet,
// the shared strings, and the cells with their places. Numbers come as the file writes
// them; no number format is applied, since how a format shows a day depends on who
// looks. Formulas give the value that was stored with them.
//
// Everything is bounded before memory is taken: the parts that are read, what they
// unpack to, rows, columns, cells, the text of one cell and that of all of them. The
// archive is never unpacked to disk, and no other part of it is opened. Why not a
// library: docs/adr, «An own reader of workbooks».
//
// It is pure: the same bytes give the same rows. Start reading at Read.
package xlsx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"cotejo/safexml"
)

// Limits of a workbook. The export that is known has 2,396 rows of 9 columns and some
// 0.6 MB of text.
const (
	MaxBytes = 8 << 20 // the packed file

	maxPart    = 24 << 20 // one part, unpacked
	maxEntries = 1000     // of the archive
	maxRows    = 100_000
	maxColumns = 256
	maxCells   = 2_000_000
	maxStrings = 500_000
	maxCell    = 64 << 10 // bytes of text
	maxText    = 64 << 20 // bytes of text of all cells: one string may be shared by many
)

// Error says why a workbook is refused, in Spanish. Cut is set when it ends early.
type Error struct {
	Reason string
	Cut    bool
}

func (e *Error) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &Error{Reason: fmt.Sprintf(format, args...)} }

// Read gives every row of the first sheet that has a cell to row, in the order of the
// sheet, with its number there (from 1). Cells that are not there are empty; the slice
// is valid until row returns. A refusal is an *Error; what row returns comes back as it
// is.
func Read(content []byte, row func(number int, cells []string) error) error {
	if !bytes.HasPrefix(content, []byte("PK")) {
		return refuse("no es un libro de Excel (.xlsx)")
	}
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return &Error{Reason: "el libro de Excel está cortado o dañado", Cut: true}
	}
	if len(z.File) > maxEntries {
		return refuse("el libro tiene %d partes y se admiten %d", len(z.File), maxEntries)
	}
	b := book{parts: map[string]*zip.File{}}
	for _, f := range z.File {
		name := strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(f.Name, `\`, "/")), "/"))
		if _, twice := b.parts[name]; twice {
			return refuse("el libro tiene dos partes con el mismo nombre")
		}
		b.parts[name] = f
	}
	sheet, err := b.firstSheet()
	if err != nil {
		return err
	}
	if err := b.readStrings(); err != nil {
		return err
	}
	return b.rows(sheet, row)
}

type book struct {
	parts   map[string]*zip.File // by path in lower case
	strings []string
}

// part opens a part as XML; nil when there is none.
func (b *book) part(name string) (*safexml.Reader, error) {
	f := b.parts[strings.ToLower(name)]
	if f == nil {
		return nil, nil
	}
	in, err := f.Open()
	if err != nil {
		return nil, refuse("la parte %s del libro no se puede desempacar", base(name))
	}
	defer in.Close()
	// What the archive says of the size is not believed.
	content, err := io.ReadAll(io.LimitReader(in, maxPart+1))
	if err != nil {
		return nil, &Error{Reason: fmt.Sprintf("la parte %s del libro está cortada o dañada", base(name)), Cut: true}
	}
	r, err := safexml.New(content, safexml.Limits{
		Bytes: maxPart, Depth: 32, Elements: 8_000_000, Attributes: 64, Text: maxCell, Instructions: 2,
	})
	return r, inPart(name, err)
}

// base names a part without its folders, shortened: its name is a stranger's.
func base(name string) string {
	name = path.Base(name)
	return name[:min(len(name), 60)]
}

func inPart(name string, err error) error {
	if e, ok := errors.AsType[*safexml.Error](err); ok {
		return refuse("parte %s del libro: %s", base(name), e.Reason)
	}
	return err
}

const (
	workbookPart = "xl/workbook.xml"
	stringsPart  = "xl/sharedstrings.xml"
)

// each calls start for every element that begins, by its local name: a strict workbook
// has other namespaces than a transitional one.
func each(name string, r *safexml.Reader, start func(e *safexml.Event) error) error {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return inPart(name, err)
		}
		if e.Kind == safexml.Start {
			if err := start(&e); err != nil {
				return err
			}
		}
	}
}

// firstSheet is the path of the first sheet.
func (b *book) firstSheet() (string, error) {
	r, err := b.part(workbookPart)
	if err != nil {
		return "", err
	}
	if r == nil {
		return "", refuse("no es un libro de Excel (.xlsx): le falta %s", workbookPart)
	}
	id := ""
	err = each(workbookPart, r, func(e *safexml.Event) error {
		if e.Name.Local != "sheet" || id != "" {
			return nil
		}
		for _, a := range e.Attrs {
			if a.Name.Local == "id" && a.Name.Space != "" {
				id = a.Value
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	const relations = "xl/_rels/workbook.xml.rels"
	sheet := ""
	if r, err = b.part(relations); err != nil {
		return "", err
	}
	if r != nil && id != "" {
		err = each(relations, r, func(e *safexml.Event) error {
			if own, _ := e.Attr("Id"); e.Name.Local == "Relationship" && own == id {
				target, _ := e.Attr("Target")
				if strings.HasPrefix(target, "/") {
					sheet = path.Clean(target)[1:]
				} else {
					sheet = strings.TrimPrefix(path.Clean("/xl/"+target), "/")
				}
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	if b.parts[strings.ToLower(sheet)] == nil {
		return "", refuse("el libro no tiene ninguna hoja que se pueda leer")
	}
	return sheet, nil
}

// readStrings reads the shared strings, if the book has any.
func (b *book) readStrings() error {
	r, err := b.part(stringsPart)
	if r == nil || err != nil {
		return err
	}
	var text strings.Builder
	in := inside{}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return inPart(stringsPart, err)
		}
		in.step(&e)
		switch {
		case e.Kind == safexml.Text && in.text > 0 && in.phonetic == 0:
			if text.Len()+len(e.Text) > maxCell {
				return refuse("un texto del libro pasa de %d bytes", maxCell)
			}
			text.WriteString(e.Text)
		case e.Kind == safexml.End && e.Name.Local == "si":
			if len(b.strings) == maxStrings {
				return refuse("el libro tiene más de %d textos", maxStrings)
			}
			b.strings = append(b.strings, text.String())
			text = strings.Builder{}
		}
	}
}

// inside counts the open elements that hold text, and those whose text is only how it
// is pronounced.
type inside struct{ text, phonetic int }

func (in *inside) step(e *safexml.Event) {
	by := map[safexml.Kind]int{safexml.Start: 1, safexml.End: -1}[e.Kind]
	switch e.Name.Local {
	case "t":
		in.text += by
	case "rPh":
		in.phonetic += by
	}
}

// rows reads the cells of a sheet.
func (b *book) rows(sheet string, row func(number int, cells []string) error) error {
	r, err := b.part(sheet)
	if err != nil {
		return err
	}
	s := reading{book: b}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return inPart(sheet, err)
		}
		if err := s.step(&e, row); err != nil {
			return err
		}
	}
}

// reading is one pass over a sheet.
type reading struct {
	*book
	in     inside
	value  bool // inside <v>
	number int  // of the row
	rows   int
	count  int // cells
	total  int // bytes of text

	cells  []string
	column int    // of the cell, from 0
	kind   string // its attribute t
	text   []byte
}

func (s *reading) step(e *safexml.Event, row func(number int, cells []string) error) error {
	s.in.step(e)
	switch {
	case e.Kind == safexml.Text:
		if s.value || s.in.text > 0 && s.in.phonetic == 0 {
			if len(s.text)+len(e.Text) > maxCell {
				return refuse("una celda del renglón %d pasa de %d bytes", s.number, maxCell)
			}
			s.text = append(s.text, e.Text...)
		}
	case e.Name.Local == "v":
		s.value = e.Kind == safexml.Start
	case e.Name.Local == "row" && e.Kind == safexml.Start:
		return s.beginRow(e)
	case e.Name.Local == "row" && len(s.cells) > 0:
		if s.rows++; s.rows > maxRows {
			return refuse("la hoja tiene más de %d renglones", maxRows)
		}
		return row(s.number, s.cells)
	case e.Name.Local == "c" && e.Kind == safexml.Start:
		return s.beginCell(e)
	case e.Name.Local == "c":
		return s.endCell()
	}
	return nil
}

func (s *reading) beginRow(e *safexml.Event) error {
	next := s.number + 1
	if at, ok := e.Attr("r"); ok {
		n, err := strconv.Atoi(at)
		if err != nil || n < next || n > 1<<20 {
			return refuse("los renglones de la hoja no están en orden")
		}
		next = n
	}
	s.number, s.column = next, -1
	s.cells = s.cells[:0]
	return nil
}

func (s *reading) beginCell(e *safexml.Event) error {
	next := s.column + 1
	if at, ok := e.Attr("r"); ok {
		if next, ok = column(at); !ok || next <= s.column {
			return refuse("las celdas del renglón %d no están en orden", s.number)
		}
	}
	if s.count++; s.count > maxCells || next >= maxColumns {
		return refuse("la hoja tiene una celda más allá de %d columnas o de %d celdas", maxColumns, maxCells)
	}
	s.column, s.text = next, s.text[:0]
	s.kind, _ = e.Attr("t")
	return nil
}

func (s *reading) endCell() error {
	text := ""
	if s.kind == "s" {
		n, err := strconv.Atoi(string(s.text))
		if err != nil || n < 0 || n >= len(s.strings) {
			return refuse("una celda del renglón %d remite a un texto que el libro no tiene", s.number)
		}
		text = s.strings[n]
	} else {
		text = string(s.text)
	}
	if s.total += len(text); s.total > maxText {
		return refuse("los textos de la hoja pasan de %d bytes", maxText)
	}
	for len(s.cells) <= s.column {
		s.cells = append(s.cells, "")
	}
	s.cells[s.column] = text
	return nil
}

// column is the place, from 0, that a reference such as AB12 names.
func column(reference string) (at int, ok bool) {
	letters := strings.TrimRight(reference, "0123456789")
	if letters == "" || len(letters) > 3 || letters == reference {
		return 0, false
	}
	for _, c := range []byte(letters) {
		if c < 'A' || c > 'Z' {
			return 0, false
		}
		at = at*26 + int(c-'A') + 1
	}
	return at - 1, true
}
