package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"cotejo/operation"
	"cotejo/snapshots"
)

// download is an operation of the tests whose answers are streams.
type download struct {
	write  func(ctx context.Context, w io.Writer) error
	size   int64
	writes atomic.Int32
	closes atomic.Int32
	closed chan struct{} // capacity for every close
}

func newDownload(size int64, write func(ctx context.Context, w io.Writer) error) *download {
	return &download{write: write, size: size, closed: make(chan struct{}, 100)}
}

func (d *download) operation() operation.Operation {
	return operation.Operation{
		ID: "bajar", Method: "GET", Path: "/bajar", Tag: "t", Summary: "s", Description: "d", Auth: operation.Keyed,
		Media: []operation.Media{{Type: "application/octet-stream"}},
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return operation.Response{Stream: &operation.Stream{
				Type: "application/octet-stream", Name: "a.bin", Size: d.size, SHA256: strings.Repeat("0f", 32),
				Write: func(ctx context.Context, w io.Writer) error {
					d.writes.Add(1)
					return d.write(ctx, w)
				},
				Close: func() {
					d.closes.Add(1)
					d.closed <- struct{}{}
				},
			}}, nil
		},
	}
}

// ask sends a request and returns the answer before its body is read.
func ask(t testing.TB, l *fasthttputil.InmemoryListener, method, target, key string) (*http.Response, net.Conn) {
	t.Helper()
	conn := must(l.Dial())
	go fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n\r\n", method, target, key)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return resp, conn
}

// pattern is n bytes of which no piece can stand for another.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

var errBroken = errors.New("se rompió a la mitad")

// TestStream: a whole answer arrives whole; one that fails before its first piece is
// an error, and one that fails later, were it at its last byte, never looks whole.
func TestStream(t *testing.T) {
	f := newFixture(t)
	inPieces := func(content []byte, err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			for len(content) > 0 {
				n := min(len(content), 10_007)
				if _, err := w.Write(content[:n]); err != nil {
					return err
				}
				content = content[n:]
			}
			return err
		}
	}
	for _, length := range []int{0, 1, streamBytes - 1, streamBytes, streamBytes + 1, 3 * streamBytes, 1 << 20} {
		for _, known := range []bool{false, true} {
			for _, fails := range []error{nil, errBroken} {
				content, size := pattern(length), int64(-1)
				if known {
					size = int64(length)
				}
				d := newDownload(size, inPieces(content, fails))
				l := serve(t, f.pipeline, nil, d.operation())
				resp, conn := ask(t, l, "GET", "/bajar", f.keys["live"])
				body, err := io.ReadAll(resp.Body)
				name := fmt.Sprintf("%d bytes, size known %v, %v", length, known, fails)
				switch {
				case fails == nil:
					if err != nil || resp.StatusCode != 200 || !bytes.Equal(body, content) {
						t.Errorf("%s: %d, %d bytes, %v", name, resp.StatusCode, len(body), err)
					}
					if got := resp.Header.Get("Content-Disposition"); got != `attachment; filename="a.bin"` {
						t.Errorf("%s: %q", name, got)
					}
					if resp.Header.Get("X-Sha256") != strings.Repeat("0f", 32) || resp.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("%s: %v", name, resp.Header)
					}
				case length <= streamBytes:
					if code, _ := walk(body, ".codigo"); err != nil || resp.StatusCode != 500 || code != "ERROR_INTERNO" || resp.Header.Get("Content-Disposition") != "" {
						t.Errorf("%s: %d %.100s, %v", name, resp.StatusCode, body, err)
					}
				default:
					if !errors.Is(err, io.ErrUnexpectedEOF) || resp.StatusCode != 200 || len(body) >= length || !bytes.HasPrefix(content, body) {
						t.Errorf("%s: looks whole: %d, %d bytes, %v", name, resp.StatusCode, len(body), err)
					}
				}
				conn.Close()
				<-d.closed
				if d.writes.Load() != 1 || d.closes.Load() != 1 {
					t.Errorf("%s: %d writes, %d closes", name, d.writes.Load(), d.closes.Load())
				}
			}
		}
	}
}

// TestStreamHead: HEAD has the headers, and nothing is written for it.
func TestStreamHead(t *testing.T) {
	f := newFixture(t)
	for _, size := range []int64{-1, 1 << 20} {
		d := newDownload(size, nil)
		resp, conn := ask(t, serve(t, f.pipeline, nil, d.operation()), "HEAD", "/bajar", f.keys["live"])
		<-d.closed
		if resp.StatusCode != 200 || resp.ContentLength != size || resp.Header.Get("Content-Disposition") == "" || d.writes.Load() != 0 {
			t.Errorf("size %d: %d, length %d, %v, %d writes", size, resp.StatusCode, resp.ContentLength, resp.Header, d.writes.Load())
		}
		conn.Close()
	}
}

// TestStreamPanics: what panics behind the first piece costs one answer.
func TestStreamPanics(t *testing.T) {
	f := newFixture(t)
	log := &logBuffer{}
	d := newDownload(-1, func(_ context.Context, w io.Writer) error {
		must(w.Write(pattern(2 * streamBytes)))
		panic("se rompió")
	})
	l := serve(t, f.pipeline, func(s *Server) { s.log = slog.New(slog.NewJSONHandler(log, nil)) }, d.operation())
	for range 2 {
		resp, conn := ask(t, l, "GET", "/bajar", f.keys["live"])
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
		conn.Close()
		<-d.closed
	}
	if !strings.Contains(log.String(), "se rompió") {
		t.Errorf("the log does not tell: %s", log.String())
	}
}

// endless writes until it cannot, and says how much it has written.
func endless(written *atomic.Int64) func(context.Context, io.Writer) error {
	piece := pattern(8 << 10)
	return func(_ context.Context, w io.Writer) error {
		for {
			if _, err := w.Write(piece); err != nil {
				return err
			}
			written.Add(int64(len(piece)))
		}
	}
}

// TestStreamWaitsForItsClient: what is written runs ahead of what is taken by a
// bounded amount, and a client that leaves ends it and gives its slot back.
func TestStreamWaitsForItsClient(t *testing.T) {
	f := newFixture(t)
	f.pipeline.Limits = operation.DefaultLimits
	f.pipeline.Limits.Stream = operation.Limit{Slots: 1, Queue: 1, Wait: time.Minute}
	var written atomic.Int64
	d := newDownload(-1, endless(&written))
	l := serve(t, f.pipeline, nil, d.operation())
	for range 3 {
		written.Store(0)
		resp, conn := ask(t, l, "GET", "/bajar", f.keys["live"])
		taken, piece := int64(0), make([]byte, 4<<10)
		for taken < 4<<20 {
			n, err := resp.Body.Read(piece)
			if err != nil {
				t.Fatal(err)
			}
			taken += int64(n)
			if ahead := written.Load() - taken; ahead > 4*streamBytes {
				t.Fatalf("%d bytes ahead of its client", ahead)
			}
		}
		conn.Close()
		<-d.closed // and the slot is given back at once
	}
}

// TestStreamShare: an organization has two downloads at once, and the others theirs.
func TestStreamShare(t *testing.T) {
	f := newFixture(t)
	var written atomic.Int64
	d := newDownload(-1, endless(&written))
	l := serve(t, f.pipeline, nil, d.operation())
	var open []net.Conn
	for _, key := range []string{"live", "live", "other"} {
		resp, conn := ask(t, l, "GET", "/bajar", f.keys[key])
		open = append(open, conn)
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d", key, resp.StatusCode)
		}
	}
	resp, conn := ask(t, l, "GET", "/bajar", f.keys["live"])
	body := must(io.ReadAll(resp.Body))
	if code, _ := walk(body, ".codigo"); resp.StatusCode != 503 || code != "SOBRECARGA" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a third one: %d %s", resp.StatusCode, body)
	}
	for _, c := range append(open, conn) {
		c.Close()
	}
	for range open {
		<-d.closed
	}
}

// TestStreamEndsWithTheServer: a shutdown cuts what would go on for longer than it
// may wait, though the client takes nothing, and afterwards nothing of it is left.
func TestStreamEndsWithTheServer(t *testing.T) {
	f := newFixture(t)
	var written atomic.Int64
	d := newDownload(-1, endless(&written))
	server := must(New(Config{Table: must(operation.NewTable([]operation.Operation{d.operation()})), Pipeline: f.pipeline, Log: slog.New(slog.DiscardHandler)}))
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn := must(net.Dial("tcp", l.Addr().String()))
	defer conn.Close()
	must(fmt.Fprintf(conn, "GET /bajar HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n\r\n", f.keys["live"]))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if d.closes.Load() != 1 {
		t.Errorf("%d closes after the shutdown", d.closes.Load())
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer looks whole")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestStreamIsLogged: the access log tells how much of a download left, and whether
// that was all; the service's log tells why not, when that is its own fault.
func TestStreamIsLogged(t *testing.T) {
	f := newFixture(t)
	log := &logBuffer{}
	fails := false
	d := newDownload(-1, func(_ context.Context, w io.Writer) error {
		if _, err := w.Write(pattern(3*streamBytes + 1)); err != nil || !fails {
			return err
		}
		return fmt.Errorf("leer: %w", &snapshots.CorruptError{Path: "oficial.zst", Want: "aa", Got: "bb"})
	})
	var server *Server
	l := serve(t, f.pipeline, func(s *Server) {
		s.log, s.access, server = slog.New(slog.NewJSONHandler(log, nil)), f.access, s
	}, d.operation())
	for range 2 {
		resp, conn := ask(t, l, "GET", "/bajar", f.keys["live"])
		_, _ = io.ReadAll(resp.Body)
		conn.Close()
		<-d.closed
		fails = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	access := f.accessLines()
	lines := strings.Split(strings.TrimSpace(access), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], fmt.Sprintf(`"bytes":%d,"organizacion"`, 3*streamBytes+1)) ||
		!strings.Contains(lines[1], fmt.Sprintf(`"bytes":%d,"cortada":true`, 3*streamBytes)) {
		t.Errorf("access log:\n%s", access)
	}
	if !strings.Contains(log.String(), "oficial.zst") {
		t.Errorf("the log does not tell: %s", log)
	}
}
