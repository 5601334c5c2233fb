package ledger

import "time"

// Shard lets a test find neighbours.
func Shard(account AccountID) byte {
	_, shard := place(account)
	return shard
}

// AnchorFiles is the disk of an anchor.
type AnchorFiles = anchorFiles

// AnchoredOn makes the ledger keep its anchor on files, written at most once in
// every.
func (o Options) AnchoredOn(files AnchorFiles, every time.Duration) Options {
	o.Anchor, o.anchorFiles, o.anchorEvery = "ancla.json", files, every
	return o
}

// ReadAnchorOn is ReadAnchor on files.
func ReadAnchorOn(files AnchorFiles) ([]Head, error) { return readAnchor(files, "ancla.json") }

// Unlink deletes a link of the account's group, with a batch that is in order.
type Unlink struct{ Seq uint64 }

// Apply implements Command.
func (c Unlink) Apply(tx *Tx) (Result, error) {
	group, _ := place(tx.account)
	tx.seq.pending.set(appendLinkKey([]byte{byte(group)}, c.Seq), nil, true)
	return nil, nil
}

// LoseKey deletes the key of the id permutation.
type LoseKey struct{}

// Apply implements Command.
func (LoseKey) Apply(tx *Tx) (Result, error) {
	tx.seq.pending.set(appendKey(nil, Global, spaceIDKey, nil), nil, true)
	return nil, nil
}

// Waiting is how many commands wait for the sequencer.
func (l *Ledger) Waiting() int { return len(l.queue) }

// Size is how many bytes of a block are stored.
func (b *Block) Size() int { return len(b.append(nil, []segment{{b.count, 1200, 1}})) }

// CodeOf is the code of an id that lacks it.
func (l *Ledger) CodeOf(id VerificationID) uint32 { return l.perm.code(id.Prefix, id.Day, id.Counter) }

// Raw is what the block at hand holds before it is compressed.
func (b *BlockBuilder) Raw() []byte {
	b.Block()
	return b.raw
}
