package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/valyala/fasthttp/fasthttputil"

	"cotejo/accounts"
	"cotejo/operation"
	"cotejo/snapshots"
)

// empresa is a target that is charged with a live key.
const empresa = "/v1/empresa/EFO010101AA1"

// TestHostileHTTP sends what two readers of HTTP could read in two ways, and
// what is too much.
func TestHostileHTTP(t *testing.T) {
	f := newFixture(t)
	key := "X-Api-Key: " + f.keys["test"] + "\r\n"
	check := func(request string, status int, code string) {
		t.Helper()
		method, _, _ := strings.Cut(request, " ")
		a := f.raw(method, empresa, request)
		if got, _ := walk(a.body, ".codigo"); a.status != status || got != code {
			t.Fatalf("…%q: got %d %s", request[min(130, len(request)):], a.status, a.body)
		}
	}
	get := "GET " + empresa + " HTTP/1.1\r\nHost: x\r\n" + key
	check(get+"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "PETICION_INVALIDA")
	check(get+"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400, "PETICION_INVALIDA")
	check(get+"Transfer-Encoding: identity\r\nContent-Length: 4\r\n\r\nabcd", 400, "PETICION_INVALIDA")
	check(get+"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400, "PETICION_INVALIDA")
	check(get+"Content-Type: application/json\r\nContent-Type: text/plain\r\n\r\n", 400, "PETICION_INVALIDA")
	check(get+"X-A: b\r\n c\r\n\r\n", 400, "PETICION_INVALIDA")
	check(get+"X-A: b\r\n\tc\r\n\r\n", 400, "PETICION_INVALIDA")
	check("GET http://otro.test"+empresa+" HTTP/1.1\r\nHost: x\r\n"+key+"\r\n", 400, "PETICION_INVALIDA")
	check("GET "+empresa+"#fragmento HTTP/1.1\r\nHost: x\r\n"+key+"\r\n", 400, "PETICION_INVALIDA")
	check("GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400, "PETICION_INVALIDA")
	check("nada\r\n\r\n", 400, "PETICION_INVALIDA")
	check(get+"X-A: "+strings.Repeat("a", maxHeaderBytes)+"\r\n\r\n", 431, "ENCABEZADOS_DEMASIADO_GRANDES")
	check(get+strings.Repeat("X-A: b\r\n", maxHeaderFields)+"\r\n", 431, "ENCABEZADOS_DEMASIADO_GRANDES")

	// Too large a body is told only to who may ask; the order of errors holds.
	large := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", maxBodyBytes+1, strings.Repeat("a", maxBodyBytes+1))
	check(get+large, 413, "CUERPO_DEMASIADO_GRANDE")
	check("GET "+empresa+" HTTP/1.1\r\nHost: x\r\n"+large, 401, "NO_AUTORIZADO")
	check("POST "+empresa+" HTTP/1.1\r\nHost: x\r\n"+large, 405, "METODO_NO_PERMITIDO")
	check("GET /v1/nada HTTP/1.1\r\nHost: x\r\n"+large, 404, "RUTA_NO_ENCONTRADA")

	// Two keys are no key, however good one of them is.
	check("GET "+empresa+" HTTP/1.1\r\nHost: x\r\n"+key+key+"\r\n", 401, "NO_AUTORIZADO")
	check("GET "+empresa+" HTTP/1.1\r\nHost: x\r\n"+key+"x-api-key: otra\r\n\r\n", 401, "NO_AUTORIZADO")

	// And it still answers.
	if a := f.get(empresa, "test"); a.status != 200 {
		t.Fatalf("got %d", a.status)
	}
}

func TestTargetLimits(t *testing.T) {
	f := newFixture(t)
	check := func(target, loc string) {
		t.Helper()
		a := f.get(target, "test")
		if got, _ := walk(a.body, ".detail.0.loc"); a.status != 422 || fmt.Sprint(got) != loc {
			t.Fatalf("%.80s: got %d %s", target, a.status, a.body)
		}
	}
	check("/v1/empresa/"+strings.Repeat("A", maxSegmentBytes+1), "[path rfc]")
	check(empresa+"?a="+strings.Repeat("b", maxQueryBytes), "[query]")
	check(empresa+"?"+strings.Repeat("a&", maxQueryParams+1), "[query]")
	if a := f.get(empresa+"?"+strings.Repeat("a&", maxQueryParams), "test"); a.status != 200 {
		t.Fatalf("%d parameters: got %d", maxQueryParams, a.status)
	}
	if a := f.get(empresa+"?"+strings.Repeat("&", 2000), "test"); a.status != 200 {
		t.Fatalf("empty parameters: got %d", a.status)
	}
}

// TestKeepAlive sends several requests on one connection, in one packet.
func TestKeepAlive(t *testing.T) {
	f := newFixture(t)
	conn := must(f.listener.Dial())
	defer conn.Close()
	one := "GET /v1/nada/%d HTTP/1.1\r\nHost: x\r\nX-Request-Id: pedido-%04d\r\n\r\n"
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, one, i, i)
	}
	go conn.Write([]byte(b.String()))
	dec := json.NewDecoder(bodies{conn})
	for i := range 20 {
		var v struct {
			RequestID string `json:"request_id"`
		}
		if err := dec.Decode(&v); err != nil || v.RequestID != fmt.Sprintf("pedido-%04d", i) {
			t.Fatalf("answer %d: %q %v", i, v.RequestID, err)
		}
	}
}

// bodies drops the header lines of successive answers.
type bodies struct{ net.Conn }

func (b bodies) Read(p []byte) (int, error) {
	// Headers hold no brace, bodies are one line that starts with one.
	one := make([]byte, 1)
	n := 0
	for depth := 0; n < len(p); {
		if _, err := b.Conn.Read(one); err != nil {
			return n, err
		}
		switch one[0] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				p[n] = '}'
				return n + 1, nil
			}
		}
		if depth > 0 {
			p[n] = one[0]
			n++
		}
	}
	return n, nil
}

// TestLogHoldsNoValues holds that what a client sends is not in the log.
func TestLogHoldsNoValues(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	f.get(empresa+"?canario=CANARIO1", "live")
	f.get("/v1/empresa/CANARIO2", "live")
	f.get("/v1/CANARIO3", "")
	f.get(empresa, "svc_live_CANARIO4")
	f.send("GET", empresa, "X-CANARIO5: CANARIO6", "User-Agent: CANARIO7", "X-Request-Id: CANARIO8 ")
	f.raw("CANARIO9", empresa, "CANARIO9 "+empresa+" HTTP/1.1\r\nHost: x\r\n\r\n")
	f.raw("GET", empresa, "GET "+empresa+" HTTP/1.1\r\nHost: x\r\nCANARIO10\r\n\r\n")
	log := f.accessLines() + f.log.String()
	for _, secret := range append([]string{"EFO010101AA1"}, f.keys["live"], f.keys["live"][9:]) {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
	// CANARIO8 is a well-formed request id once trimmed: it is what the log is for.
	if got := strings.ReplaceAll(log, `"id":"CANARIO8"`, ""); strings.Contains(strings.ToUpper(got), "CANARIO") {
		t.Errorf("the log holds a value: %s", got)
	}
	first, _, _ := strings.Cut(log, "\n")
	for _, want := range []string{`"ruta":"/v1/empresa/{rfc}"`, `"status":200`, `"metodo":"GET"`, `"organizacion":"org_`, `"llave":"`, `"us":`, `"bytes":`, `"id":"req_`} {
		if !strings.Contains(first, want) {
			t.Errorf("the log lacks %s: %s", want, first)
		}
	}
}

// TestLogSaysWhoAsked: the organization of the key, and none for an operator's.
func TestLogSaysWhoAsked(t *testing.T) {
	f := newFixture(t)
	f.get("/v1/organizacion", "sister")
	f.get("/v1/organizacion", "twin")
	f.get("/v1/organizacion", "admin")
	lines := strings.Split(strings.TrimSuffix(f.accessLines(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	named := func(key string) string {
		id := must(f.accounts.Authenticate([]byte(f.keys[key]))).KeyID
		if key == "admin" {
			return `,"llave":"` + id + `"`
		}
		org := f.orgs["sister"].ID
		if key == "twin" {
			org = f.orgs["live"].ID.Twin()
		}
		return `,"organizacion":"` + accounts.FormatOrg(org) + `","llave":"` + id + `"`
	}
	for i, key := range []string{"sister", "twin", "admin"} {
		if !strings.Contains(lines[i], named(key)) || key == "admin" && strings.Contains(lines[i], `"organizacion"`) {
			t.Errorf("%s: %s lacks %s", key, lines[i], named(key))
		}
	}
}

// TestPanic holds that one bad request costs one answer, not the process.
func TestPanic(t *testing.T) {
	table := must(operation.NewTable([]operation.Operation{{
		ID: "fallar", Method: "GET", Path: "/fallar", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Read:   func(context.Context, operation.Call) (operation.Response, error) { panic("se rompió") },
	}}))
	log := &logBuffer{}
	server := must(New(Config{Table: table, Pipeline: &operation.Pipeline{}, Log: slog.New(slog.NewJSONHandler(log, nil))}))
	l := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	for range 2 {
		conn := must(l.Dial())
		if _, err := conn.Write([]byte("GET /fallar HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		a := read(t, conn, "GET")
		conn.Close()
		if code, _ := walk(a.body, ".codigo"); a.status != 500 || code != "ERROR_INTERNO" || strings.Contains(string(a.body), "rompió") {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	if !strings.Contains(log.String(), "se rompió") || !strings.Contains(log.String(), "http_test.go") {
		t.Fatalf("the log does not tell where: %s", log.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsLogged: a file that changed on the disk while it serves shows first
// in an answer, and the log names it. The caller does not learn where it is.
func TestDamageIsLogged(t *testing.T) {
	log := &logBuffer{}
	l := serve(t, &operation.Pipeline{}, func(s *Server) { s.log = slog.New(slog.NewJSONHandler(log, nil)) }, operation.Operation{
		ID: "leer", Method: "GET", Path: "/leer", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return operation.Response{}, fmt.Errorf("COMPANY/1: %w", &snapshots.CorruptError{Path: "snapshots/7/rows", Want: "aa", Got: "bb"})
		},
	})
	conn := must(l.Dial())
	defer conn.Close()
	must(conn.Write([]byte("GET /leer HTTP/1.1\r\nHost: x\r\n\r\n")))
	a := read(t, conn, "GET")
	if code, _ := walk(a.body, ".codigo"); a.status != 503 || code != "FUENTE_DANADA" || strings.Contains(string(a.body), "rows") {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	for _, want := range []string{"snapshots/7/rows", `"ruta":"/leer"`, `"codigo":"FUENTE_DANADA"`, a.header.Get("X-Request-Id")} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
}

// TestParallelCharges holds that what is charged is what was answered.
func TestParallelCharges(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	const askers = 32 // 100 pesos pay for 8 answers of 12
	answers := make(chan answer, askers)
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() { answers <- f.get(empresa, "live") })
	}
	wg.Wait()
	close(answers)
	count, ids := map[int]int{}, map[any]bool{}
	for a := range answers {
		count[a.status]++
		if a.status == 200 {
			id, _ := walk(a.body, ".verification_id")
			ids[id] = true
		}
	}
	if count[200] != 8 || count[402] != askers-8 || len(ids) != 8 {
		t.Fatalf("got %v and %d ids", count, len(ids))
	}
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"A%26B", "%C3%91", "N%CC%83", "%", "%4", "%zz", "a/b", "%2f", "%5C", "%00", "\xff", "a+b", "%2541"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, query bool) {
		s, ok := unescape(raw, query)
		if !ok {
			return
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || !utf8.ValidString(s) {
			t.Fatalf("%q let a control character through: %q", raw, s)
		}
		if !query && strings.ContainsAny(s, `/\`) {
			t.Fatalf("%q let a slash through: %q", raw, s)
		}
		if len(s) > len(raw) {
			t.Fatalf("%q grew: %q", raw, s)
		}
	})
}

func FuzzTarget(f *testing.F) {
	f.Add([]byte(empresa + "?sancionados=false&a=%20"))
	f.Add([]byte("//a/../b?x#y"))
	f.Fuzz(func(t *testing.T, uri []byte) {
		var segments [maxDepth + 1][]byte
		parts, ok := splitTarget(uri, segments[:0])
		if !ok {
			return
		}
		op := operation.Operation{Params: []operation.Param{{Name: "a", In: operation.InPath}, {Name: "b", In: operation.InPath}}}
		r := operation.Request{Operation: &op}
		decodePath(&r, parts.segments)
		decodeQuery(&r, parts.query)
		if len(r.Args)+len(r.Faults) > 2+maxQueryParams+1 {
			t.Fatalf("%q: %d arguments", uri, len(r.Args))
		}
	})
}

// BenchmarkEmpresa asks for one RFC without end, through everything but the
// kernel's network.
func BenchmarkEmpresa(b *testing.B) {
	f := newFixture(b)
	f.loadStage(0)
	// Of the fixture's limits the clock stands still: with ones that are never used up.
	f.limit("1000000/s,10000000", "0")
	request := []byte("GET /v1/empresa/LIM010101AA1 HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + f.keys["test"] + "\r\n\r\n")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		conn := must(f.listener.Dial())
		defer conn.Close()
		buf := make([]byte, 64<<10)
		for pb.Next() {
			must(conn.Write(request))
			for n := 0; ; {
				n += must(conn.Read(buf[n:]))
				if buf[n-1] == '}' {
					break
				}
			}
		}
	})
}
