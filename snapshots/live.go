package snapshots

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// maxFallback bounds how many editions a start goes back: one damaged file may
// belong to all of them.
const maxFallback = 32

// Live keeps the current edition of a catalogue open and replaces it
// atomically: a request that holds an edition finishes with it.
type Live struct {
	c       *Catalogue
	current atomic.Pointer[Edition] // never nil; Live owns one reference

	mu     sync.Mutex
	closed bool
	newest int         // number of the newest edition that was looked at
	fault  error       // why newest is not the one served
	clue   os.FileInfo // of the file that fault names, as it was then
}

// NewLive opens the newest edition that can be opened; Fault tells whether it
// is the newest one. With no edition yet, Acquire returns an edition without
// sources. When there are editions and none can be opened, the error says why.
func NewLive(c *Catalogue) (*Live, error) {
	l := &Live{c: c}
	numbers, err := c.numbers(editionsDir)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		l.current.Store(newEdition(emptyEdition()))
		return l, nil
	}
	l.newest = numbers[len(numbers)-1]
	var faults []error
	for i := len(numbers) - 1; i >= 0 && len(faults) < maxFallback; i-- {
		e, err := l.open(numbers[i])
		if err == nil {
			l.current.Store(e)
			return l, nil
		}
		if len(faults) == 0 {
			l.setFault(err)
		}
		faults = append(faults, err)
	}
	return nil, fmt.Errorf("snapshots: ninguna edición se puede abrir: %w", errors.Join(faults...))
}

func (l *Live) open(n int) (*Edition, error) {
	m, err := l.c.edition(n)
	if err == nil {
		var e *Edition
		if e, err = l.c.OpenEdition(m); err == nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("edición %d: %w", n, err)
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

// Refresh looks for a newer edition and swaps it in. When the newest cannot be
// opened the old one stays and the error says why, again at every call until
// its file was replaced or a newer edition opened. Cheap when nothing changed.
func (l *Live) Refresh() (swapped bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false, os.ErrClosed
	}
	// Editions are numbered without gaps.
	if _, err := os.Stat(l.c.path(editionPath(l.newest + 1))); errors.Is(err, os.ErrNotExist) {
		if l.fault == nil || !l.clueChanged() {
			return false, l.fault
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
	if err != nil {
		l.setFault(err)
		return false, err
	}
	l.fault, l.clue = nil, nil
	l.current.Swap(e).Release()
	return true, nil
}

// Fault tells why the newest edition is not the one served; nil when it is.
func (l *Live) Fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// setFault remembers the damaged file as it is, so that it is not hashed again
// every second.
func (l *Live) setFault(err error) {
	l.fault, l.clue = err, nil
	var bad *CorruptError
	if errors.As(err, &bad) {
		l.clue, _ = os.Stat(l.c.path(bad.Path))
	}
}

func (l *Live) clueChanged() bool {
	var bad *CorruptError
	if !errors.As(l.fault, &bad) {
		return true
	}
	now, err := os.Stat(l.c.path(bad.Path))
	if err != nil || l.clue == nil {
		return (err == nil) != (l.clue != nil)
	}
	return !os.SameFile(now, l.clue) || now.Size() != l.clue.Size() || !now.ModTime().Equal(l.clue.ModTime())
}

// Close releases the current edition. Acquire returns an edition without
// sources from then on.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.current.Swap(newEdition(emptyEdition())).Release()
	}
	return nil
}
