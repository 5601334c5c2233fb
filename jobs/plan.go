package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"cotejo/civil"
)

const (
	// retryFailed and retryBusy are how long after its end a run is tried again,
	// plus up to a sixth: services that failed together do not ask together.
	retryFailed = time.Hour
	retryBusy   = 5 * time.Minute
	// clockSlack is how far ahead of the clock a run may be recorded and still
	// count: a clock is set back by seconds. One that ran for an hour in the future
	// made its run under a date that was wrong, and says nothing about today.
	clockSlack = time.Hour
)

// schedule is a parsed Job.Spec.
type schedule struct{ cron cron.Schedule }

// fields is the parser: no descriptor (@daily), no seconds.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parse refuses a time zone of its own in the text, on which the parser panics
// when it is not well-formed, and what never comes to pass.
func parse(spec string, now time.Time) (schedule, error) {
	if strings.Contains(spec, "=") {
		return schedule{}, fmt.Errorf("el horario %q no lleva zona: es el de la Ciudad de México", spec)
	}
	c, err := fields.Parse(spec)
	if err != nil {
		return schedule{}, fmt.Errorf("horario %q: %w", spec, err)
	}
	s := schedule{c}
	if s.next(now).IsZero() {
		return schedule{}, errors.New("el horario no llega nunca: " + spec)
	}
	return s, nil
}

// next is the first scheduled moment after t. Mexico City keeps one offset all
// year (package civil): no moment is skipped or comes twice.
func (s schedule) next(t time.Time) time.Time { return s.cron.Next(t.In(civil.Zone)) }

// plan returns when a job runs next; a moment that has passed means now. It
// depends on nothing else, so that it gives the same after a restart, and is
// asked again whenever the clock may have been set. spread in [0,1) is the
// random part of a delay.
//
// A run covers every scheduled moment before its start: of those that were
// missed, one run makes up for all.
func (r *record) plan(spec schedule, now time.Time, spread float64) time.Time {
	last, ok := r.basis(now)
	if !ok {
		return now
	}
	next := spec.next(last.Start)
	again := next
	switch last.Status {
	case Failed:
		again = delayed(last.End, retryFailed, spread)
	case Busy:
		again = delayed(last.End, retryBusy, spread)
	case Interrupted:
		again = last.End
		if again.IsZero() {
			// It died with its process, and may be why: a service that ends at every
			// start because of a job must be able to stay up.
			again = delayed(last.Start, retryFailed, spread)
		}
	}
	if again.Before(next) {
		return again
	}
	return next
}

func delayed(t time.Time, d time.Duration, spread float64) time.Time {
	return t.Add(d + time.Duration(spread*float64(d)/6))
}

// basis is the newest run that tells when the next one is due.
func (r *record) basis(now time.Time) (Run, bool) {
	for i := len(r.Runs) - 1; i >= 0; i-- {
		run := r.Runs[i]
		// Of a run by hand that did nothing, whoever asked for it was told.
		abandoned := run.ByHand && (run.Status == Interrupted || run.Status == Busy)
		if !abandoned && !run.Start.After(now.Add(clockSlack)) {
			return run, true
		}
	}
	return Run{}, false
}
