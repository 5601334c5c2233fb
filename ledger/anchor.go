package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/canon"
	"cotejo/store"
)

// An engine cannot show that nothing is missing at the end of what it holds: a
// log or a list of files that lost its tail opens cleanly. So the heads of all
// groups are also kept outside the store, in one small file that is replaced
// about once a second and compared when the store is opened again.

// anchorEvery is the least time between two writes of the anchor.
const anchorEvery = time.Second

const maxAnchorBytes = 64 << 10

var _ = metrics.NewGauge("cotejo_anchor_age_seconds", func() float64 {
	if l := newest.Load(); l != nil {
		return l.AnchorAge().Seconds()
	}
	return 0
})

// ErrAnchor says that the file of the anchor cannot be read, or not be made.
var ErrAnchor = errors.New("ledger: el ancla no se puede usar; corrija «anchor»: un archivo en una carpeta que existe y admite escritura")

// AnchorError refuses to open a store that is not the one that the anchor
// remembers. It matches ErrIntegrity.
type AnchorError struct {
	Path  string      // of the anchor
	Group store.Group // the first that disagrees
	// Stored and Anchored are the newest batches of the group, by the store and by
	// the anchor. Where Stored is not the lower one, batch Anchored is another one
	// than the anchor remembers.
	Stored, Anchored uint64
	Groups           int   // how many groups disagree
	Damage           error // set when the anchor itself is unreadable; the rest is zero then
}

// Missing is how many batches the group lacks.
func (e *AnchorError) Missing() uint64 {
	if e.Stored >= e.Anchored {
		return 0
	}
	return e.Anchored - e.Stored
}

func (e *AnchorError) Error() string {
	var what string
	switch missing := e.Missing(); {
	case e.Damage != nil:
		return fmt.Sprintf("ledger: el ancla %s está dañada (%v) y sin ella no se sabe si a las cuentas les falta algo. "+
			"Restaure el ancla y las cuentas del mismo respaldo; si las cuentas son las que quiere, aparte ese archivo y se escribirá otro",
			e.Path, e.Damage)
	case missing > 0:
		what = fmt.Sprintf("al grupo %d le faltan lotes (%d): tiene hasta el %d y el ancla %s recuerda hasta el %d",
			e.Group, missing, e.Stored, e.Path, e.Anchored)
	default:
		what = fmt.Sprintf("en el grupo %d el lote %d no es el que recuerda el ancla %s", e.Group, e.Anchored, e.Path)
	}
	if e.Groups > 1 {
		what += fmt.Sprintf(" (otros grupos que no coinciden: %d)", e.Groups-1)
	}
	return "ledger: las cuentas no son las últimas que se escribieron: " + what +
		". Si esa ancla es de otro servicio, indique otra («anchor»). Si no, restaure el respaldo más reciente; " +
		"si quiere a propósito los datos anteriores, aparte el archivo del ancla y vuelva a iniciar"
}

// Is makes every AnchorError an ErrIntegrity.
func (e *AnchorError) Is(target error) bool { return target == ErrIntegrity }

// anchorText is the file, members by name as in canonical JSON. Its own sum is
// over the text without that member.
type anchorText struct {
	Sum    string       `json:"ancla_sha256,omitempty"`
	Format int          `json:"formato"`
	Groups []anchorHead `json:"grupos"`
}

type anchorHead struct {
	Sum   string `json:"cabeza"`
	Group int    `json:"grupo"`
	Seq   uint64 `json:"lote"`
}

func encodeAnchor(heads []Head) ([]byte, error) {
	t := anchorText{Format: 1}
	for _, h := range heads {
		t.Groups = append(t.Groups, anchorHead{hex.EncodeToString(h.Sum[:]), int(h.Group), h.Seq})
	}
	body, err := canon.Marshal(t)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	t.Sum = hex.EncodeToString(sum[:])
	text, err := canon.Marshal(t)
	return append(text, '\n'), err
}

// decodeAnchor reads what encodeAnchor wrote of all groups and nothing else.
func decodeAnchor(text []byte) ([]Head, error) {
	if len(text) > maxAnchorBytes {
		return nil, errors.New("es demasiado grande")
	}
	var t anchorText
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, err
	}
	if len(t.Groups) != store.Groups+1 {
		return nil, fmt.Errorf("nombra %d grupos y son %d", len(t.Groups), store.Groups+1)
	}
	heads := make([]Head, len(t.Groups))
	for i, g := range t.Groups {
		sum, err := hex.DecodeString(g.Sum)
		if err != nil || len(sum) != sha256.Size || g.Group != i {
			return nil, fmt.Errorf("el grupo %d es ilegible", i)
		}
		heads[i] = Head{store.Group(i), g.Seq, [sha256.Size]byte(sum)}
	}
	again, err := encodeAnchor(heads)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, text) {
		return nil, errors.New("su suma no coincide")
	}
	return heads, nil
}

// ReadAnchor reads the heads of all groups, by group. It returns fs.ErrNotExist
// when there is no such file, and an *AnchorError when it is damaged.
func ReadAnchor(path string) ([]Head, error) { return readAnchor(osFiles{}, path) }

// WriteAnchor replaces the anchor: after a crash there is the old one or the new
// one, and the new one after it returned. heads are those of all groups, by
// group, and must be durable.
func WriteAnchor(path string, heads []Head) error {
	text, err := encodeAnchor(heads)
	if err != nil {
		return err
	}
	return writeAnchor(osFiles{}, followed(path), text)
}

func readAnchor(files anchorFiles, path string) ([]Head, error) {
	text, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("ledger: ancla: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnchor, err)
	}
	heads, err := decodeAnchor(text)
	if err != nil {
		return nil, &AnchorError{Path: path, Damage: err}
	}
	return heads, nil
}

func writeAnchor(files anchorFiles, path string, text []byte) error {
	err := files.WriteSynced(path+".nuevo", text)
	if err == nil {
		err = files.Rename(path+".nuevo", path)
	}
	if err == nil {
		err = files.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("ledger: no se pudo escribir el ancla: %w", err)
	}
	return nil
}

// followed is the file that path leads to: replacing a link would leave the anchor
// on the disk of the link.
func followed(path string) string {
	for range 8 {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// anchorFiles is what the anchor needs of a disk, so that the crash test can take
// the power from it.
type anchorFiles interface {
	Read(name string) ([]byte, error)
	WriteSynced(name string, text []byte) error
	Rename(from, to string) error
	SyncDir(dir string) error
}

type osFiles struct{}

func (osFiles) Read(name string) ([]byte, error) { return os.ReadFile(name) }

func (osFiles) WriteSynced(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (osFiles) Rename(from, to string) error { return os.Rename(from, to) }

func (osFiles) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// anchored are the durable heads of a ledger and the file that holds them.
type anchored struct {
	path  string // "": none
	files anchorFiles
	every time.Duration

	changed chan struct{} // capacity 1: there is something to write
	closing sync.Once
	stop    chan struct{} // closed by finish
	done    chan struct{} // closed when the last write is over; nil: never started

	// What the file may hold: the text that was read or written last, and one that
	// was tried since. Of whoever writes.
	held, tried []byte

	mu    sync.Mutex
	heads [store.Groups + 1]Head // written by the sequencer
	led   bool                   // heads are those of a store; of the sequencer
	// When the oldest head became durable that the file does not hold: of those
	// that are being written (or could not be), and of those since. Zero: none.
	writing, waiting time.Time
	failed           bool // the last write; only the first failure is logged
	// kept are the heads that the file holds, by group; nil when nobody knows.
	kept []Head
}

func (a *anchored) init(o Options) {
	a.path, a.files, a.every = o.Anchor, o.anchorFiles, o.anchorEvery
	if a.files == nil {
		a.files, a.path = osFiles{}, followed(a.path)
	}
	if a.every == 0 {
		a.every = anchorEvery
	}
	a.changed, a.stop = make(chan struct{}, 1), make(chan struct{})
}

// compare refuses a store with these heads, by group, that is not, or not yet again,
// what the anchor says, nor what this process knew to be durable when it led last.
// It takes the heads.
func (a *anchored) compare(readers []store.Reader, now [store.Groups + 1]Head) error {
	if a.led {
		if _, err := missing("(la memoria de este proceso)", a.heads[:], now, readers); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.heads, a.led = now, true
	a.mu.Unlock()
	if a.path == "" {
		return nil
	}
	heads, err := readAnchor(a.files, a.path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, h := range now {
			if h.Seq > 0 {
				slog.Warn("ledger: no hay ancla con que comparar las cuentas; se escribe una nueva", "archivo", a.path)
				break
			}
		}
		if err := a.replace(now[:]); err != nil {
			return fmt.Errorf("%w: %w", ErrAnchor, err)
		}
		a.mu.Lock()
		a.kept = slices.Clone(now[:])
		a.mu.Unlock()
		return nil
	}
	if err != nil {
		return err
	}
	ahead, err := missing(a.path, heads, now, readers)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = heads
	if a.held == nil { // else it is what this process wrote, or another's, and replace tells
		a.held, err = encodeAnchor(heads)
	}
	if ahead {
		a.touch()
	}
	return err
}

// missing returns an *AnchorError when a store with these heads does not hold what
// was remembered, and whether it holds more.
func missing(path string, remembered []Head, now [store.Groups + 1]Head, readers []store.Reader) (ahead bool, _ error) {
	var refused *AnchorError
	for _, want := range remembered {
		have := now[want.Group]
		same := have == want
		if have.Seq > want.Seq {
			sum, err := sumAt(readers[want.Group], want.Group, want.Seq)
			if err != nil {
				return ahead, err
			}
			same = sum == want.Sum
			ahead = true
		}
		if same {
			continue
		}
		if refused == nil {
			refused = &AnchorError{Path: path, Group: want.Group, Stored: have.Seq, Anchored: want.Seq}
		}
		refused.Groups++
	}
	if refused != nil {
		return ahead, refused
	}
	return ahead, nil
}

// touch notes that the file does not hold the heads. mu is held, or nobody else
// is there yet.
func (a *anchored) touch() {
	if a.path == "" {
		return
	}
	if a.waiting.IsZero() {
		a.waiting = time.Now()
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// advance takes the heads that a durable write moved.
func (a *anchored) advance(groups []ownedGroup, batches []store.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range batches {
		g := batches[i].Group
		a.heads[g] = Head{g, groups[g].seq, groups[g].chain.head}
	}
	a.touch()
}

// keep writes the heads when they moved, at most once in every, and at the end.
func (a *anchored) keep() {
	defer close(a.done)
	pause := time.NewTimer(0)
	for {
		select {
		case <-a.stop:
			a.write()
			return
		case <-pause.C:
		}
		select {
		case <-a.stop:
			a.write()
			return
		case <-a.changed:
			a.write()
			pause.Reset(a.every)
		}
	}
}

// finish writes the anchor for the last time and returns when that is over.
func (a *anchored) finish() {
	a.closing.Do(func() { close(a.stop) })
	if a.done != nil {
		<-a.done
	}
}

// write replaces the file when the heads moved. The first of its failures is
// logged.
func (a *anchored) write() {
	a.mu.Lock()
	if a.writing.IsZero() {
		a.writing = a.waiting
	}
	a.waiting = time.Time{}
	current := a.writing.IsZero()
	heads := a.heads
	a.mu.Unlock()
	if current {
		return
	}
	err := a.replace(heads[:])
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if !a.failed {
			slog.Error("ledger: no se pudo escribir el ancla; se reintenta. Sin ella no se notaría la falta de las últimas operaciones",
				"archivo", a.path, "error", err)
		}
		a.touch()
	} else {
		a.writing, a.kept = time.Time{}, heads[:]
	}
	a.failed = err != nil
}

// replace writes the file, unless it holds what another ledger wrote: two that
// took turns would each be refused at their next start.
func (a *anchored) replace(heads []Head) error {
	found, err := a.files.Read(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !bytes.Equal(found, a.held) && !bytes.Equal(found, a.tried):
		return errors.New("no contiene lo que este servicio escribió: si otro lo usa también, dé a cada uno su ancla («anchor»); si no, apártelo")
	default:
		a.held = found
	}
	if a.tried, err = encodeAnchor(heads); err != nil {
		return err
	}
	if err := writeAnchor(a.files, a.path, a.tried); err != nil {
		return err
	}
	a.held = a.tried
	return nil
}

// Heads returns the durable head of every group, by group.
func (l *Ledger) Heads() []Head {
	l.anchor.mu.Lock()
	defer l.anchor.mu.Unlock()
	return append([]Head(nil), l.anchor.heads[:]...)
}

// Anchored is the head of the account's group that the anchor holds; ok is false
// when there is no anchor. It may lie behind the group by what was written in the
// last moments.
func (l *Ledger) Anchored(account AccountID) (head Head, ok bool) {
	group, _ := place(account)
	a := &l.anchor
	a.mu.Lock()
	defer a.mu.Unlock()
	if int(group) >= len(a.kept) {
		return Head{}, false
	}
	return a.kept[group], true
}

// AnchorAge is for how long the anchor has not held what is durable: 0 when it
// is current or when there is none.
func (l *Ledger) AnchorAge() time.Duration {
	a := &l.anchor
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.writing.IsZero():
		return time.Since(a.writing)
	case !a.waiting.IsZero():
		return time.Since(a.waiting)
	}
	return 0
}
