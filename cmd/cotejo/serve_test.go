package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

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

func serveChild(t *testing.T, data string) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s := &served{base: "http://" + addr, log: new(bytes.Buffer)}
	s.cmd = program(context.Background(), "serve", "--data", data, "--addr", addr)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	waitFor(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, func() string { return "el servidor no escucha: " + s.log.String() })
	return s
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
	data := t.TempDir()
	s := serveChild(t, data)
	if body, _ := s.mustGet(t, 200, "/v1/salud", ""); at(body, "servicio") != "cotejo" || at(body, "edicion") != nil {
		t.Fatalf("salud vacía = %v", body)
	}

	// The command line speaks to the server through its socket.
	org := cotejoJSON[orgReply](t, "orgs", "create", "--name", "ALFA", "--data", data)
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

func TestDemoPrintsCurlLinesThatWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"demo", "--addr", "127.0.0.1:18080"}, w, io.Discard)
		w.Close()
		done <- code
	}()
	var text strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(text.String(), "Ctrl-C") {
		n, err := r.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			t.Fatalf("la demo terminó: %v\n%s", err, &text)
		}
	}
	go io.Copy(io.Discard, r)
	curls := 0
	for line := range strings.Lines(text.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			curls++
			out, err := exec.Command("sh", "-c", line).Output()
			var body map[string]any
			if err == nil {
				err = json.Unmarshal(out, &body)
			}
			if err != nil || body["codigo"] != nil {
				t.Fatalf("%s\n%v\n%s", line, err, out)
			}
		}
	}
	if curls != 3 {
		t.Fatalf("la demo imprimió %d líneas curl:\n%s", curls, &text)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Fatalf("la demo terminó con %d", code)
	}
}
