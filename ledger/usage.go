package ledger

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"cotejo/store"
)

// usageEvery is how often counts are written, and usageKeys how many different
// ones are gathered at most before that.
const (
	usageEvery = time.Second
	usageKeys  = 100_000
)

// usage gathers counts of uses that cost nothing. They are written behind the
// answers: a process that is killed loses those of its last moments.
type usage struct {
	mu      sync.Mutex
	pending map[usageKey]uint64 // under mu

	stop chan struct{}
	done chan struct{}
	once sync.Once
}

type usageKey struct {
	account AccountID
	org     OrgID
	day     uint32 // YYYYMMDD
	service string
}

// CountUse counts one use of a service that cost nothing. It does not wait for the
// disk. day is YYYYMMDD. When counts of too many organizations wait, the use is
// not counted.
func (l *Ledger) CountUse(account AccountID, org OrgID, service string, day uint32) {
	l.usage.add(usageKey{account, org, day, service}, 1)
}

func (u *usage) add(k usageKey, n uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending == nil {
		u.pending = make(map[usageKey]uint64)
	}
	if _, known := u.pending[k]; known || len(u.pending) < usageKeys {
		u.pending[k] += n
	}
}

// keep writes the counts until stop, and then once more.
func (u *usage) keep(l *Ledger) {
	defer close(u.done)
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		select {
		case <-u.stop:
			u.flush(l)
			return
		case <-tick.C:
			u.flush(l)
		}
	}
}

func (u *usage) finish() {
	u.once.Do(func() { close(u.stop) })
	<-u.done
}

// flush writes what is pending, a command for each account. What the ledger is too
// busy for waits for the next time.
func (u *usage) flush(l *Ledger) {
	u.mu.Lock()
	pending := u.pending
	u.pending = nil
	u.mu.Unlock()
	counts := make(addCounts, 0, len(pending))
	for k, n := range pending {
		counts = append(counts, usageCount{k, n})
	}
	slices.SortFunc(counts, func(a, b usageCount) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.org, b.org), cmp.Compare(a.day, b.day), cmp.Compare(a.service, b.service))
	})
	for len(counts) > 0 {
		account, n := counts[0].account, 1
		for n < len(counts) && counts[n].account == account {
			n++
		}
		if _, err := l.Do(context.Background(), account, counts[:n]); errors.Is(err, ErrBusy) {
			for _, c := range counts[:n] {
				u.add(c.usageKey, c.n)
			}
		}
		counts = counts[n:]
	}
}

type usageCount struct {
	usageKey
	n uint64
}

// addCounts adds to an account's counts.
type addCounts []usageCount

// Apply implements Command.
func (a addCounts) Apply(tx *Tx) (Result, error) {
	var room [8 + 4 + maxName]byte
	for _, c := range a {
		key := appendUsageKey(room[:0], c.org, c.day, c.service)
		v, err := tx.Get(spaceUsage, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		n := c.n
		if err == nil {
			d := decode(v)
			n += d.uvarint()
			if err := d.done(); err != nil {
				return nil, err
			}
		}
		tx.value = binary.AppendUvarint(append(tx.value[:0], schema), n)
		tx.put(spaceUsage, key, tx.value)
	}
	return nil, nil
}

func appendUsageKey(dst []byte, org OrgID, day uint32, service string) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(org))
	dst = binary.BigEndian.AppendUint32(dst, day)
	return append(dst, service...)
}

// FreeUses returns how often an organization used a service for nothing on a day
// (YYYYMMDD), as far as it is written.
func (l *Ledger) FreeUses(account AccountID, org OrgID, service string, day uint32) (uint64, error) {
	v, err := l.Read(account).Get(spaceUsage, appendUsageKey(nil, org, day, service))
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	d := decode(v)
	n := d.uvarint()
	return n, d.done()
}
