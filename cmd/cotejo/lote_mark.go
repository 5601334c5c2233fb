package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cotejo/civil"
)

// Beside the output OUT stand, until it is there,
//
//	OUT.parcial  what came so far; locked by the process that works on OUT
//	OUT.lote     the mark: that a batch of this list was accepted for OUT
//
// The mark is written, durably, before the list is sent, and removed after OUT has its
// name. Its token, drawn once, and the hash of what is sent make the Idempotency-Key:
// whoever runs the command again while the mark is there asks for the same batch, and
// whoever does so after it is gone finds OUT and is refused, or names another OUT,
// which is another batch. So nobody pays twice for one file, and a list that is sent
// anew every day, each to a file of its own, is a new batch every day.

const (
	loteMarkVersion = 1
	// loteMemory is how long a mark may be sent again: a day less than the service
	// remembers a key.
	loteMemory = 6 * 24 * time.Hour
)

// markEnd ends the name of a mark that is being written.
const markEnd = ".nueva"

// loteMark is what OUT.lote holds.
type loteMark struct {
	Version int       `json:"version"`
	Token   string    `json:"token"`
	Content string    `json:"contenido"` // loteList.content
	Service string    `json:"servicio"`  // where it was accepted, and as what
	Mode    string    `json:"modo"`
	Created string    `json:"creado"`
	Quote   loteQuote `json:"cotizacion"`        // that was accepted
	Lot     string    `json:"lote_id,omitempty"` // once the service told it
	Sum     string    `json:"sha256,omitempty"`  // of OUT, before it gets its name

	old bool // of an earlier run
}

func newLoteMark(list *loteList) *loteMark {
	token := make([]byte, 16)
	rand.Read(token) // never fails (Go 1.24)
	return &loteMark{
		Version: loteMarkVersion, Token: hex.EncodeToString(token), Content: list.content, Created: civil.Timestamp(now()),
	}
}

// key is the Idempotency-Key.
func (m *loteMark) key(list *loteList) string {
	sum := sha256.Sum256([]byte(m.Token + "\n" + list.content))
	return "cotejo-lote-" + hex.EncodeToString(sum[:20])
}

// about names the batch in a message, with a blank before it.
func (m *loteMark) about() string {
	lot := m.Lot
	if lot != "" {
		lot = " " + lot
	}
	return fmt.Sprintf("%s del %s", lot, m.Created)
}

// late reports whether the service may have forgotten the key.
func (m *loteMark) late(now time.Time) bool {
	at, err := time.Parse(time.RFC3339, m.Created)
	return err != nil || now.Sub(at) > loteMemory
}

// loteOutput is the output and what stands beside it. This process has it alone until
// close.
type loteOutput struct {
	path, partial, marked string
	stopped               string // in the place of path, of a batch that was stopped
	file                  *os.File
}

// openLoteOutput takes the output for this process.
func openLoteOutput(path string) (*loteOutput, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	o := &loteOutput{path: path, partial: path + ".parcial", marked: path + ".lote", stopped: path + ".detenido"}
	o.file, err = os.OpenFile(o.partial, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exitWith(exitUsage, "--out: no existe la carpeta %s", filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	err = unix.Flock(int(o.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && !o.owns() { // whoever had it was done in the meantime
		err = unix.EWOULDBLOCK
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = exitWith(exitInUse, "otro proceso recibe %s: espere a que termine", path)
	}
	if err != nil {
		return nil, errors.Join(err, o.file.Close())
	}
	return o, nil
}

// owns reports whether the locked file is the one that stands there.
func (o *loteOutput) owns() bool {
	there, err := os.Stat(o.partial)
	if err != nil {
		return false
	}
	ours, err := o.file.Stat()
	return err == nil && os.SameFile(there, ours)
}

// free refuses an output that is there. It may be there with a mark when a run ended
// between its last two steps.
func (o *loteOutput) free(mark *loteMark) error {
	for _, path := range []string{o.path, o.stopped} {
		_, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if path == o.path && mark != nil {
				mark.Sum = "" // its name was never given
			}
		case err != nil:
			return err
		case path == o.stopped, mark == nil || mark.Sum == "":
			return exitWith(exitUsage, "%s ya existe: use otro --out, que es otro lote y se cobra, o muévalo", path)
		}
	}
	return nil
}

// read returns the mark of an earlier run, nil when there is none.
func (o *loteOutput) read() (*loteMark, error) {
	text, err := os.ReadFile(o.marked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &loteMark{old: true}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(m); err != nil || m.Version != loteMarkVersion || len(m.Token) != 32 || m.Lot != "" && !isLote(m.Lot) {
		return nil, exitWith(exitUsage, "%s no es una marca de este programa, y sin ella no se sabe si el lote ya se cobró: revise los movimientos de la cuenta, y bórrela para enviar la lista de nuevo", o.marked)
	}
	return m, nil
}

// write makes the mark durable.
func (o *loteOutput) write(m *loteMark) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	temp := o.marked + markEnd
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, o.marked)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return syncDir(filepath.Dir(o.marked))
}

// rewind empties what came before, for another attempt.
func (o *loteOutput) rewind() error {
	_, err := o.file.Seek(0, 0)
	return errors.Join(err, o.file.Truncate(0))
}

// append adds what came.
func (o *loteOutput) append(piece []byte, sum hash.Hash) error {
	sum.Write(piece) // never fails
	_, err := o.file.Write(piece)
	return err
}

func (o *loteOutput) sync() error { return o.file.Sync() }

// publish gives what came its name and removes the mark. Whoever is interrupted on the
// way finds either no output or a whole one.
func (o *loteOutput) publish(m *loteMark, sum string) error {
	if m.Sum == "" {
		m.Sum = sum
		if err := o.write(m); err != nil {
			return err
		}
		if err := os.Rename(o.partial, o.path); err != nil {
			return err
		}
		if err := syncDir(filepath.Dir(o.path)); err != nil {
			return err
		}
	}
	return o.forget()
}

// publishStopped keeps what there is of a batch that was stopped.
func (o *loteOutput) publishStopped() error {
	if err := os.Rename(o.partial, o.stopped); err != nil {
		return err
	}
	return o.forget()
}

// forget removes the mark.
func (o *loteOutput) forget() error {
	return errors.Join(removeIfThere(o.marked), removeIfThere(o.marked+markEnd), syncDir(filepath.Dir(o.marked)))
}

// close lets go of the output, and removes what did not get a name.
func (o *loteOutput) close() error {
	var err error
	if o.owns() {
		err = removeIfThere(o.partial)
	}
	return errors.Join(err, o.file.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
