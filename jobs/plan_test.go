package jobs

import (
	"testing"
	"time"

	"cotejo/civil"
)

// at reads a moment of Mexico City.
func at(s string) time.Time {
	t, err := time.ParseInLocation("2006-01-02 15:04", s, civil.Zone)
	if err != nil {
		panic(err)
	}
	return t
}

const twice = "7 4,13 * * *"

func mustParse(t *testing.T, spec string) schedule {
	t.Helper()
	s, err := parse(spec, at("2026-11-20 10:00"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchedulesAreMexicoCitys(t *testing.T) {
	f := func(spec, from, want string) {
		t.Helper()
		if got := mustParse(t, spec).next(at(from).UTC()); !got.Equal(at(want)) {
			t.Errorf("%s after %s: %s, want %s", spec, from, got.In(civil.Zone), want)
		}
	}
	f(twice, "2026-11-20 00:00", "2026-11-20 04:07")
	f(twice, "2026-11-20 04:07", "2026-11-20 13:07")
	f(twice, "2026-11-20 20:00", "2026-11-21 04:07")
	// Where other zones spring forward and fall back, no moment is lost or comes twice.
	f("30 2 * * *", "2027-03-13 12:00", "2027-03-14 02:30")
	f("30 1 * * *", "2026-10-31 12:00", "2026-11-01 01:30")
	f("30 1 * * *", "2026-11-01 01:30", "2026-11-02 01:30")
	f("0 3 * * 0", "2026-11-20 00:00", "2026-11-22 03:00")
}

func TestSchedulesThatAreNoneAreRefused(t *testing.T) {
	for _, spec := range []string{"", "@daily", "* * *", "60 4 * * *", "TZ=0", "CRON_TZ=America/Tijuana 0 4 * * *", "0 0 30 2 *", "0 0 4 * * *"} {
		if _, err := parse(spec, at("2026-11-20 10:00")); err == nil {
			t.Errorf("%q was taken", spec)
		}
	}
}

func TestPlan(t *testing.T) {
	spec := mustParse(t, twice)
	run := func(status Status, start, end string) Run {
		r := Run{Start: at(start), Status: status}
		if end != "" {
			r.End = at(end)
		}
		return r
	}
	byHand := func(r Run) Run {
		r.ByHand = true
		return r
	}
	f := func(what, now, want string, runs ...Run) {
		t.Helper()
		r := record{Runs: runs}
		if got := r.plan(spec, at(now), 0); !got.Equal(at(want)) {
			t.Errorf("%s: %s, want %s", what, got.In(civil.Zone), want)
		}
	}
	const now = "2026-11-20 10:00"
	f("never ran", now, now)
	f("ran today", now, "2026-11-20 13:07", run(Unchanged, "2026-11-20 04:07", "2026-11-20 04:08"))
	f("quarantine waits for a person", now, "2026-11-20 13:07", run(Quarantined, "2026-11-20 04:07", "2026-11-20 04:08"))
	f("down since yesterday", now, "2026-11-20 04:07", run(OK, "2026-11-19 13:07", "2026-11-19 13:08"))
	f("down for a year", now, "2025-11-20 13:07", run(OK, "2025-11-20 04:07", "2025-11-20 04:08"))
	f("began before and ended after", "2026-11-20 05:00", "2026-11-20 04:07", run(OK, "2026-11-20 03:50", "2026-11-20 04:30"))

	f("failed", now, "2026-11-20 10:30", run(Failed, "2026-11-20 09:00", "2026-11-20 09:30"))
	f("failed long ago", now, "2026-11-19 14:08", run(Failed, "2026-11-19 13:07", "2026-11-19 13:08"))
	f("failed before the next time", "2026-11-20 13:00", "2026-11-20 13:07", run(Failed, "2026-11-20 12:45", "2026-11-20 12:50"))
	f("busy", now, "2026-11-20 10:04", run(Busy, "2026-11-20 09:59", "2026-11-20 09:59"))
	f("closed half-way", now, "2026-11-20 09:59", run(Interrupted, "2026-11-20 09:58", "2026-11-20 09:59"))
	f("died half-way", now, "2026-11-20 10:58", run(Interrupted, "2026-11-20 09:58", ""))
	f("abandoned by hand", now, "2026-11-20 13:07", run(OK, "2026-11-20 04:07", "2026-11-20 04:08"), byHand(run(Interrupted, "2026-11-20 09:58", "2026-11-20 09:59")))
	f("by hand and busy", now, "2026-11-20 13:07", run(OK, "2026-11-20 04:07", "2026-11-20 04:08"), byHand(run(Busy, "2026-11-20 09:58", "2026-11-20 09:58")))
	f("by hand and failed", now, "2026-11-20 10:59", byHand(run(Failed, "2026-11-20 09:58", "2026-11-20 09:59")))

	// A clock that was set back by minutes repeats nothing; one that was wrong by
	// a day has told nothing about today.
	f("a minute ahead", "2026-11-20 04:06", "2026-11-20 13:07", run(OK, "2026-11-20 04:07", "2026-11-20 04:08"))
	f("a day ahead", now, "2026-11-20 13:07", run(OK, "2026-11-20 04:07", "2026-11-20 04:08"), run(OK, "2026-11-21 10:00", "2026-11-21 10:01"))
	f("only a day ahead", now, now, run(OK, "2026-11-21 10:00", "2026-11-21 10:01"))

	delay := (&record{Runs: []Run{run(Failed, "2026-11-20 09:00", "2026-11-20 09:30")}}).plan(spec, at(now), 0.5)
	if want := at("2026-11-20 10:35"); !delay.Equal(want) {
		t.Errorf("with half of the spread: %s, want %s", delay.In(civil.Zone), want)
	}
}
