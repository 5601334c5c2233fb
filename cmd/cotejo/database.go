package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"cotejo/store"
)

// The accounts of several nodes are in one PostgreSQL database. A data directory is
// bound to the database that it was first used with: with another, or with none, its
// keys and balances would seem to be gone.

// openShared connects a data directory to its database, and binds it when it is new.
func openShared(ctx context.Context, config configuration, dir *dataDir, url string) (_ *store.Postgres, _ *turn, _ *os.File, err error) {
	if _, err := os.Stat(dir.room(dirAccounts)); err == nil {
		return nil, nil, nil, exitWith(exitConfig, "%s tiene cuentas propias y store señala una base de datos: quite el ajuste, o use otra carpeta", dir.path)
	}
	instance, taken, err := lockNode(ctx, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, taken.Close())
		}
	}()
	db, err := store.OpenPostgres(ctx, url, store.PostgresOptions{Format: dataFormat})
	if err != nil {
		return nil, nil, nil, err
	}
	if err := bindTo(dir, db.ID()); err != nil {
		return nil, nil, nil, errors.Join(err, db.Close())
	}
	ttl, err := config.duration("lease")
	if err != nil {
		return nil, nil, nil, errors.Join(err, db.Close())
	}
	if ttl == 0 {
		ttl = defaultLease
	}
	host, _ := os.Hostname()
	node := store.Node{
		Instance: instance,
		Name:     cmp.Or(config.get("node"), host, "sin nombre"),
		URL:      cmp.Or(config.get("node_url"), "http://"+config.get("addr")),
	}
	return db, newTurn(db, node, ttl), taken, nil
}

// bindTo compares the database with the one that the directory was used with, and
// remembers it at the first use.
func bindTo(dir *dataDir, id string) error {
	bound, err := boundTo(dir)
	if err == nil && bound == "" {
		if err = createFile(dir.room(fileBase), []byte(id+"\n")); err == nil {
			bound, err = boundTo(dir)
		}
	}
	if err == nil && bound != id {
		return exitWith(exitConfig, "%s guarda sus cuentas en otra base de datos (%s y no %s): revise store. Si de verdad es otra instalación, use otra carpeta", dir.path, bound, id)
	}
	return err
}

// boundTo is the id of the database that a directory was used with, "" when there is
// none.
func boundTo(dir *dataDir) (string, error) {
	text, err := os.ReadFile(dir.room(fileBase))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// lockNode takes the directory for this process and returns its name among the nodes.
// The kernel lets go of it when the process ends, however it ends.
func lockNode(ctx context.Context, dir *dataDir) (instance string, _ *os.File, err error) {
	path := dir.room(fileNode)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		name := make([]byte, 16)
		rand.Read(name) // never fails (Go 1.24)
		if err := createFile(path, []byte(hex.EncodeToString(name)+"\n")); err != nil {
			return "", nil, &exitError{exitIO, err}
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", nil, &exitError{exitIO, err}
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = exitWith(exitInUse, "%s usa %s: deténgalo, o use --data con otra carpeta", holder(ctx, dir), dir.path)
		}
		return "", nil, errors.Join(err, f.Close())
	}
	text, err := os.ReadFile(path)
	instance = strings.TrimSpace(string(text))
	if err == nil && instance == "" {
		err = exitWith(exitConfig, "%s está vacío: bórrelo y se escribirá otro", path)
	}
	if err != nil {
		return "", nil, errors.Join(err, f.Close())
	}
	return instance, f, nil
}
