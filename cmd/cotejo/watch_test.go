package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cotejo/machine"
	"cotejo/store"
)

func TestSettingsOfTheMachine(t *testing.T) {
	size := func(text string, want uint64, wantErr bool) {
		t.Helper()
		got, err := configuration{values: map[string]string{"min_free": text}}.minFree()
		if got != want || (err != nil) != wantErr || err != nil && exitCode(err) != exitConfig {
			t.Errorf("min_free %q = %d, %v; se esperaba %d", text, got, err, want)
		}
	}
	size("", 0, false)
	size("0", 0, false)
	size("auto", machine.MinFreeAuto, false)
	size("1073741824", 1<<30, false)
	size("2GiB", 2<<30, false)
	size("1.5 GiB", 3<<29, false)
	size("500MB", 500e6, false)
	size("64KiB", 64<<10, false)
	size("10B", 10, false)
	size("-1", 0, true)
	size("NaN", 0, true)
	size("9999999TiB", 0, true)
	size("mucho", 0, true)
	size("10%", 0, true)

	wait := func(text string, want time.Duration, wantErr bool) {
		t.Helper()
		got, err := configuration{values: map[string]string{"shutdown_wait": text}}.duration("shutdown_wait")
		if got != want || (err != nil) != wantErr || err != nil && exitCode(err) != exitConfig {
			t.Errorf("shutdown_wait %q = %v, %v; se esperaba %v", text, got, err, want)
		}
	}
	wait("", 0, false)
	wait("2s", 2*time.Second, false)
	wait("-1s", 0, true)
	wait("2", 0, true)
}

func TestAWrongSettingIsNoStart(t *testing.T) {
	for _, v := range []string{"COTEJO_MIN_FREE=mucho", "COTEJO_SHUTDOWN_WAIT=nunca"} {
		environment = func() []string { return append(quiet[:len(quiet):len(quiet)], v) }
		if said := failing(t, exitConfig, "serve", "--data", newData(t), "--addr", "127.0.0.1:0"); !strings.Contains(said, "mucho") && !strings.Contains(said, "nunca") {
			t.Errorf("%s: %s", v, said)
		}
	}
	environment = func() []string { return quiet }
}

// running is a service in this process.
type running struct {
	*service
	served
	log    *syncBuffer
	cancel func()
	ended  chan error
}

// syncBuffer is written by a service and read by its test.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startHere starts a service over a data directory, changed by prepare before
// its first request.
func startHere(t *testing.T, config map[string]string, prepare func(*service)) *running {
	t.Helper()
	n, err := openNode(t.Context(), configuration{values: config}, mayBeCreated)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{log: new(syncBuffer), ended: make(chan error, 1)}
	if r.service, err = startService(t.Context(), n, slog.New(slog.NewTextHandler(r.log, nil))); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(r.service)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.base = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.ended <- r.service.serve(ctx, l) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end asks the service to end and waits for it, once.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.cancel()
	if r.ended == nil {
		return
	}
	if err := <-r.ended; err != nil {
		t.Errorf("serve = %v", err)
	}
	r.ended = nil
}

// TestNotReadyBeforeItEnds holds that readiness turns first, and that requests
// are answered for as long as the balancer may still send them.
func TestNotReadyBeforeItEnds(t *testing.T) {
	r := startHere(t, map[string]string{"data": loadedData(t, 0), "shutdown_wait": "700ms"}, nil)
	r.mustGet(t, 200, "/readyz", "")
	r.mustGet(t, 200, "/livez", "")
	asked := time.Now()
	r.cancel()
	waitFor(t, func() bool { status, _, _, _ := r.get("/readyz", ""); return status == 503 }, func() string { return "sigue listo" })
	body, _ := r.mustGet(t, 503, "/readyz", "")
	if detail, _ := body["detail"].(string); detail != "cierre: el servicio se está cerrando" {
		t.Errorf("readyz = %v", body)
	}
	r.mustGet(t, 200, "/livez", "")
	r.mustGet(t, 200, "/v1/precios", "")
	r.end(t)
	if took := time.Since(asked); took < 700*time.Millisecond {
		t.Errorf("terminó en %v", took)
	}
}

func TestDirectoryOpenedTwiceNamesTheOther(t *testing.T) {
	data := loadedData(t, 0)
	s := serveChild(t, data)
	f := func(want string, args ...string) {
		t.Helper()
		cmd := program(t.Context(), args...)
		var said bytes.Buffer
		cmd.Stderr = &said
		started := time.Now()
		_ = cmd.Run()
		if took := time.Since(started); cmd.ProcessState.ExitCode() != exitInUse || took > 2*time.Second || !strings.Contains(said.String(), want) {
			t.Errorf("código %d en %v: %s, se esperaba %q", cmd.ProcessState.ExitCode(), took, &said, want)
		}
	}
	pid := s.cmd.Process.Pid
	f(fmt.Sprintf("otro proceso (pid %d, desde 2", pid), "serve", "--data", data, "--addr", "127.0.0.1:0")
	s.mustGet(t, 200, "/v1/salud", "")
	s.mustGet(t, 200, "/readyz", "")
	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}

	// A command that serves nothing holds the directory too: this process.
	held, err := store.OpenPebble(data+"/cuentas", store.PebbleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	f(fmt.Sprintf("otro proceso (pid %d) usa", syscall.Getpid()), "serve", "--data", data, "--addr", "127.0.0.1:0")
}

// TestSignals ends servers that are given more or less patience.
func TestSignals(t *testing.T) {
	data := newData(t)
	start := func(wait string) *served {
		addr := freeAddr(t)
		cmd := program(t.Context(), "serve", "--data", data, "--addr", addr)
		cmd.Env = append(cmd.Env, "COTEJO_SHUTDOWN_WAIT="+wait)
		s := &served{base: "http://" + addr, cmd: cmd, log: new(bytes.Buffer)}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { status, _, _, err := s.get("/livez", ""); return err == nil && status == 200 }, func() string { return "no escucha" })
		return s
	}
	signalled := func(s *served, signals ...syscall.Signal) int {
		for i, sig := range signals {
			if i > 0 { // two at once may arrive as one
				waitFor(t, func() bool {
					_, body, _, _ := s.get("/readyz", "")
					return strings.Contains(fmt.Sprint(body["detail"]), "cierre")
				}, func() string { return "no se cierra" })
			}
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		_ = s.cmd.Wait()
		return s.cmd.ProcessState.ExitCode()
	}
	if code := signalled(start("0s"), syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: código %d", code)
	}
	if code := signalled(start("1m"), syscall.SIGTERM, syscall.SIGTERM); code != exitFailed {
		t.Errorf("dos SIGTERM: código %d", code)
	}
	if code := signalled(start("1m"), syscall.SIGTERM, syscall.SIGINT); code != exitInterrupted {
		t.Errorf("SIGTERM y SIGINT: código %d", code)
	}
}

var metricLine = regexp.MustCompile(`(?m)^(cotejo_[a-z0-9_]+)(\{[^}]*\})? `)

func TestMetricsAreOnTheirOwnListener(t *testing.T) {
	r := startHere(t, map[string]string{"data": loadedData(t, 0), "metrics_addr": "127.0.0.1:0"}, nil)
	base := "http://" + r.metrics.addr
	get := func(method, url string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	status, text := get("GET", base+"/metrics")
	if status != 200 || !metricLine.MatchString(text) || !strings.Contains(text, "cotejo_build_info{version=\"") ||
		!strings.Contains(text, "process_resident_memory_bytes") {
		t.Errorf("GET /metrics = %d\n%.2000s", status, text)
	}
	for want, of := range map[int]string{404: "GET /", 405: "POST /metrics"} {
		method, path, _ := strings.Cut(of, " ")
		if status, _ := get(method, base+path); status != want {
			t.Errorf("%s = %d", of, status)
		}
	}
	if status, _ := get("GET", r.base+"/metrics"); status != 404 {
		t.Errorf("GET /metrics en la dirección pública = %d", status)
	}
	r.end(t)
	if conn, err := net.Dial("tcp", r.metrics.addr); err == nil {
		conn.Close()
		t.Error("las métricas siguen después del servicio")
	}
}

func TestServesWithoutItsMetrics(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := startHere(t, map[string]string{"data": newData(t), "metrics_addr": taken.Addr().String()}, nil)
	r.mustGet(t, 200, "/livez", "")
	if !strings.Contains(r.log.String(), "metrics_addr") {
		t.Errorf("no se dijo: %s", r.log)
	}
}
