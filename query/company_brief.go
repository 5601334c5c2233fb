package query

import (
	"errors"
	"unicode/utf8"
)

// MaxNote bounds the note of an Outcome, in bytes.
const MaxNote = 32

// Note is what an engine says of an answer in few bytes, for those who list many.
// It says nothing that the answer does not, and only its engine can read it.
type Note struct {
	bytes [MaxNote]byte
	n     int
}

// Bytes is the note as it is kept.
func (n *Note) Bytes() []byte { return n.bytes[:n.n] }

// CompanyBrief is what the note of a company's answer says: the states of its
// blocks, and what is asked of them first.
type CompanyBrief struct {
	Sat69B    string // states as the answer has them
	Situacion string // of the first item of sat_69b.situaciones; "" when there is none
	Sat69BBis string
	SatArt69  string
	Listas    uint16 // of sat_art69.listas: bit i is Art69Lists[i]
	// Sancionados is the state of proveedores_sancionados, "" when the block is null.
	Sancionados string
	Contratos   int // of contratacion_publica; -1 when the answer says null
}

// briefStates and briefSituaciones stand in a note by their place.
var (
	briefStates      = [...]string{"", coincidencia, sinCoincidencia, noCargada, noDisponible, "SIN_COINCIDENCIA"}
	briefSituaciones = [...]string{"", "Definitivo", "Presunto", "Desvirtuado", "Sentencia Favorable"}
)

// briefOther says that the text of a situation follows.
const briefOther = 0xff

var errBrief = errors.New("query: la nota de una respuesta no se puede leer")

// note packs a brief: a byte for each state, the lists, the contracts, the
// situation. One that no list had until today is cut to what has room.
func (b *CompanyBrief) note() (n Note) {
	for _, state := range [...]string{b.Sat69B, b.Sat69BBis, b.SatArt69, b.Sancionados} {
		for i, s := range briefStates {
			if s == state {
				n.bytes[n.n] = byte(i)
			}
		}
		n.n++
	}
	contracts := uint32(b.Contratos + 1)
	n.n += copy(n.bytes[n.n:], []byte{
		byte(b.Listas >> 8), byte(b.Listas),
		byte(contracts >> 24), byte(contracts >> 16), byte(contracts >> 8), byte(contracts),
	})
	for i, s := range briefSituaciones {
		if s == b.Situacion {
			n.bytes[n.n] = byte(i)
			n.n++
			return n
		}
	}
	n.bytes[n.n] = briefOther
	n.n++
	text := b.Situacion
	for len(text) > MaxNote-n.n {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	n.n += copy(n.bytes[n.n:], text)
	return n
}

// ReadCompanyBrief reads the note of a company's answer.
func ReadCompanyBrief(note []byte) (b CompanyBrief, err error) {
	const fixed = 4 + 2 + 4 + 1
	if len(note) < fixed {
		return b, errBrief
	}
	for i, to := range [...]*string{&b.Sat69B, &b.Sat69BBis, &b.SatArt69, &b.Sancionados} {
		if int(note[i]) >= len(briefStates) {
			return b, errBrief
		}
		*to = briefStates[note[i]]
	}
	b.Listas = uint16(note[4])<<8 | uint16(note[5])
	b.Contratos = int(uint32(note[6])<<24|uint32(note[7])<<16|uint32(note[8])<<8|uint32(note[9])) - 1
	switch rest := note[fixed:]; {
	case note[10] == briefOther:
		b.Situacion = string(rest)
	case int(note[10]) < len(briefSituaciones) && len(rest) == 0:
		b.Situacion = briefSituaciones[note[10]]
	default:
		return b, errBrief
	}
	return b, nil
}
