package ingest

import (
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// TestCutInTheLastCell: nothing tells but that the last line does not end.
func TestCutInTheLastCell(t *testing.T) {
	hurried(t)
	for _, source := range Sources() {
		tr := newTrial(t, source)
		if tr.good[0] == '{' || strings.HasPrefix(string(tr.good), "PK") {
			continue // JSON and a workbook say where they end: TestFaults
		}
		// One column has text in the last row of each list, and the filler rows go.
		whole := strings.TrimRight(string(tr.good), ",\r\n")
		whole = whole[:strings.LastIndexByte(whole, '\n')+1]
		for _, cut := range []int{1, 2} {
			content := whole[:len(whole)-cut]
			s := tr.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) })
			r, err := tr.ingest(Request{Mirror: s.URL})
			if err != nil || r.Outcome != Quarantined || r.Faults[0].Code != tabular.Unended {
				t.Errorf("%s without its last %d bytes: %s %v, %v", source, cut, r.Outcome, r.Faults, err)
			}
			tr.unharmed(snapshots.OutcomeQuarantined, "fin de línea")
		}
	}
	// A person who has compared it may let it serve; the history takes it from nobody.
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	held := f.bytes(strings.TrimSuffix(month(t, 5), "\r\n"), Quarantined)
	f.accepted(held.Version.ID)
	if r := f.past(strings.TrimSuffix(month(t, 2), "\r\n"), Quarantined); r.Faults[0].Code != tabular.Unended {
		t.Errorf("%+v", r.Faults)
	}
}

// TestAnotherListUnderTheName: the partial lists carry the title of the complete
// one, and answers from one of them would deny all others.
func TestAnotherListUnderTheName(t *testing.T) {
	f := newFixture(t)
	part := func(name string) string {
		t.Helper()
		content, ok := mirror.File(0, name)
		if !ok {
			t.Fatal("no list")
		}
		return string(content)
	}
	first := f.bytes(part(mirror.Definitivos), Quarantined)
	if first.Faults[0].Code != tabular.OtherList || !strings.Contains(first.Faults[0].Message, "«Definitivo»") || f.edition() != 0 {
		t.Errorf("%+v", first.Faults)
	}
	f.bytes(part(mirror.Listado69B), Activated)
	if r := f.past(part(mirror.Presuntos), Quarantined); r.Faults[0].Code != tabular.OtherList {
		t.Errorf("%+v", r.Faults)
	}
	// That of article 69-B Bis may well have one situation only.
	s, _ := Lookup("sat_69b_bis")
	content := part(mirror.Listado69BBis)
	sum, err := s.Read(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }, func(snapshots.Row) error { return nil })
	if err != nil || sum.Rows < 2 || sum.Single != "" {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestPartialsBesideTheList: they are looked for where the list was found.
func TestPartialsBesideTheList(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	const moved = "/Datos_abiertos/Documents_2027/"
	s := newSite(t, map[string]string{
		indexPath:                                       index(anchor(official+"Documents_2027/Listado_completo_69-B.csv", "Listado completo")),
		moved + "Listado_completo_69-B.csv":             list(t),
		moved + "Presuntos.csv":                         partial(cut31, "1,PELJ800101AA1,x,Presunto", "2,XXXXXXXXXXXX,x,Presunto"),
		path.Dir(mirror.Presuntos) + "/Definitivos.csv": partial(cut31),
	})
	for _, want := range []Outcome{Activated, Unchanged} {
		if r, err := f.ingest(Request{Mirror: s.URL}); err != nil || r.Outcome != want {
			t.Fatalf("%s, %v", r.Outcome, err)
		}
		a := f.attempted(want, 1)
		if len(a.Partials) != 4 || a.Partials[0].State != "no_obtenido" || a.Partials[1].State != "concuerda" || a.Partials[1].URL != s.URL+moved+"Presuntos.csv" {
			t.Errorf("%+v", a.Partials)
		}
	}
}

// TestCutPartial: it is not compared with.
func TestCutPartial(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	whole := partial(cut31, "1,PELJ800101AA1,x,Presunto", "2,XXXXXXXXXXXX,x,Presunto")
	s := newSite(t, map[string]string{mirror.Listado69B: list(t), mirror.Presuntos: whole[:strings.Index(whole, "XXXXX")]})
	if _, err := f.ingest(Request{Mirror: s.URL}); err != nil {
		t.Fatal(err)
	}
	if p := f.attempted(Activated, 1).Partials[1]; p.State != "no_obtenido" || !strings.Contains(p.Message, "cortada") {
		t.Errorf("%+v", p)
	}
}
