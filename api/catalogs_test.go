package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cotejo/catalog"
	"cotejo/ledger"
	"cotejo/operation"
)

// TestCatalogueIsPaid: an answer leaves a movement that names its version, with a
// package too; what is not found, not covered or badly written leaves none.
func TestCatalogueIsPaid(t *testing.T) {
	f := newFixture(t)
	f1 := func(target string, status int, basis string) {
		t.Helper()
		before, movements := f.balance("live"), len(f.movements("live"))
		a := f.get(target, "live")
		list := f.movements("live")
		if a.status != status {
			t.Fatalf("%s: %d %s", target, a.status, a.body)
		}
		if basis == "" {
			if f.balance("live") != before || len(list) != movements || a.header.Get("X-Costo") != "" {
				t.Errorf("%s: charged", target)
			}
			return
		}
		m := list[len(list)-1]
		if len(list) != movements+1 || f.balance("live") != before-5 || m.Kind != ledger.KindUse || m.Centavos != -5 || m.Service != "DATO" || m.Basis != basis {
			t.Errorf("%s: %d movements more, %d centavos, %+v", target, len(list)-movements, before-f.balance("live"), m)
		}
	}
	set := catalog.Embedded()
	basis := func(v *catalog.Version) string { return fmt.Sprintf("%s %s sha256 %s", v.ID, v.Date, v.SHA256[:12]) }
	f1("/v1/catalogo/banco/002", 200, basis(set.Banks.Version()))
	f1("/v1/catalogo/sat/regimen/601", 200, basis(set.Regimes.Version()))
	f1("/v1/catalogo/sat/uso_cfdi/G03", 200, basis(set.Uses.Version()))
	f1("/v1/catalogo/sat/forma_pago/01", 200, basis(set.PaymentForms.Version()))
	f1("/v1/catalogo/telefono/5512345678", 200, basis(set.Phones.Version()))
	f1("/v1/economia/tipo-cambio?fecha=2024-12-29", 200, basis(set.FIX.Version()))
	// What a key no longer is was looked up all the same.
	f1("/v1/catalogo/banco/134", 200, basis(set.Banks.Version()))
	f1("/v1/catalogo/banco/003", 404, "")
	f1("/v1/catalogo/sat/regimen/999", 404, "")
	f1("/v1/catalogo/telefono/2101234567", 404, "")
	f1("/v1/catalogo/banco/2", 422, "")
	f1("/v1/catalogo/banco/002?en_fecha=2030-01-01", 422, "")
	f1("/v1/economia/tipo-cambio", 200, "")
	f1("/v1/economia/tipo-cambio?fecha=1990-01-01", 200, "")
	f1("/v1/economia/tipo-cambio?fecha=2030-01-01", 200, "")
	f1("/v1/catalogo/banco/002?simular=1", 200, "")
}

// TestCatalogueOnce: under one key an answer is paid once; a key of which nothing
// was found may be used again.
func TestCatalogueOnce(t *testing.T) {
	f := newFixture(t)
	ask := func(target string) answer {
		return f.send("GET", target, append(f.keyHeader("live"), "Idempotency-Key: catalogo")...)
	}
	if a := ask("/v1/catalogo/banco/003"); a.status != 404 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	first := ask("/v1/catalogo/banco/002")
	balance := f.balance("live")
	again := ask("/v1/catalogo/banco/002")
	if first.status != 200 || again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) || f.balance("live") != balance {
		t.Errorf("%s\n%s", first.body, again.body)
	}
	if a := ask("/v1/catalogo/banco/006"); a.status != 422 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestSandboxHasTheSameData: what a test key is told differs in one member.
func TestSandboxHasTheSameData(t *testing.T) {
	f := newFixture(t)
	for _, target := range []string{
		"/v1/catalogo/banco/124", "/v1/catalogo/sat/uso_cfdi/D04", "/v1/catalogo/telefono/3312345678",
		"/v1/economia/tipo-cambio?fecha=2024-12-29&monto=1", "/v1/economia/tipo-cambio",
	} {
		live, test := f.get(target, "live"), f.get(target, "test")
		if got := strings.TrimSuffix(string(test.body), `,"sandbox":true}`) + "}"; got != string(live.body) {
			t.Errorf("%s:\n%s\n%s", target, live.body, test.body)
		}
	}
}

// TestEveryKeyAnswers asks for each key of each list; the document promises every
// answer, and the answer is of that key.
func TestEveryKeyAnswers(t *testing.T) {
	f := newFixture(t)
	asked := 0
	ask := func(path, member, key string) {
		t.Helper()
		asked++
		a := f.get(path, "test")
		var body map[string]any
		if err := json.Unmarshal(a.body, &body); err != nil || a.status != 200 || body[member] != key || body["vigente"] == nil {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	set := catalog.Embedded()
	for key := range set.Banks.All {
		ask("/v1/catalogo/banco/"+key, "clave", key)
	}
	for key := range set.Regimes.All {
		ask("/v1/catalogo/sat/regimen/"+key, "clave", key)
	}
	for key := range set.Uses.All {
		ask("/v1/catalogo/sat/uso_cfdi/"+key, "clave", key)
	}
	for key := range set.PaymentForms.All {
		ask("/v1/catalogo/sat/forma_pago/"+key, "clave", key)
	}
	for key := range set.Phones.All {
		ask("/v1/catalogo/telefono/"+(key + "12345678")[:10], "clave_area", key)
	}
	if want := 147 + 19 + 24 + 22 + 420; asked != want {
		t.Errorf("%d keys, want %d", asked, want)
	}
}

// TestBasisOfLoadedLists: a movement names every version that its answer is from,
// those that were loaded by the bytes as received.
func TestBasisOfLoadedLists(t *testing.T) {
	f := newFixture(t)
	ask := func(target string) string {
		t.Helper()
		if a := f.get(target, "live"); a.status != 200 {
			t.Fatalf("%s: %d %s", target, a.status, a.body)
		}
		list := f.movements("live")
		return list[len(list)-1].Basis
	}
	embedded := catalog.Embedded()
	before := ask("/v1/catalogo/banco/002")
	f.loadScripted(3, "fix", "", "")
	f.loadScripted(3, "spei", "", "")
	f.loadScripted(3, "numeracion", "", "")
	loaded := func(source, day string) string {
		ed := f.live.Acquire()
		defer ed.Release()
		return source + " " + day + " sha256 " + ed.Source(source).Version().SHA256[:12]
	}
	want := func(target, basis string) {
		t.Helper()
		if got := ask(target); got != basis {
			t.Errorf("%s: %q, want %q", target, got, basis)
		}
	}
	want("/v1/economia/tipo-cambio?fecha=2026-08-14", loaded("banxico_fix", "2026-09-17"))
	want("/v1/catalogo/banco/002", before+"; "+loaded("banxico_spei", "2026-09-01"))
	want("/v1/catalogo/telefono/5512345678", embedded.Phones.Version().Basis+"; "+loaded("ift_numeracion", "2026-09-02"))
	want("/v1/catalogo/sat/regimen/601", embedded.Regimes.Version().Basis)
}

// TestCataloguesOfTheEditionCostNothing: that answers are given from an edition
// adds no allocation to a request; these are the figures of before it did.
func TestCataloguesOfTheEditionCostNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, which runs -short, more is allocated")
	}
	f := newFixture(t)
	f1 := func(id string, most float64, args ...operation.Arg) {
		t.Helper()
		i := slices.IndexFunc(f.table, func(op *operation.Operation) bool { return op.ID == id })
		dst := make([]byte, 0, 16<<10)
		r := &operation.Request{Operation: f.table[i], Key: []byte(f.keys["test"]), Args: args}
		if n := testing.AllocsPerRun(500, func() {
			if _, err := f.pipeline.Do(context.Background(), r, dst); err != nil {
				t.Fatal(err)
			}
		}); n > most {
			t.Errorf("%s: %v allocations, at most %v", id, n, most)
		}
	}
	arg := func(in operation.In, name, value string) operation.Arg {
		return operation.Arg{In: in, Name: name, Value: value}
	}
	f1("consultarBanco", 3, arg(operation.InPath, "clave", "002"))
	f1("consultarClaveSAT", 10, arg(operation.InPath, "tipo", "regimen"), arg(operation.InPath, "clave", "601"))
	f1("consultarTelefono", 4, arg(operation.InPath, "numero", "5512345678"))
	f1("consultarTipoCambio", 21, arg(operation.InQuery, "fecha", "2024-12-27"))
}
