package ledger_test

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"cotejo/ledger"
)

// step is one command. check applies it to the model and compares what the ledger
// answered: in the order of the commands, once all are answered.
type step struct {
	account ledger.AccountID
	cmd     ledger.Command
	check   func(res ledger.Result, err error)
}

// alone runs a command, after Funded was asked of what it would pay.
func (m *machine) alone(t *rapid.T, s step) {
	if u, ok := s.cmd.(ledger.Use); ok {
		b := m.books[s.account]
		want := ledger.Funds{Balance: b.left("", m.now), Uses: b.left(u.Service, m.now)}
		may := want.Uses > 0 || want.Balance > 0 && want.Balance >= u.Price
		if funds, ok, err := m.l.Funded(s.account, m.now, u.Service, u.Price); funds != want || ok != may || err != nil {
			t.Fatalf("Funded = %+v, %v, %v; want %+v, %v", funds, ok, err, want, may)
		}
	}
	s.check(m.l.Do(ctx, s.account, s.cmd))
	m.building = 0
}

// together runs commands in one durable write: they wait behind one that stands
// still.
func (m *machine) together(t *rapid.T, list []step) {
	g := gate{make(chan struct{}), make(chan struct{})}
	results := make([]ledger.Result, len(list))
	errs := make([]error, len(list))
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := m.l.Do(ctx, 1, g); err != nil {
			t.Error(err)
		}
	})
	<-g.entered
	for i, s := range list {
		group.Go(func() { results[i], errs[i] = m.l.Do(ctx, s.account, s.cmd) })
		for m.l.Waiting() <= i {
			runtime.Gosched()
		}
	}
	close(g.open)
	group.Wait()
	for i, s := range list {
		s.check(results[i], errs[i])
	}
	m.building = 0
}

// gate keeps the sequencer until it is opened.
type gate struct{ entered, open chan struct{} }

// Apply implements Command.
func (g gate) Apply(*ledger.Tx) (ledger.Result, error) {
	close(g.entered)
	<-g.open
	return nil, nil
}

func (m *machine) credit(t *rapid.T) step {
	a, b := m.account(t)
	org := ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org"))
	centavos := rapid.Int64Range(1, 3000).Draw(t, "centavos")
	return step{a, ledger.Credit{Now: m.now, Org: org, Centavos: centavos, Reason: "abono"}, func(res ledger.Result, err error) {
		if want := b.credit(m.now, org, "", centavos, 0); err != nil || res != want {
			t.Fatalf("Credit = %+v, %v; want %+v", res, err, want)
		}
	}}
}

func (m *machine) creditUses(t *rapid.T) step {
	a, b := m.account(t)
	c := ledger.CreditUses{
		Now: m.now, Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: rapid.SampledFrom([]string{"COMPANY", "NOMINA", "UTIL"}).Draw(t, "service"),
		Count: rapid.Int64Range(1, 3).Draw(t, "count"), Unit: rapid.Int64Range(0, 1400).Draw(t, "unit"), Reason: "abono",
	}
	return step{a, c, func(res ledger.Result, err error) {
		if want := b.credit(m.now, c.Org, c.Service, c.Count, c.Unit); err != nil || res != want {
			t.Fatalf("CreditUses = %+v, %v; want %+v", res, err, want)
		}
	}}
}

func (m *machine) charge(t *rapid.T) step {
	a, b := m.account(t)
	prefix := rapid.SampledFrom([]string{"COM", "SPE"}).Draw(t, "prefix")
	r := record(m.nextID(t, prefix), ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), rapid.StringN(0, 40, -1).Draw(t, "note"))
	r.Edition[0] = byte(rapid.IntRange(1, 2).Draw(t, "edition"))
	c := ledger.Charge{Now: m.now, Record: r, Sum: sumOf(r)}
	if rapid.IntRange(0, 3).Draw(t, "paid") > 0 {
		c.Price = rapid.Int64Range(1, 2500).Draw(t, "price")
	} else {
		c.Record.Sandbox = rapid.Bool().Draw(t, "sandbox")
	}
	c.Hold = b.anyHold(t)
	r = c.Record
	own := owner{r.Org, r.Sandbox, byte(rapid.IntRange(0, 2).Draw(t, "key"))}
	content := byte(rapid.IntRange(1, 4).Draw(t, "content") / 4) // mostly the same
	if own.key > 0 {
		c.Once = once(own.key, content)
	}
	return step{a, c, func(res ledger.Result, err error) {
		if earlier, ok := b.earlier(own, m.now); ok && c.Once != nil {
			charged, _ := res.(ledger.Charged)
			switch {
			case earlier.content != content && !errors.Is(err, ledger.ErrKeyReused):
				t.Fatalf("another request under a used key: %+v, %v", res, err)
			case earlier.content == content && (err != nil || charged.Earlier == nil || *charged.Earlier != earlier.id ||
				charged != ledger.Charged{Earlier: charged.Earlier}):
				t.Fatalf("repeated: %+v, %v; want %v and nothing else", charged, err, earlier.id)
			}
			return
		}
		want, refused := b.charge(m.now, r, c.Price, c.Hold)
		if refused != nil {
			if !reflect.DeepEqual(err, refused) {
				t.Fatalf("Charge of %d = %+v, %v; want %+v", c.Price, res, err, refused)
			}
			return
		}
		if err != nil || res != want {
			t.Fatalf("Charge = %+v, %v; want %+v", res, err, want)
		}
		if c.Once != nil {
			if b.marks == nil {
				b.marks = map[owner]mark{}
			}
			b.marks[own] = mark{content: content, moment: m.now, id: r.ID}
		}
		c.Once, c.Hold = nil, 0
		if _, err := m.l.Do(ctx, a, c); !errors.Is(err, ledger.ErrDuplicate) {
			t.Fatalf("the same record again: %v; want ErrDuplicate", err)
		}
	}}
}

// Use pays without a record, for nothing while there is money if it is included.
// Its keys are not those of charges.
func (m *machine) use(t *rapid.T) step {
	a, b := m.account(t)
	u := ledger.Use{
		Now: m.now, Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: rapid.SampledFrom([]string{"NOMINA", "UTIL"}).Draw(t, "service"),
		Input: [32]byte{byte(rapid.IntRange(0, 9).Draw(t, "input"))}, Basis: "tabla",
	}
	if u.Service == "NOMINA" {
		u.Price = rapid.Int64Range(1, 2500).Draw(t, "price")
		u.Hold = b.anyHold(t)
	}
	own := owner{u.Org, false, byte(rapid.IntRange(0, 1).Draw(t, "key") * 9)}
	content := byte(rapid.IntRange(1, 4).Draw(t, "content") / 4)
	if own.key > 0 {
		u.Once, u.Answer = once(own.key, content), []byte{'a' + content}
	}
	return step{a, u, func(res ledger.Result, err error) {
		used, _ := res.(ledger.Used)
		if earlier, ok := b.earlier(own, m.now); ok && u.Once != nil {
			switch {
			case earlier.content != content && !errors.Is(err, ledger.ErrKeyReused):
				t.Fatalf("another use under a used key: %+v, %v", res, err)
			case earlier.content == content && (err != nil || string(used.Answer) != string(u.Answer) || used.Charged != ledger.Charged{}):
				t.Fatalf("repeated: %+v, %v", res, err)
			}
			return
		}
		want := ledger.Charged{Balance: b.left("", m.now)}
		if u.Price > 0 || want.Balance == 0 {
			var refused error
			want, refused = b.pay(ledger.Movement{Moment: m.now, Kind: ledger.KindUse, Org: u.Org, Service: u.Service, Input: u.Input, Basis: "tabla", Hold: u.Hold}, u.Price)
			if refused != nil {
				if !reflect.DeepEqual(err, refused) {
					t.Fatalf("Use of %d = %+v, %v; want %+v", u.Price, res, err, refused)
				}
				return
			}
		}
		b.count(m.now, u.Org, false, u.Service, want)
		if err != nil || used.Charged != want || used.Answer != nil {
			t.Fatalf("Use = %+v, %v; want %+v", res, err, want)
		}
		if want.Movement == 0 {
			u.Once = nil // what costs nothing is not remembered
		}
		if u.Once != nil {
			if b.marks == nil {
				b.marks = map[owner]mark{}
			}
			b.marks[own] = mark{content: content, moment: m.now}
			answer, found, err := m.l.RecallUse(ctx, a, u.Org, *u.Once, m.now)
			if err != nil || !found || string(answer) != string(u.Answer) {
				t.Fatalf("RecallUse = %q, %v, %v", answer, found, err)
			}
		}
	}}
}

// anyHold names one of the account's holds, one that is none, or 0.
func (b *book) anyHold(t *rapid.T) uint64 {
	if i := rapid.IntRange(-2, 3).Draw(t, "hold"); i >= 0 && i < len(b.holds) {
		return b.holds[i].number
	} else if i == -2 && rapid.Bool().Draw(t, "no hold") {
		return 99
	}
	return 0
}

func (m *machine) hold(t *rapid.T) step {
	a, b := m.account(t)
	c := ledger.Hold{
		Now: m.now, Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: rapid.SampledFrom([]string{"COMPANY", "NOMINA"}).Draw(t, "service"),
		Units: rapid.Int64Range(1, 5).Draw(t, "units"), Centavos: rapid.Int64Range(1, 900).Draw(t, "price"),
		Until: m.now.Add(time.Duration(rapid.IntRange(1, 24).Draw(t, "hours")) * time.Hour),
	}
	if rapid.Bool().Draw(t, "steps") {
		c.Steps = []ledger.Step{{From: 2, Centavos: 300}, {From: 4, Centavos: 100}}
	}
	price := func(unit int64) int64 {
		switch {
		case c.Steps != nil && unit >= 4:
			return 100
		case c.Steps != nil && unit >= 2:
			return 300
		}
		return c.Centavos
	}
	return step{a, c, func(res ledger.Result, err error) {
		balance := b.left("", m.now)
		uses := min(c.Units, b.left(c.Service, m.now))
		cost, units := int64(0), uses
		for unit := uses + 1; unit <= c.Units; unit++ {
			if cost += price(unit); cost <= balance {
				units++
			}
		}
		if cost > balance {
			want := &ledger.FundsError{Service: c.Service, Price: cost, Balance: balance, Wanted: c.Units, Units: units}
			if !reflect.DeepEqual(err, error(want)) {
				t.Fatalf("Hold = %+v, %v; want %+v", res, err, want)
			}
			return
		}
		b.expire(m.now)
		h := held{org: c.Org, service: c.Service, until: c.Until}
		ofUses, takenUses := take(&b.lots, c.Service, uses)
		ofMoney, takenMoney := take(&b.lots, "", cost)
		h.number = b.move(ledger.Movement{Moment: m.now, Kind: ledger.KindHold, Org: c.Org, Service: c.Service, Until: c.Until, Lots: append(ofUses, ofMoney...)}).Number
		h.parts = append(takenUses, takenMoney...)
		b.holds = append(b.holds, h)
		if err != nil || res != h.sum() {
			t.Fatalf("Hold = %+v, %v; want %+v", res, err, h.sum())
		}
	}}
}

func (m *machine) release(t *rapid.T) step {
	a, b := m.account(t)
	number := b.anyHold(t)
	return step{a, ledger.Release{Now: m.now, Hold: number}, func(res ledger.Result, err error) {
		want := ledger.Held{}
		if i := slices.IndexFunc(b.holds, func(h held) bool { return h.number == number }); i >= 0 {
			want = b.holds[i].sum()
			b.release(i, m.now)
			b.expire(m.now)
		}
		if err != nil || res != want {
			t.Fatalf("Release = %+v, %v; want %+v", res, err, want)
		}
	}}
}
