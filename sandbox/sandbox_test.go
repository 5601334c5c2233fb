package sandbox

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

// TestRFCs holds the tables of test inputs that integrators rely on.
func TestRFCs(t *testing.T) {
	f := func(i int, source string, columns int, note, corte string, want map[string]string) {
		t.Helper()
		file := Files()[i]
		if file.Source != source || file.Corte.String() != corte {
			t.Fatalf("file %d is of %q, %s", i, file.Source, file.Corte)
		}
		text, err := charmap.Windows1252.NewDecoder().String(string(file.Bytes))
		if err != nil {
			t.Fatal(err)
		}
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = columns
		rows, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(rows[0][0], "Información actualizada al "+note+";") {
			t.Errorf("%s: corte %s, the file says %q", source, corte, rows[0][0])
		}
		got := map[string]string{}
		for _, row := range rows[3:] {
			got[row[1]] = row[3]
			if !strings.HasPrefix(row[2], "EMPRESA DE PRUEBA ") {
				t.Errorf("%s is called %q, which does not say that it is invented", row[1], row[2])
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
	}
	if n := len(Files()); n != 8 {
		t.Fatalf("%d files", n)
	}
	f(0, "sat_69b", 20, "31 de agosto de 2026", "2026-08-31", map[string]string{
		"EFO010101AA1": "Definitivo",
		"PRE010101AA1": "Presunto",
		"DES010101AA1": "Desvirtuado",
		"SEN010101AA1": "Sentencia Favorable",
	})
	f(1, "sat_69b_bis", 12, "15 de julio de 2026", "2026-07-15", map[string]string{"BIS010101AA1": "Definitivo"})
}

// TestArticle69 holds the two rows of the lists under article 69.
func TestArticle69(t *testing.T) {
	f := func(i int, source, want string) {
		t.Helper()
		file := Files()[i]
		text, err := charmap.Windows1252.NewDecoder().String(string(file.Bytes))
		if err != nil {
			t.Fatal(err)
		}
		const titles = "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\r\n"
		if file.Source != source || text != titles+want+"\r\n" || file.Corte.IsZero() {
			t.Errorf("%s: %q", file.Source, text)
		}
	}
	f(2, "sat_art69_firmes", `FIR010101AA1,"EMPRESA DE PRUEBA CON CRÉDITO FIRME, S.A. DE C.V.",M,FIRMES,16/07/2026,CIUDAD DE MÉXICO`)
	f(3, "sat_art69_no_localizados", "NOLO010101AA1,PERSONA DE PRUEBA NO LOCALIZADA,F,NO LOCALIZADOS,01/08/2026,JALISCO")
}

// TestContracts holds that CON010101AA1 has two contracts, and nobody else any.
func TestContracts(t *testing.T) {
	n := 0
	for _, file := range Files() {
		if !strings.HasPrefix(file.Source, "compranet_") {
			continue
		}
		text, err := charmap.Windows1252.NewDecoder().String(string(file.Bytes))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			n++
			for i, want := range map[string]string{"rfc": "CON010101AA1", "proveedor o contratista": "EMPRESA DE PRUEBA CONTRATISTA, S.A. DE C.V.", "institución": "DEPENDENCIA DE PRUEBA"} {
				at := slices.IndexFunc(rows[0], func(title string) bool { return strings.ToLower(title) == i })
				if at < 0 || row[at] != want {
					t.Errorf("%s: %s is not %q", file.Name, i, want)
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d contracts", n)
	}
}

// TestSanctions holds that SAN010101AA1 has three sanctions, and nobody else any; and
// that nothing but names says who is meant where there is no RFC.
func TestSanctions(t *testing.T) {
	for _, file := range Files() {
		switch text := string(file.Bytes); file.Source {
		case "sabg_proveedores_sancionados":
			var answer struct {
				Data struct{ Results []map[string]any }
			}
			if err := json.Unmarshal(file.Bytes, &answer); err != nil || len(answer.Data.Results) != 3 {
				t.Fatalf("%v: %s", err, text)
			}
			for _, r := range answer.Data.Results {
				if r["rfc"] != "SAN010101AA1" || r["proveedorContratista"] != "EMPRESA DE PRUEBA SANCIONADA, S.A. DE C.V." || r["oicResponsable"] != "DEPENDENCIA DE PRUEBA" {
					t.Errorf("%v", r)
				}
			}
		case "sfp_proveedores_sancionados":
			if strings.Contains(text, "SAN010101AA1") || strings.Count(text, "\n") != 2 || !strings.Contains(text, "\nEMPRESA DE PRUEBA SANCIONADA  S.A. DE C.V.,\tDEPENDENCIA DE PRUEBA,") {
				t.Errorf("%q", text)
			}
		}
	}
}

// TestFilesAreTheCallersOwn holds that nobody can change the embedded bytes.
func TestFilesAreTheCallersOwn(t *testing.T) {
	for i := range Files() {
		first := Files()[i].Bytes[0]
		Files()[i].Bytes[0] = 0
		if Files()[i].Bytes[0] != first {
			t.Errorf("a caller's write reached the embedded file of %s", Files()[i].Source)
		}
	}
}
