package ledger_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/store"
	"cotejo/store/storetest"
)

// machine runs the ledger and the model side by side.
type machine struct {
	engine func() (store.Store, error)
	store  store.Store
	l      *ledger.Ledger
	now    time.Time
	books  map[ledger.AccountID]*book
	ids    map[string]bool
	days   map[string]uint32 // last day by prefix

	builders []*ledger.BlockBuilder // one for each block that waits to be stored
	building int                    // of them in use
}

func (m *machine) open(t *rapid.T) {
	s, err := m.engine()
	if err != nil {
		t.Fatal(err)
	}
	m.store = s
	if m.l, err = ledger.Open(s, ledger.Options{Random: seeded(3)}); err != nil {
		t.Fatal(err)
	}
	m.builders = nil
}

func (m *machine) close(t *rapid.T) {
	if err := errors.Join(m.l.Close(), m.store.Close()); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) account(t *rapid.T) (ledger.AccountID, *book) {
	a := ledger.AccountID(rapid.IntRange(1, 3).Draw(t, "account"))
	if m.books[a] == nil {
		m.books[a] = &book{}
	}
	return a, m.books[a]
}

func (m *machine) nextID(t *rapid.T, prefix string) ledger.VerificationID {
	return m.nextIDs(t, prefix, 1)[0]
}

// nextIDs are n ids, with consecutive counters.
func (m *machine) nextIDs(t *rapid.T, prefix string, n int) (ids []ledger.VerificationID) {
	first, got, err := m.l.NextIDs(ctx, prefix, m.now, n)
	if err != nil || got < 1 || got > n {
		t.Fatal(got, err)
	}
	for i := range uint32(got) {
		id := ledger.VerificationID{Prefix: first.Prefix, Day: first.Day, Counter: first.Counter + i}
		id.Code = m.l.CodeOf(id)
		m.given(t, prefix, id)
		ids = append(ids, id)
	}
	return ids
}

func (m *machine) given(t *rapid.T, prefix string, id ledger.VerificationID) {
	if m.ids[id.String()] {
		t.Fatalf("%v given twice", id)
	}
	m.ids[id.String()] = true
	if id.Day < m.days[prefix] {
		t.Fatalf("%v after a day %d", id, m.days[prefix])
	}
	m.days[prefix] = id.Day
	if back, ok := m.l.ParseID(id.String()); !ok || back != id {
		t.Fatalf("ParseID(%v) = %+v, %v", id, back, ok)
	}
}

// The commands of the model are in steps_test.go: each runs alone, or several in
// one durable write.

func (m *machine) Credit(t *rapid.T)     { m.alone(t, m.credit(t)) }
func (m *machine) CreditUses(t *rapid.T) { m.alone(t, m.creditUses(t)) }
func (m *machine) Charge(t *rapid.T)     { m.alone(t, m.charge(t)) }
func (m *machine) Use(t *rapid.T)        { m.alone(t, m.use(t)) }
func (m *machine) Hold(t *rapid.T)       { m.alone(t, m.hold(t)) }
func (m *machine) Release(t *rapid.T)    { m.alone(t, m.release(t)) }
func (m *machine) OpenOrder(t *rapid.T)  { m.alone(t, m.openOrder(t)) }
func (m *machine) FillOrder(t *rapid.T)  { m.alone(t, m.fillOrder(t)) }
func (m *machine) FillMore(t *rapid.T)   { m.alone(t, m.fillOrder(t)) }
func (m *machine) HoldOrder(t *rapid.T)  { m.alone(t, m.holdOrder(t)) }
func (m *machine) StopOrder(t *rapid.T)  { m.alone(t, m.stopOrder(t)) }

// Batch runs several commands in one durable write, refused ones among them.
func (m *machine) Batch(t *rapid.T) {
	kinds := []func(*rapid.T) step{m.credit, m.creditUses, m.charge, m.charge, m.use, m.hold, m.release,
		m.openOrder, m.fillOrder, m.fillOrder, m.holdOrder, m.stopOrder}
	list := make([]step, rapid.IntRange(2, 8).Draw(t, "commands"))
	for i := range list {
		list[i] = rapid.SampledFrom(kinds).Draw(t, "command")(t)
	}
	m.together(t, list)
}

func (m *machine) Sweep(t *rapid.T) {
	want := 0
	for _, b := range m.books {
		before := len(b.movements)
		if b.expire(m.now); len(b.movements) > before {
			want++
		}
	}
	if n, err := m.l.Sweep(ctx, m.now); err != nil || n != want {
		t.Fatalf("Sweep = %d, %v; want %d", n, err, want)
	}
}

func (m *machine) Recall(t *rapid.T) {
	a, b := m.account(t)
	own := owner{ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), rapid.Bool().Draw(t, "sandbox"), byte(rapid.IntRange(1, 2).Draw(t, "key"))}
	content := byte(rapid.IntRange(0, 1).Draw(t, "content"))
	r, found, err := m.l.Recall(ctx, a, own.org, own.sandbox, *once(own.key, content), m.now)
	want, ok := b.earlier(own, m.now)
	switch {
	case !ok && (found || err != nil):
		t.Fatalf("Recall = %v, %v, %v; want nothing", r.ID, found, err)
	case ok && want.content != content && (found || !errors.Is(err, ledger.ErrKeyReused)):
		t.Fatalf("Recall = %v, %v, %v; want ErrKeyReused", r.ID, found, err)
	case ok && want.content == content && (!found || err != nil || r.ID != want.id || r.Org != own.org || r.Sandbox != own.sandbox):
		t.Fatalf("Recall = %+v, %v, %v; want %v", r, found, err, want.id)
	}
}

func (m *machine) ForgetOnce(t *rapid.T) {
	want := 0
	for _, b := range m.books {
		for own := range b.marks {
			if _, ok := b.earlier(own, m.now); !ok {
				delete(b.marks, own)
				want++
			}
		}
	}
	if n, err := m.l.ForgetOnce(ctx, m.now); err != nil || n != want {
		t.Fatalf("ForgetOnce = %d, %v; want %d", n, err, want)
	}
}

func (m *machine) Wait(t *rapid.T) {
	days := rapid.IntRange(-20, 200).Draw(t, "days") // clocks also go back
	if rapid.Bool().Draw(t, "little") {
		days %= 4
	}
	if rapid.Bool().Draw(t, "hours") { // holds live for hours
		m.now = m.now.Add(time.Duration(days) * time.Hour)
		return
	}
	m.now = m.now.Add(time.Duration(days)*24*time.Hour + time.Second)
}

func (m *machine) IDs(t *rapid.T) { m.nextID(t, "COM") }

func (m *machine) Reopen(t *rapid.T) {
	m.close(t)
	m.open(t)
}

// Check compares everything that can be read with the model.
func (m *machine) Check(t *rapid.T) {
	if rep, err := ledger.Check(ctx, m.store); err != nil {
		t.Fatalf("Check: %v\n%+v", err, rep.Violations)
	}
	for a, b := range m.books {
		w, err := m.l.Wallet(a, m.now)
		if err != nil || w.Balance != b.left("", m.now) || w.Movements != uint64(len(b.movements)) || w.Uses("UTIL") != b.left("UTIL", m.now) {
			t.Fatalf("account %d: Wallet = %+v, %v; model %+v", a, w, err, b)
		}
		late := b.clone()
		late.expire(m.now)
		var holds []ledger.Held
		for _, h := range late.holds {
			holds = append(holds, h.sum())
		}
		if !slices.Equal(w.Lots, late.lots) || !slices.Equal(w.Holds, holds) {
			t.Fatalf("account %d: lots %v and holds %v; model %v and %v", a, w.Lots, w.Holds, late.lots, holds)
		}
		m.checkMovements(t, a, b)
		m.checkOrders(t, a, b)
		m.checkView(t, a, b)
		for _, want := range b.records {
			got, err := m.l.Find(a, want.Org, want.Sandbox, want.ID)
			if err != nil || !bytes.Equal(got.Registro, want.Registro) || !bytes.Equal(got.Acta, want.Acta) ||
				got.Movement != want.Movement || got.Centavos != want.Centavos || got.Edition != want.Edition ||
				got.Operation != want.Operation || got.Service != want.Service || got.Code != want.Code ||
				got.Order != want.Order || got.Ordinal != want.Ordinal || !bytes.Equal(got.Note, want.Note) {
				t.Fatalf("account %d: Find(%v) = %+v, %v; want %+v", a, want.ID, got, err, want)
			}
		}
	}
	total := 0
	if err := m.l.Records(func(a ledger.AccountID, r ledger.Record) error { total++; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, b := range m.books {
		total -= len(b.records)
	}
	if total != 0 {
		t.Fatalf("Records differ from the model by %d", total)
	}
}

// checkMovements compares all movements, and one page of them.
func (m *machine) checkMovements(t *rapid.T, a ledger.AccountID, b *book) {
	list := func(p ledger.Page) (got []string) {
		err := m.l.Movements(a, p, func(m *ledger.Movement) error {
			got = append(got, fmt.Sprintf("%+v", *m))
			return nil
		})
		if err != nil {
			t.Fatalf("account %d: Movements(%+v): %v", a, p, err)
		}
		return got
	}
	want := make([]string, len(b.movements))
	for i := range b.movements {
		want[i] = fmt.Sprintf("%+v", b.movements[i])
	}
	if got := list(ledger.Page{}); !slices.Equal(got, want) {
		t.Fatalf("account %d: movements\n%v; model\n%v", a, got, want)
	}
	n := uint64(len(want))
	p := ledger.Page{
		After: rapid.Uint64Range(0, n+1).Draw(t, "after"), Before: rapid.Uint64Range(0, n+2).Draw(t, "before"),
		Newest: rapid.Bool().Draw(t, "newest"), Limit: rapid.IntRange(0, 5).Draw(t, "limit"),
	}
	from, to := min(p.After, n), n
	if p.Before > 0 {
		to = min(n, p.Before-1)
	}
	page := slices.Clone(want[from:max(from, to)])
	if p.Newest {
		slices.Reverse(page)
	}
	if p.Limit > 0 {
		page = page[:min(len(page), p.Limit)]
	}
	if got := list(p); !slices.Equal(got, page) {
		t.Fatalf("account %d: Movements(%+v) =\n%v; model\n%v", a, p, got, page)
	}
}

// checkView compares what a view reads of some days.
func (m *machine) checkView(t *rapid.T, a ledger.AccountID, b *book) {
	v, err := m.l.View(a)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	from := civil.Of(m.now.AddDate(0, 0, -rapid.IntRange(-1, 300).Draw(t, "from"))).Compact()
	to := civil.Of(m.now.AddDate(0, 0, -rapid.IntRange(-1, 300).Draw(t, "to"))).Compact()

	var movements []uint64
	err = v.MovementsOf(from, to, func(m *ledger.Movement) error {
		movements = append(movements, m.Number)
		return nil
	})
	var want []uint64
	for i, day := range b.days {
		if from <= day && day <= to {
			want = append(want, uint64(i+1))
		}
	}
	if err != nil || !slices.Equal(movements, want) {
		t.Fatalf("account %d: movements of %d to %d = %v, %v; model %v", a, from, to, movements, err, want)
	}
	before, last, err := v.Span(from, to)
	var wantBefore, wantLast uint64
	for _, day := range b.days {
		if day < from {
			wantBefore++
		}
		if day <= to {
			wantLast++
		}
	}
	if wantLast = max(wantBefore, wantLast); err != nil || before != wantBefore || last != wantLast {
		t.Fatalf("account %d: span of %d to %d = %d, %d, %v; model %d, %d", a, from, to, before, last, err, wantBefore, wantLast)
	}
	for _, n := range []uint64{before, last} {
		m, err := v.Movement(n)
		if n == 0 {
			if !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("account %d: movement 0: %v", a, err)
			}
			continue
		}
		one := fmt.Sprintf("%+v", m)
		listed := ""
		if err == nil {
			err = v.Movements(ledger.Page{After: n - 1, Limit: 1}, func(m *ledger.Movement) error {
				listed = fmt.Sprintf("%+v", *m)
				return nil
			})
		}
		if err != nil || one != listed {
			t.Fatalf("account %d: movement %d = %s, %v; listed %s", a, n, one, err, listed)
		}
	}
	for org := range ledger.OrgID(3) {
		for _, sandbox := range []bool{false, true} {
			var usage, rows []ledger.Usage
			err := v.Usage(org, sandbox, from, to, func(u ledger.Usage) error {
				usage = append(usage, u)
				return nil
			})
			for k, u := range b.usage {
				if k.Org == org && k.Sandbox == sandbox && from <= k.Day && k.Day <= to {
					rows = append(rows, u)
				}
			}
			slices.SortFunc(rows, func(x, y ledger.Usage) int {
				return cmp.Or(cmp.Compare(x.Day, y.Day), cmp.Compare(x.Service, y.Service))
			})
			if err != nil || !slices.Equal(usage, rows) {
				t.Fatalf("account %d: usage of %d, %v, from %d to %d = %+v, %v; model %+v", a, org, sandbox, from, to, usage, err, rows)
			}
			var ids, records []ledger.VerificationID
			err = v.Records(org, sandbox, from, to, func(r ledger.Record) error {
				ids = append(ids, r.ID)
				return nil
			})
			for _, r := range b.records {
				if r.Org == org && r.Sandbox == sandbox && from <= r.ID.Day && r.ID.Day <= to {
					records = append(records, r.ID)
				}
			}
			slices.SortFunc(records, func(x, y ledger.VerificationID) int {
				return cmp.Or(cmp.Compare(x.Day, y.Day), cmp.Compare(x.Prefix, y.Prefix), cmp.Compare(x.Counter, y.Counter))
			})
			if err != nil || !slices.Equal(ids, records) {
				t.Fatalf("account %d: records of %d, %v, from %d to %d = %v, %v; model %v", a, org, sandbox, from, to, ids, err, records)
			}
			if len(records) == 0 {
				continue
			}
			// Behind one of them, and behind an id between it and the next.
			i := rapid.IntRange(0, len(records)-1).Draw(t, "behind")
			behind := records[i]
			for range 2 {
				ids = nil
				err = v.RecordsAfter(org, sandbox, behind, to, func(r ledger.Record) error {
					ids = append(ids, r.ID)
					return nil
				})
				if err != nil || !slices.Equal(ids, records[i+1:]) {
					t.Fatalf("account %d: records of %d, %v, behind %v to %d = %v, %v; model %v", a, org, sandbox, behind, to, ids, err, records[i+1:])
				}
				if i+1 < len(records) && records[i+1].Prefix == behind.Prefix && records[i+1].Day == behind.Day && records[i+1].Counter == behind.Counter+1 {
					break
				}
				behind.Counter++
			}
		}
	}
	head, err := v.Head()
	if heads := m.l.Heads(); err != nil || head != heads[head.Group] {
		t.Fatalf("account %d: the view's head is %+v, %v; the ledger's %+v", a, head, err, heads[head.Group])
	}
}

func TestAgainstModel(t *testing.T) {
	t.Run("pebble", func(t *testing.T) {
		againstModel(t, func() func() (store.Store, error) {
			fs := vfs.NewMem()
			return func() (store.Store, error) { return store.OpenPebble("datos", store.PebbleOptions{FS: fs}) }
		})
	})
	t.Run("postgres", func(t *testing.T) {
		long(t)
		storetest.PostgresURL(t) // or skip
		usual := flag.Lookup("rapid.checks").Value.String()
		if err := flag.Set("rapid.checks", "8"); err != nil {
			t.Fatal(err)
		}
		defer flag.Set("rapid.checks", usual)
		againstModel(t, func() func() (store.Store, error) {
			url := storetest.PostgresURL(t)
			return func() (store.Store, error) { return store.OpenPostgres(ctx, url, store.PostgresOptions{}) }
		})
	})
}

// againstModel runs random commands on stores that engine gives: for each run a new
// one, which it opens as often as it is asked to.
func againstModel(t *testing.T, engine func() func() (store.Store, error)) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{engine: engine(), now: start, books: map[ledger.AccountID]*book{}, ids: map[string]bool{}, days: map[string]uint32{}}
		m.open(t)
		defer m.close(t)
		t.Repeat(rapid.StateMachineActions(m))
	})
}
