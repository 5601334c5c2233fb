package mirror

import (
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

// art69Rows returns the records of a list below its titles, as text.
func art69Rows(t *testing.T, stage int, name string) [][]string {
	t.Helper()
	content, ok := File(stage, name)
	if !ok {
		t.Fatalf("no %s at stage %d", name, stage)
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(content)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(text), "\r\n") || strings.Count(string(text), "\r\n") < 3 {
		t.Errorf("%s: lines do not end in CRLF", name)
	}
	all, err := csv.NewReader(strings.NewReader(string(text))).ReadAll() // every record as wide as the titles
	if err != nil || !slices.Contains(all[0], "RFC") {
		t.Errorf("%s: %q, %v", name, all[0], err)
	}
	return all[1:]
}

// TestArt69 holds what README.md says of the lists under article 69.
func TestArt69(t *testing.T) {
	page, _ := File(0, Index)
	for _, name := range append(slices.Clone(Art69), eliminados) {
		if linked := strings.Contains(string(page), container+name+`"`); linked != (name != eliminados) {
			t.Errorf("%s: linked %v", name, linked)
		}
		for stage := range Stages {
			if n := len(art69Rows(t, stage, name)); n < 2 || n > 11 {
				t.Errorf("%s has %d rows at stage %d", name, n, stage)
			}
		}
	}
	count := func(stage int, name, text string) (n int) {
		for _, row := range art69Rows(t, stage, name) {
			if slices.ContainsFunc(row, func(c string) bool { return strings.Contains(c, text) }) {
				n++
			}
		}
		return n
	}
	f := func(name, text string, wants ...int) {
		t.Helper()
		for stage, want := range wants {
			if got := count(stage, name, text); got != want {
				t.Errorf("%s: %d rows with %q at stage %d, want %d", path.Base(name), got, text, stage, want)
			}
		}
	}
	f(Firmes, "EFO010101AA1", 0, 0, 1, 1)
	f(Firmes, "NUB010101AA1", 1, 1, 0, 0)
	f(Firmes, "BOS010101AA1", 3, 3, 2, 2)
	f(Firmes, "MICHOACÁN", 0, 0, 2, 2)
	f(Firmes, "“A & H”", 1)
	f(Firmes, "NÚÑEZ\nFICTICIA", 1)
	f(art69Open+"Cancelados.csv", "1,390,273", 1)
	f(art69Closed+"Condonados_07_15.csv", "Persona F¡sica", 1)
	f(art69Open+"CSDsinefectos.csv", "\ufffd", 1)
	f(art69Open+"EntespublicosydeGobiernoomisos.csv", "FRACCION VII", 3)

	stage := 0
	s := httptest.NewServer(Handler(func() int { return stage }))
	defer s.Close()
	g := func(name, want string) {
		t.Helper()
		r, err := http.Head(s.URL + container + name)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if got := r.Header.Get("Last-Modified"); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	g(Firmes, "Fri, 29 May 2026 15:48:30 GMT")
	g(art69Closed+"Cancelados_07_15.csv", "Wed, 28 Jan 2026 19:20:05 GMT")
	stage = 2
	g(Firmes, "Fri, 07 Aug 2026 16:02:11 GMT")
	if DayFirmes(1).String() != "2026-05-29" || DayFirmes(2).String() != "2026-08-07" {
		t.Error(DayFirmes(1), DayFirmes(2))
	}
}
