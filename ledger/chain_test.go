package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// linkKey is the key of a link, after docs/data-formats.md.
func linkKey(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte{9: 0x01}, seq) }

func isLink(key []byte) bool { return len(key) == 18 && key[9] == 0x01 }

// recorder keeps what is committed: of each group, its batches.
type recorder struct {
	store.Store
	mu      sync.Mutex
	written map[store.Group][]store.Batch
}

func (r *recorder) Commit(batches ...store.Batch) error {
	r.mu.Lock()
	for _, b := range batches {
		r.written[b.Group] = append(r.written[b.Group], cloneBatch(b))
	}
	r.mu.Unlock()
	return r.Store.Commit(batches...)
}

func cloneBatch(b store.Batch) store.Batch {
	b.Puts, b.Deletes = slices.Clone(b.Puts), slices.Clone(b.Deletes)
	for i, p := range b.Puts {
		b.Puts[i] = store.Put{Key: slices.Clone(p.Key), Value: slices.Clone(p.Value)}
	}
	for i, key := range b.Deletes {
		b.Deletes[i] = slices.Clone(key)
	}
	return b
}

// TestChainIsAsDocumented computes every link again from what was committed, the
// way docs/data-formats.md tells it.
func TestChainIsAsDocumented(t *testing.T) {
	r := &recorder{Store: openStore(t, vfs.NewMem()), written: map[store.Group][]store.Batch{}}
	defer r.Close()
	l, err := ledger.Open(r, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for account := range ledger.AccountID(120) {
		credit(t, l, account+1, start, 5000)
		for range 3 {
			if _, _, err := charge(t, l, account+1, 1, start, 700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := l.Do(ctx, 1, deletion{}); err != nil {
		t.Fatal(err)
	}
	deletes := 0
	var heads []ledger.Head
	for g := range store.Group(store.Groups + 1) {
		head := make([]byte, 32)
		for i, b := range r.written[g] {
			text := []byte{byte(g)}
			number := func(n int) { text = binary.BigEndian.AppendUint32(text, uint32(n)) }
			puts := slices.DeleteFunc(slices.Clone(b.Puts), func(p store.Put) bool { return isLink(p.Key) })
			number(len(puts))
			for _, p := range puts {
				number(len(p.Key))
				number(len(p.Value))
				text = slices.Concat(text, p.Key, p.Value)
			}
			number(len(b.Deletes))
			for _, key := range b.Deletes {
				number(len(key))
				text = append(text, key...)
			}
			deletes += len(b.Deletes)
			digest := sha256.Sum256(text)
			sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Concat(head, digest[:]), b.Seq))
			head = sum[:]
			want := slices.Concat([]byte{1}, digest[:], head)
			if got, err := r.Reader(g).Get(linkKey(b.Seq)); err != nil || !slices.Equal(got, want) {
				t.Fatalf("group %d batch %d: link %x, %v; want %x", g, b.Seq, got, err, want)
			}
			if len(puts) != len(b.Puts)-1 || b.Seq != uint64(i+1) {
				t.Fatalf("group %d batch %d carries %d links", g, b.Seq, len(b.Puts)-len(puts))
			}
		}
		heads = append(heads, ledger.Head{Group: g, Seq: uint64(len(r.written[g])), Sum: [32]byte(head)})
	}
	if deletes == 0 || len(r.written) != store.Groups+1 {
		t.Errorf("%d deletes, %d groups: the test looks at too little", deletes, len(r.written))
	}
	if got := l.Heads(); !slices.Equal(got, heads) {
		t.Errorf("Heads = %v; want %v", got, heads)
	}
	if got, err := ledger.HeadsOf(r); err != nil || !slices.Equal(got, heads) {
		t.Errorf("HeadsOf = %v, %v; want %v", got, err, heads)
	}
	if rep := check(t, r); rep.Accounts != 120 {
		t.Errorf("%d accounts; want 120: account 0 is none", rep.Accounts)
	}
}

// deletion puts a key of another package and deletes one.
type deletion struct{}

func (deletion) Apply(tx *ledger.Tx) (ledger.Result, error) {
	tx.Put(0x40, []byte("queda"), []byte("x"))
	tx.Delete(0x40, []byte("se va"))
	return nil, nil
}

// raw commits puts and deletes behind the ledger's back, with a link only when
// puts has one. The first put of a link is for the next batch.
func raw(t *testing.T, s store.Store, g store.Group, puts []store.Put, deletes ...[]byte) {
	t.Helper()
	epoch, seq, err := s.Acquire(g)
	if err == nil {
		err = s.Commit(store.Batch{Group: g, Epoch: epoch, Seq: seq + 1, Puts: puts, Deletes: deletes})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lived makes a closed store with some accounts, and gives it back opened.
func lived(t *testing.T) store.Store {
	t.Helper()
	s := openStore(t, vfs.NewMem())
	t.Cleanup(func() { s.Close() })
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		credit(t, l, 1, start, 5000)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// groupOf finds the group of account 1.
func groupOf(t *testing.T, s store.Store) ledger.Head {
	t.Helper()
	heads, err := ledger.HeadsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads[:store.Groups] {
		if h.Seq > 0 {
			return h
		}
	}
	t.Fatal("nothing was written")
	return ledger.Head{}
}

func TestBrokenChains(t *testing.T) {
	f := func(what string, opens bool, damage func(t *testing.T, s store.Store, h ledger.Head)) {
		t.Run(what, func(t *testing.T) {
			s := lived(t)
			h := groupOf(t, s)
			damage(t, s, h)
			rep, err := ledger.Check(ctx, s)
			if !errors.Is(err, ledger.ErrIntegrity) || !strings.Contains(fmt.Sprint(rep.Violations), fmt.Sprintf("grupo %d:", h.Group)) {
				t.Errorf("Check = %v, %v; want ErrIntegrity that names the group", rep, err)
			}
			_, err = ledger.HeadsOf(s)
			if opens != (err == nil) || !opens && !errors.Is(err, ledger.ErrIntegrity) {
				t.Errorf("HeadsOf: %v; opens: %v", err, opens)
			}
			l, err := ledger.Open(s, ledger.Options{})
			if opens != (err == nil) || !opens && !errors.Is(err, ledger.ErrIntegrity) {
				t.Errorf("Open: %v; opens: %v", err, opens)
			}
			if l != nil {
				l.Close()
			}
		})
	}
	// fixed commits with a link that is right, computed by a ledger.
	fixed := func(t *testing.T, s store.Store, cmd ledger.Command) {
		t.Helper()
		l, err := ledger.Open(s, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Do(ctx, 1, cmd); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f("a batch without a link", false, func(t *testing.T, s store.Store, h ledger.Head) {
		raw(t, s, h.Group, nil)
	})
	f("the newest link gone", false, func(t *testing.T, s store.Store, h ledger.Head) {
		raw(t, s, h.Group, nil, linkKey(h.Seq))
	})
	f("a link too many", false, func(t *testing.T, s store.Store, h ledger.Head) {
		value := slices.Concat([]byte{1}, make([]byte, 64))
		raw(t, s, h.Group, []store.Put{{Key: linkKey(h.Seq + 1), Value: value}, {Key: linkKey(h.Seq + 2), Value: value}})
	})
	f("an unreadable link", false, func(t *testing.T, s store.Store, h ledger.Head) {
		raw(t, s, h.Group, []store.Put{{Key: linkKey(h.Seq + 1), Value: []byte{1, 2, 3}}})
	})
	f("a link that does not follow", true, func(t *testing.T, s store.Store, h ledger.Head) {
		raw(t, s, h.Group, []store.Put{{Key: linkKey(h.Seq + 1), Value: slices.Concat([]byte{1}, make([]byte, 64))}})
		fixed(t, s, deletion{})
	})
	f("an old link gone", true, func(t *testing.T, s store.Store, h ledger.Head) {
		fixed(t, s, ledger.Unlink{Seq: 2})
	})
	f("the first link gone", true, func(t *testing.T, s store.Store, h ledger.Head) {
		fixed(t, s, ledger.Unlink{Seq: 1})
	})
}

// TestChainBeginsLate: a store from before there were chains gets its first link
// with its next batch, also where an anchor was written in between.
func TestChainBeginsLate(t *testing.T) {
	fs := vfs.NewMem()
	s := &chainless{Store: openStore(t, fs)}
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		credit(t, l, 1, start, 5000)
	}
	if err := errors.Join(l.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}

	files := newMemoryAnchor()
	real := openStore(t, fs)
	defer real.Close()
	h := groupOf(t, real)
	if h.Seq != 3 || h.Sum != [32]byte{} {
		t.Fatalf("the old store has head %+v", h)
	}
	for range 2 { // without a new batch, and again with the anchor of that
		l, err = ledger.Open(real, ledger.Options{}.AnchoredOn(files, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	old := files.text
	for range 2 {
		l, err = ledger.Open(real, ledger.Options{}.AnchoredOn(files, 1))
		if err != nil {
			t.Fatal(err)
		}
		credit(t, l, 1, start, 5000)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		files.text = old // the store is ahead
	}
	check(t, real)
	if _, err := real.Reader(h.Group).Get(linkKey(3)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("link 3: %v; the chain begins with batch 4", err)
	}
	if h := groupOf(t, real); h.Seq != 5 || h.Sum == [32]byte{} {
		t.Errorf("head %+v; want batch 5", h)
	}
}

// chainless writes as programs did before there were chains.
type chainless struct{ store.Store }

func (s *chainless) Commit(batches ...store.Batch) error {
	for i := range batches {
		batches[i].Puts = slices.DeleteFunc(slices.Clone(batches[i].Puts), func(p store.Put) bool { return isLink(p.Key) })
	}
	return s.Store.Commit(batches...)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	s := lived(t)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := ledger.Check(over, s); !errors.Is(err, context.Canceled) {
		t.Errorf("Check = %v; want context.Canceled", err)
	}
}

// TestLostIDKey: another key would give ids twice.
func TestLostIDKey(t *testing.T) {
	s := lived(t)
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Do(ctx, ledger.Global, ledger.LoseKey{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Check(ctx, s); !errors.Is(err, ledger.ErrIntegrity) {
		t.Errorf("Check = %v; want ErrIntegrity", err)
	}
	if _, err := ledger.Open(s, ledger.Options{}); !errors.Is(err, ledger.ErrIntegrity) {
		t.Errorf("Open = %v; want ErrIntegrity", err)
	}
}
