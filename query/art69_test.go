package query_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/query"
	"cotejo/snapshots"
)

func art69List(t testing.TB, code string) *query.Art69List {
	t.Helper()
	for i := range query.Art69Lists {
		if query.Art69Lists[i].Code == code {
			return &query.Art69Lists[i]
		}
	}
	t.Fatalf("no hay lista %s", code)
	return nil
}

// art69Row is a row of a list whose normalised cells are given in the order of its
// columns; the raw ones are in lower case.
func art69Row(l *query.Art69List, cells ...string) snapshots.Row {
	norm := slices.Clone(cells)
	for len(norm) < len(l.Schema.Columns) {
		norm = append(norm, "")
	}
	r := snapshots.Row{Norm: norm, Raw: make([]string, len(norm))}
	for i, n := range norm {
		r.Raw[i] = strings.ToLower(n)
		if l.Schema.Columns[i].Name == "RFC" {
			r.ID = []string{n, strings.Join(norm, "|")}
		}
	}
	return r
}

type art69Block struct {
	Advertencia string
	Estado      string
	Listas      []art69Item
	Eventos     []struct {
		Evento, Lista, Fecha string
		Registros            int
		EnLista              bool `json:"en_lista"`
	} `json:"historial_eventos"`
	Consultadas []map[string]any    `json:"listas_consultadas"`
	Faltan      []map[string]string `json:"listas_no_cargadas"`
	Past        *struct {
		Version struct {
			Estado      string
			Listas      []art69Item
			Consultadas []map[string]any    `json:"listas_consultadas"`
			SinVersion  []map[string]string `json:"listas_sin_version"`
		} `json:"version_en_fecha"`
	} `json:"en_fecha"`
}

type art69Item struct {
	Lista, Nombre, Fundamento string
	Etiqueta                  string              `json:"etiqueta_oficial"`
	EtiquetaVerificada        *bool               `json:"etiqueta_verificada"`
	FundamentoVerificado      *bool               `json:"fundamento_verificado"`
	Tipo                      string              `json:"tipo_persona"`
	Derivado                  *bool               `json:"tipo_persona_derivado"`
	Registros                 []map[string]string `json:"registros_oficiales"`
	Omitidos                  int                 `json:"registros_omitidos"`
}

func art69Of(t testing.TB, ed *snapshots.Edition, rfc, past string) (art69Block, query.Outcome) {
	t.Helper()
	parsed, err := checks.ParseRFC(rfc)
	if err != nil {
		t.Fatal(err)
	}
	q := query.Company{RFC: parsed}
	if past != "" {
		q.Past = date(t, past)
	}
	registro, outcome := answerTo(t, q, ed)
	parts, _ := query.Split(registro)
	var a struct {
		Block art69Block `json:"sat_art69"`
	}
	if err := json.Unmarshal(parts.Resultado, &a); err != nil {
		t.Fatal(err)
	}
	return a.Block, outcome
}

// events tells events as text.
func (b *art69Block) events() string {
	var all []string
	for _, e := range b.Eventos {
		all = append(all, fmt.Sprintf("%s %s %s %d %t", e.Fecha, e.Lista, e.Evento, e.Registros, e.EnLista))
	}
	return strings.Join(all, "|")
}

// TestArt69NotLoaded: no list that was not consulted is ever «no match».
func TestArt69NotLoaded(t *testing.T) {
	b, outcome := art69Of(t, nothing(t), "FIR010101AA1", "")
	if b.Estado != "SOURCE_NOT_LOADED" || len(b.Consultadas) != 0 || len(b.Faltan) != 14 || outcome.Consulted != (index.Set{}) || outcome.Charged {
		t.Errorf("%+v %+v", b, outcome)
	}
	if b.Faltan[0]["id"] != "sat_art69_firmes" || b.Faltan[0]["lista"] != "FIRMES" {
		t.Errorf("%v", b.Faltan[0])
	}
	f := newFixture(t)
	firmes := art69List(t, "FIRMES")
	f.add(firmes.Schema, day, art69Row(firmes, "FIR010101AA1", "X", "moral", "FIRMES", "2026-01-01", "SONORA"))
	b, outcome = art69Of(t, f.open(), "ZZZ010101AA1", "")
	if b.Estado != "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA" || len(b.Consultadas) != 1 || len(b.Faltan) != 13 || !strings.Contains(b.Advertencia, "listas_no_cargadas") {
		t.Errorf("%+v", b)
	}
	for _, missing := range b.Faltan {
		if missing["lista"] == "FIRMES" || missing["lista"] == "ELIMINADOS" {
			t.Errorf("%v", missing)
		}
	}
	// The lists under article 69 are no reason to charge: that of article 69-B is.
	if outcome.Charged || outcome.Code != "SOURCE_UNAVAILABLE" || outcome.Consulted != (index.Set{1}) {
		t.Errorf("%+v", outcome)
	}
	for i := range query.Art69Lists {
		if l := &query.Art69Lists[i]; l.Code != "FIRMES" {
			f.add(l.Schema, day, everyColumn(l, "FIR010101AA1"))
		}
	}
	b, outcome = art69Of(t, f.open(), "ZZZ010101AA1", "")
	if len(b.Consultadas) != 15 || len(b.Faltan) != 0 || strings.Contains(b.Advertencia, "no_cargadas") || outcome.Consulted != (index.Set{1<<15 - 1}) {
		t.Errorf("%+v %+v", b, outcome)
	}
}

// everyColumn is a row with a day in every cell but the RFC, the person type and the name.
func everyColumn(l *query.Art69List, rfc string) snapshots.Row {
	var cells []string
	for _, c := range l.Schema.Columns {
		switch name := strings.ToUpper(c.Name); {
		case name == "RFC":
			cells = append(cells, rfc)
		case strings.HasPrefix(name, "TIPO"):
			cells = append(cells, "")
		case strings.Contains(name, "SOCIAL"), name == "CONTRIBUYENTE":
			cells = append(cells, "ALFA  "+l.Code)
		default:
			cells = append(cells, "2026-01-01")
		}
	}
	return art69Row(l, cells...)
}

// TestArt69Items: every list tells its name, its ground, how sure both are, and the
// official columns as published.
func TestArt69Items(t *testing.T) {
	f := newFixture(t)
	for i := range query.Art69Lists {
		f.add(query.Art69Lists[i].Schema, day, everyColumn(&query.Art69Lists[i], "FIR010101AA1"))
	}
	b, _ := art69Of(t, f.open(), "FIR010101AA1", "")
	if b.Estado != "COINCIDENCIA" || len(b.Listas) != len(query.Art69Lists) || b.events() != "" {
		t.Fatalf("%+v", b)
	}
	for i, item := range b.Listas {
		l := &query.Art69Lists[i]
		if item.Lista != l.Code || item.Etiqueta != l.Label || item.Fundamento != l.Basis || l.Label == "" || l.Basis == "" ||
			*item.EtiquetaVerificada != l.LabelSeen || *item.FundamentoVerificado != l.BasisSeen {
			t.Errorf("%+v", item)
		}
		if item.Nombre != "alfa "+strings.ToLower(l.Code) || item.Tipo != "moral" || !*item.Derivado || len(item.Registros) != 1 || len(item.Registros[0]) != len(l.Schema.Columns) {
			t.Errorf("%+v", item)
		}
		if item.Registros[0]["RFC"] != "fir010101aa1" {
			t.Errorf("not as published: %v", item.Registros[0])
		}
	}
	if *b.Listas[0].FundamentoVerificado {
		t.Error("the ground of Firmes was never seen in the list")
	}
}

// TestArt69PersonType is as published, and else told by the length of the RFC.
func TestArt69PersonType(t *testing.T) {
	firmes, seals := art69List(t, "FIRMES"), art69List(t, "CSD_SIN_EFECTOS")
	fx := newFixture(t)
	fx.add(firmes.Schema, day,
		art69Row(firmes, "FIR010101AA1", "A", "moral", "FIRMES", "2026-01-01", "X"),
		art69Row(firmes, "PEFI800101AA1", "B", "", "", "2026-01-01", "X"),
		art69Row(firmes, "PEFI800101AA1", "B", "fisica", "FIRMES", "2025-01-01", "X"),
		art69Row(firmes, "NOLO010101AA1", "C", "FIDEICOMISO", "FIRMES", "2026-01-01", "X"))
	fx.add(seals.Schema, day, art69Row(seals, "PEFI800101AA1", "D", "FRACCION X", "2026-01-01", "AGR", "2026-01-01"))
	ed := fx.open()
	f := func(rfc string, item int, tipo string, derived bool) {
		t.Helper()
		b, _ := art69Of(t, ed, rfc, "")
		if got := b.Listas[item]; got.Tipo != tipo || *got.Derivado != derived {
			t.Errorf("%s: %s %v", rfc, got.Tipo, *got.Derivado)
		}
	}
	f("FIR010101AA1", 0, "moral", false)
	f("PEFI800101AA1", 0, "fisica", false) // one of its rows says so
	f("PEFI800101AA1", 1, "fisica", true)
	f("NOLO010101AA1", 0, "fisica", true)
}

// TestArt69Records: the newest first, whatever their order in the file, and no more
// than an answer can hold.
func TestArt69Records(t *testing.T) {
	l := art69List(t, "ENTES_PUBLICOS_OMISOS")
	var rows []snapshots.Row
	for i := range 205 {
		rows = append(rows, art69Row(l, "MUN010101AA1", "MUNICIPIO", "FRACCION VII", "2024", fmt.Sprintf("P%03d", i), fmt.Sprintf("2026-01-%02d", 1+i%28)))
	}
	slices.Reverse(rows[:100])
	f := newFixture(t)
	f.add(l.Schema, day, rows...)
	b, _ := art69Of(t, f.open(), "MUN010101AA1", "")
	item := b.Listas[0]
	if len(item.Registros) != 200 || item.Omitidos != 5 {
		t.Fatalf("%d, %d left out", len(item.Registros), item.Omitidos)
	}
	for i := range item.Registros[1:] {
		a, b := item.Registros[i], item.Registros[i+1]
		if first, second := a["FECHA DE PRIMERA PUBLICACION"], b["FECHA DE PRIMERA PUBLICACION"]; first < second || first == second && a["PERIODO"] > b["PERIODO"] {
			t.Fatalf("%v before %v", a, b)
		}
	}
}

// TestArt69Events: what entered and what left, row by row, and whether the RFC was
// still there.
func TestArt69Events(t *testing.T) {
	firmes, exigibles := art69List(t, "FIRMES"), art69List(t, "EXIGIBLES")
	one := art69Row(firmes, "FIR010101AA1", "A", "moral", "FIRMES", "2014-01-01", "X")
	two := art69Row(firmes, "FIR010101AA1", "A", "moral", "FIRMES", "2025-01-01", "X")
	other := art69Row(firmes, "OTR010101AA1", "B", "moral", "FIRMES", "2025-01-01", "X")
	f := newFixture(t)
	in := func(month int) civil.Date { return date(t, fmt.Sprintf("2026-%02d-10", month)) }
	f.add(firmes.Schema, in(1), one, one, other)
	f.add(firmes.Schema, in(2), one, other)      // of two equal rows one left
	f.add(firmes.Schema, in(3), two, two, other) // another two in its place
	f.add(firmes.Schema, in(4), other)           // gone
	f.add(firmes.Schema, in(6), other, one)      // back
	f.add(exigibles.Schema, in(1), art69Row(exigibles, "OTR010101AA1", "B", "moral", "EXIGIBLES", "2025-01-01", "X"))
	f.add(exigibles.Schema, in(5), art69Row(exigibles, "FIR010101AA1", "A", "moral", "EXIGIBLES", "2025-01-01", "X"))
	ed := f.open()
	b, _ := art69Of(t, ed, "FIR010101AA1", "")
	want := "2026-02-10 FIRMES REMOVED 1 true|2026-03-10 FIRMES REMOVED 1 true|2026-03-10 FIRMES ADDED 2 true|2026-04-10 FIRMES REMOVED 2 false|" +
		"2026-05-10 EXIGIBLES ADDED 1 true|2026-06-10 FIRMES ADDED 1 true"
	if b.events() != want || b.Estado != "COINCIDENCIA" {
		t.Errorf("%s", b.events())
	}
	if b, _ := art69Of(t, ed, "OTR010101AA1", ""); b.events() != "2026-05-10 EXIGIBLES REMOVED 1 false" || len(b.Listas) != 1 || b.Listas[0].Lista != "FIRMES" {
		t.Errorf("%s %+v", b.events(), b.Listas)
	}

	// An earlier day is answered from its versions, and never from none.
	g := func(rfc, past, estado, lists, consulted, none string) {
		t.Helper()
		b, outcome := art69Of(t, ed, rfc, past)
		if b.Past == nil || outcome.EnFecha != date(t, past) {
			t.Fatalf("%s: %+v", past, b)
		}
		v := b.Past.Version
		var l, c, n []string
		for _, item := range v.Listas {
			l = append(l, fmt.Sprint(item.Lista, len(item.Registros)))
		}
		for _, source := range v.Consultadas {
			c = append(c, source["fecha_de_orden"].(string))
		}
		for _, source := range v.SinVersion {
			n = append(n, source["lista"]+" "+source["primera_version"])
		}
		if v.Estado != estado || strings.Join(l, ",") != lists || strings.Join(c, ",") != consulted || strings.Join(n, ",") != none {
			t.Errorf("%s %s: %+v", rfc, past, v)
		}
		if len(b.Consultadas) != 2 || b.Consultadas[0]["fecha_de_orden"] != "2026-06-10" || b.Consultadas[0]["antiguedad_dias"] != nil {
			t.Errorf("%s %s: %v", rfc, past, b.Consultadas)
		}
	}
	g("FIR010101AA1", "2026-01-09", "SIN_VERSION_EN_LA_FECHA", "", "", "FIRMES 2026-01-10,EXIGIBLES 2026-01-10")
	g("FIR010101AA1", "2026-01-10", "COINCIDENCIA", "FIRMES2", "2026-01-10,2026-01-10", "")
	g("FIR010101AA1", "2026-04-30", "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA", "", "2026-04-10,2026-01-10", "")
	g("FIR010101AA1", "2026-05-10", "COINCIDENCIA", "EXIGIBLES1", "2026-04-10,2026-05-10", "")
	g("ZZZ010101AA1", "2026-05-10", "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA", "", "2026-04-10,2026-05-10", "")
	g("OTR010101AA1", "2026-02-01", "COINCIDENCIA", "FIRMES1,EXIGIBLES1", "2026-01-10,2026-01-10", "")
}

// TestArt69SomeWithoutVersion: a list whose first version is later is named.
func TestArt69SomeWithoutVersion(t *testing.T) {
	f := newFixture(t)
	firmes, exigibles := art69List(t, "FIRMES"), art69List(t, "EXIGIBLES")
	f.add(firmes.Schema, date(t, "2026-01-10"), everyColumn(firmes, "FIR010101AA1"))
	f.add(exigibles.Schema, date(t, "2026-03-10"), everyColumn(exigibles, "FIR010101AA1"))
	b, _ := art69Of(t, f.open(), "FIR010101AA1", "2026-02-01")
	v := b.Past.Version
	if v.Estado != "COINCIDENCIA" || len(v.Listas) != 1 || len(v.Consultadas) != 1 || len(v.SinVersion) != 1 || v.SinVersion[0]["primera_version"] != "2026-03-10" {
		t.Errorf("%+v", v)
	}
}

func TestArt69MissesDoNotAllocate(t *testing.T) {
	f := newFixture(t)
	for i := range query.Art69Lists {
		f.add(query.Art69Lists[i].Schema, day, everyColumn(&query.Art69Lists[i], "FIR010101AA1"))
	}
	ed := f.open()
	rfc, err := checks.ParseRFC("ZZZ010101AA1")
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 16<<10)
	var q query.Question = query.Company{RFC: rfc, Sanciones: true}
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := query.AppendRegistro(dst, q, day, ed); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v asignaciones por consulta limpia", n)
	}
}
