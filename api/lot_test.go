package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cotejo/ledger"
	"cotejo/operation"
)

// lote is the JSON answer to a list.
type lote struct {
	ID      string            `json:"lote_id"`
	State   string            `json:"estado"`
	Moment  string            `json:"consultado"`
	Edition string            `json:"edicion_sha256"`
	Cost    string            `json:"costo"`
	Uses    int               `json:"usos_individuales"`
	Tiers   []tierLine        `json:"escalones"`
	Done    int               `json:"consultados"`
	Results []json.RawMessage `json:"resultados"`
}

type tierLine struct {
	From   int    `json:"desde"`
	To     int    `json:"hasta"`
	Units  int    `json:"consultas"`
	Price  string `json:"precio_unitario"`
	Amount string `json:"importe"`
}

// summary is an item of resultados in a summary.
type summary struct {
	Line     int    `json:"linea"`
	RFC      string `json:"rfc"`
	ID       string `json:"verification_id"`
	Code     string `json:"result_code"`
	Sat69B   string `json:"sat_69b"`
	Stage    string `json:"situacion_69b"`
	Registro string `json:"registro_sha256"`
}

// sendList sends a list of RFCs and returns the answer, which must be one.
func (f *fixture) sendList(query, key string, rfcs []string, headers ...string) lote {
	f.t.Helper()
	a := f.sendBody("POST", "/v1/empresa/lote"+query, must(json.Marshal(rfcs)), append(headers, f.keyHeader(key)...)...)
	if a.status != 200 {
		f.t.Fatalf("%d %.400s", a.status, a.body)
	}
	return parseLote(f.t, a.body)
}

func parseLote(t testing.TB, body []byte) (l lote) {
	t.Helper()
	if err := json.Unmarshal(body, &l); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return l
}

// order is the order of a list, by where the key's owner reads it.
func (f *fixture) order(where, key string) ledger.Order {
	f.t.Helper()
	org := f.orgs[key]
	mode := key == "test"
	if mode {
		org.ID = org.ID.Twin()
	}
	id, _ := f.pipeline.Ledger.ParseID(where[strings.LastIndexByte(where, '/')+1:])
	o, err := f.pipeline.Ledger.Order(f.t.Context(), org.Account, ledger.OrderKey{Org: org.ID, Sandbox: mode, ID: id})
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

// wait waits for a condition of an order.
func (f *fixture) wait(where, key string, enough func(ledger.Order) bool) {
	waitUntil(func() bool { return enough(f.order(where, key)) })
}

func ended(o ledger.Order) bool { return o.State != ledger.OrderOpen }

// waitUntil lets others run until a condition holds.
func waitUntil(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// someRFCs are n well-formed RFCs that no list mentions.
func someRFCs(n int) []string {
	var rfcs []string
	if err := json.Unmarshal(listOf(n), &rfcs); err != nil {
		panic(err)
	}
	return rfcs
}

var published = []string{
	"EFO010101AA1", "PRE010101AA1", "DES010101AA1", "SEN010101AA1", "CON010101AA1", "SAN010101AA1", "FIR010101AA1", "NOLO010101AA1", "LIM010101AA1",
}

// TestAListIsItsSingleQuestions: each answer of a list is the record that the single
// question leaves, byte for byte but for its id, over the sandbox edition and a loaded
// one, today and about an earlier day.
func TestAListIsItsSingleQuestions(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	for _, name := range []string{"bis", "firmes", "contratos2025"} {
		f.loadScripted(3, name, "", "")
	}
	must(f.accounts.Credit(t.Context(), f.orgs["live"].ID, 10_000_00, "prueba"))
	rfcs := append(slices.Clone(published), "AAA010101AA1", "&ÑA010101AA1", "ÑOLO010101AA1")
	for _, key := range []string{"live", "test"} {
		for _, query := range []string{"", "?sancionados=false", "?en_fecha=2026-08-31"} {
			full := f.sendList(query, key, rfcs)
			if len(full.Results) != len(rfcs) {
				t.Fatalf("%d results", len(full.Results))
			}
			brief := f.sendList("?detalle=resumen&"+strings.TrimPrefix(query, "?"), key, rfcs)
			for i, rfc := range rfcs {
				path := strings.NewReplacer("&", "%26", "Ñ", "%C3%91").Replace(rfc)
				single := f.get("/v1/empresa/"+path+query, key).body
				id := func(body []byte) string {
					v, _ := walk(body, ".verification_id")
					text, _ := v.(string)
					return text
				}
				item := full.Results[i]
				if read := f.get("/v1/verificaciones/"+id(item), key).body; !bytes.Equal(read, item) {
					t.Fatalf("%s %s: read again it is\n%s\nwas\n%s", key, rfc, read, item)
				}
				same := bytes.Replace(single, []byte(id(single)), []byte(id(item)), 1)
				if !bytes.Equal(same, item) {
					t.Fatalf("%s %s%s: alone it is\n%s\nin the list\n%s", key, rfc, query, same, item)
				}
				var s summary
				if err := json.Unmarshal(brief.Results[i], &s); err != nil {
					t.Fatal(err)
				}
				sha, _ := walk(single, ".registro_sha256")
				state, _ := walk(single, ".sat_69b.estado")
				stage, _ := walk(single, ".sat_69b.situaciones.0.situacion")
				text, _ := stage.(string)
				if s.Registro != sha || s.RFC != rfc || s.Line != i+1 || s.Sat69B != state || s.Stage != text || s.Code != "COMPANY_OK" {
					t.Fatalf("%s %s: the summary is %s, the answer %s", key, rfc, brief.Results[i], single)
				}
			}
		}
	}
}

// TestTiers: every position costs what its place says, to the centavo, with and
// without individual uses; what is equal costs once.
func TestTiers(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	must(f.accounts.Credit(t.Context(), f.orgs["live"].ID, 100_000_00, "prueba"))
	single, _ := operation.PriceOf("COMPANY")
	price := func(position int) int64 {
		switch {
		case position < 50:
			return 1200
		case position < 250:
			return 900
		}
		return 600
	}
	for _, n := range []int{1, 48, 49, 50, 51, 249, 250, 251, 600} {
		for _, uses := range []int{0, 1, 49, 50, 250} {
			if uses > 0 {
				must(f.accounts.CreditUses(t.Context(), f.orgs["live"].ID, "COMPANY", int64(uses), single.Single, "usos"))
			}
			want, used := int64(0), min(uses, n)
			for position := used + 1; position <= n; position++ {
				want += price(position)
			}
			funds := func() ledger.Funds {
				funds, _, err := f.pipeline.Ledger.Funded(f.orgs["live"].Account, f.clock(), "COMPANY", 1200)
				if err != nil {
					t.Fatal(err)
				}
				return funds
			}
			rfcs := someRFCs(n)
			rfcs = append(rfcs, rfcs[0], strings.ToLower(rfcs[n-1]), "nada")
			quote := f.sendBody("POST", "/v1/empresa/lote?simular=1", must(json.Marshal(rfcs)), f.keyHeader("live")...)
			before := funds()
			got := f.sendList("?detalle=resumen", "live", rfcs)
			after := funds()
			sum, units := int64(0), used
			for _, line := range got.Tiers {
				for position := line.From; position <= line.To; position++ {
					sum += price(position)
				}
				units += line.Units
			}
			quoted, _ := walk(quote.body, ".costo")
			if got.Cost != operation.Pesos(want) || quoted != got.Cost || before.Balance-after.Balance != want || before.Uses-after.Uses != int64(used) ||
				sum != want || units != n || got.Uses != used || len(got.Results) != n {
				t.Errorf("%d with %d uses: cost %s, quoted %v, %d results; debited %d and %d uses, want %d and %d; %+v",
					n, uses, got.Cost, quoted, len(got.Results), before.Balance-after.Balance, before.Uses-after.Uses, want, used, got.Tiers)
			}
			// What is left would pay for the next.
			for left := after.Uses; left > 0; {
				chunk := int(min(left, 1000))
				f.sendList("?detalle=resumen", "live", someRFCs(chunk))
				left -= int64(chunk)
			}
		}
	}
}

// TestOneOrderForOneKey: requests with one key at once, some of whose clients leave,
// are readers of one order, which is worked off and charged once.
func TestOneOrderForOneKey(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	must(f.accounts.Credit(t.Context(), f.orgs["live"].ID, 100_000_00, "prueba"))
	rfcs := someRFCs(2000)
	body := must(json.Marshal(rfcs))
	release := f.store.hold()
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, replayed := map[string]int{}, 0
	for range 4 {
		wg.Go(func() {
			a := f.sendBody("POST", "/v1/empresa/lote?detalle=resumen", body, append(f.keyHeader("live"), "Idempotency-Key: uno")...)
			l := parseLote(t, a.body)
			mu.Lock()
			defer mu.Unlock()
			ids[l.ID]++
			if a.header.Get("Idempotent-Replayed") == "true" {
				replayed++
			}
			if a.status != 200 || len(l.Results) != len(rfcs) || l.Cost != a.header.Get("X-Costo") && a.header.Get("X-Costo") != "" {
				t.Errorf("%d, %d results, cost %s, header %q", a.status, len(l.Results), l.Cost, a.header.Get("X-Costo"))
			}
		})
	}
	gone := must(f.listener.Dial())
	must(fmt.Fprintf(gone, "POST /v1/empresa/lote?detalle=resumen HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nIdempotency-Key: uno\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		f.keys["live"], len(body), body))
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	wg.Wait()
	if len(ids) != 1 || replayed < 3 {
		t.Errorf("orders %v, %d replayed", ids, replayed)
	}
	const want = 49*1200 + 200*900 + (2000-249)*600
	funds, _, err := f.pipeline.Ledger.Funded(f.orgs["live"].Account, f.clock(), "COMPANY", 1200)
	if err != nil || funds.Balance != 100_100_00-want {
		t.Errorf("balance %d, %v; want %d", funds.Balance, err, 100_100_00-want)
	}
}

// TestAnOrderIsTakenUp: an order whose process ends in the middle is finished by the
// next one, from the edition that it began with; whoever sends the same request
// meanwhile is answered from its beginning, and nothing is there or paid twice.
func TestAnOrderIsTakenUp(t *testing.T) {
	f := newFixture(t)
	f.loadStage(2)
	must(f.accounts.Credit(t.Context(), f.orgs["live"].ID, 100_000_00, "prueba"))
	rfcs := someRFCs(3000)
	f.stopLots()
	accepted := f.sendBody("POST", "/v1/empresa/lote?detalle=resumen", must(json.Marshal(rfcs)),
		append(f.keyHeader("live"), "Idempotency-Key: k", "Prefer: respond-async")...)
	where := accepted.header.Get("Location")
	if accepted.status != 202 || where == "" {
		t.Fatalf("%d %s", accepted.status, accepted.body)
	}
	edition := f.live.Acquire().Manifest().SHA256
	state := func() (state string, done float64) {
		body := f.get(where, "live").body
		v, _ := walk(body, ".estado")
		n, _ := walk(body, ".avance.hechas")
		return v.(string), n.(float64)
	}
	if got, done := state(); got != "EN_ESPERA" || done != 0 {
		t.Errorf("%s, %v", got, done)
	}
	if a := f.get(where+"/resultados", "live"); a.status != 409 || a.header.Get("Retry-After") == "" {
		t.Errorf("results of a lot that waits: %d %s", a.status, a.body)
	}
	f.loadStage(3)
	for i := range 6 { // ends after some blocks
		f.runLots()
		f.wait(where, "live", func(o ledger.Order) bool { return ended(o) || o.Done > 400*i })
		f.stopLots()
	}
	f.runLots()
	l := f.sendList("?detalle=resumen", "live", rfcs, "Idempotency-Key: k")
	ids := map[string]bool{}
	for i, raw := range l.Results {
		var s summary
		if err := json.Unmarshal(raw, &s); err != nil || s.RFC != rfcs[i] || ids[s.ID] {
			t.Fatalf("%d: %s, %v", i, raw, err)
		}
		ids[s.ID] = true
	}
	const want = 49*1200 + 200*900 + (3000-249)*600
	if len(ids) != len(rfcs) || l.Edition != edition || l.Cost != operation.Pesos(want) {
		t.Errorf("%d results, edition %s (was %s), cost %s", len(ids), l.Edition, edition, l.Cost)
	}
	funds, _, err := f.pipeline.Ledger.Funded(f.orgs["live"].Account, f.clock(), "COMPANY", 1200)
	if err != nil || funds.Balance != 100_100_00-want {
		t.Errorf("balance %d, %v", funds.Balance, err)
	}
	if got, done := state(); got != "TERMINADO" || done != 3000 {
		t.Errorf("%s, %v", got, done)
	}
}

// TestTooManyLists: an organization has eight lists that are not done, and others are
// not kept out by them.
func TestTooManyLists(t *testing.T) {
	f := newFixture(t)
	f.stopLots()
	send := func(key string) answer {
		return f.sendBody("POST", "/v1/empresa/lote", []byte(`["EFO010101AA1"]`), append(f.keyHeader(key), "Prefer: respond-async")...)
	}
	var where []string
	for range 8 {
		a := send("test")
		if a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		where = append(where, a.header.Get("Location"))
	}
	if a := send("test"); a.status != 429 || a.header.Get("Retry-After") == "" || !bytes.Contains(a.body, []byte("DEMASIADOS_LOTES")) {
		t.Errorf("the ninth: %d %s", a.status, a.body)
	}
	if a := send("twin"); a.status != 202 {
		t.Errorf("another organization's: %d %s", a.status, a.body)
	}
	f.runLots()
	for _, w := range where {
		f.wait(w, "test", ended)
		if a := f.get(w+"/resultados", "test"); a.status != 200 {
			t.Errorf("%s: %d", w, a.status)
		}
	}
	if a := send("test"); a.status != 202 {
		t.Errorf("after them: %d", a.status)
	}
}

// TestAHeldPriceThatIsOver: an order that waits for more than a day pays each position
// as if it had not, and stops when the money is gone meanwhile.
func TestAHeldPriceThatIsOver(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	must(f.accounts.Credit(t.Context(), f.orgs["live"].ID, 4_900_00, "prueba")) // 5,000 in all
	rfcs := someRFCs(60)
	const cost = 49*1200 + 11*900
	f.stopLots()
	open := func() string {
		a := f.sendBody("POST", "/v1/empresa/lote?detalle=resumen", must(json.Marshal(rfcs)), append(f.keyHeader("live"), "Prefer: respond-async")...)
		if a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.header.Get("Location")
	}
	results := func(where string) answer {
		f.wait(where, "live", ended)
		return f.get(where+"/resultados?detalle=resumen", "live")
	}
	where := open()
	f.advance(25 * time.Hour)
	f.runLots()
	if l := parseLote(t, results(where).body); l.State != "TERMINADO" || l.Cost != operation.Pesos(cost) || len(l.Results) != 60 {
		t.Errorf("%+v", l)
	}
	f.stopLots()
	where = open()
	f.advance(25 * time.Hour)
	left, _, _ := f.pipeline.Ledger.Funded(f.orgs["live"].Account, f.clock(), "COMPANY", 1200)
	for n := left.Balance / 1200; n > 0; n-- { // others spend it
		f.get("/v1/empresa/EFO010101AA1", "live")
	}
	f.runLots()
	stopped := results(where)
	l := parseLote(t, stopped.body)
	if l.State != "DETENIDO" || l.Cost != "0.00" || len(l.Results) != 0 || !bytes.Contains(stopped.body, []byte("abonar")) {
		t.Errorf("%s", stopped.body)
	}
	if v, _ := walk(f.get(where, "live").body, ".estado"); v != "DETENIDO" {
		t.Errorf("%v", v)
	}
}

// TestListsAsTables: of any list the CSV has a row for each entry in its order, holds
// no formula, and says what the JSON says; the NDJSON ends with its last line.
func TestListsAsTables(t *testing.T) {
	f := newFixture(t)
	f.limit("0", "0")
	nasty := []string{"=1+1", "+A", "-A", "@A", "\tA", "＝A", "a\"b,c", "línea\nnueva", "XAXX010101000", "", strings.Repeat("Ñ", 50), "'x", "\u202e"}
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(published), rapid.SampledFrom(nasty)), 1, 20).Draw(t, "lista")
		entries = append(entries, "LIM010101AA1")
		body := must(json.Marshal(entries))
		detail := rapid.SampledFrom([]string{"resumen", "completo"}).Draw(t, "detalle")
		key := append(f.keyHeader("test"), fmt.Sprintf("Idempotency-Key: %x", sha256.Sum256(append(slices.Clone(body), detail...))))
		ask := func(accept string) []byte {
			a := f.sendBody("POST", "/v1/empresa/lote?detalle="+detail, body, append(key, "Accept: "+accept)...)
			if a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			return a.body
		}
		l := parseLote(f.t, ask("application/json"))
		table := ask("text/csv")
		rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
		if err != nil || len(rows) != len(entries)+1 {
			t.Fatalf("%d rows of %d: %v\n%s", len(rows), len(entries), err, table)
		}
		answered := 0
		for i, row := range rows[1:] {
			for _, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r\n") || strings.HasPrefix(cell, "＝") {
					t.Fatalf("a formula: %q", cell)
				}
			}
			if row[0] != fmt.Sprint(i+1) || (row[2] == "") == (row[12] == "") {
				t.Fatalf("row %d: %q", i+1, row)
			}
			if row[2] == "" {
				continue
			}
			item := l.Results[answered]
			answered++
			if id, _ := walk(item, ".verification_id"); id != row[2] {
				t.Fatalf("row %q answers %v", row, id)
			}
			if detail == "completo" && row[13] != string(item) {
				t.Fatalf("the answer is %s in the table and %s in the object", row[13], item)
			}
		}
		if answered != len(l.Results) || answered != l.Done {
			t.Fatalf("%d rows of %d results", answered, len(l.Results))
		}
		lines := bufio.NewScanner(bytes.NewReader(ask("application/x-ndjson")))
		lines.Buffer(nil, 1<<20)
		var texts []string
		for lines.Scan() {
			texts = append(texts, lines.Text())
		}
		if len(texts) != answered+2 || texts[answered+1] != fmt.Sprintf(`{"fin":{"lote_id":"%s","resultados":%d}}`, l.ID, answered) {
			t.Fatalf("%d lines: %q", len(texts), texts[len(texts)-1])
		}
		for i, item := range l.Results {
			if texts[i+1] != string(item) {
				t.Fatalf("line %d: %s, in the object %s", i+1, texts[i+1], item)
			}
		}
	})
}
