package ledger

import (
	"crypto/sha256"
	"sync"

	"cotejo/delta"
	"cotejo/store"
)

// A dictionary is the text (registro and acta) of the first record of an
// operation and edition in an account. The account's later records of that
// operation and edition are stored as copies from it. It lives in the account's
// own key space, so that no account's bytes help to store another's.

const (
	// maxDictionary bounds a text that others are coded against.
	maxDictionary = 64 << 10
	// cachedText bounds the texts that are kept prepared for coding.
	cachedText = 1 << 20
)

// plain codes a text that has nothing to copy from.
var plain *delta.Base

// dictionaryKey is the head of SHA-256(operation ‖ 0 ‖ edition). Two names with
// one key do no harm: the stored name is compared.
type dictionaryKey [8]byte

func nameKey(operation string, edition [32]byte) (key dictionaryKey) {
	name := append([]byte(operation), 0)
	sum := sha256.Sum256(append(name, edition[:]...))
	copy(key[:], sum[:])
	return key
}

// dictionaryText is a stored dictionary.
type dictionaryText struct {
	key       dictionaryKey
	operation string
	edition   [32]byte
	text      []byte
}

// dictionary is one that is ready for coding. Immutable.
type dictionary struct {
	dictionaryText
	base *delta.Base
}

// newDictionary copies text.
func newDictionary(operation string, edition [32]byte, text []byte) *dictionary {
	d := &dictionary{base: delta.NewBase(text)}
	d.dictionaryText = dictionaryText{nameKey(operation, edition), operation, edition, d.base.Bytes()}
	return d
}

func (d *dictionaryText) append(dst []byte) []byte {
	dst = append(dst, schema)
	dst = appendText(dst, d.operation)
	dst = append(dst, d.edition[:]...)
	return append(dst, d.text...)
}

// dictionary reads a stored dictionary of the account.
func (r Reader) dictionary(key dictionaryKey) (*dictionaryText, error) {
	v, err := r.Get(spaceDictionary, key[:])
	if err != nil {
		return nil, err
	}
	d := decode(v)
	t := &dictionaryText{key: key, operation: d.text()}
	copy(t.edition[:], d.take(len(t.edition)))
	if d.bad || len(d.b) > maxDictionary {
		return nil, errValue
	}
	t.text = d.b
	return t, nil
}

// lastDictionary is dictionary for a scan: records of one operation and edition
// mostly lie together.
func (r Reader) lastDictionary() func(dictionaryKey) (*dictionaryText, error) {
	var last *dictionaryText
	return func(key dictionaryKey) (t *dictionaryText, err error) {
		if last == nil || last.key != key {
			if t, err = r.dictionary(key); err != nil {
				return nil, err
			}
			last = t
		}
		return last, nil
	}
}

// dictionaries keeps those in use. It is safe for concurrent use.
type dictionaries struct {
	mu    sync.RWMutex
	known map[dictionaryName]*dictionary
	bytes int // of text
}

type dictionaryName struct {
	account   AccountID
	operation string
	edition   [32]byte
}

// A name whose key another name took is answered like one without a dictionary:
// its records are stored plainly.
// get returns store.ErrNotFound when there is no dictionary yet.
func (c *dictionaries) get(r Reader, account AccountID, operation string, edition [32]byte) (*dictionary, error) {
	name := dictionaryName{account, operation, edition}
	c.mu.RLock()
	d := c.known[name]
	c.mu.RUnlock()
	if d != nil {
		return d, nil
	}
	t, err := r.dictionary(nameKey(operation, edition))
	if err != nil {
		return nil, err
	}
	if t.operation != operation || t.edition != edition {
		return nil, store.ErrNotFound
	}
	d = newDictionary(operation, edition, t.text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.known[name]; other != nil {
		return other, nil
	}
	for k, old := range c.known {
		if c.bytes+len(t.text) <= cachedText {
			break
		}
		c.bytes -= len(old.text)
		delete(c.known, k)
	}
	if c.known == nil {
		c.known = make(map[dictionaryName]*dictionary)
	}
	c.known[name] = d
	c.bytes += len(d.text)
	return d, nil
}
