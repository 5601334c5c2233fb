package ledger

import (
	"encoding/binary"

	"cotejo/store"
)

// Space separates the kinds of things that an account stores. The ledger owns
// 0x10 to 0x3f, package accounts 0x40 to 0x5f, package expedientes 0x78.
type Space byte

// The layout of an account's key space. A full key is
//
//	[group][shard][account 8][space][key …]
//
// with integers big-endian, so that byte order is the order of numbers. The
// group byte is the batch's; the store keeps the rest.
const (
	spaceWallet     Space = 0x10 // "" → open lots and the last movement number
	spaceMovement   Space = 0x11 // number 8 → movement
	spaceRecord     Space = 0x12 // org 8, sandbox 1, prefix 3, day 4, counter 4 → record
	spaceDictionary Space = 0x13 // hash 8 of (operation, edition) → text that records copy from

	spaceOnce  Space = 0x14 // org 8, sandbox 1, hash 32 of the client's key → what was done under it
	spaceUsage Space = 0x15 // org 8, sandbox 1, day 4, service → answers, and what paid for them
	spaceDay   Space = 0x16 // ledger day 4 → number of its first movement

	// Orders: org 8, sandbox 1, day 4, counter 4 of the order's id, and then
	spaceOrder      Space = 0x17 // "" → what it is and how far it is
	spaceOrderInput Space = 0x18 // number 4 → 0: its terms; from 1 on: a piece of its input
	spaceOrderBlock Space = 0x19 // last ordinal 4 → prefix 3, day 4, last counter 4 of the block with it
	// The key of a record's, with the counter of the last of the block → records
	spaceBlock Space = 0x1a

	// Of account 0 in shard 0 of every group; no account has it.
	spaceChain Space = 0x01 // seq 8 → link

	// Global only.
	spaceIDKey Space = 0x20 // "" → key of the id permutation
	spaceLease Space = 0x21 // prefix 3 → last day and counter leased
	// "" → day and counter below which no prefix leases; absent: never restored
	spaceRestored Space = 0x22

	ownSpacesEnd Space = 0x40
)

const (
	accountHead = 1 + 1 + 8       // group, shard, account
	keyHead     = accountHead + 1 // and space
	shardsEach  = 256 / store.Groups
)

// place tells where an account lives. It can never change: the shard is the top
// byte of a mixing hash (the finalizer of splitmix64) of the id.
func place(account AccountID) (store.Group, byte) {
	if account == Global {
		return store.Global, 0
	}
	x := uint64(account)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	shard := byte(x >> 56)
	return store.Group(shard / shardsEach), shard
}

// appendKey appends a full key.
func appendKey(dst []byte, account AccountID, space Space, key []byte) []byte {
	group, shard := place(account)
	dst = append(dst, byte(group), shard)
	dst = binary.BigEndian.AppendUint64(dst, uint64(account))
	dst = append(dst, byte(space))
	return append(dst, key...)
}

// after returns the smallest key that does not start with prefix, nil when
// there is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

func movementKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), number)
}

const recordKeyLen = 8 + 1 + 3 + 4 + 4

func appendRecordKey(dst []byte, org OrgID, sandbox bool, id VerificationID) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(org))
	dst = append(dst, boolByte(sandbox))
	dst = append(dst, id.Prefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Day)
	return binary.BigEndian.AppendUint32(dst, id.Counter)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
