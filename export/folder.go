package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cotejo/ledger"
)

// folder is an export while it is written: every file has a temporary name, which
// begins with a period and ends with partial.
type folder struct {
	dir     string
	made    []string // folders that were missing, the outer ones first
	outputs []*output
}

const partial = ".parcial"

// openFolder makes the folder of an export, outside the data directory. What an
// export that was killed left under temporary names is removed.
func openFolder(to, data string) (*folder, error) {
	to, err := filepath.Abs(to)
	if err != nil {
		return nil, err
	}
	inside, err := within(to, data)
	if err != nil {
		return nil, err
	}
	if inside {
		return nil, fmt.Errorf("%w: %s está dentro de la carpeta de datos", ErrTarget, to)
	}
	f := &folder{dir: to}
	entries, err := os.ReadDir(to)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeDir(to); err != nil {
			return nil, errors.Join(err, f.abandon())
		}
		return f, nil
	} else if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !isPartial(e.Name()) {
			return nil, fmt.Errorf("%w: %s no está vacía; indique una carpeta nueva para cada exportación", ErrTarget, to)
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(to, e.Name())); err != nil {
			return nil, err
		}
	}
	return f, os.Chmod(to, 0o700) // it will hold what nobody else may read
}

func isPartial(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, partial)
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

// makeDir makes a folder and those above it, and remembers what it made.
func (f *folder) makeDir(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	f.made = append(f.made, path)
	return syncDir(filepath.Dir(path))
}

// output is one file of an export. It counts and hashes what is written to it.
type output struct {
	name  string // with slashes, relative to the folder
	temp  string
	path  string
	file  *os.File
	to    *bufio.Writer
	sum   hash.Hash
	bytes int64
	rows  int64 // counted by whoever writes
}

// create begins a file, under a name that tells that it is not complete.
func (f *folder) create(name string) (*output, error) {
	o := &output{name: name, path: filepath.Join(f.dir, filepath.FromSlash(name)), sum: sha256.New()}
	o.temp = filepath.Join(f.dir, "."+strings.ReplaceAll(name, "/", "-")+partial)
	var err error
	if o.file, err = os.OpenFile(o.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	o.to = bufio.NewWriterSize(o.file, 256<<10)
	f.outputs = append(f.outputs, o)
	return o, nil
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.sum.Write(p[:n])
	o.bytes += int64(n)
	return n, err
}

// line writes a text and a line feed. A text of several lines is refused: nobody
// could read them back.
func (o *output) line(text []byte) error {
	if slices.Contains(text, '\n') {
		return fmt.Errorf("export: %s: un texto tiene más de una línea", o.name)
	}
	if _, err := o.Write(text); err != nil {
		return err
	}
	o.rows++
	_, err := o.Write([]byte{'\n'})
	return err
}

// close ends the writing of a file; once is enough.
func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	err := o.to.Flush()
	if err == nil {
		err = o.file.Sync()
	}
	err = errors.Join(err, o.file.Close())
	o.file = nil
	return err
}

func (f *folder) rows() (n int64) {
	for _, o := range f.outputs {
		n += o.rows
	}
	return n
}

func (f *folder) progress(v ledger.GroupView) Progress {
	p := Progress{Group: int(v.Group), Rows: f.rows()}
	for _, o := range f.outputs {
		p.Bytes += o.bytes
	}
	return p
}

// publish gives every file its name, the manifest last, and makes all of it
// durable.
func (f *folder) publish(m *Manifest) error {
	for _, o := range f.outputs {
		if err := o.close(); err != nil {
			return err
		}
		m.Files = append(m.Files, File{Bytes: o.bytes, Rows: o.rows, Path: o.name, SHA256: hex.EncodeToString(o.sum.Sum(nil))})
	}
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	text, err := m.encode()
	if err != nil {
		return err
	}
	last, err := f.create(ManifestName)
	if err == nil {
		_, err = last.Write(text)
	}
	if err == nil {
		err = last.close()
	}
	if err != nil {
		return err
	}
	dirs := []string{f.dir}
	for _, o := range f.outputs[:len(f.outputs)-1] {
		if err := f.makeDir(filepath.Dir(o.path)); err != nil {
			return err
		}
		if err := os.Rename(o.temp, o.path); err != nil {
			return err
		}
		if dir := filepath.Dir(o.path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	if err := os.Rename(last.temp, last.path); err != nil {
		return err
	}
	return syncDir(f.dir)
}

// abandon takes back what an unfinished export wrote, and nothing else.
func (f *folder) abandon() error {
	var errs []error
	remove := func(path string) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, o := range slices.Backward(f.outputs) {
		if o.file != nil {
			errs = append(errs, o.file.Close())
			o.file = nil
		}
		remove(o.path) // the manifest goes first
		remove(o.temp)
	}
	for _, dir := range slices.Backward(f.made) {
		remove(dir)
	}
	return errors.Join(errs...)
}
