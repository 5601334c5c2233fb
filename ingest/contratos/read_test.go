package contratos

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

func opener(content []byte) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// read gives what a file has, and the reason why it is refused.
func read(t testing.TB, year int, content []byte) (rows []snapshots.Row, sum tabular.Summary, refusal *tabular.Refusal) {
	t.Helper()
	sum, err := Reader(year)(opener(content), func(r snapshots.Row) error {
		r.ID, r.Raw, r.Norm = slices.Clone(r.ID), slices.Clone(r.Raw), slices.Clone(r.Norm)
		rows = append(rows, r)
		return nil
	})
	if err != nil && !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	return rows, sum, refusal
}

func file(t testing.TB, year int) []byte {
	t.Helper()
	content, ok := mirror.File(mirror.Stages-1, mirror.Contracts(year))
	if !ok {
		t.Fatalf("the mirror has no contracts of %d", year)
	}
	return content
}

// titled finds the row with a title.
func titled(t testing.TB, rows []snapshots.Row, title string) snapshots.Row {
	t.Helper()
	for _, r := range slices.Backward(rows) {
		if r.Norm[query.ColContratoTitulo] == title {
			return r
		}
	}
	t.Fatalf("no row is titled %q", title)
	return snapshots.Row{}
}

func TestColumnsAreThoseOfTheSchema(t *testing.T) {
	for _, s := range query.Contratos {
		if len(s.Columns) != len(columns)+1 {
			t.Fatalf("%s: %d columns, the reader maps %d", s.Source, len(s.Columns), len(columns)+1)
		}
		for i, c := range columns {
			if s.Columns[i].Name != c.titles[0] {
				t.Errorf("column %d is %q in the schema and %q in the reader", i, s.Columns[i].Name, c.titles[0])
			}
		}
	}
}

// records counts the records of a text by a rule of its own: line ends outside of
// quotes, where a quote opens only behind a comma or a line end and closes only
// before one.
func records(content []byte) (n int) {
	text, quoted := string(content), false
	for i := range len(text) {
		edge := func(at int) bool { return at < 0 || at >= len(text) || strings.IndexByte(",\r\n", text[at]) >= 0 }
		switch c := text[i]; {
		case c == '"' && !quoted && edge(i-1):
			// Of a cell that was never quoted the second quote closes nothing.
			end := strings.IndexByte(text[i+1:], '"')
			quoted = end >= 0 && (edge(i+1+end+1) || strings.ContainsAny(text[i+1:i+1+end], ",\n"))
		case c == '"' && quoted && edge(i+1) && text[i-1] != '"':
			quoted = false
		case c == '\n' && !quoted:
			n++
		}
	}
	return n - 1 // the titles
}

func TestEveryYearIsReadWhole(t *testing.T) {
	for year := query.FirstContractYear; year <= query.LastContractYear; year++ {
		content := file(t, year)
		rows, sum, refusal := read(t, year, content)
		if refusal != nil {
			t.Fatalf("%d: %v", year, refusal)
		}
		if want := records(content); len(rows) != want || sum.Rows != want || want < 3 {
			t.Errorf("%d: %d rows (%d), the file has %d records", year, len(rows), sum.Rows, want)
		}
		if sum.Encoding != tabular.Windows1252 || sum.Unended || sum.Counts[tabular.UnreadRecords] != 0 {
			t.Errorf("%d: %+v", year, sum)
		}
		// The same text in UTF-8 gives the same rows.
		text, err := charmap.Windows1252.NewDecoder().Bytes(content)
		if err != nil {
			t.Fatal(err)
		}
		again, _, refusal := read(t, year, text)
		if refusal != nil || fmt.Sprint(again) != fmt.Sprint(rows) {
			t.Errorf("%d: in UTF-8 it is other rows (%v)", year, refusal)
		}
	}
}

func TestQuirksOf2025(t *testing.T) {
	rows, sum, refusal := read(t, 2025, file(t, 2025))
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := map[string]int{WithoutRFC: 1, ForeignRFCs: 1, LooseQuotes: 3, Implausible: 1, Undated: 1}
	if fmt.Sprint(sum.Counts) != fmt.Sprint(want) {
		t.Errorf("counts = %v, want %v", sum.Counts, want)
	}
	f := func(title string, column int, raw, norm string) {
		t.Helper()
		r := titled(t, rows, title)
		if r.Raw[column] != raw || r.Norm[column] != norm {
			t.Errorf("%s: %q, %q; want %q, %q", title, r.Raw[column], r.Norm[column], raw, norm)
		}
	}
	f("MATERIAL DE CURACIÓN", query.ColContratoInstitucion, `HOSPITAL GENERAL DE MéXICO "DR. EDUARDO LICEAGA"`, `HOSPITAL GENERAL DE MéXICO "DR. EDUARDO LICEAGA"`)
	f(`"LICEAGA" REMODELACIÓN DEL PABELLÓN`, query.ColContratoImporte, "310000.00", "310000.00")
	f("REMODELACIÓN DE OFICINAS, SEGUNDA ETAPA", query.ColContratoTitulo, "REMODELACIÓN\nDE OFICINAS,\nSEGUNDA ETAPA", "REMODELACIÓN DE OFICINAS, SEGUNDA ETAPA")
	f("ADQUISICIÓN DE VÍVERES PARA GUARDERÍAS", query.ColContratoFirma, "2025-01-21 11:57:32", "2025-01-21")
	f("ADQUISICIÓN DE VÍVERES PARA GUARDERÍAS", query.ColContratoInicio, "01/02/2025", "2025-02-01")
	f("LICENCIAS", query.ColContratoMoneda, "USD", "USD") // the first of two
	f("SERVICIO DE VIGILANCIA", query.ColContratoConvenio, "SI", "SI")
	f("MEDICAMENTOS", query.ColContratoPartida, "25301, 25401", "25301, 25401")
	f("COPIA VUELTA A GUARDAR", query.ColContratoImporte, "5173223.079999998", "5173223.079999998")
	f("ASESORÍA", query.ColContratoImporte, "$ 85,000.00", "85000.00")
	f("SERVICIO DE VIGILANCIA", query.ColContratoRegistro, "15", "15")
	both := 0
	for _, r := range rows {
		if r.Norm[query.ColContratoTitulo] == "SERVICIO DE VIGILANCIA" {
			both++
			if r.ID[1] != "C-2025-00000002" || r.ID[2] != titled(t, rows, "SERVICIO DE VIGILANCIA").ID[2] {
				t.Errorf("an amendment is another contract: %q", r.ID)
			}
		}
	}
	if both != 2 {
		t.Errorf("%d rows of an amended contract; both are evidence", both)
	}
}

func TestLayoutUntil2022(t *testing.T) {
	rows, sum, refusal := read(t, 2018, file(t, 2018))
	if refusal != nil {
		t.Fatal(refusal)
	}
	if sum.Counts[WithoutRFC] != 1 || sum.Counts[Implausible] != 1 {
		t.Errorf("counts = %v", sum.Counts)
	}
	r := titled(t, rows, "SERVICIO DE LIMPIEZA 2018")
	if r.Raw[query.ColContratoFirma] != "2018-05-08 00:00 GMT" || r.Norm[query.ColContratoFirma] != "2018-05-08" ||
		r.Norm[query.ColContratoImporte] != "250000.50" || r.Norm[query.ColContratoVerificado] != "1" || r.ID[1] != "1700001" {
		t.Errorf("%+v", r)
	}
	if r := titled(t, rows, "PAPELERÍA 2018"); r.ID[0] != "PRO010101AA1" || r.Raw[query.ColContratoRFC] != "PRO010101AA1 " {
		t.Errorf("%+v", r)
	}
}

func TestMissingColumnsAreNamed(t *testing.T) {
	f := func(year int, title string, names ...string) {
		t.Helper()
		content := file(t, year)
		encoded, _ := charmap.Windows1252.NewEncoder().String(title)
		head, rest, _ := bytes.Cut(content, []byte("\r\n"))
		head = []byte(strings.Replace(","+string(head)+",", ","+encoded+",", ",otro título,", 1))
		content = append(append(head[1:len(head)-1], "\r\n"...), rest...)
		_, _, refusal := read(t, year, content)
		if refusal == nil || refusal.Fault.Code != tabular.Header {
			t.Fatalf("%d without %q: %v", year, title, refusal)
		}
		for _, name := range names {
			if !strings.Contains(refusal.Fault.Message, "«"+name+"»") {
				t.Errorf("without %q: %s", title, refusal.Fault.Message)
			}
		}
	}
	f(2025, "rfc", "rfc")
	f(2025, "Título del contrato", "Título del contrato")
	f(2025, "Monto sin imp./máximo", "Monto sin imp./máximo")
	f(2025, "Importe DRC", "Importe DRC» o «Importe del contrato")
	f(2018, "Moneda del contrato", "Moneda» o «Moneda del contrato")
	// What is not needed may be missing.
	content := bytes.Replace(file(t, 2025), []byte("Partida espec\xedfica"), []byte("x"), 1)
	if rows, _, refusal := read(t, 2025, content); refusal != nil || rows[0].Norm[query.ColContratoPartida] != "" {
		t.Errorf("%v, %q", refusal, rows[0].Norm)
	}
}

func TestBrokenFilesAreRefused(t *testing.T) {
	content := string(file(t, 2025))
	f := func(what, code string, year int, content string) {
		t.Helper()
		if _, _, refusal := read(t, year, []byte(content)); refusal == nil || refusal.Fault.Code != code {
			t.Errorf("%s: %v, want %s", what, refusal, code)
		}
	}
	f("an empty file", tabular.NoRows, 2025, "")
	f("a page", tabular.HTML, 2025, "<html>")
	f("a cut inside quotes", tabular.Truncated, 2025, content[:strings.Index(content, "SEGUNDA ETAPA")])
	f("a cut inside a record", tabular.Truncated, 2025, content[:len(content)-200])
	f("the file of another year", tabular.OtherList, 2024, content)
	head, rest, _ := strings.Cut(content, "\r\n")
	first, _, _ := strings.Cut(rest, "\r\n")
	shifted := strings.Replace(first, "APF,", "APF,x,", 1)
	f("nothing but shifted records", tabular.Broken, 2025, head+"\r\n"+strings.Repeat(shifted+"\r\n", 500))
	long := strings.Replace(first, "MICRO", `"`+strings.Repeat("x,", 1<<19)+`"`, 1)
	f("a record beyond all bounds", tabular.Broken, 2025, head+"\r\n"+long+"\r\n")
	f("a title of 300 KiB", tabular.Broken, 2025, head+"\r\n"+strings.ReplaceAll(first, "VÍVERES", "V")+"\r\n"+
		strings.Replace(first, "C-2025-00000001", strings.Repeat("9", 300<<10), 1)+"\r\n")

	// A few are counted, and the others are served.
	rows, sum, refusal := read(t, 2025, []byte(head+"\r\n"+shifted+"\r\n"+rest))
	if refusal != nil || sum.Counts[tabular.UnreadRecords] != 1 || len(rows) != 17 || rows[0].Norm[query.ColContratoRegistro] != "2" {
		t.Errorf("%v, %+v, %d rows", refusal, sum, len(rows))
	}
	// A blank line in between is none.
	if _, sum, refusal := read(t, 2025, []byte(head+"\r\n"+strings.Repeat(",", 61)+"\r\n"+rest)); refusal != nil || sum.Counts[tabular.EmptyRows] != 1 {
		t.Errorf("%v, %+v", refusal, sum)
	}
}

func TestDays(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, ok := appendDay(nil, []byte(text))
		if !ok {
			got = nil
		}
		if string(got) != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	f("2026-01-21 11:57:32", "2026-01-21")
	f("2026-01-21 11:57:32.000", "2026-01-21")
	f("2026-01-21T11:57:32Z", "2026-01-21")
	f("01/02/2026", "2026-02-01")
	f("1/2/2026 09:30", "2026-02-01")
	f("2018-05-08 00:00 GMT", "2018-05-08")
	f("08/05/2018 GMT", "2018-05-08")
	f("2018-02-30", "")
	f("2018-05-08 25:00", "")
	f("2018-05-08 mañana", "")
	f("2018-05-08/2018-05-09", "")
	f("43228", "") // no serial number was ever seen here
}

// TestRealFiles reads what is known of the real files: none is whole, so each is
// refused by naming what it lacks, and the columns it has are those expected.
func TestRealFiles(t *testing.T) {
	dir := "../../../shared/data/mx-sources/compranet/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no real files here")
	}
	f := func(name string, missing ...string) []byte {
		t.Helper()
		content, err := os.ReadFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		_, _, refusal := read(t, 2026, content)
		if refusal == nil || refusal.Fault.Code != tabular.Header {
			t.Fatalf("%s: %v", name, refusal)
		}
		for _, title := range missing {
			if !strings.Contains(refusal.Fault.Message, "«"+title+"»") {
				t.Errorf("%s: %s does not name %s", name, refusal.Fault.Message, title)
			}
		}
		return content
	}
	f("expedientes_comprasmx_2026_header-cp1252.csv", "rfc", "Proveedor o contratista", "Código del contrato")
	f("compranet_historico_sample_8rows-utf8.csv", "rfc", "Institución")
	reduced := f("contratos_comprasmx_2026_IMSS_21cols-utf8.csv.gz", "Código del contrato", "Título del contrato", "Monto sin imp./máximo", "Moneda")

	// With empty columns in the place of the missing ones, its 3,986 rows are read.
	all, err := csv.NewReader(bytes.NewReader(reduced)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	for i, record := range all {
		more := []string{"", "", "", "", "MXN"}
		if i == 0 {
			more = []string{"Código del contrato", "Título del contrato", "Monto sin imp./máximo", "Monto sin imp./mínimo", "Moneda"}
		}
		if err := w.Write(append(record, more...)); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	rows, sum, refusal := read(t, 2026, []byte(b.String()))
	if refusal != nil || len(rows) != len(all)-1 || len(rows) != 3986 {
		t.Fatalf("%v, %d rows of %d", refusal, len(rows), len(all)-1)
	}
	if sum.Counts[tabular.UnreadDates] != 0 || sum.Counts[UnreadSums] != 0 || sum.Counts[Undated] != 0 {
		t.Errorf("counts = %v", sum.Counts)
	}
}

func FuzzReader(f *testing.F) {
	for year := query.FirstContractYear; year <= query.LastContractYear; year++ {
		f.Add(file(f, year), year)
	}
	head, _, _ := bytes.Cut(file(f, 2025), []byte("\r\n"))
	f.Add(append(bytes.Clone(head), "\n\"a\"b,\"c,\"d\"\n\"e\r"...), 2025)
	f.Fuzz(func(t *testing.T, content []byte, year int) {
		var first []string
		read := func() (all []string) {
			sum, err := Reader(year)(opener(content), func(r snapshots.Row) error {
				if len(r.ID[0]) > maxKey || len(r.ID[1]) > maxKey || len(r.Raw) != len(columns)+1 || len(r.Norm) != len(r.Raw) {
					t.Fatalf("row %+v", r)
				}
				if a := r.Norm[query.ColContratoImporte]; a != "" {
					if out, ok := query.AppendImporte(nil, a); ok && string(out) != a {
						t.Fatalf("%q normalises to %q", a, out)
					}
				}
				all = append(all, fmt.Sprint(r))
				return nil
			})
			var refusal *tabular.Refusal
			if err != nil && !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			if sum.Rows != len(all) {
				t.Fatalf("%d rows, %d were given", sum.Rows, len(all))
			}
			return all
		}
		if first = read(); fmt.Sprint(first) != fmt.Sprint(read()) {
			t.Fatal("the same bytes gave other rows")
		}
	})
}
