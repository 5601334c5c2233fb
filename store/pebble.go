package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ExitIO is the exit code of a process whose engine failed a durable write or
// read damaged data. Restarting on the same disk does not help by itself.
const ExitIO = 74

// pebbleFormat is written out because it cannot be lowered again: raising it is
// an explicit upgrade of the data directory, not a side effect of a new
// library. It is the newest of the pinned release; from FormatWALSyncChunks on
// the log tells a torn tail from damage in its middle.
const pebbleFormat = pebble.FormatValueSeparation

// Memory that the engine holds outside Go's heap, all of it anonymous. Memtables
// are charged to the block cache: a cache that is not larger than all of them
// caches nothing, and every read decompresses its blocks again.
const (
	defaultMemTableBytes = 16 << 20
	memTables            = 4
	blockCacheBytes      = 16 << 20 // beyond the memtables
)

// Flushed files gather in L0 until so many lie over each other. Each flush holds
// an account's newest movements and its newest records, with all its older
// records between them, so that merging one flush rewrites the whole level below:
// with the default of 4 that was a third of what a charge costs (600,000 charges:
// 11.2 s of processor, 7.1 s with these). Filters keep reads of L0 cheap.
const (
	l0Compact = 16
	l0Stop    = 64
)

// PebbleOptions are the parts of the engine that differ between a server and a
// test. The zero value is a server's.
type PebbleOptions struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS
	// Fatal is told of a failed durable write or of damaged data, and must not
	// return: a value may then be readable and not durable. nil logs and ends
	// the process with ExitIO. When a test's Fatal does return, every later
	// call fails with the same error, unless the engine panics.
	Fatal func(error)
	// MemTableBytes is the size of one of at most four memtables; 0 is 16 MiB.
	MemTableBytes uint64
	// ReadOnly opens a folder that exists for looking at it, a checkpoint for
	// instance: nothing of it changes (the empty file LOCK apart), and Acquire,
	// Commit and Checkpoint return ErrReadOnly.
	ReadOnly bool
}

// Pebble is the engine for one machine: a folder that one process owns.
type Pebble struct {
	db       *pebble.DB
	fs       vfs.FS
	lock     *pebble.Lock
	fatal    func(error)
	readOnly bool

	// dead holds the error that ended the engine, if any; unsynced is set when it was
	// a failed write.
	dead     atomic.Pointer[error]
	unsynced atomic.Bool
	opened   atomic.Bool // until then a failure is what OpenPebble returns

	// troubled receives, without waiting for a reader, when the engine failed at
	// something: Close then stops waiting for a flush that may never end.
	troubled chan struct{}

	// groups[g].mu is held while a batch of g is checked and written.
	groups [Groups + 1]pebbleGroup

	// use counts calls in progress so that Close waits for them.
	use struct {
		sync.Mutex
		idle   sync.Cond
		n      int
		closed bool
	}
}

type pebbleGroup struct {
	mu         sync.Mutex
	epoch, seq uint64
}

// Keys are [group byte][key]; the engine's own rows live under metaPrefix, which
// is no group.
const (
	metaPrefix = 0xff
	metaSchema = 1
	metaLen    = 1 + 8 + 8
)

// OpenPebble opens or creates the folder dir. ErrInUse when another process (or
// this one) holds it.
func OpenPebble(dir string, o PebbleOptions) (*Pebble, error) {
	p := &Pebble{fatal: o.Fatal, readOnly: o.ReadOnly, troubled: make(chan struct{}, 1)}
	p.use.idle.L = &p.use.Mutex
	if p.fatal == nil {
		p.fatal = exit
	}
	fs := o.FS
	if fs == nil {
		fs = vfs.Default
	}
	fs = guardedFS{FS: fs, dir: fs.PathJoin(dir), fatal: p.die, logFatal: p.logFailed}
	p.fs = fs
	if o.ReadOnly {
		if _, err := fs.Stat(dir); err != nil {
			return nil, fmt.Errorf("store: no se pudo abrir %s: %w", dir, err)
		}
	} else if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: no se pudo crear %s: %w", dir, err)
	}
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil {
		if isHeld(err) {
			return nil, fmt.Errorf("%w: %s; detenga el otro proceso de cotejo o use otra carpeta", ErrInUse, dir)
		}
		return nil, fmt.Errorf("store: no se pudo bloquear %s: %w", dir, err)
	}
	p.lock = lock
	p.db, err = pebble.Open(dir, p.options(fs, o))
	if err == nil {
		err = p.loadGroups()
		if err != nil {
			err = errors.Join(err, p.db.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: no se pudo abrir %s: %w", dir, err), lock.Close())
	}
	p.opened.Store(true)
	return p, nil
}

func (p *Pebble) options(fs vfs.FS, o PebbleOptions) *pebble.Options {
	memTable := o.MemTableBytes
	if memTable == 0 {
		memTable = defaultMemTableBytes
	}
	po := &pebble.Options{
		FS:                          fs,
		Lock:                        p.lock,
		ReadOnly:                    p.readOnly,
		ErrorIfNotExists:            p.readOnly,
		FormatMajorVersion:          pebbleFormat,
		Logger:                      pebbleLogger{p},
		CacheSize:                   memTables*int64(memTable) + blockCacheBytes,
		MemTableSize:                memTable,
		MemTableStopWritesThreshold: memTables,
		MaxOpenFiles:                512,
		L0CompactionThreshold:       l0Compact,
		L0StopWritesThreshold:       l0Stop,
		EventListener: &pebble.EventListener{
			DataCorruption: func(i pebble.DataCorruptionInfo) { p.end(fmt.Errorf("store: datos dañados: %s", i)) },
			BackgroundError: func(err error) {
				slog.Error("store: tarea del motor", "error", err.Error()) // without its stacks
				p.trouble()
			},
			DiskSlow: func(i pebble.DiskSlowInfo) { slog.Warn("store: disco lento", "detalle", i.String()) },
		},
	}
	// Get never asks the filters of the bottom level, so they would only cost.
	for i := range po.Levels[:len(po.Levels)-1] {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return po
}

// isHeld tells a lock that someone holds from a folder that cannot be locked.
func isHeld(err error) bool {
	var path *os.PathError
	if errors.As(err, &path) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		err.Error() == "lock held by current process"
}

func exit(err error) {
	slog.Error("store: el motor de datos falló; el proceso termina. Revise el disco, reinicie la máquina y corra «cotejo verify all»",
		"error", err)
	os.Exit(ExitIO)
}

// die ends the engine after a failed write.
func (p *Pebble) die(err error) {
	p.unsynced.Store(true)
	p.end(err)
}

func (p *Pebble) logFailed(err error) {
	if p.opened.Load() {
		p.die(err)
	}
}

// end ends the engine. Nothing recovers it: in a server fatal does not return.
func (p *Pebble) end(err error) {
	p.dead.CompareAndSwap(nil, &err)
	p.trouble()
	p.fatal(err)
}

func (p *Pebble) trouble() {
	select {
	case p.troubled <- struct{}{}:
	default:
	}
}

// pebbleLogger keeps the engine quiet and turns its fatal errors into ours:
// after a failed log sync a value is readable and gone after a restart.
type pebbleLogger struct{ p *Pebble }

func (l pebbleLogger) Infof(string, ...any) {}
func (l pebbleLogger) Errorf(format string, args ...any) {
	slog.Error("store: " + fmt.Sprintf(format, args...))
}
func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.p.die(fmt.Errorf("store: "+format, args...))
}

// enterWrite is enter for a call that changes something.
func (p *Pebble) enterWrite() error {
	if p.readOnly {
		return ErrReadOnly
	}
	return p.enter()
}

// enter registers a call in progress; the caller leaves it.
func (p *Pebble) enter() error {
	if err := p.dead.Load(); err != nil {
		return *err
	}
	p.use.Lock()
	defer p.use.Unlock()
	if p.use.closed {
		return ErrClosed
	}
	p.use.n++
	return nil
}

func (p *Pebble) leave() {
	p.use.Lock()
	defer p.use.Unlock()
	p.use.n--
	if p.use.n == 0 {
		p.use.idle.Broadcast()
	}
}

func (p *Pebble) loadGroups() error {
	for g := range p.groups {
		var err error
		p.groups[g].epoch, p.groups[g].seq, err = readMeta(p.db, Group(g))
		if err != nil {
			return err
		}
	}
	return nil
}

func readMeta(r pebble.Reader, g Group) (epoch, seq uint64, err error) {
	v, closer, err := r.Get([]byte{metaPrefix, byte(g)})
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer closer.Close()
	if len(v) != metaLen || v[0] != metaSchema {
		return 0, 0, fmt.Errorf("store: el grupo %d está escrito en un formato que este programa no conoce", g)
	}
	return binary.BigEndian.Uint64(v[1:]), binary.BigEndian.Uint64(v[9:]), nil
}

func setMeta(b *pebble.Batch, g Group, epoch, seq uint64) {
	op := b.SetDeferred(2, metaLen)
	op.Key[0], op.Key[1] = metaPrefix, byte(g)
	op.Value[0] = metaSchema
	binary.BigEndian.PutUint64(op.Value[1:], epoch)
	binary.BigEndian.PutUint64(op.Value[9:], seq)
	_ = op.Finish() // fails only for indexed batches
}

// Acquire implements Store.
func (p *Pebble) Acquire(group Group) (epoch, seq uint64, err error) {
	if group > Global {
		return 0, 0, errGroup(group)
	}
	if err := p.enterWrite(); err != nil {
		return 0, 0, err
	}
	defer p.leave()
	g := &p.groups[group]
	g.mu.Lock()
	defer g.mu.Unlock()
	b := p.db.NewBatch()
	setMeta(b, group, g.epoch+1, g.seq)
	if err := p.write(b); err != nil {
		return 0, 0, err
	}
	g.epoch++
	return g.epoch, g.seq, nil
}

// Commit implements Store. All batches are one write of the engine, so they are
// stored together or not at all.
func (p *Pebble) Commit(batches ...Batch) error {
	if err := p.enterWrite(); err != nil {
		return err
	}
	defer p.leave()

	var named uint32
	for i := range batches {
		g := batches[i].Group
		if g > Global {
			return errGroup(g)
		}
		if named&(1<<g) != 0 {
			return fmt.Errorf("store: dos lotes del grupo %d en una escritura", g)
		}
		named |= 1 << g
	}
	// Ascending order, so that two commits cannot wait for each other.
	for g := range p.groups {
		if named&(1<<g) != 0 {
			p.groups[g].mu.Lock()
			defer p.groups[g].mu.Unlock()
		}
	}
	for i := range batches {
		g := &p.groups[batches[i].Group]
		if batches[i].Epoch != g.epoch || batches[i].Seq != g.seq+1 {
			return fmt.Errorf("%w: grupo %d, época %d y lote %d donde rigen época %d y lote %d",
				ErrFenced, batches[i].Group, batches[i].Epoch, batches[i].Seq, g.epoch, g.seq+1)
		}
	}

	b := p.db.NewBatch()
	for i := range batches {
		appendBatch(b, &batches[i])
	}
	if err := p.write(b); err != nil {
		return err
	}
	for i := range batches {
		p.groups[batches[i].Group].seq = batches[i].Seq
	}
	return nil
}

func appendBatch(b *pebble.Batch, batch *Batch) {
	for _, put := range batch.Puts {
		op := b.SetDeferred(1+len(put.Key), len(put.Value))
		op.Key[0] = byte(batch.Group)
		copy(op.Key[1:], put.Key)
		copy(op.Value, put.Value)
		_ = op.Finish()
	}
	for _, key := range batch.Deletes {
		op := b.DeleteDeferred(1 + len(key))
		op.Key[0] = byte(batch.Group)
		copy(op.Key[1:], key)
		_ = op.Finish()
	}
	setMeta(b, batch.Group, batch.Epoch, batch.Seq)
}

// write makes b durable. The engine panics on some write errors and returns
// success from others once its Fatalf has returned; both end here as the one
// fatal error.
func (p *Pebble) write(b *pebble.Batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.die(fmt.Errorf("store: escritura fallida: %v", r))
		}
		if dead := p.dead.Load(); dead != nil {
			err = *dead
		}
	}()
	if err := b.Commit(pebble.Sync); err != nil {
		p.die(fmt.Errorf("store: escritura fallida: %w", err))
	}
	return b.Close()
}

func errGroup(g Group) error { return fmt.Errorf("store: el grupo %d no existe", g) }

// Checkpoint writes what is committed into the new folder dir, which opens like
// any other store and stays as it is while this one goes on: hard links where the
// disk allows, so that it costs little time and, at first, little room. It may
// run while groups commit; every commit that returned before is in it. dir must
// not exist and its parent must. A disk that fails under dir is an error and
// leaves no folder; this store goes on.
func (p *Pebble) Checkpoint(dir string) (err error) {
	if err := p.enterWrite(); err != nil {
		return err
	}
	defer p.leave()
	if _, err := p.fs.Stat(p.fs.PathDir(dir)); err != nil {
		return fmt.Errorf("store: no se puede copiar a %s: %w", dir, err)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error: // a folder of the copy that cannot be synced: the engine locks nothing then
			err = errors.Join(fmt.Errorf("store: no se pudo copiar a %s: %w", dir, r), p.fs.RemoveAll(dir))
		default:
			panic(r)
		}
	}()
	if err := p.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("store: no se pudo copiar a %s: %w", dir, err)
	}
	return nil
}

// Compact rewrites all that is stored, so that the folder holds nothing twice and
// nothing that was deleted: what a store takes on a disk in the long run. Groups may
// commit meanwhile, slowly.
func (p *Pebble) Compact(ctx context.Context) error {
	if err := p.enterWrite(); err != nil {
		return err
	}
	defer p.leave()
	if err := p.db.Compact(ctx, []byte{0}, []byte{metaPrefix, metaPrefix}, true); err != nil {
		return fmt.Errorf("store: no se pudo compactar: %w", err)
	}
	return nil
}

// Close waits for calls in progress and releases the folder. Views must be
// closed before. It leaves nothing in the log alone: whoever then cuts the log or
// the list of files takes back whole commits, which their count shows, and never
// a part of the newest ones.
func (p *Pebble) Close() error {
	p.use.Lock()
	if p.use.closed {
		p.use.Unlock()
		return nil
	}
	p.use.closed = true
	for p.use.n > 0 {
		p.use.idle.Wait()
	}
	p.use.Unlock()
	p.flush()
	var closed error
	if !p.unsynced.Load() { // else it would wait for a log that no longer syncs
		closed = p.db.Close()
	}
	if err := p.dead.Load(); err != nil {
		return errors.Join(*err, p.lock.Close())
	}
	return errors.Join(closed, p.lock.Close())
}

// flush empties the memtables into files. A disk that is full makes the engine
// try for ever: what it could not flush stays in the log, where it is as durable.
func (p *Pebble) flush() {
	if p.readOnly || p.dead.Load() != nil {
		return
	}
	select {
	case <-p.troubled: // long ago
	default:
	}
	flushed, err := p.db.AsyncFlush()
	if err != nil {
		slog.Warn("store: no se vaciaron las tablas al cerrar", "error", err.Error())
		return
	}
	select {
	case <-flushed:
	case <-p.troubled:
	}
}
