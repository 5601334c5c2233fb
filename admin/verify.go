package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// Verdicts on one stored answer.
const (
	Coincide      = "coincide"                       // recomputed from its edition: the same bytes
	NoRecalculado = "íntegro, no recalculable"       // its hash holds; this binary lacks the engine
	NoCoincide    = "NO COINCIDE"                    // altered: record or acta
	SinArchivos   = "NO COINCIDE: archivo alterado"  // a file of its edition is not the published one
	SinEdicion    = "NO COINCIDE: falta su edición"  // no edition of that hash is in this directory
	Ilegible      = "NO COINCIDE: registro ilegible" // what is stored is no record any more
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

func (f *Finding) fail(verdict, format string, args ...any) {
	f.Verdict, f.Detail = verdict, fmt.Sprintf(format, args...)
}

// Verifier lays stored answers beside what their editions say. It keeps the
// editions that it used last open until Close; it is not safe for concurrent
// use. Its zero value needs the catalogues only.
type Verifier struct {
	Sources, Sandbox *snapshots.Catalogue
	editions         []*openEdition        // the one used last comes last
	known            map[bool]*editionList // by sandbox; read when first asked for
}

// maxEditions bounds the editions that are open at once: each maps its files.
const maxEditions = 4

// openEdition is an edition, or why what is on this disk is not the edition.
type openEdition struct {
	sha     string
	sandbox bool
	*snapshots.Edition
	fault error

	catalogue *snapshots.Catalogue
	manifests []snapshots.EditionManifest // of every edition with this hash
	versions  map[int]snapshots.Version   // read so far
}

// differs says what an acta differs in from the edition that it was written of,
// which is one of those with this hash; "" when it agrees with one of them.
func (e *openEdition) differs(a *acta, registro []byte, past map[string]*snapshots.Version) (what string) {
	for i := range e.manifests {
		if what = a.differs(registro, &e.manifests[i], past, e.version); what == "" {
			return ""
		}
	}
	return what
}

func (e *openEdition) version(id int) (snapshots.Version, error) {
	if v, known := e.versions[id]; known {
		return v, nil
	}
	v, err := e.catalogue.Version(id)
	if err == nil {
		e.versions[id] = v
	}
	return v, err
}

// Close releases the editions.
func (v *Verifier) Close() {
	for _, e := range v.editions {
		e.release()
	}
	v.editions = nil
}

func (e *openEdition) release() {
	if e.Edition != nil {
		e.Release()
	}
}

// Check recomputes one record from the edition that it names and compares its
// acta with that edition. The error is for what kept it from looking, and says
// nothing about the record.
func (v *Verifier) Check(r ledger.Record) (Finding, error) {
	sum := sha256.Sum256(r.Registro)
	f := Finding{ID: r.ID.String(), SHA256: hex.EncodeToString(sum[:])}
	a, err := readActa(r.Acta)
	if err != nil {
		f.fail(NoCoincide, "acta: %v", err)
		return f, nil
	}
	if a.ID != f.ID {
		f.fail(NoCoincide, "el acta es de %s", a.ID)
		return f, nil
	}
	if a.SHA256 != f.SHA256 {
		f.fail(NoCoincide, "el acta dice %s; el registro da %s", a.SHA256, f.SHA256)
		return f, nil
	}
	header, err := query.ReadHeader(r.Registro)
	if err != nil {
		f.fail(NoCoincide, "%v", err)
		return f, nil
	}
	f.Edition = header.Edition
	if what := besideDiffers(&r, &header, &a); what != "" {
		f.fail(NoCoincide, "%s", what)
		return f, nil
	}

	edition, err := v.open(header.Edition, r.Sandbox)
	if err != nil {
		return f, fmt.Errorf("%s: edición %s: %w", f.ID, header.Edition, err)
	}
	if edition.fault != nil {
		var corrupt *snapshots.CorruptError
		verdict := SinEdicion
		if errors.As(edition.fault, &corrupt) {
			verdict = SinArchivos
		}
		f.fail(verdict, "%v", edition.fault)
		return f, nil
	}
	what, err := v.actaDiffers(&a, &r, &header, edition)
	switch {
	case isFault(err):
		f.fail(SinArchivos, "acta: %v", err)
		return f, nil
	case err != nil:
		return f, fmt.Errorf("%s: %w", f.ID, err)
	case what != "":
		f.fail(NoCoincide, "acta: %s", what)
		return f, nil
	}
	again, err := query.Recompute(header, edition.Edition)
	switch {
	case errors.Is(err, query.ErrMotor):
		f.fail(NoRecalculado, "%v", err)
	case isFault(err):
		f.fail(SinArchivos, "%v", err)
	case operational(err):
		return f, fmt.Errorf("%s: %w", f.ID, err)
	case err != nil:
		f.fail(NoCoincide, "al recalcular: %v", err)
	case !bytes.Equal(again, r.Registro):
		sum := sha256.Sum256(again)
		f.fail(NoCoincide, "recalculado da %s", hex.EncodeToString(sum[:]))
	default:
		f.Verdict = Coincide
	}
	return f, nil
}

// CheckOfficial reads the official files that the record's edition was made
// from, which recomputing does not need, and takes back what Check found when
// one of them is not the published one.
func (v *Verifier) CheckOfficial(ctx context.Context, f *Finding, r ledger.Record) error {
	if !f.OK() {
		return nil
	}
	edition, err := v.open(f.Edition, r.Sandbox)
	if err != nil || edition.fault != nil {
		return err
	}
	for _, entry := range edition.Manifest().Sources {
		for _, id := range entry.Chain {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := readOfficial(v.catalogue(r.Sandbox), id)
			if isFault(err) {
				f.fail(SinArchivos, "%v", err)
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

func readOfficial(c *snapshots.Catalogue, version int) error {
	m, err := c.Version(version)
	if err != nil {
		return err
	}
	official, err := c.Official(m)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, official)
	return errors.Join(err, official.Close())
}

func (v *Verifier) catalogue(sandbox bool) *snapshots.Catalogue {
	if sandbox {
		return v.Sandbox
	}
	return v.Sources
}

// open returns an edition of those kept open, or opens it in the place of the
// one that was not used for longest. Faults are remembered like editions: a
// damaged file would otherwise be hashed again for every record.
func (v *Verifier) open(sha string, sandbox bool) (*openEdition, error) {
	at := slices.IndexFunc(v.editions, func(e *openEdition) bool { return e.sha == sha && e.sandbox == sandbox })
	if at >= 0 {
		e := v.editions[at]
		v.editions = append(slices.Delete(v.editions, at, at+1), e)
		return e, nil
	}
	e := &openEdition{sha: sha, sandbox: sandbox, catalogue: v.catalogue(sandbox), versions: map[int]snapshots.Version{}}
	var err error
	if e.manifests, err = e.catalogue.EditionsBySHA256(sha); err == nil {
		e.Edition, err = e.catalogue.OpenEdition(e.manifests[0])
	}
	if err != nil && !isFault(err) {
		return nil, err
	}
	e.fault = err
	if len(v.editions) >= maxEditions {
		v.editions[0].release()
		v.editions = slices.Delete(v.editions, 0, 1)
	}
	v.editions = append(v.editions, e)
	return e, nil
}

// isFault tells an error that speaks about the files (altered or missing) from
// one that speaks about the machine.
func isFault(err error) bool {
	var corrupt *snapshots.CorruptError
	return (errors.As(err, &corrupt) || errors.Is(err, snapshots.ErrNotFound)) && !operational(err)
}

// operational reports whether the operating system refused: too many open
// files, no permission, a failing disk. A file that is not there is a fault.
func operational(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.ENOENT
}
