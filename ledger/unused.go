package ledger

import "encoding/binary"

// unusedIDs knows which of the ids leased by this ledger have no record yet, so
// that a charge need not ask the engine for a key that is not there (the most
// expensive question: no cache holds the answer). It holds because a block is
// leased to one process and, as long as that process owns all groups, only its
// sequencer writes records; ids of other blocks are looked up.
type unusedIDs struct {
	blocks map[idBlock]*[leaseLength / 64]uint64 // bit set: has a record
	order  []idBlock                             // oldest first
}

// idBlock names one lease: its counters share their upper half.
type idBlock struct {
	prefix [3]byte
	day    uint32
	upper  uint16
}

// maxBlocks bounds the memory: 8 KiB each.
const maxBlocks = 64

// certainly reports that no account has a durable record under this key. False
// means that the engine must be asked.
func (u *unusedIDs) certainly(recordKey []byte) bool {
	block, lower := splitRecordKey(recordKey)
	bits := u.blocks[block]
	return bits != nil && bits[lower/64]&(1<<(lower%64)) == 0
}

// allCertainly is certainly for count ids of one lease, the first of which is that of the key.
func (u *unusedIDs) allCertainly(recordKey []byte, count int) bool {
	block, first := splitRecordKey(recordKey)
	bits := u.blocks[block]
	for n := int(first); bits != nil && n < int(first)+count; n++ {
		if bits[n/64]&(1<<(n%64)) != 0 {
			return false
		}
	}
	return bits != nil
}

// used notes that count ids of one lease, up to that of the key, have records.
func (u *unusedIDs) used(recordKey []byte, count int) {
	block, last := splitRecordKey(recordKey)
	bits := u.blocks[block]
	for n := int(last) - count + 1; bits != nil && n <= int(last); n++ {
		bits[n/64] |= 1 << (n % 64)
	}
}

func splitRecordKey(key []byte) (b idBlock, lower uint16) {
	copy(b.prefix[:], key[9:12])
	b.day = binary.BigEndian.Uint32(key[12:])
	b.upper = binary.BigEndian.Uint16(key[16:])
	return b, binary.BigEndian.Uint16(key[18:])
}

// committed learns from a durable write.
func (u *unusedIDs) committed(e *entry) {
	key := e.key[keyHead:]
	switch Space(e.key[accountHead]) {
	case spaceRecord:
		u.used(key, 1)
	case spaceBlock:
		u.used(key, int(blockCount(e.value)))
	case spaceLease:
		var v lease
		if v.decode(e.value) != nil {
			return
		}
		u.add(idBlock{[3]byte(key), v.day, uint16((v.next - leaseLength) / leaseLength)})
	}
}

func (u *unusedIDs) add(b idBlock) {
	if u.blocks == nil {
		u.blocks = make(map[idBlock]*[leaseLength / 64]uint64)
	}
	if len(u.order) == maxBlocks {
		delete(u.blocks, u.order[0])
		u.order = append(u.order[:0], u.order[1:]...)
	}
	u.blocks[b] = new([leaseLength / 64]uint64)
	u.order = append(u.order, b)
}
