package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cotejo/snapshots"
)

// dataFormat is the number in the file FORMATO of a data directory. A binary
// refuses a directory with another one. 1 had organizations without accounts and
// without twins for tests, and other wallets.
const dataFormat = 2

// Rooms of a data directory.
const (
	dirSources  = "fuentes" // catalogue of the official sources
	dirSandbox  = "sandbox" // catalogue of the synthetic ones
	dirAccounts = "cuentas" // store of account data
	dirAccesses = "accesos" // access log
	dirJobs     = "jobs"    // how the runs of scheduled work ended
	fileFormat  = "FORMATO" // number of this layout; a directory without it holds no data
	filePepper  = "pepper"  // secret that keys the hashes of API keys
	fileAnchor  = "ancla.json"
	fileBase    = "base" // id of the database that holds the accounts, when it is not this directory
	fileNode    = "nodo" // name of this directory among those that share that database; locked while it is used
	fileDemo    = "DEMO" // says that a demonstration made the directory
)

// dataDir is an opened data directory: the part that any number of processes
// may read at once.
type dataDir struct {
	path             string
	sources, sandbox *snapshots.Catalogue
}

// room names a file or folder of the directory.
func (d *dataDir) room(name string) string { return filepath.Join(d.path, name) }

// access says what a command does to a data directory that is not there.
type access bool

const (
	mustExist    access = false // says how one is created, exit code 5
	mayBeCreated access = true  // creates it
)

// openDataDir opens a data directory. It holds secrets: one that it creates can
// only be entered by its owner.
func openDataDir(path string, a access) (*dataDir, error) {
	format := filepath.Join(path, fileFormat)
	if _, err := os.Stat(format); errors.Is(err, fs.ErrNotExist) && a == mustExist {
		return nil, exitWith(exitNotFound, "no hay datos de cotejo en %s: revise --data, o cree la carpeta cargando la primera fuente: cotejo ingest sat_69b --data %s", path, path)
	}
	if a == mayBeCreated {
		if err := makeDurably(path); err != nil {
			return nil, &exitError{exitIO, err}
		}
	}
	if err := checkFormat(format); err != nil {
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

// openData opens the configured directory and warns when others may read it.
func (a *app) openData(create access) (*dataDir, error) {
	d, err := openDataDir(a.config.get("data"), create)
	if err == nil {
		a.warnIfExposed(d.path)
	}
	return d, err
}

func (a *app) warnIfExposed(path string) {
	if err := exposed(path); err != nil {
		fmt.Fprintf(a.stderr, "aviso: %v\n", err)
	}
}

// exposed says so when others than its owner may enter the data directory.
func exposed(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s guarda secretos y otros usuarios pueden entrar: chmod 700 %s", path, path)
	}
	return nil
}

// makeDurably creates a folder and the missing ones above it, and syncs the
// folder that holds each: a new directory must outlive a loss of power as its
// contents do.
func makeDurably(path string) error {
	path = filepath.Clean(path)
	if _, err := os.Stat(path); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeDurably(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
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
	switch {
	case found > dataFormat:
		return exitWith(exitConfig, "la carpeta tiene el formato %d y este programa usa el %d: use la versión de cotejo que la escribió o una posterior", found, dataFormat)
	case found < dataFormat:
		return exitWith(exitConfig, "la carpeta tiene el formato %d, que este programa (formato %d) ya no lee ni convierte: use la versión de cotejo que la escribió, o empiece una carpeta nueva con --data", found, dataFormat)
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
	return syncDir(filepath.Dir(path))
}

// pepperPath names the secret's file, and whether it may be created: only the
// one inside the data directory is ours.
func pepperPath(config configuration, dir string) (path string, ours bool) {
	if path = config.get("pepper_file"); path != "" {
		return path, false
	}
	return filepath.Join(dir, filePepper), true
}

// readPepper reads the secret of the key hashes; fs.ErrNotExist when there is none.
func readPepper(path string) ([]byte, error) {
	pepper, err := ownersFile(path)
	if err == nil && len(pepper) < 32 {
		return nil, exitWith(exitConfig, "%s tiene %d bytes; hacen falta al menos 32", path, len(pepper))
	}
	return pepper, err
}

// ownersFile reads a file that holds a secret, and refuses one that others may read.
func ownersFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, exitWith(exitConfig, "%s lo pueden leer otros: chmod 600 %s", path, path)
	}
	return os.ReadFile(path)
}

// pepperFor reads the secret. It creates one at the first use of the accounts
// and never later: under a new secret no key that was given would be known.
func pepperFor(config configuration, dir string, used bool) ([]byte, error) {
	path, ours := pepperPath(config, dir)
	pepper, err := readPepper(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return pepper, err
	case used:
		return nil, exitWith(exitConfig, "falta el secreto de las llaves, %s: restáurelo del respaldo; con otro no serviría ninguna llave", path)
	case !ours:
		return nil, exitWith(exitConfig, "no existe %s: revise pepper_file, o déjelo vacío para que se cree en la carpeta de datos", path)
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails (Go 1.24)
	if err := createFile(path, secret); err != nil {
		return nil, err
	}
	return readPepper(path)
}
