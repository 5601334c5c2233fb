package operation

import (
	"bytes"
	"math/bits"
	"strconv"
	"time"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/snapshots"
)

// appendActa appends the canonical JSON of what happened: when it was answered,
// which registro, under which id, and what only this installation knows of the
// versions that were consulted: no hash of the edition covers it. consulted has bit i for Sources[i] of ed.
func appendActa(dst []byte, id ledger.VerificationID, now time.Time, registroHash []byte, consulted uint64, ed *snapshots.Edition) []byte {
	dst = append(dst, `{"consultado":"`...)
	dst = civil.AppendTimestamp(dst, now)
	dst = append(dst, `","engine_version":"`+EngineVersion+`","registro_sha256":"`...)
	dst = append(dst, registroHash...)
	dst = append(dst, `","verification_id":"`...)
	dst = id.AppendTo(dst)
	dst = append(dst, `","versiones":[`...)
	sources := ed.Manifest().Sources
	for first := true; consulted != 0; consulted &= consulted - 1 {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		entry := &sources[bits.TrailingZeros64(consulted)]
		version := ed.Source(entry.Source).Version()
		dst = append(dst, `{"descargada":`...)
		dst = canon.AppendString(dst, version.Downloaded)
		dst = append(dst, `,"id":`...)
		dst = strconv.AppendInt(dst, int64(version.ID), 10)
		dst = append(dst, `,"obtenida_de":`...)
		dst = canon.AppendString(dst, version.Obtained)
		dst = append(dst, `,"publicada_en_reset":`...)
		dst = canon.AppendString(dst, entry.PublishedReset)
		dst = append(dst, `,"sha256":"`...)
		dst = append(dst, version.SHA256...)
		dst = append(dst, `","source":`...)
		dst = canon.AppendString(dst, version.Source)
		if version.Published != "" {
			dst = append(dst, `,"ultima_modificacion_servidor":`...)
			dst = canon.AppendString(dst, version.Published)
		}
		dst = append(dst, `,"url":`...)
		dst = canon.AppendString(dst, version.URL)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// acta is a stored acta taken apart. The slices alias it; all but the hashes
// are JSON texts as they stand there.
type acta struct {
	consultado     []byte
	engineVersion  []byte
	registroSHA256 []byte
	verificationID []byte
	versions       []byte // what stands between the brackets
}

// actaVersion is one consulted version.
type actaVersion struct {
	id, source, sha256, url, obtained, published, downloaded []byte

	modified []byte // nil when the server did not say
}

// readActa takes apart what appendActa wrote. Being canonical, its members have
// one order, and it is read by position.
func readActa(text []byte) (a acta, ok bool) {
	c := cursor{text, true}
	c.skip(`{"consultado":`)
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
	c.skip(`,"publicada_en_reset":`)
	v.published = c.text()
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
