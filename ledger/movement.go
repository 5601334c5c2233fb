package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Kind says why money or uses moved.
type Kind byte

const (
	KindCredit  Kind = iota + 1 // a lot came in
	KindCharge                  // a verification was paid
	KindExpiry                  // a lot's rest was lost to its expiry date
	KindUse                     // an answer of which no record is kept was paid
	KindHold                    // something was reserved: it moved from lots to a hold
	KindRelease                 // what was left of a hold went back to its lots
	KindOrder                   // consecutive verifications of an order were paid
)

// Movement is one change of what an account can pay with: of package money, or of
// the individual uses of one service. It never changes.
type Movement struct {
	Number   uint64 // 1, 2, 3 … within the account, without gaps
	Moment   time.Time
	Kind     Kind
	Centavos int64     // signed: a credit is positive; 0 when uses moved, and of a hold and its release
	Uses     int64     // signed, of Service; 0 when money moved, and of a hold and its release
	Lots     []Split   // how much of each lot, in the order of their expiry
	Balance  int64     // centavos: sum of all movements up to this one, held or not
	Org      OrgID     // who asked; 0 for an expiry
	Service  string    // of a charge, a use, a hold, an order, and of individual uses
	Hold     uint64    // that paid for a charge, use or order, or was released; 0: none
	Until    time.Time // of a hold
	Record   VerificationID
	// Of an order: its verifications From to To, counted from 1, whose records have
	// the counters from that of Record on. Each cost Unit, or a use if that is 0.
	Order    VerificationID
	From, To int
	Input    [sha256.Size]byte // of a use: keyed hash of what was asked, or zero
	Basis    string            // of a use: the tables that the answer rests on
	Unit     int64             // centavos that each cost: of a credit of uses, and of an order
	Reason   string            // of a credit
}

// Split is a part of one lot: centavos > 0 of package money, or uses > 0.
type Split struct {
	Lot      uint64
	Centavos int64
	Uses     int64
}

func total(parts []Split) (centavos, uses int64) {
	for _, s := range parts {
		centavos += s.Centavos
		uses += s.Uses
	}
	return centavos, uses
}

// amount is in centavos or in uses.
func (s Split) amount() int64 { return s.Centavos + s.Uses }

// begin starts the account's next movement. Lots and what its kind carries are the
// caller's to complete, before putMovement.
func (tx *Tx) begin(w *wallet, now time.Time, kind Kind) *Movement {
	m := &tx.movement
	*m = Movement{Number: w.last + 1, Moment: now, Kind: kind, Lots: m.Lots[:0]}
	return m
}

// putMovement writes the movement, which the wallet's lots show already; the wallet
// is the caller's to put. With the first movement of a day goes the note that
// finds it.
func (tx *Tx) putMovement(w *wallet, m *Movement) {
	switch m.Kind {
	case KindCredit:
		m.Centavos, m.Uses = total(m.Lots)
	case KindHold, KindRelease:
	default:
		m.Centavos, m.Uses = total(m.Lots)
		m.Centavos, m.Uses = -m.Centavos, -m.Uses
	}
	w.last, m.Balance = m.Number, w.sum()
	tx.value = m.append(tx.value[:0])
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], m.Number)
	tx.put(spaceMovement, key[:], tx.value)
	if day := tx.ledgerDay(w, m.Moment); day > w.day {
		w.day = day
		tx.value = binary.AppendUvarint(append(tx.value[:0], schema), m.Number)
		binary.BigEndian.PutUint32(key[:], day)
		tx.put(spaceDay, key[:4], tx.value)
	}
}

func (m *Movement) append(dst []byte) []byte {
	dst = append(dst, schema, byte(m.Kind))
	dst = appendMoment(dst, m.Moment)
	dst = binary.AppendVarint(dst, m.Centavos)
	dst = binary.AppendVarint(dst, m.Uses)
	dst = binary.AppendUvarint(dst, uint64(m.Balance))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Org))
	dst = binary.AppendUvarint(dst, uint64(len(m.Lots)))
	for _, s := range m.Lots {
		dst = binary.AppendUvarint(dst, s.Lot)
		dst = binary.AppendUvarint(dst, uint64(s.Centavos))
		dst = binary.AppendUvarint(dst, uint64(s.Uses))
	}
	dst = appendText(dst, m.Service)
	switch m.Kind {
	case KindCharge, KindUse, KindRelease, KindOrder:
		dst = binary.AppendUvarint(dst, m.Hold)
	case KindHold:
		dst = appendMoment(dst, m.Until)
	}
	switch m.Kind {
	case KindCharge:
		dst = m.Record.append(dst)
	case KindOrder:
		dst = m.Record.append(dst)
		dst = m.Order.append(dst)
		dst = binary.AppendUvarint(dst, uint64(m.From))
		dst = binary.AppendUvarint(dst, uint64(m.To))
		dst = binary.AppendUvarint(dst, uint64(m.Unit))
	case KindUse:
		dst = append(dst, m.Input[:]...)
		dst = appendText(dst, m.Basis)
	case KindCredit:
		dst = binary.AppendUvarint(dst, uint64(m.Unit))
		dst = appendText(dst, m.Reason)
	}
	return dst
}

// Covers reports that the movement is what paid for the record.
func (m *Movement) Covers(r *Record) bool {
	if m.Number != r.Movement || m.Org != r.Org || m.Service != r.Service || r.Sandbox {
		return false
	}
	switch m.Kind {
	case KindCharge:
		return m.Record == r.ID && m.Centavos == -r.Centavos && r.Ordinal == 0
	case KindOrder:
		first := r.ID
		first.Counter -= uint32(r.Ordinal - m.From)
		return m.From <= r.Ordinal && r.Ordinal <= m.To && m.Order == r.Order && m.Unit == r.Centavos &&
			m.Record.Prefix == first.Prefix && m.Record.Day == first.Day && m.Record.Counter == first.Counter
	}
	return false
}

// Answers is for how many answers the movement paid.
func (m *Movement) Answers() int {
	switch m.Kind {
	case KindCharge, KindUse:
		return 1
	case KindOrder:
		return m.To - m.From + 1
	}
	return 0
}

// decode reads all but the number, which is the key. The codes of ids stay zero.
func (m *Movement) decode(value []byte) error {
	d := decode(value)
	*m = Movement{
		Kind: Kind(d.byte()), Moment: d.moment(), Centavos: d.varint(), Uses: d.varint(), Balance: d.centavos(),
		Org: OrgID(d.uint64()), Lots: m.Lots[:0], Service: m.Service,
	}
	for range d.count(3) {
		m.Lots = append(m.Lots, Split{d.uvarint(), d.centavos(), d.centavos()})
	}
	m.Service = d.textLike(m.Service)
	switch m.Kind {
	case KindCharge, KindUse, KindRelease, KindOrder:
		m.Hold = d.uvarint()
	case KindHold:
		m.Until = d.moment()
	}
	switch m.Kind {
	case KindCharge:
		m.Record = d.id()
	case KindOrder:
		m.Record, m.Order = d.id(), d.id()
		m.From, m.To, m.Unit = d.ordinal(), d.ordinal(), d.centavos()
		if m.From == 0 || m.To < m.From {
			d.fail()
		}
	case KindUse:
		copy(m.Input[:], d.take(len(m.Input)))
		m.Basis = d.text()
	case KindCredit:
		m.Unit, m.Reason = d.centavos(), d.text()
	}
	return d.done()
}
