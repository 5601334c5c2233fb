package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// userAgent names us behind what a browser says: the guards of some official
// servers answer 403 to everything that does not look like one.
const userAgent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 cotejo/1 (lector de datos abiertos)"

const maxRedirects = 5

// downloader gets official files over HTTP, for one source.
type downloader struct {
	transport *http.Transport
	source    string // for messages and figures
	page      string // where people find the publication; "": the index page

	token        string // secret of the official server, sent in header; "": none
	header       string
	tokenSetting string // where it is configured

	deadline time.Duration // for a source as a whole: index page, attempts and waits
	attempt  time.Duration // for one attempt at a file
	window   time.Duration // in every one of these …
	minBytes int64         // … at least so much must arrive

	attempts int           // at a file
	backoff  time.Duration // most that is waited after the first attempt; doubled after each
	longest  time.Duration // most that is ever waited, also when a server asks for it

	wait   func(ctx context.Context, d time.Duration) error // fails with the cause of ctx when that ends first
	jitter func(most time.Duration) time.Duration           // at random in [0, most)
}

// overHTTP is patient with a slow server, not with one that drips. At the minimum
// rate the largest list of today (4.7 MB) takes half the deadline of an attempt.
var overHTTP = downloader{
	transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: tunnelled,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// A packed answer would arrive without the length to compare with.
		DisableCompression: true,
		DisableKeepAlives:  true,
	},
	deadline: 40 * time.Minute,
	attempt:  15 * time.Minute,
	window:   30 * time.Second,
	minBytes: 300 << 10,
	attempts: 4,
	backoff:  5 * time.Second,
	longest:  5 * time.Minute,
	wait:     sleep,
	jitter:   fullJitter,
}

// patientBytes is what one attempt has its time for: 100 kB/s. A source whose file
// may be several times that has several times as long.
const patientBytes = 90 << 20

// patient is d with time for a file of up to max bytes. The least rate, which ends a
// download that drips, stays.
func (d *downloader) patient(max int64) *downloader {
	p := *d
	if times := time.Duration(max / patientBytes); times > 1 {
		p.attempt *= times
		p.deadline += p.attempt - d.attempt
	}
	return &p
}

// brief is d with less patience, for small files that one can do without.
func (d *downloader) brief() *downloader {
	b := *d
	b.attempts, b.attempt = min(d.attempts, 2), min(d.attempt, time.Minute)
	return &b
}

// sameHost follows a redirect only to the host that was asked, and never from
// HTTPS to HTTP: elsewhere the bytes would not be the authority's.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return refusedRedirect(fmt.Sprintf("pasó de %d redirecciones", maxRedirects))
	case next.URL.Host != first.Host:
		return refusedRedirect(fmt.Sprintf("redirige a otro servidor (%s)", shown(next.URL.Host)))
	case next.URL.Scheme != first.Scheme && next.URL.Scheme != "https":
		return refusedRedirect("redirige a una dirección sin cifrar")
	}
	return nil
}

// ask is what a downloader asks for.
type ask struct {
	address string
	max     int64 // bytes
	// known are of bytes that are here already; nil: the file is wanted whatever it is.
	known *validators
}

// validators are what a server calls the bytes it gives (RFC 9110, section 8.8),
// as it sent them.
type validators struct{ etag, modified string }

// maxValidator bounds what is kept of a header; those of the authority have 20 bytes.
const maxValidator = 200

// validatorsOf takes the validators of an answer. A weak tag stands for bytes
// that mean the same, and here they have to be the same: it is left out.
func validatorsOf(h http.Header) (v validators) {
	if tag := h.Get("ETag"); len(tag) <= maxValidator && !strings.HasPrefix(tag, "W/") {
		v.etag = tag
	}
	if modified := h.Get("Last-Modified"); len(modified) <= maxValidator {
		v.modified = modified
	}
	return v
}

// errUnmodified says that the server still has the bytes that were known.
var errUnmodified = errors.New("sin cambio")

// open starts one attempt. It fails with a *failure, errUnmodified, ErrTooLarge
// or the cause of ctx. User and password in the address are used and never shown.
func (d *downloader) open(ctx context.Context, a ask) (*obtained, error) {
	if _, err := url.Parse(a.address); err != nil {
		return nil, errors.New("la dirección de descarga no es una URL; revise --mirror")
	}
	timed, stop := context.WithTimeoutCause(ctx, d.attempt, late(d.attempt))
	watched, cancel := context.WithCancelCause(timed)
	b := &body{d: d, ctx: watched, stop: func() { cancel(nil); stop() }}
	req, err := http.NewRequestWithContext(watched, http.MethodGet, a.address, nil)
	if err != nil {
		b.stop()
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "*/*")
	req.Header.Set("Accept-Language", "es-MX,es;q=0.9")
	req.Header.Set("Accept-Encoding", "identity")
	if d.token != "" {
		req.Header.Set(d.header, d.token)
	}
	if a.known != nil && a.known.etag != "" {
		req.Header.Set("If-None-Match", a.known.etag)
	}
	if a.known != nil && a.known.modified != "" {
		req.Header.Set("If-Modified-Since", a.known.modified)
	}
	client := http.Client{Transport: d.transport, CheckRedirect: sameHost}
	resp, err := client.Do(req) //nolint:bodyclose // body.Close closes it
	if err != nil {
		err = b.explain(err)
		b.stop()
		return nil, err
	}
	b.response = resp
	switch {
	case resp.StatusCode == http.StatusNotModified && a.known != nil:
		err = errUnmodified
	case resp.StatusCode != http.StatusOK:
		err = d.refused(resp)
	case !plain(resp.Header.Get("Content-Encoding")):
		err = &failure{what: fmt.Sprintf("respondió con Content-Encoding %.40q, que no se pidió", resp.Header.Get("Content-Encoding"))}
	case resp.ContentLength > a.max:
		err = tooLarge(a.max, fmt.Sprintf("%s anuncia %d", public(a.address), resp.ContentLength))
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	go d.watch(b, cancel)
	o := &obtained{body: b, max: a.max, from: public(a.address), validators: validatorsOf(resp.Header)}
	if resp.ContentLength > 0 {
		o.total = resp.ContentLength
	}
	if modified, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		o.published = modified
	}
	return o, nil
}

func plain(encoding string) bool { return encoding == "" || strings.EqualFold(encoding, "identity") }

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
			cancel(&failure{what: fmt.Sprintf("llegaron solo %d bytes en %v", now-before, d.window), again: true})
			return
		}
		before = now
	}
}

// body is the answer of a server, as long as it keeps coming.
type body struct {
	d        *downloader
	ctx      context.Context // ends with a deadline, the watch or the caller
	stop     func()
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

// explain turns a transport error into a *failure, or into the reason of a
// caller that gave up.
func (b *body) explain(err error) error {
	if cause := context.Cause(b.ctx); cause != nil {
		return cause
	}
	return b.d.mishap(err)
}

func (b *body) Close() error {
	err := b.response.Body.Close()
	b.stop()
	return err
}
