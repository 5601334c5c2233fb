package accounts

import (
	"context"
	"crypto/subtle"
	"errors"

	"cotejo/ledger"
	"cotejo/store"
)

// pepperMark is what the pepper is recognized by: its HMAC is stored once, and
// tells nothing about any key.
const pepperMark = "cotejo: pimienta de las llaves"

// Peppered reports whether the accounts of a ledger already have a pepper: a
// new one would make every key of theirs unknown.
func Peppered(l *ledger.Ledger) (bool, error) {
	_, err := l.Read(ledger.Global).Get(spacePepper, nil)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// CheckPepper compares the service's pepper with the one that these accounts
// were first used with, and remembers it when this is the first use. ErrPepper
// when it is another one. Call it before anything else.
func (s *Service) CheckPepper(ctx context.Context) error {
	m := s.macs.Get().(*mac)
	sum := *m.sum([]byte(pepperMark))
	s.macs.Put(m)
	_, err := s.ledger.Do(ctx, ledger.Global, markPepper{sum})
	return err
}

// PepperFits is CheckPepper for who only looks at the accounts: nil also when they
// were never used.
func (s *Service) PepperFits() error {
	m := s.macs.Get().(*mac)
	sum := *m.sum([]byte(pepperMark))
	s.macs.Put(m)
	v, err := s.ledger.Read(ledger.Global).Get(spacePepper, nil)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return fits(v, &sum)
}

func fits(stored []byte, sum *[hashLen]byte) error {
	switch {
	case len(stored) != 1+hashLen || stored[0] != schema:
		return errValue
	case subtle.ConstantTimeCompare(stored[1:], sum[:]) != 1:
		return ErrPepper
	}
	return nil
}

// markPepper writes the mark, or compares with the one that is there.
type markPepper struct{ sum [hashLen]byte }

func (c markPepper) Apply(tx *ledger.Tx) (ledger.Result, error) {
	v, err := tx.Get(spacePepper, nil)
	switch {
	case errors.Is(err, store.ErrNotFound):
		tx.Put(spacePepper, nil, append([]byte{schema}, c.sum[:]...))
		return nil, nil
	case err != nil:
		return nil, err
	}
	return nil, fits(v, &c.sum)
}
