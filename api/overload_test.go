package api

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"cotejo/civil"
	"cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// standing is an engine that stands still until it is let go on.
type standing struct {
	question
	entered chan struct{}
	release *atomic.Pointer[chan struct{}]

	asked, working, most *atomic.Int32
}

func (s standing) AppendResultado(dst []byte, _ civil.Date, _ *snapshots.Edition) ([]byte, query.Outcome, error) {
	s.asked.Add(1)
	now := s.working.Add(1)
	defer s.working.Add(-1)
	for seen := s.most.Load(); now > seen && !s.most.CompareAndSwap(seen, now); seen = s.most.Load() {
	}
	s.entered <- struct{}{}
	<-*s.release.Load()
	return append(dst, "{}"...), query.Outcome{Code: "COMPANY_OK"}, nil
}

// TestOverload sends ten times what is let in, from four organizations, to an
// engine that stands still: the queue is bounded, the rest is refused while the
// engine stands, who was let in is answered once it goes on, and neither memory
// nor goroutines grow from one flood to the next.
func TestOverload(t *testing.T) {
	const slots, queue, flood = 8, 16, 10 * (8 + 16)
	f := newFixture(t)
	f.pipeline.Limits = operation.Limits{
		Ask:  operation.Limit{Slots: slots, Queue: queue, Wait: time.Hour},
		Read: operation.Limit{Slots: 1, Queue: 0, Wait: time.Hour},
	}
	q := standing{question: question{free: true}, entered: make(chan struct{}, flood),
		release: new(atomic.Pointer[chan struct{}]), asked: new(atomic.Int32), working: new(atomic.Int32), most: new(atomic.Int32)}
	health := operation.Operation{
		ID: "salud", Method: "GET", Path: "/salud", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return operation.Response{Body: []byte("{}")}, nil
		},
	}
	l := serve(t, f.pipeline, func(s *Server) { s.deadlines.limit = time.Hour }, declared(q), health)
	ask := func(target, key string) answer {
		conn := must(l.Dial())
		defer conn.Close()
		must(conn.Write([]byte("GET " + target + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + f.keys[key] + "\r\n\r\n")))
		return read(t, conn, "GET")
	}
	keys := []string{"live", "other", "poor", "test"}
	schema := committed().schema(pointer("components", "responses", "Error503", "content", "application/json", "schema"))
	round := func() {
		release := make(chan struct{})
		q.release.Store(&release)
		answers := make(chan answer, flood)
		for i := range flood {
			go func() { answers <- ask("/preguntar", keys[i%len(keys)]) }()
		}
		// The engine stands: only refusals can come.
		for range flood - slots - queue {
			a := <-answers
			code, _ := walk(a.body, ".codigo")
			seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
			if a.status != 503 || code != "SOBRECARGA" || seconds < 1 || seconds > 5 {
				t.Fatalf("got %d %v %s", a.status, a.header, a.body)
			}
			if err := schema.Validate(must(validator.UnmarshalJSON(bytes.NewReader(a.body)))); err != nil {
				t.Fatal(err)
			}
		}
		for range slots {
			<-q.entered
		}
		// Health is answered at once.
		if a := ask("/salud", ""); a.status != 200 {
			t.Fatalf("health: got %d", a.status)
		}
		close(release)
		for range slots + queue {
			if a := <-answers; a.status != 200 {
				t.Fatalf("who was let in got %d %s", a.status, a.body)
			}
		}
		for range queue {
			<-q.entered
		}
	}
	memory := func() (heap uint64, goroutines int) {
		runtime.GC()
		runtime.GC() // pools keep what they hold through the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	for range 3 { // buffers, workers and pools find their size
		round()
	}
	heap, goroutines := memory()
	for range 10 {
		round()
	}
	if got := q.most.Load(); got != slots {
		t.Errorf("%d worked at once, want %d", got, slots)
	}
	if got := q.asked.Load(); got != 13*(slots+queue) {
		t.Errorf("the engine was asked %d times", got)
	}
	heapAfter, goroutinesAfter := memory()
	// What is kept for the next flood is bounded by its size: a read buffer of 32
	// KiB and a worker for each of its connections.
	if heapAfter > heap+flood*maxHeaderBytes {
		t.Errorf("the heap grew from %d to %d bytes", heap, heapAfter)
	}
	if goroutinesAfter > goroutines+flood {
		t.Errorf("%d goroutines became %d", goroutines, goroutinesAfter)
	}
}
