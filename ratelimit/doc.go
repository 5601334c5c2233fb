// Package ratelimit bounds how often somebody may do something: Limiter by a rate
// with a burst, Attempts by the failures of who guesses.
//
// Both keep their state in a table whose size is fixed when it is made: an attacker
// with many addresses takes no memory. A full part of the table forgets first who
// would be let in again soonest, so whoever is being held back is not forgotten
// for the sake of strangers. What was forgotten is let in as at the first time.
//
// Nothing here allocates after it was made, and none of it knows a wall clock: the
// caller gives one that only goes forward. Start reading at Limiter.Take.
package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// Clock is the time since some fixed moment. It never goes back and may be read by
// any number of goroutines.
type Clock func() time.Duration

// Monotonic is the clock of this process.
func Monotonic() Clock {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// Key is whom a limit is for. Equal texts give equal keys in one process; in
// another they do not, so that nobody can choose names that meet in the table.
type Key uint64

var seed = maphash.MakeSeed()

// OfText is the key of a name: an id, an account, a folio.
func OfText(name string) Key { return Key(maphash.String(seed, name)) }

// OfAddress is the key of a client's network: the address itself for IPv4, the /64
// for IPv6, of which one client usually has all. The zero Addr has a key too.
func OfAddress(a netip.Addr) Key {
	raw := a.As16() // IPv4 as it is mapped into IPv6
	n := len(raw)
	if a.Is6() && !a.Is4In6() {
		n = 8
	}
	return Key(maphash.Bytes(seed, raw[:n]))
}
