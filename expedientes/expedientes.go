// Package expedientes notes which audit dossiers an organization was given: before
// the first byte of each leaves, and its hash before the last one does. A dossier
// whose hash is missing never left whole.
//
// It knows neither the text of a dossier nor who may ask for one. It owns the space
// 0x78 of an account:
//
//	account  0x78  organization 8, day 4, counter 4 of its id  → Issued
//
// Integers in keys are big-endian, organizations may be twins for tests.
package expedientes

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

const (
	space  ledger.Space = 0x78
	schema byte         = 1
)

// Prefix begins the id of a dossier. Ids come from ledger.NextID, as those of
// verifications do; none is one.
const Prefix = "EXP"

// Format is how a dossier was written.
type Format byte

const (
	JSON Format = iota + 1
	ZIP
)

// String is the format's name in requests.
func (f Format) String() string {
	if f == ZIP {
		return "zip"
	}
	return "json"
}

// Issued is one dossier that was begun.
type Issued struct {
	ID     ledger.VerificationID
	Org    ledger.OrgID
	Moment time.Time
	From   uint32 // YYYYMMDD, the period that it is about
	To     uint32
	Format Format
	// Sum is its contenido_sha256, if Whole: it was written to its end. Whether it
	// arrived is not known.
	Sum   [sha256.Size]byte
	Whole bool
}

var errValue = errors.New("expedientes: valor guardado ilegible; corra «cotejo verify all» y restaure un respaldo")

// Issue notes a dossier that is about to leave.
type Issue struct{ Issued }

// Apply implements ledger.Command.
func (c Issue) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if c.ID.Prefix != Prefix || c.Format != JSON && c.Format != ZIP || c.From > c.To {
		return nil, fmt.Errorf("expedientes: %v no se puede anotar", c.ID)
	}
	if _, err := tx.Get(space, key(c.Org, c.ID)); !errors.Is(err, store.ErrNotFound) {
		return nil, errors.Join(fmt.Errorf("expedientes: %v ya está anotado", c.ID), err)
	}
	c.Sum, c.Whole = [sha256.Size]byte{}, false
	tx.Put(space, key(c.Org, c.ID), c.append(nil))
	return nil, nil
}

// Finish notes the hash of a dossier, once.
type Finish struct {
	Org ledger.OrgID
	ID  ledger.VerificationID
	Sum [sha256.Size]byte
}

// Apply implements ledger.Command.
func (c Finish) Apply(tx *ledger.Tx) (ledger.Result, error) {
	k := key(c.Org, c.ID)
	value, err := tx.Get(space, k)
	if err != nil {
		return nil, err
	}
	i, err := decode(k, value)
	if err == nil && i.Whole {
		err = fmt.Errorf("expedientes: %v ya tiene su SHA-256", c.ID)
	}
	if err != nil {
		return nil, err
	}
	i.Sum, i.Whole = c.Sum, true
	tx.Put(space, k, i.append(nil))
	return nil, nil
}

// Each calls fn for the dossiers of an organization, by the day of their ids and the
// order in which these were given, until fn returns an error, which Each returns.
func Each(r ledger.Reader, org ledger.OrgID, fn func(Issued) error) error {
	return r.Scan(space, binary.BigEndian.AppendUint64(nil, uint64(org)), func(key, value []byte) error {
		i, err := decode(key, value)
		if err != nil {
			return err
		}
		return fn(i)
	})
}

const (
	keyLen   = 8 + 4 + 4
	valueLen = 1 + 8 + 4 + 4 + 4 + 1 + 1 + sha256.Size
)

func key(org ledger.OrgID, id ledger.VerificationID) []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, keyLen), uint64(org))
	k = binary.BigEndian.AppendUint32(k, id.Day)
	return binary.BigEndian.AppendUint32(k, id.Counter)
}

func (i *Issued) append(dst []byte) []byte {
	dst = append(dst, schema)
	dst = binary.BigEndian.AppendUint64(dst, uint64(i.Moment.UnixNano()))
	dst = binary.BigEndian.AppendUint32(dst, i.ID.Code)
	dst = binary.BigEndian.AppendUint32(dst, i.From)
	dst = binary.BigEndian.AppendUint32(dst, i.To)
	dst = append(dst, byte(i.Format))
	if i.Whole {
		return append(append(dst, 1), i.Sum[:]...)
	}
	return append(append(dst, 0), i.Sum[:]...)
}

func decode(key, v []byte) (i Issued, err error) {
	if len(key) != keyLen || len(v) != valueLen || v[0] != schema || v[22] > 1 {
		return i, errValue
	}
	n := binary.BigEndian
	return Issued{
		Org:    ledger.OrgID(n.Uint64(key)),
		ID:     ledger.VerificationID{Prefix: Prefix, Day: n.Uint32(key[8:]), Counter: n.Uint32(key[12:]), Code: n.Uint32(v[9:])},
		Moment: time.Unix(0, int64(n.Uint64(v[1:]))),
		From:   n.Uint32(v[13:]), To: n.Uint32(v[17:]), Format: Format(v[21]),
		Whole: v[22] == 1, Sum: [sha256.Size]byte(v[23:]),
	}, nil
}
