package tabular

import (
	"bytes"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"cotejo/civil"
)

// AppendText appends a cell in the form in which texts are compared: Unicode
// NFC, every run of blanks, no-break blanks, line ends and control characters
// as one blank, none at the ends. Case and accents stay. Appending a result
// again gives the same bytes.
func AppendText(dst, cell []byte) []byte {
	if tidy(cell) {
		return append(dst, cell...)
	}
	start := len(dst)
	gap := false
	for i := 0; i < len(cell); {
		b := cell[i]
		if b < utf8.RuneSelf {
			i++
			if b <= ' ' || b == 0x7f {
				gap = true
				continue
			}
			if gap && len(dst) > start {
				dst = append(dst, ' ')
			}
			gap = false
			dst = append(dst, b)
			continue
		}
		r, size := utf8.DecodeRune(cell[i:])
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			gap = true
			i += size
			continue
		}
		if gap && len(dst) > start {
			dst = append(dst, ' ')
		}
		gap = false
		dst = append(dst, cell[i:i+size]...)
		i += size
	}
	return compose(dst, start)
}

// tidy reports whether a cell is, as nearly all are, what AppendText makes of it:
// ASCII and the letters from À to ÿ, with single blanks between other characters.
func tidy(cell []byte) bool {
	gap := true
	for i := 0; i < len(cell); i++ {
		switch b := cell[i]; {
		case b > ' ' && b < 0x7f:
			gap = false
		case b == ' ' && !gap:
			gap = true
		case b == latinLead && i+1 < len(cell) && cell[i+1]&0xC0 == 0x80:
			gap = false
			i++
		default:
			return false
		}
	}
	return !gap || len(cell) == 0
}

// latinLead begins the UTF-8 form of the letters from À to ÿ, in which they are
// normal (NFC).
const latinLead = 0xC3

// Blank reports whether AppendText makes nothing of a cell.
func Blank(cell []byte) bool {
	for len(cell) > 0 {
		r, size := utf8.DecodeRune(cell)
		if !unicode.IsSpace(r) && !unicode.IsControl(r) {
			return false
		}
		cell = cell[size:]
	}
	return true
}

// AppendKey appends a cell in the form of an identifier: AppendText, upper case
// and without any blank.
func AppendKey(dst, cell []byte) []byte {
	start := len(dst)
	ascii := true
	for i := 0; i < len(cell); {
		if b := cell[i]; b < utf8.RuneSelf {
			i++
			if b > ' ' && b < 0x7f {
				dst = append(dst, upper(b))
			}
			continue
		}
		ascii = false
		r, size := utf8.DecodeRune(cell[i:])
		i += size
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			continue
		}
		dst = utf8.AppendRune(dst, unicode.ToUpper(r))
	}
	if ascii {
		return dst
	}
	return compose(dst, start)
}

func upper(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

// compose brings dst[start:] into NFC, which it nearly always is.
func compose(dst []byte, start int) []byte {
	text := dst[start:]
	if norm.NFC.IsNormal(text) {
		return dst
	}
	return append(dst[:start], norm.NFC.Bytes(bytes.Clone(text))...)
}

// AppendFolded appends a cell in the form in which texts of lists are compared
// whose authority writes the same words with accents in one version and without
// them in the next: AppendText, upper case, no accent. Ñ becomes N.
func AppendFolded(dst, cell []byte) []byte {
	if tidy(cell) {
		for i := 0; i < len(cell); i++ {
			if b := cell[i]; b != latinLead {
				dst = append(dst, upper(b))
			} else {
				i++
				dst = append(dst, folded[cell[i]&0x3F]...)
			}
		}
		return dst
	}
	return foldSlowly(dst, cell)
}

// folded is what foldSlowly makes of the letters from À to ÿ.
var folded = func() (t [64]string) {
	for i := range t {
		t[i] = string(foldSlowly(nil, []byte{latinLead, 0x80 | byte(i)}))
	}
	return t
}()

// foldSlowly is AppendFolded of any cell.
func foldSlowly(dst, cell []byte) []byte {
	start := len(dst)
	dst = AppendText(dst, cell)
	var bare []byte
	for _, r := range string(norm.NFD.Bytes(bytes.Clone(dst[start:]))) {
		if !unicode.Is(unicode.Mn, r) {
			bare = utf8.AppendRune(bare, unicode.ToUpper(r))
		}
	}
	return AppendText(dst[:start], bare) // an accent may have stood alone between blanks
}

// AppendAmount appends an amount as a decimal number: digits, without leading
// zeros, and after a point those decimals that are not zeros at the end. It reads
// "1390273", "1,390,273.50", " $ 1,390.00 " and a minus sign before them; commas
// stand between thousands or nowhere.
//
// text must come from AppendText. ok is false, and text itself is appended, when
// it is anything else; an empty one is empty.
func AppendAmount(dst, text []byte) (out []byte, ok bool) {
	if len(text) == 0 {
		return dst, true
	}
	s := scanner{text: text}
	negative := s.skip('-')
	s.skip(' ')
	s.skip('$')
	s.skip(' ')
	negative = s.skip('-') || negative
	start := len(dst)
	if negative {
		dst = append(dst, '-')
	}
	whole := len(dst)
	group := s.digits(maxAmountDigits)
	dst = append(dst, group...)
	for n := len(group); n > 0 && n <= 3 && s.skip(','); {
		if group = s.digits(3); len(group) != 3 {
			return append(dst[:start], text...), false
		}
		dst = append(dst, group...)
	}
	if len(dst) == whole {
		return append(dst[:start], text...), false
	}
	zeros := 0
	for zeros < len(dst)-whole-1 && dst[whole+zeros] == '0' {
		zeros++
	}
	dst = append(dst[:whole], dst[whole+zeros:]...)
	if s.skip('.') {
		decimals := s.digits(maxAmountDigits)
		if decimals = bytes.TrimRight(decimals, "0"); len(decimals) > 0 {
			dst = append(append(dst, '.'), decimals...)
		}
	}
	if !s.end() {
		return append(dst[:start], text...), false
	}
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst, true
}

// maxAmountDigits is far more than any amount of these lists has.
const maxAmountDigits = 18

// Fold returns a title in the form in which titles are matched: AppendText, lower
// case, without accents and without a final period ("No." is "No").
func Fold(cell []byte) string {
	var out []byte
	for _, r := range string(norm.NFD.Bytes(AppendText(nil, cell))) {
		if !unicode.Is(unicode.Mn, r) {
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
	}
	return string(bytes.TrimRight(out, ". "))
}

// Dates is what AppendDates met in a cell.
type Dates struct {
	Read      int // dates
	Serial    int // of them written as Excel serial numbers
	ShortYear int // of them written with two-digit years
}

// AppendDates appends the dates of a cell as YYYY-MM-DD, joined by one blank, in
// their own order (official lists put the newest first). It reads d/m/yyyy with
// slashes, hyphens or periods, two-digit years as 20yy, yyyy-mm-dd, and Excel
// serial numbers (days since 1899-12-30) between 2000 and 2099; between dates
// stand blanks, hyphens or slashes in any number.
//
// text must come from AppendText. ok is false, and text itself is appended, when
// anything in it is not an existing date.
func AppendDates(dst, text []byte) (out []byte, seen Dates, ok bool) {
	start := len(dst)
	s := scanner{text: text}
	for !s.end() {
		day, form, ok := s.date()
		if !ok || !(s.end() || s.separators() > 0) {
			return append(dst[:start], text...), Dates{}, false
		}
		if seen.Read > 0 {
			dst = append(dst, ' ')
		}
		dst = AppendDate(dst, day)
		seen.Read++
		switch form {
		case serialForm:
			seen.Serial++
		case shortForm:
			seen.ShortYear++
		}
	}
	return dst, seen, true
}

// AppendDate appends YYYY-MM-DD.
func AppendDate(dst []byte, d civil.Date) []byte {
	dst = appendDigits(dst, d.Year, 4)
	dst = appendDigits(append(dst, '-'), int(d.Month), 2)
	return appendDigits(append(dst, '-'), d.Day, 2)
}

func appendDigits(dst []byte, n, width int) []byte {
	for div := [...]int{1, 10, 100, 1000}[width-1]; div > 0; div /= 10 {
		dst = append(dst, byte('0'+n/div%10))
	}
	return dst
}

// scanner walks through a normalised text.
type scanner struct {
	text []byte
	pos  int
}

func (s *scanner) end() bool { return s.pos == len(s.text) }

func (s *scanner) is(c byte) bool { return s.pos < len(s.text) && s.text[s.pos] == c }

func (s *scanner) skip(c byte) bool {
	if s.is(c) {
		s.pos++
		return true
	}
	return false
}

// hyphen skips a hyphen or a dash: typists and programs use them alike.
func (s *scanner) hyphen() bool {
	if s.skip('-') {
		return true
	}
	for _, dash := range [...]string{"–", "—", "‐", "‑", "−"} {
		if bytes.HasPrefix(s.text[s.pos:], []byte(dash)) {
			s.pos += len(dash)
			return true
		}
	}
	return false
}

// separators skips what stands between the items of a cell and returns the
// number of bytes skipped.
func (s *scanner) separators() int {
	from := s.pos
	for s.skip(' ') || s.skip('/') || s.skip(',') || s.skip(';') || s.hyphen() {
	}
	return s.pos - from
}

// digits returns the digits at the position, none when there are more than max.
func (s *scanner) digits(max int) []byte {
	from := s.pos
	for s.pos < len(s.text) && s.text[s.pos] >= '0' && s.text[s.pos] <= '9' {
		s.pos++
	}
	if s.pos-from > max {
		s.pos = from
		return nil
	}
	return s.text[from:s.pos]
}

func value(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
}

type dateForm byte

const (
	longForm dateForm = iota
	shortForm
	serialForm
)

var (
	serialZero  = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	serialFirst = 36526 // 2000-01-01: below it a five-digit number is not a date of these lists
	serialLast  = 73050 // 2099-12-31
)

func (s *scanner) date() (day civil.Date, form dateForm, ok bool) {
	first := s.digits(5)
	switch len(first) {
	case 5:
		n := value(first)
		y, m, d := serialZero.AddDate(0, 0, n).Date()
		return civil.Date{Year: y, Month: m, Day: d}, serialForm, n >= serialFirst && n <= serialLast
	case 1, 2, 4:
	default:
		return day, form, false
	}
	second, ok := s.datePart(2)
	if !ok {
		return day, form, false
	}
	third, ok := s.datePart(4)
	if !ok {
		return day, form, false
	}
	year, month, dom := value(third), value(second), value(first)
	switch {
	case len(first) == 4 && len(third) <= 2:
		year, dom = value(first), value(third)
	case len(first) <= 2 && len(third) == 2:
		year, form = 2000+year, shortForm
	case len(first) <= 2 && len(third) == 4:
	default:
		return day, form, false
	}
	day, ok = civil.New(year, time.Month(month), dom)
	return day, form, ok
}

func (s *scanner) datePart(max int) ([]byte, bool) {
	if !s.skip('/') && !s.skip('.') && !s.hyphen() {
		return nil, false
	}
	part := s.digits(max)
	return part, len(part) > 0
}

// monthNamed returns the month with that Spanish name, in any case.
func monthNamed(name []byte) (time.Month, bool) {
	for i, m := range months {
		if bytes.EqualFold(name, m) {
			return time.Month(i + 1), true
		}
	}
	return time.September, bytes.EqualFold(name, []byte("setiembre"))
}

// WrittenDate returns the day written as "1", "junio", "2018" and whether it exists.
func WrittenDate(day, month, year []byte) (civil.Date, bool) {
	m, known := monthNamed(month)
	if len(day) == 0 || len(day) > 2 || !known || len(year) != 4 {
		return civil.Date{}, false
	}
	return civil.New(value(year), m, value(day))
}

var months = [...][]byte{
	[]byte("enero"), []byte("febrero"), []byte("marzo"), []byte("abril"), []byte("mayo"), []byte("junio"),
	[]byte("julio"), []byte("agosto"), []byte("septiembre"), []byte("octubre"), []byte("noviembre"), []byte("diciembre"),
}
