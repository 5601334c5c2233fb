// Package mirror stands in for the official servers in demonstrations and
// tests: it serves, under the official paths, a few successive versions of each
// publication, every row of them invented.
//
// It promises that the files look like the official ones down to the byte
// (encoding, line ends, header, every oddity that was measured on the real
// files; README.md says which row carries which) and that what it answers
// depends on nothing but the stage: no clock, no randomness. It is imported by
// the demonstration, the benchmarks and tests, never by the service.
package mirror

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"cotejo/civil"
)

// Stages is how many successive versions there are, numbered 0 to Stages-1.
const Stages = 4

// Official paths. Those of lists are below the storage container of the
// authority, that of the index page is on its web server.
const (
	// Listado69B is the complete list under article 69-B, Definitivos and its
	// siblings the lists of one situation each that are published beside it.
	Listado69B           = "/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv"
	Definitivos          = "/Datos_abiertos/Documents_AGAFF/Definitivos.csv"
	Presuntos            = "/Datos_abiertos/Documents_AGAFF/Presuntos.csv"
	Desvirtuados         = "/Datos_abiertos/Documents_AGAFF/Desvirtuados.csv"
	SentenciasFavorables = "/Datos_abiertos/Documents_AGAFF/SentenciasFavorables.csv"
	// Listado69BBis is the list under article 69-B Bis.
	Listado69BBis = "/Datos_abiertos/Documents_AGGC/Listado_69_B_Bis_Completo.csv"
	// Index is the page that links all of them, by their official addresses.
	Index = "/minisitio/DatosAbiertos/contribuyentes_publicados.html"
)

var lists = []string{Listado69B, Definitivos, Presuntos, Desvirtuados, SentenciasFavorables, Listado69BBis}

// container is the first element of the official path. A mirror answers with
// and without it, so that its address can stand for the official host or for
// the container.
const container = "/agsc-publicaciones"

//go:embed data
var data embed.FS

// edition is the day that a file states and the moment at which the server says
// it was last modified.
type edition struct {
	corte    civil.Date
	modified time.Time
}

// calendar holds the lists under article 69-B by stage. The authority publishes a
// month's end two to four weeks later.
var calendar = [Stages]edition{
	{civil.Date{Year: 2026, Month: 5, Day: 31}, time.Date(2026, 6, 17, 17, 4, 21, 0, time.UTC)},
	{civil.Date{Year: 2026, Month: 6, Day: 30}, time.Date(2026, 7, 20, 16, 41, 8, 0, time.UTC)},
	{civil.Date{Year: 2026, Month: 7, Day: 31}, time.Date(2026, 8, 19, 18, 12, 50, 0, time.UTC)},
	{civil.Date{Year: 2026, Month: 8, Day: 31}, time.Date(2026, 9, 18, 15, 30, 2, 0, time.UTC)},
}

// calendarBis holds the list under article 69-B Bis by stage: it has been
// published twice.
var calendarBis = [Stages]edition{firstBis, firstBis, secondBis, secondBis}

var (
	firstBis  = edition{civil.Date{Year: 2026, Month: 5, Day: 15}, time.Date(2026, 5, 22, 16, 20, 9, 0, time.UTC)}
	secondBis = edition{civil.Date{Year: 2026, Month: 7, Day: 15}, time.Date(2026, 7, 24, 17, 55, 40, 0, time.UTC)}
)

// File returns a publication as it is at a stage, by its official path. The
// bytes are the caller's. ok is false when there is no such file or stage.
func File(stage int, name string) (content []byte, ok bool) {
	if stage < 0 || stage >= Stages {
		return nil, false
	}
	if name == Index {
		return index(stage), true
	}
	if content, ok := catalogFile(stage, name); ok {
		return content, true
	}
	if content, ok := contractsFile(stage, name); ok {
		return content, true
	}
	if content, ok := sanctionsFile(stage, name); ok {
		return content, true
	}
	name = strings.TrimPrefix(name, container)
	if content, ok := art69File(stage, name); ok {
		return content, true
	}
	if !slices.Contains(lists, name) {
		return nil, false
	}
	content, err := data.ReadFile(fmt.Sprintf("data/%d/%s", stage, path.Base(name)))
	return content, err == nil
}

// Corte returns the day that the lists under article 69-B state at a stage.
func Corte(stage int) civil.Date { return calendar[stage].corte }

// CorteBis returns the day that the list under article 69-B Bis states at a stage.
func CorteBis(stage int) civil.Date { return calendarBis[stage].corte }

// Modified returns the Last-Modified moment of the lists under article 69-B, and
// of the index page, at a stage.
func Modified(stage int) time.Time { return calendar[stage].modified }

//go:embed data/contribuyentes_publicados.html
var indexPage string

// index is the index page of a stage: only the dates on it change.
func index(stage int) []byte {
	return []byte(strings.NewReplacer(
		"{69-B}", written(Corte(stage)), "{69-B Bis}", written(CorteBis(stage)), "{69}", written(DayFirmes(stage)),
	).Replace(indexPage))
}

var months = [...]string{
	"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
}

// written is a day as the authority writes it.
func written(d civil.Date) string {
	return fmt.Sprintf("%02d de %s de %d", d.Day, months[d.Month-1], d.Year)
}

// Handler serves the files of the stage that stage returns, asked at every
// request: GET and HEAD, with Last-Modified, ETag and Content-Length, and 304
// for a matching If-None-Match. An unknown path or stage is 404.
func Handler(stage func() int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := stage()
		content, ok := File(n, r.URL.Path)
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "solo GET y HEAD", http.StatusMethodNotAllowed)
			return
		}
		kind, modified := "application/octet-stream", Modified(n)
		if at := art69Modified(n, r.URL.Path); !at.IsZero() {
			modified = at
		}
		switch path.Base(r.URL.Path) {
		case path.Base(Index):
			kind = "text/html; charset=utf-8"
		case path.Base(Listado69BBis):
			modified = calendarBis[n].modified
		case path.Base(FIX), path.Base(SPEI):
			kind, modified = "application/json; charset=utf-8", time.Time{} // made when it is asked for
		case path.Base(Numbering):
			kind, modified = "text/csv; charset=utf-8", calendar[0].modified
		}
		if strings.HasPrefix(r.URL.Path, contracts) {
			kind, modified = "text/csv", contractsModified(n, r.URL.Path)
		}
		if as, at, ok := sanctionsKind(n, r.URL.Path); ok {
			kind, modified = as, at
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("ETag", etag(content))
		http.ServeContent(w, r, "", modified, bytes.NewReader(content))
	})
}

// etag has the shape of the authority's storage service.
func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return fmt.Sprintf(`"0x8D%X"`, sum[:6])
}
