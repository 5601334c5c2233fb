package ledger_test

import (
	"cmp"
	"slices"
	"time"

	"cotejo/civil"
	"cotejo/ledger"
)

// book is the plain model of one account.
type book struct {
	lots      []ledger.Lot // by expiry, then number
	holds     []held
	movements []ledger.Movement
	days      []uint32 // of the movements
	usage     map[ledger.Usage]ledger.Usage
	records   []ledger.Record
	marks     map[owner]mark
	orders    []*order
}

// held is one hold and the parts of lots that are left of it.
type held struct {
	number  uint64
	org     ledger.OrgID
	service string
	until   time.Time
	parts   []ledger.Lot
}

func (h held) sum() ledger.Held {
	r := ledger.Held{Number: h.number, Org: h.org, Service: h.service, Until: h.until}
	for _, l := range h.parts {
		if l.Service == "" {
			r.Centavos += l.Left
		} else {
			r.Uses += l.Left
		}
	}
	return r
}

func (b *book) clone() *book {
	c := *b
	c.lots, c.movements, c.days, c.holds = slices.Clone(b.lots), slices.Clone(b.movements), slices.Clone(b.days), slices.Clone(b.holds)
	return &c
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

// left is what the lots of one kind hold at now, once time has done its work.
func (b *book) left(service string, now time.Time) (sum int64) {
	b = b.clone()
	b.expire(now)
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

// release gives back what a hold has left.
func (b *book) release(i int, now time.Time) {
	h := b.holds[i]
	m := ledger.Movement{Moment: now, Kind: ledger.KindRelease, Org: h.org, Service: h.service, Hold: h.number}
	for _, part := range h.parts {
		m.Lots = append(m.Lots, split(part, part.Left))
		if at := slices.IndexFunc(b.lots, func(l ledger.Lot) bool { return l.Number == part.Number }); at >= 0 {
			b.lots[at].Left += part.Left
		} else {
			b.lots = append(b.lots, part)
		}
	}
	slices.SortFunc(b.lots, func(x, y ledger.Lot) int {
		return cmp.Or(x.Expires.Compare(y.Expires), cmp.Compare(x.Number, y.Number))
	})
	b.holds = slices.Delete(slices.Clone(b.holds), i, i+1)
	b.move(m)
}

// expire does what time alone does.
func (b *book) expire(now time.Time) {
	for i := 0; i < len(b.holds); {
		if b.holds[i].until.After(now) {
			i++
		} else {
			b.release(i, now)
		}
	}
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

// take takes an amount of a kind, which is there, from lots.
func take(lots *[]ledger.Lot, service string, amount int64) (parts []ledger.Split, taken []ledger.Lot) {
	rest := slices.Clone(*lots)
	for i := range rest {
		l := &rest[i]
		if part := min(amount, l.Left); l.Service == service && part > 0 {
			parts, taken = append(parts, split(*l, part)), append(taken, *l)
			taken[len(taken)-1].Left = part
			l.Left -= part
			amount -= part
		}
	}
	*lots = slices.DeleteFunc(rest, func(l ledger.Lot) bool { return l.Left == 0 })
	return parts, taken
}

func (b *book) take(service string, amount int64) []ledger.Split {
	parts, _ := take(&b.lots, service, amount)
	return parts
}

// open returns the place of a hold that can pay for m, -1 when there is none.
func (b *book) open(m ledger.Movement) int {
	return slices.IndexFunc(b.holds, func(h held) bool {
		return h.number == m.Hold && h.org == m.Org && h.service == m.Service && h.until.After(m.Moment)
	})
}

// payHeld pays one answer from the hold at i.
func (b *book) payHeld(i int, m ledger.Movement, price int64) (ledger.Charged, error) {
	number, sum := b.holds[i].number, b.holds[i].sum()
	c := ledger.Charged{}
	service, amount := m.Service, int64(1)
	if sum.Uses == 0 {
		if service, amount = "", price; sum.Centavos < price {
			return c, &ledger.FundsError{Service: m.Service, Price: price, Balance: sum.Centavos}
		}
	}
	b.expire(m.Moment)
	i = slices.IndexFunc(b.holds, func(h held) bool { return h.number == number })
	m.Lots, _ = take(&b.holds[i].parts, service, amount)
	if len(b.holds[i].parts) == 0 {
		b.holds = slices.Delete(b.holds, i, i+1)
	}
	if service == "" {
		m.Centavos, c.Centavos = -price, price
	} else {
		m.Uses, c.Uses, c.Lot = -1, 1, m.Lots[0].Lot
	}
	c.Movement, c.Balance = b.move(m).Number, b.left("", m.Moment)
	if c.Uses > 0 {
		c.UsesLeft = b.left(m.Service, m.Moment)
	}
	return c, nil
}

// pay pays one answer: with a use of m.Service if there is one, else with price;
// from m.Hold, if it is not 0. It returns the reason when the account cannot.
func (b *book) pay(m ledger.Movement, price int64) (ledger.Charged, error) {
	c := ledger.Charged{}
	if m.Hold != 0 {
		i := b.open(m)
		if i < 0 {
			return c, ledger.ErrNoHold
		}
		return b.payHeld(i, m, price)
	}
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

func (b *book) charge(now time.Time, r ledger.Record, price int64, hold uint64) (out ledger.Charged, refused error) {
	if out.Balance = b.left("", now); price > 0 {
		out, refused = b.pay(ledger.Movement{Moment: now, Kind: ledger.KindCharge, Org: r.Org, Service: r.Service, Record: r.ID, Hold: hold}, price)
		if refused != nil {
			return out, refused
		}
	}
	b.count(now, r.Org, r.Sandbox, r.Service, out)
	r.Centavos, r.Movement = out.Centavos, out.Movement
	b.records = append(b.records, r)
	return out, nil
}
