package ingest

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cotejo/civil"
	"cotejo/ingest/sat69b"
	"cotejo/snapshots"
)

// standings gives rows written as "RFC situation".
func standings(rows ...string) func(add func(rfc, situation string) error) error {
	return func(add func(rfc, situation string) error) error {
		for _, row := range rows {
			rfc, situation, _ := strings.Cut(row, " ")
			if err := add(rfc, situation); err != nil {
				return err
			}
		}
		return nil
	}
}

func rollOfRows(t *testing.T, rows ...string) Roll {
	t.Helper()
	r := Roll{}
	if err := standings(rows...)(r.add); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCompare(t *testing.T) {
	complete := rollOfRows(t, "A Definitivo", "B Presunto", "A Presunto", "C Definitivo", "A Definitivo",
		"XXXXXXXXXXXX Definitivo", "XXXXXXXXXXXX Definitivo", "XXXXXXXXXXXX Presunto")
	f := func(situation string, partial []string, want Difference) {
		t.Helper()
		got, err := Compare(complete, situation, standings(partial...))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v: %v; -want +got\n%s", partial, err, diff)
		}
	}
	all := []string{"XXXXXXXXXXXX Definitivo", "C Definitivo", "A Definitivo", "XXXXXXXXXXXX Definitivo", "A Definitivo"}
	f("Definitivo", all, Difference{})
	f("Definitivo", all[1:], Difference{Missing: 1, Example: []string{"XXXXXXXXXXXX Definitivo"}})
	f("Definitivo", all[2:], Difference{Missing: 2, Example: []string{"C Definitivo", "XXXXXXXXXXXX Definitivo"}})
	f("Definitivo", append([]string{"A Definitivo", "D Definitivo"}, all...), Difference{Extra: 2, Example: []string{"D Definitivo", "A Definitivo"}})
	f("Definitivo", []string{"A Presunto", "B Presunto", "XXXXXXXXXXXX Presunto"}, // another list under its name
		Difference{Missing: 5, Extra: 3, Example: []string{"A Definitivo", "C Definitivo", "XXXXXXXXXXXX Definitivo", "A Presunto", "B Presunto", "XXXXXXXXXXXX Presunto"}})
	f("Presunto", nil, Difference{Missing: 3, Example: []string{"A Presunto", "B Presunto", "XXXXXXXXXXXX Presunto"}})
	f("Desvirtuado", nil, Difference{})
	f("Desvirtuado", []string{"A Desvirtuado"}, Difference{Extra: 1, Example: []string{"A Desvirtuado"}})

	// Examples are few and short, whatever comes.
	var many, others []string
	for i := range 100 {
		many = append(many, "R"+strconv.Itoa(1000+i)+" Presunto")
		others = append(others, "S"+strings.Repeat("Ñ", 1000)+" Presunto")
	}
	d, err := Compare(rollOfRows(t, many...), "Presunto", standings(others...))
	if err != nil || d.Missing != 100 || d.Extra != 100 || len(d.Example) != 10 || d.Example[4] != "R1004 Presunto" || utf8.RuneCountInString(d.Example[9]) != maxExampleRunes+1 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = Compare(Roll{}, "Presunto", standings(many...)); err != nil || len(d.Example) != 10 || d.Example[9] != "R1009 Presunto" {
		t.Errorf("%+v, %v", d, err)
	}
	mine := errors.New("mine")
	if _, err := Compare(complete, "Presunto", func(func(string, string) error) error { return mine }); err != mine {
		t.Errorf("of partial: %v", err)
	}
}

// beside serves a complete list and, beside it, whatever a test puts into files.
func beside(t *testing.T, official string, files map[string]http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dir, name := path.Split(r.URL.Path)
		switch {
		case r.URL.Path == indexPath:
			_, _ = io.WriteString(w, `<a href="/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv">Listado completo</a>`)
		case dir != "/Datos_abiertos/Documents_AGAFF/":
			http.NotFound(w, r)
		case name == "Listado_completo_69-B.csv":
			_, _ = io.WriteString(w, official)
		case files[name] == nil:
			http.NotFound(w, r)
		default:
			files[name](w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func text(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }
}

// partial is a list in the official form of the partial ones.
func partial(corte string, rows ...string) string {
	return "Informaci\xf3n actualizada al " + corte + ",,,,,\r\nListado completo de contribuyentes (Art\xedculo 69-B del CFF),,,,,\r\n" +
		"No.,RFC,Nombre del Contribuyente,Situaci\xf3n del contribuyente,,\r\n" + strings.Join(rows, ",,\r\n") + ",,\r\n,,,,,\r\n"
}

const cut31 = "31 de agosto de 2026"

func TestPartials(t *testing.T) {
	hurried(t)
	definitivos := []string{"1,\xd1&A010101AA1,x,Definitivo", "2,XXXXXXXXXXXX,x,Definitivo", "3,XXXXXXXXXXXX,y,Definitivo"}
	files := map[string]http.HandlerFunc{
		"Definitivos.csv":          text(partial(cut31, definitivos...)),
		"Presuntos.csv":            text(partial(cut31, "1,PELJ800101AA1,x,Presunto", "2,NUE010101AA1,x,Presunto")),
		"Desvirtuados.csv":         text(partial("31 de julio de 2026")),
		"SentenciasFavorables.csv": text("<html>"),
	}
	mirror := beside(t, list(t), files)
	fx := newFixture(t)
	r, err := fx.ingest(Request{Mirror: mirror})
	if err != nil || r.Outcome != Activated {
		t.Fatalf("%s, %v", r.Outcome, err)
	}
	sum := sha256.Sum256([]byte(partial(cut31, definitivos...)))
	a := fx.attempted(Activated, 1)
	if len(a.Partials) != 4 {
		t.Fatalf("partials: %+v", a.Partials)
	}
	p := a.Partials[0]
	want := snapshots.Partial{
		File: "Definitivos.csv", URL: mirror + "/Datos_abiertos/Documents_AGAFF/Definitivos.csv", SHA256: hex.EncodeToString(sum[:]),
		Corte: civil.Date{Year: 2026, Month: time.August, Day: 31}, Rows: 3, State: "concuerda",
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	p = a.Partials[1]
	p.URL, p.SHA256 = "", ""
	want = snapshots.Partial{
		File: "Presuntos.csv", Corte: want.Corte, Rows: 2, State: "difiere", Missing: 1, Extra: 1,
		Example: []string{"XXXXXXXXXXXX Presunto", "NUE010101AA1 Presunto"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if p := a.Partials[2]; p.State != "otro_corte" || p.Corte.String() != "2026-07-31" || p.Missing != 0 || p.Extra != 0 {
		t.Errorf("%+v", p)
	}
	if p := a.Partials[3]; p.State != "no_obtenido" || !strings.Contains(p.Message, "página web") {
		t.Errorf("%+v", p)
	}
	if len(a.Notices) != 1 || a.Notices[0].Code != "PARCIAL_DIFIERE" || !strings.Contains(a.Notices[0].Message, "Presuntos.csv (corte 2026-08-31)") ||
		!strings.Contains(a.Notices[0].Message, "le faltan 1 filas y le sobran 1") {
		t.Errorf("notices: %+v", a.Notices)
	}

	// They are looked at again when the complete list has not changed.
	files["Presuntos.csv"] = text(partial(cut31, "1,PELJ800101AA1,x,Presunto", "2,XXXXXXXXXXXX,x,Presunto"))
	files["Desvirtuados.csv"] = text(partial(cut31, definitivos...)) // a wrong list under a right name
	files["SentenciasFavorables.csv"] = text(partial("de hoy", "1,DIN010101AA1,x,sentencia favorable"))
	if r, err = fx.ingest(Request{Mirror: mirror}); err != nil || r.Outcome != Unchanged {
		t.Fatalf("%s, %v", r.Outcome, err)
	}
	a = fx.attempted(Unchanged, 1)
	var states []string
	for _, p := range a.Partials {
		states = append(states, p.State)
	}
	if got := strings.Join(states, " "); got != "concuerda concuerda difiere concuerda" || a.Partials[2].Missing != 1 || a.Partials[2].Extra != 3 || len(a.Notices) != 1 {
		t.Errorf("%s: %+v, %+v", got, a.Partials[2], a.Notices)
	}
}

// TestPartialsNeverFailTheIngestion: none of the ways in which a list cannot be
// had says anything against the complete one.
func TestPartialsNeverFailTheIngestion(t *testing.T) {
	hurried(t)
	official := list(t)
	f := func(says string, serve http.HandlerFunc) {
		t.Helper()
		files := map[string]http.HandlerFunc{}
		for _, list := range partials69B {
			files[list.file] = serve
		}
		fx := newFixture(t)
		if r, err := fx.ingest(Request{Mirror: beside(t, official, files)}); err != nil || r.Outcome != Activated {
			t.Fatalf("%s: %s, %v", says, r.Outcome, err)
		}
		a := fx.attempted(Activated, 1)
		if len(a.Partials) != 4 || len(a.Notices) != 0 {
			t.Fatalf("%s: %+v, %+v", says, a.Partials, a.Notices)
		}
		for _, p := range a.Partials {
			if p.State != "no_obtenido" || !strings.Contains(p.Message, says) || p.Missing != 0 || p.Extra != 0 || len(p.Message) > 2*maxPartialMessage {
				t.Errorf("%s: %+v", says, p)
			}
		}
	}
	f("404", nil)
	f("está vacío", text(""))
	f("«RFC» y «Situación del contribuyente»", text("RFC,Nombre\nA,B\n"))
	f("llegaron 4 de 100 bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "RFC,")
	})
	f("tamaño máximo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(maxPartial+1))
	})
	f("tamaño máximo", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, repeating{}) })
	f("otro servidor", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://otro.example/x.csv", http.StatusFound)
	})
	f("línea 1", text("\"RFC\"x"))
}

// TestPartialsOfFiles: what someone had beside a file is not known.
func TestPartialsOfFiles(t *testing.T) {
	fx := newFixture(t)
	fx.bytes(list(t), Activated)
	if a := fx.attempted(Activated, 1); a.Partials != nil {
		t.Errorf("%+v", a.Partials)
	}
	if _, err := fx.ingest(Request{File: fx.file("x.csv", list(t))}); err != nil {
		t.Fatal(err)
	}
	if a := fx.attempted(Unchanged, 1); a.Partials != nil {
		t.Errorf("%+v", a.Partials)
	}
	// Nor is anything looked for beside a list that does not serve.
	mirror := beside(t, strings.Replace(list(t), "Publicaci\xf3n DOF definitivos", "Otra", 1), nil)
	if r, err := fx.ingest(Request{Mirror: mirror}); err != nil || r.Outcome != Quarantined {
		t.Fatalf("%s, %v", r.Outcome, err)
	}
	if a := fx.attempted(Quarantined, 2); a.Partials != nil {
		t.Errorf("%+v", a.Partials)
	}
}

// TestPartialsInterrupted: the complete list was published by then and stays so.
func TestPartialsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	files := map[string]http.HandlerFunc{
		"Definitivos.csv": text(partial(cut31)),
		"Presuntos.csv":   func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() },
	}
	fx := newFixture(t)
	fx.now = fx.now.Add(time.Hour)
	r, err := Ingest(ctx, fx.c, Request{Source: "sat_69b", Mirror: beside(t, list(t), files), Now: fx.now})
	if err != nil || r.Outcome != Activated || fx.edition() != 1 {
		t.Fatalf("%s, %v", r.Outcome, err)
	}
	if a := fx.attempted(Activated, 1); a.Partials != nil {
		t.Errorf("%+v", a.Partials)
	}
}

// TestRealPartials compares the real partial lists of 31 January 2026 with the
// complete one of that day, of which only three columns are left.
func TestRealPartials(t *testing.T) {
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "shared")
	}
	open := func(name string) snapshots.Opener {
		return func() (io.ReadCloser, error) {
			file, err := os.Open(filepath.Join(root, "data", "mx-sources", "sat-69b", name))
			if err != nil {
				return nil, err
			}
			unpacked, err := gzip.NewReader(file)
			if err != nil {
				return nil, errors.Join(err, file.Close())
			}
			return &unpacking{Reader: unpacked, file: file}, nil
		}
	}
	complete, err := rollOf(t.Context(), open("Listado_completo_69-B_2026-03_3cols-utf8.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skip("no están las listas oficiales: ponga COTEJO_SHARED")
	}
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for situation, listed := range complete {
		for _, n := range listed {
			counts[situation] += n
		}
	}
	if diff := cmp.Diff(map[string]int{"Definitivo": 11336, "Presunto": 966, "Desvirtuado": 340, "Sentencia Favorable": 1638}, counts); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	f := func(name, situation string) {
		t.Helper()
		rows := 0
		d, err := Compare(complete, situation, func(add func(rfc, situation string) error) error {
			sum, err := sat69b.ReadPartial(open(name), add)
			rows = sum.Rows
			return err
		})
		if diff := cmp.Diff(Difference{}, d); err != nil || diff != "" || rows != counts[situation] {
			t.Errorf("%s: %d rows, %v; -want +got\n%s", name, rows, err, diff)
		}
	}
	f("Definitivos_2026-01-31.csv.gz", "Definitivo")
	f("Presuntos_2026-01-31.csv.gz", "Presunto")
	f("Desvirtuados_2026-01-31.csv.gz", "Desvirtuado")
}
