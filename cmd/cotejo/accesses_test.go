package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"cotejo/store"
)

// adminKey makes an operator's key in a directory that nobody serves.
func adminKey(t *testing.T, data string) string {
	t.Helper()
	return cotejoJSON[keyReply](t, "keys", "create", "--mode", "admin", "--data", data).Key
}

// exchange writes a request as it is and returns what comes back until the
// connection ends or is quiet.
func exchange(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// The server may answer and close before all is sent.
	_, _ = io.WriteString(conn, request)
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// TestNothingSecretIsKept sends keys, a card, an account and an RFC through all that
// a request can carry to the real server, and looks for them in all that it leaves:
// its output, metrics, access log, temporary files, and every file of the data
// directory, compressed ones unpacked and the store read row by row. An RFC may be
// in a record, and nowhere else.
func TestNothingSecretIsKept(t *testing.T) {
	const (
		card    = "5555341244441115"
		account = "002010077777777771"
		rfc     = "CAN010101AA1"
	)
	data, temp := loadedData(t, 0), t.TempDir()
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	live := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	test := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "test", "--data", data).Key
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "500", "--reason", "prueba", "--data", data)
	admin := adminKey(t, data)
	elsewhere := loadedData(t, 0)
	cotejoJSON[accountReply](t, "accounts", "create", "BETA", "--data", elsewhere)
	wrong := adminKey(t, elsewhere)

	addr, metricsAddr := freeAddr(t), freeAddr(t)
	var output bytes.Buffer
	cmd := program(context.Background(), "serve", "--data", data, "--addr", addr)
	cmd.Env = append(cmd.Env, "TMPDIR="+temp, "COTEJO_METRICS_ADDR="+metricsAddr, "COTEJO_LIMITE_LLAVE=1/s,60", "COTEJO_LIMITE_DIRECCION=1/s,150")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s := &served{cmd: cmd, base: "http://" + addr, log: &output}
	waitFor(t, func() bool { status, _, _, err := s.get("/livez", ""); return err == nil && status == 200 },
		func() string { return "el servidor no contesta" })

	statuses := map[string]int{}
	send := func(request string) {
		answer := exchange(t, addr, request)
		status, _, _ := strings.Cut(strings.TrimPrefix(answer, "HTTP/1.1 "), " ")
		statuses[status]++
	}
	for _, key := range []string{live, test, admin, "", wrong} {
		head := "Host: x\r\nConnection: close\r\n"
		if key != "" {
			head += "X-Api-Key: " + key + "\r\n"
		}
		get := func(target, headers string) { send("GET " + target + " HTTP/1.1\r\n" + head + headers + "\r\n") }
		post := func(target, body, headers string) {
			send("POST " + target + " HTTP/1.1\r\n" + head + headers + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		}
		get("/v1/empresa/"+rfc, "")
		get("/v1/utilidades/clabe/"+account, "")
		post("/v1/utilidades/tarjeta", `{"numero":"`+card+`"}`, "Content-Type: application/json\r\n")
		for _, value := range []string{card, account, rfc, live, wrong} {
			get("/v1/empresa/"+value, "")
			get("/v1/empresa/"+rfc+"?otro="+value+"&sancionados="+value, "")
			get("/v1/empresa/"+rfc+"?simular=1", "Idempotency-Key: "+value+"\r\nX-Request-Id: "+value+"\r\nX-"+value+": "+value+"\r\n")
			get("/v1/empresa/"+rfc, "Idempotency-Key: "+value+"\r\nUser-Agent: "+value+"\r\nCookie: a="+value+"\r\nX-Forwarded-For: "+value+"\r\nForwarded: for="+value+"\r\n")
			get("/v1/verificaciones/"+value, "Authorization: Bearer "+value+"\r\n")
			get("/v1/"+value+"/x", "")
			get("/v1/admin/accesos?org="+value+"&cursor="+value, "")
			get("/v1/salud", "X-Api-Key: "+value+"\r\n")
			post("/v1/utilidades/tarjeta", `{"numero":"`+value+`","`+value+`":1}`, "Content-Type: application/json\r\n")
			post("/v1/utilidades/tarjeta", `{"numero":"`+value, "Content-Type: application/json\r\n")
			post("/v1/utilidades/tarjeta", value, "Content-Type: "+value+"\r\n")
			post("/v1/utilidades/tarjeta", value+strings.Repeat(" ", 1<<20), "Content-Type: application/json\r\n")
			send(value + " /v1/salud HTTP/1.1\r\n" + head + "\r\n")
			send("GET /" + value + "\r\n" + value + "\r\n\r\n")
		}
	}
	for _, status := range []string{"200", "400", "401", "403", "404", "405", "413", "415", "422", "429"} {
		if statuses[status] == 0 {
			t.Errorf("nothing was answered %s: %v", status, statuses)
		}
	}
	resp, err := http.Get("http://" + metricsAddr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code := s.stop(t); code != 0 {
		t.Fatalf("código de salida %d: %s", code, &output)
	}

	left := map[string]string{"output": output.String(), "metrics": string(shown), "store": storeRows(t, data)}
	for _, dir := range []string{data, temp} {
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			left[path] = string(text)
			if strings.HasSuffix(path, ".zst") {
				left[path] = unpacked(t, text)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	accesses := left[accessSegments(t, data)[0]]
	if strings.Count(accesses, "\n") < 100 || !strings.Contains(accesses, `"status":429`) || !strings.Contains(accesses, `"direccion":"127.0.0.1"`) ||
		!strings.Contains(string(shown), "cotejo_limited_total") || !strings.Contains(left["store"], rfc) {
		t.Fatalf("the test proves nothing: %d bytes of accesses, %d of metrics", len(accesses), len(shown))
	}
	secrets := []string{card, account}
	for _, key := range []string{live, test, admin, wrong} {
		secrets = append(secrets, key, key[len(key)-49:len(key)-6])
	}
	for where, text := range left {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s", where, secret)
			}
		}
		if where != "store" && !strings.HasPrefix(where, filepath.Join(data, dirAccounts)) && strings.Contains(text, rfc) {
			t.Errorf("%s holds an RFC", where)
		}
	}
}

// storeRows joins every row of the account data.
func storeRows(t *testing.T, data string) string {
	t.Helper()
	s, err := store.OpenPebble(filepath.Join(data, dirAccounts), store.PebbleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var rows strings.Builder
	for g := range store.Group(store.Groups + 1) {
		if err := s.Reader(g).Scan(nil, nil, func(key, value []byte) error {
			rows.Write(key)
			rows.Write(value)
			rows.WriteByte('\n')
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows.String()
}

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func accessSegments(t *testing.T, data string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(data, dirAccesses, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no access log: %v", err)
	}
	return names
}

// TestAccessesOutliveTheProcess kills the server with its log open, cuts the last
// line, and starts it again: what was written is there, and limpieza takes away what
// is too old.
func TestAccessesOutliveTheProcess(t *testing.T) {
	data := loadedData(t, 0)
	cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data)
	admin := adminKey(t, data)
	s := serveChild(t, data)
	for range 3 {
		s.mustGet(t, 404, "/v1/verificaciones", admin)
	}
	lines := regexp.MustCompile(`"ruta":"-","status":404,`)
	waitFor(t, func() bool { // written within a second
		names, _ := filepath.Glob(filepath.Join(data, dirAccesses, "*"))
		if len(names) == 0 {
			return false
		}
		text, err := os.ReadFile(names[0])
		return err == nil && len(lines.FindAll(text, -1)) == 3
	}, func() string { return "nothing is written" })
	s.cmd.Process.Kill()
	s.cmd.Wait()
	open := accessSegments(t, data)[0]
	text, err := os.ReadFile(open)
	if err != nil || !strings.HasSuffix(open, ".jsonl") {
		t.Fatalf("%s: %v", open, err)
	}
	if err := os.WriteFile(open, text[:len(text)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(data, dirAccesses, "2020-01-01.0001.jsonl")
	if err := os.WriteFile(old, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	s = serveChild(t, data)
	s.mustGet(t, 404, "/v1/nada", "")
	body, _ := s.mustGet(t, 200, "/v1/admin/accesos?status=404", admin)
	if accesses, _ := body["accesos"].([]any); len(accesses) != 3 || body["dias_conservados"] != 365.0 {
		t.Errorf("%v", body)
	}
	if out := cotejo(t, 0, "jobs", "run", "limpieza", "--data", data); !strings.Contains(out, "1 archivos del registro de accesos, ") {
		t.Errorf("limpieza: %s", out)
	}
	if code := s.stop(t); code != 0 {
		t.Errorf("código de salida %d: %s", code, s.log)
	}
	for _, name := range accessSegments(t, data) {
		if strings.Contains(name, "2020") || !strings.HasSuffix(name, ".zst") {
			t.Errorf("%s is left", name)
		}
	}
	if s.log.Len() > 0 && strings.Contains(s.log.String(), `"ruta"`) {
		t.Errorf("accesses go to the output too: %s", s.log)
	}
	if n := len(accessSegments(t, data)); n != 2 {
		t.Errorf("%d segments", n)
	}
}
