package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// disk is every call that changes the catalogue. The tests have a second
// implementation, which fails or dies at the n-th call and forgets what was
// never synced.
type disk interface {
	Mkdir(path string) error // an existing folder is fine
	Create(path string) (diskFile, error)
	Link(from, to string) error
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(path string) error
}

type diskFile interface {
	io.Writer
	Sync() error
	Close() error
}

type osDisk struct{}

func (osDisk) Mkdir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// Create makes files read-only: nobody writes them a second time.
func (osDisk) Create(path string) (diskFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) Link(from, to string) error   { return os.Link(from, to) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }

func (osDisk) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// draft is a file under a temporary name: hashed as it is written, then
// published under its final name or discarded. It is an index.File.
type draft struct {
	c      *Catalogue
	path   string
	f      diskFile
	sum    hash.Hash
	n      int64
	closed bool
}

// draft starts a file in the temporary folder. The lock makes this process the
// only one that does, so a counter is enough for a name.
func (c *Catalogue) draft(kind string) (*draft, error) {
	name := fmt.Sprintf("%d-%d-%s", os.Getpid(), c.drafts.Add(1), kind)
	path := filepath.Join(c.dir, tmpDir, name)
	f, err := c.disk.Create(path)
	if err != nil {
		return nil, err
	}
	return &draft{c: c, path: path, f: f, sum: sha256.New()}, nil
}

// Scratch opens an empty file without a name, on the disk of the catalogue: for
// bytes on their way, of which nothing is known yet. It needs no lock. Closing it
// frees it, and so does the end of the process.
func (c *Catalogue) Scratch() (*os.File, error) {
	f, err := os.CreateTemp(c.path(tmpDir), "bytes-")
	if err != nil {
		return nil, err
	}
	// The next writer may have been faster.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *draft) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	d.sum.Write(p[:n])
	d.n += int64(n)
	return n, err
}

func (d *draft) Sync() error { return d.f.Sync() }

func (d *draft) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.f.Close()
}

func (d *draft) finish() error {
	err := d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func (d *draft) sha256() string { return hex.EncodeToString(d.sum.Sum(nil)) }

// discard is safe at any time; what it cannot remove, the next Lock does.
func (d *draft) discard() {
	_ = d.Close()
	_ = d.c.disk.Remove(d.path)
}

// publish links the synced and closed draft to rel and returns the file that
// stands there. When one stood there before, it stays: it must have the same
// bytes, or else same must recognise it as the same content in other bytes (an
// older library compressed it). same may be nil.
func (d *draft) publish(rel string, same func(path string) bool) (File, error) {
	file := File{Path: rel, Bytes: d.n, SHA256: d.sha256()}
	path := d.c.path(rel)
	err := d.c.disk.Link(d.path, path)
	if errors.Is(err, os.ErrExist) {
		have, herr := measure(path)
		if herr != nil {
			return File{}, herr
		}
		have.Path = rel
		if have != file && (same == nil || !same(path)) {
			return File{}, fmt.Errorf("snapshots: %s ya existe con otro contenido (SHA-256 %s, se esperaba %s): un archivo publicado nunca se cambia; compruebe el catálogo con «cotejo verify all»", rel, have.SHA256, file.SHA256)
		}
		file, err = have, nil
	}
	if err != nil {
		return File{}, err
	}
	// Also when it stood there: whoever linked it may have died before this.
	if err := d.c.disk.SyncDir(filepath.Dir(path)); err != nil {
		return File{}, err
	}
	d.discard()
	return file, nil
}

// mkdir makes a folder of the catalogue and its parents durable.
func (c *Catalogue) mkdir(rel string) error {
	if rel == "." {
		return nil
	}
	if err := c.mkdir(filepath.Dir(rel)); err != nil {
		return err
	}
	path := c.path(rel)
	if err := c.disk.Mkdir(path); err != nil {
		return err
	}
	return c.disk.SyncDir(filepath.Dir(path))
}

// measure hashes a file; its Path stays empty.
func measure(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return File{}, err
	}
	return File{Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// openChecked opens a published file after comparing it with its record. What
// is read from it afterwards are the bytes that were compared.
func (c *Catalogue) openChecked(want File) (*os.File, error) {
	f, err := os.Open(c.path(want.Path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, &CorruptError{Path: want.Path, Want: want.SHA256, Got: "no existe"}
	}
	if err != nil {
		return nil, err
	}
	if err := checkOpen(f, want); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func checkOpen(f *os.File, want File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != want.Bytes {
		return &CorruptError{Path: want.Path, Want: fmt.Sprintf("bytes %d", want.Bytes), Got: fmt.Sprintf("bytes %d", info.Size())}
	}
	sum := sha256.New()
	buf := make([]byte, 128<<10)
	for {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		runtime.Gosched() // a server that opens a large file answers meanwhile
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
		return &CorruptError{Path: want.Path, Want: want.SHA256, Got: got}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
