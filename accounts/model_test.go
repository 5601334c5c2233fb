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
	given   [sha512.Size]byte // the last random bytes

	// The model. What was tried exists, or is claimed only, or neither.
	left    int    // commits; negative from the first that failed until Reopen
	marked  string // the pepper of the first use
	rows    int    // of the global group
	tried   []ledger.OrgID
	secrets []string // tried, or changed
	all     []accounts.Organization
	orgs    map[ledger.OrgID]accounts.Organization
	keys    map[ledger.OrgID][]accounts.Key
	count   map[accounts.Principal]int      // of the keys of an Org and Mode
	wallets map[ledger.OrgID]ledger.Charged // the last credit
	issued  map[string]accounts.Principal
}

func (m *machine) Commit(b ...store.Batch) error {
	if m.commits--; m.commits < 0 {
		return store.ErrClosed
	}
	return m.Store.Commit(b...)
}

func (m *machine) Read(p []byte) (int, error) {
	m.reads++
	m.given = sha512.Sum512(binary.BigEndian.AppendUint64(nil, m.reads/2))
	return copy(p, m.given[:]), nil
}

// write models so many commits, unless refused; the first brings rows of the global group.
func (m *machine) write(refusal error, commits, rows int) error {
	if refusal != nil {
		return refusal
	}
	m.rows += rows * max(0, min(1, m.left))
	m.left -= commits
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

func (m *machine) CreateOrganization(t *rapid.T) {
	name, refusal := text(t, 300)
	got, err := m.Service.CreateOrganization(ctx, name)
	want := accounts.Organization{ID: ledger.OrgID(binary.BigEndian.Uint64(m.given[:])),
		Account: ledger.AccountID(binary.BigEndian.Uint64(m.given[8:])), Name: name, Created: m.now}
	m.tried, refusal = append(m.tried, want.ID), m.write(refusal, 2, 2)
	if same(t, got, err, want, refusal); refusal == nil {
		m.all, m.orgs[want.ID] = append(m.all, want), want
	}
}

func (m *machine) CreateKeys(t *rapid.T) {
	o := accounts.Principal{Org: rapid.SampledFrom(m.tried).Draw(t, "org"), Mode: accounts.Mode(rapid.IntRange(1, 3).Draw(t, "mode"))}
	known := m.orgs[o.Org].ID != 0
	for range rapid.SampledFrom([]int{1, 2, 12}).Draw(t, "keys") {
		secret, got, err := m.CreateKey(ctx, o.Org, o.Mode)
		refusal := cmp.Or(unless(o.Mode < 3, accounts.ErrInvalid), unless(known, accounts.ErrNotFound), unless(m.count[o] < 10, accounts.ErrTooManyKeys))
		text := []string{1: "svc_live_", 2: "svc_test_", 3: "svc_none_"}[o.Mode]
		for _, b := range m.given[:8] {
			text += string("0123456789abcdefghjkmnpqrstvwxyz"[b&31])
		}
		want := accounts.Key{ID: text[9:], Org: o.Org, Mode: o.Mode, Created: m.now}
		text = accounts.WithCheck(text + base64.RawURLEncoding.EncodeToString(m.given[8:40]))
		m.secrets, refusal = append(m.secrets, text), m.write(refusal, 2, 1)
		same(t, secret, err, text, refusal)
		if same(t, got, err, want, refusal); refusal == nil {
			m.count[o]++
			m.keys[o.Org] = append(m.keys[o.Org], want)
			m.issued[text] = accounts.Principal{Account: m.orgs[o.Org].Account, Org: o.Org, Mode: o.Mode, KeyID: want.ID}
		}
	}
}

func (m *machine) Credit(t *rapid.T) {
	org := rapid.SampledFrom(m.tried).Draw(t, "org")
	centavos := rapid.SampledFrom([]int64{1, 250, ledger.MaxCentavos, 0, -1, ledger.MaxCentavos + 1}).Draw(t, "centavos")
	reason, refusal := text(t, 500)
	got, err := m.Service.Credit(ctx, org, centavos, reason)
	last, o := m.wallets[org], m.orgs[org]
	want := ledger.Charged{Movement: last.Movement + 1, Centavos: centavos, Balance: last.Balance + centavos}
	refusal = cmp.Or(unless(centavos > 0 && centavos <= ledger.MaxCentavos, accounts.ErrInvalid), refusal, unless(o.ID != 0, accounts.ErrNotFound))
	refusal = m.write(refusal, 1, 0)
	if same(t, got, err, want, refusal); refusal == nil {
		m.wallets[org] = want
	}
}

// Change makes two more secrets to try: a typing error and a forgery.
func (m *machine) Change(t *rapid.T) {
	secret := []byte(rapid.SampledFrom(m.secrets).Draw(t, "secret"))
	secret[rapid.IntRange(0, len(secret)-1).Draw(t, "at")] ^= rapid.ByteMin(1).Draw(t, "bits")
	m.secrets = append(m.secrets, string(secret), accounts.WithCheck(string(secret[:60])))
}

func (m *machine) CheckPepper(t *rapid.T) {
	p := rapid.SampledFrom([]string{string(pepper), strings.Repeat("salvado_", 4)}).Draw(t, "pepper")
	err := accounts.New(m.ledger, []byte(p), nil, nil).CheckPepper(ctx)
	if m.marked == "" && m.write(nil, 1, 1) == nil {
		m.marked = p
	}
	same(t, 0, err, 0, cmp.Or(m.write(nil, 0, 0), unless(m.marked == p, accounts.ErrPepper)))
}

func (m *machine) Check(t *rapid.T) {
	_, broken := ledger.Check(context.Background(), m)
	all, err := m.Organizations(ctx)
	same(t, all, errors.Join(broken, err), m.all, nil)
	same(t, m.globalKeys(), nil, m.rows, nil)
	for _, org := range m.tried {
		o, known := m.orgs[org]
		got, err := m.Organization(org)
		same(t, got, err, o, unless(known, accounts.ErrNotFound))
		keys, err := m.Keys(org)
		same(t, keys, err, m.keys[org], unless(known, accounts.ErrNotFound))
		balance, err := m.ledger.Balance(o.Account, m.now)
		same(t, balance, err, m.wallets[org].Balance, nil)
	}
	for _, secret := range m.secrets {
		want, known := m.issued[secret]
		got, err := m.Authenticate([]byte(secret))
		same(t, got, err, want, unless(known, accounts.ErrUnauthorized))
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{fixture: &fixture{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, fs: vfs.NewMem(), commits: 1, rows: 1,
			tried: []ledger.OrgID{1}, secrets: []string{strings.Repeat("x", 66)},
			orgs: map[ledger.OrgID]accounts.Organization{}, keys: map[ledger.OrgID][]accounts.Key{}, wallets: map[ledger.OrgID]ledger.Charged{},
			count: map[accounts.Principal]int{}, issued: map[string]accounts.Principal{}}
		m.Reopen(rt)
		defer m.close()
		rt.Repeat(rapid.StateMachineActions(m))
	})
}
