package ratelimit

import (
	"math/bits"
	"sync"
	"time"
)

const (
	ways   = 8  // slots of a set: the places where one key may stand
	shards = 64 // locks; each set belongs to one
)

// slot is what is known of one key. From dead on it is as good as unknown.
type slot[S any] struct {
	state S // first: an empty one takes no room
	key   Key
	dead  time.Duration
}

type set[S any] [ways]slot[S]

// table is a set-associative table of fixed size. A shard's lock guards its sets.
type table[S any] struct {
	sets  []set[S]
	locks [shards]struct {
		sync.Mutex
		_ [56]byte // a cache line each
	}
}

// newTable holds entries keys, rounded up to a power of two.
func newTable[S any](entries int) *table[S] {
	n := max(shards, 1<<bits.Len(uint((entries+ways-1)/ways-1)))
	return &table[S]{sets: make([]set[S], n)}
}

// lock locks the part of the table where a key stands.
func (t *table[S]) lock(k Key) *sync.Mutex {
	mu := &t.locks[uint64(k)%shards].Mutex
	mu.Lock()
	return mu
}

// find returns the slot of a key, nil when nothing is known of it. The caller holds
// the key's lock for as long as it uses the slot.
func (t *table[S]) find(k Key, now time.Duration) *slot[S] {
	s := &t.sets[uint64(k)&uint64(len(t.sets)-1)]
	for i := range s {
		if s[i].key == k && s[i].dead > now {
			return &s[i]
		}
	}
	return nil
}

// take returns the slot of a key, as its zero value when nothing was known: in the
// place of one that is dead, or of the one that dies first. The caller holds the
// key's lock, and sets dead.
func (t *table[S]) take(k Key, now time.Duration) *slot[S] {
	if s := t.find(k, now); s != nil {
		return s
	}
	all := &t.sets[uint64(k)&uint64(len(t.sets)-1)]
	first := &all[0]
	for i := range all {
		if all[i].dead < first.dead {
			first = &all[i]
		}
	}
	*first = slot[S]{key: k}
	return first
}
