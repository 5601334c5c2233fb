package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cotejo/testdata/mirror"
)

func mirrorFile(t *testing.T, stage int) []byte {
	t.Helper()
	content, ok := mirror.File(stage, mirror.Listado69B)
	if !ok {
		t.Fatalf("el espejo no tiene la etapa %d", stage)
	}
	return content
}

// served is a server in a process of its own.
type served struct {
	cmd  *exec.Cmd
	base string
	log  *bytes.Buffer
}

// freeAddr returns an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServing returns before the server listens.
func startServing(t *testing.T, data string) *served {
	t.Helper()
	return startServingAt(t, data, freeAddr(t))
}

func startServingAt(t *testing.T, data, addr string) *served {
	t.Helper()
	s := &served{base: "http://" + addr, log: new(bytes.Buffer)}
	s.cmd = program(context.Background(), "serve", "--data", data, "--addr", addr)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	return s
}

func serveChild(t *testing.T, data string) *served {
	t.Helper()
	s := startServing(t, data)
	s.listens(t)
	return s
}

// listens returns when it does.
func (s *served) listens(t *testing.T) {
	t.Helper()
	waitFor(t, s.answers, func() string { return "el servidor no escucha: " + s.log.String() })
}

// answers reports whether it accepts a connection.
func (s *served) answers() bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// stop asks the server to end and returns its exit code.
func (s *served) stop(t *testing.T) int {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// waitFor polls a condition that another process makes true.
func waitFor(t *testing.T, condition func() bool, otherwise func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if condition() {
			return
		}
	}
	t.Fatal(otherwise())
}

// get returns status, decoded body and headers.
func (s *served) get(path, key string) (int, map[string]any, http.Header, error) {
	req, err := http.NewRequest("GET", s.base+path, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, nil, err
	}
	var body map[string]any
	err = json.Unmarshal(text, &body)
	return resp.StatusCode, body, resp.Header, err
}

func (s *served) mustGet(t *testing.T, wantStatus int, path, key string) (map[string]any, http.Header) {
	t.Helper()
	status, body, header, err := s.get(path, key)
	if err != nil || status != wantStatus {
		t.Fatalf("GET %s: %d %v, se esperaba %d: %v", path, status, err, wantStatus, body)
	}
	return body, header
}

// at follows a dotted path through objects.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func TestServedFromEmptyToVerified(t *testing.T) {
	data := newData(t)
	s := serveChild(t, data)
	if body, _ := s.mustGet(t, 200, "/v1/salud", ""); at(body, "servicio") != "cotejo" || at(body, "edicion") != nil {
		t.Fatalf("salud vacía = %v", body)
	}

	// The command line speaks to the server through its socket.
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0]
	live := cotejoJSON[keyReply](t, "keys", "create", "--org", org.ID, "--mode", "live", "--data", data).Key
	test := cotejoJSON[keyReply](t, "keys", "create", "--org", org.ID, "--mode", "test", "--data", data).Key

	if body, header := s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", live); at(body, "result_code") != "SOURCE_UNAVAILABLE" || header.Get("X-Costo") != "" {
		t.Fatalf("sin fuentes = %v %v", body, header)
	}
	// Another process ingests; the server picks the edition up by itself.
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	waitFor(t, func() bool {
		_, body, _, _ := s.get("/v1/salud", "")
		return at(body, "edicion.numero") == 1.0
	}, func() string { return "el servidor no tomó la edición: " + s.log.String() })

	if body, _ := s.mustGet(t, 402, "/v1/empresa/EFO010101AA1", live); at(body, "detail.servicio") != "COMPANY" {
		t.Fatalf("sin saldo = %v", body)
	}
	cotejo(t, 0, "wallet", "credit", "--org", org.ID, "--mxn", "30", "--reason", "prueba", "--data", data)
	body, header := s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", live)
	if at(body, "sat_69b.estado") != "COINCIDENCIA" || header.Get("X-Costo") != "12.00" || header.Get("X-Saldo") != "18.00" {
		t.Fatalf("con saldo = %v %v", body, header)
	}
	id := at(body, "verification_id").(string)
	if again, _ := s.mustGet(t, 200, "/v1/verificaciones/"+id, live); fmt.Sprint(again) != fmt.Sprint(body) {
		t.Fatalf("guardado difiere:\n%v\n%v", again, body)
	}
	s.mustGet(t, 404, "/v1/verificaciones/"+id, test)
	if _, header := s.mustGet(t, 200, "/v1/catalogo/banco/002", live); header.Get("X-Costo") != "0.05" || header.Get("X-Saldo") != "17.95" {
		t.Fatalf("consulta sin registro = %v", header)
	}
	if body, header := s.mustGet(t, 200, "/v1/empresa/PRE010101AA1", test); at(body, "sandbox") != true || header.Get("X-Costo") != "" {
		t.Fatalf("prueba = %v", body)
	}

	if r := cotejoJSON[verifyReply](t, "verify", id, "--data", data); !r.OK || r.Records != 1 {
		t.Fatalf("verify %s = %+v", id, r)
	}
	if r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data); !r.OK || r.Records != 3 {
		t.Fatalf("verify all = %+v", r)
	}
	cotejo(t, exitNotFound, "verify", "COM-20260101-00000000", "--data", data)
	cotejo(t, exitInUse, "serve", "--data", data, "--addr", "127.0.0.1:0")
	if code := s.stop(t); code != 0 {
		t.Fatalf("código de salida %d: %s", code, s.log)
	}
	if r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data); !r.OK || r.Records != 3 {
		t.Fatalf("verify all sin servidor = %+v", r)
	}
}

// fasthttpCleaner wakes up every ten seconds to see that its server has ended.
var fasthttpCleaner = goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")

// TestEndedWhileItStarts asks the server to end before it has begun to serve.
func TestEndedWhileItStarts(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), fasthttpCleaner)
	data, addr := newData(t), freeAddr(t)
	for lines := range 2 { // before anything, and when it says that it is ready
		ctx, cancel := context.WithCancel(t.Context())
		if lines == 0 {
			cancel()
		}
		code := run(ctx, []string{"serve", "--data", data, "--addr", addr}, io.Discard, &stopAt{lines, cancel})
		if code != 0 && code != exitInterrupted {
			t.Errorf("línea %d: código %d", lines, code)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatalf("línea %d: la dirección no quedó libre: %v", lines, err)
		}
		l.Close()
	}
	// Between the check and the first accept.
	for range 5 {
		n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
		if err != nil {
			t.Fatal(err)
		}
		s, err := startService(t.Context(), n, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if err := s.serve(ctx, l); err != nil {
			t.Errorf("serve = %v", err)
		}
	}
}

// TestAPortThatIsTakenLeavesNothingRunning ends a service that never served.
func TestAPortThatIsTakenLeavesNothingRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), fasthttpCleaner)
	data := newData(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cotejo(t, exitUnavailable, "serve", "--data", data, "--addr", taken.Addr().String())
	cotejo(t, 0, "accounts", "list", "--data", data)
}

// TestEditionsChangeUnderRequests asks without a pause while three editions
// replace each other: every request is answered, from a published edition, and
// no client ever sees an older one again.
func TestEditionsChangeUnderRequests(t *testing.T) {
	data := loadedData(t, 0)
	s := serveChild(t, data)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "90000000", "--reason", "prueba", "--data", data)

	first, _ := s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	published := []string{at(first, "edicion_sha256").(string)}
	var mu sync.Mutex
	answers := map[string]int{} // by edition; under mu
	stop := make(chan struct{})
	var clients [8][]string // editions as each client saw them
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status, body, _, err := s.get("/v1/empresa/EFO010101AA1", key)
				edition, _ := at(body, "edicion_sha256").(string)
				if err != nil || status != 200 || edition == "" {
					t.Errorf("respuesta %d: %v, %v", status, err, body)
					return
				}
				clients[i] = append(clients[i], edition)
				mu.Lock()
				answers[edition]++
				mu.Unlock()
			}
		})
	}
	for stage := 1; stage <= 3; stage++ {
		edition := cotejoJSON[[]ingestReply](t, "ingest", "--file", "sat_69b="+stageFile(t, stage), "--data", data)[0].Edition
		published = append(published, edition)
		waitFor(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return t.Failed() || answers[edition] >= 20
		}, func() string { return "la edición nueva no se sirve: " + s.log.String() })
	}
	close(stop)
	wg.Wait()
	for i, seen := range clients {
		last := 0
		for _, edition := range seen {
			n := slices.Index(published, edition)
			if n < last {
				t.Fatalf("cliente %d: edición %q (%d) después de la %d", i, edition, n, last)
			}
			last = n
		}
	}
	if len(answers) != len(published) {
		t.Errorf("respuestas por edición: %v", answers)
	}
	if code := s.stop(t); code != 0 {
		t.Errorf("código de salida %d: %s", code, s.log)
	}
}

// TestSandboxThatIsThereIsLeftAlone starts while another process writes to the
// sandbox catalogue, and on one that cannot be written.
func TestSandboxThatIsThereIsLeftAlone(t *testing.T) {
	dir, err := openDataDir(newData(t), mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	if err := loadSandbox(t.Context(), dir.sandbox); err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.sandbox.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := loadSandbox(t.Context(), dir.sandbox); err != nil {
		t.Errorf("segunda vez: %v", err)
	}
}

// TestServesWithoutItsSandbox: what test keys are answered from must not keep
// the real sources from being served, and its failure must be said.
func TestServesWithoutItsSandbox(t *testing.T) {
	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": newData(t)}}, mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := n.sandbox.Lock() // the first load fails: busy
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var log bytes.Buffer
	s, err := startService(t.Context(), n, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "edición de pruebas") {
		t.Errorf("no se dijo: %s", &log)
	}
}

// TestKeysOfARunningServer: the command line restricts, rotates and ends keys that a
// server knows already, and the server tells when they were used, also after its end.
func TestKeysOfARunningServer(t *testing.T) {
	data := newData(t)
	s := serveChild(t, data)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0]
	create := func(args ...string) keyReply {
		return cotejoJSON[keyReply](t, append([]string{"keys", "create", "--data", data}, args...)...)
	}
	used := func(id string) (state string, used bool) {
		for _, k := range cotejoJSON[[]keyReply](t, "keys", "list", "--org", org.ID, "--data", data) {
			if k.ID == id {
				return k.State, k.LastUsed != ""
			}
		}
		t.Fatalf("no key %s", id)
		return "", false
	}
	live := create("--org", org.ID, "--mode", "live")
	if body, _ := s.mustGet(t, 200, "/v1/organizacion", live.Key); at(body, "organizacion") != org.ID || at(body, "entidad") != "ALFA" {
		t.Errorf("organizacion = %v", body)
	}
	test := create("--org", org.ID, "--mode", "test", "--only", "consultarOrganizacion")
	if body, _ := s.mustGet(t, 200, "/v1/organizacion", test.Key); at(body, "organizacion") != org.Twin || at(body, "sandbox") != true {
		t.Errorf("organizacion = %v", body)
	}
	if body, _ := s.mustGet(t, 403, "/v1/empresa/EFO010101AA1", test.Key); at(body, "codigo") != "SIN_PERMISO" {
		t.Errorf("empresa = %v", body)
	}
	next := cotejoJSON[keyReply](t, "keys", "rotate", live.ID, "--grace", "1h", "--data", data)
	s.mustGet(t, 200, "/v1/organizacion", live.Key)
	s.mustGet(t, 200, "/v1/organizacion", next.Key)
	cotejo(t, 0, "keys", "deactivate", live.ID, "--data", data)
	s.mustGet(t, 401, "/v1/organizacion", live.Key)
	s.mustGet(t, 200, "/v1/organizacion", next.Key)
	admin := create("--mode", "admin")
	s.mustGet(t, 403, "/v1/organizacion", admin.Key)
	cotejo(t, 0, "keys", "deactivate", admin.ID, "--data", data)
	s.mustGet(t, 401, "/v1/organizacion", admin.Key)

	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}
	if state, was := used(next.ID); state != "activa" || !was {
		t.Errorf("%s is %s, used %v", next.ID, state, was)
	}
	if state, was := used(live.ID); state != "desactivada" || !was {
		t.Errorf("%s is %s, used %v", live.ID, state, was)
	}
}
