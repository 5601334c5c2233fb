package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cotejo/civil"
)

// Limits of an answer of Banco de México. Its whole FIX series is some 0.5 MB.
const (
	maxSIE             = 4 << 20
	maxSIESeries       = 20
	maxSIEObservations = 20_000
)

// SIEError is the refusal that Banco de México writes in place of a series: a
// token that is not valid, a series that does not exist, too many requests. The
// texts are theirs, bounded.
type SIEError struct {
	Message, Detail string
}

func (e *SIEError) Error() string {
	return fmt.Sprintf("Banco de México respondió %q (%q)", e.Message, e.Detail)
}

// ErrNoSeries is returned for an answer that does not hold the series asked for.
var ErrNoSeries = errors.New("la respuesta de Banco de México no trae la serie pedida")

// notPublished is what a day without value says in place of a number.
const notPublished = "N/E"

// Datum is a day of an answer of Banco de México, and its value as it is written.
type Datum struct {
	Observation
	Text string
}

// ParseSIE reads the JSON answer of the SIE API for one series and returns its
// days in ascending order, those without value (N/E) with a zero Rate. A series
// without data is empty. A day that is written twice with different values, a
// number that is no rate, or anything that is not the documented shape is an
// error: nothing of a doubtful answer is used.
func ParseSIE(data []byte, series string) ([]Datum, error) {
	if len(data) > maxSIE {
		return nil, fmt.Errorf("la respuesta ocupa %d bytes; el máximo es %d", len(data), maxSIE)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("la respuesta no es UTF-8")
	}
	var answer struct {
		BMX *struct {
			Series []struct {
				ID   string `json:"idSerie"`
				Data []struct {
					Day   string `json:"fecha"`
					Value string `json:"dato"`
				} `json:"datos"`
			} `json:"series"`
		} `json:"bmx"`
		Error *struct {
			Message string `json:"mensaje"`
			Detail  string `json:"detalle"`
		} `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("la respuesta no es el JSON documentado: %w", err)
	}
	if e := answer.Error; e != nil {
		return nil, &SIEError{Message: bounded(e.Message), Detail: bounded(e.Detail)}
	}
	if answer.BMX == nil || len(answer.BMX.Series) > maxSIESeries {
		return nil, ErrNoSeries
	}
	found := -1
	for i, s := range answer.BMX.Series {
		if s.ID == series {
			if found >= 0 {
				return nil, fmt.Errorf("la serie %s viene dos veces", series)
			}
			found = i
		}
	}
	if found < 0 {
		return nil, ErrNoSeries
	}
	rows := answer.BMX.Series[found].Data
	if len(rows) > maxSIEObservations {
		return nil, fmt.Errorf("la serie trae %d datos; el máximo es %d", len(rows), maxSIEObservations)
	}
	days := make([]Datum, 0, len(rows))
	for _, r := range rows {
		day, err := sieDay(r.Day)
		if err != nil {
			return nil, err
		}
		o := Datum{Observation{Day: day}, r.Value}
		if r.Value != notPublished {
			if o.Rate, err = ParseRate(r.Value); err != nil {
				return nil, fmt.Errorf("%s: %w", day, err)
			}
		}
		days = append(days, o)
	}
	slices.SortFunc(days, func(a, b Datum) int { return int(a.Day.Compact()) - int(b.Day.Compact()) })
	days = slices.Compact(days)
	for i := 1; i < len(days); i++ {
		if days[i-1].Day == days[i].Day {
			return nil, fmt.Errorf("el %s viene con dos valores", days[i].Day)
		}
	}
	return days, nil
}

// sieDay reads dd/mm/yyyy.
func sieDay(s string) (civil.Date, error) {
	if len(s) == 10 && s[2] == '/' && s[5] == '/' && isASCII(s[:2]+s[3:5]+s[6:], 8, 8, false) {
		n := func(s string) (n int) {
			for i := range len(s) {
				n = n*10 + int(s[i]-'0')
			}
			return n
		}
		if d, ok := civil.New(n(s[6:]), time.Month(n(s[3:5])), n(s[:2])); ok {
			return d, nil
		}
	}
	return civil.Date{}, fmt.Errorf("%.20q no es una fecha DD/MM/AAAA", s)
}

// maxSIEText bounds what is kept of the words of a refusal, in bytes.
const maxSIEText = 200

// bounded cuts a text that goes into messages.
func bounded(s string) string {
	if len(s) > maxSIEText {
		s = strings.ToValidUTF8(s[:maxSIEText], "")
	}
	return s
}
