package catalog

import (
	"strconv"

	"cotejo/canon"
	"cotejo/civil"
)

// AppendMembers appends the members of the object that every answer states the
// version as, the first without a comma before it. kind is lista or serie: origen says lista_incluida of what the program carries, and
// lista_cargada of a version that was ingested; of the first, what only an
// installation knows is null.
func (v *Version) AppendMembers(dst []byte, kind string) []byte {
	dst = canon.AppendString(append(dst, `"id":`...), v.ID)
	dst = canon.AppendString(append(dst, `,"nombre":`...), v.Source)
	dst = appendKnown(append(dst, `,"url":`...), v.URL)
	dst = appendKnown(append(dst, `,"obtenida_de":`...), v.Retrieved)
	dst = appendDay(append(dst, `,"version":`...), v.Date)
	dst = canon.AppendString(append(dst, `,"sha256":`...), v.SHA256)
	dst = strconv.AppendInt(append(dst, `,"registros":`...), int64(v.Rows), 10)
	dst = appendKnown(append(dst, `,"cobertura":`...), v.Coverage)
	l := v.Loaded
	if l == nil {
		dst = canon.AppendString(append(dst, `,"origen":`...), kind+"_incluida")
		return append(dst, `,"source_version_id":null,"corte":null,"publicada_en_reset":null,"ultima_modificacion_servidor":null,"descargada":null`...)
	}
	dst = canon.AppendString(append(dst, `,"origen":`...), kind+"_cargada")
	dst = strconv.AppendInt(append(dst, `,"source_version_id":`...), int64(l.ID), 10)
	dst = appendDay(append(dst, `,"corte":`...), l.Corte)
	dst = appendKnown(append(dst, `,"publicada_en_reset":`...), l.Activated)
	dst = appendKnown(append(dst, `,"ultima_modificacion_servidor":`...), l.Published)
	return appendKnown(append(dst, `,"descargada":`...), l.Downloaded)
}

// appendKnown appends null for a text that nothing states.
func appendKnown(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return canon.AppendString(dst, text)
}

// appendDay appends null for no date.
func appendDay(dst []byte, d civil.Date) []byte {
	if d.IsZero() {
		return append(dst, "null"...)
	}
	return append(d.AppendTo(append(dst, '"')), '"')
}
