package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/store"
)

// An engine on another machine may fail to answer. Then the sequencer applies
// nothing more. It takes the store anew: once the epochs are raised, a write whose
// answer was lost can no longer happen, and the chain tells whether it did.

var (
	awayTotal    = metrics.NewCounter("cotejo_ledger_store_away_total") // times that the store did not answer
	doubtfulDone = metrics.NewCounter(`cotejo_ledger_doubtful_total{result="written"}`)
	doubtfulNot  = metrics.NewCounter(`cotejo_ledger_doubtful_total{result="not_written"}`)
	doubtfulLost = metrics.NewCounter(`cotejo_ledger_doubtful_total{result="unknown"}`)
)

const (
	// firstPause and longestPause are between two attempts to reach the store.
	firstPause, longestPause = 20 * time.Millisecond, time.Second
	// doubtPatience bounds how long a caller waits for an outcome when its own time
	// does not, doubtCheck is how often the callers' time is looked at.
	doubtPatience = 30 * time.Second
	doubtCheck    = 20 * time.Millisecond
)

// attempt is one try to take the store.
type attempt struct {
	owned
	wrote bool // the write in doubt is stored
	err   error
}

// errAway refuses whoever comes while the store is away.
var errAway = fmt.Errorf("%w: la operación no se ejecutó", store.ErrUnavailable)

// away refuses whoever comes from now on; recover ends that.
func (s *sequencer) away(cause error) {
	awayTotal.Inc()
	slog.Warn("ledger: la base de datos no contesta; se reintenta y mientras tanto no se atienden las cuentas", "error", cause.Error())
	s.l.stopped.Store(&errAway)
}

// recover waits until the store answers again and takes it. doubt are the commands
// of the write whose outcome is unknown, if any; what is pending is theirs. It
// returns when the outcome is known, when another process has the store, or when the
// ledger closes.
func (s *sequencer) recover(doubt []*request) {
	began := time.Now()
	inDoubt := len(doubt) > 0
	doubt = s.notRun(doubt)
	attempts, flying := make(chan attempt, 1), false
	pause, wait := time.NewTimer(0), firstPause // the first attempt is at once
	defer pause.Stop()
	check := time.NewTicker(doubtCheck)
	defer check.Stop()
	// leave ends the wait without an outcome. An attempt on its way is waited for: it
	// would take the store away from whoever has it next.
	leave := func(why error) {
		if flying {
			<-attempts
		}
		s.unresolved(doubt)
		s.pending.reset()
		s.rest(why)
	}
	for {
		select {
		case r, ok := <-s.l.queue:
			if !ok {
				s.ended = true
				leave(ErrClosed)
				return
			}
			answer([]*request{r}, errAway)
		case t := <-s.l.turns:
			if t.lead { // that is what is going on
				t.done <- errAway
				continue
			}
			leave(ErrStandby)
			t.done <- nil
			return
		case <-check.C:
			doubt = s.late(doubt, time.Since(began))
		case <-pause.C:
			flying = true
			go func() { attempts <- s.attempt(inDoubt) }()
		case a := <-attempts:
			flying = false
			switch {
			case a.err == nil:
				s.resolve(doubt, inDoubt, &a)
				slog.Info("ledger: la base de datos contesta otra vez", "segundos", time.Since(began).Seconds())
				return
			case !errors.Is(a.err, store.ErrUnavailable) && !errors.Is(a.err, store.ErrUnknown):
				slog.Warn("ledger: este nodo ya no tiene las cuentas", "error", a.err.Error())
				leave(store.ErrFenced)
				return
			}
			pause.Reset(wait)
			wait = min(2*wait, longestPause)
		}
	}
}

// attempt takes the store and reads whether what was sent last is in it. It changes
// nothing of the sequencer, which waits for it.
func (s *sequencer) attempt(inDoubt bool) (a attempt) {
	if a.owned, a.err = s.l.acquire(); a.err != nil || !inDoubt {
		return a
	}
	for i, b := range s.sent {
		wrote := false
		if a.heads[b.Group].Seq >= b.Seq {
			sum, err := sumAt(s.groups[b.Group].reader, b.Group, b.Seq)
			if err != nil {
				a.err = err
				return a
			}
			wrote = sum == s.groups[b.Group].chain.next()
		}
		if i > 0 && wrote != a.wrote {
			a.err = brokenChain(b.Group, "el lote %d está en una parte de los grupos y en otra no", b.Seq)
			return a
		}
		a.wrote = wrote
	}
	return a
}

// resolve goes on, if nobody else wrote since: then all that is remembered still
// holds. It answers those in doubt last, so that who is answered is served again.
func (s *sequencer) resolve(doubt []*request, inDoubt bool, a *attempt) {
	var outcome error
	defer func() { answer(doubt, outcome) }()
	switch {
	case inDoubt && a.wrote:
		doubtfulDone.Inc()
		s.committed()
	case inDoubt:
		doubtfulNot.Inc()
		outcome = errAway
	}
	s.pending.reset()
	for g := range s.groups {
		if group := &s.groups[g]; a.heads[g].Seq != group.seq || a.heads[g].Sum != group.chain.head {
			slog.Error("ledger: otro proceso escribió en las cuentas, o les falta algo", "grupo", g,
				"lote", a.heads[g].Seq, "esperado", group.seq)
			s.rest(store.ErrFenced)
			return
		}
	}
	s.own(&a.owned)
	s.l.stopped.Store(nil)
}

// notRun answers those whose time was over before their turn: they are in no doubt.
func (s *sequencer) notRun(doubt []*request) []*request {
	var run []*request
	for _, r := range doubt {
		if err := r.ctx.Err(); err != nil && errors.Is(r.err, err) {
			r.done <- struct{}{}
		} else {
			run = append(run, r)
		}
	}
	return run
}

// late answers those in doubt whose time is over and returns the others.
func (s *sequencer) late(doubt []*request, waited time.Duration) []*request {
	kept := doubt[:0:0]
	for _, r := range doubt {
		if r.ctx.Err() == nil && waited < doubtPatience {
			kept = append(kept, r)
			continue
		}
		s.unresolved([]*request{r})
	}
	return kept
}

func (s *sequencer) unresolved(doubt []*request) {
	if len(doubt) > 0 {
		doubtfulLost.Inc()
		answer(doubt, ErrUnknown)
	}
}
