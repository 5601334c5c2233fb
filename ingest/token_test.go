package ingest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// canary is a token as Banco de México gives them; no file, error or address may
// ever hold it.
const canary = "c4a4r1o0c4a4r1o0c4a4r1o0c4a4r1o0c4a4r1o0c4a4r1o0c4a4r1o0c4a4r1o0"

// standIn makes a server the official one of a source while the test runs.
func standIn(t *testing.T, source string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	for i := range registry {
		if registry[i].Schema.Source == source {
			base := registry[i].base
			registry[i].base = s.URL
			t.Cleanup(func() { registry[i].base = base })
		}
	}
	t.Cleanup(s.Close)
	return s
}

func (f *fixture) tokenFile(mode fs.FileMode) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(canary+"\n"), mode); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// fixOf downloads the FIX.
func (f *fixture) fixOf(r Request) (Result, error) {
	f.now = f.now.Add(24 * 60 * 60 * 1e9)
	r.Source, r.Now = "banxico_fix", f.now
	return Ingest(f.t.Context(), f.c, r)
}

// untold fails when the canary is in any file of the catalogue, official bytes
// included, or in an error.
func (f *fixture) untold(err error) {
	f.t.Helper()
	if err != nil && strings.Contains(err.Error(), canary) {
		f.t.Errorf("the error tells the token: %v", err)
	}
	files := 0
	walked := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(canary)) {
			f.t.Errorf("%s has the token", path)
		}
		return err
	})
	all, _, err := f.c.Versions()
	if walked != nil || err != nil {
		f.t.Fatal(walked, err)
	}
	for _, v := range all {
		r, err := f.c.Official(v)
		if err != nil {
			f.t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || bytes.Contains(content, []byte(canary)) {
			f.t.Errorf("version %d has the token, %v", v.ID, err)
		}
	}
}

// TestTokenTravelsInTheHeader, and to the official server only.
func TestTokenTravelsInTheHeader(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	token := Access{TokenFile: f.tokenFile(0o600)}
	said := func(h http.HandlerFunc) (seen []*http.Request, r Result, err error) {
		t.Helper()
		s := standIn(t, "banxico_fix", func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r)
			h(w, r)
		})
		defer s.Close()
		r, err = f.fixOf(Request{Access: token})
		f.untold(err)
		for _, q := range seen {
			if strings.Contains(q.URL.String(), canary) || q.Referer() != "" {
				t.Errorf("%s", q.URL)
			}
		}
		return seen, r, err
	}
	series, _ := mirror.File(3, mirror.FIX)
	seen, r, err := said(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(series) })
	if err != nil || r.Outcome != Activated || len(seen) != 1 || seen[0].Header.Get("Bmx-Token") != canary || seen[0].URL.RequestURI() != mirror.FIX {
		t.Fatalf("%s %v %v", r.Outcome, r.Faults, err)
	}
	if v := r.Version; v.Corte != mirror.LastFIX(3) || v.CorteFrom != snapshots.CorteOfFile || !strings.HasSuffix(v.URL, mirror.FIX) {
		t.Errorf("%+v", v)
	}

	// Refusals of every kind; one that repeats the token is not even kept.
	before := f.versions()
	for _, status := range []int{400, 401, 403} {
		_, _, err = said(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"mensaje":"`+canary+`","detalle":""}}`)
		})
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "revise que el token de banxico_token_file") {
			t.Errorf("%d: %v", status, err)
		}
	}
	_, _, err = said(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"error":{"mensaje":"El token `+canary+` no es válido","detalle":""}}`)
	})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "repite el token") || f.versions() != before {
		t.Errorf("%v, %d versions", err, f.versions())
	}
	_, r, err = said(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"error":{"mensaje":"Token bloqueado","detalle":"demasiadas consultas"}}`)
	})
	if err != nil || r.Outcome != Quarantined || r.Faults[0].Code != tabular.Rejected || !strings.Contains(r.Faults[0].Message, "Token bloqueado") {
		t.Errorf("%s %v %v", r.Outcome, r.Faults, err)
	}
	if _, err := f.accept(r.Version.ID); !errors.Is(err, ErrUndecidable) {
		t.Errorf("a refusal was accepted: %v", err)
	}

	// Another host, which a redirect leads to, is not asked.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was asked, with %q", r.Header.Get("Bmx-Token"))
	}))
	defer elsewhere.Close()
	if _, _, err = said(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "redirige a otro servidor") {
		t.Errorf("%v", err)
	}

	// A mirror gives the same bytes and is told nothing.
	copied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Bmx-Token") != "" {
			t.Error("the mirror was given the token")
		}
		_, _ = w.Write(series)
	}))
	defer copied.Close()
	if r, err := f.fixOf(Request{Mirror: copied.URL, Access: token}); err != nil || r.Outcome != Unchanged {
		t.Errorf("%s %v %v", r.Outcome, r.Faults, err)
	}
}

// TestUnconfigured: nobody is asked, nothing is recorded, and it says how.
func TestUnconfigured(t *testing.T) {
	f := newFixture(t)
	for source, says := range map[string]string{
		"banxico_fix":    "pídalo sin costo en https://www.banxico.org.mx/SieAPIRest/service/v1/token",
		"ift_numeracion": "fuentes.ift_numeracion.url",
	} {
		_, err := Ingest(t.Context(), f.c, Request{Source: source, Now: f.now})
		if !errors.Is(err, ErrUnconfigured) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", source, err)
		}
		if a, ok, err := f.c.LastAttempt(source); ok || err != nil {
			t.Errorf("%+v %v", a, err)
		}
	}
	for _, source := range []string{"sat_69b", "sat_69b_bis", "banxico_spei"} {
		if s, _ := Lookup(source); s.Lacks(Access{}) != "" {
			t.Errorf("%s lacks %s", source, s.Lacks(Access{}))
		}
	}
}

// TestTokenFile: it is a secret, and is refused without being shown.
func TestTokenFile(t *testing.T) {
	fx := newFixture(t)
	f := func(source, path, says string) {
		t.Helper()
		err := Access{TokenFile: path}.Check(source)
		if says == "" && err == nil {
			return
		}
		if !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), says) || says == "" || strings.Contains(err.Error(), canary[:16]) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	written := func(content string) string {
		path := fx.file("token", content)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f("banxico_fix", fx.tokenFile(0o600), "")
	f("banxico_fix", fx.tokenFile(0o644), "lo pueden leer otros: chmod 600")
	f("banxico_fix", fx.tokenFile(0o640), "banxico_token_file")
	f("banxico_fix", "/no/existe", "banxico_token_file")
	f("banxico_fix", written(""), "no tiene un token")
	f("banxico_fix", written(canary+"\n"+canary), "no tiene un token")
	f("banxico_fix", written(canary+"\r\nX-Otro: 1"), "no tiene un token")
	f("banxico_fix", written(strings.Repeat("a", maxToken+1)), "no tiene un token")
	f("sat_69b", fx.tokenFile(0o600), "no usa ningún token")
}

// TestSeriesInService: what was published does not change without a person.
func TestSeriesInService(t *testing.T) {
	f := newFixture(t)
	series := func(stage int) []byte {
		content, ok := mirror.File(stage, mirror.FIX)
		if !ok {
			t.Fatal("no series")
		}
		return content
	}
	put := func(content []byte, want Outcome, codes ...string) Result {
		t.Helper()
		r, err := f.fixOf(Request{Name: "datos.json", Content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }})
		if err != nil || r.Outcome != want || !slices.Equal(codesOf(r.Faults), codes) {
			t.Fatalf("%s %v %v, want %s %v", r.Outcome, r.Faults, err, want, codes)
		}
		return r
	}
	put(series(0), Activated)
	put(series(1), Activated)
	put(series(1), Unchanged)
	// A day shorter is a loss, though far less than a tenth.
	put(series(0), Quarantined, tabular.OlderCut, tabular.FewerRows)
	day := mirror.LastFIX(0)
	old := []byte(mirror.InventedFIX(day).String())
	changed := bytes.Replace(series(2), old, []byte("16.1234"), 1)
	r := put(changed, Quarantined, tabular.Changed)
	if !strings.Contains(r.Faults[0].Message, day.String()+" ("+string(old)+", ahora 16.1234)") {
		t.Errorf("%s", r.Faults[0].Message)
	}
	if e, _ := f.serving("banxico_fix"); e.Corte != mirror.LastFIX(1) {
		t.Errorf("%+v serves", e)
	}
	// Whoever has looked may let it serve; the next one follows it.
	if accepted, err := f.accept(r.Version.ID); err != nil || accepted.Outcome != Activated {
		t.Fatalf("%v", err)
	}
	put(bytes.Replace(series(3), old, []byte("16.1234"), 1), Activated)
	put(series(3), Quarantined, tabular.Changed)
	events := 0
	ed, err := f.c.OpenEdition(must(f.c.LatestEdition()))
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	if err := ed.Source("banxico_fix").Past(day.String(), func(p snapshots.Past) error { events += len(p.Events); return nil }); err != nil || events != 1 {
		t.Errorf("%d events, %v", events, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (f *fixture) serving(source string) (e snapshots.EditionEntry, ok bool) {
	f.t.Helper()
	for _, e := range must(f.c.LatestEdition()).Sources {
		if e.Source == source {
			return e, true
		}
	}
	return e, false
}

// TestAddresses: the list of participants is asked for by day, and the numbering
// plan where the operator says it is; what is recorded is the public address.
func TestAddresses(t *testing.T) {
	hurried(t)
	f := newFixture(t)
	var asked string
	served := func(name string) http.HandlerFunc {
		content, ok := mirror.File(3, name)
		if !ok {
			t.Fatal(name)
		}
		return func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.RequestURI()
			_, _ = w.Write(content)
		}
	}
	s := standIn(t, "banxico_spei", served(mirror.SPEI))
	r, err := Ingest(t.Context(), f.c, Request{Source: "banxico_spei", Now: f.now})
	if err != nil || r.Outcome != Activated || asked != "/cep/instituciones.do?fecha=19-09-2026" || r.Version.URL != s.URL+asked || r.Version.Rows != 100 {
		t.Errorf("%s %v %v, asked %s", r.Outcome, r.Version, err, asked)
	}
	if v := r.Version; !v.Corte.IsZero() || v.OrderDate.String() != "2026-09-19" {
		t.Errorf("%+v", v)
	}
	plan := httptest.NewServer(served(mirror.Numbering))
	defer plan.Close()
	withSecret := strings.Replace(plan.URL, "http://", "http://quien:clave@", 1) + "/pnn_01.csv"
	r, err = Ingest(t.Context(), f.c, Request{Source: "ift_numeracion", Now: f.now, Access: Access{URL: withSecret}})
	if err != nil || r.Outcome != Activated || asked != "/pnn_01.csv" || r.Version.Obtained != plan.URL+"/pnn_01.csv" || !strings.HasSuffix(r.Version.URL, "descarga-publica.xhtml") {
		t.Errorf("%s %+v %v", r.Outcome, r.Version, err)
	}
	if err := (Access{URL: "pnn.csv"}).Check("ift_numeracion"); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), "fuentes.ift_numeracion.url") {
		t.Errorf("%v", err)
	}
}
