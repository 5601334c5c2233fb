package ledger

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"cotejo/store"
)

// LotLife is how long a lot can be spent. From Expires on it pays for nothing; its
// rest leaves the wallet with the account's next movement, or with Sweep.
const LotLife = 365 * 24 * time.Hour

// maxLots bounds the lots that an account may have open at once.
const maxLots = 1000

// Wallet is what an account can pay with at one moment.
type Wallet struct {
	Balance   int64  // centavos of package money that can be spent
	Lots      []Lot  // that can be spent, in the order in which they will be
	Holds     []Held // by number; what they reserve is not in Balance and Lots
	Movements uint64 // number of the last movement
}

// Uses returns how many individual uses of a service can be spent.
func (w Wallet) Uses(service string) int64 { return available(w.Lots, service, time.Time{}) }

// Lot is what one credit brought: package money, which pays for any service, or
// individual uses of one.
type Lot struct {
	Number  uint64 // of the movement that brought it
	Service string // that the uses are of; "" is package money
	Left    int64  // centavos, or uses; > 0
	Expires time.Time
}

var errNoWallet = errors.New("ledger: el grupo global no tiene saldo")

// wallet is the stored state of an account's money: one small value, so that a
// batch of charges on one account writes it once.
type wallet struct {
	last uint64 // number of the last movement
	day  uint32 // ledger day of the last movement
	lots []Lot  // open, by expiry then number
	// What was taken from lots and not paid yet, by number.
	holds []hold
}

func (w *wallet) add(l Lot) {
	at := len(w.lots)
	for at > 0 && l.before(&w.lots[at-1]) {
		at--
	}
	w.lots = slices.Insert(w.lots, at, l)
}

// before reports that l is spent before m.
func (l *Lot) before(m *Lot) bool {
	if c := l.Expires.Compare(m.Expires); c != 0 {
		return c < 0
	}
	return l.Number < m.Number
}

// sum is what all movements so far add up to, in centavos.
func (w *wallet) sum() (centavos int64) {
	for i := range w.lots {
		if w.lots[i].Service == "" {
			centavos += w.lots[i].Left
		}
	}
	for i := range w.holds {
		centavos += w.holds[i].held().Centavos
	}
	return centavos
}

// spendable is the package money that can be spent at now, in centavos.
func (w *wallet) spendable(now time.Time) int64 { return w.free(now, "") }

// uses is how many uses of a service can be spent at now.
func (w *wallet) uses(service string, now time.Time) int64 { return w.free(now, service) }

// free adds up what is neither expired nor held at now. What a hold reserves whose
// time is over is free, before the movement that says so is written.
func (w *wallet) free(now time.Time, service string) int64 {
	n := available(w.lots, service, now)
	for i := range w.holds {
		if w.holds[i].lapsed(now) {
			n += available(w.holds[i].lots, service, now)
		}
	}
	return n
}

// available adds up what lots of one kind hold at now.
func available(lots []Lot, service string, now time.Time) (n int64) {
	for i := range lots {
		if lots[i].Service == service && lots[i].Expires.After(now) {
			n += lots[i].Left
		}
	}
	return n
}

// take removes an amount, which the lots of that kind must hold, from the first on.
// It appends what it took from each, and returns the lots that are left.
func take(dst []Split, lots []Lot, service string, amount int64) ([]Split, []Lot) {
	emptied := false
	for i := range lots {
		if amount == 0 {
			break
		}
		l := &lots[i]
		if l.Service != service {
			continue
		}
		part := min(l.Left, amount)
		l.Left -= part
		amount -= part
		emptied = emptied || l.Left == 0
		dst = append(dst, l.split(part))
	}
	if amount != 0 {
		panic("ledger: lots do not cover a charge that was accepted")
	}
	if emptied {
		lots = slices.DeleteFunc(lots, func(l Lot) bool { return l.Left == 0 })
	}
	return dst, lots
}

// split is a part of the lot.
func (l *Lot) split(amount int64) Split {
	if l.Service == "" {
		return Split{Lot: l.Number, Centavos: amount}
	}
	return Split{Lot: l.Number, Uses: amount}
}

func (tx *Tx) loadWallet(w *wallet) error {
	v, err := tx.Get(spaceWallet, nil)
	if errors.Is(err, store.ErrNotFound) {
		*w = wallet{lots: w.lots[:0], holds: w.holds[:0]}
		return nil
	}
	if err != nil {
		return err
	}
	return w.decode(v)
}

func (tx *Tx) putWallet(w *wallet) {
	tx.value = w.append(tx.value[:0])
	tx.put(spaceWallet, nil, tx.value)
}

func (w *wallet) append(dst []byte) []byte {
	dst = append(dst, schema)
	dst = binary.AppendUvarint(dst, w.last)
	dst = binary.BigEndian.AppendUint32(dst, w.day)
	dst = appendLots(dst, w.lots)
	dst = binary.AppendUvarint(dst, uint64(len(w.holds)))
	for i := range w.holds {
		h := &w.holds[i]
		dst = binary.AppendUvarint(dst, h.number)
		dst = binary.BigEndian.AppendUint64(dst, uint64(h.org))
		dst = appendText(dst, h.service)
		dst = appendMoment(dst, h.until)
		dst = appendLots(dst, h.lots)
	}
	return dst
}

func appendLots(dst []byte, lots []Lot) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(lots)))
	for i := range lots {
		l := &lots[i]
		dst = binary.AppendUvarint(dst, l.Number)
		dst = binary.AppendUvarint(dst, uint64(l.Left))
		dst = appendMoment(dst, l.Expires)
		dst = appendText(dst, l.Service)
	}
	return dst
}

// decode reuses the memory of what the wallet held before.
func (w *wallet) decode(value []byte) error {
	d := decode(value)
	w.last, w.day = d.uvarint(), d.uint32()
	w.lots = d.lots(w.lots)
	n := d.count(1 + 8 + 1 + 1 + 1)
	w.holds = slices.Grow(w.holds[:0], n)[:n]
	for i := range w.holds {
		h := &w.holds[i]
		h.number, h.org, h.service, h.until = d.uvarint(), OrgID(d.uint64()), d.textLike(h.service), d.moment()
		h.lots = d.lots(h.lots)
	}
	return d.done()
}

// lots reads lots into the memory of old, names included.
func (d *decoder) lots(old []Lot) []Lot {
	n := d.count(4)
	old = slices.Grow(old[:0], n)[:n]
	for i := range old {
		l := &old[i]
		l.Number, l.Left, l.Expires = d.uvarint(), d.centavos(), d.moment()
		l.Service = d.textLike(l.Service)
	}
	return old
}

// Wallet returns what the account can pay with at now, as the last durable command
// left it.
func (l *Ledger) Wallet(account AccountID, now time.Time) (Wallet, error) {
	return l.Read(account).Wallet(now)
}

// Wallet returns what the account can pay with at now.
func (r Reader) Wallet(now time.Time) (Wallet, error) {
	w, err := r.wallet()
	if err != nil {
		return Wallet{}, err
	}
	return w.at(now), nil
}

// at is the wallet as it is at now, whatever of that is not written yet. It changes
// w.
func (w *wallet) at(now time.Time) Wallet {
	r := Wallet{Movements: w.last}
	for i := 0; i < len(w.holds); {
		if w.holds[i].lapsed(now) {
			w.giveBack(i)
			continue
		}
		r.Holds = append(r.Holds, w.holds[i].held())
		i++
	}
	r.Lots = slices.DeleteFunc(w.lots, func(l Lot) bool { return !l.Expires.After(now) })
	r.Balance = available(r.Lots, "", time.Time{})
	return r
}

func (r Reader) wallet() (w wallet, err error) {
	v, err := r.Get(spaceWallet, nil)
	if errors.Is(err, store.ErrNotFound) {
		return wallet{}, nil
	} else if err != nil {
		return wallet{}, err
	}
	err = w.decode(v)
	return w, err
}

// Balance returns the account's unexpired package money at now, in centavos.
func (l *Ledger) Balance(account AccountID, now time.Time) (int64, error) {
	w, err := l.Wallet(account, now)
	return w.Balance, err
}
