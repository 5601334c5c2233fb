package accounts

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// The layout of registering, as the package comment has it.
const (
	spaceRegistrar    ledger.Space = 0x48
	spaceRegistration ledger.Space = 0x49
	spaceAsked        ledger.Space = 0x4a
	spaceAddress      ledger.Space = 0x4b
	spaceWaiting      ledger.Space = 0x4c
	spaceOrigin       ledger.Space = 0x59
)

// registration is a Registration as the global group keeps it.
type registration struct {
	Key      string            `json:"llave"`
	Email    []byte            `json:"correo_hmac"`
	Asked    []byte            `json:"datos_hmac"`
	Code     []byte            `json:"codigo_hmac"`
	Fiscal   storedFiscal      `json:"fiscal"`
	State    RegistrationState `json:"estado"`
	Created  int64             `json:"creado"` // Unix nanoseconds
	Accepted int64             `json:"acepto"` // the terms
	Issued   int64             `json:"emitido"`
	Expires  int64             `json:"vence"`
	Tries    int               `json:"intentos,omitempty"`
	Operator bool              `json:"por_operador,omitempty"`
	Plan     accountPlan       `json:"cuenta,omitzero"` // from RegistrationClaimed on
}

// over reports that the code may no longer be shown.
func (r *registration) over(now time.Time) bool { return now.UnixNano() >= r.Expires }

func (r *registration) describe(id RegistrationID) Registration {
	return Registration{ID: id, Key: r.Key, Fiscal: r.Fiscal.Fiscal, State: r.State, Created: moment(r.Created), Issued: moment(r.Issued),
		Expires: moment(r.Expires), Left: max(0, CodeTries-r.Tries), ByOperator: r.Operator}
}

// issue puts a new code in the place of the one before.
func (r *registration) issue(now time.Time, sum [hashLen]byte, operator bool) {
	r.Code, r.Issued, r.Expires = sum[:], now.UnixNano(), now.Add(RegistrationLife).UnixNano()
	r.Tries, r.Operator = 0, operator
}

// address is what is kept of an e-mail address, by its HMAC.
type address struct {
	Sent  window       `json:"correos"`
	Owner *accountPlan `json:"cuenta,omitempty"` // nil: nobody confirmed it
}

// storedFiscal is Fiscal in a value that is JSON, as it stands everywhere else.
type storedFiscal struct{ Fiscal }

// MarshalJSON implements json.Marshaler.
func (f storedFiscal) MarshalJSON() ([]byte, error) { return json.Marshal(f.append(nil)) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *storedFiscal) UnmarshalJSON(text []byte) error {
	var v []byte
	err := json.Unmarshal(text, &v)
	if err == nil {
		f.Fiscal, err = decodeFiscal(v)
	}
	return err
}

func registrationKey(id RegistrationID) []byte { return idKey(uint64(id)) }

// askedKey finds the registration of a registration key and of what it asked for.
func askedKey(key string, asked []byte) []byte { return append([]byte(key), asked...) }

// getOrZero is getJSON for what may be absent.
func getOrZero(tx *ledger.Tx, space ledger.Space, key []byte, v any) error {
	if err := getJSON(tx, space, key, v); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// getRegistrar refuses what may no longer register.
func getRegistrar(tx *ledger.Tx, id string, now time.Time) (r registrar, err error) {
	if err = getJSON(tx, spaceRegistrar, []byte(id), &r); errors.Is(err, ErrNotFound) {
		return r, ErrRegistrationKey
	}
	if err == nil {
		err = r.active(now)
	}
	return r, err
}

func getRegistration(tx *ledger.Tx, id RegistrationID) (r registration, err error) {
	if err = getJSON(tx, spaceRegistration, registrationKey(id), &r); errors.Is(err, ErrNotFound) {
		err = ErrNoRegistration
	}
	return r, err
}

// count adds to how many registrations wait, of all and of one key.
func count(tx *ledger.Tx, r *registrar, by int) error {
	n, err := countPending(tx)
	if err != nil {
		return err
	}
	r.Pending += by
	tx.Put(spaceWaiting, nil, binary.BigEndian.AppendUint64([]byte{schema}, uint64(n+by)))
	return nil
}

func countPending(from getter) (int, error) {
	v, err := from.Get(spaceWaiting, nil)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(v) != 9 || v[0] != schema:
		return 0, errValue
	}
	return int(binary.BigEndian.Uint64(v[1:])), nil
}

// register is Service.Register in the global group. What it does for an address
// that has an account and for one that has none is the same, but for Issued.Known.
type register struct {
	now    time.Time
	key    string
	email  [hashLen]byte
	asked  [hashLen]byte // of the data
	fiscal Fiscal
	id     RegistrationID // of a new one
	sum    [hashLen]byte  // of the code
}

// registered is what became of it: fresh says that the code is good from now on.
type registered struct {
	Registration
	known, fresh bool
}

// Apply implements ledger.Command. Its result is registered.
func (c register) Apply(tx *ledger.Tx) (ledger.Result, error) {
	key, err := getRegistrar(tx, c.key, c.now)
	if err != nil {
		return nil, err
	}
	var a address
	if err := getOrZero(tx, spaceAddress, c.email[:], &a); err != nil {
		return nil, err
	}
	id, r, err := c.earlier(tx)
	if err != nil {
		return nil, err
	}
	if r != nil {
		rested := c.now.Sub(moment(r.Issued))
		switch {
		case rested >= resendAfter:
		case r.Tries < CodeTries && !r.Operator:
			return registered{r.describe(id), a.Owner != nil, false}, nil
		default:
			return nil, &ThrottledError{"acaba de emitirse un código para este registro", min(resendAfter, resendAfter-rested)}
		}
	}
	if key.Max > 0 && key.Made >= key.Max {
		return nil, ErrRegistrationLimit
	}
	if wait := key.Begun.take(c.now, keySpan, begunEach); wait > 0 {
		return nil, &ThrottledError{"demasiados registros con esta llave de registro", wait}
	}
	if wait := a.Sent.take(c.now, mailSpan, mailsEach); wait > 0 {
		return nil, &ThrottledError{"ya se enviaron a esa dirección los códigos de un día", wait}
	}
	if r == nil {
		pending, err := countPending(tx)
		if err != nil {
			return nil, err
		}
		if key.Pending >= pendingEach || pending >= pendingAll {
			return nil, &ThrottledError{"demasiados registros esperan su código", keySpan}
		}
		if _, err := tx.Get(spaceRegistration, registrationKey(c.id)); !errors.Is(err, store.ErrNotFound) {
			if err == nil {
				err = errTaken
			}
			return nil, err
		}
		id, r = c.id, &registration{Key: c.key, Email: c.email[:], Asked: c.asked[:], Fiscal: storedFiscal{c.fiscal}, State: RegistrationPending, Created: c.now.UnixNano()}
		if err := count(tx, &key, 1); err != nil {
			return nil, err
		}
		tx.Put(spaceAsked, askedKey(c.key, c.asked[:]), append([]byte{schema}, registrationKey(id)...))
	}
	r.Accepted = c.now.UnixNano()
	r.issue(c.now, c.sum, false)
	err = errors.Join(putJSON(tx, spaceRegistrar, []byte(c.key), key), putJSON(tx, spaceAddress, c.email[:], a),
		putJSON(tx, spaceRegistration, registrationKey(id), r))
	return registered{r.describe(id), a.Owner != nil, true}, err
}

// earlier returns the registration of the same key and data that waits for its
// code, nil when there is none.
func (c register) earlier(tx *ledger.Tx) (RegistrationID, *registration, error) {
	v, err := tx.Get(spaceAsked, askedKey(c.key, c.asked[:]))
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil, nil
	} else if err != nil {
		return 0, nil, err
	}
	if len(v) != 9 || v[0] != schema {
		return 0, nil, errValue
	}
	id := RegistrationID(binary.BigEndian.Uint64(v[1:]))
	r, err := getRegistration(tx, id)
	if errors.Is(err, ErrNoRegistration) || err == nil && r.State != RegistrationPending {
		return 0, nil, nil // the key under which it is found is written anew
	}
	return id, &r, err
}

// reissue is Service.IssueCode in the global group.
type reissue struct {
	now time.Time
	id  RegistrationID
	sum [hashLen]byte
}

// Apply implements ledger.Command. Its result is the Registration.
func (c reissue) Apply(tx *ledger.Tx) (ledger.Result, error) {
	r, err := getRegistration(tx, c.id)
	if err != nil {
		return nil, err
	}
	if r.State != RegistrationPending {
		return nil, &ConfirmedError{r.Plan.Org}
	}
	var a address
	if err := getOrZero(tx, spaceAddress, r.Email, &a); err != nil {
		return nil, err
	}
	if a.Owner != nil {
		return nil, ErrEmailTaken
	}
	r.issue(c.now, c.sum, true)
	return r.describe(c.id), putJSON(tx, spaceRegistration, registrationKey(c.id), r)
}

// showCode tries a code in the global group. With the right one it claims, in one
// batch, the address and everything that the account will be made of.
type showCode struct {
	now  time.Time
	key  string
	id   RegistrationID
	sum  [hashLen]byte
	plan accountPlan // of an account that is not claimed yet
}

// shown is what became of a try: a code that is not the right one is counted, so
// it is an answer and no error.
type shown struct {
	wrong        *WrongCodeError
	registration registration // claimed
}

// Apply implements ledger.Command. Its result is shown.
func (c showCode) Apply(tx *ledger.Tx) (ledger.Result, error) {
	key, err := getRegistrar(tx, c.key, c.now)
	if err != nil {
		return nil, err
	}
	r, err := getRegistration(tx, c.id)
	if err != nil {
		return nil, err
	}
	if r.Key != c.key {
		return nil, ErrNoRegistration
	}
	if r.over(c.now) || r.Tries >= CodeTries {
		return nil, ErrCodeOver
	}
	if subtle.ConstantTimeCompare(c.sum[:], r.Code) != 1 {
		if wait := key.Wrong.take(c.now, keySpan, wrongEach); wait > 0 {
			return nil, &ThrottledError{"demasiados códigos errados con esta llave de registro", wait}
		}
		r.Tries++
		err := errors.Join(putJSON(tx, spaceRegistrar, []byte(c.key), key), putJSON(tx, spaceRegistration, registrationKey(c.id), r))
		return shown{wrong: &WrongCodeError{CodeTries - r.Tries}}, err
	}
	switch r.State {
	case RegistrationConfirmed:
		return nil, &ConfirmedError{r.Plan.Org}
	case RegistrationClaimed:
		return shown{registration: r}, nil
	}
	var a address
	if err := getOrZero(tx, spaceAddress, r.Email, &a); err != nil {
		return nil, err
	}
	if a.Owner != nil {
		return nil, ErrEmailTaken
	}
	if key.Max > 0 && key.Made >= key.Max {
		return nil, ErrRegistrationLimit
	}
	c.plan.Due = moment(r.Expires).Add(pruneGrace).UnixNano()
	if _, err := (claimIDs{c.plan.claims()}).Apply(tx); err != nil {
		return nil, err
	}
	a.Owner = &c.plan
	r.State, r.Plan = RegistrationClaimed, c.plan
	key.Made++
	if err := count(tx, &key, -1); err != nil {
		return nil, err
	}
	err = errors.Join(putJSON(tx, spaceRegistrar, []byte(c.key), key), putJSON(tx, spaceAddress, r.Email, a),
		putJSON(tx, spaceRegistration, registrationKey(c.id), r))
	return shown{registration: r}, err
}

// settleRegistration ends a claimed registration and its claims in the global group, as
// its account says: it was opened, or it was given up and then the address is free again.
type settleRegistration struct {
	id     RegistrationID
	opened bool
}

// Apply implements ledger.Command.
func (c settleRegistration) Apply(tx *ledger.Tx) (ledger.Result, error) {
	r, err := getRegistration(tx, c.id)
	if errors.Is(err, ErrNoRegistration) || err == nil && r.State != RegistrationClaimed {
		return nil, nil // somebody did
	} else if err != nil {
		return nil, err
	}
	for _, claim := range r.Plan.claims() {
		if _, err := (settle{claim, c.opened}).Apply(tx); err != nil {
			return nil, err
		}
	}
	if c.opened {
		r.State = RegistrationConfirmed
		return nil, putJSON(tx, spaceRegistration, registrationKey(c.id), r)
	}
	var a address
	var key registrar
	err = errors.Join(getOrZero(tx, spaceAddress, r.Email, &a), getJSON(tx, spaceRegistrar, []byte(r.Key), &key))
	if err != nil {
		return nil, err
	}
	a.Owner = nil
	key.Made--
	return nil, errors.Join(putJSON(tx, spaceAddress, r.Email, a), putJSON(tx, spaceRegistrar, []byte(r.Key), key), remove(tx, c.id, &r))
}

// remove forgets a registration and where it is found.
func remove(tx *ledger.Tx, id RegistrationID, r *registration) error {
	tx.Delete(spaceRegistration, registrationKey(id))
	found := askedKey(r.Key, r.Asked)
	v, err := tx.Get(spaceAsked, found)
	if err == nil && bytes.HasSuffix(v, registrationKey(id)) {
		tx.Delete(spaceAsked, found)
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return err
}
