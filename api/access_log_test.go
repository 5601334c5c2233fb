package api

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// stuck is a writer that holds its first write until it is let go.
type stuck struct {
	began, release chan struct{}
	once           sync.Once

	mu sync.Mutex
	b  bytes.Buffer
}

func newStuck() *stuck { return &stuck{began: make(chan struct{}), release: make(chan struct{})} }

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.began) })
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// TestAccessLogNeverWaits holds that a log on a disk that hangs costs lines, not
// requests, and says how many.
func TestAccessLogNeverWaits(t *testing.T) {
	to := newStuck()
	l := newAccessLog(to)
	l.append([]byte(`{"n":1`))
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		l.flush()
	}()
	<-to.began
	line := []byte(`{"n":"` + strings.Repeat("x", 1000) + `"`)
	const many = 2 * accessLogBytes / 1000
	for range many {
		l.append(line) // the test hangs here if a request waits for the disk
	}
	if kept := len(l.lines); kept > accessLogBytes+100 {
		t.Fatalf("%d bytes are gathered", kept)
	}
	lost := l.dropped
	if lost < many/3 || lost > many*2/3 {
		t.Fatalf("%d of %d lines are dropped", lost, many)
	}
	close(to.release)
	<-flushed
	l.flush()
	l.append([]byte(`{"n":2`))
	l.append([]byte(`{"n":3`))
	l.close()
	lines := strings.Split(to.b.String(), "\n")
	if lines[0] != `{"n":1}` || len(lines) != 1+many-lost+2+1 {
		t.Fatalf("%d lines, the first is %s", len(lines), lines[0])
	}
	tail := lines[len(lines)-3:]
	if tail[0] != fmt.Sprintf(`{"n":2,"lineas_perdidas":%d}`, lost) || tail[1] != `{"n":3}` || tail[2] != "" {
		t.Fatalf("the end is %q", tail)
	}
}

func TestAccessLogIsWrittenWhenMuchIsGathered(t *testing.T) {
	to := newStuck()
	l := newAccessLog(to)
	defer l.close()
	line := []byte(`{"n":"` + strings.Repeat("x", 1000) + `"`)
	for range accessLogWake/1000 + 1 {
		l.append(line)
	}
	select {
	case <-to.began:
	case <-time.After(accessLogEvery * 9 / 10):
		t.Error("it waits for the clock")
	}
	close(to.release)
}

func TestAccessLogClose(t *testing.T) {
	var b logBuffer
	l := newAccessLog(&b)
	l.append([]byte(`{"n":1`))
	l.close()
	l.close()
	l.append([]byte(`{"n":2`))
	l.flush()
	if got := b.String(); got != "{\"n\":1}\n{\"n\":2}\n" {
		t.Fatalf("got %q", got)
	}
	none := newAccessLog(nil)
	none.close()
	none.close()
}

func TestAppendMillis(t *testing.T) {
	for _, nanos := range []int{0, 999_999, 1_000_000, 45_000_000, 999_999_999} {
		at := time.Date(2026, 11, 20, 23, 59, 59, nanos, time.FixedZone("", -6*3600))
		got, want := string(appendMillis([]byte("x"), at)), "x"+at.UTC().Format("2006-01-02T15:04:05.000Z")
		if got != want {
			t.Errorf("%d ns: %s, want %s", nanos, got, want)
		}
	}
}
