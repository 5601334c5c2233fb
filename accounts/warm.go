package accounts

import (
	"context"
	"errors"
	"sync"
	"time"

	"cotejo/ledger"
)

// warmers is how many accounts are read at once: as many as a database has connections
// for reading.
const warmers = 8

// Warm reads keys into memory, as many as fit: from then on Recognize and
// RecognizeRegistrar know those that a service of ordinary size has. Whoever makes keys
// adds their own. It costs one scan, and one for each account that has keys, and a read
// or two for each registration key. When they were last used it does not read: their
// next use is noted once more.
func (s *Service) Warm(ctx context.Context) error {
	return errors.Join(s.warmKeys(ctx), s.warmRegistrars(ctx))
}

func (s *Service) warmKeys(ctx context.Context) error {
	now := s.now()
	claimed, err := s.claimedKeys(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	accounts := make(chan ledger.AccountID)
	var readers sync.WaitGroup
	for range warmers {
		readers.Go(func() {
			for account := range accounts {
				if err := s.warm(account, claimed[account], now); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for account := range claimed {
		select {
		case accounts <- account:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(accounts)
	readers.Wait()
	return context.Cause(ctx)
}

// lookup is the lookup id of a key.
type lookup = [lookupLen]byte

// claimedKeys lists the ids of at most maxKnown keys by account.
func (s *Service) claimedKeys(ctx context.Context) (map[ledger.AccountID]map[lookup]bool, error) {
	claimed, n := map[ledger.AccountID]map[lookup]bool{}, 0
	err := s.ledger.Read(ledger.Global).Scan(spaceKeyClaim, nil, func(id, v []byte) error {
		var c Claim
		if err := errors.Join(ctx.Err(), c.decode(spaceKeyClaim, id, v)); err != nil {
			return err
		}
		if n++; n > maxKnown {
			return errEnough
		}
		if claimed[c.Account] == nil {
			claimed[c.Account] = map[lookup]bool{}
		}
		claimed[c.Account][c.id] = true
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return claimed, err
}

// warm reads the keys of one account.
func (s *Service) warm(account ledger.AccountID, claimed map[lookup]bool, now time.Time) error {
	drops := s.known.dropped()
	return s.eachKey(account, func(k *storedKey) error {
		id := lookup([]byte(k.ID))
		if !claimed[id] || !k.Active(now) {
			return nil
		}
		if !s.known.remember(id, k.known(account, time.Time{}, now), drops) {
			_, err := s.known.lookUp(id, now)
			return err
		}
		return nil
	})
}

func (s *Service) warmRegistrars(ctx context.Context) error {
	now, n := s.now(), 0
	err := s.ledger.Read(ledger.Global).Scan(spaceRegistrar, nil, func(id, _ []byte) error {
		if len(id) != lookupLen {
			return errValue
		}
		if n++; n > maxKnown {
			return errEnough
		}
		_, err := s.registrars.lookUp(lookup(id), now)
		return errors.Join(ctx.Err(), err)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}
