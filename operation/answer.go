package operation

import (
	"bytes"
	"errors"

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

// shaMember is how a version's hash stands in a result. In canonical JSON a
// quote inside a string is always escaped, so that the marker behind '{' or ','
// can only be a member: no name or text of a source can imitate it.
const shaMember = `"sha256":`

// AppendAnswer appends the answer that a record stands for. It depends on
// nothing else, so an answer read again has the bytes it was given with.
//
// The members of resultado are kept in their order. Behind the hash of each
// version that the acta names stands what the acta knows of it: the registro
// can be recomputed anywhere, moments of this installation cannot.
func AppendAnswer(dst []byte, r *ledger.Record) ([]byte, error) {
	a, ok := readActa(r.Acta)
	resultado, found := query.Resultado(r.Registro)
	edition := cursor{r.Registro, true}
	edition.skip(`{"edicion_sha256":`)
	sha := edition.text()
	if !ok || !found || !edition.ok || len(resultado) < 2 || resultado[0] != '{' {
		return dst, ErrRecord
	}
	dst = append(dst, `{"verification_id":`...)
	dst = append(dst, a.verificationID...)
	dst = append(dst, `,"service":`...)
	dst = canon.AppendString(dst, r.Service)
	if members := resultado[1 : len(resultado)-1]; len(members) > 0 {
		dst = append(dst, ',')
		if dst, ok = appendSpliced(dst, members, a.versions); !ok {
			return dst, ErrRecord
		}
	}
	dst = append(dst, `,"consultado":`...)
	dst = append(dst, a.consultado...)
	dst = append(dst, `,"engine_version":`...)
	dst = append(dst, a.engineVersion...)
	dst = append(dst, `,"edicion_sha256":`...)
	dst = append(dst, sha...)
	dst = append(dst, `,"registro_sha256":`...)
	dst = append(dst, a.registroSHA256...)
	if r.Sandbox {
		dst = append(dst, `,"sandbox":true`...)
	}
	return append(dst, '}'), nil
}

// appendSpliced copies the members of a result and completes each version.
func appendSpliced(dst, members, versions []byte) ([]byte, bool) {
	from := 0
	for i := 0; ; {
		at := bytes.Index(members[i:], []byte(shaMember))
		if at < 0 {
			return append(dst, members[from:]...), true
		}
		at += i
		i = at + len(shaMember)
		if at > 0 && members[at-1] != '{' && members[at-1] != ',' {
			continue
		}
		value := cursor{members[i:], true}
		sha := value.text()
		if !value.ok {
			continue // not a string
		}
		i += len(sha)
		v, found, ok := findVersion(versions, sha)
		if !ok {
			return dst, false
		}
		if !found {
			continue
		}
		dst = append(dst, members[from:i]...)
		from = i
		dst = append(dst, `,"source_version_id":`...)
		dst = append(dst, v.id...)
		dst = append(dst, `,"publicada_en_reset":`...)
		dst = append(dst, v.published...)
		dst = append(dst, `,"descargada":`...)
		dst = append(dst, v.downloaded...)
		dst = append(dst, `,"ultima_modificacion_servidor":`...)
		if v.modified != nil {
			dst = append(dst, v.modified...)
		} else {
			dst = append(dst, "null"...)
		}
	}
}

// findVersion returns the version of the acta with a hash, a quoted JSON text.
// Of two sources that published the very same bytes the first one is named.
func findVersion(versions, sha []byte) (v actaVersion, found, ok bool) {
	for ok = true; len(versions) > 0; {
		v, versions, ok = nextVersion(versions)
		if !ok || bytes.Equal(v.sha256, sha) {
			return v, ok, ok
		}
	}
	return v, false, ok
}
