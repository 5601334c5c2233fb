package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"cotejo/store"
)

// BatchSize says how much Batch measures.
type BatchSize struct {
	Scale        float64 // of the sources; 1 is the size of the real ones
	Large, Small int     // RFCs in a list
	Repeats      int
	Window       time.Duration // of single requests, the baseline
}

// batchSettle is how many times the RFCs of the large list are asked about in small
// lists before memory is measured: what the engine and the runtime take for any load
// they have then (memory still grows in the first 600,000 RFCs, whatever the lists), so
// that what is left is what a list takes.
const batchSettle = 6

// Batch measures lists of companies over HTTP, with their durable records and charge:
// how fast, against single requests to the same server; how much more memory the
// server takes for a large list than for small ones; what a record takes on disk,
// compacted, against that of a single request; and that the answers are the same.
func Batch(ctx context.Context, h Host, size BatchSize) (_ Report, err error) {
	report := newReport("batch")
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	d, err := openDataset(ctx, h, dir, size.Scale)
	if err != nil {
		return report, err
	}
	b := batchBench{h: h, size: size, dir: dir, data: filepath.Join(dir, "datos"), random: rand.New(rand.NewPCG(69, 5))}
	if b.listed, err = d.sample(); err != nil {
		return report, err
	}
	if _, err := d.load(ctx, h, b.data); err != nil {
		return report, err
	}
	if b.key, err = h.Prepare(ctx, b.data, 0); err != nil {
		return report, err
	}
	for _, measure := range []func(context.Context, *Report) error{b.disk, b.speed, b.memory, b.same} {
		if err := measure(ctx, &report); err != nil {
			return report, err
		}
	}
	report.Detail["files"], report.Detail["hits_percent"] = d.about(), httpHits
	return report, nil
}

// batchBench is a data directory and what is asked of it.
type batchBench struct {
	h         Host
	size      BatchSize
	dir, data string
	key       string
	listed    []string // RFCs that a source has
	random    *rand.Rand
}

// rfcs are n distinct RFCs: the first ones, and others.
func (b *batchBench) rfcs(n int, first []string) []string {
	seen := make(map[string]bool, n)
	rfcs := make([]string, 0, n)
	for i := 0; len(rfcs) < n; i++ {
		rfc := RandomRFC(b.random)
		if i < len(first) {
			rfc = first[i]
		} else if b.random.IntN(100) < httpHits {
			rfc = b.listed[b.random.IntN(len(b.listed))]
		}
		if !seen[rfc] {
			seen[rfc] = true
			rfcs = append(rfcs, rfc)
		}
	}
	return rfcs
}

// serve runs a server of its own on the directory.
func (b *batchBench) serve(ctx context.Context, use func(*child) error) (err error) {
	server, err := startChild(ctx, b.dir, b.h.Command, "serve", "--data", b.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	return use(server)
}

// compacted is what the accounts take on disk when nothing is there twice.
func (b *batchBench) compacted(ctx context.Context) (bytes int64, err error) {
	engine, err := store.OpenPebble(filepath.Join(b.data, accountsDir), store.PebbleOptions{})
	if err != nil {
		return 0, err
	}
	if err := errors.Join(engine.Compact(ctx), engine.Close()); err != nil {
		return 0, err
	}
	return accountBytes(b.data)
}

// disk measures bytes: of one large list, then of single requests.
func (b *batchBench) disk(ctx context.Context, report *Report) error {
	b.h.Progress("disco: una lista de %d", b.size.Large)
	before, err := b.compacted(ctx)
	if err != nil {
		return err
	}
	if err := b.serve(ctx, func(server *child) error {
		_, err := b.ask(ctx, server, b.size.Large, "resumen")
		return err
	}); err != nil {
		return err
	}
	raw, err := accountBytes(b.data)
	if err != nil {
		return err
	}
	after, err := b.compacted(ctx)
	if err != nil {
		return err
	}
	b.h.Progress("disco: consultas sueltas")
	answers := 0
	if err := b.serve(ctx, func(server *child) (err error) {
		answers, err = load(ctx, server.addr, b.key, companies(b.listed), b.size.Window)
		return err
	}); err != nil {
		return err
	}
	last, err := b.compacted(ctx)
	if err != nil {
		return err
	}
	perRecord, perSingle := float64(after-before)/float64(b.size.Large), float64(last-after)/float64(max(1, answers))
	report.Figures["bytes_per_record"] = perRecord
	report.Figures["bytes_vs_single"] = perRecord / perSingle
	report.Detail["disk"] = map[string]any{
		"what":     "bytes of the account store on disk, compacted, after one list minus before, by its records: registro, acta, movements, the list itself and the logs that stay",
		"baseline": "the same of single requests, compacted", "single_bytes": perSingle, "singles": answers,
		"bytes_before_compaction": float64(raw-before) / float64(b.size.Large), "records": b.size.Large,
	}
	return nil
}

// speed measures lists and single requests in turn, on one server.
func (b *batchBench) speed(ctx context.Context, report *Report) error {
	type figures struct{ perSecond, perCPU, clientCPU, megabytes []float64 }
	details := []string{"resumen", "completo"}
	lists := map[string]*figures{"resumen": {}, "completo": {}}
	single := &side{name: "consultas sueltas"}
	err := b.serve(ctx, func(server *child) error {
		single.server = server
		for i := range b.size.Repeats + 1 {
			b.h.Progress("rapidez, vuelta %d de %d", i, b.size.Repeats)
			for _, detail := range details {
				var got batchAnswer
				own, err := cpuOf(func() (err error) {
					got, err = b.ask(ctx, server, b.size.Large, detail)
					return err
				})
				cpu, errCPU := server.window()
				if err := errors.Join(err, errCPU); err != nil {
					return err
				}
				if f := lists[detail]; i > 0 { // the first is a warm-up
					n := float64(b.size.Large)
					f.perSecond, f.perCPU = append(f.perSecond, n/got.seconds), append(f.perCPU, n/cpu)
					f.clientCPU, f.megabytes = append(f.clientCPU, own), append(f.megabytes, float64(got.bytes)/1e6)
				}
			}
			if err := single.run(ctx, b.key, companies(b.listed), b.size.Window, i > 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	detail := map[string]any{
		"baseline":    "single requests GET /v1/empresa/{rfc} to the same server, in the same turn",
		"list_rfcs":   b.size.Large,
		"connections": httpConnections, "window_s": b.size.Window.Seconds(),
		"single_per_s": single.perSecond, "single_per_cpu_s": single.perCPU,
		"durable": true, "format": "application/x-ndjson", "client": "this process, on the same cores",
	}
	for _, name := range details {
		f := lists[name]
		report.Figures["rfc_per_s_"+name] = median(f.perSecond)
		report.Figures[name+"_per_cpu_s"] = median(f.perCPU)
		report.Figures[name+"_vs_single"] = median(ratios(f.perSecond, single.perSecond))
		report.Figures[name+"_cpu_vs_single"] = median(ratios(f.perCPU, single.perCPU))
		detail[name+"_per_s"], detail[name+"_per_cpu_s"] = f.perSecond, f.perCPU
		detail[name+"_client_cpu_s"], detail[name+"_mb"] = f.clientCPU, f.megabytes
	}
	report.Detail["speed"] = detail
	return nil
}

// memory measures the peak of anonymous memory: while small lists are answered, and
// while a large one is.
func (b *batchBench) memory(ctx context.Context, report *Report) error {
	b.h.Progress("memoria: listas de %d, después una de %d", b.size.Small, b.size.Large)
	peaks := map[string]float64{}
	idle := 0.0
	err := b.serve(ctx, func(server *child) (err error) {
		lists := func(rfcs, of int, detail string) func() error {
			return func() error {
				for range max(1, rfcs/of) {
					if _, err := b.ask(ctx, server, of, detail); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if err := lists(batchSettle*b.size.Large, b.size.Small, "completo")(); err != nil {
			return err
		}
		if idle, err = server.anonymousMB(); err != nil {
			return err
		}
		for _, of := range []struct {
			name, detail string
			rfcs, list   int
		}{
			{"small", "completo", 10 * b.size.Small, b.size.Small},
			{"large_resumen", "resumen", b.size.Large, b.size.Large},
			{"large_completo", "completo", b.size.Large, b.size.Large},
		} {
			if peaks[of.name], err = server.peakDuring(lists(of.rfcs, of.list, of.detail)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	report.Figures["rss_growth_mb_100k_vs_1k"] = max(peaks["large_resumen"], peaks["large_completo"]) - peaks["small"]
	report.Detail["memory"] = map[string]any{
		"what":       "peak of the server's anonymous memory (RssAnon, looked at every 5 ms) during one large list, minus that during ten small ones, in MB",
		"small":      b.size.Small,
		"large":      b.size.Large,
		"settled":    "before, lists of the small size for " + strconv.Itoa(batchSettle*b.size.Large) + " RFCs",
		"settled_mb": idle, "peak_mb": peaks,
	}
	return nil
}

// peakDuring is the most anonymous memory that the child had meanwhile.
func (c *child) peakDuring(work func() error) (peak float64, err error) {
	done := make(chan struct{})
	var looking sync.WaitGroup
	var errLook error
	looking.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			now, err := c.anonymousMB()
			peak, errLook = max(peak, now), errors.Join(errLook, err)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	err = work()
	close(done)
	looking.Wait()
	return peak, errors.Join(err, errLook)
}

// batchAnswer is an answer that was read to its end.
type batchAnswer struct {
	seconds float64 // from the request to the last byte
	bytes   int64
}

// ask sends a new list of n RFCs and reads all of its answer.
func (b *batchBench) ask(ctx context.Context, server *child, n int, detail string) (a batchAnswer, err error) {
	body, err := json.Marshal(b.rfcs(n, nil))
	if err != nil {
		return a, err
	}
	start := time.Now()
	resp, err := b.send(ctx, server, body, detail)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	lines, last := 0, byte(0)
	buffer := make([]byte, 256<<10)
	for {
		k, err := resp.Body.Read(buffer)
		if k > 0 {
			lines += bytes.Count(buffer[:k], []byte{'\n'})
			a.bytes, last = a.bytes+int64(k), buffer[k-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, err
		}
	}
	a.seconds = time.Since(start).Seconds()
	if lines != n+2 || last != '\n' { // the batch, its results, and their end
		return a, fmt.Errorf("lista de %d: llegaron %d renglones", n, lines)
	}
	return a, nil
}

// send sends a list. The answer has begun, and its body is the caller's to close.
func (b *batchBench) send(ctx context.Context, server *child, body []byte, detail string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server.addr+"/v1/empresa/lote?detalle="+detail, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", b.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return nil, errors.Join(fmt.Errorf("lista: %s %s", resp.Status, text), resp.Body.Close())
	}
	return resp, nil
}
