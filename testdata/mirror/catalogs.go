package mirror

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cotejo/catalog"
	"cotejo/civil"
)

// Paths of what is published beside the SAT's lists, each on the server of its
// authority; that of the numbering plan is the mirror's own, for the regulator's
// page has no address for its file.
const (
	// FIX is the answer of Banco de México for the whole series, without a token.
	FIX = "/SieAPIRest/service/v1/series/" + catalog.SeriesFIX + "/datos"
	// SPEI is the list of participants, the same for any day.
	SPEI = "/cep/instituciones.do"
	// Numbering is the national numbering plan; every range is invented.
	Numbering = "/sns-frontend/planes-numeracion/pnn.csv"
)

// catalogFile returns one of these as it is at a stage.
func catalogFile(stage int, name string) (content []byte, ok bool) {
	switch name {
	case FIX:
		return fix(stage), true
	case SPEI:
		return spei(stage), true
	case Numbering:
		content, err := data.ReadFile("data/pnn.csv")
		return content, err == nil
	}
	return nil, false
}

// LastFIX is the last day with a value at a stage: the last banking day before the
// SAT published its lists.
func LastFIX(stage int) civil.Date {
	return catalog.LastBankingDay(civil.Of(Modified(stage).AddDate(0, 0, -1)))
}

// fix is the series of this program, up to its last day the real one, and invented
// values after it.
func fix(stage int) []byte {
	type datum struct {
		Day   string `json:"fecha"`
		Value string `json:"dato"`
	}
	var days []datum
	add := func(d civil.Date, value string) {
		days = append(days, datum{fmt.Sprintf("%02d/%02d/%04d", d.Day, d.Month, d.Year), value})
	}
	last := civil.Date{}
	for o := range catalog.Embedded().FIX.All {
		add(o.Day, o.Rate.String())
		last = o.Day
	}
	end := LastFIX(stage)
	for n := 1; last.Before(end); n++ {
		last = civil.Of(time.Date(last.Year, last.Month, last.Day+1, 12, 0, 0, 0, civil.Zone))
		switch weekday := last.End().Add(-time.Hour).In(civil.Zone).Weekday(); {
		case weekday == time.Saturday, weekday == time.Sunday:
		case catalog.BankingDay(last):
			add(last, InventedFIX(last).String())
		default:
			add(last, "N/E")
		}
	}
	return encoded(map[string]any{"bmx": map[string]any{"series": []any{map[string]any{
		"idSerie": catalog.SeriesFIX,
		"titulo":  "Tipo de cambio Pesos por dólar E.U.A. Tipo de cambio para solventar obligaciones denominadas en moneda extranjera Fecha de determinación (FIX)",
		"datos":   days,
	}}}})
}

// InventedFIX is the value that the mirror makes up for a day: 17 pesos, the month
// and the day in its decimals.
func InventedFIX(d civil.Date) catalog.Rate {
	return catalog.Rate(17_0000 + int(d.Month)*100 + d.Day)
}

// spei is the list of this program with one participant of the tests, and from
// stage 2 on an invented one.
func spei(stage int) []byte {
	var list [][2]string
	for _, bank := range catalog.Embedded().Banks.All {
		if bank.InSPEI {
			list = append(list, [2]string{bank.SPEI, bank.SPEIName})
		}
	}
	list = append(list, [2]string{"40805", "BANXICO PRUEBAS"})
	if stage >= 2 {
		list = append(list, [2]string{"90990", "Pagos Imaginarios"})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return len(a[0]) - len(b[0]) })
	return encoded(map[string]any{"instituciones": list})
}

// encoded is JSON as a server writes it.
func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}
