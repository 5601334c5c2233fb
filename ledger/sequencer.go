package ledger

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/store"
)

var (
	commitsTotal  = metrics.NewCounter("cotejo_ledger_commits_total") // durable writes
	batchSize     = metrics.NewHistogram("cotejo_ledger_batch_size")  // commands in one write
	commitSeconds = metrics.NewHistogram("cotejo_ledger_commit_seconds")
	refusedTotal  = metrics.NewCounter("cotejo_ledger_refused_total") // commands, by their own rules
)

// A durable write carries at most so many commands, and ends with the command
// that brings it to so many bytes.
const (
	batchLength = 512
	batchBytes  = 2 << 20
)

// sequencer is the one goroutine that changes the ledger. All its fields are
// its own.
type sequencer struct {
	l      *Ledger
	groups [store.Groups + 1]ownedGroup
	most   int // commands in one write

	pending overlay   // what the batch at hand will write
	hot     hotValues // committed values that are read again and again
	unused  unusedIDs
	tx      Tx // reused by every command

	batch []*request
	last  int           // length of the batch before
	coded []byte        // room for extending a chain
	sent  []store.Batch // the last commit: its groups and sequence numbers
	ended bool          // Close came while the store was away
}

type ownedGroup struct {
	reader     store.Reader
	epoch, seq uint64
	chain      chain
	write      store.Batch // reused
}

func (s *sequencer) run() {
	defer close(s.l.done)
	for !s.ended {
		select {
		case first, ok := <-s.l.queue:
			if !ok {
				return
			}
			s.batch = append(s.batch[:0], first)
			s.fill()
			s.apply()
			s.last = len(s.batch)
			clear(s.batch)
		case t := <-s.l.turns:
			t.done <- s.turned(t.lead)
		}
	}
}

// fill takes the commands that wait. Callers that were just answered need a
// moment to come back: giving way a few times, as long as it brings someone,
// keeps a batch from being one command long whenever the write before was full.
func (s *sequencer) fill() {
	for idle := 0; len(s.batch) < s.most; {
		select {
		case r, ok := <-s.l.queue:
			if !ok {
				return
			}
			s.batch = append(s.batch, r)
			idle = 0
		default:
			if len(s.batch) >= s.last || idle == 2 {
				return
			}
			idle++
			runtime.Gosched()
		}
	}
}

// apply runs the commands, writes them durably and answers: as one batch unless
// it grows beyond batchBytes. What nobody waits for any more is dropped: a write
// that takes long must not charge those behind it for answers that come too late.
// A refusal may rest on what an earlier command of
// the batch did, so refusals wait for the write too.
func (s *sequencer) apply() {
	for rest := s.batch; len(rest) > 0; {
		if err := s.l.Serving(); err != nil {
			answer(rest, err)
			return
		}
		n, away := s.work(rest)
		wrote := len(s.pending.entries) > 0
		err := s.commit(n)
		if err == nil && !wrote {
			// What was only read is true if nobody can have written since.
			err = s.l.Serving()
		}
		switch {
		case err == nil && away == nil:
			s.pending.reset()
			answer(rest[:n], nil)
		case err == nil:
			s.away(away)
			s.pending.reset()
			answer(rest[:n], nil)
			answer(rest[n:], errAway)
			s.recover(nil)
			return
		case errors.Is(err, store.ErrUnavailable):
			s.away(err)
			s.pending.reset()
			answer(rest, errAway)
			s.recover(nil)
			return
		case errors.Is(err, store.ErrUnknown):
			s.away(err)
			answer(rest[n:], errAway)
			s.recover(rest[:n])
			return
		default:
			if wrote {
				err = s.stop(err)
			}
			s.pending.reset()
			answer(rest[:n], err)
		}
		rest = rest[n:]
	}
}

// work runs commands until the batch is full, and says how many. away is set when
// the store did not answer a command: those behind it are not run.
func (s *sequencer) work(rest []*request) (n int, away error) {
	for n < len(rest) && s.pending.bytes < batchBytes {
		r := rest[n]
		n++
		if r.err = r.ctx.Err(); r.err != nil {
			continue
		}
		s.tx.enter(s, r.account)
		r.result, r.err = r.cmd.Apply(&s.tx)
		if r.err != nil {
			r.result = nil
			s.pending.rollback()
			refusedTotal.Inc()
		}
		s.tx.leave()
		if errors.Is(r.err, store.ErrUnavailable) {
			return n, r.err
		}
	}
	return n, nil
}

// answer tells the callers; an error replaces what their commands said.
func answer(batch []*request, err error) {
	for _, r := range batch {
		if err != nil {
			r.result, r.err = nil, err
		}
		r.done <- struct{}{}
	}
}

// commit writes what is pending of so many commands in all groups at once, each
// group's batch with its link.
func (s *sequencer) commit(commands int) error {
	if len(s.pending.entries) == 0 {
		return nil
	}
	for i := range s.pending.entries {
		e := &s.pending.entries[i]
		w := &s.groups[e.key[0]].write
		if e.deleted {
			w.Deletes = append(w.Deletes, e.key[1:])
		} else {
			w.Puts = append(w.Puts, store.Put{Key: e.key[1:], Value: e.value})
		}
	}
	var room [store.Groups + 1]store.Batch
	batches := room[:0]
	for g := range s.groups {
		group := &s.groups[g]
		if len(group.write.Puts)+len(group.write.Deletes) == 0 {
			continue
		}
		b := store.Batch{
			Group: store.Group(g), Epoch: group.epoch, Seq: group.seq + 1,
			Puts: group.write.Puts, Deletes: group.write.Deletes,
		}
		s.coded = group.chain.extend(&b, s.coded)
		batches = append(batches, b)
	}
	began := time.Now()
	err := s.l.store.Commit(batches...)
	s.sent = s.sent[:0]
	for _, b := range batches {
		group := &s.groups[b.Group]
		s.sent = append(s.sent, store.Batch{Group: b.Group, Seq: b.Seq})
		clear(b.Puts)
		clear(b.Deletes)
		group.write.Puts, group.write.Deletes = b.Puts[:0], b.Deletes[:0]
	}
	if err != nil {
		return err
	}
	commitSeconds.UpdateDuration(began)
	batchSize.Update(float64(commands))
	s.committed()
	return nil
}

// committed takes what was sent last, which is durable, into memory.
func (s *sequencer) committed() {
	commitsTotal.Inc()
	for _, b := range s.sent {
		group := &s.groups[b.Group]
		group.seq = b.Seq
		group.chain.committed()
	}
	s.l.anchor.advance(s.groups[:], s.sent)
	s.l.balances.committed(s.pending.entries)
	for i := range s.pending.entries {
		s.hot.committed(&s.pending.entries[i])
		s.unused.committed(&s.pending.entries[i])
	}
}

// stop applies nothing more after a failed write. A fenced one is known to have left
// nothing, and the ledger may lead again; after any other the outcome is unknown and
// this ledger has ended.
func (s *sequencer) stop(err error) error {
	if !errors.Is(err, store.ErrFenced) {
		s.l.fatal(err)
		err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	s.rest(err)
	return err
}

// hotBytes bounds hotValues: some 50,000 wallets or counts of a day.
const hotBytes = 8 << 20

// hotValues keeps committed wallets, counts and orders, which every charge or block
// reads, out of the engine's way. A random one leaves when the budget is spent.
type hotValues struct {
	values map[string][]byte
	bytes  int
	budget int
}

// hotOverhead is what an entry costs beside its key and value.
const hotOverhead = 80

func isHot(key []byte) bool {
	s := Space(key[accountHead])
	return s == spaceWallet || s == spaceUsage || s == spaceOrder
}

func (h *hotValues) get(key []byte) ([]byte, bool) {
	v, ok := h.values[string(key)]
	return v, ok
}

// put copies value.
func (h *hotValues) put(key, value []byte) {
	if old, ok := h.values[string(key)]; ok {
		if len(old) == len(value) {
			copy(old, value)
			return
		}
		h.drop(string(key))
	}
	cost := len(key) + len(value) + hotOverhead
	for k := range h.values {
		if h.bytes+cost <= h.budget {
			break
		}
		h.drop(k)
	}
	if h.bytes+cost > h.budget {
		return
	}
	if h.values == nil {
		h.values = make(map[string][]byte)
	}
	h.values[string(key)] = append([]byte(nil), value...)
	h.bytes += cost
}

func (h *hotValues) drop(key string) {
	if old, ok := h.values[key]; ok {
		h.bytes -= len(key) + len(old) + hotOverhead
		delete(h.values, key)
	}
}

func (h *hotValues) committed(e *entry) {
	switch {
	case !isHot(e.key):
	case e.deleted:
		h.drop(string(e.key))
	default:
		h.put(e.key, e.value)
	}
}
