package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Access is how a download reaches its server where the network between needs
// help. There is no way to leave a certificate unchecked.
type Access struct {
	// Proxy is the URL of the proxy to use, http, https or socks5; "" leaves it
	// to the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
	Proxy string
	// CAFile names a PEM file with certificates to trust for this source beside
	// those of the system: the intermediate one that a server leaves out.
	CAFile string
	// TokenFile names the file with the secret that the server of the source asks
	// for; nobody but its owner may read it. The secret goes to the official server,
	// in a header, and nowhere else: not to a mirror, and into no message.
	TokenFile string
	// URL is where the file of the source is, for one that has no known address.
	URL string
}

// ErrAccess says that an Access cannot be used; the message names the setting.
var ErrAccess = errors.New("el acceso a la fuente está mal configurado")

// Check says, without a download, whether the source could be reached by it:
// ErrAccess.
func (a Access) Check(source string) error {
	_, err := overHTTP.reach(source, a)
	return err
}

// maxCAFile is several times what all authorities of a system take.
const maxCAFile = 4 << 20

// reach is a downloader for a source and the way to it.
func (d downloader) reach(source string, a Access) (*downloader, error) {
	d.source = source
	s, known := Lookup(source)
	if known && !s.indexed {
		d.page = s.URL()
	}
	if a.TokenFile != "" {
		if !known || s.token == "" {
			return nil, fmt.Errorf("%w: %s no usa ningún token", ErrAccess, source)
		}
		d.header, d.tokenSetting = s.token, s.tokenSetting
		var err error
		if d.token, err = readToken(a.TokenFile); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrAccess, s.tokenSetting, err)
		}
	}
	if a.URL != "" {
		u, err := url.Parse(a.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%w: fuentes.%s.url no es una URL http:// o https://", ErrAccess, source)
		}
	}
	if a.Proxy == "" && a.CAFile == "" {
		return &d, nil
	}
	d.transport = d.transport.Clone()
	if a.Proxy != "" {
		u, err := url.Parse(a.Proxy)
		// The reason of url.Parse would show the password.
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return nil, fmt.Errorf("%w: fuentes.%s.proxy no es la URL de un proxy, como http://proxy.empresa.mx:3128", ErrAccess, source)
		}
		d.transport.Proxy = http.ProxyURL(u)
	}
	if a.CAFile != "" {
		roots, err := withCAFile(a.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: fuentes.%s.ca_file: %w", ErrAccess, source, err)
		}
		d.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &d, nil
}

// maxToken is several times what the tokens of any authority measure (64 bytes).
const maxToken = 1024

// readToken reads a secret. No error repeats any of it.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s lo pueden leer otros: chmod 600 %s", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(text) > maxToken || len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s no tiene un token: se espera una sola línea de %d a %d letras y dígitos", path, minToken, maxToken)
	}
	return token, nil
}

// minToken keeps a file that was filled by mistake from passing for a secret; those
// of Banco de México have 64.
const minToken = 16

// withCAFile are the authorities of the system and those of a file.
func withCAFile(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, maxCAFile))
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s no tiene ningún certificado en formato PEM (-----BEGIN CERTIFICATE-----)", path)
	}
	return roots, nil
}
