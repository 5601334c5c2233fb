package banxico

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cotejo/catalog"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

func opener(text string) snapshots.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// sie is an answer of the documented shape, from pairs of day and value.
func sie(pairs ...string) string {
	var rows []string
	for _, p := range pairs {
		day, value, _ := strings.Cut(p, " ")
		rows = append(rows, fmt.Sprintf(`{"fecha":%q,"dato":%q}`, day, value))
	}
	return `{"bmx":{"series":[{"idSerie":"SF43718","titulo":"x","datos":[` + strings.Join(rows, ",") + `]}]}}`
}

type reader func(snapshots.Opener, func(snapshots.Row) error) (tabular.Summary, error)

// read gives the rows in a line each: identity, as published, normalised.
func read(r reader, text string) (rows []string, sum tabular.Summary, err error) {
	sum, err = r(opener(text), func(row snapshots.Row) error {
		rows = append(rows, fmt.Sprintf("%s%s%s", row.ID, row.Raw, row.Norm))
		return nil
	})
	return rows, sum, err
}

func TestReadFIX(t *testing.T) {
	rows, sum, err := read(ReadFIX, sie("03/01/2020 18.8673", "01/01/2020 N/E", "02/01/2020 18.88", "06/01/2020 N/E"))
	want := []string{
		"[2020-01-01][01/01/2020 N/E][2020-01-01 N/E]", "[2020-01-02][02/01/2020 18.88][2020-01-02 18.8800]",
		"[2020-01-03][03/01/2020 18.8673][2020-01-03 18.8673]", "[2020-01-06][06/01/2020 N/E][2020-01-06 N/E]",
	}
	if err != nil || !slices.Equal(rows, want) || sum.Rows != 4 || sum.Corte.String() != "2020-01-03" || sum.Unended {
		t.Errorf("%q %+v %v", rows, sum, err)
	}
}

func TestReadSPEI(t *testing.T) {
	rows, sum, err := read(ReadSPEI, `{"instituciones":[["40002","BANAMEX"],[2001,"Banxico"],["90646"," STP  dos "]],"otra":1}`)
	want := []string{"[02001][2001 Banxico][02001 Banxico]", "[40002][40002 BANAMEX][40002 BANAMEX]", "[90646][90646  STP  dos ][90646 STP dos]"}
	if err != nil || !slices.Equal(rows, want) || sum.Rows != 3 || !sum.Corte.IsZero() {
		t.Errorf("%q %+v %v", rows, sum, err)
	}
}

func TestRefusals(t *testing.T) {
	f := func(r reader, text, code, says string) {
		t.Helper()
		_, _, err := read(r, text)
		refusal, ok := errors.AsType[*tabular.Refusal](err)
		if !ok || refusal.Fault.Code != code || !strings.Contains(refusal.Fault.Message, says) {
			t.Errorf("%.60q: %v, want %s %q", text, err, code, says)
		}
	}
	for _, r := range []reader{ReadFIX, ReadSPEI} {
		f(r, "", tabular.NoRows, "vacío")
		f(r, " \n<!DOCTYPE html>", tabular.HTML, "página web")
		f(r, `{"bmx":`, tabular.Truncated, "cortada")
		f(r, `{"a":}`, tabular.Broken, "JSON")
		f(r, strings.Repeat(" ", 5000)+"{}", tabular.NoRows, "blancos")
	}
	f(ReadFIX, `{"error":{"mensaje":"Token inválido","detalle":"El token no existe"}}`, tabular.Rejected, "Token inválido")
	f(ReadFIX, `{}`, tabular.Broken, "no trae la serie")
	f(ReadFIX, sie(), tabular.NoRows, "ningún valor")
	f(ReadFIX, sie("01/01/2020 N/E"), tabular.NoRows, "ningún valor")
	f(ReadFIX, sie("02/01/2020 18.8817", "02/01/2020 18.8818"), tabular.Broken, "el 2020-01-02 viene con dos valores")
	f(ReadFIX, sie("02/01/2020 0"), tabular.Broken, "2020-01-02")
	f(ReadSPEI, `{}`, tabular.Broken, "instituciones")
	f(ReadSPEI, `{"instituciones":[["40002","BANA\u0000MEX"]]}`, tabular.Broken, "control")
	f(ReadSPEI, `{"instituciones":[["40002"]]}`, tabular.Broken, "participante 1")
	f(ReadSPEI, `{"instituciones":[["402","x"]]}`, tabular.Broken, "5 dígitos")
	f(ReadSPEI, `{"instituciones":[["40002",""]]}`, tabular.Broken, "nombre")
	f(ReadSPEI, `{"instituciones":[["40002","a"],["37002","b"]]}`, tabular.Broken, "37002 y 40002")
}

// whole is an answer with the series of the program, changed and lengthened.
func whole(change func(day string) (value string, keep bool), more ...string) string {
	var pairs []string
	for o := range catalog.Embedded().FIX.All {
		value, keep := o.Rate.String(), true
		if change != nil {
			if v, ok := change(o.Day.String()); v != "" || !ok {
				value, keep = v, ok
			}
		}
		if keep {
			pairs = append(pairs, fmt.Sprintf("%02d/%02d/%04d %s", o.Day.Day, o.Day.Month, o.Day.Year, value))
		}
	}
	return sie(append(pairs, more...)...)
}

func on(when, value string) func(string) (string, bool) {
	return func(day string) (string, bool) {
		if day == when {
			return value, value != ""
		}
		return "", true
	}
}

func TestJudgeFIX(t *testing.T) {
	f := func(name, before, staged string, faults, notices string) {
		t.Helper()
		var old snapshots.Opener
		if before != "" {
			old = opener(before)
		}
		found, said, err := JudgeFIX(old, opener(staged))
		var codes, told []string
		for _, x := range found {
			codes = append(codes, x.Code+" "+x.Message)
		}
		for _, x := range said {
			told = append(told, x.Code+" "+x.Message)
		}
		match := func(got []string, want string) bool {
			return len(got) == 0 && want == "" || want != "" && len(got) == 1 && strings.HasPrefix(got[0], strings.Split(want, "…")[0]) && strings.Contains(got[0], strings.Split(want, "…")[1])
		}
		if err != nil || !match(codes, faults) || !match(told, notices) {
			t.Errorf("%s: %q %q %v", name, codes, told, err)
		}
	}
	good := whole(nil, "26/11/2025 18.4000")
	f("first", "", good, "", "")
	f("longer", good, whole(nil, "26/11/2025 18.4000", "27/11/2025 N/E", "28/11/2025 18.5000"), "", "")
	// A part of the series in the place of all of it.
	f("first, short", "", sie("26/11/2025 18.4000"), "MENOS_FILAS…que la serie incluida en este programa sí tiene", "")
	f("shorter by a day", good, whole(nil), "MENOS_FILAS…2025-11-26 (18.4000, ahora sin dato)", "")
	f("a hole", good, whole(on("2020-01-02", ""), "26/11/2025 18.4000"), "MENOS_FILAS…2020-01-02 (18.8817, ahora sin dato)", "")
	f("N/E in the past", good, whole(on("2020-01-02", "N/E"), "26/11/2025 18.4000"), "MENOS_FILAS…2020-01-02", "")
	// A value that changed, or came where there was none.
	f("changed", good, whole(nil, "26/11/2025 18.4001"), "VALOR_CAMBIADO…2025-11-26 (18.4000, ahora 18.4001)", "")
	f("added", good, whole(nil, "16/11/2025 18.3000", "26/11/2025 18.4000"), "VALOR_CAMBIADO…2025-11-16 (sin dato, ahora 18.3000)", "")
	// What the program carries is a copy: it is told, and the official value holds.
	other := whole(on("2020-01-02", "18.8818"), "26/11/2025 18.4000")
	f("other than the program's", "", other, "", "SERIE_DIFIERE…2020-01-02 (18.8817, ahora 18.8818)")
	f("still other", other, other, "", "SERIE_DIFIERE…2020-01-02")
	f("mended", other, good, "VALOR_CAMBIADO…2020-01-02 (18.8818, ahora 18.8817)", "")
}

// shared opens a real file, when it is there.
func shared(t *testing.T, name string) io.Reader {
	t.Helper()
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(root, "data", "catalogs", name))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skipf("no está %s: ponga COTEJO_SHARED", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return bytes.NewReader(data)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestJudgeSPEI: the first list is held against that of the program.
func TestJudgeSPEI(t *testing.T) {
	var codes []string
	for _, bank := range catalog.Embedded().Banks.All {
		if bank.InSPEI {
			codes = append(codes, bank.SPEI)
		}
	}
	f := func(before snapshots.Opener, codes []string, want string) {
		t.Helper()
		list := make([]string, len(codes))
		for i, code := range codes {
			list[i] = `["` + code + `","X"]`
		}
		faults, notices, err := JudgeSPEI(before, opener(`{"instituciones":[`+strings.Join(list, ",")+`]}`))
		if err != nil || notices != nil || len(faults) == 0 != (want == "") || want != "" && (faults[0].Code != tabular.FewerRows || !strings.Contains(faults[0].Message, want)) {
			t.Errorf("%d of them: %+v %v %v, want %q", len(codes), faults, notices, err, want)
		}
	}
	n := len(codes)
	f(nil, codes, "")
	f(nil, codes[n/10:], "")
	f(nil, codes[n/10+1:], fmt.Sprintf("le faltan %d de los %d", n/10+1, n))
	f(nil, codes[:1], "le faltan")
	f(nil, []string{"90999"}, "le faltan")
	// Versions are compared with each other by the gate of every source.
	f(opener("{}"), codes[:1], "")
}

// TestRealSeries: the published series in the shape of the API is read to the last
// day, and agrees with that of the program.
func TestRealSeries(t *testing.T) {
	records, err := csv.NewReader(shared(t, "banxico_fix_SF43718.csv.gz")).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, r := range slices.Backward(records[1:]) { // the order of the API is not guaranteed
		pairs = append(pairs, r[0][8:]+"/"+r[0][5:7]+"/"+r[0][:4]+" "+r[1])
	}
	rows, sum, err := read(ReadFIX, sie(pairs...))
	if err != nil || len(rows) != 8556 || sum.Corte.String() != "2025-11-25" {
		t.Fatalf("%d rows, %+v, %v", len(rows), sum, err)
	}
	if faults, notices, err := JudgeFIX(nil, opener(sie(pairs...))); err != nil || faults != nil || notices != nil {
		t.Errorf("%v %v %v", faults, notices, err)
	}
}

// TestRealParticipants: so are the participants, with the central bank's code of
// four digits.
func TestRealParticipants(t *testing.T) {
	records, err := csv.NewReader(shared(t, "bancos.csv")).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list [][2]string
	for _, r := range records[1:] {
		if r[3] == "1" {
			list = append(list, [2]string{r[1], r[2]})
		}
	}
	text, err := json.Marshal(map[string]any{"instituciones": list})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := read(ReadSPEI, string(text))
	if err != nil || len(rows) != 98 || rows[0] != "[02001][2001 Banxico][02001 Banxico]" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// fuzz: a reader either refuses or gives rows that can be kept, the same twice.
func fuzz(f *testing.F, r reader, columns int) {
	f.Fuzz(func(t *testing.T, text string) {
		rows, sum, err := read(r, text)
		if _, refused := errors.AsType[*tabular.Refusal](err); err != nil && !refused {
			t.Fatal(err)
		}
		again, _, _ := read(r, text)
		if !slices.Equal(rows, again) || err == nil && (len(rows) == 0 || sum.Rows != len(rows)) {
			t.Fatalf("%q %q %+v", rows, again, sum)
		}
		_, _ = r(opener(text), func(row snapshots.Row) error {
			if len(row.ID) != 1 || row.ID[0] == "" || len(row.Raw) != columns || len(row.Norm) != columns {
				t.Fatalf("%+v", row)
			}
			return nil
		})
	})
}

func FuzzReadFIX(f *testing.F) {
	f.Add(sie("03/01/2020 18.8673", "01/01/2020 N/E"))
	f.Add(`{"error":{"mensaje":"a","detalle":"b"}}`)
	f.Add(`<html>`)
	fuzz(f, ReadFIX, 2)
}

func FuzzReadSPEI(f *testing.F) {
	f.Add(`{"instituciones":[["40002","BANAMEX"],[2001,"Banxico"]]}`)
	f.Add(`{"instituciones":[["40002","a"],["37002","b"]]}`)
	fuzz(f, ReadSPEI, 2)
}
