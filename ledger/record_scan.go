package ledger

import (
	"bytes"
	"errors"
	"slices"
)

// Records lie alone or in blocks, under keys of one form: a block under that of its
// last record. No record lies alone between two of a block, and no block has ids of
// two days.

// scanRange calls fn for each record from lower on and before upper, by key, wherever
// it lies. Both are keys or heads of keys; upper names a day, a prefix or an owner, or
// is nil: all that follow. The texts of a record are fn's to keep.
func (r Reader) scanRange(lower, upper []byte, fn func(Record) error) error {
	find := r.lastDictionary()
	alone := func(from, to []byte) error {
		if to != nil && bytes.Compare(from, to) >= 0 {
			return nil
		}
		return r.scanBetween(spaceRecord, from, to, func(key, value []byte) error {
			record, err := decodeRecord(key, value, r.perm, find)
			if err != nil {
				return err
			}
			return fn(record)
		})
	}
	next := lower // nothing before it is left
	var b storedBlock
	err := r.scanBetween(spaceBlock, lower, upper, func(key, value []byte) error {
		if err := b.read(key, value); err != nil {
			return err
		}
		first := appendRecordKey(nil, b.order.Org, b.order.Sandbox, b.ids)
		if err := alone(next, first); err != nil {
			return err
		}
		for range b.count {
			c, err := b.step()
			if err != nil {
				return b.broken(err)
			}
			id := b.ids
			if id.Counter += uint32(b.next - 1); bytes.Compare(appendRecordKey(first[:0], b.order.Org, b.order.Sandbox, id), lower) < 0 {
				continue
			}
			var record Record
			if _, err := b.record(&record, &c, r.perm, nil); err != nil {
				return err
			}
			record.Note = bytes.Clone(record.Note)
			if err := fn(record); err != nil {
				return err
			}
		}
		next = append(slices.Clone(key), 0)
		return nil
	})
	if err != nil {
		return err
	}
	return alone(next, upper)
}

// scanBetween is Scan from a key on and before another; nil: up to the end.
func (r Reader) scanBetween(space Space, lower, upper []byte, fn func(key, value []byte) error) error {
	from := appendKey(nil, r.account, space, lower)[1:]
	to := after(from[:keyHead-1])
	if upper != nil {
		to = appendKey(nil, r.account, space, upper)[1:]
	}
	return r.from.Scan(from, to, func(k, v []byte) error { return fn(k[keyHead-1:], v) })
}

// first is the key of the first record from lower on and before upper, as scanRange
// takes them, or of the block that begins with it; nil when there is none.
func (r Reader) first(lower, upper []byte) (key []byte, err error) {
	for _, space := range []Space{spaceRecord, spaceBlock} {
		err := r.scanBetween(space, lower, upper, func(k, _ []byte) error {
			if len(k) != recordKeyLen {
				return errValue
			}
			if key == nil || bytes.Compare(k, key) < 0 {
				key = slices.Clone(k)
			}
			return errFound
		})
		if err != nil && !errors.Is(err, errFound) {
			return nil, err
		}
	}
	return key, nil
}

// scanOwners calls fn with each distinct owner of records in the account.
func (r Reader) scanOwners(fn func(owner []byte) error) error {
	for next := []byte{}; next != nil; {
		key, err := r.first(next, nil)
		if key == nil || err != nil {
			return err
		}
		owner := key[:ownerLen:ownerLen]
		next = after(owner)
		if err := fn(owner); err != nil {
			return err
		}
	}
	return nil
}
