package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

var (
	// ErrRegistrationKey is the one answer for a registration key that is missing,
	// malformed, unknown, expired or inactive.
	ErrRegistrationKey = errors.New("accounts: llave de registro no válida")
	// ErrNoRegistrationKey says that the operator named a registration key that does
	// not exist.
	ErrNoRegistrationKey = errors.New("accounts: la llave de registro no existe")
)

// maxRegistrars bounds the registration keys of an installation, inactive ones
// included.
const maxRegistrars = 1000

// RegistrationKey lets whoever holds it register accounts.
type RegistrationKey struct {
	ID      string // lookup part of the key: safe to log
	Name    string
	Vendor  string    // code of who sells; "" for nobody
	Max     int       // accounts that it may make; 0: no limit
	Made    int       // accounts that it made
	Pending int       // registrations that wait for their code
	Expires time.Time // zero: never
	Created time.Time
	Active  bool
}

// RegistrationKeySpec is what the operator decides of a registration key.
type RegistrationKeySpec struct {
	Name    string // 1 to 300 characters
	Vendor  string // 1 to 32 letters, digits, _ and -; "" for nobody
	Max     int    // 0: no limit
	Expires time.Time
}

// registrar is a registration key as the global group keeps it.
type registrar struct {
	Name     string `json:"nombre"`
	Vendor   string `json:"vendedor,omitempty"`
	Max      int    `json:"maximo,omitempty"`
	Made     int    `json:"cuentas,omitempty"`
	Pending  int    `json:"pendientes,omitempty"`
	Expires  int64  `json:"vence,omitempty"` // Unix nanoseconds, as all moments here
	Created  int64  `json:"creada"`
	Inactive int64  `json:"inactiva,omitempty"` // since
	Hash     []byte `json:"hmac"`
	Begun    window `json:"registros"`
	Wrong    window `json:"codigos_errados"`
}

// active refuses what may no longer register.
func (r *registrar) active(now time.Time) error {
	if r.Inactive != 0 || r.Expires != 0 && now.UnixNano() >= r.Expires {
		return ErrRegistrationKey
	}
	return nil
}

func (r *registrar) describe(id string) RegistrationKey {
	k := RegistrationKey{ID: id, Name: r.Name, Vendor: r.Vendor, Max: r.Max, Made: r.Made, Pending: r.Pending,
		Created: moment(r.Created), Active: r.Inactive == 0}
	if r.Expires != 0 {
		k.Expires = moment(r.Expires)
	}
	return k
}

func moment(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }

// getter is what a Tx and a Reader have in common.
type getter interface {
	Get(ledger.Space, []byte) ([]byte, error)
}

// getJSON reads a value that putJSON wrote; ErrNotFound when there is none.
func getJSON(from getter, space ledger.Space, key []byte, v any) error {
	text, err := from.Get(space, key)
	if err != nil {
		return absent(err, "lo que se busca")
	}
	return decodeJSON(text, v)
}

func decodeJSON(text []byte, v any) error {
	if len(text) < 2 || text[0] != schema || json.Unmarshal(text[1:], v) != nil {
		return errValue
	}
	return nil
}

func putJSON(tx *ledger.Tx, space ledger.Space, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		tx.Put(space, key, append([]byte{schema}, text...))
	}
	return err
}

var vendorForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// CreateRegistrationKey returns the key itself, once, and its description.
func (s *Service) CreateRegistrationKey(ctx context.Context, spec RegistrationKeySpec) (secret string, key RegistrationKey, err error) {
	if err := validText("nombre", spec.Name, maxName); err != nil {
		return "", RegistrationKey{}, err
	}
	now := s.now()
	switch {
	case spec.Vendor != "" && !vendorForm.MatchString(spec.Vendor):
		return "", RegistrationKey{}, fmt.Errorf("%w: vendedor: use de 1 a 32 letras sin acento, dígitos, _ o -", ErrInvalid)
	case spec.Max < 0:
		return "", RegistrationKey{}, fmt.Errorf("%w: máximo: use 1 o más cuentas, o 0 para no limitarlas", ErrInvalid)
	case !spec.Expires.IsZero() && !spec.Expires.After(now):
		return "", RegistrationKey{}, fmt.Errorf("%w: vencimiento: use un momento por venir", ErrInvalid)
	}
	r := registrar{Name: spec.Name, Vendor: spec.Vendor, Max: spec.Max, Created: now.UnixNano()}
	if !spec.Expires.IsZero() {
		r.Expires = spec.Expires.UnixNano()
	}
	for try := range maxTries {
		id, err := s.newLookup(Registrar, "", try)
		if err != nil {
			return "", RegistrationKey{}, err
		}
		text, err := s.newKey(Registrar, id)
		if err != nil {
			return "", RegistrationKey{}, err
		}
		sum := s.sumOf(text)
		r.Hash = sum[:]
		_, err = s.ledger.Do(ctx, ledger.Global, putRegistrar{string(id[:]), r})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return "", RegistrationKey{}, err
		}
		// As for any key, its first request is not a stranger's.
		_, _ = s.registrars.lookUp(id, now)
		return string(text), r.describe(string(id[:])), nil
	}
	return "", RegistrationKey{}, errNoFreeID
}

// putRegistrar adds a registration key.
type putRegistrar struct {
	id string
	r  registrar
}

// Apply implements ledger.Command.
func (c putRegistrar) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if _, err := tx.Get(spaceRegistrar, []byte(c.id)); err == nil {
		return nil, errTaken
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	n := 0
	err := tx.Scan(spaceRegistrar, nil, func(_, _ []byte) error { n++; return nil })
	if err != nil {
		return nil, err
	}
	if n >= maxRegistrars {
		return nil, fmt.Errorf("%w: ya hay %d llaves de registro, el máximo", ErrInvalid, maxRegistrars)
	}
	return nil, putJSON(tx, spaceRegistrar, []byte(c.id), c.r)
}

// RegistrationKeys lists all, by creation.
func (s *Service) RegistrationKeys() ([]RegistrationKey, error) {
	var all []RegistrationKey
	err := s.ledger.Read(ledger.Global).Scan(spaceRegistrar, nil, func(id, v []byte) error {
		var r registrar
		err := decodeJSON(v, &r)
		all = append(all, r.describe(string(id)))
		return err
	})
	slices.SortStableFunc(all, func(a, b RegistrationKey) int { return a.Created.Compare(b.Created) })
	return all, err
}

// DeactivateRegistrationKey ends a registration key for good: what was registered
// with it and not confirmed cannot be confirmed any more; accounts stay. Doing it
// again changes nothing. ErrNoRegistrationKey when there is none of that id.
func (s *Service) DeactivateRegistrationKey(ctx context.Context, id string) (RegistrationKey, error) {
	if len(id) == lookupLen {
		defer s.registrars.drop([lookupLen]byte([]byte(id)))
	}
	res, err := s.ledger.Do(ctx, ledger.Global, endRegistrar{id, s.now()})
	if err != nil {
		return RegistrationKey{}, err
	}
	return res.(RegistrationKey), nil
}

type endRegistrar struct {
	id  string
	now time.Time
}

// Apply implements ledger.Command. Its result is the RegistrationKey.
func (c endRegistrar) Apply(tx *ledger.Tx) (ledger.Result, error) {
	var r registrar
	if err := getJSON(tx, spaceRegistrar, []byte(c.id), &r); errors.Is(err, ErrNotFound) {
		return nil, ErrNoRegistrationKey
	} else if err != nil {
		return nil, err
	}
	if r.Inactive == 0 {
		r.Inactive = c.now.UnixNano()
	}
	return r.describe(c.id), putJSON(tx, spaceRegistrar, []byte(c.id), r)
}

// AuthenticateRegistrar does for registration keys what Authenticate does for API
// keys. The Principal names no account. Any refusal is ErrRegistrationKey.
func (s *Service) AuthenticateRegistrar(key []byte) (Principal, error) {
	mode, id, ok := wellFormed(key)
	if !ok || mode != Registrar {
		return Principal{}, ErrRegistrationKey
	}
	p, err := s.authenticate(&s.registrars, mode, id, key)
	if errors.Is(err, ErrUnauthorized) {
		err = ErrRegistrationKey
	}
	return p, err
}

// RecognizeRegistrar does for registration keys what Recognize does for API keys.
func (s *Service) RecognizeRegistrar(key []byte) (p Principal, remembered bool, err error) {
	mode, id, ok := wellFormed(key)
	if !ok || mode != Registrar {
		return Principal{}, true, ErrRegistrationKey
	}
	p, remembered, err = s.recognize(&s.registrars, mode, id, key)
	if errors.Is(err, ErrUnauthorized) {
		err = ErrRegistrationKey
	}
	return p, remembered, err
}

// readRegistrar reads a registration key from the store; nobody when there is none that
// is active.
func (s *Service) readRegistrar(id [lookupLen]byte, now time.Time) (*knownKey, error) {
	var r registrar
	err := getJSON(s.ledger.Read(ledger.Global), spaceRegistrar, id[:], &r)
	switch {
	case errors.Is(err, ErrNotFound):
		return &nobody, nil
	case err != nil:
		return nil, err
	case r.active(now) != nil:
		return &nobody, nil
	case len(r.Hash) != hashLen:
		return nil, errValue
	}
	return &knownKey{hash: [hashLen]byte(r.Hash), until: r.describe("").Expires, read: now, principal: Principal{Mode: Registrar, KeyID: string(id[:])}}, nil
}

// window counts events since the first of them, until its span ends.
type window struct {
	Since int64 `json:"desde,omitempty"`
	Count int   `json:"veces,omitempty"`
}

// take counts one more event, or tells how long to wait for the next when there
// were limit of them within span.
func (w *window) take(now time.Time, span time.Duration, limit int) (wait time.Duration) {
	if w.over(now, span) {
		*w = window{Since: now.UnixNano()}
	}
	if w.Count >= limit {
		return min(span, moment(w.Since).Add(span).Sub(now))
	}
	w.Count++
	return 0
}

func (w *window) over(now time.Time, span time.Duration) bool {
	return w.Count == 0 || now.UnixNano()-w.Since >= int64(span)
}
