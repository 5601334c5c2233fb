package ledger

import (
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
				return r.scanOwners(func(owner []byte) error {
					found, err = r.find(append(owner, appendRecordKey(nil, 0, false, id)[ownerLen:]...))
					if errors.Is(err, store.ErrNotFound) {
						return nil
					} else if err != nil {
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
