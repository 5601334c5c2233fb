package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"cotejo/civil"
)

// Bounds of one Read.
const (
	maxReaders = 2        // at once; each holds one segment in memory
	scanBytes  = 64 << 20 // of lines that are looked at
	scanFiles  = 512      // segments that are opened
)

// Query asks for entries, newest first.
type Query struct {
	From, To time.Time       // From ≤ At < To
	Orgs     map[string]bool // who asked; nil: anybody, also nobody
	Status   int             // 0: any
	Limit    int             // ≥ 1
	Before   Cursor          // only what stands before it; zero: from the end
}

// Cursor is a place in a log. What stands before it does not change, but for what
// Clean removes.
type Cursor struct {
	day    civil.Date
	number int
	offset int // of a line, in the segment's lines
}

// CursorForm is the regular expression of a Cursor as text.
const CursorForm = `^[0-9]{4}-[0-9]{2}-[0-9]{2}\.[0-9]{1,6}\.[0-9]{1,9}$`

// String is the text that ParseCursor reads.
func (c Cursor) String() string { return fmt.Sprintf("%s.%d.%d", c.day, c.number, c.offset) }

// ParseCursor reads a Cursor; ok is false when the text is none.
func ParseCursor(text string) (c Cursor, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return c, false
	}
	day, err := civil.Parse(parts[0])
	if err != nil {
		return c, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 20)
	if err != nil {
		return c, false
	}
	offset, err := strconv.ParseUint(parts[2], 10, 31)
	return Cursor{day, int(number), int(offset)}, err == nil
}

// Page is an answer to a Query.
type Page struct {
	Entries []Entry
	Next    Cursor // where to go on; zero: nothing is left
	// Cut says that so much was looked at that it stopped before Limit: there may be
	// more from Next on.
	Cut bool
}

// Read looks for entries from the newest segment back, and stops at the limit, or at
// some 64 MiB of lines: whatever is asked, it takes a bounded time and memory. Two
// read at once, others wait for them until ctx ends. Of lines that are too damaged
// to be read nothing is said.
func (l *Log) Read(ctx context.Context, q Query) (page Page, err error) {
	if l == nil {
		return Page{}, nil
	}
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return Page{}, ctx.Err()
	}
	if l.writing.TryLock() { // else a write hangs, or is about to end
		l.flushLocked()
		l.writing.Unlock()
	}
	l.names.RLock()
	all, err := list(l.Dir)
	l.names.RUnlock()
	if err != nil {
		return Page{}, err
	}
	s := scan{Query: q, most: l.scanBytes, from: string(appendMoment(nil, q.From)), to: string(appendMoment(nil, q.To))}
	if q.Status != 0 {
		s.status = fmt.Appendf(nil, `,"status":%d,`, q.Status)
	}
	first, last := civil.Of(q.From), civil.Of(q.To.Add(-1))
	files := 0
	for i := len(all) - 1; i >= 0; i-- {
		at := all[i]
		if last.Before(at.day) || at.day.Before(first) {
			continue
		}
		end := -1
		if q.Before != (Cursor{}) {
			switch c := at.compare(segment{day: q.Before.day, number: q.Before.number}); {
			case c > 0:
				continue
			case c == 0:
				end = q.Before.offset
			}
		}
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		lines, err := readSegment(l.Dir, at)
		if err != nil {
			l.Log.Warn("un archivo del registro de accesos no se puede leer", "archivo", at.name(), "error", err.Error())
			continue
		}
		if end < 0 || end > len(lines) {
			end = len(lines)
		}
		next, done := s.back(wholeLines(lines[:end]))
		files++
		if s.scanned > s.most || files >= scanFiles {
			done, s.cut = true, s.cut || len(s.found) < q.Limit
		}
		if done {
			return Page{Entries: s.found, Next: Cursor{at.day, at.number, next}, Cut: s.cut}, nil
		}
	}
	return Page{Entries: s.found}, nil
}

// scan is one Read on its way.
type scan struct {
	Query
	from, to string // as they stand in a line
	status   []byte // as it stands in a line; nil: any
	found    []Entry
	scanned  int // bytes, of most
	most     int
	cut      bool
}

// back looks at lines from the last one. done says that it stopped, at next.
func (s *scan) back(lines []byte) (next int, done bool) {
	for end := len(lines); end > 0; {
		start := bytes.LastIndexByte(lines[:end-1], '\n') + 1
		line := lines[start : end-1]
		s.scanned += end - start
		end = start
		if s.wanted(line) {
			var e Entry
			if e.parse(line) == nil {
				s.found = append(s.found, e)
			}
		}
		if len(s.found) == s.Limit {
			return start, true
		}
		if s.scanned > s.most {
			s.cut = true
			return start, true
		}
	}
	return 0, false
}

var orgMark = []byte(`,"organizacion":"`)

// wanted tells by the text of a line whether it is worth parsing.
func (s *scan) wanted(line []byte) bool {
	if len(line) < atEnd || s.status != nil && !bytes.Contains(line, s.status) {
		return false
	}
	if at := string(line[atStart:atEnd]); at < s.from || at >= s.to {
		return false
	}
	if s.Orgs == nil {
		return true
	}
	_, rest, ok := bytes.Cut(line, orgMark)
	org, _, _ := bytes.Cut(rest, []byte{'"'})
	return ok && s.Orgs[string(org)]
}

// maxSegment bounds what is read of one segment, whatever its file claims.
const maxSegment = 2 * segmentBytes

// readSegment returns the lines of a segment; it may have been packed or removed
// since it was listed.
func readSegment(dir string, s segment) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, s.name()))
	if errors.Is(err, fs.ErrNotExist) && !s.packed {
		s.packed = true
		f, err = os.Open(filepath.Join(dir, s.name()))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !s.packed {
		return io.ReadAll(io.LimitReader(f, maxSegment))
	}
	dec, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSegment))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return io.ReadAll(io.LimitReader(dec, maxSegment))
}
