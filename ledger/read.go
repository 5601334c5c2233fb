package ledger

import (
	"encoding/binary"
	"errors"

	"cotejo/store"
)

// Reader reads what was written of one account, outside the sequencer. It cannot
// name a key of another account. A write may be read a moment before it is
// durable: what must not be answered from such a moment goes through a Command.
type Reader struct {
	from    store.Reader // of the account's group
	account AccountID
	perm    *permutation
}

// Read returns a reader of the latest state.
func (l *Ledger) Read(account AccountID) Reader {
	group, _ := place(account)
	return Reader{l.readers[group], account, l.perm}
}

// Get returns a copy of the value, store.ErrNotFound when the key is absent.
func (r Reader) Get(space Space, key []byte) ([]byte, error) {
	var room [64]byte
	return r.from.Get(appendKey(room[:0], r.account, space, key)[1:])
}

// Scan calls fn for each key of the space that starts with prefix, ascending,
// until fn returns an error, which Scan returns. The slices are valid until fn
// returns.
func (r Reader) Scan(space Space, prefix []byte, fn func(key, value []byte) error) error {
	lower := appendKey(nil, r.account, space, prefix)[1:]
	return r.from.Scan(lower, after(lower), func(k, v []byte) error { return fn(k[keyHead-1:], v) })
}

var errFound = errors.New("found")

// scanAccounts calls fn for each account that has a key in the group, in the
// order of shard and id. Account 0, which holds the group's chain, is none.
func scanAccounts(from store.Reader, fn func(AccountID) error) error {
	next := after(make([]byte, accountHead-1))
	for {
		var head []byte
		err := from.Scan(next, nil, func(k, _ []byte) error {
			if len(k) < accountHead-1 {
				return errValue
			}
			head = append([]byte(nil), k[:accountHead-1]...)
			return errFound
		})
		if err == nil {
			return nil
		}
		if !errors.Is(err, errFound) {
			return err
		}
		if err := fn(AccountID(binary.BigEndian.Uint64(head[1:]))); err != nil {
			return err
		}
		if next = after(head); next == nil {
			return nil
		}
	}
}
