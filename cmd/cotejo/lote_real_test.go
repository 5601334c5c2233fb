package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cotejo/bench"
)

// realLote is a list, a key with money and a directory to serve.
type realLote struct {
	loteFiles
	data, org string
	rfcs      []string // of the list, distinct
}

func newRealLote(t *testing.T, n int) *realLote {
	t.Helper()
	f := &realLote{loteFiles: newLoteFiles(t, 0), data: loadedData(t, 0)}
	f.org = cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", f.data).Orgs[0].ID
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", f.org, "--mode", "live", "--data", f.data).Key
	cotejo(t, 0, "wallet", "credit", "--org", f.org, "--mxn", "1000000", "--reason", "prueba", "--data", f.data)
	f.write(t, f.key, key)
	random := rand.New(rand.NewPCG(7, uint64(n)))
	f.rfcs = []string{"EFO010101AA1"}
	for len(f.rfcs) < n {
		f.rfcs = append(f.rfcs, bench.RandomRFC(random))
	}
	lines := slices.Concat([]string{"rfc"}, f.rfcs, []string{"efo-010101-aa1", "XAXX010101000", "nada"})
	f.write(t, f.list, strings.Join(lines, "\r\n"))
	return f
}

func (f *realLote) command(base, out string, more ...string) []string {
	return append([]string{"lote", f.list, "--out", filepath.Join(f.dir, out), "--key-file", f.key, "--url", base, "--si"}, more...)
}

// tiered is what n companies cost in one list, in pesos.
func tiered(n int) int { return 12*min(n, 49) + 9*max(0, min(n, 249)-49) + 6*max(0, n-249) }

func (f *realLote) balance(t *testing.T) string {
	return cotejoJSON[walletReply](t, "wallet", "show", "--org", f.org, "--data", f.data).Balance
}

// check compares an NDJSON output with the list.
func (f *realLote) check(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(f.read(t, out), "\n"), "\n")
	if len(lines) != len(f.rfcs)+2 {
		t.Fatalf("%d lines of %d results", len(lines), len(f.rfcs))
	}
	seen := map[string]bool{}
	for i, line := range lines[1 : len(lines)-1] {
		var r struct {
			RFC string `json:"rfc"`
			ID  string `json:"verification_id"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.RFC != f.rfcs[i] || seen[r.ID] {
			t.Fatalf("result %d: %v %+v, want %s", i, err, r, f.rfcs[i])
		}
		seen[r.ID] = true
	}
}

func TestLoteOfARealService(t *testing.T) {
	const n = 700
	f := newRealLote(t, n)
	s := serveChild(t, f.data)
	r := cotejoJSON[loteReply](t, f.command(s.base, "r.ndjson")...)
	if r.Results != n || r.Repeated != 1 || r.Refused != 2 || r.Cost != fmt.Sprintf("%d.00", tiered(n)) || r.State != loteDone {
		t.Errorf("%+v", r)
	}
	f.check(t, "r.ndjson")
	cotejo(t, 0, f.command(s.base, "r.json", "--detalle", "resumen")...)
	var all struct {
		Lot     string            `json:"lote_id"`
		Results []json.RawMessage `json:"resultados"`
	}
	if err := json.Unmarshal([]byte(f.read(t, "r.json")), &all); err != nil || len(all.Results) != n || all.Lot == r.Lot {
		t.Errorf("%v %d", err, len(all.Results))
	}
	cotejo(t, 0, f.command(s.base, "r.csv", "--no-sancionados")...)
	if rows, err := csv.NewReader(strings.NewReader(f.read(t, "r.csv"))).ReadAll(); err != nil || len(rows) != 1+n+3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if got, want := f.balance(t), fmt.Sprintf("%d.00", 1000000-3*tiered(n)); got != want {
		t.Errorf("balance %s, want %s", got, want)
	}
	// What costs too much is refused with how many can be paid, and leaves nothing.
	poor := newRealLote(t, 60)
	org := cotejoJSON[accountReply](t, "accounts", "create", "BETA", "--data", f.data).Orgs[0].ID
	poor.write(t, poor.key, cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", f.data).Key)
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "600", "--reason", "prueba", "--data", f.data)
	if says := failing(t, exitFailed, poor.command(s.base, "r.csv")...); !strings.Contains(says, "pagan 50 de las 60 consultas") || len(poor.left(t)) != 0 {
		t.Error(says)
	}
	// What is no list, or has nothing to ask about, is explained.
	for _, text := range []string{"", "rfc\n", "rfc\nnada\nXAXX010101000\n"} {
		poor.write(t, poor.list, text)
		if says := failing(t, exitUsage, poor.command(s.base, "r.csv")...); !strings.Contains(says, "Corrija") || len(poor.left(t)) != 0 {
			t.Errorf("%q: %s", text, says)
		}
	}
	if code := s.stop(t); code != 0 {
		t.Fatalf("%d: %s", code, s.log)
	}
	if v := cotejoJSON[verifyReply](t, "verify", "all", "--data", f.data); !v.OK || v.Records != 3*n {
		t.Errorf("verify all = %+v", v)
	}
}

// TestLoteAcrossKilledServers kills the server again and again while a client receives
// one batch from it: the batch is charged once and its output is whole.
func TestLoteAcrossKilledServers(t *testing.T) {
	const n = 5000
	f := newRealLote(t, n)
	s := serveChild(t, f.data)
	there := *s
	was := pause
	pause = func(ctx context.Context, _ time.Duration) error { // until it is there again
		waitFor(t, func() bool { return ctx.Err() != nil || there.answers() }, func() string { return "el servidor no escucha" })
		return ctx.Err()
	}
	defer func() { pause = was }()

	done, restarted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(restarted)
		random := rand.New(rand.NewPCG(3, 3))
		delay := time.Duration(0)
		for range kills(t, 4) {
			waitFor(t, func() bool { // the first time; then what was received stays
				info, err := os.Stat(filepath.Join(f.dir, "r.ndjson.parcial"))
				return err == nil && info.Size() > 0 || ended(done)
			}, func() string { return "nothing was received" })
			if ended(done) {
				return
			}
			killAfter(s.cmd, delay)
			s = startServingAt(t, f.data, strings.TrimPrefix(there.base, "http://"))
			s.listens(t)
			delay = time.Duration(random.IntN(300)) * time.Millisecond
		}
	}()
	var out, errOut bytes.Buffer
	code := run(t.Context(), f.command(s.base, "r.ndjson"), &out, &errOut)
	close(done)
	<-restarted
	if cuts := strings.Count(errOut.String(), " lote esperando "); code != 0 || cuts == 0 {
		t.Fatalf("%d, %d cuts\n%s%s", code, cuts, &out, &errOut)
	}
	f.check(t, "r.ndjson")
	if got, want := f.balance(t), fmt.Sprintf("%d.00", 1000000-tiered(n)); got != want {
		t.Errorf("balance %s, want %s: it was charged once", got, want)
	}
	if code := s.stop(t); code != 0 {
		t.Fatalf("%d: %s", code, s.log)
	}
	if v := cotejoJSON[verifyReply](t, "verify", "all", "--data", f.data); !v.OK || v.Records != n {
		t.Errorf("verify all = %+v", v)
	}
}

// ended reports whether a channel is closed.
func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
