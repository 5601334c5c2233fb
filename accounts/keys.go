package accounts

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// Mode tells what a key may see.
type Mode byte

const (
	Live      Mode = iota + 1 // prefix svc_live_: real sources, consumes the wallet
	Test                      // prefix svc_test_: the sandbox edition, never charged
	Admin                     // prefix svc_admin_: the operator's reports, no organization's data
	Registrar                 // prefix svc_reg_: makes accounts and sees none (RegistrationKey)
)

// Limits of keys.
const (
	maxKeys  = 10 // active ones of one mode, for one organization; those in their grace apart
	maxOnly  = 64 // operations that a key is limited to
	maxGrace = 30 * 24 * time.Hour
)

// Key describes an API key; the key itself is known only to its holder.
type Key struct {
	ID      string       // lookup part: safe to log
	Org     ledger.OrgID // a twin's for Test, 0 for Admin
	Mode    Mode
	Created time.Time
	Only    []string // ids of the operations that it is limited to; nil: all of its mode
	// Until is when a key that was rotated ends, and Successor the key in its place.
	Until       time.Time
	Successor   string
	Deactivated time.Time
	// LastUsed is true to the hour; zero when the key was never used.
	LastUsed time.Time
}

// Active reports whether the key is let in at a moment.
func (k *Key) Active(now time.Time) bool {
	return k.Deactivated.IsZero() && (k.Until.IsZero() || now.Before(k.Until))
}

// KeyRequest says what key to create.
type KeyRequest struct {
	Org  ledger.OrgID // the legal entity; its twin will do for Test; 0 for Admin
	Mode Mode
	// Only limits the key to operations, by their ids, which the caller has found to exist:
	// at most 64. Empty: all of its mode.
	Only []string
	// Ref, 1 to 200 bytes, is the caller's own id of what it is doing; "" when it has none.
	// Asked again with the same one, CreateKey gives the same key another secret: the one
	// that was given before, which may have been lost on the way, ends.
	Ref string
}

// CreateKey returns the key itself, once, and its description. ErrNotFound when the
// organization does not exist, ErrTooManyKeys when it has ten of the mode.
func (s *Service) CreateKey(ctx context.Context, r KeyRequest) (secret string, key Key, err error) {
	if err := validRef(r.Ref); err != nil {
		return "", Key{}, err
	}
	only, err := validOnly(r.Only)
	if err != nil {
		return "", Key{}, err
	}
	key = Key{Mode: r.Mode, Only: only}
	account := ledger.Global
	switch r.Mode {
	case Live, Test:
		if r.Mode == Live && r.Org.Sandbox() {
			return "", Key{}, fmt.Errorf("%w: modo: %s es de pruebas y solo tiene llaves test; la organización es %s", ErrInvalid, FormatOrg(r.Org), FormatOrg(r.Org.Twin()))
		}
		o, err := s.Organization(r.Org)
		if err != nil {
			return "", Key{}, err
		}
		account, key.Org = o.Account, o.ID.Entity()
		if r.Mode == Test {
			key.Org = key.Org.Twin()
		}
	case Admin:
		if r.Org != 0 {
			return "", Key{}, fmt.Errorf("%w: organización: una llave de administración no es de ninguna", ErrInvalid)
		}
	default:
		return "", Key{}, fmt.Errorf("%w: modo: use live, test o admin", ErrInvalid)
	}
	// Counted before a lookup id is claimed, so that a refusal leaves nothing; and once
	// more by putKey, because two may ask at once. Of a key that is there it counts none.
	if r.Ref == "" {
		active, now := 0, s.now()
		err = s.eachKey(account, func(k *storedKey) error {
			active += k.counts(&key, now)
			return nil
		})
		if err == nil && active >= maxKeys {
			err = ErrTooManyKeys
		}
		if err != nil {
			return "", Key{}, err
		}
	}
	return s.issue(ctx, account, putKey{k: storedKey{Key: key}}, r.Ref)
}

// issue claims a lookup id and writes the key of c under it.
func (s *Service) issue(ctx context.Context, account ledger.AccountID, c putKey, ref string) (secret string, key Key, err error) {
	made := storedTime(s.now())
	for try := range maxTries {
		id, err := s.newLookup(c.k.Mode, ref, try)
		if err != nil {
			return "", Key{}, err
		}
		c.claim = newClaim(spaceKeyClaim, id, account, made, s.refOf(ref))
		_, err = s.ledger.Do(ctx, ledger.Global, claimIDs{[]Claim{c.claim}})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return "", Key{}, err
		}
		text, err := s.newKey(c.k.Mode, id)
		if err != nil {
			return "", Key{}, err
		}
		c.k.ID, c.k.Created, c.k.hash = string(id[:]), made, s.sumOf(text)
		_, err = s.ledger.Do(ctx, account, c)
		s.known.drop(id) // a repeated Ref has another hash
		if errors.Is(err, ErrTooManyKeys) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) && c.old != "" {
			s.abandon(ctx, []Claim{c.claim})
		}
		if err != nil {
			return "", Key{}, err
		}
		// Its first request is not a stranger's; what fails here is asked again then.
		_, _ = s.known.lookUp(id, made)
		return string(text), c.k.Key, nil
	}
	return "", Key{}, errNoFreeID
}

// RotateKey puts a new key, of the same organization, mode and operations, in the place
// of one that is active. The old one is good for a grace of 0 to 30 days more.
// ErrNotFound when there is no such key, ErrInvalid when it is not active or was rotated
// already.
func (s *Service) RotateKey(ctx context.Context, id string, grace time.Duration) (secret string, key Key, err error) {
	if grace < 0 || grace > maxGrace {
		return "", Key{}, fmt.Errorf("%w: gracia: de 0 a 720 horas", ErrInvalid)
	}
	account, old, err := s.key(id)
	if err != nil {
		return "", Key{}, err
	}
	defer s.known.drop([lookupLen]byte([]byte(id)))
	now := storedTime(s.now())
	if err := old.rotatable(now); err != nil {
		return "", Key{}, err
	}
	return s.issue(ctx, account, putKey{
		k:   storedKey{Key: Key{Org: old.Org, Mode: old.Mode, Only: old.Only}},
		old: id, until: now.Add(grace),
	}, "")
}

// DeactivateKey ends a key. When it returns, no request is let in with it any more, and
// other nodes follow within maxStale. A key that has ended already stays as it is.
// ErrNotFound when there is no such key.
func (s *Service) DeactivateKey(ctx context.Context, id string) (Key, error) {
	account, _, err := s.key(id)
	if err != nil {
		return Key{}, err
	}
	// Whatever becomes of the write: what is remembered can be read again.
	defer s.known.drop([lookupLen]byte([]byte(id)))
	res, err := s.ledger.Do(ctx, account, deactivate{id, storedTime(s.now())})
	if err != nil {
		return Key{}, err
	}
	k := res.(Key)
	k.LastUsed, err = s.lastUsed(id)
	return k, err
}

// Key finds a key by its lookup id, whatever became of it.
func (s *Service) Key(id string) (Key, error) {
	_, k, err := s.key(id)
	if err != nil {
		return Key{}, err
	}
	k.LastUsed, err = s.lastUsed(id)
	return k.Key, err
}

// Keys lists the keys of an organization and of its twin, by creation, whatever became
// of them.
func (s *Service) Keys(org ledger.OrgID) ([]Key, error) {
	o, err := s.Organization(org)
	if err != nil {
		return nil, err
	}
	return s.keys(o.Account, func(k *storedKey) bool { return k.Org.Entity() == org.Entity() })
}

// AdminKeys lists the operator's keys, by creation, whatever became of them.
func (s *Service) AdminKeys() ([]Key, error) {
	return s.keys(ledger.Global, func(*storedKey) bool { return true })
}

func (s *Service) keys(account ledger.AccountID, wanted func(*storedKey) bool) ([]Key, error) {
	var all []Key
	err := s.eachKey(account, func(k *storedKey) (err error) {
		if wanted(k) {
			k.LastUsed, err = s.lastUsed(k.ID)
			all = append(all, k.Key)
		}
		return err
	})
	slices.SortStableFunc(all, func(a, b Key) int { return a.Created.Compare(b.Created) })
	return all, err
}

func (s *Service) eachKey(account ledger.AccountID, fn func(*storedKey) error) error {
	return s.ledger.Read(account).Scan(spaceKey, nil, func(id, v []byte) error {
		var k storedKey
		if err := k.decode(id, v); err != nil {
			return err
		}
		return fn(&k)
	})
}

// key finds a key by its lookup id.
func (s *Service) key(id string) (ledger.AccountID, storedKey, error) {
	if len(id) != lookupLen || !isLookup([]byte(id)) {
		return 0, storedKey{}, fmt.Errorf("%w: llave: use su identificador, los 8 caracteres que muestra «cotejo keys list»", ErrInvalid)
	}
	what := "la llave " + id
	account, err := s.claimant(spaceKeyClaim, []byte(id), what)
	if err != nil {
		return 0, storedKey{}, err
	}
	v, err := s.ledger.Read(account).Get(spaceKey, []byte(id))
	if err != nil {
		return 0, storedKey{}, absent(err, what)
	}
	var k storedKey
	return account, k, k.decode([]byte(id), v)
}

// validOnly refuses ids that no operation can have, and returns them in order.
func validOnly(ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if len(ids) > maxOnly {
		return nil, fmt.Errorf("%w: operaciones: son %d; a lo más %d", ErrInvalid, len(ids), maxOnly)
	}
	only := slices.Clone(ids)
	slices.Sort(only)
	for _, id := range only {
		letters := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
		if id == "" || len(id) > 64 || strings.ContainsFunc(id, letters) {
			return nil, fmt.Errorf("%w: operaciones: «%.64s» no es el identificador de una operación", ErrInvalid, id)
		}
	}
	return slices.Compact(only), nil
}

// storedKey is a key as the account keeps it.
type storedKey struct {
	Key
	hash [hashLen]byte // HMAC-SHA-256 of the whole key under the pepper
}

// storedKeyLen is without successor and operations.
const storedKeyLen = 1 + hashLen + 8 + 1 + 8 + 8 + 8 + 1

func (k *storedKey) append(dst []byte) []byte {
	dst = append(append(dst, schema), k.hash[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.Org))
	dst = append(dst, byte(k.Mode))
	dst = appendTime(appendTime(appendTime(dst, k.Created), k.Until), k.Deactivated)
	dst = append(append(dst, byte(len(k.Successor))), k.Successor...)
	return append(dst, strings.Join(k.Only, ",")...)
}

func (k *storedKey) decode(id, v []byte) error {
	if len(v) < storedKeyLen || v[0] != schema {
		return errValue
	}
	copy(k.hash[:], v[1:])
	v = v[1+hashLen:]
	k.Key = Key{
		ID: string(id), Org: ledger.OrgID(binary.BigEndian.Uint64(v)), Mode: Mode(v[8]),
		Created: decodeTime(v[9:]), Until: decodeTime(v[17:]), Deactivated: decodeTime(v[25:]),
	}
	n, v := int(v[33]), v[34:]
	if n > len(v) {
		return errValue
	}
	k.Successor = string(v[:n])
	if v = v[n:]; len(v) > 0 {
		k.Only = strings.Split(string(v), ",")
	}
	return nil
}

// counts is 1 for a key that takes one of the places of another's kind.
func (k *storedKey) counts(other *Key, now time.Time) int {
	if k.Org == other.Org && k.Mode == other.Mode && k.ID != other.ID && k.Active(now) && k.Until.IsZero() {
		return 1
	}
	return 0
}

func (k *storedKey) rotatable(now time.Time) error {
	if !k.Active(now) {
		return fmt.Errorf("%w: llave: %s ya no está activa; cree otra", ErrInvalid, k.ID)
	}
	if !k.Until.IsZero() {
		return fmt.Errorf("%w: llave: %s ya se rotó; rote %s", ErrInvalid, k.ID, k.Successor)
	}
	return nil
}

// putKey adds a key whose lookup id was claimed, at its Created; and ends another one
// with it, if old names one.
type putKey struct {
	k     storedKey
	claim Claim
	old   string
	until time.Time
}

func (c putKey) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if err := held(tx, c.claim); err != nil {
		return nil, err
	}
	if c.k.Mode != Admin {
		if _, err := tx.Get(spaceOrg, idKey(uint64(c.k.Org.Entity()))); err != nil {
			return nil, absent(err, "la organización "+FormatOrg(c.k.Org.Entity()))
		}
	}
	now := c.k.Created
	v, err := tx.Get(spaceKey, []byte(c.k.ID))
	if err == nil { // a repeated Ref
		var is storedKey
		if err := is.decode([]byte(c.k.ID), v); err != nil {
			return nil, err
		}
		if err := is.rotatable(now); err != nil {
			return nil, err
		}
		if is.Org != c.k.Org {
			return nil, fmt.Errorf("%w: referencia: ya se usó con otra organización", ErrInvalid)
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if c.old != "" {
		if err := c.endOld(tx, now); err != nil {
			return nil, err
		}
	}
	active, leaving := 0, 0
	err = tx.Scan(spaceKey, nil, func(id, v []byte) error {
		var k storedKey
		if err := k.decode(id, v); err != nil {
			return err
		}
		active += k.counts(&c.k.Key, now)
		if k.Org == c.k.Org && k.Mode == c.k.Mode && !k.Until.IsZero() && k.Active(now) {
			leaving++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if active >= maxKeys || leaving > maxKeys {
		return nil, ErrTooManyKeys
	}
	tx.Put(spaceKey, []byte(c.k.ID), c.k.append(nil))
	return nil, nil
}

// endOld gives the key that is rotated its end.
func (c *putKey) endOld(tx *ledger.Tx, now time.Time) error {
	v, err := tx.Get(spaceKey, []byte(c.old))
	if err != nil {
		return absent(err, "la llave "+c.old)
	}
	var old storedKey
	if err := old.decode([]byte(c.old), v); err != nil {
		return err
	}
	if err := old.rotatable(now); err != nil {
		return err
	}
	old.Until, old.Successor = c.until, c.k.ID
	tx.Put(spaceKey, []byte(c.old), old.append(nil))
	return nil
}

// deactivate ends a key.
type deactivate struct {
	id  string
	now time.Time
}

// Apply returns the Key as it is then.
func (c deactivate) Apply(tx *ledger.Tx) (ledger.Result, error) {
	v, err := tx.Get(spaceKey, []byte(c.id))
	if err != nil {
		return nil, absent(err, "la llave "+c.id)
	}
	var k storedKey
	if err := k.decode([]byte(c.id), v); err != nil {
		return nil, err
	}
	if k.Active(c.now) {
		k.Deactivated = c.now
		tx.Put(spaceKey, []byte(c.id), k.append(nil))
	}
	return k.Key, nil
}
