package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// Verdicts on one stored answer.
const (
	Coincide      = "coincide"                      // recomputed from its edition: the same bytes
	NoRecalculado = "íntegro, no recalculable"      // its hash holds; this binary lacks the engine
	NoCoincide    = "NO COINCIDE"                   // altered: record or edition
	SinArchivos   = "NO COINCIDE: archivo alterado" // a file of its edition is not the published one
)

// Finding is the verdict on one record.
type Finding struct {
	ID      string `json:"verification_id"`
	Verdict string `json:"veredicto"`
	Detail  string `json:"detalle,omitempty"`
	SHA256  string `json:"registro_sha256"`
	Edition string `json:"edicion_sha256"`
}

// OK reports whether nothing speaks against the record.
func (f Finding) OK() bool { return f.Verdict == Coincide || f.Verdict == NoRecalculado }

// Verifier lays stored answers beside what their editions say. It keeps the
// editions it used open until Close; it is not safe for concurrent use.
type Verifier struct {
	Sources, Sandbox *snapshots.Catalogue
	editions         map[editionKey]*openEdition
}

type editionKey struct {
	sha     string
	sandbox bool
}

// openEdition is an edition or the reason why it cannot be opened.
type openEdition struct {
	*snapshots.Edition
	err error
}

// Close releases the editions.
func (v *Verifier) Close() {
	for _, e := range v.editions {
		if e.Edition != nil {
			e.Release()
		}
	}
	v.editions = nil
}

// Check recomputes one record from the edition that it names.
func (v *Verifier) Check(r ledger.Record) Finding {
	sum := sha256.Sum256(r.Registro)
	f := Finding{ID: r.ID.String(), SHA256: hex.EncodeToString(sum[:])}
	fail := func(verdict, format string, args ...any) Finding {
		f.Verdict, f.Detail = verdict, fmt.Sprintf(format, args...)
		return f
	}

	var acta struct {
		ID     string `json:"verification_id"`
		SHA256 string `json:"registro_sha256"`
	}
	if err := json.Unmarshal(r.Acta, &acta); err != nil {
		return fail(NoCoincide, "el acta no es JSON: %v", err)
	}
	if acta.ID != f.ID {
		return fail(NoCoincide, "el acta es de %s", acta.ID)
	}
	if acta.SHA256 != f.SHA256 {
		return fail(NoCoincide, "el acta dice %s; el registro da %s", acta.SHA256, f.SHA256)
	}
	header, err := query.ReadHeader(r.Registro)
	if err != nil {
		return fail(NoCoincide, "%v", err)
	}
	f.Edition = header.Edition

	edition := v.open(editionKey{header.Edition, r.Sandbox})
	var corrupt *snapshots.CorruptError
	switch {
	case errors.As(edition.err, &corrupt):
		return fail(SinArchivos, "%v", edition.err)
	case edition.err != nil:
		return fail(NoCoincide, "edición %s: %v", header.Edition, edition.err)
	}
	again, err := query.Recompute(header, edition.Edition)
	switch {
	case errors.Is(err, query.ErrMotor):
		return fail(NoRecalculado, "%v", err)
	case err != nil:
		return fail(NoCoincide, "al recalcular: %v", err)
	case !bytes.Equal(again, r.Registro):
		sum := sha256.Sum256(again)
		return fail(NoCoincide, "recalculado da %s", hex.EncodeToString(sum[:]))
	}
	f.Verdict = Coincide
	return f
}

func (v *Verifier) open(key editionKey) *openEdition {
	if e, ok := v.editions[key]; ok {
		return e
	}
	catalogue := v.Sources
	if key.sandbox {
		catalogue = v.Sandbox
	}
	e := &openEdition{}
	manifest, err := catalogue.EditionBySHA256(key.sha)
	if err == nil {
		e.Edition, err = catalogue.OpenEdition(manifest)
	}
	e.err = err
	if v.editions == nil {
		v.editions = map[editionKey]*openEdition{}
	}
	v.editions[key] = e
	return e
}
