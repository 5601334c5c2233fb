package sat69b

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cotejo/civil"
	"cotejo/ingest/tabular"
)

func readPartial(official string) (rows []string, sum tabular.Summary, err error) {
	sum, err = ReadPartial(opener(official), func(rfc, situation string) error {
		rows = append(rows, rfc+" "+situation)
		return nil
	})
	return rows, sum, err
}

func TestReadPartial(t *testing.T) {
	f := func(official string, want tabular.Summary, rows ...string) {
		t.Helper()
		got, sum, err := readPartial(official)
		if want.Counts == nil {
			want.Counts = map[string]int{}
		}
		want.Rows = len(rows)
		if diff := cmp.Diff(rows, got) + cmp.Diff(want, sum); err != nil || diff != "" {
			t.Errorf("%.60q: %v; -want +got\n%s", official, err, diff)
		}
	}
	// The complete list of the reader's own tests, as ReadPartial sees it.
	f(fixture(t, "listado_69b.csv"),
		tabular.Summary{
			Suppressed: 3, Corte: civil.Date{Year: 2026, Month: time.August, Day: 31}, Encoding: "windows-1252",
			Counts: map[string]int{"bytes_no_asignados": 1, "filas_vacias": 2, "situacion_desconocida": 1},
		},
		"DIN010101AA1 Sentencia Favorable", "Ñ&A010101AA1 Definitivo", "PELJ800101AA1 Presunto", "DIN010101AA1 Desvirtuado",
		"NUE010101AA1 En revisión", "XXXXXXXXXXXX Definitivo", "XXXXXXXXXXXX Definitivo", "XXXXXXXXXXXX Presunto")
	f(fixture(t, "listado_69b_2019.csv"),
		tabular.Summary{Corte: civil.Date{Year: 2019, Month: time.December, Day: 3}, Encoding: "windows-1252"},
		"DIN010101AA1 Sentencia Favorable", "PRE010101AA1 Presunto")
	// Columns that the reader of the complete list would refuse, text without a
	// title, short records, half a row.
	f("Actualizada al 31 de enero de 2026\nSITUACION DEL  CONTRIBUYENTE, rfc ,Nueva,\nPRESUNTO,efo010101aa1\xa0,x,y,z\n,,,\nDefinitivo\nPresunto,\xd1UB010101AA1\n,XXXXXXXXXXXXX\n",
		tabular.Summary{
			Suppressed: 1, Corte: civil.Date{Year: 2026, Month: time.January, Day: 31}, Encoding: "windows-1252",
			Counts: map[string]int{"filas_vacias": 1},
		},
		"EFO010101AA1 Presunto", " Definitivo", "ÑUB010101AA1 Presunto", "XXXXXXXXXXXX ")
}

func TestReadPartialRefuses(t *testing.T) {
	f := func(official, code string) {
		t.Helper()
		_, _, err := readPartial(official)
		var refusal *tabular.Refusal
		if !errors.As(err, &refusal) || refusal.Fault.Code != code {
			t.Errorf("%.40q: got %v, want %s", official, err, code)
		}
	}
	f("", "SIN_FILAS")
	f("<!DOCTYPE html>", "HTML")
	f("RFC,Nombre\nEFO010101AA1,x\n", "ENCABEZADO")
	f(strings.Repeat("x\n", headerRows)+"RFC,Situación del contribuyente\n", "ENCABEZADO")
	f("RFC,Situación del contribuyente\n\"EFO", "TRUNCADO")
	f("RFC,Situación del contribuyente\n\"EFO\"x,Presunto\n", "REGISTRO")
	mine := errors.New("mine")
	if _, err := ReadPartial(opener("RFC,Situación del contribuyente\nA,B\n"), func(string, string) error { return mine }); err != mine {
		t.Errorf("of add: %v", err)
	}
}

// TestReadPartialAgreesWithRead: what the reader of rows accepts, the tolerant one
// counts and names alike.
func TestReadPartialAgreesWithRead(t *testing.T) {
	for _, name := range []string{
		list2021, list2022, list2023, "Definitivos_2019-12-03.csv.gz", "Presuntos_2019-12-03.csv.gz",
		"Definitivos_2026-01-31.csv.gz", "Presuntos_2026-01-31.csv.gz", "Desvirtuados_2026-01-31.csv.gz",
	} {
		official := string(realFile(t, name))
		rows, whole, err := readAll(t, official)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]string, 0, len(rows))
		for _, r := range rows {
			want = append(want, r.ID[0]+" "+r.Norm[3])
		}
		got, sum, err := readPartial(official)
		if diff := cmp.Diff(want, got); err != nil || diff != "" || sum.Corte != whole.Corte || sum.Suppressed != whole.Suppressed {
			t.Errorf("%s: %v, %+v, not %+v; -Read +ReadPartial\n%s", name, err, sum, whole, diff)
		}
	}
}

func FuzzReadPartial(f *testing.F) {
	f.Add([]byte(fixture(f, "listado_69b.csv")))
	f.Add([]byte(fixture(f, "listado_69b_2019.csv")))
	f.Add([]byte("RFC,x,Situación del contribuyente\nA\n,,B\n"))
	f.Fuzz(func(t *testing.T, official []byte) {
		rows, sum, err := readPartial(string(official))
		var refusal *tabular.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Fatalf("not a refusal: %v", err)
		}
		if sum.Rows != len(rows) || !utf8.ValidString(strings.Join(rows, "")) {
			t.Fatalf("%d rows, the summary says %d: %q", len(rows), sum.Rows, rows)
		}
	})
}
