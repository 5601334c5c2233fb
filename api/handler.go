package api

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"cotejo/accesslog"
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
			s.log.Error("pánico al atender una petición", "request_id", string(e.id), "ruta", e.route,
				"error", e.redact(fmt.Sprint(r)), "pila", string(debug.Stack()))
			e.fail(fmt.Errorf("pánico: %v", r))
		}
		if !e.streaming {
			e.end()
		}
	}()

	h := &ctx.Request.Header
	if h.Len() > maxHeaderFields {
		e.close().stray(operation.ErrHeaders)
		return
	}
	if !wellFormed(h) {
		e.close().stray(operation.ErrRequest)
		return
	}
	t, ok := splitTarget(h.RequestURI(), e.segments[:0])
	if !ok {
		e.close().stray(operation.ErrRequest)
		return
	}
	var at *node
	var raw [][]byte
	if len(t.segments) <= maxDepth {
		at, raw = s.routes.find(t.segments, e.params[:0])
	}
	if at == nil {
		e.stray(operation.ErrRoute)
		return
	}
	op, known := at.ops[string(h.Method())]
	if !known {
		ctx.Response.Header.Set("Allow", at.allow)
		e.stray(operation.ErrMethod)
		return
	}
	e.route, e.metrics, e.inflight, e.probe = op.Path, op.metrics, inflight[op.class], op.Probe
	e.inflight.Inc()

	r := &e.request
	r.Operation, r.Refusal, r.Client, r.Head = op.Operation, refusal, e.client, h.IsHead()
	r.Encoded, r.ContentType = len(h.ContentEncoding()) > 0, h.ContentType()
	if op.MaxBody() > 0 && refusal == nil {
		r.Body = ctx.Request.Body()
		defer s.bodies.leave(h)
	}
	if op.Negotiates {
		r.Accept, r.Prefer = joined(h, "Accept"), joined(h, "Prefer")
	}
	if keys := h.PeekAll(op.Auth.KeyHeader()); len(keys) == 1 {
		r.Key = keys[0]
	}
	if op.Service != "" {
		r.IdempotencyKeys = h.PeekAll("Idempotency-Key") // valid until the next PeekAll
	}
	decodePath(r, raw)
	decodeQuery(r, t.query)

	resp, err := s.pipeline.Do(s.deadlines.from(e.started), r, e.answer[:0])
	e.who, e.cost = resp.Principal, resp.Cost
	e.quota(&resp.Quota)
	e.warn(resp.Unknown)
	switch {
	case err != nil:
		e.fail(err)
	case resp.Stream != nil:
		r.Body = nil // it was read: nobody keeps it while the answer is sent
		ctx.Request.SwapBody(nil)
		e.stream(&resp)
	case resp.Location != "":
		e.answer = resp.Body
		e.succeed(&resp)
		e.accepted(&resp)
		ctx.Response.SetBody(resp.Body)
	case op.Service != "": // appended to e.answer
		e.answer = resp.Body
		e.succeed(&resp)
		ctx.Response.SetBody(resp.Body)
	default:
		e.succeed(&resp)
		ctx.Response.SetBodyRaw(resp.Body) // nobody changes it
	}
}

// joined is the value of a header that may stand on several lines.
func joined(h *fasthttp.RequestHeader, name string) []byte {
	return bytes.Join(h.PeekAll(name), []byte{','})
}

// accepted tells where to read what becomes of an order.
func (e *exchange) accepted(r *operation.Response) {
	e.ctx.SetStatusCode(fasthttp.StatusAccepted)
	h := &e.ctx.Response.Header
	h.Set("Location", r.Location)
	h.Set("Preference-Applied", "respond-async")
}

// refuse answers what never became a request.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	e := s.begin(ctx)
	e.stray(err)
	e.end()
}

// maxKept bounds the answer buffers that are kept for the next request.
const maxKept = 256 << 10

var exchanges = sync.Pool{New: func() any { return &exchange{answer: make([]byte, 0, 4<<10)} }}

// exchange is one request and its answer. It is used again: what it points to
// ends with the request.
type exchange struct {
	*Server
	ctx     *fasthttp.RequestCtx
	started time.Time
	id      []byte // X-Request-Id; in idRoom
	route   string // template, never the path: parameters are not logged
	metrics *routeMetrics
	// inflight is the gauge that counts this request, nil before a route is found.
	inflight *metrics.Gauge
	client   netip.Addr
	who      accounts.Principal
	cost     int64 // centavos
	probe    bool  // not in the access log
	request  operation.Request
	entry    accesslog.Entry
	// streaming says that the answer goes on after its handler: its stream ends the
	// exchange. sent is how many bytes of it went out, cut that some did not.
	streaming, cut bool
	sent           int64

	idRoom           [maxRequestID]byte
	segments, params [maxDepth + 1][]byte
	answer, line     []byte
	org              []byte // as text
}

func (s *Server) begin(ctx *fasthttp.RequestCtx) *exchange {
	e := exchanges.Get().(*exchange)
	e.Server, e.ctx, e.started = s, ctx, time.Now()
	e.route, e.metrics = otherRoutes, s.other
	e.client = clientAddress(ctx, s.trusted)
	if id := ctx.Request.Header.Peek("X-Request-Id"); validRequestID(id) {
		e.id = append(e.idRoom[:0], id...)
	} else {
		e.id = appendRequestID(e.idRoom[:0])
	}
	h := &ctx.Response.Header
	h.SetCanonical(headerRequestID, e.id)
	h.SetCanonical(headerNoSniff, valueNoSniff)
	h.SetCanonical(headerPolicy, valuePolicy)
	return e
}

// Headers of every answer.
var (
	headerRequestID    = []byte("X-Request-Id")
	headerNoSniff      = []byte("X-Content-Type-Options")
	valueNoSniff       = []byte("nosniff")
	headerPolicy       = []byte("Content-Security-Policy")
	valuePolicy        = []byte("default-src 'none'; frame-ancestors 'none'")
	headerCacheControl = []byte("Cache-Control")
	valueNoStore       = []byte("no-store")
	headerCost         = []byte("X-Costo")
	headerBalance      = []byte("X-Saldo")
	headerUse          = []byte("X-Uso-Individual")
	headerReplayed     = []byte("Idempotent-Replayed")
	headerRate         = []byte("RateLimit")
	headerRatePolicy   = []byte("RateLimit-Policy")
	valueTrue          = []byte("true")
)

// validRequestID accepts a client's own id when it can be logged and searched
// for as it is: ^[A-Za-z0-9_-]{8,64}$. What has the form of a card or an account, an
// RFC or a key of ours would be one in the log, and is not taken.
func validRequestID(id []byte) bool {
	if len(id) < 8 || len(id) > maxRequestID {
		return false
	}
	digits, others := 0, 0
	for _, c := range id {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			others++
		case c != '_' && c != '-':
			return false
		}
	}
	const account = 10 // digits of the shortest account
	return (others > 0 || digits < account) && (len(id) > 18 || !personal.Match(id)) && !bytes.Contains(id, []byte("svc_"))
}

// personal is the form of an RFC, alone or at the start of a CURP.
var personal = regexp.MustCompile(`^[A-Za-z]{3,4}[0-9]{6}[A-Za-z0-9]{3}([A-Za-z0-9]{5})?$`)

const maxRequestID = 64

// appendRequestID appends an id that tells requests apart in a log; it is not a
// secret and need not be unguessable.
func appendRequestID(dst []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, "req_"...)
	for i, n := 0, rand.Uint64(); i < 16; i++ {
		dst = append(dst, digits[n&15])
		n >>= 4
	}
	return dst
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
		h.SetCanonical(headerCacheControl, valueNoStore)
	}
	if r.Replayed {
		h.SetCanonical(headerReplayed, valueTrue)
	}
	if r.Lot != "" {
		h.Set("X-Lote", r.Lot)
	}
	if r.Charged {
		b := operation.AppendPesos(e.line[:0], r.Cost)
		h.SetCanonical(headerCost, b)
		b = operation.AppendPesos(b[:0], r.Balance)
		h.SetCanonical(headerBalance, b)
		if r.Used != "" {
			b = append(append(b[:0], r.Used...), "; quedan="...)
			b = strconv.AppendInt(b, r.UsesLeft, 10)
			h.SetCanonical(headerUse, b)
		}
		e.line = b
	}
}

// quota tells where the caller stands with their limit, in the two headers of
// draft-ietf-httpapi-ratelimit-headers.
func (e *exchange) quota(q *operation.Quota) {
	if q.Limit == "" {
		return
	}
	h := &e.ctx.Response.Header
	name := append(append(append(e.line[:0], '"'), q.Limit...), '"')
	b := append(name, ";r="...)
	b = strconv.AppendInt(b, int64(q.Remaining), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, seconds(q.Reset), 10)
	h.SetCanonical(headerRate, b)
	b = append(b[:len(name)], ";q="...)
	b = strconv.AppendInt(b, int64(q.Burst), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, seconds(q.Window()), 10)
	h.SetCanonical(headerRatePolicy, b)
	e.line = b
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// stray fails what is a request of no operation, and counts for the address that it
// came from.
func (e *exchange) stray(err error) {
	if quota, limited := e.pipeline.Anonymous(e.client); limited != nil {
		e.quota(&quota)
		err = limited
	}
	e.fail(err)
}

func (e *exchange) fail(err error) {
	f := operation.FailureOf(err)
	h := &e.ctx.Response.Header
	if f.Ours() {
		e.log.Error("falla propia al responder", "codigo", f.Code, "request_id", string(e.id), "ruta", e.route, "error", e.redact(err.Error()))
	}
	if f.Status == fasthttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", e.challenge())
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	h.SetCanonical(headerCacheControl, valueNoStore)
	h.SetContentType("application/json")
	e.ctx.SetStatusCode(f.Status)
	e.ctx.Response.SetBody(operation.AppendFailure(nil, err, string(e.id)))
}

// challenge names the kind of key that the operation asks for.
func (e *exchange) challenge() string {
	if op := e.request.Operation; op != nil && op.Auth == operation.Registration {
		return `RegistroKey realm="cotejo"`
	}
	return `ApiKey realm="cotejo"`
}

// warn names what changed nothing: one of the names may be a typing error. They
// are the client's, so they are cut and escaped.
func (e *exchange) warn(unknown []string) {
	const shown, length = 5, 64
	if len(unknown) == 0 {
		return
	}
	b := []byte("nombres desconocidos, ignorados: ")
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

// end counts the answer and writes the access log. The exchange is not used
// afterwards.
func (e *exchange) end() {
	if e.inflight != nil {
		e.inflight.Dec()
		e.inflight = nil
	}
	took := time.Since(e.started)
	e.metrics.answered(e.ctx.Response.StatusCode(), took)
	e.logAccess(took)
	if cap(e.answer) > maxKept {
		return
	}
	r := &e.request
	clear(r.Args)
	clear(e.segments[:])
	clear(e.params[:])
	*r = operation.Request{Args: r.Args[:0]}
	e.Server, e.ctx, e.who, e.cost, e.probe = nil, nil, accounts.Principal{}, 0, false
	e.streaming, e.cut, e.sent = false, false, 0
	exchanges.Put(e)
}
