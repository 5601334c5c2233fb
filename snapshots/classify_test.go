package snapshots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/checks"
	"cotejo/index"
)

// TestClassifyTellsWhatTheRowsSay: of every RFC that was ever on some list, the
// table tells the same as a walk over rows and history, and nothing of others.
func TestClassifyTellsWhatTheRowsSay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := openTest(t, t.TempDir())
		unlock, err := c.Lock()
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		rng := rand.New(rand.NewPCG(7, rapid.Uint64().Draw(rt, "semilla")))
		ids := []string{redacted, "NO ES RFC", "ZZZ"}
		for i := range rapid.IntRange(1, 40).Draw(rt, "rfcs") {
			ids = append(ids, fmt.Sprintf("%s%02d0101%02dA", [...]string{"AAA", "AAAA", "ÑÑÑ", "Z&Z"}[i%4], rng.IntN(30), i))
		}
		var m EditionManifest
		for source := range rapid.IntRange(1, 3).Draw(rt, "listas") {
			schema := testSchema
			schema.Source = fmt.Sprint("lista_", source)
			for version := range rapid.IntRange(1, 3).Draw(rt, "versiones") {
				var text strings.Builder
				for i := range rng.IntN(80) + 1 {
					fmt.Fprintf(&text, "%d|%s|%d|Nombre %d|Presunto\n", i, ids[rng.IntN(len(ids))], rng.IntN(3), rng.IntN(2))
				}
				v := accept(t, c, schema, 1+3*version+source, text.String())
				if m, err = c.Publish(v, moment(1+3*version+source)); err != nil {
					t.Fatal(err)
				}
			}
		}
		e, err := c.OpenEdition(m)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Release()

		want := map[uint64]map[uint]index.Rows{}
		for _, s := range e.sources {
			of := map[string]index.Rows{}
			number := uint32(0)
			if err := s.All(func(r Row) error {
				rows := of[r.ID[0]]
				if rows.N == 0 {
					rows.First = number
				}
				rows.N++
				number++
				of[r.ID[0]] = rows
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				for _, p := range pasts(t, s, id) {
					rows := of[id]
					rows.Past = rows.Past || p.Since > 0 || len(p.Events) > 0
					of[id] = rows
				}
			}
			for id, rows := range of {
				if key, ok := checks.PackRFC(id); ok {
					if want[key] == nil {
						want[key] = map[uint]index.Rows{}
					}
					want[key][s.Bit()] = rows
				}
			}
		}
		for _, id := range append(ids, "XYZ010101XY1") {
			key, ok := checks.PackRFC(id)
			if !ok {
				continue
			}
			m, sources := e.Classify(key), want[key]
			if m.None() != (len(sources) == 0) {
				rt.Fatalf("%s: None is %v; %d sources", id, m.None(), len(sources))
			}
			for _, s := range e.sources {
				rows, listed := sources[s.Bit()]
				if m.Has(s.Bit()) != listed || m.Rows(s.Bit()) != rows {
					rt.Fatalf("%s in %s: %v, want %v", id, s.Entry().Source, m.Rows(s.Bit()), rows)
				}
			}
		}
	})
}
