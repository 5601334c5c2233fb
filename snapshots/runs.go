package snapshots

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// A version with more rows than memory should hold is sorted in pieces: each
// piece in memory, then all of them side by side. Which rows share a piece has no
// part in the result, since the order of rows is total: equal ones are the same
// bytes.

// run is one sorted piece: rows as rows.chunks has them, in a file without a name.
type run struct {
	f    *os.File
	size int64
}

// runBuffer is what is read of a run at once.
const runBuffer = 64 << 10

// putAside sorts the rows in memory and writes them to a run.
func (b *rows) putAside() error {
	f, err := b.scratch()
	if err != nil {
		return err
	}
	// Listed at once, so that discard closes it whatever happens.
	b.runs = append(b.runs, run{f: f})
	b.sort()
	w := bufio.NewWriterSize(f, 1<<20)
	size := int64(0)
	for _, r := range b.refs {
		line := b.line(r)
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("snapshots: filas de %s: %w", b.schema.Source, err)
		}
		size += int64(len(line))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("snapshots: filas de %s: %w", b.schema.Source, err)
	}
	b.runs[len(b.runs)-1].size = size
	b.refs, b.held, b.used = b.refs[:0], 0, 0
	for i := range b.chunks {
		b.chunks[i] = b.chunks[i][:0]
	}
	return nil
}

// discard gives the rows up and closes the files of their runs, which have no
// name. It may be called on nil.
func (b *rows) discard() {
	if b == nil {
		return
	}
	for _, r := range b.runs {
		_ = r.f.Close()
	}
	b.runs, b.chunks, b.refs, b.held, b.used = nil, nil, nil, 0, 0
}

// merge hands the rows of all runs on in order; what is in memory becomes the last.
func (b *rows) merge(emit func(id, value []byte) error) error {
	if len(b.refs) > 0 {
		if err := b.putAside(); err != nil {
			return err
		}
	}
	b.chunks = nil
	m := merging{columns: b.schema.Columns}
	for _, r := range b.runs {
		h := &head{in: bufio.NewReaderSize(io.NewSectionReader(r.f, 0, r.size), runBuffer)}
		ok, err := h.next()
		if err != nil {
			return err
		}
		if ok {
			m.heads = append(m.heads, h)
		}
	}
	heap.Init(&m)
	for len(m.heads) > 0 {
		h := m.heads[0]
		if err := emit(h.id, h.value); err != nil {
			return err
		}
		ok, err := h.next()
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(&m, 0)
		} else {
			heap.Pop(&m)
		}
	}
	return nil
}

// head is the next row of a run.
type head struct {
	in        *bufio.Reader
	id, value []byte
}

func (h *head) next() (ok bool, err error) {
	if _, err := h.in.Peek(1); errors.Is(err, io.EOF) {
		return false, nil
	}
	if h.id, err = readCell(h.in, h.id); err == nil {
		h.value, err = readCell(h.in, h.value)
	}
	if err != nil {
		return false, fmt.Errorf("snapshots: filas a medio ordenar: %w", err)
	}
	return true, nil
}

func readCell(in *bufio.Reader, cell []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return cell, noEOF(err)
	}
	if n > maxStoredRow {
		return cell, errRow
	}
	if uint64(cap(cell)) < n {
		cell = make([]byte, n)
	}
	cell = cell[:n]
	_, err = io.ReadFull(in, cell)
	return cell, noEOF(err)
}

// maxStoredRow is more than any encoded row has: cells, their lengths and a bitmap.
const maxStoredRow = maxRowBytes + 4<<10

// noEOF keeps the end of a file inside a row from looking like its end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// merging is a heap of runs by their next row.
type merging struct {
	columns []Column
	heads   []*head
	order   order
}

func (m *merging) Len() int { return len(m.heads) }

func (m *merging) Less(i, j int) bool {
	x, y := m.heads[i], m.heads[j]
	return m.order.compare(m.columns, x.id, x.value, y.id, y.value) < 0
}

func (m *merging) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }

// Push implements heap.Interface; nothing is ever pushed.
func (m *merging) Push(x any) { m.heads = append(m.heads, x.(*head)) }

func (m *merging) Pop() any {
	last := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return last
}
