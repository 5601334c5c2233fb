package machine

import (
	"errors"
	"strings"
	"testing"
)

func TestDiskTurnsWithHysteresis(t *testing.T) {
	var s Space
	var failure error
	d := NewDisk(1000, func(string) (Space, error) { return s, failure }, "datos")
	f := func(free uint64, wantFull, wantChanged bool) {
		t.Helper()
		s.Free = free
		if changed := d.Poll(); changed != wantChanged || d.Full() != wantFull || (d.Free() != nil) != wantFull {
			t.Errorf("%d libres: cambió %v, lleno %v, %v", free, changed, d.Full(), d.Free())
		}
	}
	if d.Full() || d.Free() != nil {
		t.Error("lleno sin mirar")
	}
	f(1000, false, false)
	f(999, true, true)
	f(1000, true, false)
	f(1099, true, false)
	f(1100, false, true)
	f(1050, false, false)
	f(0, true, true)

	// A disk that does not answer keeps refusing, and never had room.
	failure = errors.New("no responde")
	if d.Poll() || !d.Full() || !strings.Contains(d.Free().Error(), "no responde") {
		t.Errorf("sin respuesta: lleno %v, %v", d.Full(), d.Free())
	}
	failure = nil
	f(5000, false, true)
	failure = errors.New("no responde")
	if !d.Poll() || d.Full() || d.Free() == nil {
		t.Errorf("sin respuesta con lugar: lleno %v, %v", d.Full(), d.Free())
	}
}

func TestLeastFreeSpace(t *testing.T) {
	f := func(least, total, want uint64) {
		t.Helper()
		if got := leastOf(least, total); got != want {
			t.Errorf("leastOf(%d, %d) = %d, se esperaba %d", least, total, got, want)
		}
	}
	f(0, 100*gib, 0)
	f(5, 100*gib, 5)
	f(MinFreeAuto, 8*gib, gib)
	f(MinFreeAuto, 100*gib, 5*gib)
	f(MinFreeAuto, 1000*gib, 16*gib)
}

func TestTheFullestDiskDecides(t *testing.T) {
	free := map[string]uint64{"datos": 5000, "cuentas": 10}
	d := NewDisk(1000, func(path string) (Space, error) { return Space{Free: free[path]}, nil }, "datos", "cuentas")
	if d.Poll(); !d.Full() || !strings.Contains(d.Free().Error(), "cuentas") {
		t.Errorf("lleno %v, %v", d.Full(), d.Free())
	}
	off := NewDisk(0, func(path string) (Space, error) { return Space{}, nil }, "datos")
	if off.Poll(); off.Full() {
		t.Error("apagado y lleno")
	}
	if s, err := Statfs(t.TempDir()); err != nil || s.Total == 0 || s.Free > s.Total {
		t.Errorf("Statfs = %+v, %v", s, err)
	}
}

// TestADiskThatHangsBlocksNobody: whoever wants to know gets the last answer.
func TestADiskThatHangsBlocksNobody(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan Space)
	d := NewDisk(1000, func(string) (Space, error) {
		asked <- struct{}{}
		return <-answer, nil
	}, "datos")
	polled := make(chan bool)
	go func() { polled <- d.Poll() }()
	<-asked
	if d.Full() || d.Free() != nil {
		t.Errorf("lleno %v, %v antes de que respondiera", d.Full(), d.Free())
	}
	answer <- Space{Free: 1}
	if !<-polled || !d.Full() {
		t.Error("no se tomó su respuesta")
	}
}
