package mail

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// server speaks SMTP (RFC 5321, 3207, 4954) over a real socket, keeps what it is
// sent, and fails where it is told to.
type server struct {
	t        *testing.T
	listener net.Listener
	roots    *x509.CertPool
	tls      *tls.Config
	implicit bool
	noTLS    bool              // does not offer STARTTLS
	password string            // of the user "avisos"; "" takes anybody
	answers  map[string]string // by verb: what is answered in the place of yes
	hang     string            // the verb that is never answered
	hangs    chan struct{}     // receives when it was asked

	mu       sync.Mutex
	received []received // under mu
	dialogue []string   // under mu: every line of the clients outside of DATA
}

type received struct {
	from, to, data string
	encrypted      bool
}

// newServer starts one as set makes it; nil: one that takes everything.
func newServer(t *testing.T, set func(*server)) *server {
	s := &server{t: t, answers: map[string]string{}, hangs: make(chan struct{}, 1)}
	if set != nil {
		set(s)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "correo"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(cert)
	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		s.listener.Close()
		conns.Wait()
	})
	return s
}

func (s *server) config(mode TLS) Config {
	return Config{Addr: s.listener.Addr().String(), From: "avisos@cotejo.example", TLS: mode, Roots: s.roots,
		Now: func() time.Time { return time.Date(2026, 11, 20, 16, 15, 0, 0, time.UTC) }}
}

func (s *server) messages() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.received...)
}

func (s *server) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.dialogue, "\n")
}

func (s *server) serve(conn net.Conn) {
	defer func() { conn.Close() }()
	encrypted := s.implicit
	if s.implicit {
		conn = tls.Server(conn, s.tls)
	}
	r := bufio.NewReader(conn)
	say := func(text string) { fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 correo.prueba ESMTP")
	var m received
	trusted := s.password == ""
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		s.mu.Lock()
		s.dialogue = append(s.dialogue, line)
		s.mu.Unlock()
		verb, rest, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		if verb == s.hang {
			s.hangs <- struct{}{}
			continue
		}
		if answer := s.answers[verb]; answer != "" {
			say(answer)
			continue
		}
		switch verb {
		case "EHLO":
			say("250-correo.prueba")
			if !encrypted && !s.noTLS {
				say("250-STARTTLS")
			}
			if encrypted && s.password != "" {
				say("250-AUTH PLAIN")
			}
			say("250 8BITMIME")
		case "STARTTLS":
			say("220 adelante")
			secured := tls.Server(conn, s.tls)
			if secured.Handshake() != nil {
				return
			}
			conn, r, encrypted = secured, bufio.NewReader(secured), true
		case "AUTH":
			token, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			if trusted = err == nil && string(token) == "\x00avisos\x00"+s.password; trusted {
				say("235 bien")
			} else {
				say("535 no: " + rest)
			}
		case "MAIL":
			if !trusted {
				say("530 falta autenticarse")
				continue
			}
			m = received{from: rest, encrypted: encrypted}
			say("250 bien")
		case "RCPT":
			m.to += rest
			say("250 bien")
		case "DATA":
			say("354 adelante")
			var data strings.Builder
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				data.WriteString(strings.TrimPrefix(line, "."))
			}
			m.data = data.String()
			s.mu.Lock()
			s.received = append(s.received, m)
			s.mu.Unlock()
			if answer := s.answers["."]; answer != "" {
				say(answer)
			} else {
				say("250 recibido")
			}
		case "QUIT":
			say("221 adiós")
			return
		default:
			say("250 bien")
		}
	}
}
