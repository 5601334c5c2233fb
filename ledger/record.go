package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"cotejo/delta"
	"cotejo/store"
)

// Bounds of a record, in bytes.
const (
	maxRegistro = 1 << 20
	maxActa     = 64 << 10
	maxName     = 64
)

// Record is an answer and what happened when it was given. It is immutable.
type Record struct {
	ID        VerificationID
	Org       OrgID
	Sandbox   bool   // a sandbox record can be read with test keys only
	Service   string // price code: COMPANY …
	Code      string // result_code
	Operation string // with Edition names the dictionary that the registro is coded against
	Edition   [32]byte
	Registro  []byte // exact canonical bytes
	Acta      []byte // exact canonical bytes
	// Filled when read back:
	Centavos int64
	Movement uint64
	// Of a record of an order: its id, the record's place in it, from 1, and what
	// FillOrder was given to keep beside it.
	Order   VerificationID
	Ordinal int
	Note    []byte
}

// How a record's text is coded.
const (
	codedPlainly    = 0 // operation and edition follow
	codedDictionary = 1 // the key of the account's dictionary follows
)

// append appends the stored value; what the key holds is left out. code is
// registro and acta in one, coded against base (nil: plainly).
func (r *Record) append(dst []byte, base *dictionary, code []byte) []byte {
	dst = append(dst, schema)
	dst = binary.AppendUvarint(dst, uint64(r.Centavos))
	dst = binary.AppendUvarint(dst, r.Movement)
	dst = appendText(dst, r.Service)
	dst = appendText(dst, r.Code)
	if base != nil {
		dst = append(dst, codedDictionary)
		dst = append(dst, base.key[:]...)
	} else {
		dst = append(dst, codedPlainly)
		dst = appendText(dst, r.Operation)
		dst = append(dst, r.Edition[:]...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Registro)))
	dst = binary.AppendUvarint(dst, uint64(len(r.Acta)))
	return append(dst, code...)
}

// decodeRecord reads a record; find gives the account's dictionaries.
func decodeRecord(key, value []byte, perm *permutation, find func(dictionaryKey) (*dictionaryText, error)) (Record, error) {
	var r Record
	if len(key) != recordKeyLen {
		return r, errValue
	}
	r.Org = OrgID(binary.BigEndian.Uint64(key))
	r.Sandbox = key[8] != 0
	r.ID = VerificationID{
		Prefix:  string(key[9:12]),
		Day:     binary.BigEndian.Uint32(key[12:]),
		Counter: binary.BigEndian.Uint32(key[16:]),
	}
	r.ID.Code = perm.code(r.ID.Prefix, r.ID.Day, r.ID.Counter)

	d := decode(value)
	r.decodeHead(&d)
	var base []byte
	switch d.byte() {
	case codedDictionary:
		var name dictionaryKey
		copy(name[:], d.take(len(name)))
		if d.bad {
			return r, errValue
		}
		dict, err := find(name)
		if err != nil {
			// Said, not wrapped: an absent dictionary is no absent record.
			return r, fmt.Errorf("%w: registro %v: diccionario %x: %s", errValue, r.ID, name, err.Error())
		}
		r.Operation, r.Edition, base = dict.operation, dict.edition, dict.text
	case codedPlainly:
		r.Operation = d.text()
		copy(r.Edition[:], d.take(len(r.Edition)))
	default:
		d.fail()
	}
	registro, acta := d.uvarint(), d.uvarint()
	if d.bad || registro > maxRegistro || acta > maxActa {
		return r, fmt.Errorf("ledger: registro %v: %w", r.ID, errValue)
	}
	size := int(registro + acta)
	text, err := delta.Expand(make([]byte, 0, size), base, d.b, size)
	if err != nil || len(text) != size {
		return r, fmt.Errorf("ledger: registro %v: %w", r.ID, errors.Join(errValue, err))
	}
	r.Registro, r.Acta = text[:registro:registro], text[registro:]
	return r, nil
}

// decodeHead reads what a record says beside its text.
func (r *Record) decodeHead(d *decoder) {
	r.Centavos, r.Movement = d.centavos(), d.uvarint()
	r.Service, r.Code = d.text(), d.text()
}

// Find reads one record of an organization. store.ErrNotFound when it does not
// exist there, whether or not it exists elsewhere.
func (l *Ledger) Find(account AccountID, org OrgID, sandbox bool, id VerificationID) (Record, error) {
	return l.Read(account).Find(org, sandbox, id)
}

// Find is Ledger.Find as of what is read.
func (r Reader) Find(org OrgID, sandbox bool, id VerificationID) (Record, error) {
	if !validPrefix(id.Prefix) {
		return Record{}, store.ErrNotFound
	}
	return r.find(appendRecordKey(nil, org, sandbox, id))
}

// find reads the record of a key, wherever it lies.
func (r Reader) find(key []byte) (Record, error) {
	value, err := r.Get(spaceRecord, key)
	if err == nil {
		return decodeRecord(key, value, r.perm, r.dictionary)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return Record{}, err
	}
	b, err := r.blockOf(key)
	if err != nil {
		return Record{}, err
	}
	return b.find(binary.BigEndian.Uint32(key[recordKeyLen-4:]), r.perm)
}

// Records calls fn for every record of every account, for audits, until fn
// returns an error, which Records returns. A group is read as it was at one
// moment.
func (l *Ledger) Records(fn func(AccountID, Record) error) error {
	return l.Groups(func(v GroupView) error {
		return v.Accounts(func(account AccountID) error {
			return v.Records(account, func(r Record) error { return fn(account, r) })
		})
	})
}

func withView(s store.Store, g store.Group, fn func(store.View) error) (err error) {
	v, err := s.View(g)
	if err != nil {
		return err
	}
	defer func() {
		if closed := v.Close(); err == nil {
			err = closed
		}
	}()
	return fn(v)
}

func (r Reader) scanRecords(fn func(Record) error) error { return r.scanRange(nil, nil, fn) }
