package accounts

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"hash"
	"hash/crc32"
	"sync"
)

// A key is
//
//	svc_live_ | svc_test_, lookup id 8, secret 43, check 6
//
// all visible ASCII. The lookup id (lower-case Crockford base32) finds the key
// and may be logged; the secret is base64url of 32 random bytes; the check is
// the CRC-32 (IEEE) of all before it in base62, so that a typing error is told
// without a look into the store and a scanner can recognize a leaked key.
const (
	prefixLive = "svc_live_"
	prefixTest = "svc_test_"

	prefixLen = len(prefixLive)
	lookupLen = 8
	secretLen = 43
	checkLen  = 6

	secretAt = prefixLen + lookupLen
	checkAt  = secretAt + secretLen
	keyLen   = checkAt + checkLen

	hashLen = sha256.Size
)

const (
	crockfordLower = "0123456789abcdefghjkmnpqrstvwxyz"
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func (s *Service) newKey(mode Mode) ([]byte, error) {
	var random [lookupLen + 32]byte
	if err := s.read(random[:]); err != nil {
		return nil, err
	}
	prefix := prefixLive
	if mode == Test {
		prefix = prefixTest
	}
	key := append(make([]byte, 0, keyLen), prefix...)
	for _, b := range random[:lookupLen] {
		key = append(key, crockfordLower[b&31])
	}
	key = base64.RawURLEncoding.AppendEncode(key, random[lookupLen:])
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
func wellFormed(key []byte) (mode Mode, ok bool) {
	if len(key) != keyLen {
		return 0, false
	}
	switch string(key[:prefixLen]) {
	case prefixLive:
		mode = Live
	case prefixTest:
		mode = Test
	default:
		return 0, false
	}
	for _, c := range key[prefixLen:secretAt] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' && c != 'i' && c != 'l' && c != 'o' && c != 'u') {
			return 0, false
		}
	}
	var check [checkLen]byte
	return mode, string(appendCheck(check[:0], key[:checkAt])) == string(key[checkAt:])
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

// knownKeys remembers keys that exist, by lookup id: at most maxKnown, a random
// one leaves first.
type knownKeys struct {
	mu   sync.RWMutex
	byID map[[lookupLen]byte]*knownKey
}

type knownKey struct {
	hash      [hashLen]byte
	principal Principal
}

const maxKnown = 16_384

// nobody is compared with when the lookup id is unknown, so that the time taken
// does not tell.
var nobody knownKey

// Authenticate tells whose key it is, in constant time with respect to the
// secret part, from memory after the first use. It does not allocate on a hit.
// Any refusal is ErrUnauthorized; other errors are the store's.
func (s *Service) Authenticate(key []byte) (Principal, error) {
	mode, ok := wellFormed(key)
	if !ok {
		return Principal{}, ErrUnauthorized
	}
	id := [lookupLen]byte(key[prefixLen:secretAt])
	s.known.mu.RLock()
	known := s.known.byID[id]
	s.known.mu.RUnlock()
	if known == nil {
		var err error
		if known, err = s.lookUp(id); err != nil {
			return Principal{}, err
		}
	}
	m := s.macs.Get().(*mac)
	same := subtle.ConstantTimeCompare(m.sum(key)[:], known.hash[:])
	s.macs.Put(m)
	if same != 1 || known == &nobody || known.principal.Mode != mode {
		return Principal{}, ErrUnauthorized
	}
	return known.principal, nil
}

// lookUp reads a key from the store; nobody when there is none.
func (s *Service) lookUp(id [lookupLen]byte) (*knownKey, error) {
	account, err := s.claimant(spaceKeyClaim, id[:])
	if err != nil {
		return nobodyIfAbsent(err)
	}
	v, err := s.ledger.Read(account).Get(spaceKey, id[:])
	if err != nil {
		return nobodyIfAbsent(absent(err))
	}
	var k storedKey
	if err := k.decode(id[:], v); err != nil {
		return nil, err
	}
	known := &knownKey{k.hash, Principal{Account: account, Org: k.Org, Mode: k.Mode, KeyID: k.ID}}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	if s.known.byID == nil {
		s.known.byID = make(map[[lookupLen]byte]*knownKey)
	}
	if len(s.known.byID) >= maxKnown {
		for other := range s.known.byID {
			delete(s.known.byID, other)
			break
		}
	}
	s.known.byID[id] = known
	return known, nil
}

func nobodyIfAbsent(err error) (*knownKey, error) {
	if errors.Is(err, ErrNotFound) {
		return &nobody, nil
	}
	return nil, err
}
