package accounts

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// Something that is unique across accounts comes to be in two durable steps: its
// ids are claimed in the global group, and it is written in its account. Between the
// two the process may die. Then there is a claim that leads to nothing: nobody can
// use it, and it keeps its id from everybody.
//
// Repair ends that. Each claim is noted as pending in the batch that makes it, with the
// moment until which its step two may still come: claimAge later, or, for what somebody
// may come back to with a code, when that code is over (registration_open.go). Of a
// claim past that moment the account is asked, in its own order, whether the thing was
// written. If so, the note goes. If not, the account
// writes down that the claim is given up, and only then claim and note go: a step two
// that comes late finds that line and refuses, so an id that was freed never gets
// two owners. Each step can be repeated, and none needs the one before to have been
// answered.

// claimAge is how long a claim is left alone that nobody can come back to: far beyond
// what a process takes from one step to the next.
const claimAge = time.Hour

var (
	errTaken   = errors.New("accounts: identificador ya usado")
	errValue   = errors.New("accounts: valor guardado ilegible; corra «cotejo verify all» y restaure un respaldo")
	errGivenUp = errors.New("accounts: la operación tardó demasiado y se anuló; repítala")
)

// Claim is an id of the global group that is held for an account.
type Claim struct {
	Account ledger.AccountID
	Made    time.Time
	Due     time.Time // until then Repair leaves it alone

	space ledger.Space // what it is for
	id    [8]byte
	ref   [refLen]byte // of the caller's own id; zeros: it had none
}

const (
	refLen   = 16
	claimLen = 1 + 8 + 8 + 8 + refLen
)

// Purpose is what the claim is for, in Spanish.
func (c *Claim) Purpose() string {
	switch c.space {
	case spaceAccountClaim:
		return "cuenta"
	case spaceOrgClaim:
		return "organización"
	}
	return "llave"
}

// ID is what was claimed, in its public form.
func (c *Claim) ID() string {
	switch c.space {
	case spaceAccountClaim:
		return FormatAccount(c.Account)
	case spaceOrgClaim:
		return FormatOrg(ledger.OrgID(binary.BigEndian.Uint64(c.id[:])))
	}
	return string(c.id[:])
}

func (c *Claim) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, schema), uint64(c.Account))
	dst = appendTime(appendTime(dst, c.Made), c.Due)
	return append(dst, c.ref[:]...)
}

func (c *Claim) decode(space ledger.Space, id, v []byte) error {
	if len(v) != claimLen || v[0] != schema || len(id) != len(c.id) {
		return errValue
	}
	*c = Claim{Account: ledger.AccountID(binary.BigEndian.Uint64(v[1:])), Made: decodeTime(v[9:]), Due: decodeTime(v[17:]), space: space, id: [8]byte(id)}
	copy(c.ref[:], v[25:])
	return nil
}

// pendingKey orders the notes by when they are due.
func (c *Claim) pendingKey() []byte {
	return append(append(appendTime(nil, c.Due), byte(c.space)), c.id[:]...)
}

func (c *Claim) decodePending(k []byte) error {
	if len(k) != 8+1+8 {
		return errValue
	}
	*c = Claim{Due: decodeTime(k), space: ledger.Space(k[8]), id: [8]byte(k[9:])}
	return nil
}

// place is where an account keeps what a claim stands for.
func (c *Claim) place() (ledger.Space, []byte) {
	switch c.space {
	case spaceAccountClaim:
		return spaceAccount, nil
	case spaceOrgClaim:
		return spaceOrg, c.id[:]
	}
	return spaceKey, c.id[:]
}

// refOf hashes a caller's own id; zeros when it has none.
func (s *Service) refOf(ref string) (short [refLen]byte) {
	if ref != "" {
		sum := s.sumOf([]byte("cotejo: referencia " + ref))
		copy(short[:], sum[:])
	}
	return short
}

// claimIDs takes ids for an account: all of them, or none with errTaken. Ids that are
// held already under the same ref are taken again, as of this moment.
type claimIDs struct{ claims []Claim }

func (c claimIDs) Apply(tx *ledger.Tx) (ledger.Result, error) {
	for i := range c.claims {
		claim := &c.claims[i]
		v, err := tx.Get(claim.space, claim.id[:])
		switch {
		case err == nil:
			var held Claim
			if err := held.decode(claim.space, claim.id[:], v); err != nil {
				return nil, err
			}
			if held.ref == [refLen]byte{} || held.ref != claim.ref || held.Account != claim.Account {
				return nil, errTaken
			}
			tx.Delete(spacePending, held.pendingKey())
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
		tx.Put(claim.space, claim.id[:], claim.append(nil))
		tx.Put(spacePending, claim.pendingKey(), []byte{schema})
	}
	return nil, nil
}

// held refuses step two of claims that were given up meanwhile.
func held(tx *ledger.Tx, claims ...Claim) error {
	for i := range claims {
		v, err := tx.Get(spaceGivenUp, claims[i].givenUpKey())
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if len(v) != 9 || v[0] != schema {
			return errValue
		}
		if !claims[i].Made.After(decodeTime(v[1:])) {
			return errGivenUp
		}
	}
	return nil
}

func (c *Claim) givenUpKey() []byte { return append([]byte{byte(c.space)}, c.id[:]...) }

// giveUp asks the account of a claim whether what it stands for was written; from the
// moment of a no on, it cannot be.
type giveUp struct{ Claim }

// Apply returns whether it was written.
func (c giveUp) Apply(tx *ledger.Tx) (ledger.Result, error) {
	space, key := c.place()
	if _, err := tx.Get(space, key); err == nil {
		return true, nil
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	tx.Put(spaceGivenUp, c.givenUpKey(), appendTime([]byte{schema}, c.Made))
	return false, nil
}

// settle takes away the note of a claim and, if nothing was written, the claim. A claim
// that was made again since is left alone.
type settle struct {
	Claim
	written bool
}

func (c settle) Apply(tx *ledger.Tx) (ledger.Result, error) {
	tx.Delete(spacePending, c.pendingKey())
	if c.written {
		return nil, nil
	}
	v, err := tx.Get(c.space, c.id[:])
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	var now Claim
	if err == nil {
		err = now.decode(c.space, c.id[:], v)
	}
	if err == nil && now.Made.Equal(c.Made) {
		tx.Delete(c.space, c.id[:])
	}
	return nil, err
}

// abandon frees claims whose step two was refused. What cannot be freed here, Repair
// frees later.
func (s *Service) abandon(ctx context.Context, claims []Claim) {
	for _, c := range claims {
		_, _ = s.ledger.Do(ctx, ledger.Global, settle{Claim: c})
	}
}

// claimant tells which account claimed an id; ErrNotFound when none did.
func (s *Service) claimant(space ledger.Space, id []byte, what string) (ledger.AccountID, error) {
	v, err := s.ledger.Read(ledger.Global).Get(space, id)
	if err != nil {
		return 0, absent(err, what)
	}
	var c Claim
	if err := c.decode(space, id, v); err != nil {
		return 0, err
	}
	return c.Account, nil
}

// Repaired counts what Repair did.
type Repaired struct {
	Settled int // claims that were followed by their second step
	Freed   int // claims that were not, and are free again
}

// repairChunk bounds how many notes are held in memory at once.
const repairChunk = 1000

// Repair settles the claims that are pending beyond their time: those that lead to
// something lose their note, the others are freed. It may run at any time, also
// beside another one, and be interrupted: what is left is done the next time.
func (s *Service) Repair(ctx context.Context) (done Repaired, err error) {
	for {
		old, err := s.pending(s.now(), repairChunk)
		if err != nil || len(old) == 0 {
			return done, err
		}
		for _, c := range old {
			if err := s.repair(ctx, c, &done); err != nil {
				return done, err
			}
		}
	}
}

func (s *Service) repair(ctx context.Context, noted Claim, done *Repaired) error {
	v, err := s.ledger.Read(ledger.Global).Get(noted.space, noted.id[:])
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	c := noted
	if err == nil {
		if err := c.decode(noted.space, noted.id[:], v); err != nil {
			return err
		}
	}
	if err != nil || !c.Due.Equal(noted.Due) { // freed, or made again under a note of its own
		_, err := s.ledger.Do(ctx, ledger.Global, settle{Claim: noted})
		return err
	}
	written, err := s.ledger.Do(ctx, c.Account, giveUp{c})
	if err != nil {
		return err
	}
	if _, err := s.ledger.Do(ctx, ledger.Global, settle{c, written.(bool)}); err != nil {
		return err
	}
	if written.(bool) {
		done.Settled++
	} else {
		done.Freed++
	}
	return nil
}

var errEnough = errors.New("enough")

// pending lists at most limit notes of claims due before a moment, oldest first.
func (s *Service) pending(before time.Time, limit int) (list []Claim, err error) {
	err = s.ledger.Read(ledger.Global).Scan(spacePending, nil, func(k, _ []byte) error {
		var c Claim
		if err := c.decodePending(k); err != nil {
			return err
		}
		if !c.Due.Before(before) || len(list) == limit {
			return errEnough
		}
		list = append(list, c)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, err
}

// Found is what Check found.
type Found struct {
	// HalfWay are claims beyond their time that lead to nothing: nobody can use them, and
	// the task that repairs them has not run since. At most maxFound are listed.
	HalfWay []Claim
	// Violations are what no interruption explains, in Spanish: a claim that leads to
	// nothing and that nobody noted, something in an account that has no claim. At most
	// maxFound are listed.
	Violations []string
}

const maxFound = 100

// Check lays every claim beside its account and everything that an account holds
// beside its claim. It changes nothing, and may run while others write: what is being
// made meanwhile is younger than what it reports.
func (s *Service) Check(ctx context.Context) (f Found, err error) {
	now := s.now()
	global := s.ledger.Read(ledger.Global)
	var accounts []ledger.AccountID
	for _, space := range []ledger.Space{spaceAccountClaim, spaceOrgClaim, spaceKeyClaim} {
		err := global.Scan(space, nil, func(id, v []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var c Claim
			if err := c.decode(space, id, v); err != nil {
				return err
			}
			if space == spaceAccountClaim {
				accounts = append(accounts, c.Account)
			}
			at, key := c.place()
			_, err := s.ledger.Read(c.Account).Get(at, key)
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if !c.Due.Before(now) {
				return nil
			}
			_, err = global.Get(spacePending, c.pendingKey())
			if err == nil && len(f.HalfWay) < maxFound {
				f.HalfWay = append(f.HalfWay, c)
			}
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			// Unless somebody freed it meanwhile, or made it again.
			if again, err := global.Get(space, id); err == nil && bytes.Equal(again, v) {
				f.violation("%s %s: está reclamada y no existe", c.Purpose(), c.ID())
			} else if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		})
		if err != nil {
			return f, err
		}
	}
	for _, account := range append(accounts, ledger.Global) {
		for _, held := range []struct{ claimed, at ledger.Space }{{spaceOrgClaim, spaceOrg}, {spaceKeyClaim, spaceKey}} {
			err := s.ledger.Read(account).Scan(held.at, nil, func(id, _ []byte) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if len(id) != 8 {
					return errValue
				}
				c := Claim{space: held.claimed, id: [8]byte(id)}
				owner, err := s.claimant(held.claimed, id, c.Purpose())
				if errors.Is(err, ErrNotFound) || err == nil && owner != account {
					f.violation("%s %s: existe en la cuenta %s sin que nadie la reclame", c.Purpose(), c.ID(), FormatAccount(account))
					return nil
				}
				return err
			})
			if err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

func (f *Found) violation(format string, args ...any) {
	if len(f.Violations) < maxFound {
		f.Violations = append(f.Violations, fmt.Sprintf(format, args...))
	}
}
