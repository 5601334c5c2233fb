package accesslog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"cotejo/civil"
)

const (
	plainEnd  = ".jsonl"
	packedEnd = ".jsonl.zst"
	tempEnd   = ".tmp"
)

// segment names a file of the log.
type segment struct {
	day    civil.Date
	number int // within the day, from 1
	packed bool
	bytes  int64 // on the disk, as it was listed
}

func (s segment) name() string {
	end := plainEnd
	if s.packed {
		end = packedEnd
	}
	return fmt.Sprintf("%s.%04d%s", s.day, s.number, end)
}

func (s segment) compare(other segment) int {
	return cmp.Or(cmp.Compare(s.day.Compact(), other.day.Compact()), cmp.Compare(s.number, other.number))
}

// parseSegment reads the name of a file; ok is false for one of another kind.
func parseSegment(name string) (s segment, ok bool) {
	base, packed := strings.CutSuffix(name, packedEnd)
	if !packed {
		if base, ok = strings.CutSuffix(name, plainEnd); !ok {
			return s, false
		}
	}
	day, number, _ := strings.Cut(base, ".")
	d, err := civil.Parse(day)
	if err != nil {
		return s, false
	}
	n, err := strconv.Atoi(number)
	s = segment{day: d, number: n, packed: packed}
	return s, err == nil && n > 0 && n <= maxNumber && s.name() == name
}

// maxNumber bounds the segments of one day.
const maxNumber = 999_999

// list returns the segments of a folder, oldest first. One that is there twice, since
// packing it was cut short, is only its packed file.
func list(dir string) ([]segment, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, file := range files {
		s, ok := parseSegment(file.Name())
		if !ok {
			continue
		}
		info, err := file.Info()
		if err != nil {
			continue // gone meanwhile
		}
		s.bytes = info.Size()
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b segment) int {
		if c := a.compare(b); c != 0 || a.packed == b.packed {
			return c
		}
		if a.packed {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(all, func(a, b segment) bool { return a.compare(b) == 0 }), nil
}

// beginSegment opens the next segment of a day. The caller holds writing.
func (l *Log) beginSegment(day civil.Date) error {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	l.names.RLock()
	all, err := list(l.Dir)
	l.names.RUnlock()
	if err != nil {
		return err
	}
	next := segment{day: day, number: 1}
	for _, s := range all {
		if s.day == day {
			next.number = max(next.number, s.number+1)
		}
	}
	if next.number > maxNumber {
		return fmt.Errorf("accesslog: %d archivos en un día", maxNumber)
	}
	f, err := os.OpenFile(filepath.Join(l.Dir, next.name()), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.file, l.open, l.size = f, next, 0
	return nil
}

// endSegment closes the segment and has it packed. The caller holds writing.
func (l *Log) endSegment() {
	if l.file == nil {
		return
	}
	if err := l.file.Close(); err != nil {
		l.Log.Warn("registro de accesos", "error", err.Error())
	}
	l.file = nil
	l.pack()
}

// pack packs all segments but the one that is written to, and keeps the log within
// its size, in a goroutine of its own.
func (l *Log) pack() {
	l.packers.Go(func() {
		l.packing.Lock()
		defer l.packing.Unlock()
		leftovers, _ := filepath.Glob(filepath.Join(l.Dir, "*"+packedEnd+tempEnd))
		for _, path := range leftovers { // of a process that was killed
			_ = os.Remove(path)
		}
		all, err := list(l.Dir)
		for _, s := range all {
			if !l.isOpen(s) {
				err = errors.Join(err, l.packSegment(s))
			}
		}
		_, failed := Clean(l.Dir, Keep{Bytes: l.Keep.Bytes}, time.Time{})
		if err = errors.Join(err, failed); err != nil {
			l.Log.Warn("no se pudo comprimir o recortar el registro de accesos; se intenta de nuevo con el siguiente archivo", "error", err.Error())
		}
	})
}

func (l *Log) isOpen(s segment) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.file != nil && l.open.compare(s) == 0
}

func (l *Log) packSegment(s segment) error {
	plain := filepath.Join(l.Dir, segment{day: s.day, number: s.number}.name())
	if s.packed { // what packed it was killed before it removed the other
		if err := os.Remove(plain); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	lines, err := os.ReadFile(plain)
	if err != nil {
		return err
	}
	lines = wholeLines(lines)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	s.packed = true
	path := filepath.Join(l.Dir, s.name())
	if err := writeFile(path+tempEnd, enc.EncodeAll(lines, nil)); err != nil {
		return errors.Join(err, os.Remove(path+tempEnd))
	}
	l.names.Lock()
	defer l.names.Unlock()
	if err := os.Rename(path+tempEnd, path); err != nil {
		return err
	}
	return os.Remove(plain)
}

// writeFile writes a file whole, so that it outlives the one it replaces.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// wholeLines leaves out a last line that was cut.
func wholeLines(lines []byte) []byte { return lines[:bytes.LastIndexByte(lines, '\n')+1] }

// Keep says how much of a log is kept.
type Keep struct {
	Days  int   // civil days, today included; 0: all
	Bytes int64 // of all files; 0: all
}

// Cleaned is what Clean removed.
type Cleaned struct {
	Files int
	Bytes int64
}

// Clean removes the segments of a folder that are too old, and the oldest ones while
// all together are too large. The newest one stays. It may run beside a Log.
func Clean(dir string, keep Keep, now time.Time) (removed Cleaned, err error) {
	all, err := list(dir)
	if err != nil {
		return removed, err
	}
	today, total := civil.Of(now), int64(0)
	for _, s := range all {
		total += s.bytes
	}
	for i, s := range all {
		old := keep.Days > 0 && s.day.Days(today) >= keep.Days
		much := keep.Bytes > 0 && total > keep.Bytes
		if i == len(all)-1 || !old && !much {
			break
		}
		total -= s.bytes
		failed := os.Remove(filepath.Join(dir, s.name()))
		switch {
		case failed == nil:
			removed.Files++
			removed.Bytes += s.bytes
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, failed)
		}
	}
	return removed, err
}
