package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/ledger"
	"cotejo/store"
)

// book is the plain model of one account.
type book struct {
	lots      []ledger.Lot // by expiry, then number
	movements []ledger.Movement
	records   []ledger.Record
	marks     map[owner]mark
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

func (b *book) spendable(now time.Time) (sum int64) {
	for _, l := range b.lots {
		if l.Expires.After(now) {
			sum += l.Centavos
		}
	}
	return sum
}

func (b *book) move(m ledger.Movement) ledger.Movement {
	m.Number = uint64(len(b.movements) + 1)
	m.Balance = m.Centavos
	if len(b.movements) > 0 {
		m.Balance += b.movements[len(b.movements)-1].Balance
	}
	b.movements = append(b.movements, m)
	return m
}

func (b *book) expire(now time.Time) {
	var open []ledger.Lot
	for _, l := range b.lots {
		if l.Expires.After(now) {
			open = append(open, l)
			continue
		}
		b.move(ledger.Movement{Moment: now, Kind: ledger.KindExpiry, Centavos: -l.Centavos,
			Lots: []ledger.Split{{Lot: l.Number, Centavos: l.Centavos}}})
	}
	b.lots = open
}

func (b *book) credit(now time.Time, org ledger.OrgID, centavos int64) ledger.Charged {
	b.expire(now)
	n := uint64(len(b.movements) + 1)
	m := b.move(ledger.Movement{Moment: now, Kind: ledger.KindCredit, Centavos: centavos, Org: org, Reason: "abono",
		Lots: []ledger.Split{{Lot: n, Centavos: centavos}}})
	b.lots = append(b.lots, ledger.Lot{Number: n, Centavos: centavos, Expires: now.Add(365 * 24 * time.Hour)})
	slices.SortStableFunc(b.lots, func(x, y ledger.Lot) int { return x.Expires.Compare(y.Expires) })
	return ledger.Charged{Movement: m.Number, Centavos: centavos, Balance: m.Balance}
}

// spend takes the movement's centavos, which are there.
func (b *book) spend(m ledger.Movement) (number uint64) {
	b.expire(m.Moment)
	for rest := -m.Centavos; rest > 0; {
		part := min(rest, b.lots[0].Centavos)
		m.Lots = append(m.Lots, ledger.Split{Lot: b.lots[0].Number, Centavos: part})
		rest -= part
		if b.lots[0].Centavos -= part; b.lots[0].Centavos == 0 {
			b.lots = b.lots[1:]
		}
	}
	return b.move(m).Number
}

func (b *book) charge(now time.Time, r ledger.Record, price int64) (ledger.Charged, bool) {
	left := b.spendable(now)
	if left < price {
		return ledger.Charged{Balance: left}, false
	}
	out := ledger.Charged{Centavos: price, Balance: left - price}
	if price > 0 {
		out.Movement = b.spend(ledger.Movement{Moment: now, Kind: ledger.KindCharge, Centavos: -price, Org: r.Org, Service: r.Service, Record: r.ID})
	}
	r.Centavos, r.Movement = price, out.Movement
	b.records = append(b.records, r)
	return out, true
}

// machine runs the ledger and the model side by side.
type machine struct {
	fs    vfs.FS
	store store.Store
	l     *ledger.Ledger
	now   time.Time
	books map[ledger.AccountID]*book
	ids   map[string]bool
	days  map[string]uint32 // last day by prefix
}

func (m *machine) open(t *rapid.T) {
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: m.fs})
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
	if want := b.credit(m.now, org, centavos); err != nil || res != want {
		t.Fatalf("Credit = %+v, %v; want %+v", res, err, want)
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
	want, ok := b.charge(m.now, r, c.Price)
	if !ok {
		var funds *ledger.FundsError
		if !errors.As(err, &funds) || *funds != (ledger.FundsError{Service: "COMPANY", Price: c.Price, Balance: want.Balance}) {
			t.Fatalf("Charge of %d with %d = %+v, %v; want a refusal", c.Price, want.Balance, res, err)
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

// Use pays without a record. Its keys are not those of charges.
func (m *machine) Use(t *rapid.T) {
	a, b := m.account(t)
	u := ledger.Use{
		Now: m.now, Org: ledger.OrgID(rapid.IntRange(1, 2).Draw(t, "org")), Service: "NOMINA",
		Price: rapid.Int64Range(1, 2500).Draw(t, "price"), Input: [32]byte{byte(rapid.IntRange(0, 9).Draw(t, "input"))}, Basis: "tabla",
	}
	own := owner{u.Org, false, byte(rapid.IntRange(0, 1).Draw(t, "key") * 9)}
	content := byte(rapid.IntRange(1, 4).Draw(t, "content") / 4)
	if own.key > 0 {
		u.Once, u.Answer = once(own.key, content), []byte{'a' + content}
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
	left := b.spendable(m.now)
	if left < u.Price {
		var funds *ledger.FundsError
		if !errors.As(err, &funds) || *funds != (ledger.FundsError{Service: "NOMINA", Price: u.Price, Balance: left}) {
			t.Fatalf("Use of %d with %d = %+v, %v; want a refusal", u.Price, left, res, err)
		}
		return
	}
	number := b.spend(ledger.Movement{Moment: m.now, Kind: ledger.KindUse, Centavos: -u.Price, Org: u.Org, Service: "NOMINA", Input: u.Input, Basis: "tabla"})
	if want := (ledger.Charged{Movement: number, Centavos: u.Price, Balance: left - u.Price}); err != nil || used.Charged != want || used.Answer != nil {
		t.Fatalf("Use = %+v, %v; want %+v", res, err, want)
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
		if err != nil || w.Balance != b.spendable(m.now) || w.Movements != uint64(len(b.movements)) {
			t.Fatalf("account %d: Wallet = %+v, %v; model %+v", a, w, err, b)
		}
		unexpired := slices.DeleteFunc(slices.Clone(b.lots), func(l ledger.Lot) bool { return !l.Expires.After(m.now) })
		if !slices.Equal(w.Lots, unexpired) {
			t.Fatalf("account %d: lots %v; model %v", a, w.Lots, unexpired)
		}
		i := 0
		err = m.l.Movements(a, func(got *ledger.Movement) error {
			if want := fmt.Sprintf("%+v", b.movements[i]); fmt.Sprintf("%+v", *got) != want {
				t.Fatalf("account %d: movement\n%+v; model\n%s", a, *got, want)
			}
			i++
			return nil
		})
		if err != nil || i != len(b.movements) {
			t.Fatalf("account %d: %d movements, %v; model %d", a, i, err, len(b.movements))
		}
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

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{fs: vfs.NewMem(), now: start, books: map[ledger.AccountID]*book{}, ids: map[string]bool{}, days: map[string]uint32{}}
		m.open(t)
		defer m.close(t)
		t.Repeat(rapid.StateMachineActions(m))
	})
}
