package snapshots

import (
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
	mentions      []uint64 // packed RFCs, ascending, none twice
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
	s.rows, s.history, s.mentions = nil, nil, nil
}

// walkPause is after how many rows a walk through a whole file lets requests go
// first: the processor is theirs.
const walkPause = 256

// collect finds the RFCs that the files mention. Every row that can be found has a
// history, so the second walk adds nothing to the first but the rows that are gone;
// both are walked because a mention that is lacking would be answered «no aparece».
// What does not have the form of an RFC cannot be asked for and is left out; readers
// count it (rfc_no_reconocidos).
func (s *served) collect() error {
	var last []byte
	walked := 0
	add := func(key, value []byte) error {
		if walked++; walked%walkPause == 0 {
			runtime.Gosched()
		}
		end := 0
		for end < len(key) && key[end] != 0 {
			end++
		}
		if string(key[:end]) == string(last) {
			return nil
		}
		last = append(last[:0], key[:end]...)
		if packed, ok := checks.PackRFC(last); ok {
			s.mentions = append(s.mentions, packed)
		}
		return nil
	}
	err := s.rows.Prefix(nil, func(key, value []byte) error {
		if suppressedRow(value) {
			return nil
		}
		return add(key, value)
	})
	if err != nil {
		return damaged(s.key.rows, err)
	}
	last = last[:0]
	if err := s.history.Prefix(nil, add); err != nil {
		return damaged(s.key.history, err)
	}
	slices.Sort(s.mentions)
	s.mentions = slices.Clone(slices.Compact(s.mentions))
	return nil
}
