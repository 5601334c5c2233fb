package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cotejo/store"
)

// Bounds of holds.
const (
	// MaxHold is how long a hold may last.
	MaxHold = 24 * time.Hour
	// MaxHoldUnits is how many answers one hold may be for.
	MaxHoldUnits = 1_000_000

	maxHolds = 64 // of one account at once
)

var (
	// ErrNoHold refuses to pay from a hold that is not there: it was released, its
	// time is over, all of it was spent, or it is of another organization or service.
	ErrNoHold = errors.New("ledger: la retención no existe, venció o ya se gastó completa")
	// ErrTooManyHolds refuses one more hold.
	ErrTooManyHolds = fmt.Errorf("ledger: la cuenta ya tiene %d retenciones abiertas; espere a que terminen las operaciones en curso", maxHolds)
)

// Hold reserves what so many answers of a service may cost, so that an outside
// effect or a batch begins only if it can be paid: individual uses of the service
// first, which cover the first units, and package money for the rest. What is held
// pays for nothing else. A Charge or Use that names the hold pays from it, whatever
// expired meanwhile; Release, or Until, gives back the rest.
//
// It refuses with *FundsError, which says how many units could be held, and with
// ErrTooManyHolds. Its Result is a Held, whose Number names the hold.
type Hold struct {
	Now      time.Time
	Org      OrgID
	Service  string
	Units    int64     // 1 to MaxHoldUnits
	Centavos int64     // > 0, of each unit that no use covers
	Steps    []Step    // other prices from a later unit on, ascending
	Until    time.Time // after Now, by MaxHold at most
}

// Step is the price of the units from From on, counted from 1 and with those that
// uses cover.
type Step struct{ From, Centavos int64 }

// Release gives what is left of a hold back to the lots that it came from; what
// expired meanwhile expires then. Releasing what is no longer held does nothing.
// Its Result is a Held, of what was given back.
type Release struct {
	Now  time.Time
	Hold uint64
}

// Held is what one hold reserves.
type Held struct {
	Number   uint64 // of its movement
	Org      OrgID
	Service  string
	Until    time.Time
	Uses     int64
	Centavos int64
}

// hold is one as the wallet keeps it.
type hold struct {
	number  uint64
	org     OrgID
	service string
	until   time.Time
	lots    []Lot // parts of lots: of uses, then of money, each by expiry
}

// lapsed reports that the hold's time is over at now.
func (h *hold) lapsed(now time.Time) bool { return !h.until.After(now) }

func (h *hold) held() Held {
	r := Held{Number: h.number, Org: h.org, Service: h.service, Until: h.until}
	for _, l := range h.lots {
		if l.Service == "" {
			r.Centavos += l.Left
		} else {
			r.Uses += l.Left
		}
	}
	return r
}

// Apply implements Command.
func (c Hold) Apply(tx *Tx) (Result, error) {
	if err := c.valid(tx.account); err != nil {
		return nil, err
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	held, err := tx.hold(w, &c, 1)
	if err != nil {
		return nil, err
	}
	tx.putWallet(w)
	return held, nil
}

// hold takes what the units from first to c.Units may cost. The wallet is the caller's
// to put. When it refuses nothing was written and the wallet is as it was.
func (tx *Tx) hold(w *wallet, c *Hold, first int64) (Held, error) {
	rest, prices := c.Units-first+1, prices{c.Centavos, c.Steps}
	uses := min(rest, w.uses(c.Service, c.Now))
	balance := w.spendable(c.Now)
	centavos := prices.cost(first+uses, c.Units)
	if centavos > balance {
		return Held{}, &FundsError{
			Service: c.Service, Price: centavos, Balance: balance,
			Wanted: rest, Units: uses + prices.affordable(first+uses, c.Units, balance),
		}
	}
	if n := len(w.holds); n >= maxHolds && !slices.ContainsFunc(w.holds, func(h hold) bool { return h.lapsed(c.Now) }) {
		return Held{}, ErrTooManyHolds
	}
	tx.advance(w, c.Now)
	m := tx.begin(w, c.Now, KindHold)
	m.Org, m.Service, m.Until = c.Org, c.Service, c.Until
	before := slices.Clone(w.lots)
	m.Lots, w.lots = take(m.Lots, w.lots, c.Service, uses)
	m.Lots, w.lots = take(m.Lots, w.lots, "", centavos)
	h := hold{number: m.Number, org: c.Org, service: c.Service, until: c.Until}
	for _, s := range m.Lots {
		i := slices.IndexFunc(before, func(l Lot) bool { return l.Number == s.Lot })
		part := before[i]
		part.Left = s.amount()
		h.lots = append(h.lots, part)
	}
	w.holds = append(w.holds, h)
	tx.putMovement(w, m)
	return h.held(), nil
}

func (c *Hold) valid(account AccountID) error {
	if account == Global {
		return errNoWallet
	}
	if err := validMoment(c.Now); err != nil {
		return err
	}
	switch {
	case c.Service == "" || len(c.Service) > maxName:
		return fmt.Errorf("ledger: el servicio lleva de 1 a %d bytes", maxName)
	case c.Units < 1 || c.Units > MaxHoldUnits:
		return fmt.Errorf("ledger: se retiene para 1 a %d unidades, no para %d", MaxHoldUnits, c.Units)
	case !c.Until.After(c.Now) || c.Until.After(c.Now.Add(MaxHold)):
		return fmt.Errorf("ledger: una retención dura más de 0 y a lo más %v, no %v", MaxHold, c.Until.Sub(c.Now))
	}
	return prices{c.Centavos, c.Steps}.valid()
}

// Apply implements Command.
func (c Release) Apply(tx *Tx) (Result, error) {
	if tx.account == Global {
		return nil, errNoWallet
	}
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	at := w.holdAt(c.Hold)
	if at < 0 {
		return Held{}, nil
	}
	given := w.holds[at].held()
	tx.release(w, at, c.Now)
	tx.advance(w, c.Now)
	tx.putWallet(w)
	return given, nil
}

func (w *wallet) holdAt(number uint64) int {
	return slices.IndexFunc(w.holds, func(h hold) bool { return h.number == number })
}

// release gives back what one hold reserves, with the movement that says so.
func (tx *Tx) release(w *wallet, at int, now time.Time) {
	h := &w.holds[at]
	m := tx.begin(w, now, KindRelease)
	m.Org, m.Service, m.Hold = h.org, h.service, h.number
	for i := range h.lots {
		m.Lots = append(m.Lots, h.lots[i].split(h.lots[i].Left))
	}
	w.giveBack(at)
	tx.putMovement(w, m)
}

// giveBack returns the parts of one hold to their lots.
func (w *wallet) giveBack(at int) {
	for _, part := range w.holds[at].lots {
		if i := slices.IndexFunc(w.lots, func(l Lot) bool { return l.Number == part.Number }); i >= 0 {
			w.lots[i].Left += part.Left
		} else {
			w.add(part)
		}
	}
	w.holds = slices.Delete(w.holds, at, at+1)
}

// advance writes what time alone has changed at now: holds whose time is over are
// released, lots that expired leave the wallet.
func (tx *Tx) advance(w *wallet, now time.Time) {
	for i := 0; i < len(w.holds); {
		if w.holds[i].lapsed(now) {
			tx.release(w, i, now)
		} else {
			i++
		}
	}
	for len(w.lots) > 0 && !w.lots[0].Expires.After(now) {
		l := w.lots[0]
		w.lots = slices.Delete(w.lots, 0, 1)
		m := tx.begin(w, now, KindExpiry)
		m.Service, m.Lots = l.Service, append(m.Lots, l.split(l.Left))
		tx.putMovement(w, m)
	}
}

// late reports that advance has something to write.
func (w *wallet) late(now time.Time) bool {
	return len(w.lots) > 0 && !w.lots[0].Expires.After(now) || slices.ContainsFunc(w.holds, func(h hold) bool { return h.lapsed(now) })
}

// Sweep writes, in all accounts, what time alone has changed at now: it releases
// holds whose time is over and writes the expiry of lots, which the account's next
// command would do otherwise. It returns in how many accounts there was something to
// do. It is safe to run at any time and to run again.
func (l *Ledger) Sweep(ctx context.Context, now time.Time) (n int, err error) {
	if err := validMoment(now); err != nil {
		return 0, err
	}
	for g := range store.Group(store.Groups) {
		err := scanAccounts(l.readers[g], func(account AccountID) error {
			if account == Global { // the group's own space
				return ctx.Err()
			}
			w, err := l.Read(account).wallet()
			if err != nil || !w.late(now) {
				return errors.Join(err, ctx.Err())
			}
			n++
			_, err = l.Do(ctx, account, sweep{now})
			return err
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

type sweep struct{ now time.Time }

// Apply implements Command.
func (c sweep) Apply(tx *Tx) (Result, error) {
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	if w.late(c.now) {
		tx.advance(w, c.now)
		tx.putWallet(w)
	}
	return nil, nil
}
