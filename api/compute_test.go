package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/operation"
)

// computing is an operation that counts how often it computed.
func computing(service string, charged bool, computed *int) *operation.Operation {
	return must(operation.NewTable([]operation.Operation{{
		ID: "calcular", Method: "GET", Path: "/calcular", Tag: "t", Summary: "s", Description: "d", Auth: operation.Keyed,
		Service: service, Charged: []string{"X_OK"}, Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Compute: func(dst []byte, _ operation.Input) ([]byte, operation.Computed, error) {
			*computed++
			return fmt.Appendf(dst, `"vez":%d`, *computed), operation.Computed{Code: "X_OK", Charged: charged, Basis: "tabla 2026"}, nil
		},
	}}))[0]
}

func (f *fixture) movements(key string) []ledger.Movement {
	f.t.Helper()
	who := must(f.accounts.Authenticate([]byte(f.keys[key])))
	var list []ledger.Movement
	err := f.pipeline.Ledger.Movements(who.Account, ledger.Page{}, func(m *ledger.Movement) error {
		copied := *m
		copied.Lots = nil
		list = append(list, copied)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// TestComputedIsPaid: a charged answer leaves a movement that says what it was of,
// and no record; an uncharged one and a test key's leave nothing.
func TestComputedIsPaid(t *testing.T) {
	f := newFixture(t)
	n := 0
	before, movements := f.balance("live"), len(f.movements("live"))
	r, err := f.do(computing("NOMINA", true, &n), "live")
	if err != nil || string(r.Body) != `{"service":"NOMINA","vez":1,"result_code":"X_OK","engine_version":"1.0.0"}` {
		t.Fatalf("%s, %v", r.Body, err)
	}
	if !r.Charged || r.Cost != 50 || r.Balance != before-50 || f.balance("live") != before-50 {
		t.Errorf("%+v, balance %d", r, f.balance("live"))
	}
	list := f.movements("live")
	m := list[len(list)-1]
	if len(list) != movements+1 || m.Kind != ledger.KindUse || m.Centavos != -50 || m.Service != "NOMINA" || m.Basis != "tabla 2026" ||
		m.Record != (ledger.VerificationID{}) {
		t.Errorf("movement %+v", m)
	}
	// What was asked is kept as its mark under the installation's key.
	mark := hmac.New(sha256.New, f.pipeline.InputKey)
	mark.Write([]byte("\x08calcular\x03GET\x00"))
	if got := m.Input[:]; !bytes.Equal(got, mark.Sum(nil)) {
		t.Errorf("input %x", got)
	}
	for _, key := range []string{"live", "poor"} {
		if r, err := f.do(computing("NOMINA", false, &n), key); err != nil || r.Charged {
			t.Errorf("%s, uncharged: %+v, %v", key, r, err)
		}
	}
	if r, err = f.do(computing("NOMINA", true, &n), "test"); err != nil || r.Charged || !strings.HasSuffix(string(r.Body), `,"sandbox":true}`) {
		t.Errorf("sandbox: %s, %v", r.Body, err)
	}
	if got := len(f.movements("live")); got != movements+1 {
		t.Errorf("%d movements, want %d", got, movements+1)
	}
	var funds *ledger.FundsError
	if _, err = f.do(computing("NOMINA", true, &n), "poor"); !errors.As(err, &funds) || funds.Price != 50 {
		t.Errorf("poor: %v", err)
	}
}

// TestIncludedIsFree: a validator costs nothing while there is money, and is
// counted; without money it has its price.
func TestIncludedIsFree(t *testing.T) {
	f := newFixture(t)
	n := 0
	op := computing("UTIL", true, &n)
	before := f.balance("live")
	for range 3 {
		if r, err := f.do(op, "live"); err != nil || r.Charged {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if got := f.balance("live"); got != before {
		t.Errorf("balance %d, want %d", got, before)
	}
	var funds *ledger.FundsError
	if _, err := f.do(op, "poor"); !errors.As(err, &funds) || funds.Price != 10 || funds.Balance != 0 {
		t.Errorf("poor: %v", err)
	}
	who := must(f.accounts.Authenticate([]byte(f.keys["live"])))
	today := civil.Of(f.clock())
	day := uint32(today.Year)*10000 + uint32(today.Month)*100 + uint32(today.Day)
	deadline := time.Now().Add(10 * time.Second)
	for {
		var got ledger.Usage
		err := f.pipeline.Ledger.Usage(who.Account, who.Org, false, day, day, func(u ledger.Usage) error {
			got = u
			return nil
		})
		if want := (ledger.Usage{Org: who.Org, Day: day, Service: "UTIL", Answers: 3}); got == want && err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("counted %+v, %v", got, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestComputedOnce: under one key a use is paid once, and answered with the answer
// of the first.
func TestComputedOnce(t *testing.T) {
	f := newFixture(t)
	n := 0
	op := computing("LABORAL", true, &n)
	ask := func(key, idempotency string, args ...operation.Arg) (operation.Response, error) {
		return f.pipeline.Do(context.Background(), &operation.Request{
			Operation: op, Key: []byte(f.keys[key]), IdempotencyKeys: [][]byte{[]byte(idempotency)}, Args: args,
		}, nil)
	}
	before := f.balance("live")
	first, err := ask("live", "a")
	if err != nil || first.Replayed || first.Cost != 100 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := ask("live", "a")
	if err != nil || !again.Replayed || again.Charged || string(again.Body) != string(first.Body) || n != 1 {
		t.Errorf("%+v %s, %v, computed %d times", again, again.Body, err, n)
	}
	if _, err := ask("live", "a", operation.Arg{In: operation.InQuery, Name: "x", Value: "1"}); !errors.Is(err, ledger.ErrKeyReused) {
		t.Errorf("another request under the key: %v", err)
	}
	if other, err := ask("other", "a"); err != nil && !errors.As(err, new(*ledger.FundsError)) || other.Replayed {
		t.Errorf("another organization: %+v, %v", other, err)
	}
	if got := f.balance("live"); got != before-100 {
		t.Errorf("balance %d, want %d", got, before-100)
	}
	f.advance(ledger.OnceLife)
	if late, err := ask("live", "a"); err != nil || late.Replayed || late.Cost != 100 {
		t.Errorf("after seven days: %+v, %v", late, err)
	}
}

// TestConfidentialLeavesNothing: of an input that must not be kept not even a hash
// is.
func TestConfidentialLeavesNothing(t *testing.T) {
	f := newFixture(t)
	op := must(operation.NewTable([]operation.Operation{{
		ID: "secreto", Method: "POST", Path: "/secreto", Tag: "t", Summary: "s", Description: "d", Auth: operation.Keyed,
		Service: "LABORAL", Charged: []string{"X_OK"}, Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Body: &operation.Body{MaxBytes: 100, Schema: &jsonschema.Schema{
			Type: "object", PropertyOrder: []string{"pan"}, Required: []string{"pan"},
			Properties: map[string]*jsonschema.Schema{"pan": {Type: "string", WriteOnly: true}},
		}},
		Compute: func(dst []byte, _ operation.Input) ([]byte, operation.Computed, error) {
			return append(dst, `"x":1`...), operation.Computed{Code: "X_OK", Charged: true}, nil
		},
	}}))[0]
	for range 2 {
		r, err := f.pipeline.Do(context.Background(), &operation.Request{
			Operation: op, Key: []byte(f.keys["live"]), IdempotencyKeys: [][]byte{[]byte("k")},
			ContentType: []byte("application/json"), Body: []byte(`{"pan":"4111111111111111"}`),
		}, nil)
		if err != nil || r.Replayed || r.Cost != 100 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	list := f.movements("live")
	if m := list[len(list)-1]; m.Kind != ledger.KindUse || m.Input != [32]byte{} {
		t.Errorf("%+v", m)
	}
}

// TestComputedQuote: ?simular=1 says what the answer would cost, and computes
// nothing.
func TestComputedQuote(t *testing.T) {
	f := newFixture(t)
	f1 := func(service, key, cost string, enough bool) {
		t.Helper()
		n := 0
		r, err := f.pipeline.Do(context.Background(), &operation.Request{
			Operation: computing(service, true, &n), Key: []byte(f.keys[key]),
			Args: []operation.Arg{{In: operation.InQuery, Name: "simular", Value: "1"}},
		}, nil)
		want := fmt.Sprintf(`"costo":"%s"`, cost)
		if err != nil || n != 0 || !strings.Contains(string(r.Body), want) || strings.Contains(string(r.Body), `"alcanza":true`) != enough {
			t.Errorf("%s %s: %s, %v, computed %d times", service, key, r.Body, err, n)
		}
	}
	f1("NOMINA", "live", "0.50", true)
	f1("NOMINA", "poor", "0.50", false)
	f1("NOMINA", "test", "0.00", true)
	f1("UTIL", "live", "0.00", true)
	f1("UTIL", "poor", "0.10", false)
	f1("UTIL", "test", "0.00", true)
}
