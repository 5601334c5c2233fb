package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// faults is a server that fails in one way for each first element of the path.
func faults(t *testing.T, official string) *httptest.Server {
	t.Helper()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, official)
	}))
	t.Cleanup(elsewhere.Close)
	mux := http.NewServeMux()
	handle := func(name string, h http.HandlerFunc) { mux.HandleFunc("GET /"+name+"/", h) }
	handle("good", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Fri, 18 Sep 2026 15:30:02 GMT")
		w.Header().Set("X-Agent", r.UserAgent())
		_, _ = io.WriteString(w, official)
	})
	for _, status := range []int{204, 403, 404, 500, 503} {
		handle(strconv.Itoa(status), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	handle("html", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Error 404</html>") })
	handle("empty", func(http.ResponseWriter, *http.Request) {})
	handle("short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(official)+1000))
		_, _ = io.WriteString(w, official)
	})
	handle("huge", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(10<<30))
	})
	handle("endless", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, repeating{})
	})
	handle("packed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, packed(t, official))
	})
	handle("loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	handle("elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	handle("moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(r.URL.Path, "/moved/", "/good/", 1), http.StatusFound)
	})
	handle("drip", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, official[:100])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	handle("silent", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// repeating gives zeros for ever.
type repeating struct{}

func (repeating) Read(p []byte) (int, error) { return len(p), nil }

// hurried is overHTTP with the patience of a test.
func hurried(t *testing.T) {
	t.Helper()
	patient := overHTTP
	t.Cleanup(func() { overHTTP = patient })
	client := *patient.client
	transport := patient.client.Transport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 100 * time.Millisecond
	client.Transport = transport
	overHTTP = downloader{client: &client, deadline: time.Minute, window: 100 * time.Millisecond, minBytes: patient.minBytes}
}

// TestFaultyServers: the edition that serves stays, whatever a server does.
func TestFaultyServers(t *testing.T) {
	hurried(t)
	s := faults(t, strings.Replace(list(t), "31 de Agosto", "15 de septiembre", 1))
	fx := newFixture(t)
	active := fx.bytes(list(t), Activated)

	unavailable := func(route, says string) {
		t.Helper()
		_, err := fx.ingest(Request{Mirror: s.URL + "/" + route})
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want it to say %q", route, err, says)
		}
		if fx.versions() != 1 || fx.edition() != active.Edition.Number {
			t.Errorf("%s: %d versions, edition %d", route, fx.versions(), fx.edition())
		}
		fx.noTemporaryFiles()
		if a, _, err := fx.c.LastAttempt("sat_69b"); err != nil || a.Outcome != snapshots.OutcomeFailed || a.At != civil.Timestamp(fx.now) || !strings.Contains(a.Error, says) {
			t.Errorf("%s: the last attempt is %+v, %v", route, a, err)
		}
	}
	unavailable("204", "204")
	unavailable("403", "403")
	unavailable("404", "--file")
	unavailable("500", "500")
	unavailable("503", "503")
	unavailable("packed", "Content-Encoding")
	unavailable("loop", "más de 5 redirecciones")
	unavailable("elsewhere", "otro servidor")
	unavailable("drip", "llegaron solo")
	unavailable("silent", "intente más tarde")

	if _, err := fx.ingest(Request{Mirror: s.URL + "/huge"}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("huge: %v", err)
	}

	versions := 1
	quarantined := func(route, code string) {
		t.Helper()
		r, err := fx.ingest(Request{Mirror: s.URL + "/" + route})
		if err != nil || r.Outcome != Quarantined || r.Version.Faults[0].Code != code {
			t.Errorf("%s: %s %v, %v", route, r.Outcome, r.Version.Faults, err)
		}
		if versions++; fx.versions() != versions || fx.edition() != active.Edition.Number {
			t.Errorf("%s: %d versions, edition %d", route, fx.versions(), fx.edition())
		}
	}
	quarantined("html", tabular.HTML)
	quarantined("empty", tabular.NoRows)
	quarantined("short", tabular.Truncated)

	r, err := fx.ingest(Request{Mirror: s.URL + "/moved/"})
	if err != nil || r.Outcome != Activated {
		t.Fatalf("a redirect on the same host: %s %v, %v", r.Outcome, r.Version.Faults, err)
	}
	if v := r.Version; v.Published != "2026-09-18T09:30:02-06:00" || !strings.HasPrefix(v.Obtained, s.URL+"/moved/Datos_abiertos/") ||
		!strings.HasPrefix(v.URL, "https://wu1agsprosta001.") {
		t.Errorf("%+v", v)
	}
}

// TestEndlessBody stops at the limit, without the whole of it on disk or in memory.
func TestEndlessBody(t *testing.T) {
	s := faults(t, "")
	fx := newFixture(t)
	if _, err := fx.ingest(Request{Mirror: s.URL + "/endless"}); !errors.Is(err, ErrTooLarge) || fx.versions() != 0 {
		t.Errorf("%v, %d versions", err, fx.versions())
	}
	fx.noTemporaryFiles()
}

func TestPasswordOfAMirrorIsNotShown(t *testing.T) {
	s := faults(t, list(t))
	fx := newFixture(t)
	withPassword := strings.Replace(s.URL, "http://", "http://quien:clave@", 1)
	if _, err := fx.ingest(Request{Mirror: withPassword + "/403"}); !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "clave") {
		t.Errorf("%v", err)
	}
	if r, err := fx.ingest(Request{Mirror: withPassword + "/good"}); err != nil || strings.Contains(r.Version.Obtained, "clave") {
		t.Errorf("%s, %v", r.Version.Obtained, err)
	}
}

func TestInterruptedDownload(t *testing.T) {
	s := faults(t, list(t))
	fx := newFixture(t)
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := Ingest(ctx, fx.c, Request{Source: "sat_69b", Mirror: s.URL + "/drip", Now: noon, Progress: func(Step) { cancel(why) }})
	if err != why || fx.versions() != 0 {
		t.Errorf("%v, %d versions", err, fx.versions())
	}
}

func TestNoDowngrade(t *testing.T) {
	f := func(from, to string, ok bool) {
		t.Helper()
		request := func(url string) *http.Request {
			r, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if err := sameHost(request(to), []*http.Request{request(from)}); (err == nil) != ok {
			t.Errorf("%s to %s: %v", from, to, err)
		}
	}
	f("https://a.mx/x", "https://a.mx/y", true)
	f("http://a.mx/x", "https://a.mx/x", true)
	f("https://a.mx/x", "http://a.mx/x", false)
	f("https://a.mx/x", "https://b.mx/x", false)
	f("https://a.mx/x", "https://127.0.0.1/x", false)
	f("https://a.mx/x", "https://a.mx:8443/x", false)
}

// TestMirror ingests every stage of the bundled mirror over HTTP, as the
// demonstration does.
func TestMirror(t *testing.T) {
	stage := 0
	s := httptest.NewServer(mirror.Handler(func() int { return stage }))
	defer s.Close()
	fx := newFixture(t)
	for stage = range mirror.Stages {
		r, err := fx.ingest(Request{Mirror: s.URL})
		if err != nil || r.Outcome != Activated {
			t.Fatalf("stage %d: %s %v, %v", stage, r.Outcome, r.Version.Faults, err)
		}
		if v := r.Version; v.Corte != mirror.Corte(stage) || v.Published == "" {
			t.Errorf("stage %d: %+v", stage, v)
		}
		if r, err = fx.ingest(Request{Mirror: s.URL}); err != nil || r.Outcome != Unchanged {
			t.Errorf("stage %d again: %s, %v", stage, r.Outcome, err)
		}
	}
	if fx.versions() != mirror.Stages || fx.edition() != mirror.Stages {
		t.Error(fmt.Sprint(fx.versions(), " versions, edition ", fx.edition()))
	}
}
