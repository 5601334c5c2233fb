package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate lets N things through in a while of Per, spread evenly, and Burst at once
// after a rest.
type Rate struct {
	N     int
	Per   time.Duration
	Burst int
}

// Window is the time in which the whole burst is there again.
func (r Rate) Window() time.Duration { return r.Per / time.Duration(r.N) * time.Duration(r.Burst) }

// Bounds of what ParseRate reads.
const (
	maxRate  = 1_000_000  // a second
	maxBurst = 10_000_000 // at once
)

// ParseRate reads N/s or N/s,BURST: so many a second, and so many at once, without
// a number those of two seconds. 0 is no limit: limited is false.
func ParseRate(text string) (r Rate, limited bool, err error) {
	if text == "0" {
		return Rate{}, false, nil
	}
	rate, burst, hasBurst := strings.Cut(text, ",")
	count, perSecond := strings.CutSuffix(strings.TrimSpace(rate), "/s")
	n, ok := number(count, maxRate)
	if !ok || !perSecond {
		return Rate{}, false, fmt.Errorf("«%s» no es una tasa: use N/s o N/s,RÁFAGA, como 500/s o 500/s,2000, con N de 1 a %d; 0: sin límite", text, maxRate)
	}
	r = Rate{N: n, Per: time.Second, Burst: 2 * n}
	if hasBurst {
		if r.Burst, ok = number(strings.TrimSpace(burst), maxBurst); !ok {
			return Rate{}, false, fmt.Errorf("«%s»: la ráfaga va de 1 a %d", text, maxBurst)
		}
	}
	return r, true, nil
}

func number(text string, limit int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= limit && text[0] != '+'
}

// Status is where somebody stands after asking.
type Status struct {
	Allowed   bool
	Remaining int           // how many more would be let in at once
	Reset     time.Duration // until Remaining is the burst again, if nothing is asked
	Retry     time.Duration // until one is let in; 0 when Allowed
}

// Limiter holds each key to one rate (the generic cell rate algorithm: one moment
// is all it knows of a key). It is safe for concurrent use.
type Limiter struct {
	rate  Rate
	step  time.Duration // what one costs
	depth time.Duration // what the burst costs
	clock Clock
	table *table[struct{}] // dead is when the key has all its burst again
}

// New holds keys to a rate; N and Burst are 1 or more, and N fit into Per by whole
// nanoseconds. It remembers at least entries of them at once, 16 bytes each.
func New(rate Rate, entries int, clock Clock) *Limiter {
	step := rate.Per / time.Duration(rate.N)
	if rate.N < 1 || rate.Burst < 1 || step < 1 || time.Duration(rate.Burst) > math.MaxInt64/4/step {
		panic(fmt.Sprintf("ratelimit: impossible rate %+v", rate))
	}
	return &Limiter{rate: rate, step: step, depth: step * time.Duration(rate.Burst), clock: clock, table: newTable[struct{}](entries)}
}

// Rate is what keys are held to.
func (l *Limiter) Rate() Rate { return l.rate }

// Take asks for one. What is refused costs nothing.
func (l *Limiter) Take(k Key) Status {
	now := l.clock()
	mu := l.table.lock(k)
	defer mu.Unlock()
	s := l.table.find(k, now)
	busy := now // until then what was taken is being paid off
	if s != nil {
		busy = s.dead
	}
	next := busy + l.step
	if wait := next - now - l.depth; wait > 0 {
		return Status{Reset: busy - now, Retry: wait}
	}
	if s == nil {
		s = l.table.take(k, now)
	}
	s.dead = next
	return Status{Allowed: true, Remaining: int((l.depth - (next - now)) / l.step), Reset: next - now}
}
