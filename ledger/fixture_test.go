package ledger_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
	"cotejo/store/storetest"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// seeded gives the same bytes every time.
type seeded byte

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s) + byte(i)
	}
	return len(p), nil
}

func openStore(t testing.TB, fs vfs.FS) *store.Pebble {
	t.Helper()
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newLedger opens a ledger on an empty store in memory; both close with the test,
// after a last Check.
func newLedger(t testing.TB) (*ledger.Ledger, store.Store) {
	t.Helper()
	s := openStore(t, vfs.NewMem())
	return ledgerOn(t, s), s
}

// ledgerOn is newLedger on an empty store.
func ledgerOn(t testing.TB, s store.Store) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		check(t, s)
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// onEachEngine runs a test on a ledger in memory and, where there is a server, on
// PostgreSQL.
func onEachEngine(t *testing.T, test func(*testing.T, *ledger.Ledger, store.Store)) {
	t.Run("pebble", func(t *testing.T) {
		l, s := newLedger(t)
		test(t, l, s)
	})
	t.Run("postgres", func(t *testing.T) {
		s := openPostgres(t, storetest.PostgresURL(t), store.PostgresOptions{})
		test(t, ledgerOn(t, s), s)
	})
}

func openPostgres(t testing.TB, url string, o store.PostgresOptions) *store.Postgres {
	t.Helper()
	s, err := store.OpenPostgres(ctx, url, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t testing.TB, s store.Store) ledger.Report {
	t.Helper()
	rep, err := ledger.Check(ctx, s)
	if err != nil {
		t.Fatalf("Check: %v\n%+v", err, rep.Violations)
	}
	return rep
}

// record makes a record that looks like a service's answer.
func record(id ledger.VerificationID, org ledger.OrgID, note string) ledger.Record {
	registro := fmt.Appendf(nil, `{"edicion_sha256":"%064d","entrada":{"rfc":"%s"},"fecha":"2026-11-20","motor":"COMPANY/1","resultado":{"lista_69b":{"estado":"CONSULTADA","situaciones":[]},"nota":%q}}`,
		7, note, note)
	return ledger.Record{
		ID: id, Org: org, Service: "COMPANY", Code: "COMPANY_OK", Operation: "company",
		Edition: [32]byte{7}, Registro: registro,
		Acta: fmt.Appendf(nil, `{"consultado":"2026-11-20T06:00:00-06:00","registro_sha256":"%x","verification_id":"%s"}`,
			sha256.Sum256(registro), id),
	}
}

func sumOf(r ledger.Record) [sha256.Size]byte { return sha256.Sum256(r.Registro) }

func nextID(t testing.TB, l *ledger.Ledger, now time.Time) ledger.VerificationID {
	t.Helper()
	id, err := l.NextID(ctx, "COM", now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func charge(t testing.TB, l *ledger.Ledger, account ledger.AccountID, org ledger.OrgID, now time.Time, price int64) (ledger.Record, ledger.Charged, error) {
	t.Helper()
	r := record(nextID(t, l, now), org, "XAXX010101000")
	res, err := l.Do(ctx, account, ledger.Charge{Now: now, Record: r, Sum: sumOf(r), Price: price})
	if err != nil {
		return r, ledger.Charged{}, err
	}
	return r, res.(ledger.Charged), nil
}

func credit(t testing.TB, l *ledger.Ledger, account ledger.AccountID, now time.Time, centavos int64) ledger.Charged {
	t.Helper()
	res, err := l.Do(ctx, account, ledger.Credit{Now: now, Org: 1, Centavos: centavos, Reason: "abono"})
	if err != nil {
		t.Fatal(err)
	}
	return res.(ledger.Charged)
}
