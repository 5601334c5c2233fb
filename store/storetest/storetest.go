// Package storetest is what every engine of package store must pass: the same
// promises, tested the same way. Start reading at Run.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"cotejo/store"
)

// Run tests the store that open returns. Each call of open must give an empty
// store; Run closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"acquire raises the epoch":             acquire,
		"commit is read back":                  commit,
		"groups do not see each other":         groups,
		"several groups commit at once":        several,
		"stale epoch and wrong seq are fenced": fenced,
		"one fenced group fences them all":     fencedTogether,
		"scan bounds and order":                scan,
		"scan stops at an error":               scanError,
		"long scans and large values":          scanLong,
		"values are copies":                    copies,
		"a view stays as it was":               view,
		"closed":                               closed,
		"random batches against a map":         random,
		"readers while a writer commits":       concurrent,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			test(t, s)
		})
	}
}

// writer commits to one group and keeps count.
type writer struct {
	t          *testing.T
	s          store.Store
	g          store.Group
	epoch, seq uint64
}

func newWriter(t *testing.T, s store.Store, g store.Group) *writer {
	t.Helper()
	epoch, seq, err := s.Acquire(g)
	if err != nil {
		t.Fatalf("Acquire(%d): %v", g, err)
	}
	return &writer{t, s, g, epoch, seq}
}

func (w *writer) batch(puts map[string]string, deletes ...string) store.Batch {
	b := store.Batch{Group: w.g, Epoch: w.epoch, Seq: w.seq + 1}
	for k, v := range puts {
		b.Puts = append(b.Puts, store.Put{Key: []byte(k), Value: []byte(v)})
	}
	for _, k := range deletes {
		b.Deletes = append(b.Deletes, []byte(k))
	}
	return b
}

func (w *writer) commit(puts map[string]string, deletes ...string) {
	w.t.Helper()
	if err := w.s.Commit(w.batch(puts, deletes...)); err != nil {
		w.t.Fatalf("Commit: %v", err)
	}
	w.seq++
}

func wantValue(t *testing.T, r store.Reader, key, want string) {
	t.Helper()
	got, err := r.Get([]byte(key))
	if err != nil || string(got) != want {
		t.Errorf("Get(%q) = %q, %v; want %q", key, got, err, want)
	}
}

func wantAbsent(t *testing.T, r store.Reader, key string) {
	t.Helper()
	if got, err := r.Get([]byte(key)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get(%q) = %q, %v; want ErrNotFound", key, got, err)
	}
}

func keys(t *testing.T, r store.Reader, lower, upper []byte) string {
	t.Helper()
	var out []byte
	err := r.Scan(lower, upper, func(k, v []byte) error {
		out = fmt.Appendf(out, "%s=%s ", k, v)
		return nil
	})
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	return string(out)
}

func acquire(t *testing.T, s store.Store) {
	first := newWriter(t, s, 3)
	if first.epoch == 0 || first.seq != 0 {
		t.Errorf("first Acquire = %d, %d; want an epoch above 0 and seq 0", first.epoch, first.seq)
	}
	first.commit(map[string]string{"a": "1"})
	second := newWriter(t, s, 3)
	if second.epoch <= first.epoch || second.seq != 1 {
		t.Errorf("second Acquire = %d, %d; want an epoch above %d and seq 1", second.epoch, second.seq, first.epoch)
	}
}

func commit(t *testing.T, s store.Store) {
	w := newWriter(t, s, 0)
	w.commit(map[string]string{"a": "1", "b": "2", "": "empty key", "c": ""})
	r := s.Reader(0)
	wantValue(t, r, "a", "1")
	wantValue(t, r, "", "empty key")
	wantValue(t, r, "c", "")
	w.commit(map[string]string{"a": "3"}, "b", "never there")
	wantValue(t, r, "a", "3")
	wantAbsent(t, r, "b")
	w.commit(nil)
	wantValue(t, r, "a", "3")
}

func groups(t *testing.T, s store.Store) {
	newWriter(t, s, 1).commit(map[string]string{"k": "one"})
	newWriter(t, s, store.Global).commit(map[string]string{"k": "global"})
	wantValue(t, s.Reader(1), "k", "one")
	wantValue(t, s.Reader(store.Global), "k", "global")
	wantAbsent(t, s.Reader(2), "k")
	if got := keys(t, s.Reader(1), nil, nil); got != "k=one " {
		t.Errorf("an unbounded scan left its group: %q", got)
	}
	if got := keys(t, s.Reader(store.Global), nil, nil); got != "k=global " {
		t.Errorf("an unbounded scan left the global group: %q", got)
	}
}

func several(t *testing.T, s store.Store) {
	a, b := newWriter(t, s, 4), newWriter(t, s, 9)
	if err := s.Commit(b.batch(map[string]string{"x": "b"}), a.batch(map[string]string{"x": "a"})); err != nil {
		t.Fatal(err)
	}
	wantValue(t, s.Reader(4), "x", "a")
	wantValue(t, s.Reader(9), "x", "b")
}

func fenced(t *testing.T, s store.Store) {
	old := newWriter(t, s, 5)
	old.commit(map[string]string{"k": "old"})
	owner := newWriter(t, s, 5)

	f := func(what string, b store.Batch) {
		t.Helper()
		if err := s.Commit(b); !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: %v; want ErrFenced", what, err)
		}
		wantValue(t, s.Reader(5), "k", "old")
	}
	f("stale epoch", old.batch(map[string]string{"k": "stale"}))
	f("stale epoch delete", old.batch(nil, "k"))
	skipped := owner.batch(map[string]string{"k": "skipped"})
	skipped.Seq++
	f("seq ahead", skipped)
	repeated := owner.batch(map[string]string{"k": "repeated"})
	repeated.Seq--
	f("seq behind", repeated)
	never := store.Batch{Group: 6, Epoch: 1, Seq: 1}
	f("group never acquired", never)

	owner.commit(map[string]string{"k": "new"})
	wantValue(t, s.Reader(5), "k", "new")
}

func fencedTogether(t *testing.T, s store.Store) {
	a, lost, b := newWriter(t, s, 4), newWriter(t, s, 9), newWriter(t, s, store.Global)
	owner := newWriter(t, s, 9)
	err := s.Commit(
		a.batch(map[string]string{"x": "1"}), lost.batch(map[string]string{"x": "1"}), b.batch(map[string]string{"x": "1"}))
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("with one lost group: %v; want ErrFenced", err)
	}
	for _, g := range []store.Group{4, 9, store.Global} {
		wantAbsent(t, s.Reader(g), "x")
	}
	// No count moved either.
	if err := s.Commit(b.batch(map[string]string{"x": "2"}), owner.batch(map[string]string{"x": "2"}), a.batch(map[string]string{"x": "2"})); err != nil {
		t.Fatal(err)
	}
	wantValue(t, s.Reader(9), "x", "2")
}

func scan(t *testing.T, s store.Store) {
	w := newWriter(t, s, 2)
	w.commit(map[string]string{"a": "1", "b": "2", "b\x00": "3", "c": "4", "\xff\xff": "5"})
	f := func(lower, upper []byte, want string) {
		t.Helper()
		if got := keys(t, s.Reader(2), lower, upper); got != want {
			t.Errorf("Scan(%q, %q) = %q, want %q", lower, upper, got, want)
		}
	}
	f(nil, nil, "a=1 b=2 b\x00=3 c=4 \xff\xff=5 ")
	f([]byte("b"), []byte("c"), "b=2 b\x00=3 ")
	f([]byte("b\x00"), nil, "b\x00=3 c=4 \xff\xff=5 ")
	f(nil, []byte("b"), "a=1 ")
	f([]byte("d"), []byte("e"), "")
	f([]byte("b"), []byte("b"), "")
}

func scanError(t *testing.T, s store.Store) {
	w := newWriter(t, s, 2)
	w.commit(map[string]string{"a": "1", "b": "2"})
	stop := errors.New("enough")
	n := 0
	err := s.Reader(2).Scan(nil, nil, func(k, v []byte) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("Scan = %v after %d calls; want the callback's error itself after 1", err, n)
	}
}

// scanLong reads more than any engine takes at once, small values and large ones,
// and reads within the scan.
func scanLong(t *testing.T, s store.Store) {
	w := newWriter(t, s, 2)
	const small, large, size = 5000, 20, 300_000
	puts := map[string]string{}
	for i := range small {
		puts[fmt.Sprintf("a%06d", i)] = "v"
	}
	w.commit(puts)
	for i := range large {
		w.commit(map[string]string{fmt.Sprintf("b%06d", i): fmt.Sprintf("%0*d", size, i)})
	}
	r := s.Reader(2)
	n, last := 0, ""
	err := r.Scan(nil, nil, func(k, v []byte) error {
		if string(k) <= last {
			t.Fatalf("%q after %q", k, last)
		}
		last = string(k)
		if k[0] == 'b' && len(v) != size {
			t.Errorf("%s has %d bytes, want %d", k, len(v), size)
		}
		if n++; n%1000 == 0 {
			wantValue(t, r, "a000000", "v")
		}
		return nil
	})
	if err != nil || n != small+large {
		t.Errorf("%d keys, %v; want %d", n, err, small+large)
	}
	wantValue(t, r, "b000007", fmt.Sprintf("%0*d", size, 7))
}

func copies(t *testing.T, s store.Store) {
	w := newWriter(t, s, 7)
	b := w.batch(map[string]string{"k": "value"})
	if err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	clear(b.Puts[0].Key)
	clear(b.Puts[0].Value)
	wantValue(t, s.Reader(7), "k", "value")
	got, err := s.Reader(7).Get([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	clear(got)
	wantValue(t, s.Reader(7), "k", "value")
}

func view(t *testing.T, s store.Store) {
	w := newWriter(t, s, 8)
	w.commit(map[string]string{"a": "1", "b": "2"})
	v, err := s.View(8)
	if err != nil {
		t.Fatal(err)
	}
	w.commit(map[string]string{"a": "changed", "c": "3"}, "b")
	wantValue(t, v, "a", "1")
	wantAbsent(t, v, "c")
	if got := keys(t, v, nil, nil); got != "a=1 b=2 " || v.Seq() != 1 {
		t.Errorf("view shows %q at seq %d; want the state of seq 1", got, v.Seq())
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func closed(t *testing.T, s store.Store) {
	w := newWriter(t, s, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v; want ErrClosed", what, err)
		}
	}
	_, err := s.Reader(0).Get([]byte("k"))
	f("Get", err)
	f("Scan", s.Reader(0).Scan(nil, nil, func(k, v []byte) error { return nil }))
	f("Commit", s.Commit(w.batch(map[string]string{"k": "v"})))
	_, err = s.View(0)
	f("View", err)
	_, _, err = s.Acquire(0)
	f("Acquire", err)
}

func random(t *testing.T, s store.Store) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := newWriter(t, s, 11)
	model := map[string]string{}
	for range 200 {
		puts, deletes := map[string]string{}, []string{}
		for range 1 + rng.IntN(8) {
			k := fmt.Sprintf("%03d", rng.IntN(100))
			if _, ok := puts[k]; ok || slices.Contains(deletes, k) {
				continue
			}
			if rng.IntN(3) == 0 {
				deletes = append(deletes, k)
				delete(model, k)
			} else {
				puts[k] = fmt.Sprint(rng.Uint32())
				model[k] = puts[k]
			}
		}
		w.commit(puts, deletes...)
	}
	var want []byte
	names := make([]string, 0, len(model))
	for k := range model {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		want = fmt.Appendf(want, "%s=%s ", k, model[k])
	}
	if got := keys(t, s.Reader(11), nil, nil); got != string(want) {
		t.Errorf("store and model differ:\n%s\n%s", got, want)
	}
}

// concurrent writes pairs of keys with equal values; no view may ever show half
// a batch.
func concurrent(t *testing.T, s store.Store) {
	w := newWriter(t, s, 12)
	w.commit(map[string]string{"left": "0", "right": "0"})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v, err := s.View(12)
				if err != nil {
					t.Errorf("View: %v", err)
					return
				}
				l, err1 := v.Get([]byte("left"))
				r, err2 := v.Get([]byte("right"))
				if err1 != nil || err2 != nil || !bytes.Equal(l, r) {
					t.Errorf("half a batch: left %q (%v), right %q (%v)", l, err1, r, err2)
				}
				if err := v.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
	for i := range 100 {
		n := fmt.Sprint(i)
		w.commit(map[string]string{"left": n, "right": n})
	}
	close(stop)
	readers.Wait()
}
