package ledger

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Funds is what an account can pay an answer of one service with.
type Funds struct {
	Balance int64 // centavos of package money
	Uses    int64 // individual uses of the service
}

// pays is the rule of a charge, and that of a Use whose price is 0.
func (f Funds) pays(price int64) bool {
	return f.Uses > 0 || f.Balance >= price && f.Balance > 0
}

// Funded tells, mostly from memory, whether an account may be able to pay an answer
// of a service at now, so that a request that cannot be paid is refused before it is
// worked on. price is in centavos of package money; 0 is included in a package.
// When ok is false it cannot; true may be wrong, and then the charge refuses.
func (l *Ledger) Funded(account AccountID, now time.Time, service string, price int64) (funds Funds, ok bool, err error) {
	funds, current := l.balances.get(account, service, now)
	if current && funds.pays(price) {
		return funds, true, nil
	}
	seen := l.balances.writesTo(account).Load()
	w, err := l.Read(account).wallet()
	if err != nil {
		return Funds{}, false, err
	}
	funds = Funds{Balance: w.spendable(now), Uses: w.uses(service, now)}
	// What changed meanwhile may have been money that came in.
	return funds, !l.balances.learn(account, &w, seen) || funds.pays(price), nil
}

// balances remembers the funds of accounts. The sequencer keeps it current.
type balances struct {
	// writes counts the wallets written, by shard: what others do must not make a reading
	// doubtful.
	writes [256]atomic.Uint64

	mu    sync.RWMutex
	known map[AccountID]*openFunds // under mu

	room wallet // the sequencer's
}

// openFunds is what the open lots of an account add up to, until the first of them
// expires or the first hold ends.
type openFunds struct {
	until time.Time
	open  []openLots
}

// openLots are those of one kind, as Lot.Service and Lot.Left have it.
type openLots struct {
	service string
	left    int64
}

func (f *openFunds) of(service string) int64 {
	for _, o := range f.open {
		if o.service == service {
			return o.left
		}
	}
	return 0
}

func (f *openFunds) set(w *wallet) {
	f.until, f.open = time.Time{}, f.open[:0]
	for _, l := range w.lots {
		if f.until.IsZero() || l.Expires.Before(f.until) {
			f.until = l.Expires
		}
		at := slices.IndexFunc(f.open, func(o openLots) bool { return o.service == l.Service })
		if at < 0 {
			at = len(f.open)
			f.open = append(f.open, openLots{service: l.Service})
		}
		f.open[at].left += l.Left
	}
	for i := range w.holds {
		if h := &w.holds[i]; h.until.Before(f.until) {
			f.until = h.until
		}
	}
}

// maxBalances bounds the accounts that are remembered.
const maxBalances = 100_000

// get returns what is remembered; current is false when that is nothing, or may
// have expired.
func (b *balances) get(account AccountID, service string, now time.Time) (funds Funds, current bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f := b.known[account]
	if f == nil || !now.Before(f.until) {
		return Funds{}, false
	}
	return Funds{Balance: f.of(""), Uses: f.of(service)}, true
}

func (b *balances) writesTo(account AccountID) *atomic.Uint64 {
	_, shard := place(account)
	return &b.writes[shard]
}

// learn remembers what was read from the store, unless the wallet may have been written
// since: seen is the count of writes before the reading.
func (b *balances) learn(account AccountID, w *wallet, seen uint64) bool {
	f := new(openFunds)
	f.set(w)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writesTo(account).Load() != seen {
		return false
	}
	if b.known == nil || len(b.known) >= maxBalances {
		b.known = map[AccountID]*openFunds{}
	}
	b.known[account] = f
	return true
}

// committed takes the wallets that a durable write changed.
func (b *balances) committed(entries []entry) {
	for i := range entries {
		e := &entries[i]
		if Space(e.key[accountHead]) != spaceWallet {
			continue
		}
		account := AccountID(binary.BigEndian.Uint64(e.key[accountHead-8:]))
		b.mu.Lock()
		b.writesTo(account).Add(1)
		if f := b.known[account]; f != nil {
			if e.deleted || b.room.decode(e.value) != nil {
				delete(b.known, account)
			} else {
				f.set(&b.room)
			}
		}
		b.mu.Unlock()
	}
}
