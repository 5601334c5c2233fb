package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cotejo/machine"
)

// TestNoSpaceRefusesWhatIsPaid fills the disk under a server: what would be
// recorded is refused and not charged, everything else goes on, and room is
// enough to go on without a restart.
func TestNoSpaceRefusesWhatIsPaid(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	statfs = func(string) (machine.Space, error) { return machine.Space{Free: free.Load(), Total: 1 << 42}, nil }
	defer func() { statfs = machine.Statfs }()
	data, org, key := shop(t)
	r := startHere(t, map[string]string{"data": data, "min_free": "1GiB"}, nil)
	body, _ := r.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	id := at(body, "verification_id").(string)
	balance := cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data).Balance
	is := func(status int) {
		t.Helper()
		waitFor(t, func() bool { got, _, _, _ := r.get("/v1/empresa/EFO010101AA1", key); return got == status },
			func() string { return fmt.Sprintf("nunca %d: %s", status, r.log) })
	}

	free.Store(1<<30 - 1)
	waitFor(t, func() bool { status, _, _, _ := r.get("/readyz", ""); return status == 503 }, func() string { return "sigue listo" })
	is(503)
	body, header := r.mustGet(t, 503, "/v1/empresa/EFO010101AA1", key)
	if body["codigo"] != "ALMACENAMIENTO_LLENO" || header.Get("Retry-After") == "" || header.Get("X-Costo") != "" {
		t.Errorf("lleno = %v %v", body, header)
	}
	r.mustGet(t, 200, "/v1/verificaciones/"+id, key)
	r.mustGet(t, 200, "/v1/precios", "")
	r.mustGet(t, 200, "/livez", "")
	if body, _ := r.mustGet(t, 503, "/readyz", ""); !strings.Contains(fmt.Sprint(body["detail"]), "disco: ") {
		t.Errorf("readyz = %v", body)
	}
	environment = func() []string { return append(quiet[:len(quiet):len(quiet)], "COTEJO_MIN_FREE=1GiB") }
	failing(t, exitFailed, "doctor", "--data", data)
	environment = func() []string { return quiet }

	free.Store(1<<30 + 1<<20) // not yet a tenth more
	r.disk.Poll()
	r.mustGet(t, 503, "/v1/empresa/EFO010101AA1", key)
	if got := cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data).Balance; got != balance {
		t.Errorf("saldo %s, era %s: se cobró lo rechazado", got, balance)
	}
	free.Store(2 << 30)
	is(200)
	r.mustGet(t, 200, "/readyz", "")
	r.end(t)
	if log := r.log.String(); strings.Count(log, "no se aceptan consultas con costo") != 1 || strings.Count(log, "hay espacio otra vez") != 1 {
		t.Errorf("se dijo más o menos de una vez: %s", log)
	}
}

// TestNoSpaceKeepsTheEdition loads a source on a disk that has no room for it.
func TestNoSpaceKeepsTheEdition(t *testing.T) {
	data := loadedData(t, 0)
	statfs = func(string) (machine.Space, error) { return machine.Space{Free: 1<<30 - 1, Total: 1 << 42}, nil }
	environment = func() []string { return append(quiet[:len(quiet):len(quiet)], "COTEJO_MIN_FREE=1GiB") }
	defer func() { statfs, environment = machine.Statfs, func() []string { return quiet } }()
	before := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
	if said := failing(t, exitIO, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data); !strings.Contains(said, "libres en el disco") {
		t.Errorf("se dijo: %s", said)
	}
	if after := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json"); after != before {
		t.Error("la edición cambió sin espacio")
	}
	environment = func() []string { return quiet }
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
}

// TestARealDiskThatFills needs a file system of its own to fill.
func TestARealDiskThatFills(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("no se puede montar un disco pequeño: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	data := disk + "/datos"
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "9000000", "--reason", "prueba", "--data", data)
	r := startHere(t, map[string]string{"data": data, "min_free": "24MiB"}, nil)
	seen := &answers{sha: map[string]string{}}
	body, _ := r.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	seen.add(at(body, "verification_id").(string), at(body, "registro_sha256").(string))
	ballast := disk + "/lastre"
	var space unix.Statfs_t
	if err := unix.Statfs(disk, &space); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ballast, make([]byte, int(space.Bavail)*int(space.Bsize)-16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	is := func(status int) {
		t.Helper()
		waitFor(t, func() bool {
			got, body, _, _ := r.get("/v1/empresa/EFO010101AA1", key)
			if got == 200 {
				seen.add(at(body, "verification_id").(string), at(body, "registro_sha256").(string))
			}
			return got == status
		}, func() string { return fmt.Sprintf("nunca %d: %s", status, r.log) })
	}
	is(503)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	is(200)
	r.end(t)
	if lost, double := audit(t, data, org, seen.sha); lost > 0 || double > 0 {
		t.Errorf("de %d respuestas faltan %d, %d dobles", len(seen.sha), lost, double)
	}
}

// TestAClockThatJumpsIsNotFollowed moves the clock of a server a day forward and
// a day back.
func TestAClockThatJumpsIsNotFollowed(t *testing.T) {
	var off atomic.Int64
	system := machine.SystemClocks()
	oldClock, oldNow := clock, now
	clock = machine.NewClock(func() machine.Reading {
		r := system()
		r.Wall = r.Wall.Add(time.Duration(off.Load()))
		return r
	})
	now = clock.Now
	defer func() { clock, now = oldClock, oldNow }()
	data, _, key := shop(t)
	r := startHere(t, map[string]string{"data": data}, nil)
	day := func() string {
		t.Helper()
		body, _ := r.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
		return strings.Split(at(body, "verification_id").(string), "-")[1]
	}
	alerts := func() string {
		t.Helper()
		body, _ := r.mustGet(t, 200, "/v1/salud", "")
		return fmt.Sprint(body["alertas"])
	}
	before := day()
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		off.Store(int64(jump))
		waitFor(t, func() bool { return strings.Contains(alerts(), "RELOJ") }, func() string { return "sin alerta: " + alerts() })
		if got := day(); got != before {
			t.Errorf("salto de %v: identificadores del día %s, eran del %s", jump, got, before)
		}
		r.mustGet(t, 200, "/readyz", "")
		said := map[bool]string{true: "adelantó 24h0m0s", false: "atrasó 24h0m0s"}[jump > 0]
		waitFor(t, func() bool { return strings.Contains(r.log.String(), said) }, func() string { return "no se dijo: " + r.log.String() })
		off.Store(0)
		waitFor(t, func() bool { return !strings.Contains(alerts(), "RELOJ") }, func() string { return "alerta sin fin: " + alerts() })
	}
}

// TestEndedUnderLoad asks a real server to end while clients charge, again and
// again: what they saw is stored, once, and nothing was charged that they did
// not see. What is refused is a connection, or 503.
func TestEndedUnderLoad(t *testing.T) {
	const rounds, clients = 5, 8
	data, org, key := shop(t)
	seen := &answers{sha: map[string]string{}}
	refused, cut := 0, 0
	for round := range rounds {
		s := serveChild(t, data)
		var wg sync.WaitGroup
		var mu sync.Mutex
		target := seen.count() + 50*(round+1)
		for client := range clients {
			wg.Go(func() {
				for i := client; ; i++ {
					status, body, _, err := s.get(fmt.Sprintf("/v1/empresa/EFO0101%02dAA1", 1+i%28), key)
					switch {
					case err != nil:
						mu.Lock()
						cut++
						mu.Unlock()
						return
					case status == 503:
						mu.Lock()
						refused++
						mu.Unlock()
					case status == 200:
						seen.add(at(body, "verification_id").(string), at(body, "registro_sha256").(string))
					default:
						t.Errorf("respuesta %d: %v", status, body)
						return
					}
				}
			})
		}
		waitFor(t, func() bool { return t.Failed() || seen.count() >= target }, func() string { return "sin carga: " + s.log.String() })
		started := time.Now()
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Wait()
		if code, took := s.cmd.ProcessState.ExitCode(), time.Since(started); code != 0 || took > 30*time.Second {
			t.Fatalf("vuelta %d: código %d en %v: %s", round, code, took, s.log)
		}
		wg.Wait()
	}
	lost, double := audit(t, data, org, seen.sha)
	r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data)
	t.Logf("%d ends, %d acknowledged, %d stored, %d refused, %d connections cut, %d lost, %d double", rounds, seen.count(), r.Records, refused, cut, lost, double)
	if lost > 0 || double > 0 || !r.OK {
		t.Errorf("faltan %d, %d dobles, verify all = %+v", lost, double, r)
	}
	if r.Records != seen.count() {
		t.Errorf("se guardaron %d y los clientes vieron %d: se cobró lo que nadie vio", r.Records, seen.count())
	}
}
