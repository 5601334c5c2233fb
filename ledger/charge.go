package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"cotejo/store"
)

// Charge records one finished verification and pays for it: record, movement,
// lot changes and the counts of the day are one batch. An individual use of the
// service pays first, package money else. Price 0 records without a movement.
// It refuses with *FundsError when the account cannot pay, with ErrDuplicate
// when the id has a record already, with ErrKeyReused when its Once.Key was used
// for another Content, and a record whose acta does not name its id and the
// SHA-256 of its registro.
type Charge struct {
	Now    time.Time
	Record Record
	// Sum is the SHA-256 of Record.Registro, which the caller has at hand and the
	// acta must name. Only Check computes it again: hashing is the dearest step
	// of a charge.
	Sum   [sha256.Size]byte
	Price int64 // centavos of package money, VAT included
	// Hold, if not 0, is what pays, in the place of the wallet; ErrNoHold when it is
	// not there, *FundsError when it holds too little.
	Hold uint64
	// Once, if set, makes the charge safe to repeat: a charge under the same Once
	// that is younger than OnceLife at Now is found before anything else is looked
	// at, also when the wallet is empty. A refused charge is not remembered.
	Once *Once
}

// Charged is the Result of Credit, CreditUses and Charge. What paid is either
// Centavos or Uses.
type Charged struct {
	Movement uint64 // number of the movement, 0 if none
	Centavos int64  // of package money that were debited (or credited)
	Uses     int64  // individual uses that paid (or were credited)
	Lot      uint64 // that they were of
	UsesLeft int64  // of the service, not expired at Now; known when Uses is not 0
	Balance  int64  // centavos left that have not expired at Now
	// Earlier is set when a charge under the same Once was made before: nothing
	// was written, and its record is the answer.
	Earlier *VerificationID
}

// FundsError refuses a charge: nothing was executed, nothing was charged.
type FundsError struct {
	Service string
	Price   int64 // centavos; 0 is included in a package that is not there
	Balance int64 // centavos that could have paid
	// Of a Hold: how many units were asked for, and how many can be held.
	Wanted, Units int64
}

func (e *FundsError) Error() string {
	if e.Wanted > 0 {
		return fmt.Sprintf("saldo insuficiente para %d consultas de %s: los usos y el saldo alcanzan para %d; abone saldo o pida menos", e.Wanted, e.Service, e.Units)
	}
	if e.Price == 0 {
		return fmt.Sprintf("%s está incluido con saldo de paquete y no queda saldo ni usos; abone y repita la consulta", e.Service)
	}
	return fmt.Sprintf("saldo insuficiente para %s: cuesta %d.%02d MXN y quedan %d.%02d MXN; abone saldo y repita la consulta",
		e.Service, e.Price/100, e.Price%100, e.Balance/100, e.Balance%100)
}

// Apply implements Command, for a Charge that is part of a larger command. Do
// takes the faster way through prepare.
func (c Charge) Apply(tx *Tx) (Result, error) {
	ready, err := c.prepare(tx.seq.l, tx.account)
	if err != nil {
		return nil, err
	}
	defer ready.release()
	return ready.Apply(tx)
}

// prepare checks the charge and codes its record.
func (c Charge) prepare(l *Ledger, account AccountID) (prepared, error) {
	if account == Global {
		return nil, errNoWallet
	}
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	if c.Price < 0 || c.Price > MaxCentavos {
		return nil, fmt.Errorf("ledger: el precio debe ser de 0 a %d centavos, no de %d", MaxCentavos, c.Price)
	}
	if c.Price > 0 && c.Record.Sandbox {
		return nil, errors.New("ledger: una consulta de prueba no se cobra")
	}
	if err := c.valid(l.perm); err != nil {
		return nil, err
	}
	p := preparedCharges.Get().(*preparedCharge)
	p.Charge = c
	if err := p.encode(l, account); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// valid asserts what every later reader relies on.
func (c *Charge) valid(perm *permutation) error {
	r, id := &c.Record, &c.Record.ID
	if id.Prefix == OrderPrefix || !perm.given(id) {
		return fmt.Errorf("ledger: el verification_id %v no salió de NextID", r.ID)
	}
	for _, s := range []string{r.Service, r.Code, r.Operation} {
		if s == "" || len(s) > maxName {
			return fmt.Errorf("ledger: registro %v: servicio, código y operación llevan de 1 a %d bytes", r.ID, maxName)
		}
	}
	if len(r.Registro) == 0 || len(r.Registro) > maxRegistro || len(r.Acta) == 0 || len(r.Acta) > maxActa {
		return fmt.Errorf("ledger: registro %v: el registro lleva de 1 a %d bytes y el acta de 1 a %d", r.ID, maxRegistro, maxActa)
	}
	var room [64]byte
	if !bytes.Contains(r.Acta, r.ID.AppendTo(room[:0])) {
		return fmt.Errorf("ledger: el acta de %v no nombra su verification_id", r.ID)
	}
	if !bytes.Contains(r.Acta, hex.AppendEncode(room[:0], c.Sum[:])) {
		return fmt.Errorf("ledger: el acta de %v no nombra el SHA-256 de su registro", r.ID)
	}
	return nil
}

// preparedCharge is a Charge whose record is coded.
type preparedCharge struct {
	Charge
	text []byte      // registro and acta
	base *dictionary // what code copies from; nil: nothing
	code []byte

	// proposed is set when the account had no dictionary for this operation and
	// edition: the record that is stored first becomes it.
	proposed     *dictionary
	proposedCode []byte // text coded against itself
}

var preparedCharges = sync.Pool{New: func() any { return new(preparedCharge) }}

func (p *preparedCharge) release() {
	const keep = 64 << 10 // a rare large answer must not stay in memory
	if cap(p.text) > keep {
		p.text, p.code = nil, nil
	}
	*p = preparedCharge{text: p.text[:0], code: p.code[:0]}
	preparedCharges.Put(p)
}

func (p *preparedCharge) encode(l *Ledger, account AccountID) error {
	p.text = append(append(p.text[:0], p.Record.Registro...), p.Record.Acta...)
	base, err := l.bases.get(l.Read(account), account, p.Record.Operation, p.Record.Edition)
	switch {
	case err == nil:
		p.base = base
		p.code = base.base.Append(p.code[:0], p.text)
		return nil
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	p.code = plain.Append(p.code[:0], p.text)
	if len(p.text) <= maxDictionary {
		p.proposed = newDictionary(p.Record.Operation, p.Record.Edition, p.text)
		p.proposedCode = p.proposed.base.Append(nil, p.text)
	}
	return nil
}

// Apply implements Command. It writes nothing before it knows that it will not
// refuse.
func (p *preparedCharge) Apply(tx *Tx) (Result, error) {
	r := &p.Record
	var onceRoom [onceKeyLen]byte
	var onceKey []byte
	if p.Once != nil {
		onceKey = appendOnceKey(onceRoom[:0], r.Org, r.Sandbox, p.Once.Key)
		earlier, err := tx.earlier(onceKey, p.Once, p.Now)
		if err != nil {
			return nil, err
		}
		if earlier != nil && earlier.id.Prefix == OrderPrefix {
			return nil, ErrKeyReused
		}
		if earlier != nil {
			return Charged{Earlier: &earlier.id}, nil
		}
	}
	var room [recordKeyLen]byte
	key := appendRecordKey(room[:0], r.Org, r.Sandbox, r.ID)
	if taken, err := tx.hasRecord(key); err != nil {
		return nil, err
	} else if taken {
		return nil, ErrDuplicate
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	var pay means
	if p.Price > 0 {
		var err error
		if pay, err = w.means(p.Now, r.Org, r.Service, p.Price, p.Hold); err != nil {
			return nil, err
		}
	}
	base, code := p.base, p.code
	if p.proposed != nil {
		// Another charge may have been faster: then this record is stored plainly.
		_, err := tx.Get(spaceDictionary, p.proposed.key[:])
		if errors.Is(err, store.ErrNotFound) {
			tx.value = p.proposed.append(tx.value[:0])
			tx.put(spaceDictionary, p.proposed.key[:], tx.value)
			base, code = p.proposed, p.proposedCode
		} else if err != nil {
			return nil, err
		}
	}
	var charged Charged
	if p.Price > 0 {
		m := tx.debit(w, p.Now, KindCharge, r.Org, r.Service, pay)
		m.Record = r.ID
		charged = tx.paid(w, m)
	} else {
		charged.Balance = w.spendable(p.Now)
	}
	if err := tx.addUsage(charged.usage(r.Org, r.Sandbox, tx.ledgerDay(w, p.Now), r.Service)); err != nil {
		return nil, err
	}
	r.Centavos, r.Movement = charged.Centavos, charged.Movement
	tx.value = r.append(tx.value[:0], base, code)
	tx.put(spaceRecord, key, tx.value)
	if p.Once != nil {
		m := mark{content: p.Once.Content, moment: p.Now, id: r.ID}
		tx.value = m.append(tx.value[:0])
		tx.put(spaceOnce, onceKey, tx.value)
	}
	return charged, nil
}

func (tx *Tx) hasRecord(key []byte) (bool, error) {
	tx.key = appendKey(tx.key[:0], tx.account, spaceRecord, key)
	if tx.seq.pending.find(tx.key) != nil || tx.seq.pending.blocks > 0 && tx.pendingRecords(key, 1) {
		return true, nil
	}
	if tx.seq.unused.certainly(key) {
		return false, nil
	}
	return tx.storedRecords(key, 1)
}
