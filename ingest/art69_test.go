package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// art69Of ingests one of the lists an hour after what came before.
func (f *fixture) art69Of(code string, r Request) (Result, error) {
	f.now = f.now.Add(time.Hour)
	r.Source, r.Now = "sat_art69_"+strings.ToLower(code), f.now
	return Ingest(context.Background(), f.c, r)
}

// TestMirrorOfArt69 ingests every list of the bundled mirror by the links of its
// index page, and what changes of one of them.
func TestMirrorOfArt69(t *testing.T) {
	stage := 0
	s := httptest.NewServer(mirror.Handler(func() int { return stage }))
	defer s.Close()
	f := newFixture(t)
	rows := map[string]int{}
	for _, l := range query.Art69Lists {
		r, err := f.art69Of(l.Code, Request{Mirror: s.URL})
		if l.WhenLinked {
			if !errors.Is(err, ErrNotOffered) {
				t.Errorf("%s: %s, %v", l.Code, r.Outcome, err)
			}
			if a, ok, err := f.c.LastAttempt(l.Schema.Source); ok || err != nil {
				t.Errorf("%s left a record: %+v, %v", l.Code, a, err)
			}
			continue
		}
		if err != nil || r.Outcome != Activated {
			t.Errorf("%s: %s %v, %v", l.Code, r.Outcome, r.Faults, err)
			continue
		}
		if a, _, err := f.c.LastAttempt(l.Schema.Source); err != nil || len(a.Notices) > 0 {
			t.Errorf("%s: %+v, %v", l.Code, a.Notices, err)
		}
		if !r.Version.Corte.IsZero() || r.Version.OrderDate.Year != 2026 || r.Version.OrderDate.Month > 5 {
			t.Errorf("%s: %s, %s: the day of the server", l.Code, r.Version.Corte, r.Version.OrderDate)
		}
		rows[l.Code] = r.Version.Rows
	}
	if got := fmt.Sprint(rows["FIRMES"], rows["CANCELADOS"], rows["ENTES_PUBLICOS_OMISOS"], len(rows)); got != "11 2 3 14" {
		t.Error(got)
	}
	stage = 2
	if r, err := f.art69Of("FIRMES", Request{Mirror: s.URL}); err != nil || r.Outcome != Activated || r.Version.Rows != 10 {
		t.Fatalf("%s %v, %v", r.Outcome, r.Faults, err)
	}
	if r, err := f.art69Of("EXIGIBLES", Request{Mirror: s.URL}); err != nil || r.Outcome != Unchanged {
		t.Errorf("%s %v, %v", r.Outcome, r.Faults, err)
	}
	m, err := f.c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	ed, err := f.c.OpenEdition(m)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	firmes := ed.Source("sat_art69_firmes")
	g := func(rfc, want string) {
		t.Helper()
		got := ""
		err := firmes.Past(rfc, func(p snapshots.Past) error {
			got += fmt.Sprint(" ", p.Ordinal, p.Present)
			for _, e := range p.Events {
				got += string(e.Kind)
			}
			return nil
		})
		if err != nil || strings.Trim(got, " ") != want {
			t.Errorf("%s: %q, %v", rfc, got, err)
		}
	}
	g("EFO010101AA1", "0 trueA")
	g("NUB010101AA1", "0 falseR")
	// One of two equal rows is gone; accents that came to a title and a cell are form.
	if err := firmes.Past("BOS010101AA1", func(p snapshots.Past) error {
		if gone := p.Ordinal == 1; gone == p.Present || gone != (len(p.Events) == 1) {
			t.Errorf("%+v", p)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	g("&HI010101AA1", "0 true")
}

// TestArt69OfAFile: nothing in a list says its day. One that lost rows waits for a
// person: the largest of them lost 100,000 once, and was right.
func TestArt69OfAFile(t *testing.T) {
	f := newFixture(t)
	file := func(rows int) func() (io.ReadCloser, error) {
		text := "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\r\n"
		for i := range rows {
			text += fmt.Sprintf("FIR%06dAA1,X,M,FIRMES,01/08/2026,SONORA\r\n", 10101+i)
		}
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	}
	if _, err := f.art69Of("FIRMES", Request{Name: "Firmes.csv", Content: file(20)}); !errors.Is(err, ErrUndated) {
		t.Fatal(err)
	}
	if r, err := f.art69Of("FIRMES", Request{Name: "Firmes.csv", Content: file(20), Corte: mirror.Corte(0)}); err != nil || r.Outcome != Activated {
		t.Fatal(r.Outcome, r.Faults, err)
	}
	held, err := f.art69Of("FIRMES", Request{Name: "Firmes.csv", Content: file(14), Corte: mirror.Corte(1)})
	if err != nil || held.Outcome != Quarantined || held.Faults[0].Code != tabular.FewerRows {
		t.Fatal(held.Outcome, held.Faults, err)
	}
	r, err := Accept(context.Background(), f.c, held.Version.ID, "Ana", "la página oficial dice lo mismo", f.now)
	if err != nil || r.Outcome != Activated || r.Version.Rows != 14 || r.Version.Corte != mirror.Corte(1) {
		t.Fatal(r.Outcome, r.Version, err)
	}
}

// TestArt69Links: names with and without blanks are one, and a list that may not
// exist is asked for only when it is linked.
func TestArt69Links(t *testing.T) {
	s, _ := Lookup("sat_art69_no_localizados")
	page := func(links ...string) []listed {
		return s.listed([]byte(index(links...)), indexPage, s.base)
	}
	at, notices := s.choose(page(anchor(official+"Documents_AGR/No%20localizados.csv", "No localizados")))
	if at != "/Datos_abiertos/Documents_AGR/No localizados.csv" || codes(notices) != LinkChanged {
		t.Errorf("%s %v", at, notices)
	}
	if _, notices := s.choose(page(anchor(official+"Documents_AGR/No_localizados.csv", "No localizados"), anchor(official+"Documents_AGR/Eliminados.csv", ""))); len(notices) > 0 {
		t.Errorf("%v", notices)
	}

	content, ok := mirror.File(0, "/Datos_abiertos/Documents_AGR/Eliminados.csv")
	if !ok {
		t.Fatal("no list")
	}
	hurried(t)
	f := newFixture(t)
	files := map[string]string{indexPath: index(), "/Datos_abiertos/Documents_AGR/Eliminados.csv": string(content)}
	site := newSite(t, files)
	if _, err := f.art69Of("ELIMINADOS", Request{Mirror: site.URL}); !errors.Is(err, ErrNotOffered) || f.versions() != 0 {
		t.Errorf("not linked: %v", err)
	}
	nowhere := newSite(t, map[string]string{"/Datos_abiertos/Documents_AGR/Eliminados.csv": string(content)})
	if _, err := f.art69Of("ELIMINADOS", Request{Mirror: nowhere.URL}); !errors.Is(err, ErrNotOffered) || f.versions() != 0 {
		t.Errorf("no index page: %v", err)
	}
	linked := newSite(t, map[string]string{
		indexPath: index(anchor(official+"Documents_AGR/Eliminados.csv", "Eliminados")), "/Datos_abiertos/Documents_AGR/Eliminados.csv": string(content),
	})
	if r, err := f.art69Of("ELIMINADOS", Request{Mirror: linked.URL}); err != nil || r.Outcome != Activated || r.Version.Rows != 2 {
		t.Errorf("linked: %s %v, %v", r.Outcome, r.Faults, err)
	}
	// From then on it is a list like the others.
	if r, err := f.art69Of("ELIMINADOS", Request{Mirror: site.URL}); err != nil || r.Outcome != Unchanged {
		t.Errorf("%s, %v", r.Outcome, err)
	}
}
