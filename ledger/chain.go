package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"cotejo/store"
)

// Head is where the chain of a group stands: the sequence number of its newest
// batch and the hash over all its batches since the chain began. Sum is zero in a
// group without a link: nothing was written yet, or nothing since chains exist.
type Head struct {
	Group store.Group
	Seq   uint64
	Sum   [sha256.Size]byte
}

// Each batch of a group carries its link. docs/data-formats.md describes it.
const (
	linkKeyLen = accountHead - 1 + 1 + 8
	linkLen    = 1 + 2*sha256.Size
)

// appendLinkKey appends the key of a link as the store keeps it, without the
// group: shard 0, account 0.
func appendLinkKey(dst []byte, seq uint64) []byte {
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(spaceChain))
	return binary.BigEndian.AppendUint64(dst, seq)
}

// link is what a batch adds to the chain of its group.
type link struct{ digest, head [sha256.Size]byte }

func (k *link) decode(value []byte) error {
	d := decode(value)
	copy(k.digest[:], d.take(sha256.Size))
	copy(k.head[:], d.take(sha256.Size))
	return d.done()
}

// follows returns the head that digest makes of the head before.
func follows(before, digest *[sha256.Size]byte, seq uint64) [sha256.Size]byte {
	var text [2*sha256.Size + 8]byte
	copy(text[:], before[:])
	copy(text[sha256.Size:], digest[:])
	binary.BigEndian.PutUint64(text[2*sha256.Size:], seq)
	return sha256.Sum256(text[:])
}

// appendBatch appends what the digest of a batch is taken over.
func appendBatch(dst []byte, b *store.Batch) []byte {
	dst = append(dst, byte(b.Group))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b.Puts)))
	for i := range b.Puts {
		p := &b.Puts[i]
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Key)))
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Value)))
		dst = append(append(dst, p.Key...), p.Value...)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b.Deletes)))
	for _, key := range b.Deletes {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
		dst = append(dst, key...)
	}
	return dst
}

// chain is the end of a group's chain in the sequencer's memory.
type chain struct {
	head [sha256.Size]byte // after the last committed batch

	// The link of the batch at hand.
	key   [linkKeyLen]byte
	value [linkLen]byte
}

// maxCoded bounds the room to work in that is kept for the next batch: a rare large
// batch, as one that opens an order, must not stay in memory.
const maxCoded = 256 << 10

// extend appends the link of b to its puts. coded is room to work in; it returns
// it, perhaps grown.
func (c *chain) extend(b *store.Batch, coded []byte) []byte {
	coded = appendBatch(coded[:0], b)
	digest := sha256.Sum256(coded)
	head := follows(&c.head, &digest, b.Seq)
	c.value[0] = schema
	copy(c.value[1:], digest[:])
	copy(c.value[1+sha256.Size:], head[:])
	b.Puts = append(b.Puts, store.Put{Key: appendLinkKey(c.key[:0], b.Seq), Value: c.value[:]})
	if cap(coded) > maxCoded {
		return nil
	}
	return coded
}

// next is the head after the batch at hand.
func (c *chain) next() [sha256.Size]byte { return [sha256.Size]byte(c.value[1+sha256.Size:]) }

// committed makes the link of the batch at hand the end of the chain.
func (c *chain) committed() { c.head = c.next() }

func brokenChain(g store.Group, format string, args ...any) error {
	return fmt.Errorf("%w: grupo %d: %s; restaure el respaldo más reciente", ErrIntegrity, g, fmt.Sprintf(format, args...))
}

// headOf reads the head of a group whose newest batch is seq. ErrIntegrity when
// the chain does not end with exactly that batch.
func headOf(r store.Reader, g store.Group, seq uint64) (Head, error) {
	h := Head{Group: g, Seq: seq}
	beyond, err := firstLink(r, seq+1)
	if err != nil {
		return h, err
	}
	if beyond != 0 {
		return h, brokenChain(g, "el último lote es el %d y su cadena sigue con el %d", seq, beyond)
	}
	h.Sum, err = sumAt(r, g, seq)
	return h, err
}

// sumAt reads the head that batch seq left: zero when the chain begins later.
func sumAt(r store.Reader, g store.Group, seq uint64) (sum [sha256.Size]byte, err error) {
	value, err := r.Get(appendLinkKey(nil, seq))
	switch {
	case err == nil:
		var k link
		if err := k.decode(value); err != nil {
			return sum, brokenChain(g, "el eslabón del lote %d es ilegible", seq)
		}
		return k.head, nil
	case !errors.Is(err, store.ErrNotFound):
		return sum, err
	}
	first, err := firstLink(r, 0)
	if err == nil && first != 0 && first < seq {
		err = brokenChain(g, "falta el eslabón del lote %d", seq)
	}
	return sum, err
}

// firstLink returns the sequence number of the first link from seq on, 0 when
// there is none.
func firstLink(r store.Reader, seq uint64) (found uint64, err error) {
	err = scanLinks(r, seq, func(seq uint64, _ []byte) error {
		found = seq
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

func scanLinks(r store.Reader, from uint64, fn func(seq uint64, value []byte) error) error {
	lower := appendLinkKey(nil, from)
	return r.Scan(lower, after(lower[:accountHead]), func(key, value []byte) error {
		if len(key) != linkKeyLen {
			return errValue
		}
		return fn(binary.BigEndian.Uint64(key[linkKeyLen-8:]), value)
	})
}

// HeadsOf reads the heads of all groups of a store, by group, each as it was at
// one moment. The store may be read-only. ErrIntegrity when a chain does not end
// with the newest batch of its group.
func HeadsOf(s store.Store) ([]Head, error) {
	heads := make([]Head, 0, store.Groups+1)
	for g := range store.Group(store.Groups + 1) {
		err := withView(s, g, func(v store.View) error {
			h, err := headOf(v, g, v.Seq())
			heads = append(heads, h)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// chain proves one group's chain from its first link to the newest batch.
func (c *checker) chain(v store.View, g store.Group) error {
	var head [sha256.Size]byte
	last := uint64(0)
	err := scanLinks(v, 0, func(seq uint64, value []byte) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if last != 0 && seq != last+1 {
			c.fault("grupo %d: falta el eslabón del lote %d: sigue el %d", g, last+1, seq)
		}
		var k link
		if err := k.decode(value); err != nil {
			c.fault("grupo %d: el eslabón del lote %d es ilegible", g, seq)
		} else if follows(&head, &k.digest, seq) != k.head {
			c.fault("grupo %d: el eslabón del lote %d no sigue del anterior", g, seq)
		}
		// Going on from what it says names each broken place once.
		head, last = k.head, seq
		return nil
	})
	if err != nil {
		return err
	}
	if last != 0 && last != v.Seq() {
		c.fault("grupo %d: el último lote es el %d y su cadena termina en el %d", g, v.Seq(), last)
	}
	return nil
}
