package catalog

import (
	"time"

	"cotejo/civil"
)

// The calendar says which days banks are expected to open. A series says which
// days they did: the calendar is asked only for days after its last value, and
// what is derived from it is marked as expected.
//
// The rules are those that the Comisión Nacional Bancaria y de Valores repeats
// each year in the Diario Oficial (Disposiciones de carácter general que señalan
// los días en que las entidades financieras deberán cerrar sus puertas; Ley de
// Instituciones de Crédito, art. 95), with the Mondays of the Ley Federal del
// Trabajo, art. 74. They agree with the series for every weekday from 2007 but one
// (17 September 2010, declared for that year alone).

// BankingDay reports whether banks are expected to open.
func BankingDay(d civil.Date) bool {
	wd := weekday(d)
	if wd == time.Saturday || wd == time.Sunday {
		return false
	}
	switch d.Month {
	case time.January:
		return d.Day != 1
	case time.February:
		return wd != time.Monday || d.Day > 7
	case time.March, time.April:
		if d.Month == time.March && wd == time.Monday && d.Day >= 15 && d.Day <= 21 {
			return false
		}
		// Maundy Thursday and Good Friday.
		toEaster := d.Days(easter(d.Year))
		return toEaster != 3 && toEaster != 2
	case time.May:
		return d.Day != 1
	case time.September:
		return d.Day != 16
	case time.October:
		// The federal executive changes every six years, since 2024 on this day.
		return d.Day != 1 || d.Year < 2024 || d.Year%6 != 2024%6
	case time.November:
		return d.Day != 2 && (wd != time.Monday || d.Day < 15 || d.Day > 21)
	case time.December:
		return d.Day != 12 && d.Day != 25
	}
	return true
}

// LastBankingDay returns the day, or the last before it, on which banks were
// expected to open.
func LastBankingDay(d civil.Date) civil.Date {
	for !BankingDay(d) {
		d = plus(d, -1)
	}
	return d
}

// nextBankingDay returns the first expected banking day after d.
func nextBankingDay(d civil.Date) civil.Date {
	for {
		if d = plus(d, 1); BankingDay(d) {
			return d
		}
	}
}

// easter returns Easter Sunday of the Gregorian calendar (Meeus, Jones, Butcher).
func easter(year int) civil.Date {
	a, b, c := year%19, year/100, year%100
	g := (b - (b+8)/25 + 1) / 3
	h := (19*a + b - b/4 - g + 15) % 30
	l := (32 + 2*(b%4) + 2*(c/4) - h - c%4) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return civil.Date{Year: year, Month: time.Month(n / 31), Day: n%31 + 1}
}

func weekday(d civil.Date) time.Weekday {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Weekday()
}

// plus returns the day that lies days after d.
func plus(d civil.Date, days int) civil.Date {
	y, m, day := time.Date(d.Year, d.Month, d.Day+days, 0, 0, 0, 0, time.UTC).Date()
	return civil.Date{Year: y, Month: m, Day: day}
}
