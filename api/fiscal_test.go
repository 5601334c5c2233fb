package api

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cotejo/ledger"
	"cotejo/payroll"
)

// workedExample is one of the reference: payroll/testdata holds some of them,
// COTEJO_SHARED all.
type workedExample struct {
	ID, Calculo, Fuente string
	Entrada, Esperado   map[string]any
}

// TestFiscalExamples asks the worked examples of the reference over HTTP, exact to
// the centavo.
func TestFiscalExamples(t *testing.T) {
	files := []string{filepath.Join("..", "payroll", "testdata", "ejemplos.json")}
	root := os.Getenv("COTEJO_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	all := filepath.Join(root, "data", "fiscal", "ejemplos.json")
	if _, err := os.Stat(all); err == nil {
		files = append(files, all)
	} else if os.Getenv("COTEJO_SHARED") != "" {
		t.Fatal(err)
	}
	f := newFixture(t)
	ran := 0
	for _, file := range files {
		var examples []workedExample
		if err := json.Unmarshal(must(os.ReadFile(file)), &examples); err != nil {
			t.Fatal(err)
		}
		for _, e := range examples {
			ran++
			path, body := e.request(t)
			a := f.sendBody("POST", path, body, f.keyHeader("test")...)
			if a.status != 200 {
				t.Errorf("%s: %s: %d %s", e.ID, body, a.status, a.body)
				continue
			}
			got := e.figures(t, a.body)
			for name, want := range e.Esperado {
				if value, ok := got[name]; !ok || !sameFigure(value, want) {
					t.Errorf("%s (%s): %s = %v; want %v", e.ID, e.Fuente, name, value, want)
				}
			}
		}
	}
	if ran < 25 {
		t.Errorf("only %d examples were run", ran)
	}
}

var decimalForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// request writes an example as a caller does: numbers as numbers.
func (e *workedExample) request(t *testing.T) (path string, body []byte) {
	t.Helper()
	in := map[string]any{}
	for name, v := range e.Entrada {
		if text, ok := v.(string); ok && decimalForm.MatchString(text) {
			v = json.Number(text)
		}
		in[name] = v
	}
	switch e.Calculo {
	case "aguinaldo", "finiquito", "imss":
		path = e.Calculo
	case "prima_vacacional":
		path = "prima-vacacional"
	case "isr", "isr_periodo":
		path = "isr"
	case "ceav_rango":
		path, in = "imss", map[string]any{"sbc_diario": in["sbc_diario"], "fecha_calculo": in["fecha"]}
	case "subsidio_periodo":
		period := map[float64]string{1: "diaria", 7: "semanal", 10: "decenal", 15: "quincenal"}[e.Entrada["dias"].(float64)]
		path, in = "isr", map[string]any{"base_gravable": 1, "fecha_calculo": in["mes"].(string) + "-15", "periodicidad": period}
	default:
		t.Fatalf("%s: no calculation %q", e.ID, e.Calculo)
	}
	return "/v1/fiscal/" + path, must(json.Marshal(in))
}

// figures are an answer's members and lines under the names of the examples.
func (e *workedExample) figures(t *testing.T, answer []byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	if err := json.Unmarshal(answer, &all); err != nil {
		t.Fatal(err)
	}
	branches := map[string]any{}
	lines, _ := all["renglones"].([]any)
	for _, v := range lines {
		line := v.(map[string]any)
		key := line["clave"].(string)
		if payer, ok := line["a_cargo_de"]; ok {
			branch, _ := branches[key].([]any)
			if branch == nil {
				branch = []any{"0.00", "0.00"}
				branches[key] = branch
			}
			branch[map[any]int{"patron": 0, "trabajador": 1}[payer]] = line["importe"]
		} else if _, ok := all[key]; !ok {
			all[key] = line["importe"]
		}
	}
	all["ramas"], all["subsidio"] = branches, all["subsidio_causado"]
	if ceav, ok := all["ceav"].(map[string]any); ok {
		all["rango_ceav"], all["ceav_pct"] = ceav["rango"], ceav["cuota_patronal"]
		all["criterio_sua"], all["criterio_scjn"] = ceav["cuota_patronal"], ceav["cuota_patronal"]
		if other, ok := ceav["alternativa"].(map[string]any); ok {
			all["criterio_scjn"] = other["cuota_patronal"]
		}
		if e.Calculo == "imss" { // the examples show two decimals
			times, _ := new(big.Rat).SetString(all["veces_uma"].(string))
			all["veces_uma"] = times.FloatString(2)
		}
	}
	return all
}

// sameFigure compares numbers by value, whatever their form, and lists and objects
// member by member.
func sameFigure(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for name := range want {
			if !sameFigure(g[name], want[name]) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for i := range want {
			if !sameFigure(g[i], want[i]) {
				return false
			}
		}
		return true
	}
	a, okA := new(big.Rat).SetString(fmt.Sprint(got))
	b, okB := new(big.Rat).SetString(fmt.Sprint(want))
	if okA && okB {
		return a.Cmp(b) == 0
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}

// TestFiscalMovement: the movement of a charge names the tables by their hashes,
// and says nothing of the wage.
func TestFiscalMovement(t *testing.T) {
	f := newFixture(t)
	a := f.sendBody("POST", "/v1/fiscal/imss", []byte(`{"sbc_diario":512.34,"fecha_calculo":"2026-03-15"}`), f.keyHeader("live")...)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	list := f.movements("live")
	m := list[len(list)-1]
	if m.Kind != ledger.KindUse || m.Centavos != -50 || m.Service != "NOMINA" || m.Input == [32]byte{} {
		t.Errorf("%+v", m)
	}
	var want []string
	for _, file := range []string{"uma/2026.csv", "salario_minimo/2026.csv", "imss_cuotas/2023.csv", "imss_limites/2023.csv", "ceav_patronal/2026.csv"} {
		for _, v := range payroll.Tables() {
			if v.File == file {
				want = append(want, v.Table+" "+v.Version+" sha256:"+v.SHA256[:16])
			}
		}
	}
	if got := strings.Join(want, "; "); len(want) != 5 || m.Basis != got {
		t.Errorf("basis %q; want %q", m.Basis, got)
	}
	before := len(list)
	for path, body := range map[string]string{
		"/v1/fiscal/imss":      `{"sbc_diario":512.34,"fecha_calculo":"2100-03-15"}`,
		"/v1/fiscal/aguinaldo": `{"salario_diario":-1}`,
	} {
		f.sendBody("POST", path, []byte(body), f.keyHeader("live")...)
	}
	if got := len(f.movements("live")); got != before {
		t.Errorf("%d movements, want %d", got, before)
	}
}

// TestFiscalPage: the page for people shows requests and figures that are true.
func TestFiscalPage(t *testing.T) {
	f := newFixture(t)
	request := regexp.MustCompile("(?s)\\*\\*([A-Z][A-Za-z ]+)\\*\\* `(\\{.*?\\})`.*?\\*\\*([0-9,]+\\.[0-9]{2})\\*\\*")
	paths := map[string]string{"Aguinaldo": "aguinaldo", "Vacation premium": "prima-vacacional", "Finiquito": "finiquito", "IMSS": "imss", "ISR": "isr"}
	found := request.FindAllStringSubmatch(string(must(os.ReadFile("../docs/fiscal.md"))), -1)
	for _, m := range found {
		a := f.sendBody("POST", "/v1/fiscal/"+paths[m[1]], []byte(m[2]), f.keyHeader("test")...)
		want := `"` + strings.ReplaceAll(m[3], ",", "") + `"`
		if a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d, want %s in %s", m[1], a.status, want, a.body)
		}
	}
	if len(found) != len(paths) {
		t.Errorf("%d worked examples were found", len(found))
	}
}
