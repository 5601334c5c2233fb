package sancionados

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

type reader func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error)

func opener(content []byte) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// read gives what a file has, and the reason why it is refused.
func read(t testing.TB, by reader, content []byte) (rows []snapshots.Row, sum tabular.Summary, refusal *tabular.Refusal) {
	t.Helper()
	sum, err := by(opener(content), func(r snapshots.Row) error {
		r.ID, r.Raw, r.Norm = slices.Clone(r.ID), slices.Clone(r.Raw), slices.Clone(r.Norm)
		rows = append(rows, r)
		return nil
	})
	if err != nil && !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	return rows, sum, refusal
}

func file(t testing.TB, stage int, name string) []byte {
	t.Helper()
	content, ok := mirror.File(stage, name)
	if !ok {
		t.Fatalf("the mirror has no %s", name)
	}
	return content
}

// refused wants a reason that says so.
func refused(t testing.TB, by reader, content []byte, code string, says ...string) {
	t.Helper()
	_, _, refusal := read(t, by, content)
	if refusal == nil || refusal.Fault.Code != code {
		t.Errorf("%.60q: %v; want %s", content, refusal, code)
		return
	}
	for _, s := range says {
		if !strings.Contains(refusal.Fault.Message, s) {
			t.Errorf("%.60q: %q does not say %q", content, refusal.Fault.Message, s)
		}
	}
}

// norm finds the row with a text in a column.
func normed(t testing.TB, rows []snapshots.Row, column int, text string) []string {
	t.Helper()
	for _, r := range rows {
		if r.Norm[column] == text {
			return r.Norm
		}
	}
	t.Fatalf("no row has %q", text)
	return nil
}

func TestAbiertos(t *testing.T) {
	rows, sum, refusal := read(t, ReadAbiertos, file(t, 0, mirror.OpenSanctions))
	if refusal != nil || sum.Rows != 6 || len(rows) != 6 || sum.Encoding != tabular.Windows1252 || sum.Corte.String() != "2021-01-14" {
		t.Fatalf("%+v, %v", sum, refusal)
	}
	if sum.Counts[Mended] != 2 || sum.Counts[Unreadable] != 0 || sum.Counts[tabular.UnreadDates] != 1 || sum.Suppressed != 0 {
		t.Errorf("%v", sum.Counts)
	}
	comma := normed(t, rows, 0, "PERSONA INVENTADA UNO")
	if comma[abiertosMonto] != "70200.00" || comma[abiertosMonto+1] != "TITULAR INVENTADO SEGUNDO" || comma[abiertosNotificado] != "30/Jun/2006" || comma[abiertosActualizado] != "14/01/2021 08:01" {
		t.Errorf("%q", comma)
	}
	lost := normed(t, rows, 0, "PERSONA INVENTADA DOS")
	if lost[3] != "NULL" || lost[4] != "REPARACION DE OTRO EQUIPO" || lost[abiertosNotificado] != "2016-01-18" || lost[abiertosMonto] != "100935.00" {
		t.Errorf("%q", lost)
	}
	quoted := normed(t, rows, 0, `"EMPRESA ENTRECOMILLADA" S.A.`)
	if quoted[1] != `INSTITUTO "JUAN INVENTADO"` || quoted[4] != `A).- COMPRA VENTA "Y RENTA` || quoted[8] != "4 AÑOS 3 MESES" {
		t.Errorf("%q", quoted)
	}
	// Nobody can ask for what has no RFC, whatever its cells say.
	for _, r := range rows {
		if len(r.ID) != 4 || r.ID[0] != "" {
			t.Errorf("%q", r.ID)
		}
	}
	if rows[0].ID[1] != "PROVEEDORA INVENTADA SANCIONADA S.A. DE C.V." || rows[0].Raw[0] != "PROVEEDORA INVENTADA SANCIONADA  S.A. DE C.V." {
		t.Errorf("%q %q", rows[0].ID, rows[0].Raw)
	}
}

func TestAbiertosThatAreRefused(t *testing.T) {
	good := string(file(t, 0, mirror.OpenSanctions))
	head, body, _ := strings.Cut(good, "\n")
	f := func(content, code string, says ...string) {
		t.Helper()
		refused(t, ReadAbiertos, []byte(content), code, says...)
	}
	f("", tabular.NoRows)
	f("<html>", tabular.HTML)
	f(strings.Replace(head, "MONTO", "IMPORTE", 1)+"\n"+body, tabular.Header, "«MONTO»")
	f(strings.TrimSuffix(head, ", \tFECHA DE ACTUALIZACION ")+"\n"+body, tabular.Header, "«FECHA DE ACTUALIZACION»", "11 títulos")
	// The 9 columns of the export, as CSV.
	f("Proveedor y Contratista,OIC Responsable,Expediente\nA,B,C\n", tabular.Header, "«PROVEEDOR O CONTRATISTA»")
	f(good[:len(good)*6/10], tabular.Truncated, "de 12 columnas")
	var bad strings.Builder
	bad.WriteString(head + "\n")
	for range 8 {
		bad.WriteString("A,\tB\n")
	}
	f(bad.String(), tabular.Broken, "8 de 8")
	// A few that cannot be placed are told and not kept.
	rows, sum, refusal := read(t, ReadAbiertos, []byte(good+"UNA,\tDOS\n"+strings.Repeat("X,\t", 13)+"\n"))
	if refusal != nil || len(rows) != 6 || sum.Rows != 6 || sum.Counts[Unreadable] != 2 {
		t.Errorf("%+v %v", sum, refusal)
	}
	// A copy without the tabs, in UTF-8, of which the two odd records cannot be placed.
	text, err := charmap.Windows1252.NewDecoder().String(strings.ReplaceAll(good, "\t", ""))
	if err != nil {
		t.Fatal(err)
	}
	if rows, sum, refusal = read(t, ReadAbiertos, []byte(text)); refusal != nil || len(rows) != 4 || sum.Counts[Unreadable] != 2 || rows[1].Norm[1] != "SECRETARÍA IMAGINARIA DE OBRAS" {
		t.Errorf("%+v %v", sum, refusal)
	}
}

func TestExportacion(t *testing.T) {
	rows, sum, refusal := read(t, ReadExportacion, file(t, 0, mirror.DirectoryExport))
	if refusal != nil || sum.Rows != 4 || len(rows) != 4 || !sum.Corte.IsZero() || len(sum.Counts) != 0 {
		t.Fatalf("%+v, %v", sum, refusal)
	}
	first := rows[0]
	if first.Raw[0] != "PROVEEDORA SANCIONADA INVENTADA, S.A. DE C.V.\t" || first.Norm[0] != "PROVEEDORA SANCIONADA INVENTADA, S.A. DE C.V." || first.Raw[7] != "             555,644.00" ||
		first.Norm[5] != "2026-02-21" || first.Norm[6] != "2027-05-21" || first.Norm[7] != "555644.00" || first.Norm[8] != "1 año, 3 meses" || first.ID[0] != "" {
		t.Errorf("%+v", first)
	}
	if fine := rows[1]; fine.Norm[5] != "" || fine.Norm[6] != "" || fine.Norm[7] != "1462544.22" || fine.Norm[8] != "" {
		t.Errorf("%+v", fine)
	}
	if rows[2].Norm[7] != "0.90" || rows[3].Norm[6] != "" || rows[3].Norm[5] != "2026-01-15" {
		t.Errorf("%+v %+v", rows[2], rows[3])
	}
}

func TestExportacionThatIsRefused(t *testing.T) {
	f := func(content []byte, code string, says ...string) {
		t.Helper()
		refused(t, ReadExportacion, content, code, says...)
	}
	titles := []string{"Proveedor y Contratista", "OIC Responsable", "Expediente", "Procedimiento Administrativo", "Ley infringida", "Inicio de la sanción", "Monto de la Multa", "Periodo de Inhabilitación"}
	row := make([]string, len(titles))
	row[0] = "X"
	f(nil, tabular.NoRows)
	f([]byte("<html>"), tabular.HTML)
	f([]byte(strings.Join(titles, ",")+"\n"), tabular.Broken, "no es un libro de Excel", "sin convertirlo")
	f(mirror.Workbook([][]string{titles, row}), tabular.Header, "«Fin de la sanción»")
	f(mirror.Workbook(nil), tabular.NoRows)
	good := file(t, 0, mirror.DirectoryExport)
	f(good[:len(good)/2], tabular.Truncated)
	f(mirror.Workbook([][]string{append(slices.Clone(titles), "Fin de la sanción"), append(slices.Clone(row), "", "de más")}), tabular.Broken, "celda 10", "recorridas")
	// Titles in another order, under a note, and an amount and a day as numbers.
	sheet := [][]string{{"Directorio"}, append([]string{"Fin de la sanción"}, titles...), {"46439", "X", "", "", "", "", "46074", "555644", ""}}
	rows, sum, refusal := read(t, ReadExportacion, mirror.Workbook(sheet))
	if refusal != nil || sum.Rows != 1 || rows[0].Norm[0] != "X" || rows[0].Norm[5] != "2026-02-21" || rows[0].Norm[6] != "2027-02-21" || rows[0].Norm[7] != "555644.00" {
		t.Errorf("%+v %v", rows, refusal)
	}
}

func TestDirectorio(t *testing.T) {
	rows, sum, refusal := read(t, ReadDirectorio, file(t, 0, mirror.Directory))
	if refusal != nil || sum.Rows != 8 || len(rows) != 8 || sum.Suppressed != 2 || sum.Counts[WithoutRFC] != 2 || sum.Counts[tabular.UnreadDates] != 0 || !sum.Corte.IsZero() {
		t.Fatalf("%+v, %v", sum, refusal)
	}
	first := rows[0]
	want := []string{
		"SAN010101AA1", "PROVEEDORA SANCIONADA INVENTADA, S.A. DE C.V.", "INSTITUTO IMAGINARIO DE SALUD", "0237/2022", "",
		"2026-02-21", "2027-02-21", "1 año, 3 meses", "555644.00", "", "1", "", "PA-0030/2024", "LEY DE ADQUISICIONES, ARRENDAMIENTOS Y SERVICIOS DEL SECTOR PÚBLICO (LAASSP)", "",
	}
	if !slices.Equal(first.Norm, want) || first.Raw[1] != want[1]+"\t" || first.Raw[8] != "             555,644.00" || first.Suppressed {
		t.Errorf("%q\n%q", first.Norm, want)
	}
	if !slices.Equal(first.ID, []string{"SAN010101AA1", "0237/2022", "INSTITUTO IMAGINARIO DE SALUD"}) {
		t.Errorf("%q", first.ID)
	}
	fine := normed(t, rows, query.ColSancionRFC, "MUL010101AA1")
	if fine[query.ColSancionInicio] != "" || fine[query.ColSancionFin] != "" || fine[query.ColSancionPlazo] != "" || fine[query.ColSancionMonto] != "1462544.22" {
		t.Errorf("%q", fine)
	}
	if rows[5].ID[0] != "" || !rows[5].Suppressed || rows[6].ID[0] != "" || !rows[6].Suppressed {
		t.Errorf("%+v %+v", rows[5], rows[6])
	}
}

// TestDirectorioUnderOtherNames: the table of names decides, for the file as a whole.
func TestDirectorioUnderOtherNames(t *testing.T) {
	f := func(record, rfc, name, inicio, fin, monto string) {
		t.Helper()
		rows, _, refusal := read(t, ReadDirectorio, []byte(`{"success":true,"data":{"total":1,"results":[`+record+`]}}`))
		if refusal != nil || len(rows) != 1 {
			t.Errorf("%s: %v", record, refusal)
			return
		}
		n := rows[0].Norm
		if n[query.ColSancionRFC] != rfc || n[query.ColSancionNombre] != name || n[query.ColSancionInicio] != inicio || n[query.ColSancionFin] != fin || n[query.ColSancionMonto] != monto {
			t.Errorf("%s: %q", record, n)
		}
	}
	f(`{"RFC":"san010101aa1","Razón Social":"A","Fecha_Inicio":"2026-02-21T06:00:00.000Z","Fecha_Fin":"2027-02-21 00:00:00","Monto Multa":555644.5}`, "SAN010101AA1", "A", "2026-02-21", "2027-02-21", "555644.50")
	f(`{"particularSancionado":{"rfc":"SAN010101AA1","nombreRazonSocial":"A"},"inhabilitacion":{"fechaInicial":"21/02/2026","fechaFinal":"21/02/2027"},"multa":{"monto":1,"moneda":{"clave":"MXN"}}}`,
		"SAN010101AA1", "A", "2026-02-21", "2027-02-21", "1.00")
	f(`{"rfc":"SAN010101AA1","nombreProveedor":"A","inicio":"21-02-2026","fin":null,"multa":"ninguna"}`, "SAN010101AA1", "A", "2026-02-21", "", "ninguna")
}

func TestDirectorioThatIsRefused(t *testing.T) {
	f := func(content, code string, says ...string) {
		t.Helper()
		refused(t, ReadDirectorio, []byte(content), code, says...)
	}
	one := func(record string) string { return `{"data":{"results":[` + record + `]}}` }
	f("", tabular.NoRows)
	f("<html>", tabular.HTML)
	f("rfc,nombre\n", tabular.Broken, "no es JSON")
	f(`{"data":{"results":[{"rfc":"A`, tabular.Truncated)
	f(`{"data":{"results":[]}`, tabular.Truncated)
	f(`{"data":{"results":[]}} x`, tabular.Broken, "después de la respuesta")
	f(`{"data":{"results":[]}}{}`, tabular.Broken, "después de la respuesta")
	f("{\"data\":{\"results\":[{\"rfc\":\"\xd1\"}]}}", tabular.Broken, "UTF-8")
	f("\xff\xfe{\x00}\x00", tabular.Broken, "UTF-8")
	f(`{"results":[]}`, tabular.Header, "data.results")
	f(`[]`, tabular.Header, "no es un objeto")
	f(`{"data":null}`, tabular.Header, "data no es un objeto")
	f(`{"data":{"results":{}}}`, tabular.Header, "data.results no es una lista")
	f(one(`1`), tabular.Header, "no es un objeto")
	f(one(`{"proveedor":"A","inicio":"21-02-2026","fin":"21-02-2027"}`), tabular.Header, "«RFC»", "«fin», «inicio», «proveedor»", "tabla de nombres")
	f(one(`{"rfc":"SAN010101AA1","nombre":"de quién","fecha":"21-02-2026"}`), tabular.Header, "«Proveedor y Contratista»", "«Inicio de la sanción»", "«Fin de la sanción»")
	// A field of that name that is something else.
	f(one(`{"rfc":"12","proveedor":"A","inicio":"21-02-2026","fin":"21-02-2027"}`), tabular.Header, "no traen un RFC en «rfc»")
	f(one(`{"rfc":"XAXX010101000","proveedor":"A","inicio":"21-02-2026","fin":"21-02-2027"}`), tabular.Header, "no traen un RFC")
	f(one(`{"rfc":"SAN010101AA1","proveedor":"A","inicio":1771632000000,"fin":1803168000000}`), tabular.Header, "ninguna fecha de «inicio» y «fin»")
	// Hostile.
	f(one(strings.Repeat(`{"a":`, 50)+`1`+strings.Repeat(`}`, 50)), tabular.Broken, "12 niveles")
	f(strings.Repeat("[", 20000), tabular.Header)
	f(`{"data":{"results":`+strings.Repeat("[", 200000), tabular.Broken, "12 niveles")
	f(one(`{"rfc":"SAN010101AA1","rfc":"OTR010101AA1"}`), tabular.Broken, "repetido")
	f(`{"data":{},"data":{}}`, tabular.Broken, "repite un nombre")
	f(one(`{"a":"`+strings.Repeat("x", maxString+1)+`"}`), tabular.Broken, "texto de más de")
	f(one(`{"a":[`+strings.Repeat("1,", 1000)+`1]}`), tabular.Broken, "lista de más de")
	var wide strings.Builder
	for i := range 301 {
		fmt.Fprintf(&wide, `"a%d":1,`, i)
	}
	f(one("{"+strings.TrimSuffix(wide.String(), ",")+"}"), tabular.Broken, "300 nombres")
}

func TestPDN1(t *testing.T) {
	rows, sum, refusal := read(t, ReadPDN1, file(t, 0, mirror.PrivatePersons))
	if refusal != nil || sum.Rows != 3 || sum.Suppressed != 1 || sum.Counts[WithoutRFC] != 1 || sum.Counts[tabular.UnreadDates] != 0 {
		t.Fatalf("%+v, %v", sum, refusal)
	}
	if got, want := rows[0].Norm[:query.ColSancionCausa+1], []string{
		"PDN010101AA1", "PARTICULAR INVENTADO, S.A. DE C.V.", "INSTITUTO IMAGINARIO DE CAMINOS", "EXP/1/2024", "Inhabilitado, Multado",
		"2024-07-01", "2027-06-30", "3 años", "150000.50", "MXN", "1", "Hechos inventados",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if n := rows[2].Norm; n[query.ColSancionMonto] != "98765.43" || n[query.ColSancionInicio] != "" || n[query.ColSancionTipo] != "Multado" {
		t.Errorf("%q", n)
	}
	// What no answer needs of persons is in no row.
	for _, r := range rows {
		for _, text := range slices.Concat(r.Raw, r.Norm) {
			if strings.Contains(text, "5500000000") || strings.Contains(text, "XXXX000000") || strings.Contains(text, "TITULAR") {
				t.Errorf("%q", text)
			}
		}
	}
	pages := strings.SplitAfter(string(file(t, 0, mirror.PrivatePersons)), "\n")
	f := func(content, code string, says ...string) {
		t.Helper()
		refused(t, ReadPDN1, []byte(content), code, says...)
	}
	f(pages[0], tabular.Truncated, "hasNextPage")
	f(pages[1], tabular.OtherList, "empieza en la página 2")
	f(pages[0]+pages[0], tabular.OtherList, "después de la página 1 viene la 1")
	f(pages[0]+strings.Replace(pages[1], `"totalRows": 3`, `"totalRows": 4`, 1), tabular.OtherList)
	f(strings.ReplaceAll(pages[0]+pages[1], `"totalRows": 3`, `"totalRows": 9`), tabular.Truncated, "3 de los 9")
	f(strings.ReplaceAll(pages[0]+pages[1], `"rfc"`, `"otro"`), tabular.Header, "particularSancionado.rfc", "rfcSolicitante")
	f(strings.ReplaceAll(pages[0]+pages[1], "pagination", "paginas"), tabular.Header, "pagination")
	f(strings.ReplaceAll(pages[0]+pages[1], "particularSancionado", "servidorPublicoSancionado"), tabular.Header, "particularSancionado")
	f(string(file(t, 0, mirror.SanctionedFirms)), tabular.Header, "pagination")
	// Two whole queries, as of two providers.
	if _, sum, refusal = read(t, ReadPDN1, []byte(pages[0]+pages[1]+pages[0]+pages[1])); refusal != nil || sum.Rows != 6 {
		t.Errorf("%+v %v", sum, refusal)
	}
}

func TestPDN2(t *testing.T) {
	rows, sum, refusal := read(t, ReadPDN2Morales, file(t, 0, mirror.SanctionedFirms))
	if refusal != nil || sum.Rows != 5 || sum.Suppressed != 0 {
		t.Fatalf("%+v, %v", sum, refusal)
	}
	first := func(i int) []string { return rows[i].Norm[:query.ColSancionMoneda+1] }
	f := func(i int, want ...string) {
		t.Helper()
		if got := first(i); !slices.Equal(got, want) {
			t.Errorf("%q\n%q", got, want)
		}
	}
	const finanzas = "SECRETARIA IMAGINARIA DE FINANZAS"
	f(0, "PDN010101AA1", "MORAL INVENTADA SA DE CV", finanzas, "FG/001/2024", "INHABILITACION", "2025-01-16", "2030-07-15", "5 años, 6 meses", "", "")
	f(1, "PDN010101AA1", "MORAL INVENTADA SA DE CV", finanzas, "FG/001/2024", "SANCION_ECONOMICA", "", "", "", "2500000.00", "MXN")
	f(2, "DIS010101AA1", "DISUELTA INVENTADA SA", finanzas, "FG/002/2024", "SUSPENSION_ACTIVIDADES", "2025-01-16", "2026-01-16", "1 año, 1 día", "", "")
	f(3, "DIS010101AA1", "DISUELTA INVENTADA SA", finanzas, "FG/002/2024", "DISOLUCION_SOCIEDAD", "", "", "", "", "")
	f(4, "DIS010101AA1", "DISUELTA INVENTADA SA", finanzas, "FG/002/2024", "INDEMNIZACION", "", "", "", "1200.00", "USD")
	if rows, sum, refusal = read(t, ReadPDN2Fisicas, file(t, 0, mirror.SanctionedPeople)); refusal != nil || sum.Rows != 2 {
		t.Fatalf("%+v, %v", sum, refusal)
	}
	f(0, "PDNF800101AA1", "PERSONA FISICA INVENTADA", finanzas, "FG/003/2024", "INHABILITACION", "2026-03-01", "2027-02-28", "1 año", "", "")
	f(1, "OTRF800101AA1", "OTRA PERSONA INVENTADA FICTICIA", finanzas, "FG/004/2024", "", "", "", "", "", "")

	firms, people := string(file(t, 0, mirror.SanctionedFirms)), string(file(t, 0, mirror.SanctionedPeople))
	g := func(by reader, content, code string, says ...string) {
		t.Helper()
		refused(t, by, []byte(content), code, says...)
	}
	g(ReadPDN2Fisicas, firms, tabular.OtherList, "faltas_graves_personas_morales")
	g(ReadPDN2Morales, people, tabular.OtherList, "faltas_graves_personas_fisicas")
	g(ReadPDN2Fisicas, strings.SplitAfter(people, "\n")[0], tabular.Truncated, "1 de los 2", "limit=-1")
	g(ReadPDN2Morales, strings.Replace(firms, `"meta"`, `"otro"`, 1), tabular.Header, "meta.total_count")
	g(ReadPDN2Morales, strings.ReplaceAll(firms, `"rfc": "`, `"clave": "`), tabular.Header, "datosGenerales.rfc")
	// The two collections of public servants are known, and refused by name.
	for _, servant := range []string{
		`{"id":"1","datosGenerales":{"nombres":"A","primerApellido":"B","rfc":"SERF800101AA1"},"empleoCargoComision":{"denominacion":"X"},"tipoSancion":[]}`,
		`{"id":"1","datosGenerales":{"nombres":"A","primerApellido":"B","rfc":"SERF800101AA1","sexo":"MUJER"},"tipoSancion":[]}`,
	} {
		for _, by := range []reader{ReadPDN2Morales, ReadPDN2Fisicas} {
			g(by, `{"data":[`+servant+`],"meta":{"total_count":1}}`, tabular.OtherList, "servidores públicos")
		}
	}
	g(ReadPDN2Morales, strings.SplitAfter(string(file(t, 0, mirror.PrivatePersons)), "\n")[1], tabular.Header, "data")
}

var readers = map[string]reader{
	mirror.OpenSanctions: ReadAbiertos, mirror.Directory: ReadDirectorio, mirror.PrivatePersons: ReadPDN1,
	mirror.SanctionedFirms: ReadPDN2Morales, mirror.SanctionedPeople: ReadPDN2Fisicas, mirror.DirectoryExport: ReadExportacion,
}

// FuzzReaders: whatever the file, a reader ends, gives the same rows twice, and refuses
// with a reason; an RFC under which a row is found is one, and normalised cells stay.
func FuzzReaders(f *testing.F) {
	for _, name := range mirror.Sanctions {
		f.Add(file(f, 0, name))
	}
	f.Add([]byte(`{"data":{"results":[{"rfc":"SAN010101AA1","proveedor":"A","inicio":null,"fin":[1,{"valor":"x"}]}]}}`))
	f.Add([]byte("PROVEEDOR O CONTRATISTA,\n,,\n\t\t"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for name, by := range readers {
			rows, sum, refusal := read(t, by, content)
			again, _, _ := read(t, by, content)
			if a, b := fmt.Sprint(rows), fmt.Sprint(again); a != b {
				t.Fatalf("%s: %s\n%s", name, a, b)
			}
			if refusal != nil {
				if refusal.Fault.Message == "" || refusal.Fault.Code == "" {
					t.Fatalf("%s: %+v", name, refusal)
				}
				continue
			}
			if sum.Rows != len(rows) {
				t.Fatalf("%s: %d rows, %d counted", name, len(rows), sum.Rows)
			}
			for _, r := range rows {
				if (r.ID[0] == "") != (r.Suppressed || name == mirror.OpenSanctions || name == mirror.DirectoryExport) || len(r.Raw) != len(r.Norm) {
					t.Fatalf("%s: %+v", name, r)
				}
			}
		}
	})
}

// FuzzRecord: a record of an answer ends within its limits.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1.5e3,"c":null},true,"x"],"d":{}}`))
	f.Add([]byte(strings.Repeat(`[`, 100)))
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := open(bytes.NewReader(content))
		if err != nil {
			return
		}
		n, err := d.record()
		if err == nil && !json.Valid(content) && d.end() == nil {
			t.Fatalf("%q is read as %+v", content, n)
		}
		flat(n, "", 1, func(string, string, string) {})
	})
}
