package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleReader reads one group from the live database or from a snapshot of it.
type pebbleReader struct {
	p     *Pebble
	from  pebble.Reader
	group Group
}

// Reader implements Store.
func (p *Pebble) Reader(group Group) Reader { return &pebbleReader{p, p.db, group} }

func (r *pebbleReader) Get(key []byte) ([]byte, error) {
	if err := r.p.enter(); err != nil {
		return nil, err
	}
	defer r.p.leave()
	var room [96]byte
	v, closer, err := r.from.Get(append(append(room[:0], byte(r.group)), key...))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append(make([]byte, 0, len(v)), v...), nil
}

func (r *pebbleReader) Scan(lower, upper []byte, fn func(key, value []byte) error) (err error) {
	if err := r.p.enter(); err != nil {
		return err
	}
	defer r.p.leave()
	bounds := &pebble.IterOptions{
		LowerBound: append([]byte{byte(r.group)}, lower...),
		UpperBound: []byte{byte(r.group) + 1},
	}
	if upper != nil {
		bounds.UpperBound = append([]byte{byte(r.group)}, upper...)
	}
	it, err := r.from.NewIter(bounds)
	if err != nil {
		return err
	}
	defer func() {
		if closed := it.Close(); err == nil {
			err = closed
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := fn(it.Key()[1:], value); err != nil {
			return err
		}
	}
	return it.Error()
}

// pebbleView is a snapshot of the whole database, read through one group.
type pebbleView struct {
	pebbleReader
	snapshot *pebble.Snapshot
	seq      uint64
}

// View implements Store.
func (p *Pebble) View(group Group) (View, error) {
	if group > Global {
		return nil, errGroup(group)
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	s := p.db.NewSnapshot()
	_, seq, err := readMeta(s, group)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &pebbleView{pebbleReader{p, s, group}, s, seq}, nil
}

func (v *pebbleView) Seq() uint64  { return v.seq }
func (v *pebbleView) Close() error { return v.snapshot.Close() }
