package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cotejo/backup"
	"cotejo/ledger"
	"cotejo/store"
)

// shop is a data directory with one funded organization and its live key.
func shop(t *testing.T) (data, org, key string) {
	t.Helper()
	data = loadedData(t, 0)
	org = cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	key = cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "9000000", "--reason", "prueba", "--data", data)
	return data, org, key
}

// load charges with as many clients until stop is closed, and tells each answer.
func load(t *testing.T, s *served, key string, clients int, stop <-chan struct{}, seen func(id, sha string)) *sync.WaitGroup {
	wg := new(sync.WaitGroup)
	for client := range clients {
		wg.Go(func() {
			for i := client; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				status, body, _, err := s.get(fmt.Sprintf("/v1/empresa/EFO0101%02dAA1", 1+i%28), key)
				if err != nil || status != 200 {
					t.Errorf("respuesta %d, %v: %v", status, err, body)
					return
				}
				seen(at(body, "verification_id").(string), at(body, "registro_sha256").(string))
			}
		})
	}
	return wg
}

// answers collects what clients saw.
type answers struct {
	mu  sync.Mutex
	sha map[string]string
}

func (a *answers) add(id, sha string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sha[id] = sha
}

func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sha)
}

func (a *answers) copy() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(map[string]string, len(a.sha))
	for id, sha := range a.sha {
		c[id] = sha
	}
	return c
}

// TestRestoreDrill backs up a real server under load, loses the directory, and
// restores it: everything that was answered before the backup began is there,
// nothing after the heads that it recorded, and every answer is byte for byte
// the one that was given.
func TestRestoreDrill(t *testing.T) {
	data, org, key := shop(t)
	s := serveChild(t, data)
	to := t.TempDir() + "/respaldo"

	seen := &answers{sha: map[string]string{}}
	stop := make(chan struct{})
	wg := load(t, s, key, 8, stop, seen.add)
	more := func(n int) {
		t.Helper()
		waitFor(t, func() bool { return t.Failed() || seen.count() >= n }, func() string { return "sin carga: " + s.log.String() })
	}
	more(300)
	before := seen.copy()
	r := cotejoJSON[backupReply](t, "backup", to, "--data", data)
	began := seen.count()
	more(began + 300)
	// A source renews itself meanwhile, and the load goes on: neither is in it.
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
	close(stop)
	wg.Wait()
	// These were asked after the backup had ended.
	body, _ := s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	afterwards := at(body, "verification_id").(string)
	given := map[string]string{}
	for id := range before {
		body, _ := s.mustGet(t, 200, "/v1/verificaciones/"+id, key)
		text, _ := json.Marshal(body)
		given[id] = string(text)
	}
	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}

	pepper := data + "/pepper"
	restored := t.TempDir() + "/nueva"
	back := cotejoJSON[restoreReply](t, "restore", to, "--data", restored, "--pepper-file", pepper)
	if back.Batches != r.Batches || back.Files != r.Files || back.Bytes != r.Bytes || back.Edition != 1 {
		t.Errorf("restaurado = %+v, respaldado = %+v", back, r)
	}
	if back.Records < len(before) {
		t.Errorf("%d registros restaurados y %d respuestas anteriores al respaldo", back.Records, len(before))
	}
	if lost, double := audit(t, restored, org, before); lost > 0 || double > 0 {
		t.Errorf("de %d respuestas anteriores al respaldo faltan %d, %d dobles", len(before), lost, double)
	}
	// What the store holds beyond its heads would be another state than the recorded.
	m, err := backup.Read(to, backup.Key(must(os.ReadFile(pepper))(t)))
	if err != nil {
		t.Fatal(err)
	}
	all := cotejoJSON[verifyReply](t, "verify", "all", "--data", restored)
	if !all.OK || all.Records != back.Records || all.Anchor == "" {
		t.Errorf("verify all = %+v", all)
	}
	failing(t, exitNotFound, "verify", afterwards, "--data", restored)
	info, err := os.Stat(restored + "/pepper")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("pepper: %v, %v", info, err)
	}
	t.Logf("%d records before the backup, %d in it (%d batches), %d at the end; restored in %.2f s",
		len(before), back.Records, back.Batches, seen.count(), back.Seconds)

	s = serveChild(t, restored)
	for id, want := range given {
		body, _ := s.mustGet(t, 200, "/v1/verificaciones/"+id, key)
		if text, _ := json.Marshal(body); string(text) != want {
			t.Fatalf("%s responde otra cosa:\n%s\n%s", id, text, want)
		}
	}
	s.mustGet(t, 200, "/readyz", "")
	s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}
	// The heads of the manifest stand in the chains of both directories.
	for _, dir := range []string{data, restored} {
		heads, err := ledger.ReadAnchor(dir + "/ancla.json")
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range m.Heads {
			if heads[i].Seq < h.Seq {
				t.Errorf("%s: grupo %d hasta %d, el respaldo llega al %d", dir, i, heads[i].Seq, h.Seq)
			}
		}
	}
}

// copyTree copies a backup so that it can be altered. Files that nobody may write
// become writable.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir() + "/copia"
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if e.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return os.WriteFile(target, must(os.ReadFile(path))(t), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestATamperedBackupIsRefused alters each file of a backup in turn, takes it
// away, and adds one. Nothing may be left of a directory that was refused.
func TestATamperedBackupIsRefused(t *testing.T) {
	data, _, key := shop(t)
	s := serveChild(t, data)
	for range 3 {
		s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	}
	s.stop(t)
	good := t.TempDir() + "/respaldo"
	cotejo(t, 0, "backup", good, "--data", data) // in process: no server runs
	pepper := data + "/pepper"
	restores := t.TempDir()
	refused := func(code int, from, pepper, what string) {
		t.Helper()
		said := failing(t, code, "restore", from, "--data", restores+"/nueva", "--pepper-file", pepper)
		if !strings.Contains(said, what) {
			t.Errorf("se dijo %q, se esperaba %q", said, what)
		}
		if left, err := os.ReadDir(restores); err != nil || len(left) > 0 {
			t.Fatalf("quedó %v, %v", left, err)
		}
	}
	bad := copyTree(t, good)
	files := 0
	err := filepath.WalkDir(bad, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		name := strings.TrimPrefix(path, bad+"/")
		content := must(os.ReadFile(path))(t)
		if len(content) > 0 {
			flipped := bytes.Clone(content)
			flipped[len(flipped)/2] ^= 1
			os.WriteFile(path, flipped, 0o600)
			refused(exitVerifyNo, bad, pepper, "no es el que se escribió")
		}
		os.WriteFile(path, append(bytes.Clone(content), 0), 0o600)
		refused(exitVerifyNo, bad, pepper, name)
		os.Remove(path)
		if name == "RESPALDO.json" {
			refused(exitNotFound, bad, pepper, "no es un respaldo")
		} else {
			refused(exitVerifyNo, bad, pepper, "falta "+name)
		}
		os.WriteFile(path, content, 0o600)
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d archivos, %v", files, err)
	}
	for _, extra := range []string{"de-mas", "cuentas/999999.sst", "fuentes/versions/99.json"} {
		os.WriteFile(bad+"/"+extra, []byte("x"), 0o600)
		refused(exitVerifyNo, bad, pepper, "sobra "+extra)
		os.Remove(bad + "/" + extra)
	}
	os.Remove(bad + "/FORMATO")
	os.Symlink("/etc/hostname", bad+"/FORMATO")
	refused(exitVerifyNo, bad, pepper, "FORMATO no es un archivo")

	other := t.TempDir() + "/otro"
	os.WriteFile(other, bytes.Repeat([]byte{7}, 32), 0o600)
	refused(exitVerifyNo, good, other, "la firma")
	refused(exitNotFound, t.TempDir(), pepper, "no es un respaldo")

	if said := failing(t, exitUsage, "restore", good, "--data", restores+"/nueva"); !strings.Contains(said, "--pepper-file") {
		t.Errorf("sin secreto: %s", said)
	}
	if said := failing(t, exitUsage, "restore", good, "--data", data, "--pepper-file", pepper); !strings.Contains(said, "ya existe") {
		t.Errorf("sobre otra: %s", said)
	}
	cotejo(t, 0, "restore", good, "--data", restores+"/nueva", "--pepper-file", pepper)
	cotejo(t, 0, "verify", "all", "--data", restores+"/nueva")
}

func TestWhereABackupMayGo(t *testing.T) {
	data := loadedData(t, 0)
	f := func(want, dir string) {
		t.Helper()
		if said := failing(t, exitUsage, "backup", dir, "--data", data); !strings.Contains(said, want) {
			t.Errorf("%s: %s", dir, said)
		}
	}
	f("dentro de la carpeta de datos", data+"/respaldo")
	f("dentro de la carpeta de datos", data)
	link := t.TempDir() + "/enlace"
	os.Symlink(data, link)
	f("dentro de la carpeta de datos", link+"/x/y")
	used := t.TempDir()
	os.WriteFile(used+"/algo", nil, 0o600)
	f("no está vacía", used)

	empty := t.TempDir()
	os.Chmod(empty, 0o755)
	cotejo(t, 0, "backup", empty, "--data", data)
	if info, err := os.Stat(empty); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("otros pueden entrar al respaldo: %v, %v", info.Mode(), err)
	}
}

// kept is what a data directory holds and a backup does not, on purpose.
var kept = map[string]bool{"pepper": true, "admin.sock": true, "fuentes/lock": true, "sandbox/lock": true, "cuentas/LOCK": true}

// TestABackupHoldsTheDirectory holds that every room of a data directory is
// either in its backup or in the list above, and that the secret is nowhere.
func TestABackupHoldsTheDirectory(t *testing.T) {
	data, _, key := shop(t)
	s := serveChild(t, data)
	s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	to := t.TempDir() + "/respaldo"
	cotejo(t, 0, "backup", to, "--data", data)
	secret := must(os.ReadFile(data + "/pepper"))(t)
	err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, data+"/")
		_, missing := os.Stat(to + "/" + name)
		if errors.Is(missing, fs.ErrNotExist) != kept[name] && !strings.HasPrefix(name, "cuentas/") && !strings.HasPrefix(name, "jobs/") {
			t.Errorf("%s: en el respaldo: %v", name, missing == nil)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && bytes.Contains(must(os.ReadFile(path))(t), secret) {
			t.Errorf("%s contiene el secreto", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// What is never written again costs nothing on the same disk.
	name := "/fuentes/editions/1.json"
	if a, b := must(os.Stat(data+name))(t), must(os.Stat(to+name))(t); !os.SameFile(a, b) {
		t.Errorf("%s se copió", name)
	}
}

// TestAnInterruptedBackupLeavesNothing also holds for a restore.
func TestAnInterruptedBackupLeavesNothing(t *testing.T) {
	data, _, _ := shop(t)
	good := t.TempDir() + "/respaldo"
	cotejo(t, 0, "backup", good, "--data", data)
	secret := must(os.ReadFile(data + "/pepper"))(t)
	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	for at := 1; at < 12; at += 5 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stopAt := func(done, _ int, _ int64) {
			if done == at {
				cancel()
			}
		}
		to := t.TempDir()
		_, err := backup.Write(ctx, to+"/r", backup.Source{Dir: data, Rooms: rooms, Checkpoint: n.pebble.Checkpoint, Key: n.backupKey,
			Format: dataFormat, Now: time.Now(), Progress: stopAt})
		if left, _ := os.ReadDir(to); exitCode(err) != exitInterrupted || len(left) > 0 {
			t.Errorf("respaldo cortado en %d: %v, quedó %v", at, err, left)
		}
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		_, _, err = backup.Restore(ctx, good, to+"/d", backup.Target{Rooms: rooms, Key: backup.Key(secret), Now: time.Now(), Progress: stopAt})
		if left, _ := os.ReadDir(to); exitCode(err) != exitInterrupted || len(left) > 0 {
			t.Errorf("restauración cortada en %d: %v, quedó %v", at, err, left)
		}
	}
}

// TestRestoredAgainAndAgain loses a directory three times on one day and each time
// restores the one backup: no client ever gets an id that another answer had.
func TestRestoredAgainAndAgain(t *testing.T) {
	data, _, key := shop(t)
	pepper := t.TempDir() + "/secreto"
	if err := os.WriteFile(pepper, must(os.ReadFile(data+"/pepper"))(t), 0o600); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir() + "/respaldo"
	given := map[string]bool{}
	for life := range 4 {
		s := serveChild(t, data)
		if life == 0 {
			cotejo(t, 0, "backup", to, "--data", data)
		}
		for range 20 {
			body, _ := s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
			id := at(body, "verification_id").(string)
			if given[id] {
				t.Fatalf("vida %d: %s se dio dos veces", life, id)
			}
			given[id] = true
		}
		s.stop(t)
		data = t.TempDir() + "/nueva"
		cotejo(t, 0, "restore", to, "--data", data, "--pepper-file", pepper)
		// It is anchored as it is, not as it was in the backup.
		heads, err := ledger.ReadAnchor(data + "/ancla.json")
		old, errOld := ledger.ReadAnchor(to + "/ancla.json")
		if err != nil || errOld != nil || heads[store.Global].Seq <= old[store.Global].Seq {
			t.Errorf("ancla del restaurado: %v, %v; del respaldo: %v, %v", heads, err, old, errOld)
		}
	}
}

// TestAnAnchorElsewhereIsNamed restores accounts that are older than what the
// anchor on another disk remembers: the service must not start on them unasked.
func TestAnAnchorElsewhereIsNamed(t *testing.T) {
	anchor := t.TempDir() + "/ancla.json"
	environment = func() []string { return append(quiet[:len(quiet):len(quiet)], "COTEJO_ANCHOR="+anchor) }
	defer func() { environment = func() []string { return quiet } }()
	data, org, _ := shop(t)
	if _, err := os.Stat(data + "/ancla.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ancla en la carpeta de datos: %v", err)
	}
	to := t.TempDir() + "/respaldo"
	cotejo(t, 0, "backup", to, "--data", data)
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "1", "--reason", "perdido", "--data", data)
	restored := t.TempDir() + "/nueva"
	r := cotejoJSON[restoreReply](t, "restore", to, "--data", restored, "--pepper-file", data+"/pepper")
	if !strings.Contains(r.Notice, anchor) {
		t.Errorf("aviso = %q", r.Notice)
	}
	said := failing(t, exitConfig, "serve", "--data", restored, "--addr", "127.0.0.1:0")
	if !strings.Contains(said, anchor) || !strings.Contains(said, "faltan") {
		t.Errorf("serve = %s", said)
	}
	if err := os.Rename(anchor, anchor+".anterior"); err != nil {
		t.Fatal(err)
	}
	cotejo(t, 0, "verify", "all", "--data", restored)
	if _, err := os.Stat(anchor); err != nil {
		t.Error(err)
	}
	// A disk that is not mounted must not make a new anchor of it.
	if err := os.RemoveAll(filepath.Dir(anchor)); err != nil {
		t.Fatal(err)
	}
	if said := failing(t, exitConfig, "serve", "--data", restored, "--addr", "127.0.0.1:0"); !strings.Contains(said, anchor) || !strings.Contains(said, "monte su disco") {
		t.Errorf("serve = %s", said)
	}
	if out := cotejo(t, exitFailed, "doctor", "--data", restored); !strings.Contains(out, "✗ ancla") {
		t.Errorf("doctor = %s", out)
	}
}
