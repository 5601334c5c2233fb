package accounts

import (
	"bytes"
	"testing"
	"time"
)

// FuzzStored reads values that a damaged store may hold: each is refused, or is written
// again as it was.
func FuzzStored(f *testing.F) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	k := storedKey{Key: Key{Org: 9, Mode: Test, Created: at, Until: at, Successor: "abcdefgh", Only: []string{"a", "b"}}}
	f.Add(k.append(nil))
	c := Claim{Account: 7, Made: at, Due: at.Add(claimAge)}
	f.Add(c.append(nil))
	f.Add(c.pendingKey())
	fiscal := Fiscal{LegalName: "Ñ", RFC: "ENA010101AB8", Updated: at}
	f.Add(fiscal.append(nil))
	f.Add(named(at, "Uno"))
	f.Fuzz(func(t *testing.T, v []byte) {
		same := func(what string, err error, again []byte) {
			t.Helper()
			if err == nil && !bytes.Equal(again, v) {
				t.Errorf("%s %x is read as %x", what, v, again)
			}
		}
		var k storedKey
		err := k.decode([]byte("abcdefgh"), v)
		same("key", err, k.append(nil))
		var c Claim
		err = c.decode(spaceKeyClaim, []byte("abcdefgh"), v)
		same("claim", err, c.append(nil))
		err = c.decodePending(v)
		same("note", err, c.pendingKey())
		fiscal, err := decodeFiscal(v)
		same("fiscal data", err, fiscal.append(nil))
		created, name, err := decodeNamed(v)
		same("name", err, named(created, name))
	})
}
