package accounts_test

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/store"
)

// machine runs the accounts and a plain model side by side. It is also their
// store, which loses power, and their random bytes, which come twice.
type machine struct {
	*fixture
	store.Store
	fs      vfs.FS
	commits int // until the power is lost
	reads   uint64
	given   [sha512.Size]byte // the last random bytes of an id
	drawn   [sha512.Size]byte // the last ones of a secret

	// The model. What was tried exists, or is claimed only, or neither.
	left    int    // commits; negative from the first that failed until Reopen
	marked  string // the pepper of the first use
	rows    int    // of the global group
	tried   []ledger.OrgID
	secrets []string // tried, or changed
	all     []accounts.Account
	orgs    map[ledger.OrgID]accounts.Organization
	keys    map[string]*modelKey // by the key itself
	order   []string             // of keys
	wallets map[ledger.AccountID]ledger.Charged
	pending []note          // oldest first
	admin   string          // id of the operator's key that is being made
	givenUp map[string]bool // operators' keys
}

type note struct {
	written bool
	admin   string
}

type modelKey struct {
	accounts.Key
	principal accounts.Principal
}

func (m *machine) Commit(b ...store.Batch) error {
	if m.commits--; m.commits < 0 {
		return store.ErrClosed
	}
	return m.Store.Commit(b...)
}

// Read gives the bytes of each id twice, so that every second one is taken.
func (m *machine) Read(p []byte) (int, error) {
	if len(p) == secretBytes {
		m.drawn = sha512.Sum512(m.drawn[:])
		return copy(p, m.drawn[:]), nil
	}
	m.reads++
	m.given = sha512.Sum512(binary.BigEndian.AppendUint64(nil, m.reads/2))
	return copy(p, m.given[:]), nil
}

const secretBytes = 32 // of a key

// write models so many commits, unless refused; the first brings claims, with a note
// each, which the last makes good.
func (m *machine) write(refusal error, commits, claims int) error {
	if refusal != nil {
		return refusal
	}
	first := m.left > 0
	m.left -= commits
	if first {
		m.rows += 2 * claims
		for range claims {
			m.pending = append(m.pending, note{m.left >= 0, m.admin})
		}
		if m.admin != "" && m.left >= 0 {
			m.rows++ // the key itself
		}
	}
	return unless(m.left >= 0, ledger.ErrFailed)
}

func (m *machine) Reopen(t *rapid.T) {
	if m.ledger != nil {
		m.close()
	}
	var opened, failed error
	m.Store, opened = store.OpenPebble("datos", store.PebbleOptions{FS: m.fs, MemTableBytes: 16 << 10})
	m.ledger, failed = ledger.Open(m, ledger.Options{Fatal: func(error) {}})
	m.left = rapid.SampledFrom([]int{1, 3, 8, 99}).Draw(t, "commits")
	m.store, m.commits, m.Service = m, m.left, accounts.New(m.ledger, pepper, m, m.clock)
	same(t, 0, errors.Join(opened, failed), 0, nil)
}

// same compares an answer with the model's: want, or a refusal and nothing else.
func same[T any](t *rapid.T, got T, err error, want T, refusal error) {
	t.Helper()
	if refusal != nil {
		want = *new(T)
	}
	if !errors.Is(err, refusal) || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v; want %+v, %v", got, err, want, refusal)
	}
}

func unless(ok bool, refusal error) error {
	if ok {
		return nil
	}
	return refusal
}

func text(t *rapid.T, limit int) (string, error) {
	texts := []string{"U", strings.Repeat("ñ", limit), strings.Repeat("😀", limit), "", strings.Repeat("n", limit+1), "a\nb", "a\u0085b", "a\xffb"}
	i := rapid.IntRange(0, len(texts)-1).Draw(t, "text")
	return texts[i], unless(i < 3, accounts.ErrInvalid)
}

func (m *machine) org() ledger.OrgID {
	return ledger.OrgID(binary.BigEndian.Uint64(m.given[:])).Entity()
}

func (m *machine) CreateAccount(t *rapid.T) {
	name, refusal := text(t, 300)
	got, orgs, err := m.Service.CreateAccount(ctx, accounts.AccountRequest{Name: name})
	want := accounts.Account{ID: ledger.AccountID(binary.BigEndian.Uint64(m.given[8:])), Name: name, Created: m.now}
	first := accounts.Organization{ID: m.org(), Account: want.ID, Name: name, Created: m.now}
	m.tried, refusal = append(m.tried, first.ID), m.write(refusal, 2, 2)
	same(t, orgs, err, []accounts.Organization{first}, refusal)
	if same(t, got, err, want, refusal); refusal == nil {
		m.all, m.orgs[first.ID] = append(m.all, want), first
	}
}

func (m *machine) AddOrganization(t *rapid.T) {
	account := ledger.AccountID(1)
	if len(m.all) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		account = rapid.SampledFrom(m.all).Draw(t, "account").ID
	}
	name, refusal := text(t, 300)
	got, err := m.Service.AddOrganization(ctx, accounts.OrganizationRequest{Account: account, Name: name})
	refusal = cmp.Or(refusal, unless(account != 1, accounts.ErrNotFound))
	want := accounts.Organization{ID: m.org(), Account: account, Name: name, Created: m.now}
	m.tried, refusal = append(m.tried, want.ID), m.write(refusal, 2, 1)
	if same(t, got, err, want, refusal); refusal == nil {
		m.orgs[want.ID] = want
	}
}

// issue compares a key that was just made with the model's.
func (m *machine) issue(t *rapid.T, like accounts.Principal, secret string, got accounts.Key, err, refusal error) *modelKey {
	text := []string{1: "svc_live_", 2: "svc_test_", 3: "svc_admin_"}[like.Mode]
	prefix := len(text)
	for _, b := range m.given[:8] {
		text += string("0123456789abcdefghjkmnpqrstvwxyz"[b&31])
	}
	want := accounts.Key{ID: text[prefix:], Org: like.Org, Mode: like.Mode, Created: m.now}
	text = accounts.WithCheck(text + base64.RawURLEncoding.EncodeToString(m.drawn[:secretBytes]))
	if m.secrets = append(m.secrets, text); like.Mode == accounts.Admin {
		m.admin = want.ID
	}
	refusal = m.write(refusal, 2, 1)
	m.admin = ""
	same(t, secret, err, text, refusal)
	if same(t, got, err, want, refusal); refusal != nil {
		return nil
	}
	like.KeyID = want.ID
	k := &modelKey{want, like}
	m.keys[text], m.order = k, append(m.order, text)
	return k
}

// places counts the active keys of an organization and mode, those in their grace apart.
func (m *machine) places(like accounts.Principal) (active, leaving int) {
	for _, k := range m.keys {
		switch {
		case k.Org != like.Org || k.Mode != like.Mode || !k.Active(m.now):
		case k.Until.IsZero():
			active++
		default:
			leaving++
		}
	}
	return active, leaving
}

func (m *machine) CreateKeys(t *rapid.T) {
	mode := accounts.Mode(rapid.IntRange(1, 3).Draw(t, "mode"))
	var like accounts.Principal
	var org ledger.OrgID
	known := mode == accounts.Admin
	if !known {
		org = rapid.SampledFrom(m.tried).Draw(t, "org")
		like.Account, known = m.orgs[org].Account, m.orgs[org].ID != 0
	}
	if like.Mode, like.Org = mode, org; mode == accounts.Test {
		like.Org = org.Twin()
	}
	for range rapid.SampledFrom([]int{1, 2, 12}).Draw(t, "keys") {
		secret, got, err := m.CreateKey(ctx, accounts.KeyRequest{Org: org, Mode: mode})
		active, _ := m.places(like)
		m.issue(t, like, secret, got, err, cmp.Or(unless(known, accounts.ErrNotFound), unless(active < 10, accounts.ErrTooManyKeys)))
	}
}

func (m *machine) someKey(t *rapid.T) *modelKey {
	if len(m.order) == 0 {
		t.Skip("no keys")
	}
	return m.keys[rapid.SampledFrom(m.order).Draw(t, "key")]
}

func (m *machine) Deactivate(t *rapid.T) {
	k := m.someKey(t)
	got, err := m.DeactivateKey(ctx, k.ID)
	want := k.Key
	if want.Active(m.now) {
		want.Deactivated = m.now
		if err := m.write(nil, 1, 0); err != nil {
			same(t, got, nil, accounts.Key{}, nil)
			return
		}
	} else if m.left < 0 { // the ledger has stopped
		same(t, 0, err, 0, ledger.ErrFailed)
		return
	}
	got.LastUsed = time.Time{}
	same(t, got, err, want, nil)
	k.Key = want
}

func (m *machine) Rotate(t *rapid.T) {
	k := m.someKey(t)
	grace := rapid.SampledFrom([]time.Duration{0, 90 * time.Minute, 30 * 24 * time.Hour}).Draw(t, "grace")
	if _, leaving := m.places(k.principal); leaving == 10 {
		t.Skip("refused after its claim: TestRotationIsBounded")
	}
	secret, got, err := m.RotateKey(ctx, k.ID, grace)
	refusal := unless(k.Active(m.now) && k.Until.IsZero(), accounts.ErrInvalid)
	if next := m.issue(t, k.principal, secret, got, err, refusal); next != nil {
		// The moment of the rotation is a tick of the clock before the new key.
		k.Until, k.Successor = m.now.Add(grace-time.Second), next.ID
	}
}

func (m *machine) Credit(t *rapid.T) {
	org := rapid.SampledFrom(m.tried).Draw(t, "org")
	centavos := rapid.SampledFrom([]int64{1, 250, ledger.MaxCentavos, 0, -1, ledger.MaxCentavos + 1}).Draw(t, "centavos")
	reason, refusal := text(t, 500)
	got, err := m.Service.Credit(ctx, org, centavos, reason)
	o := m.orgs[org]
	last := m.wallets[o.Account]
	want := ledger.Charged{Movement: last.Movement + 1, Centavos: centavos, Balance: last.Balance + centavos}
	refusal = cmp.Or(unless(centavos > 0 && centavos <= ledger.MaxCentavos, accounts.ErrInvalid), refusal, unless(o.ID != 0, accounts.ErrNotFound))
	refusal = m.write(refusal, 1, 0)
	if same(t, got, err, want, refusal); refusal == nil {
		m.wallets[o.Account] = want
	}
}

// Repair comes hours later and ends what was left half-way, as far as the power lasts.
func (m *machine) Repair(t *rapid.T) {
	m.advance(2 * time.Hour)
	got, err := m.Service.Repair(ctx)
	var want accounts.Repaired
	var refusal error
	if len(m.pending) > 0 {
		refusal = m.write(nil, 0, 0)
	}
	for len(m.pending) > 0 && refusal == nil {
		n := m.pending[0]
		if !n.written {
			refusal = m.write(nil, 1, 0)
			if refusal == nil && n.admin != "" && !m.givenUp[n.admin] {
				m.givenUp[n.admin] = true
				m.rows++
			}
		}
		refusal = m.write(refusal, 1, 0)
		switch {
		case refusal != nil:
			continue
		case n.written:
			want.Settled++
			m.rows--
		default:
			want.Freed++
			m.rows -= 2
		}
		m.pending = m.pending[1:]
	}
	if !errors.Is(err, refusal) || got != want {
		t.Fatalf("Repair = %+v, %v; want %+v, %v", got, err, want, refusal)
	}
}

// Change makes two more secrets to try: a typing error and a forgery.
func (m *machine) Change(t *rapid.T) {
	secret := []byte(rapid.SampledFrom(m.secrets).Draw(t, "secret"))
	secret[rapid.IntRange(0, len(secret)-1).Draw(t, "at")] ^= rapid.ByteMin(1).Draw(t, "bits")
	m.secrets = append(m.secrets, string(secret), accounts.WithCheck(string(secret[:len(secret)-6])))
}

func (m *machine) CheckPepper(t *rapid.T) {
	p := rapid.SampledFrom([]string{string(pepper), strings.Repeat("salvado_", 4)}).Draw(t, "pepper")
	err := accounts.New(m.ledger, []byte(p), nil, nil).CheckPepper(ctx)
	if m.marked == "" && m.write(nil, 1, 0) == nil {
		m.marked = p
		m.rows++
	}
	same(t, 0, err, 0, cmp.Or(m.write(nil, 0, 0), unless(m.marked == p, accounts.ErrPepper)))
}

func (m *machine) Check(t *rapid.T) {
	_, broken := ledger.Check(context.Background(), m)
	all, err := m.Accounts(ctx)
	same(t, all, errors.Join(broken, err), m.all, nil)
	same(t, m.globalKeys(), nil, m.rows, nil)
	found, err := m.Service.Check(ctx)
	same(t, found.Violations, err, nil, nil)
	for _, org := range m.tried {
		o, known := m.orgs[org]
		got, err := m.Organization(org)
		same(t, got, err, o, unless(known, accounts.ErrNotFound))
		var want []accounts.Key
		for _, text := range m.order {
			if k := m.keys[text]; k.Mode != accounts.Admin && k.Org.Entity() == org {
				want = append(want, k.Key)
			}
		}
		keys, err := m.Keys(org)
		for i := range keys {
			keys[i].LastUsed = time.Time{}
		}
		same(t, keys, err, want, unless(known, accounts.ErrNotFound))
		balance, err := m.ledger.Balance(o.Account, m.now)
		same(t, balance, err, m.wallets[o.Account].Balance, nil)
	}
	for _, secret := range m.secrets {
		got, err := m.Authenticate([]byte(secret))
		k := m.keys[secret]
		if k == nil || !k.Active(m.now) {
			same(t, got, err, accounts.Principal{}, accounts.ErrUnauthorized)
			continue
		}
		same(t, got, err, k.principal, nil)
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{fixture: &fixture{t: rt, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, fs: vfs.NewMem(), commits: 1, rows: 1,
			tried: []ledger.OrgID{2}, secrets: []string{strings.Repeat("x", 66)},
			orgs: map[ledger.OrgID]accounts.Organization{}, keys: map[string]*modelKey{}, wallets: map[ledger.AccountID]ledger.Charged{}, givenUp: map[string]bool{}}
		m.Reopen(rt)
		defer m.close()
		rt.Repeat(rapid.StateMachineActions(m))
	})
}
