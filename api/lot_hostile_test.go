package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cotejo/ledger"
)

// TestHostileLists: what is no list, or too much, is refused in time, with a reason,
// and charges nothing; more than an operation reads is not read.
func TestHostileLists(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	funds := func() ledger.Funds {
		funds, _, err := f.pipeline.Ledger.Funded(f.orgs["live"].Account, f.clock(), "COMPANY", 1200)
		if err != nil {
			t.Fatal(err)
		}
		return funds
	}
	before := funds()
	is := func(name, kind string, body []byte, status int, says string) {
		t.Helper()
		a := f.sendBody("POST", "/v1/empresa/lote", body, append(f.keyHeader("live"), "Content-Type: "+kind)...)
		if a.status != status || !bytes.Contains(a.body, []byte(says)) {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
	const csvType, lines = "text/csv", "application/x-ndjson"
	is("100,001 entries", "application/json", listOf(100_001), 422, "más de 100,000")
	is("blanks", "application/json", bytes.Repeat([]byte(" "), 8<<20), 422, "Falta el cuerpo")
	is("one more byte", "application/json", bytes.Repeat([]byte(" "), 8<<20+1), 413, "CUERPO_DEMASIADO_GRANDE")
	is("brackets", "application/json", bytes.Repeat([]byte("["), 8<<20), 422, "elemento 1")
	is("a line", lines, []byte(`"`+strings.Repeat("A", 8<<20-2)+`"`), 422, "línea 1")
	is("columns", csvType, []byte("rfc\n"+strings.Repeat(",", 1<<20)), 422, "1000 columnas")
	is("quotes", csvType, []byte("rfc\n\""+strings.Repeat("\"\"", 1<<20)), 422, "comillas")
	is("nulls", csvType, make([]byte, 1<<20), 422, "byte nulo")
	is("UTF-16", csvType, []byte("\xff\xfeR\x00F\x00C\x00"), 422, "UTF-16")
	is("garbage", csvType, bytes.Repeat([]byte("=SUMA(A1)\r\n"), 90_000), 422, "=SUMA(A1)")
	is("no text", lines, []byte("\xff\xfe\xfd"), 400, "JSON_INVALIDO")
	is("other charset", "application/json; charset=utf-16", []byte(`["A"]`), 415, "TIPO_DE_LISTA")

	// Without an end, and without a key: not read on.
	endless := func(target string, headers ...string) answer {
		conn := must(f.listener.Dial())
		defer conn.Close()
		go func() {
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n%s\r\n\r\n", target, strings.Join(headers, "\r\n"))
			chunk := []byte("8000\r\n" + strings.Repeat(" ", 0x8000) + "\r\n")
			for {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
			}
		}()
		return read(t, conn, "POST")
	}
	for _, c := range []struct {
		target, key string
		status      int
	}{
		{"/v1/empresa/lote", f.keys["live"], 413}, {"/v1/empresa/lote", "svc_live_nada", 401}, {"/v1/empresa/lote", f.keys["only_read"], 403},
		{"/v1/fiscal/isr", f.keys["live"], 413}, {"/v1/nada", f.keys["live"], 413},
	} {
		if a := endless(c.target, "X-Api-Key: "+c.key); a.status != c.status {
			t.Errorf("%s with %.12s: %d %s", c.target, c.key, a.status, a.body)
		}
	}
	if after := funds(); after != before {
		t.Errorf("charged: %+v, was %+v", after, before)
	}
}

// TestListOfTheLargestSize: what is allowed is also answered.
func TestListOfTheLargestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("45 s under the race detector; smaller lists are raced too")
	}
	f := newFixture(t)
	f.loadStage(3)
	if l := f.sendList("?detalle=resumen", "test", someRFCs(100_000)); len(l.Results) != 100_000 {
		t.Errorf("%d results", len(l.Results))
	}
}

// TestLargeBodiesAreBounded: so many may be sent at once, others are told to come back.
func TestLargeBodiesAreBounded(t *testing.T) {
	f := newFixture(t)
	body := bytes.Repeat([]byte(" "), maxBodyBytes+1)
	var held []func()
	for range maxBodies {
		conn := must(f.listener.Dial())
		must(fmt.Fprintf(conn, "POST /v1/empresa/lote HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n ", f.keys["test"], len(body)))
		held = append(held, func() { conn.Close() })
	}
	waitUntil(func() bool {
		f.server.bodies.mu.Lock()
		defer f.server.bodies.mu.Unlock()
		return len(f.server.bodies.held) == maxBodies
	})
	send := func() answer { return f.sendBody("POST", "/v1/empresa/lote", body, f.keyHeader("test")...) }
	if a := send(); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", a.status, a.body)
	}
	if a := f.sendBody("POST", "/v1/empresa/lote", []byte(`["EFO010101AA1"]`), f.keyHeader("test")...); a.status != 200 {
		t.Errorf("a small one: %d %s", a.status, a.body)
	}
	for _, leave := range held {
		leave()
	}
	waitUntil(func() bool { return send().status == 422 })
}

// TestAListIsCut: of an order that stops in the middle nobody gets a whole answer.
func TestAListIsCut(t *testing.T) {
	f := newFixture(t)
	conn := must(f.listener.Dial())
	defer conn.Close()
	body := listOf(60_000)
	go fmt.Fprintf(conn, "POST /v1/empresa/lote HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", f.keys["test"], len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	f.stopLots()
	defer f.runLots()
	var got bytes.Buffer
	if _, err := got.ReadFrom(resp.Body); err == nil || json.Valid(got.Bytes()) {
		t.Errorf("%d bytes look whole: %v", got.Len(), err)
	}
}

// TestLotsOfOthers: places are shared between organizations.
func TestLotsOfOthers(t *testing.T) {
	f := newFixture(t)
	f.stopLots()
	for i := range 8 {
		f.sendBody("POST", "/v1/empresa/lote", listOf(20_000+i), append(f.keyHeader("test"), "Prefer: respond-async")...)
	}
	f.runLots()
	if l := f.sendList("", "twin", published[:1]); len(l.Results) != 1 {
		t.Errorf("%+v", l)
	}
	waiting := 0
	org := f.orgs["test"].ID.Twin()
	if err := f.pipeline.Ledger.OpenOrders(func(_ ledger.AccountID, o ledger.Order) error {
		if o.Org == org && o.Done == 0 {
			waiting++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if waiting < 4 {
		t.Errorf("the list of another waited for %d of 8", 8-waiting)
	}
}
