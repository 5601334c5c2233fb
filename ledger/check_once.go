package ledger

import (
	"encoding/binary"
	"errors"

	"cotejo/store"
)

// once tests the account's marks: each names a record or order of its own organization
// and mode, so that a repeated request always finds its answer.
func (c *checker) once() error {
	return c.at.Scan(spaceOnce, nil, func(key, value []byte) error {
		var m mark
		if len(key) != onceKeyLen || m.decode(value, c.perm) != nil {
			c.fault("la marca de idempotencia %x es ilegible", key)
			return nil
		}
		if m.answer != nil {
			return nil // of a use, which has no record
		}
		org, sandbox := OrgID(binary.BigEndian.Uint64(key)), key[8] != 0
		space, what := spaceRecord, appendRecordKey(nil, org, sandbox, m.id)
		if m.id.Prefix == OrderPrefix {
			k := OrderKey{org, sandbox, m.id}
			space, what = spaceOrder, k.append(nil)
		}
		_, err := c.at.Get(space, what)
		if errors.Is(err, store.ErrNotFound) {
			c.fault("la marca de idempotencia %x nombra %v, que no existe en la organización %d", key[ownerLen:], m.id, org)
			return nil
		}
		return err
	})
}
