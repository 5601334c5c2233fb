package sat69b

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// fixture is a list in the official format whose rows carry the oddities that
// were measured on the real ones.
func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRowsOfTheFixture(t *testing.T) {
	rows, sum, err := readAll(t, fixture(t, "listado_69b.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want := tabular.Summary{
		Rows: 8, Suppressed: 3, Corte: civil.Date{Year: 2026, Month: time.August, Day: 31}, Encoding: "windows-1252",
		Counts: map[string]int{
			"bytes_no_asignados": 1, "filas_vacias": 2, "situacion_desconocida": 1, "fechas_no_leidas": 1,
			"fechas_en_serie_excel": 1, "fechas_con_anio_corto": 2, "oficios_no_reconocidos": 1,
		},
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	f := func(i int, id string, norm ...string) {
		t.Helper()
		got := rows[i]
		for len(norm) < len(complete.kinds) {
			norm = append(norm, "")
		}
		if diff := cmp.Diff(norm, got.Norm); diff != "" || strings.Join(got.ID, " ") != id || got.Suppressed {
			t.Errorf("row %d: %q (suppressed %v), want %q; -want +got\n%s", i+1, got.ID, got.Suppressed, id, diff)
		}
	}
	const p = "500-05-2018-16632 de 2018-06-01"
	f(0, "DIN010101AA1 500-05-2018-16632",
		"1", "DIN010101AA1", "DINÁMICA DE PRUEBA, S.A. DE C.V.", "Sentencia Favorable", p, "2018-06-01", p, "2018-06-25", "", "", "", "",
		"500-05-2018-27105 de 2018-09-27", "2018-09-28", "500-05-2018-27105 de 2018-09-27", "2018-10-23",
		"500-05-2019-7305 de 2019-03-05", "2019-03-05", "500-05-2019-7305 de 2019-03-05", "2019-04-16")
	const two = "500-05-2022-6121 de 2022-05-25 // 500-05-2021-6937 de 2021-04-26"
	f(1, "Ñ&A010101AA1 500-05-2018-16632",
		"2", "Ñ&A010101AA1", "“A&L DE PRUEBA”, S.C. \ufffd // ANTES ÑU, S.C.", "Definitivo", p, "2018-06-01", p, "2020-07-02", "", "", "", "",
		two, "2022-05-25 2021-04-26", two, "2022-06-14 2021-05-20")
	f(2, "PELJ800101AA1 500-05-2026-11484",
		"3", "PELJ800101AA1", "PÉREZ LÓPEZ JUAN", "Presunto", "500-05-2026-11484 de 2026-04-08", "2026-04-08")
	f(3, "DIN010101AA1 500-05-2020-1",
		"4", "DIN010101AA1", "DINÁMICA DE PRUEBA, S.A. DE C.V.", "Desvirtuado", "500-05-2020-1 de 2020-02-03", "30/02/2020",
		"500-05-2020-1 de fecha 3 de febrero de 2020 (únicamente en el DOF)", "2020-10-17 2020-08-27",
		"500-05-2021-2 de 2021-01-04", "2021-01-04", "500-05-2021-2 de 2021-01-04", "2021-01-20")
	f(4, "NUE010101AA1 500-05-2018-16632",
		"5", "NUE010101AA1", "NUEVA SITUACIÓN, S.A.", "En revisión", p, "2018-06-01")

	// What was published stays as it was, but for its encoding.
	raw := func(i, column int, want string) {
		t.Helper()
		if got := rows[i].Raw[column]; got != want {
			t.Errorf("row %d, column %d: got %q, want %q", i+1, column, got, want)
		}
	}
	raw(0, 1, "DIN010101AA1 ")
	raw(0, 2, "DINÁMICA  DE PRUEBA, S.A. DE C.V.\u00a0")
	raw(1, 3, " definitivo ")
	raw(1, 7, "44014")
	raw(2, 2, "PÉREZ\r\nLÓPEZ\nJUAN")
	raw(2, 19, "")

	// Redacted rows: alike but for number and form, one identity; never the RFC of anyone.
	for _, r := range rows[5:] {
		if r.ID[0] != "XXXXXXXXXXXX" || !r.Suppressed || len(r.ID[1]) != 64 {
			t.Errorf("redacted row: %q, suppressed %v", r.ID, r.Suppressed)
		}
	}
	if a, b, c := rows[5].ID[1], rows[6].ID[1], rows[7].ID[1]; a != b || a == c {
		t.Errorf("redacted identities: %s, %s, %s", a, b, c)
	}
}

// TestLayoutOf2019 gives every column of the old layout a value of its own.
func TestLayoutOf2019(t *testing.T) {
	rows, sum, err := readAll(t, fixture(t, "listado_69b_2019.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if sum.Rows != 2 || sum.Corte != (civil.Date{Year: 2019, Month: time.December, Day: 3}) {
		t.Errorf("%+v", sum)
	}
	want := []string{
		"1", "DIN010101AA1", "DINÁMICA DE PRUEBA", "Sentencia Favorable",
		"500-05-2018-1 de 2018-01-01", "2018-01-01", "500-05-2018-2 de 2018-01-02", "2018-01-02",
		"500-05-2018-4 de 2018-01-04", "2018-01-03", "", "2018-01-05",
		"500-05-2018-6 de 2018-01-06", "2018-01-07", "", "2018-01-08",
		"500-05-2018-9 de 2018-01-09", "2018-01-10", "500-05-2018-11 de 2018-01-11", "2018-01-12",
	}
	if diff := cmp.Diff(want, rows[0].Norm); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if rows[0].ID[1] != "500-05-2018-1" {
		t.Errorf("identity %q", rows[0].ID)
	}
}

// TestFormDoesNotMatter reads the same list in other official forms: the rows are
// the same.
func TestFormDoesNotMatter(t *testing.T) {
	official := fixture(t, "listado_69b.csv")
	want, _, err := readAll(t, official)
	if err != nil {
		t.Fatal(err)
	}
	f := func(what, other string) {
		t.Helper()
		got, _, err := readAll(t, other)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", what, diff)
		}
	}
	header := "No,RFC,Nombre del Contribuyente,Situaci\xf3n del contribuyente,"
	f("No.", strings.Replace(official, header, "No.,RFC,Nombre del Contribuyente,Situaci\xf3n del contribuyente,", 1))
	f("case, accents and blanks of titles", strings.Replace(official, header, "NO, rfc ,NOMBRE  DEL\u0020CONTRIBUYENTE,SITUACION DEL CONTRIBUYENTE,", 1))
	f("without the note and the title", official[strings.Index(official, header):])
	f("without the last line end", strings.TrimRight(official, ",\r\n")+",,,,,,,,,,,,,,")
	padded := strings.ReplaceAll(official, "Publicaci\xf3n DOF sentencia favorable\r\n", "Publicaci\xf3n DOF sentencia favorable,,,,\r\n")
	f("padding in the header only", padded)
	f("utf-8 with a byte order mark", "\ufeff"+utf8Of(t, official))
}

func utf8Of(t *testing.T, official string) string {
	t.Helper()
	d := tabular.NewDecoder(strings.NewReader(official), tabular.Windows1252)
	var b bytes.Buffer
	if _, err := b.ReadFrom(d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFiller: rows without a visible character are what spreadsheets leave, in
// whatever blanks.
func TestFiller(t *testing.T) {
	official := fixture(t, "listado_69b.csv")
	before, sum, err := readAll(t, official)
	if err != nil {
		t.Fatal(err)
	}
	after, again, err := readAll(t, official+",\xa0, \t,\x0b\r\n\xa0\r\n")
	if err != nil || len(after) != len(before) || again.Counts["filas_vacias"] != sum.Counts["filas_vacias"]+2 {
		t.Errorf("%d rows, %v, %v", len(after), again.Counts, err)
	}
	if _, _, err = readAll(t, strings.Replace(official, "01/06/2018,,,,,,,,,,,,,,\r\n", "01/06/2018,,,,,,,,,,,,,,,\xa0, \r\n", 1)); err != nil {
		t.Errorf("blanks beyond the titles: %v", err)
	}
}

// TestUnreadRFCs: a row that no question can reach is counted.
func TestUnreadRFCs(t *testing.T) {
	official := fixture(t, "listado_69b.csv")
	f := func(rfc string, want int) {
		t.Helper()
		_, sum, err := readAll(t, strings.Replace(official, "NUE010101AA1", rfc, 1))
		if err != nil || sum.Counts["rfc_no_reconocidos"] != want {
			t.Errorf("%s: %v, %v", rfc, sum.Counts, err)
		}
	}
	f("NUE010101AA1", 0)
	f(" nue010101aa1\xa0", 0)
	f("NUE010101AA", 1)
	f("NUE011301AA1", 1)
	f("XXXXXXXXXXXXX", 0)
}

func TestRefusals(t *testing.T) {
	f := func(official, code string, says ...string) {
		t.Helper()
		_, err := Read(opener(official), func(snapshots.Row) error { return nil })
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
		if !utf8.ValidString(refusal.Fault.Message) || len(refusal.Fault.Message) > 8<<10 {
			t.Errorf("%.40q: a message of %d bytes", official, len(refusal.Fault.Message))
		}
	}
	good := fixture(t, "listado_69b.csv")
	f("", "SIN_FILAS", "vacío")
	f("\r\n<!DOCTYPE html><html>", "HTML", "página web")
	f("RFC,Nombre del Contribuyente,Situación del contribuyente\nAAA010101AA1,A,Definitivo\n", "ENCABEZADO",
		"«No»", "«Publicación DOF sentencia favorable»")
	// The titles are where they have to be, or the rows above them would be lost.
	header := good[strings.Index(good, "No,RFC"):]
	header = header[:strings.Index(header, "\r\n")]
	f(strings.Replace(good, header, strings.Replace(header, "No,RFC", "RFC,No", 1), 1), "ENCABEZADO", "está en la celda 1")
	f(strings.Replace(good, header, strings.Replace(header, "RFC,Nombre del Contribuyente", "Nombre del Contribuyente,RFC", 1), 1), "ENCABEZADO", "está en la celda 3")
	f("a,b\n", "ENCABEZADO", "«RFC»", "«Nombre del Contribuyente»")
	f(strings.Replace(good, "Publicaci\xf3n DOF definitivos", "Publicaci\xf3n DOF definitiva", 1), "ENCABEZADO",
		"faltan las columnas «Publicación DOF definitivos»", "«publicacion dof definitiva»")
	f(strings.Replace(good, "Publicaci\xf3n DOF definitivos", "Publicaci\xf3n DOF presuntos", 1), "ENCABEZADO",
		"faltan las columnas «Publicación DOF definitivos»", "se repiten las columnas «publicacion dof presuntos»")
	f(strings.Replace(good, "Publicaci\xf3n DOF sentencia favorable", "Publicaci\xf3n DOF sentencia favorable,Nueva", 1), "ENCABEZADO", "«nueva»")
	f(strings.Repeat("x,y\n", headerRows)+good, "ENCABEZADO")
	f("No,RFC,"+strings.Repeat(strings.Repeat("\xf1", 1000)+",", 200)+"\n", "ENCABEZADO", "y 180 más", "…")
	// Cut in the middle of a record, and inside a quoted cell.
	f(good[:strings.Index(good, ",En revisi")], "TRUNCADO", "línea 10", "3 de 20")
	f(good[:strings.Index(good, "\"DIN")+10], "TRUNCADO", "línea 4")
	f(strings.Replace(good, "5,NUE010101AA1,", "5,NUE010101AA1\r\n", 1), "REGISTRO", "línea 10", "2 de 20")
	f(strings.Replace(good, "\"NUEVA SITUACI\xd3N, S.A.\"", "\"NUEVA \"SITUACI\xd3N\", S.A.\"", 1), "REGISTRO", "línea 10")
	f(strings.Replace(good, "NUEVA SITUACI\xd3N, S.A.\"", "NUEVA"+strings.Repeat("\n", tabular.MaxRecord), 1), "REGISTRO", "línea 10", "1 MiB")
	// Text where there is no title: the cells of the record are shifted.
	f(strings.Replace(good, "01/06/2018,,,,,,,,,,,,,,\r\n", "01/06/2018,,,,,,,,,,,,,,,,x\r\n", 1), "REGISTRO", "celda 22", "recorridas")
	f(strings.Replace(good, "Publicaci\xf3n DOF sentencia favorable\r\n", "Publicaci\xf3n DOF sentencia favorable,,\r\n", 1)+
		"9,NUE010101AA1,A,Presunto,,,,,,,,,,,,,,,,,x\r\n", "REGISTRO", "celda 21")
	f(strings.Replace(good, "NUE010101AA1", " \xa0", 1), "REGISTRO", "línea 10", "no tiene RFC")
}

func TestErrorsOfOthersComeBack(t *testing.T) {
	mine := errors.New("mine")
	if _, err := Read(opener(fixture(t, "listado_69b.csv")), func(snapshots.Row) error { return mine }); err != mine {
		t.Errorf("of add: %v", err)
	}
	for bad := range 2 {
		opened := 0
		if _, err := Read(func() (io.ReadCloser, error) {
			opened++
			if opened-1 != bad {
				return opener("No,RFC")()
			}
			return io.NopCloser(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("No,RFC")))), nil
		}, nil); err != iotest.ErrTimeout {
			t.Errorf("of the file, pass %d: %v", bad+1, err)
		}
		opened = 0
		if _, err := Read(func() (io.ReadCloser, error) {
			opened++
			if opened-1 != bad {
				return opener("No,RFC")()
			}
			return nil, mine
		}, nil); err != mine {
			t.Errorf("of opening it, pass %d: %v", bad+1, err)
		}
	}
}

func TestCorte(t *testing.T) {
	f := func(note, want string) {
		t.Helper()
		if got := corte([]byte(note)).String(); got != want {
			t.Errorf("%q: got %q, want %q", note, got, want)
		}
	}
	f("Información actualizada al 18 de mayo de 2021", "2021-05-18")
	f("INFORMACIÓN ACTUALIZADA AL 1 DE ENERO DE 2026; los listados…", "2026-01-01")
	f("Información actualizada\u00a0al  31 de\r\nAgosto de 2026", "2026-08-31")
	f("Información actualizada al 31 de febrero de 2026", "")
	f("Información actualizada al 31 de brumario de 2026", "")
	f("Listado completo de contribuyentes (Artículo 69-B del CFF)", "")
}

func TestSituations(t *testing.T) {
	l := &complete
	f := func(cell, want string, unknown int) {
		t.Helper()
		m := newMapper(l, nil, map[string]int{})
		if got := string(m.appendNormal(nil, situation, []byte(cell))); got != want || m.counts["situacion_desconocida"] != unknown {
			t.Errorf("%q: got %q and %v, want %q", cell, got, m.counts, want)
		}
	}
	f("Presunto", "Presunto", 0)
	f("DESVIRTUADO ", "Desvirtuado", 0)
	f("Definitívo", "Definitivo", 0)
	f(" sentencia\u00a0 favorable", "Sentencia Favorable", 0)
	f("", "", 0)
	f("  ", "", 0)
	f("Sentencia  Desfavorable", "Sentencia Desfavorable", 1)
	// Article 69-B Bis lists nobody before the definitive oficio.
	l = &bis
	f("DEFINITIVO", "Definitivo", 0)
	f("sentencia favorable", "Sentencia Favorable", 0)
	f("Presunto", "Presunto", 1)
}

// TestColumns holds the mapper to the schemas that it fills.
func TestColumns(t *testing.T) {
	f := func(l *layout, identity string) {
		t.Helper()
		if len(l.kinds) != len(l.schema.Columns) {
			t.Fatalf("%s: %d kinds, %d columns", l.schema.Source, len(l.kinds), len(l.schema.Columns))
		}
		for i, c := range l.schema.Columns {
			want := plain
			switch {
			case c.Name == "RFC":
				want = rfc
			case strings.HasPrefix(c.Name, "Situación"):
				want = situation
			case strings.HasPrefix(c.Name, "Número y fecha"):
				want = oficios
			case strings.HasPrefix(c.Name, "Publicación"):
				want = dates
			}
			if l.kinds[i] != want {
				t.Errorf("«%s» is of kind %d, want %d", c.Name, l.kinds[i], want)
			}
		}
		if name := l.schema.Columns[l.identity].Name; name != identity {
			t.Errorf("the identity is taken from «%s»", name)
		}
	}
	f(&complete, "Número y fecha de oficio global de presunción SAT")
	f(&bis, "Número y fecha de oficio global definitivo SAT")
	// The old layout reaches each column at most once, and all but two.
	seen := map[int]bool{}
	for _, c := range titles2019 {
		seen[c.canonical] = true
	}
	if len(seen) != len(titles2019) || seen[10] || seen[14] {
		t.Errorf("columns of 2019: %v", seen)
	}
	for i, c := range titlesDefinitivo {
		if c.canonical != i || c.title != tabular.Fold([]byte(query.Sat69BBis.Columns[i].Name)) {
			t.Errorf("column %d of the «Listado Global Definitivo»: %+v", i, c)
		}
	}
}

// FuzzRead holds what the catalogue relies on for any file at all.
func FuzzRead(f *testing.F) {
	good := fixture(f, "listado_69b.csv")
	f.Add([]byte(good))
	f.Add([]byte(fixture(f, "listado_69b_2019.csv")))
	f.Add([]byte(good[:len(good)/2]))
	f.Add([]byte("<html>"))
	f.Add([]byte("RFC,x\n"))
	f.Fuzz(func(t *testing.T, official []byte) { holdsForAnyFile(t, &complete, official) })
}

func FuzzReadBis(f *testing.F) {
	f.Add([]byte(listBis))
	f.Add([]byte(listDefinitivo))
	f.Add([]byte(listBis[:len(listBis)/2]))
	f.Add([]byte(fixture(f, "listado_69b.csv")))
	f.Fuzz(func(t *testing.T, official []byte) { holdsForAnyFile(t, &bis, official) })
}

func holdsForAnyFile(t *testing.T, l *layout, official []byte) {
	columns := len(l.kinds)
	read := func(rows *[]string) (tabular.Summary, error) {
		n := 0
		sum, err := l.read(opener(official), func(r snapshots.Row) error {
			n++
			if len(r.ID) != 2 || r.ID[0] == "" || len(r.Raw) != columns || len(r.Norm) != columns {
				t.Fatalf("row %+v", r)
			}
			for i := range r.Norm {
				if !utf8.ValidString(r.Raw[i]) || !utf8.ValidString(r.Norm[i]) {
					t.Fatalf("column %d is not text: %q, %q", i, r.Raw[i], r.Norm[i])
				}
			}
			if r.Suppressed != (r.ID[0] == tabular.SuppressedRFC) || !r.Suppressed && r.ID[0] != r.Norm[columnRFC] {
				t.Fatalf("identity %q of %q", r.ID, r.Norm)
			}
			*rows = append(*rows, fmt.Sprint(r))
			return nil
		})
		if err == nil && n != sum.Rows {
			t.Fatalf("%d rows, the summary says %d", n, sum.Rows)
		}
		return sum, err
	}
	var first, second []string
	sum, err := read(&first)
	again, errAgain := read(&second)
	if diff := cmp.Diff(first, second) + cmp.Diff(sum, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
		t.Fatalf("the same bytes, twice: %v, %v\n%s", err, errAgain, diff)
	}
	var refusal *tabular.Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
}
