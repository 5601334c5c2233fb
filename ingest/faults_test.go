package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// maxPeak is how much an ingestion may grow the heap, whatever a server sends.
const maxPeak = 64 << 20

// trial is a source with a version in service, about to be downloaded again.
type trial struct {
	*fixture
	source Source
	active Result
	good   []byte // the bytes in service

	asked atomic.Int64 // requests for the file
	peak  uint64
}

func newTrial(t *testing.T, source string) *trial {
	t.Helper()
	s, ok := Lookup(source)
	if !ok {
		t.Fatalf("%s is no source", source)
	}
	good, ok := mirror.File(mirror.Stages-1, s.path)
	if !ok {
		t.Fatalf("the mirror does not serve %s", s.path)
	}
	tr := &trial{fixture: newFixture(t), source: s, good: good}
	var err error
	// The lists that state no date have the operator's.
	tr.active, err = tr.ingest(Request{Name: path.Base(s.path), Corte: mirror.Corte(mirror.Stages - 1), Content: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(good)), nil
	}})
	if err != nil || tr.active.Outcome != Activated {
		t.Fatalf("%s %v, %v", tr.active.Outcome, tr.active.Faults, err)
	}
	return tr
}

// eachReader are the sources, of the lists under article 69 two and of the years of
// contracts one of each layout: all of them have the same reader.
// TestMirrorOfArt69 and the tests of contratos read them all.
func eachReader() []string {
	return slices.DeleteFunc(Sources(), func(id string) bool {
		return strings.HasPrefix(id, "compranet_") && id != "compranet_2025" && id != "compranet_2020" ||
			strings.HasPrefix(id, "sat_art69_") && id != "sat_art69_firmes" && id != "sat_art69_eliminados"
	})
}

// ingest samples the heap at every step.
func (tr *trial) ingest(r Request) (Result, error) {
	tr.now = tr.now.Add(time.Hour)
	r.Source, r.Now = tr.source.Schema.Source, tr.now
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	tr.peak = 0
	steps := 0
	r.Progress = func(Step) {
		if steps++; steps%16 == 0 {
			runtime.ReadMemStats(&m)
			tr.peak = max(tr.peak, m.HeapAlloc-min(before, m.HeapAlloc))
		}
	}
	return Ingest(context.Background(), tr.c, r)
}

// serve starts a server of the file, which has no index page.
func (tr *trial) serve(h http.HandlerFunc) *httptest.Server {
	tr.t.Helper()
	s := httptest.NewServer(tr.handler(h))
	tr.t.Cleanup(s.Close)
	return s
}

func (tr *trial) handler(h http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(tr.source.path, func(w http.ResponseWriter, r *http.Request) {
		tr.asked.Add(1)
		h(w, r)
	})
	return mux
}

// unharmed wants the version that served to go on, the attempt recorded, and
// nothing left behind.
func (tr *trial) unharmed(outcome, says string) snapshots.Attempt {
	tr.t.Helper()
	if n := tr.edition(); n != tr.active.Edition.Number {
		tr.t.Errorf("edition %d serves, before it was %d", n, tr.active.Edition.Number)
	}
	tr.noTemporaryFiles()
	if tr.peak > maxPeak {
		tr.t.Errorf("the heap grew by %d bytes", tr.peak)
	}
	a, ok, err := tr.c.LastAttempt(tr.source.Schema.Source)
	if err != nil || !ok || a.Outcome != outcome || a.At != civil.Timestamp(tr.now) {
		tr.t.Errorf("the last attempt is %+v, %v; want %s", a, err, outcome)
	}
	text := a.Error
	for _, f := range a.Faults {
		text += f.Code + " " + f.Message
	}
	if !strings.Contains(text, says) {
		tr.t.Errorf("the attempt says %q, not %q", text, says)
	}
	return a
}

// failed downloads from an address and wants ErrUnavailable or ErrTooLarge after
// so many requests; -1 is any number.
func (tr *trial) failed(r Request, want error, says string, asked int) {
	tr.t.Helper()
	before := tr.versions()
	tr.asked.Store(0)
	_, err := tr.ingest(r)
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		tr.t.Errorf("got %v, want it to say %q", err, says)
	}
	if got := int(tr.asked.Load()); got != asked && asked >= 0 {
		tr.t.Errorf("asked %d times, want %d", got, asked)
	}
	if tr.versions() != before {
		tr.t.Errorf("%d versions, before there were %d", tr.versions(), before)
	}
	tr.unharmed(snapshots.OutcomeFailed, says)
}

// quarantined downloads from an address and wants the bytes kept and not served.
func (tr *trial) quarantined(address, code string, asked int) {
	tr.t.Helper()
	tr.asked.Store(0)
	r, err := tr.ingest(Request{Mirror: address})
	if err != nil || r.Outcome != Quarantined || r.Faults[0].Code != code {
		tr.t.Errorf("%s %v, %v; want %s", r.Outcome, r.Faults, err, code)
	}
	if got := int(tr.asked.Load()); got != asked && asked >= 0 {
		tr.t.Errorf("asked %d times, want %d", got, asked)
	}
	tr.unharmed(snapshots.OutcomeQuarantined, code)
}

// raw answers with exactly these bytes and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, answer)
	}
}

func answer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// drip sends two bytes and nothing more.
func drip(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "No")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// TestFaults: whatever the server of a source does, the version in service stays.
func TestFaults(t *testing.T) {
	hurried(t)
	all := overHTTP.attempts
	f := func(name string, run func(tr *trial)) {
		t.Run(name, func(t *testing.T) {
			for _, source := range eachReader() {
				t.Run(source, func(t *testing.T) { run(newTrial(t, source)) })
			}
		})
	}
	// An answer that brings no file.
	g := func(name string, want error, says string, asked int, h http.HandlerFunc) {
		f(name, func(tr *trial) { tr.failed(Request{Mirror: tr.serve(h).URL}, want, says, asked) })
	}
	g("403", ErrUnavailable, "respondió 403 Forbidden", 1, answer(403))
	f("404", func(tr *trial) {
		page := tr.source.URL()
		if tr.source.indexed {
			page = indexPage
		}
		tr.failed(Request{Mirror: tr.serve(answer(404)).URL}, ErrUnavailable, "respondió 404 Not Found; busque el archivo en "+page, 1)
	})
	g("204", ErrUnavailable, "respondió 204", 1, answer(204))
	g("304 that nobody asked for", ErrUnavailable, "respondió 304", 1, answer(304))
	g("408", ErrUnavailable, "respondió 408", all, answer(408))
	g("429", ErrUnavailable, "respondió 429", all, answer(429))
	g("500", ErrUnavailable, "respondió 500 Internal Server Error (4 intentos)", all, answer(500))
	g("503", ErrUnavailable, "respondió 503", all, answer(503))
	f("slow loris", func(tr *trial) {
		impatient(tr.t)
		tr.failed(Request{Mirror: tr.serve(drip).URL}, ErrUnavailable, "llegaron solo", all)
	})
	f("no answer", func(tr *trial) {
		unanswered(tr.t)
		s := tr.serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		tr.failed(Request{Mirror: s.URL}, ErrUnavailable, "no respondió a tiempo (4 intentos)", -1)
	})
	g("cut connection", ErrUnavailable, "cortó la conexión", all, raw(""))
	g("garbage", ErrUnavailable, "malformed HTTP", all, raw("No,RFC\r\n\r\n"))
	g("redirect loop", ErrUnavailable, "pasó de 5 redirecciones", 6, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	})
	g("redirect to this machine", ErrUnavailable, "redirige a otro servidor (127.0.0.1:1)", 1, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	g("gzip that nobody asked for", ErrUnavailable, `Content-Encoding "gzip"`, 1, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.CopyN(z, repeating{}, 1<<20)
		_ = z.Close()
	})
	g("10 GB announced", ErrTooLarge, "anuncia 10737418240", 1, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(10<<30))
		_, _ = io.CopyN(w, repeating{}, 10<<30)
	})
	g("10 GB not announced", ErrTooLarge, "rebasa el tamaño máximo", 1, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, repeating{}, 10<<30)
	})
	f("redirect to another host", func(tr *trial) {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tr.t.Error("the other host was asked")
			_, _ = w.Write(tr.good)
		}))
		tr.t.Cleanup(elsewhere.Close)
		s := tr.serve(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
		tr.failed(Request{Mirror: s.URL}, ErrUnavailable, "redirige a otro servidor", 1)
	})
	f("DNS failure", func(tr *trial) {
		dial := overHTTP.transport.DialContext
		defer func() { overHTTP.transport.DialContext = dial }()
		mute := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no network")
		}}
		overHTTP.transport.DialContext = (&net.Dialer{Resolver: &mute}).DialContext
		tr.failed(Request{Mirror: "http://no-existe.invalid"}, ErrUnavailable, "el nombre del servidor no se resuelve (DNS) (4 intentos)", 0)
	})
	f("connection refused", func(tr *trial) {
		s := httptest.NewServer(http.NotFoundHandler())
		s.Close()
		tr.failed(Request{Mirror: s.URL}, ErrUnavailable, "rechazó la conexión (4 intentos)", 0)
	})

	// A 200 that must not be served.
	f("HTML with 200", func(tr *trial) {
		tr.quarantined(tr.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Error 404</html>") }).URL, tabular.HTML, 1)
	})
	f("empty", func(tr *trial) {
		tr.quarantined(tr.serve(func(http.ResponseWriter, *http.Request) {}).URL, tabular.NoRows, 1)
	})
	f("cut at 50 %", func(tr *trial) {
		half := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(tr.good)) + "\r\n\r\n" + string(tr.good[:len(tr.good)/2])
		tr.quarantined(tr.serve(raw(half)).URL, tabular.Truncated, all)
	})
	f("cut at 50 % without length", func(tr *trial) {
		half := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(tr.good)), 16) + "\r\n" + string(tr.good[:len(tr.good)/2])
		tr.quarantined(tr.serve(raw(half)).URL, tabular.Truncated, all)
	})
	f("Content-Length too large", func(tr *trial) {
		tr.quarantined(tr.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(tr.good)+1000))
			_, _ = w.Write(tr.good)
		}).URL, tabular.Truncated, all)
	})
	f("Content-Length too small", func(tr *trial) {
		// Nothing of the protocol tells; the last record does.
		short := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(tr.good)/2) + "\r\n\r\n" + string(tr.good)
		tr.quarantined(tr.serve(raw(short)).URL, tabular.Truncated, 1)
	})

	// What goes by.
	f("500, then 200", func(tr *trial) {
		s := tr.serve(func(w http.ResponseWriter, r *http.Request) {
			if tr.asked.Load() == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(tr.good)
		})
		if r, err := tr.ingest(Request{Mirror: s.URL}); err != nil || r.Outcome != Unchanged || tr.asked.Load() != 2 {
			tr.t.Errorf("%s, %v, asked %d times", r.Outcome, err, tr.asked.Load())
		}
		tr.unharmed(snapshots.OutcomeUnchanged, "")
	})
	f("cut at 50 %, then whole", func(tr *trial) {
		s := tr.serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(tr.good)))
			_, _ = w.Write(tr.good[:len(tr.good)/2*min(int(tr.asked.Load()), 2)])
			if tr.asked.Load() > 1 {
				_, _ = w.Write(tr.good[len(tr.good)/2*2:])
			}
		})
		if r, err := tr.ingest(Request{Mirror: s.URL}); err != nil || r.Outcome != Unchanged || tr.asked.Load() != 2 {
			tr.t.Errorf("%s %v, %v, asked %d times", r.Outcome, r.Faults, err, tr.asked.Load())
		}
		tr.unharmed(snapshots.OutcomeUnchanged, "")
	})
}

// TestFaultsOfTheList: what only the complete list under article 69-B can show.
func TestFaultsOfTheList(t *testing.T) {
	hurried(t)
	serves := func(t *testing.T, content string) (*trial, string) {
		t.Helper()
		tr := newTrial(t, "sat_69b")
		return tr, tr.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }).URL
	}
	stage := func(t *testing.T, n int) string {
		t.Helper()
		content, ok := mirror.File(n, mirror.Listado69B)
		if !ok {
			t.Fatalf("no stage %d", n)
		}
		return string(content)
	}
	newer := func(t *testing.T) string {
		return strings.Replace(stage(t, mirror.Stages-1), "31 de Agosto", "15 de septiembre", 1)
	}
	accepted := func(name, content string) {
		t.Run(name, func(t *testing.T) {
			tr, address := serves(t, content)
			r, err := tr.ingest(Request{Mirror: address})
			if err != nil || r.Outcome != Activated || r.Version.Rows != tr.active.Version.Rows || r.Version.Counts[tabular.UnassignedBytes] != 1 {
				t.Errorf("%s %v, %d rows, counts %v, %v", r.Outcome, r.Faults, r.Version.Rows, r.Version.Counts, err)
			}
		})
	}
	t.Run("stale corte", func(t *testing.T) {
		tr, address := serves(t, stage(t, 1))
		tr.quarantined(address, tabular.OlderCut, 1)
	})
	// It is in every stage of the mirror, once.
	accepted("0x8D in a name", newer(t))
	lines := strings.SplitAfter(newer(t), "\r\n")
	head := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "No,RFC") })
	if head < 0 {
		t.Fatal("the list has no header")
	}
	wider := slices.Clone(lines)
	wider[head] = strings.TrimSuffix(wider[head], "\r\n") + ",,,,\r\n"
	accepted("extra empty columns", strings.Join(wider, ""))
	bare := slices.Clone(lines)
	bare[head] = strings.ToUpper(strings.NewReplacer("\xe1", "a", "\xe9", "e", "\xed", "i", "\xf3", "o", "\xfa", "u").Replace(bare[head]))
	accepted("titles without accents", strings.Join(bare, ""))
}

// TestPackedBomb: a small file that unpacks to much more than lists do.
func TestPackedBomb(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.CopyN(w, repeating{}, 512<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, source := range eachReader() {
		t.Run(source, func(t *testing.T) {
			tr := newTrial(t, source)
			if _, err := tr.ingest(Request{File: tr.file("lista.csv.gz", b.String())}); !errors.Is(err, ErrTooLarge) || tr.versions() != 1 {
				t.Errorf("%v, %d versions", err, tr.versions())
			}
			if tr.peak > maxPeak {
				t.Errorf("the heap grew by %d bytes", tr.peak)
			}
		})
	}
}
