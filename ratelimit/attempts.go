package ratelimit

import "time"

// Attempts slows down who guesses: keys, folios, codes. Failures up to a rate are
// errors of typing and cost nothing. The one beyond it makes its key wait, and each
// further one before everything is forgotten makes it wait twice as long as the one
// before. It is safe for concurrent use.
//
// Ask Wait before looking anything up, and call Failed when the guess was wrong.
// What is right is not reported: someone with one right guess could go on guessing.
type Attempts struct {
	limits Guessing
	step   time.Duration
	clock  Clock
	table  *table[guesses]
}

// Guessing is how guessing is slowed down.
type Guessing struct {
	Free    Rate          // failures without a wait
	Wait    time.Duration // the first wait
	Longest time.Duration // no wait is longer; also for how long after one it is remembered
}

// guesses is what is known of a key that failed.
type guesses struct {
	busy  time.Duration // as in Limiter: until then its failures are being paid off
	until time.Duration // it waits until then
	last  time.Duration // how long it waited last; 0: never
}

// NewAttempts remembers at least entries keys at once, 40 bytes each.
func NewAttempts(limits Guessing, entries int, clock Clock) *Attempts {
	New(limits.Free, 1, clock) // for its checks
	return &Attempts{
		limits: limits, step: limits.Free.Per / time.Duration(limits.Free.N), clock: clock, table: newTable[guesses](entries),
	}
}

// Wait is for how long a key must not try; 0: it may now.
func (a *Attempts) Wait(k Key) time.Duration {
	now := a.clock()
	mu := a.table.lock(k)
	defer mu.Unlock()
	if s := a.table.find(k, now); s != nil && s.state.until > now {
		return s.state.until - now
	}
	return 0
}

// Failed counts a wrong guess. Guesses that were let in together and fail together
// count as one once the key waits.
func (a *Attempts) Failed(k Key) {
	now := a.clock()
	mu := a.table.lock(k)
	defer mu.Unlock()
	s := a.table.take(k, now)
	g := &s.state
	if g.until > now {
		return
	}
	busy := max(g.busy, now) + a.step
	switch {
	case g.last > 0:
		g.last = min(2*g.last, a.limits.Longest)
	case busy-now <= a.step*time.Duration(a.limits.Free.Burst):
		g.busy, s.dead = busy, busy
		return
	default:
		g.last = min(a.limits.Wait, a.limits.Longest)
	}
	g.until = now + g.last
	s.dead = g.until + a.limits.Longest
}
