package main

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"cotejo/store/storetest"
)

// TestStandbyFinishesLists: a list that a node began is finished by the one that takes
// the accounts over, without being asked to, whether the first was killed, was stopped
// or froze; nothing of it is recorded or charged twice.
func TestStandbyFinishesLists(t *testing.T) {
	const length = 4000
	c := newCluster(t, storetest.PostgresURL(t), 2)
	seen := map[string]bool{}
	var done []*killedList
	interrupted := 0
	at0, at1 := c.serve(0), c.serve(1)
	c.ready(at0)
	for round, leave := range []func(s *served){
		func(s *served) { s.cmd.Process.Kill(); s.cmd.Wait() },
		func(s *served) { s.stop(t) },
		func(s *served) {
			if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return stopped(t, s.cmd.Process.Pid) }, s.log.String)
		},
	} {
		first, second := at0, at1
		if round%2 == 1 {
			first, second = at1, at0
		}
		l := newKilledList(round, length)
		resp, err := l.post(first, c.key, "respond-async")
		if err != nil || resp.StatusCode != 202 {
			t.Fatalf("round %d: %v %v\n%s", round, resp, err, first.log)
		}
		resp.Body.Close()
		path := resp.Header.Get("Location")
		waitFor(t, func() bool {
			body, _ := first.mustGet(t, 200, path, c.key)
			return at(body, "avance.hechas") != 0.
		}, first.log.String)
		leave(first)
		if w := cotejoJSON[walletReply](t, c.args(1-round%2, "wallet", "show", "--org", c.org)...); len(w.Holds) > 0 {
			interrupted++
		}
		c.ready(second)
		waitFor(t, func() bool {
			body, _ := second.mustGet(t, 200, path, c.key)
			return at(body, "estado") == "TERMINADO"
		}, second.log.String)
		switch round {
		case 0:
			at0 = c.serve(0)
		case 1:
			at1 = c.serve(1)
		default: // it wakes, and must not go on
			if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				status, _, _, err := first.get(path, c.key)
				return err == nil && status == 503
			}, first.log.String)
		}
		if err := l.send(second, c.key, func() {}); err != nil {
			t.Fatal(err)
		}
		l.check(t, seen)
		done = append(done, l)
	}
	for _, l := range done {
		answer := l.answer
		if err := l.send(at1, c.key, func() {}); err != nil || !bytes.Equal(l.answer, answer) {
			t.Errorf("%s: asked again it is another (%v)", l.key, err)
		}
	}
	at0.stop(t)
	at1.stop(t)
	r := cotejoJSON[verifyReply](t, c.args(1, "verify", "all")...)
	w := cotejoJSON[walletReply](t, c.args(1, "wallet", "show", "--org", c.org)...)
	records := len(done) * length
	if want := pesos(int64(c.funds)*100 - int64(len(done))*done[0].cost(0)); !r.OK || r.Records != records || len(seen) != records || w.Balance != want || len(w.Holds) != 0 {
		t.Errorf("verify all = %+v, %d ids; balance %s, want %s; %s", r, len(seen), w.Balance, want, fmt.Sprint(w.Holds))
	}
	if interrupted == 0 {
		t.Error("no list was interrupted")
	}
	t.Logf("%d of %d lists were interrupted", interrupted, len(done))
}
