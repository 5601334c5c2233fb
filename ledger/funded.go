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
	open, known := l.balances.get(account)
	if !known {
		seen := l.balances.writes.Load()
		w, err := l.readWallet(account)
		if err != nil {
			return 0, true // whoever reads it next reports the error
		}
		open = w.sum()
		if !l.balances.learn(account, open, seen) {
			return 0, true
		}
	}
	if open >= centavos {
		return open, true
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
	return w, w.decode(v)
}

// balances remembers what the open lots of accounts add up to, expired ones
// included: never less than what can be spent. The sequencer keeps it current.
type balances struct {
	writes atomic.Uint64 // commits that changed a wallet

	mu   sync.RWMutex
	open map[AccountID]int64 // centavos
}

// maxBalances bounds the accounts that are remembered.
const maxBalances = 100_000

func (b *balances) get(account AccountID) (open int64, known bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	open, known = b.open[account]
	return open, known
}

// learn remembers what was read from the store, unless a wallet was written
// since: seen is the count of writes before the reading.
func (b *balances) learn(account AccountID, open int64, seen uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writes.Load() != seen {
		return false
	}
	if b.open == nil || len(b.open) >= maxBalances {
		b.open = map[AccountID]int64{}
	}
	b.open[account] = open
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
		if _, known := b.open[account]; known {
			if e.deleted || w.decode(e.value) != nil {
				delete(b.open, account)
			} else {
				b.open[account] = w.sum()
			}
		}
		b.mu.Unlock()
	}
}
