package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"cotejo/store"
	"cotejo/store/storetest"
)

func openPostgres(t testing.TB, url string, o store.PostgresOptions) *store.Postgres {
	t.Helper()
	p, err := store.OpenPostgres(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPostgresConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	storetest.Run(t, func(t *testing.T) store.Store {
		return openPostgres(t, storetest.PostgresURL(t), store.PostgresOptions{})
	})
}

func putOne(p store.Store, g store.Group, epoch, seq uint64, value string) error {
	return p.Commit(store.Batch{Group: g, Epoch: epoch, Seq: seq, Puts: []store.Put{{Key: []byte("k"), Value: []byte(value)}}})
}

// TestPostgresFormat: a database belongs to one format, and a newer program's is
// refused.
func TestPostgresFormat(t *testing.T) {
	url := storetest.PostgresURL(t)
	if _, err := store.OpenPostgres(context.Background(), url, store.PostgresOptions{ReadOnly: true}); !errors.Is(err, store.ErrEmpty) {
		t.Errorf("an empty database, to look at: %v; want ErrEmpty", err)
	}
	p := openPostgres(t, url, store.PostgresOptions{Format: 3})
	id := p.ID()
	if len(id) != 32 {
		t.Errorf("ID = %q", id)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openPostgres(t, url, store.PostgresOptions{Format: 3, ReadOnly: true})
	if p.ID() != id {
		t.Errorf("ID = %s after reopening, %s before", p.ID(), id)
	}
	if _, _, err := p.Acquire(0); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Acquire to look at: %v", err)
	}
	if err := putOne(p, 0, 1, 1, "v"); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Commit to look at: %v", err)
	}
	if _, err := p.Take(store.Node{Instance: "a"}, time.Minute); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Take to look at: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		if _, err := store.OpenPostgres(context.Background(), url, store.PostgresOptions{Format: 3}); !errors.Is(err, store.ErrFormat) {
			t.Errorf("%s: %v; want ErrFormat", what, err)
		}
	}
	storetest.Execute(t, url, "update cotejo_meta set format = 4")
	refused("another format")
	storetest.Execute(t, url, "update cotejo_meta set format = 3, schema = 2")
	refused("newer tables")
}

// TestPostgresFirstStarts: many at once make one database.
func TestPostgresFirstStarts(t *testing.T) {
	url := storetest.PostgresURL(t)
	var group sync.WaitGroup
	ids := make([]string, 6)
	for i := range ids {
		group.Go(func() {
			p, err := store.OpenPostgres(context.Background(), url, store.PostgresOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = p.ID()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("databases %q", ids)
		}
	}
}

// TestPostgresTellsNoPassword: no error repeats what the address holds.
func TestPostgresTellsNoPassword(t *testing.T) {
	const secret = "canario-7f3a"
	f := func(url string) {
		t.Helper()
		_, err := store.OpenPostgres(context.Background(), url, store.PostgresOptions{Connect: 200 * time.Millisecond})
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("%v", err)
		}
	}
	f("postgres://u:" + secret + "@127.0.0.1:1/x?sslmode=disable")
	f("postgres://u:" + secret + "@no-hay.invalid/x")
	f("postgres://u:" + secret + "@127.0.0.1:port/x")
	f("postgres://u:" + secret + "%zz@h/x")
	f("host=127.0.0.1 port=1 password=" + secret + " sslmode=quizas")
	_, err := store.OpenPostgres(context.Background(), "postgres://u:"+secret+"@127.0.0.1:1/x?sslmode=disable", store.PostgresOptions{})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("nobody there: %v; want ErrUnavailable", err)
	}
}

// TestPostgresStaleWriter: who lost a group writes nothing, whatever it sends.
func TestPostgresStaleWriter(t *testing.T) {
	url := storetest.PostgresURL(t)
	a, b := openPostgres(t, url, store.PostgresOptions{}), openPostgres(t, url, store.PostgresOptions{})
	defer a.Close()
	defer b.Close()
	epoch, _, err := a.Acquire(1)
	if err != nil {
		t.Fatal(err)
	}
	newer, _, err := b.Acquire(1)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(4) {
		if err := putOne(a, 1, epoch, seq, "stale"); !errors.Is(err, store.ErrFenced) {
			t.Errorf("batch %d of the old owner: %v", seq, err)
		}
	}
	if _, err := b.Reader(1).Get([]byte("k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the stale row is there: %v", err)
	}
	if err := putOne(b, 1, newer, 1, "owner"); err != nil {
		t.Error(err)
	}
}

// TestPostgresPoolExhausted: while readers hang on a lock the others are refused
// with ErrUnavailable, the sequencer's connections are not theirs, and all is well
// when the lock is gone.
func TestPostgresPoolExhausted(t *testing.T) {
	url := storetest.PostgresURL(t)
	p := openPostgres(t, url, store.PostgresOptions{Connect: time.Second, Statement: 3 * time.Second, Readers: 2})
	defer p.Close()
	if _, _, err := p.Acquire(0); err != nil { // so that there is a connection
		t.Fatal(err)
	}
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), "lock table cotejo_kv in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := p.Reader(0).Get([]byte("k")); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a reader behind the lock: %v; want ErrUnavailable", err)
			}
		})
	}
	if _, _, err := p.Acquire(0); err != nil {
		t.Errorf("a writer beside readers that hang: %v", err)
	}
	group.Wait()
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reader(0).Get([]byte("k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the lock: %v", err)
	}
}

// TestPostgresLease: one node has the lease, takes it back at once when it was
// restarted, and another has it when it ended or was handed over. Acquire follows.
func TestPostgresLease(t *testing.T) {
	url := storetest.PostgresURL(t)
	open := func() *store.Postgres {
		p := openPostgres(t, url, store.PostgresOptions{})
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	one := store.Node{Instance: "1", Name: "uno", URL: "http://uno"}
	two := store.Node{Instance: "2", Name: "dos", URL: "http://dos"}
	terms := map[*store.Postgres]uint64{}
	take := func(p *store.Postgres, n store.Node, want bool) {
		t.Helper()
		term, err := p.Take(n, time.Hour)
		if err != nil || (term > 0) != want || p.Held(term) != want || p.Held(term+1) {
			t.Errorf("Take(%s) = %d, %v and Held = %v; want %v", n.Name, term, err, p.Held(term), want)
		}
		terms[p] = term
	}
	acquire := func(p *store.Postgres, fenced bool) (epoch uint64) {
		t.Helper()
		epoch, _, err := p.Acquire(3)
		if errors.Is(err, store.ErrFenced) != fenced || !fenced && err != nil {
			t.Errorf("Acquire: %v; want fenced: %v", err, fenced)
		}
		return epoch
	}
	a, b := open(), open()
	if h, err := a.Holder(); err != nil || h.Instance != "" || h.Left > 0 {
		t.Errorf("Holder at first = %+v, %v", h, err)
	}
	take(a, one, true)
	epoch := acquire(a, false)
	take(b, two, false)
	acquire(b, true)
	first := terms[a]
	if take(a, one, true); terms[a] != first { // renewed
		t.Errorf("term %d after %d", terms[a], first)
	}
	if h, err := b.Holder(); err != nil || h.Node != one || h.Left < 50*time.Minute {
		t.Errorf("Holder = %+v, %v", h, err)
	}
	if err := putOne(a, 3, epoch, 1, "uno"); err != nil {
		t.Error(err)
	}

	again := open() // the first node, restarted
	take(again, one, true)
	again3 := acquire(again, false)
	acquire(a, true)
	take(a, one, false) // the process that was before
	if err := putOne(a, 3, epoch, 2, "stale"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the process that was before: %v", err)
	}

	if err := again.HandOver(); err != nil || again.Held(terms[again]) {
		t.Errorf("HandOver: %v, %v", err, again.Held(terms[again]))
	}
	take(b, two, true)
	acquire(again, true)
	if got := acquire(b, false); got <= again3 {
		t.Errorf("epoch %d after %d", got, again3)
	}
	if err := again.HandOver(); err != nil { // of what it no longer has
		t.Error(err)
	}
	take(b, two, true)

	storetest.Execute(t, url, "update cotejo_lease set expires = clock_timestamp() - interval '1 second'")
	take(a, one, true)
	take(b, two, false)
	acquire(b, true)
}

// TestPostgresViewEnds: a view is for some time.
func TestPostgresViewEnds(t *testing.T) {
	p := openPostgres(t, storetest.PostgresURL(t), store.PostgresOptions{ViewLife: time.Nanosecond})
	defer p.Close()
	v, err := p.View(0)
	if err == nil {
		_, err = v.Get([]byte("k"))
		v.Close()
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("an old view: %v; want ErrUnavailable", err)
	}
}

// TestPostgresServerAway: what cannot be sent was not written, and the engine goes
// on when the server is back.
func TestPostgresServerAway(t *testing.T) {
	url := storetest.PostgresURL(t)
	proxy := storetest.NewProxy(t, storetest.HostOf(t, url))
	p := openPostgres(t, storetest.Through(t, url, proxy.Address()), store.PostgresOptions{Connect: time.Second})
	defer p.Close()
	epoch, _, err := p.Acquire(0)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Down(true)
	// The first may go out on a connection that is cut already.
	if err := putOne(p, 0, epoch, 1, "v"); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("Commit while it is away: %v", err)
	}
	if err := putOne(p, 0, epoch, 1, "v"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Commit while it is away: %v; want ErrUnavailable", err)
	}
	if _, _, err := p.Acquire(0); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Acquire while it is away: %v; want ErrUnavailable", err)
	}
	if _, err := p.Reader(0).Get([]byte("k")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get while it is away: %v; want ErrUnavailable", err)
	}
	if _, err := p.View(0); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("View while it is away: %v; want ErrUnavailable", err)
	}
	proxy.Down(false)
	if err := putOne(p, 0, epoch, 1, "v"); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if h, err := p.Health(); err != nil || h.Version == "" || h.Connections == 0 {
		t.Errorf("Health = %+v, %v", h, err)
	}
}

// TestPostgresReplicaAway: a write that no replica confirmed is not reported as done,
// however the server ends its wait, and neither is what is taken on top of it.
func TestPostgresReplicaAway(t *testing.T) {
	server := storetest.StartPostgres(t)
	p := openPostgres(t, server.URL(""), store.PostgresOptions{Connect: time.Second, Statement: time.Second})
	defer p.Close()
	epoch, _, err := p.Acquire(0)
	if err != nil {
		t.Fatal(err)
	}
	replica := func(name string) {
		server.Run("alter system set synchronous_standby_names = '" + name + "'")
		server.Run("select pg_reload_conf()")
	}
	replica("nadie")
	// begin commits until the server waits for the replica: it learns of the setting
	// when it gets to it.
	done := make(chan error, 1)
	begin := func(p *store.Postgres, epoch, seq uint64) uint64 {
		for ; ; seq++ {
			go func() { done <- putOne(p, 0, epoch, seq, "v") }()
			for server.Ask("select count(*) from pg_stat_activity where wait_event = 'SyncRep'") == "0" {
				select {
				case err := <-done:
					done <- err
				default:
					continue
				}
				break
			}
			select {
			case err := <-done:
				if err == nil {
					continue
				}
				done <- err
			default:
			}
			return seq
		}
	}
	last := begin(p, epoch, 1)
	if err := <-done; !errors.Is(err, store.ErrUnknown) {
		t.Errorf("given up by the client: %v; want ErrUnknown", err)
	}
	if _, _, err := p.Acquire(0); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Acquire without the replica: %v; want ErrUnavailable", err)
	}
	replica("")
	var seq uint64
	for err = store.ErrUnavailable; errors.Is(err, store.ErrUnavailable); {
		epoch, seq, err = p.Acquire(0)
	}
	if err != nil || seq != last {
		t.Fatalf("with no replica to wait for: seq %d, %v; want %d", seq, err, last)
	}
	slow := openPostgres(t, server.URL(""), store.PostgresOptions{Connect: 10 * time.Second, Statement: 10 * time.Second})
	defer slow.Close()
	replica("nadie")
	begin(slow, epoch, seq+1)
	server.Run("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
	if err := <-done; !errors.Is(err, store.ErrUnknown) {
		t.Errorf("ended by the server, which calls it a success: %v; want ErrUnknown", err)
	}
	replica("")
}
