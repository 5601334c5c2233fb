package accounts

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// When a key was last used is known to the hour: one write for each key and hour, for
// many keys at once, and none of it in the way of a request. A process that is killed
// loses what was not saved yet.

const (
	// useEvery is how far apart two notes of one key are, in seconds.
	useEvery = 3600
	// maxUses bounds the notes that wait; with more, some are not taken.
	maxUses = 100_000
	// usesChunk bounds the notes of one write.
	usesChunk = 1000
)

// keyUses are the notes that wait to be saved, in unix seconds.
type keyUses struct {
	mu   sync.Mutex
	byID map[[lookupLen]byte]int64 // under mu
}

func (u *keyUses) note(id [lookupLen]byte, at int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byID == nil {
		u.byID = make(map[[lookupLen]byte]int64)
	}
	if was, there := u.byID[id]; there && was < at || !there && len(u.byID) < maxUses {
		u.byID[id] = at
	}
}

// take empties the notes.
func (u *keyUses) take() map[[lookupLen]byte]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.byID
	u.byID = nil
	return all
}

// noteUse notes the first use of a key in an hour.
func (s *Service) noteUse(id [lookupLen]byte, known *knownKey, now time.Time) {
	last, at := known.used.Load(), now.Unix()
	if at-last < useEvery || !known.used.CompareAndSwap(last, at) {
		return
	}
	s.uses.note(id, at)
}

// SaveUses writes down when keys were last used. Call it every minute or so, and once
// more at the end.
func (s *Service) SaveUses(ctx context.Context) error {
	all := s.uses.take()
	for len(all) > 0 {
		c := putUses{}
		for id, at := range all {
			c = append(c, keyUse{id, at})
			delete(all, id)
			if len(c) == usesChunk {
				break
			}
		}
		if _, err := s.ledger.Do(ctx, ledger.Global, c); err != nil {
			for _, use := range c {
				s.uses.note(use.id, use.at)
			}
			for id, at := range all {
				s.uses.note(id, at)
			}
			return err
		}
	}
	return nil
}

type keyUse struct {
	id [lookupLen]byte
	at int64
}

type putUses []keyUse

func (c putUses) Apply(tx *ledger.Tx) (ledger.Result, error) {
	for _, use := range c {
		tx.Put(spaceKeyUse, use.id[:], binary.BigEndian.AppendUint64([]byte{schema}, uint64(use.at)))
	}
	return nil, nil
}

// lastUsed is the last use that was noted, saved or not; zero when there is none.
func (s *Service) lastUsed(id string) (time.Time, error) {
	s.uses.mu.Lock()
	at, waits := s.uses.byID[[lookupLen]byte([]byte(id))]
	s.uses.mu.Unlock()
	if !waits {
		v, err := s.ledger.Read(ledger.Global).Get(spaceKeyUse, []byte(id))
		if errors.Is(err, store.ErrNotFound) {
			return time.Time{}, nil
		}
		if err != nil {
			return time.Time{}, err
		}
		if len(v) != 9 || v[0] != schema {
			return time.Time{}, errValue
		}
		at = int64(binary.BigEndian.Uint64(v[1:]))
	}
	return time.Unix(at, 0).UTC(), nil
}
