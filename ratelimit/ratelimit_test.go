package ratelimit

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hands is a clock that a test moves.
type hands struct{ now time.Duration }

func (h *hands) clock() time.Duration { return h.now }

// TestLimiterIsATokenBucket compares every answer with a bucket that is filled by
// the clock, for a few keys at random moments.
func TestLimiterIsATokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const step = 8 * time.Millisecond // 125 a second
		burst := rapid.IntRange(1, 20).Draw(t, "burst")
		h := &hands{}
		l := New(Rate{N: 125, Per: time.Second, Burst: burst}, 64, h.clock)
		type bucket struct {
			credit time.Duration // a token is step of it
			at     time.Duration
		}
		full := time.Duration(burst) * step
		buckets := map[string]*bucket{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			h.now += time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			b := buckets[name]
			if b == nil {
				b = &bucket{credit: full, at: h.now}
				buckets[name] = b
			}
			b.credit, b.at = min(full, b.credit+h.now-b.at), h.now
			want := Status{Retry: step - b.credit, Reset: full - b.credit}
			if b.credit >= step {
				b.credit -= step
				want = Status{Allowed: true, Remaining: int(b.credit / step), Reset: full - b.credit}
			}
			if got := l.Take(OfText(name)); got != want {
				t.Fatalf("at %v key %s: %+v, want %+v", h.now, name, got, want)
			}
		}
	})
}

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// TestStrangersDoNotFreeWhoIsHeld asks from a million addresses while one is being
// held back: it stays so, and the table does not grow.
func TestStrangersDoNotFreeWhoIsHeld(t *testing.T) {
	h := &hands{}
	l := New(Rate{N: 10, Per: time.Second, Burst: 50}, 4096, h.clock)
	held := OfAddress(address(7))
	for l.Take(held).Allowed {
	}
	sets := len(l.table.sets)
	for n := range uint32(1_000_000) {
		l.Take(OfAddress(address(1000 + n)))
		if n%100_000 == 0 && l.Take(held).Allowed {
			t.Fatalf("after %d strangers it is let in", n)
		}
	}
	if s := l.Take(held); s.Allowed || s.Retry != 100*time.Millisecond {
		t.Errorf("it is let in: %+v", s)
	}
	if len(l.table.sets) != sets || sets*ways != 4096 {
		t.Errorf("%d sets, at first %d", len(l.table.sets), sets)
	}

	a := NewAttempts(Guessing{Free: Rate{N: 20, Per: time.Minute, Burst: 20}, Wait: 15 * time.Second, Longest: 15 * time.Minute}, 4096, h.clock)
	for range 21 {
		a.Failed(held)
	}
	for n := range uint32(500_000) {
		a.Failed(OfAddress(address(1000 + n)))
	}
	if a.Wait(held) != 15*time.Second {
		t.Errorf("it waits %v", a.Wait(held))
	}
}

func TestAttempts(t *testing.T) {
	h := &hands{now: time.Hour}
	a := NewAttempts(Guessing{Free: Rate{N: 20, Per: time.Minute, Burst: 20}, Wait: 15 * time.Second, Longest: 15 * time.Minute}, 64, h.clock)
	k, other := OfText("k"), OfText("other")
	wait := func(want time.Duration) {
		t.Helper()
		if got := a.Wait(k); got != want {
			t.Fatalf("waits %v, want %v", got, want)
		}
	}
	for range 20 {
		a.Failed(k)
	}
	wait(0)
	a.Failed(k)
	wait(15 * time.Second)
	a.Failed(k) // let in before, failed after: no further punishment
	wait(15 * time.Second)
	if a.Wait(other) != 0 {
		t.Error("another key waits")
	}
	for _, want := range []time.Duration{30, 60, 120, 240, 480, 900, 900} {
		h.now += a.Wait(k)
		wait(0)
		a.Failed(k)
		wait(want * time.Second)
	}
	h.now += a.Wait(k) + 15*time.Minute
	for range 20 { // all is forgotten
		a.Failed(k)
	}
	wait(0)
	// Twenty a minute are free for ever.
	b := OfText("slow")
	for range 1000 {
		h.now += 3 * time.Second
		a.Failed(b)
		if a.Wait(b) != 0 {
			t.Fatal("a slow one waits")
		}
	}
}

func TestAddressesOfOneClientAreOneKey(t *testing.T) {
	same := func(a, b string, want bool) {
		t.Helper()
		if got := OfAddress(netip.MustParseAddr(a)) == OfAddress(netip.MustParseAddr(b)); got != want {
			t.Errorf("%s and %s: %v", a, b, got)
		}
	}
	same("192.0.2.1", "192.0.2.1", true)
	same("192.0.2.1", "192.0.2.2", false)
	same("192.0.2.1", "::ffff:192.0.2.1", true)
	same("::ffff:192.0.2.1", "::ffff:192.0.2.2", false)
	same("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true)
	same("2001:db8:1:2::1", "2001:db8:1:3::1", false)
	none := OfAddress(netip.Addr{})
	if OfAddress(netip.Addr{}) != none || none == OfAddress(netip.MustParseAddr("192.0.2.1")) {
		t.Error("no address has no key of its own")
	}
}

func TestParseRate(t *testing.T) {
	f := func(text string, want Rate, limited bool) {
		t.Helper()
		if got, is, err := ParseRate(text); err != nil || got != want || is != limited {
			t.Errorf("%q: %+v, %v, %v", text, got, is, err)
		}
	}
	f("0", Rate{}, false)
	f("1/s", Rate{1, time.Second, 2}, true)
	f("5000/s, 10000", Rate{5000, time.Second, 10000}, true)
	f("1000000/s,1", Rate{1_000_000, time.Second, 1}, true)
	bad := func(text string) {
		t.Helper()
		if r, _, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), "«"+text+"»") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "5", "5/m", "0/s", "-1/s", "+1/s", "1000001/s", "5/s,", "5/s,0", "5/s,10000001", "x/s", "5/s,2,3", "99999999999999999999/s"} {
		bad(text)
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add("5000/s,10000")
	f.Fuzz(func(t *testing.T, text string) {
		if r, limited, err := ParseRate(text); err == nil && limited {
			New(r, 1, Monotonic()) // every rate that is read can be held to
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	h := &hands{}
	l := New(Rate{N: 10, Per: time.Second, Burst: 5}, 64, h.clock)
	a := NewAttempts(Guessing{Free: Rate{N: 1, Per: time.Second, Burst: 5}, Wait: time.Second, Longest: time.Minute}, 64, h.clock)
	n := uint32(0)
	if got := testing.AllocsPerRun(1000, func() {
		n++
		h.now += time.Millisecond
		k := OfAddress(address(n % 100))
		l.Take(k)
		l.Take(OfText("abcdefgh"))
		a.Failed(k)
		a.Wait(k)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// TestTogether lets many ask at once: exactly the burst is let in.
func TestTogether(t *testing.T) {
	h := &hands{}
	l := New(Rate{N: 10, Per: time.Second, Burst: 500}, 64, h.clock)
	var mu sync.Mutex
	allowed := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if l.Take(OfText("k")).Allowed {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if allowed != 500 {
		t.Errorf("%d were let in", allowed)
	}
}

func BenchmarkTake(b *testing.B) {
	l := New(Rate{N: 1_000_000, Per: time.Second, Burst: 1000}, 1<<16, Monotonic())
	k := OfText("abcdefgh")
	b.Run("one key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Take(k)
		}
	})
	b.Run("new addresses", func(b *testing.B) {
		b.ReportAllocs()
		n := uint32(0)
		for b.Loop() {
			n++
			l.Take(OfAddress(address(n)))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				l.Take(k)
			}
		})
	})
}
