package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"cotejo/ledger"
	"cotejo/store"
)

const (
	ledgerClients = 64
	ledgerWallets = 100
	// A typical answer about a company that is on no list.
	ledgerRegistro = 1000
	ledgerActa     = 700
)

// Ledger measures durable charges: 64 clients that each wait for their answer
// before the next, as requests do, on Host.Store. The baselines are the same ledger with
// one command in each durable write, and the engine's own durable write.
func Ledger(ctx context.Context, h Host, full bool) (_ Report, err error) {
	repeats, window := 3, 3*time.Second
	if full {
		repeats, window = 7, 10*time.Second
	}
	report := newReport("ledger")
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	perSecond, err := syncsPerSecond(dir, window/3)
	if err != nil {
		return report, err
	}

	var sides []*ledgerSide
	defer func() {
		for _, s := range sides {
			err = errors.Join(err, s.close())
		}
	}()
	open := func(name string, wallets, clients, batch int) (*ledgerSide, error) {
		s, err := openLedgerSide(ctx, h.Store, filepath.Join(dir, name), wallets, clients, batch)
		if err == nil {
			s.name = name
			sides = append(sides, s)
		}
		return s, err
	}
	hot, err := open("un monedero", 1, ledgerClients, 0)
	if err != nil {
		return report, err
	}
	many, err := open("cien monederos", ledgerWallets, ledgerClients, 0)
	if err != nil {
		return report, err
	}
	one, err := open("lotes de uno", 1, ledgerClients, 1)
	if err != nil {
		return report, err
	}
	single, err := open("un cliente", 1, 1, 0)
	if err != nil {
		return report, err
	}
	for i := range repeats + 1 {
		h.Progress("libro, vuelta %d de %d", i, repeats)
		for _, s := range sides {
			if err := s.run(ctx, window, i > 0); err != nil { // the first is a warm-up
				return report, fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if err := single.commits(ctx, window, i > 0); err != nil {
			return report, err
		}
	}

	report.Figures["hot_wallet_per_s"] = median(hot.perSecond)
	report.Figures["hot_vs_batch1"] = median(ratios(hot.perSecond, one.perSecond))
	report.Figures["w100_vs_hot"] = median(ratios(many.perSecond, hot.perSecond))
	report.Figures["single_client_vs_commit"] = median(ratios(single.p50, single.commitP50))
	report.Figures["commit_ms"] = median(single.commitP50) / 1e6
	report.Figures["fsync_per_s"] = perSecond
	engine := "pebble"
	if db, shared := hot.engine.(*store.Postgres); shared {
		health, err := db.Health()
		if err != nil {
			return report, err
		}
		engine = fmt.Sprintf("postgres %s, fsync %t", health.Version, health.Fsync)
	}
	report.Detail["ledger"] = map[string]any{
		"engine":  engine,
		"clients": ledgerClients, "wallets": ledgerWallets, "window_s": window.Seconds(),
		"registro_bytes": ledgerRegistro, "acta_bytes": ledgerActa,
		"stored_bytes_per_charge": single.store.bytes / max(1, single.store.batches),
		"commands_per_write":      float64(hot.charges) / float64(max(1, hot.store.batches)),
		"hot_per_s":               hot.perSecond, "w100_per_s": many.perSecond, "batch1_per_s": one.perSecond,
		"single_p50_us": inMicros(single.p50), "commit_p50_us": inMicros(single.commitP50),
		"baseline_batch1": "the same ledger and clients, one command in each durable write",
		"baseline_commit": "the engine's durable write of the same keys and bytes, without a ledger, one writer",
		"fsync":           "fdatasync after each 512 bytes appended to a file of the same folder, one writer",
		"durable":         true, "anchored": true,
	}
	return report, nil
}

func inMicros(ns []float64) []float64 {
	out := make([]float64, len(ns))
	for i := range ns {
		out[i] = ns[i] / 1e3
	}
	return out
}

// ledgerSide is one ledger on a store of its own.
type ledgerSide struct {
	name    string
	engine  store.Store
	drop    func(context.Context) error // what holds it; nil: a folder of the bench
	store   *countingStore
	ledger  *ledger.Ledger
	wallets int
	clients int
	charges int64

	perSecond, p50, commitP50 []float64 // by window; p50 in nanoseconds
	written                   uint64    // bare commits made
}

func openLedgerSide(ctx context.Context, database, dir string, wallets, clients, batch int) (_ *ledgerSide, err error) {
	s := &ledgerSide{wallets: wallets, clients: clients}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.open(ctx, database, dir); err != nil {
		return nil, err
	}
	s.store = &countingStore{Store: s.engine}
	if s.ledger, err = ledger.Open(s.store, ledger.Options{MaxBatch: batch, Anchor: dir + ".ancla.json"}); err != nil {
		return nil, err
	}
	for w := range wallets {
		credit := ledger.Credit{Now: ledgerNow, Org: 1, Centavos: ledger.MaxCentavos, Reason: "medición"}
		if _, err := s.ledger.Do(context.Background(), ledger.AccountID(1+w), credit); err != nil {
			return nil, err
		}
	}
	s.store.batches, s.store.bytes = 0, 0
	return s, nil
}

// open makes a store of its own: a folder, or a schema of the database.
func (s *ledgerSide) open(ctx context.Context, database, dir string) error {
	if database == "" {
		engine, err := store.OpenPebble(dir, store.PebbleOptions{})
		if err == nil {
			s.engine = engine
		}
		return err
	}
	scratch, drop, err := store.ScratchPostgres(ctx, database)
	if err != nil {
		return err
	}
	s.drop = drop
	engine, err := store.OpenPostgres(ctx, scratch, store.PostgresOptions{})
	if err == nil {
		s.engine = engine
	}
	return err
}

func (s *ledgerSide) close() error {
	var errs []error
	if s.ledger != nil {
		errs = append(errs, s.ledger.Close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.drop != nil {
		errs = append(errs, s.drop(context.Background()))
	}
	return errors.Join(errs...)
}

// ledgerNow is the moment of every charge.
var ledgerNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// run charges for as long as window; counted says whether it is more than a
// warm-up.
func (s *ledgerSide) run(ctx context.Context, window time.Duration, counted bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var charges atomic.Int64
	took := make([][]float64, s.clients)
	var group sync.WaitGroup
	began := time.Now()
	for c := range s.clients {
		group.Go(func() {
			client := newLedgerClient(s.ledger, ledger.AccountID(1+c%s.wallets))
			for next := c; ctx.Err() == nil; next += s.clients {
				client.account = ledger.AccountID(1 + next%s.wallets)
				before := time.Now()
				if before.Sub(began) > window {
					return
				}
				if err := client.charge(ctx); err != nil {
					cancel(err)
					return
				}
				took[c] = append(took[c], float64(time.Since(before)))
				charges.Add(1)
			}
		})
	}
	group.Wait()
	seconds := time.Since(began).Seconds()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.charges += charges.Load()
	if counted {
		s.perSecond = append(s.perSecond, float64(charges.Load())/seconds)
		s.p50 = append(s.p50, median(slices.Concat(took...)))
	}
	return nil
}

// ledgerClient charges one verification after the other.
type ledgerClient struct {
	ledger  *ledger.Ledger
	account ledger.AccountID
	record  ledger.Record
	sum     [sha256.Size]byte
	head    []byte // of the acta, up to the id
}

func newLedgerClient(l *ledger.Ledger, account ledger.AccountID) *ledgerClient {
	registro := append([]byte(`{"resultado":"`), bytes.Repeat([]byte("sin coincidencia "), ledgerRegistro/17)...)
	registro = append(registro[:ledgerRegistro-2], `"}`...)
	c := &ledgerClient{ledger: l, account: account, sum: sha256.Sum256(registro)}
	c.record = ledger.Record{
		Org: 1, Service: "COMPANY", Code: "COMPANY_OK", Operation: "verificarEmpresa", Edition: [32]byte{7}, Registro: registro,
	}
	c.head = append([]byte(`{"consultado":"2026-11-20T06:00:00-06:00","nota":"`), bytes.Repeat([]byte("versión "), ledgerActa/9)...)
	c.head = append(c.head[:ledgerActa-136], `","registro_sha256":"`...)
	c.head = append(hex.AppendEncode(c.head, c.sum[:]), `","verification_id":"`...)
	return c
}

func (c *ledgerClient) charge(ctx context.Context) error {
	id, err := c.ledger.NextID(ctx, "COM", ledgerNow)
	if err != nil {
		return err
	}
	c.record.ID = id
	c.record.Acta = append(id.AppendTo(append(c.record.Acta[:0], c.head...)), `"}`...)
	_, err = c.ledger.Do(ctx, c.account, ledger.Charge{Now: ledgerNow, Record: c.record, Sum: c.sum, Price: 1})
	return err
}

// commits makes durable writes of what a charge of this side wrote last, through
// the engine alone and under keys of their own.
func (s *ledgerSide) commits(ctx context.Context, window time.Duration, counted bool) error {
	batch := s.store.last
	const group = store.Groups - 1 // not the group of the side's wallet
	epoch, seq, err := s.engine.Acquire(group)
	if err != nil {
		return err
	}
	var took []float64
	for began := time.Now(); time.Since(began) < window && ctx.Err() == nil; {
		s.written++
		seq++
		b := store.Batch{Group: group, Epoch: epoch, Seq: seq}
		for i, p := range batch.Puts {
			key := fmt.Appendf(nil, "medición %d %016d ", i, s.written)
			b.Puts = append(b.Puts, store.Put{Key: key[:max(len(p.Key), 28)], Value: p.Value})
		}
		before := time.Now()
		if err := s.engine.Commit(b); err != nil {
			return err
		}
		took = append(took, float64(time.Since(before)))
	}
	if counted {
		s.commitP50 = append(s.commitP50, median(took))
	}
	return ctx.Err()
}

// countingStore notes what the ledger writes.
type countingStore struct {
	store.Store
	batches, bytes int64 // of the sequencer's goroutine; read when it is idle
	last           store.Batch
}

func (c *countingStore) Commit(batches ...store.Batch) error {
	c.batches++
	for _, b := range batches {
		for _, p := range b.Puts {
			c.bytes += int64(len(p.Key) + len(p.Value))
		}
		if len(b.Puts) > 1 && b.Group != store.Global {
			c.keep(b)
		}
	}
	return c.Store.Commit(batches...)
}

// keep copies the first batch that is worth repeating.
func (c *countingStore) keep(b store.Batch) {
	if c.last.Puts != nil {
		return
	}
	for _, p := range b.Puts {
		c.last.Puts = append(c.last.Puts, store.Put{Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value)})
	}
}

// syncsPerSecond tells what the disk allows one writer at all.
func syncsPerSecond(dir string, window time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 512)
	n, began := 0, time.Now()
	for time.Since(began) < window {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
