package ingest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cotejo/civil"
	"cotejo/ingest/sat69b"
	"cotejo/snapshots"
)

// TestRealHistory ingests three real versions of the list and counts what the
// catalogue remembers of every row. The lists lie outside the repository:
// COTEJO_SHARED names the folder, and must be right when it is set.
func TestRealHistory(t *testing.T) {
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "shared")
	}
	f := newFixture(t)
	lookups := map[string]bool{}
	var last Result
	for _, list := range []struct {
		name  string
		corte civil.Date // for the one whose note was taken away
		rows  int
	}{
		{"Listado_Completo_69-B_2021-05-18.csv.gz", civil.Date{}, 12505},
		{"Listado_Completo_69-B_2022-11-30.csv.gz", civil.Date{}, 12666},
		{"Listado_Completo_69-B_2023-07_no-preamble.csv.gz", civil.Date{Year: 2023, Month: time.July, Day: 1}, 12686},
	} {
		path := filepath.Join(root, "data", "mx-sources", "sat-69b", list.name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !named {
			t.Skipf("no está la lista oficial %s: ponga COTEJO_SHARED", list.name)
		}
		var err error
		if last, err = f.ingest(Request{File: path, Corte: list.corte}); err != nil || last.Outcome != Activated || last.Version.Rows != list.rows {
			t.Fatalf("%s: %s, %d rows, %v, %v", list.name, last.Outcome, last.Version.Rows, last.Version.Faults, err)
		}
		official := func() (io.ReadCloser, error) { return f.c.Official(last.Version) }
		if _, err := sat69b.Read(official, func(r snapshots.Row) error {
			if !r.Suppressed {
				lookups[r.ID[0]] = true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	ed, err := f.c.OpenEdition(last.Edition)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	source := ed.Source("sat_69b")

	const name, situation = 2, 3
	got := [3]map[string]int{{}, {}, {}}
	for rfc := range lookups {
		now := map[string]string{} // situation today, by the second part of the identity
		if err := source.Find(rfc, func(r snapshots.Row) error { now[r.ID[1]] = r.Norm[situation]; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := source.Past(rfc, func(p snapshots.Past) error {
			after := now[p.ID[1]]
			for i := len(p.Events) - 1; i >= 0; i-- {
				e := p.Events[i]
				switch e.Kind {
				case snapshots.Added:
					got[e.Version]["new"]++
				case snapshots.Removed:
					got[e.Version]["gone"]++
					after = e.Before[situation]
				case snapshots.Changed:
					got[e.Version]["changed"]++
					masked := 0
					for column := range situation {
						if e.Mask&(1<<column) != 0 {
							masked++
						}
					}
					if e.Mask&(1<<name) != 0 {
						got[e.Version]["name"]++
					}
					if e.Mask&(1<<situation) != 0 {
						before := e.Before[masked]
						got[e.Version][before+" > "+after]++
						after = before
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := [3]map[string]int{
		{},
		{
			"new": 163, "gone": 1, "changed": 1468, "name": 3,
			"Presunto > Definitivo": 601, "Presunto > Sentencia Favorable": 33, "Presunto > Desvirtuado": 17,
			"Definitivo > Sentencia Favorable": 326, "Definitivo > Desvirtuado": 2,
			"Sentencia Favorable > Definitivo": 18, "Sentencia Favorable > Desvirtuado": 5,
		},
		{
			"new": 19, "changed": 124, "name": 2,
			"Presunto > Definitivo": 23, "Presunto > Sentencia Favorable": 5,
			"Definitivo > Sentencia Favorable": 87, "Definitivo > Desvirtuado": 1,
			"Sentencia Favorable > Definitivo": 5,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
