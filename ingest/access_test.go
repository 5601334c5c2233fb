package ingest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"cotejo/snapshots"
)

// certificate is one of a chain, with its key.
type certificate struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

func (c certificate) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// issue signs a certificate; an issuer of nil is itself.
func issue(t *testing.T, name string, issuer *certificate, template x509.Certificate) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.Subject = pkix.Name{CommonName: name}
	template.BasicConstraintsValid = true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	signer := certificate{&template, key}
	if issuer != nil {
		signer = *issuer
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, signer.Certificate, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate{parsed, key}
}

// chain is a root, an intermediate and a certificate for 127.0.0.1.
func chain(t *testing.T, template x509.Certificate) (root, intermediate, leaf certificate) {
	t.Helper()
	authority := x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	root = issue(t, "raíz", nil, authority)
	intermediate = issue(t, "intermedia", &root, authority)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.IPAddresses == nil {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	return root, intermediate, issue(t, "servidor", &intermediate, template)
}

// serveTLS starts a server of the file that presents these certificates.
func (tr *trial) serveTLS(h http.HandlerFunc, certificates ...certificate) *httptest.Server {
	tr.t.Helper()
	shown := tls.Certificate{PrivateKey: certificates[0].key}
	for _, c := range certificates {
		shown.Certificate = append(shown.Certificate, c.Raw)
	}
	s := httptest.NewUnstartedServer(tr.handler(h))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{shown}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	tr.t.Cleanup(s.Close)
	return s
}

// TestIncompleteChain: a server that leaves out the intermediate certificate is
// not believed, until the operator says which it is.
func TestIncompleteChain(t *testing.T) {
	hurried(t)
	root, intermediate, leaf := chain(t, x509.Certificate{})
	for _, source := range eachReader() {
		t.Run(source, func(t *testing.T) {
			tr := newTrial(t, source)
			s := tr.serveTLS(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tr.good) }, leaf)
			says := "fuentes." + source + ".ca_file"
			tr.failed(Request{Mirror: s.URL}, ErrUnavailable, says, 0)
			tr.failed(Request{Mirror: s.URL, Access: Access{CAFile: tr.file("raiz.pem", root.pem())}}, ErrUnavailable, says, 0)
			r, err := tr.ingest(Request{Mirror: s.URL, Access: Access{CAFile: tr.file("intermedia.pem", intermediate.pem())}})
			if err != nil || r.Outcome != Unchanged || tr.asked.Load() != 1 {
				t.Errorf("%s, %v, asked %d times", r.Outcome, err, tr.asked.Load())
			}
			tr.unharmed(snapshots.OutcomeUnchanged, "")
			// It holds for that download only.
			tr.failed(Request{Mirror: s.URL}, ErrUnavailable, says, 0)
		})
	}
}

// TestWrongCertificates: a file with authorities makes nothing else acceptable.
func TestWrongCertificates(t *testing.T) {
	hurried(t)
	f := func(says string, template x509.Certificate) {
		t.Helper()
		tr := newTrial(t, "sat_69b")
		root, intermediate, leaf := chain(t, template)
		s := tr.serveTLS(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tr.good) }, leaf, intermediate)
		tr.failed(Request{Mirror: s.URL, Access: Access{CAFile: tr.file("raiz.pem", root.pem())}}, ErrUnavailable, says, 0)
	}
	f("expired", x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	f("su certificado no vale", x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}})
}

func TestRedirectFromHTTPSToHTTP(t *testing.T) {
	hurried(t)
	root, intermediate, leaf := chain(t, x509.Certificate{})
	for _, source := range eachReader() {
		t.Run(source, func(t *testing.T) {
			tr := newTrial(t, source)
			s := tr.serveTLS(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusMovedPermanently)
			}, leaf, intermediate)
			tr.failed(Request{Mirror: s.URL, Access: Access{CAFile: tr.file("raiz.pem", root.pem())}}, ErrUnavailable, "sin cifrar", 1)
		})
	}
}

// TestProxy: the proxy of a source gets all of its requests.
func TestProxy(t *testing.T) {
	hurried(t)
	tr := newTrial(t, "sat_69b")
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == indexPath || r.URL.Path == tr.source.path {
			asked = append(asked, r.URL.Path+" "+r.Header.Get("Proxy-Authorization"))
		}
		if r.URL.Host != "sat.invalid" || r.URL.Path != tr.source.path {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(tr.good)
	}))
	defer proxy.Close()
	through := Access{Proxy: strings.Replace(proxy.URL, "http://", "http://quien:clave@", 1)}
	if r, err := tr.ingest(Request{Mirror: "http://sat.invalid", Access: through}); err != nil || r.Outcome != Unchanged {
		t.Fatalf("%s, %v", r.Outcome, err)
	}
	const basic = " Basic cXVpZW46Y2xhdmU="
	if got, want := strings.Join(asked, ","), indexPath+basic+","+tr.source.path+basic; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}

	proxy.Close()
	tr.failed(Request{Mirror: "http://sat.invalid", Access: through}, ErrUnavailable, "no se pudo conectar con el proxy (4 intentos); revise fuentes.sat_69b.proxy", 0)
	if a, _, err := tr.c.LastAttempt("sat_69b"); err != nil || strings.Contains(a.Error, "clave") {
		t.Errorf("%s, %v", a.Error, err)
	}
}

// TestProxyThatRefuses: the operator is sent to its setting, and nothing that the
// proxy says reaches a terminal.
func TestProxyThatRefuses(t *testing.T) {
	hurried(t)
	f := func(scheme, mirror, says, answer string) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		tr := newTrial(t, "sat_69b")
		through := Access{Proxy: scheme + "://quien:clave@" + l.Addr().String()}
		tr.failed(Request{Mirror: mirror, Access: through}, ErrUnavailable, says, 0)
		a, _, err := tr.c.LastAttempt("sat_69b")
		text := a.Error
		for _, n := range a.Notices {
			text += n.Message
		}
		if err != nil || strings.ContainsAny(text, "\x1b\n") || strings.Contains(text, "clave") || !strings.Contains(a.Error, "revise fuentes.sat_69b.proxy") {
			t.Errorf("%q, %v", text, err)
		}
	}
	const hostile = " \x1b[2Jtodo bien\r\nConnection: close\r\n\r\n"
	f("http", "https://sat.invalid", "el proxy respondió 407 Proxy Authentication Required; revise", "HTTP/1.1 407"+hostile)
	f("http", "https://sat.invalid", "el proxy respondió 502 Bad Gateway (4 intentos)", "HTTP/1.1 502"+hostile)
	f("http", "http://sat.invalid", "respondió 407 Proxy Authentication Required; revise", "HTTP/1.1 407"+hostile)
	f("socks5", "https://sat.invalid", "no se pudo conectar con el proxy (4 intentos)", "\x05\xff")
}

// TestWordsOfAServer are repeated short and without what moves a cursor.
func TestWordsOfAServer(t *testing.T) {
	d := overHTTP
	err := d.mishap(errors.New("\x1b[2J\u202e" + strings.Repeat("x", 10_000)))
	if text := err.Error(); len(text) > 2*maxSaid || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%d bytes: %.40q", len(text), text)
	}
}

// TestAccess: a setting that cannot be used is told by its name.
func TestAccess(t *testing.T) {
	fx := newFixture(t)
	f := func(a Access, says string) {
		t.Helper()
		_, err := fx.ingest(Request{Mirror: "http://127.0.0.1:1", Access: a})
		if !errors.Is(err, ErrAccess) || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "clave") {
			t.Errorf("%+v: %v", a, err)
		}
		// What is wrong here is not told to everyone.
		if a, ok, err := fx.c.LastAttempt("sat_69b"); !ok || err != nil || a.Outcome != snapshots.OutcomeFailed || !strings.HasPrefix(a.Error, ErrAccess.Error()) || strings.Contains(a.Error, "fuentes.") {
			t.Errorf("%+v, %v", a, err)
		}
	}
	f(Access{Proxy: "proxy.mx:3128"}, "fuentes.sat_69b.proxy")
	f(Access{Proxy: "ftp://proxy.mx"}, "fuentes.sat_69b.proxy")
	f(Access{Proxy: "http://quien:clave@%zz"}, "fuentes.sat_69b.proxy")
	f(Access{CAFile: "/no/existe.pem"}, "fuentes.sat_69b.ca_file")
	f(Access{CAFile: fx.file("x.pem", "no es un certificado")}, "no tiene ningún certificado")
}

// TestDefaultProxyIsTheEnvironments, and an access of its own changes no other download.
func TestDefaultProxyIsTheEnvironments(t *testing.T) {
	own, err := overHTTP.reach("sat_69b", Access{Proxy: "http://proxy.mx:3128"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodGet, indexPage, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := own.transport.Proxy(r); err != nil || u.Host != "proxy.mx:3128" {
		t.Errorf("%v, %v", u, err)
	}
	want, _ := http.ProxyFromEnvironment(r)
	if u, err := overHTTP.transport.Proxy(r); err != nil || !sameURL(u, want) {
		t.Errorf("%v, %v; want %v", u, err, want)
	}
}

func sameURL(a, b *url.URL) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
