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
	if a == (Access{}) {
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
