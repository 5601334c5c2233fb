package query_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/query"
	"cotejo/snapshots"
)

// cell sets one column of a synthetic row by position in query.Sat69B.
type cell struct {
	column int
	value  string
}

// row makes a row whose raw cells are decorated forms of its normalised ones.
func row(rfc, oficio, name, situacion string, cells ...cell) snapshots.Row {
	norm := make([]string, len(query.Sat69B.Columns))
	norm[0], norm[1], norm[2], norm[3], norm[4] = "1", rfc, name, situacion, oficio
	for _, c := range cells {
		norm[c.column] = c.value
	}
	raw := slices.Clone(norm)
	raw[2] = "  " + name
	return snapshots.Row{ID: []string{rfc, oficio}, Raw: raw, Norm: norm}
}

// bisRow is row in the layout of query.Sat69BBis.
func bisRow(rfc, situacion string, cells ...cell) snapshots.Row {
	norm := make([]string, len(query.Sat69BBis.Columns))
	norm[0], norm[1], norm[2], norm[3], norm[4] = "1", rfc, "BIS", situacion, "900-04-2024-80"
	for _, c := range cells {
		norm[c.column] = c.value
	}
	return snapshots.Row{ID: []string{rfc, norm[4]}, Raw: norm, Norm: norm}
}

func suppressed(digest string) snapshots.Row {
	r := row("XXXXXXXXXXXX", "500-05-2018-1", "Información suprimida", "Definitivo")
	r.ID, r.Suppressed = []string{"XXXXXXXXXXXX", digest}, true
	return r
}

// fixture is a catalogue that takes one version after another.
type fixture struct {
	t testing.TB
	c *snapshots.Catalogue
	n int // versions so far
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	c, err := snapshots.OpenCatalogue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, c: c}
}

// add publishes a version under a corte.
func (f *fixture) add(schema snapshots.Schema, corte civil.Date, rows ...snapshots.Row) snapshots.EditionManifest {
	f.t.Helper()
	unlock, err := f.c.Lock()
	if err != nil {
		f.t.Fatal(err)
	}
	defer unlock()
	s, err := f.c.Stage(schema.Source)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := s.Write([]byte{'v', byte('0' + f.n)}); err != nil {
		f.t.Fatal(err)
	}
	f.n++
	if err := s.Seal(); err != nil {
		f.t.Fatal(err)
	}
	s.Begin(schema)
	for _, r := range rows {
		if err := s.Add(r); err != nil {
			f.t.Fatal(err)
		}
	}
	now := time.Date(corte.Year, corte.Month+1, 15, 12, 0, 0, 0, time.UTC)
	v, err := s.Accept(snapshots.Origin{URL: "https://ejemplo.test/lista.csv", Corte: corte, Downloaded: now})
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := f.c.Publish(v, now)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// open opens the newest edition.
func (f *fixture) open() *snapshots.Edition {
	f.t.Helper()
	m, err := f.c.LatestEdition()
	if err != nil {
		f.t.Fatal(err)
	}
	ed, err := f.c.OpenEdition(m)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(ed.Release)
	return ed
}

// publish makes one edition of the 69-B list after another, a month apart, and
// opens the last.
func publish(t testing.TB, versions ...[]snapshots.Row) *snapshots.Edition {
	t.Helper()
	f := newFixture(t)
	for i, rows := range versions {
		f.add(query.Sat69B, civil.Date{Year: 2026, Month: time.Month(1 + i), Day: 28}, rows...)
	}
	return f.open()
}

// answer is what the tests read of a resultado.
type answer struct {
	RFC          string
	Tipo         string                   `json:"tipo_persona"`
	Code         string                   `json:"result_code"`
	Sancionados  *struct{ Estado string } `json:"proveedores_sancionados"`
	Contratacion struct {
		Estado    string
		Contratos *int
	} `json:"contratacion_publica"`
	Art69 struct{ Estado string } `json:"sat_art69"`
	List  block                   `json:"sat_69b"`
	Bis   block                   `json:"sat_69b_bis"`
	Past  string                  `json:"en_fecha"`
}

type block struct {
	Estado      string
	Fuente      map[string]any
	Situaciones []situation
	Eventos     []event `json:"historial_eventos"`
	Past        *past   `json:"en_fecha"`
}

type situation struct {
	Situacion, Nombre, Anotacion string
	Detalle                      map[string]string
}

type past struct {
	Version struct {
		Estado      string
		Fuente      map[string]any
		First       string `json:"primera_version"`
		Situaciones []situation
	} `json:"version_en_fecha"`
	Effective struct {
		Estado      string
		Fuente      map[string]any
		Situaciones []effect
	} `json:"efectiva"`
}

type effect struct {
	Situacion, Fecha, Origen, Motivo, Nombre, Oficio string
	Now                                              string `json:"situacion_en_la_version"`
}

type event struct {
	Evento, Fecha, Origen, Situacion, Oficio, Motivo string
	Anterior                                         string `json:"situacion_anterior"`
	Columnas                                         []string
}

var day = civil.Date{Year: 2026, Month: 11, Day: 20}

func askRaw(t testing.TB, ed *snapshots.Edition, rfc string) ([]byte, query.Outcome) {
	t.Helper()
	parsed, err := checks.ParseRFC(rfc)
	if err != nil {
		t.Fatal(err)
	}
	return answerTo(t, query.Company{RFC: parsed, Sanciones: true}, ed)
}

// answerTo returns the registro and checks what holds for every answer: canonical
// bytes, the same when computed again from what the registro itself says, and a note
// that says what it says. The outcome is returned without the note.
func answerTo(t testing.TB, q query.Company, ed *snapshots.Edition) ([]byte, query.Outcome) {
	t.Helper()
	registro, outcome, err := query.AppendRegistro(nil, q, day, ed)
	if err != nil {
		t.Fatal(err)
	}
	if canonical, err := canon.Transform(registro); err != nil || !bytes.Equal(canonical, registro) {
		t.Fatalf("el registro no es canónico (%v):\n%s\n%s", err, registro, canonical)
	}
	header, err := query.ReadHeader(registro)
	if err != nil {
		t.Fatal(err)
	}
	again, err := query.Recompute(header, ed)
	if err != nil || !bytes.Equal(again, registro) {
		t.Fatalf("recalculado difiere (%v):\n%s\n%s", err, registro, again)
	}
	checkBrief(t, registro, &outcome)
	outcome.Note = query.Note{} // it says nothing that the registro does not
	return registro, outcome
}

func ask(t testing.TB, ed *snapshots.Edition, rfc string) (a answer, outcome query.Outcome) {
	t.Helper()
	registro, outcome := askRaw(t, ed, rfc)
	return read(t, registro), outcome
}

func read(t testing.TB, registro []byte) (a answer) {
	t.Helper()
	parts, ok := query.Split(registro)
	if !ok {
		t.Fatalf("sin resultado: %s", registro)
	}
	if err := json.Unmarshal(parts.Resultado, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCleanRFC(t *testing.T) {
	ed := publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")})
	a, outcome := ask(t, ed, "ZZZ010101AA1")
	if want := (query.Outcome{Code: "COMPANY_OK", Charged: true, Consulted: index.Set{1}}); outcome != want {
		t.Fatalf("outcome = %+v, se esperaba %+v", outcome, want)
	}
	if a.List.Estado != "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA" || len(a.List.Situaciones) != 0 || len(a.List.Eventos) != 0 {
		t.Fatalf("sat_69b = %+v", a.List)
	}
	if a.Tipo != "moral" || a.RFC != "ZZZ010101AA1" || a.Code != "COMPANY_OK" {
		t.Fatalf("resultado = %+v", a)
	}
	if got := a.List.Fuente["registros_en_version"]; got != 1.0 {
		t.Fatalf("registros_en_version = %v", got)
	}
	// Where the bytes came from is this installation's business, not the answer's.
	if _, has := a.List.Fuente["url"]; has {
		t.Fatal("fuente names an url")
	}
}

func TestBlocksOfOtherSourcesClaimNothing(t *testing.T) {
	ed := publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")})
	a, _ := ask(t, ed, "AAA010101AA1")
	if a.Art69.Estado != "SOURCE_NOT_LOADED" || a.Contratacion.Estado != "SOURCE_NOT_LOADED" || a.Contratacion.Contratos != nil {
		t.Fatalf("bloques = %+v", a)
	}
	if a.Sancionados == nil || a.Sancionados.Estado != "SOURCE_UNAVAILABLE" {
		t.Fatalf("proveedores_sancionados = %+v", a.Sancionados)
	}
	rfc, _ := checks.ParseRFC("AAA010101AA1")
	registro, _, err := query.AppendRegistro(nil, query.Company{RFC: rfc}, day, ed)
	if err != nil || !bytes.Contains(registro, []byte(`"proveedores_sancionados":null`)) {
		t.Fatalf("sancionados=false: %v %s", err, registro)
	}
}

// nothing is an edition without sources.
func nothing(t *testing.T) *snapshots.Edition {
	t.Helper()
	c, err := snapshots.OpenCatalogue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	live, err := snapshots.NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	ed := live.Acquire()
	t.Cleanup(func() {
		ed.Release()
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	})
	return ed
}

func TestNotLoadedIsNeitherMatchNorCharged(t *testing.T) {
	ed := nothing(t)
	a, outcome := ask(t, ed, "AAA010101AA1")
	if want := (query.Outcome{Code: "SOURCE_UNAVAILABLE"}); outcome != want {
		t.Fatalf("outcome = %+v, se esperaba %+v", outcome, want)
	}
	if a.List.Estado != "SOURCE_NOT_LOADED" || a.List.Fuente != nil || a.Code != "SOURCE_UNAVAILABLE" {
		t.Fatalf("resultado = %+v", a)
	}
}

func TestSituationsNewestProcedureFirst(t *testing.T) {
	ed := publish(t, []snapshots.Row{
		row("AAS110331G59", "500-05-2017-1", "ALFA // ANTES BETA", "Sentencia Favorable",
			cell{5, "2017-01-02"}, cell{17, "2019-05-06"}),
		row("AAS110331G59", "500-05-2020-9", "ALFA", "Definitivo", cell{5, "2020-02-03"}, cell{13, "2020-08-09"}),
	})
	a, _ := ask(t, ed, "AAS110331G59")
	if a.List.Estado != "COINCIDENCIA" || len(a.List.Situaciones) != 2 {
		t.Fatalf("sat_69b = %+v", a.List)
	}
	first, second := a.List.Situaciones[0], a.List.Situaciones[1]
	if first.Situacion != "Definitivo" || second.Situacion != "Sentencia Favorable" {
		t.Fatalf("orden: %s, %s", first.Situacion, second.Situacion)
	}
	if second.Nombre != "ALFA" || second.Anotacion != "ANTES BETA" {
		t.Fatalf("nombre = %q, anotación = %q", second.Nombre, second.Anotacion)
	}
	if got := second.Detalle["Nombre del Contribuyente"]; got != "  ALFA // ANTES BETA" {
		t.Fatalf("detalle no guarda lo publicado: %q", got)
	}
	if len(second.Detalle) != 20 {
		t.Fatalf("detalle tiene %d columnas", len(second.Detalle))
	}
}

func TestStageDatesAreEventsOfTheirOwnOrigin(t *testing.T) {
	ed := publish(t, []snapshots.Row{row("AAA010101AA1",
		"500-05-2018-2 de 2018-06-01 // 500-05-2017-1 de 2017-03-04", "ALFA", "Definitivo",
		cell{5, "2018-06-02 2017-03-05"}, cell{7, "2018-07-01"}, cell{13, "2018-09-30 texto"},
	)})
	a, _ := ask(t, ed, "AAA010101AA1")
	var got []event
	for _, e := range a.List.Eventos {
		if e.Origen == "FECHAS_OFICIALES" {
			got = append(got, e)
		}
	}
	want := []event{
		{Evento: "PUBLICACION_SAT", Fecha: "2017-03-05", Situacion: "Presunto", Oficio: "500-05-2017-1 de 2017-03-04"},
		{Evento: "PUBLICACION_SAT", Fecha: "2018-06-02", Situacion: "Presunto", Oficio: "500-05-2018-2 de 2018-06-01"},
		{Evento: "PUBLICACION_DOF", Fecha: "2018-07-01", Situacion: "Presunto"},
		{Evento: "PUBLICACION_SAT", Fecha: "2018-09-30", Situacion: "Definitivo"},
	}
	if len(got) != len(want) {
		t.Fatalf("eventos = %+v", got)
	}
	for i := range want {
		want[i].Origen = "FECHAS_OFICIALES"
		if got[i].Evento != want[i].Evento || got[i].Fecha != want[i].Fecha || got[i].Oficio != want[i].Oficio || got[i].Situacion != want[i].Situacion {
			t.Fatalf("evento %d = %+v, se esperaba %+v", i, got[i], want[i])
		}
	}
}

func TestVersionEventsTellTheSituationOfTheirTime(t *testing.T) {
	at := func(situacion string, cells ...cell) []snapshots.Row {
		return []snapshots.Row{
			row("AAA010101AA1", "500-05-2018-1", "ALFA", situacion, cells...),
			row("BBB010101AA1", "500-05-2018-2", "BETA", "Definitivo"),
		}
	}
	ed := publish(t, at("Presunto"), at("Definitivo"), at("Definitivo", cell{7, "2018-07-01"}), at("Sentencia Favorable", cell{7, "2018-07-01"}), at("Definitivo", cell{7, "2018-07-01"}))
	a, _ := ask(t, ed, "AAA010101AA1")
	var got []event
	for _, e := range a.List.Eventos {
		if e.Origen == "VERSIONES" {
			got = append(got, e)
		}
	}
	want := []event{
		{Evento: "INICIAL", Fecha: "2026-01-28", Situacion: "Presunto"},
		{Evento: "UPDATED", Fecha: "2026-02-28", Situacion: "Definitivo", Anterior: "Presunto", Columnas: []string{"Situación del contribuyente"}},
		{Evento: "UPDATED", Fecha: "2026-03-28", Situacion: "Definitivo", Anterior: "Definitivo", Columnas: []string{"Publicación DOF presuntos"}},
		{Evento: "UPDATED", Fecha: "2026-04-28", Situacion: "Sentencia Favorable", Anterior: "Definitivo", Columnas: []string{"Situación del contribuyente"}},
		{Evento: "UPDATED", Fecha: "2026-05-28", Situacion: "Definitivo", Anterior: "Sentencia Favorable", Columnas: []string{"Situación del contribuyente"}},
	}
	if len(got) != len(want) {
		t.Fatalf("eventos = %+v", got)
	}
	for i, w := range want {
		g := got[i]
		if g.Evento != w.Evento || g.Fecha != w.Fecha || g.Situacion != w.Situacion || g.Anterior != w.Anterior || !slices.Equal(g.Columnas, w.Columnas) {
			t.Fatalf("evento %d = %+v, se esperaba %+v", i, g, w)
		}
	}
}

func TestARowThatLeftIsToldAndIsNoMatch(t *testing.T) {
	alfa := row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")
	beta := row("BBB010101AA1", "500-05-2018-2", "BETA", "Presunto")
	ed := publish(t, []snapshots.Row{alfa, beta}, []snapshots.Row{beta, suppressed("d1")}, []snapshots.Row{beta, alfa, suppressed("d1")}, []snapshots.Row{beta, suppressed("d1")})
	a, outcome := ask(t, ed, "AAA010101AA1")
	if a.List.Estado != "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA" || !outcome.Charged {
		t.Fatalf("estado = %s", a.List.Estado)
	}
	want := []event{
		{Evento: "INICIAL", Fecha: "2026-01-28"},
		{Evento: "REMOVED", Fecha: "2026-02-28", Motivo: "SUPRIMIDO_POSIBLE"},
		{Evento: "ADDED", Fecha: "2026-03-28"},
		{Evento: "REMOVED", Fecha: "2026-04-28"},
	}
	if len(a.List.Eventos) != len(want) {
		t.Fatalf("eventos = %+v", a.List.Eventos)
	}
	for i, w := range want {
		g := a.List.Eventos[i]
		if g.Evento != w.Evento || g.Fecha != w.Fecha || g.Motivo != w.Motivo || g.Situacion != "Definitivo" {
			t.Fatalf("evento %d = %+v, se esperaba %+v", i, g, w)
		}
	}
}

func TestMissesDoNotAllocate(t *testing.T) {
	ed := publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")})
	rfc, err := checks.ParseRFC("ZZZ010101AA1")
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 8<<10)
	var q query.Question = query.Company{RFC: rfc, Sanciones: true}
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := query.AppendRegistro(dst, q, day, ed); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v asignaciones por consulta limpia", n)
	}
}

func TestSplit(t *testing.T) {
	f := func(registro, edition, motor, resultado string) {
		t.Helper()
		got, ok := query.Split([]byte(registro))
		if !ok || string(got.Edition) != edition || string(got.Motor) != motor || string(got.Resultado) != resultado {
			t.Fatalf("%s: %s, %s, %s, %v", registro, got.Edition, got.Motor, got.Resultado, ok)
		}
	}
	f(`{"edicion_sha256":"e","motor":"M/1","resultado":{}}`, `"e"`, `"M/1"`, `{}`)
	// What the client sent, or a live service answered, cannot pass for a member.
	f(`{"edicion_sha256":"e","entrada":{"a":"\"resultado\":{,\"motor\":\"X\"","motor":"X","resultado":{"x":1}},"motor":"M/1","observado":[{"resultado":2},"motor","motor",":"],"resultado":{"y":[3]}}`,
		`"e"`, `"M/1"`, `{"y":[3]}`)

	bad := func(registro string) {
		t.Helper()
		if got, ok := query.Split([]byte(registro)); ok {
			t.Fatalf("%s: %s", registro, got.Resultado)
		}
	}
	bad(``)
	bad(`{}`)
	bad(`{"a":1}`)
	bad(`{"resultado":{}}`)
	bad(`{"edicion_sha256":"e","resultado":{}}`)
	bad(`{"edicion_sha256":"e","motor":"M/1"}`)
	bad(`["edicion_sha256","e","motor","M/1","resultado",1]`)
	bad(`{"edicion_sha256":"e","motor":"M/1","resultado":{}` + "\n")
}

// Official cells are text from outside. A registro stays canonical JSON, and what
// is no day makes no event.
func TestHostileCells(t *testing.T) {
	f := func(published string, days ...string) {
		t.Helper()
		ed := publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA // \"nota\"", "Definitivo", cell{5, published}, cell{4, `of"icio\`})})
		a, _ := ask(t, ed, "AAA010101AA1")
		var got []string
		for _, e := range a.List.Eventos {
			if e.Origen == "FECHAS_OFICIALES" {
				got = append(got, e.Fecha)
			}
		}
		if !slices.Equal(got, days) {
			t.Fatalf("%q: %q", published, got)
		}
	}
	f(`20"1-05-18`)
	f(`2018-05-1"`)
	f(`2018-05-1\`)
	f("2018-05-\x00\x01 2018-05-18", "2018-05-18")
	f("2018-02-30")
	f("2018-13-01 ????-??-??")
	f("2018-0Ñ-18")
	f("2018-05-182018-05-19")
}

func TestChargeable(t *testing.T) {
	f := func(ed *snapshots.Edition, want bool) {
		t.Helper()
		q := query.Company{}
		_, outcome, err := q.AppendResultado(nil, day, ed)
		if got := q.Chargeable(ed); err != nil || got != want || outcome.Charged != want {
			t.Fatalf("Chargeable = %v, Charged = %v, %v", got, outcome.Charged, err)
		}
	}
	f(publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")}), true)
	f(nothing(t), false)
}

// TestGoldenAnswers fails when answers change without a new motor: raise
// COMPANY/n and update the hash together.
func TestGoldenAnswers(t *testing.T) {
	alfa := func(name, situacion string, cells ...cell) snapshots.Row {
		return row("AAA010101AA1", "500-05-2018-1 de fecha 2018-06-01 // 500-05-2017-9 de fecha 2017-03-04", name, situacion, cells...)
	}
	presunto := []cell{{5, "2018-06-02 2017-03-05"}, {6, "500-05-2018-1 de 2018-06-01"}, {7, "2018-07-01 2017-04-01"}}
	definitivo := append(slices.Clone(presunto), cell{12, "500-05-2018-7"}, cell{13, "2018-09-30 texto"}, cell{15, "2018-10-01"})
	again := row("AAA010101AA1", "500-05-2021-3", "ALFA", "Desvirtuado", cell{5, "2021-01-05"}, cell{9, "2021-06-07"})
	gone := row("LAC010101AA1", "500-05-2019-4", "BAJA", "Sentencia Favorable", cell{17, "2020-02-02"})
	hidden := row("SUP010101AA1", "500-05-2019-5", "SUPRIMIDA", "Definitivo")
	named := row("ÑA&010101AA1", "500-05-2018-2", "BETA “Ñ”\n // nota \"x\" \\ ", "Situación nueva")
	person := row("PEFI800101AA1", "500-05-2022-1", "PERSONA FÍSICA", "Presunto", cell{5, "no es fecha"})
	ed := publish(t,
		[]snapshots.Row{alfa("ALFA", "Presunto", presunto...), gone, hidden, named},
		[]snapshots.Row{alfa("ALFA SA DE CV // ANTES ALFA", "Definitivo", definitivo...), named, suppressed("d1"), gone},
		[]snapshots.Row{alfa("ALFA SA DE CV // ANTES ALFA", "Definitivo", definitivo...), again, named, suppressed("d1"), person},
	)
	losses := newFixture(t)
	losses.add(query.Sat69BBis, civil.Date{Year: 2025, Month: 6, Day: 13}, bisRow("AAA010101AA1", "Definitivo", cell{5, "2024-01-25"}, cell{7, "2024-02-20"}))
	losses.add(query.Sat69BBis, civil.Date{Year: 2026, Month: 3, Day: 12}, bisRow("AAA010101AA1", "Sentencia Favorable", cell{5, "2024-01-25"}, cell{9, "2026-02-02"}))
	credits := newFixture(t)
	credits.add(query.Sat69B, civil.Date{Year: 2026, Month: 1, Day: 28}, person)
	firmes, seals := art69List(t, "FIRMES"), art69List(t, "CSD_SIN_EFECTOS")
	firm := art69Row(firmes, "AAA010101AA1", "ALFA \"SA\"", "moral", "FIRMES", "2014-01-01", "X")
	credits.add(firmes.Schema, civil.Date{Year: 2026, Month: 1, Day: 28}, firm, firm, art69Row(firmes, "PEFI800101AA1", "PERSONA", "", "", "", ""))
	credits.add(firmes.Schema, civil.Date{Year: 2026, Month: 3, Day: 28}, firm, art69Row(firmes, "LAC010101AA1", "BAJA", "moral", "FIRMES", "2014-01-01", "X"))
	credits.add(seals.Schema, civil.Date{Year: 2026, Month: 3, Day: 28}, art69Row(seals, "AAA010101AA1", "ALFA", "FRACCION X", "2024-01-05", "AGR", "2024-07-23"))
	sum := sha256.New()
	var corpus []byte
	add := func(registro []byte, _ query.Outcome) {
		sum.Write(registro)
		corpus = append(corpus, registro...)
	}
	for _, rfc := range []string{
		"AAA010101AA1", "LAC010101AA1", "SUP010101AA1", "ÑA&010101AA1", "PEFI800101AA1", // listed, or once
		"ZZZ010101AA1", "ZZZZ010101AA1", // not
	} {
		parsed, err := checks.ParseRFC(rfc)
		if err != nil {
			t.Fatal(err)
		}
		add(answerTo(t, query.Company{RFC: parsed, Sanciones: true}, ed))
		add(answerTo(t, query.Company{RFC: parsed}, ed))
		add(answerTo(t, query.Company{RFC: parsed, Sanciones: true}, nothing(t)))
		add(answerTo(t, query.Company{RFC: parsed}, losses.open()))
		add(answerTo(t, query.Company{RFC: parsed}, credits.open()))
		for _, d := range []civil.Date{{Year: 2017, Month: 6, Day: 1}, {Year: 2019, Month: 1, Day: 1}, {Year: 2026, Month: 2, Day: 28}, day} {
			add(answerTo(t, query.Company{RFC: parsed, Past: d}, ed))
			add(answerTo(t, query.Company{RFC: parsed, Past: d}, losses.open()))
			add(answerTo(t, query.Company{RFC: parsed, Past: d}, credits.open()))
		}
	}
	for _, word := range []string{
		`"INICIAL"`, `"ADDED"`, `"UPDATED"`, `"REMOVED"`, `"motivo":"SUPRIMIDO_POSIBLE"`, `"anotacion":`, `"columnas":`, `"oficio":`,
		`"situacion_anterior":`, `"PUBLICACION_SAT"`, `"PUBLICACION_DOF"`, `"proveedores_sancionados":null`, `"SOURCE_NOT_LOADED"`,
		`"SOURCE_UNAVAILABLE"`, `"fisica"`, `"situacion":"Situación nueva"`, `"desactualizada":true`, `"desactualizada":false`,
		`"SIN_VERSION_EN_LA_FECHA"`, `"CON_SITUACION"`, `"SIN_SITUACION"`, `"INDETERMINADA"`, `"SIN_FECHAS_LEGIBLES"`, `"YA_NO_APARECE"`,
		`"lista":"FIRMES"`, `"en_lista":false`, `"en_lista":true`, `"tipo_persona_derivado":true`, `"fundamento_verificado":false`, `"listas_sin_version":[{`,
	} {
		if !bytes.Contains(corpus, []byte(word)) {
			t.Errorf("el corpus no contiene %s", word)
		}
	}
	got := hex.EncodeToString(sum.Sum(nil)) + "\n"
	golden := filepath.Join("testdata", "company_4.sha256")
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Fatalf("las respuestas de COMPANY/4 cambiaron (%v): %s", err, got)
	}
}
