package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"cotejo/delta"
	"cotejo/store"
)

// storedBlock is a block as it is read. Its memory is used again for the next.
type storedBlock struct {
	blockHead
	segments []segment
	base     [2]int
	raw      int
	packed   byte
	body     []byte // as stored

	open []byte // room: base and records
	text []byte // room: registro and acta of one record
	rest []byte // records behind the one that next read
	next int    // its place, from 0
}

// unpack gives decoders. One holds some memory, so those at work share a few.
var unpack = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderLowmem(true))
})

// read reads all but the records. value must not change while the block is used.
func (b *storedBlock) read(key, value []byte) error {
	if len(key) != recordKeyLen {
		return errValue
	}
	d := decode(value)
	old := b.blockHead
	b.blockHead = blockHead{codes: old.codes[:0]}
	b.order = OrderKey{OrgID(binary.BigEndian.Uint64(key)), key[8] != 0, VerificationID{OrderPrefix, d.uint32(), d.uint32(), 0}}
	b.first, b.count = d.ordinal(), d.ordinal()
	last := binary.BigEndian.Uint32(key[16:])
	b.ids = VerificationID{Prefix: old.ids.Prefix, Day: binary.BigEndian.Uint32(key[12:]), Counter: last - uint32(b.count-1)}
	if string(key[9:12]) != b.ids.Prefix {
		b.ids.Prefix = string(key[9:12])
	}
	b.service, b.operation = d.textLike(old.service), d.textLike(old.operation)
	copy(b.edition[:], d.take(len(b.edition)))
	codes := old.codes[:cap(old.codes)]
	for i := range d.count(1) {
		like := ""
		if i < len(codes) {
			like = codes[i]
		}
		b.codes = append(b.codes, d.textLike(like))
	}
	b.segments = b.segments[:0]
	paid := 0
	for range d.count(3) {
		s := segment{d.ordinal(), d.centavos(), d.uvarint()}
		paid += s.count
		b.segments = append(b.segments, s)
	}
	b.base = [2]int{d.size(maxBase), d.size(maxBase)}
	b.raw, b.packed = d.size(maxRaw), d.byte()
	if d.bad || b.first == 0 || b.count == 0 || b.count > MaxBlockRecords || uint32(b.count-1) > last || paid != b.count ||
		b.base[0]+b.base[1] > b.raw || b.packed > packedZstd {
		return errValue
	}
	b.body, b.next, b.rest = d.b, -1, nil
	return nil
}

// size reads a length of at most max bytes.
func (d *decoder) size(max int) int {
	v := d.uvarint()
	if v > uint64(max) {
		d.fail()
		return 0
	}
	return int(v)
}

// expand makes the records readable.
func (b *storedBlock) expand() error {
	if b.packed == packedPlainly {
		b.open = append(b.open[:0], b.body...)
	} else {
		u, err := unpack()
		if err != nil {
			return err
		}
		if b.open, err = u.DecodeAll(b.body, b.open[:0]); err != nil {
			return fmt.Errorf("%w: %w", errValue, err)
		}
	}
	if len(b.open) != b.raw {
		return errValue
	}
	b.next, b.rest = 0, b.open[b.base[0]+b.base[1]:]
	return nil
}

// coded is one record of a block, not read yet.
type coded struct {
	code           string
	note           []byte
	registro, acta []byte
}

// step reads over the next record.
func (b *storedBlock) step() (c coded, err error) {
	if b.next < 0 {
		if err := b.expand(); err != nil {
			return c, err
		}
	}
	d := decoder{b: b.rest}
	at := int(d.byte())
	c.note = d.take(int(d.byte()))
	c.registro = d.take(d.size(len(d.b)))
	c.acta = d.take(d.size(len(d.b)))
	if d.bad || at >= len(b.codes) || b.next >= b.count {
		return c, errValue
	}
	c.code = b.codes[at]
	b.rest = d.b
	if b.next++; b.next == b.count && len(b.rest) > 0 {
		return c, errValue
	}
	return c, nil
}

// record fills r with the record that step read last. dst is room for its texts, which
// it returns, grown.
func (b *storedBlock) record(r *Record, c *coded, perm *permutation, dst []byte) ([]byte, error) {
	at := b.next - 1
	if b.order.ID.Code == 0 { // once for a block
		if err := perm.complete(&b.order.ID); err != nil {
			return dst, err
		}
	}
	*r = Record{
		ID: b.ids, Org: b.order.Org, Sandbox: b.order.Sandbox, Service: b.service, Code: c.code, Operation: b.operation, Edition: b.edition,
		Order: b.order.ID, Ordinal: b.first + at, Note: c.note,
	}
	r.ID.Counter += uint32(at)
	if err := perm.complete(&r.ID); err != nil {
		return dst, err
	}
	r.Centavos, r.Movement = b.paid(at)
	if dst == nil {
		dst = make([]byte, 0, codedLen(c.registro)+codedLen(c.acta))
	}
	text, err := delta.Expand(dst, b.open[:b.base[0]], c.registro, maxRegistro)
	n := len(text)
	if err == nil {
		text, err = delta.Expand(text, b.open[b.base[0]:b.base[0]+b.base[1]], c.acta, maxActa)
	}
	if err != nil {
		return dst, fmt.Errorf("ledger: registro %v: %w", r.ID, errors.Join(errValue, err))
	}
	r.Registro, r.Acta = text[len(dst):n:n], text[n:]
	return text, nil
}

// codedLen is the length of what a code stands for, 0 when that is too much.
func codedLen(code []byte) int {
	n, _ := binary.Uvarint(code)
	if n > maxRegistro {
		return 0
	}
	return int(n)
}

// paid is what a record cost, by its place.
func (b *storedBlock) paid(at int) (centavos int64, movement uint64) {
	for i := range b.segments {
		s := &b.segments[i]
		if at < s.count {
			return s.unit, s.movement
		}
		at -= s.count
	}
	return 0, 0
}

// find reads the record of a counter, which the block holds. Its texts are the
// caller's.
func (b *storedBlock) find(counter uint32, perm *permutation) (r Record, err error) {
	for {
		c, err := b.step()
		if err != nil {
			return r, b.broken(err)
		}
		if b.ids.Counter+uint32(b.next-1) == counter {
			_, err := b.record(&r, &c, perm, nil)
			return r, err
		}
	}
}

func (b *storedBlock) broken(err error) error {
	return fmt.Errorf("ledger: bloque del lote %s-%d, desde la consulta %d: %w", OrderPrefix, b.order.ID.Day, b.first, err)
}

// blockOf reads the block that holds a record, store.ErrNotFound when none does. key
// is the record's.
func (r Reader) blockOf(key []byte) (*storedBlock, error) {
	var b *storedBlock
	err := r.scanBetween(spaceBlock, key, after(key[:recordKeyLen-4]), func(k, v []byte) error {
		b = new(storedBlock)
		if err := b.read(k, bytes.Clone(v)); err != nil {
			return err
		}
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	if b == nil || b.ids.Counter > binary.BigEndian.Uint32(key[recordKeyLen-4:]) {
		return nil, store.ErrNotFound
	}
	return b, nil
}
