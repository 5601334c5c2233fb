package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"cotejo/civil"
	"cotejo/snapshots"
)

// Codes of what the index page can say against what is expected.
const (
	LinkChanged  = "ENLACE_CAMBIO"       // it links the file elsewhere in its container: downloaded from there
	LinkMissing  = "ENLACE_AUSENTE"      // it does not link the file: downloaded from the known address
	UnknownFile  = "ARCHIVO_DESCONOCIDO" // it links files that nobody here knows
	IndexMissing = "INDICE_NO_RESPONDE"  // it could not be had, or is no index: downloaded from the known address
)

// The page where the authority links its lists. The pages of the older host,
// omawww.sat.gob.mx, still answer and lead here in the end; nothing follows them.
const (
	indexHost = "https://www.sat.gob.mx"
	indexPath = "/minisitio/DatosAbiertos/contribuyentes_publicados.html"
	indexPage = indexHost + indexPath
)

// The page has some 25 links in less than 100 KB.
const (
	maxIndex    = 2 << 20
	maxLinks    = 2000
	maxLinkText = 300 // bytes
)

// knownFiles are the files of the page that are no source: the parts of the
// complete lists under articles 69-B and 69-B Bis.
var knownFiles = []string{
	"Definitivos.csv", "Presuntos.csv", "Desvirtuados.csv", "SentenciasFavorables.csv",
	"Listado_69_B_Bis_Definitivo.csv", "Listado_69_B_Bis_SentenciaFa.csv",
}

// known reports whether a file of that name is a source or in knownFiles.
func known(name string) bool {
	return !strings.ContainsFunc(name, odd) &&
		(slices.ContainsFunc(knownFiles, func(k string) bool { return sameFile(k, name) }) ||
			slices.ContainsFunc(registry, func(s Source) bool { return s.named(name) }))
}

// named reports whether a file has the name of the source's.
func (s *Source) named(name string) bool { return sameFile(path.Base(s.path), name) }

// sameFile compares names without regard to case, nor to whether blanks were
// replaced: «No localizados.csv» became «No_localizados.csv».
func sameFile(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, " ", "_"), strings.ReplaceAll(b, " ", "_"))
}

// place is an address to download from, and the official one that it stands for.
type place struct{ address, official string }

// locate says where the file may be: another place is for when there is no such
// file at the one before. What the index page says against what is expected is in
// the notices. There is always one place, but for a list that may not exist and
// that the page does not link.
func (in *ingestion) locate(ctx context.Context, d *downloader) []place {
	s := in.source
	if !s.indexed {
		return []place{s.place(in)}
	}
	in.report(Step{Phase: Locating})
	defer in.report(Step{Phase: Locating, Done: true})
	root, index := s.base, indexPage
	if in.Mirror != "" {
		root = strings.TrimRight(in.Mirror, "/")
		index = root + indexPath
	}
	at := s.path
	page, err := d.brief().content(ctx, index, maxIndex, in.report)
	if s.whenLinked && in.active == nil && (err != nil || !slices.ContainsFunc(s.listed(page, index, root), func(f listed) bool { return f.path != "" && s.named(f.name) })) {
		return nil
	}
	if err != nil {
		what := err.Error()
		if f, ok := errors.AsType[*failure](err); ok {
			what = f.what
		}
		in.notice(IndexMissing, "la página de listados %s no se pudo leer: %s. Se usó la dirección conocida; si sigue así, ábrala en un navegador y revise que la lista siga en %s", public(index), what, s.URL())
	} else {
		var notices []snapshots.Notice
		at, notices = s.choose(s.listed(page, index, root))
		in.notices = append(in.notices, notices...)
	}
	rest := func(p string) string { return (&url.URL{Path: p}).EscapedPath() }
	places := []place{{root + rest(at), s.base + rest(at)}}
	if at != s.path {
		places = append(places, place{root + rest(s.path), s.URL()})
	}
	if in.Mirror != "" {
		places = append(places, place{root + s.container() + rest(s.path), s.URL()})
	}
	return places
}

// place is where a source is that no index page links to.
func (s *Source) place(in *ingestion) place {
	rest := s.path
	if s.query != nil {
		rest += "?" + s.query(civil.Of(in.Now))
	}
	p := place{s.base + rest, s.base + rest}
	if s.page != "" {
		p = place{in.Access.URL, s.page}
	}
	if in.Mirror != "" {
		p.address = strings.TrimRight(in.Mirror, "/") + rest
	}
	return p
}

func (in *ingestion) notice(code, format string, args ...any) {
	in.notices = append(in.notices, snapshots.Notice{Code: code, Message: fmt.Sprintf(format, args...)})
}

// container is the path of the official address, which the links of a mirrored
// page may repeat.
func (s *Source) container() string {
	u, err := url.Parse(s.base)
	if err != nil {
		return ""
	}
	return u.Path
}

// listed is a CSV file that the index page links to.
type listed struct {
	name string
	path string // below the official address; "" when the link leads anywhere else
	text string // of the link
}

// listed finds the CSV files of a page that was read at index. root is what
// stands for the official address, or that itself.
func (s *Source) listed(page []byte, index, root string) []listed {
	at, err := url.Parse(index)
	if err != nil {
		return nil
	}
	at.User = nil // relative links would repeat it
	var found []listed
	for _, l := range links(page, at) {
		if !strings.EqualFold(path.Ext(l.url.Path), ".csv") {
			continue
		}
		f := listed{name: path.Base(l.url.Path), text: l.text}
		if rest, ok := below(l.url, s.base); ok {
			f.path = rest
		} else if rest, ok := below(l.url, root+s.container()); ok && root != s.base {
			f.path = rest
		} else if rest, ok := below(l.url, root); ok && root != s.base {
			f.path = rest
		}
		found = append(found, f)
	}
	return found
}

// below returns the path of an address under another one. Queries and fragments
// say nothing of which file it is.
func below(u *url.URL, root string) (rest string, ok bool) {
	r, err := url.Parse(root)
	if err != nil || u.Scheme != r.Scheme || u.User != nil || !strings.EqualFold(u.Hostname(), r.Hostname()) || port(u) != port(r) {
		return "", false
	}
	rest, ok = strings.CutPrefix(u.Path, r.Path)
	return rest, ok && strings.HasPrefix(rest, "/") && path.Clean(u.Path) == u.Path && !strings.ContainsFunc(rest, odd)
}

// odd is what no path of an official file has and servers do not agree on: some
// take a backslash for a slash, or decode what was encoded twice; and letters
// that look like those of another name.
func odd(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`\%?#;`, r) }

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// choose picks the file of a source among those of the index page, by its name:
// the path below the official address, the known one when there is none.
func (s *Source) choose(files []listed) (at string, notices []snapshots.Notice) {
	notice := func(code, format string, args ...any) {
		notices = append(notices, snapshots.Notice{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if !slices.ContainsFunc(files, func(f listed) bool { return f.path != "" }) {
		notice(IndexMissing, "%s respondió y no enlaza ninguna lista de %s. Se usó la dirección conocida; abra la página en un navegador: si las listas se mudaron, hace falta una versión nueva de este programa", indexPage, s.base)
		return s.path, notices
	}
	best := len(files)
	for i, f := range files {
		if f.path != "" && s.named(f.name) && (best == len(files) || s.doubt(f) < s.doubt(files[best])) {
			best = i
		}
	}
	at = s.path
	switch {
	case best == len(files):
		hint := ""
		for _, f := range files {
			if hint == "" && s.linkText != "" && !known(f.name) && containsFold(f.text, s.linkText) {
				hint = fmt.Sprintf(" El enlace «%s» lleva a %s.", shown(f.text), shown(f.name))
			}
		}
		notice(LinkMissing, "%s ya no enlaza %s.%s Se usó la dirección conocida; abra la página y revise cómo se llama ahora la lista", indexPage, path.Base(s.path), hint)
	case files[best].path != s.path:
		at = files[best].path
		notice(LinkChanged, "%s enlaza ahora %s en lugar de %s. Se descarga del enlace nuevo; abra la página y revise que sea la misma lista", indexPage, shown(at), s.path)
	}
	if names := unknown(files); len(names) > 0 {
		notice(UnknownFile, "%s enlaza archivos que este programa no conoce: %s. Revise si son listas nuevas o una que cambió de nombre", indexPage, strings.Join(names, ", "))
	}
	return at, notices
}

// doubt orders links to a file of the same name: the page also links dated
// copies, which stay behind.
func (s *Source) doubt(f listed) int {
	current := strings.Contains(f.path, "/Documents_")
	named := containsFold(f.text, s.linkText)
	switch {
	case f.path == s.path:
		return 0
	case current && named:
		return 1
	case current:
		return 2
	case named:
		return 3
	}
	return 4
}

// maxUnknown bounds how many files a notice names.
const maxUnknown = 10

// unknown names the files that are neither a source nor known.
func unknown(files []listed) []string {
	var names []string
	for _, f := range files {
		if name := shown(f.name); !known(f.name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if n := len(names); n > maxUnknown {
		names = append(names[:maxUnknown], fmt.Sprintf("y %d más", n-maxUnknown))
	}
	return names
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// shown is what a notice repeats of a page: short, and nothing that moves a cursor.
func shown(text string) string {
	text = printable(text)
	if runes := []rune(text); len(runes) > 120 {
		return string(runes[:120]) + "…"
	}
	return text
}

// printable leaves out what is not a visible character.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// link is an anchor of a page.
type link struct {
	url  *url.URL // absolute
	text string   // blanks collapsed; valid UTF-8 whatever the page is
}

// links returns the anchors of a page in its order, at most maxLinks. Anything is
// a page; what is no address is left out.
func links(page []byte, at *url.URL) []link {
	var found []link
	var text []byte
	open := false // in the anchor that is the last found
	closeAnchor := func() {
		if open {
			found[len(found)-1].text = strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "\ufffd")), " ")
		}
		open, text = false, text[:0]
	}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			closeAnchor()
			return found
		case html.TextToken:
			if open && len(text) < maxLinkText {
				t := z.Text()
				text = append(text, t[:min(len(t), maxLinkText-len(text))]...)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "a" {
				closeAnchor()
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			if string(name) != "a" {
				continue
			}
			closeAnchor()
			if len(found) == maxLinks {
				return found
			}
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				if string(key) != "href" {
					continue
				}
				if to, err := at.Parse(strings.TrimSpace(string(value))); err == nil {
					found, open = append(found, link{url: to}), true
				}
				break // the first one counts
			}
		}
	}
}
