package operation

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/ledger"
)

// Class says which requests share their slots: those whose work costs alike.
type Class byte

const (
	// ClassOpen is for operations without a key: they read what is in memory, and
	// health must answer when nothing else does. It has no slots.
	ClassOpen Class = iota
	// ClassAsk is for operations that record, and for their repeated answers: they
	// wait for the disk.
	ClassAsk
	// ClassRead is for the other operations that read, and for quotes.
	ClassRead
	// ClassAct is for operations that change something for free: they wait for the
	// disk, and must not take the slots of what is paid for.
	ClassAct
	// ClassStream is for answers that are made while they are sent: they last as long
	// as their client takes.
	ClassStream
	// ClassLot is for lists of questions: they last as long as the work takes, or as
	// their client does.
	ClassLot

	// Classes is how many there are.
	Classes
)

// String is the name of the class in metrics.
func (c Class) String() string {
	return [Classes]string{"libre", "consulta", "lectura", "cambio", "descarga", "lote"}[c]
}

// Class is the class of the operation's requests.
func (op *Operation) Class() Class {
	switch {
	case op.Ask != nil, op.Compute != nil && !op.included():
		return ClassAsk
	case op.Lot != nil:
		return ClassLot
	case op.Act != nil:
		return ClassAct
	case op.streams():
		return ClassStream
	case op.Auth != Open:
		return ClassRead
	}
	return ClassOpen
}

// Limit bounds what of one class is worked on at once. No organization gets more
// than half the slots while another waits, and none holds more than half of the
// queue: one that floods the service leaves room for the others.
type Limit struct {
	Slots int           // requests at once, ≥ 1
	Queue int           // requests that wait for a slot
	Wait  time.Duration // longest wait
	Each  int           // requests of one organization, waiting ones included; 0: as many as there is room for
}

// Limits are the limits of a pipeline.
type Limits struct{ Ask, Read, Act, Stream, Lot Limit }

// DefaultLimits fit one ledger. It commits up to 512 charges in one durable
// write, while those of the next write come together: 1,024 requests keep it
// full, and more would only wait behind it where nobody refuses them in time. The
// queue holds as many again. A disk that needs 20 ms for a write, ten times what
// is usual, takes it up in 40 ms: who waited half a second was not going to be
// answered soon, and its client does better to come back later.
//
// A reading takes microseconds of a processor and one read of the store, so 256
// keep any machine busy. A change is rare and waits for the disk as a charge does.
//
// A download keeps a view of the store open, and the store keeps what the view
// shows: there are few, and nobody has more than two. A list holds its input and a
// piece of its answer, a megabyte or two; as many as an organization may have open at
// once may be waited for.
var DefaultLimits = Limits{
	Ask:  Limit{Slots: 1024, Queue: 1024, Wait: 500 * time.Millisecond},
	Read: Limit{Slots: 256, Queue: 512, Wait: 250 * time.Millisecond},
	Act:  Limit{Slots: 64, Queue: 256, Wait: 500 * time.Millisecond},

	Stream: Limit{Slots: 16, Queue: 32, Wait: time.Second, Each: 2},
	Lot:    Limit{Slots: 64, Queue: 64, Wait: time.Second, Each: 2 * maxLotsEach},
}

func (l *Limits) of(c Class) Limit {
	switch c {
	case ClassAsk:
		return l.Ask
	case ClassAct:
		return l.Act
	case ClassStream:
		return l.Stream
	case ClassLot:
		return l.Lot
	}
	return l.Read
}

// Reasons for which a request is refused, in metrics.
type shedReason byte

const (
	shedQueue    shedReason = iota // the queue is full
	shedShare                      // the organization has its half of the queue
	shedWait                       // it waited too long
	shedDeadline                   // nobody waits for the answer any more
	shedLedger                     // the ledger's own queue is full
	shedStorage                    // no room for one more record
	shedLookUps                    // too many keys that are not in memory
	shedReasons
)

var (
	shed       = shedCounters()
	queueWaits = [Classes]*metrics.Histogram{
		ClassAsk:  metrics.NewHistogram(`cotejo_queue_wait_seconds{class="consulta"}`),
		ClassRead: metrics.NewHistogram(`cotejo_queue_wait_seconds{class="lectura"}`),
		ClassAct:  metrics.NewHistogram(`cotejo_queue_wait_seconds{class="cambio"}`),

		ClassStream: metrics.NewHistogram(`cotejo_queue_wait_seconds{class="descarga"}`),
		ClassLot:    metrics.NewHistogram(`cotejo_queue_wait_seconds{class="lote"}`),
	}
)

func shedCounters() (c [Classes][shedReasons]*metrics.Counter) {
	names := [shedReasons]string{"queue_full", "org_share", "wait", "deadline", "ledger_busy", "storage_full", "key_lookups"}
	for class := range Classes {
		for reason, name := range names {
			c[class][reason] = metrics.NewCounter(`cotejo_shed_total{class="` + class.String() + `",reason="` + name + `"}`)
		}
	}
	return c
}

// overloadError refuses a request because there are too many. Nothing was done.
type overloadError struct {
	retryAfter int // seconds
	cause      error
}

var (
	errQueueFull  = errors.New("operation: hay demasiadas peticiones en espera")
	errQueueShare = errors.New("operation: la organización ocupa ya su parte de la espera")
	errQueueWait  = errors.New("operation: la petición esperó demasiado por un lugar")
	errLookUps    = errors.New("operation: hay demasiadas llaves desconocidas por revisar")
)

func (e *overloadError) Error() string { return e.cause.Error() }
func (e *overloadError) Unwrap() error { return e.cause }

// maxRetryAfter is the most seconds that a refused client is asked to wait; each
// is told another number, so that they do not all come back at once.
const maxRetryAfter = 5

func (p *Pipeline) overloaded(c Class, reason shedReason, cause error) error {
	shed[c][reason].Inc()
	n := rand.IntN
	if p.Random != nil {
		n = p.Random
	}
	return &overloadError{retryAfter: 1 + n(maxRetryAfter), cause: cause}
}

// enter waits for a slot of the class. With nil the caller owns one and gives it
// back with leave. The error is an overloadError or ctx's own.
func (p *Pipeline) enter(ctx context.Context, c Class, org ledger.OrgID) error {
	limits := &p.Limits
	if *limits == (Limits{}) {
		limits = &DefaultLimits
	}
	waited, err := p.gates[c].enter(ctx, limits.of(c), org)
	if err == nil {
		queueWaits[c].Update(waited.Seconds())
		if err = ctx.Err(); err == nil {
			return nil
		}
		p.leave(c, org)
	}
	switch {
	case errors.Is(err, errQueueFull):
		return p.overloaded(c, shedQueue, err)
	case errors.Is(err, errQueueShare):
		return p.overloaded(c, shedShare, err)
	case errors.Is(err, errQueueWait):
		return p.overloaded(c, shedWait, err)
	}
	return err // counted with every other deadline
}

func (p *Pipeline) leave(c Class, org ledger.OrgID) { p.gates[c].leave(org) }

// gate gives out the slots of one class. Its zero value is ready. A slot that is
// given back while others wait goes from hand to hand: some are free only when
// nobody waits.
type gate struct {
	mu      sync.Mutex // guards all of it
	half    int        // of the slots, rounded up
	running int        // slots that are held
	waiting int
	tenants map[ledger.OrgID]*tenant // with a slot or a waiting request
	turns   list.List                // of *tenant: those that wait, in their turn
	spare   []*tenant
}

// tenant is an organization in a gate.
type tenant struct {
	org   ledger.OrgID
	held  int
	queue list.List     // of *waiter, first come first
	turn  *list.Element // in turns, nil when none waits
}

// waiter is a request in the queue.
type waiter struct {
	ready chan struct{} // closed when it was given a slot
}

// enter returns how long the caller waited for the slot that it now owns, or one
// of errQueueFull, errQueueShare, errQueueWait and ctx's error.
func (g *gate) enter(ctx context.Context, limit Limit, org ledger.OrgID) (time.Duration, error) {
	g.mu.Lock()
	g.half = (limit.Slots + 1) / 2
	t := g.tenant(org)
	if limit.Each > 0 && t.held+t.queue.Len() >= limit.Each {
		g.mu.Unlock()
		return 0, errQueueShare
	}
	if g.running < limit.Slots {
		g.running++
		t.held++
		g.mu.Unlock()
		return 0, nil
	}
	if full := g.waiting >= limit.Queue; full || t.queue.Len() >= (limit.Queue+1)/2 {
		g.settle(t)
		g.mu.Unlock()
		if full {
			return 0, errQueueFull
		}
		return 0, errQueueShare
	}
	w := &waiter{ready: make(chan struct{})}
	place := t.queue.PushBack(w)
	g.waiting++
	if t.turn == nil {
		t.turn = g.turns.PushBack(t)
	}
	g.mu.Unlock()

	began := time.Now()
	timer := time.NewTimer(limit.Wait)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return time.Since(began), nil
	case <-timer.C:
		err = errQueueWait
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready: // in the last moment
		return time.Since(began), nil
	default:
	}
	g.remove(t, place)
	g.settle(t)
	return 0, err
}

// leave gives a slot back, or on to the next.
func (g *gate) leave(org ledger.OrgID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tenants[org]
	t.held--
	if next := g.next(); next != nil {
		first := next.queue.Front()
		w := first.Value.(*waiter)
		g.remove(next, first)
		if next.turn != nil {
			g.turns.MoveToBack(next.turn)
		}
		next.held++
		close(w.ready)
	} else {
		g.running--
	}
	g.settle(t)
}

// next returns the organization whose turn it is: the first that has less than
// half the slots, or whoever waits when nobody else does. At most one can have
// half of them or more while one is free, so it looks at two at most.
func (g *gate) next() *tenant {
	for e := g.turns.Front(); e != nil; e = e.Next() {
		if t := e.Value.(*tenant); t.held < g.half || g.turns.Len() == 1 {
			return t
		}
	}
	return nil
}

// remove takes a waiting request out of the queue.
func (g *gate) remove(t *tenant, place *list.Element) {
	t.queue.Remove(place)
	g.waiting--
	if t.queue.Len() == 0 {
		g.turns.Remove(t.turn)
		t.turn = nil
	}
}

func (g *gate) tenant(org ledger.OrgID) *tenant {
	if t := g.tenants[org]; t != nil {
		return t
	}
	if g.tenants == nil {
		g.tenants = make(map[ledger.OrgID]*tenant)
	}
	var t *tenant
	if n := len(g.spare); n > 0 {
		t, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		t = new(tenant)
	}
	t.org = org
	g.tenants[org] = t
	return t
}

// settle forgets an organization that has nothing here any more.
func (g *gate) settle(t *tenant) {
	if t.held == 0 && t.queue.Len() == 0 {
		delete(g.tenants, t.org)
		g.spare = append(g.spare, t)
	}
}
