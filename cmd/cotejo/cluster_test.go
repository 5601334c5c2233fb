package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"cotejo/store/storetest"
)

// canary is in the address of the database and must be nowhere else.
const canary = "canario-55d1"

// cluster is a database and the nodes that share it.
type cluster struct {
	t      *testing.T
	store  string // file with the address
	pepper string
	data   []string
	org    string
	key    string
	funds  int
}

// newCluster makes one organization with money, and so many data directories.
func newCluster(t *testing.T, url string, nodes int) *cluster {
	c := &cluster{t: t, funds: 100_000, store: filepath.Join(t.TempDir(), "base"), pepper: filepath.Join(t.TempDir(), "secreto")}
	url = strings.Replace(url, "postgres://postgres@", "postgres://postgres:"+canary+"@", 1)
	if !strings.Contains(url, canary) {
		t.Skip("COTEJO_POSTGRES is not of the user postgres without a password")
	}
	for path, text := range map[string]string{c.store: url + "\n", c.pepper: strings.Repeat("secreto", 8)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// All have one node's sources: what an acta says of a download is of that download.
	c.data = []string{loadedData(t, 0)}
	for len(c.data) < nodes {
		data := newData(t)
		if err := os.CopyFS(data, os.DirFS(c.data[0])); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(data, 0o700); err != nil {
			t.Fatal(err)
		}
		c.data = append(c.data, data)
	}
	c.org = cotejoJSON[accountReply](t, c.args(0, "accounts", "create", "ALFA")...).Orgs[0].ID
	c.key = cotejoJSON[keyReply](t, c.args(0, "keys", "create", "--org", c.org, "--mode", "live")...).Key
	cotejo(t, 0, c.args(0, "wallet", "credit", "--org", c.org, "--mxn", strconv.Itoa(c.funds), "--reason", "prueba")...)
	return c
}

// args completes a command line of a node.
func (c *cluster) args(node int, args ...string) []string {
	return append(args, "--data", c.data[node], "--store-file", c.store, "--pepper-file", c.pepper)
}

// serve starts a node and waits until it answers anything.
func (c *cluster) serve(node int) *served {
	c.t.Helper()
	addr := freeAddr(c.t)
	s := &served{base: "http://" + addr, log: new(bytes.Buffer)}
	s.cmd = program(context.Background(), c.args(node, "serve", "--addr", addr)...)
	s.cmd.Env = append(s.cmd.Env, "COTEJO_LEASE=4s", fmt.Sprintf("COTEJO_NODE=nodo-%d", node))
	s.cmd.Stderr = &lockedBuffer{to: s.log}
	if err := s.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	waitFor(c.t, func() bool {
		status, _, _, err := s.get("/livez", "")
		return err == nil && status == 200
	}, s.log.String)
	return s
}

type lockedBuffer struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.to.Write(p)
}

func (c *cluster) ready(s *served) {
	c.t.Helper()
	waitFor(c.t, func() bool {
		status, _, _, err := s.get("/readyz", "")
		return err == nil && status == 200
	}, s.log.String)
}

// ask asks about a company and returns the status and the code of a refusal.
func (c *cluster) ask(s *served) (int, string, http.Header) {
	c.t.Helper()
	status, body, header, err := s.get("/v1/empresa/EFO010101AA1", c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	code, _ := at(body, "codigo").(string)
	return status, code, header
}

// settled compares what was answered with what is stored.
func (c *cluster) settled(node, answered int) {
	c.t.Helper()
	r := cotejoJSON[verifyReply](c.t, c.args(node, "verify", "all")...)
	if !r.OK || r.Records != answered {
		c.t.Errorf("verify all = %+v; %d answers were seen", r, answered)
	}
	w := cotejoJSON[walletReply](c.t, c.args(node, "wallet", "show", "--org", c.org)...)
	if want := pesos(int64(c.funds*100 - answered*1200)); w.Balance != want {
		c.t.Errorf("the balance is %s; want %s", w.Balance, want)
	}
}

// TestStandbyTakesOver: of two nodes one answers; the other says so, and takes over
// when the first is stopped, at once, and when it is killed, after its lease.
func TestStandbyTakesOver(t *testing.T) {
	c := newCluster(t, storetest.PostgresURL(t), 2)
	a := c.serve(0)
	c.ready(a)
	ended := cotejoJSON[keyReply](t, c.args(0, "keys", "create", "--org", c.org, "--mode", "live")...)
	b := c.serve(1) // it reads all keys
	if status, code, _ := c.ask(a); status != 200 {
		t.Fatalf("the node with the turn: %d %s\n%s", status, code, a.log)
	}
	status, code, header := c.ask(b)
	if status != 503 || code != "NODO_SIN_TURNO" || header.Get("Retry-After") == "" {
		t.Errorf("the node that waits: %d %s, Retry-After %q", status, code, header.Get("Retry-After"))
	}
	if status, body, _, _ := b.get("/readyz", ""); status != 503 || !strings.Contains(fmt.Sprint(body), "en espera") {
		t.Errorf("/readyz of the node that waits: %d %v", status, body)
	}
	b.mustGet(t, 200, "/v1/salud", "")
	b.mustGet(t, 200, "/openapi.json", "")

	// The command line: what only looks works anywhere, what writes where the turn is.
	cotejo(t, 0, c.args(1, "wallet", "show", "--org", c.org)...)
	cotejo(t, exitTryAgain, c.args(1, "wallet", "credit", "--org", c.org, "--mxn", "1", "--reason", "x")...)
	cotejo(t, exitUsage, c.args(0, "backup", t.TempDir()+"/r")...)

	cotejo(t, 0, c.args(0, "keys", "deactivate", ended.ID)...)
	if code := a.stop(t); code != 0 {
		t.Errorf("the first ended with %d\n%s", code, a.log)
	}
	c.ready(b)
	b.mustGet(t, 401, "/v1/wallet", ended.Key)
	if status, code, _ := c.ask(b); status != 200 {
		t.Errorf("after the first handed over: %d %s", status, code)
	}
	a = c.serve(0)
	if status, code, _ := c.ask(a); status != 503 || code != "NODO_SIN_TURNO" {
		t.Errorf("the first, back: %d %s", status, code)
	}
	b.cmd.Process.Kill()
	b.cmd.Wait()
	// A command beside a server that waits asks that server; of a directory that
	// nobody uses it says who has the accounts.
	c.ready(a)
	out := cotejoRefused(t, exitInUse, c.args(1, "wallet", "credit", "--org", c.org, "--mxn", "1", "--reason", "x")...)
	if !strings.Contains(out, "nodo-0") || !strings.Contains(out, a.base) {
		t.Errorf("who has the accounts: %s", out)
	}
	if status, code, _ := c.ask(a); status != 200 {
		t.Errorf("after the second was killed: %d %s", status, code)
	}
	// Killed and started again: it need not wait for its own lease.
	a.cmd.Process.Kill()
	a.cmd.Wait()
	a = c.serve(0)
	if status, code, _ := c.ask(a); status != 200 {
		t.Errorf("killed and started again: %d %s", status, code)
	}
	doctor := cotejo(t, 0, c.args(0, "doctor")...)
	if !strings.Contains(doctor, "nodo-0") || !strings.Contains(doctor, "PostgreSQL") {
		t.Errorf("doctor: %s", doctor)
	}
	shown := cotejo(t, 0, c.args(0, "config", "show", "--origin")...)
	direct := cotejo(t, 0, "config", "show", "--store", "postgres://u:"+canary+"@h/b?password="+canary)
	a.stop(t)
	c.settled(1, 4)
	for what, text := range map[string]string{"log": a.log.String() + b.log.String(), "doctor": doctor, "config": shown, "config of an option": direct, "refusal": out} {
		if strings.Contains(text, canary) {
			t.Errorf("%s tells the password: %s", what, text)
		}
	}
}

// cotejoRefused is cotejo for what is printed on an error.
func cotejoRefused(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(t.Context(), args, &out, &errOut); code != wantCode {
		t.Fatalf("cotejo %s: code %d, want %d\n%s%s", strings.Join(args, " "), code, wantCode, &out, &errOut)
	}
	return errOut.String()
}

// TestFrozenNode: a node that is frozen for longer than its lease loses the accounts,
// and answers and writes nothing when it wakes.
func TestFrozenNode(t *testing.T) {
	c := newCluster(t, storetest.PostgresURL(t), 2)
	a := c.serve(0)
	c.ready(a)
	b := c.serve(1)
	answered := 0
	for range 5 {
		if status, code, _ := c.ask(a); status != 200 {
			t.Fatalf("%d %s", status, code)
		}
		answered++
	}
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return stopped(t, a.cmd.Process.Pid) }, a.log.String)
	// Requests that it will find in its sockets when it wakes.
	var group sync.WaitGroup
	statuses := make(chan int, 8)
	for range cap(statuses) {
		group.Go(func() {
			status, _, _, err := a.get("/v1/empresa/EFO010101AA1", c.key)
			if err != nil {
				status = 0
			}
			statuses <- status
		})
	}
	c.ready(b)
	for range 5 {
		if status, code, _ := c.ask(b); status != 200 {
			t.Fatalf("%d %s", status, code)
		}
		answered++
	}
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	close(statuses)
	for status := range statuses {
		if status != 503 && status != 0 {
			t.Errorf("the node that woke answered %d", status)
		}
	}
	for range 5 {
		if status, code, _ := c.ask(a); status != 503 || code != "NODO_SIN_TURNO" {
			t.Errorf("the node that woke: %d %s", status, code)
		}
	}
	if status, code, _ := c.ask(b); status != 200 {
		t.Errorf("the other: %d %s", status, code)
	}
	answered++
	a.stop(t)
	b.stop(t)
	c.settled(0, answered)
}

// TestKilledNodes kills one node after the other while requests run, each under a key
// of its own, which is repeated until it is answered: each is recorded and charged once.
func TestKilledNodes(t *testing.T) {
	c := newCluster(t, storetest.PostgresURL(t), 2)
	order := []int{0, 0, 1} // a node need not wait for its own lease
	const workers, each = 8, 36
	var keys [workers]int // answered by each worker
	replayed := 0
	for round, node := range order {
		last := round == len(order)-1
		s := c.serve(node)
		c.ready(s)
		var answered atomic.Int64
		var mu sync.Mutex
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for keys[w] < each {
					status, again := c.once(s, fmt.Sprintf("llave-%d-%d", w, keys[w]))
					if status != 200 {
						if last {
							t.Errorf("the last node: %d\n%s", status, s.log)
						}
						return // killed
					}
					keys[w]++
					answered.Add(1)
					mu.Lock()
					if again {
						replayed++
					}
					mu.Unlock()
				}
			})
		}
		if !last {
			waitFor(t, func() bool { return answered.Load() >= workers*each/4 }, s.log.String)
			s.cmd.Process.Kill()
		}
		group.Wait()
		if last {
			s.stop(t)
		} else {
			s.cmd.Wait()
		}
	}
	total := 0
	for _, n := range keys {
		total += n
	}
	t.Logf("%d answered, %d of them recorded before a kill", total, replayed)
	c.settled(0, total)
}

// once asks under a key and returns the status, 0 when there was no answer, and whether
// it was answered before.
func (c *cluster) once(s *served, key string) (status int, replayed bool) {
	req, err := http.NewRequest("GET", s.base+"/v1/empresa/EFO010101AA1", nil)
	if err != nil {
		c.t.Error(err)
		return 0, false
	}
	req.Header.Set("X-Api-Key", c.key)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, false
	}
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true"
}

// stopped reports whether every thread of a process is: on a busy machine a signal
// takes its time.
func stopped(t *testing.T, pid int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		_, state, _ := strings.Cut(string(text), ") ")
		if err != nil || !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// TestDatabaseAway: while the database does not answer, requests are refused in their
// time; when it is back the same process goes on.
func TestDatabaseAway(t *testing.T) {
	url := storetest.PostgresURL(t)
	proxy := storetest.NewProxy(t, storetest.HostOf(t, url))
	c := newCluster(t, storetest.Through(t, url, proxy.Address()), 1)
	a := c.serve(0)
	c.ready(a)
	answered := 0
	for round := range 2 {
		if status, code, _ := c.ask(a); status != 200 {
			t.Fatalf("round %d: %d %s\n%s", round, status, code, a.log)
		}
		answered++
		proxy.Down(true)
		waitFor(t, func() bool {
			status, code, header := c.ask(a)
			if status == 200 { // nothing of it needed the database yet
				answered++
				return false
			}
			if header.Get("Retry-After") == "" || code != "CUENTAS_NO_DISPONIBLES" && code != "NODO_SIN_TURNO" && code != "RESULTADO_DESCONOCIDO" {
				t.Errorf("round %d: %d %s", round, status, code)
			}
			return status == 503 && code == "CUENTAS_NO_DISPONIBLES"
		}, a.log.String)
		a.mustGet(t, 200, "/livez", "")
		a.mustGet(t, 200, "/v1/salud", "")
		if round == 0 { // for longer than the lease
			waitFor(t, func() bool {
				_, body, _, err := a.get("/v1/salud", "")
				return err == nil && strings.Contains(fmt.Sprint(body), "SIN_TURNO")
			}, a.log.String)
		}
		waitFor(t, func() bool {
			status, _, _, _ := a.get("/readyz", "")
			return status == 503
		}, a.log.String)
		proxy.Down(false)
		c.ready(a)
	}
	if code := a.stop(t); code != 0 {
		t.Errorf("ended with %d\n%s", code, a.log)
	}
	c.settled(0, answered)
}

// TestDatabaseThatLostWrites: a database that comes back without what was answered, as
// an old replica that was promoted, is not served from, by the node that knew more.
func TestDatabaseThatLostWrites(t *testing.T) {
	url := storetest.PostgresURL(t)
	c := newCluster(t, url, 1)
	a := c.serve(0)
	c.ready(a)
	if status, code, _ := c.ask(a); status != 200 {
		t.Fatalf("%d %s", status, code)
	}
	storetest.Execute(t, url, "update cotejo_group set seq = 0")
	storetest.Execute(t, url, "truncate cotejo_kv")
	if status, code, _ := c.ask(a); status != 503 || code != "NODO_SIN_TURNO" {
		t.Errorf("the first to notice: %d %s", status, code)
	}
	err := a.cmd.Wait()
	if code := a.cmd.ProcessState.ExitCode(); code != exitConfig || !strings.Contains(a.log.String(), "las cuentas no son las últimas") {
		t.Errorf("ended with %d (%v)\n%s", code, err, a.log)
	}
	// Nor does it start again: its anchor remembers.
	if said := cotejoRefused(t, exitConfig, c.args(0, "accounts", "list")...); !strings.Contains(said, "las cuentas no son las últimas") {
		t.Errorf("started again: %s", said)
	}
}

// TestDirectoryAndDatabase: neither is used with another than the one it began with.
func TestDirectoryAndDatabase(t *testing.T) {
	c := newCluster(t, storetest.PostgresURL(t), 1)
	without := cotejoRefused(t, exitConfig, "accounts", "list", "--data", c.data[0])
	if !strings.Contains(without, "PostgreSQL") {
		t.Errorf("without store: %s", without)
	}
	other := newCluster(t, storetest.PostgresURL(t), 1)
	cotejoRefused(t, exitConfig, "accounts", "list", "--data", c.data[0], "--store-file", other.store, "--pepper-file", c.pepper)

	cotejo(t, 0, c.args(0, "accounts", "list")...) // what was refused left nothing behind

	own := loadedData(t, 0)
	cotejo(t, 0, "accounts", "create", "BETA", "--data", own)
	refused := cotejoRefused(t, exitConfig, "accounts", "list", "--data", own, "--store-file", c.store)
	cotejoRefused(t, exitUsage, "restore", t.TempDir(), "--data", newData(t), "--store-file", c.store, "--pepper-file", c.pepper)
	if !strings.Contains(refused, "cuentas propias") {
		t.Errorf("with accounts of its own: %s", refused)
	}
	if err := os.Chmod(c.store, 0o644); err != nil {
		t.Fatal(err)
	}
	cotejoRefused(t, exitConfig, c.args(0, "accounts", "list")...)

	// Another secret of the keys is refused, before anything is written under it.
	wrong := filepath.Join(t.TempDir(), "otro")
	if err := os.WriteFile(wrong, bytes.Repeat([]byte("x"), 40), 0o600); err != nil {
		t.Fatal(err)
	}
	cotejoRefused(t, exitConfig, "accounts", "list", "--data", other.data[0], "--store-file", other.store, "--pepper-file", wrong)

	// Nobody there, and no password in what it says.
	away := cotejoRefused(t, exitUnavailable, "accounts", "list", "--data", loadedData(t, 0), "--store", "postgres://u:"+canary+"@127.0.0.1:1/b?sslmode=disable")
	if strings.Contains(away, canary) {
		t.Errorf("it tells the password: %s", away)
	}
}
