package ledger

import (
	"errors"
	"time"

	"cotejo/civil"
)

// Restored is run once in the global account of a store that was made from a
// backup, before anything else. What was given after the backup is not known to
// it: from then on ids of every prefix, leased before or not, are of Now's day or
// a later one, and of that day only such as had not been reached at Now.
//
// That holds however often one backup is restored, and for ids given under each
// of those restorations, as long as no prefix gives more than 48,000 a second
// over a day, a restart counting as 65,536; Now must not be earlier than the
// last id.
type Restored struct{ Now time.Time }

// Apply implements Command.
func (c Restored) Apply(tx *Tx) (Result, error) {
	if tx.account != Global {
		return nil, errors.New("ledger: los identificadores son del grupo global")
	}
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	floor := lease{civil.Of(c.Now).Compact(), reachedAt(c.Now)}
	// A clock that was ahead, or is behind now, leaves leases beyond that: nobody
	// knows how far they went since.
	beyond := func(v lease) {
		if !v.before(floor) {
			floor = lease{v.day, v.next + (idsADay-v.next)/2}
		}
	}
	earlier, err := readLease(tx, spaceRestored, "")
	if err != nil {
		return nil, err
	}
	beyond(earlier)
	err = tx.Scan(spaceLease, nil, func(_, value []byte) error {
		var v lease
		if err := v.decode(value); err != nil {
			return err
		}
		beyond(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	tx.put(spaceRestored, nil, floor.append(nil))
	return nil, nil
}

// reachedAt is a counter that ids of now's day had not reached at now. It grows
// evenly from midnight to midnight. What is left free at both ends is for
// restarts early in the day, and for a store that is restored late.
func reachedAt(now time.Time) uint64 {
	const day, ends = 24 * time.Hour, idsADay / 64
	since := day - civil.Of(now).End().Sub(now)
	return ends + uint64(since/time.Millisecond)*(idsADay-2*ends)/uint64(day/time.Millisecond)
}
