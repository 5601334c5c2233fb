package snapshots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"cotejo/index"
)

// Verify compares the whole catalogue with what it says of itself: every
// manifest with its own hash, every file of every version and edition with its
// recorded size and hash, the official bytes with theirs, filas_digest and
// historia_digest with the rows, edicion_sha256 with the sources. It calls
// progress, which may be nil, before each file, and returns one error for each
// thing that is wrong, mostly a *CorruptError; err is for what kept it from
// looking, such as the end of ctx. It needs no lock. Memory does not grow with
// the files.
func (c *Catalogue) Verify(ctx context.Context, progress func(File)) (wrong []error, err error) {
	v := &verifier{c: c, progress: progress, seen: map[string]bool{}, versions: map[int]Version{}}
	if v.progress == nil {
		v.progress = func(File) {}
	}
	ids, err := c.numbers(versionsDir)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return v.wrong, context.Cause(ctx)
		}
		v.version(id)
	}
	if ids, err = c.numbers(decisionsDir); err != nil {
		return nil, err
	}
	for _, n := range ids {
		v.decision(n)
	}
	numbers, err := c.numbers(editionsDir)
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		if ctx.Err() != nil {
			return v.wrong, context.Cause(ctx)
		}
		v.edition(n)
	}
	entries, err := os.ReadDir(c.path(checkedDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if source, ok := strings.CutSuffix(e.Name(), ".json"); ok && validSource(source) {
			v.progress(File{Path: checkedPath(source)})
			_, _, err := c.LastAttempt(source)
			v.note(err)
		}
	}
	return v.wrong, nil
}

type verifier struct {
	c        *Catalogue
	progress func(File)
	seen     map[string]bool // files looked at, with what was expected of them
	versions map[int]Version // accepted ones with a good manifest
	wrong    []error
}

func (v *verifier) note(err error) {
	if err != nil {
		v.wrong = append(v.wrong, err)
	}
}

// once reports whether this expectation of a file is still to be checked:
// versions and editions share files.
func (v *verifier) once(f File, more string) bool {
	key := fmt.Sprint(f, more)
	if v.seen[key] {
		return false
	}
	v.seen[key] = true
	v.progress(f)
	return true
}

func (v *verifier) version(id int) {
	v.progress(File{Path: versionPath(id)})
	m, err := v.c.Version(id)
	if err != nil {
		v.note(err)
		return
	}
	if v.once(m.Official, m.SHA256) {
		v.note(v.official(&m))
	}
	if m.State != stateAccepted {
		return
	}
	if m.AcceptedFrom > 0 {
		v.note(v.acceptedFrom(&m))
	}
	v.versions[id] = m
	if v.once(*m.RowsFile, m.RowsDigest) {
		v.note(v.sorted(*m.RowsFile, func(s *index.Sorted) error {
			d, err := digestOfRows(s)
			if err != nil {
				return &CorruptError{Path: m.RowsFile.Path, Want: m.RowsDigest, Got: err.Error()}
			}
			if d.String() != m.RowsDigest || d.rows != m.Rows || d.suppressed != m.Suppressed {
				return &CorruptError{
					Path: m.RowsFile.Path,
					Want: fmt.Sprintf("filas_digest %s (%d filas, %d suprimidas)", m.RowsDigest, m.Rows, m.Suppressed),
					Got:  fmt.Sprintf("%s (%d filas, %d suprimidas)", d, d.rows, d.suppressed),
				}
			}
			return nil
		}))
	}
}

// acceptedFrom compares a version with the quarantine that it came out of.
func (v *verifier) acceptedFrom(m *Version) error {
	from, err := v.c.Version(m.AcceptedFrom)
	if errors.Is(err, ErrNotFound) || err == nil && (from.State != stateQuarantined || from.Source != m.Source || from.SHA256 != m.SHA256) {
		return &CorruptError{Path: versionPath(m.ID), Want: "aceptada_de una versión en cuarentena con los mismos bytes", Got: fmt.Sprintf("la versión %d", m.AcceptedFrom)}
	}
	return nil // a damaged manifest was named already
}

func (v *verifier) decision(n int) {
	v.progress(File{Path: decisionPath(n)})
	d, err := v.c.decision(n)
	if err != nil {
		v.note(err)
		return
	}
	m, err := v.c.Version(d.VersionID)
	if errors.Is(err, ErrNotFound) || err == nil && (m.State != stateQuarantined || m.Source != d.Source) {
		v.note(&CorruptError{Path: decisionPath(n), Want: "una versión de " + d.Source + " en cuarentena", Got: fmt.Sprintf("la versión %d", d.VersionID)})
	}
}

func (v *verifier) official(m *Version) error {
	f, err := v.c.openChecked(m.Official)
	if err != nil {
		return err
	}
	f.Close()
	content := File{Path: m.Official.Path, Bytes: m.Bytes, SHA256: m.SHA256}
	if !isOfficial(v.c.path(m.Official.Path), content) {
		return &CorruptError{Path: m.Official.Path, Want: m.SHA256 + " desempacado", Got: "otro contenido"}
	}
	return nil
}

func (v *verifier) sorted(f File, check func(*index.Sorted) error) error {
	s, err := v.c.openSorted(f)
	if err != nil {
		return err
	}
	return errors.Join(check(s), s.Close())
}

func (v *verifier) edition(n int) {
	v.progress(File{Path: editionPath(n)})
	m, err := v.c.edition(n)
	if err != nil {
		v.note(err)
		return
	}
	for i := range m.Sources {
		v.entry(&m.Sources[i])
	}
}

func (v *verifier) entry(e *EditionEntry) {
	chain := make([]Version, len(e.Chain))
	for i, id := range e.Chain {
		link, ok := v.versions[id]
		if !ok || link.Source != e.Source {
			// A damaged manifest was named already; a missing one was not.
			if _, err := v.c.Version(id); errors.Is(err, ErrNotFound) && v.once(File{Path: versionPath(id)}, "") {
				v.note(&CorruptError{Path: versionPath(id), Want: "una versión aceptada de " + e.Source, Got: "no existe"})
			}
			return
		}
		chain[i] = link
	}
	v.note(e.agrees(&chain[len(chain)-1]))
	if !v.once(e.History, e.HistoryDigest) {
		return
	}
	v.note(v.sorted(e.History, func(s *index.Sorted) error {
		sum := newHistoryDigest(chain)
		if err := s.Prefix(nil, sum.add); err != nil {
			return &CorruptError{Path: e.History.Path, Want: e.HistoryDigest, Got: err.Error()}
		}
		if sum.String() != e.HistoryDigest {
			return &CorruptError{Path: e.History.Path, Want: "historia_digest " + e.HistoryDigest, Got: sum.String()}
		}
		return nil
	}))
}
