package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dirFS closes two gaps between Pebble v2.1.7 and a disk.
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
type dirFS struct {
	vfs.FS
	fatal func(error)
}

func (fs dirFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		if err := fs.syncDir(fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return fs.FS.Create(name, category)
}

func (fs dirFS) syncDir(dir string) error {
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

func (fs dirFS) OpenDir(name string) (vfs.File, error) {
	d, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return dirFile{d, name, fs.fatal}, nil
}

// Unwrap lets the engine find the file system below, as vfs.FS asks.
func (fs dirFS) Unwrap() vfs.FS { return fs.FS }

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
