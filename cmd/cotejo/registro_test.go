package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"cotejo/mail"
)

// mailbox is a mail server on this machine that takes everything. It speaks what
// smtp_tls: none needs; the rest is held by the tests of package mail.
type mailbox struct {
	addr    string
	letters chan string // whole, as they came
}

func newMailbox(t *testing.T) *mailbox {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailbox{addr: l.Addr().String(), letters: make(chan string, 16)}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { m.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	return m
}

func (m *mailbox) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewScanner(c)
	fmt.Fprint(c, "220 prueba\r\n")
	for r.Scan() {
		switch verb, _, _ := strings.Cut(strings.ToUpper(r.Text()), " "); verb {
		case "DATA":
			fmt.Fprint(c, "354 adelante\r\n")
			var letter strings.Builder
			for r.Scan() && r.Text() != "." {
				letter.WriteString(r.Text() + "\n")
			}
			m.letters <- letter.String()
			fmt.Fprint(c, "250 recibido\r\n")
		case "QUIT":
			fmt.Fprint(c, "221 adiós\r\n")
			return
		default:
			fmt.Fprint(c, "250 bien\r\n")
		}
	}
}

// post sends a JSON body with a registration key.
func post(t *testing.T, base, path, key string, body map[string]any) (status int, answer map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", base+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Registro-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(got, &answer)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, got)
	}
	return resp.StatusCode, answer
}

func applicant(email string) map[string]any {
	return map[string]any{"razon_social": "Empaques del Ñandú", "rfc_fiscal": "ENA010101AA1", "cp": "06600", "regimen_fiscal": "601",
		"uso_cfdi": "G03", "email": email, "acepta_terminos": true}
}

// TestRegistrationEndToEnd: the operator's key, a letter over a socket, the code in
// it, keys that work; and no secret anywhere else.
func TestRegistrationEndToEnd(t *testing.T) {
	data, box := loadedData(t, 0), newMailbox(t)
	settings := map[string]string{"data": data, "smtp_addr": box.addr, "smtp_from": "avisos@cotejo.example", "smtp_tls": "none"}
	r := startHere(t, settings, nil)
	key := cotejoJSON[registrarReply](t, "registro", "create", "--name", "Mostrador", "--vendor", "V-17", "--max", "2", "--expires", "2199-12-31", "--data", data)
	if !strings.HasPrefix(key.Key, "svc_reg_"+key.ID) || key.Vendor != "V-17" || key.Max != 2 || key.Expires != "2200-01-01T00:00:00-06:00" || !key.Active {
		t.Fatalf("registro create = %+v", key)
	}

	status, begun := post(t, r.base, "/v1/registro", key.Key, applicant("ana@empresa.mx"))
	if status != 200 || begun["estado"] != "pendiente" {
		t.Fatalf("%d %v", status, begun)
	}
	letter := <-box.letters
	code := regexp.MustCompile(`[0-9A-Z]{4}-[0-9A-Z]{4}`).FindString(letter)
	if code == "" || !strings.Contains(letter, "To: <ana@empresa.mx>") || !strings.Contains(letter, begun["registro_id"].(string)) || strings.Contains(letter, "svc_") {
		t.Fatalf("letter:\n%s", letter)
	}
	waiting := cotejoJSON[[]registrationReply](t, "registro", "pending", "--data", data)
	if len(waiting) != 1 || waiting[0].ID != begun["registro_id"] || waiting[0].Email != "ana@empresa.mx" || waiting[0].Code != "" || waiting[0].Left != 5 {
		t.Fatalf("registro pending = %+v", waiting)
	}
	status, done := post(t, r.base, "/v1/registro/confirmar", key.Key, map[string]any{"registro_id": begun["registro_id"], "codigo": code})
	if status != 200 {
		t.Fatalf("%d %v", status, done)
	}
	live, test := done["llave_live"].(string), done["llave_test"].(string)
	if body, _ := r.mustGet(t, 200, "/v1/empresa/EFO010101AA1", test); body["sandbox"] != true {
		t.Errorf("llave_test: %v", body)
	}
	r.mustGet(t, 402, "/v1/empresa/EFO010101AA1", live) // real, and without money yet
	if all := cotejoJSON[[]accountReply](t, "accounts", "list", "--data", data); len(all) != 1 || len(all[0].Orgs) != 1 || all[0].Orgs[0].ID != done["organizacion"] {
		t.Errorf("accounts list = %+v", all)
	}
	if keys := cotejoJSON[[]registrarReply](t, "registro", "list", "--data", data); len(keys) != 1 || keys[0].Made != 1 || keys[0].Pending != 0 || keys[0].Key != "" {
		t.Errorf("registro list = %+v", keys)
	}
	if out := cotejo(t, 0, "jobs", "run", "limpieza", "--data", data); !strings.Contains(out, "nada que limpiar") {
		t.Errorf("limpieza: %s", out)
	}

	if v := cotejoJSON[verifyReply](t, "verify", "all", "--data", data); !v.OK || len(v.HalfWay) > 0 {
		t.Errorf("verify all = %+v", v)
	}

	ended := cotejoJSON[registrarReply](t, "registro", "deactivate", key.ID, "--data", data)
	if status, _ := post(t, r.base, "/v1/registro", key.Key, applicant("eva@empresa.mx")); ended.Active || status != 401 {
		t.Errorf("inactive: %+v, %d", ended, status)
	}
	r.end(t)
	canaries := []string{code, strings.ReplaceAll(code, "-", ""), live[17:60], test[17:60], key.Key[16:59]}
	if n := grepFolder(t, data, canaries); n < 10 {
		t.Errorf("only %d files were read", n)
	}
	for _, c := range append(canaries, "ana@empresa.mx") {
		if strings.Contains(r.log.String(), c) {
			t.Errorf("the log has %s:\n%s", c, r.log)
		}
	}
	if len(box.letters) != 0 {
		t.Errorf("a second letter: %s", <-box.letters)
	}
}

// grepFolder fails the test for each file that holds one of the texts.
func grepFolder(t *testing.T, dir string, texts []string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		files++
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				t.Errorf("%s holds %s", path, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestMailIsDown: a registration is kept, everybody who should is told, and the
// operator's code takes the place of the letter.
func TestMailIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	data := loadedData(t, 0)
	r := startHere(t, map[string]string{"data": data, "smtp_addr": nobody, "smtp_from": "avisos@cotejo.example", "smtp_tls": "none"}, nil)
	key := cotejoJSON[registrarReply](t, "registro", "create", "--name", "Mostrador", "--data", data)
	status, begun := post(t, r.base, "/v1/registro", key.Key, applicant("ana@empresa.mx"))
	if status != 200 || begun["correo"].(map[string]any)["envio"] != "en_cola" {
		t.Fatalf("%d %v", status, begun)
	}
	alerted := func() bool {
		body, _ := r.mustGet(t, 200, "/v1/salud", "")
		text, _ := json.Marshal(body["alertas"])
		return bytes.Contains(text, []byte(`"CORREO"`)) && !bytes.Contains(text, []byte(nobody))
	}
	waitFor(t, alerted, func() string { return "no hay alerta CORREO" })
	if log := r.log.String(); !strings.Contains(log, "correo: un envío falló") || strings.Contains(log, "ana@") {
		t.Errorf("log:\n%s", log)
	}
	id := begun["registro_id"].(string)
	issued := cotejoJSON[registrationReply](t, "registro", "code", id, "--data", data)
	if !issued.ByOperator || len(issued.Code) != 9 {
		t.Fatalf("registro code = %+v", issued)
	}
	if status, done := post(t, r.base, "/v1/registro/confirmar", key.Key, map[string]any{"registro_id": id, "codigo": issued.Code}); status != 200 {
		t.Errorf("%d %v", status, done)
	}
	failing(t, exitUsage, "registro", "code", id, "--data", data)
	failing(t, exitNotFound, "registro", "code", "reg_0000000000000", "--data", data)
	failing(t, exitNotFound, "registro", "code", "nada", "--data", data)
	failing(t, exitNotFound, "registro", "deactivate", "nada", "--data", data)
	failing(t, exitUsage, "registro", "create", "--name", "x", "--expires", "mañana", "--data", data)
	failing(t, exitUsage, "registro", "create", "--name", "x", "--expires", "2020-01-01", "--data", data)
	r.end(t)
	if log := r.log.String(); !strings.Contains(log, "correo sin enviar") || strings.Contains(log, issued.Code) {
		t.Errorf("log:\n%s", log)
	}
}

// TestWithoutMail: no server is configured, and the answer says who has the code.
func TestWithoutMail(t *testing.T) {
	data := loadedData(t, 0)
	r := startHere(t, map[string]string{"data": data}, nil)
	if out := cotejo(t, 0, "registro", "list", "--data", data); !strings.Contains(out, "cotejo registro create") {
		t.Errorf("registro list: %s", out)
	}
	key := strings.TrimSpace(cotejo(t, 0, "registro", "create", "--name", "Mostrador", "--data", data))
	status, begun := post(t, r.base, "/v1/registro", key, applicant("ana@empresa.mx"))
	if status != 200 || begun["correo"].(map[string]any)["envio"] != "por_operador" {
		t.Fatalf("%d %v", status, begun)
	}
	id := begun["registro_id"].(string)
	if out := cotejo(t, 0, "registro", "pending", "--data", data); !strings.Contains(out, id) || !strings.Contains(out, "ana@empresa.mx") {
		t.Errorf("registro pending: %s", out)
	}
	code := strings.TrimSpace(cotejo(t, 0, "registro", "code", id, "--data", data))
	if status, done := post(t, r.base, "/v1/registro/confirmar", key, map[string]any{"registro_id": id, "codigo": code}); status != 200 {
		t.Errorf("%d %v", status, done)
	}
}

func TestMailSettings(t *testing.T) {
	f := func(file, want string) {
		t.Helper()
		_, err := loadConfiguration(writeConfig(t, file), nil, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; se esperaba %q", file, err, want)
		}
	}
	f("smtp_from: a@b.mx\n", "smtp_from no sirve sin smtp_addr")
	f("smtp_tls: implicit\n", "") // alone it says nothing
	f("smtp_addr: correo.mx:587\n", "smtp_from es una dirección")
	f("smtp_addr: correo.mx\nsmtp_from: a@b.mx\n", "smtp_addr es HOST:PUERTO")
	f("smtp_addr: correo.mx:587\nsmtp_from: a@b.mx\n", "")
	f("smtp_addr: correo.mx:25\nsmtp_from: a@b.mx\nsmtp_tls: none\n", "smtp_tls: none")
	f("smtp_addr: correo.mx:25\nsmtp_from: a@b.mx\nsmtp_tls: quizás\n", "smtp_tls es starttls")
	f("smtp_addr: correo.mx:25\nsmtp_from: a@b.mx\nsmtp_user: a\n", "smtp_user y smtp_password_file")

	secret := func(mode fs.FileMode, text string) string {
		path := filepath.Join(t.TempDir(), "contraseña")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	g := func(path, want string) {
		t.Helper()
		c := configuration{values: map[string]string{"smtp_addr": "correo.mx:587", "smtp_from": "a@b.mx", "smtp_tls": string(mail.StartTLS), "smtp_user": "a", "smtp_password_file": path}}
		s, err := c.sender(nil)
		if want == "" && (err != nil || s == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitConfig || strings.Contains(err.Error(), "canario")) {
			t.Errorf("%v; se esperaba %q", err, want)
		}
	}
	g(secret(0o600, "canario\n"), "")
	g(secret(0o644, "canario\n"), "chmod 600")
	g(secret(0o600, "\n"), "una sola línea")
	g(secret(0o600, "canario\notra\n"), "una sola línea")
	g(secret(0o600, strings.Repeat("canario", 200)), "una sola línea")
	g("/no/existe", "smtp_password_file")
}

func TestDoctorAsksTheMailServer(t *testing.T) {
	data, box := loadedData(t, 0), newMailbox(t)
	settings := "smtp_addr: " + box.addr + "\nsmtp_from: avisos@cotejo.example\nsmtp_tls: none\n"
	out := cotejo(t, 0, "doctor", "--data", data, "--config", writeConfig(t, settings))
	if !strings.Contains(out, "✓ correo     "+box.addr+" responde") || len(box.letters) != 0 {
		t.Errorf("doctor:\n%s", out)
	}
	out = cotejo(t, exitFailed, "doctor", "--data", data, "--config", writeConfig(t, strings.Replace(settings, box.addr, "127.0.0.1:1", 1)))
	if !strings.Contains(out, "✗ correo     mail: no se pudo conectar") {
		t.Errorf("doctor:\n%s", out)
	}
}
