package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/valyala/fasthttp/fasthttputil"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// question is an engine of the tests: it answers with resultado and counts.
type question struct {
	resultado string
	asked     *int
	free      bool
}

func (question) Motor() string                        { return "COMPANY/0" }
func (question) AppendEntrada(dst []byte) []byte      { return append(dst, "{}"...) }
func (q question) Chargeable(*snapshots.Edition) bool { return !q.free }
func (q question) AppendResultado(dst []byte, _ civil.Date, _ *snapshots.Edition) ([]byte, query.Outcome, error) {
	*q.asked++
	return append(dst, q.resultado...), query.Outcome{Code: "COMPANY_OK", Charged: !q.free}, nil
}

// asking is an operation that asks q.
func asking(q query.Question) *operation.Operation {
	return must(operation.NewTable([]operation.Operation{declared(q)}))[0]
}

// declared is the same before it is in a table.
func declared(q query.Question) operation.Operation {
	return operation.Operation{
		ID: "preguntar", Method: "GET", Path: "/preguntar", Tag: "t", Summary: "s", Description: "d", Auth: operation.Keyed,
		Service: "COMPANY", Prefix: "COM", Charged: []string{"COMPANY_OK"}, Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Ask: func(operation.Input) (query.Question, error) { return q, nil },
	}
}

func (f *fixture) do(op *operation.Operation, key string) (operation.Response, error) {
	return f.pipeline.Do(context.Background(), &operation.Request{Operation: op, Key: []byte(f.keys[key])}, nil)
}

func (f *fixture) balance(key string) int64 {
	f.t.Helper()
	who, err := f.accounts.Authenticate([]byte(f.keys[key]))
	if err != nil {
		f.t.Fatal(err)
	}
	return must(f.pipeline.Ledger.Balance(who.Account, f.clock()))
}

// TestFundsComeFirst holds that who cannot pay is refused before the engine runs,
// and only where there is something to pay.
func TestFundsComeFirst(t *testing.T) {
	f := newFixture(t)
	check := func(key string, free bool, wantAsked int, paid bool) {
		t.Helper()
		asked := 0
		_, err := f.do(asking(question{resultado: "{}", asked: &asked, free: free}), key)
		var funds *ledger.FundsError
		if asked != wantAsked || errors.As(err, &funds) == paid || paid != (err == nil) {
			t.Fatalf("%s: asked %d times, %v", key, asked, err)
		}
		if !paid && (funds.Service != "COMPANY" || funds.Price != 1200 || funds.Balance != 0) {
			t.Fatalf("got %+v", funds)
		}
	}
	check("poor", false, 0, false)
	check("poor", true, 1, true)
	check("test", false, 1, true)
	check("live", false, 1, true)
	if got := f.balance("live"); got != 88_00 {
		t.Fatalf("the balance is %d", got)
	}
}

// TestNothingFailsAfterTheCharge holds that an answer which cannot be composed
// costs nothing.
func TestNothingFailsAfterTheCharge(t *testing.T) {
	f := newFixture(t)
	asked := 0
	resp, err := f.do(asking(question{resultado: "[]", asked: &asked}), "live")
	if !errors.Is(err, operation.ErrRecord) || asked != 1 || resp.Charged || resp.Body != nil {
		t.Fatalf("got %+v, %v", resp, err)
	}
	if got := operation.FailureOf(err); got.Status != 500 || !strings.Contains(got.Detail, "No se cobró") {
		t.Fatalf("got %+v", got)
	}
	if got := f.balance("live"); got != 100_00 {
		t.Fatalf("the balance is %d", got)
	}
}

// serve answers over a table of the test's own, until its end.
func serve(t *testing.T, p *operation.Pipeline, change func(*Server), list ...operation.Operation) *fasthttputil.InmemoryListener {
	t.Helper()
	server := must(New(Config{Table: must(operation.NewTable(list)), Pipeline: p, Log: slog.New(slog.DiscardHandler)}))
	if change != nil {
		change(server)
	}
	l := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestBodies sends bodies to an operation that reads one. The errors have an
// order: route, key, content type, size, JSON, fields.
func TestBodies(t *testing.T) {
	f := newFixture(t)
	l := serve(t, f.pipeline, nil, operation.Operation{
		ID: "crear", Method: "POST", Path: "/crear", Tag: "t", Summary: "s", Description: "d", Auth: operation.Keyed,
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Params: []operation.Param{{Name: "limite", In: operation.InQuery, Description: "d", Schema: operation.Integer("")}},
		Body: &operation.Body{MaxBytes: 100, Schema: operation.Members(
			operation.F("rfc", operation.Text("")), operation.F("rfcs", operation.Integer("")))},
		Read: func(_ context.Context, c operation.Call) (operation.Response, error) {
			rfc, _ := operation.Get[string](c.Input, "rfc")
			n, _ := operation.Get[int](c.Input, "rfcs")
			return operation.Response{Body: fmt.Appendf(nil, `{"codigo":"%s/%d"}`, rfc, n)}, nil
		},
	})
	check := func(target, headers, body string, status int, code string) answer {
		t.Helper()
		conn := must(l.Dial())
		defer conn.Close()
		go fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", target, headers, len(body), body)
		a := read(t, conn, "POST")
		if got, _ := walk(a.body, ".codigo"); a.status != status || got != code {
			t.Fatalf("%s %s %.60s: got %d %s", target, headers, body, a.status, a.body)
		}
		if status != 200 {
			schema := pointer("components", "responses", fmt.Sprintf("Error%d", status), "content", "application/json", "schema")
			if err := committed().schema(schema).Validate(must(validator.UnmarshalJSON(bytes.NewReader(a.body)))); err != nil {
				t.Fatalf("%v\n%s", err, a.body)
			}
		}
		return a
	}
	key := "X-Api-Key: " + f.keys["test"] + "\r\n"
	plain := "Content-Type: text/plain\r\n"
	typed := key + "Content-Type: application/json; charset=utf-8\r\n"
	large, huge := strings.Repeat(" ", 101), strings.Repeat(" ", maxBodyBytes+1)
	good := `{"rfc":"Ñ","rfcs":3}`

	check("/crear", typed, good, 200, "Ñ/3")
	check("/otra", plain, huge, 404, "RUTA_NO_ENCONTRADA")
	check("/crear?limite=x", plain, huge, 401, "NO_AUTORIZADO")
	check("/crear?limite=x", key+plain+"Content-Encoding: gzip\r\n", huge, 415, "CODIFICACION_NO_ADMITIDA")
	check("/crear?limite=x", key+plain, huge, 415, "TIPO_NO_ADMITIDO")
	check("/crear?limite=x", key+plain, good, 415, "TIPO_NO_ADMITIDO")
	check("/crear?limite=x", key, good, 415, "TIPO_NO_ADMITIDO")
	check("/crear?limite=x", typed, huge, 413, "CUERPO_DEMASIADO_GRANDE")
	check("/crear?limite=x", typed, large, 413, "CUERPO_DEMASIADO_GRANDE")
	check("/crear?limite=x", typed, "{", 400, "JSON_INVALIDO")
	check("/crear?limite=x", typed, `{"rfc":1,"rfc":2}`, 400, "JSON_INVALIDO")
	a := check("/crear?limite=x&otro=1", typed, `{"rfc":1,"extra":2}`, 422, "INPUT_INVALID")
	for path, want := range map[string]string{
		".detail.0.loc": "[body rfc]", ".detail.0.type": "string_type", ".detail.1.loc": "[body rfcs]", ".detail.1.type": "missing",
		".detail.2.loc": "[query limite]", ".detail.2.type": "int_parsing",
	} {
		if got, _ := walk(a.body, path); fmt.Sprint(got) != want {
			t.Errorf("%s is %v in %s", path, got, a.body)
		}
	}
	if got := a.header.Get("X-Advertencias"); got != "nombres desconocidos, ignorados: extra, otro" {
		t.Errorf("X-Advertencias is %q", got)
	}
	check("/crear", typed, "", 422, "INPUT_INVALID")
	a = check("/crear", typed, `{"rfc":"x","rfcs":1,"a\"\u00f1":2}`, 200, "x/1")
	if got := a.header.Get("X-Advertencias"); got != "nombres desconocidos, ignorados: a%22%C3%B1" {
		t.Errorf("X-Advertencias is %q", got)
	}
}

// TestDeadline holds that a request does not run for ever.
func TestDeadline(t *testing.T) {
	l := serve(t, &operation.Pipeline{}, func(s *Server) { s.deadlines.limit = time.Millisecond }, operation.Operation{
		ID: "esperar", Method: "GET", Path: "/esperar", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Read: func(ctx context.Context, _ operation.Call) (operation.Response, error) {
			<-ctx.Done()
			return operation.Response{}, ctx.Err()
		},
	})
	conn := must(l.Dial())
	defer conn.Close()
	must(io.WriteString(conn, "GET /esperar HTTP/1.1\r\nHost: x\r\n\r\n"))
	a := read(t, conn, "GET")
	if code, _ := walk(a.body, ".codigo"); a.status != 503 || code != "TIEMPO_DE_ESPERA" || a.header.Get("Retry-After") == "" {
		t.Fatalf("got %d %s", a.status, a.body)
	}
}

func TestDeadlinesAreShared(t *testing.T) {
	d := deadlines{limit: 10 * time.Hour}
	first := d.from(noon)
	f := func(after time.Duration, same bool) {
		t.Helper()
		now := noon.Add(after)
		c := d.from(now)
		if (c == first) != same {
			t.Fatalf("%v later: shared = %v", after, c == first)
		}
		end, ok := c.Deadline()
		if left := end.Sub(now); !ok || left < d.limit || left > d.limit*11/10 {
			t.Fatalf("%v later: %v are left", after, left)
		}
	}
	f(time.Hour-1, true)
	f(time.Hour, false)
	f(90*time.Minute, false)
	d.current.Load().cancel()
	first.(*deadline).cancel()
}

func BenchmarkDeadline(b *testing.B) {
	d := deadlines{limit: maxRunning}
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		if d.from(now).Err() != nil {
			b.Fatal("ended")
		}
	}
}

// TestTooManyConnections holds that who comes beyond the limit learns so in the
// shape of every error, and that a place that is free is given again.
func TestTooManyConnections(t *testing.T) {
	l := serve(t, &operation.Pipeline{}, func(s *Server) { s.connections = 2 }, operation.Operation{
		ID: "estar", Method: "GET", Path: "/estar", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Output: operation.Titled("X", &jsonschema.Schema{Type: "object"}),
		Read: func(context.Context, operation.Call) (operation.Response, error) {
			return operation.Response{Body: []byte(`{"codigo":"bien"}`)}, nil
		},
	})
	ask := func(conn net.Conn) answer {
		t.Helper()
		must(io.WriteString(conn, "GET /estar HTTP/1.1\r\nHost: x\r\n\r\n"))
		return read(t, conn, "GET")
	}
	first, second := must(l.Dial()), must(l.Dial())
	defer first.Close()
	for _, conn := range []net.Conn{first, second} {
		if a := ask(conn); a.status != 200 {
			t.Fatalf("got %d", a.status)
		}
	}
	third := must(l.Dial())
	a := read(t, third, "GET")
	if code, _ := walk(a.body, ".codigo"); a.status != 503 || code != "SOBRECARGA" || a.header.Get("Content-Type") != "application/json" || a.header.Get("Retry-After") == "" {
		t.Fatalf("got %d %v %s", a.status, a.header, a.body)
	}
	if _, err := bufio.NewReader(third).ReadByte(); err == nil {
		t.Fatal("the connection stays open")
	}
	third.Close()
	if a := ask(first); a.status != 200 {
		t.Fatalf("got %d", a.status)
	}
	second.Close()
	// The server notices in its own time.
	for range 1000 {
		conn := must(l.Dial())
		go io.WriteString(conn, "GET /estar HTTP/1.1\r\nHost: x\r\n\r\n")
		a = read(t, conn, "GET")
		conn.Close()
		if a.status == 200 {
			return
		}
	}
	t.Fatalf("got %d", a.status)
}

// A server that never served can be shut down, and more than once.
func TestShutdownWithoutServe(t *testing.T) {
	server := must(New(Config{Pipeline: &operation.Pipeline{}, Log: slog.New(slog.DiscardHandler)}))
	for range 2 {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	// A late Serve returns: nobody would end it.
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	if err := server.Serve(l); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Fatal("the listener stays open")
	}
}

// Serve and Shutdown may begin in any order.
func TestShutdownAtOnce(t *testing.T) {
	for range 100 {
		server := must(New(Config{Pipeline: &operation.Pipeline{}, Log: slog.New(slog.DiscardHandler)}))
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		if err := errors.Join(server.Shutdown(context.Background()), <-served); err != nil {
			t.Fatal(err)
		}
	}
}
