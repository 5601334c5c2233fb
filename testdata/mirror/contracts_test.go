package mirror

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestContracts holds what the files of contracts are for: both layouts, verbatim
// titles, the oddities, and a year that grows.
func TestContracts(t *testing.T) {
	get := func(stage, year int) []byte {
		t.Helper()
		content, ok := File(stage, Contracts(year))
		if !ok {
			t.Fatalf("no contracts of %d at stage %d", year, stage)
		}
		return content
	}
	for year := FirstContracts; year <= LastContracts; year++ {
		content := get(0, year)
		head, _, _ := bytes.Cut(content, []byte("\r\n"))
		titles := strings.Split(string(head), ",")
		want := map[bool]int{true: 45, false: 44}[year >= 2020]
		if year >= 2023 {
			want = 62 // those of the 73 whose titles are known
		}
		if len(titles) != want || !bytes.HasSuffix(content, []byte("\r\n")) {
			t.Errorf("%d: %d titles, want %d", year, len(titles), want)
		}
		if year >= 2023 && !strings.Contains(string(head), ",Moneda,Moneda,Convenio modificatorio,Convenio modificatorio,") {
			t.Errorf("%d: no title stands twice", year)
		}
		if grown := !bytes.Equal(content, get(Stages-1, year)); grown != (year == LastContracts) {
			t.Errorf("%d: grows: %v", year, grown)
		}
	}
	for _, oddity := range []string{
		"\"DR. EDUARDO LICEAGA\"", ",\"LICEAGA\" REMODELACI\xd3N", "REMODELACI\xd3N\nDE OFICINAS,\n", "EXT190501US001", "\"25301, 25401\"",
		"5173223.079999998", "20000000000.01", "2025-01-21 11:57:32", ",01/02/2025,",
	} {
		if !bytes.Contains(get(0, 2025), []byte(oddity)) {
			t.Errorf("2025 lacks %q", oddity)
		}
	}
	if !bytes.Contains(get(0, 2024), []byte{0x8d}) || !bytes.Contains(get(0, 2018), []byte(" GMT,")) {
		t.Error("2024 lacks its unassigned byte, or 2018 its zone")
	}

	server := httptest.NewServer(Handler(func() int { return 3 }))
	defer server.Close()
	r, err := http.Get(server.URL + Contracts(2026))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK || r.Header.Get("Last-Modified") != Modified(2).Format(http.TimeFormat) || r.Header.Get("Content-Type") != "text/csv" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}
