package query_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"cotejo/checks"
	"cotejo/query"
	"cotejo/snapshots"
)

// checkBrief holds that a note says what the registro says, read in full.
func checkBrief(t testing.TB, registro []byte, outcome *query.Outcome) {
	t.Helper()
	parts, _ := query.Split(registro)
	type block struct {
		Estado      string
		Situaciones []struct{ Situacion string }
	}
	var full struct {
		Sat69B      block  `json:"sat_69b"`
		Bis         block  `json:"sat_69b_bis"`
		Sancionados *block `json:"proveedores_sancionados"`
		Art69       struct {
			Estado string
			Listas []struct{ Lista string }
		} `json:"sat_art69"`
		Contratacion struct{ Contratos *int } `json:"contratacion_publica"`
	}
	if err := json.Unmarshal(parts.Resultado, &full); err != nil {
		t.Fatal(err)
	}
	want := query.CompanyBrief{Sat69B: full.Sat69B.Estado, Sat69BBis: full.Bis.Estado, SatArt69: full.Art69.Estado, Contratos: -1}
	if len(full.Sat69B.Situaciones) > 0 {
		want.Situacion = full.Sat69B.Situaciones[0].Situacion
	}
	if full.Sancionados != nil {
		want.Sancionados = full.Sancionados.Estado
	}
	if n := full.Contratacion.Contratos; n != nil {
		want.Contratos = *n
	}
	for _, l := range full.Art69.Listas {
		want.Listas |= 1 << slices.IndexFunc(query.Art69Lists, func(a query.Art69List) bool { return a.Code == l.Lista })
	}
	if got, err := query.ReadCompanyBrief(outcome.Note.Bytes()); err != nil || got != want {
		t.Fatalf("la nota dice %+v (%v), el registro %+v:\n%s", got, err, want, registro)
	}
}

// TestBriefOfAnySituation: one that no list had until today is told as it is, or cut.
func TestBriefOfAnySituation(t *testing.T) {
	f := func(situacion, want string) {
		t.Helper()
		rfc, err := checks.ParseRFC("AAA010101AA1")
		if err != nil {
			t.Fatal(err)
		}
		ed := publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA", situacion)})
		_, outcome, err := query.AppendRegistro(nil, query.Company{RFC: rfc}, day, ed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := query.ReadCompanyBrief(outcome.Note.Bytes()); err != nil || got.Situacion != want {
			t.Errorf("%q: %q, %v", situacion, got.Situacion, err)
		}
	}
	f("Presunto", "Presunto")
	f("Revocado", "Revocado")
	f("Con situación nueva y larga", "Con situación nueva ")
}

// TestReadCompanyBriefRefuses: any bytes are a note or an error.
func TestReadCompanyBriefRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		note := rapid.SliceOfN(rapid.Byte(), 0, query.MaxNote).Draw(t, "note")
		if _, err := query.ReadCompanyBrief(note); err == nil && len(note) < 11 {
			t.Fatalf("%x is read", note)
		}
	})
}
