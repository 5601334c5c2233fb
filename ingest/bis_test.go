package ingest

import (
	"context"
	"io"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

func (f *fixture) ingestBis(r Request) (Result, snapshots.Attempt) {
	f.t.Helper()
	f.now = f.now.Add(time.Hour)
	r.Source, r.Now = "sat_69b_bis", f.now
	result, err := Ingest(context.Background(), f.c, r)
	if err != nil {
		f.t.Fatal(err)
	}
	a, ok, err := f.c.LastAttempt("sat_69b_bis")
	if err != nil || !ok {
		f.t.Fatal(ok, err)
	}
	return result, a
}

// TestMirrorOfBothLists ingests every stage of the bundled mirror: the complete
// list with those beside it, and the list under article 69-B Bis, which was
// published twice.
func TestMirrorOfBothLists(t *testing.T) {
	stage := 0
	s := httptest.NewServer(mirror.Handler(func() int { return stage }))
	defer s.Close()
	fx := newFixture(t)
	f := func(bis Outcome, rows int, states string, notices int) {
		t.Helper()
		if r, err := fx.ingest(Request{Mirror: s.URL}); err != nil || r.Outcome != Activated {
			t.Fatalf("stage %d: %s, %v", stage, r.Outcome, err)
		}
		a, _, err := fx.c.LastAttempt("sat_69b")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range a.Partials {
			got = append(got, p.State)
			if p.State == "difiere" && (p.File != "Presuntos.csv" || p.Missing != 1 || p.Extra != 0 || strings.Join(p.Example, "") != "PRE010101AA1 Presunto") {
				t.Errorf("stage %d: %+v", stage, p)
			}
		}
		if strings.Join(got, " ") != states || len(a.Notices) != notices {
			t.Errorf("stage %d: %q, %+v", stage, got, a.Notices)
		}
		r, a := fx.ingestBis(Request{Mirror: s.URL})
		if r.Outcome != bis || r.Version.Rows != rows || r.Version.Corte != mirror.CorteBis(stage) || a.Partials != nil {
			t.Errorf("stage %d: %s, %+v, %+v", stage, r.Outcome, r.Version, a)
		}
		stage++
	}
	const agree = "concuerda concuerda concuerda concuerda"
	f(Activated, 3, agree, 0)
	f(Unchanged, 3, agree, 0)
	f(Activated, 4, "concuerda difiere concuerda concuerda", 1)
	f(Unchanged, 4, agree, 0)

	m, err := fx.c.LatestEdition()
	if err != nil || len(m.Sources) != 2 || m.Sources[1].Source != "sat_69b_bis" || len(m.Sources[1].Chain) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	// What the ruling changed is an event of the row that was already there.
	ed, err := fx.c.OpenEdition(m)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	changes := 0
	if err := ed.Source("sat_69b_bis").Past("TRA010101AA1", func(p snapshots.Past) error { changes += len(p.Events); return nil }); err != nil || changes != 1 {
		t.Errorf("%d events, %v", changes, err)
	}
}

// TestBisOfFewerRows: of a list of three rows one is a third. Whether it was taken
// off or lost is for a person to say.
func TestBisOfFewerRows(t *testing.T) {
	content, ok := mirror.File(0, mirror.Listado69BBis)
	if !ok {
		t.Fatal("no list")
	}
	fx := newFixture(t)
	put := func(official string) Result {
		r, _ := fx.ingestBis(Request{Name: "x.csv", Content: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(official)), nil }})
		return r
	}
	if r := put(string(content)); r.Outcome != Activated || r.Version.Rows != 3 {
		t.Fatalf("%s %+v", r.Outcome, r.Version)
	}
	without := string(content[:strings.Index(string(content), "3,SOL010101AA1")])
	r := put(without)
	if r.Outcome != Quarantined || len(r.Faults) != 1 || r.Faults[0].Code != "MENOS_FILAS" || !strings.Contains(r.Faults[0].Message, "33.3 %") {
		t.Errorf("%s %+v", r.Outcome, r.Faults)
	}
}

func TestRegistry(t *testing.T) {
	f := func(id, url string) {
		t.Helper()
		if s, ok := Lookup(id); !ok || s.URL() != url || s.Schema.Source != id {
			t.Errorf("%s: %+v", id, s)
		}
	}
	const base = "https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones"
	f("sat_69b", base+mirror.Listado69B)
	f("sat_69b_bis", base+mirror.Listado69BBis)
	f("compranet_2018", "https://comprasmx.buengobierno.gob.mx/")
	f("compranet_2023", "https://upcp-compranet.buengobierno.gob.mx/cnetassets/datos_abiertos_contratos_expedientes/Contratos_CompraNet2023.csv")
	f("compranet_2026", "https://upcp-compranet.buengobierno.gob.mx"+mirror.Contracts(2026))
	if s, _ := Lookup("compranet_2022"); !s.NeedsURL() || !strings.Contains(s.Lacks(Access{}), "--file compranet_2022=RUTA --corte") {
		t.Errorf("compranet_2022 lacks %q", s.Lacks(Access{}))
	}
	f("sat_art69_no_localizados", base+"/Datos_abiertos/Documents_AGR/No_localizados.csv")
	f("sat_art69_condonados_07_15", base+"/Datos_abiertos/Cifras_SAT/Indef/Condonados_07_15.csv")
	ids := []string{"sat_69b", "sat_69b_bis", "banxico_fix", "banxico_spei", "ift_numeracion"}
	for _, l := range query.Art69Lists {
		ids = append(ids, l.Schema.Source)
		if s, _ := Lookup(l.Schema.Source); s.MaxBytes == 0 || path.Ext(s.path) != ".csv" || s.whenLinked != (l.Code == "ELIMINADOS") {
			t.Errorf("%s: %+v", l.Code, s)
		}
	}
	for year := 2018; year <= 2026; year++ {
		ids = append(ids, "compranet_"+strconv.Itoa(year))
	}
	f("sfp_proveedores_sancionados", "https://datosabiertos.funcionpublica.gob.mx"+mirror.OpenSanctions)
	f("sabg_proveedores_sancionados", "https://directoriosancionados.buengobierno.gob.mx/")
	ids = append(ids, "sabg_proveedores_sancionados", "pdn_s3_particulares", "pdn_s3_faltas_graves_personas_morales", "pdn_s3_faltas_graves_personas_fisicas",
		"sfp_proveedores_sancionados", "sabg_proveedores_sancionados_xlsx")
	for _, id := range ids[len(ids)-6:] {
		if s, _ := Lookup(id); s.NeedsURL() != (id != "sfp_proveedores_sancionados") || s.NeedsURL() && !strings.Contains(s.Lacks(Access{}), "--file "+id+"=RUTA --corte") {
			t.Errorf("%s lacks %q", id, s.Lacks(Access{}))
		}
	}
	if got := Sources(); !slices.Equal(got, ids) {
		t.Error(got)
	}
}
