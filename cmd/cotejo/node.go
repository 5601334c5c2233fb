package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cotejo/accounts"
	"cotejo/ingest"
	"cotejo/ledger"
	"cotejo/sandbox"
	"cotejo/snapshots"
	"cotejo/store"
)

// dataFormat is the number in the file FORMATO of a data directory. A binary
// refuses a directory with a higher one.
const dataFormat = 1

// Rooms of a data directory.
const (
	dirSources  = "fuentes" // catalogue of the official sources
	dirSandbox  = "sandbox" // catalogue of the synthetic ones
	dirAccounts = "cuentas" // store of account data
	filePepper  = "pepper"  // secret that keys the hashes of API keys
)

// dataDir is an opened data directory: the part that any number of processes
// may read at once.
type dataDir struct {
	path             string
	sources, sandbox *snapshots.Catalogue
}

// openDataDir opens or creates a data directory, which holds secrets: only its
// owner may enter.
func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, &exitError{exitIO, err}
	}
	if err := checkFormat(filepath.Join(path, "FORMATO")); err != nil {
		return nil, err
	}
	d := &dataDir{path: path}
	var err error
	if d.sources, err = snapshots.OpenCatalogue(filepath.Join(path, dirSources)); err != nil {
		return nil, err
	}
	d.sandbox, err = snapshots.OpenCatalogue(filepath.Join(path, dirSandbox))
	return d, err
}

func checkFormat(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createFile(path, []byte(strconv.Itoa(dataFormat)+"\n"))
	} else if err != nil {
		return &exitError{exitIO, err}
	}
	found, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return exitWith(exitConfig, "%s no contiene un número de formato", path)
	}
	if found != dataFormat {
		return exitWith(exitConfig, "la carpeta tiene el formato %d y este programa usa el %d: use la versión de cotejo que la escribió o una posterior", found, dataFormat)
	}
	return nil
}

// createFile publishes a small file whole: two processes that start at once
// agree on one content.
func createFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readPepper reads the secret of the key hashes, creating it on first use.
func readPepper(path string) ([]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails (Go 1.24)
		if err := createFile(path, secret); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, exitWith(exitConfig, "%s lo pueden leer otros: chmod 600 %s", path, path)
	}
	pepper, err := os.ReadFile(path)
	if err == nil && len(pepper) < 32 {
		return nil, exitWith(exitConfig, "%s tiene %d bytes; hacen falta al menos 32", path, len(pepper))
	}
	return pepper, err
}

// node is a data directory whose account data this process owns.
type node struct {
	*dataDir
	store    *store.Pebble
	ledger   *ledger.Ledger
	accounts *accounts.Service
	opened   time.Time
}

// openNode opens the account data. store.ErrInUse when another process owns it.
func openNode(config configuration) (_ *node, err error) {
	dir, err := openDataDir(config.get("data"))
	if err != nil {
		return nil, err
	}
	n := &node{dataDir: dir, opened: now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	pepperFile := config.get("pepper_file")
	if pepperFile == "" {
		pepperFile = filepath.Join(dir.path, filePepper)
	}
	pepper, err := readPepper(pepperFile)
	if err != nil {
		return nil, err
	}
	if n.store, err = store.OpenPebble(filepath.Join(dir.path, dirAccounts), store.PebbleOptions{}); err != nil {
		if errors.Is(err, store.ErrInUse) {
			return nil, exitWith(exitInUse, "otro proceso usa %s: deténgalo, o use --data con otra carpeta", dir.path)
		}
		return nil, err
	}
	if n.ledger, err = ledger.Open(n.store, ledger.Options{}); err != nil {
		return nil, err
	}
	n.accounts = accounts.New(n.ledger, pepper, nil, now)
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
// binary, through the same readers and gates as any source.
func loadSandbox(ctx context.Context, c *snapshots.Catalogue) error {
	for _, f := range sandbox.Files() {
		_, err := ingest.Ingest(ctx, c, ingest.Request{
			Source: f.Source, Name: f.Name, Content: f.Open, Corte: f.Corte, Now: f.Downloaded,
		})
		if err != nil {
			return fmt.Errorf("edición de pruebas: %w", err)
		}
	}
	return nil
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
