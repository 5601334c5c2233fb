package index

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func createSorted(t testing.TB, path string) *SortedWriter {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return NewSorted(f)
}

func writeSorted(t testing.TB, path string, n int) {
	t.Helper()
	w := createSorted(t, path)
	for i := range n {
		if err := w.Add(testKey(i), testValue(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

func testKey(i int) []byte { return fmt.Appendf(nil, "K%07d\x00%d\x00", i/3, i%3) }
func testValue(i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "valor %d ", i), 1+i%40)
}

func TestSortedPrefix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sst")
	const n = 30_000
	writeSorted(t, path, n)
	s, err := OpenSorted(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	f := func(prefix string, want ...int) {
		t.Helper()
		var got []int
		err := s.Prefix([]byte(prefix), func(k, v []byte) error {
			i := 0
			for ; i < n && !bytes.Equal(testKey(i), k); i++ {
			}
			if !bytes.Equal(v, testValue(i)) {
				t.Errorf("%q has the value of another key", k)
			}
			got = append(got, i)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Prefix(%q) = %v, want %v", prefix, got, want)
		}
	}
	f("K0000000\x00", 0, 1, 2)
	f("K0004321\x00", 12963, 12964, 12965)
	f("K0009999\x002", n-1)
	f("K000999\x00")
	f("A")
	f("Z")

	all := 0
	if err := s.Prefix(nil, func(k, v []byte) error {
		if !bytes.Equal(k, testKey(all)) || !bytes.Equal(v, testValue(all)) {
			return fmt.Errorf("pair %d is %q", all, k)
		}
		all++
		return nil
	}); err != nil || all != n {
		t.Errorf("walked %d pairs (%v), want %d", all, err, n)
	}

	stop := errors.New("stop")
	if err := s.Prefix([]byte("K"), func(_, _ []byte) error { return stop }); err != stop {
		t.Errorf("error of fn came back as %v", err)
	}
}

func TestSortedEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vacio.sst")
	writeSorted(t, path, 0)
	s, err := OpenSorted(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prefix(nil, func(_, _ []byte) error { return errors.New("a pair") }); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSortedBytesAreDeterministic(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	writeSorted(t, a, 20_000)
	writeSorted(t, b, 20_000)
	x, _ := os.ReadFile(a)
	y, _ := os.ReadFile(b)
	if len(x) == 0 || !bytes.Equal(x, y) {
		t.Error("the same pairs gave different bytes")
	}
}

func TestSortedRefusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	w := createSorted(t, path)
	if err := w.Add([]byte("b"), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Add([]byte("a"), nil); err == nil {
		t.Error("descending keys were taken")
	}
	w.Abort()
	w.Abort()
	if err := w.Finish(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("finishing an aborted file: %v", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("no es una tabla "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSorted(path); err == nil {
		t.Error("opened a file of another kind")
	}
}

// A byte flipped anywhere is an error or changes nothing; it never gives other
// pairs and never a panic.
func TestSortedFlippedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	const n = 300
	writeSorted(t, path, n)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "b")
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		at := rng.IntN(len(good))
		data := bytes.Clone(good)
		data[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(bad, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSorted(bad)
		if err != nil {
			continue
		}
		i := 0
		err = s.Prefix(nil, func(k, v []byte) error {
			if i >= n || !bytes.Equal(k, testKey(i)) || !bytes.Equal(v, testValue(i)) {
				t.Errorf("byte %d flipped: pair %d is wrong", at, i)
			}
			i++
			return nil
		})
		if err == nil && i != n {
			t.Errorf("byte %d flipped: %d pairs without an error", at, i)
		}
		s.Close()
	}
}

func TestSortedConcurrentReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	const n = 6_000
	writeSorted(t, path, n)
	s, err := OpenSorted(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			for range 500 {
				i := rng.IntN(n)
				found := false
				err := s.Prefix(testKey(i), func(_, v []byte) error {
					found = bytes.Equal(v, testValue(i))
					return nil
				})
				if err != nil || !found {
					t.Errorf("key %d: found %v, %v", i, found, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkSortedPrefix(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a")
	const n = 200_000
	writeSorted(b, path, n)
	s, err := OpenSorted(path)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Prefix(testKey(rng.IntN(n)), func(_, _ []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
