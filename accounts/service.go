package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"cotejo/ledger"
	"cotejo/store"
)

var (
	// ErrUnauthorized is the one answer for a missing, malformed, unknown or
	// disabled key.
	ErrUnauthorized = errors.New("accounts: llave no válida")
	// ErrNotFound says that an organization does not exist.
	ErrNotFound = errors.New("accounts: la organización no existe")
	// ErrInvalid refuses an input; the message names the field and the remedy.
	ErrInvalid = errors.New("accounts: dato no válido")
	// ErrTooManyKeys refuses one more key for an organization.
	ErrTooManyKeys = errors.New("accounts: la organización ya tiene el máximo de llaves de este modo")
	// ErrPepper says that the keys of this ledger were hashed under another pepper.
	ErrPepper = errors.New("accounts: el secreto no es el de estas cuentas; restáurelo del respaldo")
)

// Limits of what may be asked for.
const (
	maxName   = 300 // runes
	maxReason = 500 // runes
	maxKeys   = 10  // of one mode, for one organization
)

// Mode tells what a key may see.
type Mode byte

const (
	Live  Mode = iota + 1 // prefix svc_live_: real sources, consumes the wallet
	Test                  // prefix svc_test_: the sandbox edition, never charged
	Admin                 // prefix svc_admin_: the operator's reports, no organization's data
)

// Principal is who is asking, as Authenticate found out.
type Principal struct {
	Account ledger.AccountID
	Org     ledger.OrgID
	Mode    Mode
	KeyID   string // lookup part of the key: safe to log
}

// May reports whether the key is for an operation, by the id of the operation.
func (p *Principal) May(operation string) bool { return true }

// Organization is a legal entity that owns data.
type Organization struct {
	ID      ledger.OrgID
	Account ledger.AccountID
	Name    string
	Created time.Time
}

// Key describes an API key; the key itself is known only to its holder.
type Key struct {
	ID      string
	Org     ledger.OrgID
	Mode    Mode
	Created time.Time
}

// Service creates and looks up accounts. It is safe for concurrent use.
type Service struct {
	ledger *ledger.Ledger
	macs   sync.Pool // *mac, keyed by the pepper
	now    func() time.Time

	randomMu sync.Mutex // random need not be safe for concurrent use
	random   io.Reader

	known knownKeys
}

// minPepper is the shortest pepper that New accepts, in bytes.
const minPepper = 32

// New reads and writes through l. pepper keys the hashes of API keys (32 bytes
// or more, else New panics: every stored hash would be weak); random gives ids
// and keys (nil: crypto/rand); now is the clock.
func New(l *ledger.Ledger, pepper []byte, random interface{ Read([]byte) (int, error) }, now func() time.Time) *Service {
	if len(pepper) < minPepper {
		panic(fmt.Sprintf("accounts: a pepper of %d bytes; it needs %d", len(pepper), minPepper))
	}
	s := &Service{ledger: l, now: now, random: rand.Reader}
	if random != nil {
		s.random = random
	}
	pepper = slices.Clone(pepper)
	s.macs.New = func() any { return newMAC(pepper) }
	return s
}

// maxTries bounds the search for a free random id.
const maxTries = 8

// CreateOrganization creates a mother account with one organization. name has 1
// to 300 characters, none of them a control character.
func (s *Service) CreateOrganization(ctx context.Context, name string) (Organization, error) {
	if err := validText("nombre", name, maxName); err != nil {
		return Organization{}, err
	}
	created := storedTime(s.now())
	for range maxTries {
		var ids [16]byte
		if err := s.read(ids[:]); err != nil {
			return Organization{}, err
		}
		o := Organization{
			ID:      ledger.OrgID(binary.BigEndian.Uint64(ids[:])),
			Account: ledger.AccountID(binary.BigEndian.Uint64(ids[8:])),
			Name:    name, Created: created,
		}
		if o.ID == 0 || o.Account == ledger.Global {
			continue
		}
		_, err := s.ledger.Do(ctx, ledger.Global, claim{
			account: o.Account,
			ids: []claimedID{
				{spaceAccountClaim, idKey(uint64(o.Account))},
				{spaceOrgClaim, idKey(uint64(o.ID))},
			},
		})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return Organization{}, err
		}
		if _, err := s.ledger.Do(ctx, o.Account, putOrganization{o}); err != nil {
			return Organization{}, err
		}
		return o, nil
	}
	return Organization{}, errNoFreeID
}

// Organization finds by id (as FormatOrg prints it) in any account.
func (s *Service) Organization(id ledger.OrgID) (Organization, error) {
	account, err := s.claimant(spaceOrgClaim, idKey(uint64(id)))
	if err != nil {
		return Organization{}, err
	}
	v, err := s.ledger.Read(account).Get(spaceOrg, idKey(uint64(id)))
	if err != nil {
		return Organization{}, absent(err)
	}
	return decodeOrganization(account, id, v)
}

// Organizations lists all, by creation, unless ctx ends before.
func (s *Service) Organizations(ctx context.Context) ([]Organization, error) {
	var all []Organization
	err := s.ledger.Read(ledger.Global).Scan(spaceOrgClaim, nil, func(key, _ []byte) error {
		if len(key) != 8 {
			return errValue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := s.Organization(ledger.OrgID(binary.BigEndian.Uint64(key)))
		if errors.Is(err, ErrNotFound) {
			return nil // claimed only
		}
		all = append(all, o)
		return err
	})
	slices.SortFunc(all, func(a, b Organization) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return all, err
}

// CreateKey returns the key itself, once, and its description. ErrNotFound when
// the organization does not exist, ErrTooManyKeys when it has ten of the mode.
func (s *Service) CreateKey(ctx context.Context, org ledger.OrgID, mode Mode) (secret string, key Key, err error) {
	if mode != Live && mode != Test {
		return "", Key{}, fmt.Errorf("%w: modo: use live o test", ErrInvalid)
	}
	o, err := s.Organization(org)
	if err != nil {
		return "", Key{}, err
	}
	// Counted before a lookup id is claimed, so that a refusal leaves nothing;
	// and once more by putKey, because two may ask at once.
	keys, err := s.Keys(org)
	if err != nil {
		return "", Key{}, err
	}
	same := 0
	for _, k := range keys {
		if k.Mode == mode {
			same++
		}
	}
	if same >= maxKeys {
		return "", Key{}, ErrTooManyKeys
	}
	created := storedTime(s.now())
	for range maxTries {
		text, err := s.newKey(mode)
		if err != nil {
			return "", Key{}, err
		}
		id := text[prefixLen:secretAt]
		_, err = s.ledger.Do(ctx, ledger.Global, claim{account: o.Account, ids: []claimedID{{spaceKeyClaim, id}}})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return "", Key{}, err
		}
		k := storedKey{Key: Key{ID: string(id), Org: org, Mode: mode, Created: created}}
		m := s.macs.Get().(*mac)
		k.hash = *m.sum(text)
		s.macs.Put(m)
		if _, err := s.ledger.Do(ctx, o.Account, putKey{k}); err != nil {
			return "", Key{}, err
		}
		return string(text), k.Key, nil
	}
	return "", Key{}, errNoFreeID
}

// Credit adds package money to the wallet that org shares: 1 to 99,999,999,999
// centavos, for a reason of 1 to 500 characters.
func (s *Service) Credit(ctx context.Context, org ledger.OrgID, centavos int64, reason string) (ledger.Charged, error) {
	if centavos <= 0 || centavos > ledger.MaxCentavos {
		return ledger.Charged{}, fmt.Errorf("%w: centavos: debe ser de 1 a %d", ErrInvalid, ledger.MaxCentavos)
	}
	return s.credit(ctx, org, reason, ledger.Credit{Now: s.now(), Org: org, Centavos: centavos, Reason: reason})
}

// CreditUses adds individual uses of a service to the wallet that org shares: 1 to
// 1,000,000, each paid with unit centavos, for a reason of 1 to 500 characters. The
// service must be one that has a price: the caller knows them.
func (s *Service) CreditUses(ctx context.Context, org ledger.OrgID, service string, count, unit int64, reason string) (ledger.Charged, error) {
	if count <= 0 || count > ledger.MaxUses {
		return ledger.Charged{}, fmt.Errorf("%w: usos: deben ser de 1 a %d", ErrInvalid, ledger.MaxUses)
	}
	return s.credit(ctx, org, reason, ledger.CreditUses{Now: s.now(), Org: org, Service: service, Count: count, Unit: unit, Reason: reason})
}

func (s *Service) credit(ctx context.Context, org ledger.OrgID, reason string, c ledger.Command) (ledger.Charged, error) {
	if err := validText("motivo", reason, maxReason); err != nil {
		return ledger.Charged{}, err
	}
	o, err := s.Organization(org)
	if err != nil {
		return ledger.Charged{}, err
	}
	res, err := s.ledger.Do(ctx, o.Account, c)
	if err != nil {
		return ledger.Charged{}, err
	}
	return res.(ledger.Charged), nil
}

func validText(field, text string, limit int) error {
	n := utf8.RuneCountInString(text)
	if n < 1 || n > limit {
		return fmt.Errorf("%w: %s: debe tener de 1 a %d caracteres y tiene %d", ErrInvalid, field, limit, n)
	}
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return fmt.Errorf("%w: %s: quite los caracteres de control o ilegibles", ErrInvalid, field)
		}
	}
	return nil
}

var errNoFreeID = errors.New("accounts: no se encontró un identificador libre; revise la fuente de números aleatorios")

func (s *Service) read(b []byte) error {
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	if _, err := io.ReadFull(s.random, b); err != nil {
		return fmt.Errorf("accounts: sin números aleatorios: %w", err)
	}
	return nil
}

// absent turns the store's word into ours.
func absent(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return ErrNotFound
	}
	return err
}
