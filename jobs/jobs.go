// Package jobs runs work on a schedule: when it is due, what became of it, and
// that no run is lost over a downtime.
//
// A schedule is a cron expression of five fields in Mexico City time. Whoever
// was down when a job was due runs it soon after the start; a run that failed is
// tried again until it succeeds; one job has one run at a time. Runs are written
// down, durably, before they begin and when they end, so that one that died with
// its process is known.
//
// It knows nothing of what the jobs do and never decides what a result means. It
// keeps no promise about the instant of a run: a minute late is on time.
//
// Start reading at Scheduler; plan.go decides when, record.go remembers.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/civil"
)

// Status is how a run ended, or that it has not.
type Status string

const (
	OK          Status = "ok"
	Unchanged   Status = "sin_cambio"   // nothing was new
	Quarantined Status = "cuarentena"   // what came must not be used; a person decides
	Failed      Status = "fallida"      // tried again within the hour
	Busy        Status = "ocupada"      // another process does the same; tried again in minutes
	Interrupted Status = "interrumpida" // the process was asked to end, or died
	Running     Status = "en_curso"
	Pending     Status = "pendiente" // it never ran
	// Unconfigured: it cannot work before something is configured, and does not fail.
	// It is looked at again at its next scheduled moment.
	Unconfigured Status = "sin_configurar"
)

// settled reports whether nothing is left to be done until the next time.
func (s Status) settled() bool { return s == OK || s == Unchanged || s == Quarantined }

// Result is what a run says of itself. A zero Status means OK.
type Result struct {
	Status Status // OK, Unchanged, Quarantined, Unconfigured, or Busy with an error
	// Detail is one line for everybody, also when there is an error: health shows
	// it to the world.
	Detail string
}

// Job is work that is done again and again.
type Job struct {
	Name string // ^[a-z][a-z0-9_]*$: a file, a label, an argument
	Spec string // minute hour day month weekday, Mexico City
	// Run does it once. now is the moment that the run counts as. It returns soon
	// after ctx ended; progress takes lines for whoever waits. What its error says
	// is for the operator alone.
	Run func(ctx context.Context, now time.Time, progress func(line string)) (Result, error)
}

var (
	// ErrUnknown says that there is no job of that name.
	ErrUnknown = errors.New("no existe la tarea")
	// ErrRunning says that a run of that job has not ended.
	ErrRunning = errors.New("la tarea ya está en curso")
	errTooLong = fmt.Errorf("no terminó en %s", maxRunning)
)

const (
	// pollEvery is how late a run may begin, and how soon a clock that was set is
	// noticed.
	pollEvery = 10 * time.Second
	// maxRunning bounds one run.
	maxRunning = 2 * time.Hour
	// A start waits for as long as this, and a random part of settleJitter, before
	// the first runs: services that start together do not ask together.
	settleAfter, settleJitter = 5 * time.Second, 55 * time.Second
)

// Config are the parts of a scheduler.
type Config struct {
	Dir  string // of the records; only the owner of the data directory opens it
	Jobs []Job
	Now  func() time.Time
	// Random gives a number in [0,1); nil: the machine's.
	Random func() float64
}

// Scheduler knows when each job is due and how its runs ended. It is safe for
// concurrent use.
type Scheduler struct {
	dir    string
	now    func() time.Time
	random func() float64
	jobs   []*entry

	mu       sync.Mutex
	log      *slog.Logger // under mu
	followed bool         // under mu: Follow runs
}

// entry is one job; what follows spec is under the scheduler's mu.
type entry struct {
	Job
	spec    schedule
	record  record
	running bool
	spread  float64 // in [0,1), of the next delay
}

// Open reads the records. A run that has no end there died with its process and
// is shown as Interrupted. It starts nothing and writes nothing. The error names
// a job that is not well-formed; a record that cannot be read is begun anew, and
// its job says so.
func Open(c Config) (*Scheduler, error) {
	s := &Scheduler{dir: c.Dir, now: c.Now, random: c.Random, log: slog.New(slog.DiscardHandler)}
	if s.random == nil {
		s.random = rand.Float64
	}
	for _, j := range c.Jobs {
		spec, err := parse(j.Spec, c.Now())
		if err != nil {
			return nil, fmt.Errorf("jobs: %s: %w", j.Name, err)
		}
		if !validName(j.Name) || slices.ContainsFunc(s.jobs, func(e *entry) bool { return e.Name == j.Name }) {
			return nil, fmt.Errorf("jobs: el nombre %q no sirve o se repite", j.Name)
		}
		e := &entry{Job: j, spec: spec, spread: s.random()}
		if e.record, err = readRecord(c.Dir, j.Name); err != nil {
			e.record = record{Job: j.Name, unreadable: err}
		}
		e.record.closeCut()
		e.measure()
		s.jobs = append(s.jobs, e)
	}
	return s, nil
}

// measure sets the gauge of the last success.
func (e *entry) measure() {
	if t := e.record.Success; !t.IsZero() {
		metrics.GetOrCreateGauge(fmt.Sprintf(`cotejo_job_last_success_timestamp_seconds{job=%q}`, e.Name), nil).Set(float64(t.Unix()))
	}
}

// Follow runs what is due until ctx ends, then waits for the runs that it
// interrupted. log gets their beginning, progress and end, and those of runs by
// hand.
func (s *Scheduler) Follow(ctx context.Context, log *slog.Logger) {
	s.follow(true, log)
	defer s.follow(false, log)
	started := time.Now()
	waits := make([]time.Duration, len(s.jobs))
	for i := range waits {
		waits[i] = settleAfter + time.Duration(s.random()*float64(settleJitter))
	}
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		for i, e := range s.jobs {
			if time.Since(started) < waits[i] {
				continue
			}
			if start, ok := s.beginIfDue(e); ok {
				running.Go(func() { _, _ = s.execute(ctx, e, start, false, nil) })
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (s *Scheduler) follow(on bool, log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed, s.log = on, log
	for _, e := range s.jobs {
		if on && e.record.unreadable != nil {
			log.Error("el registro de la tarea no se puede leer; se empieza uno nuevo", "job", e.Name, "error", e.record.unreadable)
		}
	}
}

// Run runs a job now, whether it is due or not, and returns how it ended and the
// error that it ended with. ErrUnknown, and ErrRunning when it runs already. A
// run that ctx interrupts is not made up for.
func (s *Scheduler) Run(ctx context.Context, name string, progress func(line string)) (Run, error) {
	for _, e := range s.jobs {
		if e.Name != name {
			continue
		}
		start, ok := s.begin(e)
		if !ok {
			return Run{}, fmt.Errorf("%w: %s; vea «cotejo jobs list» y reintente cuando termine", ErrRunning, name)
		}
		return s.execute(ctx, e, start, true, progress)
	}
	var names []string
	for _, e := range s.jobs {
		names = append(names, e.Name)
	}
	return Run{}, fmt.Errorf("%w «%s»; hay: %s", ErrUnknown, name, strings.Join(names, ", "))
}

// beginIfDue takes the job for one run when it is time for it.
func (s *Scheduler) beginIfDue(e *entry) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); e.record.plan(e.spec, now, e.spread).After(now) {
		return time.Time{}, false
	}
	return s.beginLocked(e)
}

// begin takes the job for one run; false when another one has it.
func (s *Scheduler) begin(e *entry) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beginLocked(e)
}

func (s *Scheduler) beginLocked(e *entry) (time.Time, bool) {
	if e.running {
		return time.Time{}, false
	}
	e.running = true
	return s.now().In(civil.Zone).Truncate(time.Second), true
}

// execute runs a job that begin took.
func (s *Scheduler) execute(ctx context.Context, e *entry, start time.Time, byHand bool, progress func(string)) (Run, error) {
	s.mu.Lock()
	log := s.log.With("job", e.Name)
	s.mu.Unlock()
	say := func(line string) {
		log.Info("tarea", "avance", line)
		if progress != nil {
			progress(line)
		}
	}
	r := Run{Start: start, Status: Running, ByHand: byHand}
	s.keep(log, e, func(rec *record) { rec.add(r) })
	log.Info("tarea: empieza", "a_mano", byHand)

	bounded, cancel := context.WithTimeoutCause(ctx, maxRunning, errTooLong)
	defer cancel()
	result, err := call(bounded, log, e.Job, start, say)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		err = fmt.Errorf("%w: %w", errTooLong, err)
	}
	r.Status, r.Detail = ending(ctx, result, err), result.Detail
	if err != nil {
		r.Error = err.Error()
		switch {
		case r.Detail != "":
		case byHand && r.Status == Interrupted:
			r.Detail = "la dejó a la mitad quien la pidió"
		default:
			r.Detail = details[r.Status]
		}
	}
	r.Detail, r.Error = bound(r.Detail), bound(r.Error)

	r.End = s.now().In(civil.Zone).Truncate(time.Second)
	s.keep(log, e, func(rec *record) {
		rec.replaceLast(r)
		e.running, e.spread = false, s.random()
	})
	metrics.GetOrCreateCounter(fmt.Sprintf(`cotejo_job_runs_total{job=%q,status=%q}`, e.Name, r.Status)).Inc()
	if err != nil {
		log.Error("tarea: termina", "status", string(r.Status), "error", err)
	} else {
		log.Info("tarea: termina", "status", string(r.Status), "detalle", r.Detail)
	}
	return r, err
}

// details are for runs that say nothing of their own; what failed inside this
// machine is told to the operator alone.
var details = map[Status]string{
	Failed:      "falló en este equipo; «cotejo jobs list» dice por qué",
	Busy:        "otro proceso hace lo mismo; se reintenta en unos minutos",
	Interrupted: "el servicio se cerró a la mitad; se repite",
}

// ending tells how a run ended from what it returned.
func ending(ctx context.Context, r Result, err error) Status {
	switch {
	case err != nil && ctx.Err() != nil:
		return Interrupted
	case err != nil && r.Status == Busy:
		return Busy
	case err != nil:
		return Failed
	case r.Status == "":
		return OK
	default:
		return r.Status
	}
}

// call runs a job; its panic is that run's failure.
func call(ctx context.Context, log *slog.Logger, j Job, now time.Time, progress func(string)) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("falla interna en una tarea", "falla", fmt.Sprint(p), "pila", string(debug.Stack()))
			r, err = Result{}, fmt.Errorf("falla interna: %v", p)
		}
	}()
	return j.Run(ctx, now, progress)
}

// keep changes a record and writes it. A disk that refuses must not keep a
// source from being looked at: what cannot be written is remembered until the
// process ends.
func (s *Scheduler) keep(log *slog.Logger, e *entry, change func(*record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&e.record)
	e.measure()
	if err := e.record.write(s.dir); err != nil {
		log.Error("no se pudo guardar cómo van las corridas de la tarea", "error", err)
	}
}

// State is what is known of a job.
type State struct {
	Job     string
	Status  Status    // of the last run; Pending when there never was one
	Last    time.Time // when that run began; zero when there never was one
	Detail  string    // of that run
	Success time.Time // when the last one that settled began; zero: none
	// Next is when it runs next, as far as is known; zero while nobody follows the
	// schedule and while it runs.
	Next time.Time
	Runs []Run // the remembered ones, oldest first; the caller's
}

// States lists the jobs in the order of Config.
func (s *Scheduler) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	states := make([]State, len(s.jobs))
	for i, e := range s.jobs {
		st := State{Job: e.Name, Status: Pending, Success: e.record.Success, Runs: slices.Clone(e.record.Runs)}
		if n := len(st.Runs); n > 0 {
			last := st.Runs[n-1]
			st.Status, st.Last, st.Detail = last.Status, last.Start, last.Detail
		}
		if s.followed && !e.running {
			if st.Next = e.record.plan(e.spec, now, e.spread); st.Next.Before(now) {
				st.Next = now
			}
			st.Next = st.Next.In(civil.Zone).Truncate(time.Second)
		}
		states[i] = st
	}
	return states
}

func validName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_')) {
			return false
		}
	}
	return true
}
