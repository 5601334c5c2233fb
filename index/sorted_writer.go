package index

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// blockSize is the unpacked size at which a data block is closed. Bigger blocks
// make smaller files and slower lookups: a lookup unpacks one block.
const blockSize = 8 << 10

// File is what a sorted file is written to: an *os.File, or a wrapper that
// counts, hashes or fails.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// SortedWriter writes a sorted file. Keys must be added in ascending order. It
// is not safe for concurrent use. Finish or Abort it.
type SortedWriter struct {
	out  *output
	w    *sstable.Writer
	done bool
}

// NewSorted writes a sorted file to f, which must be empty. The writer owns f:
// Finish syncs and closes it, Abort closes it.
func NewSorted(f File) *SortedWriter {
	out := &output{f: f, buf: bufio.NewWriterSize(f, 64<<10)}
	return &SortedWriter{out: out, w: sstable.NewWriter(out, sstable.WriterOptions{
		// Format, block size and compression are part of what makes two builds of
		// one file identical; no filter, because the edition table answers misses.
		TableFormat:        sstable.TableFormatPebblev5,
		Comparer:           pebble.DefaultComparer,
		BlockSize:          blockSize,
		Compression:        sstable.ZstdCompression,
		FilterPolicy:       pebble.NoFilterPolicy,
		DisableValueBlocks: true,
	})}
}

// Add appends one pair, which it copies. Keys must ascend strictly.
func (w *SortedWriter) Add(key, value []byte) error {
	if err := w.w.Set(key, value); err != nil {
		return fmt.Errorf("index: add %x: %w", key, err)
	}
	return nil
}

// Finish writes what is missing, syncs the file and closes it. When it fails
// the file is not usable.
func (w *SortedWriter) Finish() error {
	if w.done {
		return os.ErrClosed
	}
	w.done = true
	if err := w.w.Close(); err != nil {
		w.out.Abort()
		return fmt.Errorf("index: finish: %w", err)
	}
	return nil
}

// Abort gives the file up and closes it; whoever made it removes it. It does
// nothing after Finish.
func (w *SortedWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	// Closing the table writer is what ends its goroutine; with the output given
	// up first it writes nothing more.
	w.out.Abort()
	_ = w.w.Close()
}

// output is the objstorage.Writable over a File.
type output struct {
	f      File
	buf    *bufio.Writer
	closed bool
}

func (o *output) Write(p []byte) error {
	if o.closed {
		return os.ErrClosed
	}
	_, err := o.buf.Write(p)
	return err
}

func (o *output) Finish() error {
	if o.closed {
		return os.ErrClosed
	}
	o.closed = true
	err := o.buf.Flush()
	if err == nil {
		err = o.f.Sync()
	}
	if cerr := o.f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (o *output) Abort() {
	if !o.closed {
		o.closed = true
		_ = o.f.Close()
	}
}
