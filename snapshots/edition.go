package snapshots

import (
	"iter"
	"sync"
	"sync/atomic"

	"cotejo/index"
)

// Edition answers lookups. It is immutable and safe for concurrent use; it is
// unmapped when the last reference is released.
type Edition struct {
	manifest EditionManifest
	sources  []*Source // by source, as in the manifest
	byID     map[string]*Source
	table    *index.Table // nil when there are no sources
	opened   *opened      // of its catalogue; nil for the edition without files
	prepared any          // what Live's Prepare made of it
	derive   sync.Once
	derived  any // what Derived's first caller made of it
	refs     atomic.Int64
}

// Source reads one source of an edition. It lives as long as the edition.
type Source struct {
	c        *Catalogue
	bit      uint
	entry    *EditionEntry
	version  *Version  // the last of versions
	versions []Version // of chain
	chain    []ChainVersion
	served   *served
	rows     *index.Sorted // of served
	history  *index.Sorted // of served
}

// OpenEdition opens an edition after comparing every file that it reads with
// its hash, and every manifest with itself and with the edition. A file that
// another edition of this catalogue has open was compared when that was opened. It
// lets other goroutines go first, so that requests do not wait for it. The caller
// owns one reference. Official bytes are compared when they are read.
func (c *Catalogue) OpenEdition(m EditionManifest) (_ *Edition, err error) {
	if m.Number == 0 && m.SHA256 == emptyEdition().SHA256 {
		return newEdition(emptyEdition()), nil
	}
	if err := m.check(); err != nil {
		return nil, &CorruptError{Path: editionPath(m.Number), Want: "un manifiesto coherente", Got: err.Error()}
	}
	e := newEdition(m)
	e.opened = &c.opened
	e.opened.join()
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	for i := range e.manifest.Sources {
		s, err := c.openSource(&e.manifest.Sources[i], uint(i))
		if err != nil {
			return nil, err
		}
		e.sources = append(e.sources, s)
		e.byID[s.entry.Source] = s
	}
	if e.table, err = index.NewTable(e.mentions()); err != nil {
		return nil, err
	}
	return e, nil
}

// mentions yields what every source mentions.
func (e *Edition) mentions() iter.Seq[index.Pair] {
	return func(yield func(index.Pair) bool) {
		for _, s := range e.sources {
			for i, key := range s.served.keys {
				if !yield(index.Pair{Key: key, Source: s.bit, Rows: s.served.of[i]}) {
					return
				}
			}
		}
	}
}

func newEdition(m EditionManifest) *Edition {
	e := &Edition{manifest: m, byID: map[string]*Source{}}
	e.refs.Store(1)
	return e
}

func (c *Catalogue) openSource(entry *EditionEntry, bit uint) (*Source, error) {
	chain, err := c.chain(entry)
	if err != nil {
		return nil, err
	}
	s := &Source{c: c, bit: bit, entry: entry, version: &chain[len(chain)-1], versions: chain}
	for _, v := range chain {
		s.chain = append(s.chain, ChainVersion{v.SHA256, v.Corte, v.OrderDate, v.Rows, v.Suppressed})
	}
	if s.served, err = c.opened.serve(servedKey{*s.version.RowsFile, entry.History}); err != nil {
		return nil, err
	}
	s.rows, s.history = s.served.rows, s.served.history
	return s, nil
}

// Manifest describes the edition; it must not be changed.
func (e *Edition) Manifest() *EditionManifest { return &e.manifest }

// Prepared is what the Prepare of the Live that opened this edition made of it;
// nil when it has none.
func (e *Edition) Prepared() any { return e.prepared }

// Derived is what derive makes of the edition at the first call: room for what the
// answers of an edition share. There is one such thing, so derive is the same in
// every call; it must not keep what outlives the edition, nor be wrong when it is
// made again.
func (e *Edition) Derived(derive func(*Edition) any) any {
	e.derive.Do(func() { e.derived = derive(e) })
	return e.derived
}

// Release gives one reference back. Nothing of the edition may be used through
// that reference afterwards.
func (e *Edition) Release() {
	switch n := e.refs.Add(-1); {
	case n < 0:
		panic("snapshots: edition released too often")
	case n == 0:
		e.close()
	}
}

// retain takes one more reference, unless the last one is gone.
func (e *Edition) retain() bool {
	for {
		n := e.refs.Load()
		if n <= 0 {
			return false
		}
		if e.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (e *Edition) close() {
	for _, s := range e.sources {
		s.c.opened.leaveServed(s.served)
	}
	if e.table != nil {
		_ = e.table.Close() // nothing was written: an error loses nothing
	}
	if e.opened != nil {
		e.opened.leave()
	}
}

// Classify tells which sources mention the packed RFC in their rows or history, and
// which rows of theirs, from memory: source i is Manifest().Sources[i], and rows are
// numbered as All yields them. Redacted rows mention nobody. It does not allocate;
// the answer lives as long as the edition.
func (e *Edition) Classify(key uint64) index.Mentions {
	if e.table == nil {
		return index.Mentions{}
	}
	return e.table.Lookup(key)
}

// Expect makes Classify of each of these packed RFCs cheaper, when all of them are
// classified soon: some dozens are at most worth it.
func (e *Edition) Expect(keys []uint64) {
	if e.table != nil {
		e.table.Expect(keys)
	}
}

// Source returns the reader of a source, nil when this edition has none.
func (e *Edition) Source(id string) *Source { return e.byID[id] }

// Bit is the source's number in what Classify tells.
func (s *Source) Bit() uint { return s.bit }

// Version and Entry describe what is served; they must not be changed.
func (s *Source) Version() *Version    { return s.version }
func (s *Source) Entry() *EditionEntry { return s.entry }

// Find calls fn for each current row whose ID[0] is lookup, in key order
// (ID, ordinal). Suppressed rows are never found. The row is fn's to keep. An
// error of fn ends the walk and is returned as it is; any other one is a
// *CorruptError.
func (s *Source) Find(lookup string, fn func(Row) error) error {
	return findRows(s.rows, *s.version.RowsFile, lookup, fn)
}

// All calls fn for each current row that is not suppressed, in key order. The row
// is fn's to keep. Errors are as of Find.
func (s *Source) All(fn func(Row) error) error {
	return walk(s.rows, *s.version.RowsFile, nil, rowOf, fn)
}

// findRows is Find in one rows file.
func findRows(rows *index.Sorted, file File, lookup string, fn func(Row) error) error {
	prefix, ok := lookupPrefix(nil, lookup)
	if !ok {
		return nil
	}
	return walk(rows, file, prefix, rowOf, fn)
}

// rowOf decodes a stored row, nil when it is suppressed.
func rowOf(key, value []byte) (*Row, error) {
	if suppressedRow(value) {
		return nil, nil
	}
	id, ordinal, err := cutKey(key)
	if err != nil {
		return nil, err
	}
	var c cells[string]
	if err := c.decode(string(value)); err != nil {
		return nil, err
	}
	return &Row{ID: splitID(id), Ordinal: ordinal, Raw: c.raw, Norm: c.norm}, nil
}

// walk decodes what has the prefix and hands it to fn, apart from nil. The
// caller's errors come back as they are, ours as damage of the file.
func walk[T any](s *index.Sorted, file File, prefix []byte, decode func(key, value []byte) (*T, error), fn func(T) error) error {
	var theirs error
	err := s.Prefix(prefix, func(key, value []byte) error {
		item, err := decode(key, value)
		if err != nil || item == nil {
			return err
		}
		theirs = fn(*item)
		return theirs
	})
	if theirs != nil {
		return theirs
	}
	return damaged(file, err)
}

// Past calls fn with the history of each row, present or gone, whose ID[0] is
// lookup, in key order. The history is fn's to keep. Errors are as of Find.
func (s *Source) Past(lookup string, fn func(Past) error) error {
	prefix, ok := lookupPrefix(nil, lookup)
	if !ok {
		return nil
	}
	return walk(s.history, s.entry.History, prefix, func(key, value []byte) (*Past, error) {
		p, err := decodePast(key, value)
		return &p, err
	}, fn)
}

// Chain lists the versions that the history was built from, oldest first. It
// must not be changed.
func (s *Source) Chain() []ChainVersion { return s.chain }
