package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// killedList is a list that is sent again and again until its answer is whole.
type killedList struct {
	rfcs   []string
	body   []byte
	key    string // Idempotency-Key
	answer []byte // NDJSON; nil until it is whole
	tries  int    // processes that it took
}

func newKilledList(batch, n int) *killedList {
	l := &killedList{key: fmt.Sprintf("lista-%d", batch)}
	for i := range n {
		l.rfcs = append(l.rfcs, fmt.Sprintf("%c%c%c%02d%02d%02dA%c%d", 'A'+batch%26, 'A'+i/26%26, 'A'+i/676%26, i%100, 1+i%12, 1+i%28, 'A'+batch/26%26, i%10))
	}
	l.body, _ = json.Marshal(l.rfcs)
	return l
}

// post sends the list to a server.
func (l *killedList) post(s *served, key, prefer string) (*http.Response, error) {
	req, err := http.NewRequest("POST", s.base+"/v1/empresa/lote?detalle=resumen", bytes.NewReader(l.body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"X-Api-Key": key, "Idempotency-Key": l.key, "Content-Type": "application/json", "Accept": "application/x-ndjson", "Prefer": prefer} {
		req.Header.Set(name, value)
	}
	return http.DefaultClient.Do(req)
}

// send asks a server for the list. begun is called when the answer begins.
func (l *killedList) send(s *served, key string, begun func()) error {
	resp, err := l.post(s, key, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	begun()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("%w: %d %s", errAnswer, resp.StatusCode, answer)
	}
	l.answer = answer
	return nil
}

var errAnswer = errors.New("respuesta")

// cost is what a list costs whose first positions uses pay.
func (l *killedList) cost(uses int) (centavos int64) {
	for position := uses + 1; position <= len(l.rfcs); position++ {
		switch {
		case position < 50:
			centavos += 1200
		case position < 250:
			centavos += 900
		default:
			centavos += 600
		}
	}
	return centavos
}

// check compares a whole answer with the list; seen are the ids of all lists.
func (l *killedList) check(t *testing.T, seen map[string]bool) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(l.answer, []byte("\n")), []byte("\n"))
	if len(lines) != len(l.rfcs)+2 || !bytes.HasPrefix(lines[len(lines)-1], []byte(`{"fin":`)) {
		t.Fatalf("%s: %d renglones de %d", l.key, len(lines), len(l.rfcs)+2)
	}
	for i, line := range lines[1 : len(lines)-1] {
		var item struct {
			RFC string `json:"rfc"`
			ID  string `json:"verification_id"`
		}
		if err := json.Unmarshal(line, &item); err != nil || item.RFC != l.rfcs[i] || seen[item.ID] {
			t.Fatalf("%s, %d: %s (%v), repetido %v", l.key, i+1, line, err, seen[item.ID])
		}
		seen[item.ID] = true
	}
}

// TestKilledServerFinishesLists kills the real server while it works off lists, and
// while it takes them up again. Each list is finished by the servers that follow: one
// record and one charge for each RFC, every position at the price of its place, and an
// answer that is the same whoever gives it.
func TestKilledServerFinishesLists(t *testing.T) {
	rounds := kills(t, 6)
	const funds, uses, length = 9_000_000, 60, 4000
	data := loadedData(t, 0)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", strconv.Itoa(funds), "--reason", "prueba", "--data", data)
	cotejo(t, 0, "wallet", "credit", "--org", org, "--uses", "COMPANY:"+strconv.Itoa(uses), "--reason", "usos", "--data", data)

	seen := map[string]bool{}
	spent, records := int64(0), 0
	var done []*killedList
	whole := func(l *killedList) {
		l.check(t, seen)
		left := 0
		if len(done) == 0 {
			left = uses
		}
		spent += l.cost(left)
		records += len(l.rfcs)
		done = append(done, l)
	}
	s := serveChild(t, data)
	began := time.Now()
	l := newKilledList(0, length)
	if err := l.send(s, key, func() {}); err != nil {
		t.Fatal(err)
	}
	unkilled := time.Since(began)
	whole(l)
	s.stop(t)

	random := rand.New(rand.NewPCG(7, 50))
	l = newKilledList(1, length)
	interrupted := 0
	for round, delay := range moments(random, rounds, unkilled) {
		s := startServing(t, data)
		l.tries++
		begun, over, dead := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var once sync.Once
		go func() {
			defer close(over)
			for l.answer == nil {
				err := l.send(s, key, func() { once.Do(func() { close(begun) }) })
				if errors.Is(err, errAnswer) {
					t.Errorf("vuelta %d: %v", round, err)
					return
				}
				select {
				case <-dead:
					return
				case <-time.After(2 * time.Millisecond): // not listening yet, or cut
				}
			}
		}()
		if round%3 != 0 { // the others die while they start or take the list up
			select {
			case <-begun:
			case <-time.After(20 * time.Second):
				t.Fatalf("el servidor no responde: %s", s.log)
			}
		}
		killAfter(s.cmd, delay)
		close(dead)
		<-over
		if l.answer == nil {
			interrupted++
			continue
		}
		whole(l)
		l = newKilledList(len(done), length)
	}

	s = serveChild(t, data)
	if err := l.send(s, key, func() {}); err != nil {
		t.Fatal(err)
	}
	whole(l)
	for _, l := range done { // what was answered is answered again, to the byte
		answer := l.answer
		if err := l.send(s, key, func() {}); err != nil || !bytes.Equal(l.answer, answer) {
			t.Errorf("%s: repetida es otra (%v)", l.key, err)
		}
	}
	s.stop(t)
	r := cotejoJSON[verifyReply](t, "verify", "all", "--data", data)
	wallet := cotejoJSON[walletReply](t, "wallet", "show", "--org", org, "--data", data)
	t.Logf("%d kills, %d lists whole, %d times interrupted, %d records, %d ids", rounds, len(done), interrupted, r.Records, len(seen))
	if want := pesos(funds*100 - spent); wallet.Balance != want || r.Records != records || len(seen) != records || !r.OK {
		t.Errorf("saldo %s, se esperaba %s; %d registros de %d; %+v", wallet.Balance, want, r.Records, records, r)
	}
	if interrupted == 0 {
		t.Error("ninguna muerte llegó a la mitad de una lista")
	}
}
