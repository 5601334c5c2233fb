// Package ledger is the book of every account: lots of prepaid money,
// movements, verification records and unique ids, changed only by commands
// that one sequencer applies in order and commits durably before it answers.
//
// It promises that an answered command survives the loss of power, whole, and
// that a refused one leaves nothing; that a centavo is never lost, made or spent
// twice (Check proves it over a whole store); that a record never changes; that
// no id is given twice. It never reads a clock, never retries a write whose
// outcome is unknown, and never answers from a store that failed.
//
// It knows no product and no HTTP. Start reading at Command and Ledger.Do, then
// sequencer.go (how commands become one write), charge.go (the rules of money)
// and check.go (what must always hold).
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cotejo/store"
)

var (
	// ErrBusy says that the queue is full: nothing was done, try again shortly.
	ErrBusy = errors.New("ledger: demasiadas operaciones en espera; reintente en unos segundos")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("ledger: el servicio se está deteniendo")
	// ErrExhausted says that a prefix has no ids left for the day.
	ErrExhausted = errors.New("ledger: se agotaron los identificadores del día para este prefijo")
	// ErrDuplicate refuses a charge whose verification id already has a record.
	ErrDuplicate = errors.New("ledger: ese verification_id ya tiene registro")
	// ErrFailed is returned after a durable write failed: whether the commands
	// of that write survive is known only after a restart.
	ErrFailed = errors.New("ledger: falló una escritura; el proceso debe reiniciarse")
)

// exitIO is the exit code after a failed durable write.
const exitIO = 74

// MaxCentavos bounds one credit and one price (999,999,999.99 pesos), so that
// no sum of an account's open lots can overflow.
const MaxCentavos = 99_999_999_999

// AccountID names a mother account: the owner of one wallet. All of an
// account's keys live in one shard of one group, so that a debit and the
// record it pays for are always one batch.
type AccountID uint64

// Global is the account id of the global group's own space.
const Global AccountID = 0

// OrgID names a legal entity of an account.
type OrgID uint64

// Result is what a command answers.
type Result any

// Command is one change to one account. Apply runs in the sequencer: it may
// only read and write through tx, must be deterministic, and carries its own
// moment in time. When it returns an error nothing of it is written.
type Command interface {
	Apply(tx *Tx) (Result, error)
}

// preparer is a command with work that needs no order (coding a record): Do
// calls prepare in the caller's goroutine, so that the sequencer only copies.
type preparer interface {
	prepare(l *Ledger, account AccountID) (prepared, error)
}

// prepared is applied in place of its preparer and released after its answer.
type prepared interface {
	Command
	release()
}

// Options are the parts of a ledger that a test replaces. See Open.
type Options struct {
	// Random gives the bytes of the id permutation at first start.
	// nil means crypto/rand.
	Random interface{ Read([]byte) (int, error) }
	// Fatal ends the process after a failed durable write: the state in memory
	// can no longer be trusted (a value may be readable and not durable).
	// nil means: log and os.Exit(74). When a test's Fatal returns, the waiting
	// callers and all later ones get ErrFailed.
	Fatal func(error)
}

// Ledger owns the account data of a store. It is safe for concurrent use.
type Ledger struct {
	store   store.Store
	readers [store.Groups + 1]store.Reader // by group
	perm    *permutation                   // set before Open returns
	fatal   func(error)

	queue chan *request
	done  chan struct{} // closed when the sequencer has stopped

	// closing guards the queue against a send after its close.
	closing sync.RWMutex
	closed  bool // under closing

	// stopped holds why the sequencer applies nothing any more: ErrFenced or
	// ErrFailed. Written by the sequencer.
	stopped atomic.Pointer[error]

	ids      issuers
	bases    dictionaries
	balances balances
}

// request is a command on its way through the queue. Its fields belong to the
// caller until it is sent, then to the sequencer until done receives.
type request struct {
	account AccountID
	cmd     Command
	result  Result
	err     error
	done    chan struct{} // capacity 1
}

var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

// queueLength bounds the commands that wait for the sequencer.
const queueLength = 4096

// Open takes ownership of all groups of s and starts the sequencer.
func Open(s store.Store, o Options) (*Ledger, error) {
	l := &Ledger{
		store: s,
		fatal: o.Fatal,
		queue: make(chan *request, queueLength),
		done:  make(chan struct{}),
	}
	if l.fatal == nil {
		l.fatal = func(err error) {
			slog.Error("ledger: falló una escritura; el proceso termina. Revise el disco, reinicie y corra «cotejo verify all»",
				"error", err)
			os.Exit(exitIO)
		}
	}
	for g := range l.readers {
		l.readers[g] = s.Reader(store.Group(g))
	}
	seq := &sequencer{l: l, hot: hotValues{budget: hotBytes}}
	for g := range seq.groups {
		epoch, n, err := s.Acquire(store.Group(g))
		if err != nil {
			return nil, fmt.Errorf("ledger: no se pudo tomar el grupo %d: %w", g, err)
		}
		seq.groups[g] = ownedGroup{reader: l.readers[g], epoch: epoch, seq: n}
	}
	go seq.run()

	random := io.Reader(rand.Reader)
	if o.Random != nil {
		random = o.Random
	}
	key, err := l.idKey(random)
	if err == nil {
		l.perm, err = newPermutation(key)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close refuses new commands, finishes the accepted ones and stops. It does not
// close the store.
func (l *Ledger) Close() error {
	l.closing.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.closing.Unlock()
	<-l.done
	return nil
}

// Do runs cmd in the account and returns when its effects are durable. It
// returns the command's own error when it refuses, ErrBusy when the queue is
// full, ErrClosed after Close, and ctx's error if ctx ends before the command
// entered the queue; after that it always waits for the outcome. After another
// process took the store it returns store.ErrFenced.
func (l *Ledger) Do(ctx context.Context, account AccountID, cmd Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p, ok := cmd.(preparer); ok {
		ready, err := p.prepare(l, account)
		if err != nil {
			return nil, err
		}
		defer ready.release()
		cmd = ready
	}
	r := requests.Get().(*request)
	r.account, r.cmd = account, cmd
	err := l.enqueue(r)
	var result Result
	if err == nil {
		<-r.done
		result, err = r.result, r.err
	}
	*r = request{done: r.done}
	requests.Put(r)
	return result, err
}

func (l *Ledger) enqueue(r *request) error {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return ErrClosed
	}
	if err := l.stopped.Load(); err != nil {
		return *err
	}
	select {
	case l.queue <- r:
		return nil
	default:
		return ErrBusy
	}
}

// validMoment refuses a command without a moment, or with one that a stored
// value could not hold.
func validMoment(t time.Time) error {
	if y := t.Year(); y < 2000 || y >= 2200 {
		return fmt.Errorf("ledger: momento fuera de rango: %v; revise el reloj del servidor", t)
	}
	return nil
}
