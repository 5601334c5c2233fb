// Package machine is what the service must know of the machine under it before
// it may trust it with money: whether the clock tells the time, and whether the
// disk has room for one more record.
//
// It promises that no time is handed out that only a clock which jumped would
// tell (Clock), and that writes are refused while there is still room for those
// that were accepted (Disk). It never sets a clock and never frees space. Both
// read the machine through functions that a test replaces.
package machine

import (
	"fmt"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

var (
	clockJumps = metrics.NewCounter("cotejo_clock_jumps_total")
	clockAhead = metrics.NewGauge("cotejo_clock_offset_seconds", nil)
)

const (
	// clockTolerance is the largest step of the wall clock that is followed at
	// once: what a synchronisation does on a healthy machine is far below it.
	clockTolerance = time.Minute
	// clockHold is how long a jump must hold before it is believed.
	clockHold = 15 * time.Minute
)

// Reading is what both clocks of the machine say at one instant.
type Reading struct {
	Wall    time.Time     // may be set, forward or back, by anyone
	Elapsed time.Duration // since some moment of this process; only ever grows
}

// SystemClocks returns a function that reads the operating system's clocks.
func SystemClocks() func() Reading {
	start := time.Now()
	return func() Reading {
		t := time.Now()
		return Reading{t.Round(0), t.Sub(start)}
	}
}

// Clock hands out the time of the service. It follows the wall clock through
// steps of up to a minute in a quarter of an hour. After a larger one, in either
// direction, it goes on by the elapsed time instead until the wall clock has
// held its new time for 15 minutes, so that a clock that is wrong for a moment
// makes no credit expire; then it follows. What it hands out never goes back,
// but for a jump back that held.
//
// It is safe for concurrent use. Someone must ask it now and then (Now once a
// second): a jump is noticed, and begins to hold, when it is first seen.
type Clock struct {
	read func() Reading

	mu    sync.Mutex
	given time.Time // the newest time handed out
	// believed and trusted are what the wall clock showed, or is taken to have
	// shown, when Elapsed was zero: what time is told from, and where it stood
	// when the tolerance was last renewed.
	believed, trusted time.Time
	renewed           time.Duration
	jump              *jump // one that has not been believed yet
	behind            time.Time
}

// jump is a large step of the wall clock.
type jump struct {
	origin time.Time     // what the wall clock would have shown when Elapsed was zero
	since  time.Duration // when it was first seen
	by     time.Duration // from the time handed out then
}

// NewClock starts at what the wall clock says now.
func NewClock(read func() Reading) *Clock {
	r := read()
	origin := r.Wall.Add(-r.Elapsed)
	return &Clock{read: read, given: r.Wall, believed: origin, trusted: origin, renewed: r.Elapsed}
}

// Now is the time of the service, without a monotonic part.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.read()
	origin := r.Wall.Add(-r.Elapsed)
	expected := c.believed.Add(r.Elapsed)
	if expected.Before(c.given) {
		expected = c.given
	}
	// Measured from both: many small steps must not add up to a large one.
	switch {
	case within(r.Wall.Sub(expected)) && within(origin.Sub(c.trusted)):
		c.jump, c.believed = nil, origin
		if r.Elapsed-c.renewed >= clockHold {
			c.trusted, c.renewed = origin, r.Elapsed
		}
		expected = r.Wall
	case c.jump == nil || !within(origin.Sub(c.jump.origin)):
		c.jump = &jump{origin, r.Elapsed, r.Wall.Sub(expected)}
		clockJumps.Inc()
	case r.Elapsed-c.jump.since >= clockHold:
		c.jump, c.believed, c.trusted, c.renewed = nil, origin, origin, r.Elapsed
		c.given = r.Wall // also when that is back
		expected = r.Wall
	}
	if expected.After(c.given) {
		c.given = expected
	}
	clockAhead.Set(r.Wall.Sub(c.given).Seconds())
	return c.given
}

func within(d time.Duration) bool { return -clockTolerance <= d && d <= clockTolerance }

// Seen tells the clock of a moment that is written in the data: a clock that
// says an earlier one is behind, or was ahead when that was written.
func (c *Clock) Seen(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.behind) {
		c.behind = t
	}
}

// Alarm says in Spanish what is wrong with the clock, "" when nothing is. It is
// the same text for as long as the same thing is wrong.
func (c *Clock) Alarm() string {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.jump != nil && c.jump.by > 0:
		return fmt.Sprintf("El reloj de la máquina se adelantó %v de golpe. El servicio sigue con la hora anterior; "+
			"si el reloj la sostiene %v, la toma. Revise la sincronización (NTP).", c.jump.by.Round(time.Second), clockHold)
	case c.jump != nil:
		return fmt.Sprintf("El reloj de la máquina se atrasó %v de golpe. El servicio sigue con la hora anterior; "+
			"si el reloj la sostiene %v, la toma. Revise la sincronización (NTP).", -c.jump.by.Round(time.Second), clockHold)
	case c.behind.Sub(now) > clockTolerance:
		return fmt.Sprintf("El reloj de la máquina está atrasado: lo guardado llega hasta %s. Revise la sincronización (NTP).",
			c.behind.UTC().Format(time.RFC3339))
	}
	return ""
}
