package ledger

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"cotejo/store"
)

// LotLife is how long a lot can be spent. From Expires on it pays for nothing; its
// rest leaves the wallet with the account's next movement.
const LotLife = 365 * 24 * time.Hour

// maxLots bounds the lots that an account may have open at once.
const maxLots = 1000

// Wallet is what an account can pay with at one moment.
type Wallet struct {
	Balance   int64  // centavos of package money that can be spent
	Lots      []Lot  // that can be spent, in the order in which they will be
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
	return centavos
}

// spendable is the package money that has not expired at now, in centavos.
func (w *wallet) spendable(now time.Time) int64 { return available(w.lots, "", now) }

// uses is how many uses of a service have not expired at now.
func (w *wallet) uses(service string, now time.Time) int64 { return available(w.lots, service, now) }

// available adds up what lots of one kind hold at now.
func available(lots []Lot, service string, now time.Time) (n int64) {
	for i := range lots {
		if lots[i].Service == service && lots[i].Expires.After(now) {
			n += lots[i].Left
		}
	}
	return n
}

// take removes an amount, which the lots of that kind must hold, from the oldest
// expiry on and appends what it took from each.
func (w *wallet) take(dst []Split, service string, amount int64) []Split {
	emptied := false
	for i := range w.lots {
		if amount == 0 {
			break
		}
		l := &w.lots[i]
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
		w.lots = slices.DeleteFunc(w.lots, func(l Lot) bool { return l.Left == 0 })
	}
	return dst
}

// split is a part of the lot.
func (l *Lot) split(amount int64) Split {
	if l.Service == "" {
		return Split{Lot: l.Number, Centavos: amount}
	}
	return Split{Lot: l.Number, Uses: amount}
}

// expireLots writes the movements of the lots that have expired at now.
func (tx *Tx) expireLots(w *wallet, now time.Time) {
	for len(w.lots) > 0 && !w.lots[0].Expires.After(now) {
		l := w.lots[0]
		w.lots = slices.Delete(w.lots, 0, 1)
		m := tx.begin(w, now, KindExpiry)
		m.Service, m.Lots = l.Service, append(m.Lots, l.split(l.Left))
		tx.putMovement(w, m)
	}
}

func (tx *Tx) loadWallet(w *wallet) error {
	v, err := tx.Get(spaceWallet, nil)
	if errors.Is(err, store.ErrNotFound) {
		*w = wallet{lots: w.lots[:0]}
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
	return appendLots(dst, w.lots)
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
	return Wallet{
		Balance:   w.spendable(now),
		Lots:      slices.DeleteFunc(w.lots, func(l Lot) bool { return !l.Expires.After(now) }),
		Movements: w.last,
	}, nil
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
