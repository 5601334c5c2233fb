package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"cotejo/ingest"
)

const (
	lotePath = "/v1/empresa/lote"

	// A quote that is not answered is given up soon: nothing is at stake yet. A batch
	// has been sent, so its results are asked for until a restart of the service is
	// long over. Attempts that bring more results than all before do not count.
	quoteAttempts = 4
	loteAttempts  = 12

	firstWait = time.Second
	maxWait   = 30 * time.Second
	// maxRetryAfter is how long the service may send away who waits for it.
	maxRetryAfter = 5 * time.Minute

	maxErrorBytes = 64 << 10
)

// loteStall is how long the service may say nothing: a batch that waits for others says
// nothing before it begins. A test replaces it.
var loteStall = 3 * time.Minute

// States of a batch, as the service names them.
const (
	loteDone    = "TERMINADO"
	loteStopped = "DETENIDO"
)

// loteClient asks one service with one key.
type loteClient struct {
	base     *url.URL
	key      string
	mode     string // live or test, by the key
	http     *http.Client
	wait     func(context.Context, time.Duration) error
	stall    time.Duration
	progress *ingest.Progress
}

// loteList is what is sent.
type loteList struct {
	media   string
	query   string // encoded, names in order
	body    []byte
	content string // hash of all of it, hex: what makes it the same batch
}

func newLoteList(media string, query url.Values, body []byte) *loteList {
	l := &loteList{media: media, query: query.Encode(), body: body}
	sum := sha256.Sum256(body)
	content := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%x\n", l.media, l.query, sum))
	l.content = hex.EncodeToString(content[:])
	return l
}

// loteOrder is a list that is sent under a mark.
type loteOrder struct {
	list   *loteList
	mark   *loteMark
	media  string // of the results
	reader func() loteReader
}

// loteQuote is what a list would cost.
type loteQuote struct {
	Raw      json.RawMessage `json:"-"` // as it was received
	Received int             `json:"recibidos"`
	Repeated int             `json:"duplicados"`
	Refused  int             `json:"invalidos"`
	Units    int             `json:"consultas"`
	Tiers    []struct {
		From  int    `json:"desde"`
		To    int    `json:"hasta"`
		Units int    `json:"consultas"`
		Price string `json:"precio_unitario"`
		Cost  string `json:"importe"`
	} `json:"escalones"`
	Cost    string `json:"costo"`
	Uses    int    `json:"usos_que_pagarian"`
	Balance string `json:"saldo"`
	Enough  bool   `json:"alcanza"`
	Pays    int    `json:"alcanza_para"`
	Notice  string `json:"aviso"`
}

func (q *loteQuote) print(w io.Writer) {
	fmt.Fprintf(w, "%d elementos: %d consultas, %d duplicados, %d no válidos\n", q.Received, q.Units, q.Repeated, q.Refused)
	if q.Uses > 0 {
		fmt.Fprintf(w, "  %6d a %-6d  %6d usos individuales\n", 1, q.Uses, q.Uses)
	}
	for _, t := range q.Tiers {
		fmt.Fprintf(w, "  %6d a %-6d  %6d × %8s = %12s\n", t.From, t.To, t.Units, legible(t.Price), legible(t.Cost))
	}
	fmt.Fprintf(w, "costo %s MXN, saldo %s MXN", legible(q.Cost), legible(q.Balance))
	if !q.Enough {
		fmt.Fprintf(w, "; alcanza para %d de las %d consultas", q.Pays, q.Units)
	}
	fmt.Fprintf(w, "\n%s\n", legible(q.Notice))
}

// loteJob is how far a batch is.
type loteJob struct {
	State string `json:"estado"`
	Cost  string `json:"costo"`
	Uses  int    `json:"usos_individuales"`
}

var (
	errCut     = errors.New("la respuesta llegó incompleta")
	errStalled = errors.New("el servicio dejó de enviar")
)

// persist tries until it is answered, something happens that does not pass, or so many
// attempts in a row brought nothing. try says whether it got further than all before.
func (c *loteClient) persist(ctx context.Context, attempts int, try func() (further bool, err error)) error {
	for failed := 0; ; {
		further, err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if further {
			failed = 0
		}
		failed++
		var refused *loteRefusal
		after := time.Duration(0)
		if errors.As(err, &refused) {
			if !refused.passing() || refused.after > maxRetryAfter {
				return err
			}
			after = refused.after
		} else if !lostOnTheWay(err) {
			return err
		}
		if failed == attempts {
			return err
		}
		wait := max(after, min(firstWait<<(failed-1), maxWait))
		wait += rand.N(wait/5 + 1) // those who were sent away together do not come back together
		c.progress.Report(ingest.Step{
			Source: "lote", Phase: ingest.Waiting, Attempt: failed + 1, Attempts: attempts, Wait: wait, Reason: legible(briefly(err)),
		})
		if err := c.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// pause waits, or returns why it did not; a test replaces it.
var pause = func(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quote asks what the list would cost.
func (c *loteClient) quote(ctx context.Context, list *loteList) (q *loteQuote, err error) {
	err = c.persist(ctx, quoteAttempts, func() (bool, error) {
		step := ingest.Step{Source: "lote", Phase: "cotizando", Total: int64(len(list.body))}
		c.progress.Report(step)
		q = new(loteQuote)
		err := c.json(ctx, "POST", lotePath+"?"+list.query+"&simular=1", list, &q.Raw)
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(q.Raw, q); err != nil || q.Units < 1 || q.Cost == "" {
			return false, notTheService(c.base)
		}
		step.Bytes, step.Rows, step.Done = step.Total, q.Received, true
		c.progress.Report(step)
		return true, nil
	})
	return q, err
}

// state asks how far a batch is.
func (c *loteClient) state(ctx context.Context, lot string) (job loteJob, err error) {
	err = c.persist(ctx, quoteAttempts, func() (bool, error) {
		return true, c.json(ctx, "GET", lotePath+"s/"+lot, nil, &job)
	})
	return job, err
}

func notTheService(base *url.URL) error {
	return exitWith(exitUsage, "%s contestó algo que no es de este servicio: revise --url", base.Redacted())
}

// json asks for one JSON document.
func (c *loteClient) json(ctx context.Context, method, path string, list *loteList, v any) error {
	r, err := c.open(ctx, method, path, list, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return err
	}
	defer r.close()
	text, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err
	}
	if json.Unmarshal(text, v) != nil {
		return notTheService(c.base)
	}
	return nil
}

// response is the body of an answer 200. Reading fails with a *lostError when nothing
// comes for too long.
type response struct {
	header http.Header
	body   io.ReadCloser
	stall  time.Duration
	timer  *time.Timer
	ctx    context.Context
	end    context.CancelCauseFunc
}

func (r *response) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.timer.Reset(r.stall)
	if err != nil && !errors.Is(err, io.EOF) {
		err = lost(r.ctx, err)
	}
	return n, err
}

func (r *response) close() {
	r.timer.Stop()
	_ = r.body.Close() // what was read is whole or was lost already
	r.end(nil)
}

// open sends a request; list is nil for one without a body.
func (c *loteClient) open(ctx context.Context, method, path string, list *loteList, header http.Header) (*response, error) {
	req, err := http.NewRequest(method, strings.TrimSuffix(c.base.String(), "/")+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("X-Api-Key", c.key)
	req.Header.Set("User-Agent", "cotejo/"+version)
	if list != nil {
		req.Header.Set("Content-Type", list.media)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(list.body)), int64(len(list.body))
	}
	ctx, end := context.WithCancelCause(ctx)
	r := &response{ctx: ctx, end: end, stall: c.stall, timer: time.AfterFunc(c.stall, func() { end(errStalled) })}
	answer, err := c.http.Do(req.WithContext(ctx)) //nolint:bodyclose // response.close closes it
	if err != nil {
		r.timer.Stop()
		err = lost(ctx, err)
		end(nil)
		return nil, err
	}
	r.header, r.body = answer.Header, answer.Body
	if answer.StatusCode != http.StatusOK {
		err = c.refusal(answer, r)
		r.close()
		return nil, err
	}
	return r, nil
}

// receive sends the order and writes its results, until they are whole.
func (c *loteClient) receive(ctx context.Context, o *loteOrder, out *loteOutput) (reply loteReply, err error) {
	unknown := o.mark.old // an earlier run may have opened it
	best := -1
	stopped := false
	err = c.persist(ctx, loteAttempts, func() (bool, error) {
		var n int
		var err error
		if stopped || o.mark.late(now()) {
			reply, n, err = c.fetch(ctx, o, out)
		} else {
			reply, n, err = c.send(ctx, o, out)
		}
		var refused *loteRefusal
		switch {
		case errors.As(err, &refused) && refused.code == "LOTE_DETENIDO" && o.mark.Lot != "":
			stopped = true
			reply, n, err = c.fetch(ctx, o, out)
		case errors.As(err, &refused) && !refused.passing() && !unknown:
			refused.nothing = true
		case err != nil:
			unknown = true
		}
		further := n > best
		best = max(best, n)
		return further && best > 0, err
	})
	if stopped {
		reply.State = loteStopped
	}
	return reply, err
}

// send posts the list under the mark's key: the service opens the batch, or answers
// from the one it has.
func (c *loteClient) send(ctx context.Context, o *loteOrder, out *loteOutput) (loteReply, int, error) {
	c.progress.Report(ingest.Step{Source: "lote", Phase: "enviando", Total: int64(len(o.list.body))})
	r, err := c.open(ctx, "POST", lotePath+"?"+o.list.query, o.list, http.Header{
		"Accept": {o.media}, "Idempotency-Key": {o.mark.key(o.list)},
	})
	var refused *loteRefusal
	if errors.As(err, &refused) && o.mark.Lot == "" && isLote(refused.lot) {
		o.mark.Lot = refused.lot
		err = errors.Join(err, out.write(o.mark))
	}
	if err != nil {
		return loteReply{}, 0, err
	}
	defer r.close()
	lot := r.header.Get("X-Lote")
	if !isLote(lot) {
		return loteReply{}, 0, notTheService(c.base)
	}
	if lot != o.mark.Lot {
		o.mark.Lot = lot
		if err := out.write(o.mark); err != nil {
			return loteReply{}, 0, err
		}
	}
	return c.store(r, o, out, loteExpects{lot: lot, results: o.mark.Quote.Units, rows: o.mark.Quote.Received})
}

// fetch reads what the service has of a batch that it will not go on with, or that is
// too old to be asked for by its key.
func (c *loteClient) fetch(ctx context.Context, o *loteOrder, out *loteOutput) (loteReply, int, error) {
	if o.mark.Lot == "" {
		return loteReply{}, 0, &loteRefusal{over: true, said: fmt.Sprintf("la marca es de hace más de %d días y no dice qué lote abrió: el servicio ya no lo reconocería y lo cobraría otra vez. Revise los movimientos de la cuenta; para enviar la lista de nuevo, borre %s",
			int(loteMemory.Hours())/24, out.marked)}
	}
	detail := "detalle=completo"
	for part := range strings.SplitSeq(o.list.query, "&") {
		if strings.HasPrefix(part, "detalle=") {
			detail = part
		}
	}
	r, err := c.open(ctx, "GET", lotePath+"s/"+o.mark.Lot+"/resultados?"+detail, nil, http.Header{"Accept": {o.media}})
	var refused *loteRefusal
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return loteReply{}, 0, &loteRefusal{over: true, said: fmt.Sprintf("el servicio ya no conserva el lote %s, o la llave es de otra organización: cada verificación se lee con su verification_id. Para enviar la lista de nuevo, que se cobra otra vez, borre %s", o.mark.Lot, out.marked)}
	}
	if err != nil {
		return loteReply{}, 0, err
	}
	defer r.close()
	return c.store(r, o, out, loteExpects{lot: o.mark.Lot, results: -1, rows: -1})
}

// store writes an answer to the output and compares it with what it should be. n is
// how many results came.
func (c *loteClient) store(r *response, o *loteOrder, out *loteOutput, want loteExpects) (reply loteReply, n int, err error) {
	if media, _, err := mime.ParseMediaType(r.header.Get("Content-Type")); err != nil || media != o.media {
		return reply, 0, notTheService(c.base)
	}
	if err := out.rewind(); err != nil {
		return reply, 0, err
	}
	step := ingest.Step{Source: "lote", Phase: "recibiendo", Of: o.mark.Quote.Units}
	reader, sum := o.reader(), sha256.New()
	buffer := make([]byte, 64<<10)
	for err == nil {
		if n, err = r.Read(buffer); n > 0 {
			if err := out.append(buffer[:n], sum); err != nil {
				return reply, 0, err
			}
			reader.read(buffer[:n])
			step.Bytes, step.Rows = step.Bytes+int64(n), reader.results()
			c.progress.Report(step)
		}
	}
	n = reader.results()
	if !errors.Is(err, io.EOF) {
		return reply, n, err
	}
	if !reader.whole(want) {
		return reply, n, &lostError{errCut}
	}
	if err := out.sync(); err != nil {
		return reply, n, err
	}
	step.Done = true
	c.progress.Report(step)
	return loteReply{Lot: want.lot, State: loteDone, Results: n, Bytes: step.Bytes, SHA256: sumHex(sum)}, n, nil
}

func sumHex(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// hashFile reads a file.
func hashFile(path string) (n int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err = io.Copy(h, f)
	return n, sumHex(h), err
}

// newLoteTransport receives the bytes as they are sent.
func newLoteTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}

// parseServiceURL reads where a service is; a path before /v1 is a proxy's.
func parseServiceURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, exitWith(exitUsage, "--url: se espera la dirección del servicio, como https://cotejo.ejemplo.mx, sin usuario ni parámetros")
	}
	return u, nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
