package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"cotejo/store"
)

// Order reads an order as of what is read: how far it is may not be durable yet. See
// Ledger.Order. store.ErrNotFound when the organization has none of that id.
func (r Reader) Order(k OrderKey) (Order, error) {
	if k.ID.Prefix != OrderPrefix {
		return Order{}, store.ErrNotFound
	}
	key := k.append(nil)
	v, err := r.Get(spaceOrder, key)
	if err != nil {
		return Order{}, err
	}
	return decodeOrder(key, v, r.perm)
}

// Order reads an order from behind the sequencer: whatever it says is durable.
// store.ErrNotFound when the organization has none of that id.
func (l *Ledger) Order(ctx context.Context, account AccountID, k OrderKey) (Order, error) {
	if _, err := l.Read(account).Order(k); err != nil {
		return Order{}, err
	}
	res, err := l.Do(ctx, account, readOrder{k})
	if err != nil {
		return Order{}, err
	}
	return res.(Order), nil
}

type readOrder struct{ key OrderKey }

// Apply implements Command.
func (c readOrder) Apply(tx *Tx) (Result, error) {
	o, err := tx.order(&c.key)
	return o, err
}

// RecallOrder returns the id of the order that was opened under once, if there is one that is
// younger than OnceLife at now. It refuses with ErrKeyReused like OpenOrder. What it
// returns is durable. A Once that was never used costs one read and no command.
func (l *Ledger) RecallOrder(ctx context.Context, account AccountID, org OrgID, sandbox bool, once Once, now time.Time) (VerificationID, bool, error) {
	m, err := l.recall(ctx, account, recall{org, sandbox, once, now})
	if m == nil || err != nil {
		return VerificationID{}, false, err
	}
	if m.id.Prefix != OrderPrefix {
		return VerificationID{}, false, ErrKeyReused
	}
	return m.id, true, nil
}

// OrderTerms reads the terms of an order; store.ErrNotFound when there is none, or
// when they were forgotten.
func (r Reader) OrderTerms(k OrderKey) ([]byte, error) {
	v, err := r.Get(spaceOrderInput, k.appendPart(nil, 0))
	if err != nil {
		return nil, err
	}
	d := decode(v)
	if d.bad {
		return nil, errValue
	}
	return d.b, nil
}

// OrderInput calls fn with each piece of the input of an order, in the order in which
// they were given, until fn returns an error, which OrderInput returns. It is valid
// until fn returns.
func (r Reader) OrderInput(k OrderKey, fn func(piece []byte) error) error {
	lower := appendKey(nil, r.account, spaceOrderInput, k.appendPart(nil, 1))[1:]
	return r.from.Scan(lower, after(lower[:len(lower)-4]), func(_, v []byte) error {
		d := decode(v)
		if d.bad {
			return errValue
		}
		return fn(d.b)
	})
}

// OrderRecords calls fn for the records of an order from one ordinal to another, both
// included, as far as they are stored, until fn returns an error, which OrderRecords
// returns. The record and its texts are valid until fn returns. What is answered from
// them must be durable: to is at most the Done of Ledger.Order or of an OrderFilled.
func (r Reader) OrderRecords(k OrderKey, from, to int, fn func(*Record) error) error {
	lower := appendKey(nil, r.account, spaceOrderBlock, k.appendPart(nil, from))[1:]
	var b storedBlock
	var record Record
	next := from
	err := r.from.Scan(lower, after(lower[:len(lower)-4]), func(key, value []byte) error {
		if next > to {
			return errFound
		}
		if err := r.orderBlock(k, value, &b); err != nil {
			return err
		}
		if b.first > next || b.last() != int(binary.BigEndian.Uint32(key[len(key)-4:])) {
			return fmt.Errorf("ledger: lote %v: falta la consulta %d: %w", k.ID, next, errValue)
		}
		for next <= min(to, b.last()) {
			c, err := b.step()
			if err != nil {
				return b.broken(err)
			}
			if b.first+b.next-1 < next {
				continue
			}
			if b.text, err = b.record(&record, &c, r.perm, b.text[:0]); err != nil {
				return err
			}
			next++
			if err := fn(&record); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return err
}

// OrderCharge is consecutive verifications of an order that one movement paid, or that
// nothing did.
type OrderCharge struct {
	From, To int    // ordinals
	Movement uint64 // 0: nothing paid
	Unit     int64  // centavos that each cost; 0: a use, or nothing
	Uses     int64
	Centavos int64
	Records  []VerificationID // of the ordinals From to To
}

// OrderCharges calls fn with what paid for the verifications of an order, by ordinal,
// until fn returns an error, which OrderCharges returns. What it gets is fn's to keep.
func (r Reader) OrderCharges(k OrderKey, fn func(OrderCharge) error) error {
	var b storedBlock
	return r.Scan(spaceOrderBlock, k.append(nil), func(_, value []byte) error {
		if err := r.orderBlock(k, value, &b); err != nil {
			return err
		}
		id, from := b.ids, b.first
		for i := range b.segments {
			s := &b.segments[i]
			c := OrderCharge{From: from, To: from + s.count - 1, Movement: s.movement, Unit: s.unit, Uses: s.uses(), Centavos: s.centavos()}
			for range s.count {
				if err := r.perm.complete(&id); err != nil {
					return err
				}
				c.Records = append(c.Records, id)
				id.Counter++
			}
			from += s.count
			if err := fn(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// orderBlock reads the block that an entry of the order's blocks names.
func (r Reader) orderBlock(k OrderKey, entry []byte, b *storedBlock) error {
	d := decode(entry)
	id := d.id()
	if err := d.done(); err != nil {
		return err
	}
	key := appendRecordKey(nil, k.Org, k.Sandbox, id)
	v, err := r.Get(spaceBlock, key)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("ledger: lote %v: falta el bloque que termina en %s-%d: %w", k.ID, id.Prefix, id.Day, errValue)
	} else if err != nil {
		return err
	}
	if err := b.read(key, v); err != nil {
		return err
	}
	if b.order.ID.Day != k.ID.Day || b.order.ID.Counter != k.ID.Counter {
		return errOther
	}
	return nil
}

// OpenOrders calls fn for every order that is open, in all accounts, so that whoever
// does the work goes on with it, until fn returns an error, which OpenOrders returns.
func (l *Ledger) OpenOrders(fn func(AccountID, Order) error) error {
	return l.orders(func(account AccountID, o *Order) error {
		if o.State != OrderOpen {
			return nil
		}
		return fn(account, *o)
	})
}

// orders calls fn for every order of every account.
func (l *Ledger) orders(fn func(AccountID, *Order) error) error {
	for g := range store.Group(store.Groups) {
		err := scanAccounts(l.readers[g], func(account AccountID) error {
			return l.Read(account).scanOrders(func(o *Order) error { return fn(account, o) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r Reader) scanOrders(fn func(*Order) error) error {
	return r.Scan(spaceOrder, nil, func(key, value []byte) error {
		o, err := decodeOrder(key, value, r.perm)
		if err != nil {
			return err
		}
		return fn(&o)
	})
}

// ForgetOrders removes the input of orders that ended OrderLife ago at now, in all
// accounts, and returns how many they were. What they are and their records stay. It
// is safe to run at any time and to run again.
func (l *Ledger) ForgetOrders(ctx context.Context, now time.Time) (n int, err error) {
	if err := validMoment(now); err != nil {
		return 0, err
	}
	err = l.orders(func(account AccountID, o *Order) error {
		if !o.expired(now) || o.Forgotten {
			return ctx.Err()
		}
		_, err := l.Do(ctx, account, forgetOrder{o.OrderKey, now})
		if err == nil {
			n++
		}
		return err
	})
	return n, err
}

// expired reports that the order ended OrderLife ago.
func (o *Order) expired(now time.Time) bool {
	return o.State != OrderOpen && now.Sub(o.Ended) >= OrderLife
}

type forgetOrder struct {
	key OrderKey
	now time.Time
}

// Apply implements Command.
func (c forgetOrder) Apply(tx *Tx) (Result, error) {
	o, err := tx.order(&c.key)
	if err != nil || !o.expired(c.now) || o.Forgotten {
		return nil, err
	}
	for i := range o.Pieces + 1 {
		tx.key = appendKey(tx.key[:0], tx.account, spaceOrderInput, o.appendPart(nil, i))
		tx.seq.pending.set(tx.key, nil, true)
	}
	o.Forgotten = true
	tx.putOrder(&o)
	return nil, nil
}

// hasAny reports that one of the block's ids has a record.
func (tx *Tx) hasAny(b *Block) (bool, error) {
	var room [recordKeyLen]byte
	first := appendRecordKey(room[:0], b.order.Org, b.order.Sandbox, b.ids)
	count := uint32(b.count)
	if tx.pendingRecords(first, count) {
		return true, nil
	}
	if tx.seq.unused.allCertainly(first, b.count) {
		return false, nil
	}
	return tx.storedRecords(first, count)
}

// pendingRecords reports that the commands before have written a record or block with
// one of count ids, the first of which is that of a record's key.
func (tx *Tx) pendingRecords(first []byte, count uint32) bool {
	lower := binary.BigEndian.Uint32(first[recordKeyLen-4:])
	tx.key = appendKey(tx.key[:0], tx.account, spaceRecord, first[:recordKeyLen-4])
	n := len(tx.key)
	for i := range tx.seq.pending.entries {
		key := tx.seq.pending.entries[i].key
		if len(key) != n+4 || !bytes.Equal(key[:keyHead-1], tx.key[:keyHead-1]) || !bytes.Equal(key[keyHead:n], tx.key[keyHead:n]) {
			continue
		}
		last, records := binary.BigEndian.Uint32(key[n:]), uint32(1)
		switch Space(key[keyHead-1]) {
		case spaceRecord:
		case spaceBlock:
			records = blockCount(tx.seq.pending.entries[i].value)
		default:
			continue
		}
		if last >= lower && last-(records-1) <= lower+(count-1) {
			return true
		}
	}
	return false
}

// storedRecords is pendingRecords of what is stored.
func (tx *Tx) storedRecords(first []byte, count uint32) (bool, error) {
	lower := binary.BigEndian.Uint32(first[recordKeyLen-4:])
	found := func(space Space) (n uint32, value []byte, err error) {
		from := appendKey(nil, tx.account, space, first)[1:]
		err = tx.seq.groups[tx.key[0]].reader.Scan(from, after(from[:len(from)-4]), func(k, v []byte) error {
			n, value = binary.BigEndian.Uint32(k[len(k)-4:]), bytes.Clone(v)
			return errFound
		})
		if errors.Is(err, errFound) {
			err = nil
		}
		return n, value, err
	}
	n, v, err := found(spaceRecord)
	if err != nil || v != nil && n-lower < count {
		return err == nil, err
	}
	n, v, err = found(spaceBlock)
	if err != nil || v == nil {
		return false, err
	}
	return n-(blockCount(v)-1) <= lower+(count-1), nil
}

// blockCount is how many records a stored block holds; 1 if it cannot be read.
func blockCount(value []byte) uint32 {
	d := decode(value)
	d.take(8)
	d.ordinal()
	return uint32(max(1, d.ordinal()))
}
