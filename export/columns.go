package export

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// A row group ends with the row that brings it to so many rows or so many bytes of
// text. Both bound memory, and both depend on the content alone.
const (
	groupRows  = 1 << 16
	groupBytes = 8 << 20
)

// createdBy stands in every file in the place of a library's name and version.
const createdBy = "cotejo"

// column gathers the values of one column for the next row group.
type column struct {
	name string
	node schema.Node
	// unique values are not worth a dictionary, nor long ones their bounds in the
	// footer.
	unique, long bool

	texts []parquet.ByteArray
	ints  []int64
	days  []int32
	bools []bool
	defs  []int16 // of an optional column: 1 where there is a value
	reps  []int16 // of a list: 0 where a row begins
}

func text(name string, rep parquet.Repetition) *column {
	return &column{name: name, node: schema.Must(schema.NewPrimitiveNodeLogical(name, rep, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1))}
}

func integer(name string, rep parquet.Repetition) *column {
	return &column{name: name, node: schema.NewInt64Node(name, rep, -1)}
}

func boolean(name string) *column {
	return &column{name: name, node: schema.NewBooleanNode(name, required, -1)}
}

func day(name string, rep parquet.Repetition) *column {
	return &column{name: name, node: schema.Must(schema.NewPrimitiveNodeLogical(name, rep, schema.DateLogicalType{}, parquet.Types.Int32, 0, -1))}
}

// moment is in microseconds, UTC.
func moment(name string, rep parquet.Repetition) *column {
	utc := schema.NewTimestampLogicalType(true, schema.TimeUnitMicros)
	return &column{name: name, node: schema.Must(schema.NewPrimitiveNodeLogical(name, rep, utc, parquet.Types.Int64, 0, -1))}
}

var (
	required = parquet.Repetitions.Required
	optional = parquet.Repetitions.Optional
)

func (c *column) distinct() *column { c.unique = true; return c }
func (c *column) lengthy() *column  { c.unique, c.long = true, true; return c }

// value notes that an optional column has one in this row.
func (c *column) value() {
	if c.node.RepetitionType() == optional {
		c.defs = append(c.defs, 1)
	}
}

func (c *column) null() { c.defs = append(c.defs, 0) }

func (c *column) text(b []byte) { c.value(); c.texts = append(c.texts, b) }
func (c *column) int(n int64)   { c.value(); c.ints = append(c.ints, n) }
func (c *column) day(n int32)   { c.value(); c.days = append(c.days, n) }
func (c *column) bool(b bool)   { c.value(); c.bools = append(c.bools, b) }

// item appends to a list of the row at hand.
func (c *column) item(n int64, first bool) {
	rep := int16(1)
	if first {
		rep = 0
	}
	c.ints, c.defs, c.reps = append(c.ints, n), append(c.defs, 1), append(c.reps, rep)
}

// none is an empty list.
func (c *column) none() { c.defs, c.reps = append(c.defs, 0), append(c.reps, 0) }

// textOr is null for an empty text.
func (c *column) textOr(s string) {
	if s == "" {
		c.null()
	} else {
		c.text([]byte(s))
	}
}

// intOr is null for 0.
func (c *column) intOr(n int64) {
	if n == 0 {
		c.null()
	} else {
		c.int(n)
	}
}

func (c *column) clear() {
	clear(c.texts)
	c.texts, c.ints, c.days, c.bools = c.texts[:0], c.ints[:0], c.days[:0], c.bools[:0]
	c.defs, c.reps = c.defs[:0], c.reps[:0]
}

// write writes the gathered values as one chunk.
func (c *column) write(to file.ColumnChunkWriter) (err error) {
	switch w := to.(type) {
	case *file.ByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(c.texts, c.defs, c.reps)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(c.ints, c.defs, c.reps)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(c.days, c.defs, c.reps)
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(c.bools, c.defs, c.reps)
	default:
		err = fmt.Errorf("export: columna %s: tipo %T", c.name, to)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}

// table is one Parquet file. leaves are its columns in the order of the file;
// fields the nodes that they stand in.
type table struct {
	out    *output
	leaves []*column
	writer *file.Writer
	rows   int // in the row group at hand
	bytes  int // of text in it
}

// newTable begins a file whose schema is fields; a field that is no column of
// leaves holds those that have its name as their first part.
func newTable(f *folder, name string, fields schema.FieldList, leaves []*column) (*table, error) {
	out, err := f.create(name)
	if err != nil {
		return nil, err
	}
	root, err := schema.NewGroupNode("schema", required, fields, -1)
	if err != nil {
		return nil, err
	}
	properties := []parquet.WriterProperty{
		parquet.WithCreatedBy(createdBy),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(3),
	}
	for _, c := range leaves {
		if c.unique {
			properties = append(properties, parquet.WithDictionaryFor(c.name, false))
		}
		if c.long {
			properties = append(properties, parquet.WithStatsFor(c.name, false))
		}
	}
	w, err := file.NewParquetWriterWithError(out, root, file.WithWriterProps(parquet.NewWriterProperties(properties...)))
	return &table{out: out, leaves: leaves, writer: w}, err
}

func fieldsOf(columns []*column) (fields schema.FieldList) {
	for _, c := range columns {
		fields = append(fields, c.node)
	}
	return fields
}

// end completes a row, whose texts have so many bytes.
func (t *table) end(bytes int) error {
	t.out.rows++
	t.rows++
	t.bytes += bytes
	if t.rows < groupRows && t.bytes < groupBytes {
		return nil
	}
	return t.flush()
}

// flush writes the row group at hand, if there is one.
func (t *table) flush() error {
	if t.rows == 0 {
		return nil
	}
	group, err := t.writer.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	for _, c := range t.leaves {
		chunk, err := group.NextColumn()
		if err != nil {
			return err
		}
		if err := c.write(chunk); err != nil {
			return err
		}
		c.clear()
	}
	t.rows, t.bytes = 0, 0
	return group.Close()
}

// close writes the rest and the footer. The file stays open.
func (t *table) close() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.writer.Close()
}
