package sandbox

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

// TestRFCs holds the table of test inputs that integrators rely on.
func TestRFCs(t *testing.T) {
	files := Files()
	if len(files) != 1 || files[0].Source != "sat_69b" {
		t.Fatalf("files: %d, first of %q", len(files), files[0].Source)
	}
	text, err := charmap.Windows1252.NewDecoder().String(string(files[0].Bytes))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = 20
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := "Información actualizada al 31 de agosto de 2026;"; !strings.HasPrefix(rows[0][0], want) || files[0].Corte.String() != "2026-08-31" {
		t.Errorf("corte: %q and %s", rows[0][0], files[0].Corte)
	}
	got := map[string]string{}
	for _, row := range rows[3:] {
		got[row[1]] = row[3]
		if !strings.HasPrefix(row[2], "EMPRESA DE PRUEBA ") {
			t.Errorf("%s is called %q, which does not say that it is invented", row[1], row[2])
		}
	}
	want := map[string]string{
		"EFO010101AA1": "Definitivo",
		"PRE010101AA1": "Presunto",
		"DES010101AA1": "Desvirtuado",
		"SEN010101AA1": "Sentencia Favorable",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows: %v, want %v", got, want)
	}
}

// TestFilesAreTheCallersOwn holds that nobody can change the embedded bytes.
func TestFilesAreTheCallersOwn(t *testing.T) {
	Files()[0].Bytes[0] = 0
	if Files()[0].Bytes[0] == 0 {
		t.Error("a caller's write reached the embedded file")
	}
}
