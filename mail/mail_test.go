package mail

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	stdmail "net/mail"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

var greeting = Message{To: "ana@empresa.mx", Subject: "Código para confirmar su registro", Text: "Buen día:\n.\nEl código es ABCD-1234, válido hasta mañana a las 10:15 y ni un minuto más, señora Ñandú.\n"}

func sender(t *testing.T, c Config) *Sender {
	t.Helper()
	s, err := NewSender(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSend holds what arrives, byte for byte, in each mode.
func TestSend(t *testing.T) {
	for _, mode := range []TLS{StartTLS, Implicit, None} {
		t.Run(string(mode), func(t *testing.T) {
			password := ""
			if mode != None {
				password = "contraseña-canario"
			}
			s := newServer(t, func(s *server) { s.implicit, s.password = mode == Implicit, password })
			c := s.config(mode)
			if mode != None {
				c.User, c.Password = "avisos", password
			}
			if err := sender(t, c).Probe(ctx); err != nil || len(s.messages()) != 0 {
				t.Fatalf("probe: %v, %d messages", err, len(s.messages()))
			}
			if err := sender(t, c).Send(ctx, greeting); err != nil {
				t.Fatal(err)
			}
			all := s.messages()
			if len(all) != 1 {
				t.Fatalf("%d messages arrived", len(all))
			}
			m := all[0]
			if m.from != "FROM:<avisos@cotejo.example> BODY=8BITMIME" && m.from != "FROM:<avisos@cotejo.example>" {
				t.Errorf("from %q", m.from)
			}
			if m.to != "TO:<ana@empresa.mx>" || m.encrypted != (mode != None) {
				t.Errorf("to %q, encrypted %v", m.to, m.encrypted)
			}
			checkWhole(t, m.data, greeting)
			if !strings.Contains(s.lines(), "EHLO cotejo.example") {
				t.Errorf("the machine is named:\n%s", s.lines())
			}
		})
	}
}

// checkWhole reads a message as a client would: the headers that were meant and no
// other, and the text.
func checkWhole(t rapid.TB, data string, want Message) {
	t.Helper()
	read, err := stdmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatalf("%v:\n%s", err, data)
	}
	for name, exact := range map[string]string{
		"From": "<avisos@cotejo.example>", "To": "<" + want.To + ">", "Date": "Fri, 20 Nov 2026 16:15:00 +0000",
		"Content-Type": "text/plain; charset=UTF-8", "Content-Transfer-Encoding": "quoted-printable", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0",
	} {
		if got := read.Header[name]; len(got) != 1 || got[0] != exact {
			t.Errorf("%s: %q; want %q", name, got, exact)
		}
	}
	if id := read.Header.Get("Message-Id"); !strings.HasSuffix(id, "@cotejo.example>") || len(id) < 40 {
		t.Errorf("Message-ID %q", id)
	}
	if len(read.Header) != 9 {
		t.Errorf("headers %v", read.Header)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject"))
	if err != nil || subject != want.Subject {
		t.Errorf("subject %q, %v", subject, err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(read.Body))
	if text := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || strings.TrimSuffix(text, "\n") != strings.TrimSuffix(want.Text, "\n") {
		t.Errorf("text %q, %v; want %q", text, err, want.Text)
	}
	longest := 250 // a word of a header is not broken
	for line := range strings.Lines(data) {
		if line == "\r\n" {
			longest = 78
		}
		if !strings.HasSuffix(line, "\r\n") || len(line) > longest {
			t.Errorf("line %q", line)
		}
		for i := range len(line) {
			if line[i] >= 0x80 {
				t.Fatalf("a byte beyond ASCII: %q", line)
			}
		}
	}
}

// TestNoPasswordInTheClear holds that a server that does not encrypt, or that
// nobody vouches for, is told neither message nor password.
func TestNoPasswordInTheClear(t *testing.T) {
	s := newServer(t, func(s *server) { s.noTLS, s.password = true, "contraseña-canario" })
	c := s.config(StartTLS)
	c.User, c.Password = "avisos", s.password
	err := sender(t, c).Send(ctx, greeting)
	if failed := (*Error)(nil); !errors.As(err, &failed) || failed.Refused || !strings.Contains(err.Error(), "no ofrece STARTTLS") {
		t.Errorf("no STARTTLS: %v", err)
	}
	if err := sender(t, c).Probe(ctx); err == nil || !strings.Contains(err.Error(), "no ofrece STARTTLS") {
		t.Errorf("probe without STARTTLS: %v", err)
	}
	strange := newServer(t, nil)
	c = strange.config(StartTLS)
	c.Roots, c.User, c.Password = s.roots, "avisos", "contraseña-canario"
	if err := sender(t, c).Send(ctx, greeting); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("strange certificate: %v", err)
	}
	for _, told := range []string{s.lines(), strange.lines()} {
		if strings.Contains(told, "AUTH") || strings.Contains(told, "MAIL") {
			t.Errorf("the server was told:\n%s", told)
		}
	}
	if len(s.messages())+len(strange.messages()) != 0 {
		t.Error("a message went out")
	}
}

// TestFailures holds which errors may go better later, and that none repeats what
// the server said: it said the address and the password.
func TestFailures(t *testing.T) {
	f := func(verb, answer, want string, refused bool) {
		t.Helper()
		s := newServer(t, func(s *server) {
			s.password = "contraseña-canario"
			s.answers[verb] = answer
		})
		c := s.config(StartTLS)
		c.User, c.Password = "avisos", s.password
		err := sender(t, c).Send(ctx, greeting)
		failed := (*Error)(nil)
		if !errors.As(err, &failed) || failed.Refused != refused || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: %v, %+v", verb, answer, err, failed)
			return
		}
		for _, secret := range []string{"ana@", "canario", "Código", "ABCD"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error names %s: %v", verb, secret, err)
			}
		}
	}
	f("RCPT", "550 ana@empresa.mx no existe", "el servidor no acepta el destinatario: el servidor respondió 550", true)
	f("RCPT", "451 ana@empresa.mx vuelva en cinco minutos", "respondió 451", false)
	f("MAIL", "553 no es suyo", "el servidor no acepta el remitente: el servidor respondió 553", false)
	f("DATA", "554 no", "respondió 554", false)
	f(".", "554 parece correo no deseado: ana@empresa.mx", "respondió 554", true)
	f(".", "452 sin espacio", "respondió 452", false)
	f("AUTH", "535 contraseña-canario no", "el servidor no acepta la conexión o la cuenta: el servidor respondió 535", false)
	f("STARTTLS", "454 hoy no", "respondió 454", false)
}

// TestTakenIsSent holds that what fails after the server took the message over is
// not told as a failure: the message would be sent twice.
func TestTakenIsSent(t *testing.T) {
	s := newServer(t, func(s *server) { s.answers["RSET"], s.answers["QUIT"] = "421 adiós", "421 adiós" })
	if err := sender(t, s.config(StartTLS)).Send(ctx, greeting); err != nil {
		t.Error(err)
	}
	if n := len(s.messages()); n != 1 {
		t.Errorf("%d messages", n)
	}
}

// TestSilentServer holds that a server that says nothing is left, when the
// deadline passes and when the caller goes.
func TestSilentServer(t *testing.T) {
	s := newServer(t, func(s *server) { s.hang = "MAIL" })
	going, leave := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- sender(t, s.config(StartTLS)).Send(going, greeting) }()
	<-s.hangs
	leave()
	if err := <-done; !errors.Is(going.Err(), context.Canceled) || err == nil {
		t.Errorf("left: %v", err)
	}

	slow := sender(t, s.config(StartTLS))
	slow.timeout = 1
	if err := slow.Send(ctx, greeting); err == nil || !strings.Contains(err.Error(), "no terminó a tiempo") {
		t.Errorf("deadline: %v", err)
	}
}

func TestConfig(t *testing.T) {
	base := newServer(t, nil).config(StartTLS)
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := base
		change(&c)
		err := c.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	f("", func(*Config) {})
	f("", func(c *Config) { c.TLS = None })
	f("", func(c *Config) { c.TLS, c.Addr = None, "[::1]:25" })
	f("", func(c *Config) { c.TLS, c.Addr = None, "localhost:25" })
	f("smtp_tls: none", func(c *Config) { c.TLS, c.Addr = None, "correo.ejemplo.mx:25" })
	f("smtp_tls: none", func(c *Config) { c.TLS, c.User, c.Password = None, "a", "b" })
	f("smtp_tls", func(c *Config) { c.TLS = "opcional" })
	f("smtp_addr", func(c *Config) { c.Addr = "correo.ejemplo.mx" })
	f("smtp_addr", func(c *Config) { c.Addr = ":25" })
	f("smtp_addr", func(c *Config) { c.Addr = "a:0" })
	f("smtp_from", func(c *Config) { c.From = "Avisos <avisos@ejemplo.mx>" })
	f("smtp_from", func(c *Config) { c.From = "" })
	f("smtp_user", func(c *Config) { c.User = "avisos" })
	f("smtp_user", func(c *Config) { c.Password = "x" })
}

// TestHostileMessages holds that whatever stands in a message, it is refused or
// arrives as one message with the headers that were meant.
func TestHostileMessages(t *testing.T) {
	s := newServer(t, nil)
	out := sender(t, s.config(StartTLS))
	f := func(m Message) {
		t.Helper()
		if err := out.Send(ctx, m); err == nil || len(s.messages()) != 0 {
			t.Errorf("%+v: %v, %d messages", m, err, len(s.messages()))
		}
	}
	for _, to := range []string{
		"", "ana", "ana@empresa", "ana@empresa.mx\r\nBcc: todos@otra.mx", "ana@empresa.mx, otra@otra.mx", "Ana <ana@empresa.mx>", "<ana@empresa.mx>",
		"ana@[127.0.0.1].x", "\"a b\"@empresa.mx", " ana@empresa.mx", "ana@empresa.mx>\r\nRCPT TO:<otra@otra.mx", "ana@empresa.mx\x00", strings.Repeat("a", 250) + "@empresa.mx",
	} {
		f(Message{to, "Asunto", "Texto\n"})
	}
	for _, subject := range []string{"", "Hola\r\nBcc: todos@otra.mx", "Hola\nX: y", "Hola\x00", "Hola\u2028X", "Hola\u0085X", "\xff", strings.Repeat("a", 201)} {
		f(Message{"ana@empresa.mx", subject, "Texto\n"})
	}
	for _, text := range []string{"", "a\r\n.\r\nMAIL FROM:<x@y.mx>", "a\rb", "a\x00", "\xff", strings.Repeat("a", 17<<10)} {
		f(Message{"ana@empresa.mx", "Asunto", text})
	}
}

func TestAnyMessageArrivesWhole(t *testing.T) {
	s := newServer(t, nil)
	out := sender(t, s.config(StartTLS))
	pieces := []string{"a", "ñ", "😀", ".", "\n", "\n.\n", "=", "=\n", " ", "\t", " \n", "From ", "Bcc: x@y.mx", "\r\n", "\x00", "--", "?=", "=?utf-8?q?x?=", strings.Repeat("x", 100)}
	rapid.Check(t, func(rt *rapid.T) {
		join := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(rt, name), "")
		}
		m := Message{"ana@empresa.mx", strings.TrimSpace(join("subject")), join("text") + "."}
		before := len(s.messages())
		err := out.Send(ctx, m)
		if refused := m.Check(); (refused == nil) != (err == nil) {
			rt.Fatalf("%+v: %v; Check: %v", m, err, refused)
		}
		all := s.messages()
		if err != nil {
			if len(all) != before {
				rt.Fatal("a refused message arrived")
			}
			return
		}
		if strings.Contains(m.Subject, "=?") || strings.Contains(m.Text, "\t\n") || strings.Contains(m.Subject, "  ") || strings.Contains(m.Subject, "\t") {
			return // read back otherwise by the decoder of this test
		}
		checkWhole(rt, all[before].data, m)
	})
}
