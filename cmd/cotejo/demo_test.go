package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// demoRun is a demonstration in this process.
type demoRun struct {
	text   string // what it printed until it was ready
	cancel context.CancelFunc
	code   chan int
	rest   *bytes.Buffer // what it printed after; read it when code came
}

// startDemo returns when the demonstration is ready.
func startDemo(t *testing.T, args ...string) *demoRun {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := &demoRun{cancel: cancel, code: make(chan int, 1), rest: new(bytes.Buffer)}
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var errOut bytes.Buffer
	go func() {
		code := run(ctx, append([]string{"demo"}, args...), w, &errOut)
		w.Close()
		ended <- code
	}()
	buffer := make([]byte, 4096)
	for !strings.Contains(d.text, "Ctrl-C") {
		n, err := r.Read(buffer)
		d.text += string(buffer[:n])
		if err != nil {
			t.Fatalf("la demo terminó: %v\n%s%s", err, d.text, &errOut)
		}
	}
	go func() {
		io.Copy(d.rest, r)
		d.code <- <-ended
	}()
	return d
}

// end interrupts it.
func (d *demoRun) end(t *testing.T) {
	t.Helper()
	d.cancel()
	if code := <-d.code; code != 0 || !strings.Contains(d.rest.String(), "demo terminada") {
		t.Fatalf("la demo terminó con %d: %s", code, d.rest)
	}
}

// curl runs the lines to paste and returns their answers.
func (d *demoRun) curl(t *testing.T) (bodies []map[string]any) {
	t.Helper()
	for line := range strings.Lines(d.text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			out, err := exec.Command("sh", "-c", line).Output()
			var body map[string]any
			if err == nil {
				err = json.Unmarshal(out, &body)
			}
			if err != nil || body["codigo"] != nil {
				t.Fatalf("%s\n%v\n%s", line, err, out)
			}
			bodies = append(bodies, body)
		}
	}
	return bodies
}

func TestDemoPrintsCurlLinesThatWork(t *testing.T) {
	// The configured directory may hold the data of a service: it is not touched.
	configured := newData(t)
	environment = func() []string { return []string{"COTEJO_DATA=" + configured} }
	defer func() { environment = func() []string { return nil } }()

	d := startDemo(t, "--addr", "127.0.0.1:18080")
	if bodies := d.curl(t); len(bodies) != 6 || at(bodies[0], "sat_69b.estado") != "COINCIDENCIA" || at(bodies[0], "sat_art69.estado") != "COINCIDENCIA" {
		t.Fatalf("respuestas = %v\n%s", bodies, d.text)
	}
	m := regexp.MustCompile(`verify all --data (\S+)`).FindStringSubmatch(d.text)
	if m == nil || !strings.Contains(d.text, "carpeta temporal") {
		t.Fatalf("la demo no dice cómo verificar:\n%s", d.text)
	}
	if r := cotejoJSON[verifyReply](t, "verify", "all", "--data", m[1]); !r.OK || r.Records != 3 {
		t.Fatalf("verify all = %+v", r)
	}
	d.end(t)
	if _, err := os.Stat(m[1]); !os.IsNotExist(err) {
		t.Errorf("la carpeta temporal quedó: %v", err)
	}
	if _, err := os.Stat(configured); !os.IsNotExist(err) {
		t.Errorf("la demo usó COTEJO_DATA: %v", err)
	}
}

func TestDemoWorksTwiceInOneDirectory(t *testing.T) {
	data := newData(t)
	for round := range 2 {
		d := startDemo(t, "--addr", "127.0.0.1:18180", "--data", data)
		if !strings.Contains(d.text, "sat_69b: 4 versiones") || !strings.Contains(d.text, "sat_69b_bis: 2 versiones") || !strings.Contains(d.text, "sat_art69_…: 15 versiones de 14 listas") || len(d.curl(t)) != 6 {
			t.Fatalf("vuelta %d:\n%s", round, d.text)
		}
		d.end(t)
	}
	if r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data); !r.OK || r.Records != 6 {
		t.Fatalf("verify all = %+v", r)
	}
}

func TestDemoLeavesOtherDataAlone(t *testing.T) {
	data := loadedData(t, 0)
	before := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
	if said := failing(t, exitUsage, "demo", "--data", data); !strings.Contains(said, "no son de una demostración") {
		t.Errorf("demo: %s", said)
	}
	if after := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json"); after != before {
		t.Error("la demo cambió los datos")
	}
	if all := cotejoJSON[[]accountReply](t, "accounts", "list", "--data", data); len(all) != 0 {
		t.Errorf("la demo creó %+v", all)
	}
}

// stopAt ends a context when the n-th line is printed.
type stopAt struct {
	lines  int
	cancel context.CancelFunc
}

func (w *stopAt) Write(p []byte) (int, error) {
	if w.lines -= bytes.Count(p, []byte("\n")); w.lines <= 0 {
		w.cancel()
	}
	return len(p), nil
}

// TestDemoCanBeInterruptedAtAnyTime interrupts before it starts and after each
// of the lines that it prints on its way; then the same directory must still do.
func TestDemoCanBeInterruptedAtAnyTime(t *testing.T) {
	data := newData(t)
	for lines := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		if lines == 0 {
			cancel()
		}
		var errOut bytes.Buffer
		code := run(ctx, []string{"demo", "--addr", "127.0.0.1:18280", "--data", data}, &stopAt{lines, cancel}, &errOut)
		cancel()
		if code != 0 {
			t.Fatalf("interrumpida en la línea %d: código %d: %s", lines, code, &errOut)
		}
	}
	d := startDemo(t, "--addr", "127.0.0.1:18280", "--data", data)
	d.curl(t)
	d.end(t)
}

func TestDemoAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())

	f := func(addr string, wantMoved bool) {
		t.Helper()
		l, moved, err := listenFrom(addr)
		if err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		defer l.Close()
		_, got, _ := net.SplitHostPort(l.Addr().String())
		if moved != wantMoved || moved == (got == port) {
			t.Errorf("%s: escucha en %s, movido %v", addr, l.Addr(), moved)
		}
		conn, err := net.Dial("tcp", reachable(l.Addr()))
		if err != nil {
			t.Errorf("%s: %s no se alcanza: %v", addr, reachable(l.Addr()), err)
			return
		}
		conn.Close()
	}
	f("127.0.0.1:"+port, true)
	taken.Close()
	f("127.0.0.1:"+port, false)
	f("localhost:"+port, false)
	f(":"+port, false)
	f("0.0.0.0:"+port, false)

	refused := func(addr string) {
		t.Helper()
		if l, _, err := listenFrom(addr); err == nil {
			l.Close()
			t.Errorf("%s: escucha en %s", addr, l.Addr())
		}
	}
	refused("127.0.0.1")
	refused("127.0.0.1:http")
	refused("127.0.0.1:70000")
	refused("192.0.2.1:" + port) // not an address of this machine: no other port is tried
}
