package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/civil"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// longest makes every wait as long as it may be, and notes it.
func longest(t *testing.T) *[]time.Duration {
	t.Helper()
	hurried(t)
	var waits []time.Duration
	overHTTP.jitter = func(most time.Duration) time.Duration { return most }
	overHTTP.wait = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return context.Cause(ctx)
	}
	return &waits
}

// TestWaits: what is waited between attempts.
func TestWaits(t *testing.T) {
	waits := longest(t)
	tr := newTrial(t, "sat_69b")
	var status int
	header := map[string]string{}
	s := tr.serve(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
	})
	f := func(code int, after, date string, says string, want ...time.Duration) {
		t.Helper()
		status = code
		header["Retry-After"], header["Date"] = after, date
		*waits = nil
		tr.failed(Request{Mirror: s.URL}, ErrUnavailable, says, len(want)+1)
		if !slices.Equal(*waits, want) {
			t.Errorf("%d, Retry-After %q: waited %v, want %v", code, after, *waits, want)
		}
	}
	const date = "Fri, 18 Sep 2026 15:30:00 GMT"
	f(500, "", date, "(4 intentos)", 5*time.Second, 10*time.Second, 20*time.Second)
	f(429, "7", date, "(4 intentos)", 7*time.Second, 10*time.Second, 20*time.Second)
	f(503, "300", date, "(4 intentos)", 5*time.Minute, 5*time.Minute, 5*time.Minute)
	f(503, "Fri, 18 Sep 2026 15:30:15 GMT", date, "", 15*time.Second, 15*time.Second, 20*time.Second)
	f(503, "Fri, 18 Sep 2026 15:29:00 GMT", date, "", 5*time.Second, 10*time.Second, 20*time.Second)
	f(503, "mañana", date, "", 5*time.Second, 10*time.Second, 20*time.Second)
	f(503, "-7", date, "", 5*time.Second, 10*time.Second, 20*time.Second)
	// Whoever wants to be left alone for longer is.
	f(503, "301", date, "respondió 503 Service Unavailable y pide esperar 5m1s")
	f(429, "99999999999999999999", date, "", 5*time.Second, 10*time.Second, 20*time.Second)
	// What will not change is not asked again.
	f(403, "7", date, "fuentes.sat_69b.proxy")

	// Nor does anything wait beyond the end of the whole.
	overHTTP.deadline = time.Second
	f(500, "", date, "respondió 500 Internal Server Error; intente")
}

func TestWaitsGrowToABound(t *testing.T) {
	d := overHTTP
	d.jitter = func(most time.Duration) time.Duration { return most }
	for n, want := range map[int]time.Duration{1: 5 * time.Second, 6: 160 * time.Second, 7: 5 * time.Minute, 64: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := d.pause(n, &failure{}); got != want {
			t.Errorf("after attempt %d: %v, want %v", n, got, want)
		}
	}
	for range 1000 {
		if got := fullJitter(time.Second); got < 0 || got >= time.Second {
			t.Fatal(got)
		}
	}
	if fullJitter(0) != 0 {
		t.Error("nothing to wait")
	}
}

// TestDeadlineOfASource: attempts that are each in time may not go on for ever.
func TestDeadlineOfASource(t *testing.T) {
	hurried(t)
	overHTTP.deadline = 300 * time.Millisecond
	overHTTP.window = time.Minute
	tr := newTrial(t, "sat_69b")
	s := tr.serve(drip)
	tr.failed(Request{Mirror: s.URL}, ErrUnavailable, "no terminó en 300ms;", -1)
	overHTTP.deadline, overHTTP.attempt = time.Minute, 50*time.Millisecond
	tr.failed(Request{Mirror: s.URL}, ErrUnavailable, "no terminó en 50ms (4 intentos)", -1)
}

func TestWhatIsAsked(t *testing.T) {
	hurried(t)
	tr := newTrial(t, "sat_69b")
	var asked http.Header
	s := tr.serve(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		_, _ = w.Write(tr.good)
	})
	if _, err := tr.ingest(Request{Mirror: s.URL}); err != nil {
		t.Fatal(err)
	}
	// Guards look for the first, honesty wants the second.
	if agent := asked.Get("User-Agent"); !strings.HasPrefix(agent, "Mozilla/5.0 (") || !strings.Contains(agent, " cotejo/1 (lector de datos abiertos)") {
		t.Errorf("User-Agent: %s", agent)
	}
	if asked.Get("Accept-Encoding") != "identity" || asked.Get("If-None-Match") != "" || asked.Get("If-Modified-Since") != "" {
		t.Errorf("%v", asked)
	}
}

// TestConditionalDownload: the bytes in service are not sent again.
func TestConditionalDownload(t *testing.T) {
	hurried(t)
	fx := newFixture(t)
	stage := 0
	var statuses []int
	var refuse int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse > 0 && r.URL.Path != indexPath {
			w.WriteHeader(refuse)
			return
		}
		if r.URL.Path == mirror.Listado69B {
			w = &recorder{w, &statuses}
		}
		mirror.Handler(func() int { return stage }).ServeHTTP(w, r)
	}))
	defer s.Close()
	f := func(r Request, outcome Outcome, asked ...int) snapshots.Attempt {
		t.Helper()
		statuses = nil
		if r.File == "" && r.Mirror == "" {
			r.Mirror = s.URL
		}
		got, err := fx.ingest(r)
		if err != nil || got.Outcome != outcome || !slices.Equal(statuses, asked) {
			t.Errorf("%s %v, %v, answers %v; want %s after %v", got.Outcome, got.Faults, err, statuses, outcome, asked)
		}
		if m, err := fx.c.LatestEdition(); err != nil || got.Edition.SHA256 != m.SHA256 {
			t.Errorf("the result names edition %s, in service is %s (%v)", got.Edition.SHA256, m.SHA256, err)
		}
		return fx.attempted(outcome, got.Version.ID)
	}
	first := f(Request{}, Activated, 200)
	v := first.Validators
	if m, err := fx.c.Version(1); v == nil || err != nil || v.URL != s.URL+mirror.Listado69B || v.ETag == "" ||
		v.LastModified != mirror.Modified(0).Format(http.TimeFormat) || v.SHA256 != m.SHA256 {
		t.Fatalf("%+v, %v", v, err)
	}
	if again := f(Request{}, Unchanged, 304); *again.Validators != *v {
		t.Errorf("%+v, before %+v", again.Validators, v)
	}
	f(Request{}, Unchanged, 304)
	// A failure says nothing of the bytes.
	refuse = 503
	if _, err := fx.ingest(Request{Mirror: s.URL}); err == nil {
		t.Fatal("no error")
	}
	refuse = 0
	f(Request{}, Unchanged, 304)
	stage = 1
	f(Request{}, Activated, 200)
	f(Request{}, Unchanged, 304)
	// Validators of bytes that are not in service ask for nothing.
	stage = 0
	f(Request{}, Quarantined, 200)
	f(Request{}, Quarantined, 200)
	stage = 1
	f(Request{}, Unchanged, 200)
	f(Request{}, Unchanged, 304)
	content, ok := mirror.File(2, mirror.Listado69B)
	if !ok {
		t.Fatal("no stage 2")
	}
	f(Request{File: fx.file("x.csv", string(content))}, Activated)
	stage = 2
	f(Request{}, Unchanged, 200)
	f(Request{}, Unchanged, 304)
	// Another address may have other bytes under the same name.
	f(Request{Mirror: s.URL + "/agsc-publicaciones"}, Unchanged)
	f(Request{}, Unchanged, 200)
}

// recorder notes the status of an answer before it leaves.
type recorder struct {
	http.ResponseWriter
	statuses *[]int
}

func (r *recorder) WriteHeader(status int) {
	*r.statuses = append(*r.statuses, status)
	r.ResponseWriter.WriteHeader(status)
}

// TestKnown: when the server may keep the bytes.
func TestKnown(t *testing.T) {
	source, _ := Lookup("sat_69b")
	base := func() *ingestion {
		return &ingestion{
			source:     &source,
			active:     &snapshots.Version{SHA256: "aa", Reader: query.Sat69B.Reader},
			validators: &snapshots.Validators{URL: "https://a.mx/x", ETag: `"1"`, LastModified: "ayer", SHA256: "aa"},
		}
	}
	f := func(what string, want bool, change func(in *ingestion)) {
		t.Helper()
		in := base()
		change(in)
		if v := in.known("https://a.mx/x"); (v != nil) != want || want && *v != (validators{`"1"`, "ayer"}) {
			t.Errorf("%s: %+v", what, v)
		}
	}
	f("as it was", true, func(*ingestion) {})
	f("never asked", false, func(in *ingestion) { in.validators = nil })
	f("nothing in service", false, func(in *ingestion) { in.active = nil })
	f("other bytes in service", false, func(in *ingestion) { in.active.SHA256 = "bb" })
	f("another address", false, func(in *ingestion) { in.validators.URL = "https://b.mx/x" })
	f("to be read again", false, func(in *ingestion) { in.active.Reader-- })
	f("to be dated anew", false, func(in *ingestion) { in.Corte = civil.Date{Year: 2026, Month: 9, Day: 1} })
}

func TestValidators(t *testing.T) {
	f := func(etag, modified string, want validators) {
		t.Helper()
		h := http.Header{}
		h.Set("ETag", etag)
		h.Set("Last-Modified", modified)
		if got := validatorsOf(h); got != want {
			t.Errorf("%s, %s: %+v", etag, modified, got)
		}
	}
	f(`"0x8DE854BE10B2BAC"`, "x", validators{`"0x8DE854BE10B2BAC"`, "x"})
	f("0x8DE854BE10B2BAC", "", validators{"0x8DE854BE10B2BAC", ""}) // the authority's storage sent it so
	f(`W/"1"`, "x", validators{"", "x"})
	f(strings.Repeat("x", maxValidator+1), strings.Repeat("x", maxValidator+1), validators{})
}

// TestRetriesAreReported: whoever waits is told why.
func TestRetriesAreReported(t *testing.T) {
	longest(t)
	fx := newFixture(t)
	s := faults(t, "")
	var steps []Step
	if _, err := fx.ingest(Request{Mirror: s.URL + "/503", Progress: func(s Step) { steps = append(steps, s) }}); err == nil {
		t.Fatal("no error")
	}
	want := []Step{{Phase: Locating}, {Phase: Locating, Done: true}}
	for i, wait := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		want = append(want, Step{Phase: Waiting, Attempt: i + 2, Attempts: 4, Wait: wait, Reason: "respondió 503 Service Unavailable"})
	}
	for i := range want {
		want[i].Source = "sat_69b"
	}
	if !slices.Equal(steps, want) {
		t.Errorf("got\n%+v\nwant\n%+v", steps, want)
	}
}

func TestFigures(t *testing.T) {
	hurried(t)
	tr := newTrial(t, "sat_69b")
	value := func(name string) string {
		t.Helper()
		var b bytes.Buffer
		metrics.WritePrometheus(&b, false)
		for line := range strings.Lines(b.String()) {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				return strings.TrimSpace(rest)
			}
		}
		return ""
	}
	unchanged, failed, waits := attempts("sat_69b", "sin_cambio"), attempts("sat_69b", "fallida"), retries("sat_69b")
	before := [3]uint64{unchanged.Get(), failed.Get(), waits.Get()}
	good := tr.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tr.good) })
	if _, err := tr.ingest(Request{Mirror: good.URL}); err != nil {
		t.Fatal(err)
	}
	tr.failed(Request{Mirror: tr.serve(answer(500)).URL}, ErrUnavailable, "500", 4)
	if got := [3]uint64{unchanged.Get() - before[0], failed.Get() - before[1], waits.Get() - before[2]}; got != [3]uint64{1, 1, 3} {
		t.Errorf("unchanged, failed, waits: %v", got)
	}
	// What a start loads for test keys is no attempt to renew a source.
	count, ended := value(`cotejo_ingest_seconds_count{source="sat_69b"}`), failed.Get()
	if _, err := tr.ingest(Request{Name: "x.csv", Content: func() (io.ReadCloser, error) { return nil, errors.New("no") }}); err == nil {
		t.Error("no error")
	}
	if again := value(`cotejo_ingest_seconds_count{source="sat_69b"}`); again != count || failed.Get() != ended {
		t.Errorf("bytes of this program were counted: %s, before %s", again, count)
	}
	for _, name := range []string{
		`cotejo_source_attempts_total{source="sat_69b",outcome="sin_cambio"}`,
		`cotejo_ingest_seconds_count{source="sat_69b"}`, `cotejo_download_retries_total{source="sat_69b"}`,
	} {
		if v := value(name); v == "" || v == "0" {
			t.Errorf("%s is %q", name, v)
		}
	}
}
