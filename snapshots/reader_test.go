package snapshots

import (
	"slices"
	"strings"
	"testing"

	"cotejo/civil"
)

// A new reader gets the chain rebuilt from versions that it has read; without
// them it cannot publish.
func TestNewReader(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 3, textOne)
	publish(t, c, testSchema, 4, textTwo)
	two := testSchema
	two.Reader = 2
	two.Columns = slices.Clone(testSchema.Columns)
	two.Columns[3].Tracked = false

	newest := accept(t, c, two, 4, textTwo)
	if _, err := c.Publish(newest, moment(9)); err == nil || !strings.Contains(err.Error(), "versiones 1 ") {
		t.Errorf("publishing over a chain of another reader: %v", err)
	}
	latest, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	unread := func(except string, want ...int) {
		t.Helper()
		var got []int
		missing, err := c.Unread(&latest.Sources[0], 2, except)
		for _, v := range missing {
			got = append(got, v.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("unread: %v, %v; want %v", got, err, want)
		}
	}
	unread(newest.SHA256, 1)
	unread("", 1)
	accept(t, c, two, 2, textOne) // under another date it does not stand for version 1
	unread("", 1)
	old := accept(t, c, two, 3, textOne)
	unread("")
	m, err := c.Publish(newest, moment(9))
	if err != nil {
		t.Fatal(err)
	}
	e := m.Sources[0]
	if !slices.Equal(e.Chain, []int{old.ID, newest.ID}) || e.Reader != 2 || e.PublishedReset != civil.Timestamp(moment(9)) {
		t.Errorf("entry: %+v", e)
	}
	past := pasts(t, openEdition(t, c, m).Source("lista"), "AAA010101AAA")
	if len(past) != 1 || len(past[0].Events) != 1 || past[0].Events[0].Mask != 1<<4 {
		t.Errorf("history: %+v", past)
	}
	checkCatalogue(t, c)
}

// A reader that changes without a new number is found out.
func TestReaderChangedSilently(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 3, textOne)
	s, err := stageText(c, testSchema, textOne)
	if err != nil {
		t.Fatal(err)
	}
	cell := []string{"x", "x", "x", "x", "x"}
	if err := s.Add(Row{ID: []string{"x", "x"}, Raw: cell, Norm: cell}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(origin(3)); err == nil || !strings.Contains(err.Error(), "filas-1.sst") {
		t.Errorf("other rows under the same name: %v", err)
	}
	checkCatalogue(t, c)
}
