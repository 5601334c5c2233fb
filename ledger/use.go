package ledger

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// Bounds of a use, in bytes.
const (
	maxBasis  = 1000
	maxAnswer = 64 << 10
)

// Use pays for an answer of which no record is kept: its movement says which
// service was used, of what input, and what the answer rests on. An individual use
// of the service pays first, package money else. A Price of 0 is included in the
// package: while there is package money the answer is counted and nothing pays.
// It refuses with *FundsError when the account cannot pay.
type Use struct {
	Now     time.Time
	Org     OrgID
	Service string
	Price   int64             // centavos of package money, VAT included
	Input   [sha256.Size]byte // keyed hash of what was asked; zero keeps nothing of it
	Hold    uint64            // that pays; see Charge
	Basis   string            // tables and their versions; may be empty
	// Once, if set, makes the use safe to repeat; Answer is kept for that, unless
	// nothing paid.
	Once   *Once
	Answer []byte
}

// Used is the Result of Use.
type Used struct {
	Charged
	// Answer is set when a use under the same Once was paid before: nothing was
	// written, and it is that answer.
	Answer []byte
}

// Apply implements Command. Its result is a Used.
func (u Use) Apply(tx *Tx) (Result, error) {
	if err := u.valid(tx.account); err != nil {
		return nil, err
	}
	var room [onceKeyLen]byte
	var key []byte
	if u.Once != nil {
		key = appendOnceKey(room[:0], u.Org, false, u.Once.Key)
		earlier, err := tx.earlier(key, u.Once, u.Now)
		if err != nil {
			return nil, err
		}
		if earlier != nil {
			return Used{Answer: earlier.answer}, nil
		}
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	var charged Charged
	if charged.Balance = w.spendable(u.Now); u.Price > 0 || charged.Balance == 0 {
		pay, err := w.means(u.Now, u.Org, u.Service, u.Price, u.Hold)
		if err != nil {
			return nil, err
		}
		m := tx.debit(w, u.Now, KindUse, u.Org, u.Service, pay)
		m.Input, m.Basis = u.Input, u.Basis
		charged = tx.paid(w, m)
	}
	if err := tx.addUsage(charged.usage(u.Org, false, tx.ledgerDay(w, u.Now), u.Service)); err != nil {
		return nil, err
	}
	if u.Once != nil && charged.Movement != 0 {
		k := mark{content: u.Once.Content, moment: u.Now, answer: u.Answer}
		tx.value = k.append(tx.value[:0])
		tx.put(spaceOnce, key, tx.value)
	}
	return Used{Charged: charged}, nil
}

func (u *Use) valid(account AccountID) error {
	if account == Global {
		return errNoWallet
	}
	if err := validMoment(u.Now); err != nil {
		return err
	}
	switch {
	case u.Price < 0 || u.Price > MaxCentavos:
		return fmt.Errorf("ledger: el precio de un uso debe ser de 0 a %d centavos, no de %d", MaxCentavos, u.Price)
	case u.Price == 0 && u.Hold != 0:
		return errors.New("ledger: lo que está incluido no se retiene")
	case u.Service == "" || len(u.Service) > maxName:
		return fmt.Errorf("ledger: el servicio lleva de 1 a %d bytes", maxName)
	case len(u.Basis) > maxBasis:
		return fmt.Errorf("ledger: las tablas de un uso pasan de %d bytes", maxBasis)
	case u.Once != nil && (len(u.Answer) == 0 || len(u.Answer) > maxAnswer):
		return fmt.Errorf("ledger: la respuesta de un uso repetible lleva de 1 a %d bytes", maxAnswer)
	}
	return nil
}
