package operation

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cotejo/ledger"
)

// room runs requests through a gate and tells who was let in.
type room struct {
	t     *testing.T
	gate  gate
	limit Limit
	mu    sync.Mutex     // guards in and out
	in    []ledger.OrgID // in the order of their slots
	out   map[error]int
}

// ask sends a request of an organization, which keeps its slot until leave.
func (r *room) ask(ctx context.Context, org ledger.OrgID) {
	go func() {
		_, err := r.gate.enter(ctx, r.limit, org)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.out[err]++
			return
		}
		r.in = append(r.in, org)
	}()
	synctest.Wait()
	r.check()
}

// state tells how many are in, how many wait and how many were refused, by reason.
func (r *room) state() (in, waiting int, out map[error]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	return len(r.in), r.gate.waiting, maps.Clone(r.out)
}

// leave ends a request that is inside.
func (r *room) leave(org ledger.OrgID) {
	r.t.Helper()
	i := slices.Index(r.in, org)
	if i < 0 {
		r.t.Fatalf("%d is not inside: %v", org, r.in)
	}
	r.in = slices.Delete(r.in, i, i+1)
	r.gate.leave(org)
	synctest.Wait()
	r.check()
}

// check compares the gate with who is inside, after every step.
func (r *room) check() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	held, waiting := 0, 0
	for org, t := range r.gate.tenants {
		held += t.held
		waiting += t.queue.Len()
		inside := 0
		for _, o := range r.in {
			if o == org {
				inside++
			}
		}
		if t.org != org || t.held != inside || t.held+t.queue.Len() == 0 || (t.turn != nil) != (t.queue.Len() > 0) {
			r.t.Fatalf("organization %d: %+v with %d inside", org, t, inside)
		}
	}
	if held != len(r.in) || held != r.gate.running || waiting != r.gate.waiting || held > r.limit.Slots || waiting > r.limit.Queue ||
		waiting > 0 && held < r.limit.Slots {
		r.t.Fatalf("%d hold a slot and %d wait; the gate says %d and %d", held, waiting, r.gate.running, r.gate.waiting)
	}
}

func inRoom(t *testing.T, limit Limit, f func(r *room)) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{t: t, limit: limit, out: map[error]int{}}
		f(r)
		for len(r.in) > 0 {
			r.leave(r.in[0])
		}
		if len(r.gate.tenants) != 0 || r.gate.running != 0 || r.gate.turns.Len() != 0 {
			t.Errorf("something is left: %+v", r.gate.tenants)
		}
	})
}

func TestGateIsBounded(t *testing.T) {
	inRoom(t, Limit{Slots: 4, Queue: 6, Wait: time.Second}, func(r *room) {
		for range 8 {
			r.ask(r.t.Context(), 1)
		}
		// 4 are in, 3 wait: half of the queue is for others.
		if in, _, out := r.state(); in != 4 || out[errQueueShare] != 1 {
			t.Fatalf("%d in, out %v", in, out)
		}
		for org := ledger.OrgID(2); org < 7; org++ {
			r.ask(r.t.Context(), org)
		}
		if _, waiting, out := r.state(); waiting != 6 || out[errQueueFull] != 2 {
			t.Fatalf("%d wait, out %v", waiting, out)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r.check()
		if _, waiting, out := r.state(); waiting != 0 || out[errQueueWait] != 6 {
			t.Fatalf("%d wait, out %v", waiting, out)
		}
	})
}

// TestGateIsFair: while others wait, a flood gets half of the slots, and those who
// wait take turns.
func TestGateIsFair(t *testing.T) {
	inRoom(t, Limit{Slots: 4, Queue: 20, Wait: time.Hour}, func(r *room) {
		for range 14 {
			r.ask(r.t.Context(), 1)
		}
		for range 3 {
			r.ask(r.t.Context(), 2)
			r.ask(r.t.Context(), 3)
		}
		want := func(in ...ledger.OrgID) {
			t.Helper()
			got := slices.Sorted(slices.Values(r.in))
			if !slices.Equal(got, in) {
				t.Fatalf("%v are in, want %v", got, in)
			}
		}
		want(1, 1, 1, 1)
		r.leave(1)
		want(1, 1, 1, 2)
		r.leave(1)
		want(1, 1, 2, 3)
		r.leave(1) // now it is its turn again
		want(1, 1, 2, 3)
		r.leave(2)
		want(1, 1, 2, 3)
		r.leave(3)
		r.leave(2)
		want(1, 1, 2, 3)
		r.leave(2)
		want(1, 1, 3, 3)
		// Nobody else waits: the rest is the flood's.
		r.leave(3)
		r.leave(3)
		want(1, 1, 1, 1)
	})
}

// TestGateDropsWhoGaveUp: a request whose time is over leaves no trace.
func TestGateDropsWhoGaveUp(t *testing.T) {
	inRoom(t, Limit{Slots: 1, Queue: 4, Wait: time.Hour}, func(r *room) {
		r.ask(r.t.Context(), 1)
		ctx, cancel := context.WithCancel(r.t.Context())
		r.ask(ctx, 2)
		r.ask(r.t.Context(), 3)
		cancel()
		synctest.Wait()
		r.check()
		if _, waiting, out := r.state(); waiting != 1 || out[context.Canceled] != 1 {
			t.Fatalf("%d wait, out %v", waiting, out)
		}
		r.leave(1)
		if !slices.Equal(r.in, []ledger.OrgID{3}) {
			t.Fatalf("%v are in", r.in)
		}
	})
}

// TestGateAtRandom sends, ends and abandons requests without a plan; check holds
// after each.
func TestGateAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := Limit{Slots: 1 + random.IntN(6), Queue: random.IntN(8), Wait: time.Second}
		inRoom(t, limit, func(r *room) {
			for range 300 {
				switch n := random.IntN(20); {
				case n < 11:
					ctx := r.t.Context()
					if n < 2 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(100))*time.Millisecond)
						defer cancel()
					}
					r.ask(ctx, ledger.OrgID(1+random.IntN(4)))
				case n < 19 && len(r.in) > 0:
					r.leave(r.in[random.IntN(len(r.in))])
				default:
					time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
					synctest.Wait()
					r.check()
				}
			}
		})
	}
}

// TestEnter: the class decides, the wait is bounded and what ends before it began
// is dropped.
func TestEnter(t *testing.T) {
	p := &Pipeline{Limits: Limits{Ask: Limit{Slots: 1, Wait: time.Second}, Read: Limit{Slots: 1, Wait: time.Second}}}
	if err := p.enter(t.Context(), ClassAsk, 1); err != nil {
		t.Fatal(err)
	}
	var overload *overloadError
	if err := p.enter(t.Context(), ClassAsk, 2); !errors.As(err, &overload) || !errors.Is(err, errQueueFull) {
		t.Fatalf("got %v", err)
	}
	if err := p.enter(t.Context(), ClassRead, 1); err != nil {
		t.Fatalf("another class: %v", err)
	}
	p.leave(ClassAsk, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.enter(gone, ClassAsk, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if err := p.enter(t.Context(), ClassAsk, 1); err != nil {
		t.Fatalf("a slot was lost: %v", err)
	}
}

// TestEnterAllocatesNothing on the way of a request that finds a slot.
func TestEnterAllocatesNothing(t *testing.T) {
	var p Pipeline
	ctx := t.Context()
	org := ledger.OrgID(0)
	if n := testing.AllocsPerRun(10_000, func() {
		org = org%50 + 1
		if p.enter(ctx, ClassAsk, org) == nil {
			p.leave(ClassAsk, org)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestEach: an organization has no more than its number, those that wait included;
// what it gives back it can have again, and nobody else is touched.
func TestEach(t *testing.T) {
	f := func(limit Limit, orgs []ledger.OrgID, in, waiting, refused int) {
		t.Helper()
		inRoom(t, limit, func(r *room) {
			for _, org := range orgs {
				r.ask(r.t.Context(), org)
			}
			gotIn, gotWaiting, out := r.state()
			if gotIn != in || gotWaiting != waiting || out[errQueueShare] != refused || len(out) > 1 {
				t.Errorf("%+v of %v: %d in, %d wait, %v", limit, orgs, gotIn, gotWaiting, out)
			}
			for in > 0 {
				r.leave(r.in[0])
				in, _, _ = r.state()
			}
			r.ask(r.t.Context(), 1)
			if in, _, _ := r.state(); in != 1 {
				t.Errorf("%+v: nobody is let in afterwards", limit)
			}
		})
	}
	f(Limit{Slots: 4, Queue: 8, Wait: time.Hour, Each: 2}, []ledger.OrgID{1, 1, 1, 2, 2, 2}, 4, 0, 2)
	f(Limit{Slots: 1, Queue: 8, Wait: time.Hour, Each: 2}, []ledger.OrgID{1, 1, 1, 2, 2, 2}, 1, 3, 2)
	f(Limit{Slots: 8, Queue: 8, Wait: time.Hour}, []ledger.OrgID{1, 1, 1, 2, 2, 2}, 6, 0, 0)
}
