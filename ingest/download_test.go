package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cotejo/testdata/mirror"
)

// faults is a server that answers in one way for each first element of the path,
// and has no index page.
func faults(t *testing.T, official string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	handle := func(name string, h http.HandlerFunc) { mux.HandleFunc("GET /"+name+"/", h) }
	handle("good", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Fri, 18 Sep 2026 15:30:02 GMT")
		_, _ = io.WriteString(w, official)
	})
	handle("403", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	handle("503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	handle("moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(r.URL.Path, "/moved/", "/good/", 1), http.StatusFound)
	})
	handle("drip", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, official[:100])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, indexPath) {
			http.NotFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// repeating gives zeros for ever.
type repeating struct{}

func (repeating) Read(p []byte) (int, error) { return len(p), nil }

// hurried is overHTTP without the waits between attempts.
func hurried(t *testing.T) {
	t.Helper()
	patient := overHTTP
	t.Cleanup(func() { overHTTP = patient })
	overHTTP.transport = patient.transport.Clone()
	overHTTP.wait = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
}

// impatient makes a server too slow that sends nothing for a moment.
func impatient(t testing.TB) {
	t.Helper()
	patient := overHTTP
	t.Cleanup(func() { overHTTP = patient })
	overHTTP.window = 100 * time.Millisecond
}

// unanswered makes a server too slow that does not answer at once.
func unanswered(t testing.TB) {
	t.Helper()
	patient := overHTTP
	t.Cleanup(func() { overHTTP = patient })
	overHTTP.transport = patient.transport.Clone()
	overHTTP.transport.ResponseHeaderTimeout = 100 * time.Millisecond
}

func TestRedirectOnTheSameHost(t *testing.T) {
	s := faults(t, list(t))
	fx := newFixture(t)
	r, err := fx.ingest(Request{Mirror: s.URL + "/moved/"})
	if err != nil || r.Outcome != Activated {
		t.Fatalf("%s %v, %v", r.Outcome, r.Version.Faults, err)
	}
	if v := r.Version; v.Published != "2026-09-18T09:30:02-06:00" || !strings.HasPrefix(v.Obtained, s.URL+"/moved/Datos_abiertos/") ||
		!strings.HasPrefix(v.URL, "https://wu1agsprosta001.") {
		t.Errorf("%+v", v)
	}
}

func TestUserOfAMirrorIsNotShown(t *testing.T) {
	s := faults(t, list(t))
	fx := newFixture(t)
	withPassword := strings.Replace(s.URL, "http://", "http://quien:clave@", 1)
	if _, err := fx.ingest(Request{Mirror: withPassword + "/403"}); !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "quien") {
		t.Errorf("%v", err)
	}
	if r, err := fx.ingest(Request{Mirror: withPassword + "/good"}); err != nil || r.Version.Obtained != s.URL+"/good/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv" {
		t.Errorf("%s, %v", r.Version.Obtained, err)
	}
}

func TestInterruptedDownload(t *testing.T) {
	s := faults(t, list(t))
	fx := newFixture(t)
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(context.Background())
	interrupted := func(route string, phase Phase) {
		t.Helper()
		reached := false
		_, err := Ingest(ctx, fx.c, Request{Source: "sat_69b", Mirror: s.URL + route, Now: noon, Progress: func(s Step) {
			if s.Phase == phase {
				reached = true
				cancel(why)
			}
		}})
		if err != why || !reached || fx.versions() != 0 {
			t.Errorf("%s: %v, %d versions", route, err, fx.versions())
		}
		if _, ok, err := fx.c.LastAttempt("sat_69b"); ok || err != nil {
			t.Errorf("%s: the attempt was recorded (%v)", route, err)
		}
		ctx, cancel = context.WithCancelCause(context.Background())
	}
	interrupted("/drip", Locating)
	interrupted("/drip", Obtaining)
	interrupted("/503", Waiting) // which would take seconds
	cancel(nil)
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

// TestPatience: a year of contracts of the largest size arrives within one attempt
// over a line of 1 Mbit/s; small lists have the time that they had.
func TestPatience(t *testing.T) {
	f := func(id string, bytes int64, enough bool) {
		t.Helper()
		s, ok := Lookup(id)
		if !ok {
			t.Fatal(id)
		}
		d := downloader{attempt: 15 * time.Minute, deadline: 40 * time.Minute}
		p := d.patient(s.MaxBytes)
		if took := time.Duration(bytes*8/1_000_000) * time.Second; (took < p.attempt) != enough {
			t.Errorf("%s: %v for what takes %v", id, p.attempt, took)
		}
		if p.deadline-p.attempt != d.deadline-d.attempt {
			t.Errorf("%s: %v in all", id, p.deadline)
		}
	}
	f("compranet_2025", 188<<20, true)
	f("sat_69b", 5<<20, true)
	f("sat_69b", 188<<20, false)
}
