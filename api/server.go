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
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"cotejo/operation"
)

// Limits of one request, before any operation looks at it.
const (
	maxHeaderBytes  = 32 << 10 // request line and headers
	maxHeaderFields = 64
	maxBodyBytes    = 64 << 10
	maxSegmentBytes = 256 // of the path, as sent
	maxQueryBytes   = 4 << 10
	maxQueryParams  = 32
)

// Config are the parts of a server.
type Config struct {
	Table    operation.Table
	Pipeline *operation.Pipeline
	Log      *slog.Logger // one line per request
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	http     fasthttp.Server
	routes   *node
	pipeline *operation.Pipeline
	log      *slog.Logger
}

// New prepares a server for the operations of the table. It does not listen. It
// refuses a table whose OpenAPI document cannot be written.
func New(c Config) (*Server, error) {
	if _, err := c.Table.OpenAPI(); err != nil {
		return nil, err
	}
	s := &Server{routes: newRoutes(c.Table), pipeline: c.Pipeline, log: c.Log}
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
		Concurrency:        8192,
		TCPKeepalive:       true,
		CloseOnShutdown:    true,
		// Uploads would otherwise be written to temporary files.
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		SecureErrorLogMessage:        true,
		Logger:                       httpLog{c.Log},
	}
	return s, nil
}

// Serve answers on l until Shutdown, then returns nil.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// Shutdown stops listening and waits for the accepted requests, until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }

// handleBroken answers what fasthttp could not read as a request.
func (s *Server) handleBroken(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		// The headers were read, so the caller learns the same as with a small
		// body: first whether the route exists and the key is good.
		s.answer(ctx, operation.ErrTooLarge)
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
