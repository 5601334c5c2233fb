// Package query answers questions from one edition: pure functions, without
// clock, network or randomness. The same question and edition give the same
// bytes, today and in ten years.
//
// An answer is a registro: canonical JSON (RFC 8785) that names the edition,
// the question, the civil day it was asked about, the engine and the result.
// Start reading at AppendRegistro; one file per engine follows.
package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/snapshots"
)

// Question is one engine's input.
type Question interface {
	// Motor names the engine and its generation, as COMPANY/1. The generation is
	// raised only when the same input and edition would give another answer.
	Motor() string
	// AppendEntrada appends the input in canonical JSON.
	AppendEntrada(dst []byte) []byte
	// Chargeable tells, without asking, whether an answer from ed can be one that
	// is paid for. An Outcome is Charged only if it is true.
	Chargeable(ed *snapshots.Edition) bool
	// AppendResultado appends the result in canonical JSON. fecha is the civil day
	// asked about; an AsOf is asked about its own.
	AppendResultado(dst []byte, fecha civil.Date, ed *snapshots.Edition) ([]byte, Outcome, error)
}

// Outcome is what the caller must know of an answer without reading it.
type Outcome struct {
	Code      string    // result_code
	Charged   bool      // whether it is an answer that is paid for
	Consulted index.Set // sources that were asked: i is ed.Manifest().Sources[i]
	// EnFecha, when it is a date, says that the sources of InPast, which are among
	// Consulted, were also asked for their version of that day (Source.VersionAt),
	// where they have one.
	EnFecha civil.Date
	InPast  index.Set
	// Note is for lists of many answers; empty from an engine that makes none.
	Note Note
}

// Source states, as the API names them.
const (
	coincidencia    = "COINCIDENCIA"
	sinCoincidencia = "SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA"
	noCargada       = "SOURCE_NOT_LOADED"
	noDisponible    = "SOURCE_UNAVAILABLE"
)

// ErrMotor says that this binary does not hold the engine that gave an answer:
// the answer can be checked for integrity but not recomputed.
var ErrMotor = errors.New("query: este binario no contiene el motor que dio la respuesta")

// engines reads the entrada of every engine that this binary can recompute.
var engines = map[string]func(entrada []byte) (Question, error){
	motorCompany:   parseCompany,
	motorContracts: parseContracts,
}

// AppendRegistro appends the answer to q from ed, asked about the civil day
// fecha unless q names an earlier one.
func AppendRegistro(dst []byte, q Question, fecha civil.Date, ed *snapshots.Edition) ([]byte, Outcome, error) {
	if past, ok := q.(AsOf); ok && !past.EnFecha().IsZero() {
		fecha = past.EnFecha()
	}
	dst = append(dst, `{"edicion_sha256":"`...)
	dst = append(dst, ed.Manifest().SHA256...)
	dst = append(dst, `","entrada":`...)
	dst = q.AppendEntrada(dst)
	dst = append(dst, `,"fecha":"`...)
	dst = fecha.AppendTo(dst)
	dst = append(dst, `","motor":`...)
	dst = canon.AppendString(dst, q.Motor())
	dst = append(dst, `,"observado":null,"resultado":`...)
	dst, outcome, err := q.AppendResultado(dst, fecha, ed)
	return append(dst, '}'), outcome, err
}

// Header is what a registro says of itself: enough to compute it again.
type Header struct {
	Edition string          `json:"edicion_sha256"`
	Entrada json.RawMessage `json:"entrada"`
	Fecha   civil.Date      `json:"fecha"`
	Motor   string          `json:"motor"`
}

// ReadHeader reads a stored registro.
func ReadHeader(registro []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(registro, &h); err != nil {
		return h, fmt.Errorf("el registro no es JSON: %w", err)
	}
	return h, nil
}

// Question reads what was asked. It returns ErrMotor when this binary lacks the
// engine.
func (h *Header) Question() (Question, error) {
	parse, ok := engines[h.Motor]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrMotor, h.Motor)
	}
	q, err := parse(h.Entrada)
	if err != nil {
		return nil, fmt.Errorf("entrada de %s: %w", h.Motor, err)
	}
	if past, ok := q.(AsOf); ok && !past.EnFecha().IsZero() && past.EnFecha() != h.Fecha {
		return nil, fmt.Errorf("entrada de %s: en_fecha es %s y fecha es %s", h.Motor, past.EnFecha(), h.Fecha)
	}
	return q, nil
}

// Recompute answers again what a registro answered, from the edition that its
// header names. It returns ErrMotor when this binary lacks the engine.
func Recompute(h Header, ed *snapshots.Edition) ([]byte, error) {
	q, err := h.Question()
	if err != nil {
		return nil, err
	}
	registro, _, err := AppendRegistro(nil, q, h.Fecha, ed)
	return registro, err
}

// Parts are members of a registro as JSON texts; they alias it.
type Parts struct {
	Edition   []byte // quoted
	Motor     []byte // quoted
	Resultado []byte
}

// Split takes a registro apart without parsing what the members hold: it is the
// way of every answer. ReadHeader is for one that is to be computed again.
func Split(registro []byte) (p Parts, ok bool) {
	if len(registro) < 2 || registro[0] != '{' || registro[len(registro)-1] != '}' {
		return p, false
	}
	depth, inString, start := 0, false, 0
	var name []byte // of the member of the outermost object that was begun
	for i, end := 0, len(registro)-1; i < end; i++ {
		c := registro[i]
		if inString {
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
				if depth == 1 && name == nil {
					name = registro[start : i+1]
				}
			}
			continue
		}
		switch c {
		case '"':
			inString = true
			if name == nil {
				start = i
			}
		case ':':
			if depth != 1 {
				break
			}
			start = i + 1
			// resultado is the last member in canonical order.
			if string(name) == `"resultado"` {
				p.Resultado = registro[start:end]
				return p, p.Edition != nil && p.Motor != nil
			}
		case ',':
			if depth != 1 {
				break
			}
			switch string(name) {
			case `"edicion_sha256"`:
				p.Edition = registro[start:i]
			case `"motor"`:
				p.Motor = registro[start:i]
			}
			name = nil
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	return p, false
}

// appendFuente appends the provenance of a version as the registro states it,
// and how old it was on the day asked about: desactualizada says that the
// authority's rhythm lets expect a newer one. What the version says stays true
// of it.
// What only this installation knows (version id, where the file was got from
// and when, moment of activation) belongs to the acta: edicion_sha256 does not
// cover it, and a registro must be the same on every machine.
func appendFuente(dst []byte, schema *snapshots.Schema, v *snapshots.ChainVersion, fecha civil.Date) []byte {
	age := v.OrderDate.Days(fecha)
	dst = append(dst, `{"antiguedad_dias":`...)
	dst = appendInt(dst, age)
	dst = append(dst, `,"corte":`...)
	dst = appendDay(dst, v.Corte)
	dst = append(dst, `,"desactualizada":`...)
	dst = strconv.AppendBool(dst, schema.MaxAge > 0 && age > schema.MaxAge)
	dst = append(dst, ',')
	return appendVersion(dst, schema.Source, v)
}

// appendFuenteEnFecha is appendFuente in an answer about an earlier day, where a
// version is in force or not, and never old.
func appendFuenteEnFecha(dst []byte, source string, v *snapshots.ChainVersion) []byte {
	dst = append(dst, `{"corte":`...)
	dst = appendDay(dst, v.Corte)
	dst = append(dst, `,"fecha_de_orden":`...)
	dst = appendDay(dst, v.OrderDate)
	dst = append(dst, ',')
	return appendVersion(dst, source, v)
}

func appendVersion(dst []byte, source string, v *snapshots.ChainVersion) []byte {
	dst = append(dst, `"id":`...)
	dst = canon.AppendString(dst, source)
	dst = append(dst, `,"registros_en_version":`...)
	dst = appendInt(dst, v.Rows)
	dst = append(dst, `,"sha256":"`...)
	dst = append(dst, v.SHA256...)
	return append(dst, `"}`...)
}

// appendDay appends a day, null when it is no date.
func appendDay(dst []byte, d civil.Date) []byte {
	if d.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = d.AppendTo(dst)
	return append(dst, '"')
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
