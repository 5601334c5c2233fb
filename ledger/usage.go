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

// Usage is what an organization got of a service on one ledger day, with live or
// with test keys.
type Usage struct {
	Org      OrgID
	Sandbox  bool
	Day      uint32 // YYYYMMDD
	Service  string
	Answers  int64 // given, charged or not; one that is repeated for free counts once
	Charged  int64 // of them, paid: with a use or with package money
	Centavos int64 // of package money
	Uses     int64 // individual uses
}

// addUsage adds to the row of u's organization, mode, day and service. It is part
// of the batch of what it counts.
func (tx *Tx) addUsage(u Usage) error {
	var room [usageHead + maxName]byte
	key := appendUsageKey(room[:0], u.Org, u.Sandbox, u.Day, u.Service)
	v, err := tx.Get(spaceUsage, key)
	if err == nil {
		var old Usage
		if err := old.decode(v); err != nil {
			return err
		}
		u.Answers += old.Answers
		u.Charged += old.Charged
		u.Centavos += old.Centavos
		u.Uses += old.Uses
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	tx.value = u.append(tx.value[:0])
	tx.put(spaceUsage, key, tx.value)
	return nil
}

// append appends the stored value; the key holds the rest.
func (u *Usage) append(dst []byte) []byte {
	dst = append(dst, schema)
	for _, n := range [...]int64{u.Answers, u.Charged, u.Centavos, u.Uses} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

func (u *Usage) decode(value []byte) error {
	d := decode(value)
	u.Answers, u.Charged, u.Centavos, u.Uses = d.centavos(), d.centavos(), d.centavos(), d.centavos()
	return d.done()
}

// usageHead is the length of a usage key before the service.
const usageHead = ownerLen + 4

func appendUsageKey(dst []byte, org OrgID, sandbox bool, day uint32, service string) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(org))
	dst = append(dst, boolByte(sandbox))
	dst = binary.BigEndian.AppendUint32(dst, day)
	return append(dst, service...)
}

// Usage calls fn for the days from to to (YYYYMMDD, both included) on which the
// organization got anything in that mode, by day and service, until fn returns an
// error, which Usage returns. Of answers that cost nothing and leave no record, the
// last second may be missing.
func (l *Ledger) Usage(account AccountID, org OrgID, sandbox bool, from, to uint32, fn func(Usage) error) error {
	return l.Read(account).Usage(org, sandbox, from, to, fn)
}

// Usage is Ledger.Usage as of what is read.
func (r Reader) Usage(org OrgID, sandbox bool, from, to uint32, fn func(Usage) error) error {
	key := func(day uint32) []byte {
		return appendKey(nil, r.account, spaceUsage, appendUsageKey(nil, org, sandbox, day, ""))[1:]
	}
	if to = min(to, maxDay); from > to {
		return nil
	}
	var service string
	return r.from.Scan(key(from), key(to+1), func(k, v []byte) error {
		u, err := decodeUsage(k[keyHead-1:], v, service)
		if err != nil {
			return err
		}
		service = u.Service
		return fn(u)
	})
}

// decodeUsage reads a row; old is a name that it may be of.
func decodeUsage(key, value []byte, old string) (u Usage, err error) {
	if len(key) <= usageHead {
		return u, errValue
	}
	u.Org, u.Sandbox, u.Day = OrgID(binary.BigEndian.Uint64(key)), key[8] != 0, binary.BigEndian.Uint32(key[ownerLen:])
	if u.Service = old; string(key[usageHead:]) != old {
		u.Service = string(key[usageHead:])
	}
	return u, u.decode(value)
}

// usageEvery is how often counts are written, and usageKeys how many different
// ones are gathered at most before that.
const (
	usageEvery = time.Second
	usageKeys  = 100_000
)

// usage gathers counts of answers that cost nothing and leave no record. They are
// written behind the answers: a process that is killed loses those of its last
// moments.
type usage struct {
	mu      sync.Mutex
	pending map[usageKey]int64 // under mu

	stop chan struct{}
	done chan struct{}
	once sync.Once
}

type usageKey struct {
	account AccountID
	org     OrgID
	sandbox bool
	day     uint32 // YYYYMMDD
	service string
}

// CountUse counts one answer of a service that costs nothing and leaves no record,
// for a day YYYYMMDD. It does not wait for the disk. When counts of too many
// organizations wait, the answer is not counted.
func (l *Ledger) CountUse(account AccountID, org OrgID, sandbox bool, service string, day uint32) {
	l.usage.add(usageKey{account, org, sandbox, day, service}, 1)
}

func (u *usage) add(k usageKey, n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending == nil {
		u.pending = make(map[usageKey]int64)
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

// flush writes what is pending, a command for each account. What cannot be written
// now, because the ledger is busy, waits for its turn or lost it, or lacks its store,
// waits for the next time.
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
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.org, b.org),
			cmp.Compare(boolByte(a.sandbox), boolByte(b.sandbox)), cmp.Compare(a.day, b.day), cmp.Compare(a.service, b.service))
	})
	for len(counts) > 0 {
		account, n := counts[0].account, 1
		for n < len(counts) && counts[n].account == account {
			n++
		}
		_, err := l.Do(context.Background(), account, counts[:n])
		if errors.Is(err, ErrBusy) || errors.Is(err, ErrStandby) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrUnavailable) {
			for _, c := range counts[:n] {
				u.add(c.usageKey, c.n)
			}
		}
		counts = counts[n:]
	}
}

type usageCount struct {
	usageKey
	n int64
}

// addCounts adds to an account's counts.
type addCounts []usageCount

// Apply implements Command.
func (a addCounts) Apply(tx *Tx) (Result, error) {
	for _, c := range a {
		if err := tx.addUsage(Usage{Org: c.org, Sandbox: c.sandbox, Day: c.day, Service: c.service, Answers: c.n}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
