package snapshots

import (
	"fmt"
	"strings"

	"cotejo/index"
)

// RowKey names a row in a version: its ID and ordinal. Keys sort as rows do.
type RowKey string

// Identity is the row's ID, each part ended by NUL.
func (k RowKey) Identity() string { return string(k[:len(k)-4]) }

// Parts returns how many parts the ID has.
func (k RowKey) Parts() int { return strings.Count(k.Identity(), "\x00") }

// ID returns part i of it.
func (k RowKey) ID(i int) string {
	rest := k.Identity()
	for ; i > 0; i-- {
		rest = rest[strings.IndexByte(rest, 0)+1:]
	}
	return rest[:strings.IndexByte(rest, 0)]
}

// Cells are those of one row, by column.
type Cells struct {
	Raw, Norm []string // as published (decoded), and normalised
}

// Visit calls fn for the rows that Find finds, in the same order, for a reader that
// keeps little of them: the slices of Cells are valid until fn returns. The texts
// may be kept, and keep the text of the whole row. Errors are as of Find.
func (s *Source) Visit(lookup string, fn func(RowKey, Cells) error) error {
	prefix, ok := lookupPrefix(nil, lookup)
	if !ok {
		return nil
	}
	return s.visit(func(v *visitor) error { return s.rows.Prefix(prefix, v.row) }, fn)
}

// VisitKeys calls fn as Visit does, for the rows of so many keys, which ascend. A
// key that the version does not have is an error.
func (s *Source) VisitKeys(keys []RowKey, fn func(RowKey, Cells) error) error {
	return s.visit(func(v *visitor) error {
		c, err := s.rows.Cursor()
		if err != nil {
			return err
		}
		for _, key := range keys {
			if !c.Seek([]byte(key)) || string(c.Key()) != string(key) {
				err = fmt.Errorf("snapshots: %s no tiene la fila %q", s.entry.Source, key)
			} else {
				err = v.row(c.Key(), c.Value())
			}
			if err != nil {
				break
			}
		}
		if cerr := c.Close(); cerr != nil {
			err = cerr
		}
		return err
	}, fn)
}

// visit hands rows on to fn and tells its errors from ours.
func (s *Source) visit(each func(*visitor) error, fn func(RowKey, Cells) error) error {
	v := visitor{fn: fn}
	if err := each(&v); v.theirs == nil {
		return damaged(*s.version.RowsFile, err)
	}
	return v.theirs
}

// visitor decodes rows one after another.
type visitor struct {
	fn     func(RowKey, Cells) error
	cells  cells[string]
	theirs error // of fn
}

func (v *visitor) row(key, value []byte) error {
	if suppressedRow(value) {
		return nil
	}
	if _, _, err := cutKey(key); err != nil {
		return err
	}
	if err := v.cells.decode(string(value)); err != nil {
		return err
	}
	v.theirs = v.fn(RowKey(key), Cells{v.cells.raw, v.cells.norm})
	return v.theirs
}

// RowCursor walks the current rows of a source in key order. It is not safe for
// concurrent use.
type RowCursor struct {
	s     *Source
	c     *index.Cursor
	cells cells[string]
}

// Rows starts a walk over the rows that can be found; the first Next moves to the
// first of them. It must be closed before the edition is released.
func (s *Source) Rows() (*RowCursor, error) {
	c, err := s.rows.Cursor()
	if err != nil {
		return nil, damaged(*s.version.RowsFile, err)
	}
	return &RowCursor{s: s, c: c}, nil
}

// Next moves to the next row; false at the end and after an error, which Close
// returns.
func (r *RowCursor) Next() bool {
	for r.c.Next() {
		if !suppressedRow(r.c.Value()) {
			return true
		}
	}
	return false
}

// Lookup is the row's ID[0]; valid until the next call of Next.
func (r *RowCursor) Lookup() []byte { return lookupOf(r.c.Key()) }

// Row decodes the row; its cells are valid as those of Visit are.
func (r *RowCursor) Row() (RowKey, Cells, error) {
	_, _, err := cutKey(r.c.Key())
	if err == nil {
		err = r.cells.decode(string(r.c.Value()))
	}
	return RowKey(r.c.Key()), Cells{r.cells.raw, r.cells.norm}, damaged(*r.s.version.RowsFile, err)
}

// Close ends the walk.
func (r *RowCursor) Close() error { return damaged(*r.s.version.RowsFile, r.c.Close()) }
