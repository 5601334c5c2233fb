package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"cotejo/accounts"
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

// TestRepeatsAreAdmitted: who repeats a request waits for a slot like who asks:
// its answer too stands behind the disk.
func TestRepeatsAreAdmitted(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	f.pipeline.Limits = operation.Limits{
		Ask:  operation.Limit{Slots: 1, Queue: 0, Wait: time.Hour},
		Read: operation.Limit{Slots: 1, Queue: 0, Wait: time.Hour},
	}
	repeat := func() answer {
		return f.send("GET", empresa, "X-Api-Key: "+f.keys["live"], "Idempotency-Key: k")
	}
	first := repeat()
	entered, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := f.do(asking(held{question{resultado: "{}", asked: new(int)}, func() { close(entered); <-release }}), "other"); err != nil {
			t.Error(err)
		}
	})
	<-entered
	if code, _ := walk(repeat().body, ".codigo"); code != "SOBRECARGA" {
		t.Errorf("without a slot: %v", code)
	}
	close(release)
	group.Wait()
	if a := repeat(); a.status != 200 || a.header.Get("Idempotent-Replayed") == "" || !bytes.Equal(a.body, first.body) {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// TestSlowDisk lets the disk stand still under ten times what is let in: what is
// too much is refused at once with a moment to come back, the service says that
// it is alive and not ready, and once the disk goes on, who was let in is
// answered, the service is ready, and what was charged is what was answered.
func TestSlowDisk(t *testing.T) {
	const slots, queue, flood = 8, 16, 10 * (8 + 16)
	f := newFixture(t)
	f.loadStage(0)
	f.pipeline.Limits = operation.Limits{
		Ask:  operation.Limit{Slots: slots, Queue: queue, Wait: time.Hour},
		Read: operation.Limit{Slots: 1, Queue: 0, Wait: time.Hour},
	}
	f.server.deadlines.limit = time.Hour
	for _, name := range []string{"rich", "wealthy", "solvent"} { // for the whole flood
		f.organization(name, accounts.Live, flood*12_00)
	}
	keys := []string{"rich", "wealthy", "solvent"}
	before := int64(0)
	for _, key := range keys {
		before += f.balance(key)
	}
	id, _ := walk(f.get(empresa, "test").body, ".verification_id")

	release := f.store.hold()
	answers := make(chan answer, flood)
	for i := range flood {
		go func() {
			headers := f.keyHeader(keys[i%len(keys)])
			if i%2 == 0 {
				headers = append(headers, "Idempotency-Key: k"+strconv.Itoa(i))
			}
			answers <- f.send("GET", empresa, headers...)
		}()
	}
	for range flood - slots - queue {
		a := <-answers // nobody else can be answered
		code, _ := walk(a.body, ".codigo")
		if seconds, _ := strconv.Atoi(a.header.Get("Retry-After")); a.status != 503 || code != "SOBRECARGA" || seconds < 1 || seconds > 5 {
			t.Fatalf("got %d %v %s", a.status, a.header, a.body)
		}
	}
	for f.store.waiting.Load() == 0 {
		runtime.Gosched()
	}
	if depth := readings()["cotejo_ledger_queue_depth"]; depth > slots {
		t.Errorf("%v commands wait in the ledger", depth)
	}
	// What needs no write goes on.
	for target, want := range map[string]int{"/livez": 200, "/v1/salud": 200, "/readyz": 503} {
		if a := f.get(target, ""); a.status != want {
			t.Errorf("%s: got %d %s", target, a.status, a.body)
		}
	}
	for _, target := range []string{"/v1/verificaciones/" + id.(string), empresa + "?simular=1"} {
		if a := f.get(target, "test"); a.status != 200 {
			t.Errorf("%s: got %d %s", target, a.status, a.body)
		}
	}
	release()
	for range slots + queue {
		if a := <-answers; a.status != 200 || a.header.Get("X-Costo") != "12.00" {
			t.Fatalf("who was let in got %d %s", a.status, a.body)
		}
	}
	for _, key := range keys {
		before -= f.balance(key)
	}
	if before != (slots+queue)*12_00 {
		t.Errorf("%d were answered and %s was charged", slots+queue, operation.Pesos(before))
	}
	for f.get("/readyz", "").status != 200 { // once what it last saw is a second old
		runtime.Gosched()
	}
}

// TestRefusedIsNeverCharged ends requests at any moment, while they wait for a
// slot, for the ledger and for the disk: who is told that nothing was done paid
// nothing, and who is answered paid once.
func TestRefusedIsNeverCharged(t *testing.T) {
	const rounds, askers = 20, 40
	f := newFixture(t)
	f.loadStage(0)
	f.pipeline.Limits = operation.Limits{
		Ask:  operation.Limit{Slots: 20, Queue: 20, Wait: time.Hour},
		Read: operation.DefaultLimits.Read,
	}
	f.organization("rich", accounts.Live, rounds*askers*12_00)
	op := f.table.Find("verificarEmpresa")
	for round := range rounds {
		before := f.balance("rich")
		release := f.store.hold()
		ctx, cancel := context.WithCancel(context.Background())
		var answered [2]atomic.Int32 // with a key, without
		var group sync.WaitGroup
		ask := func(ctx context.Context, i int) {
			r := operation.Request{Operation: op, Key: []byte(f.keys["rich"]), Args: []operation.Arg{{In: operation.InPath, Name: "rfc", Value: "EFO010101AA1"}}}
			if i%2 == 0 {
				r.IdempotencyKeys = [][]byte{fmt.Appendf(nil, "%d-%d", round, i)}
			}
			switch _, err := f.pipeline.Do(ctx, &r, nil); {
			case err == nil:
				answered[i%2].Add(1)
			case errors.Is(err, context.Canceled), operation.FailureOf(err).Code == "SOBRECARGA":
			default:
				t.Error(err)
			}
		}
		for i := range askers {
			mine := ctx
			if i%4 == 1 { // somebody goes on waiting
				mine = context.Background()
			}
			group.Go(func() { ask(mine, i) })
		}
		for f.store.waiting.Load() == 0 {
			runtime.Gosched()
		}
		for range round * 20 { // another moment in every round
			runtime.Gosched()
		}
		cancel()
		release()
		group.Wait()
		paid := func() int64 { return (before - f.balance("rich")) / 12_00 }
		if keyed, free := answered[0].Load(), answered[1].Load(); paid() != int64(keyed+free) {
			t.Fatalf("%d and %d were answered and %d were charged", keyed, free, paid())
		}
		// Who has a key comes back with it, twice: in the end each paid once.
		for i := 0; i < 2*askers; i += 2 {
			ask(context.Background(), i%askers)
		}
		if free := answered[1].Load(); paid() != int64(free+askers/2) {
			t.Fatalf("%d without a key were answered, %d came back with theirs, and %d were charged", free, askers/2, paid())
		}
	}
}
