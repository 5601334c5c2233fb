package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// cacheBytes bounds the unpacked blocks that all open sorted files of the
// process keep together.
const cacheBytes = 32 << 20

var blockCache = sync.OnceValue(func() *pebble.Cache { return pebble.NewCache(cacheBytes) })

// Sorted reads a sorted file; safe for concurrent use.
type Sorted struct {
	r     *sstable.Reader
	cache io.Closer // this file's share of the block cache
}

// OpenSorted opens a file that a SortedWriter finished.
func OpenSorted(path string) (*Sorted, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return OpenSortedFile(f)
}

// OpenSortedFile reads a sorted file that is already open, so that a caller may
// hash the very bytes it will read. It owns f, also when it fails.
func OpenSortedFile(f *os.File) (s *Sorted, err error) {
	handle := blockCache().NewHandle()
	defer func() {
		// The table reader panics on a layout it does not know; to us that is a
		// file that is not ours.
		if p := recover(); p != nil {
			err = fmt.Errorf("index: %s: %v", f.Name(), p)
		}
		if err != nil {
			handle.Close()
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o := sstable.ReaderOptions{Comparer: pebble.DefaultComparer}
	o.CacheOpts.CacheHandle = handle
	o.CacheOpts.FileNum = 1 // each handle is a namespace of its own
	in := &input{f: f, size: info.Size()}
	in.handle = objstorage.MakeNoopReadHandle(in)
	r, err := sstable.NewReader(context.Background(), in, o)
	if err != nil {
		return nil, fmt.Errorf("index: %s: %w", f.Name(), err)
	}
	return &Sorted{r: r, cache: closer(handle.Close)}, nil
}

// Prefix calls fn for every key that starts with prefix, ascending; with no
// prefix, for every key. Slices are valid until fn returns. An error of fn ends
// the walk and is returned as it is.
func (s *Sorted) Prefix(prefix []byte, fn func(key, value []byte) error) error {
	c, err := s.cursor(prefix)
	if err != nil {
		return err
	}
	for c.Next() {
		if err := fn(c.Key(), c.Value()); err != nil {
			c.Close()
			return err
		}
	}
	return c.Close()
}

// Close frees the file. No Prefix or Cursor may be under way.
func (s *Sorted) Close() error {
	return errors.Join(s.r.Close(), s.cache.Close())
}

// Cursor walks a sorted file in key order. It is not safe for concurrent use.
type Cursor struct {
	it      sstable.Iterator
	prefix  []byte
	key     []byte
	value   []byte
	err     error
	started bool
}

// Cursor starts a walk over the whole file; the first Next moves to its first
// key. It must be closed before the file.
func (s *Sorted) Cursor() (*Cursor, error) { return s.cursor(nil) }

func (s *Sorted) cursor(prefix []byte) (*Cursor, error) {
	it, err := s.r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	return &Cursor{it: it, prefix: prefix}, nil
}

// Next moves to the next key; false at the end and after an error.
func (c *Cursor) Next() bool {
	if c.err != nil || c.it == nil {
		return false
	}
	if !c.started {
		return c.seek(c.prefix) && bytes.HasPrefix(c.key, c.prefix)
	} else if next := c.it.Next(); next != nil {
		c.key = next.K.UserKey
		c.value, _, c.err = next.Value(nil)
	} else {
		return c.end()
	}
	return c.err == nil && bytes.HasPrefix(c.key, c.prefix)
}

// Seek moves to the first key that is not before key, whatever the cursor began
// with; false when there is none and after an error.
func (c *Cursor) Seek(key []byte) bool {
	if c.err != nil || c.it == nil {
		return false
	}
	c.prefix = nil
	return c.seek(key)
}

func (c *Cursor) seek(key []byte) bool {
	c.started = true
	at := c.it.SeekGE(key, 0)
	if at == nil {
		return c.end()
	}
	c.key = at.K.UserKey
	c.value, _, c.err = at.Value(nil)
	return c.err == nil
}

func (c *Cursor) end() bool {
	c.err = c.it.Error()
	return false
}

// Key and Value describe the current pair; valid until the next call of Next
// or Close.
func (c *Cursor) Key() []byte   { return c.key }
func (c *Cursor) Value() []byte { return c.value }

// Close ends the walk and returns the first error it met.
func (c *Cursor) Close() error {
	if c.it == nil {
		return c.err
	}
	err := c.it.Close()
	c.it = nil
	if c.err == nil {
		c.err = err
	}
	return c.err
}

// input is the objstorage.Readable over a file.
type input struct {
	f      *os.File
	size   int64
	handle objstorage.NoopReadHandle
}

func (in *input) ReadAt(_ context.Context, p []byte, off int64) error {
	_, err := in.f.ReadAt(p, off)
	return err
}

func (in *input) Close() error { return in.f.Close() }
func (in *input) Size() int64  { return in.size }

func (in *input) NewReadHandle(objstorage.ReadBeforeSize) objstorage.ReadHandle { return &in.handle }

type closer func()

func (c closer) Close() error { c(); return nil }
