package safexml

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// The encodings that are read.
const (
	utf8Name    = "UTF-8"
	latin1Name  = "ISO-8859-1"
	windowsName = "windows-1252"
)

var mark = []byte("\xef\xbb\xbf")

// decode fills doc with the document in UTF-8, its declaration passed.
func (r *Reader) decode(doc []byte) error {
	if len(doc) >= 2 && (doc[0] == 0xFE && doc[1] == 0xFF || doc[0] == 0xFF && doc[1] == 0xFE || doc[0] == 0 || doc[1] == 0) {
		return &Error{Line: 1, Reason: "está en UTF-16 u otra codificación de dos bytes; guárdelo en UTF-8."}
	}
	body, marked := bytes.CutPrefix(doc, mark)
	declared, size, err := declaration(body)
	if err != nil {
		return err
	}
	switch {
	case declared == "" || strings.EqualFold(declared, utf8Name):
		r.encoding = utf8Name
	case marked:
		return &Error{Line: 1, Reason: fmt.Sprintf("empieza como UTF-8 y declara %s; declare encoding=\"UTF-8\".", quote(declared))}
	case strings.EqualFold(declared, latin1Name):
		r.encoding = latin1Name
	case strings.EqualFold(declared, windowsName):
		r.encoding = windowsName
	default:
		return &Error{Line: 1, Reason: fmt.Sprintf("declara la codificación «%s»; guárdelo en UTF-8.", quote(declared))}
	}
	switch r.encoding {
	case latin1Name:
		r.doc = transcode(body, charmap.ISO8859_1)
	case windowsName:
		r.doc = transcode(body, charmap.Windows1252)
	default:
		r.doc = string(body)
	}
	r.start, r.pos = size, size // of ASCII in each of the three
	return r.characters()
}

func transcode(body []byte, from *charmap.Charmap) string {
	var b strings.Builder
	b.Grow(len(body) + len(body)/16)
	for _, c := range body {
		b.WriteRune(from.DecodeByte(c)) // U+FFFD for what the encoding leaves open
	}
	return b.String()
}

// characters refuses what is no character of XML.
func (r *Reader) characters() error {
	for i := 0; i < len(r.doc); {
		c := r.doc[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return r.fail(i, "hay un carácter de control (U+%04X); quítelo.", c)
			}
			i++
			continue
		}
		char, size := utf8.DecodeRuneInString(r.doc[i:])
		switch {
		case char == utf8.RuneError && (size == 1 || r.encoding != utf8Name):
			return r.fail(i, "hay un byte que no es de %s; guarde el documento en UTF-8.", r.encoding)
		case !isChar(char):
			return r.fail(i, "hay un carácter que XML no admite (U+%04X); quítelo.", char)
		}
		i += size
	}
	return nil
}

// declaration reads <?xml …?>, if the document begins with it: the encoding, ""
// for none, and the bytes that it takes.
func declaration(body []byte) (encoding string, size int, err error) {
	rest, ok := bytes.CutPrefix(body, []byte("<?xml"))
	if !ok || len(rest) == 0 || !isBlank(rest[0]) && rest[0] != '?' {
		return "", 0, nil
	}
	const longest = 256
	end := bytes.Index(rest[:min(len(rest), longest)], []byte("?>"))
	malformed := &Error{Line: 1, Reason: `la declaración se escribe <?xml version="1.0" encoding="UTF-8"?>.`}
	if end < 0 {
		return "", 0, malformed
	}
	r := &Reader{doc: string(rest[:end]), limits: Limits{Text: longest}, line: 1}
	for i, name := range [...]string{"version", "encoding", "standalone"} {
		if from := r.pos; !r.blanks() || !r.follows(name) {
			r.pos = from
			if i == 0 {
				return "", 0, malformed
			}
			continue
		}
		value, err := r.value()
		switch {
		case err != nil:
			return "", 0, malformed
		case i == 0 && value != "1.0":
			return "", 0, &Error{Line: 1, Reason: "se admite XML 1.0."}
		case i == 1 && value == "", i == 2 && value != "yes" && value != "no":
			return "", 0, malformed
		case i == 1:
			encoding = value
		}
	}
	if r.blanks(); r.pos != len(r.doc) {
		return "", 0, malformed
	}
	return encoding, len("<?xml") + end + len("?>"), nil
}

// follows passes a name, if it comes next.
func (r *Reader) follows(name string) bool {
	if !strings.HasPrefix(r.doc[r.pos:], name) {
		return false
	}
	r.pos += len(name)
	return true
}
