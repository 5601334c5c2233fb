package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardedFS closes three gaps between Pebble v2.1.7 and a disk.
//
// A marker file (marker.manifest.000012.MANIFEST-000104) says which file is
// current. Pebble creates the file and then its marker and syncs the folder
// once, so on a file system that does not order folder entries a loss of power
// can keep the marker and lose what it names, and the store no longer opens
// (cockroachdb/pebble issue 5825). Here the folder is synced before a marker is
// created. Drop Create when the pinned release has Marker.SyncDir (pull request
// 5915).
//
// A failed sync of a folder makes Pebble panic in whichever goroutine it runs;
// here it is the fatal error that every failed sync is, with its exit code.
//
// A log that cannot be ended or begun makes it panic while it holds no lock that
// it then releases, which nothing recovers and which ends the process with the
// code of a crash; here any failed change of a log is that same fatal error.
//
// The last two are of the store's own folder: what fails in that of a copy fails
// the copy.
type guardedFS struct {
	vfs.FS
	dir      string // the store's folder, clean
	fatal    func(error)
	logFatal func(error)
}

func (fs guardedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		if err := fs.syncDir(fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := fs.FS.Create(name, category)
	return fs.guard(name, f, err)
}

func (fs guardedFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, category)
	return fs.guard(to, f, err)
}

func (fs guardedFS) guard(name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") || fs.PathDir(name) != fs.dir {
		return f, err
	}
	l := logFile{f, name, fs.logFatal}
	if l.failed(err) != nil {
		return nil, err
	}
	return l, nil
}

func (fs guardedFS) syncDir(dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}

func (fs guardedFS) OpenDir(name string) (vfs.File, error) {
	d, err := fs.FS.OpenDir(name)
	if err != nil || fs.PathJoin(name) != fs.dir {
		return d, err
	}
	return dirFile{d, name, fs.fatal}, nil
}

// Unwrap lets the engine find the file system below, as vfs.FS asks.
func (fs guardedFS) Unwrap() vfs.FS { return fs.FS }

type dirFile struct {
	vfs.File
	name  string
	fatal func(error)
}

func (d dirFile) Sync() error {
	err := d.File.Sync()
	if err != nil {
		d.fatal(fmt.Errorf("store: no se pudo asegurar la carpeta %s: %w", d.name, err))
	}
	return err
}

// logFile is a log of the engine.
type logFile struct {
	vfs.File
	name  string
	fatal func(error)
}

func (l logFile) failed(err error) error {
	if err != nil {
		l.fatal(fmt.Errorf("store: no se pudo escribir %s: %w", l.name, err))
	}
	return err
}

func (l logFile) Write(p []byte) (int, error) {
	n, err := l.File.Write(p)
	return n, l.failed(err)
}

func (l logFile) Sync() error     { return l.failed(l.File.Sync()) }
func (l logFile) SyncData() error { return l.failed(l.File.SyncData()) }
func (l logFile) Close() error    { return l.failed(l.File.Close()) }

func (l logFile) SyncTo(length int64) (bool, error) {
	full, err := l.File.SyncTo(length)
	return full, l.failed(err)
}
