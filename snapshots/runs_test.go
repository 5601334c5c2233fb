package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// scratchIn makes files that the test can count.
func scratchIn(t testing.TB) (make func() (*os.File, error), made *int) {
	dir, n := t.TempDir(), new(int)
	return func() (*os.File, error) {
		*n++
		return os.Create(filepath.Join(dir, fmt.Sprint(*n)))
	}, n
}

// written is what a collection of rows gives: its pairs and its digest.
func written(t rapid.TB, b *rows) (pairs []byte, digest string) {
	t.Helper()
	sum := newRowsDigest()
	err := b.write(func(key, value []byte) error {
		pairs = appendCell(appendCell(pairs, key), value)
		return sum.add(key, value)
	})
	if err != nil {
		t.Fatal(err)
	}
	return pairs, sum.String()
}

// TestRunsGiveWhatMemoryGives holds that how much fits into memory, and the order
// of the file, have no part in keys, values and filas_digest.
func TestRunsGiveWhatMemoryGives(t *testing.T) {
	scratch, made := scratchIn(t)
	schema := Schema{Source: "x", Reader: 1, Columns: []Column{{"A", true}, {"B", false}}}
	text := rapid.StringMatching(`[ab]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Row {
			a, b := text.Draw(t, "a"), text.Draw(t, "b")
			return Row{
				ID: []string{rapid.StringMatching(`(aaaaaaa)?[ab]{1,2}`).Draw(t, "id")}, Suppressed: rapid.Bool().Draw(t, "suprimida"),
				Raw: []string{a, b}, Norm: []string{text.Draw(t, "norm"), b},
			}
		}), 0, 60).Draw(t, "filas")
		fill := func(limit int, list []Row) *rows {
			b := &rows{schema: schema, scratch: scratch, limit: limit}
			for i := range list {
				if err := b.add(&list[i]); err != nil {
					t.Fatal(err)
				}
			}
			if b.count != len(list) {
				t.Fatalf("%d filas de %d", b.count, len(list))
			}
			return b
		}
		whole := fill(0, list)
		pieces := fill(rapid.IntRange(1, 400).Draw(t, "límite"), rapid.Permutation(list).Draw(t, "orden"))
		defer pieces.discard()
		pairs, digest := written(t, whole)
		again, other := written(t, pieces)
		if !bytes.Equal(pairs, again) || digest != other {
			t.Fatalf("con %d piezas el resultado es otro", len(pieces.runs))
		}
	})
	if *made == 0 {
		t.Fatal("nunca hizo falta un archivo")
	}
}

// TestRunsThatCannotBeKept holds that a full disk and a cut file are errors, never
// fewer rows.
func TestRunsThatCannotBeKept(t *testing.T) {
	schema := Schema{Source: "x", Reader: 1, Columns: []Column{{"A", true}}}
	row := Row{ID: []string{"k"}, Raw: []string{"valor"}, Norm: []string{"valor"}}
	full := errors.New("no hay espacio")
	b := &rows{schema: schema, limit: 1, scratch: func() (*os.File, error) { return nil, full }}
	if err := b.add(&row); err != nil {
		t.Fatal(err)
	}
	if err := b.add(&row); !errors.Is(err, full) {
		t.Fatalf("err = %v", err)
	}

	scratch, _ := scratchIn(t)
	b = &rows{schema: schema, limit: 1, scratch: scratch}
	defer b.discard()
	for range 3 {
		if err := b.add(&row); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.runs[0].f.Truncate(b.runs[0].size - 1); err != nil {
		t.Fatal(err)
	}
	if err := b.write(func(_, _ []byte) error { return nil }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("una pieza cortada: %v", err)
	}
}
