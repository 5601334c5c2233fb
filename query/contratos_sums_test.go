package query_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/checks"
	"cotejo/query"
	"cotejo/snapshots"
)

// drawn is the test of one draw: what it opens it closes before the next one.
type drawn struct {
	testing.TB
	draw *rapid.T
}

func (d drawn) Cleanup(f func()) { d.draw.Cleanup(f) }

// TestSumsChangeNoAnswer: what is added up beforehand is what the rows say, also of
// one who has many contracts, and also when it is taken from the edition before.
func TestSumsChangeNoAnswer(t *testing.T) {
	rfcs := []string{"AAA010101AA1", "BBB010101BB1", "ZZZ010101ZZ1", "MUC010101MU1", "ÑAN010101AA1", "CAC760510P8X"}
	compare := func(t interface {
		Helper()
		Fatalf(string, ...any)
	}, cold *snapshots.Edition, others ...*snapshots.Edition) {
		t.Helper()
		for _, text := range rfcs {
			rfc, err := checks.ParseRFC(text)
			if err != nil {
				continue
			}
			for _, q := range []query.Question{query.Company{RFC: rfc}, query.Contracts{RFC: rfc, Limit: 3}, query.Contracts{RFC: rfc, Limit: query.MaxContracts}, query.Company{RFC: rfc}} {
				want, outcome, err := query.AppendRegistro(nil, q, day, cold)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				for _, ed := range others {
					got, same, err := query.AppendRegistro(nil, q, day, ed)
					if err != nil || same != outcome || !bytes.Equal(got, want) {
						t.Fatalf("%s: %v\n%s\nno es\n%s", text, err, got, want)
					}
				}
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(drawn{t, rt})
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		for _, year := range []int{2022, 2025} {
			var rows []snapshots.Row
			for i := range rapid.IntRange(1, 12).Draw(rt, "filas") {
				rows = append(rows, contractRow(i+1, pick("rfc", append(rfcs, "", "EXT990101US001")...),
					pick("código", "", "C-2024-00000001", "C-2025-00000002", "1700001"), pick("título", "UNO", "DOS"),
					amount(pick("importe", "", "0.00", "1.10", "-2.50", "0.005", "10000000000.00", "10000000000.01", "999999999999999999.00", "mil", "5173223.079999998")),
					cell{query.ColContratoMaximo, pick("máximo", "", "7.00")},
					cell{query.ColContratoMoneda, pick("moneda", "MXN", "USD", "EUR", "", "pesos")},
					signed(pick("firma", "", "2024-12-31", "2025-01-02", "ayer"))))
			}
			f.add(ofYear(year), firstCut, rows...)
		}
		cold, warm := f.open(), f.open()
		if err := query.Warm(warm, nil); err != nil {
			rt.Fatal(err)
		}
		compare(rt, cold, warm)
	})

	f := newFixture(t)
	for _, year := range []int{2024, 2025} {
		var rows []snapshots.Row
		for i := range 700 {
			rows = append(rows, contractRow(i+1, "MUC010101MU1", fmt.Sprintf("C-%d-%08d", year, i), strings.Repeat("T", i%50),
				amount(fmt.Sprintf("%d.%02d", i, i%100)), signed(fmt.Sprintf("%d-%02d-%02d", year, 1+i%12, 1+i%28))))
		}
		f.add(ofYear(year), firstCut, append(rows, contractRow(701, "AAA010101AA1", "C-1", "X", amount("1.00")))...)
	}
	cold, warm := f.open(), f.open()
	if err := query.Warm(warm, nil); err != nil {
		t.Fatal(err)
	}
	compare(t, cold, warm)
	if got, _ := procurementOf(t, warm, "MUC010101MU1"); *got.Contratos != 1400 {
		t.Errorf("%d contratos", *got.Contratos)
	}
	// Another list changes, the contracts do not; then they do.
	f.add(query.Sat69B, firstCut, row("BBB010101BB1", "500-05-2018-1", "BETA", "Definitivo"))
	next, nextCold := f.open(), f.open()
	if err := query.Warm(next, warm); err != nil {
		t.Fatal(err)
	}
	f.add(ofYear(2023), firstCut, contractRow(1, "AAA010101AA1", "C-2023-00000001", "TRES", amount("3.00")))
	last, lastCold := f.open(), f.open()
	if err := query.Warm(last, next); err != nil {
		t.Fatal(err)
	}
	compare(t, nextCold, next)
	compare(t, lastCold, last)
}
