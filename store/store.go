// Package store keeps account data: one ordered space of bytes, written in
// durable batches by whoever owns a group.
//
// It knows no account, no money and no product. An engine promises three
// things: a batch is stored whole or not at all; when Commit returns nil the
// batch survives the loss of power; a writer that lost a group can no longer
// write to it.
package store

import "errors"

// Group is a set of shards that share one owner, one epoch and one sequence.
type Group uint8

// Groups are the 16 groups of account shards; Global is the one group for what
// is unique or looked up across accounts.
const (
	Groups       = 16
	Global Group = 16
)

var (
	// ErrNotFound says that a key is absent.
	ErrNotFound = errors.New("store: clave ausente")
	// ErrFenced says that this process no longer owns the group: its caches are
	// worthless and must be dropped. Nothing of the batch was written.
	ErrFenced = errors.New("store: otro proceso tomó el grupo")
	// ErrInUse says that another process holds the data directory.
	ErrInUse = errors.New("store: la carpeta de datos está en uso")
	// ErrReadOnly refuses to change a store that was opened for looking at it.
	ErrReadOnly = errors.New("store: abierto solo para lectura")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store: cerrado")
	// ErrUnavailable says that an engine on another machine did not answer, or
	// refused. Nothing was written; the same call may succeed later.
	ErrUnavailable = errors.New("store: la base de datos no está disponible")
	// ErrUnknown says that a Commit was sent and its answer never came: the batches
	// are stored or not, all of them, now or in a moment. Acquire on each of their
	// groups ends that: after it returned, the sequence number tells which.
	ErrUnknown = errors.New("store: no se sabe si la escritura quedó guardada")
	// ErrFormat refuses what another version of this program wrote, or what is not
	// of this installation.
	ErrFormat = errors.New("store: la base de datos no es de este programa o de esta versión")
	// ErrEmpty says that there is nothing to look at yet.
	ErrEmpty = errors.New("store: la base de datos todavía no tiene tablas")
)

// Put is one key and its new value.
type Put struct{ Key, Value []byte }

// Batch is what one commit writes to one group. Keys are relative to the group
// and unique within the batch; a key is not both put and deleted.
type Batch struct {
	Group Group
	// Epoch must be the epoch under which the caller owns the group.
	Epoch uint64
	// Seq is the sequence number of this batch: the stored one plus one.
	Seq     uint64
	Puts    []Put
	Deletes [][]byte
}

// Reader reads one group. Slices passed to the callback of Scan are valid only
// until it returns; Get returns a copy.
type Reader interface {
	// Get returns ErrNotFound when the key is absent.
	Get(key []byte) ([]byte, error)
	// Scan calls fn for each key in [lower, upper) in ascending byte order
	// until fn returns an error, which Scan returns. A nil upper has no bound.
	// What others commit meanwhile may be shown or not, except that a View never
	// shows it.
	Scan(lower, upper []byte, fn func(key, value []byte) error) error
}

// View is a consistent read-only picture of one group. It must be closed.
type View interface {
	Reader
	// Seq is the sequence number of the last batch that the view shows.
	Seq() uint64
	Close() error
}

// Store is an engine. Its methods are safe for concurrent use, except that a
// group has one committer at a time.
type Store interface {
	// Acquire takes ownership of a group by raising its epoch and returns the
	// new epoch and the sequence number of the last committed batch. After it
	// returned, nothing that was sent under an earlier epoch is written any more.
	// ErrFenced when the engine knows that another process must not lose the group.
	Acquire(group Group) (epoch, seq uint64, err error)
	// Reader reads the latest committed state of a group.
	Reader(group Group) Reader
	// View opens a consistent picture of a group.
	View(group Group) (View, error)
	// Commit writes all batches durably, or none. It returns ErrFenced when an
	// epoch or seq does not match, ErrUnavailable when nothing was written, and
	// ErrUnknown when it cannot tell; any other error ends the engine.
	Commit(batches ...Batch) error
	Close() error
}
