package accounts

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// What an account that somebody registers is made of. This file alone knows; the
// rest of registering knows only that an account is planned (planAccount), claimed
// (accountPlan.claims) and opened (openAccount).

// accountPlan names everything of an account before any of it exists. Keys get
// their secrets when the account is opened: nobody could be shown older ones.
type accountPlan struct {
	Account ledger.AccountID `json:"cuenta"`
	Org     ledger.OrgID     `json:"org"`
	Live    string           `json:"live"` // lookup ids
	Test    string           `json:"test"`
	Made    int64            `json:"reclamada"` // Unix nanoseconds
	// Due is when the claims may be given up: the code is over by then, so nobody who
	// can still come back finds them gone.
	Due int64 `json:"plazo"`
}

// planAccount draws ids; errTaken for a draw that cannot be used.
func (s *Service) planAccount(now time.Time) (accountPlan, error) {
	p := accountPlan{Made: now.UnixNano()}
	var b [16]byte
	err := s.read(b[:])
	p.Account, p.Org = ledger.AccountID(binary.BigEndian.Uint64(b[8:])), orgOf(b[:])
	for _, to := range []struct {
		mode Mode
		id   *string
	}{{Live, &p.Live}, {Test, &p.Test}} {
		id, errKey := s.newLookup(to.mode, "", 0)
		*to.id, err = string(id[:]), errors.Join(err, errKey)
	}
	if err == nil && (p.Account == ledger.Global || !distinct(p.claims())) {
		err = errTaken
	}
	return p, err
}

// claims are those of the account, of its organization, and of both keys.
func (p *accountPlan) claims() []Claim {
	claim := func(space ledger.Space, id []byte) Claim {
		c := Claim{Account: p.Account, Made: moment(p.Made), Due: moment(p.Due), space: space}
		copy(c.id[:], id)
		return c
	}
	return []Claim{
		claim(spaceAccountClaim, idKey(uint64(p.Account))), claim(spaceOrgClaim, idKey(uint64(p.Org))),
		claim(spaceKeyClaim, []byte(p.Live)), claim(spaceKeyClaim, []byte(p.Test)),
	}
}

// Origin is where a registered account came from.
type Origin struct {
	Registration RegistrationID
	Key          string    // registration key
	Vendor       string    // its code; "" for nobody
	Accepted     time.Time // of the terms
}

// origin is an Origin as the account keeps it.
type origin struct {
	Registration uint64 `json:"registro"`
	Key          string `json:"llave"`
	Vendor       string `json:"vendedor,omitempty"`
	Accepted     int64  `json:"acepto"` // Unix nanoseconds
}

var errOpen = errors.New("accounts: la cuenta ya se abrió")

// openAccount makes a planned account with new keys. errOpen when it exists,
// errGivenUp when it never will.
func (s *Service) openAccount(ctx context.Context, id RegistrationID, r *registration, now time.Time) (Opened, error) {
	var key registrar
	if err := getJSON(s.ledger.Read(ledger.Global), spaceRegistrar, []byte(r.Key), &key); err != nil {
		return Opened{}, err
	}
	p, created := &r.Plan, storedTime(now)
	claims := p.claims()
	o := Organization{ID: p.Org, Account: p.Account, Name: r.Fiscal.LegalName, Created: created}
	opened := Opened{Organization: o}
	c := open{
		origin: origin{uint64(id), r.Key, key.Vendor, r.Accepted},
		account: putAccount{
			a: Account{ID: p.Account, Name: o.Name, Created: created}, orgs: []Organization{o}, fiscal: &r.Fiscal.Fiscal, claims: claims,
		},
	}
	for _, k := range []struct {
		secret *string
		Key
		claim Claim
	}{
		{&opened.Live, Key{ID: p.Live, Org: o.ID, Mode: Live, Created: created}, claims[2]},
		{&opened.Test, Key{ID: p.Test, Org: o.ID.Twin(), Mode: Test, Created: created}, claims[3]},
	} {
		text, err := s.newKey(k.Mode, k.claim.id)
		if err != nil {
			return Opened{}, err
		}
		*k.secret = string(text)
		c.keys = append(c.keys, putKey{k: storedKey{k.Key, s.sumOf(text)}, claim: k.claim})
	}
	if _, err := s.ledger.Do(ctx, o.Account, c); err != nil {
		return Opened{}, err
	}
	for _, k := range c.keys { // as issue does
		_, _ = s.known.lookUp(k.claim.id, created)
	}
	return opened, nil
}

// open writes a planned account whole, in its own shard: this batch decides whose
// keys they are when several confirm at once.
type open struct {
	origin  origin
	account putAccount
	keys    []putKey
}

// Apply implements ledger.Command.
func (c open) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if _, err := tx.Get(spaceAccount, nil); err == nil {
		return nil, errOpen
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if _, err := c.account.Apply(tx); err != nil {
		return nil, err
	}
	for _, k := range c.keys {
		if _, err := k.Apply(tx); err != nil {
			return nil, err
		}
	}
	return nil, putJSON(tx, spaceOrigin, nil, c.origin)
}

// Origin tells where the account of an organization came from; ErrNotFound when
// nobody registered it.
func (s *Service) Origin(org ledger.OrgID) (Origin, error) {
	o, err := s.Organization(org)
	if err != nil {
		return Origin{}, err
	}
	var from origin
	if err := getJSON(s.ledger.Read(o.Account), spaceOrigin, nil, &from); err != nil {
		return Origin{}, err
	}
	return Origin{RegistrationID(from.Registration), from.Key, from.Vendor, moment(from.Accepted)}, nil
}

// opened reports whether a planned account exists. Once a no was given up, it stays no.
func (s *Service) opened(ctx context.Context, p *accountPlan, over bool) (bool, error) {
	if over {
		yes, err := s.ledger.Do(ctx, p.Account, giveUp{p.claims()[0]})
		return err == nil && yes.(bool), err
	}
	_, err := s.ledger.Read(p.Account).Get(spaceAccount, nil)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
