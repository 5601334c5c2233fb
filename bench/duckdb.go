package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// duckDB is the program of bench/duckdb, running: what answers are compared with.
// It uses one thread. Not safe for concurrent use.
type duckDB struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// statement is what became of one statement.
type statement struct {
	CPU   float64    `json:"cpu_s"` // user and system
	Rows  [][]string `json:"rows"`
	Error string     `json:"error"`
}

// ErrNoDuckDB says that the program of bench/duckdb is not there.
var ErrNoDuckDB = errors.New("falta el programa con el que se compara")

// checkDuckDB says before anything is measured whether the program is there.
func checkDuckDB(h Host) error {
	if _, err := os.Stat(h.DuckDB); err != nil {
		return fmt.Errorf("%w, %s: constrúyalo con «make duckdb», o indique dónde está con --duckdb", ErrNoDuckDB, h.DuckDB)
	}
	return nil
}

// startDuckDB opens a database: a file, "" for one in memory.
func startDuckDB(ctx context.Context, h Host, file string) (*duckDB, error) {
	if err := checkDuckDB(h); err != nil {
		return nil, err
	}
	d := &duckDB{cmd: exec.CommandContext(ctx, h.DuckDB, file)}
	d.cmd.Stderr = os.Stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.answers = json.NewDecoder(bufio.NewReader(out))
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := d.run("set threads = 1"); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// run waits for the answer.
func (d *duckDB) run(sql string) (s statement, err error) {
	line, err := json.Marshal(sql)
	if err != nil {
		return s, err
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return s, err
	}
	if err := d.answers.Decode(&s); err != nil {
		return s, fmt.Errorf("DuckDB: %w", err)
	}
	if s.Error != "" {
		return s, fmt.Errorf("DuckDB: %s: %s", sql, s.Error)
	}
	return s, nil
}

// all runs statements one after the other.
func (d *duckDB) all(statements ...string) error {
	for _, sql := range statements {
		if _, err := d.run(sql); err != nil {
			return err
		}
	}
	return nil
}

// stop lets the program close its database.
func (d *duckDB) stop() error { return errors.Join(d.in.Close(), d.cmd.Wait()) }

// processCPU is the processor time of a child that has ended.
func processCPU(cmd *exec.Cmd) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// ownCPU is the processor time that this process has used.
func ownCPU() (float64, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9, err
}

// cpuOf is the processor time that f takes, the collector included.
func cpuOf(f func() error) (float64, error) {
	before, err := ownCPU()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := ownCPU()
	return after - before, err
}

// quoted is a text as a literal of SQL.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
