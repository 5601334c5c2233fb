package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/snapshots"
)

const motorCompany = "COMPANY/1"

// Company asks what the official lists say about one RFC.
type Company struct {
	RFC checks.RFC
	// Sanciones asks the directory of sanctioned suppliers too
	// (?sancionados=false leaves it out, and its block is null).
	Sanciones bool
}

// What every answer repeats. It is short, because every answer is hashed. Blocks
// of sources that are not loaded say so and claim nothing: null is not zero, and
// not loaded is not "no match".
const (
	advertenciaCompany = "Hechos publicados; no es una calificación crediticia. No aparecer no es una aprobación."
	advertenciaArt69   = "Pudo cambiar después de la fecha de la versión."

	contratacionNoCargada = `{"contratos":null,"estado":"` + noCargada + `","por_anio":[]}`
	lista69BNoCargada     = `{"estado":"` + noCargada + `","fuente":null,"historial_eventos":[],"situaciones":[]}`
	art69NoCargado        = `{"advertencia":"` + advertenciaArt69 + `","estado":"` + noCargada +
		`","historial_eventos":[],"listas":[],"listas_consultadas":[]}`
	// The API allows this block no other word for a source that is not loaded.
	sancionadosNoDisponible = `{"estado":"` + noDisponible + `"}`
)

// Motor implements Question.
func (Company) Motor() string { return motorCompany }

// AppendEntrada implements Question.
func (c Company) AppendEntrada(dst []byte) []byte {
	dst = append(dst, `{"rfc":`...)
	dst = canon.AppendString(dst, c.RFC.String())
	dst = append(dst, `,"sancionados":`...)
	dst = strconv.AppendBool(dst, c.Sanciones)
	return append(dst, '}')
}

func parseCompany(entrada []byte) (Question, error) {
	var in struct {
		RFC       *string `json:"rfc"`
		Sanciones *bool   `json:"sancionados"`
	}
	dec := json.NewDecoder(bytes.NewReader(entrada))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	if in.RFC == nil || in.Sanciones == nil {
		return nil, errors.New("faltan rfc o sancionados")
	}
	rfc, err := checks.ParseRFC(*in.RFC)
	if err != nil {
		return nil, err
	}
	return Company{RFC: rfc, Sanciones: *in.Sanciones}, nil
}

// Chargeable implements Question.
func (Company) Chargeable(ed *snapshots.Edition) bool { return ed.Source(Sat69B.Source) != nil }

// AppendResultado implements Question. The answer is charged iff the 69-B list
// was consulted. A clean RFC costs one probe of the edition table and no
// allocation beyond dst.
func (c Company) AppendResultado(dst []byte, _ civil.Date, ed *snapshots.Edition) ([]byte, Outcome, error) {
	mentions := ed.Mentions(c.RFC.Key())
	out := Outcome{Code: noDisponible}
	list := ed.Source(Sat69B.Source)
	if list != nil {
		out = Outcome{Code: "COMPANY_OK", Charged: true, Consulted: 1 << list.Bit()}
	}

	dst = append(dst, `{"advertencia":"`+advertenciaCompany+`","contratacion_publica":`+contratacionNoCargada+
		`,"proveedores_sancionados":`...)
	if c.Sanciones {
		dst = append(dst, sancionadosNoDisponible...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"result_code":"`...)
	dst = append(dst, out.Code...)
	dst = append(dst, `","rfc":`...)
	dst = canon.AppendString(dst, c.RFC.String())
	dst = append(dst, `,"sat_69b":`...)
	var err error
	if list == nil {
		dst = append(dst, lista69BNoCargada...)
	} else if dst, err = append69B(dst, list, mentions&(1<<list.Bit()) != 0, c.RFC.String()); err != nil {
		return dst, out, err
	}
	dst = append(dst, `,"sat_69b_bis":`+lista69BNoCargada+`,"sat_art69":`+art69NoCargado+`,"tipo_persona":"`...)
	if c.RFC.Moral() {
		dst = append(dst, `moral"}`...)
	} else {
		dst = append(dst, `fisica"}`...)
	}
	return dst, out, nil
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
