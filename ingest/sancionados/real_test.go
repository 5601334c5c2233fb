package sancionados

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// The tests of this file read real official files. They lie outside the repository:
// COTEJO_SHARED names the folder, and must be right when it is set.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(root, "data", "mx-sources", "sancionados", name))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skipf("no está el archivo oficial %s: ponga COTEJO_SHARED", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// count counts the rows that have a text in a column.
func count(rows []snapshots.Row, column int, text string) (n int) {
	for _, r := range rows {
		if r.Norm[column] == text {
			n++
		}
	}
	return n
}

// TestRealAbiertos: every record of the real table is placed; how many there are is
// counted without the reader, by line ends, since no cell of it holds one.
func TestRealAbiertos(t *testing.T) {
	content := realFile(t, "proveedores_sancionados_2021-01-14.csv.gz")
	want := bytes.Count(content, []byte("\n")) - 1
	rows, sum, refusal := read(t, ReadAbiertos, content)
	if refusal != nil || want != 1954 || sum.Rows != want || len(rows) != want || sum.Unended {
		t.Fatalf("%d rows, want %d (1954): %v", sum.Rows, want, refusal)
	}
	if sum.Encoding != tabular.Windows1252 || sum.Corte != (civil.Date{Year: 2021, Month: 1, Day: 14}) {
		t.Errorf("%s, corte %s", sum.Encoding, sum.Corte)
	}
	// The two records that a thousands comma and a lost comma broke are whole, and
	// nothing else was touched.
	if sum.Counts[Mended] != 2 || sum.Counts[Unreadable] != 0 || sum.Counts[UnreadSums] != 0 || sum.Counts[tabular.UnreadDates] != 1 {
		t.Errorf("%v", sum.Counts)
	}
	const sentido = 5
	if both, fine := count(rows, sentido, "SANCIONATORIA CON MULTA E INHABILITACIÓN"), count(rows, sentido, "SANCIONATORIA CON MULTA"); both != 1495 || fine != 431+1 {
		t.Errorf("%d multa e inhabilitación, %d multa", both, fine)
	}
	// Both stand in their columns to the last.
	if r := normed(t, rows, abiertosNotificado, "30/Jun/2006"); r[abiertosMonto] != "70200.00" || count(rows, abiertosActualizado, "14/01/2021 08:01") != want {
		t.Errorf("%q", r[abiertosNotificado:])
	}
	if r := normed(t, rows, 3, "NULL"); r[abiertosNotificado] != "2016-01-18" || r[abiertosMonto] != "100935.00" {
		t.Errorf("%q", r[abiertosNotificado:])
	}
}

// TestRealExportacion reads the real export. What is at hand is its text as CSV, which
// is not what the authority gives: it is refused as it is, and its cells, put back into
// a workbook, are read.
func TestRealExportacion(t *testing.T) {
	content := realFile(t, "Proveedores_Contratistas_Sancionados_2026-02_export.csv.gz")
	refused(t, ReadExportacion, content, tabular.Broken, "no es un libro de Excel")
	refused(t, ReadAbiertos, content, tabular.Header, "«PROVEEDOR O CONTRATISTA»", "«MONTO»")
	// An independent reader counts.
	cells, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := len(cells) - 1
	rows, sum, refusal := read(t, ReadExportacion, mirror.Workbook(cells))
	if refusal != nil || want != 2395 || sum.Rows != want || len(rows) != want {
		t.Fatalf("%d rows, want %d (2395): %v", sum.Rows, want, refusal)
	}
	if len(sum.Counts) != 0 {
		t.Errorf("%v", sum.Counts)
	}
	for i, r := range rows {
		if !slices.Equal(r.Raw, cells[i+1]) {
			t.Fatalf("row %d: %q is not %q", i, r.Raw, cells[i+1])
		}
	}
	if n := count(rows, exportacionInicio, ""); n != 548 {
		t.Errorf("%d rows without a beginning, want 548", n)
	}
	// Whatever each row says, its debarment is in force until its last day and no longer.
	debarred, contradictory := 0, 0
	for _, r := range rows {
		inicio, fin := r.Norm[exportacionInicio], r.Norm[exportacionFin]
		if fin == "" {
			continue
		}
		last, err := civil.Parse(fin)
		if err != nil {
			t.Fatalf("%q", fin)
		}
		debarred++
		on, motivo := query.Vigente(inicio, fin, r.Norm[exportacionFin+2], last)
		if motivo == "FECHAS_CONTRADICTORIAS" {
			contradictory++
			continue
		}
		after, _ := query.Vigente(inicio, fin, "", civil.Of(last.End().Add(time.Hour)))
		if on == nil || !*on || after == nil || *after {
			t.Errorf("%s a %s", inicio, fin)
		}
	}
	if debarred != 1840 || contradictory != 3 { // they end before they begin, in the official file
		t.Errorf("%d with an end, %d contradictory", debarred, contradictory)
	}
	// Without one of its columns it is refused by name.
	for i, title := range cells[0] {
		var fewer [][]string
		for _, row := range cells {
			fewer = append(fewer, slices.Delete(slices.Clone(row), i, i+1))
		}
		refused(t, ReadExportacion, mirror.Workbook(fewer), tabular.Header, "«"+title+"»")
	}
	if !strings.HasSuffix(rows[0].Raw[0], "\t") {
		t.Error("the tab behind a name is gone")
	}
}
