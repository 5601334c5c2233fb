package api

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// readings are the values of all metrics.
func readings() map[string]float64 {
	var b bytes.Buffer
	metrics.WritePrometheus(&b, false)
	values := map[string]float64{}
	for line := range strings.Lines(b.String()) {
		if at := strings.LastIndexByte(line, ' '); at > 0 {
			values[line[:at]] = must(strconv.ParseFloat(strings.TrimSpace(line[at:]), 64))
		}
	}
	return values
}

// TestMetrics holds what each request moves: counts by route and status, and
// nothing that the client wrote.
func TestMetrics(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	before := readings()
	f.get(empresa, "live")
	f.send("GET", empresa, "X-Api-Key: "+f.keys["live"], "Idempotency-Key: m")
	f.send("GET", empresa, "X-Api-Key: "+f.keys["live"], "Idempotency-Key: m")
	f.get(empresa, "poor")
	f.get(empresa, "")
	f.get(empresa+"?simular=1", "poor")
	f.get("/v1/salud", "")
	f.send("HEAD", "/v1/salud")
	f.get("/v1/nada/EFO010101AA1", "")
	f.raw("GET", "/v1/salud", "GET /v1/salud HTTP/1.1\r\nHost: x\r\nCANARIO\r\n\r\n")
	f.raw("GET", "/v1/salud", "GET /v1/salud HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n")
	f.full.Store(true)
	f.get(empresa, "live")
	f.server.Shutdown(t.Context()) // the last request is counted after its answer left
	after := readings()
	moved := 0.0
	for name, value := range after {
		if strings.HasPrefix(name, "cotejo_http_requests_total{") {
			moved += value - before[name]
		}
		if strings.Contains(name, "EFO010101AA1") || strings.Contains(name, "CANARIO") {
			t.Errorf("a value of a request is a label: %s", name)
		}
	}
	if moved != 12 {
		t.Errorf("12 requests were counted as %v", moved)
	}
	check := func(name string, want float64) {
		t.Helper()
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s moved by %v, want %v", name, got, want)
		}
	}
	route := `route="/v1/empresa/{rfc}"`
	check(`cotejo_http_requests_total{`+route+`,status="200"}`, 4)
	check(`cotejo_http_requests_total{`+route+`,status="401"}`, 1)
	check(`cotejo_http_requests_total{`+route+`,status="402"}`, 1)
	check(`cotejo_http_requests_total{`+route+`,status="503"}`, 1)
	check(`cotejo_http_requests_total{route="/v1/salud",status="200"}`, 1)
	check(`cotejo_http_requests_total{route="-",status="200"}`, 1)
	check(`cotejo_http_requests_total{route="-",status="404"}`, 1)
	check(`cotejo_http_requests_total{route="-",status="400"}`, 2)
	check(`cotejo_http_duration_seconds_count{`+route+`}`, 7)
	check(`cotejo_http_duration_seconds_count{route="-"}`, 4)
	check(`cotejo_wallet_402_total`, 1)
	check(`cotejo_idempotent_replays_total`, 1)
	check(`cotejo_shed_total{class="consulta",reason="storage_full"}`, 1)
	check(`cotejo_queue_wait_seconds_count{class="consulta"}`, 3) // a repeated answer too
	check(`cotejo_queue_wait_seconds_count{class="lectura"}`, 1)
	for _, class := range []string{"libre", "consulta", "lectura"} {
		if got := after[`cotejo_http_inflight{class="`+class+`"}`]; got != 0 {
			t.Errorf("%v requests of %s are still counted", got, class)
		}
	}
}

// TestCanaries sends words that occur nowhere else through all that a request can
// carry, and looks for them in what the service leaves behind: log, metrics and
// account data.
func TestCanaries(t *testing.T) {
	const (
		rfc   = "CAN010101AA1"
		key   = "canario-de-repeticion"
		value = "CANARIODECONSULTA"
	)
	f := newFixture(t)
	f.loadStage(0)
	for _, name := range []string{"live", "test", "poor", ""} {
		for _, target := range []string{
			"/v1/empresa/" + rfc, "/v1/empresa/" + rfc + "?otro=" + value, "/v1/empresa/" + rfc + "?sancionados=" + value,
			"/v1/empresa/" + rfc + "?simular=1", "/v1/empresa/" + value, "/v1/verificaciones/" + value, "/v1/" + value, "/v1/salud?a=" + value,
		} {
			headers := append(f.keyHeader(name), "Idempotency-Key: "+key, "X-"+value+": "+value)
			f.send("GET", target, headers...)
			f.send("GET", target, append(headers, "Idempotency-Key: "+key)...)
			f.send("GET", target, append(headers, "Transfer-Encoding: "+value)...)
		}
	}
	if a := f.send("GET", "/v1/empresa/"+rfc, "X-Api-Key: "+f.keys["live"], "Idempotency-Key: "+key); a.header.Get("Idempotent-Replayed") == "" {
		t.Fatal("the key was not used")
	}
	var shown bytes.Buffer
	metrics.WritePrometheus(&shown, true)
	log, data := f.accessLines()+f.log.String(), contents(t, f.disk, "cuentas")
	if !strings.Contains(log, "/v1/empresa/{rfc}") || !strings.Contains(shown.String(), "/v1/empresa/{rfc}") || !strings.Contains(data, rfc) {
		t.Fatal("the test proves nothing")
	}
	secrets := []string{key, value}
	for _, name := range []string{"live", "test", "poor"} {
		secrets = append(secrets, f.keys[name], f.keys[name][len(f.keys[name])-40:])
	}
	for where, text := range map[string]string{"log": log, "metrics": shown.String(), "account data": data} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("the %s holds %s", where, secret)
			}
		}
		if where != "account data" && strings.Contains(text, rfc) {
			t.Errorf("the %s holds an RFC", where)
		}
	}
}

// contents joins all files of a folder.
func contents(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range must(fs.List(dir)) {
		file := must(fs.Open(fs.PathJoin(dir, name)))
		must(io.Copy(&b, file))
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestCountingAllocatesNothing on the way of a request of a known route.
func TestCountingAllocatesNothing(t *testing.T) {
	m := newRouteMetrics("/prueba", 200, 503)
	if n := testing.AllocsPerRun(1000, func() { m.answered(503, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
