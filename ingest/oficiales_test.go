package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cotejo/ingest/sat69b"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// The files of testdata/oficiales were typed in the official formats from the
// description of the sources, and esperado.json from the same description, by
// someone who had not seen the readers: it is a second opinion about what each
// quirk means. When a reader and an expectation disagree, the description decides,
// not this test.

const oficiales = "testdata/oficiales"

// suppliers are the files of sanctioned suppliers: whoever reads them has tests of
// their own over the same expectations.
const suppliers = "sancionados"

type expected struct {
	Archivos  []expectedFile
	Rechazos  []expectedRefusal
	bySource  map[string]expectedFile
	forReader []expectedFile
}

type expectedFile struct {
	Archivo, Fuente, Lista string
	Corte                  string
	Filas                  int
	RFC                    int               `json:"rfc_distintos"`
	Suprimidas             int               `json:"suprimidas"`
	Relleno                int               `json:"renglones_de_relleno"`
	Notas                  int               `json:"oficios_con_nota"`
	Reemplazados           int               `json:"bytes_reemplazados"`
	Anio                   int               `json:"anio_archivo"`
	Registros              int               `json:"registros"`
	Totales                map[string]any    `json:"totales"`
	Renglones              []json.RawMessage `json:"renglones"`
}

type expectedRefusal struct {
	Archivo, Fuente, Lista, Clase, Base string
	Menciona                            []string
}

// expectedRow is what an article 69 or 69-B row, or a contract, must become. A nil
// pointer or slice asserts nothing.
type expectedRow struct {
	Fila        int
	Rasgo, RFC  string
	Nombre      string
	Persona     *string
	Suprimida   bool
	Anotacion   string
	Situacion   string
	Ordinal     int
	Presuncion  map[string][]string
	Desvirtuado map[string][]string
	Definitivo  map[string][]string
	Sentencia   map[string][]string

	Proveedor, Dependencia, Unidad, Procedimiento, Titulo, Moneda string

	Num        string `json:"num_contrato"`
	Monto      amounts
	Fecha      *string
	Inicio     string `json:"fecha_inicio"`
	Anio       any
	Marcado    bool
	Sustituida int `json:"sustituida_por"`
	cells      map[string]any
}

// amounts is one amount, or those of which the source does not say which is meant.
type amounts []string

func (a *amounts) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(a))
	}
	*a = amounts{""}
	return json.Unmarshal(b, &(*a)[0])
}

// is reports whether a decimal text is one of them.
func (a amounts) is(got string) bool {
	g, ok := new(big.Rat).SetString(got)
	return ok && slices.ContainsFunc(a, func(text string) bool {
		want, ok := new(big.Rat).SetString(text)
		return ok && want.Cmp(g) == 0
	})
}

func oficialesExpected(t testing.TB) expected {
	t.Helper()
	b, err := os.ReadFile(path.Join(oficiales, "esperado.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	e.bySource = map[string]expectedFile{}
	for _, f := range e.Archivos {
		e.bySource[f.Archivo] = f
		if f.Fuente != suppliers {
			e.forReader = append(e.forReader, f)
		}
	}
	return e
}

// source is the id of the source that a file is read by.
func (f *expectedFile) source() string {
	switch f.Fuente {
	case "sat_69":
		return "sat_art69_" + strings.ToLower(f.Lista)
	case "contratos":
		return fmt.Sprintf("compranet_%d", f.Anio)
	}
	return f.Fuente
}

// single reports whether a file has one situation of the list under article 69-B.
func (f *expectedFile) single() bool { return path.Base(f.Archivo) == "Presuntos.csv" }

func (f *expectedFile) rows(t testing.TB) (rows []expectedRow) {
	t.Helper()
	for _, raw := range f.Renglones {
		var r expectedRow
		err := json.Unmarshal(raw, &r)
		if err == nil {
			err = json.Unmarshal(raw, &r.cells)
		}
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		rows = append(rows, r)
	}
	return rows
}

func oficial(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(oficiales, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openerOf(content []byte) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

func readOficial(t testing.TB, source string, content []byte) (rows []snapshots.Row, sum tabular.Summary, err error) {
	t.Helper()
	s, ok := Lookup(source)
	if !ok {
		t.Fatalf("no source %s", source)
	}
	sum, err = s.Read(openerOf(content), func(r snapshots.Row) error {
		r.ID, r.Raw, r.Norm = slices.Clone(r.ID), slices.Clone(r.Raw), slices.Clone(r.Norm)
		rows = append(rows, r)
		return nil
	})
	return rows, sum, err
}

// spaced is a cell in the form of the expectations.
func spaced(cell string) string { return string(tabular.AppendText(nil, []byte(cell))) }

// TestOficialesAreRead: every row of every file, and what is said of the file.
func TestOficialesAreRead(t *testing.T) {
	e := oficialesExpected(t)
	if len(e.forReader) != 30 {
		t.Errorf("%d files have a reader", len(e.forReader))
	}
	for _, f := range e.forReader {
		t.Run(strings.ReplaceAll(f.Archivo, "/", " "), func(t *testing.T) {
			content := oficial(t, f.Archivo)
			rows, sum, err := readOficial(t, f.source(), content)
			if err != nil {
				t.Fatal(err)
			}
			rfcs := map[string]bool{}
			for _, r := range rows {
				if !r.Suppressed && r.ID[0] != "" {
					rfcs[r.ID[0]] = true
				}
			}
			corte := ""
			if !sum.Corte.IsZero() {
				corte = sum.Corte.String()
			}
			type account struct {
				rows, records, rfcs, suppressed, filler, replaced int
				corte, encoding                                   string
				unended                                           bool
			}
			want := account{f.Filas, f.Filas, f.RFC, f.Suprimidas, f.Relleno, f.Reemplazados, f.Corte, tabular.Windows1252, false}
			got := account{len(rows), sum.Rows, len(rfcs), sum.Suppressed, sum.Counts[tabular.EmptyRows], sum.Counts[tabular.UnassignedBytes], corte, sum.Encoding, sum.Unended}
			if got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			if n := sum.Counts[tabular.UnreadOficios]; n != f.Notas {
				t.Errorf("%d cells of oficios have a note, want %d", n, f.Notas)
			}
			for _, unread := range []string{tabular.UnreadDates, tabular.UnreadRFCs, tabular.UnknownSituations, "importes_no_leidos", "tipo_persona_desconocido", "registros_ilegibles"} {
				if n := sum.Counts[unread]; n > 0 {
					t.Errorf("%s: %d", unread, n)
				}
			}
			faults := pastGates(&sum)
			if f.single() {
				if len(faults) != 1 || faults[0].Code != tabular.OtherList {
					t.Errorf("a list of one situation passes for the complete one: %+v", faults)
				}
			} else if len(faults) > 0 {
				t.Errorf("the gates stop it: %+v", faults)
			}
			same := map[string]int{}
			s, _ := Lookup(f.source())
			for i, want := range f.rows(t) {
				r := rows[i]
				same[strings.Join(r.ID, "\x00")]++
				check := checkContract
				switch f.Fuente {
				case "sat_69":
					check = checkArt69
				case "sat_69b", "sat_69b_bis":
					check = checkListing
				}
				for _, wrong := range check(&s.Schema, &want, &r, same[strings.Join(r.ID, "\x00")]) {
					t.Errorf("fila %d (%s): %s", want.Fila, want.Rasgo, wrong)
				}
			}
		})
	}
}

// differ lists what is not as wanted, as text.
type differ []string

func (d *differ) same(what, got, want string) {
	if got != want {
		*d = append(*d, fmt.Sprintf("%s is %q, want %q", what, got, want))
	}
}

// art69Cells says in which column each expectation is found.
var art69Cells = map[string]*regexp.Regexp{
	"nombre":                    regexp.MustCompile(`social$|^contribuyente$`),
	"supuesto":                  regexp.MustCompile(`^supuesto`),
	"fecha_primera_publicacion": regexp.MustCompile(`^fechas? de primera`),
	"fecha_publicacion":         regexp.MustCompile(`^fecha de publicacion`),
	"fecha_cancelacion":         regexp.MustCompile(`^fecha de cancelacion`),
	"fecha_autorizacion":        regexp.MustCompile(`^fecha de autorizacion`),
	"monto":                     regexp.MustCompile(`^(monto|importe)`),
	"motivo":                    regexp.MustCompile(`^motivo`),
	"entidad":                   regexp.MustCompile(`^entidad`),
	"anio":                      regexp.MustCompile(`^ano$`),
	"ejercicio":                 regexp.MustCompile(`^ejercicio$`),
	"periodo":                   regexp.MustCompile(`^periodo$`),
	"autoridad":                 regexp.MustCompile(`^administracion`),
}

func checkArt69(schema *snapshots.Schema, want *expectedRow, r *snapshots.Row, ordinal int) (wrong differ) {
	wrong.same("RFC", r.ID[0], want.RFC)
	wrong.same("suppressed", fmt.Sprint(r.Suppressed), fmt.Sprint(want.Suprimida))
	wrong.same("ordinal", fmt.Sprint(ordinal), fmt.Sprint(want.Ordinal))
	for name, value := range want.cells {
		titled, ok := art69Cells[name]
		if !ok {
			continue
		}
		at := slices.IndexFunc(schema.Columns, func(c snapshots.Column) bool { return titled.MatchString(tabular.Fold([]byte(c.Name))) })
		switch {
		case at < 0:
			wrong = append(wrong, "no column for "+name)
		case name == "monto":
			if !want.Monto.is(r.Norm[at]) {
				wrong.same(name, r.Norm[at], fmt.Sprint(want.Monto))
			}
		case strings.HasPrefix(name, "fecha"):
			wrong.same(name, r.Norm[at], value.(string))
		default:
			wrong.same(name, spaced(r.Raw[at]), value.(string))
			wrong.same(name+" compared", r.Norm[at], string(tabular.AppendFolded(nil, []byte(value.(string)))))
		}
	}
	return wrong
}

// oficioOf is an oficio in the reader's form; one with a note is not.
var oficioOf = regexp.MustCompile(`([0-9-]+) de (\d{4}-\d\d-\d\d)`)

// checkListing checks a row of the lists under articles 69-B and 69-B Bis.
func checkListing(schema *snapshots.Schema, want *expectedRow, r *snapshots.Row, ordinal int) (wrong differ) {
	name := want.Nombre
	if want.Anotacion != "" {
		name += " // " + want.Anotacion
	}
	wrong.same("RFC", r.ID[0], want.RFC)
	wrong.same("suppressed", fmt.Sprint(r.Suppressed), fmt.Sprint(want.Suprimida))
	wrong.same("name", r.Norm[2], name)
	wrong.same("situation", r.Norm[3], want.Situacion)
	if ordinal > 1 {
		wrong = append(wrong, "another row has its identity")
	}
	stages := []map[string][]string{want.Presuncion, want.Desvirtuado, want.Definitivo, want.Sentencia}
	if len(schema.Columns) == 12 {
		stages = stages[2:] // nobody is presumed under article 69-B Bis
	}
	for i, stage := range stages {
		for j, cell := range [...]string{"oficio_sat", "sat", "oficio_dof", "dof"} {
			list, told := stage[cell]
			if !told {
				continue
			}
			at := 4 + 4*i + j
			got := strings.Fields(r.Norm[at])
			if j%2 == 0 {
				got = strings.Split(oficioOf.ReplaceAllString(r.Norm[at], "$1|$2"), " // ")
			}
			wrong.same(schema.Columns[at].Name, strings.Trim(strings.Join(got, "; "), " "), strings.Join(list, "; "))
		}
	}
	if len(stages) == 4 && !r.Suppressed {
		if from := want.Presuncion["oficio_sat"]; len(from) > 0 {
			number, _, _ := strings.Cut(from[len(from)-1], "|")
			wrong.same("procedure", r.ID[1], number)
		}
	}
	return wrong
}

func checkContract(_ *snapshots.Schema, want *expectedRow, r *snapshots.Row, _ int) (wrong differ) {
	for _, cell := range []struct {
		column int
		want   string
	}{
		{query.ColContratoRFC, want.RFC}, {query.ColContratoProveedor, want.Proveedor}, {query.ColContratoCodigo, want.Num},
		{query.ColContratoTitulo, want.Titulo}, {query.ColContratoInstitucion, want.Dependencia}, {query.ColContratoUC, want.Unidad},
		{query.ColContratoProcedimiento, want.Procedimiento}, {query.ColContratoMoneda, want.Moneda},
	} {
		wrong.same(query.Contratos[0].Columns[cell.column].Name, r.Norm[cell.column], cell.want)
	}
	if want.Inicio != "" {
		wrong.same("beginning", r.Norm[query.ColContratoInicio], want.Inicio)
	}
	day, origin := query.ContractDate(r.Norm)
	got := ""
	if origin != "" {
		got = day.String()
	}
	if want.Fecha == nil {
		want.Fecha = new(string)
	}
	wrong.same("day", got, *want.Fecha)
	return wrong
}

// TestOficialesAreRefused: with a message that names what is wrong.
func TestOficialesAreRefused(t *testing.T) {
	e := oficialesExpected(t)
	for _, want := range e.Rechazos {
		base := e.bySource[want.Base]
		if base.Fuente == suppliers {
			continue
		}
		_, sum, err := readOficial(t, base.source(), oficial(t, want.Archivo))
		message := ""
		var refusal *tabular.Refusal
		switch {
		case errors.As(err, &refusal):
			message = refusal.Error()
		case err != nil:
			t.Fatalf("%s: %v", want.Archivo, err)
		default:
			for _, f := range pastGates(&sum) {
				message += f.Code + ": " + f.Message + " "
			}
		}
		if message == "" {
			t.Errorf("%s (%s): it is served: %+v", want.Archivo, want.Clase, sum)
			continue
		}
		mentions := want.Menciona
		if want.Clase == "último renglón cortado" {
			mentions = append(mentions, "línea")
		}
		for _, m := range mentions {
			if !strings.Contains(tabular.Fold([]byte(message)), tabular.Fold([]byte(m))) {
				t.Errorf("%s (%s): %q does not name %q", want.Archivo, want.Clase, message, m)
			}
		}
	}
}

// TestOficialesPartial: the tolerant look at a list of one situation.
func TestOficialesPartial(t *testing.T) {
	for _, f := range oficialesExpected(t).forReader {
		if f.Fuente != "sat_69b" {
			continue
		}
		var got, want []string
		sum, err := sat69b.ReadPartial(openerOf(oficial(t, f.Archivo)), func(rfc, situation string) error {
			got = append(got, rfc+" "+situation)
			return nil
		})
		for _, r := range f.rows(t) {
			want = append(want, r.RFC+" "+r.Situacion)
		}
		if err != nil || !slices.Equal(got, want) || sum.Rows != f.Filas || sum.Suppressed != f.Suprimidas {
			t.Errorf("%s: %q, want %q; %v", f.Archivo, got, want, err)
		}
	}
}
