package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/bits"
	"strconv"

	"cotejo/canon"
	"cotejo/index"
)

// fold carries a history one version further: all three files are walked once,
// side by side, in key order.
type fold struct {
	version int      // index into the chain of the version that comes in
	columns []Column // of both versions
	past    *stream  // history so far; nil for the first version
	before  *stream  // rows of the version before; nil for the first version
	after   *stream  // rows of the version that comes in

	x, y  cells[[]byte]
	value []byte
}

// stream is a cursor that stands on a pair, or at the end.
type stream struct {
	c    *index.Cursor
	rows bool // redacted rows are passed over: they have no history
	ok   bool
}

func openStream(s *index.Sorted, rows bool) (*stream, error) {
	c, err := s.Cursor()
	if err != nil {
		return nil, err
	}
	st := &stream{c: c, rows: rows}
	st.next()
	return st, nil
}

func (s *stream) next() {
	for s.ok = s.c.Next(); s.ok && s.rows && suppressedRow(s.c.Value()); s.ok = s.c.Next() {
	}
}

// on reports whether the stream stands on key; a nil stream stands nowhere.
func (s *stream) on(key []byte) bool { return s != nil && s.ok && bytes.Equal(s.c.Key(), key) }

// run hands every history on, in key order. The slices are valid until emit
// returns.
func (f *fold) run(emit func(key, value []byte) error) error {
	var key []byte
	for {
		found := false
		for _, s := range []*stream{f.past, f.before, f.after} {
			if s != nil && s.ok && (!found || bytes.Compare(s.c.Key(), key) < 0) {
				key, found = append(key[:0], s.c.Key()...), true
			}
		}
		if !found {
			return nil
		}
		value, err := f.one(key)
		if err != nil {
			return fmt.Errorf("snapshots: historia de %q: %w", key, err)
		}
		if err := emit(key, value); err != nil {
			return err
		}
		for _, s := range []*stream{f.past, f.before, f.after} {
			if s.on(key) {
				s.next()
			}
		}
	}
}

// one returns the history of the row that at least one stream stands on.
func (f *fold) one(key []byte) ([]byte, error) {
	was, is := f.before.on(key), f.after.on(key)
	if !f.past.on(key) {
		if was {
			return nil, errors.New("la versión anterior tiene una fila sin historia")
		}
		f.value = appendPast(f.value[:0], f.version)
		if f.version > 0 {
			f.value = appendEvent(f.value, f.version, Added)
		}
		return f.value, nil
	}
	past := f.past.c.Value()
	if len(past) < 2 || (past[1] == pastPresent) != was {
		return nil, errors.New("la historia no concuerda con la versión anterior")
	}
	f.value = append(f.value[:0], past...)
	switch {
	case was && is:
		if err := f.changed(f.before.c.Value(), f.after.c.Value()); err != nil {
			return nil, err
		}
	case was:
		if err := f.x.decode(f.before.c.Value()); err != nil {
			return nil, err
		}
		f.value[1] = 0
		f.value = appendEvent(f.value, f.version, Removed)
		f.value = binary.AppendUvarint(f.value, uint64(len(f.x.norm)))
		for _, cell := range f.x.norm {
			f.value = appendCell(f.value, cell)
		}
	case is:
		f.value[1] = pastPresent
		f.value = appendEvent(f.value, f.version, Added)
	}
	if len(f.value) > maxPastBytes {
		return nil, fmt.Errorf("ocupa más de %d bytes", maxPastBytes)
	}
	return f.value, nil
}

func (f *fold) changed(before, after []byte) error {
	if bytes.Equal(before, after) {
		return nil
	}
	if err := f.x.decode(before); err != nil {
		return err
	}
	if err := f.y.decode(after); err != nil {
		return err
	}
	if len(f.x.norm) != len(f.columns) || len(f.y.norm) != len(f.columns) {
		return errRow
	}
	mask := uint64(0)
	for i, column := range f.columns {
		if column.Tracked && !bytes.Equal(f.x.norm[i], f.y.norm[i]) {
			mask |= 1 << i
		}
	}
	if mask == 0 {
		return nil
	}
	f.value = appendEvent(f.value, f.version, Changed)
	f.value = binary.AppendUvarint(f.value, mask)
	for i, cell := range f.x.norm {
		if mask&(1<<i) != 0 {
			f.value = appendCell(f.value, cell)
		}
	}
	return nil
}

// historyDigest computes historia_digest: see the package comment.
type historyDigest struct {
	sum    hash.Hash
	line   []byte
	events []byte
	e      event[[]byte]
}

func newHistoryDigest(chain []Version) *historyDigest {
	b := []byte{'['}
	for i, v := range chain {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"fecha_de_orden":`...)
		b = canon.AppendString(b, v.OrderDate.String())
		b = append(b, `,"sha256":`...)
		b = append(canon.AppendString(b, v.SHA256), '}')
	}
	d := &historyDigest{sum: sha256.New(), line: append(b, "]\n"...)}
	d.sum.Write(d.line)
	return d
}

func (d *historyDigest) add(key, value []byte) error {
	id, ordinal, err := cutKey(key)
	if err != nil {
		return err
	}
	d.events = d.events[:0]
	since, present, err := walkPast(value, &d.e, func(e *event[[]byte]) {
		b := d.events
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if e.kind != Added {
			b = append(b, `"antes":`...)
			b = append(appendTexts(b, e.before), ',')
		}
		if e.kind == Changed {
			b = append(b, `"columnas":[`...)
			for mask := e.mask; mask != 0; mask &= mask - 1 {
				if mask != e.mask {
					b = append(b, ',')
				}
				b = strconv.AppendInt(b, int64(bits.TrailingZeros64(mask)), 10)
			}
			b = append(b, "],"...)
		}
		b = append(b, `"tipo":"`...)
		b = append(b, byte(e.kind))
		b = append(b, `","version":`...)
		d.events = append(strconv.AppendInt(b, int64(e.version), 10), '}')
	})
	if err != nil {
		return err
	}
	b := append(d.line[:0], `{"desde":`...)
	b = strconv.AppendInt(b, int64(since), 10)
	b = append(b, `,"eventos":[`...)
	b = append(b, d.events...)
	b = append(b, `],"id":`...)
	b = appendIDText(b, id)
	b = append(b, `,"ordinal":`...)
	b = strconv.AppendInt(b, int64(ordinal), 10)
	b = append(b, `,"presente":`...)
	b = strconv.AppendBool(b, present)
	d.line = append(b, "}\n"...)
	d.sum.Write(d.line)
	return nil
}

func (d *historyDigest) String() string { return hex.EncodeToString(d.sum.Sum(nil)) }

// step is one fold written to a draft: chain[i] comes in. past is the history
// of chain[:i], nil for the first.
func (c *Catalogue) step(chain []Version, i int, past *index.Sorted) (_ *draft, digest string, err error) {
	f := &fold{version: i, columns: chain[i].Columns}
	var opened []interface{ Close() error }
	defer func() {
		for _, o := range opened {
			if cerr := o.Close(); err == nil {
				err = cerr
			}
		}
	}()
	open := func(s *index.Sorted, rows bool) (*stream, error) {
		st, err := openStream(s, rows)
		if err == nil {
			opened = append([]interface{ Close() error }{st.c}, opened...) // cursors close before files
		}
		return st, err
	}
	if i > 0 {
		before, err := c.openSorted(*chain[i-1].RowsFile)
		if err != nil {
			return nil, "", err
		}
		opened = append(opened, before)
		if f.before, err = open(before, true); err != nil {
			return nil, "", err
		}
		if f.past, err = open(past, false); err != nil {
			return nil, "", err
		}
	}
	after, err := c.openSorted(*chain[i].RowsFile)
	if err != nil {
		return nil, "", err
	}
	opened = append(opened, after)
	if f.after, err = open(after, true); err != nil {
		return nil, "", err
	}

	d, err := c.draft("historia.sst")
	if err != nil {
		return nil, "", err
	}
	w, sum := index.NewSorted(d), newHistoryDigest(chain[:i+1])
	err = f.run(func(key, value []byte) error {
		if err := sum.add(key, value); err != nil {
			return err
		}
		return w.Add(key, value)
	})
	for _, s := range []*stream{f.past, f.before, f.after} {
		if err == nil && s != nil {
			err = s.c.Close() // an error that ended a walk early must not look like its end
		}
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		w.Abort()
		d.discard()
		return nil, "", err
	}
	return d, sum.String(), nil
}

// foldAll builds the history of a chain from its rows alone.
func (c *Catalogue) foldAll(chain []Version) (d *draft, digest string, err error) {
	for i := range chain {
		var past *index.Sorted
		previous := d
		if i > 0 {
			if past, err = index.OpenSorted(previous.path); err != nil {
				previous.discard()
				return nil, "", err
			}
		}
		d, digest, err = c.step(chain, i, past)
		if i > 0 {
			err = errors.Join(err, past.Close())
			previous.discard()
		}
		if err != nil {
			return nil, "", err
		}
	}
	return d, digest, nil
}

// openSorted opens a published sorted file after comparing it with its record.
func (c *Catalogue) openSorted(want File) (*index.Sorted, error) {
	f, err := c.openChecked(want)
	if err != nil {
		return nil, err
	}
	s, err := index.OpenSortedFile(f)
	if err != nil {
		return nil, damaged(want, err)
	}
	return s, nil
}

// damaged says of an error that was met while reading a published file that the
// file is not what it was: a block that fails its checksum, a row that no writer
// of ours made.
func damaged(f File, err error) error {
	var known *CorruptError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &CorruptError{Path: f.Path, Want: f.SHA256, Got: err.Error()}
}

// hasHistoryDigest reports whether a history file holds this history.
func hasHistoryDigest(path, digest string, chain []Version) bool {
	s, err := index.OpenSorted(path)
	if err != nil {
		return false
	}
	defer s.Close()
	sum := newHistoryDigest(chain)
	return s.Prefix(nil, sum.add) == nil && sum.String() == digest
}
