package ledger

import (
	"encoding/binary"
	"slices"

	"cotejo/store"
)

// View reads an account as it was at one moment, however long that takes: what is
// read from one view never contradicts itself. It must be closed, soon: the store
// keeps everything that it shows.
type View struct {
	Reader
	view  store.View
	group store.Group
}

// View opens a view of what is written now.
func (l *Ledger) View(account AccountID) (*View, error) {
	group, _ := place(account)
	v, err := l.store.View(group)
	if err != nil {
		return nil, err
	}
	return &View{Reader{v, account, l.perm}, v, group}, nil
}

// Head is the head of the account's group as of the view: it stands for everything
// that the view shows.
func (v *View) Head() (Head, error) { return headOf(v.view, v.group, v.view.Seq()) }

// Close ends the view.
func (v *View) Close() error { return v.view.Close() }

// Records calls fn for each record of an organization in one mode whose id is of
// the days from to to (YYYYMMDD, both included), by day, prefix and the order in
// which the ids were given, until fn returns an error, which Records returns.
func (r Reader) Records(org OrgID, sandbox bool, from, to uint32, fn func(Record) error) error {
	return r.RecordsAfter(org, sandbox, VerificationID{Day: from}, to, fn)
}

// RecordsAfter is Records from what follows an id on, whether or not there is a
// record of that id. An id of which only the day is set stands before all of its day.
func (r Reader) RecordsAfter(org OrgID, sandbox bool, id VerificationID, to uint32, fn func(Record) error) error {
	to = min(to, maxDay)
	owner := append(binary.BigEndian.AppendUint64(nil, uint64(org)), boolByte(sandbox))
	prefixes, err := r.prefixes(owner)
	if err != nil {
		return err
	}
	type cursor struct {
		prefix string
		day    uint32 // on which there are records; 0: no more
		next   []byte // key of the first record of that day to show; nil: all of them
	}
	var cursors []cursor
	for _, p := range prefixes {
		c := cursor{prefix: p, day: id.Day}
		switch {
		case p < id.Prefix:
			c.day++
		case p == id.Prefix:
			c.next = append(binary.BigEndian.AppendUint32(appendRecordDay(owner, p, id.Day), id.Counter), 0)
		}
		day, err := r.recordDay(owner, p, c.day)
		if err != nil {
			return err
		}
		if day != c.day {
			c.day, c.next = day, nil
		}
		cursors = append(cursors, c)
	}
	for {
		day := to + 1
		for _, c := range cursors {
			if c.day != 0 {
				day = min(day, c.day)
			}
		}
		if day > to {
			return nil
		}
		for i := range cursors {
			c := &cursors[i]
			if c.day != day {
				continue
			}
			whole := appendRecordDay(owner, c.prefix, day)
			if c.next == nil {
				c.next = whole
			}
			if err := r.scanRange(c.next, after(whole), fn); err != nil {
				return err
			}
			c.next = nil
			if c.day, err = r.recordDay(owner, c.prefix, day+1); err != nil {
				return err
			}
		}
	}
}

func appendRecordDay(owner []byte, prefix string, day uint32) []byte {
	return binary.BigEndian.AppendUint32(append(slices.Clip(owner), prefix...), day)
}

// prefixes are those of the owner's ids, ascending.
func (r Reader) prefixes(owner []byte) (list []string, err error) {
	end := after(owner)
	for next := owner; next != nil; {
		key, err := r.first(next, end)
		if key == nil || err != nil {
			return list, err
		}
		list = append(list, string(key[ownerLen:ownerLen+3]))
		next = after(key[:ownerLen+3])
	}
	return list, nil
}

// recordDay is the first day from day on with a record, 0 when there is none.
func (r Reader) recordDay(owner []byte, prefix string, day uint32) (uint32, error) {
	lower := appendRecordDay(owner, prefix, day)
	key, err := r.first(lower, after(lower[:len(lower)-4]))
	if key == nil || err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(key[ownerLen+3:]), nil
}
