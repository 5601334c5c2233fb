package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cotejo/admin"
	"cotejo/backup"
	"cotejo/ledger"
	"cotejo/snapshots"
)

// rooms are what a backup holds. The secret of the keys is kept apart, on
// purpose; the rest of a data directory is of the process that runs.
var rooms = backup.Rooms{
	Accounts: dirAccounts, Anchor: fileAnchor,
	Trees: []string{dirSources, dirSandbox}, Files: []string{fileFormat},
}

type backupArgs struct {
	Dir string `json:"carpeta"` // absolute
}

type backupReply struct {
	Dir     string  `json:"carpeta"`
	Moment  string  `json:"momento"`
	Files   int     `json:"archivos"`
	Bytes   int64   `json:"bytes"`
	Batches uint64  `json:"lotes"` // of all groups, since the accounts began
	Seconds float64 `json:"segundos"`
}

func newBackupReply(dir string, m *backup.Manifest, started time.Time) backupReply {
	r := backupReply{Dir: dir, Moment: m.Moment, Files: len(m.Files), Bytes: m.Bytes(), Seconds: time.Since(started).Seconds()}
	for _, h := range m.Heads {
		r.Batches += h.Seq
	}
	return r
}

// backup makes a backup of the open node, while it serves.
func (n *node) backup(ctx context.Context, raw json.RawMessage, progress func(string)) (any, error) {
	var args backupArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	if n.pebble == nil {
		return nil, exitWith(exitUsage, "las cuentas de %s están en PostgreSQL y se respaldan allí: pg_basebackup con archivo de WAL, o pg_dump. "+
			"De la carpeta guarde aparte %s y %s: no cambian una vez escritas (vea docs/cluster.md)", n.path, dirSources, filePepper)
	}
	started := time.Now()
	m, err := backup.Write(ctx, args.Dir, backup.Source{
		Dir: n.path, Rooms: rooms, Checkpoint: n.pebble.Checkpoint, Key: n.backupKey,
		Format: dataFormat, Version: version, Now: now(), Progress: counted(progress),
	})
	return newBackupReply(args.Dir, &m, started), err
}

// counted says how far a copy is, once a second.
func counted(progress func(string)) func(done, total int, bytes int64) {
	said := time.Now()
	return func(done, total int, bytes int64) {
		if time.Since(said) >= time.Second {
			said = time.Now()
			progress(fmt.Sprintf("%d de %d archivos, %.1f MB", done, total, float64(bytes)/1e6))
		}
	}
}

type backupCmd struct {
	Dir string `arg:"" name:"carpeta" help:"Carpeta nueva o vacía para este respaldo."`
}

// Run asks whoever owns the data directory: a server goes on serving meanwhile.
func (c *backupCmd) Run(a *app) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	var r backupReply
	err = a.execute("backup", mustExist, backupArgs{dir}, &r)
	if errors.Is(err, admin.ErrLost) {
		return fmt.Errorf("resultado desconocido: el respaldo está completo si existe %s: %w", filepath.Join(dir, "RESPALDO.json"), err)
	}
	if err != nil {
		return err
	}
	return a.print(r, func() {
		fmt.Fprintf(a.stdout, "✓ respaldo en %s: %d archivos, %.1f MB, %.1f s\n", r.Dir, r.Files, float64(r.Bytes)/1e6, r.Seconds)
		fmt.Fprintln(a.stdout, "El secreto de las llaves no está en él: guárdelo aparte. Pruébelo: cotejo restore")
	})
}

type restoreReply struct {
	backupReply
	Data      string `json:"datos"`
	Accounts  int    `json:"cuentas"`
	Movements int    `json:"movimientos"`
	Records   int    `json:"registros"`
	Edition   int    `json:"edicion"` // newest of the official sources, 0: none
	Notice    string `json:"aviso,omitempty"`
}

type restoreCmd struct {
	Dir string `arg:"" name:"carpeta" help:"Carpeta del respaldo."`
}

// Run makes the configured data directory, which must not exist, from a backup.
func (c *restoreCmd) Run(a *app) error {
	started := time.Now()
	if url, err := a.config.storeURL(); err != nil {
		return err
	} else if url != "" {
		return exitWith(exitUsage, "un respaldo de cotejo tiene cuentas de una carpeta de datos: quite store y store_file. Una base de datos se restaura por sus propios medios")
	}
	secretPath := a.config.get("pepper_file")
	if secretPath == "" {
		return exitWith(exitUsage, "indique --pepper-file ARCHIVO: el secreto de las llaves no está en el respaldo y sin él no se reconoce ninguna")
	}
	secret, err := readPepper(secretPath)
	if err != nil {
		return fmt.Errorf("secreto de las llaves: %w", err)
	}
	r := restoreReply{Data: filepath.Clean(a.config.get("data"))}
	m, report, err := backup.Restore(a.ctx, c.Dir, r.Data, backup.Target{
		Rooms: rooms, Key: backup.Key(secret), Now: now(),
		Progress: counted(func(line string) { fmt.Fprintln(a.stderr, line) }),
		Finish: func(dir string) error {
			if err := checkFormat(filepath.Join(dir, fileFormat)); err != nil {
				return err
			}
			if r.Edition, err = newestOpens(dir); err != nil {
				return err
			}
			return createFile(filepath.Join(dir, filePepper), secret)
		},
	})
	if err != nil {
		return err
	}
	r.backupReply = newBackupReply(c.Dir, &m, started)
	r.Accounts, r.Movements, r.Records = report.Accounts, report.Movements, report.Records
	r.Notice = otherAnchor(a.config, r.Data, &m)
	return a.print(r, func() {
		fmt.Fprintf(a.stdout, "✓ %d archivos, %.1f MB, cada uno con el hash del respaldo de %s\n", r.Files, float64(r.Bytes)/1e6, r.Moment)
		fmt.Fprintf(a.stdout, "✓ libro: %d cuentas, %d movimientos, %d registros, terminan donde dice el respaldo\n", r.Accounts, r.Movements, r.Records)
		if r.Edition > 0 {
			fmt.Fprintf(a.stdout, "✓ edición %d: se abre\n", r.Edition)
		}
		fmt.Fprintf(a.stdout, "Restaurado en %s: %.1f s\nsiguiente: cotejo verify all --data %s\n", r.Data, r.Seconds, r.Data)
		if r.Notice != "" {
			fmt.Fprintf(a.stderr, "aviso: %s\n", r.Notice)
		}
	})
}

// newestOpens opens the newest edition of both catalogues of a restored directory
// and returns the number of the official one, 0 when there is none.
func newestOpens(dir string) (number int, err error) {
	for _, room := range []string{dirSandbox, dirSources} {
		number = 0
		c, err := snapshots.OpenCatalogue(filepath.Join(dir, room))
		if err != nil {
			return 0, err
		}
		manifest, err := c.LatestEdition()
		if errors.Is(err, snapshots.ErrNoEdition) {
			continue
		} else if err != nil {
			return 0, err
		}
		ed, err := c.OpenEdition(manifest)
		if err != nil {
			return 0, err
		}
		ed.Release()
		number = manifest.Number
	}
	return number, nil
}

// otherAnchor says so when the configured anchor, outside the data directory,
// will not let the restored accounts start.
func otherAnchor(config configuration, data string, m *backup.Manifest) string {
	path := anchorPath(config, data)
	if path == filepath.Join(data, fileAnchor) {
		return ""
	}
	heads, err := ledger.ReadAnchor(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	}
	missing := uint64(0)
	for i, h := range heads {
		if i < len(m.Heads) && h.Seq > m.Heads[i].Seq {
			missing += h.Seq - m.Heads[i].Seq
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("el ancla %s recuerda %d lotes posteriores al respaldo, y con ella el servicio no inicia. Si se perdieron, apártela: mv %s %s.anterior",
		path, missing, path, path)
}

// anchorPath is where the heads of the accounts' chains are kept outside them.
func anchorPath(config configuration, dir string) string {
	if path := config.get("anchor"); path != "" {
		return path
	}
	return filepath.Join(dir, fileAnchor)
}

// anchorState says in Spanish where the anchor stands beside open accounts.
func (n *node) anchorState() (ok bool, text string) {
	path := anchorPath(n.config, n.path)
	heads, err := ledger.ReadAnchor(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, path + ": todavía no hay; se escribe al abrir las cuentas"
	} else if err != nil {
		return false, err.Error()
	}
	current := n.ledger.Heads()
	if n.ledger.Serving() != nil { // another node moves them
		if current, err = ledger.HeadsOf(n.store); err != nil {
			return false, err.Error()
		}
	}
	var anchored, stored uint64
	for i, h := range current {
		if heads[i].Seq > h.Seq || heads[i].Seq == h.Seq && heads[i].Sum != h.Sum {
			return false, fmt.Sprintf("%s no coincide con el grupo %d", path, h.Group)
		}
		anchored, stored = anchored+heads[i].Seq, stored+h.Seq
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d de %d lotes", path, anchored, stored)
	if info, err := os.Stat(path); err == nil {
		fmt.Fprintf(&b, ", escrita %s", info.ModTime().UTC().Format(time.RFC3339))
	}
	return true, b.String()
}
