package accounts

import (
	"bytes"
	"context"
	"errors"
	"time"

	"cotejo/ledger"
)

// PrunedRegistrations is what PruneRegistrations did.
type PrunedRegistrations struct {
	Finished  int // accounts that existed, whose registration did not say so
	Abandoned int // claimed and never opened: the address may register again
	Forgotten int // registrations whose code is over
}

// pruneGrace is how long after its end a code counts as over for everybody: a
// confirmation that began before has ended by then.
const pruneGrace = time.Hour

// pruneLength bounds one command.
const pruneLength = 500

// PruneRegistrations finishes what a crash left half-way, gives up what nobody came
// back for, and forgets what is over. It is safe to run at any time and to run
// again; what it does not reach, the next run does.
func (s *Service) PruneRegistrations(ctx context.Context, now time.Time) (done PrunedRegistrations, err error) {
	claimed := map[RegistrationID]registration{}
	var over []RegistrationID
	limit := now.Add(-pruneGrace)
	err = s.eachRegistration(func(id RegistrationID, r *registration) error {
		switch {
		case r.State == RegistrationClaimed:
			claimed[id] = *r
		case r.over(limit):
			over = append(over, id)
		}
		return ctx.Err()
	})
	if err != nil {
		return done, err
	}
	for id, r := range claimed {
		over := r.over(limit)
		opened, err := s.opened(ctx, &r.Plan, over)
		if err == nil && !opened && !over {
			continue // whoever has the code may still come back
		}
		if err == nil {
			_, err = s.ledger.Do(ctx, ledger.Global, settleRegistration{id, opened})
		}
		if err != nil {
			return done, err
		}
		if opened {
			done.Finished++
		} else {
			done.Abandoned++
		}
	}
	for len(over) > 0 {
		n := min(len(over), pruneLength)
		res, err := s.ledger.Do(ctx, ledger.Global, forgetRegistrations{over[:n], limit})
		if err != nil {
			return done, err
		}
		done.Forgotten += res.(int)
		over = over[n:]
	}
	return done, s.pruneAddresses(ctx, now)
}

// forgetRegistrations removes those of these that are over: since they were listed
// a code may have been issued anew.
type forgetRegistrations struct {
	ids   []RegistrationID
	limit time.Time
}

// Apply implements ledger.Command. Its result is how many it removed.
func (c forgetRegistrations) Apply(tx *ledger.Tx) (ledger.Result, error) {
	n := 0
	for _, id := range c.ids {
		r, err := getRegistration(tx, id)
		if errors.Is(err, ErrNoRegistration) || err == nil && (r.State == RegistrationClaimed || !r.over(c.limit)) {
			continue
		} else if err != nil {
			return nil, err
		}
		if r.State == RegistrationPending {
			var key registrar
			err := getJSON(tx, spaceRegistrar, []byte(r.Key), &key)
			if err == nil {
				err = count(tx, &key, -1)
			}
			if err == nil {
				err = putJSON(tx, spaceRegistrar, []byte(r.Key), key)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := remove(tx, id, &r); err != nil {
			return nil, err
		}
		n++
	}
	return n, nil
}

// pruneAddresses forgets the addresses that nobody confirmed and nobody wrote to of
// late.
func (s *Service) pruneAddresses(ctx context.Context, now time.Time) error {
	var idle [][]byte
	err := s.ledger.Read(ledger.Global).Scan(spaceAddress, nil, func(key, v []byte) error {
		var a address
		if err := decodeJSON(v, &a); err != nil {
			return err
		}
		if a.idle(now) {
			idle = append(idle, bytes.Clone(key))
		}
		return ctx.Err()
	})
	for err == nil && len(idle) > 0 {
		n := min(len(idle), pruneLength)
		_, err = s.ledger.Do(ctx, ledger.Global, forgetAddresses{idle[:n], now})
		idle = idle[n:]
	}
	return err
}

func (a *address) idle(now time.Time) bool { return a.Owner == nil && a.Sent.over(now, mailSpan) }

type forgetAddresses struct {
	keys [][]byte
	now  time.Time
}

// Apply implements ledger.Command.
func (c forgetAddresses) Apply(tx *ledger.Tx) (ledger.Result, error) {
	for _, key := range c.keys {
		var a address
		if err := getOrZero(tx, spaceAddress, key, &a); err != nil {
			return nil, err
		}
		if a.idle(c.now) {
			tx.Delete(spaceAddress, key)
		}
	}
	return nil, nil
}
