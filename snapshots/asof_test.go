package snapshots

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"cotejo/civil"
)

// text of a version in which the row of AAA010101AAA says its number.
func numbered(n int) string {
	return fmt.Sprintf("1|AAA010101AAA|1|Alfa|s%d\n2|XXXXXXXXXXXX|1|Suprimida|Presunto\n", n)
}

func TestVersionAt(t *testing.T) {
	f := func(days []int, want map[int]int) {
		t.Helper()
		s := &Source{}
		for _, d := range days {
			s.chain = append(s.chain, ChainVersion{OrderDate: day(d)})
		}
		for d, i := range want {
			got, ok := s.VersionAt(day(d))
			if ok != (i >= 0) || ok && got != i {
				t.Errorf("chain of days %v: VersionAt(%d) = %d, %v; want %d", days, d, got, ok, i)
			}
		}
	}
	f([]int{5}, map[int]int{1: -1, 4: -1, 5: 0, 31: 0})
	f([]int{5, 9, 12}, map[int]int{4: -1, 5: 0, 8: 0, 9: 1, 11: 1, 12: 2, 31: 2})
	f([]int{5, 9, 9, 12}, map[int]int{8: 0, 9: 2, 11: 2})
	// The version of day 9 was taken back by the one of day 7.
	f([]int{5, 9, 7}, map[int]int{4: -1, 5: 0, 6: 0, 7: 2, 9: 2, 31: 2})
}

// Each version of the chain answers with its own rows, under many readers, and
// nothing stays open behind the last edition.
func TestFindAt(t *testing.T) {
	c := newTest(t)
	const versions = maxOpened + 8
	var m EditionManifest
	for n := range versions {
		o := origin(1)
		o.Corte = civil.Of(moment(1).AddDate(0, 0, n))
		s, err := stageText(c, testSchema, numbered(n))
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Accept(o)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = c.Publish(v, moment(1)); err != nil {
			t.Fatal(err)
		}
	}
	locked := openResources(t, c.dir)
	e, err := c.OpenEdition(m)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Source("lista")
	var wg sync.WaitGroup
	for reader := range 4 {
		wg.Go(func() {
			for n := range 2 * versions {
				i := (n*(reader+1) + reader) % versions
				var got []Row
				if err := s.FindAt(i, "AAA010101AAA", func(r Row) error { got = append(got, r); return nil }); err != nil {
					t.Error(err)
				}
				if len(got) != 1 || got[0].Raw[4] != fmt.Sprintf("s%d", i) {
					t.Errorf("version %d answers %v", i, got)
				}
				if err := s.FindAt(i, redacted, func(r Row) error { t.Errorf("version %d: %v", i, r); return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, most := openResources(t, c.dir), locked+2+maxOpened; got > most {
		t.Errorf("%d descriptors open, at most %d expected", got, most)
	}
	if v := s.ChainManifest(3); v.ID != m.Sources[0].Chain[3] {
		t.Errorf("manifest %d", v.ID)
	}
	mine := errors.New("mine")
	if err := s.FindAt(3, "AAA010101AAA", func(Row) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the error of fn came back as %v", err)
	}
	for _, i := range []int{-1, versions} {
		if err := s.FindAt(i, "AAA010101AAA", func(Row) error { return nil }); err == nil {
			t.Errorf("there is no version %d", i)
		}
	}
	e.Release()
	if got := openResources(t, c.dir); got != locked {
		t.Errorf("%d descriptors open after the last edition, want %d", got, locked)
	}
}

// Every flipped bit of an older version's rows file is an error, never another
// row; once the file is back, its rows are found again.
func TestFindAtDamaged(t *testing.T) {
	c := newTest(t)
	first := accept(t, c, testSchema, 1, numbered(1))
	if _, err := c.Publish(first, moment(1)); err != nil {
		t.Fatal(err)
	}
	m := publish(t, c, testSchema, 2, numbered(2))
	path := c.path(first.RowsFile.Path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := openEdition(t, c, m)
	find := func() (rows []Row, err error) {
		err = e.Source("lista").FindAt(0, "AAA010101AAA", func(r Row) error { rows = append(rows, r); return nil })
		return rows, err
	}
	for at := 0; at < len(whole); at += 7 {
		bad := append([]byte(nil), whole...)
		bad[at] ^= 1 << (at % 8)
		overwrite(t, path, bad)
		for range 2 {
			rows, err := find()
			wantCorrupt(t, err, first.RowsFile.Path)
			if len(rows) > 0 {
				t.Fatalf("byte %d: %v", at, rows)
			}
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = find()
	wantCorrupt(t, err, first.RowsFile.Path)
	if err := os.WriteFile(path, whole, 0o444); err != nil {
		t.Fatal(err)
	}
	if rows, err := find(); err != nil || len(rows) != 1 || rows[0].Raw[4] != "s1" {
		t.Errorf("restored: %v, %v", rows, err)
	}
}

func TestKnownAt(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 5, numbered(5))
	other := testSchema
	other.Source = "otra"
	publish(t, c, other, 7, numbered(7))
	publish(t, c, testSchema, 9, numbered(9))
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()

	// f asks twice: what is remembered is what was read.
	f := func(source string, before time.Time, edition int, situation string) {
		t.Helper()
		for range 2 {
			k, err := live.KnownAt(source, before)
			if err != nil {
				t.Fatal(err)
			}
			if k == nil {
				if edition != 0 {
					t.Errorf("%s before %v: nothing, want edition %d", source, before, edition)
				}
				k.Release()
				continue
			}
			var rows []Row
			if err := k.Find("AAA010101AAA", func(r Row) error { rows = append(rows, r); return nil }); err != nil {
				t.Fatal(err)
			}
			if k.Edition != edition || len(rows) != 1 || rows[0].Raw[4] != situation || k.Entry.VersionID != k.Version.ID {
				t.Errorf("%s before %v: edition %d, version %d, %v; want edition %d, %s", source, before, k.Edition, k.Version.ID, rows, edition, situation)
			}
			k.Release()
		}
	}
	f("lista", moment(5), 0, "") // published at that very moment, not before it
	f("lista", moment(5).Add(time.Second), 1, "s5")
	f("lista", moment(8), 2, "s5")
	f("lista", moment(9).Add(time.Second), 3, "s9")
	f("otra", moment(6), 0, "")
	f("otra", moment(8), 2, "s7")
	f("otra", moment(31), 3, "s7")
	f("ninguna", moment(31), 0, "")

	// What is published is known once it is served.
	publish(t, c, testSchema, 11, numbered(11))
	f("lista", moment(31), 3, "s9")
	if swapped, err := live.Refresh(); !swapped || err != nil {
		t.Fatalf("Refresh = %v, %v", swapped, err)
	}
	f("lista", moment(31), 4, "s11")
	f("lista", moment(10), 3, "s9")

	// A use outlives the swap and the Live.
	current, err := live.KnownAt("lista", moment(31))
	if err != nil {
		t.Fatal(err)
	}
	past, err := live.KnownAt("lista", moment(10))
	if err != nil {
		t.Fatal(err)
	}
	live.Close()
	for k, want := range map[*Known]string{current: "s11", past: "s9"} {
		if err := k.Find("AAA010101AAA", func(r Row) error {
			if r.Raw[4] != want {
				t.Errorf("%s, want %s", r.Raw[4], want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		k.Release()
	}
	f("lista", moment(31), 0, "")
}

// A damaged manifest that may hide the answer is an error; one that is older
// than the answer is not looked at.
func TestKnownAtDamaged(t *testing.T) {
	c := newTest(t)
	for n := 1; n <= 3; n++ {
		publish(t, c, testSchema, n, numbered(n))
	}
	overwrite(t, c.path(editionPath(2)), []byte("{}"))
	live, err := NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	k, err := live.KnownAt("lista", moment(4))
	if err != nil || k.Edition != 3 {
		t.Errorf("%+v, %v", k, err)
	}
	k.Release()
	for _, n := range []int{2, 3} {
		k, err = live.KnownAt("lista", moment(n))
		wantCorrupt(t, err, editionPath(2))
		if k != nil {
			t.Errorf("day %d: %+v", n, k)
		}
	}
	if err := os.Remove(c.path(editionPath(2))); err != nil {
		t.Fatal(err)
	}
	_, err = live.KnownAt("lista", moment(2))
	wantCorrupt(t, err, editionPath(2))
}
