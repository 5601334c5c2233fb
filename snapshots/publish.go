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
	latest, err := c.LatestEdition()
	if err != nil && !errors.Is(err, ErrNoEdition) {
		return EditionManifest{}, err
	}
	at, have := slices.BinarySearchFunc(latest.Sources, v.Source, func(e EditionEntry, source string) int {
		return strings.Compare(e.Source, source)
	})
	entry := EditionEntry{
		Source: v.Source, VersionID: v.ID, SHA256: v.SHA256, Reader: v.Reader, RowsDigest: v.RowsDigest,
		Corte: v.Corte, OrderDate: v.OrderDate, PublishedReset: civil.Timestamp(now),
	}
	var old *EditionEntry
	if have {
		old = &latest.Sources[at]
		if old.SHA256 == v.SHA256 && old.Reader == v.Reader && old.Corte == v.Corte && old.OrderDate == v.OrderDate {
			return latest, nil
		}
	}
	if err := c.addHistory(&entry, v, old); err != nil {
		return EditionManifest{}, err
	}

	next := EditionManifest{Number: latest.Number + 1, Published: civil.Timestamp(now), Sources: slices.Clone(latest.Sources)}
	if have {
		next.Sources[at] = entry
	} else {
		next.Sources = slices.Insert(next.Sources, at, entry)
	}
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

// addHistory builds and publishes the history that ends in v.
func (c *Catalogue) addHistory(entry *EditionEntry, v Version, old *EditionEntry) error {
	chain, extends, err := c.chainTo(v, old)
	if err != nil {
		return err
	}
	var d *draft
	if extends {
		past, err := c.openSorted(old.History)
		if err != nil {
			return err
		}
		d, entry.HistoryDigest, err = c.step(chain, len(chain)-1, past)
		if err = errors.Join(err, past.Close()); err != nil {
			return err
		}
	} else if d, entry.HistoryDigest, err = c.foldAll(chain); err != nil {
		return err
	}
	defer d.discard()
	for _, link := range chain {
		entry.Chain = append(entry.Chain, link.ID)
	}
	rel := historyPath(v.Source, entry.HistoryDigest)
	if err := c.mkdir(path.Dir(rel)); err != nil {
		return err
	}
	entry.History, err = d.publish(rel, func(path string) bool { return hasHistoryDigest(path, entry.HistoryDigest, chain) })
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
	if len(chain) > maxChain {
		return nil, false, fmt.Errorf("snapshots: %s: la historia tiene ya %d versiones", v.Source, maxChain)
	}
	for _, link := range chain {
		if !slices.Equal(link.Columns, v.Columns) {
			return nil, false, fmt.Errorf("snapshots: %s: el lector %d dio otras columnas en la versión %d que en la %d; suba el número del lector", v.Source, v.Reader, link.ID, v.ID)
		}
	}
	return chain, extends, nil
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
			return o.State == stateAccepted && o.Source == link.Source && o.SHA256 == link.SHA256 && o.Reader == reader &&
				o.Corte == link.Corte && o.OrderDate == link.OrderDate
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
