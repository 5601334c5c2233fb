package operation

import (
	"bytes"
	"errors"
	"sync"

	"cotejo/canon"
	"cotejo/ledger"
	"cotejo/query"
)

// EngineVersion is the version of the API as every answer states it. It stands
// for the shape of the answers; which engine answered is in the registro.
const EngineVersion = "1.0.0"

// ErrRecord says that a stored record cannot be read: it was not written by
// this program, or it was damaged.
var ErrRecord = errors.New("operation: el registro guardado no se puede leer")

// Members of what a result says of a version. In canonical JSON a quote inside a
// string is always escaped, so that a marker behind '{' or ',' can only be a
// member: no name or text of a source can imitate it.
const (
	idMember  = `"id":`
	shaMember = `"sha256":`
)

// AppendAnswer appends the answer that a record stands for. It depends on
// nothing but Registro, Acta, Service and Sandbox, so an answer read again has
// the bytes it was given with.
//
// The members of resultado are kept in their order. Behind the hash of each
// version that the acta names stands what the acta knows of it: the registro
// can be recomputed anywhere, from what the answer says of edition, day, engine
// and question; what happened at this installation cannot. So what it answered
// from on an earlier day (conocida) stands behind resultado, as the acta has it.
func AppendAnswer(dst []byte, r *ledger.Record) ([]byte, error) {
	s := splicers.Get().(*splicer)
	defer splicers.Put(s)
	return s.append(dst, r)
}

// append is AppendAnswer.
func (s *splicer) append(dst []byte, r *ledger.Record) ([]byte, error) {
	a, ok := readActa(r.Acta)
	parts, whole := query.Split(r.Registro)
	if n := len(parts.Resultado); !ok || !whole || !s.use(a.versions) || n < 2 || parts.Resultado[0] != '{' || parts.Resultado[n-1] != '}' {
		return dst, ErrRecord
	}
	dst = append(dst, `{"verification_id":`...)
	dst = append(dst, a.verificationID...)
	dst = append(dst, `,"service":`...)
	dst = canon.AppendString(dst, r.Service)
	if members := parts.Resultado[1 : len(parts.Resultado)-1]; len(members) > 0 {
		dst = s.splice(append(dst, ','), members)
	}
	if a.conocida != nil {
		dst = append(dst, `,"conocida":`...)
		dst = append(dst, a.conocida...)
	}
	dst = append(dst, `,"consultado":`...)
	dst = append(dst, a.consultado...)
	dst = append(dst, `,"engine_version":`...)
	dst = append(dst, a.engineVersion...)
	dst = append(dst, `,"motor":`...)
	dst = append(dst, parts.Motor...)
	dst = append(dst, `,"edicion_sha256":`...)
	dst = append(dst, parts.Edition...)
	dst = append(dst, `,"registro_sha256":`...)
	dst = append(dst, a.registroSHA256...)
	if r.Sandbox {
		dst = append(dst, `,"sandbox":true`...)
	}
	return append(dst, '}'), nil
}

// splicer completes answers. It remembers the versions of the acta before: answers
// of one time and edition name the same ones.
type splicer struct {
	versions []byte        // of an acta, as readActa has them
	texts    []splicedText // of each of them

	models [2]model // results that were completed with them
	turn   int      // the model that is replaced next
}

// model is a result as it was completed. Most results of one time and edition differ
// from another one in a single text.
type model struct {
	members, completed []byte
	inserts            []insert
}

// insert is one text that completed a result.
type insert struct{ at, length int } // at: in the members

// splicedText is what is said of a version behind its hash.
type splicedText struct{ source, sha256, text []byte }

var splicers = sync.Pool{New: func() any { return new(splicer) }}

// use prepares for the versions of an acta.
func (s *splicer) use(versions []byte) (ok bool) {
	if len(s.texts) > 0 && bytes.Equal(versions, s.versions) {
		return true
	}
	s.versions = append(s.versions[:0], versions...)
	s.texts = s.texts[:0]
	for i := range s.models {
		s.models[i].members = s.models[i].members[:0]
	}
	var room []byte
	for rest := s.versions; len(rest) > 0; {
		var v actaVersion
		if v, rest, ok = nextVersion(rest); !ok {
			s.texts = s.texts[:0]
			return false
		}
		begin := len(room)
		room = append(append(room, `,"source_version_id":`...), v.id...)
		room = append(append(room, `,"url":`...), v.url...)
		room = append(append(room, `,"obtenida_de":`...), v.obtained...)
		room = appendOrNull(append(room, `,"publicada_en_reset":`...), v.published)
		room = append(append(room, `,"descargada":`...), v.downloaded...)
		room = appendOrNull(append(room, `,"ultima_modificacion_servidor":`...), v.modified)
		s.texts = append(s.texts, splicedText{v.source, v.sha256, room[begin:len(room):len(room)]})
	}
	return true
}

// find returns what is to be said of a version by its source and hash, both quoted
// JSON texts; nil when the acta does not name it. An answer names most versions in the
// order in which they stand here: at is where the one before was found.
func (s *splicer) find(at *int, source, sha []byte) []byte {
	for n := range s.texts {
		i := (*at + 1 + n) % len(s.texts)
		if t := &s.texts[i]; bytes.Equal(t.sha256, sha) && bytes.Equal(t.source, source) {
			*at = i
			return t.text
		}
	}
	return nil
}

// splice copies the members of a result and completes each version: the
// value of sha256 in an object whose id, before it, is the version's source.
func (s *splicer) splice(dst, members []byte) []byte {
	for i := range s.models {
		if done, ok := s.models[i].like(dst, members); ok {
			return done
		}
	}
	m, start := &s.models[s.turn], len(dst)
	m.members, m.inserts = m.members[:0], m.inserts[:0]
	dst = s.complete(dst, members, m)
	if len(members) <= maxModel {
		s.turn = (s.turn + 1) % len(s.models)
		m.members, m.completed = append(m.members, members...), append(m.completed[:0], dst[start:]...)
	}
	return dst
}

// complete is splice without a model. It notes in m what it inserts.
func (s *splicer) complete(dst, members []byte, m *model) []byte {
	from := 0 // of what is not copied yet
	last := -1
	for next := 0; ; {
		at := indexMember(members[next:], shaMember)
		if at < 0 {
			return append(dst, members[from:]...)
		}
		at += next
		value := cursor{members[at+len(shaMember):], true}
		sha := value.text()
		next = len(members) - len(value.rest)
		if !value.ok {
			next = at + len(shaMember)
			continue // not a string
		}
		id := idBefore(members[from:at])
		if id == nil {
			continue
		}
		if text := s.find(&last, id, sha); text != nil {
			dst = append(dst, members[from:next]...)
			dst = append(dst, text...)
			from = next
			m.inserts = append(m.inserts, insert{next, len(text)})
		}
	}
}

// maxModel bounds a result that others are completed after, in bytes.
const maxModel = 64 << 10

// like completes members after the model, if they differ from it in nothing but the
// text of one member whose name is none of those that find a version. In canonical JSON
// a quote inside a text is escaped, so `":"` can only stand before a text.
func (m *model) like(dst, members []byte) ([]byte, bool) {
	if len(members) != len(m.members) {
		return dst, false
	}
	at := firstDifference(members, m.members)
	if at == len(members) {
		return append(dst, m.completed...), true
	}
	begin := bytes.LastIndexByte(members[:at], '"') + 1
	name := bytes.TrimSuffix(members[:begin], []byte(`"`))
	if !bytes.HasSuffix(name, []byte(`":`)) || bytes.HasSuffix(name, []byte(idMember)) || bytes.HasSuffix(name, []byte(shaMember)) {
		return dst, false
	}
	length := bytes.IndexByte(members[begin:], '"')
	if length < 0 {
		return dst, false
	}
	text, before := members[begin:begin+length], m.members[begin:begin+length]
	if bytes.IndexByte(text, '\\') >= 0 || bytes.ContainsAny(before, `"\`) || !bytes.Equal(members[begin+length:], m.members[begin+length:]) {
		return dst, false
	}
	start := len(dst)
	dst = append(dst, m.completed...)
	for _, i := range m.inserts {
		if i.at <= begin {
			start += i.length
		}
	}
	copy(dst[start+begin:], text)
	return dst, true
}

// firstDifference is the length of what a and b, which are as long, begin with alike.
func firstDifference(a, b []byte) (n int) {
	const piece = 256
	for len(a)-n >= piece && bytes.Equal(a[n:n+piece], b[n:n+piece]) {
		n += piece
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

func appendOrNull(dst, value []byte) []byte {
	if value == nil {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

// indexMember returns the place of the first member with a name, -1 if there is
// none.
func indexMember(text []byte, name string) int {
	for i := 0; ; {
		at := bytes.Index(text[i:], []byte(name))
		if at < 0 {
			return -1
		}
		at += i
		if at == 0 || text[at-1] == '{' || text[at-1] == ',' {
			return at
		}
		i = at + len(name)
	}
}

// idBefore returns the value of the member id of the object that text breaks off
// in, nil when it has none. Between the two stand scalars only.
func idBefore(text []byte) []byte {
	at := bytes.LastIndex(text, []byte(idMember))
	for at > 0 && text[at-1] != '{' && text[at-1] != ',' {
		at = bytes.LastIndex(text[:at], []byte(idMember))
	}
	if at < 0 {
		return nil
	}
	c := cursor{text[at+len(idMember):], true}
	id := c.text()
	for c.ok && len(c.rest) > 1 {
		c.skip(`,`)
		c.text()
		c.skip(`:`)
		c.scalar()
	}
	if !c.at(`,`) {
		return nil
	}
	return id
}
