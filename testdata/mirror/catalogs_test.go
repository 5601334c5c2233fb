package mirror

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cotejo/catalog"
	"cotejo/civil"
)

// TestFIXOfTheStages: the real series, then invented values on banking days only.
func TestFIXOfTheStages(t *testing.T) {
	last := []civil.Date{{Year: 2026, Month: 6, Day: 16}, {Year: 2026, Month: 7, Day: 17}, {Year: 2026, Month: 8, Day: 18}, {Year: 2026, Month: 9, Day: 17}}
	for stage := range Stages {
		content, ok := File(stage, FIX)
		if !ok {
			t.Fatal("no series")
		}
		days, err := catalog.ParseSIE(content, catalog.SeriesFIX)
		if err != nil {
			t.Fatal(err)
		}
		none, embedded := 0, catalog.Embedded().FIX.Last().Determined
		for _, d := range days {
			if !embedded.Before(d.Day) {
				continue
			}
			if d.Rate == 0 {
				none++
			} else if d.Rate != InventedFIX(d.Day) || !catalog.BankingDay(d.Day) {
				t.Errorf("%s: %s", d.Day, d.Rate)
			}
		}
		if got := days[len(days)-1].Day; got != last[stage] || got != LastFIX(stage) || none == 0 {
			t.Errorf("stage %d ends on %s, %d days without a value", stage, got, none)
		}
	}
}

func TestSPEIOfTheStages(t *testing.T) {
	for stage, want := range []int{99, 99, 100, 100} {
		content, _ := File(stage, SPEI)
		list, err := catalog.ParseSPEI(content)
		if err != nil || len(list) != want {
			t.Errorf("stage %d: %d participants, %v", stage, len(list), err)
		}
	}
}

// TestCatalogsAreServed: as JSON or CSV, whatever the query says.
func TestCatalogsAreServed(t *testing.T) {
	s := httptest.NewServer(Handler(func() int { return 3 }))
	defer s.Close()
	f := func(target, kind string, dated bool) {
		t.Helper()
		r, err := http.Get(s.URL + target)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), kind) || (r.Header.Get("Last-Modified") != "") != dated || r.Header.Get("ETag") == "" {
			t.Errorf("%s: %d %v", target, r.StatusCode, r.Header)
		}
	}
	f(FIX, "application/json", false)
	f(SPEI+"?fecha=01-09-2026", "application/json", false)
	f(Numbering, "text/csv", true)
	content, _ := File(3, SPEI)
	if !json.Valid(content) || bytes.Contains(content, []byte("<")) {
		t.Error("the list is no plain JSON")
	}
}
