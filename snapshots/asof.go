package snapshots

import (
	"errors"
	"fmt"
	"time"

	"cotejo/civil"
	"cotejo/index"
)

// VersionAt returns the index into Chain of the version that was in force on d:
// the last of the chain whose fecha_de_orden is not after d. A chain ascends by
// that date, except where a later version took back an earlier one of a newer
// date, which then is in force on no day. ok is false before the first version:
// nothing is known of that day.
func (s *Source) VersionAt(d civil.Date) (i int, ok bool) {
	for i := len(s.chain) - 1; i >= 0; i-- {
		if !d.Before(s.chain[i].OrderDate) {
			return i, true
		}
	}
	return 0, false
}

// ChainManifest is the manifest of a version of Chain; it must not be changed.
func (s *Source) ChainManifest(i int) *Version { return &s.versions[i] }

// FindAt is Find in the rows of a version of Chain. The rows of an older version
// are compared with their hash when they are first asked for, which may take a
// second for a large list.
func (s *Source) FindAt(i int, lookup string, fn func(Row) error) error {
	if i < 0 || i >= len(s.versions) {
		return fmt.Errorf("snapshots: %s: la historia no tiene versión %d", s.entry.Source, i)
	}
	if i == len(s.versions)-1 {
		return s.Find(lookup, fn)
	}
	return s.c.find(&s.versions[i], lookup, fn)
}

// find looks a row up in any accepted version.
func (c *Catalogue) find(v *Version, lookup string, fn func(Row) error) error {
	return c.opened.use(*v.RowsFile, func(rows *index.Sorted) error { return findRows(rows, *v.RowsFile, lookup, fn) })
}

// maxKnown bounds how many answers of KnownAt are remembered.
const maxKnown = 32

// Known is what this service served of one source at some moment.
type Known struct {
	Edition   int    // its number
	SHA256    string // edicion_sha256
	Published string // RFC 3339: when that edition was published
	Entry     EditionEntry
	Version   Version

	c    *Catalogue
	open *Edition // the current one, when it serves the very version; else nil
}

// Find is Source.Find in the version that was served.
func (k *Known) Find(lookup string, fn func(Row) error) error {
	if k.open != nil {
		return k.open.Source(k.Entry.Source).Find(lookup, fn)
	}
	return k.c.find(&k.Version, lookup, fn)
}

// Release ends the use; it may be called on nil.
func (k *Known) Release() {
	if k != nil && k.open != nil {
		k.open.Release()
	}
}

// knownKey is an edition and one of its sources.
type knownKey struct {
	edition int
	source  string
}

// KnownAt returns what this service served of a source just before a moment: the
// newest of the editions up to the current one that was published before it. nil
// when none was, or when that one did not have the source: sources are never
// taken out. The caller releases it. Manifests are read when they are first
// asked for; a damaged one that hides the answer is an error. Acquire never
// waits for it.
func (l *Live) KnownAt(source string, before time.Time) (_ *Known, err error) {
	current := l.Acquire()
	kept := false
	defer func() {
		if !kept {
			current.Release()
		}
	}()
	l.asof.Lock()
	defer l.asof.Unlock()
	n := current.manifest.Number
	for ; n > 0; n-- {
		at, err := l.publishedAt(n)
		if err != nil {
			return nil, fmt.Errorf("edición %d: %w", n, err)
		}
		if at.Before(before) {
			break
		}
	}
	if n == 0 {
		return nil, nil
	}
	k, ok := l.known[knownKey{n, source}]
	if !ok {
		if k, err = l.readKnown(n, source); err != nil {
			return nil, fmt.Errorf("edición %d: %w", n, err)
		}
		if len(l.known) >= maxKnown {
			clear(l.known)
		}
		l.known[knownKey{n, source}] = k
	}
	if k == nil {
		return nil, nil
	}
	own := *k
	if s := current.Source(source); s != nil && s.version.ID == own.Version.ID {
		own.open, kept = current, true
	}
	return &own, nil
}

// publishedAt is the moment of an edition. l.asof is held.
func (l *Live) publishedAt(n int) (time.Time, error) {
	if at, ok := l.published[n]; ok {
		return at, nil
	}
	m, err := l.c.edition(n)
	if errors.Is(err, ErrNotFound) { // numbers have no gaps
		err = &CorruptError{Path: editionPath(n), Want: fmt.Sprintf("la edición %d", n), Got: "no existe"}
	}
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, m.Published)
	if err != nil {
		return time.Time{}, &CorruptError{Path: editionPath(n), Want: "publicada en RFC 3339", Got: m.Published}
	}
	l.published[n] = at
	return at, nil
}

// readKnown reads what an edition has of a source, nil when it has none.
func (l *Live) readKnown(n int, source string) (*Known, error) {
	m, err := l.c.edition(n)
	if err != nil {
		return nil, err
	}
	for i := range m.Sources {
		e := &m.Sources[i]
		if e.Source != source {
			continue
		}
		v, err := l.c.Version(e.VersionID)
		if err != nil {
			return nil, err
		}
		if err := e.agrees(&v); err != nil {
			return nil, err
		}
		return &Known{Edition: n, SHA256: m.SHA256, Published: m.Published, Entry: *e, Version: v, c: l.c}, nil
	}
	return nil, nil
}
