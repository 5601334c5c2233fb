package ledger

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"cotejo/store"
)

// Funded tells, mostly from memory, whether an account may be able to pay
// centavos at now, so that a request that cannot be paid is refused before it is
// worked on. When ok is false it cannot, and balance is what it has; true may be
// wrong, and then the charge refuses.
func (l *Ledger) Funded(account AccountID, now time.Time, centavos int64) (balance int64, ok bool) {
	have, known := l.balances.get(account)
	if !known {
		seen := l.balances.writes.Load()
		w, err := l.readWallet(account)
		if err != nil {
			return 0, true // whoever reads it next reports the error
		}
		have = w.funds()
		if !l.balances.learn(account, have, seen) {
			return 0, true
		}
	}
	if have.open >= centavos && now.Before(have.until) {
		return have.open, true
	}
	balance, err := l.Balance(account, now)
	if err != nil || balance >= centavos {
		return balance, true
	}
	return balance, false
}

func (l *Ledger) readWallet(account AccountID) (w wallet, err error) {
	v, err := l.Read(account).Get(spaceWallet, nil)
	if errors.Is(err, store.ErrNotFound) {
		return wallet{}, nil
	} else if err != nil {
		return wallet{}, err
	}
	err = w.decode(v)
	return w, err
}

// funds is what the open lots of an account add up to, until the first of them
// expires.
type funds struct {
	open  int64 // centavos
	until time.Time
}

func (w *wallet) funds() (f funds) {
	for _, l := range w.lots {
		f.open += l.Centavos
		if f.until.IsZero() || l.Expires.Before(f.until) {
			f.until = l.Expires
		}
	}
	return f
}

// balances remembers the funds of accounts. The sequencer keeps it current.
type balances struct {
	writes atomic.Uint64 // commits that changed a wallet

	mu    sync.RWMutex
	known map[AccountID]funds
}

// maxBalances bounds the accounts that are remembered.
const maxBalances = 100_000

func (b *balances) get(account AccountID) (f funds, known bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f, known = b.known[account]
	return f, known
}

// learn remembers what was read from the store, unless a wallet was written
// since: seen is the count of writes before the reading.
func (b *balances) learn(account AccountID, f funds, seen uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writes.Load() != seen {
		return false
	}
	if b.known == nil || len(b.known) >= maxBalances {
		b.known = map[AccountID]funds{}
	}
	b.known[account] = f
	return true
}

// committed takes the wallets that a durable write changed.
func (b *balances) committed(entries []entry) {
	for i := range entries {
		e := &entries[i]
		if !isHot(e.key) {
			continue
		}
		var w wallet
		account := AccountID(binary.BigEndian.Uint64(e.key[accountHead-8:]))
		b.mu.Lock()
		b.writes.Add(1)
		if _, known := b.known[account]; known {
			if e.deleted || w.decode(e.value) != nil {
				delete(b.known, account)
			} else {
				b.known[account] = w.funds()
			}
		}
		b.mu.Unlock()
	}
}
