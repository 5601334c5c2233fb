package api

import (
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"cotejo/accounts"
)

// accessLog writes one JSON line for each request, without any value of it: no
// parameter, header or body. Lines are gathered and written together, because a
// system call for each would cost a tenth of a request. A process that is killed
// loses the lines of the last second; what was answered is in the ledger.
//
// A log that cannot be written must not stop the service: while a write hangs,
// requests go on; beyond accessLogBytes their lines are dropped, and the next
// line says how many. What a write fails on is lost.
type accessLog struct {
	to io.Writer // nil: nothing is logged

	mu      sync.Mutex // held by requests: never while writing
	lines   []byte     // gathered; under mu
	dropped int        // since the last line that was kept; under mu

	writing sync.Mutex // one write at a time; taken before mu
	spare   []byte     // the buffer that was written; under writing

	wake   chan struct{} // capacity 1: there is much to write
	stop   chan struct{}
	ending sync.Once
	closed chan struct{}
}

const (
	accessLogEvery = time.Second
	accessLogWake  = 64 << 10 // written at once
	accessLogBytes = 1 << 20  // gathered at most
)

// newAccessLog starts the log; close ends it.
func newAccessLog(to io.Writer) *accessLog {
	l := &accessLog{to: to, wake: make(chan struct{}, 1), stop: make(chan struct{}), closed: make(chan struct{})}
	if to == nil {
		close(l.closed)
		return l
	}
	go func() {
		defer close(l.closed)
		tick := time.NewTicker(accessLogEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-l.wake:
			case <-l.stop:
				l.flush()
				return
			}
			l.flush()
		}
	}()
	return l
}

// close writes what is left. It may be called more than once; lines that come
// later are not written.
func (l *accessLog) close() {
	l.ending.Do(func() { close(l.stop) })
	<-l.closed
}

// flush writes what was gathered before it was called.
func (l *accessLog) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	full := l.lines
	l.lines = l.spare[:0]
	l.mu.Unlock()
	if len(full) > 0 {
		_, _ = l.to.Write(full)
	}
	l.spare = full
}

// appendMillis appends a moment as 2006-01-02T15:04:05.000Z. The standard library
// takes a fifth of the time for a layout that it knows.
func appendMillis(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / 1e6
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// add appends the line of an exchange that ended now. Everything in it is a constant, a number
// or an id whose alphabet needs no escape in JSON.
func (l *accessLog) add(e *exchange, now time.Time) {
	if l.to == nil {
		return
	}
	b := append(e.line[:0], `{"time":"`...)
	b = appendMillis(b, now)
	b = append(b, `","msg":"peticion","request_id":"`...)
	b = append(b, e.id...)
	b = append(b, `","metodo":"`...)
	b = append(b, method(e.ctx.Request.Header.Method())...)
	b = append(b, `","ruta":"`...)
	b = append(b, e.route...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(e.ctx.Response.StatusCode()), 10)
	b = append(b, `,"microsegundos":`...)
	b = strconv.AppendInt(b, now.Sub(e.started).Microseconds(), 10)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, int64(len(e.ctx.Response.Body())), 10)
	if e.who.KeyID != "" {
		if e.who.Org != 0 { // an operator's key is of none
			b = append(b, `,"organizacion":"`...)
			b = accounts.AppendOrg(b, e.who.Org)
			b = append(b, '"')
		}
		b = append(b, `,"llave":"`...)
		b = append(b, e.who.KeyID...)
		b = append(b, '"')
	}
	e.line = b
	l.append(b)
}

// append keeps a line that lacks its end, or drops it.
func (l *accessLog) append(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines)+len(line) > accessLogBytes {
		l.dropped++
		return
	}
	b := append(l.lines, line...)
	if l.dropped > 0 {
		b = append(b, `,"lineas_perdidas":`...)
		b = strconv.AppendInt(b, int64(l.dropped), 10)
		l.dropped = 0
	}
	l.lines = append(b, "}\n"...)
	if len(l.lines) > accessLogWake {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// method returns a known method as a constant; anything else is the client's
// text and is not logged.
func method(m []byte) string {
	switch string(m) {
	case fasthttp.MethodGet:
		return fasthttp.MethodGet
	case fasthttp.MethodHead:
		return fasthttp.MethodHead
	case fasthttp.MethodPost:
		return fasthttp.MethodPost
	case fasthttp.MethodPut:
		return fasthttp.MethodPut
	case fasthttp.MethodDelete:
		return fasthttp.MethodDelete
	}
	return "-"
}
