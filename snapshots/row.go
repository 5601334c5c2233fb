package snapshots

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what a reader may hand in: far beyond any official list, low enough
// that one bad row cannot take the memory.
const (
	maxColumns  = 64 // bits of Event.Mask
	maxIDParts  = 8
	maxIDBytes  = 4 << 10
	maxRowBytes = 1 << 20
)

// Schema is how one source's rows look: handed down by whoever reads it.
type Schema struct {
	Source  string // "sat_69b"
	Reader  int    // raised whenever the same bytes would give other rows ("lector")
	Columns []Column
	// MaxAge is how many days after its fecha_de_orden a version is still what the
	// authority's rhythm lets expect; beyond, a newer one is overdue. 0: none is
	// expected. No part of the rows.
	MaxAge int
}

// Column is one official column under its canonical official title.
type Column struct {
	Name    string `json:"nombre"`
	Tracked bool   `json:"seguida"` // a change of its normalised value is an event
}

func (s Schema) check() error {
	switch {
	case !validSource(s.Source):
		return fmt.Errorf("source %q", s.Source)
	case s.Reader < 1:
		return fmt.Errorf("%s: lector %d; empieza en 1", s.Source, s.Reader)
	case len(s.Columns) == 0 || len(s.Columns) > maxColumns:
		return fmt.Errorf("%s: %d columnas; de 1 a %d", s.Source, len(s.Columns), maxColumns)
	}
	for i, c := range s.Columns {
		if c.Name == "" || !utf8.ValidString(c.Name) {
			return fmt.Errorf("%s: la columna %d no tiene título", s.Source, i)
		}
	}
	return nil
}

// Row is one official row.
type Row struct {
	// ID identifies the row across versions; ID[0] is what lookups ask for (the
	// RFC). Rows with equal IDs are told apart by an ordinal that follows the
	// order of their normalised values, never that of the file. All rows of a
	// source have the same number of parts; a part holds no NUL.
	ID         []string
	Ordinal    int      // filled by the catalogue
	Suppressed bool     // redacted by the authority: kept and counted, never found, no events
	Raw, Norm  []string // by column: as published (decoded), and normalised
}

// check refuses rows that could not be stored without loss.
func (r *Row) check(columns int) error {
	if len(r.Raw) != columns || len(r.Norm) != columns {
		return fmt.Errorf("la fila tiene %d celdas oficiales y %d normalizadas; las columnas son %d", len(r.Raw), len(r.Norm), columns)
	}
	if len(r.ID) == 0 || len(r.ID) > maxIDParts {
		return fmt.Errorf("la identidad tiene %d partes; de 1 a %d", len(r.ID), maxIDParts)
	}
	size := 0
	for _, part := range r.ID {
		size += len(part)
		if !utf8.ValidString(part) || strings.IndexByte(part, 0) >= 0 {
			return fmt.Errorf("la identidad %q no es texto", r.ID)
		}
	}
	if size > maxIDBytes {
		return fmt.Errorf("la identidad ocupa %d bytes; el máximo es %d", size, maxIDBytes)
	}
	size = 0
	for i := range r.Raw {
		size += len(r.Raw[i]) + len(r.Norm[i])
		if !utf8.ValidString(r.Raw[i]) || r.Norm[i] != r.Raw[i] && !utf8.ValidString(r.Norm[i]) {
			return fmt.Errorf("la fila %q no está en UTF-8 en la columna %d", r.ID, i)
		}
	}
	if size > maxRowBytes {
		return fmt.Errorf("la fila %q ocupa %d bytes; el máximo es %d", r.ID, size, maxRowBytes)
	}
	return nil
}

// A key is the parts of the ID, each ended by 0x00, and the ordinal as 4 bytes
// big endian, so that keys sort by ID part by part, then by ordinal, and all
// rows of one ID[0] share a prefix.

func appendID(dst []byte, id []string) []byte {
	for _, part := range id {
		dst = append(append(dst, part...), 0)
	}
	return dst
}

func appendKey(dst, id []byte, ordinal int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, id...), uint32(ordinal))
}

// cutKey splits a key into the ID as appendID writes it, and the ordinal.
func cutKey(key []byte) (id []byte, ordinal int, err error) {
	at := len(key) - 4
	if at < 1 || key[at-1] != 0 {
		return nil, 0, errors.New("clave mal formada")
	}
	return key[:at], int(binary.BigEndian.Uint32(key[at:])), nil
}

// splitID returns the parts of an ID; they share one new string.
func splitID(id []byte) []string {
	return strings.Split(string(id[:len(id)-1]), "\x00")
}

// lookupPrefix returns the prefix of all keys whose ID[0] is lookup; ok is
// false when no key can have it.
func lookupPrefix(dst []byte, lookup string) (prefix []byte, ok bool) {
	if strings.IndexByte(lookup, 0) >= 0 {
		return nil, false
	}
	return append(append(dst, lookup...), 0), true
}

// A row's value is: a schema byte (1), a flag byte (1 = suppressed), the number
// of columns as uvarint, a bitmap of the columns whose normalised cell differs
// from the official one (bit i of byte i/8), and by column the official cell
// and, where its bit is set, the normalised one; each cell is its length as
// uvarint and its bytes. One row has one such text.
const (
	rowSchema     = 1
	rowSuppressed = 1
)

func appendRow(dst []byte, r *Row) []byte {
	flags := byte(0)
	if r.Suppressed {
		flags = rowSuppressed
	}
	dst = append(dst, rowSchema, flags)
	dst = binary.AppendUvarint(dst, uint64(len(r.Raw)))
	at := len(dst)
	for range (len(r.Raw) + 7) / 8 {
		dst = append(dst, 0)
	}
	for i := range r.Raw {
		dst = appendCell(dst, r.Raw[i])
		if r.Norm[i] != r.Raw[i] {
			dst[at+i/8] |= 1 << (i % 8)
			dst = appendCell(dst, r.Norm[i])
		}
	}
	return dst
}

func appendCell[T string | []byte](dst []byte, cell T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

// cells is a decoded row value. The cells are parts of the value: of a string
// they may be kept, of a slice they live as long as it.
type cells[T string | []byte] struct {
	suppressed bool
	raw, norm  []T // reused by the next decode
	bitmap     T
}

// differs reports whether the normalised cell of a column is another text than the
// official one.
func (c *cells[T]) differs(column int) bool { return c.bitmap[column/8]&(1<<(column%8)) != 0 }

var errRow = errors.New("snapshots: fila mal codificada")

// suppressedRow reads only the flag.
func suppressedRow(value []byte) bool { return len(value) > 1 && value[1]&rowSuppressed != 0 }

func (c *cells[T]) decode(value T) error {
	if len(value) < 2 || value[0] != rowSchema || value[1] > rowSuppressed {
		return errRow
	}
	c.suppressed = value[1] == rowSuppressed
	n, rest, ok := cutUvarint(value[2:])
	if !ok || n == 0 || n > maxColumns || uint64(len(rest)) < (n+7)/8 {
		return errRow
	}
	bitmap, rest := rest[:(n+7)/8], rest[(n+7)/8:]
	if n%8 != 0 && bitmap[len(bitmap)-1]>>(n%8) != 0 {
		return errRow
	}
	c.bitmap = bitmap
	c.raw, c.norm = slices.Grow(c.raw[:0], int(n)), slices.Grow(c.norm[:0], int(n))
	for i := range n {
		var raw T
		if raw, rest, ok = cutCell(rest); !ok {
			return errRow
		}
		norm := raw
		if c.differs(int(i)) {
			if norm, rest, ok = cutCell(rest); !ok || string(norm) == string(raw) {
				return errRow
			}
		}
		c.raw, c.norm = append(c.raw, raw), append(c.norm, norm)
	}
	if len(rest) != 0 {
		return errRow
	}
	return nil
}

// cutUvarint reads a number in its shortest form.
func cutUvarint[T string | []byte](in T) (v uint64, rest T, ok bool) {
	for i := 0; i < len(in) && i < binary.MaxVarintLen64; i++ {
		b := in[i]
		if b < 0x80 {
			if i > 0 && b == 0 || i == binary.MaxVarintLen64-1 && b > 1 {
				return 0, rest, false
			}
			return v | uint64(b)<<(7*i), in[i+1:], true
		}
		v |= uint64(b&0x7f) << (7 * i)
	}
	return 0, rest, false
}

func cutCell[T string | []byte](in T) (cell, rest T, ok bool) {
	n, rest, ok := cutUvarint(in)
	if !ok || n > uint64(len(rest)) {
		return cell, rest, false
	}
	return rest[:n], rest[n:], true
}
