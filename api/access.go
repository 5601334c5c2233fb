package api

import (
	"bytes"
	"strings"
	"time"
	"unicode"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"cotejo/accounts"
	"cotejo/ratelimit"
)

// quietRate is how many of the requests without a key that a limit refuses are
// written down, for each client's network: a flood must not push what happened
// before it out of a log of limited size.
var quietRate = ratelimit.Rate{N: 1, Per: time.Second, Burst: 10}

const quietAddresses = 1 << 12

var omittedLines = metrics.NewCounter("cotejo_access_log_omitted_total")

// logAccess writes the request down: nothing that the client wrote, but for a
// request id of a harmless form.
func (e *exchange) logAccess(took time.Duration) {
	if e.probe || e.access == nil {
		return
	}
	status := e.ctx.Response.StatusCode()
	if status == fasthttp.StatusTooManyRequests && e.who.KeyID == "" && !e.quiet.Take(ratelimit.OfAddress(e.client)).Allowed {
		omittedLines.Inc()
		return
	}
	a := &e.entry
	a.At, a.Took, a.RequestID, a.Client = e.now(), took, e.id, e.client
	a.Method, a.Route = method(e.ctx.Request.Header.Method()), e.route
	a.Status, a.Bytes, a.Cost, a.Cut = status, e.sent, e.cost, e.cut
	if !e.streaming { // to ask for the body of a stream would read it
		a.Bytes = int64(len(e.ctx.Response.Body()))
	}
	a.Org, a.Key = e.org[:0], e.who.KeyID
	if e.who.Org != 0 {
		a.Org = accounts.AppendOrg(a.Org, e.who.Org)
	}
	e.org = a.Org
	e.access.Add(a)
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

// redact takes out of a message of our own what stands in the request too: an error
// or a panic may quote its input, which must not reach the log. Words of less than
// five letters and digits are left.
func (e *exchange) redact(text string) string {
	const short = 5
	h := &e.ctx.Request.Header
	sent := [...][]byte{h.RequestURI(), h.RawHeaders(), e.ctx.Request.Body()}
	for i := range sent {
		sent[i] = bytes.ToUpper(sent[i])
	}
	decoded := func(word []byte) bool { // what was written with escapes
		for _, a := range e.request.Args {
			if bytes.Contains(bytes.ToUpper([]byte(a.Value)), word) {
				return true
			}
		}
		return false
	}
	var out strings.Builder
	for rest := text; rest != ""; {
		n := strings.IndexFunc(rest, func(r rune) bool { return !inWord(r) })
		if n < 0 {
			n = len(rest)
		}
		word := bytes.ToUpper([]byte(rest[:n]))
		if n >= short && (bytes.Contains(sent[0], word) || bytes.Contains(sent[1], word) || bytes.Contains(sent[2], word) || decoded(word)) {
			out.WriteString("…")
		} else {
			out.WriteString(rest[:n])
		}
		rest = rest[n:]
		n = strings.IndexFunc(rest, inWord)
		if n < 0 {
			n = len(rest)
		}
		out.WriteString(rest[:n])
		rest = rest[n:]
	}
	return out.String()
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
