package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"cotejo/store"
)

// ErrKeyReused refuses a charge whose Once.Key was used for another Content.
var ErrKeyReused = errors.New("ledger: esa llave de idempotencia se usó con otra petición")

// OnceLife is how long a Once is remembered.
const OnceLife = 7 * 24 * time.Hour

// Once names a request of an organization (in one mode), so that repeating it
// neither does nor costs anything twice.
type Once struct {
	Key     [sha256.Size]byte // of what the client chose
	Content [sha256.Size]byte // of what it asked for
}

// Recall returns the record of the charge that was made under once, if there is
// one that is younger than OnceLife at now: a repeated request is answered from
// it. It refuses with ErrKeyReused like the charge itself. What it returns is
// durable. A Once that was never used costs one read and no command.
func (l *Ledger) Recall(ctx context.Context, account AccountID, org OrgID, sandbox bool, once Once, now time.Time) (Record, bool, error) {
	m, err := l.recall(ctx, account, recall{org, sandbox, once, now})
	if m == nil || err != nil {
		return Record{}, false, err
	}
	if m.id.Prefix == OrderPrefix {
		return Record{}, false, ErrKeyReused
	}
	r, err := l.Find(account, org, sandbox, m.id)
	if errors.Is(err, store.ErrNotFound) {
		// Said, not wrapped: the client asked for no record that may be absent.
		err = fmt.Errorf("%w: registro %v: su llave de idempotencia lo nombra y no existe", errValue, m.id)
	}
	return r, err == nil, err
}

// RecallUse returns the answer that was paid under once, as Recall returns a
// record.
func (l *Ledger) RecallUse(ctx context.Context, account AccountID, org OrgID, once Once, now time.Time) (answer []byte, found bool, err error) {
	m, err := l.recall(ctx, account, recall{org, false, once, now})
	if m == nil || err != nil {
		return nil, false, err
	}
	return m.answer, true, nil
}

// recall returns nil when nothing was done under the Once.
func (l *Ledger) recall(ctx context.Context, account AccountID, c recall) (*mark, error) {
	if err := validMoment(c.now); err != nil {
		return nil, err
	}
	_, err := l.Read(account).Get(spaceOnce, appendOnceKey(nil, c.org, c.sandbox, c.once.Key))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	res, err := l.Do(ctx, account, c)
	if err != nil {
		return nil, err
	}
	return res.(*mark), nil
}

// recall reads a mark in the order of the commands: its answer waits for the
// write that the mark is part of.
type recall struct {
	org     OrgID
	sandbox bool
	once    Once
	now     time.Time
}

// Apply implements Command. Its result is a *mark, nil when nothing was done under
// the Once.
func (c recall) Apply(tx *Tx) (Result, error) {
	return tx.earlier(appendOnceKey(nil, c.org, c.sandbox, c.once.Key), &c.once, c.now)
}

// earlier returns the mark that was left under once, nil when there was none or it
// was too long ago.
func (tx *Tx) earlier(key []byte, once *Once, now time.Time) (*mark, error) {
	v, err := tx.Get(spaceOnce, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var m mark
	switch err := m.decode(v, tx.seq.l.perm); {
	case err != nil:
		return nil, err
	case m.forgotten(now):
		return nil, nil
	case m.content != once.Content:
		return nil, ErrKeyReused
	}
	return &m, nil
}

// mark is the stored memory of a Once. It is written with the record that it
// names, or with the movement of a use, in one batch.
type mark struct {
	content [sha256.Size]byte
	moment  time.Time
	id      VerificationID // of the record
	answer  []byte         // of a use, which has no record; nil when there is one
}

// noRecord stands in the place of the record's prefix where an answer follows.
const noRecord = "\x00\x00\x00"

// forgotten reports that the mark no longer counts at now. A clock that went
// back makes no mark forgotten.
func (m *mark) forgotten(now time.Time) bool { return now.Sub(m.moment) >= OnceLife }

func (m *mark) append(dst []byte) []byte {
	dst = append(dst, schema)
	dst = append(dst, m.content[:]...)
	dst = appendMoment(dst, m.moment)
	if m.answer != nil {
		return append(append(dst, noRecord...), m.answer...)
	}
	dst = append(dst, m.id.Prefix...)
	dst = binary.BigEndian.AppendUint32(dst, m.id.Day)
	return binary.BigEndian.AppendUint32(dst, m.id.Counter)
}

func (m *mark) decode(value []byte, perm *permutation) error {
	d := decode(value)
	copy(m.content[:], d.take(len(m.content)))
	m.moment = d.moment()
	prefix := string(d.take(3))
	if prefix == noRecord && !d.bad {
		m.answer = bytes.Clone(d.b)
		return nil
	}
	m.id = VerificationID{Prefix: prefix, Day: d.uint32(), Counter: d.uint32()}
	if err := d.done(); err != nil {
		return err
	}
	if !validPrefix(m.id.Prefix) || !validDay(m.id.Day) {
		return errValue
	}
	m.id.Code = perm.code(m.id.Prefix, m.id.Day, m.id.Counter)
	return nil
}

const onceKeyLen = ownerLen + sha256.Size

func appendOnceKey(dst []byte, org OrgID, sandbox bool, key [sha256.Size]byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(org))
	dst = append(dst, boolByte(sandbox))
	return append(dst, key[:]...)
}

// forgetLength is how many marks one command of ForgetOnce removes at most.
const forgetLength = 1000

// ForgetOnce removes what is remembered of charges that are OnceLife old at now,
// in all accounts, and returns how many marks it removed. It is safe to run at
// any time and to run again: what it forgets counts for nothing already. Commands
// of other callers go between its own. When it ends early, with ctx or because
// the ledger is busy, the next run does the rest.
func (l *Ledger) ForgetOnce(ctx context.Context, now time.Time) (n int, err error) {
	if err := validMoment(now); err != nil {
		return 0, err
	}
	for g := range store.Group(store.Groups) {
		err := scanAccounts(l.readers[g], func(account AccountID) error {
			if account == Global { // the group's own space
				return ctx.Err()
			}
			removed, err := l.forgetOnce(ctx, account, now)
			n += removed
			return err
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (l *Ledger) forgetOnce(ctx context.Context, account AccountID, now time.Time) (n int, err error) {
	r := l.Read(account)
	next := appendKey(nil, account, spaceOnce, nil)[1:]
	end := after(next)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var old [][]byte
		err := r.from.Scan(next, end, func(k, v []byte) error {
			var m mark
			if err := m.decode(v, l.perm); err != nil {
				return err
			}
			if m.forgotten(now) {
				old = append(old, bytes.Clone(k[keyHead-1:]))
			}
			if len(old) < forgetLength {
				return nil
			}
			next = append(bytes.Clone(k), 0)
			return errFound
		})
		if more = errors.Is(err, errFound); err != nil && !more {
			return n, err
		}
		if len(old) == 0 {
			return n, nil
		}
		res, err := l.Do(ctx, account, forget{old, now})
		if err != nil {
			return n, err
		}
		n += res.(int)
	}
	return n, nil
}

// forget removes the marks of these keys that are too old: since they were
// listed, one may have been written anew.
type forget struct {
	keys [][]byte
	now  time.Time
}

// Apply implements Command. Its result is how many marks it removed.
func (c forget) Apply(tx *Tx) (Result, error) {
	n := 0
	for _, key := range c.keys {
		v, err := tx.Get(spaceOnce, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		var m mark
		if err := m.decode(v, tx.seq.l.perm); err != nil {
			return nil, err
		}
		if m.forgotten(c.now) {
			tx.key = appendKey(tx.key[:0], tx.account, spaceOnce, key)
			tx.seq.pending.set(tx.key, nil, true)
			n++
		}
	}
	return n, nil
}
