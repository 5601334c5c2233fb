package ledger

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"cotejo/civil"
)

// The ledger day of a movement is the civil day of its moment, or that of the
// account's movement before it if that is later: days never go back, and each
// movement belongs to exactly one.

// maxDay is the last day that there is, as YYYYMMDD.
const maxDay = 9999_12_31

// ledgerDay is the day of whatever the account does next, at now.
func (tx *Tx) ledgerDay(w *wallet, now time.Time) uint32 {
	if now.Before(tx.dayBegin) || !now.Before(tx.dayEnd) {
		d := civil.Of(now)
		tx.dayEnd = d.End()
		tx.dayBegin, tx.civilDay = tx.dayEnd.Add(-24*time.Hour), d.Compact()
	}
	return max(w.day, tx.civilDay)
}

// Page says which movements of an account are read, and which first.
type Page struct {
	After  uint64 // only those with a higher number
	Before uint64 // only those with a lower number; 0: no bound
	Newest bool   // descending by number; false: ascending
	Limit  int    // at most so many; 0: all
}

// pageLength is how many movements are read at once when the newest come first:
// stores are read forwards.
const pageLength = 256

// Movements calls fn for the movements of a page, until fn returns an error, which
// Movements returns. The movement and its Lots are valid until fn returns.
func (l *Ledger) Movements(account AccountID, p Page, fn func(*Movement) error) error {
	return l.Read(account).Movements(p, fn)
}

// Movements calls fn for the movements of a page, until fn returns an error, which
// Movements returns. The movement and its Lots are valid until fn returns.
func (r Reader) Movements(p Page, fn func(*Movement) error) error {
	if p.Before == 0 {
		p.Before = ^uint64(0)
	}
	if p.After >= p.Before {
		return nil
	}
	if !p.Newest {
		n := 0
		err := r.scanMovements(p.After, p.Before, func(m *Movement) error {
			if p.Limit > 0 && n == p.Limit {
				return errFound
			}
			n++
			return fn(m)
		})
		if errors.Is(err, errFound) {
			err = nil
		}
		return err
	}
	w, err := r.wallet()
	if err != nil {
		return err
	}
	// Numbers have no gaps, so they tell where a page begins.
	after, before, left := p.After, min(p.Before, w.last+1), p.Limit
	var page []Movement
	for before > after+1 {
		n := min(pageLength, before-after-1)
		if p.Limit > 0 {
			n = min(n, uint64(left))
		}
		page = page[:0]
		err := r.scanMovements(before-n-1, before, func(m *Movement) error {
			c := *m
			c.Lots = slices.Clone(m.Lots)
			page = append(page, c)
			return nil
		})
		if err != nil {
			return err
		}
		for i := range slices.Backward(page) {
			if err := fn(&page[i]); err != nil {
				return err
			}
		}
		before -= n
		if left -= int(n); p.Limit > 0 && left == 0 {
			return nil
		}
	}
	return nil
}

// MovementsOf calls fn for each movement of the ledger days from to to (YYYYMMDD,
// both included), by number, until fn returns an error, which MovementsOf returns.
// The movement and its Lots are valid until fn returns.
func (r Reader) MovementsOf(from, to uint32, fn func(*Movement) error) error {
	to = min(to, maxDay)
	if from > to {
		return nil
	}
	first, err := r.firstOf(from)
	if err != nil || first == 0 {
		return err
	}
	beyond, err := r.firstOf(to + 1)
	if err != nil {
		return err
	}
	if beyond == 0 {
		beyond = ^uint64(0)
	}
	return r.scanMovements(first-1, beyond, fn)
}

// Span tells which movements are of the ledger days from to to (YYYYMMDD, both
// included): those numbered above before, up to last. last is before when there is
// none, and both are 0 when there is none up to then either.
func (r Reader) Span(from, to uint32) (before, last uint64, err error) {
	w, err := r.wallet()
	if err != nil {
		return 0, 0, err
	}
	edge := func(day uint32) (uint64, error) {
		first, err := r.firstOf(day)
		if first == 0 { // all are of earlier days
			return w.last, err
		}
		return first - 1, err
	}
	if before, err = edge(from); err != nil {
		return 0, 0, err
	}
	last, err = edge(min(to, maxDay) + 1)
	return before, max(before, last), err
}

// Movement reads one movement, store.ErrNotFound when there is none of that number.
func (r Reader) Movement(number uint64) (m Movement, err error) {
	value, err := r.Get(spaceMovement, movementKey(number))
	if err != nil {
		return m, err
	}
	return m, r.decodeMovement(&m, movementKey(number), value)
}

// decodeMovement reads all of a movement.
func (r Reader) decodeMovement(m *Movement, key, value []byte) error {
	if len(key) != 8 {
		return errValue
	}
	if err := m.decode(value); err != nil {
		return err
	}
	m.Number = binary.BigEndian.Uint64(key)
	var err error
	switch m.Kind {
	case KindCharge:
		err = r.perm.complete(&m.Record)
	case KindOrder:
		err = errors.Join(r.perm.complete(&m.Record), r.perm.complete(&m.Order))
	}
	return err
}

// firstOf is the number of the first movement of a day or of a later one, 0 when
// there is none.
func (r Reader) firstOf(day uint32) (number uint64, err error) {
	lower := appendKey(nil, r.account, spaceDay, binary.BigEndian.AppendUint32(nil, day))[1:]
	err = r.from.Scan(lower, after(lower[:keyHead-1]), func(_, value []byte) error {
		d := decode(value)
		number = d.uvarint()
		if err := d.done(); err != nil || number == 0 {
			return errValue
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return number, err
}

// scanMovements calls fn for the movements between two numbers, neither included.
func (r Reader) scanMovements(after, before uint64, fn func(*Movement) error) error {
	var m Movement
	key := func(n uint64) []byte {
		return appendKey(nil, r.account, spaceMovement, binary.BigEndian.AppendUint64(nil, n))[1:]
	}
	return r.from.Scan(key(after+1), key(before), func(key, value []byte) error {
		if err := r.decodeMovement(&m, key[keyHead-1:], value); err != nil {
			return err
		}
		return fn(&m)
	})
}
