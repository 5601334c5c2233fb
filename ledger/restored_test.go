package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/ledger"
	"cotejo/store"
)

// TestRestoredGivesNoIDTwice lives several lives of one ledger: it gives ids, is
// backed up, restarts, is lost, and is made again of any of its backups, more
// than once on one day, and goes on. Prefixes come and go. Between a restart or a
// restoration and what was before it lie two seconds, and an id takes at least a
// twentieth of a millisecond; all else is as the test likes.
func TestRestoredGivesNoIDTwice(t *testing.T) {
	restored, sameDay := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 11, 20, 5, 59, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 48*60).Draw(t, "minutes")) * time.Minute)
		lastRestored := time.Time{}
		given := map[ledger.VerificationID]bool{}
		var s *store.Pebble
		var l *ledger.Ledger
		disk := vfs.NewMem()
		open := func() {
			var err error
			if s, err = store.OpenPebble("datos", store.PebbleOptions{FS: disk, MemTableBytes: 16 << 10}); err != nil {
				t.Fatal(err)
			}
			if l, err = ledger.Open(s, ledger.Options{Random: seeded(7)}); err != nil {
				t.Fatal(err)
			}
		}
		end := func() {
			rep, err := ledger.Check(ctx, s)
			if err = errors.Join(err, l.Close(), s.Close()); err != nil {
				t.Fatalf("%v\n%v", err, rep.Violations)
			}
			now = now.Add(2 * time.Second)
		}
		issue := func(prefix string, n int) {
			for range n {
				id, err := l.NextID(ctx, prefix, now)
				if err != nil {
					t.Fatal(err)
				}
				if given[id] {
					t.Fatalf("%v was given before", id)
				}
				given[id] = true
				r := record(id, 1, "XAXX010101000")
				if _, err := l.Do(ctx, 1, ledger.Charge{Now: now, Record: r, Sum: sumOf(r)}); err != nil {
					t.Fatalf("%v: %v", id, err)
				}
			}
			now = now.Add(time.Duration(n) * time.Second / 20_000)
		}
		var backups []vfs.FS
		open()
		defer func() { end() }()
		t.Repeat(map[string]func(*rapid.T){
			"issue": func(t *rapid.T) {
				prefixes := rapid.SampledFrom([]string{"COM", "CFD", "SPE", "SCR", "TRX"})
				issue(prefixes.Draw(t, "prefix"), rapid.IntRange(1, 20).Draw(t, "ids"))
			},
			"wait": func(t *rapid.T) {
				longest := rapid.SampledFrom([]int{10, 1000, 3600_000, 40 * 3600_000}).Draw(t, "up to")
				now = now.Add(time.Duration(rapid.IntRange(1, longest).Draw(t, "ms")) * time.Millisecond)
			},
			"restart": func(*rapid.T) { end(); open() },
			"backup": func(t *rapid.T) {
				to := vfs.NewMem()
				if err := s.Checkpoint(fmt.Sprint("respaldo", len(backups))); err != nil {
					t.Fatal(err)
				}
				copyFolder(t, disk, fmt.Sprint("respaldo", len(backups)), to, "datos")
				backups = append(backups, to)
			},
			"restore": func(t *rapid.T) {
				if len(backups) == 0 {
					t.Skip("no backup")
				}
				end()
				disk = vfs.NewMem()
				copyFolder(t, backups[rapid.IntRange(0, len(backups)-1).Draw(t, "backup")], "datos", disk, "datos")
				open()
				if _, err := l.Do(ctx, ledger.Global, ledger.Restored{Now: now}); err != nil {
					t.Fatal(err)
				}
				restored++
				if now.Sub(lastRestored) < 12*time.Hour {
					sameDay++
				}
				lastRestored = now
			},
		})
	})
	t.Logf("%d restorations, %d of them within half a day of another", restored, sameDay)
	if sameDay == 0 && !testing.Short() { // then there are few runs
		t.Error("the test proves nothing")
	}
}

func copyFolder(t *rapid.T, from vfs.FS, dir string, to vfs.FS, name string) {
	if err := to.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := from.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := vfs.CopyAcrossFS(from, from.PathJoin(dir, f), to, to.PathJoin(name, f)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestoredAtAnyMoment: what a day may have used is below the mark, and what is
// left of it is enough. Where leases of that day or of later ones lie beyond it,
// nobody knows how far they went: half of what is left is skipped.
func TestRestoredAtAnyMoment(t *testing.T) {
	const slack, half, all = 1 << 26, 1 << 31, 1 << 32
	midnight := time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC) // in Mexico City
	at := func(l *ledger.Ledger, prefix string, now time.Time, day, counter uint32) {
		t.Helper()
		if _, err := l.Do(ctx, ledger.Global, ledger.Restored{Now: now}); err != nil {
			t.Fatal(err)
		}
		if id, err := l.NextID(ctx, prefix, now); err != nil || id.Day != day || id.Counter != counter {
			t.Errorf("%v: NextID = %v, counter %d, %v; want counter %d of %d", now, id, id.Counter, err, counter, day)
		}
	}
	first := func(after time.Duration, day, counter uint32) {
		t.Helper()
		l, _ := newLedger(t)
		at(l, "COM", midnight.Add(after), day, counter)
	}
	first(0, 20261120, slack)
	first(time.Second, 20261120, slack+48_156)
	first(12*time.Hour, 20261120, half)
	first(24*time.Hour-1, 20261120, all-slack-49)
	first(24*time.Hour, 20261121, slack)

	l, _ := newLedger(t)
	at(l, "COM", midnight.Add(12*time.Hour), 20261120, half)
	at(l, "CFD", midnight.Add(12*time.Hour), 20261120, half+half/2)
	at(l, "SPE", midnight.Add(36*time.Hour), 20261121, half)
	at(l, "SCR", midnight, 20261121, half+half/2) // the clock went back
	if _, err := l.Do(ctx, 1, ledger.Restored{Now: start}); err == nil {
		t.Error("an account was restored")
	}
	if _, err := l.Do(ctx, ledger.Global, ledger.Restored{}); err == nil {
		t.Error("restored without a moment")
	}
}
