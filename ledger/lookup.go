package ledger

import (
	"bytes"
	"errors"

	"cotejo/store"
)

// Lookup finds a record by its id alone, in whatever account it lies: for the
// operator's verification, never for a request. It costs a few reads for each
// organization that has records. store.ErrNotFound when there is none.
func (l *Ledger) Lookup(id VerificationID) (found Record, err error) {
	for g := range store.Group(store.Groups) {
		err := withView(l.store, g, func(v store.View) error {
			return scanAccounts(v, func(account AccountID) error {
				r := Reader{v, account, l.perm}
				return scanOwners(r, func(owner []byte) error {
					key := append(owner, appendRecordKey(nil, 0, false, id)[ownerLen:]...)
					value, err := r.Get(spaceRecord, key)
					if errors.Is(err, store.ErrNotFound) {
						return nil
					} else if err != nil {
						return err
					}
					if found, err = decodeRecord(key, value, r.perm, r.dictionary); err != nil {
						return err
					}
					return errFound
				})
			})
		})
		if errors.Is(err, errFound) {
			return found, nil
		} else if err != nil {
			return Record{}, err
		}
	}
	return Record{}, store.ErrNotFound
}

// ownerLen is the length of what stands before the id in a record's key:
// organization and sandbox flag.
const ownerLen = 8 + 1

// scanOwners calls fn with each distinct owner of records in the account.
func scanOwners(r Reader, fn func(owner []byte) error) error {
	next := appendKey(nil, r.account, spaceRecord, nil)[1:]
	end := after(next)
	for {
		var owner []byte
		err := r.from.Scan(next, end, func(k, _ []byte) error {
			if len(k) != keyHead-1+recordKeyLen {
				return errValue
			}
			owner = bytes.Clone(k[keyHead-1:][:ownerLen])
			return errFound
		})
		if err == nil {
			return nil
		} else if !errors.Is(err, errFound) {
			return err
		}
		next = after(append(next[:keyHead-1:keyHead-1], owner...))
		if err := fn(owner); err != nil || next == nil {
			return err
		}
	}
}
