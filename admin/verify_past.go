package admin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// An answer about an earlier day (?en_fecha=) used a version of that day beside
// the newest one, and its acta says which edition was served then. The first is
// in the chain of its edition; the second is computed again from the catalogue's
// editions. Whether a server ran that day is in no file.

// actaDiffers compares the acta of a record from edition e with everything that
// the catalogue says of it, and says what differs. The error is of files or of
// the machine. Of a question that this binary cannot read, which recomputing will
// say, it compares less.
func (v *Verifier) actaDiffers(a *acta, r *ledger.Record, h *query.Header, e *openEdition) (string, error) {
	q, unread := h.Question()
	past, ok := q.(query.AsOf)
	if !ok || past.EnFecha().IsZero() {
		if unread == nil && a.Conocida != nil {
			return "dice conocida y no se preguntó por un día pasado", nil
		}
		return e.differs(a, r.Registro, nil), nil
	}
	if what := e.differs(a, r.Registro, pastOf(past, e.Edition)); what != "" {
		return what, nil
	}
	return v.conocidaDiffers(a, past, e)
}

// pastOf lists by source the versions that q asks beside the newest, as far as
// they are other bytes.
func pastOf(q query.AsOf, ed *snapshots.Edition) map[string]*snapshots.Version {
	past := map[string]*snapshots.Version{}
	for _, entry := range ed.Manifest().Sources {
		s := ed.Source(entry.Source)
		if i, ok := s.VersionAt(q.EnFecha()); ok && s.ChainManifest(i).SHA256 != entry.SHA256 {
			past[entry.Source] = s.ChainManifest(i)
		}
	}
	return past
}

// conocidaDiffers computes again what the acta says was known on the day that q
// asks about, of an answer from edition e, and says what differs. The error is
// of files or of the machine.
func (v *Verifier) conocidaDiffers(a *acta, q query.AsOf, e *openEdition) (what string, err error) {
	at, err := time.Parse(time.RFC3339, a.At)
	if err != nil {
		return err.Error(), nil
	}
	// Editions of one hash are not told apart by the record: any of them may be
	// the one that answered.
	for i := range e.manifests {
		served := &e.manifests[i]
		if q.EnFecha() != civil.Of(at) {
			if served, err = v.servedBefore(q.EnFecha().End(), served.Number, e.sandbox); err != nil {
				return "", err
			}
		}
		again, err := v.conocida(q, served, e.sandbox)
		if err != nil {
			return "", err
		}
		if bytes.Equal(again, a.Conocida) {
			return "", nil
		}
	}
	return "conocida no es lo que dicen las ediciones de ese día", nil
}

// conocida is the acta's member of that name when m was served; m may be nil.
func (v *Verifier) conocida(q query.AsOf, m *snapshots.EditionManifest, sandbox bool) ([]byte, error) {
	return query.AppendConocida(nil, q, func(source string) (*query.Served, error) {
		if m == nil {
			return nil, nil
		}
		at := slices.IndexFunc(m.Sources, func(e snapshots.EditionEntry) bool { return e.Source == source })
		if at < 0 {
			return nil, nil
		}
		e, err := v.open(m.SHA256, sandbox)
		if err == nil {
			err = e.fault
		}
		if err != nil {
			return nil, fmt.Errorf("edición %d: %w", m.Number, err)
		}
		version, err := e.version(m.Sources[at].VersionID)
		if err != nil {
			return nil, err
		}
		return &query.Served{
			Edition: m.Number, SHA256: m.SHA256, Published: m.Published,
			Entry: &m.Sources[at], Version: &version, Find: e.Source(source).Find,
		}, nil
	})
}

// servedBefore returns the newest edition up to a number that was published
// before a moment, nil when none was.
func (v *Verifier) servedBefore(moment time.Time, number int, sandbox bool) (*snapshots.EditionManifest, error) {
	known := v.known[sandbox]
	if known == nil || number > len(known.manifests) {
		var err error
		if known, err = readEditions(v.catalogue(sandbox)); err != nil {
			return nil, err
		}
		if v.known == nil {
			v.known = map[bool]*editionList{}
		}
		v.known[sandbox] = known
	}
	for ; number > 0; number-- {
		if number > len(known.manifests) || known.manifests[number-1] == nil {
			return nil, known.missing(number)
		}
		m := known.manifests[number-1]
		published, err := time.Parse(time.RFC3339, m.Published)
		if err != nil {
			return nil, fmt.Errorf("edición %d: %w", number, err)
		}
		if published.Before(moment) {
			return m, nil
		}
	}
	return nil, nil
}

// editionList holds the editions of a catalogue by number, less one; nil where
// one is damaged.
type editionList struct {
	manifests []*snapshots.EditionManifest
	damaged   []error
}

// missing says why the edition of a number is not there: it may be one of those
// that are damaged.
func (l *editionList) missing(number int) error {
	if len(l.damaged) > 0 {
		return errors.Join(l.damaged...)
	}
	return fmt.Errorf("%w: edición %d", snapshots.ErrNotFound, number)
}

func readEditions(c *snapshots.Catalogue) (*editionList, error) {
	all, damaged, err := c.Editions()
	if err != nil {
		return nil, err
	}
	l := &editionList{damaged: damaged}
	for i := range all {
		for len(l.manifests) < all[i].Number {
			l.manifests = append(l.manifests, nil)
		}
		l.manifests[all[i].Number-1] = &all[i]
	}
	return l, nil
}
