// Package civil holds the calendar that every answer is given in: days and
// timestamps of Mexico City.
//
// Central Mexico has kept UTC−06:00 all year since the Ley de los Husos
// Horarios of 28 October 2022, and cotejo stamps nothing older, so the zone is
// a fixed offset: the same binary prints the same timestamp on any machine,
// with or without a time zone database.
package civil

import (
	"fmt"
	"time"
)

// Zone is the time zone of every timestamp that leaves the service.
var Zone = time.FixedZone("America/Mexico_City", -6*60*60)

// Date is a calendar day without a time. Its zero value is no date. Dates
// compare with == and with Before.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// Of returns the civil day of Mexico City on which t falls.
func Of(t time.Time) Date {
	y, m, d := t.In(Zone).Date()
	return Date{y, m, d}
}

// New returns the date and whether such a day exists: 30 February does not.
func New(year int, month time.Month, day int) (Date, bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > 31 {
		return Date{}, false
	}
	y, m, d := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Date()
	return Date{year, month, day}, y == year && m == month && d == day
}

// Parse reads YYYY-MM-DD, the only form that requests and files of ours use.
func Parse(s string) (Date, error) {
	if len(s) == 10 && s[4] == '-' && s[7] == '-' {
		if d, ok := New(digits(s[:4]), time.Month(digits(s[5:7])), digits(s[8:])); ok {
			return d, nil
		}
	}
	return Date{}, fmt.Errorf("«%s» no es una fecha AAAA-MM-DD", s)
}

// digits returns the number that s writes, -1 when it writes none.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// IsZero reports whether d is no date.
func (d Date) IsZero() bool { return d == Date{} }

// Before reports whether d is an earlier day than other.
func (d Date) Before(other Date) bool { return d.Compact() < other.Compact() }

// Compact returns the day as the integer YYYYMMDD, which orders as the days do.
func (d Date) Compact() uint32 {
	return uint32(d.Year*10000 + int(d.Month)*100 + d.Day)
}

// String returns YYYY-MM-DD, or "" for no date.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return string(d.AppendTo(nil))
}

// AppendTo appends YYYY-MM-DD.
func (d Date) AppendTo(dst []byte) []byte {
	y, m, day := d.Year, int(d.Month), d.Day
	return append(dst,
		byte('0'+y/1000%10), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-',
		byte('0'+m/10), byte('0'+m%10), '-', byte('0'+day/10), byte('0'+day%10))
}

// MarshalText writes YYYY-MM-DD; the zero date is empty.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Date) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*d = Date{}
		return nil
	}
	*d, err = Parse(string(b))
	return err
}

// Days returns how many days other lies after d.
func (d Date) Days(other Date) int {
	return int(other.midnight().Sub(d.midnight()) / (24 * time.Hour))
}

// End returns the first moment after the day in Mexico City.
func (d Date) End() time.Time {
	return time.Date(d.Year, d.Month, d.Day+1, 0, 0, 0, 0, Zone)
}

func (d Date) midnight() time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
}

const timestampLayout = "2006-01-02T15:04:05-07:00"

// Timestamp formats t as RFC 3339 with whole seconds and the offset of Zone.
func Timestamp(t time.Time) string { return t.In(Zone).Format(timestampLayout) }

// AppendTimestamp appends what Timestamp returns.
func AppendTimestamp(dst []byte, t time.Time) []byte {
	return t.In(Zone).AppendFormat(dst, timestampLayout)
}
