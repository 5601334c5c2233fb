package ledger

import (
	"crypto/sha256"

	"cotejo/store"
)

// GroupView is what one group holds at one moment, for audits and exports. It is
// valid until the function that got it returns.
type GroupView struct {
	Group store.Group
	view  store.View
	perm  *permutation
}

// Groups calls fn with every group, each as it was at one moment, the global one
// last, until fn returns an error, which Groups returns. Writes go on meanwhile.
func (l *Ledger) Groups(fn func(GroupView) error) error {
	for g := range store.Group(store.Groups + 1) {
		err := withView(l.store, g, func(v store.View) error { return fn(GroupView{g, v, l.perm}) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Head is where the chain of the group stands. ErrIntegrity when it does not end
// with the newest batch of the view.
func (v GroupView) Head() (Head, error) { return headOf(v.view, v.Group, v.view.Seq()) }

// Link is what one batch added to the chain of its group:
// docs/data-formats.md says how Sum is made of Digest and of the Sum before.
type Link struct {
	Seq         uint64
	Digest, Sum [sha256.Size]byte
}

// Links calls fn for each link of the group's chain, by Seq, until fn returns an
// error, which Links returns.
func (v GroupView) Links(fn func(Link) error) error {
	return scanLinks(v.view, 0, func(seq uint64, value []byte) error {
		var k link
		if err := k.decode(value); err != nil {
			return brokenChain(v.Group, "el eslabón del lote %d es ilegible", seq)
		}
		return fn(Link{seq, k.digest, k.head})
	})
}

// Accounts calls fn for each account of the group, in the order of shard and id,
// until fn returns an error, which Accounts returns. The global group has none.
func (v GroupView) Accounts(fn func(AccountID) error) error { return scanAccounts(v.view, fn) }

// Records calls fn for each record of an account of the group, by organization,
// mode, prefix, day and counter, until fn returns an error, which Records returns.
// The texts of the record are fn's to keep.
func (v GroupView) Records(account AccountID, fn func(Record) error) error {
	return v.reader(account).scanRecords(fn)
}

// Movements calls fn for each movement of an account of the group, by number, until
// fn returns an error, which Movements returns. The movement and its Lots are valid
// until fn returns.
func (v GroupView) Movements(account AccountID, fn func(*Movement) error) error {
	return v.reader(account).Movements(Page{}, fn)
}

// Orders calls fn for each order of an account of the group, by organization, mode, day
// and counter, until fn returns an error, which Orders returns.
func (v GroupView) Orders(account AccountID, fn func(*Order) error) error {
	return v.reader(account).scanOrders(fn)
}

// OrderCharges is Reader.OrderCharges of an account of the group.
func (v GroupView) OrderCharges(account AccountID, k OrderKey, fn func(OrderCharge) error) error {
	return v.reader(account).OrderCharges(k, fn)
}

// Usage calls fn for each count of an account of the group, by organization, mode,
// day and service, until fn returns an error, which Usage returns. Of answers that
// cost nothing and leave no record, the last second may be missing.
func (v GroupView) Usage(account AccountID, fn func(Usage) error) error {
	var service string
	return v.reader(account).Scan(spaceUsage, nil, func(key, value []byte) error {
		u, err := decodeUsage(key, value, service)
		if err != nil {
			return err
		}
		service = u.Service
		return fn(u)
	})
}

func (v GroupView) reader(account AccountID) Reader { return Reader{v.view, account, v.perm} }
