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

// book is the plain model of one account.
type book struct {
	lots      []ledger.Lot // by expiry, then number
	movements []ledger.Movement
	days      []uint32 // of the movements
	usage     map[ledger.Usage]ledger.Usage
	records   []ledger.Record
	marks     map[owner]mark
}

// day is the ledger day of what is done at now.
func (b *book) day(now time.Time) uint32 {
	day := civil.Of(now).Compact()
	if n := len(b.days); n > 0 {
		day = max(day, b.days[n-1])
	}
	return day
}

// count adds to the counts of a day; the key is a row without numbers.
func (b *book) count(now time.Time, org ledger.OrgID, sandbox bool, service string, paid ledger.Charged) {
	if b.usage == nil {
		b.usage = map[ledger.Usage]ledger.Usage{}
	}
	k := ledger.Usage{Org: org, Sandbox: sandbox, Day: b.day(now), Service: service}
	u, ok := b.usage[k]
	if !ok {
		u = k
	}
	u.Answers++
	if paid.Movement > 0 {
		u.Charged++
	}
	u.Centavos += paid.Centavos
	u.Uses += paid.Uses
	b.usage[k] = u
}

// owner is who may repeat a request.
type owner struct {
	org     ledger.OrgID
	sandbox bool
	key     byte
}

// mark is what was done under a Once.
type mark struct {
	content byte
	moment  time.Time
	id      ledger.VerificationID
}

// earlier is what is remembered of a Once at now.
func (b *book) earlier(o owner, now time.Time) (mark, bool) {
	m, ok := b.marks[o]
	return m, ok && now.Sub(m.moment) < 7*24*time.Hour
}

// left is what the lots of one kind hold at now.
func (b *book) left(service string, now time.Time) (sum int64) {
	for _, l := range b.lots {
		if l.Service == service && l.Expires.After(now) {
			sum += l.Left
		}
	}
	return sum
}

func (b *book) move(m ledger.Movement) ledger.Movement {
	day := b.day(m.Moment)
	m.Number = uint64(len(b.movements) + 1)
	m.Balance = m.Centavos
	if len(b.movements) > 0 {
		m.Balance += b.movements[len(b.movements)-1].Balance
	}
	b.movements, b.days = append(b.movements, m), append(b.days, day)
	return m
}

func split(l ledger.Lot, amount int64) ledger.Split {
	if l.Service == "" {
		return ledger.Split{Lot: l.Number, Centavos: amount}
	}
	return ledger.Split{Lot: l.Number, Uses: amount}
}

func (b *book) expire(now time.Time) {
	var open []ledger.Lot
	for _, l := range b.lots {
		if l.Expires.After(now) {
			open = append(open, l)
			continue
		}
		part := split(l, l.Left)
		b.move(ledger.Movement{Moment: now, Kind: ledger.KindExpiry, Centavos: -part.Centavos, Uses: -part.Uses,
			Service: l.Service, Lots: []ledger.Split{part}})
	}
	b.lots = open
}

// credit opens a lot: of money, or of the uses of a service.
func (b *book) credit(now time.Time, org ledger.OrgID, service string, amount, unit int64) ledger.Charged {
	b.expire(now)
	l := ledger.Lot{Number: uint64(len(b.movements) + 1), Service: service, Left: amount, Expires: now.Add(365 * 24 * time.Hour)}
	part := split(l, amount)
	m := b.move(ledger.Movement{Moment: now, Kind: ledger.KindCredit, Centavos: part.Centavos, Uses: part.Uses, Org: org,
		Service: service, Unit: unit, Reason: "abono", Lots: []ledger.Split{part}})
	b.lots = append(b.lots, l)
	slices.SortStableFunc(b.lots, func(x, y ledger.Lot) int { return x.Expires.Compare(y.Expires) })
	c := ledger.Charged{Movement: m.Number, Centavos: part.Centavos, Uses: part.Uses, Balance: b.left("", now)}
	if service != "" {
		c.Lot, c.UsesLeft = l.Number, b.left(service, now)
	}
	return c
}

// take takes an amount of a kind, which is there.
func (b *book) take(service string, amount int64) (parts []ledger.Split) {
	for i := range b.lots {
		l := &b.lots[i]
		if part := min(amount, l.Left); l.Service == service && part > 0 {
			parts = append(parts, split(*l, part))
			l.Left -= part
			amount -= part
		}
	}
	b.lots = slices.DeleteFunc(b.lots, func(l ledger.Lot) bool { return l.Left == 0 })
	return parts
}

// pay pays one answer: with a use of m.Service if there is one, else with price.
// It returns the reason when the account cannot.
func (b *book) pay(m ledger.Movement, price int64) (ledger.Charged, *ledger.FundsError) {
	c := ledger.Charged{}
	switch {
	case b.left(m.Service, m.Moment) > 0:
		b.expire(m.Moment)
		m.Uses, m.Lots, c.Uses = -1, b.take(m.Service, 1), 1
		c.Lot, c.UsesLeft = m.Lots[0].Lot, b.left(m.Service, m.Moment)
	case price > 0 && b.left("", m.Moment) >= price:
		b.expire(m.Moment)
		m.Centavos, m.Lots, c.Centavos = -price, b.take("", price), price
	default:
		return c, &ledger.FundsError{Service: m.Service, Price: price, Balance: b.left("", m.Moment)}
	}
	c.Movement, c.Balance = b.move(m).Number, b.left("", m.Moment)
	return c, nil
}

func (b *book) charge(now time.Time, r ledger.Record, price int64) (out ledger.Charged, refused *ledger.FundsError) {
	if out.Balance = b.left("", now); price > 0 {
		out, refused = b.pay(ledger.Movement{Moment: now, Kind: ledger.KindCharge, Org: r.Org, Service: r.Service, Record: r.ID}, price)
		if refused != nil {
			return out, refused
		}
	}
	b.count(now, r.Org, r.Sandbox, r.Service, out)
	r.Centavos, r.Movement = out.Centavos, out.Movement
	b.records = append(b.records, r)
	return out, nil
}

// machine runs the ledger and the model side by side.
type machine struct {
	engine func() (store.Store, error)
	store  store.Store
	l      *ledger.Ledger
	now    time.Time
	books  map[ledger.AccountID]*book
	ids    map[string]bool
	days   map[string]uint32 // last day by prefix
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
	id, err := m.l.NextID(ctx, prefix, m.now)
	if err != nil {
		t.Fatal(err)
	}
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
	return id
}

func (m *machine) Credit(t *rapid.T) {
	a, b := m.account(t)
	org := ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org"))
	centavos := rapid.Int64Range(1, 3000).Draw(t, "centavos")
	res, err := m.l.Do(ctx, a, ledger.Credit{Now: m.now, Org: org, Centavos: centavos, Reason: "abono"})
	if want := b.credit(m.now, org, "", centavos, 0); err != nil || res != want {
		t.Fatalf("Credit = %+v, %v; want %+v", res, err, want)
	}
}

func (m *machine) CreditUses(t *rapid.T) {
	a, b := m.account(t)
	c := ledger.CreditUses{
		Now: m.now, Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: rapid.SampledFrom([]string{"COMPANY", "NOMINA", "UTIL"}).Draw(t, "service"),
		Count: rapid.Int64Range(1, 3).Draw(t, "count"), Unit: rapid.Int64Range(0, 1400).Draw(t, "unit"), Reason: "abono",
	}
	res, err := m.l.Do(ctx, a, c)
	if want := b.credit(m.now, c.Org, c.Service, c.Count, c.Unit); err != nil || res != want {
		t.Fatalf("CreditUses = %+v, %v; want %+v", res, err, want)
	}
}

func (m *machine) Charge(t *rapid.T) {
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
	r = c.Record
	own := owner{r.Org, r.Sandbox, byte(rapid.IntRange(0, 2).Draw(t, "key"))}
	content := byte(rapid.IntRange(1, 4).Draw(t, "content") / 4) // mostly the same
	if own.key > 0 {
		c.Once = once(own.key, content)
	}
	res, err := m.l.Do(ctx, a, c)
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
	want, refused := b.charge(m.now, r, c.Price)
	if refused != nil {
		var funds *ledger.FundsError
		if !errors.As(err, &funds) || *funds != *refused {
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
	c.Once = nil
	if _, err := m.l.Do(ctx, a, c); !errors.Is(err, ledger.ErrDuplicate) {
		t.Fatalf("the same record again: %v; want ErrDuplicate", err)
	}
}

// Use pays without a record, for nothing while there is money if it is included.
// Its keys are not those of charges.
func (m *machine) Use(t *rapid.T) {
	a, b := m.account(t)
	u := ledger.Use{
		Now: m.now, Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: rapid.SampledFrom([]string{"NOMINA", "UTIL"}).Draw(t, "service"),
		Input: [32]byte{byte(rapid.IntRange(0, 9).Draw(t, "input"))}, Basis: "tabla",
	}
	if u.Service == "NOMINA" {
		u.Price = rapid.Int64Range(1, 2500).Draw(t, "price")
	}
	own := owner{u.Org, false, byte(rapid.IntRange(0, 1).Draw(t, "key") * 9)}
	content := byte(rapid.IntRange(1, 4).Draw(t, "content") / 4)
	if own.key > 0 {
		u.Once, u.Answer = once(own.key, content), []byte{'a' + content}
	}
	funds, may, err := m.l.Funded(a, m.now, u.Service, u.Price)
	if want := (ledger.Funds{Balance: b.left("", m.now), Uses: b.left(u.Service, m.now)}); funds != want || err != nil {
		t.Fatalf("Funded = %+v, %v; want %+v", funds, err, want)
	}
	res, err := m.l.Do(ctx, a, u)
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
		var refused *ledger.FundsError
		want, refused = b.pay(ledger.Movement{Moment: m.now, Kind: ledger.KindUse, Org: u.Org, Service: u.Service, Input: u.Input, Basis: "tabla"}, u.Price)
		if may == (refused != nil) {
			t.Fatalf("Funded says %v, and the refusal is %v", may, refused)
		}
		if refused != nil {
			var funds *ledger.FundsError
			if !errors.As(err, &funds) || *funds != *refused {
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
		unexpired := slices.DeleteFunc(slices.Clone(b.lots), func(l ledger.Lot) bool { return !l.Expires.After(m.now) })
		if !slices.Equal(w.Lots, unexpired) {
			t.Fatalf("account %d: lots %v; model %v", a, w.Lots, unexpired)
		}
		m.checkMovements(t, a, b)
		m.checkView(t, a, b)
		for _, want := range b.records {
			got, err := m.l.Find(a, want.Org, want.Sandbox, want.ID)
			if err != nil || !bytes.Equal(got.Registro, want.Registro) || !bytes.Equal(got.Acta, want.Acta) ||
				got.Movement != want.Movement || got.Centavos != want.Centavos || got.Edition != want.Edition ||
				got.Operation != want.Operation || got.Service != want.Service || got.Code != want.Code {
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
