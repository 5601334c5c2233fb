package snapshots

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var (
	// ErrBusy says that another process is writing to this catalogue.
	ErrBusy = errors.New("snapshots: otro proceso está cargando una fuente")
	// ErrNoEdition says that nothing was ever published here.
	ErrNoEdition = errors.New("snapshots: todavía no hay ninguna edición")
	// ErrNotFound says that a version or edition does not exist.
	ErrNotFound = errors.New("snapshots: no existe")
	// ErrNotLocked says that a call that writes was made without Lock.
	ErrNotLocked = errors.New("snapshots: falta el candado del catálogo (Lock)")
)

// CorruptError says that a published file is not the one that was published.
type CorruptError struct {
	Path string // relative to the catalogue
	Want string // recorded SHA-256 (or "bytes N")
	Got  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("snapshots: %s está dañado: se esperaba %s y hay %s; restáurelo de una copia de respaldo o, si son filas o historia, con «cotejo snapshots rebuild»", e.Path, e.Want, e.Got)
}

const (
	versionsDir  = "versions"
	editionsDir  = "editions"
	snapshotsDir = "snapshots"
	checkedDir   = "checked"
	decisionsDir = "decisions" // made with its first file
	tmpDir       = "tmp"
	lockName     = "lock"
)

// Catalogue is a folder of versions and editions. Its methods are safe for
// concurrent use, except that one goroutine at a time may write.
type Catalogue struct {
	dir    string
	disk   disk
	locked atomic.Bool
	drafts atomic.Int64
	opened opened
}

// OpenCatalogue opens or creates the folder. It does not lock it: any number of
// processes may read while one writes.
func OpenCatalogue(dir string) (*Catalogue, error) { return openCatalogue(dir, osDisk{}) }

func openCatalogue(dir string, d disk) (*Catalogue, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &Catalogue{dir: dir, disk: d}
	c.opened.c = c
	for _, path := range []string{".", versionsDir, editionsDir, snapshotsDir, checkedDir, tmpDir} {
		path = c.path(path)
		if _, err := os.Stat(path); err == nil {
			continue // a reader may not be allowed to write
		}
		if err := d.Mkdir(path); err != nil {
			return nil, fmt.Errorf("snapshots: %w", err)
		}
	}
	return c, nil
}

func (c *Catalogue) path(rel string) string { return filepath.Join(c.dir, filepath.FromSlash(rel)) }

// Lock makes this process the one that writes; release it with unlock. It
// removes what an interrupted writer left in the temporary folder. ErrBusy when
// another process holds it. The kernel frees it when the process dies.
func (c *Catalogue) Lock() (unlock func(), err error) {
	f, err := os.OpenFile(c.path(lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		return nil, fmt.Errorf("%w (proceso %s): espere a que termine", ErrBusy, strings.TrimSpace(string(holder)))
	} else if err != nil {
		return nil, err
	}
	// For whoever is refused; the lock itself does not depend on it.
	_ = f.Truncate(0)
	_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)

	left, err := os.ReadDir(c.path(tmpDir))
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		if err := c.disk.Remove(filepath.Join(c.path(tmpDir), e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	// Whoever made the folders may have died before they were durable.
	for _, dir := range []string{filepath.Dir(c.dir), c.dir} {
		if err := c.disk.SyncDir(dir); err != nil {
			return nil, err
		}
	}
	c.locked.Store(true)
	var once atomic.Bool
	return func() {
		if once.CompareAndSwap(false, true) {
			c.locked.Store(false)
			f.Close()
		}
	}, nil
}

// Versions lists the manifests by id. A damaged one hides no other: it is left
// out, and damaged says why (mostly a *CorruptError that names the file).
func (c *Catalogue) Versions() (versions []Version, damaged []error, err error) {
	return list(c, versionsDir, c.Version)
}

// Editions lists the manifests of editions by number, as Versions does.
func (c *Catalogue) Editions() (editions []EditionManifest, damaged []error, err error) {
	return list(c, editionsDir, c.edition)
}

func list[M any](c *Catalogue, dir string, read func(int) (M, error)) (good []M, damaged []error, err error) {
	numbers, err := c.numbers(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range numbers {
		if m, err := read(n); err != nil {
			damaged = append(damaged, err)
		} else {
			good = append(good, m)
		}
	}
	return good, damaged, nil
}

// VersionText returns the manifest of a version to the byte, as it was published;
// it fails as Version does.
func (c *Catalogue) VersionText(id int) ([]byte, error) {
	return c.manifestText(versionPath(id), new(Version))
}

// EditionText returns the manifest of an edition to the byte, as it was published;
// it fails as Version does.
func (c *Catalogue) EditionText(n int) ([]byte, error) {
	return c.manifestText(editionPath(n), new(EditionManifest))
}

// Version reads one manifest; ErrNotFound when there is none.
func (c *Catalogue) Version(id int) (Version, error) {
	var v Version
	if err := c.readManifest(versionPath(id), &v); err != nil {
		return Version{}, err
	}
	if v.ID != id {
		return Version{}, &CorruptError{Path: versionPath(id), Want: fmt.Sprintf("source_version_id %d", id), Got: strconv.Itoa(v.ID)}
	}
	return v, nil
}

// LatestEdition returns the newest manifest, ErrNoEdition when there is none.
func (c *Catalogue) LatestEdition() (EditionManifest, error) {
	numbers, err := c.numbers(editionsDir)
	if err != nil {
		return EditionManifest{}, err
	}
	if len(numbers) == 0 {
		return EditionManifest{}, ErrNoEdition
	}
	return c.edition(numbers[len(numbers)-1])
}

// EditionBySHA256 returns the first edition with that evidence hash,
// ErrNotFound when there is none. A damaged manifest hides no other one. Every
// catalogue has the edition without sources.
func (c *Catalogue) EditionBySHA256(sha string) (EditionManifest, error) {
	all, err := c.EditionsBySHA256(sha)
	if err != nil {
		return EditionManifest{}, err
	}
	return all[0], nil
}

// EditionsBySHA256 returns every edition with that evidence hash, by number:
// answers from them are the same, and only what is no evidence differs, as when
// a date was corrected and then set back. It fails as EditionBySHA256 does.
func (c *Catalogue) EditionsBySHA256(sha string) ([]EditionManifest, error) {
	if m := emptyEdition(); m.SHA256 == sha {
		return []EditionManifest{m}, nil
	}
	numbers, err := c.numbers(editionsDir)
	if err != nil {
		return nil, err
	}
	var found []EditionManifest
	missing := fmt.Errorf("%w: edición %s", ErrNotFound, sha)
	for _, n := range numbers {
		m, err := c.edition(n)
		if err == nil && m.SHA256 == sha {
			found = append(found, m)
		}
		if err != nil {
			missing = errors.Join(missing, err)
		}
	}
	if found == nil {
		return nil, missing
	}
	return found, nil
}

func (c *Catalogue) edition(n int) (EditionManifest, error) {
	var m EditionManifest
	if err := c.readManifest(editionPath(n), &m); err != nil {
		return EditionManifest{}, err
	}
	if m.Number != n {
		return EditionManifest{}, &CorruptError{Path: editionPath(n), Want: fmt.Sprintf("edicion %d", n), Got: strconv.Itoa(m.Number)}
	}
	return m, nil
}

// numbers lists the manifests of a folder, ascending. Files with other names
// are nobody's.
func (c *Catalogue) numbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(c.path(dir))
	if errors.Is(err, os.ErrNotExist) && dir == decisionsDir {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ".json")
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 && strconv.Itoa(n) == digits {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
