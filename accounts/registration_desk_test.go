package accounts_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

// desk is a service on which somebody registers, with a clock that stands still.
type desk struct {
	*fixture
	fs  vfs.FS
	cut *cutStore
	key accounts.RegistrationKey
	mu  sync.Mutex
	at  time.Time // under mu
}

// cutStore loses power at a commit: before it reached the disk or just after.
type cutStore struct {
	store.Store
	left  int // commits that still come through
	after bool
}

func (s *cutStore) Commit(b ...store.Batch) error {
	s.left--
	if s.left < -1 || s.left == -1 && !s.after {
		return store.ErrClosed
	}
	err := s.Store.Commit(b...)
	if s.left == -1 {
		return store.ErrClosed
	}
	return err
}

const uncut = 1 << 40

func newDesk(t *testing.T, spec accounts.RegistrationKeySpec) *desk {
	t.Helper()
	d := &desk{fs: vfs.NewMem(), at: time.Date(2026, 11, 20, 16, 15, 0, 0, time.UTC)}
	d.reopen(t)
	if spec.Name == "" {
		spec.Name = "Mostrador"
	}
	_, key, err := d.CreateRegistrationKey(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	d.key = key
	t.Cleanup(func() { d.close() })
	return d
}

// reopen starts the service again on what the disk has.
func (d *desk) reopen(t rapid.TB) {
	t.Helper()
	if d.fixture != nil {
		d.close()
	}
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: d.fs})
	if err != nil {
		t.Fatal(err)
	}
	d.cut = &cutStore{Store: s, left: uncut}
	l, err := ledger.Open(d.cut, ledger.Options{Fatal: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	d.fixture = &fixture{t: t, ledger: l, store: s}
	d.Service = accounts.New(l, pepper, nil, d.clock)
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *desk) wait(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.at.Add(by)
}

func data(email string) accounts.Fiscal {
	return accounts.Fiscal{LegalName: "Empaques del Ñandú", RFC: "ENA010101AA1", PostalCode: "06600", Regime: "601", Use: "G03", Email: email}
}

func (d *desk) register(email string) accounts.Issued {
	d.t.Helper()
	issued, err := d.Register(ctx, d.key.ID, data(email))
	if err != nil {
		d.t.Fatal(err)
	}
	return issued
}

func (d *desk) confirm(issued accounts.Issued) accounts.Opened {
	d.t.Helper()
	opened, err := d.Confirm(ctx, d.key.ID, issued.ID, issued.Code)
	if err != nil {
		d.t.Fatal(err)
	}
	return opened
}

// organizations counts those that exist.
func (d *desk) organizations() int {
	d.t.Helper()
	return len(d.everyOrganization())
}

// everyOrganization lists the legal entities of all accounts.
func (d *desk) everyOrganization() (all []accounts.Organization) {
	d.t.Helper()
	list, err := d.Accounts(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, a := range list {
		orgs, err := d.Organizations(a.ID)
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, orgs...)
	}
	return all
}

func (d *desk) state() accounts.RegistrationKey {
	d.t.Helper()
	all, err := d.RegistrationKeys()
	if err != nil || len(all) != 1 {
		d.t.Fatal(all, err)
	}
	return all[0]
}

// checkOpened holds that an account is whole, and nobody else's.
func (d *desk) checkOpened(o accounts.Opened, want accounts.Fiscal) {
	d.t.Helper()
	for _, k := range []struct {
		secret string
		accounts.Mode
		org ledger.OrgID
	}{{o.Live, accounts.Live, o.ID}, {o.Test, accounts.Test, o.ID.Twin()}} {
		who, err := d.Authenticate([]byte(k.secret))
		if err != nil || who.Account != o.Account || who.Org != k.org || who.Mode != k.Mode {
			d.t.Errorf("key of mode %d: %+v, %v", k.Mode, who, err)
		}
	}
	if a, err := d.Account(o.Account); err != nil || a.Name != want.LegalName {
		d.t.Errorf("account %+v, %v", a, err)
	}
	got, err := d.Organization(o.ID)
	if err != nil || got != o.Organization || got.Name != want.LegalName {
		d.t.Errorf("organization %+v, %v; want %+v", got, err, o.Organization)
	}
	want.Updated = o.Created
	if fiscal, err := d.Fiscal(o.Account, o.ID); err != nil || fiscal != want {
		d.t.Errorf("fiscal data %+v, %v", fiscal, err)
	}
	found, err := d.Check(ctx)
	// Another account may wait for its repair meanwhile.
	ofOthers := func(c accounts.Claim) bool { return c.Account != o.Account }
	if half := slices.DeleteFunc(found.HalfWay, ofOthers); err != nil || len(half)+len(found.Violations) > 0 {
		d.t.Errorf("half-way %+v, violations %v, %v", half, found.Violations, err)
	}
	if keys, err := d.Keys(o.ID); err != nil || len(keys) != 2 {
		d.t.Errorf("keys %+v, %v", keys, err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v; want %v", err, want)
	}
}

func as[T error](t *testing.T, err error) (found T) {
	t.Helper()
	if !errors.As(err, &found) {
		t.Fatalf("got %v; want %T", err, found)
	}
	return found
}
