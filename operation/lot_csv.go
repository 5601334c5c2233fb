package operation

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"cotejo/ledger"
)

// lotCSV is a row for each entry of the list, in its order: RFC 4180 in UTF-8.
type lotCSV struct{ lotBody }

func (f *lotCSV) begin(lotTotals) error {
	l := f.op.Lot
	titles := []string{"linea", l.Entry.Name, "verification_id", "result_code"}
	for _, c := range l.Columns {
		titles = append(titles, c.Name)
	}
	titles = append(titles, "registro_sha256", "motivo")
	if !f.brief {
		titles = append(titles, "respuesta")
	}
	f.b = append(append(f.b, strings.Join(titles, ",")...), "\r\n"...)
	return nil
}

// record writes the row of a record, and before it those of the entries that no
// record answers.
func (f *lotCSV) record(r *ledger.Record) error {
	e, err := f.upTo(listedItem)
	if err != nil {
		return err
	}
	acta, ok := readActa(r.Acta)
	if !ok {
		return ErrRecord
	}
	l := f.op.Lot
	if f.cells, err = l.Brief(f.cells[:0], r.Note); err != nil {
		return err
	}
	f.b = strconv.AppendInt(f.b, int64(e.line), 10)
	f.cell(l.Text(e.key))
	f.b = r.ID.AppendTo(append(f.b, ','))
	f.cell(r.Code)
	for i := range f.cells {
		switch c := &f.cells[i]; c.Kind {
		case TextCell:
			f.cell(c.Text)
		case NumberCell:
			f.b = strconv.AppendInt(append(f.b, ','), int64(c.Number), 10)
		case ListCell:
			f.cell(strings.Join(c.List, " "))
		default:
			f.b = append(f.b, ',')
		}
	}
	f.b = append(append(f.b, ','), bytes.Trim(acta.registroSHA256, `"`)...)
	f.b = append(f.b, ',') // motivo
	if !f.brief {
		f.b = append(f.b, ',', '"')
		begin := len(f.b)
		if f.b, err = f.splice.append(f.b, r); err != nil {
			return err
		}
		f.b = doubleQuotes(f.b, begin)
		f.b = append(f.b, '"')
	}
	f.b = append(f.b, "\r\n"...)
	return f.pass()
}

func (f *lotCSV) end(int) error {
	if f.order.State != ledger.OrderStopped {
		if _, err := f.upTo(listedKinds); err != nil {
			return err
		}
	}
	return f.flush()
}

// upTo writes the rows of repeated and refused entries up to the first of a kind,
// which it returns, or up to the end of the list.
func (f *lotCSV) upTo(kind listedKind) (e listed, err error) {
	l := f.op.Lot
	for {
		e, ok, err := f.list.next()
		switch {
		case err != nil:
			return e, err
		case !ok && kind == listedKinds:
			return e, nil
		case !ok || e.kind == listedItem && kind != listedItem:
			return e, errList
		case e.kind == listedItem:
			return e, nil
		}
		value, reason := l.Text(e.key), "Duplicado de la línea "+strconv.Itoa(e.first)+": se consultó y se cobró una sola vez"
		if e.kind == listedRefused {
			value, reason = string(e.text), l.refusal(e.text).Rule
		}
		f.b = strconv.AppendInt(f.b, int64(e.line), 10)
		f.cell(value)
		for range len(l.Columns) + 3 {
			f.b = append(f.b, ',')
		}
		f.cell(reason)
		if !f.brief {
			f.b = append(f.b, ',')
		}
		f.b = append(f.b, "\r\n"...)
		if err := f.pass(); err != nil {
			return e, err
		}
	}
}

// cell appends a separator and a text.
func (f *lotCSV) cell(text string) {
	f.b = append(f.b, ',')
	if !strings.ContainsAny(text, ",\"\r\n") && !formula(text) {
		f.b = append(f.b, text...)
		return
	}
	f.b = append(f.b, '"')
	if formula(text) {
		f.b = append(f.b, '\'')
	}
	begin := len(f.b)
	f.b = append(doubleQuotes(append(f.b, text...), begin), '"')
}

// formula reports that a spreadsheet may run a text in place of showing it.
func formula(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first)
}

// doubleQuotes doubles the quotes in what stands behind begin.
func doubleQuotes(b []byte, begin int) []byte {
	n := bytes.Count(b[begin:], []byte{'"'})
	if n == 0 {
		return b
	}
	from := len(b)
	for range n {
		b = append(b, '"')
	}
	for to := len(b); from < to; {
		from--
		to--
		if b[to] = b[from]; b[from] == '"' {
			to--
			b[to] = '"'
		}
	}
	return b
}
