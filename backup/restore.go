package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// Target is what a directory is restored with.
type Target struct {
	Rooms    Rooms
	Key      []byte
	Now      time.Time // no answer that the backup lacks was given later
	Progress func(done, total int, bytes int64)
	// Finish completes the directory before it gets its name: what a backup does
	// not hold, and checks of its caller's own.
	Finish func(dir string) error
}

// Restore makes the data directory to, which must not exist, out of a backup. It
// compares the manifest with its signature, every file with the manifest, and the
// accounts with their own rules and with where their chains ended; on any
// difference, *TamperedError or ledger.ErrIntegrity, there is no directory to.
//
// The directory knows that it is a restored one (ledger.Restored), and its anchor
// holds where its chains end since.
func Restore(ctx context.Context, from, to string, t Target) (m Manifest, report ledger.Report, err error) {
	to = filepath.Clean(to)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return m, report, errors.Join(fmt.Errorf("%w: %s ya existe; se restaura en una carpeta nueva", ErrTarget, to), err)
	}
	if m, err = Read(from, t.Key); err != nil {
		return m, report, err
	}
	if err := m.complete(from); err != nil {
		return m, report, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return m, report, err
	}
	// Under a name that nobody serves from, until all is well.
	work, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+".restaurando-*") // mode 0700
	if err != nil {
		return m, report, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	var bytes int64
	for i, want := range m.Files {
		if err := restoreFile(ctx, from, work, want); err != nil {
			return m, report, err
		}
		bytes += want.Bytes
		t.Progress(i+1, len(m.Files), bytes)
	}
	if report, err = m.checkAccounts(ctx, filepath.Join(work, t.Rooms.Accounts)); err != nil {
		return m, report, err
	}
	if err := markRestored(ctx, filepath.Join(work, t.Rooms.Accounts), filepath.Join(work, t.Rooms.Anchor), t.Now); err != nil {
		return m, report, err
	}
	if t.Finish != nil {
		if err := t.Finish(work); err != nil {
			return m, report, err
		}
	}
	if err := syncTree(work); err != nil {
		return m, report, err
	}
	if err := ctx.Err(); err != nil {
		return m, report, err
	}
	if err := os.Rename(work, to); err != nil {
		return m, report, err
	}
	return m, report, syncDir(filepath.Dir(to))
}

// complete finds what is in the folder of a backup and not in its manifest. What
// is missing shows when it is read.
func (m *Manifest) complete(dir string) error {
	known := map[string]bool{manifestName: true}
	for _, f := range m.Files {
		known[f.Path] = true
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); !known[rel] {
			return &TamperedError{"sobra " + rel}
		}
		if !e.Type().IsRegular() {
			return &TamperedError{rel + " no es un archivo"}
		}
		return nil
	})
}

// restoreFile copies one file and compares what it copied.
func restoreFile(ctx context.Context, from, to string, want File) error {
	name := filepath.FromSlash(want.Path)
	in, err := os.Open(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return &TamperedError{"falta " + want.Path}
	} else if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() != want.Bytes {
		return &TamperedError{fmt.Sprintf("%s tiene %d bytes y tenía %d", want.Path, info.Size(), want.Bytes)}
	}
	path := filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()&^0o022)
	if err != nil {
		return err
	}
	got, err := copyTo(ctx, out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if got.Path = want.Path; got != want {
		return &TamperedError{want.Path + " tiene otro contenido"}
	}
	return nil
}

// checkAccounts proves the ledger, and that it ends where the backup says.
func (m *Manifest) checkAccounts(ctx context.Context, dir string) (report ledger.Report, err error) {
	s, err := store.OpenPebble(dir, store.PebbleOptions{ReadOnly: true})
	if err != nil {
		return report, err
	}
	defer func() {
		err = errors.Join(err, s.Close())
		if removed := os.Remove(filepath.Join(dir, lockFile)); err == nil && !errors.Is(removed, fs.ErrNotExist) {
			err = removed
		}
	}()
	if report, err = ledger.Check(ctx, s); err != nil {
		return report, err
	}
	heads, err := ledger.HeadsOf(s)
	if err == nil && !m.headsMatch(heads) {
		var ends []string
		for _, h := range heads {
			ends = append(ends, fmt.Sprint(h.Seq))
		}
		err = &TamperedError{"las cuentas terminan en otros lotes: " + strings.Join(ends, ", ")}
	}
	return report, err
}

// markRestored keeps the accounts from giving an id again that was given after the
// backup, and anchors them as they are then.
func markRestored(ctx context.Context, accounts, anchor string, now time.Time) (err error) {
	s, err := store.OpenPebble(accounts, store.PebbleOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		return err
	}
	_, err = l.Do(ctx, ledger.Global, ledger.Restored{Now: now})
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	return ledger.WriteAnchor(anchor, l.Heads())
}
