package snapshots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	errInjected = errors.New("injected")
	errDead     = errors.New("the process is dead")
)

type faultMode int

const (
	failBefore faultMode = iota // the call does nothing and fails
	failAfter                   // the call does its work and fails
	die                         // neither it nor any later call does anything
)

// faultDisk fails at its n-th call and knows what a power loss would take: what
// was written to a file after its last Sync, and every name that was made in a
// folder after its last SyncDir.
type faultDisk struct {
	osDisk
	mode  faultMode
	at    int // 0: never
	calls int
	dead  bool

	dirty   map[string]*bool // by path; links share the state of the file
	pending []pendingName
}

type pendingName struct {
	path string
	old  []byte // what a rename replaced
}

func (d *faultDisk) call(do func() error) error {
	if d.dead {
		return errDead
	}
	d.calls++
	if d.calls != d.at {
		return do()
	}
	switch d.mode {
	case failAfter:
		return errors.Join(do(), errInjected)
	case die:
		d.dead = true
		return errDead
	}
	return errInjected
}

func (d *faultDisk) Mkdir(path string) error {
	return d.call(func() error {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			d.pending = append(d.pending, pendingName{path: path})
		}
		return d.osDisk.Mkdir(path)
	})
}

func (d *faultDisk) Create(path string) (diskFile, error) {
	var f diskFile
	err := d.call(func() (err error) {
		f, err = d.osDisk.Create(path)
		d.pending = append(d.pending, pendingName{path: path})
		return err
	})
	dirty := new(bool)
	if d.dirty == nil {
		d.dirty = map[string]*bool{}
	}
	d.dirty[path] = dirty
	if err != nil && f != nil {
		f.Close()
	}
	return &faultFile{d, f, dirty}, err
}

func (d *faultDisk) Link(from, to string) error {
	return d.call(func() error {
		err := d.osDisk.Link(from, to)
		if err == nil {
			d.pending = append(d.pending, pendingName{path: to})
			d.dirty[to] = d.dirty[from]
		}
		return err
	})
}

func (d *faultDisk) Rename(from, to string) error {
	return d.call(func() error {
		old, _ := os.ReadFile(to)
		err := d.osDisk.Rename(from, to)
		if err == nil {
			d.pending = append(d.pending, pendingName{to, old})
			d.dirty[to] = d.dirty[from]
		}
		return err
	})
}

func (d *faultDisk) Remove(path string) error {
	return d.call(func() error { return d.osDisk.Remove(path) })
}

func (d *faultDisk) SyncDir(path string) error {
	return d.call(func() error {
		kept := d.pending[:0]
		for _, p := range d.pending {
			if filepath.Dir(p.path) != path {
				kept = append(kept, p)
			}
		}
		d.pending = kept
		return nil
	})
}

// powerLoss takes what was never synced: all of it, or a random part.
func (d *faultDisk) powerLoss(t *testing.T, lost func() bool) {
	for path, dirty := range d.dirty {
		if info, err := os.Stat(path); err == nil && *dirty && lost() {
			if err := os.Truncate(path, info.Size()/2); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := len(d.pending) - 1; i >= 0; i-- {
		p := d.pending[i]
		if !lost() {
			continue
		}
		if err := os.RemoveAll(p.path); err != nil {
			t.Fatal(err)
		}
		if p.old != nil {
			if err := os.WriteFile(p.path, p.old, 0o444); err != nil {
				t.Fatal(err)
			}
		}
	}
}

type faultFile struct {
	d     *faultDisk
	f     diskFile
	dirty *bool
}

func (f *faultFile) Write(p []byte) (n int, err error) {
	err = f.d.call(func() (err error) {
		*f.dirty = true
		n, err = f.f.Write(p)
		return err
	})
	if f.d.mode == failBefore && errors.Is(err, errInjected) && len(p) > 1 {
		// A full disk takes the first half.
		n, _ = f.f.Write(p[:len(p)/2])
	}
	return n, err
}

func (f *faultFile) Sync() error {
	return f.d.call(func() error { *f.dirty = false; return nil })
}

// Close always closes: a dead process keeps no file open.
func (f *faultFile) Close() error {
	cerr := f.f.Close()
	return f.d.call(func() error { return cerr })
}

// work is what one run does to a catalogue; it stops at the first error.
type work struct {
	name string
	// prepare brings the catalogue to where the work begins, at edition 1.
	prepare func(t *testing.T, c *Catalogue)
	run     func(c *Catalogue) (v Version, m EditionManifest, err error)
	// situation of AAA010101AAA, by edition.
	situation map[int]string
}

func works() []work {
	prepare := func(t *testing.T, c *Catalogue) {
		publish(t, c, testSchema, 5, textOne)
		if err := c.RecordAttempt(attempt(5)); err != nil {
			t.Fatal(err)
		}
	}
	stage := func(c *Catalogue, o Origin, text string) (Version, error) {
		s, err := stageText(c, testSchema, text)
		if err != nil {
			return Version{}, err
		}
		defer s.Discard()
		return s.Accept(o)
	}
	return []work{
		{"the next day", prepare, func(c *Catalogue) (v Version, m EditionManifest, err error) {
			if v, err = stage(c, origin(9), textTwo); err != nil {
				return v, m, err
			}
			if m, err = c.Publish(v, moment(9)); err != nil {
				return v, m, err
			}
			return v, m, c.RecordAttempt(attempt(9))
		}, map[int]string{1: "Presunto", 2: "Definitivo"}},

		{"an older file", prepare, func(c *Catalogue) (v Version, m EditionManifest, err error) {
			if v, err = stage(c, origin(3), textTwo); err != nil {
				return v, m, err
			}
			m, err = c.PublishHistory(v, moment(9))
			return v, m, err
		}, map[int]string{1: "Presunto", 2: "Presunto"}},

		{"a quarantine accepted by hand", func(t *testing.T, c *Catalogue) {
			prepare(t, c)
			quarantine(t, c, 9, textTwo, Fault{"MENOS_FILAS", "pocas"})
		}, func(c *Catalogue) (v Version, m EditionManifest, err error) {
			// A decision that was written down stands.
			if _, ok, err := c.DecisionOf(2); err != nil {
				return v, m, err
			} else if !ok {
				if _, err := c.Decide(Decision{VersionID: 2, Decision: DecisionAccepted, Faults: []string{"MENOS_FILAS"}, Who: "Ana", Why: "así es"}, moment(9)); err != nil {
					return v, m, err
				}
			}
			o := origin(9)
			o.AcceptedFrom = 2
			if v, err = stage(c, o, textTwo); err != nil {
				return v, m, err
			}
			m, err = c.Publish(v, moment(9))
			return v, m, err
		}, map[int]string{1: "Presunto", 2: "Definitivo"}},
	}
}

// locked is the work of a process of its own.
func (w *work) locked(c *Catalogue) (v Version, m EditionManifest, err error) {
	unlock, err := c.Lock()
	if err != nil {
		return v, m, err
	}
	defer unlock()
	return w.run(c)
}

// Fail, fail after the work, die, and die with the power at every single call
// to the disk. Afterwards the catalogue opens without an operator: the edition
// before or after, complete; nothing acknowledged is missing; the same work
// then succeeds and gives the very digests of an undisturbed run.
func TestEveryDiskCallFails(t *testing.T) {
	for _, w := range works() {
		t.Run(w.name, func(t *testing.T) { everyDiskCallFails(t, w) })
	}
}

func everyDiskCallFails(t *testing.T, w work) {
	base := filepath.Join(t.TempDir(), "base")
	c := openTest(t, base)
	unlock, err := c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	w.prepare(t, c)
	first, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	unlock()

	scratch := t.TempDir()
	runs := 0
	copyBase := func() string {
		runs++
		dir := filepath.Join(scratch, fmt.Sprint(runs))
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	open := func(dir string, d disk) *Catalogue {
		c, err := openCatalogue(dir, d)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	calm := &faultDisk{}
	_, want, err := w.locked(open(copyBase(), calm))
	if err != nil {
		t.Fatal(err)
	}
	if calm.calls < 40 {
		t.Fatalf("only %d calls go through the seam", calm.calls)
	}
	for _, p := range calm.pending {
		if filepath.Base(filepath.Dir(p.path)) != tmpDir {
			t.Errorf("%s was acknowledged and never synced into its folder", p.path)
		}
	}

	old, swapped := 0, 0
	for n := 1; n <= calm.calls; n++ {
		// One goroutine does it all: the race detector has little to see. The last
		// calls are those after which the new edition serves.
		if testing.Short() && n%11 != 0 && n < calm.calls-1 {
			continue
		}
		for _, mode := range []string{"fail before", "fail after", "kill", "power loss", "partial power loss"} {
			d := &faultDisk{mode: map[string]faultMode{"fail before": failBefore, "fail after": failAfter}[mode], at: n}
			if strings.Contains(mode, "kill") || strings.Contains(mode, "power") {
				d.mode = die
			}
			dir := copyBase()
			v, m, err := w.locked(open(dir, d))
			switch rng := rand.New(rand.NewPCG(uint64(n), 1)); mode {
			case "power loss":
				d.powerLoss(t, func() bool { return true })
			case "partial power loss":
				d.powerLoss(t, func() bool { return rng.IntN(2) == 0 })
			}
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("call %d, %s: %s", n, mode, fmt.Sprintf(format, args...))
			}

			again := open(dir, fastDisk{})
			live, lerr := NewLive(again)
			if lerr != nil || live.Fault() != nil {
				fail("NewLive: %v, %v", lerr, live.Fault())
			}
			e := live.Acquire()
			switch got := e.Manifest(); {
			case got.SHA256 == first.SHA256 && err != nil && m.Number == 0:
				old++
			case got.SHA256 == want.SHA256:
				swapped++
			default:
				fail("edition %d is served; publishing said %v", got.Number, err)
			}
			if rows := found(t, e.Source("lista"), "AAA010101AAA"); len(rows) != 1 || rows[0].Raw[4] != w.situation[e.Manifest().Number] {
				fail("edition %d answers %v", e.Manifest().Number, rows)
			}
			if v.ID != 0 && err != nil {
				if have, verr := again.Version(v.ID); verr != nil || have.SHA256 != v.SHA256 {
					fail("version %d was acknowledged: %v", v.ID, verr)
				}
			}
			e.Release()
			live.Close()

			before, _, verr := again.Versions()
			if verr != nil {
				fail("%v", verr)
			}
			v2, m2, err := w.locked(again)
			if err != nil {
				fail("the next run: %v", err)
			}
			if v2.ID != before[len(before)-1].ID+1 {
				fail("id %d after %d", v2.ID, before[len(before)-1].ID)
			}
			if m2.SHA256 != want.SHA256 || m2.Number != 2 {
				fail("the next run gave edition %d with another evidence", m2.Number)
			}
			if decisions, damaged, err := again.Decisions(); err != nil || len(damaged) > 0 || len(decisions) > 1 {
				fail("decisions: %v, %v, %v", decisions, damaged, err)
			}
			if left, _ := os.ReadDir(again.path(tmpDir)); len(left) > 0 {
				fail("left in tmp: %v", left)
			}
			if wrong, verr := again.Verify(context.Background(), nil); verr != nil || len(wrong) > 0 {
				fail("Verify after the next run: %v, %v", wrong, verr)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if old == 0 || swapped == 0 {
		t.Errorf("%d runs left the old edition, %d the new one: both must occur", old, swapped)
	}
	t.Logf("%d calls, %d faults: %d old edition, %d new edition", calm.calls, old+swapped, old, swapped)
}
