package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"cotejo/ledger"
	"cotejo/operation"
)

// Bounds of an answer that is made while it is sent.
const (
	streamBytes = 256 << 10        // held at most; what fits is sent whole
	maxStream   = 30 * time.Minute // the store keeps what such an answer shows for so long
	maxStall    = time.Minute      // until the client takes another piece
)

// stream is the body of such an answer. The operation writes in a goroutine of its
// own, and no further ahead than streamBytes of what the client took; fasthttp reads
// and sends. What fails before the first piece is an ordinary error answer. After it
// the connection is cut: the last chunk, or the last byte of a known length, never
// comes.
type stream struct {
	*exchange
	conn   net.Conn
	pipe   *io.PipeReader
	ctx    context.Context
	cancel context.CancelCauseFunc
	first  []byte // read already, not sent yet
	whole  bool   // the operation came to its end and the client has it all
	once   sync.Once
}

var (
	errStall = errors.New("api: el cliente dejó de recibir")
	errGone  = errors.New("api: el cliente se fue")
)

// streams are those that a server is writing.
type streams struct {
	mu      sync.Mutex // guards ended, and running against a late Add
	ended   bool
	running sync.WaitGroup
	ctx     context.Context // ends with the server
	end     context.CancelCauseFunc
}

func (s *streams) init() { s.ctx, s.end = context.WithCancelCause(context.Background()) }

// begin reports whether another one may run.
func (s *streams) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.running.Add(1)
	}
	return !s.ended
}

// stop cuts those that run and returns when none does.
func (s *streams) stop() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end(ledger.ErrClosed)
	s.running.Wait()
}

// stream answers with what s writes, or to HEAD with its headers.
func (e *exchange) stream(resp *operation.Response) {
	s := resp.Stream
	closing := s.Close
	if closing == nil {
		closing = func() {}
	}
	if e.request.Head {
		closing()
		e.describe(resp)
		e.ctx.Response.Header.SetContentLength(int(s.Size))
		return
	}
	if !e.streams.begin() {
		closing()
		e.fail(ledger.ErrClosed)
		return
	}
	ctx, cancel := context.WithCancelCause(e.streams.ctx)
	limit := time.AfterFunc(maxStream, func() { cancel(context.DeadlineExceeded) })
	r, w := io.Pipe()
	conn := e.ctx.Conn()
	unlink := context.AfterFunc(ctx, func() {
		_ = r.CloseWithError(context.Cause(ctx))
		_ = conn.SetWriteDeadline(time.Now()) // it may be waiting for the client
	})
	go func() {
		defer e.streams.running.Done()
		err := e.write(ctx, s, &heldBack{to: w, stalled: func() { cancel(errStall) }})
		limit.Stop()
		unlink() // what was written whole is read to its end
		_ = w.CloseWithError(err)
		closing()
	}()

	b := &stream{exchange: e, conn: conn, pipe: r, ctx: ctx, cancel: cancel}
	b.first = make([]byte, streamBytes)
	n, err := io.ReadFull(r, b.first)
	b.first = b.first[:n]
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // whole
		cancel(nil)
		e.describe(resp)
		e.ctx.Response.SetBodyRaw(b.first)
	case err != nil:
		err = b.cause(err)
		cancel(nil)
		e.fail(err)
	default:
		e.describe(resp)
		e.streaming = true
		e.ctx.Response.SetBodyStream(b, int(s.Size))
	}
}

// write lets the operation write, and sends the last piece when it says that the
// answer is whole.
func (e *exchange) write(ctx context.Context, s *operation.Stream, to *heldBack) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("pánico al escribir una respuesta", "error", e.redact(fmt.Sprint(r)), "pila", string(debug.Stack()))
			err = fmt.Errorf("pánico: %v", r)
		}
	}()
	if err := s.Write(ctx, to); err != nil {
		return err
	}
	return to.flush()
}

// describe sets the headers of a stream.
func (e *exchange) describe(resp *operation.Response) {
	e.succeed(resp)
	s, h := resp.Stream, &e.ctx.Response.Header
	h.SetContentType(s.Type)
	if s.Name != "" {
		h.Set("Content-Disposition", `attachment; filename="`+s.Name+`"`)
	}
	if s.SHA256 != "" {
		h.Set("X-Sha256", s.SHA256)
	}
}

// Read implements io.Reader. fasthttp calls it when the client took what came before.
func (b *stream) Read(p []byte) (n int, err error) {
	if len(b.first) > 0 {
		n = copy(p, b.first)
		b.first = b.first[n:]
	} else {
		n, err = b.pipe.Read(p)
	}
	if b.ctx.Err() == nil {
		// fasthttp's own deadline is for the whole answer. What is written next may have
		// taken long to make.
		_ = b.conn.SetWriteDeadline(time.Now().Add(maxStall))
	}
	b.sent += int64(n)
	if errors.Is(err, io.EOF) {
		b.whole = true
	} else if err != nil {
		err = b.cause(err)
		b.broken(err)
	}
	return n, err
}

// SupportsBodyWriteTo implements fasthttp.BodyWriterTo.
func (b *stream) SupportsBodyWriteTo() bool { return true }

// WriteTo implements io.WriterTo. fasthttp itself would read 4 KiB at a time and send
// each as a packet of its own.
func (b *stream) WriteTo(w io.Writer) (written int64, err error) {
	piece := make([]byte, streamBytes)
	for {
		n, err := b.Read(piece)
		if n > 0 {
			n, werr := w.Write(piece[:n])
			if written += int64(n); werr != nil {
				return written, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return written, nil
		} else if err != nil {
			return written, err
		}
	}
}

// cause is why the pipe was closed: it says so only to its other end.
func (b *stream) cause(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return context.Cause(b.ctx)
	}
	return err
}

// broken logs why an answer was cut, if the client is not the cause.
func (b *stream) broken(err error) {
	switch {
	case errors.Is(err, errStall), errors.Is(err, errGone):
	case errors.Is(err, ledger.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		b.log.Warn("una descarga se cortó", "request_id", string(b.id), "ruta", b.route, "motivo", err.Error())
	default:
		b.log.Error("una descarga se cortó", "request_id", string(b.id), "ruta", b.route, "error", err.Error())
	}
}

// Close implements io.Closer: whatever became of the answer, it is over. fasthttp
// calls it while the request is still there.
func (b *stream) Close() error {
	b.once.Do(func() {
		b.cancel(errGone)
		b.cut = !b.whole
		b.end()
	})
	return nil
}

// heldBack passes on what is written to it, but never the last of it before flush: what
// turns out to be wrong at its end is not sent whole.
type heldBack struct {
	to      *io.PipeWriter
	stalled func()
	buf     []byte
}

// Write implements io.Writer.
func (h *heldBack) Write(p []byte) (int, error) {
	if h.buf == nil {
		h.buf = make([]byte, 0, streamBytes)
	}
	written := len(p)
	for len(p) > 0 {
		if len(h.buf) == cap(h.buf) {
			if err := h.flush(); err != nil {
				return 0, err
			}
		}
		n := min(len(p), cap(h.buf)-len(h.buf))
		h.buf = append(h.buf, p[:n]...)
		p = p[n:]
	}
	return written, nil
}

func (h *heldBack) flush() error {
	if len(h.buf) == 0 {
		return nil
	}
	stall := time.AfterFunc(maxStall, h.stalled)
	defer stall.Stop()
	_, err := h.to.Write(h.buf)
	h.buf = h.buf[:0]
	return err
}
