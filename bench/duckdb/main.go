//go:build duckdb

// Command duckdb runs SQL statements in DuckDB, for `cotejo bench` to compare
// itself with. It is a program of its own so that the one that serves does not
// carry a C++ engine that it never asks, and has a build tag so that a machine without a
// C++ library builds and tests everything else: make duckdb.
//
// Each line of stdin is a JSON string, one or several statements. Each is answered
// with one line on stdout: the processor time that it took, the rows of the last
// statement as texts, or why it failed. The first argument is the file of the
// database; without one it is in memory.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	_ "github.com/duckdb/duckdb-go/v2"
	"golang.org/x/sys/unix"
)

// maxLine bounds a line of stdin.
const maxLine = 1 << 20

type reply struct {
	CPU   float64    `json:"cpu_s"` // user and system, of the whole process
	Rows  [][]string `json:"rows"`
	Error string     `json:"error,omitempty"`
}

func main() {
	path := ""
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := run(path, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run answers every line of in. A statement that fails is an answer.
func run(path string, in io.Reader, out io.Writer) (err error) {
	db, err := sql.Open("duckdb", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// Settings and temporary tables belong to a connection.
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	answers := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var statement string
		if err := json.Unmarshal(lines.Bytes(), &statement); err != nil {
			return err
		}
		var r reply
		before, err := cpuSeconds()
		if err != nil {
			return err
		}
		if r.Rows, err = query(conn, statement); err != nil {
			r.Error = err.Error()
		}
		after, err := cpuSeconds()
		if err != nil {
			return err
		}
		r.CPU = after - before
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func query(conn *sql.Conn, statement string) (_ [][]string, err error) {
	rows, err := conn.QueryContext(context.Background(), statement)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	found := [][]string{}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(cells))
		for i, c := range cells {
			if c != nil {
				row[i] = fmt.Sprint(c)
			}
		}
		found = append(found, row)
	}
	return found, rows.Err()
}

func cpuSeconds() (float64, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9, err
}
