package tabular

import (
	"bytes"
	"testing"
)

// TestStringsStay fails when a string changes after later ones were made, which is
// what a piece that is written over would do.
func TestStringsStay(t *testing.T) {
	var s Strings
	var made []string
	var want [][]byte
	for i := range 3000 {
		cell := bytes.Repeat([]byte{byte('a' + i%26)}, i%190)
		if i == 1500 {
			cell = bytes.Repeat([]byte{'Z'}, 3*piece)
		}
		made, want = append(made, s.Make(cell)), append(want, bytes.Clone(cell))
		clear(cell)
	}
	for i := range made {
		if made[i] != string(want[i]) {
			t.Fatalf("string %d is %.20q, want %.20q", i, made[i], want[i])
		}
	}
	cell := []byte("EMPRESA INVENTADA, S.A. DE C.V.")
	if n := testing.AllocsPerRun(1000, func() { s.Make(cell) }); n != 0 {
		t.Errorf("a cell allocates %v times", n)
	}
}
