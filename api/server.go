// Package api serves the operations over HTTP.
//
// It turns a request into an operation.Request and an answer or error into
// HTTP; what is asked and answered is not its business. It matches the path as
// it was sent and decodes each parameter once: no other reading of the path
// exists that could disagree. It keeps no cookie, never logs a value of a
// request, and sends every error in one JSON shape.
//
// Start reading at Server.handle.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"cotejo/accesslog"
	"cotejo/operation"
	"cotejo/ratelimit"
)

// Limits of one request, before any operation looks at it.
const (
	maxHeaderBytes  = 32 << 10 // request line and headers
	maxHeaderFields = 64
	maxBodyBytes    = 64 << 10 // but for operations that declare more, see receive
	maxSegmentBytes = 256      // of the path, as sent
	maxQueryBytes   = 4 << 10
	maxQueryParams  = 32

	maxConnections = 8192
	maxRunning     = 10 * time.Second // of one request, from its last byte
)

// Config are the parts of a server.
type Config struct {
	Table    operation.Table
	Pipeline *operation.Pipeline
	Log      *slog.Logger   // what goes wrong
	Access   *accesslog.Log // who asked what; nil: nothing is kept. Whoever gave it closes it
	Trusted  []netip.Prefix // proxies whose word about where a request comes from is taken
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	http     fasthttp.Server
	routes   *node
	other    *routeMetrics // of what has no route of its own
	pipeline *operation.Pipeline
	log      *slog.Logger
	access   *accesslog.Log
	quiet    *ratelimit.Limiter // of lines in it
	trusted  []netip.Prefix
	now      func() time.Time // the wall clock of the pipeline

	deadlines   deadlines
	streams     streams
	bodies      largeBodies
	connections int // at once

	mu       sync.Mutex       // guards the rest
	listener *limitedListener // nil before Serve
	closing  bool
}

// New prepares a server for the operations of the table. It does not listen;
// Shutdown ends it even if it never did. It refuses a table whose OpenAPI document
// cannot be written.
func New(c Config) (*Server, error) {
	if _, err := c.Table.OpenAPI(); err != nil {
		return nil, err
	}
	other := newRouteMetrics(otherRoutes, 200, 400, 404, 405, 408, 413, 429, 431, 500)
	s := &Server{
		routes: newRoutes(c.Table, other), other: other, pipeline: c.Pipeline, log: c.Log,
		access: c.Access, quiet: ratelimit.New(quietRate, quietAddresses, ratelimit.Monotonic()), trusted: c.Trusted, now: c.Pipeline.Now,
		deadlines: deadlines{limit: maxRunning}, connections: maxConnections,
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.streams.init()
	s.http = fasthttp.Server{
		Handler:      s.handle,
		ErrorHandler: s.handleBroken,
		// ReadTimeout bounds the whole request: who sends a byte a second holds
		// a connection no longer than this.
		ReadTimeout:        15 * time.Second,
		WriteTimeout:       60 * time.Second,
		IdleTimeout:        60 * time.Second,
		ReadBufferSize:     maxHeaderBytes,
		MaxRequestBodySize: maxBodyBytes,
		HeaderReceived:     s.receive,
		// Beyond this fasthttp answers plain text: the listener refuses before.
		Concurrency:     2 * maxConnections,
		TCPKeepalive:    true,
		CloseOnShutdown: true,
		// Uploads would otherwise be written to temporary files.
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		SecureErrorLogMessage:        true,
		Logger:                       httpLog{c.Log},
	}
	return s, nil
}

// Serve answers on l until Shutdown, then returns nil. It owns l and is called
// once.
func (s *Server) Serve(l net.Listener) error {
	limited := &limitedListener{Listener: l, max: s.connections, open: s.http.GetOpenConnectionsCount}
	s.mu.Lock()
	s.listener = limited
	ended := s.closing
	s.mu.Unlock()
	if ended {
		return limited.Close()
	}
	return s.http.Serve(limited)
}

// Shutdown stops listening and waits for the accepted requests, until ctx ends.
// Downloads that would go on are cut before, while a fifth of the time is left, so
// that they do not make it fail. A Serve that begins later returns at once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	var err error
	if s.listener != nil {
		// fasthttp closes only what its own Serve has come to know.
		err = s.listener.Close()
	}
	s.mu.Unlock()
	if end, ok := ctx.Deadline(); ok {
		defer time.AfterFunc(time.Until(end)*4/5, s.streams.stop).Stop()
	}
	err = errors.Join(err, s.http.ShutdownWithContext(ctx))
	s.streams.stop()
	return err
}

var refusedConnections = metrics.NewCounter(`cotejo_shed_total{class="conexion",reason="connections"}`)

// limitedListener answers connections beyond max itself, in the one shape of our
// errors, and closes them: with a client that sends at the same time, the answer
// may be lost with the connection.
type limitedListener struct {
	net.Listener
	max  int
	open func() int32

	closing sync.Once
	failed  error // of the first Close
}

// Close may be called more than once.
func (l *limitedListener) Close() error {
	l.closing.Do(func() { l.failed = l.Listener.Close() })
	return l.failed
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || int(l.open()) < l.max {
			return c, err
		}
		refusedConnections.Inc()
		err = operation.ErrConnections
		f := operation.FailureOf(err)
		f.RetryAfter += rand.IntN(5) // not all at once
		id := string(appendRequestID(nil))
		body := operation.AppendFailure(nil, err, id)
		// It fits the socket's buffer, so that it delays nobody behind it.
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nCache-Control: no-store\r\n"+
			"X-Request-Id: %s\r\nRetry-After: %d\r\nConnection: close\r\n\r\n%s",
			f.Status, http.StatusText(f.Status), len(body), id, f.RetryAfter, body)
		_ = c.Close()
	}
}

// handleBroken answers what fasthttp could not read as a request.
func (s *Server) handleBroken(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		// The headers were read, so the caller learns the same as with a small
		// body: first whether the route exists and the key is good.
		refusal := s.tooLarge(&ctx.Request.Header)
		if ctx.Request.Header.ContentLength() == 0 { // forgotten, what it was for too
			s.refuse(ctx, refusal)
			return
		}
		s.answer(ctx, refusal)
	case errors.As(err, &small):
		s.refuse(ctx, operation.ErrHeaders)
	case errors.As(err, &network) && network.Timeout():
		s.refuse(ctx, operation.ErrSlow)
	default:
		s.refuse(ctx, operation.ErrRequest)
	}
}

// httpLog carries what fasthttp reports of connections into the service's log.
type httpLog struct{ *slog.Logger }

// Printf implements fasthttp.Logger. The arguments may hold parts of a request,
// so only the format is kept.
func (l httpLog) Printf(format string, _ ...any) { l.Warn("conexión HTTP", "motivo", format) }
