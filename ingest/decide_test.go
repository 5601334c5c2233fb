package ingest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

func (f *fixture) accept(id int) (Result, error) {
	f.t.Helper()
	return Accept(f.t.Context(), f.c, id, "Ana Ruiz", "la comparé con la publicación", f.now)
}

// accepted wants a version in quarantine to serve.
func (f *fixture) accepted(id int) Result {
	f.t.Helper()
	r, err := f.accept(id)
	if err != nil || r.Outcome != Activated || r.Version.AcceptedFrom != id || r.Decision == nil || r.Decision.VersionID != id || r.Decision.Who != "Ana Ruiz" {
		f.t.Fatalf("%s: %+v, decision %+v, %v", r.Outcome, r.Version, r.Decision, err)
	}
	if e, _ := f.serves(); e.VersionID != r.Version.ID {
		f.t.Fatalf("version %d serves", e.VersionID)
	}
	return r
}

func (f *fixture) decisions() []snapshots.Decision {
	f.t.Helper()
	all, damaged, err := f.c.Decisions()
	if err != nil || len(damaged) > 0 {
		f.t.Fatal(damaged, err)
	}
	return all
}

func TestAccept(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	held := f.bytes(month(t, 4), Quarantined) // too few rows
	r := f.accepted(held.Version.ID)
	v := r.Version
	if v.SHA256 != held.Version.SHA256 || v.Corte != held.Version.Corte || v.Downloaded != held.Version.Downloaded || v.Rows != 8 || v.ID != 3 {
		t.Errorf("%+v", v)
	}
	if _, days := f.serves(); strings.Join(days, " ") != "2026-03-31 2026-04-30" {
		t.Errorf("history of %v", days)
	}
	d, ok, err := f.c.DecisionOf(held.Version.ID)
	if err != nil || !ok || d.Decision != snapshots.DecisionAccepted || strings.Join(d.Faults, " ") != tabular.FewerRows || d.Why != "la comparé con la publicación" {
		t.Errorf("%+v, %v", d, err)
	}
	// What the last attempt found serves now; when it was made stays.
	f.attempted(Activated, v.ID)

	if again := f.bytes(month(t, 4), Unchanged); again.Version.ID != v.ID {
		t.Errorf("version %d", again.Version.ID)
	}
	if _, err := f.accept(held.Version.ID); !errors.Is(err, ErrUndecidable) || !strings.Contains(err.Error(), "versión 3") {
		t.Errorf("accepted twice: %v", err)
	}
	if _, err := Reject(f.c, held.Version.ID, "Ana", "no", f.now); !errors.Is(err, ErrUndecidable) {
		t.Errorf("rejected while it serves: %v", err)
	}
	if len(f.decisions()) != 1 {
		t.Errorf("%+v", f.decisions())
	}
	f.bytes(month(t, 5), Activated)
	// Once followed by a newer one it is an old list like any other.
	if r := f.bytes(month(t, 4), Quarantined); r.Version.ID == held.Version.ID || r.Decision != nil {
		t.Errorf("version %d, %+v", r.Version.ID, r.Decision)
	}
}

func TestAcceptRefuses(t *testing.T) {
	f := newFixture(t)
	good := f.bytes(month(t, 3), Activated)
	g := func(id int, want error, says string) {
		t.Helper()
		if _, err := f.accept(id); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("version %d: %v", id, err)
		}
	}
	g(9, snapshots.ErrNotFound, "")
	g(good.Version.ID, ErrUndecidable, "no está en cuarentena")
	g(f.bytes("<html>", Quarantined).Version.ID, ErrUndecidable, "HTML")
	g(f.bytes("", Quarantined).Version.ID, ErrUndecidable, "SIN_FILAS") // no titles, no table

	held := f.bytes(month(t, 4), Quarantined)
	for _, who := range []string{"", " ", "a\nb", strings.Repeat("a", 101)} {
		if _, err := Accept(t.Context(), f.c, held.Version.ID, who, "x", f.now); !errors.Is(err, snapshots.ErrDecision) {
			t.Errorf("who %q: %v", who, err)
		}
	}
	if _, err := Accept(t.Context(), f.c, held.Version.ID, "Ana", "", f.now); !errors.Is(err, snapshots.ErrDecision) {
		t.Errorf("no reason: %v", err)
	}
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Accept(ctx, f.c, held.Version.ID, "Ana", "x", f.now); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
	// Meanwhile a newer list came: nobody was told that this one is older.
	f.bytes(month(t, 5), Activated)
	g(held.Version.ID, ErrNewFault, "CORTE_ANTERIOR")
	if len(f.decisions()) != 0 || f.edition() != 2 {
		t.Errorf("%+v, edition %d", f.decisions(), f.edition())
	}
	// It was now, so it may go back.
	if r := f.bytes(month(t, 4), Quarantined); r.Version.ID != held.Version.ID {
		t.Errorf("version %d", r.Version.ID)
	}
	f.accepted(held.Version.ID)

	unlock, err := f.c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	other, err := snapshots.OpenCatalogue(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Accept(t.Context(), other, 2, "Ana", "x", f.now); !errors.Is(err, snapshots.ErrBusy) {
		t.Errorf("busy: %v", err)
	}
}

// Going back to an older list: it serves, what it replaced stays in the history
// and does not come back by itself.
func TestAcceptAnOlderList(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	may := f.bytes(month(t, 5), Activated)
	held := f.bytes(month(t, 3), Quarantined)
	if held.Faults[0].Code != tabular.OlderCut {
		t.Fatalf("%+v", held.Faults)
	}
	back := f.accepted(held.Version.ID)
	ed, err := f.c.OpenEdition(back.Edition)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	s := ed.Source("sat_69b")
	_, days := f.serves()
	if at, ok := s.VersionAt(may.Version.OrderDate); strings.Join(days, " ") != "2026-03-31 2026-05-31 2026-03-31" || !ok || at != 2 {
		t.Errorf("history of %v; in May version %d served", days, at)
	}
	name := ""
	if err := s.Find("NUE010101AA1", func(r snapshots.Row) error { name = r.Norm[2]; return nil }); err != nil || !strings.HasPrefix(name, "LISTA 3") {
		t.Errorf("%q, %v", name, err)
	}

	f.bytes(month(t, 3), Unchanged)
	again := f.bytes(month(t, 5), Quarantined)
	if len(again.Faults) != 1 || again.Faults[0].Code != tabular.Withdrawn {
		t.Fatalf("%+v", again.Faults)
	}
	if _, err := Reject(f.c, again.Version.ID, "Ana", "trae errores", f.now); err != nil {
		t.Fatal(err)
	}
	if r := f.bytes(month(t, 5), Quarantined); r.Version.ID != again.Version.ID || r.Decision == nil {
		t.Errorf("%+v", r)
	}
	// And forward again.
	forward := f.accepted(again.Version.ID)
	if _, days := f.serves(); len(days) != 4 || days[3] != "2026-05-31" || forward.Version.AcceptedFrom != again.Version.ID {
		t.Errorf("history of %v", days)
	}
	f.bytes(month(t, 6), Activated)
	// An older file finds its place in such a history too.
	f.past(strings.Replace(month(t, 4), "LISTA", "OTRA", 1), Activated)
	if _, days := f.serves(); strings.Join(days, " ") != "2026-03-31 2026-05-31 2026-03-31 2026-04-30 2026-05-31 2026-06-30" {
		t.Errorf("history of %v", days)
	}
}

func TestAcceptOtherFaults(t *testing.T) {
	f := newFixture(t)
	empty := strings.Join(strings.SplitAfter(month(t, 3), "\r\n")[:3], "") + ",,,\r\n"
	held := f.bytes(empty, Quarantined)
	if held.Faults[0].Code != tabular.NoRows {
		t.Fatalf("%+v", held.Faults)
	}
	if r := f.accepted(held.Version.ID); r.Version.Rows != 0 || r.Edition.Number != 1 {
		t.Errorf("%+v", r.Version)
	}
	future := f.bytes(strings.Replace(list(t), "31 de Agosto", "1 de octubre", 1), Quarantined)
	if future.Faults[0].Code != tabular.FutureCut {
		t.Fatalf("%+v", future.Faults)
	}
	if r := f.accepted(future.Version.ID); r.Version.OrderDate.String() != "2026-10-01" {
		t.Errorf("%+v", r.Version)
	}
}

func TestReject(t *testing.T) {
	f := newFixture(t)
	good := f.bytes(month(t, 3), Activated)
	held := f.bytes(month(t, 4), Quarantined)
	if held.Decision != nil {
		t.Errorf("%+v", held.Decision)
	}
	if _, err := Reject(f.c, held.Version.ID, "", "x", f.now); !errors.Is(err, snapshots.ErrDecision) {
		t.Errorf("nobody: %v", err)
	}
	d, err := Reject(f.c, held.Version.ID, "Ana Ruiz", "está cortado", f.now)
	if err != nil || d.Decision != snapshots.DecisionRejected || d.VersionID != held.Version.ID || d.Why != "está cortado" {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := Reject(f.c, held.Version.ID, "Luis", "x", f.now); !errors.Is(err, ErrUndecidable) || !strings.Contains(err.Error(), "Ana Ruiz") {
		t.Errorf("twice: %v", err)
	}
	r := f.bytes(month(t, 4), Quarantined)
	if r.Version.ID != held.Version.ID || r.Decision == nil || r.Decision.Number != d.Number || f.versions() != 2 {
		t.Errorf("version %d, %+v", r.Version.ID, r.Decision)
	}
	f.attempted(Quarantined, held.Version.ID)

	// They stay out although nothing else would keep them from serving.
	future := strings.Replace(list(t), "31 de Agosto", "20 de septiembre", 1)
	early := f.bytes(future, Quarantined)
	if _, err := Reject(f.c, early.Version.ID, "Ana", "es falso", f.now); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.AddDate(0, 0, 7)
	if r := f.bytes(future, Quarantined); r.Decision == nil || r.Edition.SHA256 != good.Edition.SHA256 {
		t.Errorf("%+v", r)
	}
	// Until they are accepted.
	f.accepted(early.Version.ID)
	f.bytes(future, Unchanged)
}

// What was rejected for nothing but its age may enter the history; what was
// rejected as cut may not.
func TestRejectedOlderFile(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	cut := f.bytes(month(t, 4), Quarantined)
	f.bytes(month(t, 7), Activated)
	old := f.bytes(month(t, 5), Quarantined)
	for _, v := range []snapshots.Version{cut.Version, old.Version} {
		if _, err := Reject(f.c, v.ID, "Ana", "no", f.now); err != nil {
			t.Fatal(err)
		}
	}
	f.past(month(t, 5), Activated)
	if r := f.past(month(t, 4), Quarantined); r.Decision == nil {
		t.Errorf("%+v", r)
	}
	if _, days := f.serves(); strings.Join(days, " ") != "2026-03-31 2026-05-31 2026-07-31" {
		t.Errorf("history of %v", days)
	}
}

// A process died after the decision was written down: the same command, and the
// same bytes coming again, carry it out once.
func TestInterruptedAcceptance(t *testing.T) {
	type finish func(*fixture, int) (Result, error)
	command := func(f *fixture, id int) (Result, error) { return f.accept(id) }
	download := func(f *fixture, _ int) (Result, error) {
		return f.ingest(Request{Name: "x", Content: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(month(t, 4))), nil }})
	}
	for name, finish := range map[string]finish{"the command": command, "the bytes": download} {
		for _, saved := range []bool{false, true} {
			f := newFixture(t)
			f.bytes(month(t, 3), Activated)
			held := f.bytes(month(t, 4), Quarantined)
			f.interrupt(held.Version.ID, saved)
			versions := f.versions()
			r, err := finish(f, held.Version.ID)
			if err != nil || r.Outcome != Activated || r.Version.AcceptedFrom != held.Version.ID || r.Edition.Number != 2 {
				t.Errorf("%s, saved %v: %s %+v, %v", name, saved, r.Outcome, r.Version, err)
			}
			if saved && f.versions() != versions || !saved && f.versions() != versions+1 || len(f.decisions()) != 1 || f.decisions()[0].Who != "Eva" {
				t.Errorf("%s, saved %v: %d versions, %+v", name, saved, f.versions(), f.decisions())
			}
			f.bytes(month(t, 4), Unchanged)
		}
	}

	// A newer list in between ends it: what was accepted is old now.
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	held := f.bytes(month(t, 4), Quarantined)
	f.interrupt(held.Version.ID, false)
	f.bytes(month(t, 5), Activated)
	if r := f.bytes(month(t, 4), Quarantined); r.Faults[0].Code != tabular.FewerRows && r.Faults[0].Code != tabular.OlderCut {
		t.Errorf("%+v", r.Faults)
	}
	// A rejection takes it back.
	f = newFixture(t)
	f.bytes(month(t, 3), Activated)
	held = f.bytes(month(t, 4), Quarantined)
	f.interrupt(held.Version.ID, true)
	if _, err := Reject(f.c, held.Version.ID, "Ana", "no", f.now); err != nil {
		t.Fatal(err)
	}
	if r := f.bytes(month(t, 4), Quarantined); r.Decision == nil || f.edition() != 1 {
		t.Errorf("%+v", r)
	}
}

// interrupt leaves an acceptance as a process that died leaves it: written down,
// and with its version when saved.
func (f *fixture) interrupt(id int, saved bool) {
	f.t.Helper()
	unlock, err := f.c.Lock()
	if err != nil {
		f.t.Fatal(err)
	}
	defer unlock()
	in, v, err := undecided(f.c, id, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	if in.stage, err = stageAgain(f.c, v); err != nil {
		f.t.Fatal(err)
	}
	defer in.stage.Discard()
	if err := in.judgeAgain(f.t.Context(), v, codesOf(v.Faults)); err != nil {
		f.t.Fatal(err)
	}
	if _, err := in.decide(v, codesOf(v.Faults), "Eva", "se cortó la luz"); err != nil {
		f.t.Fatal(err)
	}
	if saved {
		in.origin.AcceptedFrom = id
		if _, err := in.save(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// A raised reader reads again what was accepted by hand, and asks nobody again.
func TestRaisedReaderKeepsDecisions(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	f.bytes(month(t, 5), Activated)
	back := f.accepted(f.bytes(month(t, 3), Quarantined).Version.ID)
	raise(t)
	r := f.bytes(month(t, 3), Activated)
	if r.Version.ID == back.Version.ID || r.Version.AcceptedFrom != back.Version.AcceptedFrom {
		t.Errorf("%+v", r.Version)
	}
	if _, days := f.serves(); strings.Join(days, " ") != "2026-03-31 2026-05-31 2026-03-31" {
		t.Errorf("history of %v", days)
	}
	f.past(month(t, 2), Activated)
	if r := f.bytes(month(t, 5), Quarantined); r.Faults[0].Code != tabular.Withdrawn {
		t.Errorf("%+v", r.Faults)
	}
}

// A decision that cannot be read may keep bytes out: nothing that it could be
// about is loaded, all else is.
func TestDamagedDecision(t *testing.T) {
	f := newFixture(t)
	f.bytes(month(t, 3), Activated)
	held := f.bytes(month(t, 4), Quarantined)
	if _, err := Reject(f.c, held.Version.ID, "Ana", "no", f.now); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.dir, "decisions", "1.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(text []byte) {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.WriteFile(path, text, 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	replace([]byte("{}\n"))
	defer replace(whole)
	var corrupt *snapshots.CorruptError
	if _, err := f.ingest(Request{File: f.file("x.csv", month(t, 4))}); !errors.As(err, &corrupt) || corrupt.Path != "decisions/1.json" {
		t.Errorf("%v", err)
	}
	f.bytes(month(t, 3), Unchanged)
	f.bytes(month(t, 5), Activated)
}

// TestNoSpace: nothing is published once the disk has no room.
func TestNoSpace(t *testing.T) {
	f := newFixture(t)
	good := f.bytes(month(t, 3), Activated)
	full := errors.New("quedan 900 MB en /secreto")
	asked := 0
	address := newSite(t, map[string]string{mirror.Listado69B: month(t, 5)}).URL
	for allowed := 0; ; allowed++ {
		asked = 0
		r, err := f.ingest(Request{Mirror: address, Free: func() error {
			if asked++; asked > allowed {
				return full
			}
			return nil
		}})
		if err == nil {
			if r.Outcome != Activated || allowed < 3 {
				t.Errorf("%s with %d looks at the disk", r.Outcome, allowed)
			}
			break
		}
		if !errors.Is(err, ErrNoSpace) || !errors.Is(err, full) || f.edition() != good.Edition.Number {
			t.Fatalf("%d: %v, edition %d", allowed, err, f.edition())
		}
		a, _, err := f.c.LastAttempt("sat_69b")
		if err != nil || a.Outcome != snapshots.OutcomeFailed || !strings.Contains(a.Error, "libere espacio") || strings.Contains(a.Error, "secreto") {
			t.Errorf("%d: %+v, %v", allowed, a, err)
		}
		f.noTemporaryFiles()
	}
	// While a large file arrives it is asked again and again.
	asked = 0
	large := month(t, 6) + strings.Repeat(",,,\r\n", 2<<20)
	if _, err := f.ingest(Request{File: f.file("x.csv", large), Free: func() error { asked++; return nil }}); err != nil {
		t.Fatal(err)
	}
	if want := len(large)/freeEvery + 1 + 2; asked != want {
		t.Errorf("asked %d times of %d bytes, want %d", asked, len(large), want)
	}
}
