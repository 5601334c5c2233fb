package operation

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

// Bounds of the orders that are not done.
const (
	maxLots     = 256 // of everybody
	maxLotsEach = 8   // of one organization
	// lotPlaces is how many orders are worked off at once, and lotPlacesEach how many
	// of one organization: it cannot hold them all.
	lotPlaces     = 4
	lotPlacesEach = 2
)

var (
	errLotsFull = errors.New("operation: hay demasiados lotes sin terminar")
	// ErrTooManyLots refuses one more order of an organization.
	ErrTooManyLots = fmt.Errorf("operation: la organización tiene ya %d lotes sin terminar", maxLotsEach)
	// ErrNoLot is the one answer for a lot that does not exist, for one of another
	// organization and for one that is no longer kept.
	ErrNoLot = errors.New("operation: el lote no existe")
	// ErrLotRunning says that the results of a lot are not all there yet.
	ErrLotRunning = errors.New("operation: el lote está en curso")
)

// LotStoppedError says that a lot will not go on, and why, in Spanish.
type LotStoppedError struct{ ID, Reason string }

func (e *LotStoppedError) Error() string {
	return fmt.Sprintf("El lote %s se detuvo: %s", e.ID, e.Reason)
}

// lotTerms is what an order repeats in its answers and needs to be taken up again. It
// is kept with the order, as JSON.
type lotTerms struct {
	Edition  int      `json:"edicion"` // number; the order has the hash
	Args     []lotArg `json:"parametros"`
	Received int      `json:"recibidos"`
	Repeated int      `json:"duplicados"`
	Refused  int      `json:"invalidos"`
	Sample   uint64   `json:"muestra"` // key of the first item
}

type lotArg struct {
	Name  string `json:"nombre"`
	Value string `json:"valor"`
}

// lotOf names an order among those of all accounts.
type lotOf struct {
	account ledger.AccountID
	ledger.OrderKey
}

// openLot is an order that is not done, as this process knows it. What is above mu
// never changes.
type openLot struct {
	lotOf
	op    *Operation
	order ledger.Order // as it was when it was opened or taken up

	mu       sync.Mutex // guards the rest
	changed  chan struct{}
	started  bool
	done     int
	priced   bool  // uses and centavos are known
	uses     int64 // that pay, or paid, all of it
	centavos int64
	ended    bool
	err      error // why nobody here works on it any more; nil when all of it is stored
}

// update changes what is guarded and wakes those who wait.
func (o *openLot) update(fn func()) {
	o.mu.Lock()
	fn()
	close(o.changed)
	o.changed = make(chan struct{})
	o.mu.Unlock()
}

// lotState is how far an order is.
type lotState struct {
	started  bool
	done     int
	priced   bool
	uses     int64
	centavos int64
	ended    bool
	err      error
	changed  <-chan struct{} // closed when it is out of date
}

func (o *openLot) state() lotState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return lotState{o.started, o.done, o.priced, o.uses, o.centavos, o.ended, o.err, o.changed}
}

// wait returns the first state that is enough, or the one at the end of the order.
func (o *openLot) wait(ctx context.Context, enough func(*lotState) bool) (lotState, error) {
	for {
		s := o.state()
		if s.ended || enough(&s) {
			return s, s.err
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

// lots are the orders that this process works on or will. The zero value is ready.
type lots struct {
	mu       sync.Mutex // guards the rest
	open     map[lotOf]*openLot
	opening  map[ledger.OrgID]int // places that are taken for orders about to be opened
	reserved int                  // the same, of everybody
	queue    []*openLot           // in the order in which they came
	working  map[ledger.OrgID]int
	places   int           // that are taken
	takeUp   bool          // there may be open orders that are not known here
	wake     chan struct{} // capacity 1: see woken
}

var newestLots = struct {
	sync.Mutex
	*lots
}{}

var (
	lotRecords = metrics.NewCounter("cotejo_lot_records_total")
	lotsEnded  = metrics.NewCounter(`cotejo_lots_total{end="terminado"}`)
	lotsHalted = metrics.NewCounter(`cotejo_lots_total{end="detenido"}`)
	lotBlocks  = metrics.NewHistogram("cotejo_lot_block_records")
	_          = metrics.NewGauge(`cotejo_lots_open{state="en_curso"}`, func() float64 { return lotGauge(func(l *lots) int { return l.places }) })
	_          = metrics.NewGauge(`cotejo_lots_open{state="en_espera"}`, func() float64 { return lotGauge(func(l *lots) int { return len(l.queue) }) })
)

func lotGauge(of func(*lots) int) float64 {
	newestLots.Lock()
	defer newestLots.Unlock()
	l := newestLots.lots
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(of(l))
}

// reserve takes a place among the orders that are not done, or refuses. With nil the
// caller gives it back with unreserve, after add if the order was opened.
func (l *lots) reserve(org ledger.OrgID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	each := l.opening[org]
	for of := range l.open {
		if of.Org == org {
			each++
		}
	}
	switch {
	case each >= maxLotsEach:
		return ErrTooManyLots
	case len(l.open)+l.reserved >= maxLots:
		return errLotsFull
	}
	if l.opening == nil {
		l.opening = map[ledger.OrgID]int{}
	}
	l.opening[org]++
	l.reserved++
	return nil
}

func (l *lots) unreserve(org ledger.OrgID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
	if l.opening[org]--; l.opening[org] == 0 {
		delete(l.opening, org)
	}
}

// add queues an order, unless it is known already, and returns it.
func (l *lots) add(of lotOf, op *Operation, order ledger.Order, held *ledger.Held) *openLot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.open[of]; known != nil {
		return known
	}
	o := &openLot{lotOf: of, op: op, order: order, changed: make(chan struct{}), done: order.Done}
	if order.Price == 0 {
		o.priced = true
	} else if held != nil {
		o.priced, o.uses, o.centavos = true, held.Uses, held.Centavos
	}
	if l.open == nil {
		l.open = map[lotOf]*openLot{}
	}
	l.open[of] = o
	l.queue = append(l.queue, o)
	l.nudge()
	return o
}

// find is an order that this process knows to be open, nil when it knows none.
func (l *lots) find(of lotOf) *openLot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[of]
}

// nudge wakes whoever gives out the places. mu is held.
func (l *lots) nudge() {
	select {
	case l.woken() <- struct{}{}:
	default:
	}
}

// woken is the channel that nudge sends on. mu is held.
func (l *lots) woken() chan struct{} {
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	return l.wake
}

// look asks for a search of the open orders that are not known here.
func (l *lots) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeUp = true
	l.nudge()
}

// next takes the first order of the queue whose organization has a place left, nil
// when there is none.
func (l *lots) next() *openLot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places >= lotPlaces {
		return nil
	}
	at := slices.IndexFunc(l.queue, func(o *openLot) bool { return l.working[o.Org] < lotPlacesEach })
	if at < 0 {
		return nil
	}
	o := l.queue[at]
	l.queue = slices.Delete(l.queue, at, at+1)
	if l.working == nil {
		l.working = map[ledger.OrgID]int{}
	}
	l.working[o.Org]++
	l.places++
	return o
}

// leave gives the place of an order back and forgets the order.
func (l *lots) leave(o *openLot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.working[o.Org]--; l.working[o.Org] == 0 {
		delete(l.working, o.Org)
	}
	l.places--
	delete(l.open, o.lotOf)
	l.nudge()
}

// drop forgets the orders that wait: another process has them now, or nobody. err
// says why.
func (l *lots) drop(err error) {
	l.mu.Lock()
	waiting := l.queue
	l.queue = nil
	for _, o := range waiting {
		delete(l.open, o.lotOf)
	}
	l.mu.Unlock()
	for _, o := range waiting {
		o.update(func() { o.ended, o.err = true, err })
	}
}

// terms reads what an order keeps for its answers. ErrNoLot when that was forgotten.
func (p *Pipeline) terms(of lotOf) (t lotTerms, err error) {
	text, err := p.Ledger.Read(of.account).OrderTerms(of.OrderKey)
	if errors.Is(err, store.ErrNotFound) {
		return t, ErrNoLot
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

// list reads the list of an order.
func (p *Pipeline) list(of lotOf) (pieces [][]byte, err error) {
	err = p.Ledger.Read(of.account).OrderInput(of.OrderKey, func(piece []byte) error {
		pieces = append(pieces, slices.Clone(piece))
		return nil
	})
	return pieces, err
}

// input makes of kept parameters what they were.
func (op *Operation) input(args []lotArg) (Input, error) {
	r := Request{Operation: op}
	for _, a := range args {
		r.Args = append(r.Args, Arg{InQuery, a.Name, a.Value})
	}
	in, _, items := op.decodeParams(&r, nil)
	if len(items) > 0 {
		return in, &InvalidError{Items: items}
	}
	return in, nil
}

// kept are the parameters of a request that its order keeps.
func (op *Operation) kept(r *Request) (args []lotArg) {
	for _, a := range r.Args {
		if a.Name != simulateName && slices.ContainsFunc(op.Params, func(p Param) bool { return p.Name == a.Name }) {
			args = append(args, lotArg{a.Name, a.Value})
		}
	}
	return args
}

func editionHex(sum [32]byte) string { return hex.EncodeToString(sum[:]) }

// keyOf is the order of an id, as its organization asks for it.
func (p *Pipeline) keyOf(who accounts.Principal, text string) (lotOf, error) {
	id, ok := p.Ledger.ParseID(text)
	if !ok || id.Prefix != ledger.OrderPrefix {
		return lotOf{}, ErrNoLot
	}
	return lotOf{who.Account, ledger.OrderKey{Org: who.Org, Sandbox: who.Mode != accounts.Live, ID: id}}, nil
}
