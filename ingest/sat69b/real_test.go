package sat69b

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

	"github.com/google/go-cmp/cmp"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// The tests of this file read real official lists. They lie outside the
// repository: COTEJO_SHARED names the folder, and must be right when it is set.

const (
	list2021 = "Listado_Completo_69-B_2021-05-18.csv.gz"
	list2022 = "Listado_Completo_69-B_2022-11-30.csv.gz"
	list2023 = "Listado_Completo_69-B_2023-07_no-preamble.csv.gz"
)

// realFile reads a file by its name, below the folder of the complete list unless
// it names another one.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	if !strings.Contains(name, "/") {
		name = "sat-69b/" + name
	}
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(root, "data", "mx-sources", filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skipf("no está la lista oficial %s: ponga COTEJO_SHARED", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opener reads official bytes.
func opener[T string | []byte](official T) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(official))), nil }
}

func readAll(t testing.TB, official string) ([]snapshots.Row, tabular.Summary, error) {
	t.Helper()
	return readAllOf(t, &complete, official)
}

func readAllOf(t testing.TB, l *layout, official string) (rows []snapshots.Row, sum tabular.Summary, err error) {
	t.Helper()
	sum, err = l.read(opener(official), func(r snapshots.Row) error {
		r.ID, r.Raw, r.Norm = slices.Clone(r.ID), slices.Clone(r.Raw), slices.Clone(r.Norm)
		rows = append(rows, r)
		return nil
	})
	return rows, sum, err
}

// countedIndependently is what another CSV reader says: the records below the
// titles that hold any text.
func countedIndependently(t *testing.T, official []byte) int {
	t.Helper()
	latin := make([]rune, len(official)) // the count does not depend on the characters
	for i, b := range official {
		latin[i] = rune(b)
	}
	r := csv.NewReader(strings.NewReader(string(latin)))
	r.FieldsPerRecord = -1
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	titles := slices.IndexFunc(all, func(cells []string) bool { return len(cells) > 1 && cells[1] == "RFC" })
	n := 0
	for _, cells := range all[titles+1:] {
		if strings.Join(cells, "") != "" {
			n++
		}
	}
	return n
}

func TestRealLists(t *testing.T) {
	f := func(name string, rows, suppressed int, corte civil.Date, encoding string, counts map[string]int, situations map[string]int) {
		t.Helper()
		official := realFile(t, name)
		got, sum, err := readAll(t, string(official))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := tabular.Summary{Rows: rows, Suppressed: suppressed, Corte: corte, Encoding: encoding, Counts: counts}
		for situation := range situations {
			if len(situations) == 1 {
				want.Single = situation // it is a partial list
			}
		}
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if n := countedIndependently(t, official); n != len(got) {
			t.Errorf("%s: %d rows, encoding/csv counts %d", name, len(got), n)
		}
		seen := map[string]int{}
		ids := map[string]bool{}
		for _, r := range got {
			seen[r.Norm[3]]++
			id := r.ID[0] + "|" + r.ID[1]
			if !r.Suppressed && ids[id] {
				t.Errorf("%s: the identity %s occurs twice", name, id)
			}
			ids[id] = true
		}
		if diff := cmp.Diff(situations, seen); diff != "" {
			t.Errorf("%s: situations: -want +got\n%s", name, diff)
		}
	}
	day := func(y, m, d int) civil.Date { return civil.Date{Year: y, Month: time.Month(m), Day: d} }
	f(list2021, 12505, 87, day(2021, 5, 18), "windows-1252",
		map[string]int{"oficios_no_reconocidos": 1, "fechas_en_serie_excel": 1, "fechas_con_anio_corto": 5},
		map[string]int{"Definitivo": 10519, "Sentencia Favorable": 903, "Presunto": 782, "Desvirtuado": 301})
	f(list2022, 12666, 86, day(2022, 11, 30), "windows-1252",
		map[string]int{"oficios_no_reconocidos": 1, "fechas_en_serie_excel": 2, "fechas_con_anio_corto": 5},
		map[string]int{"Definitivo": 10954, "Sentencia Favorable": 1241, "Presunto": 141, "Desvirtuado": 330})
	f(list2023, 12686, 87, civil.Date{}, "windows-1252",
		map[string]int{"oficios_no_reconocidos": 1, "fechas_en_serie_excel": 2, "fechas_con_anio_corto": 3},
		map[string]int{"Definitivo": 10895, "Sentencia Favorable": 1328, "Presunto": 132, "Desvirtuado": 331})
	f("Definitivos_2019-12-03.csv.gz", 9116, 71, day(2019, 12, 3), "windows-1252",
		map[string]int{"fechas_con_anio_corto": 18096}, map[string]int{"Definitivo": 9116})
	f("Presuntos_2019-12-03.csv.gz", 1177, 15, day(2019, 12, 3), "windows-1252", map[string]int{}, map[string]int{"Presunto": 1177})
	f("Definitivos_2026-01-31.csv.gz", 11336, 74, day(2026, 1, 31), "windows-1252",
		map[string]int{"fechas_en_serie_excel": 2, "fechas_con_anio_corto": 1}, map[string]int{"Definitivo": 11336})
	f("Presuntos_2026-01-31.csv.gz", 966, 15, day(2026, 1, 31), "windows-1252", map[string]int{"filas_vacias": 20}, map[string]int{"Presunto": 966})
	f("Desvirtuados_2026-01-31.csv.gz", 340, 0, day(2026, 1, 31), "windows-1252", map[string]int{}, map[string]int{"Desvirtuado": 340})
	f("Listado_completo_69-B_2026-05-31_head-excerpt-utf8.csv", 9, 0, day(2026, 5, 31), "utf-8", map[string]int{},
		map[string]int{"Presunto": 3, "Definitivo": 3, "Desvirtuado": 1, "Sentencia Favorable": 2})
}

// TestRealHistory holds what was measured between the real versions, on rows
// alone: what the catalogue makes of them is tested with the flow.
func TestRealHistory(t *testing.T) {
	type facts struct {
		Moves               map[string]int // "before > after", keys in both
		New                 int
		Gone                []string
		NewSuppressed       int
		Names, RawNames     int
		ChangedRaw, Changed int // rows with any difference beside the number: as published, and as compared
	}
	load := func(name string) (keys map[string]snapshots.Row, suppressed int) {
		rows, sum, err := readAll(t, string(realFile(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		keys = map[string]snapshots.Row{}
		for _, r := range rows {
			if !r.Suppressed {
				keys[r.ID[0]+" "+r.ID[1]] = r
			}
		}
		return keys, sum.Suppressed
	}
	f := func(older, newer string, want facts) {
		t.Helper()
		before, hidden := load(older)
		after, hiddenAfter := load(newer)
		got := facts{Moves: map[string]int{}, NewSuppressed: hiddenAfter - hidden}
		for key, b := range before {
			a, ok := after[key]
			if !ok {
				got.Gone = append(got.Gone, key)
				continue
			}
			got.Moves[b.Norm[3]+" > "+a.Norm[3]]++
			if b.Norm[2] != a.Norm[2] {
				got.Names++
			}
			if b.Raw[2] != a.Raw[2] {
				got.RawNames++
			}
			if !slices.Equal(b.Norm[1:], a.Norm[1:]) {
				got.Changed++
			}
			if !slices.Equal(b.Raw[1:], a.Raw[1:]) {
				got.ChangedRaw++
			}
		}
		for key := range after {
			if _, ok := before[key]; !ok {
				got.New++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s to %s: -want +got\n%s", older, newer, diff)
		}
	}
	const p, d, sf, de = "Presunto", "Definitivo", "Sentencia Favorable", "Desvirtuado"
	f(list2021, list2022, facts{
		Moves: map[string]int{
			p + " > " + d: 601, p + " > " + sf: 33, p + " > " + de: 17, p + " > " + p: 116,
			d + " > " + sf: 326, d + " > " + de: 2, d + " > " + d: 10119,
			sf + " > " + d: 18, sf + " > " + de: 5, sf + " > " + sf: 879,
			de + " > " + de: 301,
		},
		New: 163, Gone: []string{"CDM000308Q62 500-05-2017-16054"}, NewSuppressed: -1,
		Names: 3, RawNames: 4, ChangedRaw: 1468, Changed: 1468,
	})
	f(list2022, list2023, facts{
		Moves: map[string]int{
			p + " > " + d: 23, p + " > " + sf: 5, p + " > " + p: 99,
			d + " > " + sf: 87, d + " > " + de: 1, d + " > " + d: 10794,
			sf + " > " + d: 5, sf + " > " + sf: 1236,
			de + " > " + de: 330,
		},
		New: 19, NewSuppressed: 1, Names: 2, RawNames: 4, ChangedRaw: 129, Changed: 124,
	})
}

// TestRealTypographicQuotes fails when a list is read as latin-1, where the quotes
// are control characters.
func TestRealTypographicQuotes(t *testing.T) {
	rows, _, err := readAll(t, string(realFile(t, "Definitivos_2026-01-31.csv.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if strings.HasPrefix(r.Norm[2], "“A&L CONSULTORES”") {
			return
		}
	}
	t.Error("“A&L CONSULTORES” is not among the names")
}

func TestRealListWithoutColumnsIsRefused(t *testing.T) {
	_, _, err := readAll(t, string(realFile(t, "Listado_completo_69-B_2026-03_3cols-utf8.csv.gz")))
	var refusal *tabular.Refusal
	if !errors.As(err, &refusal) || refusal.Fault.Code != tabular.Header {
		t.Fatalf("got %v, want a refusal for its header", err)
	}
	for _, c := range query.Sat69B.Columns {
		present := c.Name == "RFC" || c.Name == "Nombre del Contribuyente" || c.Name == "Situación del contribuyente"
		if strings.Contains(refusal.Fault.Message, "«"+c.Name+"»") == present {
			t.Errorf("«%s» named %v: %s", c.Name, !present, refusal.Fault.Message)
		}
	}
}

func BenchmarkRead2022(b *testing.B) {
	official := realFile(b, list2022)
	b.SetBytes(int64(len(official)))
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		if _, err := Read(opener(official), func(snapshots.Row) error { rows++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
