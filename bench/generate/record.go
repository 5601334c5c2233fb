package generate

import (
	"strconv"
	"time"
)

// record is a row that is being put together, in windows-1252.
type record struct {
	b    []byte
	some bool // it has a cell
}

func (r *record) begin() { r.b, r.some = r.b[:0], false }

// open begins a cell, whose text is appended to r.b; shut ends it.
func (r *record) open() (start int) {
	if r.some {
		r.b = append(r.b, ',')
	}
	r.some = true
	return len(r.b)
}

// shut quotes the cell where it has to be.
func (r *record) shut(start int) {
	quotes, need := 0, false
	for _, c := range r.b[start:] {
		if c == '"' {
			quotes++
		}
		need = need || c == '"' || c == ',' || c == '\n' || c == '\r'
	}
	if !need {
		return
	}
	end := len(r.b)
	for range quotes + 2 {
		r.b = append(r.b, '"')
	}
	to := len(r.b) - 2 // the last byte is the closing quote
	for from := end - 1; from >= start; from-- {
		r.b[to] = r.b[from]
		to--
		if r.b[from] == '"' {
			r.b[to] = '"'
			to--
		}
	}
	r.b[start] = '"'
}

// add is a cell, quoted where it has to be.
func (r *record) add(text string) {
	start := r.open()
	r.b = append(r.b, text...)
	r.shut(start)
}

func (r *record) bytes(text []byte) {
	start := r.open()
	r.b = append(r.b, text...)
	r.shut(start)
}

// bare is a cell whose quotes nobody escapes; it has neither comma nor line end.
func (r *record) bare(text string) {
	r.open()
	r.b = append(r.b, text...)
}

func (r *record) int(n int) {
	r.open()
	r.b = strconv.AppendInt(r.b, int64(n), 10)
}

// empty is n cells without text.
func (r *record) empty(n int) {
	for range n {
		r.open()
	}
}

// end is the whole record; it is valid until begin.
func (r *record) end() []byte {
	r.b = append(r.b, '\r', '\n')
	return r.b
}

// day counts days from 1 January 1970.
type day int

func dayOf(year int, month time.Month, d int) day {
	return day(time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// corteDay is the last day that a file may tell of as past.
var corteDay = dayOf(Corte.Year, Corte.Month, Corte.Day)

func (d day) date() (year int, month time.Month, day int) {
	return time.Unix(int64(d)*86400, 0).UTC().Date()
}

// serial is the day as Excel keeps it: days since 1899-12-30.
func (d day) serial() int { return int(d) + 25569 }

// appendSlashed appends dd/mm/yyyy.
func (d day) appendSlashed(dst []byte) []byte {
	y, m, n := d.date()
	dst = append(appendTwo(dst, n), '/')
	dst = append(appendTwo(dst, int(m)), '/')
	return strconv.AppendInt(dst, int64(y), 10)
}

// appendUnpadded appends d/m/yyyy.
func (d day) appendUnpadded(dst []byte) []byte {
	y, m, n := d.date()
	dst = append(strconv.AppendInt(dst, int64(n), 10), '/')
	dst = append(strconv.AppendInt(dst, int64(m), 10), '/')
	return strconv.AppendInt(dst, int64(y), 10)
}

// appendISO appends yyyy-mm-dd.
func (d day) appendISO(dst []byte) []byte {
	y, m, n := d.date()
	dst = append(strconv.AppendInt(dst, int64(y), 10), '-')
	dst = append(appendTwo(dst, int(m)), '-')
	return appendTwo(dst, n)
}

var months = [...]string{
	"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
}

func appendTwo(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10%10), byte('0'+n%10))
}

// appendGrouped appends a whole number with commas between the thousands.
func appendGrouped(dst []byte, n int) []byte {
	if n >= 1000 {
		dst = append(appendGrouped(dst, n/1000), ',')
		return append(dst, byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
	}
	return strconv.AppendInt(dst, int64(n), 10)
}
