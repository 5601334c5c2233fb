package accounts

import (
	"encoding/binary"
	"errors"
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
	spaceOrg          ledger.Space = 0x50
	spaceKey          ledger.Space = 0x51
)

const schema = 1

var (
	errTaken = errors.New("accounts: identificador ya usado")
	errValue = errors.New("accounts: valor guardado ilegible; corra «cotejo verify all» y restaure un respaldo")
)

func idKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// claim takes ids in the global group for an account: all of them, or none with
// errTaken. What an id is for is its space.
type claim struct {
	account ledger.AccountID
	ids     []claimedID
}

type claimedID struct {
	space ledger.Space
	id    []byte
}

func (c claim) Apply(tx *ledger.Tx) (ledger.Result, error) {
	for _, id := range c.ids {
		if _, err := tx.Get(id.space, id.id); err == nil {
			return nil, errTaken
		} else if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		tx.Put(id.space, id.id, binary.BigEndian.AppendUint64([]byte{schema}, uint64(c.account)))
	}
	return nil, nil
}

// claimant tells which account claimed an id; ErrNotFound when none did.
func (s *Service) claimant(space ledger.Space, id []byte) (ledger.AccountID, error) {
	v, err := s.ledger.Read(ledger.Global).Get(space, id)
	if err != nil {
		return 0, absent(err)
	}
	if len(v) != 9 || v[0] != schema {
		return 0, errValue
	}
	return ledger.AccountID(binary.BigEndian.Uint64(v[1:])), nil
}

// putOrganization writes what was claimed. Writing it again changes nothing.
type putOrganization struct{ o Organization }

func (c putOrganization) Apply(tx *ledger.Tx) (ledger.Result, error) {
	v := binary.BigEndian.AppendUint64([]byte{schema}, uint64(c.o.Created.UnixNano()))
	tx.Put(spaceOrg, idKey(uint64(c.o.ID)), append(v, c.o.Name...))
	return nil, nil
}

func decodeOrganization(account ledger.AccountID, id ledger.OrgID, v []byte) (Organization, error) {
	if len(v) < 9 || v[0] != schema {
		return Organization{}, errValue
	}
	return Organization{ID: id, Account: account, Created: decodeTime(v[1:]), Name: string(v[9:])}, nil
}

func decodeTime(v []byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(v))).UTC() }

// storedTime is t as decodeTime gives it back.
func storedTime(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }

// storedKey is a key as the account keeps it.
type storedKey struct {
	Key
	hash [hashLen]byte // HMAC-SHA-256 of the whole key under the pepper
}

const storedKeyLen = 1 + hashLen + 8 + 1 + 8

func (k *storedKey) append(dst []byte) []byte {
	dst = append(dst, schema)
	dst = append(dst, k.hash[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.Org))
	dst = append(dst, byte(k.Mode))
	return binary.BigEndian.AppendUint64(dst, uint64(k.Created.UnixNano()))
}

func (k *storedKey) decode(id, v []byte) error {
	if len(v) != storedKeyLen || v[0] != schema {
		return errValue
	}
	copy(k.hash[:], v[1:])
	v = v[1+hashLen:]
	k.Key = Key{ID: string(id), Org: ledger.OrgID(binary.BigEndian.Uint64(v)), Mode: Mode(v[8]), Created: decodeTime(v[9:])}
	return nil
}

// putKey adds a key whose lookup id was claimed.
type putKey struct{ k storedKey }

func (c putKey) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if _, err := tx.Get(spaceOrg, idKey(uint64(c.k.Org))); err != nil {
		return nil, absent(err)
	}
	same := 0
	err := tx.Scan(spaceKey, nil, func(id, v []byte) error {
		var k storedKey
		if err := k.decode(id, v); err != nil {
			return err
		}
		if k.Org == c.k.Org && k.Mode == c.k.Mode {
			same++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if same >= maxKeys {
		return nil, ErrTooManyKeys
	}
	tx.Put(spaceKey, []byte(c.k.ID), c.k.append(nil))
	return nil, nil
}

// Keys lists the keys of an organization, by creation.
func (s *Service) Keys(org ledger.OrgID) ([]Key, error) {
	o, err := s.Organization(org)
	if err != nil {
		return nil, err
	}
	var all []Key
	err = s.ledger.Read(o.Account).Scan(spaceKey, nil, func(id, v []byte) error {
		var k storedKey
		err := k.decode(id, v)
		if err == nil && k.Org == org {
			all = append(all, k.Key)
		}
		return err
	})
	slices.SortStableFunc(all, func(a, b Key) int { return a.Created.Compare(b.Created) })
	return all, err
}
