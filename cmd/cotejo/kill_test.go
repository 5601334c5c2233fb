package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// kills returns how many times the tests below kill a process: COTEJO_KILLS, or
// a few.
func kills(t *testing.T, few int) int {
	n, err := strconv.Atoi(os.Getenv("COTEJO_KILLS"))
	if err != nil {
		return few
	}
	return n
}

// TestKilledServerLosesNothing kills the real server under load, again and
// again on one data directory. Every answer that a client has seen must be there
// once, with its charge; sums must hold; every record must recompute.
func TestKilledServerLosesNothing(t *testing.T) {
	rounds := kills(t, 3)
	data := t.TempDir()
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	org := cotejoJSON[orgReply](t, "orgs", "create", "--name", "ALFA", "--data", data).ID
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	const funds = 90_000_000 // pesos
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", strconv.Itoa(funds), "--reason", "prueba", "--data", data)

	random := rand.New(rand.NewPCG(9, 9))
	seen := map[string]string{}
	for round := range rounds {
		s := serveChild(t, data)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 16 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; ; i++ {
					status, body, _, err := s.get(fmt.Sprintf("/v1/empresa/EFO0101%02dAA1", 1+i%28), key)
					if err != nil {
						return // killed
					}
					id, _ := at(body, "verification_id").(string)
					sha, _ := at(body, "registro_sha256").(string)
					mu.Lock()
					if _, repeated := seen[id]; repeated || status != 200 || id == "" {
						t.Errorf("vuelta %d: respuesta %d con id repetido o ausente: %v", round, status, body)
					}
					seen[id] = sha
					mu.Unlock()
				}
			}()
		}
		// How far the process gets before it dies is the point of the test.
		wait, cancel := context.WithTimeout(t.Context(), time.Duration(20+random.IntN(300))*time.Millisecond)
		<-wait.Done()
		cancel()
		if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.cmd.Wait()
		wg.Wait()

		r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data)
		if !r.OK || r.Records < len(seen) {
			t.Fatalf("vuelta %d: verify all = %+v; %d respuestas vistas", round, r, len(seen))
		}
		wallet := cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data)
		if want := pesos(funds*100 - int64(r.Records)*1200); wallet.Balance != want {
			t.Fatalf("vuelta %d: %d registros y saldo %s, se esperaba %s", round, r.Records, wallet.Balance, want)
		}
	}
	missing := 0
	n, err := openNode(configuration{values: map[string]string{"data": data}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	for id, sha := range seen {
		parsed, ok := n.ledger.ParseID(id)
		record, err := n.ledger.Lookup(parsed)
		if !ok || err != nil || !strings.Contains(string(record.Acta), sha) || record.Centavos != 1200 {
			missing++
		}
	}
	t.Logf("%d kills, %d acknowledged, %d lost, 0 double", rounds, len(seen), missing)
	if missing > 0 || len(seen) == 0 {
		t.Fatalf("%d de %d respuestas vistas no están", missing, len(seen))
	}
}

// TestKilledIngestServesTheLastGoodEdition kills the ingest of the next version
// at any instant: the edition before or the one after is served, never a mixture.
func TestKilledIngestServesTheLastGoodEdition(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for round := range kills(t, 5) {
		data := t.TempDir()
		cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
		before := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")

		cmd := program(t.Context(), "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(60_000))*time.Microsecond)
		<-wait.Done()
		cancel()
		cmd.Process.Kill()
		cmd.Wait()

		cotejo(t, 0, "doctor", "--data", data)
		killed := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
		cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
		after := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
		if killed != before && killed != after {
			t.Fatalf("vuelta %d: la edición servida no es la anterior ni la nueva:\n%s", round, killed)
		}
		cotejo(t, 0, "verify", "all", "--data", data)
	}
}
