package accounts_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/accounts"
	"cotejo/ledger"
)

// bureau registers, confirms, repeats, guesses, cleans up and loses power at any
// commit, in any order, and holds after each step what must always be so.
type bureau struct {
	*desk
	keys    []accounts.RegistrationKey
	issued  []accounts.Issued // with a code that somebody has
	opened  map[string]accounts.Opened
	dead    bool // the power failed: only reopening goes on
	tries   map[accounts.RegistrationID]int
	current map[accounts.RegistrationID]string // the code that is good
	unsure  map[accounts.RegistrationID]bool   // the power failed while another was issued
}

// dropped reports that the power failed: whether what was asked for was done, nobody
// knows.
func (b *bureau) dropped(err error) bool {
	if errors.Is(err, ledger.ErrFailed) {
		b.dead = true
		for id := range b.current {
			b.unsure[id] = true
		}
	}
	return b.dead
}

// code notes which code is good from now on.
func (b *bureau) code(r accounts.Issued) {
	b.current[r.ID], b.tries[r.ID] = r.Code, 0
	delete(b.unsure, r.ID)
}

func (b *bureau) Reopen(t *rapid.T) {
	b.desk.reopen(t)
	b.dead = false
}

func (b *bureau) Cut(t *rapid.T) {
	b.cut.left, b.cut.after = rapid.IntRange(0, 3).Draw(t, "commits"), rapid.Bool().Draw(t, "after")
}

func (b *bureau) Wait(t *rapid.T) {
	b.wait(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 26 * time.Hour}).Draw(t, "by"))
}

func (b *bureau) Register(t *rapid.T) {
	key := rapid.SampledFrom(b.keys).Draw(t, "key")
	in := data(rapid.SampledFrom([]string{"ana@empresa.mx", "ANA@empresa.mx", "eva@empresa.mx"}).Draw(t, "email"))
	in.PostalCode = rapid.SampledFrom([]string{"06600", "06700"}).Draw(t, "cp")
	issued, err := b.desk.Register(ctx, key.ID, in)
	if b.dropped(err) || err != nil {
		var throttled *accounts.ThrottledError
		if !b.dead && !errors.As(err, &throttled) && !errors.Is(err, accounts.ErrRegistrationLimit) {
			t.Fatalf("register: %v", err)
		}
		return
	}
	if issued.Code == "" {
		return
	}
	b.code(issued)
	if !issued.Known {
		b.issued = append(b.issued, issued)
	}
}

func (b *bureau) Confirm(t *rapid.T) {
	if len(b.issued) == 0 {
		return
	}
	r := rapid.SampledFrom(b.issued).Draw(t, "registration")
	code := rapid.SampledFrom([]string{r.Code, r.Code, r.Code, "00000000"}).Draw(t, "code")
	right := code == b.current[r.ID]
	o, err := b.desk.Confirm(ctx, r.Key, r.ID, code)
	if b.dropped(err) {
		return
	}
	var wrong *accounts.WrongCodeError
	switch {
	case err == nil:
		if !right || b.tries[r.ID] >= accounts.CodeTries && !b.unsure[r.ID] {
			t.Fatalf("confirmed with the wrong code, or after %d tries", b.tries[r.ID])
		}
		email := strings.ToLower(r.Fiscal.Email)
		if before, ok := b.opened[email]; ok {
			t.Fatalf("%s has %+v and %+v", email, before, o)
		}
		b.opened[email] = o
		b.checkOpened(o, r.Fiscal)
	case errors.As(err, &wrong):
		b.tries[r.ID]++
		if b.unsure[r.ID] {
			return
		}
		if right {
			t.Fatalf("the right code is wrong")
		}
		if wrong.Left != accounts.CodeTries-b.tries[r.ID] {
			t.Fatalf("%d left after %d", wrong.Left, b.tries[r.ID])
		}
	}
}

func (b *bureau) Operator(t *rapid.T) {
	if len(b.issued) == 0 {
		return
	}
	r := rapid.SampledFrom(b.issued).Draw(t, "registration")
	issued, err := b.IssueCode(ctx, r.ID)
	if b.dropped(err) || err != nil {
		return
	}
	b.code(issued)
	b.issued = append(b.issued, issued)
}

func (b *bureau) Prune(t *rapid.T) {
	_, err := b.PruneRegistrations(ctx, b.clock())
	if !b.dropped(err) && err != nil {
		t.Fatal(err)
	}
}

func (b *bureau) Repair(t *rapid.T) {
	_, err := b.desk.Repair(ctx)
	if !b.dropped(err) && err != nil {
		t.Fatal(err)
	}
}

func (b *bureau) Check(t *rapid.T) {
	if b.dead {
		return
	}
	if found, err := b.desk.Check(ctx); err != nil || len(found.Violations) > 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	waiting, counter, _, err := b.CountRegistrations()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := b.RegistrationKeys()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, k := range keys {
		sum += k.Pending
		if k.Pending != waiting[k.ID] || k.Pending < 0 || k.Made < 0 || k.Max > 0 && k.Made > k.Max {
			t.Fatalf("%+v; %d wait", k, waiting[k.ID])
		}
	}
	if sum != counter {
		t.Fatalf("%d wait, the counter says %d", sum, counter)
	}
	orgs := b.everyOrganization()
	var emails []string
	made := map[string]int{}
	for _, o := range orgs {
		f, err := b.Fiscal(o.Account, o.ID)
		from, errOrigin := b.Origin(o.ID)
		list, errKeys := b.Keys(o.ID)
		if err := errors.Join(err, errOrigin, errKeys); err != nil || len(list) != 2 {
			t.Fatalf("%+v is not whole: %d keys, %v", o, len(list), err)
		}
		emails = append(emails, strings.ToLower(f.Email))
		made[from.Key]++
	}
	slices.Sort(emails)
	if len(slices.Compact(slices.Clone(emails))) != len(emails) {
		t.Fatalf("one address has two accounts: %v", emails)
	}
	for _, k := range keys { // a claim that led to nothing yet counts too
		if made[k.ID] > k.Made {
			t.Fatalf("%+v made %d", k, made[k.ID])
		}
	}
	for email, o := range b.opened {
		if !slices.Contains(emails, email) {
			t.Fatalf("the account of %s is gone", email)
		}
		if _, err := b.Authenticate([]byte(o.Live)); err != nil {
			t.Fatalf("a key that was shown: %v", err)
		}
	}
}

func TestRegistrationModel(t *testing.T) {
	shown := 0
	rapid.Check(t, func(rt *rapid.T) {
		b := &bureau{desk: &desk{fs: vfs.NewMem(), at: time.Date(2026, 11, 20, 16, 15, 0, 0, time.UTC)}, opened: map[string]accounts.Opened{},
			tries: map[accounts.RegistrationID]int{}, current: map[accounts.RegistrationID]string{}, unsure: map[accounts.RegistrationID]bool{}}
		b.desk.reopen(rt)
		defer func() { b.desk.close() }()
		for _, most := range []int{0, 1} {
			_, k, err := b.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: "Llave", Max: most})
			if err != nil {
				rt.Fatal(err)
			}
			b.keys = append(b.keys, k)
		}
		rt.Repeat(rapid.StateMachineActions(b))
		shown += len(b.opened)
		// When everything is over, nothing but accounts is left.
		b.Reopen(rt)
		b.wait(100 * time.Hour)
		b.Prune(rt)
		b.Prune(rt)
		b.Repair(rt)
		b.Check(rt)
		if found, err := b.desk.Check(ctx); err != nil || len(found.HalfWay) > 0 {
			rt.Fatalf("%+v, %v", found, err)
		}
		orgs := b.everyOrganization()
		keys, errKeys := b.RegistrationKeys()
		made := 0
		for _, k := range keys {
			made += k.Made
		}
		_, counter, all, err := b.CountRegistrations()
		if err := errors.Join(err, errKeys); err != nil || counter != 0 || all != 0 || made != len(orgs) {
			rt.Fatalf("%d wait, %d are left, %d made, %d organizations, %v", counter, all, made, len(orgs), err)
		}
	})
	if shown == 0 {
		t.Error("no account was opened: the test proves nothing")
	}
}
