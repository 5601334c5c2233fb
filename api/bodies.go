package api

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"cotejo/operation"
)

const (
	// maxBodies is how many bodies beyond maxBodyBytes may be read and held at once.
	maxBodies = 24
	// maxBodyTime is after how long one counts no more, whatever became of it: more
	// than it may take to be read and answered.
	maxBodyTime = time.Minute
)

// largeBodies are the large bodies that are read or held, by their request's header. The
// zero value is ready.
type largeBodies struct {
	mu   sync.Mutex // guards held
	held map[*fasthttp.RequestHeader]time.Time
}

// take reports whether one more may be read.
func (b *largeBodies) take(h *fasthttp.RequestHeader, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held) >= maxBodies {
		for other, since := range b.held {
			if now.Sub(since) >= maxBodyTime {
				delete(b.held, other)
			}
		}
	}
	if len(b.held) >= maxBodies && b.held[h].IsZero() {
		return false
	}
	if b.held == nil {
		b.held = map[*fasthttp.RequestHeader]time.Time{}
	}
	b.held[h] = now
	return true
}

// leave tells that a body is not held any more, and whether it was.
func (b *largeBodies) leave(h *fasthttp.RequestHeader) (was bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, was = b.held[h]
	delete(b.held, h)
	return was
}

// receive bounds the body of a request by the route that it is for, before anything of
// it is read. More than others may have is only for who has a key for that operation,
// and for a few at once.
func (s *Server) receive(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	op := s.operationOf(h)
	if op == nil {
		return fasthttp.RequestConfig{MaxRequestBodySize: maxBodyBytes}
	}
	most := max(maxBodyBytes, op.MaxBody())
	if most > maxBodyBytes && (!s.pipeline.Admits(op, h.Peek(op.Auth.KeyHeader())) || !s.bodies.take(h, time.Now())) {
		most = maxBodyBytes
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: most}
}

// tooLarge is why a body was not read to its end: it is larger than its operation
// allows, or there were too many.
func (s *Server) tooLarge(h *fasthttp.RequestHeader) error {
	op := s.operationOf(h)
	if op != nil && op.MaxBody() > maxBodyBytes && !s.bodies.leave(h) && h.ContentLength() <= op.MaxBody() {
		return operation.ErrBodies
	}
	return operation.ErrTooLarge
}

// operationOf is the operation that a request is for, nil when there is none.
func (s *Server) operationOf(h *fasthttp.RequestHeader) *operation.Operation {
	var room, params [maxDepth + 1][]byte
	t, ok := splitTarget(h.RequestURI(), room[:0])
	if !ok || len(t.segments) > maxDepth {
		return nil
	}
	at, _ := s.routes.find(t.segments, params[:0])
	if at == nil {
		return nil
	}
	return at.ops[string(h.Method())].Operation
}
