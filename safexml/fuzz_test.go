package safexml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

var seeds = []string{
	`<a/>`, `<a x="1" y='2'>b<c/>d</a>`, `<?xml version="1.0" encoding="UTF-8" standalone="no"?><a/>`,
	`<p:a xmlns:p="u" p:x="1"><b xmlns="v"/><!-- c --><![CDATA[<d>]]></p:a>`, `<a>&lt;&#209;&#x1F600;&amp;</a>`,
	"<a x='1\r\n2\t3'>\r\n4\r5</a>", `<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>`, `<a x="1" x="2"/>`, `<a/><b/>`, `<a><b></a></b>`,
	"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xd1</a>", "<?xml version='1.0' encoding='windows-1252'?><a>\x80\x81</a>",
	"\xef\xbb\xbf<a/>", "<a>\xff</a>", "<a>\x00</a>", "<a xmlns='\t'/>", `<a xmlns:p="">`, `<a><?b c?></a>`, `<a>]]></a>`, `<a:b:c/>`, `<a xmlns="u" xmlns:xml="v"/>`,
}

// FuzzNext: whatever the text, the reader ends, with events that balance or with
// an Error that can be shown; and what it reads the standard library reads too,
// as the same elements, attributes and text.
func FuzzNext(f *testing.F) {
	for _, doc := range seeds {
		f.Add([]byte(doc))
	}
	limits := Limits{Bytes: 1 << 16, Depth: 8, Elements: 50, Attributes: 8, Text: 1 << 10, Instructions: 2}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := flat(doc, limits)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Line > bytes.Count(doc, []byte("\n"))+1 || !utf8.ValidString(e.Reason) || len(e.Reason) > 400 {
				t.Fatalf("%q: %v", doc, err)
			}
			return
		}
		want, err := standard(doc)
		if err != nil {
			// The standard library knows the names of an earlier edition of XML.
			if strings.Contains(err.Error(), "invalid XML name") || strings.Contains(err.Error(), "expected element name") || strings.Contains(err.Error(), "expected attribute name") {
				return
			}
			t.Fatalf("%q: read as %q; the standard library says %v", doc, got, err)
		}
		if got != want && !strings.Contains(got, "|xmlns>") { // an element of that name gets no namespace from it
			t.Fatalf("%q:\nread as %q\nthe standard library %q", doc, got, want)
		}
	})
}

// flat writes a document on one line, the blanks of values alike.
func flat(doc []byte, limits Limits) (string, error) {
	r, err := New(doc, limits)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	depth, before := 0, 0
	for {
		e, err := r.Next()
		if err == nil && (e.Offset < before || r.Offset() < e.Offset || r.Offset() > len(r.Document())) {
			return "", fmt.Errorf("event at %d, from %d to %d", e.Offset, before, r.Offset())
		}
		before = r.Offset()
		switch {
		case err == io.EOF && depth == 0:
			return b.String(), nil
		case err != nil:
			return "", err
		case e.Kind == Start:
			depth++
			fmt.Fprintf(&b, "<%s|%s", sameBlanks.Replace(e.Name.Space), e.Name.Local)
			for _, a := range e.Attrs {
				fmt.Fprintf(&b, " %s|%s=%q", sameBlanks.Replace(a.Name.Space), a.Name.Local, sameBlanks.Replace(a.Value))
			}
			b.WriteString(">")
		case e.Kind == End:
			depth--
			fmt.Fprintf(&b, "</%s|%s>", sameBlanks.Replace(e.Name.Space), e.Name.Local)
		default:
			b.WriteString(sameBlanks.Replace(e.Text))
		}
	}
}

// sameBlanks: the standard library neither normalises values nor tells &#13; from
// a line end.
var sameBlanks = strings.NewReplacer("\t", " ", "\r\n", " ", "\r", " ", "\n", " ")

func standard(doc []byte) (string, error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(doc, mark)))
	d.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		if strings.EqualFold(label, latin1Name) {
			return charmap.ISO8859_1.NewDecoder().Reader(input), nil
		}
		return charmap.Windows1252.NewDecoder().Reader(input), nil
	}
	var b strings.Builder
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			fmt.Fprintf(&b, "<%s|%s", sameBlanks.Replace(token.Name.Space), token.Name.Local)
			for _, a := range token.Attr {
				if a.Name.Space != "xmlns" && (a.Name.Space != "" || a.Name.Local != "xmlns") {
					fmt.Fprintf(&b, " %s|%s=%q", sameBlanks.Replace(a.Name.Space), a.Name.Local, sameBlanks.Replace(a.Value))
				}
			}
			b.WriteString(">")
		case xml.EndElement:
			depth--
			fmt.Fprintf(&b, "</%s|%s>", sameBlanks.Replace(token.Name.Space), token.Name.Local)
		case xml.CharData:
			if depth > 0 {
				b.WriteString(sameBlanks.Replace(string(token)))
			}
		}
	}
}
