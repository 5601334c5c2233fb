package api

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// held is a question whose engine waits.
type held struct {
	question
	engine func()
}

func (h held) AppendResultado(dst []byte, day civil.Date, ed *snapshots.Edition) ([]byte, query.Outcome, error) {
	h.engine()
	return h.question.AppendResultado(dst, day, ed)
}

// TestSameKeyAtOnce: however many repeat a request at once, one is charged, and
// who is answered gets its answer.
func TestSameKeyAtOnce(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	const askers = 64
	answers := make(chan answer, askers)
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			answers <- f.send("GET", empresa, "X-Api-Key: "+f.keys["live"], "Idempotency-Key: a-la-vez")
		})
	}
	wg.Wait()
	close(answers)
	var body []byte
	charged := 0
	for a := range answers {
		if a.status == 409 {
			if code, _ := walk(a.body, ".codigo"); code != "LLAVE_EN_CURSO" || a.header.Get("Retry-After") != "1" {
				t.Fatalf("got %v %s", a.header, a.body)
			}
			continue
		}
		if a.status != 200 || body != nil && !bytes.Equal(a.body, body) {
			t.Fatalf("got %d %s after %s", a.status, a.body, body)
		}
		body = a.body
		if a.header.Get("Idempotent-Replayed") == "" {
			charged++
		}
	}
	if got := f.balance("live"); charged != 1 || got != 88_00 {
		t.Fatalf("%d were charged, the balance is %d", charged, got)
	}
}

// TestKeyInUse: while the first request runs, a second is told to wait, and
// another under the same key to choose a key of its own.
func TestKeyInUse(t *testing.T) {
	f := newFixture(t)
	asked := map[string]*int{"live": new(int), "other": new(int)}
	entered, release := make(chan struct{}), make(chan struct{})
	do := func(key string, args ...operation.Arg) (operation.Response, error) {
		q := held{question{resultado: "{}", asked: asked[key]}, func() { entered <- struct{}{}; <-release }}
		return f.pipeline.Do(context.Background(), &operation.Request{
			Operation: asking(q), Key: []byte(f.keys[key]), IdempotencyKeys: [][]byte{[]byte("k")}, Args: args,
		}, nil)
	}
	var first operation.Response
	var group sync.WaitGroup
	group.Go(func() {
		var err error
		if first, err = do("live"); err != nil || first.Replayed || first.Cost != 12_00 {
			t.Errorf("the first: %+v, %v", first, err)
		}
	})
	<-entered
	_, err := do("live")
	if got := operation.FailureOf(err); got.Status != 409 || got.Code != "LLAVE_EN_CURSO" || got.RetryAfter != 1 {
		t.Errorf("the second: %v", err)
	}
	schema := pointer("components", "responses", "Error409", "content", "application/json", "schema")
	body := operation.AppendFailure(nil, err, "req_0123456789abcdef")
	if err := committed().schema(schema).Validate(must(validator.UnmarshalJSON(bytes.NewReader(body)))); err != nil {
		t.Errorf("%v\n%s", err, body)
	}
	if _, err := do("live", operation.Arg{In: operation.InQuery, Name: "otro", Value: "1"}); !errors.Is(err, ledger.ErrKeyReused) {
		t.Errorf("another under the key: %v", err)
	}
	// Another organization's key is another key.
	group.Go(func() {
		if resp, err := do("other"); err != nil || resp.Replayed {
			t.Errorf("another organization: %+v, %v", resp, err)
		}
	})
	<-entered
	close(release)
	group.Wait()
	second, err := do("live")
	if err != nil || !second.Replayed || second.Charged || !bytes.Equal(second.Body, first.Body) {
		t.Errorf("afterwards: %+v, %v", second, err)
	}
	if *asked["live"] != 1 || *asked["other"] != 1 || f.balance("live") != 88_00 {
		t.Errorf("the engine was asked %d and %d times, the balance is %d", *asked["live"], *asked["other"], f.balance("live"))
	}
}

// TestFailedRequestFreesItsKey: what was not answered can be tried again under
// the same key, also after a panic, and holds no slot.
func TestFailedRequestFreesItsKey(t *testing.T) {
	f := newFixture(t)
	f.pipeline.Limits = operation.Limits{Ask: operation.Limit{Slots: 1, Wait: time.Hour}, Read: operation.DefaultLimits.Read}
	asked := 0
	do := func(q query.Question) (resp operation.Response, err error) {
		defer func() {
			if recover() != nil {
				err = errors.New("panic")
			}
		}()
		return f.pipeline.Do(context.Background(), &operation.Request{
			Operation: asking(q), Key: []byte(f.keys["live"]), IdempotencyKeys: [][]byte{[]byte("k")},
		}, nil)
	}
	if _, err := do(question{resultado: "[]", asked: &asked}); !errors.Is(err, operation.ErrRecord) {
		t.Fatalf("got %v", err)
	}
	if _, err := do(held{question{resultado: "{}", asked: &asked}, func() { panic("se rompió") }}); err == nil {
		t.Fatal("no panic")
	}
	resp, err := do(question{resultado: "{}", asked: &asked})
	if err != nil || resp.Replayed || resp.Cost != 12_00 {
		t.Fatalf("got %+v, %v", resp, err)
	}
}

// TestLateRequestIsNotCharged: when nobody waits any more, nothing is charged.
func TestLateRequestIsNotCharged(t *testing.T) {
	f := newFixture(t)
	asked := 0
	ctx, cancel := context.WithCancel(context.Background())
	q := held{question{resultado: "{}", asked: &asked}, cancel}
	resp, err := f.pipeline.Do(ctx, &operation.Request{Operation: asking(q), Key: []byte(f.keys["live"])}, nil)
	if !errors.Is(err, context.Canceled) || resp.Body != nil || resp.Charged {
		t.Fatalf("got %+v, %v", resp, err)
	}
	if got := f.balance("live"); got != 100_00 {
		t.Fatalf("the balance is %d", got)
	}
	// And what is late before the engine does not reach it.
	if _, err := f.pipeline.Do(ctx, &operation.Request{Operation: asking(q), Key: []byte(f.keys["live"])}, nil); !errors.Is(err, context.Canceled) || asked != 1 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
}

// TestQuoteIsThePreflight: a quote says that the money is enough exactly when the
// question itself is answered, and then it costs what was quoted.
func TestQuoteIsThePreflight(t *testing.T) {
	f := newFixture(t)
	simulate := []operation.Arg{{In: operation.InQuery, Name: "simular", Value: "1"}}
	for _, free := range []bool{false, true} {
		for _, key := range []string{"live", "poor", "test"} {
			for {
				asked := 0
				op := asking(question{resultado: "{}", asked: &asked, free: free})
				before := f.balance(key)
				quote, err := f.pipeline.Do(context.Background(), &operation.Request{Operation: op, Key: []byte(f.keys[key]), Args: simulate}, nil)
				if err != nil || asked != 0 || quote.Charged || f.balance(key) != before {
					t.Fatalf("%s: %+v, %v", key, quote, err)
				}
				cost, _ := walk(quote.Body, ".costo")
				balance, _ := walk(quote.Body, ".saldo")
				enough, _ := walk(quote.Body, ".alcanza")
				if balance != operation.Pesos(before) {
					t.Fatalf("%s: the balance is %d: %s", key, before, quote.Body)
				}
				resp, err := f.do(op, key)
				if enough != (err == nil) || err == nil && cost != operation.Pesos(resp.Cost) {
					t.Fatalf("%s: %s and then %+v, %v", key, quote.Body, resp, err)
				}
				if err != nil || resp.Cost == 0 {
					break
				}
			}
		}
	}
}

// TestOtherProcess: two processes that run one request at once charge it once,
// and both give the same answer.
func TestOtherProcess(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	other := &operation.Pipeline{Live: f.live, Sandbox: f.pipeline.Sandbox, Ledger: f.pipeline.Ledger, Accounts: f.accounts, Now: f.clock}
	do := func(p *operation.Pipeline, q query.Question) operation.Response {
		return must(p.Do(context.Background(), &operation.Request{
			Operation: asking(q), Key: []byte(f.keys["live"]), IdempotencyKeys: [][]byte{[]byte("k")},
		}, nil))
	}
	asked := 0
	q := question{resultado: "{}", asked: &asked}
	var first operation.Response
	second := do(f.pipeline, held{q, func() { first = do(other, q) }})
	if first.Replayed || first.Cost != 12_00 || !second.Replayed || second.Charged || !bytes.Equal(first.Body, second.Body) {
		t.Errorf("got %+v and %+v", first, second)
	}
	if got := f.balance("live"); got != 88_00 || asked != 2 {
		t.Errorf("the balance is %d, the engine was asked %d times", got, asked)
	}
}
