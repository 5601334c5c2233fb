package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// ErrUnavailable says that the server did not give the file: nothing is known
// about the source that was not known before.
var ErrUnavailable = errors.New("la fuente no está disponible")

const (
	userAgent    = "cotejo (lector de datos abiertos)"
	maxRedirects = 5
)

// downloader gets official files over HTTP.
type downloader struct {
	client   *http.Client
	deadline time.Duration // for a whole file
	window   time.Duration // in every one of these …
	minBytes int64         // … at least so much must arrive
}

// overHTTP is patient with a slow server, not with one that drips.
var overHTTP = downloader{
	client: &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			// A packed answer would arrive without the length to compare with.
			DisableCompression: true,
			DisableKeepAlives:  true,
		},
		CheckRedirect: sameHost,
	},
	deadline: 15 * time.Minute,
	window:   30 * time.Second,
	minBytes: 300 << 10,
}

// sameHost follows a redirect only to the host that was asked, and never from
// HTTPS to HTTP: elsewhere the bytes would not be the authority's.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("más de %d redirecciones", maxRedirects)
	case next.URL.Host != first.Host:
		return fmt.Errorf("redirige a otro servidor (%s)", next.URL.Host)
	case next.URL.Scheme != first.Scheme && next.URL.Scheme != "https":
		return errors.New("redirige a una dirección sin cifrar")
	}
	return nil
}

// open starts a download of at most max bytes. It fails with ErrUnavailable,
// ErrTooLarge or the error of ctx. A password in the address is used and never
// shown.
func (d *downloader) open(ctx context.Context, address string, max int64) (*obtained, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("la dirección de descarga no es una URL; revise --mirror")
	}
	shown := parsed.Redacted()
	timed, stop := context.WithTimeout(ctx, d.deadline)
	watched, cancel := context.WithCancelCause(timed)
	b := &body{ctx: watched, caller: ctx, url: shown, stop: func() { cancel(nil); stop() }}
	req, err := http.NewRequestWithContext(watched, http.MethodGet, address, nil)
	if err != nil {
		b.stop()
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := d.client.Do(req) //nolint:bodyclose // body.Close closes it
	if err != nil {
		err = b.explain(err)
		b.stop()
		return nil, err
	}
	b.response = resp
	switch {
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("%w: %s respondió %s; intente más tarde o cargue el archivo con --file", ErrUnavailable, shown, resp.Status)
	case resp.Header.Get("Content-Encoding") != "":
		err = fmt.Errorf("%w: %s respondió con Content-Encoding %q, que no se pidió", ErrUnavailable, shown, resp.Header.Get("Content-Encoding"))
	case resp.ContentLength > max:
		err = tooLarge(max, fmt.Sprintf("%s anuncia %d", shown, resp.ContentLength))
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	go d.watch(b, cancel)
	o := &obtained{body: b, max: max, from: shown}
	if resp.ContentLength > 0 {
		o.total = resp.ContentLength
	}
	if modified, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		o.published = modified
	}
	return o, nil
}

// watch ends a download that becomes too slow. It returns when the body is closed.
func (d *downloader) watch(b *body, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(d.window)
	defer tick.Stop()
	var before int64
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
		now := b.read.Load()
		if now-before < d.minBytes {
			cancel(fmt.Errorf("llegaron solo %d bytes en %v", now-before, d.window))
			return
		}
		before = now
	}
}

// body is the answer of a server, as long as it keeps coming.
type body struct {
	ctx      context.Context // ends with the deadline, the watch or the caller
	caller   context.Context
	stop     func()
	url      string
	response *http.Response
	read     atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.response.Body.Read(p)
	b.read.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = b.explain(err)
	}
	return n, err
}

// explain turns a transport error into what the reader of a message needs.
func (b *body) explain(err error) error {
	if b.caller.Err() != nil {
		return context.Cause(b.caller)
	}
	if cause := context.Cause(b.ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%w: %s: %w; intente más tarde o cargue el archivo con --file", ErrUnavailable, b.url, err)
}

func (b *body) Close() error {
	err := b.response.Body.Close()
	b.stop()
	return err
}
