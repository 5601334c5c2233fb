package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cotejo/civil"
)

func TestFix(t *testing.T) {
	s := Embedded().FIX
	f := func(basis Basis, on, rate, determined, published, payable string, gap Gap) {
		t.Helper()
		x, err := s.At(basis, day(on), now)
		if err != nil {
			t.Fatalf("%s %s: %v", basis, on, err)
		}
		if x.Rate.String() != rate || x.Determined != day(determined) || x.Published != day(published) || x.Payable != day(payable) ||
			x.Gap != gap || x.Basis != basis || x.Day != day(on) || x.Expected() || x.PayableExpected {
			t.Errorf("%s %s: %+v", basis, on, x)
		}
	}
	// 2020-01-02 is also a sample of the official API.
	f(Determination, "2020-01-02", "18.8817", "2020-01-02", "2020-01-03", "2020-01-06", NoGap)
	// Worked examples of the reference: a Friday before a weekend, and a Wednesday.
	f(Determination, "2024-12-27", "20.2683", "2024-12-27", "2024-12-30", "2024-12-31", NoGap)
	f(Publication, "2024-12-30", "20.2683", "2024-12-27", "2024-12-30", "2024-12-31", NoGap)
	f(Payment, "2024-12-31", "20.2683", "2024-12-27", "2024-12-30", "2024-12-31", NoGap)
	f(Payment, "2021-12-31", "20.5835", "2021-12-29", "2021-12-30", "2021-12-31", NoGap)
	// The same day on the three bases.
	f(Determination, "2024-12-30", "20.5103", "2024-12-30", "2024-12-31", "2025-01-02", NoGap)
	f(Payment, "2024-12-30", "20.1657", "2024-12-26", "2024-12-27", "2024-12-30", NoGap)
	// Weekend, Christmas, New Year.
	f(Determination, "2024-12-28", "20.2683", "2024-12-27", "2024-12-30", "2024-12-31", Saturday)
	f(Determination, "2024-12-29", "20.2683", "2024-12-27", "2024-12-30", "2024-12-31", Sunday)
	f(Determination, "2024-12-25", "20.1558", "2024-12-24", "2024-12-26", "2024-12-27", BankHoliday)
	f(Payment, "2025-01-01", "20.2683", "2024-12-27", "2024-12-30", "2024-12-31", BankHoliday)
	f(Publication, "2025-01-01", "20.5103", "2024-12-30", "2024-12-31", "2025-01-02", BankHoliday)
	// 17 September 2010 was declared for that year alone: the series knows.
	f(Determination, "2010-09-17", "12.7793", "2010-09-15", "2010-09-20", "2010-09-21", BankHoliday)
	// The first value, on each basis.
	f(Determination, "1991-11-12", "3.0735", "1991-11-12", "1991-11-13", "1991-11-14", NoGap)
	f(Publication, "1991-11-13", "3.0735", "1991-11-12", "1991-11-13", "1991-11-14", NoGap)
	f(Payment, "1991-11-14", "3.0735", "1991-11-12", "1991-11-13", "1991-11-14", NoGap)
}

func TestFixEndsWhereTheSeriesDoes(t *testing.T) {
	s := Embedded().FIX
	last := s.Last()
	if last.Rate.String() != "18.4308" || last.Day != day("2025-11-25") || last.Gap != NoGap {
		t.Fatalf("último: %+v", last)
	}
	// Dates that the series does not reach are expected, and say so.
	f := func(basis Basis, on, rate string, expected bool) {
		t.Helper()
		x, err := s.At(basis, day(on), now)
		if err != nil || x.Rate.String() != rate || x.Expected() != expected {
			t.Errorf("%s %s: %+v %v", basis, on, x, err)
		}
	}
	f(Determination, "2025-11-25", "18.4308", false)
	f(Publication, "2025-11-25", "18.4997", false)
	f(Publication, "2025-11-26", "18.4308", true)
	f(Payment, "2025-11-25", "18.4965", false)
	f(Payment, "2025-11-26", "18.4997", true)
	f(Payment, "2025-11-27", "18.4308", true)

	refused := func(basis Basis, on, today, from, to string, cause error) {
		t.Helper()
		_, err := s.At(basis, day(on), day(today))
		var e *CoverageError
		if !errors.Is(err, cause) || !errors.As(err, &e) || e.From != day(from) || e.To != day(to) || e.Day != day(on) {
			t.Errorf("%s %s: %v, se esperaba %v del %s al %s", basis, on, err, cause, from, to)
		}
	}
	refused(Determination, "1991-11-11", "2026-11-20", "1991-11-12", "2025-11-25", ErrBeforeSeries)
	refused(Publication, "1991-11-12", "2026-11-20", "1991-11-13", "2025-11-26", ErrBeforeSeries)
	refused(Payment, "1991-11-13", "2026-11-20", "1991-11-14", "2025-11-27", ErrBeforeSeries)
	refused(Determination, "1900-01-01", "2026-11-20", "1991-11-12", "2025-11-25", ErrBeforeSeries)
	refused(Determination, "2025-11-26", "2026-11-20", "1991-11-12", "2025-11-25", ErrAfterSeries)
	refused(Publication, "2025-11-27", "2026-11-20", "1991-11-13", "2025-11-26", ErrAfterSeries)
	refused(Payment, "2025-11-28", "2026-11-20", "1991-11-14", "2025-11-27", ErrAfterSeries)
	refused(Determination, "2025-11-26", "2025-11-26", "1991-11-12", "2025-11-25", ErrAfterSeries)
	refused(Determination, "2025-11-27", "2025-11-26", "1991-11-12", "2025-11-25", ErrFuture)
	refused(Payment, "2100-01-01", "2026-11-20", "1991-11-14", "2025-11-27", ErrFuture)
}

// TestFixCoversTheDaysOff: after a Friday, its weekend has an answer and the next
// banking day has none.
func TestFixCoversTheDaysOff(t *testing.T) {
	s := newSeries(Version{}, []Observation{{day("2026-04-01"), 170000}}) // Holy Wednesday
	for _, on := range []string{"2026-04-01", "2026-04-02", "2026-04-05"} {
		if x, err := s.At(Determination, day(on), now); err != nil || x.Rate != 170000 {
			t.Errorf("%s: %+v %v", on, x, err)
		}
	}
	if x, _ := s.At(Determination, day("2026-04-02"), now); x.Gap != BankHoliday || !x.GapExpected || !strings.Contains(x.Explain(), "así lo prevé el calendario") {
		t.Errorf("Jueves Santo: %+v", x)
	}
	if _, err := s.At(Determination, day("2026-04-06"), now); !errors.Is(err, ErrAfterSeries) {
		t.Errorf("lunes: %v", err)
	}
	if x := s.Last(); x.Published != day("2026-04-06") || x.Payable != day("2026-04-07") || !x.PublishedExpected || !x.PayableExpected {
		t.Errorf("%+v", x)
	}
}

// TestCalendarAgreesWithTheSeries: the expected banking days are those that had a
// rate, for every day since 2007 but the one declared once.
func TestCalendarAgreesWithTheSeries(t *testing.T) {
	s := Embedded().FIX
	valued := map[civil.Date]bool{}
	for v := range s.All {
		valued[v.Day] = true
	}
	checked := 0
	for d := day("2007-01-01"); !s.Last().Day.Before(d); d = plus(d, 1) {
		checked++
		if BankingDay(d) != valued[d] && d != day("2010-09-17") {
			t.Errorf("%s (%s): hábil %v, con dato %v", d, weekday(d), BankingDay(d), valued[d])
		}
	}
	if checked != 6904 {
		t.Errorf("se revisaron %d días", checked)
	}
}

// TestCalendarAhead: the closures that the Comisión announced for 2026.
func TestCalendarAhead(t *testing.T) {
	var closed []string
	for d := day("2026-01-01"); d.Year == 2026; d = plus(d, 1) {
		if wd := weekday(d); !BankingDay(d) && wd != time.Saturday && wd != time.Sunday {
			closed = append(closed, d.String()[5:])
		}
	}
	if got, want := strings.Join(closed, " "), "01-01 02-02 03-16 04-02 04-03 05-01 09-16 11-02 11-16 12-25"; got != want {
		t.Errorf("2026: %s, se esperaba %s", got, want)
	}
	if BankingDay(day("2030-10-01")) || !BankingDay(day("2029-10-01")) || !BankingDay(day("2018-10-01")) {
		t.Error("1 de octubre del cambio de gobierno")
	}
}

// TestFixAgreesWithItself walks every day of the series on every basis.
func TestFixAgreesWithItself(t *testing.T) {
	s := Embedded().FIX
	for _, basis := range []Basis{Determination, Publication, Payment} {
		for d := s.date(int(basis)); !s.Last().Day.Before(d); d = plus(d, 1) {
			x, err := s.At(basis, d, now)
			if err != nil {
				t.Fatal(err)
			}
			if d.Before(x.Date()) || (x.Gap == NoGap) != (x.Date() == d) || !x.Determined.Before(x.Published) || !x.Published.Before(x.Payable) {
				t.Fatalf("%s %s: %+v", basis, d, x)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	s := Embedded().FIX
	f := func(basis Basis, on, want string) {
		t.Helper()
		x, err := s.At(basis, day(on), now)
		if err != nil || x.Explain() != want {
			t.Errorf("%q %v, se esperaba %q", x.Explain(), err, want)
		}
	}
	f(Determination, "2024-12-27", "Se usa el tipo de cambio FIX de 20.2683, determinado el 2024-12-27.")
	f(Determination, "2024-12-28", "El 2024-12-28 es sábado: no es día hábil bancario. Se usa el último anterior: tipo de cambio FIX de 20.2683, determinado el 2024-12-27.")
	f(Payment, "2025-01-01", "El 2025-01-01 es inhábil bancario: la serie no tiene dato (N/E). Se usa el último anterior: tipo de cambio FIX de 20.2683, aplicable a pagos el 2024-12-31 (determinado el 2024-12-27).")
}

func TestBasisNames(t *testing.T) {
	for _, b := range []Basis{Determination, Publication, Payment} {
		if got, ok := ParseBasis(b.String()); !ok || got != b {
			t.Errorf("%s: %v %v", b, got, ok)
		}
	}
	if _, ok := ParseBasis("liquidacion"); ok {
		t.Error("se aceptó otra base")
	}
}

func TestAgainst(t *testing.T) {
	o := func(d string, r Rate) Observation { return Observation{day(d), r} }
	base := newSeries(Version{}, []Observation{o("2025-11-21", 184965), o("2025-11-24", 184997), o("2025-11-25", 184308)})
	f := func(want string, is ...Observation) {
		t.Helper()
		var got []string
		for _, d := range base.Against(is) {
			got = append(got, fmt.Sprint(d.Day, " ", d.Was, " ", d.Is))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%v: %q, se esperaba %q", is, got, want)
		}
	}
	same := []Observation{o("2025-11-21", 184965), o("2025-11-24", 184997), o("2025-11-25", 184308)}
	f("", same...)
	// Older and later days are its own business, and so is N/E.
	f("", append(append([]Observation{o("1990-01-01", 1), o("2025-11-20", 184000)}, same...), o("2025-11-26", 0), o("2025-11-27", 183000))...)
	f("", same[0], o("2025-11-22", 0), same[1], same[2])
	f("2025-11-24 18.4997 18.4998", same[0], o("2025-11-24", 184998), same[2])
	f("2025-11-24 18.4997 0.0000", same[0], same[2])
	f("2025-11-24 18.4997 0.0000", same[0], o("2025-11-24", 0), same[2])
	f("2025-11-25 18.4308 0.0000", same[0], same[1])
	f("2025-11-22 0.0000 18.5000", same[0], o("2025-11-22", 185000), same[1], same[2])
	f("2025-11-21 18.4965 0.0000; 2025-11-24 18.4997 0.0000; 2025-11-25 18.4308 0.0000")
}

func TestSeriesFile(t *testing.T) {
	const head = "# id: banxico_fix\n# fuente: y\n# version: 2025-11-25\nfecha_determinacion,fix_mxn_por_usd\n"
	f := func(rows, want string) {
		t.Helper()
		_, err := ReadSeries([]byte(head + rows))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, se esperaba %q", rows, err, want)
		}
	}
	f("2025-11-24,18.4997\n", "el último dato del 2025-11-24")
	f("2025-11-25,18.4308\n2025-11-24,18.4997\n", "no sigue")
	f("2025-11-25,18.4308\n2025-11-25,18.4308\n", "no sigue")
	f("2025-11-25,N/E\n", "tipo de cambio")
	f("2025-11-25,0\n", "entre 0.0001")
	f("25/11/2025,18.4308\n", "AAAA-MM-DD")

	rows := shared(t, "banxico_fix_SF43718.csv.gz")
	i := 0
	for v := range Embedded().FIX.All {
		if i >= len(rows) || v.Day.String() != rows[i]["fecha_determinacion"] || v.Rate.String() != rows[i]["fix_mxn_por_usd"] {
			t.Fatalf("renglón %d: %+v", i, v)
		}
		i++
	}
	if i != 8556 || len(rows) != i {
		t.Errorf("%d datos de %d", i, len(rows))
	}
}
