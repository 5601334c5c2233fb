package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cotejo/ledger"
	"cotejo/store"
	"cotejo/store/storetest"
)

// The faults of a database on another machine. In each test clients ask for numbered
// things until they are told that each is done, repeating whatever was refused; then
// every number must be there exactly once.

// client asks for numbered things of one account.
type client struct {
	t       *testing.T
	account ledger.AccountID
	name    string
	done    int // acknowledged
	refused int // by a store that was away, or by another owner
	// lead is called when another process has the accounts; nil: then the test fails.
	lead func()
}

// ask charges until it is told that the charge is stored, or until stop ends. Each
// attempt is a new charge: one that was refused and stored all the same shows.
func (c *client) ask(stop context.Context, l *ledger.Ledger) bool {
	note := fmt.Sprintf("%s número %d;", c.name, c.done)
	for stop.Err() == nil {
		id, err := l.NextID(ctx, "COM", start)
		if err == nil {
			r := record(id, 1, note)
			_, err = l.Do(ctx, c.account, ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 1})
		}
		switch {
		case err == nil:
			c.done++
			return true
		case errors.Is(err, store.ErrUnavailable):
			c.refused++
			time.Sleep(time.Millisecond) // as a client that was told to come back
		case errors.Is(err, store.ErrFenced) && c.lead != nil, errors.Is(err, ledger.ErrStandby) && c.lead != nil:
			c.refused++
			c.lead()
		default:
			c.t.Errorf("%s: %v", note, err)
			return false
		}
	}
	return false
}

var numbered = regexp.MustCompile(`"nota":"(.*?) número (\d+);"`)

// books compares what the clients were told with what is stored.
func books(t *testing.T, url string, funded int64, clients ...*client) (stored int) {
	t.Helper()
	stored, fault := compareBooks(t, url, funded, clients...)
	if fault != "" {
		t.Error(fault)
	}
	return stored
}

// compareBooks opens the store anew and says what is wrong with it, "" if nothing is.
func compareBooks(t *testing.T, url string, funded int64, clients ...*client) (stored int, fault string) {
	t.Helper()
	s := openPostgres(t, url, store.PostgresOptions{})
	defer s.Close()
	rep := check(t, s)
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	times := map[string]int{}
	err = l.Records(func(_ ledger.AccountID, r ledger.Record) error {
		if got := numbered.FindSubmatch(r.Registro); got != nil {
			times[string(got[1])+" "+string(got[2])]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lost, double, acknowledged := 0, 0, 0
	for _, c := range clients {
		acknowledged += c.done
		for i := range c.done {
			if times[fmt.Sprintf("%s %d", c.name, i)] == 0 {
				lost++
			}
		}
	}
	for _, n := range times {
		double += n - 1
	}
	// A client may have been stopped before it was told of its last one.
	if lost > 0 || double > 0 || len(times) < acknowledged || len(times) > acknowledged+len(clients) {
		fault = fmt.Sprintf("%d acknowledged, %d stored: %d lost, %d double", acknowledged, len(times), lost, double)
	}
	if want := funded - int64(len(times)+double); rep.Balance != want {
		fault += fmt.Sprintf("; the balance is %d, want %d", rep.Balance, want)
	}
	return len(times), fault
}

func openOn(t *testing.T, s store.Store, o ledger.Options) *ledger.Ledger {
	t.Helper()
	o.Random = seeded(7)
	o.Fatal = func(err error) { t.Errorf("Fatal: %v", err) }
	l, err := ledger.Open(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hasty is for tests in which the server is away most of the time.
var hasty = store.PostgresOptions{Connect: 2 * time.Second, Statement: 2 * time.Second}

// long leaves a test out of the runs under the race detector.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short")
	}
}

// TestCutConnections cuts every connection after the n-th byte in one direction, for
// every n of a commit and its answer: no acknowledged charge is lost and none is
// made twice, also by a client that repeats whatever was refused. COTEJO_CUTS is the
// step between two n (default 3).
func TestCutConnections(t *testing.T) {
	long(t)
	got, fault := cutConnections(t, envInt(t, "COTEJO_CUTS", 3), func(s store.Store) store.Store { return s })
	if fault != "" {
		t.Error(fault)
	}
	t.Logf("%+v", got)
	if got.applied == 0 || got.notApplied == 0 || got.cuts < 2 {
		t.Error("the test proves nothing")
	}
}

type cutting struct{ cuts, applied, notApplied int }

func cutConnections(t *testing.T, step int, wrap func(store.Store) store.Store) (got cutting, fault string) {
	url := storetest.PostgresURL(t)
	proxy := storetest.NewProxy(t, storetest.HostOf(t, url))
	s := openPostgres(t, storetest.Through(t, url, proxy.Address()), hasty)
	defer s.Close()
	watched := &watched{Store: s}
	l := openOn(t, wrap(watched), ledger.Options{})
	defer l.Close()
	const funds = 1_000_000
	credit(t, l, 1, start, funds)
	c := &client{t: t, account: 1, name: "uno", lead: func() { _ = l.Lead() }}
	for n := range (700 + step - 1) / step {
		for _, way := range []storetest.Direction{storetest.ToServer, storetest.ToClient} {
			if !c.ask(ctx, l) { // all is well and every connection is warm
				return got, ""
			}
			proxy.CutAfter(way, n*step)
			for cuts := proxy.Cuts(); proxy.Cuts() == cuts; {
				before := watched.unknown.Load()
				done := c.refused
				if !c.ask(ctx, l) {
					return got, ""
				}
				if watched.unknown.Load() > before {
					if c.refused > done {
						got.notApplied++
					} else {
						got.applied++
					}
				}
			}
		}
	}
	got.cuts = proxy.Cuts()
	_, fault = compareBooks(t, url, funds, c)
	return got, fault
}

// watched counts the commits whose outcome was unknown.
type watched struct {
	store.Store
	unknown atomic.Int64
}

func (w *watched) Commit(batches ...store.Batch) error {
	err := w.Store.Commit(batches...)
	if errors.Is(err, store.ErrUnknown) {
		w.unknown.Add(1)
	}
	return err
}

// several runs clients on ledgers for as long as the window is open.
func several(t *testing.T, window time.Duration, ledgers []*ledger.Ledger, stolen bool, meanwhile func(stop context.Context)) []*client {
	stop, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	var clients []*client
	var group sync.WaitGroup
	for i, l := range ledgers {
		for j := range 4 {
			c := &client{t: t, account: ledger.AccountID(1 + j), name: fmt.Sprintf("%d de %d", j, i)}
			if stolen {
				c.lead = func() { time.Sleep(time.Millisecond) } // somebody else sees to it
			}
			clients = append(clients, c)
			group.Go(func() {
				for stop.Err() == nil && c.ask(stop, l) {
				}
			})
		}
	}
	meanwhile(stop)
	<-stop.Done()
	group.Wait()
	return clients
}

func total(clients []*client) (done, refused int) {
	for _, c := range clients {
		done += c.done
		refused += c.refused
	}
	return done, refused
}

func fund(t *testing.T, l *ledger.Ledger) int64 {
	const funds = 100_000_000
	for account := range ledger.AccountID(4) {
		credit(t, l, account+1, start, funds)
	}
	return 4 * funds
}

// seconds is how long a test of faults lasts: COTEJO_FAULT_SECONDS.
func seconds(t *testing.T) time.Duration {
	return time.Duration(envInt(t, "COTEJO_FAULT_SECONDS", 5)) * time.Second
}

// TestTwoNodesSteal lets two processes take the accounts from each other again and
// again: only who owns them writes.
func TestTwoNodesSteal(t *testing.T) {
	long(t)
	url := storetest.PostgresURL(t)
	var ledgers []*ledger.Ledger
	for range 2 {
		s := openPostgres(t, url, store.PostgresOptions{})
		defer s.Close()
		l := openOn(t, s, ledger.Options{})
		defer l.Close()
		ledgers = append(ledgers, l)
	}
	funded := fund(t, ledgers[1])
	var takeovers atomic.Int64
	clients := several(t, seconds(t), ledgers, true, func(stop context.Context) {
		var group sync.WaitGroup
		for _, l := range ledgers {
			group.Go(func() {
				for stop.Err() == nil {
					if err := l.Lead(); err == nil {
						takeovers.Add(1)
					} else if !errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrUnavailable) {
						t.Error(err)
						return
					}
					for range 20 { // some of them while the other is at it
						if l.Serving() == nil {
							time.Sleep(time.Millisecond)
						}
					}
				}
			})
		}
		group.Wait()
	})
	stored := books(t, url, funded, clients...)
	done, refused := total(clients)
	t.Logf("%d takeovers, %d acknowledged, %d stored, %d refused", takeovers.Load(), done, stored, refused)
	if done < 20 || takeovers.Load() < 10 {
		t.Error("the test proves nothing")
	}
}

// TestTerminatedBackends ends the server's processes every 50 ms.
func TestTerminatedBackends(t *testing.T) {
	long(t)
	server := storetest.StartPostgres(t)
	url := server.URL("")
	s := openPostgres(t, url, hasty)
	defer s.Close()
	l := openOn(t, s, ledger.Options{})
	defer l.Close()
	funded := fund(t, l)
	times := 0
	clients := several(t, seconds(t), []*ledger.Ledger{l}, false, func(stop context.Context) {
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for ; stop.Err() == nil; times++ {
			server.Run("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cotejo'")
			<-every.C
		}
	})
	stored := books(t, url, funded, clients...)
	done, refused := total(clients)
	t.Logf("%d times, %d acknowledged, %d stored, %d refused", times, done, stored, refused)
	if done < 20 || refused < 10 {
		t.Error("the test proves nothing")
	}
}

// TestKilledServer stops the server as a crash does and starts it again, under
// load, COTEJO_PG_STOPS times (default 20): callers are refused meanwhile, and the
// same ledger goes on.
func TestKilledServer(t *testing.T) {
	long(t)
	server := storetest.StartPostgres(t)
	url := server.URL("")
	s := openPostgres(t, url, hasty)
	defer s.Close()
	l := openOn(t, s, ledger.Options{})
	defer l.Close()
	funded := fund(t, l)
	stops := envInt(t, "COTEJO_PG_STOPS", 20)
	window, end := context.WithCancel(ctx)
	var clients []*client
	var group sync.WaitGroup
	var acknowledged atomic.Int64
	for i := range ledger.AccountID(4) {
		c := &client{t: t, account: i + 1, name: fmt.Sprint("cliente ", i)}
		clients = append(clients, c)
		group.Go(func() {
			for c.ask(window, l) {
				acknowledged.Add(1)
			}
		})
	}
	more := func() {
		for before := acknowledged.Load(); acknowledged.Load() < before+50 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	for range stops {
		more()
		server.Kill()
		server.Start()
	}
	more()
	end()
	group.Wait()
	stored := books(t, url, funded, clients...)
	done, refused := total(clients)
	t.Logf("%d stops, %d acknowledged, %d stored, %d refused", stops, done, stored, refused)
	if refused < stops {
		t.Error("the test proves nothing")
	}
}
