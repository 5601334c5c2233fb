package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cotejo/admin"
	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
)

type doctorCmd struct{}

// finding is one line of the doctor.
type finding struct {
	OK      bool   `json:"bien"`
	Subject string `json:"revisado"`
	Detail  string `json:"detalle"`
}

// Run looks at everything that the service needs, changes nothing, and fails
// when something would keep it from serving.
func (c *doctorCmd) Run(a *app) error {
	dir, err := openDataDir(a.config.get("data"), mustExist)
	if err != nil {
		return err
	}
	findings := []finding{
		checkWritable(dir.path), checkExposed(dir.path), checkDisk(a.config, dir), checkClock(a.config, dir.path), checkPepper(a.config, dir.path),
		checkAnchor(a.config, dir.path),
		checkEdition(dir), checkMail(a), checkServer(a, dir.path),
	}
	findings = append(findings, checkDatabase(a, dir)...)
	bad := 0
	for _, f := range findings {
		if !f.OK {
			bad++
		}
	}
	err = a.print(findings, func() {
		for _, f := range findings {
			mark := "✓"
			if !f.OK {
				mark = "✗"
			}
			fmt.Fprintf(a.stdout, "%s %-10s %s\n", mark, f.Subject, f.Detail)
		}
	})
	if err == nil && bad > 0 {
		return exitWith(exitFailed, "%d de %d revisiones no pasan", bad, len(findings))
	}
	return err
}

func checkWritable(path string) finding {
	f, err := os.CreateTemp(path, ".doctor-*")
	if err != nil {
		return finding{false, "carpeta", err.Error()}
	}
	_, err = f.Write(make([]byte, 4096)) // a full disk still takes an empty file
	err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	if err != nil {
		return finding{false, "carpeta", err.Error()}
	}
	return finding{true, "carpeta", path + ": se puede escribir"}
}

func checkExposed(path string) finding {
	if err := exposed(path); err != nil {
		return finding{false, "permisos", err.Error()}
	}
	return finding{true, "permisos", "solo entra su dueño"}
}

// checkDisk asks what the service asks once a second.
func checkDisk(config configuration, d *dataDir) finding {
	disk, err := newDisk(config, d)
	if err != nil {
		return finding{false, "disco", err.Error()}
	}
	disk.Poll()
	if err := disk.Free(); err != nil {
		return finding{false, "disco", err.Error() + " (min_free): no se aceptaría nada con costo"}
	}
	s, err := statfs(d.path)
	if err != nil {
		return finding{false, "disco", err.Error()}
	}
	return finding{true, "disco", fmt.Sprintf("%.1f GB libres", float64(s.Free)/1e9)}
}

// checkClock knows that time does not run before this program was written, nor
// before the anchor was.
func checkClock(config configuration, dir string) finding {
	if info, err := os.Stat(anchorPath(config, dir)); err == nil {
		clock.Seen(info.ModTime())
	}
	if alarm := clock.Alarm(); alarm != "" {
		return finding{false, "reloj", alarm}
	}
	t := now()
	if t.Year() < 2026 {
		return finding{false, "reloj", t.Format(time.RFC3339) + ": es anterior a este programa; revise la sincronización (NTP)"}
	}
	return finding{true, "reloj", t.Format(time.RFC3339)}
}

// checkAnchor looks at the anchor alone: beside the accounts, whoever opens them
// lays it, and «verify all».
func checkAnchor(config configuration, dir string) finding {
	path := anchorPath(config, dir)
	heads, err := ledger.ReadAnchor(path)
	if _, missing := os.Stat(filepath.Dir(path)); missing != nil {
		return finding{false, "ancla", missing.Error() + ": monte su disco o créela, o corrija anchor"}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return finding{true, "ancla", path + ": todavía no hay; se escribe al abrir las cuentas"}
	} else if err != nil {
		return finding{false, "ancla", err.Error()}
	}
	batches := uint64(0)
	for _, h := range heads {
		batches += h.Seq
	}
	return finding{true, "ancla", fmt.Sprintf("%s: %d lotes", path, batches)}
}

// checkDatabase asks the database of the accounts how it keeps them. It takes and
// changes nothing.
func checkDatabase(a *app, dir *dataDir) []finding {
	bad := func(err error) []finding { return []finding{{false, "base", err.Error()}} }
	url, err := a.config.storeURL()
	if err != nil {
		return bad(err)
	}
	bound, err := boundTo(dir)
	switch {
	case err != nil:
		return bad(err)
	case url == "" && bound != "":
		return bad(fmt.Errorf("las cuentas están en PostgreSQL (%s) y no hay store ni store_file", bound))
	case url == "":
		return nil
	}
	db, err := store.OpenPostgres(a.ctx, url, store.PostgresOptions{Format: dataFormat, ReadOnly: true})
	if errors.Is(err, store.ErrEmpty) {
		return []finding{{true, "base", "sin tablas todavía: se crean al primer arranque"}}
	} else if err != nil {
		return bad(err)
	}
	defer db.Close()
	if bound != "" && bound != db.ID() {
		return bad(fmt.Errorf("%s es la base %s y esta carpeta usa la %s", db.Where(), db.ID(), bound))
	}
	h, err := db.Health()
	if err != nil {
		return bad(err)
	}
	found := []finding{{true, "base", fmt.Sprintf("%s: PostgreSQL %s, %.1f MB, %d conexiones", db.Where(), h.Version, float64(h.Bytes)/1e6, h.Connections)}}
	if !h.Fsync {
		found = append(found, finding{false, "base", "fsync o full_page_writes están apagados: una falla de energía pierde cobros"})
	}
	if !h.Checksums {
		found = append(found, finding{true, "base", "aviso: sin sumas de página un disco que se daña no se nota; con el servidor detenido, pg_checksums --enable"})
	}
	if h.Replicas == "" {
		found = append(found, finding{true, "réplica", "aviso: synchronous_standby_names está vacío; al promover una réplica se pueden perder los últimos cobros"})
	}
	holder, err := db.Holder()
	switch {
	case err != nil:
		return append(found, finding{false, "turno", err.Error()})
	case holder.Left <= 0:
		return append(found, finding{true, "turno", "nadie lo tiene"})
	}
	return append(found, finding{true, "turno", fmt.Sprintf("%s (%s), %s más si no lo renueva", holder.Name, holder.URL, holder.Left.Round(time.Second))})
}

func checkPepper(config configuration, dir string) finding {
	path, ours := pepperPath(config, dir)
	_, err := readPepper(path)
	// Whether it is the right one, only who owns the accounts can tell.
	_, errAccounts := os.Stat(filepath.Join(dir, dirAccounts))
	if ours && errors.Is(err, os.ErrNotExist) && errors.Is(errAccounts, os.ErrNotExist) {
		return finding{true, "secreto", "se creará al primer arranque en " + path}
	}
	if err != nil {
		return finding{false, "secreto", err.Error()}
	}
	return finding{true, "secreto", path}
}

// checkEdition opens the newest edition, which compares every file with its hash.
func checkEdition(dir *dataDir) finding {
	manifest, err := dir.sources.LatestEdition()
	if errors.Is(err, snapshots.ErrNoEdition) {
		return finding{true, "edición", "ninguna todavía: cotejo ingest sat_69b --data " + dir.path}
	}
	if err == nil {
		var ed *snapshots.Edition
		if ed, err = dir.sources.OpenEdition(manifest); err == nil {
			ed.Release()
			return finding{true, "edición", fmt.Sprintf("%d, %d fuentes, archivos íntegros", manifest.Number, len(manifest.Sources))}
		}
	}
	return finding{false, "edición", err.Error()}
}

// checkMail connects with TLS and password, and sends nothing.
func checkMail(a *app) finding {
	sender, err := a.config.sender(nil)
	if err == nil && sender == nil {
		return finding{true, "correo", "sin servidor (smtp_addr): los códigos de registro los da el operador, cotejo registro code"}
	}
	if err == nil {
		err = sender.Probe(a.ctx)
	}
	if err != nil {
		return finding{false, "correo", err.Error()}
	}
	return finding{true, "correo", a.config.get("smtp_addr") + " responde"}
}

func checkServer(a *app, path string) finding {
	var r statusReply
	switch err := admin.Call(a.ctx, path, "status", nil, &r, func(string) {}); {
	case errors.Is(err, admin.ErrNoServer):
		return finding{true, "servidor", "ninguno usa esta carpeta"}
	case err != nil:
		return finding{false, "servidor", err.Error()}
	}
	return finding{true, "servidor", fmt.Sprintf("pid %d, desde %s", r.PID, r.Since)}
}
