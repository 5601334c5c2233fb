package snapshots

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Three versions: a row changes twice, one goes and comes back, one is redacted
// for good, one appears late.
func TestHistoryEvents(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, "1|AAA010101AAA|1|Alfa|Presunto\n2|BBB020202BB1|1|Beta|Presunto\n3|CCC030303CC3|1|Gama|Definitivo\n")
	publish(t, c, testSchema, 2, "1|AAA010101AAA|1|ALFA|Definitivo\n2|XXXXXXXXXXXX|1|Suprimida|Definitivo\n3|DDD040404DD4|1|Delta|Presunto\n")
	m := publish(t, c, testSchema, 3, "9|AAA010101AAA|1|Alfa Nueva|Sentencia Favorable\n8|BBB020202BB1|1|Beta|Definitivo\n7|XXXXXXXXXXXX|1|Suprimida|Presunto\n6|DDD040404DD4|1|Delta|Presunto\n")
	e := openEdition(t, c, m)
	s := e.Source("lista")

	f := func(rfc string, want Past) {
		t.Helper()
		want.ID = []string{rfc, "1"}
		if diff := cmp.Diff([]Past{want}, pasts(t, s, rfc)); diff != "" {
			t.Errorf("%s:\n%s", rfc, diff)
		}
		if got := mentions(t, e, rfc); !slices.Equal(got, []uint{0}) {
			t.Errorf("Mentions(%s) = %v", rfc, got)
		}
	}
	f("AAA010101AAA", Past{Present: true, Events: []Event{
		{Version: 1, Kind: Changed, Mask: 1 << 4, Before: []string{"Presunto"}},
		{Version: 2, Kind: Changed, Mask: 1<<3 | 1<<4, Before: []string{"ALFA", "Definitivo"}},
	}})
	f("BBB020202BB1", Past{Present: true, Events: []Event{
		{Version: 1, Kind: Removed, Before: []string{"2", "BBB020202BB1", "1", "BETA", "Presunto"}},
		{Version: 2, Kind: Added},
	}})
	f("CCC030303CC3", Past{Events: []Event{
		{Version: 1, Kind: Removed, Before: []string{"3", "CCC030303CC3", "1", "GAMA", "Definitivo"}},
	}})
	f("DDD040404DD4", Past{Since: 1, Present: true, Events: []Event{{Version: 1, Kind: Added}}})
	if got := pasts(t, s, redacted); len(got) != 0 {
		t.Errorf("a redacted row has history: %+v", got)
	}
	checkCatalogue(t, c)
}

// model is the history as one would write it down by hand.
type model struct {
	past map[string]*Past
	norm map[string][]string // of the last version that had the row
}

func (m model) add(version int, text string) {
	type row struct{ id, norm []string }
	now := map[string]row{}
	groups := map[string][]row{}
	_ = readLista(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, func(r Row) error {
		if !r.Suppressed {
			id := strings.Join(r.ID, "/")
			groups[id] = append(groups[id], row{r.ID, r.Norm})
		}
		return nil
	})
	for id, rows := range groups {
		slices.SortFunc(rows, func(a, b row) int {
			if c := slices.Compare(a.norm[1:], b.norm[1:]); c != 0 {
				return c
			}
			return strings.Compare(a.norm[0], b.norm[0])
		})
		for i, r := range rows {
			now[fmt.Sprintf("%s/%d", id, i)] = r
		}
	}
	for key, r := range now {
		p := m.past[key]
		switch {
		case p == nil:
			p = &Past{ID: r.id, Ordinal: int(key[len(key)-1] - '0'), Since: version, Present: true}
			m.past[key] = p
			if version > 0 {
				p.Events = append(p.Events, Event{Version: version, Kind: Added})
			}
		case !p.Present:
			p.Present = true
			p.Events = append(p.Events, Event{Version: version, Kind: Added})
		default:
			e := Event{Version: version, Kind: Changed}
			for i, before := range m.norm[key] {
				if i > 0 && before != r.norm[i] {
					e.Mask |= 1 << i
					e.Before = append(e.Before, before)
				}
			}
			if e.Mask != 0 {
				p.Events = append(p.Events, e)
			}
		}
		m.norm[key] = r.norm
	}
	for key, p := range m.past {
		if _, ok := now[key]; !ok && p.Present {
			p.Present = false
			p.Events = append(p.Events, Event{Version: version, Kind: Removed, Before: m.norm[key]})
		}
	}
}

// Random versions over few identities, with repeated, redacted and returning
// rows: the incremental history is the one written down by hand, and the one
// folded again from the rows.
func TestHistoryAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 99))
		want := model{map[string]*Past{}, map[string][]string{}}
		c := newTest(t)
		var m EditionManifest
		for version := range 7 {
			var b strings.Builder
			fmt.Fprintf(&b, "%d|ZZZ010101ZZ1|%d|única|Presunto\n", version, version)
			for i := range rng.IntN(60) {
				rfc := fmt.Sprintf("AAA0101010A%d", rng.IntN(6))
				if rng.IntN(8) == 0 {
					rfc = redacted
				}
				fmt.Fprintf(&b, "%d|%s|%d|n%d|s%d\n", i, rfc, rng.IntN(3), rng.IntN(3), rng.IntN(3))
			}
			m = publish(t, c, testSchema, version+1, b.String())
			want.add(version, b.String())
		}
		e := openEdition(t, c, m)
		s := e.Source("lista")
		got := map[string]*Past{}
		for _, lookup := range []string{"ZZZ010101ZZ1", "AAA0101010A0", "AAA0101010A1", "AAA0101010A2", "AAA0101010A3", "AAA0101010A4", "AAA0101010A5", redacted} {
			present := 0
			for _, p := range pasts(t, s, lookup) {
				got[fmt.Sprintf("%s/%d", strings.Join(p.ID, "/"), p.Ordinal)] = &p
				if p.Present {
					present++
				}
			}
			if rows := found(t, s, lookup); len(rows) != present {
				t.Errorf("%s: %d rows, %d present in the history", lookup, len(rows), present)
			}
		}
		if diff := cmp.Diff(want.past, got); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
		if restored, err := c.RebuildHistory(m.Sources[0]); err != nil || restored {
			t.Errorf("folded from nothing: %v, %v", restored, err)
		}
		checkCatalogue(t, c)
	}
}
