package snapshots

import (
	"bytes"
	"cmp"
	"runtime"
	"slices"
	"sync"

	"cotejo/checks"
	"cotejo/index"
)

// served is what an edition reads of one source: the files of the version that
// serves and of its history, and the RFCs that they mention. It is opened once for
// all editions of the process that have both files, so that an edition in which one
// source is another costs the opening of that one.
type served struct {
	key  servedKey
	uses int // guarded by opened.mu

	opening       sync.Mutex // held while the files are compared and walked
	rows, history *index.Sorted
	keys          []uint64     // packed RFCs, none twice
	of            []index.Rows // by key: what the files have of it
}

type servedKey struct{ rows, history File }

// serve opens the files of an entry, or finds them open; leaveServed gives them back.
func (o *opened) serve(key servedKey) (*served, error) {
	o.mu.Lock()
	s := o.served[key]
	if s == nil {
		if o.served == nil {
			o.served = map[servedKey]*served{}
		}
		s = &served{key: key}
		o.served[key] = s
	}
	s.uses++
	o.mu.Unlock()
	if err := s.open(o.c); err != nil {
		o.leaveServed(s)
		return nil, err
	}
	return s, nil
}

func (o *opened) leaveServed(s *served) {
	o.mu.Lock()
	s.uses--
	last := s.uses == 0
	if last {
		delete(o.served, s.key)
	}
	o.mu.Unlock()
	if last {
		s.close()
	}
}

// open compares both files with their hashes and collects what they mention. After
// an error the next one who needs them tries again.
func (s *served) open(c *Catalogue) (err error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.history != nil {
		return nil
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.rows, err = c.openSorted(s.key.rows); err != nil {
		return err
	}
	if s.history, err = c.openSorted(s.key.history); err != nil {
		return err
	}
	return s.collect()
}

// close closes files that were only read: an error loses nothing.
func (s *served) close() {
	for _, f := range []*index.Sorted{s.rows, s.history} {
		if f != nil {
			_ = f.Close()
		}
	}
	s.rows, s.history, s.keys, s.of = nil, nil, nil, nil
}

// walkPause is after how many rows a walk through a whole file lets requests go
// first: the processor is theirs.
const walkPause = 256

// collect finds the RFCs that the files mention, and which rows are theirs. Every row
// that can be found has a history; rows and history are walked side by side, and
// either is a mention, because one that is lacking would be answered «no aparece».
// What does not have the form of an RFC cannot be asked for and is left out; readers
// count it (rfc_no_reconocidos).
func (s *served) collect() (err error) {
	rows, err := s.rows.Cursor()
	if err != nil {
		return damaged(s.key.rows, err)
	}
	defer func() { err = cmp.Or(err, damaged(s.key.rows, rows.Close())) }()
	past, err := s.history.Cursor()
	if err != nil {
		return damaged(s.key.history, err)
	}
	defer func() { err = cmp.Or(err, damaged(s.key.history, past.Close())) }()
	nextRow := func() bool {
		for rows.Next() {
			if !suppressedRow(rows.Value()) {
				return true
			}
		}
		return false
	}
	var lookup []byte
	number, walked := uint32(0), 0
	moreRows, morePast := nextRow(), past.Next()
	for moreRows || morePast {
		if walked++; walked%walkPause == 0 {
			runtime.Gosched()
		}
		if !moreRows || morePast && bytes.Compare(lookupOf(past.Key()), lookupOf(rows.Key())) < 0 {
			lookup = append(lookup[:0], lookupOf(past.Key())...)
		} else {
			lookup = append(lookup[:0], lookupOf(rows.Key())...)
		}
		of, quiet := index.Rows{First: number}, uint32(0)
		for ; moreRows && bytes.Equal(lookupOf(rows.Key()), lookup); moreRows = nextRow() {
			of.N++
			number++
		}
		for ; morePast && bytes.Equal(lookupOf(past.Key()), lookup); morePast = past.Next() {
			if quietPast(past.Value()) {
				quiet++
			} else {
				of.Past = true
			}
		}
		if of.N == 0 {
			of.First = 0
		}
		of.Past = of.Past || quiet != of.N
		if packed, ok := checks.PackRFC(lookup); ok {
			s.keys, s.of = append(s.keys, packed), append(s.of, of)
		}
	}
	s.keys, s.of = slices.Clone(s.keys), slices.Clone(s.of)
	return nil
}

// lookupOf is the ID[0] of a key.
func lookupOf(key []byte) []byte {
	if end := bytes.IndexByte(key, 0); end >= 0 {
		return key[:end]
	}
	return key
}
