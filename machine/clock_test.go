package machine

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)

// fakeClocks are the clocks of a machine whose wall clock is off by a duration.
type fakeClocks struct {
	elapsed, off time.Duration
}

func (f *fakeClocks) read() Reading { return Reading{f.truth().Add(f.off), f.elapsed} }

// truth is what a good clock would say.
func (f *fakeClocks) truth() time.Time { return noon.Add(f.elapsed) }

func TestJumpIsFollowedOnceItHolds(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour, 61 * time.Second, -61 * time.Second} {
		f := &fakeClocks{}
		c := NewClock(f.read)
		f.elapsed, f.off = time.Hour, by
		if got := c.Now(); !got.Equal(noon.Add(time.Hour)) {
			t.Errorf("%v: al saltar da %v", by, got)
		}
		word := map[bool]string{true: "adelantó", false: "atrasó"}[by > 0]
		if alarm := c.Alarm(); !strings.Contains(alarm, word+" "+by.Abs().String()) {
			t.Errorf("%v: alarma %q", by, alarm)
		}
		f.elapsed += clockHold - time.Second
		if got := c.Now(); !got.Equal(f.truth()) || c.Alarm() == "" {
			t.Errorf("%v: antes de tiempo da %v, alarma %q", by, got, c.Alarm())
		}
		f.elapsed += time.Second
		if got := c.Now(); !got.Equal(f.truth().Add(by)) || c.Alarm() != "" {
			t.Errorf("%v: sostenido da %v, alarma %q", by, got, c.Alarm())
		}
		f.elapsed += time.Second // and is followed from there on
		if got := c.Now(); !got.Equal(f.truth().Add(by)) {
			t.Errorf("%v: después da %v", by, got)
		}
	}
}

func TestJumpThatIsTakenBackLeavesNothing(t *testing.T) {
	f := &fakeClocks{}
	c := NewClock(f.read)
	f.off = 400 * 24 * time.Hour
	c.Now()
	f.elapsed, f.off = 14*time.Minute, 0
	if got := c.Now(); !got.Equal(f.truth()) || c.Alarm() != "" {
		t.Errorf("da %v, alarma %q", got, c.Alarm())
	}
	// The time it held before does not count for the next one.
	f.off = 400 * 24 * time.Hour
	c.Now()
	f.elapsed += 14 * time.Minute
	if got := c.Now(); !got.Equal(f.truth()) {
		t.Errorf("la segunda vez da %v", got)
	}
}

func TestSmallStepsAreFollowed(t *testing.T) {
	f := &fakeClocks{}
	c := NewClock(f.read)
	f.elapsed, f.off = time.Second, 50*time.Second
	if got := c.Now(); !got.Equal(f.truth().Add(f.off)) {
		t.Errorf("adelante da %v", got)
	}
	given := c.Now()
	f.off = 0
	if got := c.Now(); !got.Equal(given) {
		t.Errorf("atrás da %v, antes dio %v", got, given)
	}
	f.elapsed += time.Minute
	if got := c.Now(); !got.Equal(f.truth()) || c.Alarm() != "" {
		t.Errorf("alcanzado da %v, alarma %q", got, c.Alarm())
	}
	// A step that is small each time, again and again, is a jump.
	for range 10 {
		f.elapsed += time.Second
		f.off += 50 * time.Second
		c.Now()
	}
	if got := c.Now(); got.Sub(f.truth()) > clockTolerance || c.Alarm() == "" {
		t.Errorf("diez pasos pequeños: da %v, alarma %q", got, c.Alarm())
	}
}

func TestBehindWhatIsWritten(t *testing.T) {
	f := &fakeClocks{}
	c := NewClock(f.read)
	c.Seen(noon.Add(-time.Hour))
	if alarm := c.Alarm(); alarm != "" {
		t.Errorf("alarma %q", alarm)
	}
	c.Seen(noon.Add(time.Hour))
	if alarm := c.Alarm(); !strings.Contains(alarm, "2026-11-20T19:00:00Z") {
		t.Errorf("alarma %q", alarm)
	}
	f.elapsed = time.Hour
	if alarm := c.Alarm(); alarm != "" {
		t.Errorf("alarma %q", alarm)
	}
}

// TestRandomJumps lets the wall clock jump by up to 400 days at any time.
func TestRandomJumps(t *testing.T) {
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	rapid.Check(t, func(t *rapid.T) {
		f := &fakeClocks{}
		c := NewClock(f.read)
		given := c.Now()
		held := time.Duration(0) // since the wall clock was last set
		believed := f.off        // the last offset that held
		for range 200 {
			if rapid.IntRange(0, 3).Draw(t, "set") == 0 {
				before := f.off
				f.off = days(rapid.IntRange(-400, 400).Draw(t, "days")) + time.Duration(rapid.IntRange(-25, 25).Draw(t, "s"))*time.Second
				if !within(f.off - before) {
					held = 0
				}
				c.Now() // the poll that sees it
			}
			step := time.Duration(rapid.IntRange(0, 600).Draw(t, "step")) * time.Second
			f.elapsed += step
			held += step
			now := c.Now()
			if held >= clockHold {
				believed = f.off
			}
			// 60 s for one small step that is followed, 60 for standing still after one back.
			if d := now.Sub(f.truth().Add(believed)); d > 2*clockTolerance || d < -2*clockTolerance {
				t.Fatalf("da %v; el reloj que se sostuvo decía %v", now, f.truth().Add(believed))
			}
			if now.Before(given) && (held < clockHold || now.Before(f.truth().Add(f.off))) {
				t.Fatalf("retrocede de %v a %v", given, now)
			}
			given = now
		}
	})
}
