package ingest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"cotejo/snapshots"
)

const official = "https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones/Datos_abiertos/"

// anchor is a link of the index page.
func anchor(href, text string) string { return "<li><a href=\"" + href + "\">" + text + "</a></li>\n" }

// index is an index page as the authority lays it out, with links of the test
// in the accordion of article 69-B.
func index(links ...string) string {
	return `<!DOCTYPE html><html><head><meta charset="windows-1252"><title>Contribuyentes publicados</title>
<script>var a = "<a href='https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones/guion.csv'>";</script></head><body>
<!-- <a href="https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones/comentario.csv">no</a> -->
<a href="/minisitio/DatosAbiertos/index.html">Inicio</a><a name="arriba"></a>
<div id="collapseTwo1">` + anchor(official+"Documents_AGR/Firmes.csv", "Firmes") +
		anchor(official+"Documents_AGR/Sentencias.csv", "Sentencias") + anchor(official+"AGR/03_02_26/Sentencias.csv", "Sentencias") + `</div>
<div id="collapseTwo2" class="collapse"><p>Informaci` + "\xf3" + `n actualizada al 31 de agosto de 2026</p><ul>
` + strings.Join(links, "") + anchor(official+"Documents_AGAFF/Definitivos.csv", "Definitivos") + `</ul></div>
<div id="collapseTwo3">` + anchor(official+"Documents_AGGC/Listado_69_B_Bis_Completo.csv", "Listado completo") + `</div>
</body></html>`
}

func codes(notices []snapshots.Notice) string {
	var all []string
	for _, n := range notices {
		all = append(all, n.Code)
	}
	return strings.Join(all, " ")
}

// TestChoice is what a page makes of the address of the complete list.
func TestChoice(t *testing.T) {
	s, _ := Lookup("sat_69b")
	const pinned = "/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv"
	f := func(page, at, want, says string) {
		t.Helper()
		got, notices := s.choose(s.listed([]byte(page), indexPage, s.base))
		text := ""
		for _, n := range notices {
			text += n.Message
		}
		if got != at || codes(notices) != want || !strings.Contains(text, says) {
			t.Errorf("%s %v\nwant %s %s, saying %q\n%s", got, notices, at, want, says, page)
		}
	}
	file := "Documents_AGAFF/Listado_completo_69-B.csv"
	f(index(anchor(official+file, "Listado completo")), pinned, "", "")
	f(index(anchor(" "+official+file+"?v=3#x\n", "<b>Listado\n completo</b>")), pinned, "", "")
	f(index(anchor(strings.Replace(official+file, ".net/", ".net:443/", 1), "")), pinned, "", "")
	f(index(anchor(strings.Replace(official+file, "wu1ag", "WU1AG", 1), "")), pinned, "", "")
	f(strings.ToUpper("<a href=")+official+file+" >x", pinned, "", "")

	// It moved within its container.
	f(index(anchor(official+"Documents_2027/Listado_Completo_69-B.CSV", "Listado completo")),
		"/Datos_abiertos/Documents_2027/Listado_Completo_69-B.CSV", LinkChanged, "/Datos_abiertos/Documents_2027/Listado_Completo_69-B.CSV en lugar de "+pinned)
	f(index(anchor(official+"AGAFF/03_02_26/Listado_completo_69-B.csv", "Listado completo"), anchor(official+"Documents_X/Listado_completo_69-B.csv", "otro"),
		anchor(official+"Documents_Y/Listado_completo_69-B.csv", "Listado completo")),
		"/Datos_abiertos/Documents_Y/Listado_completo_69-B.csv", LinkChanged, "")
	f(index(anchor(official+"AGAFF/03_02_26/Listado_completo_69-B.csv", "Listado completo"), anchor(official+file, "x")), pinned, "", "")
	f(index(anchor(official+"AGAFF/03_02_26/Listado_completo_69-B.csv", "")), "/Datos_abiertos/AGAFF/03_02_26/Listado_completo_69-B.csv", LinkChanged, "")

	// Anything but its name, in its container, over HTTPS, is no link to it.
	f(index(), pinned, LinkMissing, "ya no enlaza Listado_completo_69-B.csv")
	f(index(anchor("http://omawww.sat.gob.mx/cifras_sat/Documents/Listado_Completo_69-B.csv", "Listado completo")), pinned, LinkMissing, "")
	f(index(anchor("https://omawww.sat.gob.mx/cifras_sat/Documents/Listado_completo_69-B.csv", "Listado completo")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, "https:", "http:", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, "wu1ag", "otra", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, ".net/", ".net:8443/", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, ".net/", ".net.mx/", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, "//", "//quien:clave@", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, "agsc-publicaciones", "otro", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, "agsc-publicaciones", "agsc-publicaciones2", 1), "")), pinned, LinkMissing, "")
	f(index(anchor(strings.Replace(official+file, "Datos_abiertos", "%2e%2e/otro", 1), "")), pinned, LinkMissing, "")
	f(index(anchor("/agsc-publicaciones/Datos_abiertos/"+file, "")), pinned, LinkMissing, "")
	for _, dir := range []string{`a\..\..\otro/`, "a%5c..%5c..%5cotro/", "%252e%252e/otro/", "a%00/", "a;b/", "a%3f/", "a%23/", "\xd0\x90/", "a//"} {
		f(index(anchor(official+dir+"Listado_completo_69-B.csv", "")), pinned, LinkMissing, "")
	}
	f(index(anchor(official+"Documents_AGAFF/Li\xc5\xbftado_completo_69-B.csv", "")), pinned, LinkMissing+" "+UnknownFile, "")
	f(index(anchor(official+"Documents_AGAFF%2fListado_completo_69-B.csv", "")), pinned, "", "") // the same path
	f(index(anchor(official+"Datos 2027/Listado_completo_69-B.csv", "")), "/Datos_abiertos/Datos 2027/Listado_completo_69-B.csv", LinkChanged, "")
	f(index(anchor("javascript:x.csv", ""), anchor("%zz.csv", "")), pinned, LinkMissing, "")
	f(index(anchor(official+file+"/", ""), anchor(official+"Documents_AGAFF/xListado_completo_69-B.csv.csv", "")), pinned, LinkMissing+" "+UnknownFile, "xListado_completo_69-B.csv.csv")

	// What it may be called now, and what else is new.
	f(index(anchor(official+"Documents_AGAFF/Lista_69B_2027.csv", "Listado completo 69-B")), pinned, LinkMissing+" "+UnknownFile, "El enlace «Listado completo 69-B» lleva a Lista_69B_2027.csv")
	f(index(anchor(official+file, ""), anchor(official+"Documents_AGGC/Listado_49_Bis_Completo.csv", "x")), pinned, UnknownFile, "Listado_49_Bis_Completo.csv")
	f(index(anchor(official+file, ""), anchor("https://omawww.sat.gob.mx/Nueva%1b%5b2J.csv", "x")), pinned, UnknownFile, "no conoce: Nueva[2J.csv.")
	many := ""
	for i := range 30 {
		many += anchor(official+fmt.Sprintf("nueva%02d.csv", i), "x")
	}
	f(index(anchor(official+file, ""), many, many), pinned, UnknownFile, "nueva09.csv, y 20 más")

	// No index at all.
	f("", pinned, IndexMissing, "no enlaza ninguna lista")
	f("<html><body>Mantenimiento <a href='/'>Inicio</a>", pinned, IndexMissing, "")
	f("\x00\xff<a href=\"", pinned, IndexMissing, "")
}

func TestLinksAreBounded(t *testing.T) {
	at, err := url.Parse(indexPage)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Repeat("<a href=x.csv>"+strings.Repeat("y ", 10_000), 50) + strings.Repeat("<a href=x.csv>", 2*maxLinks)
	found := links([]byte(page), at)
	if len(found) != maxLinks || len(found[0].text) > maxLinkText {
		t.Errorf("%d links, text of %d bytes", len(found), len(found[0].text))
	}
}

// site is a server of an index page and of files, by path. asked is what it was
// asked of these and of the complete list.
type site struct {
	*httptest.Server
	files map[string]string
	asked []string
}

func newSite(t *testing.T, files map[string]string) *site {
	t.Helper()
	s := &site{files: files}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == indexPath || path.Base(r.URL.Path) == "Listado_completo_69-B.csv" {
			s.asked = append(s.asked, r.URL.Path)
		}
		content, ok := s.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestDiscovery follows the links of an index page that a mirror serves.
func TestDiscovery(t *testing.T) {
	hurried(t)
	const pinned = "/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv"
	const moved = "/Datos_abiertos/Documents_2027/Listado_completo_69-B.csv"
	f := func(name string, files map[string]string, asked []string, officialPath, want string) {
		t.Run(name, func(t *testing.T) {
			t.Helper()
			fx := newFixture(t)
			s := newSite(t, files)
			r, err := fx.ingest(Request{Mirror: s.URL})
			if err != nil || r.Outcome != Activated {
				t.Fatalf("%s %v, %v", r.Outcome, r.Faults, err)
			}
			if got := strings.Join(s.asked, " "); got != strings.Join(asked, " ") {
				t.Errorf("asked for %s, want %s", got, asked)
			}
			if v := r.Version; v.URL != "https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones"+officialPath || v.Obtained != s.URL+asked[len(asked)-1] {
				t.Errorf("URL %s, obtained from %s", v.URL, v.Obtained)
			}
			if a := fx.attempted(Activated, 1); codes(a.Notices) != want {
				t.Errorf("notices %v, want %s", a.Notices, want)
			}
		})
	}
	good := list(t)
	f("as expected", map[string]string{
		indexPath: index(anchor(official+pinned[len("/Datos_abiertos/"):], "Listado completo")), pinned: good,
	}, []string{indexPath, pinned}, pinned, "")
	f("moved", map[string]string{
		indexPath: index(anchor(official+moved[len("/Datos_abiertos/"):], "Listado completo")), moved: good,
	}, []string{indexPath, moved}, moved, LinkChanged)
	f("relative links of a mirror", map[string]string{
		indexPath: index(anchor("../../agsc-publicaciones"+moved, "Listado completo")), moved: good,
	}, []string{indexPath, moved}, moved, LinkChanged)
	f("links of a mirror without the container", map[string]string{
		indexPath: index(anchor(moved, "Listado completo")), moved: good,
	}, []string{indexPath, moved}, moved, LinkChanged)
	f("a mirror with the container only", map[string]string{
		indexPath: index(anchor(official+pinned[len("/Datos_abiertos/"):], "")), "/agsc-publicaciones" + pinned: good,
	}, []string{indexPath, pinned, "/agsc-publicaciones" + pinned}, pinned, "")
	f("a link that leads nowhere", map[string]string{
		indexPath: index(anchor(official+moved[len("/Datos_abiertos/"):], "Listado completo")), pinned: good,
	}, []string{indexPath, moved, pinned}, pinned, LinkChanged+" "+LinkMissing)
	f("no link", map[string]string{indexPath: index(), pinned: good}, []string{indexPath, pinned}, pinned, LinkMissing)
	f("no index page", map[string]string{pinned: good}, []string{indexPath, pinned}, pinned, IndexMissing)
	f("a link of another name", map[string]string{
		indexPath: index(anchor(official+"Documents_AGAFF/Lista.csv", "Listado completo")), pinned: good,
	}, []string{indexPath, pinned}, pinned, LinkMissing+" "+UnknownFile)
	f("an empty index page", map[string]string{indexPath: "", pinned: good}, []string{indexPath, pinned}, pinned, IndexMissing)
	f("an endless index page", map[string]string{
		indexPath: index(anchor(official+moved[len("/Datos_abiertos/"):], "")) + strings.Repeat(" ", maxIndex), pinned: good,
	}, []string{indexPath, pinned}, pinned, IndexMissing)
}

// TestIndexPageIsAskedTwice: a page that one can do without gets less patience.
func TestIndexPageIsAskedTwice(t *testing.T) {
	hurried(t)
	fx := newFixture(t)
	pages := 0
	mux := http.NewServeMux()
	mux.HandleFunc(indexPath, func(w http.ResponseWriter, _ *http.Request) {
		pages++
		w.WriteHeader(http.StatusBadGateway)
	})
	mux.HandleFunc("/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, list(t))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	withPassword := strings.Replace(s.URL, "http://", "http://quien:clave@", 1)
	if r, err := fx.ingest(Request{Mirror: withPassword}); err != nil || r.Outcome != Activated || pages != 2 {
		t.Errorf("%s, %v, %d times", r.Outcome, err, pages)
	}
	a := fx.attempted(Activated, 1)
	if codes(a.Notices) != IndexMissing || !strings.Contains(a.Notices[0].Message, "respondió 502") || strings.Contains(a.Notices[0].Message, "@") {
		t.Errorf("%v", a.Notices)
	}
}

// FuzzIndexPage: whatever a page says, the file is asked for in the container of
// its source, under its name.
func FuzzIndexPage(f *testing.F) {
	f.Add([]byte(index(anchor(official+"Documents_AGAFF/Listado_completo_69-B.csv", "Listado completo"))))
	f.Add([]byte(index(anchor(official+"Documents_AGAFF/%2e%2e/Listado_completo_69-B.csv", ""), anchor("//x/y.csv", ""))))
	f.Add([]byte("<a href=https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones/a%3f%23%0a/LISTADO_COMPLETO_69-b.csv>"))
	f.Add([]byte("<base href=//x><a href='\\\\x\\y.csv'><a><script><a href=z.csv></script>"))
	f.Fuzz(func(t *testing.T, page []byte) {
		for _, s := range registry {
			for _, root := range []string{s.base, "http://127.0.0.1:1/espejo"} {
				files := s.listed(page, indexPage, root)
				if len(files) > maxLinks {
					t.Errorf("%d links", len(files))
				}
				at, notices := s.choose(files)
				if len(notices) > 3 {
					t.Errorf("%d notices", len(notices))
				}
				for _, n := range notices {
					if len(n.Message) > 16<<10 || bytes.ContainsAny([]byte(n.Message), "\x1b\n\r\x00") {
						t.Errorf("%q", n.Message)
					}
				}
				u, err := url.Parse(s.base + (&url.URL{Path: at}).EscapedPath())
				if err != nil {
					t.Fatalf("%q: %v", at, err)
				}
				if u.Scheme+"://"+u.Host+s.container() != s.base || !strings.HasPrefix(u.Path, s.container()+"/") || u.RawQuery != "" || u.User != nil ||
					path.Clean(u.Path) != u.Path || !strings.EqualFold(path.Base(u.Path), path.Base(s.path)) {
					t.Errorf("%q leads to %s", at, u)
				}
			}
		}
	})
}
