package mirror

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

const header = "No,RFC,Nombre del Contribuyente,Situación del contribuyente," +
	"Número y fecha de oficio global de presunción SAT,Publicación página SAT presuntos," +
	"Número y fecha de oficio global de presunción DOF,Publicación DOF presuntos," +
	"Número y fecha de oficio global de contribuyentes que desvirtuaron SAT,Publicación página SAT desvirtuados," +
	"Número y fecha de oficio global de contribuyentes que desvirtuaron DOF,Publicación DOF desvirtuados," +
	"Número y fecha de oficio global de definitivos SAT,Publicación página SAT definitivos," +
	"Número y fecha de oficio global de definitivos DOF,Publicación DOF definitivos," +
	"Número y fecha de oficio global de sentencia favorable SAT,Publicación página SAT sentencia favorable," +
	"Número y fecha de oficio global de sentencia favorable DOF,Publicación DOF sentencia favorable"

func raw(t *testing.T, stage int) []byte {
	t.Helper()
	b, ok := File(stage, Listado69B)
	if !ok {
		t.Fatalf("stage %d has no 69-B file", stage)
	}
	return b
}

func text(t *testing.T, stage int) string {
	t.Helper()
	b, err := charmap.Windows1252.NewDecoder().Bytes(raw(t, stage))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// records returns the rows below the header, without the filler rows.
func records(t *testing.T, stage int) (rows [][]string, filler int) {
	t.Helper()
	r := csv.NewReader(strings.NewReader(text(t, stage)))
	r.FieldsPerRecord = 20
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all[3:] {
		if strings.Join(row, "") == "" {
			filler++
		} else {
			rows = append(rows, row)
		}
	}
	return rows, filler
}

func TestLayout(t *testing.T) {
	months := map[string]string{"mayo": "05", "junio": "06", "julio": "07", "agosto": "08"}
	corte := regexp.MustCompile(`(?i)actualizada\s+al\s+(\d{1,2})\s+de\s+(\p{L}+)\s+de\s+(\d{4})`)
	for stage := range Stages {
		content := text(t, stage)
		lines := strings.SplitN(content, "\r\n", 4)
		if lines[2] != header {
			t.Errorf("stage %d: header is\n%s", stage, lines[2])
		}
		if want := "Listado completo de contribuyentes (Artículo 69-B del CFF)" + strings.Repeat(",", 19); lines[1] != want {
			t.Errorf("stage %d: title is %q", stage, lines[1])
		}
		m := corte.FindStringSubmatch(lines[0])
		if m == nil {
			t.Fatalf("stage %d: the note states no corte", stage)
		}
		if got := m[3] + "-" + months[strings.ToLower(m[2])] + "-" + m[1]; got != Corte(stage).String() {
			t.Errorf("stage %d: corte in the file is %s, in the calendar %s", stage, got, Corte(stage))
		}
		if long := len(lines[0]) > 700 && lines[0][0] == '"'; long != (stage > 0) {
			t.Errorf("stage %d: the note has %d bytes", stage, len(lines[0]))
		}
		quoted := false
		for i := range len(content) {
			switch {
			case content[i] == '"':
				quoted = !quoted
			case content[i] == '\n' && !quoted && content[i-1] != '\r':
				t.Errorf("stage %d: bare line end at byte %d outside quotes", stage, i)
			}
		}
		if !strings.HasSuffix(content, "\r\n") {
			t.Errorf("stage %d: no line end after the last row", stage)
		}
	}
}

func TestRows(t *testing.T) {
	f := func(stage, rows, filler, definitivos, presuntos, desvirtuados, sentencias, redacted int) {
		t.Helper()
		got, empty := records(t, stage)
		count := map[string]int{}
		for i, row := range got {
			if row[0] != fmt.Sprint(i+1) {
				t.Errorf("stage %d: row %d has number %s", stage, i+1, row[0])
			}
			count[row[3]]++
			if row[1] == "XXXXXXXXXXXX" {
				count["redacted"]++
			}
		}
		want := map[string]int{"Definitivo": definitivos, "Presunto": presuntos, "Sentencia Favorable": sentencias, "redacted": redacted}
		if desvirtuados > 0 {
			want["Desvirtuado"] = desvirtuados
		}
		if len(got) != rows || empty != filler || fmt.Sprint(count) != fmt.Sprint(want) {
			t.Errorf("stage %d: %d rows, %d filler, %v; want %d, %d, %v", stage, len(got), empty, count, rows, filler, want)
		}
	}
	f(0, 43, 0, 28, 10, 0, 5, 3)
	f(1, 44, 2, 28, 9, 1, 6, 3)
	f(2, 46, 0, 29, 10, 2, 5, 4)
	f(3, 45, 3, 30, 8, 2, 5, 4)
}

// TestHistory holds what happens to whom between the stages: a "-" is a row
// that is not there.
func TestHistory(t *testing.T) {
	situations := func(rfc string, procedure int) string {
		var out []string
		for stage := range Stages {
			rows, _ := records(t, stage)
			found := "-"
			n := 0
			for _, row := range rows {
				if strings.TrimSpace(row[1]) == rfc {
					if n == procedure {
						found = row[3]
					}
					n++
				}
			}
			out = append(out, found)
		}
		return strings.Join(out, " ")
	}
	f := func(rfc string, procedure int, want string) {
		t.Helper()
		if got := situations(rfc, procedure); got != want {
			t.Errorf("%s: %s, want %s", rfc, got, want)
		}
	}
	f("EFO010101AA1", 0, "Presunto Presunto Presunto Definitivo")
	f("PRE010101AA1", 0, "- - Presunto Presunto")
	f("DES010101AA1", 0, "Presunto Presunto Desvirtuado Desvirtuado")
	f("SEN010101AA1", 0, "Definitivo Sentencia Favorable Sentencia Favorable Sentencia Favorable")
	f("PEFI800101AA1", 0, "Presunto Definitivo Definitivo Definitivo")
	f("TEX010101AA1", 0, "Presunto Desvirtuado Desvirtuado Desvirtuado")
	f("SOL010101AA1", 0, "Definitivo Definitivo Definitivo Sentencia Favorable")
	f("JUG010101AA1", 0, "Sentencia Favorable Sentencia Favorable Definitivo Definitivo")
	f("KIL010101AA1", 0, "Sentencia Favorable Sentencia Favorable Sentencia Favorable Definitivo")
	f("INM010101AA1", 0, "Sentencia Favorable Sentencia Favorable Sentencia Favorable Sentencia Favorable")
	f("INM010101AA1", 1, "Definitivo Definitivo Definitivo Definitivo")
	f("INM010101AA1", 2, "- - Presunto Presunto")
	f("VID010101AA1", 0, "- Presunto Presunto Presunto")
	f("LAC010101AA1", 0, "Presunto Presunto Presunto -")
	f("MAD010101AA1", 0, "Definitivo Definitivo - -")
}

// TestOddities holds that each stage carries the bytes that break naive readers.
func TestOddities(t *testing.T) {
	f := func(what, bytesWanted string) {
		t.Helper()
		for stage := range Stages {
			if !bytes.Contains(raw(t, stage), []byte(bytesWanted)) {
				t.Errorf("stage %d lacks %s", stage, what)
			}
		}
	}
	for stage := range Stages {
		if n := bytes.Count(raw(t, stage), []byte{0x8d}); n != 1 {
			t.Errorf("stage %d has %d bytes 0x8D, want 1", stage, n)
		}
	}
	f("typographic quotes", "\x93F\xc1BRICA SUPUESTA\x94")
	f("a no-break space", "EN BLANCO,\xa0S.A.")
	f("doubled quotes", `""LA MUESTRA""`)
	f("Ñ in an RFC", "\xd1UB010101AA1")
	f("& in an RFC", "A&B010101AA1")
	f("a bare line feed in a name", "ARENA,\nS. DE R.L.\n")
	f("a CRLF in a name", "AIRE, S.A.\r\nDE C.V.")
	f("dates joined by a hyphen", "25/05/2022 - 26/04/2021")
	f("dates joined by slashes", "27/06/2022 // 10/09/2021")
	f("dates joined by an uneven hyphen", "25/05/2022 -26/04/2021")
	f("dates joined by a bare hyphen", "20/06/2022-13/05/2021")
	f("dates joined by blanks", "09/08/2024  27/06/2022 09/09/2019")
	f("two-digit years", "14/05/19 - 21/11/2017")
	f("dashes in a date", "25-04-19 // ")
	f("an Excel serial", ",44014,")
	f("double blanks in an oficio", "92070 de  fecha 21 de abril de  2020")
	f("a lost byte", "16 de marzo de 2015?")
	f("an oficio with blanks", "500 05 2026 11484 de fecha")
	f("an oficio without «fecha»", "92160 de 9 de agosto")
	f("an oficio with «del»", "92160 de fecha 9 de agosto del 2022")
	f("an oficio whose date has no «de»", "92161 de fecha 16 junio 2017")
	f("a remark in an oficio", "(\xfanicamente en el DOF)")
	f("a former name", " // ANTES ")
	f("a ruling in the name", " // En cumplimiento a la sentencia")
	if !bytes.Contains(raw(t, 0), []byte("DIN010101AA1 ,")) || bytes.Contains(raw(t, 3), []byte("DIN010101AA1 ,")) {
		t.Error("the RFC with a trailing blank must be in the first stage and mended in the last")
	}
}

// TestBis holds the list under article 69-B Bis, by stage.
func TestBis(t *testing.T) {
	f := func(stage int, corte string, want ...string) {
		t.Helper()
		content, ok := File(stage, Listado69BBis)
		if !ok {
			t.Fatalf("stage %d has no list", stage)
		}
		decoded, err := charmap.Windows1252.NewDecoder().String(string(content))
		if err != nil {
			t.Fatal(err)
		}
		r := csv.NewReader(strings.NewReader(decoded))
		r.FieldsPerRecord = 12
		all, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0][0]; got != "Información actualizada al "+corte || written(CorteBis(stage)) != corte {
			t.Errorf("stage %d: %q, in the calendar %s", stage, got, CorteBis(stage))
		}
		var got []string
		for _, row := range all[3:] {
			got = append(got, row[1]+" "+row[3])
		}
		if !slices.Equal(got, want) {
			t.Errorf("stage %d: %q, want %q", stage, got, want)
		}
		if !strings.Contains(decoded, "FICTICIAS, \nS.A.") || !strings.Contains(decoded, "2025-90080 de 23 de enero de 2025,") {
			t.Errorf("stage %d lacks the bare line feed or the oficio without «fecha»", stage)
		}
	}
	const tra, pfi, sol = "TRA010101AA1 ", "PFI010101AA1 Definitivo", "SOL010101AA1 Definitivo"
	for stage := range 2 {
		f(stage, "15 de mayo de 2026", tra+"Definitivo", pfi, sol)
		f(stage+2, "15 de julio de 2026", tra+"Sentencia Favorable", pfi, sol, "NEP010101AA1 Definitivo")
	}
}

// TestIndex holds what a program looks for on the index page.
func TestIndex(t *testing.T) {
	const base = "https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones"
	for stage := range Stages {
		page, ok := File(stage, Index)
		if !ok {
			t.Fatalf("stage %d has no index page", stage)
		}
		first, second, ok := strings.Cut(string(page), `id="collapseTwo3"`)
		if !ok {
			t.Fatal("no accordion of article 69-B Bis")
		}
		_, first, ok = strings.Cut(first, `id="collapseTwo2"`)
		if !ok {
			t.Fatal("no accordion of article 69-B")
		}
		for _, name := range lists {
			accordion, corte := first, Corte(stage)
			if name == Listado69BBis {
				accordion, corte = second, CorteBis(stage)
			}
			if strings.Count(accordion, `<a href="`+base+name+`"`) != 1 || !strings.Contains(accordion, "Información actualizada al "+written(corte)+"<") {
				t.Errorf("stage %d: the page does not link %s of %s", stage, name, corte)
			}
			if _, ok := File(stage, name); !ok {
				t.Errorf("stage %d: %s is linked and not served", stage, name)
			}
		}
		if strings.Count(string(page), "/Sentencias.csv\"") != 2 || !strings.Contains(string(page), "/AGR/03_02_26/Sentencias.csv") {
			t.Errorf("stage %d: the page lacks the dated copy of Sentencias.csv", stage)
		}
	}
}

func TestHandler(t *testing.T) {
	stage := 0
	server := httptest.NewServer(Handler(func() int { return stage }))
	defer server.Close()
	get := func(method, path, ifNoneMatch string) (*http.Response, []byte) {
		t.Helper()
		req, err := http.NewRequest(method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ifNoneMatch != "" {
			req.Header.Set("If-None-Match", ifNoneMatch)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, body
	}

	var tags []string
	for stage = range Stages {
		resp, body := get("GET", Listado69B, "")
		if resp.StatusCode != 200 || !bytes.Equal(body, raw(t, stage)) {
			t.Fatalf("stage %d: status %d, %d bytes", stage, resp.StatusCode, len(body))
		}
		h := resp.Header
		if h.Get("Content-Type") != "application/octet-stream" || h.Get("Content-Length") != fmt.Sprint(len(body)) ||
			h.Get("Last-Modified") != Modified(stage).Format(http.TimeFormat) {
			t.Errorf("stage %d: headers %v", stage, h)
		}
		if tag := h.Get("ETag"); slices.Contains(tags, tag) {
			t.Errorf("stage %d repeats ETag %s", stage, tag)
		} else {
			tags = append(tags, tag)
		}
		if resp, body := get("GET", Listado69B, tags[stage]); resp.StatusCode != 304 || len(body) != 0 {
			t.Errorf("stage %d: a matching If-None-Match gave %d with %d bytes", stage, resp.StatusCode, len(body))
		}
		if stage > 0 {
			if resp, _ := get("GET", Listado69B, tags[stage-1]); resp.StatusCode != 200 {
				t.Errorf("stage %d: the ETag of the stage before gave %d", stage, resp.StatusCode)
			}
		}
	}

	status := func(atStage int, method, path string, want int) {
		t.Helper()
		stage = atStage
		if resp, _ := get(method, path, ""); resp.StatusCode != want {
			t.Errorf("stage %d, %s %s: %d, want %d", atStage, method, path, resp.StatusCode, want)
		}
	}
	for _, path := range append(slices.Clone(lists), Index) {
		for stage = range Stages {
			want, _ := File(stage, path)
			if resp, body := get("GET", path, ""); resp.StatusCode != 200 || len(body) == 0 || !bytes.Equal(body, want) {
				t.Errorf("stage %d: %s: status %d, %d bytes", stage, path, resp.StatusCode, len(body))
			}
		}
	}
	// What was not published again keeps its date and its tag.
	stage = 0
	resp, _ := get("GET", Listado69BBis, "")
	modified, tag := resp.Header.Get("Last-Modified"), resp.Header.Get("ETag")
	if modified != "Fri, 22 May 2026 16:20:09 GMT" {
		t.Errorf("Last-Modified of the Bis list is %s", modified)
	}
	stage = 1
	if resp, _ := get("GET", Listado69BBis, tag); resp.StatusCode != 304 {
		t.Errorf("the Bis list of stage 1 gave %d", resp.StatusCode)
	}
	stage = 2
	if resp, _ := get("GET", Listado69BBis, tag); resp.StatusCode != 200 || resp.Header.Get("Last-Modified") == modified {
		t.Errorf("the Bis list of stage 2 gave %d, %s", resp.StatusCode, resp.Header.Get("Last-Modified"))
	}

	status(0, "HEAD", Listado69B, 200)
	status(0, "GET", "/agsc-publicaciones"+Presuntos, 200)
	status(0, "POST", Index, 405)
	status(0, "GET", "/Datos_abiertos/AGR/03_02_26/Sentencias.csv", 404) // linked, and dead
	status(0, "GET", "/agsc-publicaciones"+Listado69B, 200)
	status(0, "POST", Listado69B, 405)
	status(0, "GET", "/Datos_abiertos/Documents_AGAFF/Listado_Completo_69-B.csv", 404) // official paths are case-sensitive
	status(0, "GET", "/", 404)
	status(-1, "GET", Listado69B, 404)
	status(Stages, "GET", Listado69B, 404)
}
