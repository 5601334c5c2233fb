// Package ledger is the book of every account: lots of prepaid money,
// movements, verification records and unique ids, changed only by commands
// that one sequencer applies in order and commits durably before it answers.
//
// It promises that an answered command survives the loss of power, whole, and
// that a refused one leaves nothing; that a centavo is never lost, made or spent
// twice (Check proves it over a whole store); that a record never changes; that
// no id is given twice. It never repeats a write whose outcome is unknown: where the
// engine can tell later, it asks first (recovery.go). It never answers from a store
// that failed, that lacks what its anchor remembers, or that another process owns.
// The only clock it reads times its own work.
//
// It knows no product and no HTTP. Start reading at Command and Ledger.Do, then
// sequencer.go (how commands become one write), charge.go (the rules of money),
// order.go (many verifications at once, in blocks), check.go (what must always
// hold), chain.go and anchor.go (how a missing write shows), turn.go (several
// processes, one of which owns the store).
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

	"github.com/VictoriaMetrics/metrics"

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
	// ErrUnknown says that the store did not answer whether a command is stored, and
	// could not be asked before the caller's time ended. It is stored or it is not;
	// whoever repeats it under the same Once learns which.
	ErrUnknown = errors.New("ledger: no se sabe aún si la operación quedó guardada")
	// ErrStandby says that another process owns the accounts, or that this one is not
	// sure that it still does. Nothing was done.
	ErrStandby = errors.New("ledger: este nodo no tiene el turno de las cuentas")
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
	// MaxBatch is the most commands that one durable write carries; 0 means 512. A
	// bench sets it to 1 for its baseline.
	MaxBatch int
	// Anchor is the file, outside the store's folder and best on another disk, that
	// remembers what is durable (see AnchorError), or a link to it. Its folder must
	// exist, and no other ledger may write it. "" means none, and then nobody
	// notices a store that lost its newest batches.
	Anchor string
	// Fatal ends the process after a failed durable write: the state in memory
	// can no longer be trusted (a value may be readable and not durable).
	// nil means: log and os.Exit(74). When a test's Fatal returns, the waiting
	// callers and all later ones get ErrFailed.
	Fatal func(error)
	// Turn tells whether this process may answer for the accounts, as far as it
	// knows for sure; it is asked for each command and asks nobody. With it Open
	// takes nothing and every call returns ErrStandby until Lead. nil: Open takes the
	// store for as long as nobody takes it away.
	Turn func() bool

	// Tests only.
	anchorFiles anchorFiles
	anchorEvery time.Duration
}

// newest is the ledger that the gauges tell of.
var newest atomic.Pointer[Ledger]

var _ = metrics.NewGauge("cotejo_ledger_queue_depth", func() float64 {
	if l := newest.Load(); l != nil {
		return float64(len(l.queue))
	}
	return 0
})

// Ledger owns the account data of a store. It is safe for concurrent use.
type Ledger struct {
	store   store.Store
	readers [store.Groups + 1]store.Reader // by group
	perm    *permutation                   // its key is known before the first command
	random  io.Reader
	fatal   func(error)
	turn    func() bool // may be nil

	queue    chan *request
	turns    chan turning
	requests sync.Pool     // of *request
	done     chan struct{} // closed when the sequencer has stopped

	// closing guards the queue against a send after its close.
	closing sync.RWMutex
	closed  bool // under closing

	// stopped holds why the sequencer applies nothing: ErrStandby, ErrFenced,
	// ErrUnavailable while the store is away, or ErrFailed, which stays. Written by
	// the sequencer.
	stopped atomic.Pointer[error]

	ids      issuers
	bases    dictionaries
	balances balances
	anchor   anchored
	usage    usage
}

// request is a command on its way through the queue. Its fields belong to the
// caller until it is sent, then to the sequencer until done receives.
type request struct {
	ctx     context.Context // whoever waits; nobody does any more when it ended
	account AccountID
	cmd     Command
	result  Result
	err     error
	done    chan struct{} // capacity 1
}

func newRequest() any { return &request{done: make(chan struct{}, 1)} }

// queueLength bounds the commands that wait for the sequencer.
const queueLength = 4096

// Open takes ownership of all groups of s, unless Options.Turn says when, and starts
// the sequencer. It refuses with ErrIntegrity a store whose chains do not end where
// its groups do, and with an *AnchorError one that is not what the anchor remembers;
// a missing anchor is written anew, and ErrAnchor says that it cannot be.
func Open(s store.Store, o Options) (*Ledger, error) {
	l := &Ledger{
		store:  s,
		fatal:  o.Fatal,
		turn:   o.Turn,
		perm:   new(permutation),
		random: rand.Reader,
		queue:  make(chan *request, queueLength),
		turns:  make(chan turning),
		done:   make(chan struct{}),
	}
	l.requests.New = newRequest
	if o.Random != nil {
		l.random = o.Random
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
	seq := &sequencer{l: l, most: o.MaxBatch, hot: hotValues{budget: hotBytes}}
	seq.pending.init()
	if seq.most <= 0 {
		seq.most = batchLength
	}
	for g := range seq.groups {
		seq.groups[g].reader = l.readers[g]
	}
	l.anchor.init(o)
	if l.turn == nil {
		if err := seq.lead(); err != nil {
			return nil, err
		}
	} else if err := l.standBy(); err != nil {
		return nil, err
	}
	go seq.run()
	l.usage.stop, l.usage.done = make(chan struct{}), make(chan struct{})
	go l.usage.keep(l)
	if o.Anchor != "" {
		l.anchor.done = make(chan struct{})
		go l.anchor.keep()
	}
	newest.Store(l)
	return l, nil
}

// Close refuses new commands, finishes the accepted ones, writes the anchor and
// stops. It does not close the store.
func (l *Ledger) Close() error {
	l.usage.finish()
	l.closing.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.closing.Unlock()
	<-l.done
	l.anchor.finish()
	newest.CompareAndSwap(l, nil)
	return nil
}

// Do runs cmd in the account and returns when its effects are durable. It
// returns the command's own error when it refuses, ErrBusy when the queue is
// full, ErrClosed after Close, and ctx's error if ctx ends before the turn of the
// command: then nothing of it is written. It always waits for the outcome, also
// when ctx ends, except for one that nobody can tell: then it is ErrUnknown. While
// the store is away it returns store.ErrUnavailable and nothing is written; while
// another process owns the store, store.ErrFenced or ErrStandby.
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
	r := l.requests.Get().(*request)
	r.ctx, r.account, r.cmd = ctx, account, cmd
	err := l.enqueue(r)
	var result Result
	if err == nil {
		<-r.done
		result, err = r.result, r.err
	}
	*r = request{done: r.done}
	l.requests.Put(r)
	return result, err
}

func (l *Ledger) enqueue(r *request) error {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return ErrClosed
	}
	if err := l.Serving(); err != nil {
		return err
	}
	select {
	case l.queue <- r:
		return nil
	default:
		return ErrBusy
	}
}

// Alive returns nil when the sequencer, behind whatever waits before it, runs a
// command that does nothing before ctx ends, and ctx's error when it does not:
// then a write hangs, or more is asked than it can do. It is Do's error otherwise.
func (l *Ledger) Alive(ctx context.Context) error {
	r := newRequest().(*request)
	r.ctx, r.cmd = ctx, noop{}
	if err := l.enqueue(r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		// The answer goes into the channel's room; nobody else knows of r.
		return ctx.Err()
	}
}

type noop struct{}

func (noop) Apply(*Tx) (Result, error) { return nil, nil }

// validMoment refuses a command without a moment, or with one that a stored
// value could not hold.
func validMoment(t time.Time) error {
	if y := t.Year(); y < 2000 || y >= 2200 {
		return fmt.Errorf("ledger: momento fuera de rango: %v; revise el reloj del servidor", t)
	}
	return nil
}
