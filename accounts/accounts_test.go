package accounts_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"cotejo/accounts"
	"cotejo/ledger"
)

// TestAnotherPepperIsRefused opens the same accounts with the right secret, a
// wrong one, and the right one again.
func TestAnotherPepperIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	if known, err := accounts.Peppered(f.ledger); known || err != nil {
		t.Errorf("new accounts have a pepper: %v, %v", known, err)
	}
	if err := f.CheckPepper(ctx); err != nil {
		t.Fatal(err)
	}
	secret, _ := f.key(f.organization("Uno").ID, accounts.Live)
	f.close()

	f = open(t, fs, nil)
	defer f.close()
	if known, err := accounts.Peppered(f.ledger); !known || err != nil {
		t.Errorf("used accounts have no pepper: %v, %v", known, err)
	}
	wrong := accounts.New(f.ledger, bytes.Repeat([]byte("salvado_"), 4), nil, f.clock)
	if err := wrong.CheckPepper(ctx); !errors.Is(err, accounts.ErrPepper) {
		t.Errorf("wrong pepper: %v; want ErrPepper", err)
	}
	if err := f.CheckPepper(ctx); err != nil {
		t.Errorf("right pepper: %v", err)
	}
	if _, err := f.Authenticate([]byte(secret)); err != nil {
		t.Errorf("key under the right pepper: %v", err)
	}
}

func TestEndedContextEndsTheList(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	f.organization("Uno")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Accounts(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Accounts = %v; want context.Canceled", err)
	}
	if _, err := f.Check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Check = %v; want context.Canceled", err)
	}
}

func TestOrganizations(t *testing.T) {
	defer goleak.VerifyNone(t)
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	const name = "Empaques del Ñandú, S.A. de C.V."
	account, orgs, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: name, Entities: []string{"Filial Norte", "Filial Sur"}})
	if err != nil || account.Name != name || len(orgs) != 3 {
		t.Fatalf("CreateAccount = %+v, %+v, %v", account, orgs, err)
	}
	for i, want := range []string{name, "Filial Norte", "Filial Sur"} {
		o := orgs[i]
		if o.Name != want || o.Account != account.ID || o.ID.Sandbox() || o.ID == 0 {
			t.Errorf("organization %d is %+v", i, o)
		}
	}
	other := f.organization("Otra")
	added, err := f.AddOrganization(ctx, accounts.OrganizationRequest{Account: account.ID, Name: "Filial Este"})
	if err != nil || added.Account != account.ID || added.Name != "Filial Este" {
		t.Errorf("AddOrganization = %+v, %v", added, err)
	}
	orgs = append(orgs, added)
	if other.Account == account.ID || slices.Contains(orgs, other) {
		t.Errorf("two accounts share something: %+v, %+v", orgs, other)
	}
	unknown := func(id ledger.OrgID) {
		t.Helper()
		if _, err := f.Organization(id); !errors.Is(err, accounts.ErrNotFound) {
			t.Errorf("unknown organization: %v", err)
		}
	}
	unknown(other.ID + 2)
	unknown(other.ID - 1)
	if _, err := f.Account(account.ID + 1); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("unknown account: %v", err)
	}
	if _, err := f.AddOrganization(ctx, accounts.OrganizationRequest{Account: account.ID + 1, Name: "X"}); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("organization of an unknown account: %v", err)
	}
	f.close()

	f = open(t, fs, nil)
	defer f.close()
	all, err := f.Accounts(ctx)
	if err != nil || len(all) != 2 || all[0] != account || all[1].ID != other.Account {
		t.Errorf("after reopening: %+v, %v", all, err)
	}
	if got, err := f.Organizations(account.ID); err != nil || !slices.Equal(got, orgs) {
		t.Errorf("Organizations = %+v, %v; want %+v", got, err, orgs)
	}
	for _, o := range orgs {
		if got, err := f.Organization(o.ID); err != nil || got != o {
			t.Errorf("Organization = %+v, %v; want %+v", got, err, o)
		}
		o.ID = o.ID.Twin()
		if got, err := f.Organization(o.ID); err != nil || got != o || !o.ID.Sandbox() {
			t.Errorf("twin = %+v, %v; want %+v", got, err, o)
		}
	}
}

func TestTooManyOrganizations(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	names := make([]string, 99)
	for i := range names {
		names[i] = "E"
	}
	account, _, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno", Entities: names})
	if err != nil {
		t.Fatal(err)
	}
	before := f.globalKeys()
	if _, err := f.AddOrganization(ctx, accounts.OrganizationRequest{Account: account.ID, Name: "101"}); !errors.Is(err, accounts.ErrTooManyOrganizations) {
		t.Errorf("organization 101: %v", err)
	}
	if n := f.globalKeys(); n != before {
		t.Errorf("a refused organization left %d rows in the global group", n-before)
	}
	if _, _, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Dos", Entities: append(names, "E")}); !errors.Is(err, accounts.ErrTooManyOrganizations) {
		t.Errorf("an account of 101: %v", err)
	}
}

// stuttering gives each run of n bytes twice, so that the first try of every id
// collides with the one before.
type stuttering struct {
	rng  *rand.Rand
	last []byte
}

func (s *stuttering) Read(p []byte) (int, error) {
	if len(s.last) == len(p) {
		copy(p, s.last)
		s.last = nil
		return len(p), nil
	}
	for i := range p {
		p[i] = byte(s.rng.Uint32())
	}
	s.last = bytes.Clone(p)
	return len(p), nil
}

func TestCollisionsAreRetried(t *testing.T) {
	f := open(t, vfs.NewMem(), &stuttering{rng: rand.New(rand.NewPCG(1, 1))})
	defer f.close()
	first, second := f.organization("Uno"), f.organization("Dos")
	if first.ID == second.ID || first.Account == second.Account {
		t.Fatalf("a claimed id was given again: %+v, %+v", first, second)
	}
	a, keyA := f.key(first.ID, accounts.Live)
	b, keyB := f.key(second.ID, accounts.Live)
	if keyA.ID == keyB.ID {
		t.Fatalf("a claimed lookup id was given again: %s", keyA.ID)
	}
	for secret, org := range map[string]ledger.OrgID{a: first.ID, b: second.ID} {
		if p, err := f.Authenticate([]byte(secret)); err != nil || p.Org != org {
			t.Errorf("Authenticate = %+v, %v; want organization %d", p, err, org)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBrokenRandomnessEnds(t *testing.T) {
	f := open(t, vfs.NewMem(), zeros{})
	defer f.close()
	if _, _, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno"}); err == nil {
		t.Error("an organization was made of zeros")
	}
}

func TestLimits(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization(strings.Repeat("ñ", 300))
	name := func(s string) {
		t.Helper()
		if _, _, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: s}); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("name %q: %v; want ErrInvalid", s, err)
		}
		if _, _, err := f.CreateAccount(ctx, accounts.AccountRequest{Name: "Uno", Entities: []string{s}}); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("entity %q: %v; want ErrInvalid", s, err)
		}
		if _, err := f.AddOrganization(ctx, accounts.OrganizationRequest{Account: o.Account, Name: s}); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("organization %q: %v; want ErrInvalid", s, err)
		}
	}
	name("")
	name(strings.Repeat("n", 301))
	name("a\nb")
	name("a\x00b")
	name("a\xffb")

	money := func(centavos int64, reason string) {
		t.Helper()
		if _, err := f.Credit(ctx, o.ID, centavos, reason); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("credit of %d for %q: %v; want ErrInvalid", centavos, reason, err)
		}
	}
	money(0, "abono")
	money(-1, "abono")
	money(100_000_000_000, "abono")
	money(1, "")
	money(1, strings.Repeat("r", 501))

	for range 10 {
		f.key(o.ID, accounts.Live)
	}
	if _, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: accounts.Live}); !errors.Is(err, accounts.ErrTooManyKeys) {
		t.Errorf("eleventh key: %v", err)
	}
	// The refused key left no claim behind in the global group.
	before := f.globalKeys()
	if _, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: accounts.Live}); !errors.Is(err, accounts.ErrTooManyKeys) || f.globalKeys() != before {
		t.Errorf("a refused key left a claim: %d keys in the global group, %d before: %v", f.globalKeys(), before, err)
	}
	f.key(o.ID, accounts.Test)
	f.key(o.ID.Twin(), accounts.Test)
	refused := func(r accounts.KeyRequest) {
		t.Helper()
		if _, _, err := f.CreateKey(ctx, r); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("%+v: %v; want ErrInvalid", r, err)
		}
	}
	refused(accounts.KeyRequest{Org: o.ID.Twin(), Mode: accounts.Live})
	refused(accounts.KeyRequest{Org: o.ID, Mode: accounts.Admin})
	refused(accounts.KeyRequest{Org: o.ID, Mode: accounts.Test, Only: []string{"a,b"}})
	refused(accounts.KeyRequest{Org: o.ID, Mode: accounts.Test, Only: []string{""}})
	refused(accounts.KeyRequest{Org: o.ID, Mode: accounts.Test, Only: make([]string, 65)})
	refused(accounts.KeyRequest{Org: o.ID, Mode: accounts.Test, Ref: strings.Repeat("r", 201)})
	if _, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID, Mode: 9}); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("mode 9: %v", err)
	}
	if _, _, err := f.CreateKey(ctx, accounts.KeyRequest{Org: o.ID + 2, Mode: accounts.Live}); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("key of nobody: %v", err)
	}
}

func TestCreditReachesTheWallet(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	got, err := f.Credit(ctx, o.ID, 99_999_999_999, "transferencia")
	want := ledger.Charged{Movement: 1, Centavos: 99_999_999_999, Balance: 99_999_999_999}
	if err != nil || got != want {
		t.Errorf("Credit = %+v, %v; want %+v", got, err, want)
	}
	if balance, err := f.ledger.Balance(o.Account, f.clock()); err != nil || balance != want.Balance {
		t.Errorf("Balance = %d, %v", balance, err)
	}
	if _, err := f.Credit(ctx, o.ID+2, 1, "transferencia"); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("credit of nobody: %v", err)
	}
	if _, err := f.Credit(ctx, o.ID.Twin(), 1, "transferencia"); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("credit of a twin: %v", err)
	}
}

func TestCreditUsesReachesTheWallet(t *testing.T) {
	f := open(t, vfs.NewMem(), nil)
	defer f.close()
	o := f.organization("Uno")
	got, err := f.CreditUses(ctx, o.ID, "COMPANY", ledger.MaxUses, 1400, "transferencia")
	want := ledger.Charged{Movement: 1, Uses: ledger.MaxUses, Lot: 1, UsesLeft: ledger.MaxUses}
	if err != nil || got != want {
		t.Errorf("CreditUses = %+v, %v; want %+v", got, err, want)
	}
	if w, err := f.ledger.Wallet(o.Account, f.clock()); err != nil || w.Uses("COMPANY") != ledger.MaxUses || w.Balance != 0 {
		t.Errorf("Wallet = %+v, %v", w, err)
	}
	for _, count := range []int64{0, -1, ledger.MaxUses + 1} {
		if _, err := f.CreditUses(ctx, o.ID, "COMPANY", count, 1400, "transferencia"); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("%d uses: %v", count, err)
		}
	}
	if _, err := f.CreditUses(ctx, o.ID, "COMPANY", 1, 1400, ""); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("without a reason: %v", err)
	}
	if _, err := f.CreditUses(ctx, o.ID+2, "COMPANY", 1, 1400, "transferencia"); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("credit of nobody: %v", err)
	}
}

func TestOrgForm(t *testing.T) {
	f := func(id ledger.OrgID, text string) {
		t.Helper()
		if got := accounts.FormatOrg(id); got != text {
			t.Errorf("FormatOrg(%d) = %q, want %q", id, got, text)
		}
		if got, err := accounts.ParseOrg(text); err != nil || got != id {
			t.Errorf("ParseOrg(%q) = %d, %v; want %d", text, got, err, id)
		}
	}
	f(0, "org_0000000000000")
	f(31, "org_000000000000Z")
	f(0x0123456789abcdef, "org_028T5CY4TQKFF")
	f(1<<64-1, "org_FZZZZZZZZZZZZ")

	bad := func(text string) {
		t.Helper()
		if id, err := accounts.ParseOrg(text); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("ParseOrg(%q) = %d, %v; want ErrInvalid", text, id, err)
		}
	}
	bad("")
	bad("org_")
	bad("org_G000000000000") // beyond 64 bits
	bad("org_000000000000I")
	bad("org_000000000000z")
	bad("ORG_0000000000000")
	bad("org_00000000000000")
	bad("org_000000000000\xff")
}

func FuzzParseOrg(f *testing.F) {
	f.Add("org_FZZZZZZZZZZZZ")
	f.Add("org_0000000000000")
	f.Add("org_0000000000I00")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := accounts.ParseOrg(s); err == nil && accounts.FormatOrg(id) != s {
			t.Errorf("ParseOrg(%q) = %d, which prints %q", s, id, accounts.FormatOrg(id))
		}
	})
}
