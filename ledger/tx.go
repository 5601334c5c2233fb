package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"cotejo/store"
)

// Tx is a command's view of one account: its own writes over the committed
// state. It cannot name a key of another account. Values read must not be
// changed or kept after Apply.
type Tx struct {
	seq     *sequencer
	account AccountID
	key     []byte // full key at hand, reused

	// Room for the commands of this package, reused from one to the next.
	wallet   wallet
	movement Movement
	value    []byte
	// The civil day, as YYYYMMDD, of a moment from dayBegin to before dayEnd.
	dayBegin, dayEnd time.Time
	civilDay         uint32
}

func (tx *Tx) enter(s *sequencer, account AccountID) {
	tx.seq, tx.account = s, account
	s.pending.begin()
}

// leave makes a Tx that was kept after Apply useless.
func (tx *Tx) leave() { tx.seq = nil }

// Account is the account that the command runs in.
func (tx *Tx) Account() AccountID { return tx.account }

// Get returns store.ErrNotFound when the key is absent.
func (tx *Tx) Get(space Space, key []byte) ([]byte, error) {
	s := tx.seq
	tx.key = appendKey(tx.key[:0], tx.account, space, key)
	if e := s.pending.find(tx.key); e != nil {
		if e.deleted {
			return nil, store.ErrNotFound
		}
		return e.value, nil
	}
	hot := isHot(tx.key)
	if hot {
		if v, ok := s.hot.get(tx.key); ok {
			return v, nil
		}
	}
	v, err := s.groups[tx.key[0]].reader.Get(tx.key[1:])
	if err == nil && hot {
		s.hot.put(tx.key, v)
	}
	return v, err
}

// Put copies key and value. The ledger's own spaces are closed to other
// packages: money changes only by the commands of this one.
func (tx *Tx) Put(space Space, key, value []byte) {
	refuseOwn(space)
	tx.put(space, key, value)
}

// Delete removes a key, present or not.
func (tx *Tx) Delete(space Space, key []byte) {
	refuseOwn(space)
	tx.key = appendKey(tx.key[:0], tx.account, space, key)
	tx.seq.pending.set(tx.key, nil, true)
}

func refuseOwn(space Space) {
	if space < ownSpacesEnd {
		panic(fmt.Sprintf("ledger: space %#x belongs to the ledger", byte(space)))
	}
}

func (tx *Tx) put(space Space, key, value []byte) {
	tx.key = appendKey(tx.key[:0], tx.account, space, key)
	tx.seq.pending.set(tx.key, value, false)
}

// Scan calls fn for each key of the space that starts with prefix, ascending,
// own writes included, until fn returns an error, which Scan returns. fn must
// not write.
func (tx *Tx) Scan(space Space, prefix []byte, fn func(key, value []byte) error) error {
	lower := appendKey(nil, tx.account, space, prefix)
	own := tx.seq.pending.within(lower)
	emit := func() error {
		e := own[0]
		own = own[1:]
		if e.deleted {
			return nil
		}
		return fn(e.key[keyHead:], e.value)
	}
	err := tx.seq.groups[lower[0]].reader.Scan(lower[1:], after(lower[1:]), func(k, v []byte) error {
		for len(own) > 0 {
			order := bytes.Compare(own[0].key[1:], k)
			if order > 0 {
				break
			}
			if err := emit(); err != nil || order == 0 {
				return err
			}
		}
		return fn(k[keyHead-1:], v)
	})
	for err == nil && len(own) > 0 {
		err = emit()
	}
	return err
}

// overlay is what a batch will write: the writes of its commands in the order
// in which their keys were first named (the order of the batch, so the same
// commands always give the same bytes). It can take back what the command at
// hand wrote.
type overlay struct {
	entries []entry
	index   map[string]int // full key → entries
	undo    []undo
	room    []byte // the keys and values of entries are cut from here
	bytes   int    // copied since reset
	blocks  int    // of records that were put since reset, or a few more
}

type entry struct {
	key     []byte // full
	value   []byte
	deleted bool
}

type undo struct {
	at    int
	fresh bool
	old   entry
}

// roomBytes is the size of one piece of room.
const roomBytes = 256 << 10

func (o *overlay) init() {
	o.index = make(map[string]int)
	o.room = make([]byte, 0, roomBytes)
}

// begin forgets how to take back what was written so far.
func (o *overlay) begin() {
	clear(o.undo)
	o.undo = o.undo[:0]
}

func (o *overlay) rollback() {
	for _, u := range slices.Backward(o.undo) {
		if u.fresh {
			delete(o.index, string(o.entries[u.at].key))
			o.entries = o.entries[:u.at]
		} else {
			o.entries[u.at] = u.old
		}
	}
	o.begin()
}

// reset empties the overlay. Slices that it gave out become invalid.
func (o *overlay) reset() {
	o.begin()
	clear(o.entries)
	o.entries = o.entries[:0]
	clear(o.index)
	o.room = o.room[:0]
	o.bytes, o.blocks = 0, 0
}

func (o *overlay) find(key []byte) *entry {
	if i, ok := o.index[string(key)]; ok {
		return &o.entries[i]
	}
	return nil
}

func (o *overlay) set(key, value []byte, deleted bool) {
	if i, ok := o.index[string(key)]; ok {
		o.undo = append(o.undo, undo{at: i, old: o.entries[i]})
		o.entries[i].value, o.entries[i].deleted = o.keep(value), deleted
		return
	}
	i := len(o.entries)
	e := entry{o.keep(key), o.keep(value), deleted}
	o.entries = append(o.entries, e)
	// The entry's own key is the map's: nobody changes it before reset has emptied
	// the map. A copy would be a third of what a charge allocates.
	o.index[unsafe.String(unsafe.SliceData(e.key), len(e.key))] = i
	o.undo = append(o.undo, undo{at: i, fresh: true})
}

// keep copies b. A full piece of room stays alive through its slices only.
func (o *overlay) keep(b []byte) []byte {
	if len(b) > cap(o.room)-len(o.room) {
		o.room = make([]byte, 0, max(roomBytes, len(b)))
	}
	n := len(o.room)
	o.room = append(o.room, b...)
	o.bytes += len(b)
	return o.room[n:len(o.room):len(o.room)]
}

// within returns the entries whose key starts with prefix, by key.
func (o *overlay) within(prefix []byte) []entry {
	var out []entry
	for i := range o.entries {
		if bytes.HasPrefix(o.entries[i].key, prefix) {
			out = append(out, o.entries[i])
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return out
}
