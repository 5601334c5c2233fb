package ift

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cotejo/catalog"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

func opener(text string) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

func read(text string) (rows [][]string, sum tabular.Summary, err error) {
	sum, err = Read(opener(text), func(row snapshots.Row) error {
		rows = append(rows, append([]string{strings.Join(row.ID, "-")}, row.Norm...))
		return nil
	})
	return rows, sum, err
}

const (
	// The names after the first carry a blank, and the data one comma more.
	titles = "ZONA, NUMERACION_INICIAL, NUMERACION_FINAL, OCUPACION, MODALIDAD, RAZON_SOCIAL, FECHA_ASIGNACION\n"
	row    = "\"GUADALAJARA, JAL\",3312340000,3312349999,10000,FIJO,\"EJEMPLO, S.A. DE C.V.\",14/03/2003,\n"
)

func TestRead(t *testing.T) {
	f := func(text string, counts map[string]int, want ...string) {
		t.Helper()
		rows, sum, err := read(text)
		var got []string
		for _, r := range rows {
			got = append(got, strings.Join(r, "|"))
		}
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") || sum.Rows != len(want) || fmt.Sprint(sum.Counts) != fmt.Sprint(counts) {
			t.Errorf("%q %+v %v", got, sum, err)
		}
	}
	const first = "3312340000-3312349999|GUADALAJARA, JAL|3312340000|3312349999|10000|FIJO|EJEMPLO, S.A. DE C.V.|2003-03-14"
	f(titles+row, nil, first)
	// As many commas as the titles, another order, lower case, CRLF and a filler row.
	f(titles+strings.TrimSuffix(row, ",\n")+"\n", nil, first)
	f("Razon_Social,Zona,Numeracion_Final,Numeracion_Inicial,Fecha_Asignacion,Modalidad,Ocupacion\r\nX,Y,5512340999,5512340000,01/02/2020,cpp,1000\r\n,,,,,,\r\n",
		map[string]int{tabular.EmptyRows: 1}, "5512340000-5512340999|Y|5512340000|5512340999|1000|CPP|X|2020-02-01")
	// windows-1252.
	f(titles+"\"MERIDA, YUC\",9991230000,9991230999,1000,MPP,TELEFON\xcdA,01/02/2020,\n", nil,
		"9991230000-9991230999|MERIDA, YUC|9991230000|9991230999|1000|MPP|TELEFONÍA|2020-02-01")
	// Odd, counted and kept as published.
	f(titles+"X,9991230000,9991230999,10,SATELITAL,Y,mañana,\n", map[string]int{UnknownModes: 1, OtherCounts: 1, UnreadDates: 1},
		"9991230000-9991230999|X|9991230000|9991230999|10|SATELITAL|Y|mañana")
}

func TestRefusals(t *testing.T) {
	f := func(text, code, says string) {
		t.Helper()
		_, _, err := read(text)
		refusal, ok := errors.AsType[*tabular.Refusal](err)
		if !ok || refusal.Fault.Code != code || !strings.Contains(refusal.Fault.Message, says) {
			t.Errorf("%.60q: %v, want %s %q", text, err, code, says)
		}
	}
	f("", tabular.NoRows, "vacío")
	f("<html>", tabular.HTML, "página web")
	// The format before the 10-digit plan had no ZONA.
	f("CLAVE_CENSAL,NUMERACION_INICIAL,NUMERACION_FINAL,OCUPACION,MODALIDAD,RAZON_SOCIAL\n", tabular.Header, "«ZONA», «FECHA_ASIGNACION»")
	f(strings.Replace(titles, "MODALIDAD", "OCUPACION", 1), tabular.Header, "«OCUPACION» está dos veces")
	// Shifted by one, as a reader does that takes the first cell for a row name.
	f(titles+"x,"+row, tabular.Broken, "después de la última columna")
	f(titles+"x,"+strings.TrimSuffix(row, ",\n")+"\n", tabular.Broken, "después de la última columna")
	f(titles+"JAL,x,3312340000,3312349999,10000,FIJO,y,\n", tabular.Broken, "no son un rango")
	f(titles+strings.Replace(row, "3312349999", "3312330000", 1), tabular.Broken, "no son un rango")
	f(titles+strings.Replace(row, "3312340000", "0312340000", 1), tabular.Broken, "no son un rango")
	f(titles+strings.Replace(row, "3312340000", "0000", 1), tabular.Broken, "no son un rango")
	f(titles+strings.Replace(row, "3312349999", "9912349999", 1), tabular.Broken, "no son un rango")
	f(titles+row+"x,5512340000\n", tabular.Truncated, "el último registro (línea 3) tiene 2 de 7")
	f(titles+"x,5512340000\n"+row, tabular.Broken, "el registro de la línea 2 tiene 2 de 7")
	f(titles+"\"x,5512340000\n", tabular.Truncated, "comilla")
}

func TestUnended(t *testing.T) {
	if _, sum, err := read(titles + strings.TrimSuffix(row, "\n")); err != nil || !sum.Unended {
		t.Errorf("%+v %v", sum, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(titles + row)
	f.Add(titles + row + "X,9991230000,9991230999,10,SATELITAL,Y,mañana\n")
	f.Add("Razon_Social,Zona,Numeracion_Final,Numeracion_Inicial,Fecha_Asignacion,Modalidad,Ocupacion\r\nX,Y,5512340999,5512340000,01/02/2020,cpp,1000\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, sum, err := read(text)
		if _, refused := errors.AsType[*tabular.Refusal](err); err != nil && !refused {
			t.Fatal(err)
		}
		if err == nil && sum.Rows != len(rows) {
			t.Fatalf("%d rows, %+v", len(rows), sum)
		}
		for _, r := range rows {
			first, last := r[1+catalog.ColFirst], r[1+catalog.ColLast]
			if len(r) != 8 || len(first) != 10 || len(last) != 10 || last < first || r[0] != first+"-"+last {
				t.Fatalf("%q", r)
			}
		}
	})
}
