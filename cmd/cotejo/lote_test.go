package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// impatient makes no client wait, and notes for how long it would have.
func impatient(t *testing.T) *[]time.Duration {
	var waits []time.Duration
	was := pause
	pause = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	t.Cleanup(func() { pause = was })
	return &waits
}

func TestLoteInEachFormat(t *testing.T) {
	for _, format := range []string{"json", "ndjson", "csv"} {
		for _, detail := range []string{"resumen", "completo"} {
			s, f := newLoteService(t), newLoteFiles(t, 30)
			r := cotejoJSON[loteReply](t, f.args(s, "r."+format, "--si", "--detalle", detail, "--no-sancionados", "--en-fecha", "2025-03-01")...)
			lot := s.only()
			want := lot.results(loteFormats[format].media, detail)
			if got := f.read(t, "r."+format); got != want {
				t.Fatalf("%s %s: got\n%s\nwant\n%s", format, detail, got, want)
			}
			if lot.query != "detalle="+detail+"&en_fecha=2025-03-01&sancionados=false" {
				t.Errorf("asked with %s", lot.query)
			}
			_, sum, err := hashFile(filepath.Join(f.dir, "r."+format))
			results := 30
			if format == "csv" {
				results = 31 // a row for each entry
			}
			if r.Lot != lot.id || r.Results != results || r.Repeated != 1 || r.Cost != "360.00" || r.Bytes != int64(len(want)) || r.SHA256 != sum || err != nil || r.Attached || r.State != loteDone {
				t.Errorf("%s %s: %+v", format, detail, r)
			}
			if left := f.left(t); !slices.Equal(left, []string{"r." + format}) {
				t.Errorf("left: %q", left)
			}
			if info, err := os.Stat(filepath.Join(f.dir, "r."+format)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
		}
	}
}

// A connection that breaks, an answer that ends too soon and a service that is busy
// are asked again under the same key, and cost nothing.
func TestLoteUntilItIsWhole(t *testing.T) {
	waits := impatient(t)
	for _, format := range []string{"json", "ndjson", "csv"} {
		s, f := newLoteService(t), newLoteFiles(t, 2000)
		s.script = []func(http.ResponseWriter, *http.Request, *serviceLot){
			refuse(503, "SOBRECARGA", "7"), refuse(429, "DEMASIADAS_PETICIONES", "2"), refuse(500, "ERROR_INTERNO", ""), refuse(409, "LLAVE_EN_CURSO", "1"),
			s.cutAt(-1), s.cutAt(0), s.cutAt(0.5), s.endAt(0.4), s.endAt(0.999), s.endAt(0),
		}
		*waits = nil
		says := failing(t, 0, f.args(s, "r."+format, "--si")...)
		if got := f.read(t, "r."+format); got != s.only().results(loteFormats[format].media, "completo") {
			t.Errorf("%s: not what was sent", format)
		}
		if len(s.keys) != 11 || len(slices.Compact(slices.Clone(s.keys))) != 1 || !strings.HasPrefix(s.keys[0], "cotejo-lote-") {
			t.Errorf("%s: keys %q", format, s.keys)
		}
		if w := *waits; len(w) != 10 || w[0] < 7*time.Second || w[1] < 2*time.Second || w[1] > 3*time.Second || w[2] < 4*time.Second || slices.Max(w) > 36*time.Second {
			t.Errorf("%s: waited %v", format, w)
		}
		if n := strings.Count(says, " lote esperando "); n != 10 || !strings.Contains(says, "lote recibiendo ") {
			t.Errorf("%s: %d\n%s", format, n, says)
		}
		if strings.Contains(says, serviceKey) {
			t.Errorf("the key is on stderr:\n%s", says)
		}
	}
}

// isNamed returns when the mark of a command line's output names its batch.
func isNamed(t *testing.T, args []string) {
	marked := args[slices.Index(args, "--out")+1] + ".lote"
	waitFor(t, func() bool {
		mark, err := os.ReadFile(marked)
		return err == nil && bytes.Contains(mark, []byte("lote_id"))
	}, func() string { return "the mark does not name its batch" })
}

// interrupted runs a command line until the service has been asked for a batch and,
// if it answers, has told which.
func interrupted(t *testing.T, s *loteService, share float64, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.script = append(s.script, func(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
		defer func() { // it is being cut
			if share >= 0 {
				isNamed(t, args)
			}
			cancel()
		}()
		s.cutAt(share)(w, r, lot)
	})
	var out, errOut bytes.Buffer
	if code := run(ctx, args, &out, &errOut); code != exitInterrupted || !strings.Contains(errOut.String(), "sin otro cobro") {
		t.Fatalf("%d\n%s%s", code, &out, &errOut)
	}
}

func TestLoteAfterAnInterruption(t *testing.T) {
	impatient(t)
	for _, share := range []float64{-1, 0.7} {
		s, f := newLoteService(t), newLoteFiles(t, 500)
		args := f.args(s, "r.ndjson", "--detalle", "resumen")
		interrupted(t, s, share, append(args, "--si")...)
		if left := f.left(t); !slices.Equal(left, []string{"r.ndjson.lote"}) {
			t.Fatalf("left: %q", left)
		}
		if mark := f.read(t, "r.ndjson.lote"); strings.Contains(mark, serviceKey) || strings.Contains(mark, "ZZZ") {
			t.Errorf("the mark holds what it should not: %s", mark)
		}
		// Another list, or other parameters, are another batch.
		if says := failing(t, exitUsage, f.args(s, "r.ndjson", "--si")...); !strings.Contains(says, "es de otra lista") {
			t.Error(says)
		}
		// The same needs no price to be accepted again.
		if r := cotejoJSON[loteReply](t, args...); !r.Attached || r.Results != 500 {
			t.Errorf("%+v", r)
		}
		if f.read(t, "r.ndjson") != s.only().results("application/x-ndjson", "resumen") || s.quotes != 1 || len(s.keys) != 2 || s.keys[0] != s.keys[1] {
			t.Errorf("quotes %d, keys %q", s.quotes, s.keys)
		}
		// What is done is not done again by accident, and another output is another batch.
		if says := failing(t, exitUsage, append(args, "--si")...); !strings.Contains(says, "ya existe") || len(s.keys) != 2 {
			t.Error(says)
		}
		cotejo(t, 0, f.args(s, "r2.ndjson", "--detalle", "resumen", "--si")...)
		if len(s.lots) != 2 || s.keys[2] == s.keys[1] {
			t.Errorf("%d batches, keys %q", len(s.lots), s.keys)
		}
	}
}

// A process that is killed leaves what the next one goes on from.
func TestLoteKilled(t *testing.T) {
	s, f := newLoteService(t), newLoteFiles(t, 500)
	sent, killed := make(chan bool), make(chan bool)
	s.script = append(s.script, func(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
		cut := s.cutAt(0.5)
		defer func() { close(sent); <-killed; panic(http.ErrAbortHandler) }()
		defer func() { recover() }()
		cut(w, r, lot)
	})
	args := f.args(s, "r.csv", "--si")
	child := program(t.Context(), args...)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-sent
	isNamed(t, args)
	if says := failing(t, exitInUse, args...); !strings.Contains(says, "otro proceso recibe") {
		t.Error(says)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	close(killed)
	if left := f.left(t); !slices.Equal(left, []string{"r.csv.lote", "r.csv.parcial"}) {
		t.Fatalf("left: %q", left)
	}
	cotejo(t, 0, args...)
	if f.read(t, "r.csv") != s.only().results("text/csv", "completo") || !slices.Equal(f.left(t), []string{"r.csv"}) {
		t.Errorf("left: %q", f.left(t))
	}
}

// A run that ended after its output got its name is done.
func TestLoteBetweenItsLastSteps(t *testing.T) {
	s, f := newLoteService(t), newLoteFiles(t, 20)
	args := f.args(s, "r.json", "--si")
	interrupted(t, s, 0.5, args...)
	var mark loteMark
	if err := json.Unmarshal([]byte(f.read(t, "r.json.lote")), &mark); err != nil {
		t.Fatal(err)
	}
	f.write(t, filepath.Join(f.dir, "r.json"), s.only().results("application/json", "completo"))
	if says := failing(t, exitUsage, args...); !strings.Contains(says, "ya existe") { // it may be anybody's
		t.Error(says)
	}
	_, mark.Sum, _ = hashFile(filepath.Join(f.dir, "r.json"))
	text, _ := json.Marshal(mark)
	f.write(t, filepath.Join(f.dir, "r.json.lote"), string(text))
	asked := len(s.keys)
	if r := cotejoJSON[loteReply](t, args...); r.SHA256 != mark.Sum || r.Lot != mark.Lot || r.Results != 20 || len(s.keys) != asked || !slices.Equal(f.left(t), []string{"r.json"}) {
		t.Errorf("%+v %q", r, f.left(t))
	}
	// Without the output, it had not got its name.
	f.write(t, filepath.Join(f.dir, "r.json.lote"), string(text))
	if err := os.Remove(filepath.Join(f.dir, "r.json")); err != nil {
		t.Fatal(err)
	}
	cotejo(t, 0, args...)
	if f.read(t, "r.json") != s.only().results("application/json", "completo") {
		t.Error("not what was sent")
	}
	// With another file of that name nothing is said to be done.
	f.write(t, filepath.Join(f.dir, "r.json.lote"), string(text))
	f.write(t, filepath.Join(f.dir, "r.json"), "otra cosa")
	if says := failing(t, exitUsage, args...); !strings.Contains(says, "no es lo que se recibió") || f.read(t, "r.json") != "otra cosa" {
		t.Error(says)
	}
}

func TestLoteAsksBeforeItCharges(t *testing.T) {
	was := typed
	defer func() { typed = was }()
	answer := func(text string) { typed = func() io.Reader { return strings.NewReader(text) } }

	s, f := newLoteService(t), newLoteFiles(t, 100)
	typed = func() io.Reader { return nil }
	says := failing(t, exitUsage, f.args(s, "r.csv")...)
	for _, want := range []string{"101 elementos: 100 consultas, 1 duplicados", "100 ×    12.00 =      1200.00", "costo 1200.00 MXN", "--si"} {
		if !strings.Contains(says, want) {
			t.Errorf("%q is not said:\n%s", want, says)
		}
	}
	for _, no := range []string{"n\n", "\n", "", "sin\n", "y"} {
		answer(no)
		if says := failing(t, exitInterrupted, f.args(s, "r.csv")...); !strings.Contains(says, "¿Consultar 100 RFC por 1200.00 MXN") {
			t.Error(says)
		}
	}
	if len(s.keys) != 0 || len(f.left(t)) != 0 {
		t.Fatalf("%q %q", s.keys, f.left(t))
	}
	answer("Sí\n")
	cotejo(t, 0, f.args(s, "r.csv")...)
	s.only()

	out := cotejo(t, 0, "lote", f.list, "--simular", "--key-file", f.key, "--url", s.URL)
	if !strings.Contains(out, "costo 1200.00 MXN, saldo") {
		t.Error(out)
	}
	if q := cotejoJSON[loteQuote](t, "lote", f.list, "--simular", "--key-file", f.key, "--url", s.URL); q.Units != 100 || q.Cost != "1200.00" {
		t.Errorf("%+v", q)
	}
	// Who accepted it for one service, or in tests, has not accepted it for another.
	answer("s")
	impatient(t)
	interrupted(t, s, -1, f.args(s, "r2.csv")...)
	answer("n")
	other := newLoteService(t)
	failing(t, exitInterrupted, f.args(other, "r2.csv")...)
	if len(other.lots) != 0 {
		t.Error("it was sent")
	}
	typed = func() io.Reader { return nil }
	cotejo(t, 0, f.args(s, "r2.csv")...)
}

func TestLoteRefusals(t *testing.T) {
	impatient(t)
	// Each leaves nothing: the service has no batch.
	f := func(act func(http.ResponseWriter, *http.Request, *serviceLot), funds, code int, wants ...string) {
		t.Helper()
		s, files := newLoteService(t), newLoteFiles(t, 10)
		s.funds = funds
		if act != nil {
			s.script = append(s.script, act)
		}
		says := failing(t, code, files.args(s, "r.csv", "--si")...)
		for _, want := range wants {
			if !strings.Contains(says, want) {
				t.Errorf("%q is not said:\n%s", want, says)
			}
		}
		if left := files.left(t); len(left) != 0 || len(s.lots) != 0 || strings.Contains(says, serviceKey) {
			t.Errorf("left: %q\n%s", left, says)
		}
	}
	funds := func(w http.ResponseWriter, _ *http.Request, _ *serviceLot) {
		say(w, 402, "SALDO_INSUFICIENTE", map[string]any{"error": "x", "saldo": "24.00", "consultas": 10, "alcanza_para": 2})
	}
	f(nil, 3, exitFailed, "pagan 3 de las 10 consultas", "No se consultó ni se cobró nada")
	f(funds, 99, exitFailed, "(24.00 MXN) pagan 2 de las 10 consultas", "Haga algo.")
	f(refuse(401, "NO_AUTORIZADO", ""), 99, exitConfig, "Detalle de NO_AUTORIZADO. Haga algo.")
	f(refuse(403, "SIN_PERMISO", ""), 99, exitConfig)
	f(refuse(413, "CUERPO_DEMASIADO_GRANDE", ""), 99, exitUsage)
	f(func(w http.ResponseWriter, _ *http.Request, _ *serviceLot) {
		say(w, 422, "INPUT_INVALID", []any{map[string]any{"loc": []any{"body", 7}, "msg": "No es \x1b[31mun RFC", "type": "x"}, map[string]any{"loc": []any{"query", "en_fecha"}, "msg": "no"}})
	}, 99, exitUsage, "línea 7: No es  [31mun RFC; en_fecha: no")

	// What may have been opened keeps its mark.
	g := func(code int, want string, script ...func(http.ResponseWriter, *http.Request, *serviceLot)) {
		t.Helper()
		s, files := newLoteService(t), newLoteFiles(t, 10)
		s.script = script
		says := failing(t, code, files.args(s, "r.csv", "--si")...)
		if left := files.left(t); !slices.Equal(left, []string{"r.csv.lote"}) || !strings.Contains(says, want) || !strings.Contains(says, "repita la misma orden") {
			t.Errorf("left: %q\n%s", left, says)
		}
		cotejo(t, 0, files.args(s, "r.csv")...)
		s.only()
	}
	cut := (&loteService{t: t, funds: 99, lots: map[string]*serviceLot{}}).cutAt(-1)
	busy := refuse(503, "SOBRECARGA", "1")
	g(exitTryAgain, "Detalle de SOBRECARGA", slices.Repeat([]func(http.ResponseWriter, *http.Request, *serviceLot){busy}, loteAttempts)...)
	g(exitTryAgain, "IDENTIFICADORES_AGOTADOS", refuse(503, "IDENTIFICADORES_AGOTADOS", "3600"))
	g(exitUnavailable, "se cortó la conexión", slices.Repeat([]func(http.ResponseWriter, *http.Request, *serviceLot){cut}, loteAttempts)...)
	g(exitConfig, "NO_AUTORIZADO", cut, refuse(401, "NO_AUTORIZADO", ""))
	html := func(w http.ResponseWriter, _ *http.Request, _ *serviceLot) { io.WriteString(w, "<html>") }
	g(exitUsage, "revise --url", html)
}

// A batch that the service stopped gives what was done of it.
func TestLoteStopped(t *testing.T) {
	impatient(t)
	s, f := newLoteService(t), newLoteFiles(t, 100)
	s.script = append(s.script, func(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
		lot, _ = s.open(w, r, lot)
		lot.stopped = 40
		panic(http.ErrAbortHandler)
	})
	says := failing(t, exitPartial, f.args(s, "r.ndjson", "--si")...)
	if !strings.Contains(says, "después de 40 de 100 consultas") || !slices.Equal(f.left(t), []string{"r.ndjson.detenido"}) {
		t.Errorf("%q\n%s", f.left(t), says)
	}
	if f.read(t, "r.ndjson.detenido") != s.only().results("application/x-ndjson", "completo") {
		t.Error("not what was sent")
	}
	if says := failing(t, exitUsage, f.args(s, "r.ndjson", "--si")...); !strings.Contains(says, "ya existe") {
		t.Error(says)
	}
}

// A mark that is older than the service remembers keys is never sent: it would be
// charged again.
func TestLoteWithAnOldMark(t *testing.T) {
	impatient(t)
	later := func(t *testing.T) {
		was := now
		now = func() time.Time { return was().Add(loteMemory + time.Hour) }
		t.Cleanup(func() { now = was })
	}
	t.Run("known", func(t *testing.T) {
		s, f := newLoteService(t), newLoteFiles(t, 100)
		interrupted(t, s, 0.9, f.args(s, "r.ndjson", "--si")...)
		later(t)
		asked := len(s.keys)
		cotejo(t, 0, f.args(s, "r.ndjson")...)
		if len(s.keys) != asked || f.read(t, "r.ndjson") != s.only().results("application/x-ndjson", "completo") {
			t.Errorf("%q", s.keys)
		}
	})
	t.Run("gone", func(t *testing.T) {
		s, f := newLoteService(t), newLoteFiles(t, 100)
		interrupted(t, s, 0.9, f.args(s, "r.ndjson", "--si")...)
		later(t)
		s.lots = map[string]*serviceLot{}
		if says := failing(t, exitNotFound, f.args(s, "r.ndjson")...); !strings.Contains(says, "ya no conserva el lote LOT-20261122-00abc000") || len(s.lots) != 0 {
			t.Error(says)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		s, f := newLoteService(t), newLoteFiles(t, 100)
		interrupted(t, s, -1, f.args(s, "r.ndjson", "--si")...)
		later(t)
		asked := len(s.keys)
		if says := failing(t, exitNotFound, f.args(s, "r.ndjson")...); !strings.Contains(says, "lo cobraría otra vez") || len(s.keys) != asked {
			t.Error(says)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		s, f := newLoteService(t), newLoteFiles(t, 10)
		f.write(t, filepath.Join(f.dir, "r.csv.lote"), `{"version":1}`)
		if says := failing(t, exitUsage, f.args(s, "r.csv", "--si")...); !strings.Contains(says, "no es una marca") || s.quotes != 0 {
			t.Error(says)
		}
	})
}

// The key goes to the service that was named, and nowhere else.
func TestLoteFollowsNobody(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was followed") }))
	defer elsewhere.Close()
	s, f := newLoteService(t), newLoteFiles(t, 10)
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	if says := failing(t, exitUsage, f.args(s, "r.csv", "--si")...); !strings.Contains(says, "La llave no se envió allí") {
		t.Error(says)
	}
}

// A service that says nothing, before its answer or in it, is asked again.
func TestLoteOfASilentService(t *testing.T) {
	impatient(t)
	was := loteStall
	loteStall = 50 * time.Millisecond
	defer func() { loteStall = was }()
	s, f := newLoteService(t), newLoteFiles(t, 300)
	for _, share := range []float64{-1, 0.5} {
		s.script = append(s.script, func(w http.ResponseWriter, r *http.Request, lot *serviceLot) {
			defer func() { <-r.Context().Done() }() // until the client is gone
			s.cutAt(share)(w, r, lot)
		})
	}
	if says := failing(t, 0, f.args(s, "r.json", "--si")...); strings.Count(says, "el servicio dejó de enviar") != 2 {
		t.Error(says)
	}
	if f.read(t, "r.json") != s.only().results("application/json", "completo") {
		t.Error("not what was sent")
	}
}

func TestLoteUsage(t *testing.T) {
	s, f := newLoteService(t), newLoteFiles(t, 10)
	other := filepath.Join(f.dir, "lista.xls")
	f.write(t, other, "x")
	large := filepath.Join(f.dir, "grande.csv")
	f.write(t, large, strings.Repeat("x", maxListBytes+1))
	open := filepath.Join(f.dir, "abierta")
	if err := os.WriteFile(open, []byte(serviceKey), 0o644); err != nil {
		t.Fatal(err)
	}
	g := func(code int, want string, args ...string) {
		t.Helper()
		if says := failing(t, code, append([]string{"lote"}, args...)...); !strings.Contains(says, want) || strings.Contains(says, serviceKey) {
			t.Errorf("%q is not said:\n%s", want, says)
		}
	}
	key, out := []string{"--key-file", f.key, "--url", s.URL}, filepath.Join(f.dir, "r.csv")
	with := func(args ...string) []string { return append(args, key...) }
	g(exitUsage, "--out", with(f.list)...)
	g(exitUsage, "--formato", with(f.list, "--out", "r.dat")...)
	g(exitUsage, "no existe la carpeta", with(f.list, "--out", f.dir+"/nada/r.csv")...)
	g(exitUsage, "la extensión debe decir", with(other, "--out", out)...)
	g(exitUsage, "más de 8 MiB", with(large, "--out", out)...)
	g(exitUsage, "no se puede leer la lista", with(f.dir+"/nada.csv", "--out", out)...)
	g(exitUsage, "--en-fecha", with(f.list, "--out", out, "--en-fecha", "2025-02-30")...)
	g(exitConfig, "falta la llave", f.list, "--out", out, "--url", s.URL)
	g(exitConfig, "chmod 600", f.list, "--out", out, "--url", s.URL, "--key-file", open)
	for _, wrong := range []string{"cotejo.ejemplo.mx", "ftp://x", "https://u:p@x.test", "https://x.test?a=1"} {
		g(exitUsage, "--url", f.list, "--out", out, "--key-file", f.key, "--url", wrong)
	}
	if left := f.left(t); len(s.keys)+s.quotes != 0 || !slices.Equal(left, []string{"abierta", "grande.csv", "lista.xls"}) {
		t.Errorf("%q %d", left, s.quotes)
	}

	// The key and the address may be in the environment.
	was := environment
	defer func() { environment = was }()
	environment = func() []string {
		return append(quiet[:len(quiet):len(quiet)], "COTEJO_KEY="+serviceKey, "COTEJO_URL="+s.URL+"/")
	}
	cotejo(t, 0, "lote", f.list, "--out", out, "--si")
	environment = func() []string { return append(quiet[:len(quiet):len(quiet)], "COTEJO_KEY=svc live") }
	g(exitConfig, "no es una llave", f.list, "--out", f.dir+"/r3.csv")
}

// TestOnlyAWholeAnswerIsWhole: however it is divided, all of an answer is whole, and
// nothing less of it.
func TestOnlyAWholeAnswerIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{"json", "ndjson", "csv"}).Draw(t, "format")
		n := rapid.IntRange(1, 40).Draw(t, "results")
		lot := &serviceLot{id: "LOT-20261122-00000001", entries: n + 2}
		for i := range n {
			lot.rfcs = append(lot.rfcs, "R"+strings.Repeat("x", i%3))
		}
		all := lot.results(loteFormats[format].media, rapid.SampledFrom([]string{"resumen", "completo"}).Draw(t, "detail"))
		end := len(all)
		if rapid.Bool().Draw(t, "cut") {
			end = rapid.IntRange(0, len(all)-1).Draw(t, "end")
		}
		r := loteFormats[format].whole()
		for rest := all[:end]; rest != ""; {
			k := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			r.read([]byte(rest[:k]))
			rest = rest[k:]
		}
		want := loteExpects{lot: lot.id, results: n, rows: n + 2}
		if r.whole(want) != (end == len(all)) {
			t.Fatalf("%d of %d bytes: whole is %t", end, len(all), r.whole(want))
		}
		if end < len(all) {
			return
		}
		if r.whole(loteExpects{lot: "LOT-20261122-00000002", results: n, rows: n + 2}) == (format == "ndjson") || !r.whole(loteExpects{lot: lot.id, results: -1, rows: -1}) {
			t.Fatal("of another batch, or of any")
		}
		if r.whole(loteExpects{lot: lot.id, results: n + 1, rows: n + 3}) {
			t.Fatal("one is missing")
		}
		if r.read([]byte("x")); r.whole(want) {
			t.Fatal("there is more")
		}
	})
}
