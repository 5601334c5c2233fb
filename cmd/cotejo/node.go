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

// node is a data directory whose account data this process owns.
type node struct {
	*dataDir
	config   configuration
	store    *store.Pebble
	ledger   *ledger.Ledger
	accounts *accounts.Service
	jobs     *jobs.Scheduler
	opened   time.Time
	// backupKey signs the manifests of backups, inputKey marks the inputs of
	// movements.
	backupKey, inputKey []byte
}

// openNode opens the account data. store.ErrInUse when another process owns it.
func openNode(ctx context.Context, config configuration, create access) (_ *node, err error) {
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
	if n.store, err = store.OpenPebble(dir.room(dirAccounts), store.PebbleOptions{}); err != nil {
		if errors.Is(err, store.ErrInUse) {
			return nil, exitWith(exitInUse, "%s usa %s: deténgalo, o use --data con otra carpeta", holder(ctx, dir), dir.path)
		}
		return nil, err
	}
	anchor := anchorPath(config, dir.path)
	if info, err := os.Stat(anchor); err == nil {
		clock.Seen(info.ModTime())
	} else if _, err := os.Stat(filepath.Dir(anchor)); errors.Is(err, fs.ErrNotExist) {
		// Of a disk that is not there it would be a new anchor, and nothing compared.
		return nil, exitWith(exitConfig, "anchor: no existe la carpeta de %s: monte su disco o créela, o corrija el ajuste", anchor)
	}
	if n.ledger, err = ledger.Open(n.store, ledger.Options{Anchor: anchor}); err != nil {
		return nil, err
	}
	used, err := accounts.Peppered(n.ledger)
	if err != nil {
		return nil, err
	}
	pepper, err := pepperFor(config, dir.path, used)
	if err != nil {
		return nil, err
	}
	n.backupKey, n.inputKey = backup.Key(pepper), operation.InputKey(pepper)
	n.accounts = accounts.New(n.ledger, pepper, nil, now)
	if err := n.accounts.CheckPepper(ctx); err != nil {
		return nil, err
	}
	if n.jobs, err = openJobs(n, config); err != nil {
		return nil, err
	}
	return n, nil
}

// close ends the ledger, then the store. Every acknowledged command is durable
// before and after.
func (n *node) close() error {
	var errs []error
	if n.ledger != nil {
		errs = append(errs, n.ledger.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
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
