package mail

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// relay is a server that fails as it is told to.
type relay struct {
	errs []error // of the next attempts; then nil
	sent []time.Duration
	from time.Time
}

func (r *relay) send(_ context.Context, m Message) error {
	r.sent = append(r.sent, time.Since(r.from))
	if len(r.errs) == 0 {
		return nil
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return err
}

func outbox(r *relay) (*Outbox, *bytes.Buffer) {
	var log bytes.Buffer
	r.from = time.Now()
	return NewOutbox(r.send, slog.New(slog.NewTextHandler(&log, nil))), &log
}

var deferred = &Error{Step: "el servidor no acepta el destinatario", Code: 451}

// TestOutboxTriesAgain holds when a message is tried, that the operator is told,
// and that nothing of the message is.
func TestOutboxTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &relay{errs: []error{deferred, deferred, &Error{Step: "no se pudo conectar con el servidor"}}}
		o, log := outbox(r)
		before := [...]uint64{sentTotal.Get(), retriedTotal.Get(), lostTotal.Get()}
		if err := o.Add("uno", greeting, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if o.Failing() == "" {
			t.Error("a failure is not told")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []time.Duration{0, time.Minute, 6 * time.Minute, 21 * time.Minute}; !slices.Equal(r.sent, want) {
			t.Errorf("tried at %v; want %v", r.sent, want)
		}
		if o.Failing() != "" {
			t.Errorf("after it went well: %s", o.Failing())
		}
		if got := [...]uint64{sentTotal.Get() - before[0], retriedTotal.Get() - before[1], lostTotal.Get() - before[2]}; got != [...]uint64{1, 3, 0} {
			t.Errorf("metrics %v", got)
		}
		if text := log.String(); strings.Count(text, "ERROR") != 3 || strings.Contains(text, "ana@") || strings.Contains(text, "ABCD") {
			t.Errorf("log:\n%s", text)
		}
		o.Close(t.Context())
	})
}

// TestOutboxGivesUp holds that a refused message is not tried again and that a
// message whose life ended is counted as lost.
func TestOutboxGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &relay{errs: []error{&Error{Step: "el servidor no acepta el destinatario", Code: 550, Refused: true}}}
		o, _ := outbox(r)
		refused, lost := refusedTotal.Get(), lostTotal.Get()
		if err := o.Add("uno", greeting, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(r.sent) != 1 || refusedTotal.Get() != refused+1 || o.Failing() != "" {
			t.Errorf("%d attempts, failing %q", len(r.sent), o.Failing())
		}
		r.errs, r.sent = []error{deferred, deferred, deferred, deferred}, nil
		if err := o.Add("uno", greeting, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(r.sent) != 3 || lostTotal.Get() != lost+1 {
			t.Errorf("%d attempts, %d lost", len(r.sent), lostTotal.Get()-lost)
		}
		o.Close(t.Context())
	})
}

// TestOutboxIsBounded holds that what waits has an end, and that Close drops it.
func TestOutboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		release := make(chan struct{})
		var cut atomic.Int64
		o := NewOutbox(func(ctx context.Context, _ Message) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				cut.Add(1)
				return &Error{Step: "el servidor no terminó a tiempo", cause: ctx.Err()}
			}
		}, slog.New(slog.NewTextHandler(&log, nil)))
		for i := range maxWaiting {
			if err := o.Add(strconv.Itoa(i), greeting, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Add("uno", greeting, time.Hour); !errors.Is(err, ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		if err := o.Add("uno", Message{}, time.Hour); err == nil {
			t.Error("an empty message was taken")
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if err := o.Add("uno", greeting, time.Hour); err != nil {
			t.Errorf("after they went: %v", err)
		}
		synctest.Wait()
		release = make(chan struct{}) // nobody writes it any more
		for i := range 6 {
			if err := o.Add(strconv.Itoa(i), greeting, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		ending, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		o.Close(ending)
		o.Close(ending)
		if cut.Load() != maxConnections {
			t.Errorf("%d attempts were cut; want %d", cut.Load(), maxConnections)
		}
		if err := o.Add("uno", greeting, time.Hour); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestNewerMessageTakesThePlace: when the server comes back, only the newest code of
// a registration is sent, and those of others all the same.
func TestNewerMessageTakesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		down, sent := true, []string{}
		var log bytes.Buffer
		o := NewOutbox(func(_ context.Context, m Message) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return deferred
			}
			sent = append(sent, m.Text)
			return nil
		}, slog.New(slog.NewTextHandler(&log, nil)))
		stale := staleTotal.Get()
		for _, m := range []string{"uno a", "dos a", "uno b", "uno c"} {
			if err := o.Add(m[:3], Message{greeting.To, greeting.Subject, m}, time.Hour); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		slices.Sort(sent)
		if want := []string{"dos a", "uno c"}; !slices.Equal(sent, want) || staleTotal.Get() != stale+2 {
			t.Errorf("sent %q; want %q", sent, want)
		}
		if len(o.newest) != 0 || o.waiting != 0 {
			t.Errorf("%d, %d are kept", len(o.newest), o.waiting)
		}
		o.Close(t.Context())
	})
}
