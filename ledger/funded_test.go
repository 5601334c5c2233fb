package ledger_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	"cotejo/store"
)

// TestFundedFollowsTheWallet holds that an account is refused up front only
// while it cannot pay.
func TestFundedFollowsTheWallet(t *testing.T) {
	l, _ := newLedger(t)
	f := func(what string, now time.Time, wantBalance int64, wantOK bool) {
		t.Helper()
		for range 2 { // read from the store, then from memory
			if funds, ok, _ := l.Funded(1, now, "COMPANY", 1200); funds.Balance != wantBalance || ok != wantOK {
				t.Fatalf("%s: Funded = %+v, %v; want %d, %v", what, funds, ok, wantBalance, wantOK)
			}
		}
	}
	f("no wallet", start, 0, false)
	credit(t, l, 1, start, 1000)
	f("too little", start, 1000, false)
	credit(t, l, 1, start, 1000)
	f("enough", start, 2000, true)
	if _, _, err := charge(t, l, 1, 1, start, 1200); err != nil {
		t.Fatal(err)
	}
	f("spent", start, 800, false)
	credit(t, l, 1, start.Add(time.Hour), 5000)
	f("again", start.Add(time.Hour), 5800, true)
	later := start.Add(ledger.LotLife + 2*time.Hour)
	f("expired", later, 0, false)
}

// TestFundedFollowsHolds holds that memory knows when a hold ends.
func TestFundedFollowsHolds(t *testing.T) {
	l, _ := newLedger(t)
	credit(t, l, 1, start, 2000)
	creditUses(t, l, 1, start, "SPEI", 2)
	end := start.Add(time.Hour)
	f := func(now time.Time, service string, want ledger.Funds) {
		t.Helper()
		for range 2 { // read from the store, then from memory
			if funds, ok, err := l.Funded(1, now, service, 100); funds != want || !ok || err != nil {
				t.Fatalf("Funded = %+v, %v, %v; want %+v", funds, ok, err, want)
			}
		}
	}
	f(start, "SPEI", ledger.Funds{Balance: 2000, Uses: 2})
	f(start, "COMPANY", ledger.Funds{Balance: 2000})
	place(t, l, ledger.Hold{Now: start, Org: 1, Service: "SPEI", Units: 4, Centavos: 300, Until: end})
	f(start, "SPEI", ledger.Funds{Balance: 1400})
	f(end, "SPEI", ledger.Funds{Balance: 2000, Uses: 2})
	f(end, "COMPANY", ledger.Funds{Balance: 2000})
}

// TestFundedNeverRefusesMoneyThatIsThere credits under constant asking: once the
// credit is answered, no later question may say that there is nothing.
func TestFundedNeverRefusesMoneyThatIsThere(t *testing.T) {
	l, _ := newLedger(t)
	for account := ledger.AccountID(1); account <= 200; account++ {
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						l.Funded(account, start, "COMPANY", 100)
					}
				}
			})
		}
		credit(t, l, account, start, 100)
		if funds, ok, _ := l.Funded(account, start, "COMPANY", 100); !ok {
			t.Fatalf("account %d: Funded = %+v, false after a credit", account, funds)
		}
		close(stop)
		wg.Wait()
		if funds, ok, _ := l.Funded(account, start, "COMPANY", 100); !ok {
			t.Fatalf("account %d: Funded = %+v, false later", account, funds)
		}
	}
}

// meanwhile does something between the next reading of a value and its use.
type meanwhile struct {
	store.Store
	do atomic.Pointer[func()]
}

func (m *meanwhile) Reader(g store.Group) store.Reader { return meanwhileReader{m, m.Store.Reader(g)} }

type meanwhileReader struct {
	m *meanwhile
	store.Reader
}

func (r meanwhileReader) Get(key []byte) ([]byte, error) {
	value, err := r.Reader.Get(key)
	if do := r.m.do.Swap(nil); do != nil {
		(*do)()
	}
	return value, err
}

// TestFundedMindsItsOwnWallet: what other accounts pay meanwhile lets nobody through
// who has nothing; money of their own that comes in does.
func TestFundedMindsItsOwnWallet(t *testing.T) {
	s := &meanwhile{Store: openStore(t, vfs.NewMem())}
	defer s.Close()
	l := openOn(t, s, ledger.Options{})
	defer l.Close()
	f := func(account ledger.AccountID, want bool) {
		t.Helper()
		do := func() { credit(t, l, account, start, 5000) }
		s.do.Store(&do)
		if funds, ok, err := l.Funded(1, start, "COMPANY", 1200); ok != want || err != nil {
			t.Errorf("with a credit to %d meanwhile: Funded = %+v, %v, %v; want %v", account, funds, ok, err, want)
		}
	}
	for other := range ledger.AccountID(20) {
		f(other+2, false)
	}
	f(1, true)
}
