package sat69

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

func list(t testing.TB, code string) *query.Art69List {
	t.Helper()
	for i := range query.Art69Lists {
		if query.Art69Lists[i].Code == code {
			return &query.Art69Lists[i]
		}
	}
	t.Fatalf("no list %s", code)
	return nil
}

func opener(official string) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(official)), nil }
}

// encoded is a text as the SAT writes it; what the code page lacks is a test's mistake.
func encoded(t testing.TB, text string) string {
	t.Helper()
	out, err := charmap.Windows1252.NewEncoder().String(strings.ReplaceAll(text, "\n", "\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readAll(t testing.TB, code, official string) (rows []snapshots.Row, sum tabular.Summary, err error) {
	t.Helper()
	sum, err = Reader(list(t, code))(opener(official), func(r snapshots.Row) error {
		r.ID, r.Raw, r.Norm = slices.Clone(r.ID), slices.Clone(r.Raw), slices.Clone(r.Norm)
		rows = append(rows, r)
		return nil
	})
	return rows, sum, err
}

// countRecords counts the records of a file that hold any text, the titles left
// out, with a state machine of its own: no line of the reader counts here.
func countRecords(official string) int {
	n, quoted, text := 0, false, false
	end := func() {
		if text {
			n++
		}
		text = false
	}
	for _, b := range []byte(official) {
		switch {
		case b == '"':
			quoted = !quoted
		case b == '\n' && !quoted:
			end()
		case b > ' ' && b != ',' && b != 0xa0:
			text = true
		}
	}
	end()
	return n - 1
}

// The headers are those of the real files, verbatim. Every row is invented.
var files = []struct{ code, name, text string }{
	{"FIRMES", "of 2026", `RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA
FIR010101AA1,"EMPRESA INVENTADA, S.A. DE C.V.",M,FIRMES,01/01/2014,CIUDAD DE MÉXICO
FIR010101AA1,"EMPRESA INVENTADA, S.A. DE C.V.",M,FIRMES,01/01/2014,CIUDAD DE MÉXICO
FIR010101AA1,"EMPRESA INVENTADA, S.A. DE C.V.",M,FIRMES,16/11/2025,CIUDAD DE MÉXICO
&HI0101015P2,“A & H” INVENTADA,M,FIRMES,1/12/2017,NUEVO LEÓN
ÑAFX750101AA1,"NÚÑEZ
INVENTADA",F,FIRMES,16/2/2016,YUCATÁN
SUP010101AA1,SIN SUPUESTO NI TIPO,,,16/11/2014,JALISCO
,,,,,
`},
	{"FIRMES", "of 2024", "RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHAS DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\nFIR010101AA1,INVENTADA,M,FIRMES,01/01/2014,SONORA\n"},
	{"EXIGIBLES", "", "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\nEXI010101AA1,INVENTADA,M,EXIGIBLES,01/08/2026,SONORA\n"},
	{"NO_LOCALIZADOS", "", "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\nNOLO010101AA1,PERSONA INVENTADA,F,NO LOCALIZADOS,01/08/2026,SONORA\n"},
	{"SENTENCIAS", "", "RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHAS DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\nSET010101AA1,INVENTADA,M,SENTENCIAS,01/08/2026,SONORA\n"},
	{"CANCELADOS", "of 2026", "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE CANCELACION,MONTO,FECHA DE PUBLICACION,ENTIDAD FEDERATIVA\nCAN010101AA1,INVENTADA,M,CANCELADOS POR INSOLVENCIA,01/08/2020,\"1,390,273\",16/08/2020,SONORA\n"},
	{"CANCELADOS", "of 2024", "RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE CANCELACIÓN,\" MONTO \",Fecha de publicación (Con monto de acuerdo a la Ley de Transparencia,ENTIDAD FEDERATIVA\nCAN010101AA1,INVENTADA,Persona Moral,CANCELADOS POR INSOLVENCIA,01/08/2020,\" 1,390,273.00 \",16/08/2020,SONORA\n"},
	{"CSD_SIN_EFECTOS", "of October 2026", "RFC,NOMBRE O RAZÓN SOCIAL,SUPUESTO DE CANCELACIÓN CSD,FECHA DE CANCELACIÓN CSD,ADMINISTRACIÓN GENERAL RESPONSABLE DE LA CANCELACIÓN,FECHA DE PUBLICACIÓN\nCSD010101AA1,INVENTADA,FRACCIÓN X,05/01/2024,AGGC,23/07/2024\n"},
	{"CSD_SIN_EFECTOS", "of August 2026", "RFC,NOMBRE O RAZON SOCIAL,SUPUESTO DE CANCELACION CSD,FECHA DE CANCELACION CSD,ADMINISTRACION GENERAL RESPONSABLE DE LA CANCELACION,FECHA DE PUBLICACION\nCSD010101AA1,INVENTADA,FRACCION X,05/01/2024,AGGC,23/07/2024\n"},
	{"ENTES_PUBLICOS_OMISOS", "", "RFC,RAZON SOCIAL,SUPUESTO,EJERCICIO,PERIODO,FECHA DE PRIMERA PUBLICACION\nENT010101AA1,MUNICIPIO INVENTADO,FRACCION VII,2024,MAYO,01/08/2026\n"},
	{"REDUCCION_ART74", "", "RFC,\"NOMBRE, DENOMINACION O RAZON SOCIAL\",TIPO DE PERSONA,SUPUESTO,FECHA DE AUTORIZACION,MONTO,FECHA DE PUBLICACIÓN,ENTIDAD FEDERATIVA\nRED010101AA1,\"INVENTADA, S.A.\",Persona moral,REDUCCIÓN,1/8/2020,\"12,000.50\",16/08/2020,SONORA\n"},
	{"REDUCCION_ART74", "without the day of publication", "RFC,\"NOMBRE, DENOMINACIÓN O RAZÓN SOCIAL\",TIPO PERSONA,SUPUESTO,FECHA DE AUTORIZACIÓN,MONTO,ENTIDAD FEDERATIVA\nRED010101AA1,\"INVENTADA, S.A.\",Persona fisica,REDUCCIÓN,1/8/2020,\"12,000.50\",SONORA\n"},
	{"CONDONADOS_146B", "", forgiven}, {"REDUCCION_ART21", "", forgiven}, {"CONDONADOS_DECRETO", "", forgiven}, {"RETORNO_INVERSIONES", "", forgiven},
	{"CONDONADOS_07_15", "", "Año,Tipo persona,RFC,Contribuyente,\" Importe condonado \",\" Motivo de condonación \",Entidad Federativa\n2009,Persona F¡sica,COND010101AA1,PERSONA INVENTADA,\"1,390,273\",CONDONACIÓN,SONORA\n"},
	{"CANCELADOS_07_15", "of 2026", "AÑO,TIPO PERSONA,RFC,CONTRIBUYENTE,IMPORTE,Motivo,ENTIDAD FEDERATIVA\n2009,Persona Moral,CAN010101AA1,INVENTADA,\"1,390,273\",INSOLVENCIA,SONORA\n"},
	{"CANCELADOS_07_15", "of 2024", "AÑO,TIPO DE PERSONA,RFC,CONTRIBUYENTE,\" Importe pesos \",Motivo,ENTIDAD FEDERATIVA\n2009,Persona Moral,CAN010101AA1,INVENTADA,\" 1,390,273 \",INSOLVENCIA,SONORA\n"},
	{"ELIMINADOS", "", "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA\nELI010101AA1,INVENTADA,M,NO LOCALIZADOS,01/08/2020,SONORA\n"},
}

const forgiven = "RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHAS DE PRIMERA PUBLICACION,MONTO,FECHA DE PUBLICACIÓN,Entidad Federativa\nCON010101AA1,INVENTADA,M,CONDONADOS,01/08/2015,\"1,390,273\",16/08/2015,SONORA\n"

// TestEveryList reads a file of every list and of every known variant of its titles.
func TestEveryList(t *testing.T) {
	read := map[string]bool{}
	for _, f := range files {
		official := encoded(t, f.text)
		rows, sum, err := readAll(t, f.code, official)
		if err != nil {
			t.Errorf("%s %s: %v", f.code, f.name, err)
			continue
		}
		if want := countRecords(official); sum.Rows != want || len(rows) != want {
			t.Errorf("%s %s: %d rows, counted %d", f.code, f.name, sum.Rows, want)
		}
		if sum.Encoding != tabular.Windows1252 || sum.Unended || !sum.Corte.IsZero() {
			t.Errorf("%s %s: %+v", f.code, f.name, sum)
		}
		read[f.code] = true
	}
	for i := range query.Art69Lists {
		if code := query.Art69Lists[i].Code; !read[code] {
			t.Errorf("no file of %s", code)
		}
	}
	if n := len(query.Art69Lists); n != 15 {
		t.Errorf("%d lists", n)
	}
}

func TestNormalised(t *testing.T) {
	f := func(code, name string, row int, want ...string) {
		t.Helper()
		for _, file := range files {
			if file.code != code || file.name != name {
				continue
			}
			rows, _, err := readAll(t, code, encoded(t, file.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := rows[row].Norm; !slices.Equal(got, want) {
				t.Errorf("%s %s: %q", code, name, got)
			}
			return
		}
		t.Errorf("no file %s %s", code, name)
	}
	f("FIRMES", "of 2026", 0, "FIR010101AA1", "EMPRESA INVENTADA, S.A. DE C.V.", "moral", "FIRMES", "2014-01-01", "CIUDAD DE MEXICO")
	f("FIRMES", "of 2026", 3, "&HI0101015P2", "“A & H” INVENTADA", "moral", "FIRMES", "2017-12-01", "NUEVO LEON")
	f("FIRMES", "of 2026", 4, "ÑAFX750101AA1", "NUNEZ INVENTADA", "fisica", "FIRMES", "2016-02-16", "YUCATAN")
	f("FIRMES", "of 2026", 5, "SUP010101AA1", "SIN SUPUESTO NI TIPO", "", "", "2014-11-16", "JALISCO")
	cancelled := []string{"CAN010101AA1", "INVENTADA", "moral", "CANCELADOS POR INSOLVENCIA", "2020-08-01", "1390273", "2020-08-16", "SONORA"}
	f("CANCELADOS", "of 2026", 0, cancelled...)
	f("CANCELADOS", "of 2024", 0, cancelled...)
	seal := []string{"CSD010101AA1", "INVENTADA", "FRACCION X", "2024-01-05", "AGGC", "2024-07-23"}
	f("CSD_SIN_EFECTOS", "of October 2026", 0, seal...)
	f("CSD_SIN_EFECTOS", "of August 2026", 0, seal...)
	f("REDUCCION_ART74", "", 0, "RED010101AA1", "INVENTADA, S.A.", "moral", "REDUCCION", "2020-08-01", "12000.5", "2020-08-16", "SONORA")
	f("REDUCCION_ART74", "without the day of publication", 0, "RED010101AA1", "INVENTADA, S.A.", "fisica", "REDUCCION", "2020-08-01", "12000.5", "", "SONORA")
	f("CONDONADOS_07_15", "", 0, "2009", "fisica", "COND010101AA1", "PERSONA INVENTADA", "1390273", "CONDONACION", "SONORA")
	f("CANCELADOS_07_15", "of 2024", 0, "2009", "moral", "CAN010101AA1", "INVENTADA", "1390273", "INSOLVENCIA", "SONORA")
	f("ENTES_PUBLICOS_OMISOS", "", 0, "ENT010101AA1", "MUNICIPIO INVENTADO", "FRACCION VII", "2024", "MAYO", "2026-08-01")
}

// TestIdentity: a row is what it says. Equal ones share an id, which the catalogue
// tells apart by an ordinal; form makes no other row, and any word does.
func TestIdentity(t *testing.T) {
	rows, _, err := readAll(t, "FIRMES", encoded(t, files[0].text))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0].ID, rows[1].ID) || slices.Equal(rows[0].ID, rows[2].ID) || rows[0].ID[0] != rows[2].ID[0] {
		t.Errorf("%q %q %q", rows[0].ID, rows[1].ID, rows[2].ID)
	}
	if rows[4].Raw[1] != "NÚÑEZ\r\nINVENTADA" {
		t.Errorf("what was published is %q", rows[4].Raw[1])
	}
	one := func(code, text string) []string {
		t.Helper()
		rows, _, err := readAll(t, code, encoded(t, text))
		if err != nil || len(rows) != 1 {
			t.Fatal(len(rows), err)
		}
		return rows[0].ID
	}
	titles := strings.SplitAfterN(files[0].text, "\n", 2)[0]
	first := one("FIRMES", titles+"FIR010101AA1,INVENTADA,M,FIRMES,01/08/2026,MÉXICO\n")
	same := one("FIRMES", "ENTIDAD FEDERATIVA,RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHAS DE PRIMERA PUBLICACION\nMexico, fir010101aa1 , Inventada ,Persona moral,Firmes,1/8/2026\n")
	other := one("FIRMES", titles+"FIR010101AA1,INVENTADA,M,FIRMES,02/08/2026,MÉXICO\n")
	if !slices.Equal(first, same) || slices.Equal(first, other) {
		t.Errorf("%q %q %q", first, same, other)
	}
}

func TestCounts(t *testing.T) {
	titles := strings.SplitAfterN(files[5].text, "\n", 2)[0] // CANCELADOS
	f := func(name, row string, want string) {
		t.Helper()
		_, sum, err := readAll(t, "CANCELADOS", encoded(t, titles)+row+"\r\n")
		if got := fmt.Sprint(sum.Counts); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	f("all read", `CAN010101AA1,X,M,X,1/8/2020,"1,390,273",16/08/2020,X`, "map[]")
	f("unassigned byte", "CAN010101AA1,X\x8d,M,X,1/8/2020,1,16/08/2020,X", "map[bytes_no_asignados:1]")
	f("person type", "CAN010101AA1,X,Fideicomiso,X,1/8/2020,1,16/08/2020,X", "map[tipo_persona_desconocido:1]")
	f("amount", `CAN010101AA1,X,M,X,1/8/2020,"1,39,0",16/08/2020,X`, "map[importes_no_leidos:1]")
	f("dates", "CAN010101AA1,X,M,X,31/02/2020,1,44014,X", "map[fechas_en_serie_excel:1 fechas_no_leidas:1]")
	f("RFC", "CAN01,X,M,X,1/8/2020,1,16/08/2020,X", "map[rfc_no_reconocidos:1]")
	f("filler rows", "CAN010101AA1,X,M,X,1/8/2020,1,16/08/2020,X\r\n,,,,,,,\r\n", "map[filas_vacias:1]")
	_, sum, err := readAll(t, "CANCELADOS", encoded(t, titles)+"XXXXXXXXXXXX,X,M,X,1/8/2020,1,16/08/2020,X\r\n")
	if err != nil || sum.Rows != 1 || sum.Suppressed != 1 || len(sum.Counts) != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestRefusals(t *testing.T) {
	f := func(code, text, fault string, says ...string) {
		t.Helper()
		_, _, err := readAll(t, code, encoded(t, text))
		var refusal *tabular.Refusal
		if !errors.As(err, &refusal) || refusal.Fault.Code != fault {
			t.Errorf("%s: %v", fault, err)
			return
		}
		for _, s := range says {
			if !strings.Contains(refusal.Fault.Message, s) {
				t.Errorf("%q does not say %s", refusal.Fault.Message, s)
			}
		}
	}
	titles := strings.SplitAfterN(files[0].text, "\n", 2)[0]
	f("FIRMES", "", tabular.NoRows)
	f("FIRMES", "<html>", tabular.HTML)
	f("FIRMES", "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,ENTIDAD FEDERATIVA\n", tabular.Header, "faltan las columnas «FECHA DE PRIMERA PUBLICACION»")
	f("FIRMES", strings.TrimSuffix(titles, "\n")+",CURP\n", tabular.Header, "no se conocen o se repiten las columnas «curp»")
	f("FIRMES", strings.TrimSuffix(titles, "\n")+",RFC\n", tabular.Header, "«rfc»")
	f("FIRMES", files[5].text, tabular.Header, "«fecha de cancelacion», «monto»") // Cancelados under the name
	f("CANCELADOS", files[0].text, tabular.Header, "«FECHA DE CANCELACION», «MONTO»")
	f("FIRMES", "nota\n"+titles, tabular.Header)
	f("FIRMES", titles+"FIR010101AA1,X,M,FIRMES,01/08/2026\n", tabular.Truncated, "5 de 6")
	f("FIRMES", titles+"FIR010101AA1,X,M\n"+"FIR010101AA1,X,M,FIRMES,01/08/2026,X\n", tabular.Broken, "línea 2", "3 de 6")
	f("FIRMES", titles+"FIR010101AA1,X, S.A.,M,FIRMES,01/08/2026,X\n", tabular.Broken, "celda 7")
	f("FIRMES", titles+",X,M,FIRMES,01/08/2026,X\n", tabular.Broken, "no tiene RFC")
	f("FIRMES", titles+"FIR010101AA1,\"X,M,FIRMES,01/08/2026,X\n", tabular.Truncated)
	// Four lists have the same titles: only their rows tell one from the other.
	exigibles := titles + "EXI010101AA1,X,M,EXIGIBLES,01/08/2026,X\nEXI010101AA1,X,M,,01/08/2026,X\n"
	f("FIRMES", exigibles, tabular.OtherList, "todas sus 2 filas dicen «EXIGIBLES»", "«Firmes»")
	f("NO_LOCALIZADOS", titles+"FIR010101AA1,X,M,Firmes,01/08/2026,X\n", tabular.OtherList)
	for code, text := range map[string]string{
		"EXIGIBLES": exigibles,
		"FIRMES":    exigibles + "FIR010101AA1,X,M,FIRMES,01/08/2026,X\n",
	} {
		if _, sum, err := readAll(t, code, encoded(t, text)); err != nil || sum.Rows != countRecords(text) {
			t.Errorf("%s: %+v, %v", code, sum, err)
		}
	}
}

// realFile reads an excerpt of a real list. They lie outside the repository:
// COTEJO_SHARED names the folder, and must be right when it is set.
func realFile(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "..", "shared")
	}
	b, err := os.ReadFile(filepath.Join(root, "data", "mx-sources", "sat-art69", name))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skipf("no está %s: ponga COTEJO_SHARED", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRealExcerpts: a file that was reduced is refused by its missing column, and
// is read by a layout that lacks it.
func TestRealExcerpts(t *testing.T) {
	reduced := realFile(t, "firmes_2018_subset_morales_5cols-utf8.csv")
	_, _, err := readAll(t, "FIRMES", reduced)
	var refusal *tabular.Refusal
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Fault.Message, "faltan las columnas «ENTIDAD FEDERATIVA».") {
		t.Fatal(err)
	}
	short := *list(t, "FIRMES")
	short.Schema.Columns = short.Schema.Columns[:5]
	first16, undated := 0, 0
	sum, err := Reader(&short)(opener(reduced), func(r snapshots.Row) error {
		if r.Norm[2] != query.Moral || r.Norm[3] != "FIRMES" {
			t.Errorf("%q", r.Norm)
		}
		switch {
		case r.Norm[4] == "":
			undated++
		case strings.HasSuffix(r.Norm[4], "-01"), strings.HasSuffix(r.Norm[4], "-16"):
			first16++
		}
		return nil
	})
	if err != nil || sum.Rows != countRecords(reduced) || sum.Rows != 638 || first16+undated < sum.Rows-5 || len(sum.Counts) != 0 {
		t.Errorf("%+v, %v: %d on the 1st or 16th, %d undated", sum, err, first16, undated)
	}

	sample := realFile(t, "CSDsinefectos_sample_3rows-utf8.csv")
	rows, sum, err := readAll(t, "CSD_SIN_EFECTOS", sample)
	if err != nil || sum.Rows != 3 || sum.Rows != countRecords(sample) || sum.Encoding != tabular.UTF8 || len(sum.Counts) != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if got := rows[2].Norm; got[2] != "FRACCION X" || got[3] != "2024-01-29" || got[5] != "2024-07-23" || rows[2].Raw[2] != "FRACCIÓN X" {
		t.Errorf("%q", got)
	}
}

// FuzzRead: whatever a file holds, it is rows or a refusal, the same each time, and
// every row has an RFC and the columns of its list.
func FuzzRead(f *testing.F) {
	for i, file := range files {
		f.Add(uint8(i), []byte(encoded(f, file.text)))
	}
	f.Fuzz(func(t *testing.T, which uint8, official []byte) {
		l := &query.Art69Lists[int(which)%len(query.Art69Lists)]
		read := func() (ids []string, sum tabular.Summary, err error) {
			sum, err = Reader(l)(opener(string(official)), func(r snapshots.Row) error {
				if len(r.Raw) != len(l.Schema.Columns) || len(r.Norm) != len(r.Raw) || r.ID[0] == "" {
					t.Fatalf("%+v", r)
				}
				ids = append(ids, strings.Join(r.ID, " "))
				return nil
			})
			return ids, sum, err
		}
		ids, sum, err := read()
		if err != nil {
			if _, ok := errors.AsType[*tabular.Refusal](err); !ok {
				t.Fatal(err)
			}
			return
		}
		if again, _, err := read(); err != nil || !slices.Equal(ids, again) || len(ids) != sum.Rows {
			t.Fatalf("%d rows, then %d: %v", len(ids), len(again), err)
		}
	})
}
