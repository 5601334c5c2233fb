package accounts

import (
	"context"
	"crypto/rand"
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
	// inactive key.
	ErrUnauthorized = errors.New("accounts: llave no válida")
	// ErrNotFound says that an account, an organization or a key does not exist; the
	// message says which.
	ErrNotFound = errors.New("no existe")
	// ErrInvalid refuses an input; the message names the field and the remedy.
	ErrInvalid = errors.New("accounts: dato no válido")
	// ErrTooManyKeys refuses one more key for an organization.
	ErrTooManyKeys = errors.New("accounts: la organización ya tiene el máximo de llaves de este modo: desactive una")
	// ErrTooManyOrganizations refuses one more organization for an account.
	ErrTooManyOrganizations = errors.New("accounts: la cuenta ya tiene el máximo de organizaciones")
	// ErrPepper says that the keys of this ledger were hashed under another pepper.
	ErrPepper = errors.New("accounts: el secreto no es el de estas cuentas; restáurelo del respaldo")
)

// Limits of what may be asked for.
const (
	maxName          = 300 // runes
	maxReason        = 500 // runes
	maxRef           = 200 // bytes
	maxOrganizations = 100 // of one account
)

// Service creates and looks up accounts. It is safe for concurrent use. Of one
// ledger there is one Service: it remembers keys, and what another one changed it
// learns after maxStale.
type Service struct {
	ledger *ledger.Ledger
	macs   sync.Pool // *mac, keyed by the pepper
	now    func() time.Time

	randomMu sync.Mutex // random need not be safe for concurrent use
	random   io.Reader

	known      knownKeys // API keys
	registrars knownKeys
	uses       keyUses
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
	s.known.read, s.registrars.read = s.readKey, s.readRegistrar
	return s
}

// Credit adds package money to the wallet that org shares: 1 to 99,999,999,999
// centavos, for a reason of 1 to 500 characters. A twin for tests has no money.
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
	if org.Sandbox() {
		return ledger.Charged{}, fmt.Errorf("%w: organización: %s es de pruebas y nada le cuesta; abone a %s", ErrInvalid, FormatOrg(org), FormatOrg(org.Twin()))
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

// maxTries bounds the search for a free id.
const maxTries = 8

var errNoFreeID = errors.New("accounts: no se encontró un identificador libre; revise la fuente de números aleatorios")

// idBytes gives the bytes that ids of one thing are made of, another lot for each
// try: random, or always the same for a ref, which only the pepper can foretell.
func (s *Service) idBytes(what, ref string, try int, dst []byte) error {
	if ref == "" {
		return s.read(dst)
	}
	sum := s.sumOf(fmt.Appendf(nil, "cotejo: %s %d de %s", what, try, ref))
	copy(dst, sum[:])
	return nil
}

func (s *Service) read(b []byte) error {
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	if _, err := io.ReadFull(s.random, b); err != nil {
		return fmt.Errorf("accounts: sin números aleatorios: %w", err)
	}
	return nil
}

// absent turns the store's word into ours, and names what is not there.
func absent(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("accounts: %s: %w", what, ErrNotFound)
	}
	return err
}
