package query_test

import (
	"bytes"
	"compress/gzip"
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
	"time"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/ingest"
	"cotejo/query"
	"cotejo/snapshots"
)

func date(t testing.TB, text string) civil.Date {
	t.Helper()
	d, err := civil.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func rfcOf(t testing.TB, text string) checks.RFC {
	t.Helper()
	rfc, err := checks.ParseRFC(text)
	if err != nil {
		t.Fatal(err)
	}
	return rfc
}

// askOn asks about an earlier day.
func askOn(t testing.TB, ed *snapshots.Edition, rfc, day string) answer {
	t.Helper()
	registro, _ := answerTo(t, query.Company{RFC: rfcOf(t, rfc), Past: date(t, day)}, ed)
	return read(t, registro)
}

// chainOfThree is a list in three versions: AAA goes from Presunto to Definitivo
// and leaves, BBB enters with the second.
func chainOfThree(t testing.TB) *snapshots.Edition {
	presunto := row("AAA010101AA1", "500-05-2018-1", "ALFA", "Presunto", cell{5, "2020-12-01"})
	definitivo := row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo", cell{5, "2020-12-01"}, cell{13, "2021-03-01"})
	beta := row("BBB010101AA1", "500-05-2021-2", "BETA", "Presunto", cell{5, "2021-04-01"})
	f := newFixture(t)
	f.add(query.Sat69B, date(t, "2021-01-31"), presunto)
	f.add(query.Sat69B, date(t, "2021-04-30"), definitivo, beta)
	f.add(query.Sat69B, date(t, "2021-07-31"), beta)
	return f.open()
}

func TestVersionEnFecha(t *testing.T) {
	ed := chainOfThree(t)
	f := func(rfc, day, estado, situacion, corte string) {
		t.Helper()
		a := askOn(t, ed, rfc, day)
		if a.Past != day || a.List.Past == nil {
			t.Fatalf("%s %s: en_fecha = %q, %+v", rfc, day, a.Past, a.List.Past)
		}
		v := a.List.Past.Version
		got := ""
		for _, s := range v.Situaciones {
			got += s.Situacion
		}
		if v.Estado != estado || got != situacion || v.First != "2021-01-31" {
			t.Errorf("%s on %s: %+v", rfc, day, v)
		}
		if corte == "" && v.Fuente != nil || corte != "" && (v.Fuente["corte"] != corte || v.Fuente["fecha_de_orden"] != corte || v.Fuente["id"] != "sat_69b") {
			t.Errorf("%s on %s: fuente = %v", rfc, day, v.Fuente)
		}
		// What the newest version says stands beside it, as ever.
		if a.List.Fuente["corte"] != "2021-07-31" || (a.List.Estado == "COINCIDENCIA") != (rfc == "BBB010101AA1") {
			t.Errorf("%s on %s: %s, %v", rfc, day, a.List.Estado, a.List.Fuente)
		}
	}
	const yes, no, before = "COINCIDENCIA", "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA", "SIN_VERSION_EN_LA_FECHA"
	for _, rfc := range []string{"AAA010101AA1", "BBB010101AA1", "ZZZ010101AA1"} {
		f(rfc, "1900-01-01", before, "", "")
		f(rfc, "2021-01-30", before, "", "")
	}
	f("AAA010101AA1", "2021-01-31", yes, "Presunto", "2021-01-31")
	f("AAA010101AA1", "2021-04-29", yes, "Presunto", "2021-01-31")
	f("AAA010101AA1", "2021-04-30", yes, "Definitivo", "2021-04-30")
	f("AAA010101AA1", "2021-07-31", no, "", "2021-07-31")
	f("BBB010101AA1", "2021-04-29", no, "", "2021-01-31")
	f("BBB010101AA1", "2026-11-20", yes, "Presunto", "2021-07-31")
	f("ZZZ010101AA1", "2021-05-01", no, "", "2021-04-30")
}

func TestEfectiva(t *testing.T) {
	f := newFixture(t)
	f.add(query.Sat69B, date(t, "2026-05-31"),
		row("AAS110331G59", "500-05-2017-1", "ALFA // ANTES BETA", "Sentencia Favorable", cell{5, "2017-01-02"}, cell{13, "2018-01-02"}, cell{17, "2019-05-06"}),
		row("AAS110331G59", "500-05-2020-9", "ALFA", "Definitivo", cell{5, "2020-02-03"}, cell{12, "D-1"}, cell{13, "2020-08-09"}),
		row("AAS110331G59", "500-05-2021-9", "ALFA", "Presunto", cell{4, "sin fecha"}))
	f.add(query.Sat69BBis, date(t, "2026-03-12"), bisRow("AAS110331G59", "Definitivo", cell{7, "2024-02-20"}))
	ed := f.open()
	check := func(day, estado string, want ...effect) {
		t.Helper()
		got := askOn(t, ed, "AAS110331G59", day).List.Past.Effective
		if got.Estado != estado || len(got.Situaciones) != len(want) || got.Fuente["corte"] != "2026-05-31" {
			t.Fatalf("%s: %+v", day, got)
		}
		for i := range want {
			if got.Situaciones[i] != want[i] {
				t.Errorf("%s: %+v, want %+v", day, got.Situaciones[i], want[i])
			}
		}
	}
	unknown := effect{Motivo: "SIN_FECHAS_LEGIBLES", Nombre: "ALFA", Now: "Presunto"}
	sat := func(situacion, fecha, oficio, now string) effect {
		return effect{Situacion: situacion, Fecha: fecha, Origen: "PUBLICACION_SAT", Nombre: "ALFA", Oficio: oficio, Now: now}
	}
	check("2016-01-01", "INDETERMINADA", unknown)
	check("2018-06-01", "CON_SITUACION", sat("Definitivo", "2018-01-02", "", "Sentencia Favorable"), unknown)
	check("2020-03-01", "CON_SITUACION",
		sat("Presunto", "2020-02-03", "500-05-2020-9", "Definitivo"),
		sat("Sentencia Favorable", "2019-05-06", "", "Sentencia Favorable"), unknown)
	check("2026-11-20", "CON_SITUACION",
		sat("Definitivo", "2020-08-09", "D-1", "Definitivo"),
		sat("Sentencia Favorable", "2019-05-06", "", "Sentencia Favorable"), unknown)
	if got := askOn(t, ed, "ZZZ010101AA1", "2020-03-01").List.Past.Effective; got.Estado != "SIN_SITUACION" || len(got.Situaciones) != 0 || got.Fuente == nil {
		t.Errorf("an RFC that is not listed: %+v", got)
	}
	bis := askOn(t, ed, "AAS110331G59", "2024-02-20").Bis.Past
	if bis.Version.Estado != "SIN_VERSION_EN_LA_FECHA" || bis.Version.First != "2026-03-12" {
		t.Errorf("bis: version_en_fecha = %+v", bis.Version)
	}
	if e := bis.Effective; e.Estado != "CON_SITUACION" || e.Situaciones[0].Situacion != "Definitivo" || e.Situaciones[0].Origen != "PUBLICACION_DOF" {
		t.Errorf("bis: efectiva = %+v", e)
	}
}

// TestEfectivaOfWhoLeftTheList: rows that are gone say nothing of today, and that
// they once were there forbids to say that nothing was in effect.
func TestEfectivaOfWhoLeftTheList(t *testing.T) {
	left := row("AAA010101AA1", "500-05-2018-1", "ALFA // nota", "Sentencia Favorable", cell{5, "2017-05-01"}, cell{13, "2017-08-25"}, cell{17, "2020-03-05"})
	again := row("AAA010101AA1", "500-05-2022-7", "ALFA", "Presunto", cell{5, "2022-02-02"})
	beta := row("BBB010101AA1", "500-05-2021-2", "BETA", "Presunto", cell{5, "2021-04-01"})
	f := newFixture(t)
	f.add(query.Sat69B, date(t, "2021-05-18"), left, beta)
	check := func(day, estado string, want ...effect) {
		t.Helper()
		got := askOn(t, f.open(), "AAA010101AA1", day).List.Past.Effective
		if got.Estado != estado || !slices.Equal(got.Situaciones, want) {
			t.Errorf("%s: %+v", day, got)
		}
	}
	f.add(query.Sat69B, date(t, "2022-11-30"), beta)
	gone := effect{Motivo: "YA_NO_APARECE", Nombre: "ALFA"}
	check("2017-04-30", "SIN_SITUACION")
	check("2017-05-01", "INDETERMINADA", gone)
	check("2022-11-29", "INDETERMINADA", gone)
	check("2022-11-30", "SIN_SITUACION") // the list of that day does not have it
	// A new procedure tells its own part; the other one is still not told.
	f.add(query.Sat69B, date(t, "2023-07-25"), beta, again)
	check("2022-03-01", "CON_SITUACION",
		effect{Situacion: "Presunto", Fecha: "2022-02-02", Origen: "PUBLICACION_SAT", Nombre: "ALFA", Now: "Presunto", Oficio: "500-05-2022-7"}, gone)
	// Once it is back, it tells by its dates.
	f.add(query.Sat69B, date(t, "2024-07-25"), beta, left)
	check("2018-01-01", "CON_SITUACION",
		effect{Situacion: "Definitivo", Fecha: "2017-08-25", Origen: "PUBLICACION_SAT", Nombre: "ALFA", Now: "Sentencia Favorable"})
	if text, _ := answerTo(t, query.Company{RFC: rfcOf(t, "AAA010101AA1"), Past: date(t, "2022-03-01")}, f.open()); !bytes.Contains(text,
		[]byte(`{"fecha":null,"motivo":"YA_NO_APARECE","nombre":"ALFA","origen":null,"situacion":null,"situacion_en_la_version":null}`)) {
		t.Errorf("%s", text)
	}
}

// TestConocidaIsBounded: an acta is. What is left out is counted.
func TestConocidaIsBounded(t *testing.T) {
	var many []snapshots.Row
	for i := range 60 {
		many = append(many, row("AAA010101AA1", fmt.Sprintf("500-05-2018-%d", i), strings.Repeat("Ñ", 300), "Presunto"))
	}
	check := func(rows []snapshots.Row, least int) {
		t.Helper()
		f := newFixture(t)
		m := f.add(query.Sat69B, date(t, "2026-05-31"), rows...)
		s := f.open().Source("sat_69b")
		text, err := query.AppendConocida(nil, query.Company{RFC: rfcOf(t, "AAA010101AA1"), Past: date(t, "2026-06-20")}, func(source string) (*query.Served, error) {
			if source != "sat_69b" {
				return nil, nil
			}
			return &query.Served{Edition: 1, SHA256: m.SHA256, Published: m.Published, Entry: s.Entry(), Version: s.Version(), Find: s.Find}, nil
		})
		if err != nil || len(text) > 25<<10 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		if canonical, err := canon.Transform(text); err != nil || !bytes.Equal(canonical, text) {
			t.Fatalf("%v: %s", err, text)
		}
		var got struct {
			List struct {
				Estado      string
				Situaciones []situation
				Omitted     int `json:"situaciones_omitidas"`
			} `json:"sat_69b"`
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if l := got.List; l.Estado != "COINCIDENCIA" || len(l.Situaciones)+l.Omitted != len(rows) || len(l.Situaciones) < least ||
			bytes.Contains(text, []byte("omitidas")) != (l.Omitted > 0) {
			t.Errorf("%d of %d, %d left out", len(l.Situaciones), len(rows), l.Omitted)
		}
	}
	check(many[:3], 3)
	check(many, 5)
	check([]snapshots.Row{row("AAA010101AA1", "500-05-2018-1", strings.Repeat("Ñ", 100_000), "Presunto")}, 0)
}

// TestAPastDayIsTheSameWheneverAsked asks about one day on several days.
func TestAPastDayIsTheSameWheneverAsked(t *testing.T) {
	ed := chainOfThree(t)
	rfc, _ := checks.ParseRFC("AAA010101AA1")
	past := date(t, "2021-05-01")
	first, _, err := query.AppendRegistro(nil, query.Company{RFC: rfc, Past: past}, past, ed)
	if err != nil {
		t.Fatal(err)
	}
	for _, today := range []string{"2021-05-02", "2026-11-20", "2099-01-01"} {
		again, _, err := query.AppendRegistro(nil, query.Company{RFC: rfc, Past: past}, date(t, today), ed)
		if err != nil || !bytes.Equal(again, first) {
			t.Fatalf("on %s: %v\n%s\n%s", today, err, again, first)
		}
	}
	if !bytes.Contains(first, []byte(`"entrada":{"en_fecha":"2021-05-01","rfc":"AAA010101AA1","sancionados":false},"fecha":"2021-05-01"`)) {
		t.Errorf("header: %.200s", first)
	}
	if bytes.Contains(first, []byte("antiguedad_dias")) || bytes.Contains(first, []byte("desactualizada")) {
		t.Error("a version is called old in an answer about an earlier day")
	}
	h, err := query.ReadHeader(bytes.Replace(first, []byte(`"fecha":"2021-05-01"`), []byte(`"fecha":"2021-05-02"`), 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query.Recompute(h, ed); err == nil {
		t.Error("a registro with two days is recomputed")
	}
}

func TestAge(t *testing.T) {
	f := newFixture(t)
	alfa := row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")
	f.add(query.Sat69B, date(t, "2026-08-31"), alfa)
	f.add(query.Sat69BBis, date(t, "2026-08-31"), bisRow("AAA010101AA1", "Definitivo"))
	ed := f.open()
	check := func(today string, days float64, old, bisOld bool) {
		t.Helper()
		rfc, _ := checks.ParseRFC("AAA010101AA1")
		registro, _, err := query.AppendRegistro(nil, query.Company{RFC: rfc}, date(t, today), ed)
		if err != nil {
			t.Fatal(err)
		}
		a := read(t, registro)
		for _, b := range []struct {
			block
			old bool
		}{{a.List, old}, {a.Bis, bisOld}} {
			if b.Fuente["antiguedad_dias"] != days || b.Fuente["desactualizada"] != b.old || b.Estado != "COINCIDENCIA" {
				t.Errorf("%s: %s, %v", today, b.Estado, b.Fuente)
			}
		}
	}
	check("2026-08-30", -1, false, false)
	check("2026-10-30", 60, false, false)
	check("2026-10-31", 61, true, false)
	check("2027-10-05", 400, true, false)
	check("2027-10-06", 401, true, true)
}

// TestBis holds that the block is like the other one and decides no charge.
func TestBis(t *testing.T) {
	f := newFixture(t)
	f.add(query.Sat69BBis, date(t, "2025-06-13"), bisRow("AAA010101AA1", "Definitivo", cell{5, "2024-01-25"}))
	f.add(query.Sat69BBis, date(t, "2026-03-12"), bisRow("AAA010101AA1", "Sentencia Favorable", cell{5, "2024-01-25"}, cell{9, "2026-02-02"}))
	a, outcome := ask(t, f.open(), "AAA010101AA1")
	if want := (query.Outcome{Code: "SOURCE_UNAVAILABLE", Consulted: index.Set{1}}); outcome != want {
		t.Fatalf("without 69-B: %+v, want %+v", outcome, want)
	}
	if a.List.Estado != "SOURCE_NOT_LOADED" || a.Bis.Estado != "COINCIDENCIA" || a.Bis.Fuente["id"] != "sat_69b_bis" || a.Bis.Past != nil {
		t.Fatalf("bloques: %+v, %+v", a.List, a.Bis)
	}
	if s := a.Bis.Situaciones; len(s) != 1 || s[0].Situacion != "Sentencia Favorable" || s[0].Nombre != "BIS" || len(s[0].Detalle) != 12 {
		t.Fatalf("situaciones = %+v", s)
	}
	var got []string
	for _, e := range a.Bis.Eventos {
		got = append(got, e.Evento+" "+e.Fecha+" "+e.Situacion)
	}
	if want := "PUBLICACION_SAT 2024-01-25 Definitivo|INICIAL 2025-06-13 Definitivo|PUBLICACION_SAT 2026-02-02 Sentencia Favorable|UPDATED 2026-03-12 Sentencia Favorable"; strings.Join(got, "|") != want {
		t.Fatalf("eventos = %q", got)
	}
	f.add(query.Sat69B, date(t, "2026-05-31"), row("BBB010101AA1", "500-05-2018-1", "BETA", "Definitivo"))
	a, outcome = ask(t, f.open(), "AAA010101AA1")
	if want := (query.Outcome{Code: "COMPANY_OK", Charged: true, Consulted: index.Set{3}}); outcome != want {
		t.Fatalf("with both: %+v, want %+v", outcome, want)
	}
	if a.List.Estado != "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA" || a.Bis.Estado != "COINCIDENCIA" {
		t.Fatalf("bloques: %s, %s", a.List.Estado, a.Bis.Estado)
	}
}

func TestParseEnFecha(t *testing.T) {
	f := func(text string, ok bool) {
		t.Helper()
		if d, err := query.ParseEnFecha(text); (err == nil) != ok || ok && d.String() != text {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	f("1900-01-01", true)
	f("2024-02-29", true)
	f("9999-12-31", true)
	f("1899-12-31", false)
	f("2023-02-29", false)
	f("2021-6-1", false)
	f("2021-06-01T00:00:00", false)
	f("", false)
}

// TestRealVersionEnFecha asks the real lists of 2021, 2022 and 2023, in one
// chain, about days of each: the answer is that of the list in force.
func TestRealVersionEnFecha(t *testing.T) {
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "shared")
	}
	c, err := snapshots.OpenCatalogue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rfcs := map[checks.RFC]bool{}
	for i, name := range []string{
		"Listado_Completo_69-B_2021-05-18.csv.gz", "Listado_Completo_69-B_2022-11-30.csv.gz", "Listado_Completo_69-B_2023-07_no-preamble.csv.gz",
	} {
		file, err := os.Open(filepath.Join(root, "data", "mx-sources", "sat-69b", name))
		if errors.Is(err, fs.ErrNotExist) && !named {
			t.Skipf("no está la lista oficial %s: ponga COTEJO_SHARED", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		official, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		request := ingest.Request{
			Source: "sat_69b", Name: name, Now: time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC),
			Content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(official)), nil },
		}
		if i == 2 {
			request.Corte = date(t, "2023-07-31")
		}
		if r, err := ingest.Ingest(t.Context(), c, request); err != nil || r.Outcome != ingest.Activated {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		latin := make([]rune, len(official))
		for i, b := range official {
			latin[i] = rune(b)
		}
		for line := range strings.Lines(string(latin)) {
			if cells := strings.SplitN(line, ",", 3); len(cells) == 3 {
				if rfc, err := checks.ParseRFC(cells[1]); err == nil {
					rfcs[rfc] = true
				}
			}
		}
	}
	m, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	ed, err := c.OpenEdition(m)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	// count returns the rows by situation that all RFCs have on a day, in the
	// version in force and by the dates of the newest.
	count := func(day string) (version, effective map[string]int) {
		t.Helper()
		version, effective = map[string]int{}, map[string]int{}
		for rfc := range rfcs {
			registro, _, err := query.AppendRegistro(nil, query.Company{RFC: rfc, Past: date(t, day)}, civil.Date{}, ed)
			if err != nil {
				t.Fatal(err)
			}
			p := read(t, registro).List.Past
			for _, s := range p.Version.Situaciones {
				version[s.Situacion]++
			}
			for _, s := range p.Effective.Situaciones {
				effective[s.Situacion+s.Motivo]++
			}
		}
		return version, effective
	}
	f := func(day string, total, presunto int) {
		t.Helper()
		version, effective := count(day)
		rows := 0
		for _, n := range version {
			rows += n
		}
		if rows != total || version["Presunto"] != presunto {
			t.Errorf("%s: %v; want %d rows, %d Presunto", day, version, total, presunto)
		}
		// The dates of the newest list say nearly the same: it has new rows of old
		// procedures, and a ruling takes a version to be listed.
		if told := effective["Definitivo"]; told < version["Definitivo"]*99/100 || told > version["Definitivo"]*101/100 || effective["FECHAS_CONTRA_LA_SITUACION"] > 1 {
			t.Errorf("%s: by version %v, by date %v", day, version, effective)
		}
	}
	// What the list has in all, without its redacted rows.
	f("2021-06-01", 12505-87, 782-15)
	f("2022-12-31", 12666-86, 141-14)
	f("2023-08-01", 12686-87, 132-15)
}
