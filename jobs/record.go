package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxRuns   = 30      // remembered of each job
	maxText   = 1000    // bytes of a detail or an error
	maxRecord = 1 << 20 // bytes of a file; ours are far smaller
)

// Run is one run of a job as it is remembered.
type Run struct {
	Start  time.Time `json:"inicio"`
	End    time.Time `json:"fin,omitzero"` // zero while it runs, and of one that died with its process
	Status Status    `json:"status"`
	Detail string    `json:"detalle,omitempty"` // for everybody
	Error  string    `json:"error,omitempty"`   // for the operator
	ByHand bool      `json:"a_mano,omitempty"`
}

// record is the file of one job: DIR/<job>.json.
type record struct {
	Job     string    `json:"job"`
	Success time.Time `json:"ultimo_exito,omitzero"` // start of the last run that settled
	Runs    []Run     `json:"corridas"`              // oldest first

	unreadable error // why the file was not taken up
}

// add appends a run. Waiting for another process is one line, however often it
// was looked.
func (r *record) add(run Run) {
	if n := len(r.Runs); n > 0 && r.Runs[n-1].Status == Busy {
		r.Runs = r.Runs[:n-1]
	}
	r.Runs = append(r.Runs, run)
	if extra := len(r.Runs) - maxRuns; extra > 0 {
		r.Runs = append(r.Runs[:0], r.Runs[extra:]...)
	}
}

// replaceLast puts the end of a run in the place of its beginning.
func (r *record) replaceLast(run Run) {
	r.Runs[len(r.Runs)-1] = run
	if run.Status.settled() {
		r.Success = run.Start
	}
}

// closeCut marks a run that never ended. When it died nobody knows.
func (r *record) closeCut() {
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Status == Running {
			run.Status, run.Detail = Interrupted, "el proceso terminó a la mitad; se repite"
		}
	}
}

// write replaces the file, durably. Only one process writes in a folder.
func (r *record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, r.Job+".json")
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	return syncDir(dir)
}

// makeDir makes the folder, and its entry in the one above, durable.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readRecord reads what write wrote; a job without a file never ran.
func readRecord(dir, job string) (record, error) {
	r := record{Job: job}
	f, err := os.Open(filepath.Join(dir, job+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return r, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&r); err != nil {
		return r, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if err := r.check(job); err != nil {
		return r, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return r, nil
}

func (r *record) check(job string) error {
	if r.Job != job || len(r.Runs) > maxRuns {
		return fmt.Errorf("%d corridas de %q", len(r.Runs), r.Job)
	}
	for _, run := range r.Runs {
		switch run.Status {
		case OK, Unchanged, Quarantined, Failed, Busy, Interrupted, Running, Unconfigured:
		default:
			return fmt.Errorf("status %q", run.Status)
		}
		if run.Start.IsZero() {
			return errors.New("una corrida sin inicio")
		}
	}
	return nil
}

// bound keeps what a job says of itself short enough to be shown.
func bound(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
