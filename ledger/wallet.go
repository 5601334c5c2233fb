package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"cotejo/store"
)

// LotLife is how long a lot of prepaid money can be spent. From Expires on it
// pays for nothing; its rest leaves the wallet with the account's next movement.
const LotLife = 365 * 24 * time.Hour

// maxLots bounds the lots that an account may have open at once.
const maxLots = 1000

// maxReason bounds the reason of a credit, in bytes.
const maxReason = 2000

// Wallet is an account's prepaid money at one moment.
type Wallet struct {
	Balance   int64  // centavos that can be spent
	Lots      []Lot  // that can be spent, in the order in which they will be
	Movements uint64 // number of the last movement
}

// Lot is prepaid money of one credit.
type Lot struct {
	Number   uint64 // of the movement that brought it
	Centavos int64  // left of it, > 0
	Expires  time.Time
}

// Credit adds a lot of prepaid package money that expires after 365 days.
type Credit struct {
	Now      time.Time
	Org      OrgID
	Centavos int64 // > 0
	Reason   string
}

// Apply implements Command. Its result is a Charged.
func (c Credit) Apply(tx *Tx) (Result, error) {
	if tx.account == Global {
		return nil, errNoWallet
	}
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	if c.Centavos <= 0 || c.Centavos > MaxCentavos {
		return nil, fmt.Errorf("ledger: el abono debe ser de 1 a %d centavos, no de %d", MaxCentavos, c.Centavos)
	}
	if len(c.Reason) > maxReason {
		return nil, fmt.Errorf("ledger: el motivo pasa de %d bytes", maxReason)
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	tx.expireLots(w, c.Now)
	if len(w.lots) >= maxLots {
		return nil, fmt.Errorf("ledger: la cuenta ya tiene %d abonos con saldo; consuma alguno antes de abonar", maxLots)
	}
	w.last++
	w.add(Lot{w.last, c.Centavos, c.Now.Add(LotLife)})
	m := &tx.movement
	*m = Movement{
		Number: w.last, Moment: c.Now, Kind: KindCredit, Centavos: c.Centavos,
		Lots: append(m.Lots[:0], Split{w.last, c.Centavos}), Balance: w.sum(),
		Org: c.Org, Reason: c.Reason,
	}
	tx.putMovement(m)
	tx.putWallet(w)
	return Charged{Movement: m.Number, Centavos: c.Centavos, Balance: m.Balance}, nil
}

var errNoWallet = errors.New("ledger: el grupo global no tiene saldo")

// wallet is the stored state of an account's money: one small value, so that a
// batch of charges on one account writes it once.
type wallet struct {
	last uint64 // number of the last movement
	lots []Lot  // open, by expiry then number; their sum is that of all movements
}

func (w *wallet) add(l Lot) {
	at := len(w.lots)
	for at > 0 && w.lots[at-1].Expires.After(l.Expires) {
		at--
	}
	w.lots = slices.Insert(w.lots, at, l)
}

// sum is what all movements so far add up to.
func (w *wallet) sum() (centavos int64) {
	for i := range w.lots {
		centavos += w.lots[i].Centavos
	}
	return centavos
}

// spendable is the sum of what has not expired at now.
func (w *wallet) spendable(now time.Time) (centavos int64) {
	for i := range w.lots {
		if w.lots[i].Expires.After(now) {
			centavos += w.lots[i].Centavos
		}
	}
	return centavos
}

// take removes centavos, which the lots must hold, from the oldest expiry on
// and appends what it took from each.
func (w *wallet) take(dst []Split, centavos int64) []Split {
	used := 0
	for i := range w.lots {
		if centavos == 0 {
			break
		}
		l := &w.lots[i]
		part := min(l.Centavos, centavos)
		l.Centavos -= part
		centavos -= part
		if l.Centavos == 0 {
			used++
		}
		dst = append(dst, Split{l.Number, part})
	}
	if centavos != 0 {
		panic("ledger: lots do not cover a charge that was accepted")
	}
	w.lots = slices.Delete(w.lots, 0, used)
	return dst
}

// expireLots writes the movements of the lots that have expired at now.
func (tx *Tx) expireLots(w *wallet, now time.Time) {
	for len(w.lots) > 0 && !w.lots[0].Expires.After(now) {
		l := w.lots[0]
		w.lots = slices.Delete(w.lots, 0, 1)
		w.last++
		m := &tx.movement
		*m = Movement{
			Number: w.last, Moment: now, Kind: KindExpiry, Centavos: -l.Centavos,
			Lots: append(m.Lots[:0], Split{l.Number, l.Centavos}), Balance: w.sum(),
		}
		tx.putMovement(m)
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
	dst = binary.AppendUvarint(dst, uint64(len(w.lots)))
	for i := range w.lots {
		l := &w.lots[i]
		dst = binary.AppendUvarint(dst, l.Number)
		dst = binary.AppendUvarint(dst, uint64(l.Centavos))
		dst = appendMoment(dst, l.Expires)
	}
	return dst
}

func (w *wallet) decode(value []byte) error {
	d := decode(value)
	w.last = d.uvarint()
	n := d.count(3)
	w.lots = w.lots[:0]
	for range n {
		w.lots = append(w.lots, Lot{d.uvarint(), d.centavos(), d.moment()})
	}
	return d.done()
}

// Wallet returns the account's money at now, as the last durable command left it.
func (l *Ledger) Wallet(account AccountID, now time.Time) (Wallet, error) {
	w, err := l.readWallet(account)
	if err != nil {
		return Wallet{}, err
	}
	return Wallet{
		Balance:   w.spendable(now),
		Lots:      slices.DeleteFunc(w.lots, func(l Lot) bool { return !l.Expires.After(now) }),
		Movements: w.last,
	}, nil
}

// Balance returns the account's unexpired package money at now, in centavos.
func (l *Ledger) Balance(account AccountID, now time.Time) (int64, error) {
	w, err := l.Wallet(account, now)
	return w.Balance, err
}
