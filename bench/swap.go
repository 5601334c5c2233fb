package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/query"
	"cotejo/snapshots"
)

const (
	swapAskers = 4
	swapEvery  = 2 * time.Millisecond // of one asker: 2,000 RFCs a second together
	// swapWindow is how long a window lasts at least.
	swapWindow = time.Second
)

// swapDefinition is what the figures of a swap mean.
const swapDefinition = "in one process four goroutines ask for an RFC each 2 ms, 3 in 100 listed, through Live.Acquire, query.AppendRegistro and Release; " +
	"latency counts from the moment at which the RFC was due, so that waiting counts. Windows alternate: one without a swap, and one of the same length or longer that holds the whole " +
	"Live.Refresh of an edition in which one list changed: reading, hashing and mapping all files, the swap, and letting go of the old edition. " +
	"swap_added_ms is the median over all pairs of the worst latency of the window with the swap minus that of the one without; " +
	"a dropped request is one that failed, or was answered from an edition that is neither the one before nor the one after"

// swapping is the goroutines that ask, and what they saw.
type swapping struct {
	live    *snapshots.Live
	asked   []query.Question
	known   atomic.Pointer[[2][]byte] // how registros of the edition before and after begin
	dropped atomic.Int64

	mu        sync.Mutex
	latencies []time.Duration
	after     int // answers of the edition after
}

// ask asks until ctx ends.
func (s *swapping) ask(ctx context.Context, random *rand.Rand) {
	var registro []byte
	var seen []time.Duration
	after := 0
	for due := time.Now(); ctx.Err() == nil; due = due.Add(swapEvery) {
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		ed := s.live.Acquire()
		var err error
		registro, _, err = query.AppendRegistro(registro[:0], s.asked[random.IntN(len(s.asked))], engineDay, ed)
		ed.Release()
		seen = append(seen, time.Since(due))
		known := s.known.Load()
		switch {
		case err != nil:
			s.dropped.Add(1)
		case bytes.HasPrefix(registro, known[1]):
			after++
		case !bytes.HasPrefix(registro, known[0]):
			s.dropped.Add(1)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies, s.after = append(s.latencies, seen...), s.after+after
}

// window asks while during runs, and at least for a while; it returns the sorted
// latencies.
func (s *swapping) window(ctx context.Context, atLeast time.Duration, during func() error) (latencies []time.Duration, took time.Duration, err error) {
	s.latencies, s.after = nil, 0
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for i := range swapAskers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s.ask(asking, rand.New(rand.NewPCG(uint64(i), 8)))
		}()
	}
	began := time.Now()
	err = during()
	if rest := atLeast - time.Since(began); rest > 0 {
		time.Sleep(rest)
	}
	took = time.Since(began)
	stop()
	wg.Wait()
	slices.Sort(s.latencies)
	return s.latencies, took, errors.Join(err, ctx.Err())
}

// beginning is how every registro of an edition begins.
func beginning(m *snapshots.EditionManifest) []byte {
	return []byte(`{"edicion_sha256":"` + m.SHA256 + `"`)
}

// measureSwap replaces the edition of a data directory again and again, each time
// with another version of list, while it is asked.
func measureSwap(ctx context.Context, h Host, data string, list *changing, swaps int, report *Report) (err error) {
	c, err := catalogueOf(data)
	if err != nil {
		return err
	}
	live, err := snapshots.NewLive(c, h.Edition)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	s := &swapping{live: live}
	ed := live.Acquire()
	before := *ed.Manifest()
	taken, err := takeCensus(ed, nil)
	if err == nil {
		err = s.choose(ed, taken.listed)
	}
	ed.Release()
	if err != nil {
		return err
	}
	var added, added99, with, without, seconds []float64
	requests := 0
	length := swapWindow
	for i := range swaps + 1 { // the first is a warm-up
		h.Progress("cambio de edición %d de %d", i, swaps)
		after, err := list.publish(ctx, c, i)
		if err != nil {
			return err
		}
		s.known.Store(&[2][]byte{beginning(&before), beginning(&after)})
		still, _, err := s.window(ctx, length, func() error { return nil })
		if err != nil {
			return err
		}
		if s.after > 0 {
			return errors.New("se respondió de la edición nueva antes del cambio")
		}
		var refresh time.Duration
		moved, took, err := s.window(ctx, swapWindow, func() error {
			began := time.Now()
			swapped, err := live.Refresh()
			refresh = time.Since(began)
			if err == nil && !swapped {
				err = errors.New("la edición no cambió")
			}
			return err
		})
		if err != nil {
			return err
		}
		if s.after == 0 && refresh < swapWindow/2 {
			return errors.New("nada se respondió de la edición nueva")
		}
		before, length = after, took
		if i == 0 {
			continue
		}
		requests += len(still) + len(moved)
		with, without = append(with, milliseconds(moved, 1)), append(without, milliseconds(still, 1))
		added = append(added, milliseconds(moved, 1)-milliseconds(still, 1))
		added99 = append(added99, milliseconds(moved, 0.99)-milliseconds(still, 0.99))
		seconds = append(seconds, refresh.Seconds())
	}
	report.Figures["swap_dropped_requests"] = float64(s.dropped.Load())
	report.Figures["swap_added_ms"] = median(added)
	report.Detail["swap"] = map[string]any{
		"measured": swapDefinition, "swaps": swaps, "requests": requests,
		"worst_with_ms": with, "worst_without_ms": without, "added_ms": added, "added_p99_ms": median(added99), "refresh_s": seconds,
	}
	return nil
}

// choose decides what is asked for.
func (s *swapping) choose(ed *snapshots.Edition, listed []string) error {
	asked, err := questions(ed, listed, min(classifyRFCs, len(listed)*100/classifyHits))
	if err != nil {
		return err
	}
	for _, rfc := range asked {
		parsed, err := checks.ParseRFC(rfc)
		if err != nil {
			return err
		}
		s.asked = append(s.asked, query.Company{RFC: parsed, Sanciones: true})
	}
	return nil
}

// milliseconds is a quantile of sorted latencies; 1 is the worst.
func milliseconds(sorted []time.Duration, quantile float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(int(quantile*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[at].Nanoseconds()) / 1e6
}

// changing is a list of which each version differs from the others in one cell.
type changing struct {
	source  string
	corte   civil.Date
	content []byte
}

// changed is what the names of many companies in the generated files have.
var changed = []byte(" DE C.V.")

func newChanging(d *dataset, source string) (*changing, error) {
	f, ok := d.File(source)
	if !ok {
		return nil, fmt.Errorf("la carpeta no tiene %s", source)
	}
	content, err := os.ReadFile(d.path(&f))
	if err != nil {
		return nil, err
	}
	corte, err := civil.Parse(d.Corte)
	return &changing{source, corte, content}, err
}

// publish puts version i into service; 0 is the first that differs from the file.
func (l *changing) publish(ctx context.Context, c *snapshots.Catalogue, i int) (snapshots.EditionManifest, error) {
	at := 0
	for range i + 1 {
		next := bytes.Index(l.content[at:], changed)
		if next < 0 {
			return snapshots.EditionManifest{}, fmt.Errorf("%s tiene menos de %d veces «%s»", l.source, i+1, changed)
		}
		at += next + len(changed)
	}
	content := slices.Concat(l.content[:at-len(changed)], l.content[at:])
	result, err := ingest.Ingest(ctx, c, ingest.Request{
		Source: l.source, Name: l.source + ".csv", Corte: l.corte, Now: time.Now(),
		Content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	})
	if err == nil && result.Outcome != ingest.Activated {
		err = fmt.Errorf("%s: %s %v", l.source, result.Outcome, result.Faults)
	}
	return result.Edition, err
}
