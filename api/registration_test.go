package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cotejo/mail"
)

func registrationBody(email string) []byte {
	return must(json.Marshal(map[string]any{"razon_social": "Empaques del Ñandú", "rfc_fiscal": "ENA010101AA1", "cp": "06600", "regimen_fiscal": "601",
		"uso_cfdi": "G03", "email": email, "acepta_terminos": true}))
}

// TestParallelConfirmations sends one code 64 times at once over HTTP: one answer
// has keys, every other says that there is an account.
func TestParallelConfirmations(t *testing.T) {
	f := newFixture(t)
	key := f.keyHeader("registro")
	id, _ := walk(f.sendBody("POST", "/v1/registro", registrationBody("ana@empresa.mx"), key...).body, ".registro_id")
	body := must(json.Marshal(map[string]any{"registro_id": id, "codigo": f.code()}))
	request := "POST /v1/registro/confirmar HTTP/1.1\r\nHost: cotejo.test\r\n" + key[0] +
		fmt.Sprintf("\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answers := make([]answer, 64)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			conn := must(f.listener.Dial())
			defer conn.Close()
			must(conn.Write([]byte(request)))
			answers[i] = read(t, conn, "POST")
		})
	}
	all.Wait()
	won, org := 0, ""
	for _, a := range answers {
		checkContract(t, f.table, "POST", "/v1/registro/confirmar", a)
		switch {
		case a.status == 200:
			won++
			v, _ := walk(a.body, ".organizacion")
			org = v.(string)
			live, _ := walk(a.body, ".llave_test")
			if got := f.get("/v1/empresa/EFO010101AA1", live.(string)); got.status != 200 {
				t.Errorf("llave_test: %d %s", got.status, got.body)
			}
		case a.status == 409 && strings.Contains(string(a.body), "REGISTRO_CONFIRMADO"):
		case a.status == 503: // shed: nothing was done
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	again := f.sendBody("POST", "/v1/registro/confirmar", body, key...)
	if won != 1 || again.status != 409 || !strings.Contains(string(again.body), org) {
		t.Errorf("%d answers with keys; again: %d %s", won, again.status, again.body)
	}
	if len(f.sent()) != 1 {
		t.Errorf("%d letters", len(f.sent()))
	}
}

// TestRegistrationLeavesNoSecret looks for codes, keys and addresses in the log of
// everything that was asked, and in every letter but the one they belong to.
func TestRegistrationLeavesNoSecret(t *testing.T) {
	f := newFixture(t)
	key := f.keyHeader("registro")
	id, _ := walk(f.sendBody("POST", "/v1/registro", registrationBody("canario-ana@empresa.mx"), key...).body, ".registro_id")
	code := f.code()
	f.sendBody("POST", "/v1/registro/confirmar", must(json.Marshal(map[string]any{"registro_id": id, "codigo": "ZZZZ-ZZZZ", code: 1})), key...)
	a := f.sendBody("POST", "/v1/registro/confirmar", must(json.Marshal(map[string]any{"registro_id": id, "codigo": code})), key...)
	live, _ := walk(a.body, ".llave_live")
	test, _ := walk(a.body, ".llave_test")
	f.advance(25 * time.Hour)
	f.sendBody("POST", "/v1/registro", registrationBody("canario-ana@empresa.mx"), key...)
	f.sendBody("POST", "/v1/registro", []byte(`{"email":"canario-eva@empresa.mx"}`), key...)
	f.sendBody("POST", "/v1/registro", registrationBody("canario eva"), key...)
	log := f.log.String() + f.accessLines()
	if strings.Count(log, `"ruta":"/v1/registro`) != 6 || strings.Contains(log, `"organizacion":"org_0000000000000"`) || !strings.Contains(log, `"llave":"`+f.keys["registro"][8:16]) {
		t.Errorf("log:\n%s", log)
	}
	for _, secret := range []string{code, strings.ReplaceAll(code, "-", ""), "ZZZZ", live.(string)[17:], test.(string)[17:], f.keys["registro"][16:], "canario", "ENA010101AA1"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s", secret)
		}
	}
	letters := f.sent()
	if len(letters) != 2 || !strings.Contains(letters[0].Text, code) || strings.Contains(letters[1].Text, code) {
		t.Fatalf("letters %+v", letters)
	}
	for _, m := range letters {
		for _, secret := range []string{"svc_", live.(string)[17:], test.(string)[17:], "Ñandú"} {
			if strings.Contains(m.Text+m.Subject, secret) {
				t.Errorf("a letter has %s:\n%s", secret, m.Text)
			}
		}
	}
}

// TestNothingIsInjectedIntoLetters sends what would be a header, a recipient or a
// message of somebody's own, in every member: it is refused, or no letter has it.
func TestNothingIsInjectedIntoLetters(t *testing.T) {
	f := newFixture(t)
	key := f.keyHeader("registro")
	hostile := []string{
		"x\r\nBcc: todos@otra.mx", "x\nBcc: todos@otra.mx", "x\u2028Bcc: todos@otra.mx", "x\u0085y", "x\x00y", "Gane dinero: https://mala.mx", "%0d%0aBcc: todos@otra.mx",
		"=?utf-8?q?Bcc:_todos=40otra.mx?=", "ana@empresa.mx, todos@otra.mx", "ana@empresa.mx\r\nRCPT TO:<todos@otra.mx>", "\"todos\"@otra.mx", "<ana@empresa.mx>", ".", "\r\n.\r\n",
	}
	asked := 0
	for i, text := range hostile {
		for _, field := range []string{"razon_social", "rfc_fiscal", "cp", "regimen_fiscal", "uso_cfdi", "email"} {
			var body map[string]any
			if err := json.Unmarshal(registrationBody(fmt.Sprintf("p%d-%s@empresa.mx", i, strings.ReplaceAll(field, "_", ""))), &body); err != nil {
				t.Fatal(err)
			}
			body[field] = text
			before := len(f.sent())
			a := f.sendBody("POST", "/v1/registro", must(json.Marshal(body)), key...)
			asked++
			all := f.sent()
			if a.status == 422 && len(all) == before {
				continue
			}
			if a.status != 200 || field != "razon_social" || len(all) != before+1 {
				t.Fatalf("%s %q: %d %s", field, text, a.status, a.body)
			}
			m := all[before]
			if err := m.Check(); err != nil || strings.Contains(m.To+m.Subject+m.Text, text) && text != "." || strings.Contains(m.Text, "todos@") {
				t.Errorf("%s %q: %v %+v", field, text, err, m)
			}
		}
	}
	if asked != 6*len(hostile) || len(f.sent()) == 0 {
		t.Errorf("%d asked, %d letters", asked, len(f.sent()))
	}
}

// TestALetterThatCannotWaitIsTold: the registration is kept, and asking again after
// a minute sends it.
func TestALetterThatCannotWaitIsTold(t *testing.T) {
	f := newFixture(t)
	key := f.keyHeader("registro")
	f.mailErr = mail.ErrFull
	a := f.sendBody("POST", "/v1/registro", registrationBody("ana@empresa.mx"), key...)
	if sent, _ := walk(a.body, ".correo.envio"); a.status != 200 || sent != "no_enviado" || len(f.sent()) != 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id, _ := walk(a.body, ".registro_id")
	f.mailErr = nil
	f.advance(time.Minute)
	a = f.sendBody("POST", "/v1/registro", registrationBody("ana@empresa.mx"), key...)
	again, _ := walk(a.body, ".registro_id")
	a = f.sendBody("POST", "/v1/registro/confirmar", must(json.Marshal(map[string]any{"registro_id": id, "codigo": f.code()})), key...)
	if again != id || len(f.sent()) != 1 || a.status != 200 {
		t.Errorf("%v, %v, %d letters, %d %s", id, again, len(f.sent()), a.status, a.body)
	}
}
