package ledger_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// stored is a store's folder and its anchor, as bytes.
type stored struct {
	files  map[string][]byte
	anchor []byte
}

// TestFlippedBits changes one bit, or cuts the end, of each file of a store that
// nobody has open, and reads everything: the content is the same or there is an
// error, never another content. After a clean end all is in tables; after a crash
// the newest part is in the log, whose damage only the anchor shows.
func TestFlippedBits(t *testing.T) {
	f := func(name string, crashed bool, flips int) {
		if testing.Short() { // under the race detector Pebble notes a stack for each iterator
			flips /= 25
		}
		t.Run(name, func(t *testing.T) {
			s := written(t, crashed)
			want, err := s.content()
			if err != nil {
				t.Fatal(err)
			}
			trials := s.damage(rand.New(rand.NewPCG(26, 11)), flips)
			var next atomic.Int64
			var mu sync.Mutex
			same, refused, anchor := 0, 0, 0
			var workers sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				workers.Go(func() {
					for i := next.Add(1) - 1; int(i) < len(trials); i = next.Add(1) - 1 {
						got, err := trials[i].apply(s).content()
						mu.Lock()
						var byAnchor *ledger.AnchorError
						switch {
						case err != nil:
							refused++
							if errors.As(err, &byAnchor) {
								anchor++
							}
						case got == want:
							same++
						default:
							t.Errorf("%v: other content and no error", trials[i])
						}
						mu.Unlock()
					}
				})
			}
			workers.Wait()
			t.Logf("%d flips and cuts in %d files: %d with the same content, %d refused, of them %d by the anchor alone, 0 with other content",
				len(trials), len(s.files)+1, same, refused, anchor)
			if same == 0 || refused == 0 || anchor == 0 {
				t.Error("the test proves nothing")
			}
		})
	}
	f("closed", false, 2000)
	f("crashed", true, 500)
}

// written makes a store with some hundred charges over several accounts.
func written(t *testing.T, crashed bool) stored {
	t.Helper()
	mem := vfs.NewCrashableMem()
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: mem, MemTableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	anchor := newMemoryAnchor()
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)}.AnchoredOn(anchor, 1))
	if err != nil {
		t.Fatal(err)
	}
	for account := range ledger.AccountID(6) {
		credit(t, l, account+1, start, 100_000)
	}
	for i := range 300 {
		if _, _, err := charge(t, l, ledger.AccountID(1+i%6), 1, start, int64(i%3)*700); err != nil {
			t.Fatal(err)
		}
	}
	c := openOrder(orderID(t, l, start), 300)
	do[ledger.OrderOpened](t, l, 1, withPrice(c, 100))
	for first, b := 1, builder(t, l); first <= c.Units; {
		block, _ := build(t, l, b, orderOf(c), first, 100)
		first = do[ledger.OrderFilled](t, l, 1, ledger.FillOrder{Now: start, Block: block}).Done + 1
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	left := mem
	if crashed {
		left = mem.CrashClone(vfs.CrashCloneCfg{})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := left.List("datos")
	if err != nil {
		t.Fatal(err)
	}
	out := stored{files: map[string][]byte{}, anchor: anchor.text}
	for _, name := range names {
		file, err := left.Open(path.Join("datos", name))
		if err != nil {
			t.Fatal(err)
		}
		out.files[name], err = io.ReadAll(file)
		if err = errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// damaged is one bit that changed, or one file that ends early.
type damaged struct {
	file string // "": the anchor
	at   int
	bit  byte // 0: cut at
}

func (d damaged) String() string {
	if d.bit == 0 {
		return fmt.Sprintf("%s cut at %d", d.file, d.at)
	}
	return fmt.Sprintf("%s byte %d bit %#x", d.file, d.at, d.bit)
}

func (d damaged) apply(s stored) stored {
	change := func(b []byte) []byte {
		if d.bit == 0 {
			return b[:d.at]
		}
		b = slices.Clone(b)
		b[d.at] ^= d.bit
		return b
	}
	out := stored{files: map[string][]byte{}, anchor: s.anchor}
	for name, b := range s.files {
		out.files[name] = b
	}
	if d.file == "" {
		out.anchor = change(s.anchor)
	} else {
		out.files[d.file] = change(s.files[d.file])
	}
	return out
}

// damage spreads flips over the files that have bytes, and cuts each of them at
// each 4 KiB.
func (s stored) damage(rng *rand.Rand, flips int) (trials []damaged) {
	names := []string{""}
	sizes := map[string]int{"": len(s.anchor)}
	for name, b := range s.files {
		if len(b) > 0 {
			names, sizes[name] = append(names, name), len(b)
		}
	}
	slices.Sort(names)
	for i := range flips {
		name := names[i%len(names)]
		trials = append(trials, damaged{name, rng.IntN(sizes[name]), 1 << rng.IntN(8)})
	}
	for _, name := range names {
		for at := 0; at < sizes[name]; at += 4 << 10 {
			trials = append(trials, damaged{name, at, 0})
		}
	}
	return trials
}

// content opens everything and reads it: the sum of all keys, values and records,
// or an error.
func (s stored) content() (sum [sha256.Size]byte, err error) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("datos", 0o700); err != nil {
		return sum, err
	}
	for name, b := range s.files {
		file, err := mem.Create(path.Join("datos", name), vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = file.Write(slices.Clone(b))
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return sum, err
		}
	}
	var fatal atomic.Pointer[error]
	died := func(err error) { fatal.CompareAndSwap(nil, &err) }
	engine, err := store.OpenPebble("datos", store.PebbleOptions{FS: mem, MemTableBytes: 64 << 10, Fatal: died})
	if err != nil {
		return sum, err
	}
	defer func() {
		if closed := engine.Close(); err == nil {
			err = closed
		}
		if p := fatal.Load(); p != nil && err == nil {
			err = *p
		}
	}()
	l, err := ledger.Open(engine, ledger.Options{Fatal: died}.AnchoredOn(&memoryAnchor{text: s.anchor}, 1))
	if err != nil {
		return sum, err
	}
	defer l.Close()
	h := sha256.New()
	for g := range store.Group(store.Groups + 1) {
		err := engine.Reader(g).Scan(nil, nil, func(key, value []byte) error {
			fmt.Fprintf(h, "%d %d %d ", g, len(key), len(value))
			h.Write(key)
			h.Write(value)
			return nil
		})
		if err != nil {
			return sum, err
		}
	}
	err = l.Records(func(a ledger.AccountID, r ledger.Record) error {
		fmt.Fprintf(h, "%d %v %d %v %s %s %s %x %d %d ", a, r.ID, r.Org, r.Sandbox, r.Service, r.Code, r.Operation, r.Edition, r.Centavos, r.Movement)
		h.Write(r.Registro)
		h.Write(r.Acta)
		fmt.Fprintf(h, "%v %d %s ", r.Order, r.Ordinal, r.Note)
		return nil
	})
	if err == nil {
		var rep ledger.Report
		rep, err = ledger.Check(ctx, engine)
		fmt.Fprintf(h, "%+v %v\n", rep, l.Heads())
	}
	return [sha256.Size]byte(h.Sum(nil)), err
}
