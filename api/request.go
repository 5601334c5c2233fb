package api

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"cotejo/operation"
)

// target is the request line's target taken apart, as sent. The slices alias
// the request.
type target struct {
	segments [][]byte
	query    []byte
}

// splitTarget takes a request target apart. Only the origin form is served:
// with an absolute URL the host would be the client's invention.
func splitTarget(uri []byte, buf [][]byte) (t target, ok bool) {
	if len(uri) == 0 || uri[0] != '/' || bytes.IndexByte(uri, '#') >= 0 {
		return t, false
	}
	path := uri
	if i := bytes.IndexByte(uri, '?'); i >= 0 {
		path, t.query = uri[:i], uri[i+1:]
	}
	t.segments = buf
	for rest := path[1:]; ; {
		i := bytes.IndexByte(rest, '/')
		if i < 0 {
			t.segments = append(t.segments, rest)
			return t, true
		}
		t.segments = append(t.segments, rest[:i])
		rest = rest[i+1:]
		if len(t.segments) > maxDepth {
			return t, true // no route is that deep
		}
	}
}

// wellFormed reports whether the headers can be read in one way only. fasthttp
// accepts both lengths at once, two content types and folded lines; something in front of us might
// read those differently. Its own fields no longer tell once the body was read,
// so the lines are looked at as they came.
func wellFormed(h *fasthttp.RequestHeader) bool {
	lengths, types := 0, 0
	for raw := h.RawHeaders(); len(raw) > 0; {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte{'\n'})
		if len(line) == 0 {
			continue
		}
		switch line[0] {
		case ' ', '\t':
			return false
		case 'c', 'C', 't', 'T':
			name, _, _ := bytes.Cut(line, []byte{':'})
			switch {
			case bytes.EqualFold(name, []byte(fasthttp.HeaderContentLength)), bytes.EqualFold(name, []byte(fasthttp.HeaderTransferEncoding)):
				lengths++
			case bytes.EqualFold(name, []byte(fasthttp.HeaderContentType)):
				types++
			}
		}
	}
	return lengths < 2 && types < 2
}

// decodePath appends the path parameters of an operation, in its order.
func decodePath(r *operation.Request, raw [][]byte) {
	for i := range r.Operation.Params {
		p := &r.Operation.Params[i]
		if p.In != operation.InPath || len(raw) == 0 {
			continue
		}
		segment := raw[0]
		raw = raw[1:]
		value, ok := "", len(segment) <= maxSegmentBytes
		if ok {
			value, ok = unescape(segment, false)
		}
		if !ok {
			r.Faults = append(r.Faults, operation.Item{
				Loc: []any{"path", p.Name}, Type: "value_error",
				Msg: "«" + p.Name + "» no se puede leer: use codificación URL de texto UTF-8, sin «/», «\\» ni caracteres de control, hasta " +
					strconv.Itoa(maxSegmentBytes) + " bytes",
			})
			continue
		}
		r.Args = append(r.Args, operation.Arg{In: operation.InPath, Name: p.Name, Value: value})
	}
}

// decodeQuery appends the query parameters, in the order sent.
func decodeQuery(r *operation.Request, query []byte) {
	if len(query) == 0 {
		return
	}
	if len(query) > maxQueryBytes {
		r.Faults = append(r.Faults, operation.Item{
			Loc: []any{"query"}, Type: "too_long", Ctx: map[string]any{"max_length": maxQueryBytes},
			Msg: "La consulta excede " + strconv.Itoa(maxQueryBytes) + " bytes; quite parámetros",
		})
		return
	}
	count := 0
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		if count++; count > maxQueryParams {
			r.Faults = append(r.Faults, operation.Item{
				Loc: []any{"query"}, Type: "too_long", Ctx: map[string]any{"max_length": maxQueryParams},
				Msg: "La consulta tiene más de " + strconv.Itoa(maxQueryParams) + " parámetros; quite los que no hagan falta",
			})
			return
		}
		rawName, rawValue, _ := bytes.Cut(pair, []byte{'='})
		name, okName := unescape(rawName, true)
		if !okName {
			name = ""
		}
		value, ok := unescape(rawValue, true)
		if !ok || !okName {
			loc := []any{"query"}
			if okName {
				loc = append(loc, name)
			}
			r.Faults = append(r.Faults, operation.Item{
				Loc: loc, Type: "value_error",
				Msg: "Un parámetro de la consulta no se puede leer: use codificación URL de texto UTF-8 sin caracteres de control",
			})
			continue
		}
		r.Args = append(r.Args, operation.Arg{In: operation.InQuery, Name: name, Value: value})
	}
}

// unescape decodes percent escapes exactly once. It refuses what is not valid
// UTF-8 or holds control characters, and, in a path, a slash or backslash that
// only the escape hid from the router. In a query a plus sign is a space.
func unescape(raw []byte, query bool) (string, bool) {
	var buf [maxSegmentBytes]byte
	out := buf[:0]
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '%':
			if i+2 >= len(raw) {
				return "", false
			}
			hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			c = byte(hi<<4 | lo)
			i += 2
		case c == '+' && query:
			c = ' '
		}
		if c < 0x20 || c == 0x7f || !query && (c == '/' || c == '\\') {
			return "", false
		}
		out = append(out, c)
	}
	if !utf8.Valid(out) {
		return "", false
	}
	return string(out), true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return int(c - 'A' + 10)
	}
	return -1
}
