package snapshots

import (
	"errors"
	"os"
	"sync"

	"cotejo/index"
)

// maxOpened bounds how many rows files of past versions stay open while nobody
// reads them.
const maxOpened = 32

// opened keeps files open for everyone who reads this catalogue, so that a file is
// compared with its hash once: what editions serve (served.go), as long as one has
// it, and the rows files of past versions, not for every question. Of these, what
// was used longest ago is closed first, and everything with the last edition.
type opened struct {
	c *Catalogue

	mu       sync.Mutex // never held while a file is read
	editions int        // open ones
	served   map[servedKey]*served
	files    map[File]*openFile
	clock    uint64
}

// openFile is one of them. uses and last are guarded by opened.mu, the others by
// comparing.
type openFile struct {
	file File
	uses int
	last uint64 // opened.clock when it was last asked for

	comparing sync.Mutex // held while the file is hashed
	sorted    *index.Sorted
	err       error // a damaged file is not hashed again until it was replaced …
	clue      clue  // … which this tells
}

// join and leave count the editions that are open.
func (o *opened) join() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.editions++
}

func (o *opened) leave() {
	o.mu.Lock()
	o.editions--
	idle := o.idle()
	o.mu.Unlock()
	closeAll(idle)
}

// use hands the file to fn; its error comes back as it is, any other one is of
// the opening.
func (o *opened) use(file File, fn func(*index.Sorted) error) error {
	o.mu.Lock()
	f := o.files[file]
	if f == nil {
		if o.files == nil {
			o.files = map[File]*openFile{}
		}
		f = &openFile{file: file}
		o.files[file] = f
	}
	f.uses++
	o.clock++
	f.last = o.clock
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		f.uses--
		idle := o.idle()
		o.mu.Unlock()
		closeAll(idle)
	}()
	if err := f.open(o.c); err != nil {
		return err
	}
	return fn(f.sorted)
}

func (f *openFile) open(c *Catalogue) error {
	f.comparing.Lock()
	defer f.comparing.Unlock()
	if f.sorted != nil || f.err != nil && !f.clue.changed(c, f.err) {
		return f.err
	}
	f.sorted, f.err = c.openSorted(f.file)
	f.clue = clueOf(c, f.err)
	return f.err
}

// idle takes out what need not stay open. mu is held.
func (o *opened) idle() (idle []*openFile) {
	for len(o.files) > maxOpened || o.editions == 0 {
		var oldest *openFile
		for _, f := range o.files {
			if f.uses == 0 && (oldest == nil || f.last < oldest.last) {
				oldest = f
			}
		}
		if oldest == nil {
			break
		}
		delete(o.files, oldest.file)
		idle = append(idle, oldest)
	}
	return idle
}

// closeAll closes files that were only read: an error loses nothing.
func closeAll(files []*openFile) {
	for _, f := range files {
		if f.sorted != nil {
			_ = f.sorted.Close()
		}
	}
}

// clue is a damaged file as it was, so that it is not hashed again before it was
// replaced.
type clue struct{ info os.FileInfo }

// clueOf remembers the file that a *CorruptError names. err may be nil.
func clueOf(c *Catalogue, err error) (k clue) {
	var bad *CorruptError
	if errors.As(err, &bad) {
		k.info, _ = os.Stat(c.path(bad.Path))
	}
	return k
}

// changed reports whether what err complains about may be gone: its file is
// another one, or it names none.
func (k clue) changed(c *Catalogue, err error) bool {
	var bad *CorruptError
	if !errors.As(err, &bad) {
		return true
	}
	now, serr := os.Stat(c.path(bad.Path))
	if serr != nil || k.info == nil {
		return (serr == nil) != (k.info != nil)
	}
	return !os.SameFile(now, k.info) || now.Size() != k.info.Size() || !now.ModTime().Equal(k.info.ModTime())
}
