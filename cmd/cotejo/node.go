package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"cotejo/accounts"
	"cotejo/backup"
	"cotejo/ingest"
	"cotejo/jobs"
	"cotejo/ledger"
	"cotejo/operation"
	"cotejo/sandbox"
	"cotejo/snapshots"
	"cotejo/store"
)

// node is a data directory and its accounts, which this process owns, or waits to
// own where several nodes share them.
type node struct {
	*dataDir
	config   configuration
	store    store.Store
	pebble   *store.Pebble // the store, when it is in the data directory
	turn     *turn         // when the store is shared
	lock     *os.File      // of the directory, then
	ledger   *ledger.Ledger
	accounts *accounts.Service
	jobs     *jobs.Scheduler
	opened   time.Time
	// taken is sent on, if there is room, each time the node was given the accounts.
	taken chan struct{}
	// backupKey signs the manifests of backups, inputKey marks the inputs of
	// movements.
	backupKey, inputKey []byte
}

// defaultLease is for configurations that say nothing.
const defaultLease = 10 * time.Second

// openNode opens the account data and owns it. store.ErrInUse when another process
// does.
func openNode(ctx context.Context, config configuration, create access) (*node, error) {
	n, err := openWaiting(ctx, config, create)
	if err == nil && n.turn != nil && !n.turn.held() {
		err = errors.Join(n.turn.elsewhere(), n.close())
	}
	return n, err
}

// openWaiting opens the account data. Where another node has them this one waits for
// its turn: until then the ledger refuses.
func openWaiting(ctx context.Context, config configuration, create access) (_ *node, err error) {
	dir, err := openDataDir(config.get("data"), create)
	if err != nil {
		return nil, err
	}
	n := &node{dataDir: dir, config: config, opened: now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := n.openStore(ctx); err != nil {
		return nil, err
	}
	anchor := anchorPath(config, dir.path)
	if info, err := os.Stat(anchor); err == nil {
		clock.Seen(info.ModTime())
	} else if _, err := os.Stat(filepath.Dir(anchor)); errors.Is(err, fs.ErrNotExist) {
		// Of a disk that is not there it would be a new anchor, and nothing compared.
		return nil, exitWith(exitConfig, "anchor: no existe la carpeta de %s: monte su disco o créela, o corrija el ajuste", anchor)
	}
	options := ledger.Options{Anchor: anchor}
	if n.turn != nil {
		options.Turn = n.turn.held
	}
	if n.ledger, err = ledger.Open(n.store, options); err != nil {
		return nil, err
	}
	if n.turn != nil {
		n.turn.ledger = n.ledger
		n.turn.step()
		select {
		case err := <-n.turn.failed:
			return nil, err
		default:
		}
	}
	if err := n.openAccounts(ctx); err != nil {
		return nil, err
	}
	if n.jobs, err = openJobs(n, config); err != nil {
		return nil, err
	}
	if n.turn != nil {
		n.turn.doubt = n.accounts.Doubt
		n.taken = make(chan struct{}, 1)
		n.turn.begin = func() error {
			select {
			case n.taken <- struct{}{}:
			default:
			}
			return n.accounts.CheckPepper(context.Background())
		}
		n.turn.follow()
	}
	return n, nil
}

// openStore opens the engine that the configuration names.
func (n *node) openStore(ctx context.Context) error {
	url, err := n.config.storeURL()
	if err != nil {
		return err
	}
	if url != "" {
		db, turn, lock, err := openShared(ctx, n.config, n.dataDir, url)
		if err == nil {
			n.store, n.turn, n.lock = db, turn, lock
		}
		return err
	}
	if bound, err := boundTo(n.dataDir); err != nil {
		return &exitError{exitIO, err}
	} else if bound != "" {
		return exitWith(exitConfig, "%s guarda sus cuentas en una base de datos PostgreSQL (%s): indíquela con store o store_file", n.path, bound)
	}
	n.pebble, err = store.OpenPebble(n.room(dirAccounts), store.PebbleOptions{})
	if errors.Is(err, store.ErrInUse) {
		return exitWith(exitInUse, "%s usa %s: deténgalo, o use --data con otra carpeta", holder(ctx, n.dataDir), n.path)
	}
	if err == nil {
		n.store = n.pebble
	}
	return err
}

// openAccounts reads the secret of the keys and compares it with the accounts.
func (n *node) openAccounts(ctx context.Context) error {
	used, err := accounts.Peppered(n.ledger)
	if err != nil {
		return err
	}
	waits := n.waits()
	if path, _ := pepperPath(n.config, n.path); waits && !used {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return exitWith(exitConfig, "falta el secreto de las llaves, %s: cópielo del nodo que atiende las cuentas; es el mismo en todos", path)
		}
	}
	pepper, err := pepperFor(n.config, n.path, used)
	if err != nil {
		return err
	}
	n.backupKey, n.inputKey = backup.Key(pepper), operation.InputKey(pepper)
	n.accounts = accounts.New(n.ledger, pepper, nil, now)
	if waits {
		return n.accounts.PepperFits()
	}
	return n.accounts.CheckPepper(ctx)
}

// close ends the ledger, then the store. Every acknowledged command is durable
// before and after. The turn is handed over once nothing writes any more.
func (n *node) close() error {
	var errs []error
	if n.turn != nil {
		n.turn.close()
	}
	if n.ledger != nil {
		errs = append(errs, n.ledger.Close())
	}
	if n.turn != nil {
		n.turn.handOver()
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	if n.lock != nil {
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}

// loadSandbox brings the synthetic edition up to date with the files in this
// binary, through the same readers and gates as any source. An edition that
// holds them already is left alone: a full or read-only disk must not keep a
// service from answering.
func loadSandbox(ctx context.Context, c *snapshots.Catalogue) error {
	serving, err := c.LatestEdition()
	if err != nil && !errors.Is(err, snapshots.ErrNoEdition) {
		return fmt.Errorf("edición de pruebas: %w", err)
	}
	for _, f := range sandbox.Files() {
		if holds(&serving, f) {
			continue
		}
		r, err := ingest.Ingest(ctx, c, ingest.Request{
			Source: f.Source, Name: f.Name, Content: f.Open, Corte: f.Corte, Now: f.Downloaded,
		})
		if err != nil {
			return fmt.Errorf("edición de pruebas: %s: %w", f.Source, err)
		}
		if r.Outcome == ingest.Quarantined {
			return fmt.Errorf("edición de pruebas: %s quedó en cuarentena: %v", f.Source, r.Faults)
		}
	}
	return nil
}

// holds reports whether an edition has exactly these bytes as this binary reads
// them.
func holds(m *snapshots.EditionManifest, f sandbox.File) bool {
	source, known := ingest.Lookup(f.Source)
	sum := sha256.Sum256(f.Bytes)
	for _, e := range m.Sources {
		if e.Source == f.Source {
			return known && e.Reader == source.Schema.Reader && e.SHA256 == hex.EncodeToString(sum[:])
		}
	}
	return false
}

// newLogger logs for a person on a terminal and as JSON lines otherwise.
func newLogger(w io.Writer) *slog.Logger {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(w, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}
