// Package backup copies a data directory while a server writes to it, and makes
// a directory out of such a copy again.
//
// A backup is a folder with the same rooms and one manifest, RESPALDO.json, that
// names every file with its SHA-256 and is signed with a key made of the secret
// of the API keys. The secret itself is not in it. The manifest is published
// last: a folder without it is no backup, so one that was cut off is never
// believed, and neither is one of which a byte was changed, added or taken away.
//
// It promises that every command that was answered before the backup began is in
// it, whole, and none in part. It knows no product: rooms are named by its
// caller. Start reading at Write, then restore.go.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/ledger"
	"cotejo/store"
)

var lastBackup = metrics.NewGauge("cotejo_backup_last_success_timestamp_seconds", nil)

var (
	// ErrTarget refuses a place to write to: a backup wants an empty folder, a
	// restored directory none.
	ErrTarget = errors.New("backup: destino no admitido")
	// ErrNoBackup says that a folder holds no manifest.
	ErrNoBackup = errors.New("backup: no es un respaldo: falta " + manifestName + " (uno que se interrumpió no lo tiene)")
	// ErrNewer refuses a backup of a newer format than this program knows.
	ErrNewer = errors.New("backup: lo escribió una versión más nueva de cotejo")
)

// TamperedError says how a backup is not the one that was written.
type TamperedError struct{ What string }

func (e *TamperedError) Error() string {
	return "backup: el respaldo no es el que se escribió: " + e.What + ". Use otro respaldo"
}

// Rooms are the parts of a data directory, named relative to it.
type Rooms struct {
	Accounts string   // folder of the account store
	Anchor   string   // file to write the heads of its chains to, as ledger's anchor
	Trees    []string // catalogues of published files
	Files    []string // single files
}

// Source is what a backup is made of.
type Source struct {
	Dir   string // data directory
	Rooms Rooms
	// Checkpoint writes the account store as it is now into a folder that does
	// not exist.
	Checkpoint func(dir string) error
	Key        []byte // of the manifest, see Key
	Format     int    // of the data directory
	Version    string // of this program
	Now        time.Time
	// Progress is told how many files of how many are done, and their bytes.
	Progress func(done, total int, bytes int64)
}

// Write makes a backup in the folder to, which must be empty or missing. When it
// returns nil the backup is durable. On an error nothing is left of it.
func Write(ctx context.Context, to string, s Source) (_ Manifest, err error) {
	m := Manifest{Backup: manifestFormat, Format: s.Format, Version: s.Version, Moment: s.Now.UTC().Format(time.RFC3339)}
	made, err := prepare(to, s.Dir)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, clear(to, made))
		}
	}()
	// The accounts first: what their records name is published before them, so it
	// is in the catalogues that are read after them.
	accounts := filepath.Join(to, s.Rooms.Accounts)
	if err := s.Checkpoint(accounts); err != nil {
		return m, err
	}
	heads, err := headsOf(accounts)
	if err != nil {
		return m, err
	}
	m.setHeads(heads)
	if err := ledger.WriteAnchor(filepath.Join(to, s.Rooms.Anchor), heads); err != nil {
		return m, err
	}

	files, err := list(to, "") // what is there already: to be hashed where it is
	if err != nil {
		return m, err
	}
	there := len(files)
	for _, name := range s.Rooms.Files {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); err == nil {
			files = append(files, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	for _, tree := range s.Rooms.Trees {
		found, err := listCatalogue(s.Dir, tree)
		if err != nil {
			return m, err
		}
		files = append(files, found...)
	}
	var bytes int64
	for i, name := range files {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		path := filepath.Join(to, name)
		if i >= there {
			if err := take(filepath.Join(s.Dir, name), path); err != nil {
				return m, err
			}
		}
		f, err := measure(ctx, path)
		if err != nil {
			return m, err
		}
		f.Path = filepath.ToSlash(name)
		m.Files = append(m.Files, f)
		bytes += f.Bytes
		s.Progress(i+1, len(files), bytes)
	}
	slices.SortFunc(m.Files, byPath)
	if err := syncTree(to); err != nil {
		return m, err
	}
	if err := m.publish(to, s.Key); err != nil {
		return m, err
	}
	lastBackup.Set(float64(s.Now.Unix()))
	return m, nil
}

// prepare makes the folder of a backup; made tells whether it was missing.
func prepare(to, dir string) (made bool, err error) {
	inside, err := within(to, dir)
	if err != nil {
		return false, err
	}
	if inside {
		return false, fmt.Errorf("%w: %s está dentro de la carpeta de datos", ErrTarget, to)
	}
	entries, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, errors.Join(os.MkdirAll(to, 0o700), syncDir(filepath.Dir(to)))
	case err != nil:
		return false, err
	case len(entries) > 0:
		return false, fmt.Errorf("%w: %s no está vacía; indique una carpeta nueva para cada respaldo", ErrTarget, to)
	}
	return false, os.Chmod(to, 0o700) // it will hold what nobody else may read
}

// within reports whether a path that may not exist yet lies inside dir.
func within(path, dir string) (bool, error) {
	outer, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, outer) {
			return true, nil
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false, nil
		}
		path = parent
	}
}

// clear takes back what an unfinished backup wrote.
func clear(to string, made bool) error {
	if made {
		return os.RemoveAll(to)
	}
	entries, err := os.ReadDir(to)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(to, e.Name())))
	}
	return err
}

// headsOf reads where the chains of a store end that nobody writes to. What
// opening it leaves behind is no part of it.
func headsOf(dir string) (_ []ledger.Head, err error) {
	s, err := store.OpenPebble(dir, store.PebbleOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	heads, err := ledger.HeadsOf(s)
	err = errors.Join(err, s.Close())
	if removed := os.Remove(filepath.Join(dir, lockFile)); err == nil && !errors.Is(removed, fs.ErrNotExist) {
		err = removed
	}
	return heads, err
}

// lockFile is what opening a store leaves in its folder, empty.
const lockFile = "LOCK"

// listCatalogue names the files of a catalogue in an order in which whatever a
// file names comes after it: all of that was published before it, and so is
// there when it is looked for. Work in progress is left out.
func listCatalogue(dir, tree string) ([]string, error) {
	top, err := os.ReadDir(filepath.Join(dir, tree))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	first := []string{"checked", "editions", "decisions", "versions"}
	slices.SortStableFunc(top, func(a, b fs.DirEntry) int {
		rank := func(e fs.DirEntry) int {
			if i := slices.Index(first, e.Name()); i >= 0 {
				return i
			}
			return len(first)
		}
		return rank(a) - rank(b)
	})
	var files []string
	for _, e := range top {
		name := filepath.Join(tree, e.Name())
		switch {
		case e.Name() == "tmp", e.Name() == "lock":
		case e.IsDir():
			found, err := list(dir, name)
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		default:
			files = append(files, name)
		}
	}
	return files, nil
}

// list names the files below dir/name, relative to dir.
func list(dir, name string) (files []string, err error) {
	err = filepath.WalkDir(filepath.Join(dir, name), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, rel)
		return err
	})
	return files, err
}

// take brings a file into a backup. One that nobody may write is never written
// again, so a second name for it costs nothing; any other is copied.
func take(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("backup: %s no es un archivo", from)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 == 0 {
		if os.Link(from, to) == nil {
			return nil
		}
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()&^0o077|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// syncTree makes every file and folder below dir durable, and dir itself.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path) // a file is synced the same way
	})
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
