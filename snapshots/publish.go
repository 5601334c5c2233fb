package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"cotejo/civil"
)

// ErrQuarantined says that a version is in quarantine and cannot serve.
var ErrQuarantined = errors.New("snapshots: la versión está en cuarentena y no puede responder")

// Publish makes the next edition: the latest one with version v in the place of
// its source. The history is the previous chain plus v. The lock must be held.
//
// When the latest edition already serves the same bytes under the same dates,
// read by the same reader, it is returned as it is. The same bytes under other
// dates are a correction: v takes the place of the version in service, also in
// the history. A version read by another reader than the chain is published with
// the chain rebuilt from versions read by that reader: stage the official bytes
// of each chain version with it, under the same dates, first.
func (c *Catalogue) Publish(v Version, now time.Time) (EditionManifest, error) {
	if !c.locked.Load() {
		return EditionManifest{}, ErrNotLocked
	}
	v, err := c.Version(v.ID)
	if err != nil {
		return EditionManifest{}, err
	}
	if v.State != stateAccepted {
		return EditionManifest{}, fmt.Errorf("%w: %d de %s", ErrQuarantined, v.ID, v.Source)
	}
	latest, old, err := c.latestOf(v.Source)
	if err != nil {
		return EditionManifest{}, err
	}
	if old != nil && v.same(old.SHA256, old.Reader, old.Corte, old.OrderDate) {
		return latest, nil
	}
	chain, extends, err := c.chainTo(v, old)
	if err != nil {
		return EditionManifest{}, err
	}
	entry := entryOf(chain, now)
	if extends {
		err = c.extendHistory(&entry, chain, old)
	} else {
		err = c.foldHistory(&entry, chain)
	}
	if err != nil {
		return EditionManifest{}, err
	}
	return c.publishEdition(latest, entry, now)
}

// ErrNewer says that a version is newer than the one in service, and no part of
// what came before it.
var ErrNewer = errors.New("snapshots: es más nueva que la versión en servicio")

// PublishHistory makes the next edition: the latest one with version v in the
// history of its source, and the version in service as it was. v enters by its
// fecha_de_orden, behind those of the same day, but never behind the version in
// service: ErrNewer when it is of a later day than that. The same bytes under
// another date are a correction: v takes the place of the version that they were.
// Without a version in service it is Publish; when the history has the same bytes
// under the same dates already, read by the same reader, the latest edition is
// returned as it is. The lock must be held.
//
// The history is folded again from the rows of all its versions, and from
// nothing else: versions of different days give the same history in whatever
// order they are published. A version read by another reader than the chain
// needs the chain read again, as Publish says, the version in service included.
func (c *Catalogue) PublishHistory(v Version, now time.Time) (EditionManifest, error) {
	if !c.locked.Load() {
		return EditionManifest{}, ErrNotLocked
	}
	v, err := c.Version(v.ID)
	if err != nil {
		return EditionManifest{}, err
	}
	if v.State != stateAccepted {
		return EditionManifest{}, fmt.Errorf("%w: %d de %s", ErrQuarantined, v.ID, v.Source)
	}
	latest, old, err := c.latestOf(v.Source)
	if err != nil {
		return EditionManifest{}, err
	}
	if old == nil {
		return c.Publish(v, now)
	}
	chain, have, err := c.chainWith(v, old)
	if err != nil {
		return EditionManifest{}, err
	}
	if have {
		return latest, nil
	}
	entry := entryOf(chain, now)
	if entry.VersionID == old.VersionID {
		entry.PublishedReset = old.PublishedReset
	}
	if err := c.foldHistory(&entry, chain); err != nil {
		return EditionManifest{}, err
	}
	return c.publishEdition(latest, entry, now)
}

// latestOf returns the latest edition, one without number when there is none,
// and its entry of a source, nil when it has none.
func (c *Catalogue) latestOf(source string) (m EditionManifest, entry *EditionEntry, err error) {
	m, err = c.LatestEdition()
	if err != nil && !errors.Is(err, ErrNoEdition) {
		return EditionManifest{}, nil, err
	}
	if at, have := m.entryAt(source); have {
		entry = &m.Sources[at]
	}
	return m, entry, nil
}

// entryAt finds the entry of a source, or the place where it would be.
func (m *EditionManifest) entryAt(source string) (at int, have bool) {
	return slices.BinarySearchFunc(m.Sources, source, func(e EditionEntry, source string) int {
		return strings.Compare(e.Source, source)
	})
}

// entryOf is the entry of a chain, whose last version serves from now on. It
// lacks the history.
func entryOf(chain []Version, now time.Time) EditionEntry {
	v := &chain[len(chain)-1]
	e := EditionEntry{
		Source: v.Source, VersionID: v.ID, SHA256: v.SHA256, Reader: v.Reader, RowsDigest: v.RowsDigest,
		Corte: v.Corte, OrderDate: v.OrderDate, PublishedReset: civil.Timestamp(now),
	}
	for _, link := range chain {
		e.Chain = append(e.Chain, link.ID)
	}
	return e
}

// publishEdition makes the edition after latest, with entry in the place of its
// source.
func (c *Catalogue) publishEdition(latest EditionManifest, entry EditionEntry, now time.Time) (EditionManifest, error) {
	next := EditionManifest{Number: latest.Number + 1, Published: civil.Timestamp(now), Sources: slices.Clone(latest.Sources)}
	if at, have := next.entryAt(entry.Source); have {
		next.Sources[at] = entry
	} else {
		next.Sources = slices.Insert(next.Sources, at, entry)
	}
	var err error
	if next.SHA256, err = next.evidence(); err != nil {
		return EditionManifest{}, err
	}
	if err := next.check(); err != nil {
		return EditionManifest{}, fmt.Errorf("snapshots: edición %d: %w", next.Number, err)
	}
	err = c.publishManifest(editionPath(next.Number), &next)
	if errors.Is(err, os.ErrExist) {
		return EditionManifest{}, fmt.Errorf("snapshots: la edición %d apareció mientras se preparaba: %w", next.Number, ErrBusy)
	}
	if err != nil {
		return EditionManifest{}, err
	}
	return next, nil
}

// extendHistory publishes the history of a chain that is the old one and one
// version more.
func (c *Catalogue) extendHistory(entry *EditionEntry, chain []Version, old *EditionEntry) error {
	past, err := c.openSorted(old.History)
	if err != nil {
		return err
	}
	d, digest, err := c.step(chain, len(chain)-1, past)
	if err = errors.Join(err, past.Close()); err != nil {
		return err
	}
	return c.publishHistory(entry, chain, d, digest)
}

// foldHistory publishes the history of a chain from its rows.
func (c *Catalogue) foldHistory(entry *EditionEntry, chain []Version) error {
	d, digest, err := c.foldAll(chain)
	if err != nil {
		return err
	}
	return c.publishHistory(entry, chain, d, digest)
}

func (c *Catalogue) publishHistory(entry *EditionEntry, chain []Version, d *draft, digest string) error {
	defer d.discard()
	rel := historyPath(entry.Source, digest)
	if err := c.mkdir(path.Dir(rel)); err != nil {
		return err
	}
	file, err := d.publish(rel, func(path string) bool { return hasHistoryDigest(path, digest, chain) })
	entry.HistoryDigest, entry.History = digest, file
	return err
}

// chainTo returns the versions of the history that ends in v; extends says that
// it is the old chain plus v. The bytes that end the old chain are not repeated:
// v stands for them.
func (c *Catalogue) chainTo(v Version, old *EditionEntry) (chain []Version, extends bool, err error) {
	if old == nil {
		return []Version{v}, false, nil
	}
	if chain, err = c.chain(old); err != nil {
		return nil, false, err
	}
	if last := len(chain) - 1; chain[last].SHA256 == v.SHA256 {
		chain = chain[:last]
	} else {
		extends = old.Reader == v.Reader
	}
	if old.Reader != v.Reader {
		if chain, err = c.reread(chain, v); err != nil {
			return nil, false, err
		}
	}
	chain = append(chain, v)
	return chain, extends, checkChain(chain, &v)
}

// chainWith returns the versions of the old history and v in its place; have
// says that it is there already.
func (c *Catalogue) chainWith(v Version, old *EditionEntry) (chain []Version, have bool, err error) {
	if chain, err = c.chain(old); err != nil {
		return nil, false, err
	}
	if slices.ContainsFunc(chain, func(link Version) bool { return v.same(link.SHA256, link.Reader, link.Corte, link.OrderDate) }) {
		return nil, true, nil
	}
	served := &chain[len(chain)-1]
	if v.SHA256 == served.SHA256 {
		return nil, false, fmt.Errorf("snapshots: la versión %d tiene los bytes de la %d, que está en servicio", v.ID, served.ID)
	}
	if served.OrderDate.Before(v.OrderDate) {
		return nil, false, fmt.Errorf("%w: la %d es del %s, la %d del %s", ErrNewer, v.ID, v.OrderDate, served.ID, served.OrderDate)
	}
	before := len(chain)
	chain = slices.DeleteFunc(chain, func(link Version) bool { return link.SHA256 == v.SHA256 })
	if before-len(chain) > 1 {
		return nil, false, fmt.Errorf("snapshots: %s: los bytes de la versión %d están más de una vez en la historia: su fecha no se puede corregir", v.Source, v.ID)
	}
	if old.Reader != v.Reader {
		if chain, err = c.reread(chain, v); err != nil {
			return nil, false, err
		}
	}
	at := len(chain) - 1
	for at > 0 && v.OrderDate.Before(chain[at-1].OrderDate) {
		at--
	}
	chain = slices.Insert(chain, at, v)
	return chain, false, checkChain(chain, &v)
}

// checkChain refuses a chain that cannot be folded.
func checkChain(chain []Version, v *Version) error {
	if len(chain) > maxChain {
		return fmt.Errorf("snapshots: %s: la historia tiene ya %d versiones", v.Source, maxChain)
	}
	for _, link := range chain {
		if !slices.Equal(link.Columns, v.Columns) {
			return fmt.Errorf("snapshots: %s: el lector %d dio otras columnas en la versión %d que en la %d; suba el número del lector", v.Source, v.Reader, link.ID, v.ID)
		}
	}
	return nil
}

// chain reads the manifests of an entry's history and compares the last with
// the entry.
func (c *Catalogue) chain(e *EditionEntry) ([]Version, error) {
	chain := make([]Version, len(e.Chain))
	for i, id := range e.Chain {
		v, err := c.Version(id)
		if err != nil {
			return nil, err
		}
		if v.State != stateAccepted || v.Source != e.Source {
			return nil, &CorruptError{Path: versionPath(id), Want: "una versión aceptada de " + e.Source, Got: v.State + " de " + v.Source}
		}
		chain[i] = v
	}
	return chain, e.agrees(&chain[len(chain)-1])
}

// reread finds, for each version of a chain, the same bytes under the same dates
// as v's reader reads them.
func (c *Catalogue) reread(chain []Version, v Version) ([]Version, error) {
	again, missing, err := c.rereadable(chain, v.Reader)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		var ids []string
		for _, link := range missing {
			ids = append(ids, fmt.Sprint(link.ID))
		}
		return nil, fmt.Errorf("snapshots: %s: el lector %d todavía no ha leído las versiones %s de la historia", v.Source, v.Reader, strings.Join(ids, ", "))
	}
	return again, nil
}

// rereadable splits a chain into the versions that stand for its links in
// another reader's reading, in order, and the links that have none.
func (c *Catalogue) rereadable(chain []Version, reader int) (again, missing []Version, err error) {
	all, _, err := c.Versions()
	if err != nil {
		return nil, nil, err
	}
	for _, link := range chain {
		at := slices.IndexFunc(all, func(o Version) bool {
			return o.State == stateAccepted && o.Source == link.Source && o.same(link.SHA256, reader, link.Corte, link.OrderDate)
		})
		if at < 0 {
			missing = append(missing, link)
		} else {
			again = append(again, all[at])
		}
	}
	return again, missing, nil
}

// Unread lists the versions in the history of a source that the given reader has
// not read, oldest first: what has to be staged again, under the same dates,
// before a version that it has read can be published. The version in service is
// among them only when its bytes are not those named by except.
func (c *Catalogue) Unread(e *EditionEntry, reader int, except string) ([]Version, error) {
	chain, err := c.chain(e)
	if err != nil {
		return nil, err
	}
	if last := len(chain) - 1; chain[last].SHA256 == except {
		chain = chain[:last]
	}
	_, missing, err := c.rereadable(chain, reader)
	return missing, err
}
