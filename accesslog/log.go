// Package accesslog keeps who asked what, from where, and how it ended: one line of
// JSON for each request, in files of the data directory.
//
// It is for whoever runs the service: to see who is asking, who guesses keys, what a
// client means who complains. It is not evidence and not in the ledger: a process
// that is killed loses the lines of its last second, a full disk or an overload loses
// more, and the log says how many. It never holds a path with its parameters, a
// query, a header, a body or a key.
//
// It must not cost a request anything: lines are gathered in memory and written
// together by a goroutine of the log. While a write hangs, requests go on; beyond
// gatheredBytes their lines are dropped and counted. What a write fails on is lost
// and counted.
//
// # Files
//
//	2026-11-20.0001.jsonl       segment 1 of that civil day, being written
//	2026-11-20.0001.jsonl.zst   the same, closed: «zstd -d» gives it back
//
// A segment ends with its day, at segmentBytes, or with its process, and is then
// packed. A start begins a new one, so the last line of an older one may be cut and
// is passed over. Clean removes what is too old or too much.
//
// Start reading at Log.Add, then Log.Read.
package accesslog

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/civil"
)

const (
	flushEvery    = time.Second
	flushBytes    = 64 << 10 // written at once
	gatheredBytes = 1 << 20  // gathered at most
	segmentBytes  = 8 << 20  // of a segment, before it is packed
)

var lostLines = metrics.NewCounter("cotejo_access_log_lost_total")

// Options are the parts of a log.
type Options struct {
	Dir  string // created when the first line is written
	Keep Keep
	Log  *slog.Logger // what goes wrong
	// Full reports that the disk has no room for what may be lost; nil: it always
	// has. The last room of a disk is for what is paid for.
	Full func() bool
}

// Log is an access log that is written to. It is safe for concurrent use, and so is
// a nil Log, which keeps nothing.
type Log struct {
	Options

	mu      sync.Mutex // held by requests: never while writing
	pending gathered   // not written yet; under mu
	dropped int        // since the last line that was kept; under mu

	writing sync.Mutex // one write at a time; taken before mu
	spare   gathered   // what was written, to be used again; under writing
	file    *os.File   // the segment; nil before the first line; under writing
	open    segment    // what file is; under writing
	size    int64      // of file; under writing
	broken  bool       // the last write failed; under writing

	packing sync.Mutex   // one goroutine packs
	names   sync.RWMutex // who lists must not miss what changes its name meanwhile
	packers sync.WaitGroup

	reading   chan struct{} // capacity: how many read at once
	scanBytes int           // that one Read looks at

	wake   chan struct{} // capacity 1: there is much to write
	stop   chan struct{}
	ending sync.Once
	closed chan struct{}
}

// gathered are lines that wait to be written.
type gathered struct {
	lines []byte
	days  []dayFrom // never empty when there are lines: mostly one
}

// dayFrom is the day of the lines from an offset on.
type dayFrom struct {
	day    civil.Date
	offset int
}

// Open starts a log. What is wrong with its folder is said when a line is written:
// a service does not end for want of its access log.
func Open(o Options) *Log {
	l := &Log{
		Options: o, reading: make(chan struct{}, maxReaders), scanBytes: scanBytes,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), closed: make(chan struct{}),
	}
	l.pack() // what a process that was killed left behind
	go func() {
		defer close(l.closed)
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-l.wake:
			case <-l.stop:
				l.flush()
				return
			}
			l.flush()
		}
	}()
	return l
}

// Close writes what is left and packs the segment. It may be called more than once;
// lines that come later are not written.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.ending.Do(func() { close(l.stop) })
	<-l.closed
	l.writing.Lock()
	l.endSegment()
	l.writing.Unlock()
	l.packers.Wait()
}

// Add keeps a request, or drops it. e and what it points to are the caller's again.
func (l *Log) Add(e *Entry) {
	if l == nil {
		return
	}
	day := civil.Of(e.At)
	e.line = e.appendTo(e.line[:0])
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.pending
	if len(p.lines)+len(e.line) > gatheredBytes {
		l.dropped++
		lostLines.Inc()
		return
	}
	if n := len(p.days); n == 0 || p.days[n-1].day != day {
		p.days = append(p.days, dayFrom{day, len(p.lines)})
	}
	b := append(p.lines, e.line...)
	if l.dropped > 0 {
		b = append(b, lostMark...)
		b = strconv.AppendInt(b, int64(l.dropped), 10)
		l.dropped = 0
	}
	p.lines = append(b, "}\n"...)
	if len(p.lines) > flushBytes {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// flush writes what was gathered before it was called.
func (l *Log) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.flushLocked()
}

// flushLocked does it for who holds writing.
func (l *Log) flushLocked() {
	l.mu.Lock()
	full := l.pending
	l.pending = gathered{l.spare.lines[:0], l.spare.days[:0]}
	l.mu.Unlock()
	for i, d := range full.days {
		end := len(full.lines)
		if i+1 < len(full.days) {
			end = full.days[i+1].offset
		}
		l.write(d.day, full.lines[d.offset:end])
	}
	l.spare = full
}

// write appends lines to the segment of a day. The caller holds writing.
func (l *Log) write(day civil.Date, lines []byte) {
	if l.Full != nil && l.Full() {
		l.lose(lines, nil)
		return
	}
	if l.file != nil && (l.open.day != day || l.size+int64(len(lines)) > segmentBytes) {
		l.endSegment()
	}
	if l.file == nil {
		if err := l.beginSegment(day); err != nil {
			l.lose(lines, err)
			return
		}
	}
	n, err := l.file.Write(lines)
	if err != nil {
		// No half line may stand before the next one.
		if n > 0 && l.file.Truncate(l.size) != nil {
			l.endSegment()
		}
		l.lose(lines, err)
		return
	}
	l.size += int64(n)
	if l.broken {
		l.broken = false
		l.Log.Info("el registro de accesos se vuelve a escribir")
	}
}

// lose counts lines that could not be written, and those that they told of. err is
// nil when it was not tried.
func (l *Log) lose(lines []byte, err error) {
	n := bytes.Count(lines, []byte{'\n'})
	lostLines.Add(n)
	for rest, more := lines, true; more; {
		if _, rest, more = bytes.Cut(rest, lostMark); more {
			digits, _, _ := bytes.Cut(rest, []byte{'}'})
			told, _ := strconv.Atoi(string(digits))
			n += told
		}
	}
	l.mu.Lock()
	l.dropped += n
	l.mu.Unlock()
	if err != nil && !l.broken {
		l.broken = true
		l.Log.Error("no se puede escribir el registro de accesos; el servicio sigue y los renglones se pierden", "error", err.Error())
	}
}

// lostMark stands before the number of lines that were lost, the last of a line.
var lostMark = []byte(`,"perdidas":`)
