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
	mu   sync.Mutex // guards the rest
	held map[*fasthttp.RequestHeader]time.Time
	// heads are copies of the headers of requests whose length is not known: fasthttp
	// forgets a header when such a body turns out to be too large.
	heads map[*fasthttp.RequestHeader]*fasthttp.RequestHeader
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
	delete(b.heads, h)
	return was
}

// keep keeps a copy of a header until leave.
func (b *largeBodies) keep(h *fasthttp.RequestHeader) {
	head := new(fasthttp.RequestHeader)
	h.CopyTo(head)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heads == nil {
		b.heads = map[*fasthttp.RequestHeader]*fasthttp.RequestHeader{}
	}
	b.heads[h] = head
}

// restore makes of a header what it was.
func (b *largeBodies) restore(h *fasthttp.RequestHeader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if head := b.heads[h]; head != nil {
		head.CopyTo(h)
	}
}

// receive bounds the body of a request by the route that it is for, before anything of
// it is read. More than others may have is only for who has a key for that operation,
// and for a few at once.
func (s *Server) receive(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	op := s.operationOf(h)
	if op == nil || op.MaxBody() == 0 {
		return fasthttp.RequestConfig{MaxRequestBodySize: maxBodyBytes}
	}
	if h.ContentLength() < 0 {
		s.bodies.keep(h)
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
	s.bodies.restore(h)
	held := s.bodies.leave(h)
	op := s.operationOf(h)
	if op != nil && op.MaxBody() > maxBodyBytes && !held && h.ContentLength() <= op.MaxBody() {
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
