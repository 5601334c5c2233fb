package query_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/query"
	"cotejo/snapshots"
)

// sanctionRow makes a row of one of query.Sancionados with the given normalised cells;
// an empty RFC is that of a row nobody can ask for.
func sanctionRow(schema *snapshots.Schema, rfc, expediente string, cells ...cell) snapshots.Row {
	norm := make([]string, len(schema.Columns))
	norm[query.ColSancionRFC], norm[query.ColSancionNombre], norm[query.ColSancionDependencia] = rfc, "EMPRESA \"X\"", "INSTITUTO"
	norm[query.ColSancionExpediente] = expediente
	for _, c := range cells {
		norm[c.column] = c.value
	}
	raw := slices.Clone(norm)
	raw[query.ColSancionNombre] += "\t"
	return snapshots.Row{ID: []string{rfc, expediente, "INSTITUTO"}, Raw: raw, Norm: norm, Suppressed: rfc == ""}
}

func debarred(inicio, fin string) []cell {
	return []cell{{query.ColSancionInicio, inicio}, {query.ColSancionFin, fin}, {query.ColSancionPlazo, "1 año"}, {query.ColSancionMonto, "555644.00"}}
}

func withoutRFC(schema snapshots.Schema, name string) snapshots.Row {
	norm := make([]string, len(schema.Columns))
	norm[0] = name
	return snapshots.Row{ID: []string{"", name, "1", "X"}, Raw: norm, Norm: norm}
}

type sancionados struct {
	Estado         string
	Consultadas    []map[string]any
	Eventos        []map[string]any `json:"historial_eventos"`
	NoCargadas     []string         `json:"no_cargadas"`
	NoConsultables []map[string]any `json:"no_consultables"`
	Notas          []string
	Sanciones      []sancion
	Omitidas       int `json:"sanciones_omitidas"`
	Past           *struct {
		Version struct {
			Estado      string
			Consultadas []map[string]any
			Sanciones   []sancion
			SinVersion  []map[string]any `json:"sin_version"`
		} `json:"version_en_fecha"`
	} `json:"en_fecha"`
}

type sancion struct {
	Dependencia, Expediente, Fin, Inicio, Moneda, Monto, Nombre, Plazo, Tipo *string
	Fuente                                                                   string
	Detalle                                                                  map[string]string
	Vigente                                                                  *bool
	Motivo                                                                   string `json:"vigente_motivo"`
}

func sanctionsOf(t testing.TB, ed *snapshots.Edition, rfc string, past civil.Date) (sancionados, query.Outcome) {
	t.Helper()
	parsed, err := checks.ParseRFC(rfc)
	if err != nil {
		t.Fatal(err)
	}
	registro, outcome := answerTo(t, query.Company{RFC: parsed, Sanciones: true, Past: past}, ed)
	parts, _ := query.Split(registro)
	var a struct {
		Block *sancionados `json:"proveedores_sancionados"`
	}
	if err := json.Unmarshal(parts.Resultado, &a); err != nil || a.Block == nil {
		t.Fatalf("%v: %s", err, registro)
	}
	return *a.Block, outcome
}

var directory, pdn1, pdnMorales = &query.Sancionados[0], &query.Sancionados[1], &query.Sancionados[2]

var sanctionDay = civil.Date{Year: 2026, Month: 9, Day: 30}

// TestSanctionStates: the word says what the loaded files can say, and no more.
func TestSanctionStates(t *testing.T) {
	listed := sanctionRow(directory, "SAN010101AA1", "1/2026", debarred("2026-01-01", "2027-01-01")...)
	inPDN := sanctionRow(pdn1, "PDN010101AA1", "2/2026")
	f := func(name, rfc, want string, consulted, unasked int, load func(*fixture)) {
		t.Helper()
		fx := newFixture(t)
		fx.add(query.Sat69B, sanctionDay, row("AAA010101AA1", "500-1", "ALFA", "Definitivo"))
		load(fx)
		ed := fx.open()
		b, outcome := sanctionsOf(t, ed, rfc, civil.Date{})
		if b.Estado != want || len(b.Consultadas) != consulted || len(b.NoConsultables) != unasked || len(b.NoCargadas) != len(query.Sancionados)-consulted {
			t.Errorf("%s: %s, consultadas %v, no consultables %v, no cargadas %v; want %s", name, b.Estado, b.Consultadas, b.NoConsultables, b.NoCargadas, want)
		}
		if n := len(b.Sanciones); (n > 0) != (want == "COINCIDENCIA") {
			t.Errorf("%s: %d sanciones", name, n)
		}
		if got := len(ed.Manifest().Sources); outcome.Consulted != (index.Set{1<<got - 1}) {
			t.Errorf("%s: consulted %b of %d", name, outcome.Consulted, got)
		}
	}
	f("nothing", "SAN010101AA1", "SOURCE_UNAVAILABLE", 0, 0, func(*fixture) {})
	f("files without RFC", "SAN010101AA1", "SOURCE_UNAVAILABLE", 0, 2, func(fx *fixture) {
		fx.add(query.SancionadosAbiertos, sanctionDay, withoutRFC(query.SancionadosAbiertos, "SAN010101AA1"))
		fx.add(query.SancionadosExportacion, sanctionDay, withoutRFC(query.SancionadosExportacion, "SAN010101AA1"))
	})
	f("the directory has it", "SAN010101AA1", "COINCIDENCIA", 1, 0, func(fx *fixture) { fx.add(*directory, sanctionDay, listed) })
	f("the directory does not", "ZZZ010101AA1", "SIN_COINCIDENCIA", 1, 0, func(fx *fixture) { fx.add(*directory, sanctionDay, listed) })
	f("the platform has it", "PDN010101AA1", "COINCIDENCIA", 1, 0, func(fx *fixture) { fx.add(*pdn1, sanctionDay, inPDN) })
	f("the platform clears nobody", "ZZZ010101AA1", "SOURCE_UNAVAILABLE", 1, 0, func(fx *fixture) { fx.add(*pdn1, sanctionDay, inPDN) })
	f("both", "PDN010101AA1", "COINCIDENCIA", 2, 1, func(fx *fixture) {
		fx.add(*directory, sanctionDay, listed)
		fx.add(*pdn1, sanctionDay, inPDN)
		fx.add(query.SancionadosAbiertos, sanctionDay, withoutRFC(query.SancionadosAbiertos, "PDN010101AA1"))
	})
	f("a row without RFC is nobody's", "ZZZ010101AA1", "SIN_COINCIDENCIA", 1, 0, func(fx *fixture) {
		fx.add(*directory, sanctionDay, listed, sanctionRow(directory, "", "9/2026"))
	})
}

func TestSanctionsAreTold(t *testing.T) {
	fx := newFixture(t)
	fx.add(*directory, sanctionDay,
		sanctionRow(directory, "SAN010101AA1", "1/2020", debarred("2020-01-01", "2021-01-01")...),
		sanctionRow(directory, "SAN010101AA1", "2/2026", append(debarred("2026-11-20", "2026-11-20"), cell{query.ColSancionMoneda, "MXN"}, cell{query.ColSancionTipo, "Multa e inhabilitación"})...),
		sanctionRow(directory, "SAN010101AA1", "3/2026", cell{query.ColSancionMonto, "no legible"}, cell{query.ColSancionMoneda, "pesos"}),
		sanctionRow(directory, "", "4/2026"), sanctionRow(directory, "", "5/2026"))
	b, _ := sanctionsOf(t, fx.open(), "SAN010101AA1", civil.Date{})
	if len(b.Sanciones) != 3 || b.Consultadas[0]["registros_sin_rfc"] != 2.0 || b.Consultadas[0]["registros_en_version"] != 5.0 || b.Consultadas[0]["corte"] != "2026-09-30" || b.Consultadas[0]["desactualizada"] != true {
		t.Fatalf("%+v", b)
	}
	if len(b.Notas) != 1 || !strings.Contains(b.Notas[0], "sin un RFC") || len(b.Eventos) != 0 {
		t.Errorf("notas %q, eventos %v", b.Notas, b.Eventos)
	}
	first, second, fine := b.Sanciones[0], b.Sanciones[1], b.Sanciones[2]
	if *first.Expediente != "2/2026" || first.Vigente == nil || !*first.Vigente || first.Motivo != "" || *first.Monto != "555644.00" || *first.Moneda != "MXN" ||
		*first.Tipo != "Multa e inhabilitación" || *first.Inicio != "2026-11-20" || *first.Fin != "2026-11-20" || *first.Plazo != "1 año" || first.Fuente != "sabg_proveedores_sancionados" {
		t.Errorf("%+v", first)
	}
	if first.Detalle["Proveedor y Contratista"] != "EMPRESA \"X\"\t" || len(first.Detalle) != len(directory.Columns) || *first.Nombre != "EMPRESA \"X\"" || *first.Dependencia != "INSTITUTO" {
		t.Errorf("%+v", first)
	}
	if *second.Expediente != "1/2020" || second.Vigente == nil || *second.Vigente || second.Moneda != nil || second.Tipo != nil {
		t.Errorf("an expired one: %+v", second)
	}
	if fine.Vigente != nil || fine.Motivo != "SIN_INHABILITACION" || fine.Monto != nil || fine.Moneda != nil || fine.Inicio != nil || fine.Fin != nil {
		t.Errorf("a fine: %+v", fine)
	}
}

func TestVigente(t *testing.T) {
	f := func(inicio, fin, plazo, fecha, want string) {
		t.Helper()
		d, err := civil.Parse(fecha)
		if err != nil {
			t.Fatal(err)
		}
		got, motivo := query.Vigente(inicio, fin, plazo, d)
		text := "null"
		if got != nil {
			text = map[bool]string{true: "true", false: "false"}[*got]
		}
		if text = strings.TrimSpace(text + " " + motivo); text != want {
			t.Errorf("%s a %s (%s) el %s: %s; want %s", inicio, fin, plazo, fecha, text, want)
		}
	}
	f("2026-02-21", "2027-02-21", "1 año", "2026-02-20", "false AUN_NO_INICIA")
	f("2026-02-21", "2027-02-21", "1 año", "2026-02-21", "true")
	f("2026-02-21", "2027-02-21", "1 año", "2027-02-21", "true")
	f("2026-02-21", "2027-02-21", "1 año", "2027-02-22", "false")
	f("", "2027-02-21", "", "2027-02-21", "true")
	f("", "", "", "2027-02-21", "null SIN_INHABILITACION")
	f("2026-02-21", "", "", "2027-02-21", "null SIN_FECHA_DE_FIN")
	f("", "", "3 meses", "2027-02-21", "null SIN_FECHA_DE_FIN")
	f("2026-02-21", "cuando acabe", "", "2027-02-21", "null FECHA_NO_LEGIBLE")
	f("30/Jun/2006", "2027-02-21", "", "2027-02-21", "null FECHA_NO_LEGIBLE")
	f("2027-02-21", "2026-02-21", "1 año", "2026-08-01", "null FECHAS_CONTRADICTORIAS")
}

// TestVigenteFlipsTheDayAfterTheEnd: whatever its length, a debarment is in force on its
// last day and not on the next, and never again.
func TestVigenteFlipsTheDayAfterTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 20000).Draw(t, "first"))
		last := first.AddDate(0, 0, rapid.IntRange(0, 8000).Draw(t, "length"))
		day := last.AddDate(0, 0, rapid.IntRange(-9000, 9000).Draw(t, "day"))
		if rapid.Bool().Draw(t, "near") {
			day = last.AddDate(0, 0, rapid.IntRange(-2, 2).Draw(t, "around"))
		}
		of := func(m time.Time) civil.Date { return civil.Date{Year: m.Year(), Month: m.Month(), Day: m.Day()} }
		got, _ := query.Vigente(of(first).String(), of(last).String(), "", of(day))
		if got == nil || *got != (!day.Before(first) && !day.After(last)) {
			t.Fatalf("%s a %s el %s: %v", of(first), of(last), of(day), got)
		}
	})
}

// TestSanctionHistory: what entered, changed and vanished, and that vanishing proves
// nothing.
func TestSanctionHistory(t *testing.T) {
	fx := newFixture(t)
	day := func(m time.Month) civil.Date { return civil.Date{Year: 2026, Month: m, Day: 28} }
	old := sanctionRow(directory, "OLD010101AA1", "7/2019", debarred("2020-01-01", "2021-01-01")...)
	fx.add(*directory, day(1), old, sanctionRow(directory, "SAN010101AA1", "1/2026", debarred("2026-01-01", "2026-06-30")...))
	fx.add(*directory, day(2), old, sanctionRow(directory, "SAN010101AA1", "1/2026", debarred("2026-01-01", "2027-06-30")...))
	fx.add(*directory, day(3), sanctionRow(directory, "SAN010101AA1", "1/2026", debarred("2026-01-01", "2027-06-30")...),
		sanctionRow(directory, "SAN010101AA1", "2/2026"))
	fx.add(*directory, day(4), sanctionRow(directory, "SAN010101AA1", "2/2026"))
	ed := fx.open()
	b, _ := sanctionsOf(t, ed, "SAN010101AA1", civil.Date{})
	var told []string
	for _, e := range b.Eventos {
		told = append(told, e["fecha"].(string)+" "+e["evento"].(string)+" "+e["expediente"].(string))
	}
	if got := strings.Join(told, ", "); got != "2026-02-28 UPDATED 1/2026, 2026-03-28 ADDED 2/2026, 2026-04-28 REMOVED 1/2026" {
		t.Fatal(got)
	}
	if e := b.Eventos[0]; e["fin"] != "2027-06-30" || e["fin_anterior"] != "2026-06-30" || len(e["columnas"].([]any)) != 1 || e["columnas"].([]any)[0] != "Fin de la sanción" {
		t.Errorf("%v", e)
	}
	if len(b.Notas) != 1 || !strings.Contains(b.Notas[0], "amparo") || b.Estado != "COINCIDENCIA" {
		t.Errorf("%s %q", b.Estado, b.Notas)
	}
	b, _ = sanctionsOf(t, ed, "OLD010101AA1", civil.Date{})
	if b.Estado != "SIN_COINCIDENCIA" || len(b.Sanciones) != 0 || len(b.Eventos) != 1 || b.Eventos[0]["evento"] != "REMOVED" || b.Eventos[0]["fin"] != "2021-01-01" || len(b.Notas) != 1 {
		t.Errorf("%+v", b)
	}
	// On an earlier day.
	b, outcome := sanctionsOf(t, ed, "SAN010101AA1", civil.Date{Year: 2026, Month: 2, Day: 1})
	v := b.Past.Version
	if v.Estado != "COINCIDENCIA" || len(v.Sanciones) != 1 || *v.Sanciones[0].Fin != "2026-06-30" || !*v.Sanciones[0].Vigente || outcome.InPast != (index.Set{1}) || len(v.SinVersion) != 0 || v.Consultadas[0]["fecha_de_orden"] != "2026-01-28" {
		t.Errorf("%+v %+v", b, outcome)
	}
	if len(b.Sanciones) != 1 || b.Sanciones[0].Vigente != nil || b.Consultadas[0]["fecha_de_orden"] != "2026-04-28" {
		t.Errorf("%+v", b.Sanciones)
	}
	b, _ = sanctionsOf(t, ed, "OLD010101AA1", civil.Date{Year: 2020, Month: 6, Day: 1})
	if v = b.Past.Version; v.Estado != "SIN_VERSION_EN_LA_FECHA" || len(v.SinVersion) != 1 || v.SinVersion[0]["primera_version"] != "2026-01-28" || len(v.Consultadas) != 0 || b.Estado != "SIN_COINCIDENCIA" {
		t.Errorf("%+v", b)
	}
	b, _ = sanctionsOf(t, ed, "OLD010101AA1", civil.Date{Year: 2026, Month: 4, Day: 1})
	if v = b.Past.Version; v.Estado != "SIN_COINCIDENCIA" || len(v.Consultadas) != 1 {
		t.Errorf("%+v", v)
	}
}

// TestManySanctionsAreCounted: a registro stays of a size that is kept.
func TestManySanctionsAreCounted(t *testing.T) {
	fx := newFixture(t)
	var rows []snapshots.Row
	for i := range 300 {
		rows = append(rows, sanctionRow(directory, "SAN010101AA1", string(rune('a'+i%26))+strings.Repeat("x", i/26)))
	}
	long := sanctionRow(pdn1, "PDN010101AA1", "1", cell{query.ColSancionCausa, strings.Repeat("c", 60<<10)})
	fx.add(*directory, sanctionDay, rows...)
	fx.add(*pdn1, sanctionDay, long, long, long, long, long)
	ed := fx.open()
	if b, _ := sanctionsOf(t, ed, "SAN010101AA1", civil.Date{}); len(b.Sanciones) != 200 || b.Omitidas != 100 {
		t.Errorf("%d y %d omitidas", len(b.Sanciones), b.Omitidas)
	}
	if b, _ := sanctionsOf(t, ed, "PDN010101AA1", civil.Date{}); len(b.Sanciones) != 3 || b.Omitidas != 2 {
		t.Errorf("%d y %d omitidas", len(b.Sanciones), b.Omitidas)
	}
}

func TestSanctionMissesDoNotAllocate(t *testing.T) {
	fx := newFixture(t)
	for i := range query.Sancionados {
		fx.add(query.Sancionados[i], sanctionDay, sanctionRow(&query.Sancionados[i], "SAN010101AA1", "1"), sanctionRow(&query.Sancionados[i], "", "2"))
	}
	fx.add(query.SancionadosAbiertos, sanctionDay, withoutRFC(query.SancionadosAbiertos, "X"))
	fx.add(query.SancionadosExportacion, sanctionDay, withoutRFC(query.SancionadosExportacion, "X"))
	ed := fx.open()
	rfc, _ := checks.ParseRFC("ZZZ010101AA1")
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

// TestGoldenSanctions fails when the block changes without a new motor.
func TestGoldenSanctions(t *testing.T) {
	fx := newFixture(t)
	day := func(m time.Month) civil.Date { return civil.Date{Year: 2026, Month: m, Day: 28} }
	fx.add(*directory, day(1), sanctionRow(directory, "SAN010101AA1", "1/2026", debarred("2026-01-01", "2026-06-30")...), sanctionRow(directory, "OLD010101AA1", "7"))
	fx.add(*directory, day(2), sanctionRow(directory, "SAN010101AA1", "1/2026", debarred("2026-01-01", "2027-06-30")...),
		sanctionRow(directory, "SAN010101AA1", "2/2026", debarred("2027-01-01", "2028-06-30")...), sanctionRow(directory, "SAN010101AA1", "3/2026"), sanctionRow(directory, "", "8"))
	fx.add(*pdn1, day(2), sanctionRow(pdn1, "PDN010101AA1", "4", debarred("2020-01-01", "texto")...))
	fx.add(*pdnMorales, day(2), sanctionRow(pdnMorales, "SAN010101AA1", "5", debarred("2020-01-01", "2019-01-01")...))
	fx.add(query.SancionadosAbiertos, civil.Date{Year: 2021, Month: 1, Day: 14}, withoutRFC(query.SancionadosAbiertos, "X"))
	ed := fx.open()
	var corpus []byte
	for _, text := range []string{"SAN010101AA1", "PDN010101AA1", "OLD010101AA1", "ZZZ010101AA1"} {
		rfc, _ := checks.ParseRFC(text)
		for _, past := range []civil.Date{{}, day(1), day(2), {Year: 2019, Month: 1, Day: 1}} {
			registro, _ := answerTo(t, query.Company{RFC: rfc, Sanciones: true, Past: past}, ed)
			corpus = append(corpus, registro...)
		}
	}
	for _, word := range []string{
		`"estado":"SIN_COINCIDENCIA"`, `"SIN_INHABILITACION"`, `"FECHA_NO_LEGIBLE"`, `"FECHAS_CONTRADICTORIAS"`, `"AUN_NO_INICIA"`, `"vigente":true`, `"vigente":false`,
		`"vigente":null`, `"evento":"UPDATED"`, `"evento":"ADDED"`, `"evento":"REMOVED"`, `"motivo":"SIN_RFC"`, `"sin_version":[{`, `"no_cargadas":["pdn_s3_faltas_graves_personas_fisicas"]`,
	} {
		if !bytes.Contains(corpus, []byte(word)) {
			t.Errorf("el corpus no contiene %s", word)
		}
	}
	sum := sha256.Sum256(corpus)
	got := hex.EncodeToString(sum[:]) + "\n"
	want, err := os.ReadFile(filepath.Join("testdata", "sancionados_4.sha256"))
	if err != nil || got != string(want) {
		t.Fatalf("el bloque proveedores_sancionados de COMPANY/4 cambió (%v): %s", err, got)
	}
}
