package accounts

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"hash"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cotejo/ledger"
)

// A key is
//
//	svc_live_ | svc_test_ | svc_admin_ | svc_reg_, lookup id 8, secret 43, check 6
//
// all visible ASCII. The lookup id (lower-case Crockford base32) finds the key
// and may be logged; the secret is base64url of 32 random bytes; the check is
// the CRC-32 (IEEE) of all before it in base62, so that a typing error is told
// without a look into the store and a scanner can recognize a leaked key.
const (
	prefixLive      = "svc_live_"
	prefixTest      = "svc_test_"
	prefixAdmin     = "svc_admin_"
	prefixRegistrar = "svc_reg_"

	lookupLen = 8
	secretLen = 43
	checkLen  = 6
	tailLen   = lookupLen + secretLen + checkLen // what follows the prefix

	hashLen = sha256.Size
)

var prefixes = [...]string{Live: prefixLive, Test: prefixTest, Admin: prefixAdmin, Registrar: prefixRegistrar}

const (
	crockfordLower = "0123456789abcdefghjkmnpqrstvwxyz"
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newLookup gives the lookup id of a key; of a ref, always the same.
func (s *Service) newLookup(mode Mode, ref string, try int) (id [lookupLen]byte, err error) {
	err = s.idBytes("llave "+prefixes[mode], ref, try, id[:])
	for i := range id {
		id[i] = crockfordLower[id[i]&31]
	}
	return id, err
}

// newKey draws the secret of a key whose lookup id is known, and returns it whole.
func (s *Service) newKey(mode Mode, id [lookupLen]byte) ([]byte, error) {
	var secret [32]byte
	if err := s.read(secret[:]); err != nil {
		return nil, err
	}
	key := append(make([]byte, 0, len(prefixAdmin)+tailLen), prefixes[mode]...)
	key = base64.RawURLEncoding.AppendEncode(append(key, id[:]...), secret[:])
	return appendCheck(key, key), nil
}

func appendCheck(dst, text []byte) []byte {
	var digits [checkLen]byte
	sum := crc32.ChecksumIEEE(text)
	for i := checkLen - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return append(dst, digits[:]...)
}

// wellFormed tests all that can be told from the text alone.
func wellFormed(key []byte) (mode Mode, id [lookupLen]byte, ok bool) {
	at := len(key) - tailLen
	if at < len(prefixRegistrar) || at > len(prefixAdmin) {
		return 0, id, false
	}
	switch string(key[:at]) {
	case prefixLive:
		mode = Live
	case prefixTest:
		mode = Test
	case prefixAdmin:
		mode = Admin
	case prefixRegistrar:
		mode = Registrar
	default:
		return 0, id, false
	}
	id = [lookupLen]byte(key[at:])
	var check [checkLen]byte
	end := len(key) - checkLen
	return mode, id, isLookup(id[:]) && string(appendCheck(check[:0], key[:end])) == string(key[end:])
}

func isLookup(id []byte) bool {
	for _, c := range id {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' && c != 'i' && c != 'l' && c != 'o' && c != 'u') {
			return false
		}
	}
	return true
}

// mac computes HMAC-SHA-256 under the pepper without allocating.
type mac struct {
	h   hash.Hash
	out [hashLen]byte
}

func newMAC(pepper []byte) *mac { return &mac{h: hmac.New(sha256.New, pepper)} }

// sum is valid until the next call.
func (m *mac) sum(text []byte) *[hashLen]byte {
	m.h.Reset()
	m.h.Write(text)
	m.h.Sum(m.out[:0])
	return &m.out
}

// sumOf is the HMAC of a text under the pepper.
func (s *Service) sumOf(parts ...[]byte) [hashLen]byte {
	m := s.macs.Get().(*mac)
	defer s.macs.Put(m)
	return *m.sum(slices.Concat(parts...))
}

// Principal is who is asking, as Authenticate found out.
type Principal struct {
	Account ledger.AccountID // ledger.Global for Admin, 0 for Registrar
	Org     ledger.OrgID     // the twin for Test, 0 for Admin and Registrar
	Mode    Mode
	KeyID   string // lookup part of the key: safe to log

	only string // ids of operations, comma-separated; "": all
}

// May reports whether the key is for an operation, by the id of the operation.
func (p *Principal) May(operation string) bool {
	if p.only == "" {
		return true
	}
	for rest := p.only; rest != ""; {
		var id string
		if id, rest, _ = strings.Cut(rest, ","); id == operation {
			return true
		}
	}
	return false
}

// knownKeys remembers active keys by lookup id: at most maxKnown, a random one leaves
// first.
type knownKeys struct {
	read func(id [lookupLen]byte, now time.Time) (*knownKey, error) // from the store; nobody: none that is active
	mu   sync.RWMutex
	byID map[[lookupLen]byte]*knownKey // under mu
	// drops counts calls of drop and doubt. What was read from the store before one may be
	// what it dropped.
	drops uint64 // under mu
	// turns counts calls of doubt: what was remembered before one is known and not believed.
	turns uint64 // under mu
}

type knownKey struct {
	hash      [hashLen]byte
	principal Principal
	until     time.Time    // zero: no end
	read      time.Time    // when it was read from the store
	turn      uint64       // knownKeys.turns then
	used      atomic.Int64 // the last use that was noted, unix seconds
}

const (
	maxKnown = 16_384
	// maxStale is for how long a key is believed to be what it was. Who changes a key drops
	// it here at once; this is for what another node changed.
	maxStale = 5 * time.Second
)

// nobody is compared with when the lookup id is unknown, so that the time taken
// does not tell.
var nobody knownKey

// Authenticate tells whose key it is, in constant time with respect to the
// secret part, from memory within maxStale of the last look. It does not allocate on a
// hit. Any refusal is ErrUnauthorized; other errors are the store's.
func (s *Service) Authenticate(key []byte) (Principal, error) {
	mode, id, ok := wellFormed(key)
	if !ok || mode == Registrar {
		return Principal{}, ErrUnauthorized
	}
	return s.authenticate(&s.known, mode, id, key)
}

// Recognize does what Authenticate does for a key that is in memory. remembered is
// false for any other well-formed one: whoever it is, only the store can tell.
func (s *Service) Recognize(key []byte) (p Principal, remembered bool, err error) {
	mode, id, ok := wellFormed(key)
	if !ok || mode == Registrar {
		return Principal{}, true, ErrUnauthorized
	}
	return s.recognize(&s.known, mode, id, key)
}

func (s *Service) authenticate(among *knownKeys, mode Mode, id [lookupLen]byte, key []byte) (Principal, error) {
	now := s.now()
	known, fresh := among.find(id, now)
	if !fresh {
		var err error
		if known, err = among.lookUp(id, now); err != nil {
			return Principal{}, err
		}
	}
	if !s.matches(key, known) {
		return Principal{}, ErrUnauthorized
	}
	return s.admit(id, mode, known, now)
}

func (s *Service) recognize(among *knownKeys, mode Mode, id [lookupLen]byte, key []byte) (p Principal, remembered bool, err error) {
	now := s.now()
	known, fresh := among.find(id, now)
	if known == nil {
		return Principal{}, false, nil
	}
	if !s.matches(key, known) {
		return Principal{}, true, ErrUnauthorized
	}
	if fresh {
		p, err = s.admit(id, mode, known, now)
	} else {
		p, err = s.authenticate(among, mode, id, key)
	}
	return p, true, err
}

// matches compares a key with the hash of one, in constant time.
func (s *Service) matches(key []byte, known *knownKey) bool {
	m := s.macs.Get().(*mac)
	same := subtle.ConstantTimeCompare(m.sum(key)[:], known.hash[:])
	s.macs.Put(m)
	return same == 1
}

// admit lets in whoever holds a key that matches.
func (s *Service) admit(id [lookupLen]byte, mode Mode, known *knownKey, now time.Time) (Principal, error) {
	if known == &nobody || known.principal.Mode != mode || !known.until.IsZero() && !now.Before(known.until) {
		return Principal{}, ErrUnauthorized
	}
	if mode != Registrar {
		s.noteUse(id, known, now)
	}
	return known.principal, nil
}

// find returns what is remembered of a key, nil when nothing is, and whether that can be
// believed at now.
func (n *knownKeys) find(id [lookupLen]byte, now time.Time) (known *knownKey, fresh bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	known = n.byID[id]
	return known, known != nil && known.turn == n.turns && known.fresh(now)
}

// fresh is false also when the clock was set back.
func (k *knownKey) fresh(now time.Time) bool {
	age := now.Sub(k.read)
	return age >= 0 && age <= maxStale
}

// lookUp reads a key from the store; nobody when there is none that is active.
func (n *knownKeys) lookUp(id [lookupLen]byte, now time.Time) (*knownKey, error) {
	for {
		drops := n.dropped()
		known, err := n.read(id, now)
		if err != nil {
			return nil, err
		}
		if n.remember(id, known, drops) {
			return known, nil
		}
	}
}

func (s *Service) readKey(id [lookupLen]byte, now time.Time) (*knownKey, error) {
	account, k, err := s.key(string(id[:]))
	if errors.Is(err, ErrNotFound) {
		return &nobody, nil
	}
	if err != nil {
		return nil, err
	}
	if !k.Active(now) {
		return &nobody, nil
	}
	used, err := s.lastUsed(k.ID)
	if err != nil {
		return nil, err
	}
	return k.known(account, used, now), nil
}

// known is what is remembered of an active key that was read at now.
func (k *storedKey) known(account ledger.AccountID, used, now time.Time) *knownKey {
	known := &knownKey{hash: k.hash, until: k.Until, read: now, principal: Principal{
		Account: account, Org: k.Org, Mode: k.Mode, KeyID: k.ID, only: strings.Join(k.Only, ","),
	}}
	if !used.IsZero() {
		known.used.Store(used.Unix())
	}
	return known
}

func (n *knownKeys) dropped() uint64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.drops
}

// remember keeps what was read after so many drops; false when there was another one
// meanwhile.
func (n *knownKeys) remember(id [lookupLen]byte, known *knownKey, drops uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.drops != drops {
		return false
	}
	if known == &nobody {
		delete(n.byID, id)
		return true
	}
	if n.byID == nil {
		n.byID = make(map[[lookupLen]byte]*knownKey)
	}
	if _, there := n.byID[id]; !there && len(n.byID) >= maxKnown {
		for other := range n.byID {
			delete(n.byID, other)
			break
		}
	}
	known.turn = n.turns
	n.byID[id] = known
	return true
}

// drop forgets a key, and all that is being read meanwhile.
func (n *knownKeys) drop(id [lookupLen]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drops++
	delete(n.byID, id)
}

// Doubt makes the next request with each key read it anew. Call it before this process is
// given the accounts: until then another one may have ended keys. They stay known, so that
// no valid key is taken for a stranger's.
func (s *Service) Doubt() {
	s.known.doubt()
	s.registrars.doubt()
}

func (n *knownKeys) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drops++
	n.turns++
}
