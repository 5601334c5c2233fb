package operation

import (
	"bytes"
	"strconv"
	"time"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// appendActa appends the canonical JSON of what happened: when it was answered,
// which registro, under which id, and what only this installation knows of the
// versions that were consulted: no hash of the edition covers it. conocida is
// what appendConocida made, empty in an answer that is not about an earlier day;
// versions what appendVersions did.
func appendActa(dst []byte, id ledger.VerificationID, now time.Time, registroHash, conocida, versions []byte) []byte {
	dst = append(dst, '{')
	if len(conocida) > 0 {
		dst = append(dst, `"conocida":`...)
		dst = append(dst, conocida...)
		dst = append(dst, ',')
	}
	dst = append(dst, `"consultado":"`...)
	dst = civil.AppendTimestamp(dst, now)
	dst = append(dst, `","engine_version":"`+EngineVersion+`","registro_sha256":"`...)
	dst = append(dst, registroHash...)
	dst = append(dst, `","verification_id":"`...)
	dst = id.AppendTo(dst)
	dst = append(dst, `","versiones":[`...)
	dst = append(dst, versions...)
	return append(dst, "]}"...)
}

// appendVersions appends the versions that were consulted, as items of a JSON list.
func appendVersions(dst []byte, out *query.Outcome, ed *snapshots.Edition) []byte {
	sources := ed.Manifest().Sources
	first := true
	for bit := range out.Consulted.All() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		entry := &sources[bit]
		source := ed.Source(entry.Source)
		dst = appendVersion(dst, source.Version(), entry.PublishedReset)
		if !out.InPast.Has(bit) {
			continue
		}
		// The same bytes are named once: what is spliced in is found by their hash.
		if i, ok := source.VersionAt(out.EnFecha); ok && source.ChainManifest(i).SHA256 != entry.SHA256 {
			dst = append(dst, ',')
			dst = appendVersion(dst, source.ChainManifest(i), "")
		}
	}
	return dst
}

// appendVersion appends one item of versiones. publishedReset is empty for a
// version that the edition does not answer from: it may never have been served.
func appendVersion(dst []byte, v *snapshots.Version, publishedReset string) []byte {
	dst = append(dst, `{"descargada":`...)
	dst = canon.AppendString(dst, v.Downloaded)
	dst = append(dst, `,"id":`...)
	dst = strconv.AppendInt(dst, int64(v.ID), 10)
	dst = append(dst, `,"obtenida_de":`...)
	dst = canon.AppendString(dst, v.Obtained)
	if publishedReset != "" {
		dst = append(dst, `,"publicada_en_reset":`...)
		dst = canon.AppendString(dst, publishedReset)
	}
	dst = append(dst, `,"sha256":"`...)
	dst = append(dst, v.SHA256...)
	dst = append(dst, `","source":`...)
	dst = canon.AppendString(dst, v.Source)
	if v.Published != "" {
		dst = append(dst, `,"ultima_modificacion_servidor":`...)
		dst = canon.AppendString(dst, v.Published)
	}
	dst = append(dst, `,"url":`...)
	dst = canon.AppendString(dst, v.URL)
	return append(dst, '}')
}

// appendConocida appends what this service answered from at the end of the day
// that q asks about, as its acta states it; nothing when q is about the day of
// asking. Today ends with this answer: what counts is the edition that it is
// from.
func appendConocida(dst []byte, q query.Question, now time.Time, live *snapshots.Live, ed *snapshots.Edition) ([]byte, error) {
	past, ok := q.(query.AsOf)
	if !ok || past.EnFecha().IsZero() {
		return dst, nil
	}
	day := past.EnFecha()
	var open []*snapshots.Known
	defer func() {
		for _, k := range open {
			k.Release()
		}
	}()
	m := ed.Manifest()
	pinned := func(source string) *query.Served {
		s := ed.Source(source)
		if s == nil {
			return nil
		}
		return &query.Served{
			Edition: m.Number, SHA256: m.SHA256, Published: m.Published,
			Entry: s.Entry(), Version: s.Version(), Find: s.Find,
		}
	}
	return query.AppendConocida(dst, past, func(source string) (*query.Served, error) {
		if day == civil.Of(now) {
			return pinned(source), nil
		}
		k, err := live.KnownAt(source, day.End())
		if err != nil || k == nil {
			return nil, err
		}
		open = append(open, k)
		if k.Edition > m.Number { // taken up since ed was pinned
			return pinned(source), nil
		}
		return &query.Served{
			Edition: k.Edition, SHA256: k.SHA256, Published: k.Published,
			Entry: &k.Entry, Version: &k.Version, Find: k.Find,
		}, nil
	})
}

// acta is a stored acta taken apart. The slices alias it; all but the hashes
// are JSON texts as they stand there.
type acta struct {
	conocida       []byte // an object; nil when the question was not about an earlier day
	consultado     []byte
	engineVersion  []byte
	registroSHA256 []byte
	verificationID []byte
	versions       []byte // what stands between the brackets
}

// ActaMoment is when the answer of an acta was given, as it says itself: RFC 3339
// with whole seconds. ErrRecord when it is none that this program wrote.
func ActaMoment(text []byte) (string, error) {
	a, ok := readActa(text)
	if n := len(a.consultado); ok && n > 2 {
		return string(a.consultado[1 : n-1]), nil
	}
	return "", ErrRecord
}

// ActaVersions is the part of an acta that names the versions it consulted, as it
// stands there: items of a JSON list, without its brackets. ErrRecord as ActaMoment.
func ActaVersions(text []byte) ([]byte, error) {
	a, ok := readActa(text)
	if !ok {
		return nil, ErrRecord
	}
	return a.versions, nil
}

// actaVersion is one consulted version.
type actaVersion struct {
	id, source, sha256, url, obtained, downloaded []byte

	published []byte // nil for a version that the edition does not answer from
	modified  []byte // nil when the server did not say
}

// readActa takes apart what appendActa wrote. Being canonical, its members have
// one order, and it is read by position.
func readActa(text []byte) (a acta, ok bool) {
	c := cursor{text, true}
	c.skip(`{`)
	if c.at(`"conocida":`) {
		c.skip(`"conocida":`)
		a.conocida = c.object()
		c.skip(`,`)
	}
	c.skip(`"consultado":`)
	a.consultado = c.text()
	c.skip(`,"engine_version":`)
	a.engineVersion = c.text()
	c.skip(`,"registro_sha256":`)
	a.registroSHA256 = c.text()
	c.skip(`,"verification_id":`)
	a.verificationID = c.text()
	c.skip(`,"versiones":[`)
	if n := len(c.rest); c.ok && n >= 2 && string(c.rest[n-2:]) == "]}" {
		a.versions = c.rest[:n-2]
		return a, true
	}
	return a, false
}

// nextVersion reads the version at the head of list and returns what follows it.
func nextVersion(list []byte) (v actaVersion, rest []byte, ok bool) {
	c := cursor{list, true}
	c.skip(`{"descargada":`)
	v.downloaded = c.text()
	c.skip(`,"id":`)
	v.id = c.scalar()
	c.skip(`,"obtenida_de":`)
	v.obtained = c.text()
	if c.at(`,"publicada_en_reset":`) {
		c.skip(`,"publicada_en_reset":`)
		v.published = c.text()
	}
	c.skip(`,"sha256":`)
	v.sha256 = c.text()
	c.skip(`,"source":`)
	v.source = c.text()
	if c.at(`,"ultima_modificacion_servidor":`) {
		c.skip(`,"ultima_modificacion_servidor":`)
		v.modified = c.text()
	}
	c.skip(`,"url":`)
	v.url = c.text()
	c.skip(`}`)
	if len(c.rest) > 0 {
		c.skip(`,`)
	}
	return v, c.rest, c.ok
}

// cursor reads canonical JSON whose shape is known.
type cursor struct {
	rest []byte
	ok   bool
}

func (c *cursor) at(literal string) bool {
	return c.ok && len(c.rest) >= len(literal) && string(c.rest[:len(literal)]) == literal
}

func (c *cursor) skip(literal string) {
	if !c.at(literal) {
		c.ok = false
		return
	}
	c.rest = c.rest[len(literal):]
}

// text reads a JSON string and returns it with its quotes.
func (c *cursor) text() []byte {
	if !c.ok || len(c.rest) == 0 || c.rest[0] != '"' {
		c.ok = false
		return nil
	}
	for end := 1; ; end++ {
		n := bytes.IndexByte(c.rest[end:], '"')
		if n < 0 {
			c.ok = false
			return nil
		}
		end += n
		escapes := end
		for c.rest[escapes-1] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 0 {
			s := c.rest[:end+1]
			c.rest = c.rest[end+1:]
			return s
		}
	}
}

// object reads a JSON object and returns it as it stands.
func (c *cursor) object() []byte {
	if !c.at(`{`) {
		c.ok = false
		return nil
	}
	rest := cursor{c.rest, true}
	for depth := 0; ; {
		at := bytes.IndexAny(rest.rest, `"{}`)
		if at < 0 {
			c.ok = false
			return nil
		}
		switch found := rest.rest[at]; found {
		case '"':
			rest.rest = rest.rest[at:]
			if rest.text(); !rest.ok {
				c.ok = false
				return nil
			}
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		rest.rest = rest.rest[at+1:]
		if depth == 0 {
			o := c.rest[:len(c.rest)-len(rest.rest)]
			c.rest = rest.rest
			return o
		}
	}
}

// scalar reads a string, a number, true, false or null.
func (c *cursor) scalar() []byte {
	if c.at(`"`) {
		return c.text()
	}
	n := bytes.IndexAny(c.rest, `,:"[]{}`)
	if !c.ok || n <= 0 {
		c.ok = false
		return nil
	}
	s := c.rest[:n]
	c.rest = c.rest[n:]
	return s
}
