package snapshots

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// Rebuild reads the official bytes of an accepted version again and recomputes
// filas_digest. read is the version's reader: it gets the bytes and hands every
// row to add. A digest other than the manifest's is a *CorruptError that names
// the rows file; the digest is returned all the same. When it agrees, a rows
// file that is missing or damaged is restored. The lock must be held.
func (c *Catalogue) Rebuild(v Version, schema Schema, read func(official io.Reader, add func(Row) error) error) (digest string, err error) {
	if !c.locked.Load() {
		return "", ErrNotLocked
	}
	if v, err = c.Version(v.ID); err != nil {
		return "", err
	}
	if v.State != stateAccepted {
		return "", fmt.Errorf("%w: %d de %s", ErrQuarantined, v.ID, v.Source)
	}
	if err := schema.check(); err != nil {
		return "", fmt.Errorf("snapshots: %w", err)
	}
	if schema.Source != v.Source || schema.Reader != v.Reader {
		return "", fmt.Errorf("snapshots: la versión %d es de %s con el lector %d, no de %s con el %d; use el programa que la leyó", v.ID, v.Source, v.Reader, schema.Source, schema.Reader)
	}
	official, err := c.Official(v)
	if err != nil {
		return "", err
	}
	defer official.Close()
	b := &rows{schema: schema}
	if err := read(official, func(r Row) error { return b.add(&r) }); err != nil {
		return "", err
	}
	// A reader may stop before the end, where the bytes are compared.
	if _, err := io.Copy(io.Discard, official); err != nil {
		return "", err
	}
	d, digest, err := c.draftRows(b)
	if err != nil {
		return "", err
	}
	defer d.discard()
	if digest != v.RowsDigest {
		return digest, &CorruptError{Path: v.RowsFile.Path, Want: "filas_digest " + v.RowsDigest, Got: digest}
	}
	return digest, c.restore(d, *v.RowsFile)
}

// RebuildHistory folds the chain of an entry again and recomputes
// historia_digest. A digest other than the entry's is a *CorruptError that
// names the history file; the digest is returned all the same. When it agrees,
// a history file that is missing or damaged is restored. The rows of every version of the
// chain must be there. The lock must be held.
func (c *Catalogue) RebuildHistory(e EditionEntry) (digest string, err error) {
	if !c.locked.Load() {
		return "", ErrNotLocked
	}
	if len(e.Chain) == 0 || !e.History.valid(historyPath(e.Source, e.HistoryDigest)) {
		return "", errors.New("snapshots: la entrada no es de una edición")
	}
	chain, err := c.chain(&e)
	if err != nil {
		return "", err
	}
	d, digest, err := c.foldAll(chain)
	if err != nil {
		return "", err
	}
	defer d.discard()
	if digest != e.HistoryDigest {
		return digest, &CorruptError{Path: e.History.Path, Want: "historia_digest " + e.HistoryDigest, Got: digest}
	}
	return digest, c.restore(d, e.History)
}

// restore puts a rebuilt file where the recorded one is missing or damaged. It
// is the one place where a name gets other bytes: those that it had when it was
// published.
func (c *Catalogue) restore(d *draft, want File) error {
	have, err := measure(c.path(want.Path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if have.Path = want.Path; err == nil && have == want {
		return nil
	}
	if made := (File{want.Path, d.n, d.sha256()}); made != want {
		return fmt.Errorf("snapshots: %s: lo reconstruido concuerda con su huella, pero esta versión del programa lo escribe con otros bytes (SHA-256 %s, se registró %s); reconstruya el archivo con el programa que lo escribió", want.Path, made.SHA256, want.SHA256)
	}
	dir := path.Dir(want.Path)
	if err := c.mkdir(dir); err != nil {
		return err
	}
	if err := c.disk.Rename(d.path, c.path(want.Path)); err != nil {
		return err
	}
	return c.disk.SyncDir(c.path(dir))
}
