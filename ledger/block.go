package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"cotejo/delta"
)

// A block is consecutive records of one order under one key. They differ in little, so
// each is coded as copies from one text that the block carries itself, its base, and
// the whole is compressed. A block needs nothing beside it to be read.

// Bounds of a block.
const (
	// MaxBlockRecords is how many records a block may have.
	MaxBlockRecords = 512
	// MaxNote bounds what is kept beside a record, in bytes.
	MaxNote = 64

	maxBase  = 64 << 10  // registro and acta of the base
	fullRaw  = 128 << 10 // a block of so many bytes, before compression, takes no more records
	maxRaw   = fullRaw + maxRegistro + maxActa + 4<<10
	maxCodes = 16 // result codes of one block
)

// How what follows the head of a block is kept.
const (
	packedPlainly = 0
	packedZstd    = 1
)

// Block is records that are ready to be stored by FillOrder. It is its builder's.
type Block struct {
	blockHead
	base   [2]int // lengths of the base's registro and acta
	raw    int    // length of body before it was packed
	packed byte
	body   []byte
}

// blockHead is what all records of a block share.
type blockHead struct {
	order              OrderKey
	ids                VerificationID // of the first record
	first, count       int            // ordinal of the first record
	service, operation string
	edition            [32]byte
	codes              []string // that its records have
}

func (b *blockHead) last() int { return b.first + b.count - 1 }

// lastID is the id of the last record, without its code.
func (b *blockHead) lastID() VerificationID {
	return VerificationID{Prefix: b.ids.Prefix, Day: b.ids.Day, Counter: b.ids.Counter + uint32(b.count-1)}
}

// First and Count tell which ordinals of the order the block holds.
func (b *Block) First() int { return b.first }

// Count is how many records the block holds.
func (b *Block) Count() int { return b.count }

// append appends the stored value; the key holds whose it is and the last id.
func (b *Block) append(dst []byte, plan []segment) []byte {
	dst = append(dst, schema)
	dst = binary.BigEndian.AppendUint32(dst, b.order.ID.Day)
	dst = binary.BigEndian.AppendUint32(dst, b.order.ID.Counter)
	dst = binary.AppendUvarint(dst, uint64(b.first))
	dst = binary.AppendUvarint(dst, uint64(b.count))
	dst = appendText(dst, b.service)
	dst = appendText(dst, b.operation)
	dst = append(dst, b.edition[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(b.codes)))
	for _, c := range b.codes {
		dst = appendText(dst, c)
	}
	dst = binary.AppendUvarint(dst, uint64(len(plan)))
	for i := range plan {
		s := &plan[i]
		dst = binary.AppendUvarint(dst, uint64(s.count))
		dst = binary.AppendUvarint(dst, uint64(s.unit))
		dst = binary.AppendUvarint(dst, s.movement)
	}
	for _, n := range [...]int{b.base[0], b.base[1], b.raw} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = append(dst, b.packed)
	return append(dst, b.body...)
}

// BlockBuilder codes records into blocks, one after another, without the sequencer.
// It is for one goroutine, and takes a few hundred KiB; several may work at once on
// one order. Between the records of one order it allocates nothing.
type BlockBuilder struct {
	perm  *permutation
	block Block
	most  int            // records that there are ids for
	next  VerificationID // of the next record

	// The base of this block; nil texts: none was found yet.
	registro, acta *delta.Base
	base           [2][]byte
	// The shortest text so far, which is the base of the next block if it is much
	// shorter: one that says the least, as most do.
	short [2][]byte

	records []byte // coded
	code    []byte // room
	raw     []byte // room for base and records
	packed  []byte // room
	pack    *zstd.Encoder
	sumAt   int // where the last acta named the SHA-256 of its registro
	idAt    int // where it named its id
}

// NewBlockBuilder returns a builder for orders of any account: nothing of one order is
// in the blocks of another.
func (l *Ledger) NewBlockBuilder() (*BlockBuilder, error) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(256<<10))
	if err != nil {
		return nil, fmt.Errorf("ledger: no se pudo preparar la compresión: %w", err)
	}
	return &BlockBuilder{perm: l.perm, pack: pack}, nil
}

// Reset begins a block of the order: its first record has the ordinal first and the
// id ids, which with those behind it are count ids from NextIDs. Of the order its
// OrderKey, Service, Operation and Edition count. The Block before becomes invalid.
func (b *BlockBuilder) Reset(o *Order, first int, ids VerificationID, count int) {
	head := blockHead{
		order: o.OrderKey, ids: ids, first: first, service: o.Service, operation: o.Operation, edition: o.Edition, codes: b.block.codes[:0],
	}
	if b.block.order != o.OrderKey { // no order's texts help to store another's
		b.registro, b.acta, b.base, b.short = nil, nil, [2][]byte{}, [2][]byte{}
	} else if n := len(b.short[0]) + len(b.short[1]); n > 0 && n < (len(b.base[0])+len(b.base[1]))*15/16 {
		b.rebase(b.short[0], b.short[1])
	}
	b.short = [2][]byte{b.short[0][:0], b.short[1][:0]}
	b.block = Block{blockHead: head}
	b.most = min(count, MaxBlockRecords, leaseLength-int(ids.Counter%leaseLength)) // of one lease
	b.records = b.records[:0]
	b.next = ids
	b.next.Code = b.perm.code(ids.Prefix, ids.Day, ids.Counter)
}

func (b *BlockBuilder) rebase(registro, acta []byte) {
	b.registro, b.acta = delta.NewBase(registro), delta.NewBase(acta)
	b.base = [2][]byte{b.registro.Bytes(), b.acta.Bytes()}
}

// Room reports that the block takes one more record. It always takes one.
func (b *BlockBuilder) Room() bool {
	return b.block.count < b.most && len(b.records)+len(b.base[0])+len(b.base[1]) < fullRaw
}

// NextID is the id that the next record has.
func (b *BlockBuilder) NextID() VerificationID { return b.next }

// Next is the ordinal of the next record.
func (b *BlockBuilder) Next() int { return b.block.first + b.block.count }

var errFull = errors.New("ledger: el bloque está lleno")

// Add adds the next record, whose id is NextID: its result code, registro and acta, and a
// note of at most MaxNote bytes to read beside it. sum is the SHA-256 of the registro,
// which the acta must name, as it must the id. The texts are the caller's again when it returns. After an
// error the block is as it was.
func (b *BlockBuilder) Add(code string, registro []byte, sum [sha256.Size]byte, acta, note []byte) error {
	if !b.Room() {
		return errFull
	}
	id := b.next
	if id.Prefix == OrderPrefix || !validPrefix(id.Prefix) {
		return fmt.Errorf("ledger: %v no es el identificador de un registro", id)
	}
	if len(registro) == 0 || len(registro) > maxRegistro || len(acta) == 0 || len(acta) > maxActa || len(note) > MaxNote {
		return fmt.Errorf("ledger: registro %v: el registro lleva de 1 a %d bytes, el acta de 1 a %d y la nota a lo más %d", id, maxRegistro, maxActa, MaxNote)
	}
	var room [2 * sha256.Size]byte
	if !names(acta, id.AppendTo(room[:0]), &b.idAt) {
		return fmt.Errorf("ledger: el acta de %v no nombra su verification_id", id)
	}
	if !names(acta, hex.AppendEncode(room[:0], sum[:]), &b.sumAt) {
		return fmt.Errorf("ledger: el acta de %v no nombra el SHA-256 de su registro", id)
	}
	at, err := b.codeAt(code)
	if err != nil {
		return err
	}
	size := len(registro) + len(acta)
	if b.registro == nil && size <= maxBase {
		b.rebase(registro, acta)
	}
	if n := len(b.short[0]) + len(b.short[1]); (n == 0 || size < n) && size <= maxBase {
		b.short = [2][]byte{append(b.short[0][:0], registro...), append(b.short[1][:0], acta...)}
	}
	b.records = append(b.records, byte(at), byte(len(note)))
	b.records = append(b.records, note...)
	for _, part := range [...]struct {
		base *delta.Base
		text []byte
	}{{b.registro, registro}, {b.acta, acta}} {
		b.code = part.base.Append(b.code[:0], part.text)
		b.records = binary.AppendUvarint(b.records, uint64(len(b.code)))
		b.records = append(b.records, b.code...)
	}
	b.block.count++
	if b.next.Counter++; b.block.count < b.most {
		b.next.Code = b.perm.code(id.Prefix, id.Day, b.next.Counter)
	}
	return nil
}

// names reports that the acta holds a text: where the one before did, or elsewhere.
func names(acta, text []byte, at *int) bool {
	if *at+len(text) <= len(acta) && bytes.Equal(acta[*at:*at+len(text)], text) {
		return true
	}
	if i := bytes.Index(acta, text); i >= 0 {
		*at = i
		return true
	}
	return false
}

// codeAt returns the place of a result code in the block.
func (b *BlockBuilder) codeAt(code string) (int, error) {
	for i, c := range b.block.codes {
		if c == code {
			return i, nil
		}
	}
	if code == "" || len(code) > maxName || len(b.block.codes) == maxCodes {
		return 0, fmt.Errorf("ledger: el result_code %q debe llevar de 1 a %d bytes, y un bloque a lo más %d distintos", code, maxName, maxCodes)
	}
	b.block.codes = append(b.block.codes, code)
	return len(b.block.codes) - 1, nil
}

// Block returns the block of the records that were added. It is valid until the next
// Reset.
func (b *BlockBuilder) Block() *Block {
	b.raw = append(append(append(b.raw[:0], b.base[0]...), b.base[1]...), b.records...)
	k := &b.block
	k.base, k.raw = [2]int{len(b.base[0]), len(b.base[1])}, len(b.raw)
	k.packed, k.body = packedPlainly, b.raw
	b.packed = b.pack.EncodeAll(b.raw, b.packed[:0])
	if len(b.packed) < len(b.raw) {
		k.packed, k.body = packedZstd, b.packed
	}
	return k
}
