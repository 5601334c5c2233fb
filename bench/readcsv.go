package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"
)

// preambles are the records above the titles. DuckDB is told of them; our readers
// find the titles by themselves.
var preambles = map[string]int{"sat_69b": 2, "sat_69b_bis": 2}

// csvFile is a file as both sides read it.
type csvFile struct {
	Rows     int     `json:"rows"`
	Blank    int     `json:"blank_rows,omitempty"` // records without text, which DuckDB keeps and we do not
	Encoding string  `json:"encoding"`
	Replaced int     `json:"bytes_replaced,omitempty"`
	ReadCSV  float64 `json:"readcsv_cpu_s"`
	Ingest   float64 `json:"ingest_cpu_s"`

	path string // what DuckDB reads
}

// readable is the file as DuckDB can read it. It knows latin-1 but not
// windows-1252, and refuses a file with a byte that only the latter has: those are
// replaced, in a copy in dir, before anything is measured.
func readable(path, dir string) (c csvFile, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	c.path = path
	if utf8.Valid(content) {
		c.Encoding = "utf-8"
		return c, nil
	}
	c.Encoding = "latin-1"
	for i, b := range content {
		if b >= 0x80 && b < 0xa0 {
			content[i] = '?'
			c.Replaced++
		}
	}
	if c.Replaced == 0 {
		return c, nil
	}
	c.path = filepath.Join(dir, filepath.Base(path))
	return c, os.WriteFile(c.path, content, 0o600)
}

// readCSV loads the files into tables of a database and returns the processor time
// of the child that did.
func (d *dataset) readCSV(ctx context.Context, h Host, database string, files map[string]*csvFile) (cpu float64, err error) {
	duck, err := startDuckDB(ctx, h, database)
	if err != nil {
		return 0, err
	}
	for _, f := range d.Files {
		h.Progress("DuckDB lee %s", f.Source)
		file := files[f.Source]
		// Its dialect is told and no type is guessed: what is left to be found are the
		// names of the columns. Lines may not be malformed (strict_mode), no row is
		// passed over (ignore_errors) and none filled up (null_padding).
		s, err := duck.run(fmt.Sprintf(`create table %s as from read_csv(%s, all_varchar=true, header=true, skip=%d, delim=',', quote='"', escape='"', encoding='%s', strict_mode=true, ignore_errors=false, null_padding=false)`,
			f.Source, quoted(file.path), preambles[f.Source], file.Encoding))
		if err != nil {
			return 0, errors.Join(err, duck.stop())
		}
		file.ReadCSV = s.CPU
	}
	err = duck.stop()
	return processCPU(duck.cmd), err
}

// countCSV compares the rows that DuckDB read with those that were generated.
func (d *dataset) countCSV(ctx context.Context, h Host, database string, files map[string]*csvFile) (err error) {
	duck, err := startDuckDB(ctx, h, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, duck.stop()) }()
	for _, f := range d.Files {
		all, err1 := duck.count(f.Source, "true")
		text, err2 := duck.count(f.Source, "trim(concat(*columns(*))) <> ''")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if text != f.Rows {
			return fmt.Errorf("%w: %s tiene %d filas y DuckDB leyó %d", ErrOtherAnswer, f.Source, f.Rows, text)
		}
		files[f.Source].Rows, files[f.Source].Blank = text, all-text
	}
	return nil
}

// count counts rows of a table.
func (d *duckDB) count(table, where string) (int, error) {
	s, err := d.run("select count(*) from " + table + " where " + where)
	if err != nil {
		return 0, err
	}
	if len(s.Rows) != 1 || len(s.Rows[0]) != 1 {
		return 0, fmt.Errorf("DuckDB: count de %s: %v", table, s.Rows)
	}
	return strconv.Atoi(s.Rows[0][0])
}
