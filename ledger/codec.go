package ledger

import (
	"encoding/binary"
	"errors"
	"time"
)

// Stored values are a schema byte, then fields without names: uvarints, zigzag
// varints, length-prefixed text and fixed big-endian integers. A reader accepts
// every schema ever written; there is one so far.
const schema = 1

var errValue = errors.New("ledger: valor guardado ilegible; corra «cotejo verify all» y restaure un respaldo")

// decoder reads a stored value. The first fault sticks: fields after it are zero
// and done reports it.
type decoder struct {
	b   []byte
	bad bool
}

// decode starts behind the schema byte.
func decode(b []byte) decoder {
	if len(b) == 0 || b[0] != schema {
		return decoder{bad: true}
	}
	return decoder{b: b[1:]}
}

func (d *decoder) fail() {
	d.b, d.bad = nil, true
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// centavos reads an amount that is never negative.
func (d *decoder) centavos() int64 {
	v := d.uvarint()
	if int64(v) < 0 {
		d.fail()
		return 0
	}
	return int64(v)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if v := d.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if v := d.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	return string(d.take(int(n)))
}

// textLike is text that costs nothing when it is old.
func (d *decoder) textLike(old string) string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	if b := d.take(int(n)); string(b) != old {
		return string(b)
	}
	return old
}

func (d *decoder) moment() time.Time { return time.Unix(0, d.varint()).UTC() }

// count reads how many items follow, each at least size bytes long.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

// ordinal reads the position of something in an order, or a count of such.
func (d *decoder) ordinal() int {
	v := d.uvarint()
	if v > maxOrdinal {
		d.fail()
		return 0
	}
	return int(v)
}

// id reads an id without its code.
func (d *decoder) id() VerificationID {
	return VerificationID{Prefix: string(d.take(3)), Day: d.uint32(), Counter: d.uint32()}
}

// done reports a value that was cut, too long or of an unknown schema.
func (d *decoder) done() error {
	if d.bad || len(d.b) > 0 {
		return errValue
	}
	return nil
}

// append appends all of the id but its code, which follows from the rest.
func (id VerificationID) append(dst []byte) []byte {
	dst = append(dst, id.Prefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Day)
	return binary.BigEndian.AppendUint32(dst, id.Counter)
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendMoment(dst []byte, t time.Time) []byte {
	return binary.AppendVarint(dst, t.UnixNano())
}
