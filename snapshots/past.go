package snapshots

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"cotejo/civil"
)

// ChainVersion is one step of a source's history.
type ChainVersion struct {
	SHA256     string     `json:"sha256"`
	Corte      civil.Date `json:"corte"`
	OrderDate  civil.Date `json:"fecha_de_orden"`
	Rows       int        `json:"filas"`
	Suppressed int        `json:"suprimidas"`
}

// Past is the history of one row. Indexes point into Chain.
type Past struct {
	ID      []string
	Ordinal int
	Since   int     // first version of the chain that had it
	Present bool    // in the newest version
	Events  []Event // ascending, at most one per version; a row of the first version has no event for it
}

// EventKind names a change of one row from a version to the next.
type EventKind byte

const (
	Added   EventKind = 'A' // not in the version before
	Changed EventKind = 'C' // a tracked column changed
	Removed EventKind = 'R' // no longer in this version
)

// Event is one change.
type Event struct {
	Version int // index into Chain: the version that brought the change
	Kind    EventKind
	Mask    uint64   // Changed: bit i = column i
	Before  []string // Changed: normalised values of the masked columns before, in column order; Removed: all columns
}

// The history of a row has the key of the row. Its value is: a schema byte (1),
// a flag byte (1 = present), the first version as uvarint, and the events: the
// version as uvarint, the kind, for C the mask as uvarint and a cell for each
// of its bits, for R the number of columns as uvarint and their cells. Events
// run to the end, so that one more is appended without reading the others.
const (
	pastSchema  = 1
	pastPresent = 1

	maxChain     = 1 << 16 // versions: one a day for 179 years
	maxPastBytes = 8 << 20 // history of one row
)

var errPast = errors.New("snapshots: historia mal codificada")

func appendPast(dst []byte, since int) []byte {
	dst = append(dst, pastSchema, pastPresent)
	return binary.AppendUvarint(dst, uint64(since))
}

// quietPast reports whether a row was there from the first version on and did not
// change.
func quietPast(value []byte) bool {
	return len(value) == 3 && value[0] == pastSchema && value[1] == pastPresent && value[2] == 0
}

func appendEvent(dst []byte, version int, kind EventKind) []byte {
	return append(binary.AppendUvarint(dst, uint64(version)), byte(kind))
}

// event is a decoded event; before is reused by the next decode.
type event[T string | []byte] struct {
	version int
	kind    EventKind
	mask    uint64
	before  []T
}

// walkPast decodes a value. It calls fn for each event, in order, and refuses
// what a fold cannot have written: events out of order, changes of a row that
// is not there, presence that the events contradict.
func walkPast[T string | []byte](value T, scratch *event[T], fn func(*event[T])) (since int, present bool, err error) {
	if len(value) < 2 || value[0] != pastSchema || value[1] > pastPresent || len(value) > maxPastBytes {
		return 0, false, errPast
	}
	present = value[1] == pastPresent
	n, rest, ok := cutUvarint(value[2:])
	if !ok || n >= maxChain {
		return 0, false, errPast
	}
	since = int(n)
	// A row of the first version is there without an event; any other begins
	// with being added.
	there, last, first := since == 0, since, true
	for len(rest) > 0 {
		if n, rest, ok = cutUvarint(rest); !ok || n >= maxChain || len(rest) == 0 {
			return 0, false, errPast
		}
		e := scratch
		e.version, e.kind, e.mask, e.before = int(n), EventKind(rest[0]), 0, e.before[:0]
		rest = rest[1:]
		if first && since > 0 {
			if e.version != since || e.kind != Added {
				return 0, false, errPast
			}
		} else if e.version <= last {
			return 0, false, errPast
		}
		first, last = false, e.version
		if there == (e.kind == Added) {
			return 0, false, errPast
		}
		cells := 0
		switch e.kind {
		case Added:
			there = true
		case Changed:
			if e.mask, rest, ok = cutUvarint(rest); !ok || e.mask == 0 {
				return 0, false, errPast
			}
			cells = bits.OnesCount64(e.mask)
		case Removed:
			there = false
			if n, rest, ok = cutUvarint(rest); !ok || n == 0 || n > maxColumns {
				return 0, false, errPast
			}
			cells = int(n)
		default:
			return 0, false, errPast
		}
		for range cells {
			var cell T
			if cell, rest, ok = cutCell(rest); !ok {
				return 0, false, errPast
			}
			e.before = append(e.before, cell)
		}
		fn(e)
	}
	if there != present {
		return 0, false, errPast
	}
	return since, present, nil
}

// decodePast reads one history; what it returns is the caller's to keep.
func decodePast(key, value []byte) (Past, error) {
	id, ordinal, err := cutKey(key)
	if err != nil {
		return Past{}, err
	}
	p := Past{ID: splitID(id), Ordinal: ordinal}
	var scratch event[string]
	p.Since, p.Present, err = walkPast(string(value), &scratch, func(e *event[string]) {
		p.Events = append(p.Events, Event{Version: e.version, Kind: e.kind, Mask: e.mask, Before: append([]string(nil), e.before...)})
	})
	if err != nil {
		return Past{}, err
	}
	return p, nil
}
