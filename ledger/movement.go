package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Kind says why money moved.
type Kind byte

const (
	KindCredit Kind = iota + 1 // a lot came in
	KindCharge                 // a verification was paid
	KindExpiry                 // a lot's rest was lost to its expiry date
	KindUse                    // an answer of which no record is kept was paid
)

// Movement is one change of an account's money. It never changes.
type Movement struct {
	Number   uint64 // 1, 2, 3 … within the account, without gaps
	Moment   time.Time
	Kind     Kind
	Centavos int64   // signed: a credit is positive
	Lots     []Split // how much of each lot, in the order of their expiry; the sum is |Centavos|
	Balance  int64   // centavos: sum of all movements up to this one
	Org      OrgID   // who asked; 0 for an expiry
	Service  string  // of a charge or use
	Record   VerificationID
	Input    [sha256.Size]byte // of a use: hash of what was asked
	Basis    string            // of a use: the tables that the answer rests on
	Reason   string            // of a credit
}

// Split is a part of one lot, in centavos > 0.
type Split struct {
	Lot      uint64
	Centavos int64
}

func (tx *Tx) putMovement(m *Movement) {
	tx.value = m.append(tx.value[:0])
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], m.Number)
	tx.put(spaceMovement, key[:], tx.value)
}

func (m *Movement) append(dst []byte) []byte {
	dst = append(dst, schema, byte(m.Kind))
	dst = appendMoment(dst, m.Moment)
	dst = binary.AppendVarint(dst, m.Centavos)
	dst = binary.AppendUvarint(dst, uint64(m.Balance))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Org))
	dst = binary.AppendUvarint(dst, uint64(len(m.Lots)))
	for _, s := range m.Lots {
		dst = binary.AppendUvarint(dst, s.Lot)
		dst = binary.AppendUvarint(dst, uint64(s.Centavos))
	}
	switch m.Kind {
	case KindCharge:
		dst = appendText(dst, m.Service)
		dst = append(dst, m.Record.Prefix...)
		dst = binary.BigEndian.AppendUint32(dst, m.Record.Day)
		dst = binary.BigEndian.AppendUint32(dst, m.Record.Counter)
	case KindUse:
		dst = appendText(dst, m.Service)
		dst = append(dst, m.Input[:]...)
		dst = appendText(dst, m.Basis)
	}
	return appendText(dst, m.Reason)
}

// decode reads all but the number, which is the key. Record.Code stays zero.
func (m *Movement) decode(value []byte) error {
	d := decode(value)
	*m = Movement{
		Kind: Kind(d.byte()), Moment: d.moment(), Centavos: d.varint(), Balance: d.centavos(),
		Org: OrgID(d.uint64()), Lots: m.Lots[:0],
	}
	for range d.count(2) {
		m.Lots = append(m.Lots, Split{d.uvarint(), d.centavos()})
	}
	switch m.Kind {
	case KindCharge:
		m.Service = d.text()
		m.Record = VerificationID{Prefix: string(d.take(3)), Day: d.uint32(), Counter: d.uint32()}
	case KindUse:
		m.Service = d.text()
		copy(m.Input[:], d.take(len(m.Input)))
		m.Basis = d.text()
	}
	m.Reason = d.text()
	return d.done()
}

// Movements calls fn for each movement of the account, by number, until fn
// returns an error, which Movements returns. The movement and its Lots are valid
// until fn returns.
func (l *Ledger) Movements(account AccountID, fn func(*Movement) error) error {
	return scanMovements(l.Read(account), l.perm, fn)
}

func scanMovements(r Reader, perm *permutation, fn func(*Movement) error) error {
	var m Movement
	return r.Scan(spaceMovement, nil, func(key, value []byte) error {
		if len(key) != 8 {
			return errValue
		}
		if err := m.decode(value); err != nil {
			return err
		}
		m.Number = binary.BigEndian.Uint64(key)
		if m.Kind == KindCharge {
			m.Record.Code = perm.code(m.Record.Prefix, m.Record.Day, m.Record.Counter)
		}
		return fn(&m)
	})
}
