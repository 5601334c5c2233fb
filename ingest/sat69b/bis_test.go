package sat69b

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// Lists under article 69-B Bis in the official format, with the oddities of the
// real ones: no «fecha» in the oficios, groups joined by blanks, a bare line feed
// inside a name, a redacted row, filler.
const (
	bisNote   = "Informaci\xf3n actualizada al 12 de marzo de 2026,,,,,,,,,,,\r\nListado completo de contribuyentes (Art\xedculo 69-B Bis del CFF),,,,,,,,,,,\r\n"
	bisTitles = "No.,RFC,Nombre del Contribuyente,Situaci\xf3n del contribuyente,N\xfamero y fecha de oficio global definitivo SAT,Publicaci\xf3n p\xe1gina SAT definitivo," +
		"N\xfamero y fecha de oficio global definitivo DOF,Publicaci\xf3n DOF definitivo,N\xfamero y fecha de oficio global de sentencia favorable SAT,Publicaci\xf3n p\xe1gina SAT sentencia favorable," +
		"N\xfamero y fecha de oficio global de sentencia favorable DOF,Publicaci\xf3n DOF sentencia favorable\r\n"
	listBis = bisNote + bisTitles +
		"1,GAN010101AA1,\"GANADORA, S.A. DE C.V.\",Sentencia Favorable,900-04-00-00-00-2024-80 de 25 de enero de 2024,25/01/2024,900-04-00-00-00-2024-80 de 25 de enero de 2024,05/07/2024,900 04 00 00 00 2026-254 de 12 de marzo de 2026,12/03/2026,,\r\n" +
		"2,PER010101AA1,\"P\xc9RDIDAS, \nS.A. DE C.V.\",definitivo ,900-04-00-00-00-2024-80 de 25 de enero de 2024,25/01/2024,,,,,,\r\n" +
		"3,XXXXXXXXXXXX,Informaci\xf3n suprimida,Definitivo,900-04-00-00-00-2025-349 de 14 de mayo de 2025,14/05/2025,,,,,,\r\n" +
		",,,,,,,,,,,\r\n"

	listDefinitivo = "Informaci\xf3n actualizada al 13 de junio de 2025,,,,,,,\n" +
		"\"Listado Global Definitivo (en terminos del art\xedculo 69-B Bis, p\xe1rrafo noveno del CFF)\",,,,,,,\n" +
		"No.,RFC,Nombre del Contribuyente,Situaci\xf3n del contribuyente,N\xfamero y fecha de oficio global definitivo SAT,Publicaci\xf3n p\xe1gina SAT definitivo,N\xfamero y fecha de oficio global definitivo DOF,Publicaci\xf3n DOF definitivo\n" +
		"1,PER010101AA1,\"P\xc9RDIDAS, \nS.A. DE C.V.\",Definitivo,900-04-00-00-00-2024-80 de 25 de enero de 2024,25/01/2024,900-04-00-00-00-2024-80 de 25 de enero de 2024,05/07/2024\n"
)

func TestRowsOfBis(t *testing.T) {
	rows, sum, err := readAllOf(t, &bis, listBis)
	if err != nil {
		t.Fatal(err)
	}
	want := tabular.Summary{
		Rows: 3, Suppressed: 1, Corte: civil.Date{Year: 2026, Month: time.March, Day: 12}, Encoding: "windows-1252",
		Counts: map[string]int{"filas_vacias": 1},
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	f := func(i int, id string, norm ...string) {
		t.Helper()
		got := rows[i]
		for len(norm) < len(query.Sat69BBis.Columns) {
			norm = append(norm, "")
		}
		if diff := cmp.Diff(norm, got.Norm); diff != "" || strings.Join(got.ID, " ") != id || got.Suppressed {
			t.Errorf("row %d: %q (suppressed %v), want %q; -want +got\n%s", i+1, got.ID, got.Suppressed, id, diff)
		}
	}
	const oficio = "900-04-00-00-00-2024-80 de 2024-01-25"
	f(0, "GAN010101AA1 900-04-00-00-00-2024-80", "1", "GAN010101AA1", "GANADORA, S.A. DE C.V.", "Sentencia Favorable",
		oficio, "2024-01-25", oficio, "2024-07-05", "900-04-00-00-00-2026-254 de 2026-03-12", "2026-03-12")
	f(1, "PER010101AA1 900-04-00-00-00-2024-80", "2", "PER010101AA1", "PÉRDIDAS, S.A. DE C.V.", "Definitivo", oficio, "2024-01-25")
	if raw := rows[1].Raw[2]; raw != "PÉRDIDAS, \nS.A. DE C.V." {
		t.Errorf("name as published: %q", raw)
	}
	if r := rows[2]; r.ID[0] != tabular.SuppressedRFC || len(r.ID[1]) != 64 || !r.Suppressed {
		t.Errorf("redacted row: %+v", r)
	}
}

// TestBisDefinitivo: the list as it was before anyone won a ruling has the same
// rows, with nothing in the columns that it lacks.
func TestBisDefinitivo(t *testing.T) {
	rows, sum, err := readAllOf(t, &bis, listDefinitivo)
	if err != nil || sum.Rows != 1 || sum.Corte != (civil.Date{Year: 2025, Month: time.June, Day: 13}) {
		t.Fatalf("%+v, %v", sum, err)
	}
	const oficio = "900-04-00-00-00-2024-80 de 2024-01-25"
	want := []string{"1", "PER010101AA1", "PÉRDIDAS, S.A. DE C.V.", "Definitivo", oficio, "2024-01-25", oficio, "2024-07-05", "", "", "", ""}
	if diff := cmp.Diff(want, rows[0].Norm); diff != "" || strings.Join(rows[0].ID, " ") != "PER010101AA1 900-04-00-00-00-2024-80" {
		t.Errorf("%q -want +got\n%s", rows[0].ID, diff)
	}
}

// TestRefusalsOfBis: neither list passes for the other, and what is missing is named.
func TestRefusalsOfBis(t *testing.T) {
	f := func(l *layout, official, code string, says ...string) {
		t.Helper()
		_, err := l.read(opener(official), func(snapshots.Row) error { return nil })
		var refusal *tabular.Refusal
		if !errors.As(err, &refusal) || refusal.Fault.Code != code {
			t.Errorf("%.40q: got %v, want %s", official, err, code)
			return
		}
		for _, s := range says {
			if !strings.Contains(refusal.Fault.Message, s) {
				t.Errorf("%.40q: the message does not say %q: %s", official, s, refusal.Fault.Message)
			}
		}
	}
	f(&bis, fixture(t, "listado_69b.csv"), "ENCABEZADO", "«Número y fecha de oficio global definitivo SAT»", "«publicacion pagina sat presuntos»")
	f(&complete, listBis, "ENCABEZADO", "«Número y fecha de oficio global de presunción SAT»")
	f(&bis, "<html>", "HTML")
	f(&bis, "", "SIN_FILAS")
	f(&bis, listBis[:len(listBis)-60], "TRUNCADO", "5 de 12")
	// Seven columns are no known layout, and nine are neither.
	f(&bis, strings.Replace(listDefinitivo, ",Publicaci\xf3n DOF definitivo", "", 1), "ENCABEZADO",
		"faltan las columnas «Publicación DOF definitivo», «Número y fecha de oficio global de sentencia favorable SAT»")
	f(&bis, strings.Replace(listDefinitivo, "DOF definitivo\n", "DOF definitivo,Nueva\n", 1), "ENCABEZADO",
		"faltan las columnas «Número y fecha de oficio global de sentencia favorable SAT»", "«nueva»")
	f(&bis, strings.Replace(listBis, "PER010101AA1", "", 1), "REGISTRO", "no tiene RFC")
}

func TestRealBis(t *testing.T) {
	f := func(name string, corte civil.Date, encoding string, situations ...string) {
		t.Helper()
		rows, sum, err := readAllOf(t, &bis, string(realFile(t, "sat-69b-bis/"+name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := tabular.Summary{Rows: len(situations), Corte: corte, Encoding: encoding, Counts: map[string]int{}}
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		for i, r := range rows {
			if got := strings.Join([]string{r.ID[0], r.ID[1], r.Norm[3], r.Norm[9]}, " "); got != situations[i] {
				t.Errorf("%s: row %d is %q, want %q", name, i+1, got, situations[i])
			}
		}
		if name := rows[1].Raw[2]; !strings.Contains(name, ", \nS.A.") {
			t.Errorf("the line feed is not in %q", name)
		}
	}
	f("Listado_69_B_Bis_Completo_2026-03-12.csv", civil.Date{Year: 2026, Month: time.March, Day: 12}, "windows-1252",
		"OAN151230HWA 900-04-00-00-00-2024-80 Sentencia Favorable 2026-03-12",
		"CPH061010RB7 900-04-00-00-00-2024-80 Definitivo ",
		"BER160621KN5 900-04-00-00-00-2025-349 Definitivo ")
	f("Listado_69_B_Bis_Definitivo_2025-06-13.csv", civil.Date{Year: 2025, Month: time.June, Day: 13}, "windows-1252",
		"OAN151230HWA 900-04-00-00-00-2024-80 Definitivo ",
		"CPH061010RB7 900-04-00-00-00-2024-80 Definitivo ",
		"BER160621KN5 900-04-00-00-00-2025-349 Definitivo ")
}
