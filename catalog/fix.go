package catalog

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"cotejo/civil"
)

// SeriesFIX is the series of Banco de México that this package holds: the FIX by
// the day of its determination. The same rate by the day of payment is SF60653.
const SeriesFIX = "SF43718"

// Basis says which of the three dates of a rate a day is compared with.
//
// Banco de México determines the FIX on each banking day; the Diario Oficial
// publishes it on the next; and it settles obligations on the banking day after
// that (Ley Monetaria, art. 8; Ley del Banco de México, art. 35; Circular 3/2012,
// título tercero, capítulo V).
type Basis uint8

const (
	// Determination: the rate determined on the day, or last before it.
	Determination Basis = iota
	// Publication: the rate in the Diario Oficial of the day, or last before it.
	Publication
	// Payment: the rate for payments made on the day.
	Payment
)

var basisNames = [...]string{"determinacion", "publicacion_dof", "pagos"}

// String returns the name of the API.
func (b Basis) String() string { return basisNames[b] }

// ParseBasis reads what String writes.
func ParseBasis(s string) (Basis, bool) {
	for i, name := range basisNames {
		if s == name {
			return Basis(i), true
		}
	}
	return 0, false
}

// Gap says why the date of a rate is not the day asked about.
type Gap string

const (
	NoGap       Gap = ""
	Saturday    Gap = "sabado"
	Sunday      Gap = "domingo"
	BankHoliday Gap = "inhabil_bancario" // a weekday without a value: N/E in the series
)

// Fix is one rate of the series as the answer to a question.
type Fix struct {
	Rate Rate
	// Determined is the date of the value in the series. Published and Payable are
	// the first and the second banking day after it.
	Determined, Published, Payable civil.Date
	// PublishedExpected and PayableExpected: the series does not reach that day yet,
	// so it comes from the calendar of banking days.
	PublishedExpected, PayableExpected bool
	// Basis and Day are the question; Gap, why Date() is before Day.
	Basis Basis
	Day   civil.Date
	Gap   Gap
	// GapExpected: the series does not reach Day, so that it is a bank holiday comes
	// from the calendar.
	GapExpected bool
	// Version is shared and never changes.
	Version *Version
}

// Date returns that of the three dates which answers the question.
func (f *Fix) Date() civil.Date {
	return [...]civil.Date{f.Determined, f.Published, f.Payable}[f.Basis]
}

// Expected reports whether Date comes from the calendar, not from the series.
func (f *Fix) Expected() bool {
	return f.Basis == Publication && f.PublishedExpected || f.Basis == Payment && f.PayableExpected
}

// Explain says in Spanish which value was taken and why.
func (f *Fix) Explain() string {
	what := [...]string{"determinado", "publicado en el DOF", "aplicable a pagos"}[f.Basis]
	took := fmt.Sprintf("tipo de cambio FIX de %s, %s el %s (determinado el %s)", f.Rate, what, f.Date(), f.Determined)
	if f.Basis == Determination {
		took = fmt.Sprintf("tipo de cambio FIX de %s, determinado el %s", f.Rate, f.Determined)
	}
	switch f.Gap {
	case Saturday, Sunday:
		return fmt.Sprintf("El %s es %s: no es día hábil bancario. Se usa el último anterior: %s.", f.Day,
			map[Gap]string{Saturday: "sábado", Sunday: "domingo"}[f.Gap], took)
	case BankHoliday:
		why := "la serie no tiene dato (N/E)"
		if f.GapExpected {
			why = "así lo prevé el calendario, y la serie no llega a ese día"
		}
		return fmt.Sprintf("El %s es inhábil bancario: %s. Se usa el último anterior: %s.", f.Day, why, took)
	}
	return "Se usa el " + took + "."
}

// Why a series has no answer for a day.
var (
	ErrBeforeSeries = errors.New("la fecha es anterior a la serie")
	ErrAfterSeries  = errors.New("la serie no llega a esa fecha")
	ErrFuture       = errors.New("la fecha es futura: el tipo de cambio todavía no se determina")
)

// CoverageError says that a series has no value that may answer for a day. Its
// cause, ErrBeforeSeries, ErrAfterSeries or ErrFuture, is what errors.Is finds.
type CoverageError struct {
	Cause error
	Basis Basis
	Day   civil.Date
	// From and To are the first and the last day that have an answer on this basis.
	From, To civil.Date
}

func (e *CoverageError) Error() string {
	return fmt.Sprintf("No hay tipo de cambio FIX para el %s (%s): %v; la serie responde del %s al %s.",
		e.Day, e.Basis, e.Cause, e.From, e.To)
}

func (e *CoverageError) Unwrap() error { return e.Cause }

// Observation is one day of a series: a rate, or that there is none (N/E).
type Observation struct {
	Day civil.Date
	// Rate is 0 for N/E.
	Rate Rate
}

// Series is the FIX from a first to a last day, one value for each banking day.
type Series struct {
	version Version
	values  []Observation
	// tail holds the three expected banking days after the last value: what the
	// dates of the last values are taken from, and where answers end.
	tail [3]civil.Date
	end  string // the last day

	disagreements []Disagreement
}

// NewSeries makes a series, without a version, of values that ascend: to be
// compared. There is at least one.
func NewSeries(values []Observation) *Series { return newSeries(Version{}, values) }

// newSeries takes ownership of values, which ascend.
func newSeries(version Version, values []Observation) *Series {
	s := &Series{version: version, values: values}
	day := values[len(values)-1].Day
	s.end = day.String()
	for i := range s.tail {
		day = nextBankingDay(day)
		s.tail[i] = day
	}
	return s
}

// Version returns what the series was read from.
func (s *Series) Version() *Version { return &s.version }

// All calls yield with each value, oldest first.
func (s *Series) All(yield func(Observation) bool) {
	for _, v := range s.values {
		if !yield(v) {
			return
		}
	}
}

// date returns the i-th banking day of the series, and those expected after it.
func (s *Series) date(i int) civil.Date {
	if n := len(s.values); i >= n {
		return s.tail[i-n]
	}
	return s.values[i].Day
}

// First returns the first day with a value.
func (s *Series) First() civil.Date { return s.values[0].Day }

// End returns the last day with a value as text.
func (s *Series) End() string { return s.end }

// Last returns the newest value: its determination, its day and no gap.
func (s *Series) Last() Fix { return s.fix(len(s.values)-1, Determination) }

func (s *Series) fix(i int, basis Basis) Fix {
	n := len(s.values)
	f := Fix{
		Rate: s.values[i].Rate, Determined: s.date(i), Published: s.date(i + 1), Payable: s.date(i + 2),
		PublishedExpected: i+1 >= n, PayableExpected: i+2 >= n, Basis: basis, Version: &s.version,
	}
	f.Day = f.Date()
	return f
}

// At returns the rate of a day on a basis: the value whose date on that basis is
// the day or the last before it. A day that may still get a value of its own has
// no answer: the error is a *CoverageError, with ErrFuture when the day lies
// after today. Nothing is allocated for an answer.
func (s *Series) At(basis Basis, day, today civil.Date) (Fix, error) {
	shift, n := int(basis), len(s.values)
	i := sort.Search(n+1, func(i int) bool { return day.Before(s.date(i + shift)) }) - 1
	if i < 0 || i == n {
		e := &CoverageError{Cause: ErrBeforeSeries, Basis: basis, Day: day, From: s.date(shift), To: plus(s.date(n+shift), -1)}
		if i == n {
			if e.Cause = ErrAfterSeries; today.Before(day) {
				e.Cause = ErrFuture
			}
		}
		return Fix{}, e
	}
	f := s.fix(i, basis)
	if f.Day != day {
		f.Day = day
		switch weekday(day) {
		case time.Saturday:
			f.Gap = Saturday
		case time.Sunday:
			f.Gap = Sunday
		default:
			f.Gap, f.GapExpected = BankHoliday, s.values[n-1].Day.Before(day)
		}
	}
	return f, nil
}

// Disagreement is a day about which two series disagree. A zero Rate is that of a
// series without a value there.
type Disagreement struct {
	Day     civil.Date
	Was, Is Rate
}

// Against compares the series with a later one, from its first day to its last:
// published values do not change, and none goes or comes. is ascends; what it has
// of other days is passed over.
func (s *Series) Against(is []Observation) (found []Disagreement) {
	last := s.values[len(s.values)-1].Day
	i := 0
	for _, o := range is {
		if o.Rate == 0 || o.Day.Before(s.values[0].Day) || last.Before(o.Day) {
			continue
		}
		for i < len(s.values) && s.values[i].Day.Before(o.Day) {
			found = append(found, Disagreement{Day: s.values[i].Day, Was: s.values[i].Rate})
			i++
		}
		switch {
		case s.values[i].Day != o.Day:
			found = append(found, Disagreement{Day: o.Day, Is: o.Rate})
			continue
		case s.values[i].Rate != o.Rate:
			found = append(found, Disagreement{o.Day, s.values[i].Rate, o.Rate})
		}
		i++
	}
	for ; i < len(s.values); i++ {
		found = append(found, Disagreement{Day: s.values[i].Day, Was: s.values[i].Rate})
	}
	return found
}

// Disagreements are the days of which the series that the binary carries has
// another value, ascending; none of that series itself. It must not be changed.
func (s *Series) Disagreements() []Disagreement { return s.disagreements }

// Disagrees returns the value that the series which the binary carries has of a
// day, when it is another one.
func (s *Series) Disagrees(day civil.Date) (embedded Rate, ok bool) {
	i, ok := slices.BinarySearchFunc(s.disagreements, day, func(d Disagreement, day civil.Date) int {
		return int(d.Day.Compact()) - int(day.Compact())
	})
	if !ok {
		return 0, false
	}
	return s.disagreements[i].Was, true
}

// ReadSeries reads the catalogue banxico_fix. Its version is of the last day.
func ReadSeries(data []byte) (*Series, error) {
	var values []Observation
	version, err := ReadFile(data, "banxico_fix", []string{"fecha_determinacion", "fix_mxn_por_usd"}, func(f []string) error {
		day, err := civil.Parse(f[0])
		if err != nil {
			return err
		}
		rate, err := ParseRate(f[1])
		if err != nil {
			return err
		}
		if n := len(values); n > 0 && !values[n-1].Day.Before(day) {
			return fmt.Errorf("el %s no sigue al %s", day, values[n-1].Day)
		}
		values = append(values, Observation{Day: day, Rate: rate})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if last := values[len(values)-1].Day; last != version.Date {
		return nil, fmt.Errorf("la versión es del %s y el último dato del %s", version.Date, last)
	}
	return newSeries(version, values), nil
}
