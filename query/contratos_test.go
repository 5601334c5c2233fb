package query_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/query"
	"cotejo/snapshots"
)

// contractRow makes a row of a yearly file. Its registro is its place in it.
func contractRow(registro int, rfc, code, title string, cells ...cell) snapshots.Row {
	norm := make([]string, len(query.Contratos[0].Columns))
	norm[query.ColContratoRFC], norm[query.ColContratoCodigo], norm[query.ColContratoTitulo] = rfc, code, title
	norm[query.ColContratoProveedor], norm[query.ColContratoInstitucion], norm[query.ColContratoUC] = "PROVEEDOR", "INSTITUTO", "UNIDAD"
	norm[query.ColContratoProcedimiento], norm[query.ColContratoMoneda] = "AA-1", "MXN"
	norm[query.ColContratoRegistro] = fmt.Sprint(registro)
	for _, c := range cells {
		norm[c.column] = c.value
	}
	return snapshots.Row{ID: []string{rfc, code, title}, Raw: norm, Norm: norm}
}

func amount(text string) cell { return cell{query.ColContratoImporte, text} }
func signed(day string) cell  { return cell{query.ColContratoFirma, day} }

// ofYear is the schema of a year.
func ofYear(year int) snapshots.Schema { return query.Contratos[year-query.FirstContractYear] }

type contratacion struct {
	Anios     []int `json:"anios_cargados"`
	Cobertura string
	Contratos *int
	Estado    string
	Fuentes   []map[string]any
	Notas     []string
	Registros *int
	PorAnio   []porAnio `json:"por_anio"`
}

type porAnio struct {
	Anio, Contratos int
	SinSumar        int    `json:"contratos_sin_sumar"`
	Total           string `json:"monto_total"`
	Otras           []otra `json:"monto_otras_monedas"`
}

type otra struct {
	Contratos int
	Moneda    *string
	Total     string `json:"monto_total"`
}

func procurementOf(t testing.TB, ed *snapshots.Edition, rfc string) (contratacion, query.Outcome) {
	t.Helper()
	registro, outcome := askRaw(t, ed, rfc)
	parts, _ := query.Split(registro)
	var a struct {
		Block contratacion `json:"contratacion_publica"`
	}
	if err := json.Unmarshal(parts.Resultado, &a); err != nil {
		t.Fatal(err)
	}
	return a.Block, outcome
}

type listed struct {
	Code      string `json:"result_code"`
	Estado    string
	Total     *int  `json:"total_contratos"`
	Anios     []int `json:"anios_cargados"`
	Registros *int
	Limite    int
	Notas     []string
	Contratos []struct {
		Anio                                  int
		Num                                   string `json:"num_contrato"`
		Fecha, Monto, Moneda                  *string
		FechaDe                               *string `json:"fecha_de"`
		MontoDe                               *string `json:"monto_de"`
		Flagged                               bool    `json:"monto_no_plausible"`
		Fuente                                string
		Registro                              int
		Proveedor, Dependencia, Procedimiento string
		UnidadCompradora, Titulo              string
	}
}

func listOf(t testing.TB, ed *snapshots.Edition, rfc string, limit int) (l listed, outcome query.Outcome, registro []byte) {
	t.Helper()
	parsed, err := checks.ParseRFC(rfc)
	if err != nil {
		t.Fatal(err)
	}
	registro, outcome, err = query.AppendRegistro(nil, query.Contracts{RFC: parsed, Limit: limit}, day, ed)
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
	if again, err := query.Recompute(header, ed); err != nil || !bytes.Equal(again, registro) {
		t.Fatalf("recalculado difiere (%v):\n%s\n%s", err, registro, again)
	}
	parts, _ := query.Split(registro)
	if err := json.Unmarshal(parts.Resultado, &l); err != nil {
		t.Fatal(err)
	}
	return l, outcome, registro
}

var (
	firstCut = civil.Date{Year: 2026, Month: 2, Day: 28}
	usd      = cell{query.ColContratoMoneda, "USD"}
)

// contractsFixture has two years and a list.
func contractsFixture(t testing.TB) *fixture {
	f := newFixture(t)
	f.add(query.Sat69B, firstCut, row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo"))
	f.add(ofYear(2022), firstCut,
		contractRow(1, "AAA010101AA1", "1700001", "VIEJO", amount("100.10"), signed("2021-12-31")),
		contractRow(2, "AAA010101AA1", "1700002", "IMPOSIBLE", amount("10000000000.01"), signed("2022-05-01")),
		contractRow(3, "AAA010101AA1", "1700003", "EL LÍMITE", amount("10000000000.00"), signed("2022-05-02")),
		contractRow(4, "", "1700004", "SIN RFC", amount("5.00")),
		contractRow(5, "EXT190501US001", "1700005", "DE FUERA", amount("5.00")))
	f.add(ofYear(2025), firstCut,
		contractRow(1, "AAA010101AA1", "C-2025-00000001", "PRIMERO", amount("1000.00"), signed("2025-03-01")),
		contractRow(7, "AAA010101AA1", "C-2025-00000001", "PRIMERO", amount("900.00"), signed("2025-03-01")), // its last amendment
		contractRow(3, "AAA010101AA1", "C-2025-00000001", "PRIMERO", amount("1500.00"), signed("2025-03-01")),
		contractRow(4, "AAA010101AA1", "C-2024-00000009", "DEL AÑO ANTERIOR", amount("0.005"), signed("2025-01-02")),
		contractRow(5, "AAA010101AA1", "C-2025-00000002", "DÓLARES", amount("20.00"), usd, cell{query.ColContratoFallo, "2025-04-01"}),
		contractRow(6, "AAA010101AA1", "C-2025-00000003", "ABIERTO", cell{query.ColContratoMaximo, "70.00"}, cell{query.ColContratoMinimo, "30.00"}, cell{query.ColContratoInicio, "2025-02-01"}),
		contractRow(8, "AAA010101AA1", "C-2025-00000004", "ILEGIBLE", amount("mil pesos"), cell{query.ColContratoMaximo, "70.00"}),
		contractRow(9, "AAA010101AA1", "C-2025-00000005", "SIN MONEDA", amount("1.00"), cell{query.ColContratoMoneda, ""}),
		contractRow(10, "AAA010101AA1", "", "SIN CÓDIGO", amount("2.00"), signed("2025-05-01")),
		contractRow(11, "AAA010101AA1", "", "SIN CÓDIGO", amount("2.00"), signed("2025-05-01")),
		contractRow(12, "AAA010101AA1", "1700003", "EL LÍMITE", amount("7.00"), signed("2022-05-02"))) // again, in a later file
	return f
}

func TestProcurementOfACompany(t *testing.T) {
	ed := contractsFixture(t).open()
	got, outcome := procurementOf(t, ed, "AAA010101AA1")
	if want := (query.Outcome{Code: "COMPANY_OK", Charged: true, Consulted: index.Set{0b111}}); outcome != want {
		t.Errorf("outcome = %+v", outcome)
	}
	if got.Estado != "COINCIDENCIA" || *got.Contratos != 11 || *got.Registros != 14 || !reflect.DeepEqual(got.Anios, []int{2022, 2025}) {
		t.Errorf("%+v, %d contratos, %d registros", got, *got.Contratos, *got.Registros)
	}
	dollars := "USD"
	want := []porAnio{
		// 900 (not 1000 or 1500) + 70 of the open one + 2 + 2.
		{2025, 7, 1, "974.00", []otra{{1, nil, "1.00"}, {1, &dollars, "20.00"}}},
		{2024, 1, 0, "0.005", []otra{}},
		{2022, 2, 1, "7.00", []otra{}},
		{2021, 1, 0, "100.10", []otra{}},
	}
	total := 0
	for _, y := range got.PorAnio {
		total += y.Contratos
	}
	if total != *got.Contratos || !reflect.DeepEqual(got.PorAnio, want) {
		t.Errorf("por_anio = %+v", got.PorAnio)
	}
	if len(got.Notas) != 3 || !strings.HasPrefix(got.Notas[0], "Contratos con un importe mayor de 10000000000.00, que parece un error de captura: 1. ") {
		t.Errorf("notas = %q", got.Notas)
	}
	if len(got.Fuentes) != 2 || got.Fuentes[0]["id"] != "compranet_2022" || got.Fuentes[0]["desactualizada"] != false || got.Fuentes[1]["desactualizada"] != true {
		t.Errorf("fuentes = %v", got.Fuentes)
	}

	clean, _ := procurementOf(t, ed, "ZZZ010101AA1")
	if clean.Estado != "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA" || *clean.Contratos != 0 || len(clean.PorAnio) != 0 || !strings.Contains(clean.Cobertura, "no prueba") {
		t.Errorf("%+v", clean)
	}
	none, outcome := procurementOf(t, publish(t, []snapshots.Row{row("AAA010101AA1", "500-05-2018-1", "ALFA", "Definitivo")}), "AAA010101AA1")
	if none.Estado != "SOURCE_NOT_LOADED" || none.Contratos != nil || none.Registros != nil || len(none.Anios) != 0 || outcome.Consulted != (index.Set{1}) {
		t.Errorf("%+v, %+v", none, outcome)
	}
	// Contracts alone are no verification of the 69-B list, and are not paid for.
	only := newFixture(t)
	only.add(ofYear(2025), firstCut, contractRow(1, "AAA010101AA1", "C-2025-00000001", "X", amount("1.00")))
	if block, outcome := procurementOf(t, only.open(), "AAA010101AA1"); outcome.Charged || outcome.Code != "SOURCE_UNAVAILABLE" || *block.Contratos != 1 {
		t.Errorf("%+v, %+v", block, outcome)
	}
}

func TestListOfContracts(t *testing.T) {
	ed := contractsFixture(t).open()
	l, outcome, _ := listOf(t, ed, "AAA010101AA1", 500)
	if want := (query.Outcome{Code: "COMPANY_OK", Charged: true, Consulted: index.Set{0b011}}); outcome != want {
		t.Errorf("outcome = %+v", outcome)
	}
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	var got []string
	for _, c := range l.Contratos {
		got = append(got, fmt.Sprint(c.Anio, " ", text(c.Fecha), " ", text(c.FechaDe), " ", c.Num, " ", text(c.Monto), " ", text(c.MontoDe), " ", text(c.Moneda), " ", c.Fuente, "#", c.Registro, " ", c.Flagged))
	}
	want := []string{
		"2025 2025-05-01 FIRMA  2.00 IMPORTE MXN compranet_2025#11 false",
		"2025 2025-05-01 FIRMA  2.00 IMPORTE MXN compranet_2025#10 false",
		"2025 2025-04-01 FALLO C-2025-00000002 20.00 IMPORTE USD compranet_2025#5 false",
		"2025 2025-03-01 FIRMA C-2025-00000001 900.00 IMPORTE MXN compranet_2025#7 false",
		"2025 2025-02-01 INICIO C-2025-00000003 70.00 MAXIMO MXN compranet_2025#6 false",
		"2024 2025-01-02 FIRMA C-2024-00000009 0.005 IMPORTE MXN compranet_2025#4 false",
		"2025 - - C-2025-00000004 - - MXN compranet_2025#8 false",
		"2025 - - C-2025-00000005 1.00 IMPORTE - compranet_2025#9 false",
		"2022 2022-05-02 FIRMA 1700003 7.00 IMPORTE MXN compranet_2025#12 false",
		"2022 2022-05-01 FIRMA 1700002 10000000000.01 IMPORTE MXN compranet_2022#2 true",
		"2021 2021-12-31 FIRMA 1700001 100.10 IMPORTE MXN compranet_2022#1 false",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("contratos:\n%s\nse esperaba:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if *l.Total != len(want) || l.Code != "COMPANY_OK" || l.Contratos[0].Dependencia != "INSTITUTO" || l.Contratos[0].Proveedor != "PROVEEDOR" || l.Contratos[0].Procedimiento != "AA-1" {
		t.Errorf("%+v", l)
	}
	if few, _, _ := listOf(t, ed, "AAA010101AA1", 2); *few.Total != len(want) || len(few.Contratos) != 2 || few.Contratos[1] != l.Contratos[1] && few.Contratos[1].Registro != 10 {
		t.Errorf("%+v", few)
	}
	if clean, outcome, _ := listOf(t, ed, "ZZZ010101AA1", 50); *clean.Total != 0 || !outcome.Charged || clean.Estado != "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA" {
		t.Errorf("%+v", clean)
	}
	if none, outcome, _ := listOf(t, nothing(t), "AAA010101AA1", 50); none.Total != nil || none.Registros != nil || outcome.Charged || none.Code != "SOURCE_UNAVAILABLE" || none.Estado != "SOURCE_NOT_LOADED" {
		t.Errorf("%+v, %+v", none, outcome)
	}
}

// TestAListFitsIntoARegistro whatever its rows have.
func TestAListFitsIntoARegistro(t *testing.T) {
	f := newFixture(t)
	var rows []snapshots.Row
	for i := range 20 {
		r := contractRow(i+1, "AAA010101AA1", fmt.Sprintf("C-2025-%08d", i), "X", amount("1.00"))
		r.Raw[query.ColContratoUC] = strings.Repeat("x", 100<<10)
		rows = append(rows, r)
	}
	f.add(ofYear(2025), firstCut, rows...)
	l, _, registro := listOf(t, f.open(), "AAA010101AA1", 500)
	if *l.Total != 20 || len(l.Contratos) != 7 || len(registro) > 1<<20 {
		t.Errorf("%d de %d en %d bytes", len(l.Contratos), *l.Total, len(registro))
	}
}

func TestCleanContractsDoNotAllocate(t *testing.T) {
	ed := contractsFixture(t).open()
	rfc, _ := checks.ParseRFC("ZZZ010101AA1")
	dst := make([]byte, 0, 8<<10)
	for _, q := range []query.Question{query.Company{RFC: rfc, Sanciones: true}, query.Contracts{RFC: rfc, Limit: 50}} {
		if n := testing.AllocsPerRun(1000, func() {
			if _, _, err := query.AppendRegistro(dst, q, day, ed); err != nil {
				t.Fatal(err)
			}
		}); q.Motor() == "COMPANY/4" && n != 0 || n > 2 {
			t.Errorf("%s: %v asignaciones por consulta limpia", q.Motor(), n)
		}
	}
}

func TestContractsRefuseAnEntradaOfNobody(t *testing.T) {
	for _, entrada := range []string{
		`{"limite":0,"rfc":"AAA010101AA1"}`, `{"limite":501,"rfc":"AAA010101AA1"}`, `{"rfc":"AAA010101AA1"}`, `{"limite":1}`,
		`{"limite":1,"rfc":"A"}`, `{"limite":1,"rfc":"AAA010101AA1","x":1}`,
	} {
		h := query.Header{Motor: "COMPANY/CONTRATOS/1", Entrada: json.RawMessage(entrada), Fecha: day}
		if q, err := h.Question(); err == nil {
			t.Errorf("%s es %+v", entrada, q)
		}
	}
}

func TestAmounts(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, ok := query.AppendImporte(nil, text)
		if string(got) != want || ok != (want != "") {
			t.Errorf("%q es %q, %v; se esperaba %q", text, got, ok, want)
		}
	}
	f("0", "0.00")
	f("-0", "0.00")
	f("12", "12.00")
	f("012.5", "12.50")
	f(".5", "0.50")
	f("5173223.079999998", "5173223.079999998")
	f("1.100", "1.10")
	f("$ 1,234,567.8", "1234567.80")
	f("-1.5", "-1.50")
	f("123456789012345678.123456789012345678", "123456789012345678.123456789012345678")
	for _, bad := range []string{"", ".", "-", "$", "1.", "1,23", "1,2345", ",123", "1.2.3", "1e3", "NaN", "1 234x", "--1", "1234567890123456789", "0.1234567890123456789"} {
		f(bad, "")
	}
	if query.Implausible("10000000000.00") || !query.Implausible("10000000000.000000000000000001") || !query.Implausible("-10000000000.01") || query.Implausible("x") {
		t.Error("el límite de lo plausible es otro")
	}
}

// TestAmountsAreExact: normalising twice changes nothing, and no total loses a cent.
func TestAmountsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?\$?[0-9]{0,20}(,[0-9]{3}){0,3}(\.[0-9]{1,20})?`).Draw(t, "texto")
		once, ok := query.AppendImporte(nil, text)
		if !ok {
			return
		}
		if again, ok := query.AppendImporte(nil, string(once)); !ok || !bytes.Equal(once, again) {
			t.Fatalf("%q es %q y luego %q", text, once, again)
		}
	})
	f := newFixture(t)
	var rows []snapshots.Row
	for i := range 1000 {
		rows = append(rows, contractRow(i+1, "AAA010101AA1", fmt.Sprintf("C-2025-%08d", i), "X", amount("0.10")))
	}
	f.add(ofYear(2025), firstCut, rows...)
	if got, _ := procurementOf(t, f.open(), "AAA010101AA1"); got.PorAnio[0].Total != "100.00" {
		t.Errorf("mil veces 0.10 son %s", got.PorAnio[0].Total)
	}
}

func TestGoldenContracts(t *testing.T) {
	f := contractsFixture(t)
	ed := f.open()
	sum := sha256.New()
	for _, rfc := range []string{"AAA010101AA1", "ZZZ010101AA1"} {
		company, _ := askRaw(t, ed, rfc)
		sum.Write(company)
		for _, limit := range []int{1, 50, 500} {
			_, _, registro := listOf(t, ed, rfc, limit)
			sum.Write(registro)
			_, _, registro = listOf(t, nothing(t), rfc, limit)
			sum.Write(registro)
		}
	}
	got := hex.EncodeToString(sum.Sum(nil)) + "\n"
	want, err := os.ReadFile(filepath.Join("testdata", "contratos_1.sha256"))
	if err != nil || got != string(want) {
		t.Fatalf("las respuestas de COMPANY/CONTRATOS/1 o de contratacion_publica de COMPANY/4 cambiaron (%v): %s", err, got)
	}
}
