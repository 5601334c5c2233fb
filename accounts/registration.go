package accounts

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cotejo/checks"
	"cotejo/ledger"
)

// Limits of registering.
const (
	// RegistrationLife is how long a code is good for, from the moment it was issued.
	RegistrationLife = 24 * time.Hour
	// CodeTries is how often a code may be tried.
	CodeTries = 5
	// resendAfter is how long a code rests before another one is issued in its place.
	resendAfter = time.Minute

	// mailsEach is how many codes go to one address within mailSpan, whoever asks.
	mailsEach = 3
	mailSpan  = 24 * time.Hour
	// begunEach and wrongEach bound what one registration key does within keySpan:
	// registrations, and codes that are not the right one.
	begunEach = 120
	wrongEach = 100
	keySpan   = time.Hour
	// pendingEach and pendingAll bound what waits, of one key and of all.
	pendingEach = 1000
	pendingAll  = 20_000
)

var (
	// ErrNoRegistration is the one answer for a registration that does not exist, is
	// over, or was made with another registration key.
	ErrNoRegistration = errors.New("accounts: el registro no existe")
	// ErrCodeOver says that the code expired or was tried too often.
	ErrCodeOver = errors.New("accounts: el código venció o agotó sus intentos")
	// ErrEmailTaken says that an account has this address. Only who showed the right
	// code, or operates the service, is told.
	ErrEmailTaken = errors.New("accounts: esa dirección de correo ya tiene cuenta")
	// ErrRegistrationLimit says that the registration key made as many accounts as
	// it may.
	ErrRegistrationLimit = errors.New("accounts: la llave de registro llegó a su máximo de cuentas")
)

// WrongCodeError refuses a code. Left is how often one may still be tried.
type WrongCodeError struct{ Left int }

func (e *WrongCodeError) Error() string {
	return fmt.Sprintf("accounts: el código no es el que se envió; quedan %d intentos", e.Left)
}

// ConfirmedError refuses to confirm a registration again: its account exists, and
// its keys were shown once.
type ConfirmedError struct{ Org ledger.OrgID }

func (e *ConfirmedError) Error() string {
	return "accounts: el registro ya se confirmó; la organización es " + FormatOrg(e.Org)
}

// ThrottledError refuses what was done too often. Nothing was done or counted.
type ThrottledError struct {
	What string // Spanish: what there was too much of
	Wait time.Duration
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("accounts: %s; espere %v", e.What, e.Wait.Round(time.Second))
}

// RegistrationID names a registration. It is no secret.
type RegistrationID uint64

const registrationPrefix = "reg_"

// String is the public form: "reg_" and 13 digits of Crockford base32.
func (id RegistrationID) String() string {
	return string(appendID(nil, registrationPrefix, uint64(id)))
}

// ParseRegistration reads what String prints; ErrNoRegistration for anything else.
func ParseRegistration(s string) (RegistrationID, error) {
	id, ok := parseID(s, registrationPrefix)
	if !ok {
		return 0, ErrNoRegistration
	}
	return RegistrationID(id), nil
}

// RegistrationState is how far a registration went.
type RegistrationState byte

const (
	RegistrationPending   RegistrationState = iota + 1 // its code was not shown yet
	RegistrationClaimed                                // its account was named, and may not exist yet
	RegistrationConfirmed                              // its account exists
)

// Registration is what somebody asked for who has yet to show that the e-mail is
// theirs.
type Registration struct {
	ID         RegistrationID
	Key        string // registration key
	Fiscal     Fiscal
	State      RegistrationState
	Created    time.Time
	Issued     time.Time // of the code
	Expires    time.Time // of the code
	Left       int       // how often a code may still be tried
	ByOperator bool      // the code was issued to the operator, not sent
}

// Issued is a registration and what its address is to be told.
type Issued struct {
	Registration
	// Code is for the address alone: it is not kept. "" when nothing is to be sent.
	Code string
	// Known: the address has an account already. It is told so, without a code;
	// whoever asked is not.
	Known bool
}

// Opened is an account that came to be. The keys are shown this once.
type Opened struct {
	Organization
	Live, Test string // keys
}

// codeAlphabet has no I, L, O and U: a code that is read aloud or copied by hand is
// not mistaken. 8 digits of it are 40 bits.
const (
	codeAlphabet = crockfordUpper
	codeDigits   = 8
)

// FormatCode is a code as people read it: two groups of four.
func FormatCode(code string) string { return code[:codeDigits/2] + "-" + code[codeDigits/2:] }

var readCode = strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1")

// parseCode undoes what people do to a code.
func parseCode(text string) string { return readCode.Replace(strings.ToUpper(text)) }

// What is hashed under the pepper beside keys, each with a domain of its own: no
// key begins like this.
var (
	codeDomain  = []byte("cotejo: código de registro\x00")
	emailDomain = []byte("cotejo: correo de una cuenta\x00")
	askedDomain = []byte("cotejo: datos de un registro\x00")
)

func (s *Service) codeSum(code string) [hashLen]byte { return s.sumOf(codeDomain, []byte(code)) }

func (s *Service) newCode() (string, error) {
	var code [codeDigits]byte
	if err := s.read(code[:]); err != nil {
		return "", err
	}
	for i := range code {
		code[i] = codeAlphabet[code[i]&31]
	}
	return string(code[:]), nil
}

// Register keeps what a registration key asked for, and issues a code for the
// address. The same key and data again are the same registration, with another code
// that ends the one before; within a minute nothing changes and nothing is issued.
// Other data are another registration, so nobody can change what somebody else is
// about to confirm. What comes back does not tell whether the address has an
// account, but for Known.
//
// fiscal is complete, and as ReadFiscal gave it back. Errors: ErrRegistrationKey,
// ErrRegistrationLimit, *ThrottledError.
func (s *Service) Register(ctx context.Context, key string, fiscal Fiscal) (Issued, error) {
	email, _, err := checks.ReadEmail(fiscal.Email)
	if err != nil {
		return Issued{}, fmt.Errorf("%w: email: %w", ErrInvalid, err)
	}
	if err := validText(FieldLegalName, fiscal.LegalName, maxName); err != nil {
		return Issued{}, err
	}
	asked := s.sumOf(askedDomain, fiscal.append(nil))
	var b [8]byte
	for range maxTries {
		code, err := s.newCode()
		if err == nil {
			err = s.read(b[:])
		}
		if err != nil {
			return Issued{}, err
		}
		res, err := s.ledger.Do(ctx, ledger.Global, register{
			now: s.now(), key: key, email: s.sumOf(emailDomain, []byte(email.Folded())), asked: asked, fiscal: fiscal,
			id: RegistrationID(binary.BigEndian.Uint64(b[:])), sum: s.codeSum(code),
		})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return Issued{}, err
		}
		done := res.(registered)
		if !done.fresh {
			code = ""
		}
		return Issued{done.Registration, code, done.known}, nil
	}
	return Issued{}, errNoFreeID
}

// IssueCode gives the operator another code for a registration that waits, in the
// place of the one that was sent, with a life and tries of its own: whoever hands
// it on vouches for the address. Errors: ErrNoRegistration, ErrEmailTaken,
// *ConfirmedError.
func (s *Service) IssueCode(ctx context.Context, id RegistrationID) (Issued, error) {
	code, err := s.newCode()
	if err != nil {
		return Issued{}, err
	}
	res, err := s.ledger.Do(ctx, ledger.Global, reissue{now: s.now(), id: id, sum: s.codeSum(code)})
	if err != nil {
		return Issued{}, err
	}
	return Issued{Registration: res.(Registration), Code: code}, nil
}

// Confirm makes the account of a registration when the code is the right one: its
// organization, its fiscal data and a key of each mode, at once and once, however
// often and by however many it is asked. What a crash left half-way is finished by
// asking again with the same code. Once the keys exist, asking again is a
// *ConfirmedError: whoever lost the answer asks the operator for others.
//
// Errors beside it: ErrRegistrationKey, ErrNoRegistration, *WrongCodeError,
// ErrCodeOver, ErrEmailTaken, ErrRegistrationLimit, *ThrottledError.
func (s *Service) Confirm(ctx context.Context, key string, id RegistrationID, code string) (Opened, error) {
	now := s.now()
	sum := s.codeSum(parseCode(code))
	for range maxTries {
		plan, err := s.planAccount(now)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return Opened{}, err
		}
		res, err := s.ledger.Do(ctx, ledger.Global, showCode{now: now, key: key, id: id, sum: sum, plan: plan})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return Opened{}, err
		}
		shown := res.(shown)
		if shown.wrong != nil {
			return Opened{}, shown.wrong
		}
		return s.open(ctx, id, &shown.registration, now)
	}
	return Opened{}, errNoFreeID
}

// open finishes a claimed registration, unless somebody did before.
func (s *Service) open(ctx context.Context, id RegistrationID, r *registration, now time.Time) (Opened, error) {
	opened, err := s.openAccount(ctx, id, r, now)
	if errors.Is(err, errGivenUp) {
		return Opened{}, ErrCodeOver
	}
	if err != nil && !errors.Is(err, errOpen) {
		return Opened{}, err
	}
	// The account exists, whatever becomes of this: PruneRegistrations does it too.
	_, _ = s.ledger.Do(context.WithoutCancel(ctx), ledger.Global, settleRegistration{id: id, opened: true})
	if err != nil {
		return Opened{}, &ConfirmedError{r.Plan.Org}
	}
	return opened, nil
}

// Registrations lists those that wait for their code at now, by creation.
func (s *Service) Registrations(now time.Time) ([]Registration, error) {
	var all []Registration
	err := s.eachRegistration(func(id RegistrationID, r *registration) error {
		if r.State == RegistrationPending && !r.over(now) {
			all = append(all, r.describe(id))
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b Registration) int { return a.Created.Compare(b.Created) })
	return all, err
}

func (s *Service) eachRegistration(fn func(RegistrationID, *registration) error) error {
	return s.ledger.Read(ledger.Global).Scan(spaceRegistration, nil, func(key, v []byte) error {
		var r registration
		if err := decodeJSON(v, &r); err != nil || len(key) != 8 {
			return errValue
		}
		return fn(RegistrationID(binary.BigEndian.Uint64(key)), &r)
	})
}
