package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/accounts"
	"cotejo/operation"
	"cotejo/ratelimit"
)

// forgetful is the same accounts by a process that has just started and read no key
// into memory.
func (f *fixture) forgetful() *accounts.Service {
	return accounts.New(f.pipeline.Ledger, bytes.Repeat([]byte{7}, 32), nil, f.clock)
}

// strangerKey is a well-formed key that nobody was given: from another installation.
func strangerKey(t *testing.T) string {
	f := newFixture(t)
	secret, _, err := f.accounts.CreateKey(context.Background(), accounts.KeyRequest{Org: f.orgs["live"].ID, Mode: accounts.Live})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestGuessingCostsNoLookUp: while a network waits for its wrong keys, what only the
// store could tell is not looked up; what is in memory is let in.
func TestGuessingCostsNoLookUp(t *testing.T) {
	wrong := strangerKey(t)
	f := newFixture(t)
	f.loadStage(0)
	f.peer = netip.MustParseAddr("192.0.2.1")
	f.pipeline.Accounts = f.forgetful()
	expect := func(status int, key string) answer {
		t.Helper()
		a := f.get("/v1/empresa/EFO010101AA1", key)
		if a.status != status {
			t.Fatalf("got %d, want %d: %s", a.status, status, a.body)
		}
		return a
	}
	expect(200, "live") // from here on in memory
	for range 21 {
		expect(401, wrong)
	}
	expect(429, wrong)
	expect(200, "live")
	if a := expect(429, "other"); a.header.Get("Retry-After") != "15" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	f.peer = netip.MustParseAddr("192.0.2.2")
	expect(200, "other")
	f.peer = netip.MustParseAddr("192.0.2.1")
	expect(200, "other")

	// A server that starts knows its keys before anybody asks.
	f.pipeline.Accounts = f.forgetful()
	if err := f.pipeline.Accounts.Warm(context.Background()); err != nil {
		t.Fatal(err)
	}
	expect(429, wrong)
	expect(402, "poor")
}

// TestUnknownKeysOfEverybody: many networks that guess a little each are many reads
// of the store; beyond a rate the service is busy, and says so to all but those
// whose key is in memory.
func TestUnknownKeysOfEverybody(t *testing.T) {
	wrong := strangerKey(t)
	f := newFixture(t)
	f.pipeline.Throttle.LookUps = ratelimit.New(ratelimit.Rate{N: 1, Per: time.Second, Burst: 3}, 1, func() time.Duration { return 0 })
	f.pipeline.Random = func(int) int { return 2 }
	shed := metrics.GetOrCreateCounter(`cotejo_shed_total{class="lectura",reason="key_lookups"}`)
	before := shed.Get()
	target := "/v1/verificaciones/COM-20261120-00000000"
	for i, want := range []int{401, 401, 401, 503, 503} {
		f.peer = netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		a := f.get(target, wrong)
		if a.status != want || want == 503 && a.header.Get("Retry-After") != "3" {
			t.Fatalf("request %d: %d %v, want %d: %s", i, a.status, a.header, want, a.body)
		}
	}
	if a := f.get(target, "live"); a.status != 404 {
		t.Errorf("a known key: %d %s", a.status, a.body)
	}
	if a := f.get(target, "svc_live_mal-formada"); a.status != 401 {
		t.Errorf("what cannot be a key: %d %s", a.status, a.body)
	}
	if shed.Get()-before != 2 {
		t.Errorf("%d were counted", shed.Get()-before)
	}
}

// TestLimitedIsCounted: in the metrics all, in the access log what a flood leaves
// room for.
func TestLimitedIsCounted(t *testing.T) {
	f := newFixture(t)
	f.peer = netip.MustParseAddr("192.0.2.1")
	f.limit("1/s,1", "1/s,1")
	f.server.quiet = ratelimit.New(quietRate, 1, func() time.Duration { return 0 })
	count := func(name string) uint64 { return metrics.GetOrCreateCounter(name).Get() }
	names := []string{`cotejo_limited_total{limit="llave"}`, `cotejo_limited_total{limit="direccion"}`, "cotejo_access_log_omitted_total"}
	before := map[string]uint64{}
	for _, name := range names {
		before[name] = count(name)
	}
	for range 101 {
		f.get("/v1/precios", "")
		f.get("/v1/empresa/EFO010101AA1", "test")
	}
	for i, want := range []uint64{100, 100, 90} {
		if got := count(names[i]) - before[names[i]]; got != want {
			t.Errorf("%s moved by %d, want %d", names[i], got, want)
		}
	}
	lines := f.accessLines()
	if keyed, refused := strings.Count(lines, `"llave":"`), strings.Count(lines, `"ruta":"/v1/precios","status":429`); keyed != 101 || refused != 10 {
		t.Errorf("%d lines of the key, %d of the network", keyed, refused)
	}
}

// TestWhatWasSentIsNotQuoted: a panic or an error of ours that quotes its input.
func TestWhatWasSentIsNotQuoted(t *testing.T) {
	log := &logBuffer{}
	l := serve(t, &operation.Pipeline{}, func(s *Server) { s.log = slog.New(slog.NewJSONHandler(log, nil)) }, operation.Operation{
		ID: "fallar", Method: "GET", Path: "/fallar/{rfc}", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Params: []operation.Param{{Name: "rfc", In: operation.InPath, Description: "d", Schema: &jsonschema.Schema{Type: "string"}}},
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Read: func(_ context.Context, call operation.Call) (operation.Response, error) {
			rfc, _ := operation.Get[string](call.Input, "rfc")
			if rfc == "PANICO010101AA1" {
				panic("no se pudo leer «" + strings.ToLower(rfc) + "» ni la tarjeta 4111111111111111 en la fila 12345")
			}
			return operation.Response{}, fmt.Errorf("índice de %q, en disco.go:17", rfc)
		},
	})
	for _, rfc := range []string{"PANICO010101AA1", "E%46O010101AA1"} {
		conn := must(l.Dial())
		must(conn.Write([]byte("GET /fallar/" + rfc + "?x=4111111111111111 HTTP/1.1\r\nHost: x\r\n\r\n")))
		if a := read(t, conn, "GET"); a.status != 500 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		conn.Close()
	}
	said := log.String()
	for _, secret := range []string{"PANICO010101AA1", "panico010101aa1", "4111111111111111", "EFO010101AA1"} {
		if strings.Contains(said, secret) {
			t.Errorf("the log quotes %s: %s", secret, said)
		}
	}
	for _, want := range []string{"no se pudo leer «…» ni la tarjeta … en la fila 12345", `índice de \"…\", en disco.go:17`} {
		if !strings.Contains(said, want) {
			t.Errorf("the log lacks %s: %s", want, said)
		}
	}
}

// TestRequestIDs: a client's own id is kept, unless it would be personal data in
// the log.
func TestRequestIDs(t *testing.T) {
	f := func(id string, taken bool) {
		t.Helper()
		if got := validRequestID([]byte(id)); got != taken {
			t.Errorf("%s: %v", id, got)
		}
	}
	f("pedido-0001", true)
	f("b3c1f0de-8f6a-4a2b-9a54-3d0d4b0f8a11", true)
	f("4111abcd11111111", true)
	f("123456789", true)
	f("corto", false)
	f(strings.Repeat("x", 65), false)
	f("con espacio", false)
	f("4111111111111111", false)       // a card
	f("4111-1111-1111-1111", false)    // the same
	f("002010077777777771", false)     // a CLABE
	f("1234567890", false)             // an account
	f("EFO010101AA1", false)           // an RFC
	f("vapj800101abc", false)          // of a person
	f("GOMC850101HDFRRL09", false)     // a CURP
	f("svc_live_abcdefgh", false)      // of a key
	f("x-svc_test_abcdefghijk", false) // anywhere
}
