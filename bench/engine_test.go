package bench

import (
	"testing"
)

// TestSyntheticEditionIsAskable: it has every source of the company answer, what it
// says is listed is found by table and rows alike, and asking about anybody else
// allocates nothing.
func TestSyntheticEditionIsAskable(t *testing.T) {
	e, err := publishEdition(t.TempDir(), 4000, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	if n := len(e.Manifest().Sources); n != 25 || e.rows < 4000+largestContracts-2000 || len(e.listed) < 1000 {
		t.Errorf("%d sources, %d rows, %d RFCs", n, e.rows, len(e.listed))
	}
	s := &engineSide{edition: e}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if got := s.cleanOnes.allocs[0]; got >= 0.01 {
		t.Errorf("%v allocations for an RFC that nobody mentions", got)
	}
	if got := s.classify.allocs[0]; got >= 0.01 {
		t.Errorf("%v allocations to classify an RFC that nobody mentions", got)
	}
	if s.registroBytes < 4000 {
		t.Errorf("a registro of %d bytes", s.registroBytes)
	}
}
