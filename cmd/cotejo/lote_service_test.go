package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// loteService stands in for the service, by its contract: a batch is opened and
// charged once for each Idempotency-Key, and whoever sends the same again gets its
// results from the beginning.
type loteService struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex
	funds  int // how many it pays
	lots   map[string]*serviceLot
	keys   []string // of the orders that came, in their order
	quotes int
	// script is what happens to the next orders, one each; then all goes well.
	script []func(w http.ResponseWriter, r *http.Request, lot *serviceLot)
	// before is asked before anything else; true: it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
}

type serviceLot struct {
	id      string
	rfcs    []string // distinct ones
	entries int
	query   string
	stopped int // how many are done of a batch that was stopped; 0: it goes on
}

const serviceKey = "svc_live_llaveDePrueba0123456789"

func newLoteService(t *testing.T) *loteService {
	s := &loteService{t: t, funds: 1 << 20, lots: map[string]*serviceLot{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// say answers with an error.
func say(w http.ResponseWriter, status int, code string, detail any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"codigo": code, "title": "Título de " + code, "detail": detail, "ayuda": "Haga algo.", "status": status, "request_id": "abc"})
}

func (s *loteService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil && s.before(w, r) {
		return
	}
	if r.Header.Get("X-Api-Key") != serviceKey {
		say(w, 401, "NO_AUTORIZADO", "La llave no es válida.")
		return
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/empresa/lotes/"); ok && r.Method == "GET" {
		id, results := strings.CutSuffix(id, "/resultados")
		for _, lot := range s.lots {
			switch {
			case lot.id != id:
			case results:
				w.Header().Set("Content-Type", r.Header.Get("Accept"))
				io.WriteString(w, lot.results(r.Header.Get("Accept"), r.URL.Query().Get("detalle")))
				return
			default:
				fmt.Fprintf(w, `{"lote_id":%q,"estado":"TERMINADO","costo":"%d.00","usos_individuales":0}`, id, 12*len(lot.rfcs))
				return
			}
		}
		say(w, 404, "LOTE_NO_ENCONTRADO", "No hay ningún lote con ese identificador.")
		return
	}
	if r.Method != "POST" || r.URL.Path != "/v1/empresa/lote" {
		say(w, 404, "RUTA_NO_ENCONTRADA", "No hay ninguna operación en esta ruta.")
		return
	}
	lot := &serviceLot{query: r.URL.RawQuery}
	for line := range strings.Lines(string(body)) {
		lot.entries++
		if rfc := strings.TrimSpace(line); !slices.Contains(lot.rfcs, rfc) {
			lot.rfcs = append(lot.rfcs, rfc)
		}
	}
	if r.URL.Query().Get("simular") == "1" {
		s.quotes++
		n := len(lot.rfcs)
		fmt.Fprintf(w, `{"simulacion":true,"servicio":"COMPANY","recibidos":%d,"duplicados":%d,"invalidos":0,"consultas":%d,`+
			`"escalones":[{"desde":1,"hasta":%d,"consultas":%d,"precio_unitario":"12.00","importe":"%d.00"}],"costo":"%d.00","usos_que_pagarian":0,`+
			`"saldo":"%d.00","usos_individuales":0,"alcanza":%t,"alcanza_para":%d,"aviso":"Nada se ejecutó."}`,
			lot.entries, lot.entries-n, n, n, n, 12*n, 12*n, 12*s.funds, n <= s.funds, min(n, s.funds))
		return
	}
	key := r.Header.Get("Idempotency-Key")
	s.keys = append(s.keys, key)
	act := s.deliver
	if len(s.script) > 0 {
		act, s.script = s.script[0], s.script[1:]
	}
	act(w, r, lot)
}

// deliver opens the batch, or finds it, and sends all of it.
func (s *loteService) deliver(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
	lot, ok := s.open(w, r, lot)
	if !ok {
		return
	}
	if lot.stopped > 0 {
		say(w, 409, "LOTE_DETENIDO", "El lote "+lot.id+" se detuvo: así es.")
		return
	}
	s.head(w, r, lot)
	io.WriteString(w, lot.results(r.Header.Get("Accept"), r.URL.Query().Get("detalle")))
}

func (s *loteService) head(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
	w.Header().Set("X-Lote", lot.id)
	w.Header().Set("Content-Type", r.Header.Get("Accept"))
}

func (s *loteService) open(w http.ResponseWriter, r *http.Request, lot *serviceLot) (*serviceLot, bool) {
	key := r.Header.Get("Idempotency-Key")
	if earlier := s.lots[key]; earlier != nil {
		if earlier.query != lot.query || !slices.Equal(earlier.rfcs, lot.rfcs) {
			say(w, 422, "LLAVE_REUTILIZADA", []any{})
			return nil, false
		}
		return earlier, true
	}
	if len(lot.rfcs) > s.funds {
		say(w, 402, "SALDO_INSUFICIENTE", map[string]any{"error": "x", "saldo": "24.00", "consultas": len(lot.rfcs), "alcanza_para": s.funds})
		return nil, false
	}
	s.funds -= len(lot.rfcs)
	lot.id = fmt.Sprintf("LOT-20261122-%08x", 0xabc000+len(s.lots))
	s.lots[key] = lot
	return lot, true
}

// cutAt sends so many bytes of the answer and breaks the connection.
func (s *loteService) cutAt(share float64) func(http.ResponseWriter, *http.Request, *serviceLot) {
	return func(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
		lot, _ = s.open(w, r, lot)
		all := lot.results(r.Header.Get("Accept"), r.URL.Query().Get("detalle"))
		if share >= 0 {
			s.head(w, r, lot)
			io.WriteString(w, all[:int(share*float64(len(all)))])
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// endAt sends so many bytes as if they were all, as a proxy may whose upstream broke.
func (s *loteService) endAt(share float64) func(http.ResponseWriter, *http.Request, *serviceLot) {
	return func(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
		lot, _ = s.open(w, r, lot)
		s.head(w, r, lot)
		all := lot.results(r.Header.Get("Accept"), r.URL.Query().Get("detalle"))
		io.WriteString(w, all[:int(share*float64(len(all)))])
	}
}

func refuse(status int, code, retryAfter string) func(http.ResponseWriter, *http.Request, *serviceLot) {
	return func(w http.ResponseWriter, _ *http.Request, _ *serviceLot) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		say(w, status, code, "Detalle de "+code+".")
	}
}

// results is the whole answer.
func (l *serviceLot) results(media, detail string) string {
	rfcs, state := l.rfcs, "TERMINADO"
	if l.stopped > 0 {
		rfcs, state = l.rfcs[:l.stopped], "DETENIDO"
	}
	element := func(i int, rfc string) string {
		text := fmt.Sprintf(`{"linea":%d,"rfc":%q,"verification_id":"COM-20261122-%08x","listas_art69":[],"nota":"\"]}"}`, i+1, rfc, i)
		if detail == "completo" {
			text = fmt.Sprintf(`{"rfc":%q,"sat_69b":{"situaciones":[{"nombre":"EJEMPLO [{"}]},"n":%d}`, rfc, i)
		}
		return text
	}
	head := fmt.Sprintf(`"lote_id":%q,"estado":%q,"escalones":[{"desde":1}],"duplicados":[],"invalidos":[{"linea":1},{"linea":2}]`, l.id, state)
	var b strings.Builder
	switch media {
	case "application/x-ndjson":
		fmt.Fprintf(&b, "{\"lote\":{%s}}\n", head)
		for i, rfc := range rfcs {
			b.WriteString(element(i, rfc) + "\n")
		}
		fmt.Fprintf(&b, "{\"fin\":{\"lote_id\":%q,\"resultados\":%d}}\n", l.id, len(rfcs))
	case "text/csv":
		b.WriteString("linea,rfc,respuesta\r\n")
		for i := range l.entries {
			fmt.Fprintf(&b, "%d,%s,\"a \"\"b\"\"\r\nc\"\r\n", i+1, l.rfcs[min(i, len(l.rfcs)-1)])
		}
	default:
		fmt.Fprintf(&b, `{%s,"resultados":[`, head)
		for i, rfc := range rfcs {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(element(i, rfc))
		}
		b.WriteString("]}")
	}
	return b.String()
}

// only is the one batch that there is.
func (s *loteService) only() *serviceLot {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lots) != 1 {
		s.t.Fatalf("%d batches were opened, want one", len(s.lots))
	}
	for _, lot := range s.lots {
		return lot
	}
	return nil
}

// loteFiles are a list of n RFCs with one repeated, a key, and a folder.
type loteFiles struct{ dir, list, key string }

func newLoteFiles(t *testing.T, n int) loteFiles {
	t.Helper()
	f := loteFiles{dir: t.TempDir()}
	f.list, f.key = filepath.Join(f.dir, "lista.csv"), filepath.Join(f.dir, "llave")
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "ZZZ%06dAB1\n", i)
	}
	list.WriteString("ZZZ000000AB1\n")
	f.write(t, f.list, list.String())
	f.write(t, f.key, serviceKey+"\n")
	return f
}

func (f loteFiles) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// args is a command line; out is the name of the output.
func (f loteFiles) args(s *loteService, out string, more ...string) []string {
	return append([]string{"lote", f.list, "--out", filepath.Join(f.dir, out), "--key-file", f.key, "--url", s.URL}, more...)
}

func (f loteFiles) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// left are the files beside the list and the key.
func (f loteFiles) left(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "lista.csv" && name != "llave" {
			names = append(names, name)
		}
	}
	return names
}
