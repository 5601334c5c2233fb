package snapshots

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// maxFallback bounds how many editions a start goes back: one damaged file may
// belong to all of them.
const maxFallback = 32

// Prepare makes of an edition what its answers need beside lookups, once, before
// it serves. before is the edition that serves until then, nil at first: what did
// not change can be taken from it. An edition that cannot be prepared does not
// serve. It must not keep the editions.
type Prepare func(e, before *Edition) (any, error)

// Live keeps the current edition of a catalogue open and replaces it
// atomically: a request that holds an edition finishes with it.
type Live struct {
	c       *Catalogue
	prepare []Prepare               // none or one
	current atomic.Pointer[Edition] // never nil; Live owns one reference

	// opening is held while files are read and hashed, which may take long; it
	// guards what only Refresh and Close use.
	opening sync.Mutex
	closed  bool
	newest  int  // number of the newest edition that was looked at
	clue    clue // of the file that fault names

	mu    sync.Mutex // never held while a file is touched
	fault error      // why newest is not the one served

	asof      sync.Mutex          // guards what KnownAt remembers, and is held while it reads manifests
	published map[int]time.Time   // of every edition that was looked at
	known     map[knownKey]*Known // nil for an edition without the source; without open
}

// NewLive opens the newest edition that can be opened; Fault tells whether it
// is the newest one. With no edition yet, and with none that can be opened,
// Acquire returns an edition without sources: whoever asks is told that nothing
// is loaded, which is true of this process, and a server can start and be
// repaired. Only Fault tells the two apart. prepare, at most one, is called for
// every edition, the one without sources included.
func NewLive(c *Catalogue, prepare ...Prepare) (*Live, error) {
	l := &Live{c: c, prepare: prepare, published: map[int]time.Time{}, known: map[knownKey]*Known{}}
	empty, err := l.empty()
	if err != nil {
		return nil, err
	}
	l.current.Store(empty)
	numbers, err := c.numbers(editionsDir)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return l, nil
	}
	l.newest = numbers[len(numbers)-1]
	for i := len(numbers) - 1; i >= 0 && i >= len(numbers)-maxFallback; i-- {
		e, err := l.open(numbers[i])
		if err == nil {
			l.current.Swap(e).Release()
			break
		}
		if numbers[i] == l.newest {
			l.setFault(err)
		}
	}
	return l, nil
}

// open opens an edition for answers that are charged and recorded: they must
// not name one whose link a loss of power could still take back.
func (l *Live) open(n int) (*Edition, error) {
	m, err := l.c.edition(n)
	if err == nil {
		err = l.c.disk.SyncDir(l.c.path(editionsDir))
	}
	if err == nil {
		var e *Edition
		if e, err = l.c.OpenEdition(m); err == nil {
			if err = l.made(e); err == nil {
				return e, nil
			}
			e.Release()
		}
	}
	return nil, fmt.Errorf("edición %d: %w", n, err)
}

// made prepares an edition.
func (l *Live) made(e *Edition) (err error) {
	for _, prepare := range l.prepare {
		if e.prepared, err = prepare(e, l.current.Load()); err != nil {
			return err
		}
	}
	return nil
}

// empty is the edition without sources.
func (l *Live) empty() (*Edition, error) {
	e := newEdition(emptyEdition())
	return e, l.made(e)
}

// Acquire returns the current edition; the caller releases it. It neither
// blocks nor allocates.
func (l *Live) Acquire() *Edition {
	for {
		// Between the two steps it may be replaced and its last reference
		// released; then there is a newer one to load.
		if e := l.current.Load(); e.retain() {
			return e
		}
	}
}

// At returns the edition of a number and evidence hash: the current one if it is
// that, else it is opened from the catalogue, unprepared. What was begun with an
// edition is ended with it. The caller releases it. ErrNotFound when neither the
// number nor the hash is known.
func (l *Live) At(number int, sha string) (*Edition, error) {
	e := l.Acquire()
	if e.manifest.Number == number && e.manifest.SHA256 == sha {
		return e, nil
	}
	e.Release()
	m, err := l.c.edition(number)
	if err != nil || m.SHA256 != sha {
		if m, err = l.c.EditionBySHA256(sha); err != nil {
			return nil, err
		}
	}
	return l.c.OpenEdition(m)
}

// Refresh looks for a newer edition and swaps it in. When the newest cannot be
// opened the old one stays and the error says why, again at every call until
// its file was replaced or a newer edition opened. Cheap when nothing changed.
// Fault and Acquire do not wait for it.
func (l *Live) Refresh() (swapped bool, err error) {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.closed {
		return false, os.ErrClosed
	}
	// Editions are numbered without gaps.
	if _, err := os.Stat(l.c.path(editionPath(l.newest + 1))); errors.Is(err, os.ErrNotExist) {
		if fault := l.Fault(); fault == nil || !l.clue.changed(l.c, fault) {
			return false, fault
		}
	} else if err != nil {
		return false, err
	}
	numbers, err := l.c.numbers(editionsDir)
	if err != nil {
		return false, err
	}
	if len(numbers) == 0 {
		return false, ErrNoEdition
	}
	l.newest = max(l.newest, numbers[len(numbers)-1])
	e, err := l.open(l.newest)
	l.setFault(err)
	if err != nil {
		return false, err
	}
	l.current.Swap(e).Release()
	return true, nil
}

// Fault tells why the newest edition is not the one served; nil when it is. It
// never waits for a file.
func (l *Live) Fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// setFault remembers the damaged file as it is, so that it is not hashed again
// every second. err may be nil.
func (l *Live) setFault(err error) {
	l.clue = clueOf(l.c, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = err
}

// Close releases the current edition. Acquire returns an edition without
// sources from then on.
func (l *Live) Close() error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	empty, err := l.empty()
	l.current.Swap(empty).Release()
	return err
}
