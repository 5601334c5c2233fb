package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cotejo/products/platform"
)

// fixture is a data directory, a machine whose clock can be set, and one job.
// Inside a synctest bubble time passes by itself.
type fixture struct {
	t      *testing.T
	dir    string
	spec   string
	offset atomic.Int64 // of the machine's clock, ns
	random func() float64

	mu     sync.Mutex
	does   func(ctx context.Context) (Result, error) // nil: OK
	begun  []time.Time                               // as the clock said
	atOnce int
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t: t, dir: filepath.Join(t.TempDir(), "jobs"), spec: twice, random: func() float64 { return 0.5 }}
}

func (f *fixture) clock() time.Time { return time.Now().Add(time.Duration(f.offset.Load())) }

// set sets the clock.
func (f *fixture) set(t time.Time) { f.offset.Store(int64(time.Until(t))) }

func (f *fixture) shift(d time.Duration) { f.offset.Add(int64(d)) }

func (f *fixture) run(ctx context.Context, now time.Time, _ func(string)) (Result, error) {
	f.mu.Lock()
	f.begun = append(f.begun, now)
	f.atOnce++
	if f.atOnce > 1 {
		f.t.Error("two runs of a job at once")
	}
	does := f.does
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.atOnce--
	}()
	if does == nil {
		return Result{}, nil
	}
	return does(ctx)
}

func (f *fixture) open() *Scheduler {
	f.t.Helper()
	s, err := Open(Config{Dir: f.dir, Jobs: []Job{{Name: "tarea", Spec: f.spec, Run: f.run}}, Now: f.clock, Random: f.random})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// up is the service running until stop.
func (f *fixture) up() (s *Scheduler, stop func()) {
	s = f.open()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Follow(ctx, slog.New(slog.DiscardHandler))
	}()
	return s, func() {
		cancel()
		<-ended
	}
}

// upFor is the service running for that long.
func (f *fixture) upFor(d time.Duration) State {
	s, stop := f.up()
	time.Sleep(d)
	stop()
	return s.States()[0]
}

// wantRuns compares when runs began, to the minute.
func (f *fixture) wantRuns(want ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var got []string
	for _, b := range f.begun {
		got = append(got, b.Format("2006-01-02 15:04"))
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("runs began at %q, want %q", got, want)
	}
	f.begun = nil
}

func (f *fixture) status(want Status) State {
	f.t.Helper()
	s := f.open().States()[0]
	if s.Status != want {
		f.t.Errorf("status %s, want %s: %+v", s.Status, want, s)
	}
	return s
}

func TestRunsOnTimeAndMakesUpForDowntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(at("2026-11-20 02:00"))
		if s := f.status(Pending); !s.Last.IsZero() || !s.Next.IsZero() {
			t.Errorf("before anything: %+v", s)
		}
		f.upFor(36 * time.Hour)
		f.wantRuns("2026-11-20 02:00", "2026-11-20 04:07", "2026-11-20 13:07", "2026-11-21 04:07", "2026-11-21 13:07")
		// Three days off: one run makes up for all, soon after the start.
		time.Sleep(3 * 24 * time.Hour)
		f.upFor(3 * time.Hour)
		f.wantRuns("2026-11-24 14:00")
		// A restart that missed nothing runs nothing.
		f.upFor(3 * time.Hour)
		f.wantRuns()
		f.status(OK)
	})
}

func TestTheFirstRunsWaitAndSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := map[time.Duration]bool{}
		for range 10 {
			f := newFixture(t)
			f.random = nil // the machine's
			s, stop := f.up()
			start := time.Now()
			for s.States()[0].Status == Pending {
				time.Sleep(time.Second)
			}
			stop()
			wait := time.Since(start)
			began[wait] = true
			if wait < settleAfter || wait > settleAfter+settleJitter+pollEvery+time.Second {
				t.Errorf("the first run waited %s", wait)
			}
		}
		if len(began) < 2 {
			t.Error("every start waits as long")
		}
	})
}

func TestAFailureIsTriedAgainUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(at("2026-11-20 04:00"))
		f.does = func(context.Context) (Result, error) {
			if len(f.begun) < 4 {
				return Result{Detail: "no respondió"}, errors.New("/ruta/interna: no respondió")
			}
			return Result{Status: Unchanged}, nil
		}
		s, stop := f.up()
		time.Sleep(30 * time.Minute)
		if st := s.States()[0]; st.Status != Failed || st.Detail != "no respondió" || st.Runs[0].Error != "/ruta/interna: no respondió" || !st.Success.IsZero() {
			t.Errorf("%+v", st)
		} else if d := st.Next.Sub(st.Runs[len(st.Runs)-1].End); d < retryFailed || d > retryFailed*7/6 {
			t.Errorf("tried again after %s", d)
		}
		time.Sleep(8 * time.Hour)
		stop()
		if len(f.begun) != 4 {
			t.Errorf("%d runs, want three failures and one that succeeds: %v", len(f.begun), f.begun)
		}
		if st := f.status(Unchanged); !st.Success.Equal(f.begun[3]) || !st.Last.Equal(f.begun[3]) || len(st.Runs) != 4 {
			t.Errorf("%+v", st)
		}
	})
}

func TestAPanicIsThatRunsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.does = func(context.Context) (Result, error) { panic("índice fuera de rango") }
		f.upFor(5 * time.Minute)
		s := f.status(Failed)
		if s.Runs[0].Error != "falla interna: índice fuera de rango" || strings.Contains(s.Detail, "índice") {
			t.Errorf("%+v", s)
		}
		f.does = nil
		if r, err := f.open().Run(t.Context(), "tarea", nil); err != nil || r.Status != OK {
			t.Errorf("after a panic: %+v, %v", r, err)
		}
	})
}

func TestBusyIsTriedAgainSoonAndIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(at("2026-11-20 14:00"))
		busy := true
		f.does = func(context.Context) (Result, error) {
			if busy {
				return Result{Status: Busy}, errors.New("el candado es de otro proceso")
			}
			return Result{}, nil
		}
		_, stop := f.up()
		time.Sleep(time.Hour)
		f.mu.Lock()
		n := len(f.begun)
		busy = false
		f.mu.Unlock()
		if n < 8 || n > 12 {
			t.Errorf("%d looks in an hour", n)
		}
		if s := f.open().States()[0]; s.Status != Busy || len(s.Runs) != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(10 * time.Minute)
		stop()
		if s := f.status(OK); len(s.Runs) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestOneRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(at("2026-11-20 03:00"))
		release := make(chan struct{})
		f.does = func(context.Context) (Result, error) {
			<-release
			return Result{}, nil
		}
		s, stop := f.up()
		time.Sleep(10 * time.Hour) // over two scheduled times
		if st := s.States()[0]; st.Status != Running || !st.Next.IsZero() {
			t.Errorf("%+v", st)
		}
		if _, err := s.Run(t.Context(), "tarea", nil); !errors.Is(err, ErrRunning) {
			t.Errorf("a second run: %v", err)
		}
		if _, err := s.Run(t.Context(), "otra", nil); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "tarea") {
			t.Errorf("an unknown job: %v", err)
		}
		close(release)
		synctest.Wait()
		time.Sleep(time.Minute)
		stop()
		// It began before 04:07: what came out since must be looked for.
		f.wantRuns("2026-11-20 03:00", "2026-11-20 13:00")
	})
}

func TestARunThatNeverEndsIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.does = func(ctx context.Context) (Result, error) {
			<-ctx.Done()
			return Result{}, ctx.Err()
		}
		f.upFor(maxRunning + 2*time.Minute)
		if s := f.status(Failed); !strings.Contains(s.Runs[0].Error, "no terminó en 2h") {
			t.Errorf("%+v", s)
		}
	})
}

func TestShutdownInterruptsAndTheNextStartRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(at("2026-11-20 04:00"))
		f.does = func(ctx context.Context) (Result, error) {
			<-ctx.Done()
			return Result{}, context.Cause(ctx)
		}
		f.upFor(10 * time.Minute)
		if s := f.status(Interrupted); s.Runs[0].End.IsZero() {
			t.Errorf("%+v", s)
		}
		f.does = nil
		f.upFor(2 * time.Minute)
		f.wantRuns("2026-11-20 04:00", "2026-11-20 04:10")
	})
}

func TestByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(at("2026-11-20 05:00"))
		var lines []string
		s, err := Open(Config{Dir: f.dir, Now: f.clock, Jobs: []Job{{Name: "tarea", Spec: twice, Run: func(_ context.Context, _ time.Time, progress func(string)) (Result, error) {
			progress("a la mitad")
			return Result{Status: Quarantined, Detail: "versión 3"}, nil
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), "tarea", func(l string) { lines = append(lines, l) })
		if err != nil || r.Status != Quarantined || r.Detail != "versión 3" || !r.ByHand || !slices.Equal(lines, []string{"a la mitad"}) {
			t.Errorf("%+v, %v, %q", r, err, lines)
		}
		// It counts as the run of that time.
		f.upFor(time.Hour)
		f.wantRuns()
		// Whoever asked and went away leaves nothing to be made up for.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.does = func(ctx context.Context) (Result, error) { return Result{}, ctx.Err() }
		if r, err := f.open().Run(ctx, "tarea", nil); r.Status != Interrupted || !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", r, err)
		}
		f.begun = nil
		f.upFor(time.Hour)
		f.wantRuns()
	})
}

// TestNoRunIsLostAndNoneIsMadeTwice lets a service live through days of
// downtime, failures, restarts and a clock that is set, and asks two things of
// every moment at which it has been up and its clock let alone for a while: the
// last scheduled time is covered; and every run had a reason.
func TestNoRunIsLostAndNoneIsMadeTwice(t *testing.T) {
	runs, events := 0, 0
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(3, seed))
				f := newFixture(t)
				f.spec = fmt.Sprintf("%d %d,%d * * *", random.IntN(60), random.IntN(12), 12+random.IntN(12))
				f.set(at("2026-11-20 00:00").Add(time.Duration(random.IntN(86400)) * time.Second))
				f.random = random.Float64
				spec := mustParse(t, f.spec)
				s, stop := f.up()
				defer func() { stop() }()
				var fails bool // under f.mu
				f.does = func(context.Context) (Result, error) {
					f.mu.Lock()
					defer f.mu.Unlock()
					if fails {
						return Result{}, errors.New("falla")
					}
					return Result{}, nil
				}
				for range 25 {
					events++
					// A clock that is set back by more than the slack, or forward and back,
					// may cost one more run: better than none.
					excused := 0
					before := len(f.begun)
					switch random.IntN(7) {
					case 0: // down
						stop()
						time.Sleep(time.Duration(random.IntN(72)) * time.Hour)
						s, stop = f.up()
					case 1: // restarts
						for range 5 {
							stop()
							s, stop = f.up()
							time.Sleep(time.Duration(random.IntN(100)) * time.Second)
						}
					case 2: // fails for some hours
						f.mu.Lock()
						fails = true
						f.mu.Unlock()
						time.Sleep(time.Duration(random.IntN(20)) * time.Hour)
						f.mu.Lock()
						fails = false
						before = len(f.begun)
						f.mu.Unlock()
						excused = 1
						time.Sleep(2 * retryFailed)
					case 3: // a clock that is set back by minutes, just after a run
						stop()
						time.Sleep(24 * time.Hour)
						s, stop = f.up()
						time.Sleep(2 * time.Minute)
						before = len(f.begun)
						f.shift(-time.Duration(random.IntN(55)) * time.Minute)
						excused = -1 // nothing was missed
					case 4: // … by hours
						f.shift(-time.Duration(1+random.IntN(30)) * time.Hour)
						excused = 1
					case 5: // a day forward, and back when it was noticed
						f.shift(24 * time.Hour)
						time.Sleep(time.Duration(random.IntN(5)) * time.Minute)
						f.shift(-24 * time.Hour)
						excused = 2
					case 6: // a day forward, for good
						f.shift(24 * time.Hour)
					}
					from := f.clock()
					quiet := time.Duration(random.IntN(30*60)) * time.Minute
					time.Sleep(2*time.Minute + quiet)
					now := f.clock()
					st := s.States()[0]
					if st.Status != OK && st.Status != Running {
						t.Fatalf("status %s at %s", st.Status, now)
					}
					// Of the runs that the clock lets believe, the newest.
					var last Run
					for _, r := range st.Runs {
						if !r.Start.After(now.Add(time.Hour)) {
							last = r
						}
					}
					if spec.next(last.Start).Before(now.Add(-2 * pollEvery)) {
						t.Fatalf("lost: the last run began at %s and it is %s (%s)", last.Start, now, f.spec)
					}
					covered := now
					if last.Start.After(now) { // before the clock was set back
						covered = last.Start
					}
					if st.Next.Before(now.Truncate(time.Second)) || st.Next.After(spec.next(covered)) {
						t.Fatalf("the next run is at %s and it is %s", st.Next, now)
					}
					due := 1 + excused // one that makes up for what was missed
					f.mu.Lock()
					if before > 0 {
						if done := f.begun[before-1]; done.After(from) && done.Sub(from) < time.Hour {
							from = done
						}
					}
					f.mu.Unlock()
					for at := spec.next(from); !at.After(now); at = spec.next(at) {
						due++
					}
					f.mu.Lock()
					if n := len(f.begun) - before; n > due {
						t.Errorf("%d runs where %d were due, from %s to %s (%s): %v", n, due, from, now, f.spec, f.begun[before:])
					}
					f.mu.Unlock()
				}
				stop()
				runs += len(f.begun)
			})
		})
	}
	t.Logf("%d events, %d runs", events, runs)
}

func TestADamagedRecordIsBegunAnew(t *testing.T) {
	f := newFixture(t)
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"job":"otra","corridas":[]}`, `{"job":"tarea","corridas":[{"inicio":"2026-11-20T04:07:00-06:00","status":"bien"}]}`} {
		if err := os.WriteFile(filepath.Join(f.dir, "tarea.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := f.open()
		if st := s.States()[0]; st.Status != Pending || s.jobs[0].record.unreadable == nil {
			t.Errorf("%q: %+v", text, st)
		}
		if r, err := s.Run(t.Context(), "tarea", nil); err != nil || r.Status != OK {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
		f.status(OK)
	}
}

// TestADiskThatRefusesKeepsNoSourceFromBeingLookedAt: what cannot be written is
// remembered all the same.
func TestADiskThatRefusesKeepsNoSourceFromBeingLookedAt(t *testing.T) {
	f := newFixture(t)
	if err := os.WriteFile(f.dir, nil, 0o600); err != nil { // a file where the folder belongs
		t.Fatal(err)
	}
	s, err := Open(Config{Dir: f.dir, Jobs: []Job{{Name: "tarea", Spec: twice, Run: f.run}}, Now: f.clock})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run(t.Context(), "tarea", nil); err != nil || r.Status != OK {
		t.Errorf("%+v, %v", r, err)
	}
	if st := s.States()[0]; st.Status != OK {
		t.Errorf("%+v", st)
	}
}

func TestRememberedRunsAreBounded(t *testing.T) {
	f := newFixture(t)
	f.does = func(context.Context) (Result, error) {
		return Result{Detail: strings.Repeat("ñ", 2*maxText) + "\xff"}, nil
	}
	s := f.open()
	for range maxRuns + 5 {
		if _, err := s.Run(t.Context(), "tarea", nil); err != nil {
			t.Fatal(err)
		}
	}
	st := f.status(OK)
	if len(st.Runs) != maxRuns || len(st.Detail) > maxText+len("…") {
		t.Errorf("%d runs, a detail of %d bytes", len(st.Runs), len(st.Detail))
	}
	info, err := os.Stat(filepath.Join(f.dir, "tarea.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestWrongJobsAreRefused(t *testing.T) {
	for _, jobs := range [][]Job{
		{{Name: "../x", Spec: twice}}, {{Name: "", Spec: twice}}, {{Name: "a", Spec: twice}, {Name: "a", Spec: twice}}, {{Name: "a", Spec: "nunca"}},
	} {
		if _, err := Open(Config{Dir: t.TempDir(), Jobs: jobs, Now: time.Now}); err == nil {
			t.Errorf("%+v was taken", jobs)
		}
	}
}

// TestHealthKnowsEveryStatus: the schema of its answer lists them.
func TestHealthKnowsEveryStatus(t *testing.T) {
	all := []string{}
	for _, s := range []Status{OK, Unchanged, Quarantined, Failed, Interrupted, Busy, Running, Pending, Unconfigured} {
		all = append(all, string(s))
	}
	if !slices.Equal(all, platform.JobStatuses) {
		t.Errorf("%q, and health lists %q", all, platform.JobStatuses)
	}
}
