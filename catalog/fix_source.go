package catalog

import (
	"errors"
	"fmt"
	"slices"

	"cotejo/civil"
	"cotejo/snapshots"
)

// FIXSource is the row schema of the FIX as Banco de México publishes it: a row
// for each day of the answer, N/E included. Identity: the day, YYYY-MM-DD.
var FIXSource = snapshots.Schema{
	Source: "banxico_fix",
	Reader: 1,
	// From the Wednesday before Easter to the Monday after it there is no value.
	MaxAge: 5,
	Columns: []snapshots.Column{
		{Name: "fecha", Tracked: true},
		{Name: "dato", Tracked: true},
	},
}

// ErrNoValue says that no day of an answer has a value.
var ErrNoValue = errors.New("la serie no trae ningún valor")

// FIXRows gives the rows of an answer to add, in ascending order of days, and
// returns the last day with a value.
func FIXRows(days []Datum, add func(snapshots.Row) error) (last civil.Date, err error) {
	for _, d := range days {
		day, value := d.Day.String(), notPublished
		if d.Rate != 0 {
			last, value = d.Day, d.Rate.String()
		}
		published := fmt.Sprintf("%02d/%02d/%04d", d.Day.Day, d.Day.Month, d.Day.Year)
		if err := add(snapshots.Row{ID: []string{day}, Raw: []string{published, d.Text}, Norm: []string{day, value}}); err != nil {
			return last, err
		}
	}
	if last.IsZero() {
		return last, ErrNoValue
	}
	return last, nil
}

// loadSeries makes the series of the rows of a source, and compares it with the
// one that the binary carries.
func loadSeries(src *snapshots.Source, embedded *Series) (*Series, error) {
	var values []Observation
	err := src.All(func(r snapshots.Row) error {
		day, err := civil.Parse(r.Norm[0])
		if err != nil || r.Norm[1] == notPublished {
			return err
		}
		rate, err := ParseRate(r.Norm[1])
		values = append(values, Observation{Day: day, Rate: rate})
		return err
	})
	if err == nil && len(values) == 0 {
		err = ErrNoValue
	}
	if err != nil {
		return nil, err
	}
	s := newSeries(loadedVersion(src, embedded.Version().Source, "La serie completa que Banco de México tenía publicada al descargarla"), values)
	s.disagreements = slices.DeleteFunc(embedded.Against(values), func(d Disagreement) bool { return d.Was == 0 || d.Is == 0 })
	return s, nil
}
