package accounts_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

func TestRegistrationKeys(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	soon := d.clock().Add(time.Hour)
	secret, key, err := d.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: "Vendedora", Vendor: "V-17", Max: 3, Expires: soon})
	if err != nil {
		t.Fatal(err)
	}
	want := accounts.RegistrationKey{ID: key.ID, Name: "Vendedora", Vendor: "V-17", Max: 3, Expires: soon, Created: d.clock(), Active: true}
	if key != want || !strings.HasPrefix(secret, "svc_reg_"+key.ID) || len(secret) != 65 {
		t.Errorf("%+v, %d characters", key, len(secret))
	}
	who, err := d.AuthenticateRegistrar([]byte(secret))
	if err != nil || who != (accounts.Principal{Mode: accounts.Registrar, KeyID: key.ID}) {
		t.Errorf("%+v, %v", who, err)
	}
	d.reopen(t)
	if _, err := d.AuthenticateRegistrar([]byte(secret)); err != nil {
		t.Errorf("after a restart: %v", err)
	}

	apiKey, _ := d.fixture.key(d.organization("Otra").ID, accounts.Live)
	swapped := accounts.WithCheck(secret[:16] + strings.Repeat("x", 43))
	unknown := accounts.WithCheck("svc_reg_" + strings.Repeat("0", 8) + secret[16:59])
	for _, bad := range []string{"", "svc_reg_", secret + "x", secret[:64], strings.ToUpper(secret), swapped, unknown, apiKey, "svc_live_" + secret[8:], " " + secret[1:], secret[:64] + "\x00"} {
		if _, err := d.AuthenticateRegistrar([]byte(bad)); !errors.Is(err, accounts.ErrRegistrationKey) {
			t.Errorf("«%.12s…»: %v", bad, err)
		}
	}
	if _, err := d.Authenticate([]byte(secret)); !errors.Is(err, accounts.ErrUnauthorized) {
		t.Errorf("as an API key: %v", err)
	}

	recognized := func(key string, remembered bool, want error) {
		t.Helper()
		who, found, err := d.RecognizeRegistrar([]byte(key))
		if found != remembered || !errors.Is(err, want) || (who != accounts.Principal{}) != (remembered && want == nil) {
			t.Errorf("«%.16s…»: %+v, remembered %v, %v; want %v, %v", key, who, found, err, remembered, want)
		}
		if _, found, err := d.Recognize([]byte(secret)); !found || !errors.Is(err, accounts.ErrUnauthorized) {
			t.Errorf("as an API key: %v, %v", found, err)
		}
	}
	recognized(secret, true, nil)
	recognized(swapped, true, accounts.ErrRegistrationKey)
	recognized(apiKey, true, accounts.ErrRegistrationKey)
	recognized(unknown, false, nil)
	d.reopen(t)
	recognized(secret, false, nil)
	if err := d.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	recognized(secret, true, nil)
	ending, endingKey, err := d.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: "Breve"})
	if err != nil {
		t.Fatal(err)
	}
	recognized(ending, true, nil)
	if _, err := d.DeactivateRegistrationKey(ctx, endingKey.ID); err != nil {
		t.Fatal(err)
	}
	recognized(ending, false, nil)
	if _, err := d.AuthenticateRegistrar([]byte(ending)); !errors.Is(err, accounts.ErrRegistrationKey) {
		t.Errorf("deactivated: %v", err)
	}

	d.wait(time.Hour)
	_, err = d.AuthenticateRegistrar([]byte(secret))
	is(t, err, accounts.ErrRegistrationKey)
	_, err = d.Register(ctx, key.ID, data("ana@empresa.mx"))
	is(t, err, accounts.ErrRegistrationKey)

	r := d.register("ana@empresa.mx")
	ended, err := d.DeactivateRegistrationKey(ctx, d.key.ID)
	if again, failed := d.DeactivateRegistrationKey(ctx, d.key.ID); err != nil || ended.Active || failed != nil || again != ended {
		t.Errorf("%+v, %v; again %+v, %v", ended, err, again, failed)
	}
	_, err = d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	is(t, err, accounts.ErrRegistrationKey)
	_, err = d.DeactivateRegistrationKey(ctx, "nadie123")
	is(t, err, accounts.ErrNoRegistrationKey)

	for _, spec := range []accounts.RegistrationKeySpec{
		{}, {Name: "a\nb"}, {Name: "a", Vendor: "ñ"}, {Name: "a", Vendor: strings.Repeat("v", 33)}, {Name: "a", Max: -1}, {Name: "a", Expires: d.clock()},
	} {
		_, _, err := d.CreateRegistrationKey(ctx, spec)
		is(t, err, accounts.ErrInvalid)
	}
}

// TestRegistration goes the whole way, and again after a restart.
func TestRegistration(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{Vendor: "V-17"})
	r := d.register("Ana@empresa.mx")
	want := accounts.Registration{ID: r.ID, Key: d.key.ID, Fiscal: data("Ana@empresa.mx"), State: accounts.RegistrationPending,
		Created: d.clock(), Issued: d.clock(), Expires: d.clock().Add(24 * time.Hour), Left: 5}
	if r.Registration != want || r.Known || len(r.Code) != 8 || strings.ContainsAny(r.Code, "ILOU") {
		t.Errorf("%+v", r)
	}
	if again, err := accounts.ParseRegistration(r.ID.String()); again != r.ID || err != nil {
		t.Errorf("%s is read as %s, %v", r.ID, again, err)
	}
	if all, err := d.Registrations(d.clock()); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%+v, %v", all, err)
	}
	d.reopen(t)
	d.wait(24*time.Hour - 1)
	if d.organizations() != 0 {
		t.Error("an account came before its code")
	}
	// As a person writes it.
	code := strings.ToLower(accounts.FormatCode(r.Code))
	code = " " + strings.NewReplacer("0", "o", "1", "l").Replace(code)
	opened, err := d.Confirm(ctx, d.key.ID, r.ID, code)
	if err != nil {
		t.Fatal(err)
	}
	d.checkOpened(opened, r.Fiscal)
	origin, err := d.Origin(opened.ID)
	if wantOrigin := (accounts.Origin{Registration: r.ID, Key: d.key.ID, Vendor: "V-17", Accepted: r.Issued}); err != nil || origin != wantOrigin {
		t.Errorf("origin %+v, %v", origin, err)
	}
	if k := d.state(); k.Made != 1 || k.Pending != 0 {
		t.Errorf("%+v", k)
	}
	if all, err := d.Registrations(d.clock()); err != nil || len(all) != 0 {
		t.Errorf("still waiting: %+v, %v", all, err)
	}
	d.reopen(t)
	d.checkOpened(opened, r.Fiscal)
	if _, err := d.Origin(d.organization("Otra").ID); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("origin of what nobody registered: %v", err)
	}
}

// TestConfirmIsOnce holds that a second confirmation makes no second account.
func TestConfirmIsOnce(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	r := d.register("ana@empresa.mx")
	opened := d.confirm(r)
	for range 3 {
		_, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
		if got := as[*accounts.ConfirmedError](t, err); got.Org != opened.ID {
			t.Errorf("of %v; want %v", got.Org, opened.ID)
		}
	}
	// Who does not have the code is not told of which organization it is.
	_, err := d.Confirm(ctx, d.key.ID, r.ID, "00000000")
	as[*accounts.WrongCodeError](t, err)
	_, err = d.IssueCode(ctx, r.ID)
	as[*accounts.ConfirmedError](t, err)
	d.wait(24 * time.Hour)
	_, err = d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	is(t, err, accounts.ErrCodeOver)
	d.wait(time.Hour)
	if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done != (accounts.PrunedRegistrations{Forgotten: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	_, err = d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	is(t, err, accounts.ErrNoRegistration)
	if d.organizations() != 1 {
		t.Errorf("%d organizations", d.organizations())
	}
	d.checkOpened(opened, r.Fiscal)
	if again := d.register("ANA@EMPRESA.mx"); !again.Known {
		t.Error("the address is free again")
	}
}

// TestConfirmInParallel: 64 at once make one account, and one of them gets its keys.
func TestConfirmInParallel(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	r := d.register("ana@empresa.mx")
	type result struct {
		accounts.Opened
		error
	}
	results := make(chan result, 64)
	var start, done sync.WaitGroup
	start.Add(1)
	for range cap(results) {
		done.Go(func() {
			start.Wait()
			o, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
			results <- result{o, err}
		})
	}
	start.Done()
	done.Wait()
	close(results)
	won := 0
	var org ledger.OrgID
	for one := range results {
		if one.error == nil {
			won++
			org = one.ID
			d.checkOpened(one.Opened, r.Fiscal)
			continue
		}
		as[*accounts.ConfirmedError](t, one.error)
	}
	_, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	if got := as[*accounts.ConfirmedError](t, err); won != 1 || got.Org != org || d.organizations() != 1 || d.state().Made != 1 {
		t.Errorf("%d got keys, %d organizations", won, d.organizations())
	}
}

// TestTwoRegistrationsOfOneAddress: whoever confirms first has it, through whatever
// key; the other is told only with the right code.
func TestTwoRegistrationsOfOneAddress(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	_, other, err := d.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: "Otra"})
	if err != nil {
		t.Fatal(err)
	}
	first := d.register("ana@empresa.mx")
	second, err := d.Register(ctx, other.ID, data("ANA@empresa.mx"))
	if err != nil || second.ID == first.ID {
		t.Fatal(second, err)
	}
	_, err = d.Confirm(ctx, other.ID, first.ID, first.Code)
	is(t, err, accounts.ErrNoRegistration)
	d.confirm(first)
	_, err = d.Confirm(ctx, other.ID, second.ID, first.Code)
	as[*accounts.WrongCodeError](t, err)
	_, err = d.Confirm(ctx, other.ID, second.ID, second.Code)
	is(t, err, accounts.ErrEmailTaken)
	_, err = d.IssueCode(ctx, second.ID)
	is(t, err, accounts.ErrEmailTaken)
	if d.organizations() != 1 {
		t.Errorf("%d organizations", d.organizations())
	}
}

// TestOtherDataAreAnotherRegistration: who knows an address cannot change what its
// owner is about to confirm, nor end the code that they have.
func TestOtherDataAreAnotherRegistration(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	mine := d.register("ana@empresa.mx")
	other := data("ana@empresa.mx")
	other.LegalName, other.RFC = "Otra persona moral", "OPM010101AA1"
	theirs, err := d.Register(ctx, d.key.ID, other)
	if err != nil || theirs.ID == mine.ID || theirs.Code == mine.Code || theirs.Code == "" {
		t.Fatalf("%+v, %v", theirs, err)
	}
	_, err = d.Confirm(ctx, d.key.ID, mine.ID, theirs.Code)
	as[*accounts.WrongCodeError](t, err)
	d.checkOpened(d.confirm(mine), data("ana@empresa.mx"))
	_, err = d.Confirm(ctx, d.key.ID, theirs.ID, theirs.Code)
	is(t, err, accounts.ErrEmailTaken)
}

// TestNoOracle: for an address that has an account and for one that has none,
// everything that whoever asks can see is the same.
func TestNoOracle(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	d.confirm(d.register("ana@empresa.mx"))
	d.wait(mailSpan)
	seen := func(email string) (trace []string) {
		say := func(issued accounts.Issued, err error) {
			issued.ID, issued.Fiscal.Email = 0, ""
			trace = append(trace, fmt.Sprintf("%+v %v", issued.Registration, err))
		}
		issued, err := d.Register(ctx, d.key.ID, data(email))
		say(issued, err)
		if issued.Known != (email == "ana@empresa.mx") {
			t.Errorf("%s: known %v", email, issued.Known)
		}
		id := issued.ID
		try := func() {
			_, err := d.Confirm(ctx, d.key.ID, id, "00000000")
			say(accounts.Issued{}, err)
		}
		try()
		say(d.Register(ctx, d.key.ID, data(email))) // the same again, at once
		for range 6 {
			try()
		}
		say(d.Register(ctx, d.key.ID, data(email))) // no tries left, too early
		d.wait(time.Minute)
		say(d.Register(ctx, d.key.ID, data(email)))
		d.wait(time.Minute)
		other := data(email)
		other.PostalCode = "06700"
		say(d.Register(ctx, d.key.ID, other)) // another registration
		d.wait(time.Minute)
		say(d.Register(ctx, d.key.ID, data(email))) // the fourth of a day
		return trace
	}
	known := seen("ana@empresa.mx")
	d.wait(-3 * time.Minute) // both at the same moments
	fresh := seen("eva@empresa.mx")
	for i := range known {
		if known[i] != fresh[i] {
			t.Errorf("step %d:\nknown %s\nfresh %s", i, known[i], fresh[i])
		}
	}
}

const mailSpan = 24 * time.Hour

// TestBruteForce: a code has five tries, whichever registration they belong to a key
// has a hundred an hour, and neither the right code nor a restart brings them back.
func TestBruteForce(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	r := d.register("ana@empresa.mx")
	for left := 4; left >= 0; left-- {
		_, err := d.Confirm(ctx, d.key.ID, r.ID, "0000-0000")
		if got := as[*accounts.WrongCodeError](t, err); got.Left != left {
			t.Errorf("%d left; want %d", got.Left, left)
		}
		if left == 2 {
			d.reopen(t)
		}
	}
	_, err := d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	is(t, err, accounts.ErrCodeOver)
	d.wait(time.Minute)
	again := d.register("ana@empresa.mx")
	if again.ID != r.ID || again.Code == r.Code || again.Left != 5 {
		t.Errorf("%+v after %+v", again, r)
	}
	_, err = d.Confirm(ctx, d.key.ID, r.ID, r.Code) // the code before
	as[*accounts.WrongCodeError](t, err)
	d.confirm(again)

	wrong := 6
	for i := 0; wrong < 100; i++ {
		r := d.register(fmt.Sprintf("p%d@empresa.mx", i))
		for range min(5, 100-wrong) {
			_, err := d.Confirm(ctx, d.key.ID, r.ID, "0000-0000")
			as[*accounts.WrongCodeError](t, err)
			wrong++
		}
	}
	last := d.register("eva@empresa.mx")
	_, err = d.Confirm(ctx, d.key.ID, last.ID, "0000-0000")
	if got := as[*accounts.ThrottledError](t, err); got.Wait != 59*time.Minute {
		t.Errorf("wait %v", got.Wait)
	}
	d.confirm(last) // who has the code is not held up by who has not
}

// TestThrottles: by registration, by address and by key.
func TestThrottles(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	throttled := func(email string, want time.Duration) {
		t.Helper()
		_, err := d.Register(ctx, d.key.ID, data(email))
		if got := as[*accounts.ThrottledError](t, err); got.Wait != want {
			t.Errorf("%s: %v; want %v", got.What, got.Wait, want)
		}
	}
	first := d.register("ana@empresa.mx")
	d.wait(time.Second)
	if again := d.register("ana@empresa.mx"); again.Code != "" || again.Registration != first.Registration {
		t.Errorf("repeated: %+v", again)
	}
	for range 5 {
		_, _ = d.Confirm(ctx, d.key.ID, first.ID, "0000-0000")
	}
	throttled("ana@empresa.mx", 59*time.Second) // there is a code, and no try left
	d.wait(59 * time.Second)
	second := d.register("ana@empresa.mx")
	d.wait(time.Minute)
	third := d.register("ana@empresa.mx")
	if second.ID != first.ID || third.ID != first.ID || third.Code == "" || third.Expires != d.clock().Add(24*time.Hour) {
		t.Errorf("%+v, %+v", second, third)
	}
	d.wait(time.Minute)
	throttled("ana@empresa.mx", 24*time.Hour-3*time.Minute)
	throttled("ANA@empresa.mx", 24*time.Hour-3*time.Minute) // other data, the same mailbox
	d.confirm(third)                                        // its code is good all the same

	for i := range 120 - 3 {
		d.register(fmt.Sprintf("p%d@empresa.mx", i))
	}
	throttled("eva@empresa.mx", 57*time.Minute)
	d.wait(57 * time.Minute)
	d.register("eva@empresa.mx")
}

// TestPendingIsBounded: a key has a thousand that wait, until the cleaning comes.
func TestPendingIsBounded(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	for i := range 1000 {
		if i%120 == 0 {
			d.wait(time.Hour)
		}
		d.register(fmt.Sprintf("p%d@empresa.mx", i))
	}
	_, err := d.Register(ctx, d.key.ID, data("eva@empresa.mx"))
	as[*accounts.ThrottledError](t, err)
	if k := d.state(); k.Pending != 1000 {
		t.Errorf("%+v", k)
	}
	before := d.globalKeys()
	if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done != (accounts.PrunedRegistrations{}) || d.globalKeys() != before {
		t.Errorf("before their time: %+v, %v", done, err)
	}
	d.wait(25 * time.Hour)
	if done, err := d.PruneRegistrations(ctx, d.clock()); err != nil || done.Forgotten != 1000 {
		t.Errorf("%+v, %v", done, err)
	}
	if k := d.state(); k.Pending != 0 || d.globalKeys() != before-3000 { // registration, where it is found, address
		t.Errorf("%+v, %d keys of %d", k, d.globalKeys(), before)
	}
	d.register("eva@empresa.mx")
}

func TestMaximumOfAKey(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{Max: 1})
	first, second := d.register("ana@empresa.mx"), d.register("eva@empresa.mx")
	d.confirm(second)
	_, err := d.Confirm(ctx, d.key.ID, first.ID, first.Code)
	is(t, err, accounts.ErrRegistrationLimit)
	_, err = d.Register(ctx, d.key.ID, data("iris@empresa.mx"))
	is(t, err, accounts.ErrRegistrationLimit)
	if d.organizations() != 1 {
		t.Errorf("%d organizations", d.organizations())
	}
}

// TestOperatorsCode: the operator's code takes the place of the one that was sent.
func TestOperatorsCode(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	r := d.register("ana@empresa.mx")
	for range 5 {
		_, _ = d.Confirm(ctx, d.key.ID, r.ID, "0000-0000")
	}
	d.wait(time.Hour)
	issued, err := d.IssueCode(ctx, r.ID)
	if err != nil || issued.Code == r.Code || issued.Left != 5 || !issued.ByOperator || issued.Expires != d.clock().Add(24*time.Hour) {
		t.Errorf("%+v, %v", issued, err)
	}
	_, err = d.Confirm(ctx, d.key.ID, r.ID, r.Code)
	as[*accounts.WrongCodeError](t, err)
	d.checkOpened(d.confirm(issued), r.Fiscal)
	_, err = d.IssueCode(ctx, r.ID+1)
	is(t, err, accounts.ErrNoRegistration)
}

// TestSecretsAreNotStored looks through every stored value for codes and keys.
func TestSecretsAreNotStored(t *testing.T) {
	d := newDesk(t, accounts.RegistrationKeySpec{})
	secret, _, err := d.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: "Otra"})
	if err != nil {
		t.Fatal(err)
	}
	waiting := d.register("eva@empresa.mx")
	r := d.register("ana@empresa.mx")
	opened := d.confirm(r)
	operators, err := d.IssueCode(ctx, waiting.ID)
	if err != nil {
		t.Fatal(err)
	}
	canaries := []string{secret[16:59], opened.Live[17:60], opened.Test[17:60], r.Code, accounts.FormatCode(r.Code), waiting.Code, operators.Code}
	values, found := 0, false
	for g := range store.Groups + 1 {
		err := d.store.Reader(store.Group(g)).Scan(nil, nil, func(k, v []byte) error {
			values++
			found = found || bytes.Contains(v, []byte("ana@empresa.mx"))
			for _, c := range canaries {
				if bytes.Contains(k, []byte(c)) || bytes.Contains(v, []byte(c)) {
					t.Errorf("%s stands in %q", c, v)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if values < 10 || !found {
		t.Errorf("%d values were looked at", values)
	}
}

func FuzzParseRegistration(f *testing.F) {
	for _, s := range []string{"", "reg_", "reg_0000000000000", "reg_FZZZZZZZZZZZZ", "reg_G000000000000", "reg_262GC02Y1Z3JX", "org_262GC02Y1Z3JX", "reg_262gc02y1z3jx", "reg_ñ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := accounts.ParseRegistration(s)
		if (err == nil) != (id.String() == s) || err != nil && (id != 0 || !errors.Is(err, accounts.ErrNoRegistration)) {
			t.Errorf("%q is %v, %v", s, id, err)
		}
	})
}

func FuzzAuthenticateRegistrar(f *testing.F) {
	fix := open(&testing.T{}, vfs.NewMem(), nil)
	f.Cleanup(fix.close)
	secret, _, err := fix.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: "Mostrador"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(secret))
	f.Add([]byte(accounts.WithCheck(fmt.Sprintf("svc_reg_%08d%043d", 1, 1))))
	f.Add([]byte("svc_live_" + secret[8:]))
	f.Fuzz(func(t *testing.T, key []byte) {
		_, err := fix.AuthenticateRegistrar(key)
		if valid := string(key) == secret; valid != (err == nil) {
			t.Errorf("%q: %v", key, err)
		}
	})
}
