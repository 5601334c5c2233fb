package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"strconv"

	"cotejo/canon"
	"cotejo/index"
)

const chunkBytes = 4 << 20

// rows collects the rows of one version in any order, without garbage per row,
// and writes them in key order. It holds all of them in memory.
type rows struct {
	schema     Schema
	idParts    int
	chunks     [][]byte // encoded rows: uvarint len, ID; uvarint len, value
	refs       []uint64 // chunk<<32 | offset
	suppressed int
	id, value  []byte // scratch
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
	b.id = appendID(b.id[:0], r.ID)
	b.value = appendRow(b.value[:0], r)

	need := len(b.id) + len(b.value) + 2*binary.MaxVarintLen32
	if n := len(b.chunks); n == 0 || cap(b.chunks[n-1])-len(b.chunks[n-1]) < need {
		b.chunks = append(b.chunks, make([]byte, 0, max(chunkBytes, need)))
	}
	last := len(b.chunks) - 1
	b.refs = append(b.refs, uint64(last)<<32|uint64(len(b.chunks[last])))
	b.chunks[last] = appendCell(appendCell(b.chunks[last], b.id), b.value)
	if r.Suppressed {
		b.suppressed++
	}
	return nil
}

func (b *rows) at(ref uint64) (id, value []byte) {
	id, rest, _ := cutCell(b.chunks[ref>>32][uint32(ref):])
	value, _, _ = cutCell(rest)
	return id, value
}

// write sorts the rows, numbers those that share an ID, and hands them on in
// key order.
func (b *rows) write(emit func(key, value []byte) error) error {
	if len(b.refs) > math.MaxUint32 {
		return errors.New("snapshots: demasiadas filas")
	}
	var x, y cells[[]byte]
	slices.SortFunc(b.refs, func(i, j uint64) int {
		idI, valueI := b.at(i)
		idJ, valueJ := b.at(j)
		if c := bytes.Compare(idI, idJ); c != 0 {
			return c
		}
		// Both were encoded by appendRow.
		_ = x.decode(valueI)
		_ = y.decode(valueJ)
		return compareRows(b.schema.Columns, &x, &y)
	})
	var key, previous []byte
	ordinal := 0
	for _, ref := range b.refs {
		id, value := b.at(ref)
		if ordinal++; !bytes.Equal(id, previous) {
			ordinal = 0
		}
		previous = id
		key = appendKey(key[:0], id, ordinal)
		if err := emit(key, value); err != nil {
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
	cells      cells[[]byte]
	rows       int
	suppressed int
}

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
	b = append(b, `,"norm":`...)
	b = appendTexts(b, d.cells.norm)
	b = append(b, `,"oficial":`...)
	b = appendTexts(b, d.cells.raw)
	b = append(b, `,"ordinal":`...)
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
