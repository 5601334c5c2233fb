package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// visited are rows as Find returns them.
type visited []Row

func (v *visited) add(key RowKey, cells Cells) error {
	r := Row{Raw: slices.Clone(cells.Raw), Norm: slices.Clone(cells.Norm), Ordinal: int(key[len(key)-1])}
	for i := range key.Parts() {
		r.ID = append(r.ID, key.ID(i))
	}
	*v = append(*v, r)
	return nil
}

// TestVisitFindsWhatFindDoes, whichever way the rows are asked for.
func TestVisitFindsWhatFindDoes(t *testing.T) {
	c := newTest(t)
	text := "1|BBB020202BB1|1|Beta|Presunto\n"
	for i := range 300 {
		text += fmt.Sprintf("%d|AAA010101AAA|%d|Alfa %d|Presunto\n", i, i/2, i) // two rows an identity
		text += fmt.Sprintf("%d|%s|%d|Nadie|Presunto\n", i, redacted, i)
	}
	publish(t, c, testSchema, 1, "1|CCC030303CC3|1|Gama|Presunto\n"+text)
	e := openEdition(t, c, publish(t, c, testSchema, 2, text))
	s := e.Source("lista")

	var keys []RowKey
	for _, rfc := range []string{"AAA010101AAA", "BBB020202BB1", "CCC030303CC3", "ZZZ010101ZZ1", redacted, "", "A\x00"} {
		want := visited(found(t, s, rfc))
		var got visited
		if err := s.Visit(rfc, func(key RowKey, cells Cells) error {
			keys = append(keys, key)
			return got.add(key, cells)
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Visit(%q):\n%s", rfc, diff)
		}
	}

	all := visited(found(t, s, "AAA010101AAA"))
	var some []RowKey
	var want, got visited
	for i := 0; i < 300; i += 7 {
		some, want = append(some, keys[i]), append(want, all[i])
	}
	if err := s.VisitKeys(some, got.add); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("VisitKeys:\n%s", diff)
	}
	var bad *CorruptError
	if err := s.VisitKeys([]RowKey{keys[0] + "x"}, got.add); !errors.As(err, &bad) {
		t.Errorf("a key that is not there: %v", err)
	}
	stop := errors.New("stop")
	stopped := func(RowKey, Cells) error { return stop }
	if err := s.VisitKeys(some, stopped); err != stop {
		t.Errorf("error of fn came back as %v", err)
	}
	if err := s.Visit("AAA010101AAA", stopped); err != stop {
		t.Errorf("error of fn came back as %v", err)
	}

	r, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	got, want = nil, slices.Concat(all, visited(found(t, s, "BBB020202BB1")))
	for r.Next() {
		lookup := string(r.Lookup())
		key, cells, err := r.Row()
		if err != nil || key.ID(0) != lookup {
			t.Fatalf("%q of %q: %v", key, lookup, err)
		}
		got.add(key, cells)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Rows:\n%s", diff)
	}
}
