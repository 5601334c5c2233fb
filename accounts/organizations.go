package accounts

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// The layout, as the package comment has it.
const (
	spaceAccountClaim ledger.Space = 0x40
	spaceOrgClaim     ledger.Space = 0x41
	spaceKeyClaim     ledger.Space = 0x42
	spacePepper       ledger.Space = 0x43
	spacePending      ledger.Space = 0x44
	spaceKeyUse       ledger.Space = 0x45
	spaceOrg          ledger.Space = 0x50
	spaceKey          ledger.Space = 0x51
	spaceAccount      ledger.Space = 0x52
	spaceGivenUp      ledger.Space = 0x54
)

const schema = 2

// Account is a mother account: one wallet, one or more organizations.
type Account struct {
	ID      ledger.AccountID
	Name    string
	Created time.Time
}

// Organization is a legal entity that owns data, or its twin for tests.
type Organization struct {
	ID      ledger.OrgID
	Account ledger.AccountID
	Name    string
	Created time.Time
}

// AccountRequest says what account to create.
type AccountRequest struct {
	// Name is that of the account and of its first organization: 1 to 300 characters, none
	// of them a control character.
	Name string
	// Entities are the names of further organizations.
	Entities []string
	// Fiscal is what the first organization is invoiced with, as ReadFiscal returned it
	// without faults; nil when it is not known yet.
	Fiscal *Fiscal
	// Ref, 1 to 200 bytes, is the caller's own id of what it is doing; "" when it has none.
	// Asked again with the same one, CreateAccount finishes what was begun, or returns what
	// is there already.
	Ref string
}

// CreateAccount creates a mother account with its organizations, the one with the name
// of the account first: all of it or nothing.
func (s *Service) CreateAccount(ctx context.Context, r AccountRequest) (Account, []Organization, error) {
	fail := func(err error) (Account, []Organization, error) { return Account{}, nil, err }
	if err := validText("nombre", r.Name, maxName); err != nil {
		return fail(err)
	}
	for _, name := range r.Entities {
		if err := validText("entidad", name, maxName); err != nil {
			return fail(err)
		}
	}
	if len(r.Entities) >= maxOrganizations {
		return fail(ErrTooManyOrganizations)
	}
	if err := validRef(r.Ref); err != nil {
		return fail(err)
	}
	made := storedTime(s.now())
	for try := range maxTries {
		var ids [16]byte
		if err := s.idBytes("cuenta", r.Ref, try, ids[:]); err != nil {
			return fail(err)
		}
		a := Account{ID: ledger.AccountID(binary.BigEndian.Uint64(ids[8:])), Name: r.Name, Created: made}
		if a.ID == ledger.Global {
			continue
		}
		orgs := []Organization{{ID: orgOf(ids[:]), Account: a.ID, Name: r.Name, Created: made}}
		for i, name := range r.Entities {
			if err := s.idBytes(fmt.Sprintf("entidad %d", i+1), r.Ref, try, ids[:8]); err != nil {
				return fail(err)
			}
			// A nanosecond apart: lists are in the order in which they were named.
			created := made.Add(time.Duration(i + 1))
			orgs = append(orgs, Organization{ID: orgOf(ids[:]), Account: a.ID, Name: name, Created: created})
		}
		claims := []Claim{s.claim(spaceAccountClaim, uint64(a.ID), a.ID, made, r.Ref)}
		for _, o := range orgs {
			claims = append(claims, s.claim(spaceOrgClaim, uint64(o.ID), a.ID, made, r.Ref))
		}
		if !distinct(claims) {
			continue
		}
		_, err := s.ledger.Do(ctx, ledger.Global, claimIDs{claims})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return fail(err)
		}
		stored, err := s.ledger.Do(ctx, a.ID, putAccount{a, orgs, r.Fiscal, claims})
		if err != nil {
			return fail(err)
		}
		is := stored.(putAccount)
		return is.a, is.orgs, nil
	}
	return fail(errNoFreeID)
}

// orgOf makes a legal entity's id of random bytes.
func orgOf(b []byte) ledger.OrgID { return ledger.OrgID(binary.BigEndian.Uint64(b)).Entity() }

func (s *Service) claim(space ledger.Space, id uint64, account ledger.AccountID, made time.Time, ref string) Claim {
	return newClaim(space, [8]byte(idKey(id)), account, made, s.refOf(ref))
}

// newClaim is one that nobody can come back to.
func newClaim(space ledger.Space, id [8]byte, account ledger.AccountID, made time.Time, ref [refLen]byte) Claim {
	return Claim{Account: account, Made: made, Due: made.Add(claimAge), space: space, id: id, ref: ref}
}

// distinct refuses ids that are not ids, or come twice.
func distinct(claims []Claim) bool {
	for i := range claims {
		if claims[i].id == [8]byte{} || slices.ContainsFunc(claims[:i], func(c Claim) bool { return c.space == claims[i].space && c.id == claims[i].id }) {
			return false
		}
	}
	return true
}

func validRef(ref string) error {
	if len(ref) > maxRef {
		return fmt.Errorf("%w: referencia: ocupa %d bytes; a lo más %d", ErrInvalid, len(ref), maxRef)
	}
	return nil
}

// putAccount writes what was claimed. Written before, it stays what it is.
type putAccount struct {
	a      Account
	orgs   []Organization
	fiscal *Fiscal // of the first
	claims []Claim
}

// Apply returns what is stored, as a putAccount.
func (c putAccount) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if err := held(tx, c.claims...); err != nil {
		return nil, err
	}
	v, err := tx.Get(spaceAccount, nil)
	if err == nil {
		is := putAccount{orgs: make([]Organization, len(c.orgs))}
		if is.a, err = decodeAccount(c.a.ID, v); err != nil {
			return nil, err
		}
		for i, o := range c.orgs {
			if v, err = tx.Get(spaceOrg, idKey(uint64(o.ID))); err != nil {
				return nil, absent(err, "la organización "+FormatOrg(o.ID))
			}
			if is.orgs[i], err = decodeOrganization(o.Account, o.ID, v); err != nil {
				return nil, err
			}
		}
		return is, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	tx.Put(spaceAccount, nil, named(c.a.Created, c.a.Name))
	for _, o := range c.orgs {
		tx.Put(spaceOrg, idKey(uint64(o.ID)), named(o.Created, o.Name))
	}
	if c.fiscal != nil {
		f := *c.fiscal
		f.Updated = c.a.Created
		tx.Put(spaceFiscal, idKey(uint64(c.orgs[0].ID)), f.append(nil))
	}
	return c, nil
}

// OrganizationRequest says what organization to add.
type OrganizationRequest struct {
	Account ledger.AccountID
	Name    string // as in AccountRequest
	Ref     string // as in AccountRequest
}

// AddOrganization adds a legal entity, and its twin for tests, to an account.
// ErrNotFound when the account does not exist, ErrTooManyOrganizations when it has a
// hundred.
func (s *Service) AddOrganization(ctx context.Context, r OrganizationRequest) (Organization, error) {
	if err := validText("nombre", r.Name, maxName); err != nil {
		return Organization{}, err
	}
	if err := validRef(r.Ref); err != nil {
		return Organization{}, err
	}
	if _, err := s.Account(r.Account); err != nil {
		return Organization{}, err
	}
	made := storedTime(s.now())
	for try := range maxTries {
		var id [8]byte
		if err := s.idBytes("organización de "+FormatAccount(r.Account), r.Ref, try, id[:]); err != nil {
			return Organization{}, err
		}
		o := Organization{ID: orgOf(id[:]), Account: r.Account, Name: r.Name, Created: made}
		claims := []Claim{s.claim(spaceOrgClaim, uint64(o.ID), o.Account, made, r.Ref)}
		if !distinct(claims) {
			continue
		}
		_, err := s.ledger.Do(ctx, ledger.Global, claimIDs{claims})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return Organization{}, err
		}
		stored, err := s.ledger.Do(ctx, o.Account, putOrganization{o, claims[0]})
		if errors.Is(err, ErrTooManyOrganizations) || errors.Is(err, ErrNotFound) {
			s.abandon(ctx, claims)
		}
		if err != nil {
			return Organization{}, err
		}
		return stored.(Organization), nil
	}
	return Organization{}, errNoFreeID
}

// putOrganization writes what was claimed. Written before, it stays what it is.
type putOrganization struct {
	o     Organization
	claim Claim
}

// Apply returns the Organization that is stored.
func (c putOrganization) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if err := held(tx, c.claim); err != nil {
		return nil, err
	}
	if _, err := tx.Get(spaceAccount, nil); err != nil {
		return nil, absent(err, "la cuenta "+FormatAccount(c.o.Account))
	}
	key := idKey(uint64(c.o.ID))
	v, err := tx.Get(spaceOrg, key)
	if err == nil {
		return decodeOrganization(c.o.Account, c.o.ID, v)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	n := 0
	if err := tx.Scan(spaceOrg, nil, func(_, _ []byte) error { n++; return nil }); err != nil {
		return nil, err
	}
	if n >= maxOrganizations {
		return nil, ErrTooManyOrganizations
	}
	tx.Put(spaceOrg, key, named(c.o.Created, c.o.Name))
	return c.o, nil
}

// Account finds an account by id.
func (s *Service) Account(id ledger.AccountID) (Account, error) {
	what := "la cuenta " + FormatAccount(id)
	if _, err := s.claimant(spaceAccountClaim, idKey(uint64(id)), what); err != nil {
		return Account{}, err
	}
	v, err := s.ledger.Read(id).Get(spaceAccount, nil)
	if err != nil {
		return Account{}, absent(err, what)
	}
	return decodeAccount(id, v)
}

// Accounts lists all, by creation, unless ctx ends before.
func (s *Service) Accounts(ctx context.Context) ([]Account, error) {
	var all []Account
	err := s.ledger.Read(ledger.Global).Scan(spaceAccountClaim, nil, func(key, _ []byte) error {
		if len(key) != 8 {
			return errValue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := s.Account(ledger.AccountID(binary.BigEndian.Uint64(key)))
		if errors.Is(err, ErrNotFound) {
			return nil // claimed only
		}
		all = append(all, a)
		return err
	})
	slices.SortFunc(all, func(a, b Account) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// Organization finds a legal entity, or its twin for tests, by id in any account.
func (s *Service) Organization(id ledger.OrgID) (Organization, error) {
	what, key := "la organización "+FormatOrg(id), idKey(uint64(id.Entity()))
	account, err := s.claimant(spaceOrgClaim, key, what)
	if err != nil {
		return Organization{}, err
	}
	v, err := s.ledger.Read(account).Get(spaceOrg, key)
	if err != nil {
		return Organization{}, absent(err, what)
	}
	return decodeOrganization(account, id, v)
}

// Organizations lists the legal entities of an account, by creation: not their twins.
// It has none when the account does not exist.
func (s *Service) Organizations(account ledger.AccountID) ([]Organization, error) {
	var all []Organization
	err := s.ledger.Read(account).Scan(spaceOrg, nil, func(key, v []byte) error {
		if len(key) != 8 {
			return errValue
		}
		o, err := decodeOrganization(account, ledger.OrgID(binary.BigEndian.Uint64(key)), v)
		all = append(all, o)
		return err
	})
	slices.SortFunc(all, func(a, b Organization) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

func idKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// named is the value of an account or organization.
func named(created time.Time, name string) []byte {
	return append(appendTime([]byte{schema}, created), name...)
}

func decodeNamed(v []byte) (created time.Time, name string, err error) {
	if len(v) < 9 || v[0] != schema {
		return time.Time{}, "", errValue
	}
	return decodeTime(v[1:]), string(v[9:]), nil
}

func decodeAccount(id ledger.AccountID, v []byte) (a Account, err error) {
	a.ID = id
	a.Created, a.Name, err = decodeNamed(v)
	return a, err
}

func decodeOrganization(account ledger.AccountID, id ledger.OrgID, v []byte) (o Organization, err error) {
	o.ID, o.Account = id, account
	o.Created, o.Name, err = decodeNamed(v)
	return o, err
}

// appendTime appends a moment, zeros for none.
func appendTime(dst []byte, t time.Time) []byte {
	var n uint64
	if !t.IsZero() {
		n = uint64(t.UnixNano())
	}
	return binary.BigEndian.AppendUint64(dst, n)
}

// decodeTime reads what appendTime wrote at the beginning of v.
func decodeTime(v []byte) time.Time {
	n := binary.BigEndian.Uint64(v)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// storedTime is t as decodeTime gives it back.
func storedTime(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }
