package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"

	"cotejo/civil"
	"cotejo/index"

	"github.com/klauspost/compress/zstd"
)

// Stage collects one download before it becomes a version. Discard or publish
// it. It belongs to one goroutine.
type Stage struct {
	c        *Catalogue
	source   string
	official *draft
	pack     *zstd.Encoder
	sum      hash.Hash
	size     int64
	sealed   bool
	ended    bool // published or discarded
	rows     *rows
	err      error // of Begin
}

// Stage starts a version. The lock must be held.
func (c *Catalogue) Stage(source string) (*Stage, error) {
	if !c.locked.Load() {
		return nil, ErrNotLocked
	}
	if !validSource(source) {
		return nil, fmt.Errorf("snapshots: %q no es el nombre de una fuente", source)
	}
	d, err := c.draft("oficial.zst")
	if err != nil {
		return nil, err
	}
	// One goroutine: none is left behind, and the same bytes pack the same way. The
	// levels above cost several times more for a file smaller by an eighth.
	pack, err := zstd.NewWriter(d, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		d.discard()
		return nil, err
	}
	return &Stage{c: c, source: source, official: d, pack: pack, sum: sha256.New()}, nil
}

var errSealed = errors.New("snapshots: stage: out of order")

// Write takes the official bytes as received (already unpacked): they are
// hashed and kept compressed.
func (s *Stage) Write(p []byte) (int, error) {
	if s.sealed || s.ended {
		return 0, errSealed
	}
	n, err := s.pack.Write(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	return n, err
}

// Seal ends the official bytes; Open reads them back, SHA256 and Size describe them.
func (s *Stage) Seal() error {
	if s.sealed || s.ended {
		return errSealed
	}
	if err := s.pack.Close(); err != nil {
		return err
	}
	if err := s.official.finish(); err != nil {
		return err
	}
	s.sealed = true
	return nil
}

// Open reads the sealed bytes from their beginning, any number of times before
// the stage is published or discarded. Close what it returns.
func (s *Stage) Open() (io.ReadCloser, error) {
	if !s.sealed || s.ended {
		return nil, errSealed
	}
	f, err := os.Open(s.official.path)
	if err != nil {
		return nil, err
	}
	return newOfficial(f, s.content())
}

func (s *Stage) SHA256() string { return hex.EncodeToString(s.sum.Sum(nil)) }
func (s *Stage) Size() int64    { return s.size }

func (s *Stage) content() File {
	return File{Path: officialPath(s.source, s.SHA256()), Bytes: s.size, SHA256: s.SHA256()}
}

// Begin starts the rows, dropping those of an earlier Begin; a schema that
// cannot be used is reported by Add and Accept.
func (s *Stage) Begin(schema Schema) {
	s.rows.discard()
	s.rows = &rows{schema: schema, scratch: s.c.Scratch}
	s.err = schema.check()
	if s.err == nil && schema.Source != s.source {
		s.err = fmt.Errorf("el esquema es de %s, la fuente es %s", schema.Source, s.source)
	}
}

// Add takes a row in any order and copies what it keeps.
func (s *Stage) Add(row Row) error {
	if err := s.began(); err != nil {
		return err
	}
	return s.rows.add(&row)
}

// Rows returns how many rows were added.
func (s *Stage) Rows() int {
	if s.rows == nil {
		return 0
	}
	return s.rows.count
}

func (s *Stage) began() error {
	if s.err != nil {
		return fmt.Errorf("snapshots: %w", s.err)
	}
	if s.rows == nil || s.ended {
		return errors.New("snapshots: stage: Begin comes first")
	}
	return nil
}

// Accept publishes the version with its rows under the next free version id.
// After an error the stage can only be discarded.
func (s *Stage) Accept(o Origin) (Version, error) {
	if err := s.began(); err != nil {
		return Version{}, err
	}
	v, err := s.version(o, stateAccepted)
	if err != nil {
		return Version{}, err
	}
	defer s.Discard()
	v.Reader, v.Columns = s.rows.schema.Reader, s.rows.schema.Columns
	v.Rows, v.Suppressed = s.Rows(), s.rows.suppressed
	if err := s.publishOfficial(&v); err != nil {
		return Version{}, err
	}
	d, digest, err := s.c.draftRows(s.rows)
	if err != nil {
		return Version{}, err
	}
	defer d.discard()
	v.RowsDigest = digest
	file, err := d.publish(rowsPath(v.Source, v.SHA256, v.Reader), func(path string) bool { return hasRowsDigest(path, digest) })
	if err != nil {
		return Version{}, fmt.Errorf("%w (si el lector cambió, suba su número)", err)
	}
	v.RowsFile = &file
	return s.c.publishVersion(v)
}

// Quarantine publishes only the official bytes and the reasons, under the next
// free version id.
func (s *Stage) Quarantine(o Origin, faults []Fault) (Version, error) {
	if len(faults) == 0 {
		return Version{}, errors.New("snapshots: una cuarentena necesita al menos un motivo")
	}
	v, err := s.version(o, stateQuarantined)
	if err != nil {
		return Version{}, err
	}
	defer s.Discard()
	v.Faults = faults
	if s.rows != nil && s.err == nil {
		v.Reader, v.Rows, v.Suppressed = s.rows.schema.Reader, s.Rows(), s.rows.suppressed
	}
	if err := s.publishOfficial(&v); err != nil {
		return Version{}, err
	}
	return s.c.publishVersion(v)
}

// Discard gives up what was not published. It may be called at any time.
func (s *Stage) Discard() {
	if s.ended {
		return
	}
	s.ended = true
	if !s.sealed {
		_ = s.pack.Close()
	}
	s.official.discard()
	s.rows.discard()
	s.rows = nil
}

func (s *Stage) version(o Origin, state string) (Version, error) {
	if !s.sealed || s.ended {
		return Version{}, errSealed
	}
	if !s.c.locked.Load() {
		return Version{}, ErrNotLocked
	}
	if o.Downloaded.IsZero() {
		return Version{}, errors.New("snapshots: falta el momento de la descarga (Origin.Downloaded)")
	}
	v := Version{
		Source: s.source, State: state, SHA256: s.SHA256(), Bytes: s.size,
		URL: o.URL, Obtained: o.Obtained, Corte: o.Corte, CorteFrom: o.CorteFrom,
		Downloaded: civil.Timestamp(o.Downloaded), OrderDate: o.OrderDate(),
		Encoding: o.Encoding, Counts: o.Counts,
	}
	if state == stateAccepted {
		v.AcceptedFrom = o.AcceptedFrom
	}
	if !o.Published.IsZero() {
		v.Published = civil.Timestamp(o.Published)
	}
	return v, nil
}

func (s *Stage) publishOfficial(v *Version) error {
	rel := officialPath(v.Source, v.SHA256)
	if err := s.c.mkdir(path.Dir(rel)); err != nil {
		return err
	}
	content := s.content()
	file, err := s.official.publish(rel, func(path string) bool { return isOfficial(path, content) })
	v.Official = file
	return err
}

// draftRows writes rows to a synced draft.
func (c *Catalogue) draftRows(b *rows) (_ *draft, digest string, err error) {
	d, err := c.draft("filas.sst")
	if err != nil {
		return nil, "", err
	}
	w, sum := index.NewSorted(d), newRowsDigest()
	err = b.write(func(key, value []byte) error {
		if err := sum.add(key, value); err != nil {
			return err
		}
		return w.Add(key, value)
	})
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		w.Abort()
		d.discard()
		return nil, "", err
	}
	return d, sum.String(), nil
}

func hasRowsDigest(path, digest string) bool {
	s, err := index.OpenSorted(path)
	if err != nil {
		return false
	}
	defer s.Close()
	have, err := digestOfRows(s)
	return err == nil && have.String() == digest
}

// publishVersion gives v the next free id.
func (c *Catalogue) publishVersion(v Version) (Version, error) {
	ids, err := c.numbers(versionsDir)
	if err != nil {
		return Version{}, err
	}
	v.ID = 1
	if len(ids) > 0 {
		v.ID = ids[len(ids)-1] + 1
	}
	for ; ; v.ID++ {
		if err := v.check(); err != nil {
			return Version{}, fmt.Errorf("snapshots: %s: %w", v.Source, err)
		}
		err := c.publishManifest(versionPath(v.ID), &v)
		if err == nil {
			return v, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return Version{}, err
		}
	}
}

// publishManifest links a manifest; os.ErrExist when the name is taken.
func (c *Catalogue) publishManifest(rel string, m any) error {
	return c.writeManifest(rel, m, c.disk.Link)
}

// writeManifest writes a manifest whole and puts it in its place by Link, which
// never replaces, or by Rename, which does.
func (c *Catalogue) writeManifest(rel string, m any, place func(from, to string) error) error {
	text, err := encodeManifest(m)
	if err != nil {
		return err
	}
	d, err := c.draft("manifiesto")
	if err != nil {
		return err
	}
	defer d.discard()
	if _, err := d.Write(text); err != nil {
		return err
	}
	if err := d.finish(); err != nil {
		return err
	}
	path := c.path(rel)
	if err := place(d.path, path); err != nil {
		return err
	}
	return c.disk.SyncDir(filepath.Dir(path))
}
