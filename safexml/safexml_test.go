package safexml

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// told writes the events of a document as a person would: <name a="v">text</name>,
// a namespace in braces before its names.
func told(doc string, limits Limits) (string, error) {
	r, err := New([]byte(doc), limits)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	name := func(n Name) string {
		if n.Space == "" {
			return n.Local
		}
		return "{" + n.Space + "}" + n.Local
	}
	for {
		e, err := r.Next()
		if err == io.EOF {
			if _, again := r.Next(); again != io.EOF {
				return "", fmt.Errorf("after the end: %w", again)
			}
			return b.String(), nil
		}
		if err != nil {
			if _, again := r.Next(); again != err {
				return "", fmt.Errorf("after an error: %w", again)
			}
			return b.String(), err
		}
		switch e.Kind {
		case Start:
			b.WriteString("<" + name(e.Name))
			for _, a := range e.Attrs {
				fmt.Fprintf(&b, " %s=%q", name(a.Name), a.Value)
			}
			b.WriteString(">")
		case End:
			b.WriteString("</" + name(e.Name) + ">")
		case Text:
			b.WriteString(e.Text)
		}
	}
}

func TestReads(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		if got, err := told(doc, Default); err != nil || got != want {
			t.Errorf("%q:\n got %s, %v\nwant %s", doc, got, err, want)
		}
	}
	f(`<a/>`, `<a></a>`)
	f(`<a></a >`, `<a></a>`)
	f("\xef\xbb\xbf<a/>", `<a></a>`)
	f(`<?xml version="1.0"?><a/>`, `<a></a>`)
	f("<?xml version='1.0' encoding='utf-8' standalone='yes' ?>\n<a/>\n", `<a></a>`)
	f("\n <!-- antes --> <a/> <!----> \n", `<a></a>`)
	f(`<a>uno<!-- no -->dos<b/>tres</a>`, `<a>unodos<b></b>tres</a>`)
	f(`<a x="1" y='2'/>`, `<a x="1" y="2"></a>`)
	f("<a\n\tx = \"1\"\r\n y\n=\n'\"'/>", `<a x="1" y="\""></a>`)
	f(`<añó ñ="í"/>`, `<añó ñ="í"></añó>`)
	f(`<_.-1/>`, `<_.-1></_.-1>`)

	// References, in text and in values; nothing is resolved twice.
	f(`<a x="&amp;lt;&quot;&apos;&#209;&#xD1;">&lt;&gt;&amp;amp;&#x1F600;</a>`, `<a x="&lt;\"'ÑÑ"><>&amp;😀</a>`)
	f(`<a><![CDATA[<b>&amp;]]]]><![CDATA[>]]></a>`, `<a><b>&amp;]]></a>`)

	// Line ends and blanks, as XML 1.0 says in 2.11 and 3.3.3.
	f("<a>1\r\n2\r3\n4&#13;</a>", "<a>1\n2\n3\n4\r</a>")
	f("<a><![CDATA[1\r\n2\r3]]></a>", "<a>1\n2\n3</a>")
	f("<a x='1\r\n2\r3\n4\t5&#10;6&#9;7&#13;8'/>", `<a x="1 2 3 4 5\n6\t7\r8"></a>`)

	// Namespaces.
	f(`<a xmlns="u"><b x="1"/><c xmlns=""><d/></c></a>`, `<{u}a><{u}b x="1"></{u}b><c><d></d></c></{u}a>`)
	f(`<p:a xmlns:p="u" p:x="1" x="2"><q:b xmlns:q="v" xmlns:p="w" p:x="3"/><p:c/></p:a>`,
		`<{u}a {u}x="1" x="2"><{v}b {w}x="3"></{v}b><{u}c></{u}c></{u}a>`)
	f(`<a xml:lang="es"/>`, `<a {http://www.w3.org/XML/1998/namespace}lang="es"></a>`)
	f(`<a p:x="1" xmlns:p="u&amp;v"/>`, `<a {u&v}x="1"></a>`)
	// The tax authority delivers such a declaration; it declares a prefix.
	f(`<a xmlns:schemaLocation="http://u http://v"/>`, `<a></a>`)

	// Other encodings, where they are declared.
	f("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a x=\"\xd1\">\xe1</a>", `<a x="Ñ">á</a>`)
	f("<?xml version=\"1.0\" encoding=\"windows-1252\"?><a>\x80\x93</a>", `<a>€“</a>`)
}

func TestRefuses(t *testing.T) {
	f := func(doc string, line int, reason string) {
		t.Helper()
		_, err := told(doc, Default)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v; want an Error", doc, err)
			return
		}
		if want := (Error{Line: line, Reason: reason}); *e != want {
			t.Errorf("%q:\n got %+v\nwant %+v", doc, *e, want)
		}
	}
	const (
		doctype     = "no se admiten DOCTYPE, ENTITY ni otras declaraciones; quítelas."
		instruction = "no se admiten instrucciones de proceso («<?…?>»); quítelas."
		declaration = `la declaración se escribe <?xml version="1.0" encoding="UTF-8"?>.`
		misplaced   = "la declaración <?xml …?> va una sola vez, al principio, sin nada antes."
		reference   = "hay un «&» que no es de una referencia conocida; se admiten &amp; &lt; &gt; &quot; &apos; y las de carácter, como &#209;."
		nothing     = "no hay ningún elemento; envíe el documento completo."
		outside     = "hay texto fuera del elemento raíz; quítelo."
		noName      = "se esperaba el nombre de un elemento o de un atributo; un «<» o un «&» en el texto se escriben &lt; y &amp;."
		noValue     = `un atributo se escribe nombre="valor", con comillas.`
		wide        = "está en UTF-16 u otra codificación de dos bytes; guárdelo en UTF-8."
		reserved    = "los prefijos xml y xmlns no se declaran de otro modo."
	)
	// Document types, entities, instructions.
	f(`<!DOCTYPE a><a/>`, 1, doctype)
	f("<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>\n<a>&x;</a>", 2, doctype)
	f("<a>\n<!ENTITY x \"y\"></a>", 2, doctype)
	f("<a><!doctype a></a>", 1, doctype)
	f(`<![CDATA[x]]><a/>`, 1, doctype)
	f("<a>\n\n&x;</a>", 3, reference)
	f(`<a x="&x;"/>`, 1, reference)
	f(`<a>&nbsp;</a>`, 1, reference)
	f(`<a>& b</a>`, 1, reference)
	f(`<a>&#0;</a>`, 1, reference)
	f(`<a>&#xD800;</a>`, 1, reference)
	f(`<a>&#x110000;</a>`, 1, reference)
	f(`<a>&#xFFFE;</a>`, 1, reference)
	f(`<a>&#+9;</a>`, 1, reference)
	f(`<a>&#;</a>`, 1, reference)
	f(`<a>&#X41;</a>`, 1, reference)
	f(`<a>&;</a>`, 1, reference)
	f(`<?xml-stylesheet href="x"?><a/>`, 1, instruction)
	f("<a>\n<?php x?></a>", 2, instruction)

	// The declaration and the encoding.
	f(` <?xml version="1.0"?><a/>`, 1, misplaced)
	f(`<a/><?xml version="1.0"?>`, 1, misplaced)
	f(`<a><?XML version="1.0"?></a>`, 1, misplaced)
	f("\xef\xbb\xbf\xef\xbb\xbf<a/>", 1, outside)
	f(`<?xml version="1.1"?><a/>`, 1, "se admite XML 1.0.")
	f(`<?xml encoding="UTF-8"?><a/>`, 1, declaration)
	f(`<?xml version="1.0" standalone="maybe"?><a/>`, 1, declaration)
	f(`<?xml version="1.0" encoding="UTF-8" version="1.0"?><a/>`, 1, declaration)
	f(`<?xml version="1.0" <a/>`, 1, declaration)
	f(`<?xml version="1.0" encoding="UTF-7"?><a/>`, 1, "declara la codificación «UTF-7»; guárdelo en UTF-8.")
	f("\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>", 1, `empieza como UTF-8 y declara ISO-8859-1; declare encoding="UTF-8".`)
	f("\xff\xfe<\x00a\x00/\x00>\x00", 1, wide)
	f("\x00<\x00a\x00/\x00>", 1, wide)
	f("<a>\n\xd1</a>", 2, "hay un byte que no es de UTF-8; guarde el documento en UTF-8.")
	f("<a>\xed\xa0\x80</a>", 1, "hay un byte que no es de UTF-8; guarde el documento en UTF-8.")
	f("<a>\xc0\xaf</a>", 1, "hay un byte que no es de UTF-8; guarde el documento en UTF-8.")
	f("<?xml version='1.0' encoding='windows-1252'?><a>\x81</a>", 1, "hay un byte que no es de windows-1252; guarde el documento en UTF-8.")
	f("<a>\x01</a>", 1, "hay un carácter de control (U+0001); quítelo.")
	f("<a>\ufffe</a>", 1, "hay un carácter que XML no admite (U+FFFE); quítelo.")

	// What is not well formed.
	f(``, 1, nothing)
	f(" \n<!-- x -->\n", 3, nothing)
	f(`hola`, 1, outside)
	f(`<a/>.`, 1, outside)
	f("<a/>\n<b/>", 2, "hay un segundo elemento raíz; envíe un solo documento.")
	f("<a>\n<b>\n", 3, "el documento termina y «b» no se cerró; envíelo completo.")
	f(`<a`, 1, "el documento termina dentro de una etiqueta; envíelo completo.")
	f(`<a><b></a>`, 1, "se esperaba el cierre de «b».")
	f(`<a></ab>`, 1, "se esperaba el cierre de «a».")
	f(`<a></a x="1">`, 1, "se esperaba el cierre de «a».")
	f(`<p:a xmlns:p="u" xmlns:q="u"></q:a>`, 1, "se esperaba el cierre de «p:a».")
	f(`</a>`, 1, "se cierra un elemento que no está abierto.")
	f(`<a>1 < 2</a>`, 1, noName)
	f(`< a/>`, 1, noName)
	f(`<1/>`, 1, noName)
	f(`<:a/>`, 1, noName)
	f(`<a:/>`, 1, noName)
	f(`<a / >`, 1, "se esperaba «>» después de «/».")
	f(`<a x="1"y="2"/>`, 1, "falta un espacio antes de un atributo, o un «>».")
	f(`<p:q:a/>`, 1, "falta un espacio antes de un atributo, o un «>».")
	f(`<a x/>`, 1, noValue)
	f(`<a x=1/>`, 1, noValue)
	f(`<a x="1/>`, 1, "un atributo no cierra sus comillas.")
	f(`<a x="<"/>`, 1, "hay un «<» en un atributo; se escribe &lt;.")
	f("<a x='1'\n x='2'/>", 1, "«a» repite el atributo «x».")
	f(`<a xmlns:p="u" xmlns:q="u" p:x="1" q:x="2"/>`, 1, "«a» repite el atributo «x».")
	f(`<a>]]></a>`, 1, "hay un «]]>» en el texto; el «>» se escribe &gt;.")
	f(`<a><![CDATA[x</a>`, 1, "una sección CDATA no se cierra.")
	f(`<a><!-- -- --></a>`, 1, "un comentario no puede llevar «--» dentro.")
	f(`<a><!-- --->`, 1, "un comentario no puede llevar «--» dentro.")
	f(`<a><!-- ></a>`, 1, "un comentario no se cierra.")

	// Namespaces.
	f("<a>\n<p:b/></a>", 2, "el prefijo «p» no está declarado.")
	f(`<a p:x="1"/>`, 1, "el prefijo de un atributo de «a» no está declarado.")
	f(`<a><p:b xmlns:p="u"/><p:c/></a>`, 1, "el prefijo «p» no está declarado.")
	f(`<xmlns:a/>`, 1, "el prefijo «xmlns» no está declarado.")
	f(`<a xmlns:p=""/>`, 1, "el prefijo «p» se declara sin espacio de nombres.")
	f(`<a xmlns:p="u" xmlns:p="u"/>`, 1, "el prefijo «p» se declara dos veces en un elemento.")
	f(`<a xmlns="u" xmlns="v"/>`, 1, "el prefijo «» se declara dos veces en un elemento.")
	f(`<a xmlns:xml="u"/>`, 1, reserved)
	f(`<a xmlns:xmlns="u"/>`, 1, reserved)
	f(`<a xmlns="http://www.w3.org/XML/1998/namespace"/>`, 1, reserved)

	// What a reason repeats of a document is short and prints.
	f(`<`+strings.Repeat("a", 50)+`>`, 1, "el documento termina y «"+strings.Repeat("a", 40)+"…» no se cerró; envíelo completo.")
	f("<a\u200d>", 1, "el documento termina y «a\ufffd» no se cerró; envíelo completo.")
}

// TestLimits: what is at a limit is read, what passes it is refused as such.
func TestLimits(t *testing.T) {
	f := func(limits Limits, within, beyond, reason string) {
		t.Helper()
		if _, err := told(within, limits); err != nil {
			t.Errorf("%.60q: %v", within, err)
		}
		_, err := told(beyond, limits)
		var e *Error
		if !errors.As(err, &e) || !e.Limit || e.Reason != reason {
			t.Errorf("%.60q: %v; want %s", beyond, err, reason)
		}
	}
	with := func(change func(*Limits)) Limits {
		l := Default
		change(&l)
		return l
	}
	f(with(func(l *Limits) { l.Bytes = 4 }), `<a/>`, `<ab/>`, "el documento ocupa 5 bytes y se admiten 4.")
	f(with(func(l *Limits) { l.Depth = 2 }), `<a><b/><b/></a>`, `<a><b><c/></b></a>`, "hay más de 2 elementos uno dentro de otro.")
	f(with(func(l *Limits) { l.Elements = 2 }), `<a><b/></a>`, `<a><b/><b/></a>`, "hay más de 2 elementos.")
	f(with(func(l *Limits) { l.Attributes = 2 }), `<a xmlns:p="u" x=""><b x="" y=""/></a>`, `<a xmlns:p="u" x="" y=""/>`, "un elemento tiene más de 2 atributos.")
	f(with(func(l *Limits) { l.Text = 3 }), `<a x="123"/>`, `<a x="1234"/>`, "un atributo ocupa más de 3 bytes.")
	f(with(func(l *Limits) { l.Instructions = 1 }), `<?xml-stylesheet href="x"?><a/>`, `<?b?><a><?c d?></a>`, "hay más de 1 instrucciones de proceso.")
	f(Default, `<`+strings.Repeat("a", 256)+`/>`, `<`+strings.Repeat("a", 257)+`/>`, "hay un nombre de más de 256 bytes.")
	bound := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `<a xmlns:p%d="u">`, i)
		}
		return b.String() + strings.Repeat("</a>", n)
	}
	f(with(func(l *Limits) { l.Depth = 1000 }), bound(128), bound(129), "hay más de 128 espacios de nombres declarados.")

	// An instruction that is passed over has a name.
	limits := with(func(l *Limits) { l.Instructions = 9 })
	for _, doc := range []string{`<??><a/>`, `<? b?><a/>`, `<?1?><a/>`, `<?b=?><a/>`} {
		if _, err := told(doc, limits); err == nil || !strings.Contains(err.Error(), "no tiene nombre") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// TestChildren goes through a document as its readers do.
func TestChildren(t *testing.T) {
	const doc = `<raiz xmlns="u">
	 <nota>uno<!-- x --> y <![CDATA[dos]]></nota><otra><nota>dentro</nota>texto</otra>
	 <vacia/><nota/> <grupo><nota>1</nota><nota>2</nota></grupo></raiz>`
	r, err := New([]byte(doc), Default)
	if err != nil {
		t.Fatal(err)
	}
	root, err := r.Next()
	if err != nil || !root.Is("u", "raiz") || root.Is("", "raiz") {
		t.Fatalf("%+v %v", root, err)
	}
	var seen []string
	notes := func(e Event) error {
		if !e.Is("u", "nota") {
			return nil
		}
		text, err := r.Text()
		seen = append(seen, text)
		return err
	}
	err = r.Children(func(e Event) error {
		if e.Name.Local == "grupo" {
			seen = append(seen, fmt.Sprintf("línea %d", r.Line()))
			return r.Children(notes)
		}
		return notes(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, "|"); got != "uno y dos||línea 3|1|2" {
		t.Error(got)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
	if err := r.Skip(); err == nil {
		t.Error("the inside of nothing was read")
	}
}

// TestOffsets cuts parts out of a document, as a reader does that may not show an
// Addenda to a schema. They are places in UTF-8, whatever the document was in.
func TestOffsets(t *testing.T) {
	f := func(doc, whole string, want ...string) {
		t.Helper()
		r, err := New([]byte(doc), Default)
		if err != nil {
			t.Fatal(err)
		}
		if r.Document() != whole {
			t.Errorf("%q", r.Document())
		}
		var parts []string
		cut := func(from int) { parts = append(parts, r.Document()[from:r.Offset()]) }
		if root, err := r.Next(); err != nil || r.Document()[root.Offset] != '<' {
			t.Fatalf("%+v %v", root, err)
		}
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			cut(e.Offset)
			if e.Kind == Start && e.Name.Local == "p" {
				if err := r.Skip(); err != nil {
					t.Fatal(err)
				}
				cut(e.Offset)
			}
		}
		if strings.Join(parts, "|") != strings.Join(want, "|") {
			t.Errorf("%q; want %q", parts, want)
		}
	}
	f("\xef\xbb\xbf<?xml version='1.0'?>\n<a> t&amp;<p x='1'><q/></p><!-- c --><![CDATA[d]]><e/></a>",
		"\n<a> t&amp;<p x='1'><q/></p><!-- c --><![CDATA[d]]><e/></a>",
		" t&amp;", "<p x='1'>", "<p x='1'><q/></p>", "<![CDATA[d]]>", "<e/>", "", "</a>")
	f("<?xml version='1.0' encoding='ISO-8859-1'?><a>\xd1<p>\xe1</p></a>", "<a>Ñ<p>á</p></a>", "Ñ", "<p>", "<p>á</p>", "</a>")
}

// TestInsideIsChecked: what a caller passes over is read like the rest, and an
// error of the caller ends the way.
func TestInsideIsChecked(t *testing.T) {
	open := func(doc string, limits Limits) *Reader {
		r, err := New([]byte(doc), limits)
		if err == nil {
			_, err = r.Next()
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	says := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	says(open("<a><b>\n<c x='1' x='2'/></b></a>", Default).Skip(), "XML, línea 2: «c» repite el atributo «x».")
	says(open("<a><b>", Default).Children(func(Event) error { return nil }), "XML, línea 1: el documento termina y «b» no se cerró; envíelo completo.")
	_, err := open("<a>1<b/></a>", Default).Text()
	says(err, "XML, línea 1: «a» lleva solo texto y tiene dentro «b».")
	small := Default
	small.Text = 4
	_, err = open("<a>12<!-- -->34</a>", small).Text()
	if err != nil {
		t.Error(err)
	}
	_, err = open("<a>12<!-- -->345</a>", small).Text()
	says(err, "XML, línea 1: el texto de «a» ocupa más de 4 bytes.")
	says(open("<a><b/></a>", Default).Children(func(Event) error { return io.ErrClosedPipe }), io.ErrClosedPipe.Error())
}

// TestManyPieces: a text in very many pieces costs what its bytes cost.
func TestManyPieces(t *testing.T) {
	const pieces = 100_000
	r, err := New([]byte("<a>"+strings.Repeat("x<!---->", pieces)+"</a>"), Default)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(1, func() {
		if len(r.open) == 0 {
			return // AllocsPerRun calls once to warm up
		}
		if text, err := r.Text(); err != nil || len(text) != pieces {
			t.Fatal(len(text), err)
		}
	})
	if n > 64 {
		t.Errorf("%v allocations", n)
	}
}

// TestEventsAllocateNothing: after the copy of the document, plain text, values
// and names are parts of it.
func TestEventsAllocateNothing(t *testing.T) {
	doc := []byte(`<c:A xmlns:c="http://www.sat.gob.mx/cfd/4" Version="4.0">` +
		strings.Repeat(`<c:B Importe="1.00" Nombre="Ñandú"><c:T>texto</c:T></c:B>`, 1000) + `</c:A>`)
	walk := func() {
		r, err := New(doc, Default)
		for err == nil {
			_, err = r.Next()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, walk); n > 12 {
		t.Errorf("%v allocations for 5,001 events", n)
	}
}

// TestPublishedDocuments reads invoices and receipts as they are published, and
// those that were made to do harm.
func TestPublishedDocuments(t *testing.T) {
	shared := os.Getenv("COTEJO_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(shared, "data", "cfdi", "samples")); err != nil {
		t.Skipf("no documents (set COTEJO_SHARED): %v", err)
	}
	refused := map[string]string{
		"m-billion-laughs.xml": "DOCTYPE", "m-xxe-file.xml": "DOCTYPE", "m-xxe-param.xml": "DOCTYPE",
		"m-deep-nesting.xml": "uno dentro de otro", "m-double-bom.xml": "fuera del elemento raíz", "m-dup-attr.xml": "repite el atributo",
		"m-huge-attr.xml": "un atributo ocupa más", "m-trailing-garbage.xml": "segundo elemento raíz", "m-utf16le-bom.xml": "UTF-16",
		// Broken by their publishers, so that a reader refuses them.
		"sw-broken_nomina12_01.xml": "se esperaba el cierre", "sw-cfdi33_bad_structure_01.xml": "referencia conocida",
		"sw-cfdi33_implocal_broken.xml": "se esperaba el cierre", "sw-cfdi40_01.xml": "«<» en un atributo",
		"sw-pago10_broken_01.xml": "se esperaba el cierre", "x-malformed-xml.xml": "dentro de una etiqueta",
	}
	limits := Default
	limits.Instructions = 1 // what one of them has is no part of what is sealed
	read := 0
	for _, folder := range []string{"cfdi/samples", "cep"} {
		err := filepath.WalkDir(filepath.Join(shared, "data", filepath.FromSlash(folder)), func(path string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".xml" {
				return err
			}
			doc, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			_, err = told(string(doc), limits)
			reason, bad := refused[filepath.Base(path)]
			switch {
			case bad && (err == nil || !strings.Contains(err.Error(), reason)):
				t.Errorf("%s: %v; want %s", path, err, reason)
			case !bad && err != nil:
				t.Errorf("%s: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 190 {
		t.Errorf("%d documents", read)
	}
}
