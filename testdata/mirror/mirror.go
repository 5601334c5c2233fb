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
	"strings"
	"time"

	"cotejo/civil"
)

// Stages is how many successive versions there are, numbered 0 to Stages-1.
const Stages = 4

// Listado69B is the official path of the complete list under article 69-B,
// below the storage container of the authority.
const Listado69B = "/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv"

// container is the first element of the official path. A mirror answers with
// and without it, so that its address can stand for the official host or for
// the container.
const container = "/agsc-publicaciones"

//go:embed data
var data embed.FS

// calendar holds, by stage, the day that the file states and the moment at
// which the server says it was last modified. The authority publishes a month's
// end two to four weeks later.
var calendar = [Stages]struct {
	corte    civil.Date
	modified time.Time
}{
	{civil.Date{Year: 2026, Month: 5, Day: 31}, time.Date(2026, 6, 17, 17, 4, 21, 0, time.UTC)},
	{civil.Date{Year: 2026, Month: 6, Day: 30}, time.Date(2026, 7, 20, 16, 41, 8, 0, time.UTC)},
	{civil.Date{Year: 2026, Month: 7, Day: 31}, time.Date(2026, 8, 19, 18, 12, 50, 0, time.UTC)},
	{civil.Date{Year: 2026, Month: 8, Day: 31}, time.Date(2026, 9, 18, 15, 30, 2, 0, time.UTC)},
}

// File returns a publication as it is at a stage, by its official path. The
// bytes are the caller's. ok is false when there is no such file or stage.
func File(stage int, path string) (content []byte, ok bool) {
	if stage < 0 || stage >= Stages || strings.TrimPrefix(path, container) != Listado69B {
		return nil, false
	}
	content, err := data.ReadFile(fmt.Sprintf("data/%d/Listado_completo_69-B.csv", stage))
	return content, err == nil
}

// Corte returns the day that the files of a stage state they are of.
func Corte(stage int) civil.Date { return calendar[stage].corte }

// Modified returns the Last-Modified moment of the files of a stage.
func Modified(stage int) time.Time { return calendar[stage].modified }

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
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("ETag", etag(content))
		http.ServeContent(w, r, "", Modified(n), bytes.NewReader(content))
	})
}

// etag has the shape of the authority's storage service.
func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return fmt.Sprintf(`"0x8D%X"`, sum[:6])
}
