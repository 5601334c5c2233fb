package snapshots

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cotejo/civil"
)

// In whatever order versions are published, the edition has the same evidence
// and every row the same history.
func TestHistoryInAnyOrder(t *testing.T) {
	const days = 5
	texts := make([]string, days)
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range texts {
		texts[i] = "1|AAA010101AAA|1|Alfa|s" + fmt.Sprint(i) + "\n"
		for n := range rng.IntN(20) {
			texts[i] += fmt.Sprintf("%d|BBB0101010B%d|%d|n%d|s%d\n", n, rng.IntN(4), rng.IntN(2), rng.IntN(2), rng.IntN(3))
		}
	}
	load := func(order []int) (*Catalogue, EditionManifest) {
		t.Helper()
		c := newTest(t)
		var m EditionManifest
		newest := -1
		for step, i := range order {
			v := accept(t, c, testSchema, i+1, texts[i])
			var err error
			if i > newest {
				newest = i
				m, err = c.Publish(v, moment(10+step))
			} else {
				m, err = c.PublishHistory(v, moment(10+step))
			}
			if err != nil {
				t.Fatalf("%v: %v", order, err)
			}
			if e := m.Sources[0]; e.OrderDate != day(newest+1) {
				t.Fatalf("%v: %s serves", order, e.OrderDate)
			}
		}
		checkCatalogue(t, c)
		return c, m
	}
	ordered, want := load([]int{0, 1, 2, 3, 4})
	source := openEdition(t, ordered, want).Source("lista")
	for range 12 {
		order := rng.Perm(days)
		c, m := load(order)
		if m.SHA256 != want.SHA256 || m.Sources[0].HistoryDigest != want.Sources[0].HistoryDigest {
			t.Errorf("%v: edition %s, want %s", order, m.SHA256, want.SHA256)
		}
		s := openEdition(t, c, m).Source("lista")
		for i := range days {
			var rows []Row
			if err := s.FindAt(i, "AAA010101AAA", func(r Row) error { rows = append(rows, r); return nil }); err != nil || len(rows) != 1 || rows[0].Raw[4] != fmt.Sprintf("s%d", i) {
				t.Errorf("%v: version %d answers %v, %v", order, i, rows, err)
			}
			if at, ok := s.VersionAt(day(i + 1)); !ok || at != i {
				t.Errorf("%v: day %d is of version %d, %v", order, i+1, at, ok)
			}
		}
		for _, rfc := range []string{"AAA010101AAA", "BBB0101010B0", "BBB0101010B3"} {
			if a, b := fmt.Sprint(pasts(t, source, rfc)), fmt.Sprint(pasts(t, s, rfc)); a != b {
				t.Errorf("%v: %s has the history %s, want %s", order, rfc, b, a)
			}
		}
	}
}

// What was published before an older file came stays as it was.
func TestPublishHistory(t *testing.T) {
	c := newTest(t)
	first := publish(t, c, testSchema, 5, textOne)
	second := publish(t, c, testSchema, 9, textTwo)
	served := second.Sources[0]
	chain := func(m EditionManifest) (days []civil.Date) {
		t.Helper()
		for _, id := range m.Sources[0].Chain {
			v, err := c.Version(id)
			if err != nil {
				t.Fatal(err)
			}
			days = append(days, v.OrderDate)
		}
		return days
	}
	history := func(n int, text string) (Version, EditionManifest) {
		t.Helper()
		v := accept(t, c, testSchema, n, text)
		m, err := c.PublishHistory(v, moment(20))
		if err != nil {
			t.Fatal(err)
		}
		if e := m.Sources[0]; e.VersionID != served.VersionID || e.PublishedReset != served.PublishedReset || e.RowsDigest != served.RowsDigest {
			t.Errorf("what serves became %+v", e)
		}
		return v, m
	}
	seventh, m := history(7, numbered(7))
	if m.Number != 3 || m.SHA256 == second.SHA256 || m.Published != civil.Timestamp(moment(20)) || !slices.Equal(chain(m), []civil.Date{day(5), day(7), day(9)}) {
		t.Errorf("edition %d, chain %v", m.Number, chain(m))
	}
	if again, err := c.PublishHistory(seventh, moment(21)); err != nil || again.Number != 3 {
		t.Errorf("published again: edition %d, %v", again.Number, err)
	}
	same := accept(t, c, testSchema, 7, numbered(7))
	if again, err := c.PublishHistory(same, moment(21)); err != nil || again.Number != 3 {
		t.Errorf("the same bytes and dates again: edition %d, %v", again.Number, err)
	}

	// Of one day: in the order of their ids, before what serves.
	a, _ := history(7, numbered(8))
	b, m := history(9, numbered(9))
	if want := []int{1, seventh.ID, a.ID, b.ID, 2}; !slices.Equal(m.Sources[0].Chain, want) {
		t.Errorf("chain %v, want %v", m.Sources[0].Chain, want)
	}
	// The same bytes under another date.
	corrected, m := history(6, numbered(8))
	if want := []int{1, corrected.ID, seventh.ID, b.ID, 2}; !slices.Equal(m.Sources[0].Chain, want) {
		t.Errorf("chain %v, want %v", m.Sources[0].Chain, want)
	}

	for name, v := range map[string]Version{
		"newer than what serves": accept(t, c, testSchema, 10, numbered(10)),
		"what serves":            accept(t, c, testSchema, 8, textTwo),
	} {
		if got, err := c.PublishHistory(v, moment(22)); err == nil || (name == "newer than what serves") != errors.Is(err, ErrNewer) {
			t.Errorf("%s: edition %d, %v", name, got.Number, err)
		}
	}
	for n, want := range []EditionManifest{first, second} {
		have, err := c.edition(n + 1)
		if err != nil || have.SHA256 != want.SHA256 {
			t.Errorf("edition %d: %s, %v", n+1, have.SHA256, err)
		}
		openEdition(t, c, have)
	}
	// A newer version goes on from the longer history.
	m = publish(t, c, testSchema, 12, textOne)
	if restored, err := c.RebuildHistory(m.Sources[0]); err != nil || restored || len(m.Sources[0].Chain) != 6 {
		t.Errorf("%v, %v, chain %v", restored, err, m.Sources[0].Chain)
	}
	checkCatalogue(t, c)
}

func TestPublishHistoryOfAnEmptyCatalogue(t *testing.T) {
	c := newTest(t)
	v := accept(t, c, testSchema, 5, textOne)
	m, err := c.PublishHistory(v, moment(6))
	if err != nil || m.Number != 1 || m.Sources[0].VersionID != v.ID || m.Sources[0].PublishedReset != civil.Timestamp(moment(6)) {
		t.Errorf("%+v, %v", m, err)
	}
	q := quarantine(t, c, 3, textTwo, Fault{"HTML", "página"})
	if _, err := c.PublishHistory(q, moment(7)); !errors.Is(err, ErrQuarantined) {
		t.Errorf("a quarantine: %v", err)
	}
}

// An older file that a raised reader brings needs the whole chain read by it,
// what serves included.
func TestPublishHistoryWithARaisedReader(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 5, textOne)
	m := publish(t, c, testSchema, 9, textTwo)
	raised := testSchema
	raised.Reader = 2
	old := accept(t, c, raised, 3, numbered(3))
	if _, err := c.PublishHistory(old, moment(20)); err == nil {
		t.Fatal("a chain of two readers")
	}
	unread, err := c.Unread(&m.Sources[0], 2, "")
	if err != nil || len(unread) != 2 {
		t.Fatalf("%v, %v", unread, err)
	}
	accept(t, c, raised, 5, textOne)
	again := accept(t, c, raised, 9, textTwo)
	if m, err = c.PublishHistory(old, moment(20)); err != nil {
		t.Fatal(err)
	}
	if e := m.Sources[0]; e.Reader != 2 || e.VersionID != again.ID || e.PublishedReset != civil.Timestamp(moment(20)) || len(e.Chain) != 3 || e.Chain[0] != old.ID {
		t.Errorf("%+v", e)
	}
	checkCatalogue(t, c)
}
