package snapshots

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"slices"
	"strconv"

	"cotejo/canon"
	"cotejo/index"
)

const chunkBytes = 4 << 20

// heldBytes is how much of a version's rows is held in memory before it is
// sorted and put aside. A constant of the machine, never of the result.
const heldBytes = 16 << 20

// rows collects the rows of one version in any order, without garbage per row,
// and writes them in key order. It holds at most heldBytes of them in memory;
// the rest waits, sorted, in files without a name (runs.go).
type rows struct {
	schema     Schema
	idParts    int
	chunks     [][]byte // encoded rows: uvarint len, ID; uvarint len, value
	used       int      // of chunks; the others are empty and kept for the next run
	refs       []ref
	held       int // bytes of the rows in chunks
	limit      int // of held; 0: heldBytes
	count      int // rows that were added
	suppressed int
	runs       []run
	scratch    func() (*os.File, error) // makes the file of a run
	id, value  []byte                   // reused
}

func (b *rows) add(r *Row) error {
	if err := r.check(len(b.schema.Columns)); err != nil {
		return fmt.Errorf("snapshots: %s: %w", b.schema.Source, err)
	}
	if b.idParts == 0 {
		b.idParts = len(r.ID)
	}
	if len(r.ID) != b.idParts {
		return fmt.Errorf("snapshots: %s: la identidad %q no tiene %d partes como las demás", b.schema.Source, r.ID, b.idParts)
	}
	if b.count == math.MaxUint32 {
		return errors.New("snapshots: demasiadas filas")
	}
	b.id = appendID(b.id[:0], r.ID)
	b.value = appendRow(b.value[:0], r)

	need := len(b.id) + len(b.value) + 2*binary.MaxVarintLen32
	limit := b.limit
	if limit == 0 {
		limit = heldBytes
	}
	if b.held > 0 && b.held+need > limit {
		if err := b.putAside(); err != nil {
			return err
		}
	}
	last := b.room(need)
	b.refs = append(b.refs, ref{leadOf(b.id), uint32(last), uint32(len(b.chunks[last]))})
	b.chunks[last] = appendCell(appendCell(b.chunks[last], b.id), b.value)
	b.held += need
	b.count++
	if r.Suppressed {
		b.suppressed++
	}
	return nil
}

// room returns the chunk in use that can take so many bytes more.
func (b *rows) room(need int) int {
	if last := b.used - 1; last >= 0 && cap(b.chunks[last])-len(b.chunks[last]) >= need {
		return last
	}
	if b.used == len(b.chunks) {
		b.chunks = append(b.chunks, nil)
	}
	if cap(b.chunks[b.used]) < need {
		b.chunks[b.used] = make([]byte, 0, max(chunkBytes, need))
	}
	b.used++
	return b.used - 1
}

// ref says where a row in memory is.
type ref struct {
	lead          uint64 // leadOf its ID: most rows are put into order by that alone
	chunk, offset uint32
}

// leadOf is the beginning of an ID as a number: of two IDs with different ones, that
// with the smaller one comes first.
func leadOf(id []byte) uint64 {
	if len(id) >= 8 {
		return binary.BigEndian.Uint64(id)
	}
	var b [8]byte
	copy(b[:], id)
	return binary.BigEndian.Uint64(b[:])
}

func (b *rows) at(r ref) (id, value []byte) {
	id, rest, _ := cutCell(b.chunks[r.chunk][r.offset:])
	value, _, _ = cutCell(rest)
	return id, value
}

// line is a row as chunks and runs have it.
func (b *rows) line(r ref) []byte {
	line := b.chunks[r.chunk][r.offset:]
	_, rest, _ := cutCell(line)
	_, rest, _ = cutCell(rest)
	return line[:len(line)-len(rest)]
}

// sort brings the rows in memory into order.
func (b *rows) sort() {
	var o order
	slices.SortFunc(b.refs, func(i, j ref) int {
		if i.lead != j.lead {
			return cmp.Compare(i.lead, j.lead)
		}
		idI, valueI := b.at(i)
		idJ, valueJ := b.at(j)
		return o.compare(b.schema.Columns, idI, valueI, idJ, valueJ)
	})
}

// order compares encoded rows. It is reused for its scratch.
type order struct{ x, y cells[[]byte] }

// compare orders by ID, then as compareRows does. Both were encoded by appendRow.
func (o *order) compare(columns []Column, idI, valueI, idJ, valueJ []byte) int {
	if c := bytes.Compare(idI, idJ); c != 0 {
		return c
	}
	_ = o.x.decode(valueI)
	_ = o.y.decode(valueJ)
	return compareRows(columns, &o.x, &o.y)
}

// write sorts the rows, numbers those that share an ID, and hands them on in
// key order.
func (b *rows) write(emit func(key, value []byte) error) error {
	var key, previous []byte
	ordinal := 0
	number := func(id, value []byte) error {
		if ordinal++; !bytes.Equal(id, previous) {
			ordinal, previous = 0, append(previous[:0], id...)
		}
		key = appendKey(key[:0], id, ordinal)
		return emit(key, value)
	}
	if len(b.runs) > 0 {
		return b.merge(number)
	}
	b.sort()
	for _, ref := range b.refs {
		if err := number(b.at(ref)); err != nil {
			return err
		}
	}
	return nil
}

// compareRows orders rows of one ID: see the package comment.
func compareRows(columns []Column, x, y *cells[[]byte]) int {
	if x.suppressed != y.suppressed {
		if y.suppressed {
			return -1
		}
		return 1
	}
	for _, tracked := range [...]bool{true, false} {
		for i, column := range columns {
			if column.Tracked == tracked {
				if c := bytes.Compare(x.norm[i], y.norm[i]); c != 0 {
					return c
				}
			}
		}
	}
	return slices.CompareFunc(x.raw, y.raw, bytes.Compare)
}

// rowsDigest computes filas_digest from keys and values in key order.
type rowsDigest struct {
	sum        hash.Hash
	line       []byte
	norm       []span // of the normalised cells in line
	cells      cells[[]byte]
	rows       int
	suppressed int
}

// span is a part of a line.
type span struct{ from, to int }

func newRowsDigest() *rowsDigest { return &rowsDigest{sum: sha256.New()} }

func (d *rowsDigest) add(key, value []byte) error {
	id, ordinal, err := cutKey(key)
	if err != nil {
		return err
	}
	if err := d.cells.decode(value); err != nil {
		return err
	}
	b := append(d.line[:0], `{"id":`...)
	b = appendIDText(b, id)
	b = append(b, `,"norm":[`...)
	d.norm = d.norm[:0]
	for i, cell := range d.cells.norm {
		if i > 0 {
			b = append(b, ',')
		}
		from := len(b)
		b = canon.AppendString(b, cell)
		d.norm = append(d.norm, span{from, len(b)})
	}
	b = append(b, `],"oficial":[`...)
	for i, cell := range d.cells.raw {
		if i > 0 {
			b = append(b, ',')
		}
		if d.cells.differs(i) {
			b = canon.AppendString(b, cell)
		} else {
			b = append(b, b[d.norm[i].from:d.norm[i].to]...)
		}
	}
	b = append(b, `],"ordinal":`...)
	b = strconv.AppendInt(b, int64(ordinal), 10)
	if d.cells.suppressed {
		b = append(b, `,"suprimida":true`...)
		d.suppressed++
	}
	d.line = append(b, "}\n"...)
	d.sum.Write(d.line)
	d.rows++
	return nil
}

func (d *rowsDigest) String() string { return hex.EncodeToString(d.sum.Sum(nil)) }

func appendTexts(dst []byte, texts [][]byte) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = canon.AppendString(dst, text)
	}
	return append(dst, ']')
}

func appendIDText(dst, id []byte) []byte {
	dst = append(dst, '[')
	for first := true; len(id) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		end := bytes.IndexByte(id, 0)
		dst = canon.AppendString(dst, id[:end])
		id = id[end+1:]
	}
	return append(dst, ']')
}

// digestOfRows recomputes filas_digest from a rows file.
func digestOfRows(s *index.Sorted) (*rowsDigest, error) {
	d := newRowsDigest()
	return d, s.Prefix(nil, d.add)
}
