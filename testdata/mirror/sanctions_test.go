package mirror

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSanctions holds what the files of sanctioned suppliers are for: verbatim titles,
// the oddities, and a directory that changes once.
func TestSanctions(t *testing.T) {
	get := func(stage int, name string) []byte {
		t.Helper()
		content, ok := File(stage, name)
		if !ok {
			t.Fatalf("no %s at stage %d", name, stage)
		}
		return content
	}
	for _, name := range Sanctions {
		if grown := !bytes.Equal(get(0, name), get(Stages-1, name)); grown != (name == Directory) || !bytes.Equal(get(0, name), get(1, name)) {
			t.Errorf("%s: changes: %v", name, grown)
		}
	}
	open := string(get(0, OpenSanctions))
	head, _, _ := strings.Cut(open, "\n")
	if head != "PROVEEDOR O CONTRATISTA, \tDEPENDENCIA, \tNUMERO DE EXPEDIENTE, \tHECHOS DE LA IRREGULARIDAD, \tOBJETO SOCIAL, \tSENTIDO DE RESOLUCION, "+
		"\tFECHA DE NOTIFICACION, \tFECHA DE RESOLUCION, \tPLAZO, \tMONTO, \tNOMBRE DEL RESPONSABLE DE LA INFORMACION, \tFECHA DE ACTUALIZACION " {
		t.Errorf("%q", head)
	}
	cells := map[int]int{}
	for _, line := range strings.Split(strings.TrimSuffix(open, "\n"), "\n") {
		cells[strings.Count(line, ",")+1]++
	}
	if cells[12] != 5 || cells[11] != 1 || cells[13] != 1 || !strings.Contains(open, "INHABILITACI\xd3N") || !strings.Contains(open, "NULL\tREPARACION") || !strings.Contains(open, "\t70,200.00,") {
		t.Errorf("%v", cells)
	}
	for _, oddity := range []string{`"rfc": null`, `S.A. DE C.V.\t`, "             555,644.00", "1 año, 3 meses", "21-02-2026", `"inicioSancion": null`, "                    .9"} {
		if !bytes.Contains(get(0, Directory), []byte(oddity)) {
			t.Errorf("the directory lacks %q", oddity)
		}
	}
	for _, name := range []string{Directory, SanctionedFirms} {
		if !json.Valid(get(0, name)) {
			t.Errorf("%s is no JSON", name)
		}
	}
	server := httptest.NewServer(Handler(func() int { return 3 }))
	defer server.Close()
	f := func(name, kind string, stage int) {
		t.Helper()
		r, err := http.Get(server.URL + name)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != kind || r.Header.Get("Last-Modified") != Modified(stage).Format(http.TimeFormat) {
			t.Errorf("%s: %d %v", name, r.StatusCode, r.Header)
		}
	}
	f(OpenSanctions, "text/csv", 0)
	f(Directory, "application/json", 2)
	f(DirectoryExport, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", 0)
}
