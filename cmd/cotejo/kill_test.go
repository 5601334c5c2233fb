package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cotejo/accounts"
	"cotejo/ledger"
)

// kills returns how many times the tests below kill a process: COTEJO_KILLS, or
// a few.
func kills(t *testing.T, few int) int {
	n, err := strconv.Atoi(os.Getenv("COTEJO_KILLS"))
	if err != nil {
		return few
	}
	return max(n, few)
}

// moments spreads n delays over a duration, one at random in each n-th of it, in
// random order: the kills land in every phase, however fast the machine is.
func moments(random *rand.Rand, n int, over time.Duration) []time.Duration {
	delays := make([]time.Duration, n)
	for i, at := range random.Perm(n) {
		delays[i] = time.Duration((float64(at) + random.Float64()) / float64(n) * float64(over))
	}
	return delays
}

// killAfter kills a started process when it has lived for that long, and returns
// when it is dead.
func killAfter(cmd *exec.Cmd, delay time.Duration) {
	timer := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // says that it was killed, or had ended before
}

// TestKilledServerLosesNothing kills the real server, while it starts and under
// load, again and again on one data directory. Every answer that a client has
// seen must be there once, with its charge; sums must hold; every record must
// recompute.
func TestKilledServerLosesNothing(t *testing.T) {
	rounds := kills(t, 4)
	data := loadedData(t, 0)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	const funds = 90_000_000 // pesos
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", strconv.Itoa(funds), "--reason", "prueba", "--data", data)

	// How long it takes to listen, at the least: every other kill comes before that,
	// and the others after the first answer.
	startup := time.Hour
	for range 3 {
		started := time.Now()
		s := serveChild(t, data)
		startup = min(startup, time.Since(started))
		s.stop(t)
	}

	seen := map[string]string{}
	starting, serving := 0, 0
	random := rand.New(rand.NewPCG(9, 9))
	early := moments(random, (rounds+1)/2, startup)
	for round := range rounds {
		s := startServing(t, data)
		dead, answered := make(chan struct{}), make(chan struct{})
		var first sync.Once
		var mu sync.Mutex
		var wg sync.WaitGroup
		fresh := map[string]string{} // answers of this round; under mu
		for range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					status, body, _, err := s.get(fmt.Sprintf("/v1/empresa/EFO0101%02dAA1", 1+i%28), key)
					if err != nil {
						select {
						case <-dead:
							return
						case <-time.After(5 * time.Millisecond): // not listening yet, or cut
							continue
						}
					}
					id, _ := at(body, "verification_id").(string)
					sha, _ := at(body, "registro_sha256").(string)
					mu.Lock()
					if _, repeated := seen[id]; repeated || status != 200 || id == "" || sha == "" {
						t.Errorf("vuelta %d: respuesta %d con id repetido o ausente: %v", round, status, body)
					}
					seen[id], fresh[id] = sha, sha
					mu.Unlock()
					first.Do(func() { close(answered) })
				}
			})
		}
		delay := early[round/2]
		if round%2 == 1 {
			select {
			case <-answered:
			case <-time.After(20 * time.Second):
				t.Fatalf("el servidor no responde: %s", s.log)
			}
			delay = time.Duration(random.IntN(300)) * time.Millisecond
		}
		killAfter(s.cmd, delay)
		close(dead)
		wg.Wait()
		if len(fresh) == 0 {
			starting++
		} else {
			serving++
		}

		// What is stored never changes: reading all of it again after each kill
		// would only take its time.
		if round%10 != 9 && round != rounds-1 {
			if lost, double := audit(t, data, org, fresh); lost > 0 || double > 0 {
				t.Fatalf("vuelta %d: de %d respuestas vistas faltan %d; %d se cobraron más de una vez", round, len(fresh), lost, double)
			}
			continue
		}
		r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data)
		if !r.OK || r.Records < len(seen) {
			t.Fatalf("vuelta %d: verify all = %+v; %d respuestas vistas", round, r, len(seen))
		}
		wallet := cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data)
		if want := pesos(funds*100 - int64(r.Records)*1200); wallet.Balance != want {
			t.Fatalf("vuelta %d: %d registros y saldo %s, se esperaba %s", round, r.Records, wallet.Balance, want)
		}
	}
	lost, double := audit(t, data, org, seen)
	t.Logf("%d kills, %d acknowledged, %d lost, %d double (%d while starting, %d while serving)", rounds, len(seen), lost, double, starting, serving)
	if lost > 0 || double > 0 {
		t.Errorf("de %d respuestas vistas faltan %d; %d se cobraron más de una vez", len(seen), lost, double)
	}
	if starting == 0 || serving == 0 {
		t.Errorf("las muertes no llegaron en todas las fases: %d al arrancar, %d sirviendo", starting, serving)
	}
}

// audit looks for each answer that a client saw, and counts the charges of each.
func audit(t *testing.T, data, org string, seen map[string]string) (lost, double int) {
	t.Helper()
	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	id, err := accounts.ParseOrg(org)
	if err != nil {
		t.Fatal(err)
	}
	o, err := n.accounts.Organization(id)
	if err != nil {
		t.Fatal(err)
	}
	charges := map[string]int{}
	err = n.ledger.Movements(o.Account, ledger.Page{}, func(m *ledger.Movement) error {
		if m.Kind == ledger.KindCharge {
			charges[m.Record.String()]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, times := range charges {
		if times > 1 {
			double++
		}
	}
	for id, sha := range seen {
		parsed, ok := n.ledger.ParseID(id)
		record, err := n.ledger.Lookup(parsed)
		if !ok || err != nil || !strings.Contains(string(record.Acta), sha) || record.Centavos != 1200 || charges[id] == 0 {
			lost++
		}
	}
	return lost, double
}

// TestKilledIngestServesTheLastGoodEdition kills the ingest of the next version
// at any instant: the edition before or the one after is served, never a mixture.
func TestKilledIngestServesTheLastGoodEdition(t *testing.T) {
	ingesting := func(data string) *exec.Cmd {
		cmd := program(t.Context(), "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	// The shortest of a few: the first run of a program is slow. Half of the
	// delays are then well beyond it.
	unkilled := time.Hour
	for range 3 {
		data := loadedData(t, 0)
		started := time.Now()
		if err := ingesting(data).Wait(); err != nil {
			t.Fatal(err)
		}
		unkilled = min(unkilled, time.Since(started))
	}

	rounds := kills(t, 6)
	older, newer, during := 0, 0, 0
	for round, delay := range moments(rand.New(rand.NewPCG(9, 10)), rounds, 5*unkilled/2) {
		data := loadedData(t, 0)
		before := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
		killAfter(ingesting(data), delay)
		if left, err := os.ReadDir(data + "/fuentes/tmp"); err != nil {
			t.Fatal(err)
		} else if len(left) > 0 {
			during++
		}

		cotejo(t, 0, "doctor", "--data", data)
		killed := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
		cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
		after := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
		switch killed {
		case before:
			older++
		case after:
			newer++
		default:
			t.Fatalf("vuelta %d: la edición servida no es la anterior ni la nueva:\n%s", round, killed)
		}
		cotejo(t, 0, "verify", "all", "--data", data)
	}
	t.Logf("%d kills: %d before the new edition, %d after; %d left temporary files", rounds, older, newer, during)
	if older == 0 || newer == 0 {
		t.Errorf("las muertes no llegaron en todas las fases: %d antes de publicar, %d después", older, newer)
	}
}
