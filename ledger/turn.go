package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"cotejo/store"
)

// Several processes may open one store of several machines. One of them owns its
// groups: it has the turn. Who has it is not the ledger's to decide: Options.Turn
// tells it, and whoever keeps the turn calls Lead and Rest.

// turning asks the sequencer to take the store, or to let go of it.
type turning struct {
	lead bool
	done chan error
}

// Lead takes ownership of all groups, as Open does without Options.Turn, and drops
// all that is remembered of the store from before. It returns what Open would, and
// store.ErrUnavailable or ErrFenced when it may be called again.
func (l *Ledger) Lead() error { return l.ask(true) }

// Rest makes every call return ErrStandby until Lead. What was accepted before is
// answered first. The store may then be taken by another process.
func (l *Ledger) Rest() error { return l.ask(false) }

func (l *Ledger) ask(lead bool) error {
	t := turning{lead, make(chan error, 1)}
	select {
	case l.turns <- t:
		return <-t.done
	case <-l.done:
		return ErrClosed
	}
}

// Serving returns nil when this process owns the accounts, and the error that Do
// would return when it does not.
func (l *Ledger) Serving() error {
	if err := l.stopped.Load(); err != nil {
		return *err
	}
	if l.turn != nil && !l.turn() {
		return ErrStandby
	}
	return nil
}

// standBy is what Open does of a store that another process may own: it looks at it
// and takes nothing.
func (l *Ledger) standBy() error {
	why := error(ErrStandby)
	l.stopped.Store(&why)
	key, err := readIDKey(l.Read(Global))
	if err == nil {
		err = l.perm.use(key)
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err != nil || l.anchor.path == "" {
		return err
	}
	remembered, err := readAnchor(l.anchor.files, l.anchor.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	heads, err := HeadsOf(l.store)
	if err == nil {
		_, err = missing(l.anchor.path, remembered, [store.Groups + 1]Head(heads), l.readers[:])
	}
	return err
}

// turned does what Lead or Rest asked for.
func (s *sequencer) turned(lead bool) error {
	if err := s.l.stopped.Load(); err != nil && errors.Is(*err, ErrFailed) {
		return *err
	}
	if lead {
		return s.lead()
	}
	s.rest(ErrStandby)
	return nil
}

// rest applies nothing more and forgets the store.
func (s *sequencer) rest(why error) {
	s.forget()
	s.l.stopped.Store(&why)
}

// forget drops what is remembered of the store: another process may write to it.
func (s *sequencer) forget() {
	s.hot, s.unused = hotValues{budget: s.hot.budget}, unusedIDs{}
	s.l.balances.forget()
	s.l.bases.forget()
	s.l.ids.forget()
}

// owned is what Acquire and the chains say of all groups.
type owned struct {
	epochs [store.Groups + 1]uint64
	heads  [store.Groups + 1]Head
}

// acquire takes all groups: first their epochs are raised, so that nothing that
// anybody sent before can be written any more, then it reads where they stand.
func (l *Ledger) acquire() (o owned, err error) {
	var seqs [store.Groups + 1]uint64
	for g := range o.epochs {
		if o.epochs[g], seqs[g], err = l.store.Acquire(store.Group(g)); err != nil {
			return o, fmt.Errorf("ledger: no se pudo tomar el grupo %d: %w", g, err)
		}
	}
	for g := range o.heads {
		if o.heads[g], err = headOf(l.readers[g], store.Group(g), seqs[g]); err != nil {
			return o, l.fencedOr(err, store.Group(g), seqs[g])
		}
	}
	return o, nil
}

// fencedOr tells a chain that another process, which has the store by now, went on
// with from one that is broken.
func (l *Ledger) fencedOr(broken error, g store.Group, seq uint64) error {
	if !errors.Is(broken, ErrIntegrity) {
		return broken
	}
	err := withView(l.store, g, func(v store.View) error {
		if v.Seq() != seq {
			return fmt.Errorf("%w: grupo %d", store.ErrFenced, g)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return broken
}

// own makes the groups the sequencer's.
func (s *sequencer) own(o *owned) {
	for g := range s.groups {
		group := &s.groups[g]
		group.epoch, group.seq, group.chain.head = o.epochs[g], o.heads[g].Seq, o.heads[g].Sum
	}
}

// lead takes the store. It runs in the sequencer's goroutine or before there is one.
func (s *sequencer) lead() error {
	s.rest(ErrStandby)
	o, err := s.l.acquire()
	if err != nil {
		return err
	}
	if err := s.l.anchor.compare(s.l.readers[:], o.heads); err != nil {
		return err
	}
	s.own(&o)
	if err := s.identify(); err != nil {
		return err
	}
	s.l.stopped.Store(nil)
	return nil
}

// identify reads the key of the id permutation, or makes it at the first start.
func (s *sequencer) identify() error {
	key, err := readIDKey(s.l.Read(Global))
	switch {
	case err == nil:
		return s.l.perm.use(key)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	// It is the first thing that is ever written: another one would give ids twice.
	if s.groups[store.Global].seq > 0 {
		return fmt.Errorf("%w: falta la llave de los identificadores; restaure el respaldo más reciente", ErrIntegrity)
	}
	key = make([]byte, 32)
	if _, err := io.ReadFull(s.l.random, key); err != nil {
		return fmt.Errorf("ledger: sin números aleatorios para la llave de identificadores: %w", err)
	}
	s.tx.enter(s, Global)
	_, err = putIDKey{key}.Apply(&s.tx)
	s.tx.leave()
	if err == nil {
		err = s.commit(1)
	}
	s.pending.reset()
	switch {
	case err == nil:
		return s.l.perm.use(key)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrUnknown):
		// Led again, it finds the key or none.
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return s.stop(err)
}

func (b *balances) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for shard := range b.writes {
		b.writes[shard].Add(1) // what is being read is not remembered
	}
	b.known = nil
}

func (c *dictionaries) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.bytes = nil, 0
}

func (i *issuers) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byPrefix = nil
}
