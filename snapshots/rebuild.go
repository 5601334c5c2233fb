package snapshots

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// ErrOtherPacking says that a file was recomputed with the recorded content, but
// that this build of the program packs it into other bytes than were recorded,
// so that it cannot take the place of the damaged one.
var ErrOtherPacking = errors.New("snapshots: lo reconstruido concuerda, pero este programa lo escribe con otros bytes")

// Opener reads official bytes from their beginning, any number of times.
type Opener func() (io.ReadCloser, error)

// Rebuild reads the official bytes of an accepted version again and recomputes
// filas_digest. read is the version's reader: it opens the bytes and hands every
// row to add. A digest other than the manifest's is a *CorruptError that names
// the rows file. When it agrees, a rows file that is missing or damaged is
// restored, and restored says so. The lock must be held.
func (c *Catalogue) Rebuild(v Version, schema Schema, read func(official Opener, add func(Row) error) error) (restored bool, err error) {
	if !c.locked.Load() {
		return false, ErrNotLocked
	}
	if v, err = c.Version(v.ID); err != nil {
		return false, err
	}
	if v.State != stateAccepted {
		return false, fmt.Errorf("%w: %d de %s", ErrQuarantined, v.ID, v.Source)
	}
	if err := schema.check(); err != nil {
		return false, fmt.Errorf("snapshots: %w", err)
	}
	if schema.Source != v.Source || schema.Reader != v.Reader {
		return false, fmt.Errorf("snapshots: la versión %d es de %s con el lector %d, no de %s con el %d; use el programa que la leyó", v.ID, v.Source, v.Reader, schema.Source, schema.Reader)
	}
	open := func() (io.ReadCloser, error) { return c.Official(v) }
	// A reader may stop before the end, where the bytes are compared.
	if err := drain(open); err != nil {
		return false, err
	}
	b := &rows{schema: schema, scratch: c.Scratch}
	defer b.discard()
	if err := read(open, func(r Row) error { return b.add(&r) }); err != nil {
		return false, err
	}
	d, digest, err := c.draftRows(b)
	if err != nil {
		return false, err
	}
	defer d.discard()
	if digest != v.RowsDigest {
		return false, &CorruptError{Path: v.RowsFile.Path, Want: "filas_digest " + v.RowsDigest, Got: digest}
	}
	return c.restore(d, *v.RowsFile)
}

func drain(open Opener) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// RebuildHistory folds the chain of an entry again and recomputes
// historia_digest. A digest other than the entry's is a *CorruptError that
// names the history file. When it agrees, a history file that is missing or
// damaged is restored, and restored says so. The rows of every version of the
// chain must be there. The lock must be held.
func (c *Catalogue) RebuildHistory(e EditionEntry) (restored bool, err error) {
	if !c.locked.Load() {
		return false, ErrNotLocked
	}
	if len(e.Chain) == 0 || !e.History.valid(historyPath(e.Source, e.HistoryDigest)) {
		return false, errors.New("snapshots: la entrada no es de una edición")
	}
	chain, err := c.chain(&e)
	if err != nil {
		return false, err
	}
	d, digest, err := c.foldAll(chain)
	if err != nil {
		return false, err
	}
	defer d.discard()
	if digest != e.HistoryDigest {
		return false, &CorruptError{Path: e.History.Path, Want: "historia_digest " + e.HistoryDigest, Got: digest}
	}
	return c.restore(d, e.History)
}

// restore puts a rebuilt file where the recorded one is missing or damaged. It
// is the one place where a name gets other bytes: those that it had when it was
// published.
func (c *Catalogue) restore(d *draft, want File) (restored bool, err error) {
	have, err := measure(c.path(want.Path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if have.Path = want.Path; err == nil && have == want {
		return false, nil
	}
	if made := (File{want.Path, d.n, d.sha256()}); made != want {
		return false, fmt.Errorf("%w: %s (SHA-256 %s, se registró %s); reconstrúyalo con el programa que lo escribió o restáurelo de una copia de respaldo", ErrOtherPacking, want.Path, made.SHA256, want.SHA256)
	}
	dir := path.Dir(want.Path)
	if err := c.mkdir(dir); err != nil {
		return false, err
	}
	if err := c.disk.Rename(d.path, c.path(want.Path)); err != nil {
		return false, err
	}
	return true, c.disk.SyncDir(c.path(dir))
}

// Intact compares a published file with its record; a *CorruptError when it is
// another one.
func (c *Catalogue) Intact(f File) error {
	open, err := c.openChecked(f)
	if err != nil {
		return err
	}
	return open.Close()
}
