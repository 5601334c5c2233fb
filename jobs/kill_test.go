package jobs

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for a service that runs a job as often
// as it can, so that the test below can kill it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("COTEJO_TEST_JOBS"); dir != "" {
		runForEver(dir)
	}
	os.Exit(m.Run())
}

// runForEver says of each run that it began and that it is written down.
func runForEver(dir string) {
	n := 0
	s, err := Open(Config{Dir: dir, Now: time.Now, Jobs: []Job{{Name: "tarea", Spec: twice, Run: func(context.Context, time.Time, func(string)) (Result, error) {
		fmt.Println("empieza", n)
		time.Sleep(10 * time.Millisecond) // some of the kills come now
		return Result{Detail: strconv.Itoa(n)}, nil
	}}}})
	if err != nil {
		panic(err)
	}
	if runs := s.States()[0].Runs; len(runs) > 0 {
		for _, r := range runs {
			if v, err := strconv.Atoi(r.Detail); err == nil {
				n = max(n, v)
			}
		}
	}
	for {
		n++
		if _, err := s.Run(context.Background(), "tarea", nil); err != nil {
			panic(err)
		}
		fmt.Println("termina", n)
	}
}

// TestKilledRunsAreKnown kills the process at any instant. What it said was
// written down is there, and a run that had begun and not ended is shown as
// interrupted.
func TestKilledRunsAreKnown(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("COTEJO_KILLS"))
	if err != nil {
		rounds = 6
	}
	dir := t.TempDir() + "/jobs"
	random := rand.New(rand.NewPCG(3, 3))
	acknowledged, cut := 0, 0
	for round := range rounds {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "COTEJO_TEST_JOBS="+dir, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		begun, ended, seen := 0, 0, 0
		for enough := 1 + round%2 + random.IntN(12); lines.Scan(); {
			var word string
			var n int
			if _, err := fmt.Sscan(lines.Text(), &word, &n); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			if word == "empieza" {
				begun = n
			} else {
				ended = n
				acknowledged++
			}
			if seen++; seen == enough {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()

		s, err := Open(Config{Dir: dir, Now: time.Now, Jobs: []Job{{Name: "tarea", Spec: twice}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.jobs[0].record.unreadable; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		st := s.States()[0]
		last := st.Runs[len(st.Runs)-1]
		switch last.Status {
		case OK:
			if n, _ := strconv.Atoi(last.Detail); n < ended || n < begun-1 {
				t.Fatalf("round %d: the last one written down is %d; %d had begun and %d ended", round, n, begun, ended)
			}
		case Interrupted:
			cut++
			if begun < ended || !last.End.IsZero() || last.Detail == "" {
				t.Fatalf("round %d: %+v; %d had begun and %d ended", round, last, begun, ended)
			}
			if len(st.Runs) > 1 {
				if n, _ := strconv.Atoi(st.Runs[len(st.Runs)-2].Detail); n != 0 && n < ended {
					t.Fatalf("round %d: the last one that ended is %d, want at least %d", round, n, ended)
				}
			}
		default:
			t.Fatalf("round %d: %+v", round, last)
		}
	}
	t.Logf("%d kills, %d runs acknowledged, 0 lost, %d cut and known", rounds, acknowledged, cut)
	if cut == 0 {
		t.Error("no run was cut")
	}
}
