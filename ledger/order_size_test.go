package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
)

// TestOrderIsSmall: a record of an order takes 200 bytes at most in the tables of the
// store, with all that is written for it: movements, counts, the links of the chain.
// Its texts are some 20 KB.
func TestOrderIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("sizes are the same under the race detector")
	}
	f := func(orders, units, most int) {
		t.Helper()
		fs := vfs.NewMem()
		s := openStore(t, fs)
		l, err := ledger.Open(s, ledger.Options{Random: seeded(7)})
		if err != nil {
			t.Fatal(err)
		}
		credit(t, l, 1, start, ledger.MaxCentavos)
		com, b, texts := newCompanies(), builder(t, l), 0
		for range orders {
			c := openOrder(orderID(t, l, start), units)
			do[ledger.OrderOpened](t, l, 1, c)
			for done := 0; done < units; {
				ids, n, err := l.NextIDs(ctx, "COM", start, min(ledger.MaxBlockRecords, units-done))
				if err != nil {
					t.Fatal(err)
				}
				for b.Reset(orderOf(c), done+1, ids, n); b.Room(); {
					registro, sum, acta := com.next(b.NextID())
					texts += len(registro) + len(acta)
					if err := b.Add("COMPANY_OK", registro, sum, acta, []byte("OK,C,,12,0")); err != nil {
						t.Fatal(err)
					}
				}
				done = do[ledger.OrderFilled](t, l, 1, ledger.FillOrder{Now: start, Block: b.Block()}).Done
			}
		}
		check(t, s)
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		names, err := fs.List("datos")
		if err != nil {
			t.Fatal(err)
		}
		tables := 0
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				info, err := fs.Stat("datos/" + name)
				if err != nil {
					t.Fatal(err)
				}
				tables += int(info.Size())
			}
		}
		n := orders * units
		t.Logf("%d orders of %d: %d bytes of texts each, %d bytes in tables", orders, units, texts/n, tables/n)
		if tables == 0 || tables/n > most {
			t.Errorf("%d orders of %d: %d bytes each; want at most %d", orders, units, tables/n, most)
		}
	}
	f(1, 5000, 100)
	f(20, 100, 200)
	f(100, 10, 1000)
}
