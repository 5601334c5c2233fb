package api

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"cotejo/accounts"
	"cotejo/operation"
)

// handle answers one request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) { s.answer(ctx, nil) }

// answer finds the operation and runs it. refusal is the reason why the body was
// not read, nil when it was.
func (s *Server) answer(ctx *fasthttp.RequestCtx, refusal error) {
	e := s.begin(ctx)
	// The one place where a panic ends. A failed durable write does not come
	// here: it ends the process, so no answer leaves a store that lost one.
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("pánico al atender una petición", "request_id", e.id, "ruta", e.route,
				"error", fmt.Sprint(r), "pila", string(debug.Stack()))
			e.fail(fmt.Errorf("pánico: %v", r))
		}
		e.end()
	}()

	h := &ctx.Request.Header
	if h.Len() > maxHeaderFields {
		e.close().fail(operation.ErrHeaders)
		return
	}
	if !wellFormed(h) {
		e.close().fail(operation.ErrRequest)
		return
	}
	var segments, params [maxDepth + 1][]byte
	t, ok := splitTarget(h.RequestURI(), segments[:0])
	if !ok {
		e.close().fail(operation.ErrRequest)
		return
	}
	var at *node
	var raw [][]byte
	if len(t.segments) <= maxDepth {
		at, raw = s.routes.find(t.segments, params[:0])
	}
	if at == nil {
		e.fail(operation.ErrRoute)
		return
	}
	op := at.ops[string(h.Method())]
	if op == nil {
		ctx.Response.Header.Set("Allow", at.allow)
		e.fail(operation.ErrMethod)
		return
	}
	e.route = op.Path

	r := operation.Request{Operation: op, Refusal: refusal}
	if refusal == nil && len(h.ContentEncoding()) > 0 {
		r.Refusal = operation.ErrEncoding
	}
	if keys := h.PeekAll("X-Api-Key"); len(keys) == 1 {
		r.Key = keys[0]
	}
	decodePath(&r, raw)
	decodeQuery(&r, t.query)

	buf := buffers.Get().(*[]byte)
	resp, err := s.pipeline.Do(context.Background(), &r, (*buf)[:0])
	e.who = resp.Principal
	e.warn(resp.Unknown)
	if err != nil {
		e.fail(err)
	} else {
		e.succeed(&resp)
		// Only recorded answers were appended to buf.
		if op.Ask != nil && cap(resp.Body) <= maxKept {
			*buf = resp.Body
		}
	}
	buffers.Put(buf)
}

// refuse answers what never became a request.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	e := s.begin(ctx)
	e.fail(err)
	e.end()
}

// maxKept bounds the answer buffers that are kept for the next request.
const maxKept = 256 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// exchange is one request and its answer.
type exchange struct {
	*Server
	ctx     *fasthttp.RequestCtx
	started time.Time
	id      string // X-Request-Id
	route   string // template, never the path: parameters are not logged
	who     accounts.Principal
}

func (s *Server) begin(ctx *fasthttp.RequestCtx) exchange {
	e := exchange{Server: s, ctx: ctx, started: time.Now(), route: "-"}
	if id := ctx.Request.Header.Peek("X-Request-Id"); validRequestID(id) {
		e.id = string(id)
	} else {
		e.id = newRequestID()
	}
	h := &ctx.Response.Header
	h.Set("X-Request-Id", e.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	return e
}

// validRequestID accepts a client's own id when it can be logged and searched
// for as it is: ^[A-Za-z0-9_-]{8,64}$.
func validRequestID(id []byte) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for _, c := range id {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// newRequestID returns an id that tells requests apart in a log; it is not a
// secret and need not be unguessable.
func newRequestID() string {
	const digits = "0123456789abcdef"
	var b [4 + 16]byte
	copy(b[:], "req_")
	n := rand.Uint64()
	for i := 4; i < len(b); i++ {
		b[i] = digits[n&15]
		n >>= 4
	}
	return string(b[:])
}

// close ends the connection after the answer: where one request ends and the
// next begins is no longer certain.
func (e *exchange) close() *exchange {
	e.ctx.SetConnectionClose()
	return e
}

func (e *exchange) succeed(r *operation.Response) {
	h := &e.ctx.Response.Header
	h.SetContentType("application/json")
	if r.Private {
		h.Set("Cache-Control", "no-store")
	}
	if r.Charged {
		var b [24]byte
		h.SetBytesV("X-Costo", operation.AppendPesos(b[:0], r.Cost))
		h.SetBytesV("X-Saldo", operation.AppendPesos(b[:0], r.Balance))
	}
	e.ctx.Response.SetBody(r.Body)
}

func (e *exchange) fail(err error) {
	f := operation.FailureOf(err)
	h := &e.ctx.Response.Header
	if f.Status == fasthttp.StatusInternalServerError {
		e.log.Error("error interno", "request_id", e.id, "ruta", e.route, "error", err.Error())
	}
	if f.Status == fasthttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", `ApiKey realm="cotejo"`)
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	h.Set("Cache-Control", "no-store")
	h.SetContentType("application/json")
	e.ctx.SetStatusCode(f.Status)
	e.ctx.Response.SetBody(operation.AppendFailure(nil, err, e.id))
}

// warn names the query parameters that changed nothing: one may be a typing
// error. Names are the client's, so they are cut and escaped.
func (e *exchange) warn(unknown []string) {
	const shown, length = 5, 64
	if len(unknown) == 0 {
		return
	}
	b := []byte("parametros desconocidos, ignorados: ")
	for i, name := range unknown {
		if i == shown {
			b = append(b, ", ..."...)
			break
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		for _, c := range []byte(name[:min(len(name), length)]) {
			if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' {
				b = append(b, c)
			} else {
				b = fmt.Appendf(b, "%%%02X", c)
			}
		}
	}
	e.ctx.Response.Header.SetBytesV("X-Advertencias", b)
}

// end writes the access log: one line, without any value of the request.
func (e *exchange) end() {
	attrs := [8]slog.Attr{
		slog.String("request_id", e.id),
		slog.String("metodo", method(e.ctx.Request.Header.Method())),
		slog.String("ruta", e.route),
		slog.Int("status", e.ctx.Response.StatusCode()),
		slog.Int64("microsegundos", time.Since(e.started).Microseconds()),
		slog.Int("bytes", len(e.ctx.Response.Body())),
	}
	n := 6
	if e.who.KeyID != "" {
		attrs[6], attrs[7] = slog.String("organizacion", accounts.FormatOrg(e.who.Org)), slog.String("llave", e.who.KeyID)
		n = 8
	}
	e.log.LogAttrs(context.Background(), slog.LevelInfo, "peticion", attrs[:n]...)
}

// method returns a known method as a constant; anything else is the client's
// text and is not logged.
func method(m []byte) string {
	switch string(m) {
	case "GET":
		return "GET"
	case "HEAD":
		return "HEAD"
	case "POST":
		return "POST"
	case "PUT":
		return "PUT"
	case "DELETE":
		return "DELETE"
	}
	return "-"
}
