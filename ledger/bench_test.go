package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/store"
	"cotejo/store/storetest"
)

// BenchmarkCharge measures durable charges on a real disk: 64 clients that each
// wait for their answer before the next, as requests do.
func BenchmarkCharge(b *testing.B) {
	for _, wallets := range []int{1, 100} {
		b.Run(fmt.Sprintf("engine=pebble/wallets=%d", wallets), func(b *testing.B) {
			s, err := store.OpenPebble(b.TempDir(), store.PebbleOptions{})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkCharge(b, s, wallets)
		})
		b.Run(fmt.Sprintf("engine=postgres/wallets=%d", wallets), func(b *testing.B) {
			benchmarkCharge(b, openPostgres(b, storetest.PostgresURL(b), store.PostgresOptions{}), wallets)
		})
	}
}

func benchmarkCharge(b *testing.B, s store.Store, wallets int) {
	defer s.Close()
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for w := range wallets {
		credit(b, l, ledger.AccountID(1+w), start, ledger.MaxCentavos)
	}
	const clients = 64
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			account := ledger.AccountID(1 + c%wallets)
			template := record(ledger.VerificationID{Prefix: "COM"}, 1, "XAXX010101000")
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				id, err := l.NextID(ctx, "COM", start)
				if err != nil {
					b.Error(err)
					return
				}
				r := template
				r.ID = id
				r.Acta = appendActa(nil, r)
				if _, err := l.Do(ctx, account, ledger.Charge{Now: start, Record: r, Sum: sumOf(r), Price: 1}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "charges/s")
}

func appendActa(dst []byte, r ledger.Record) []byte {
	sum := sha256.Sum256(r.Registro)
	dst = append(dst, `{"consultado":"2026-11-20T06:00:00-06:00","registro_sha256":"`...)
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, `","verification_id":"`...)
	dst = r.ID.AppendTo(dst)
	return append(dst, `"}`...)
}

// BenchmarkUsageYear reads the counts of a year over ten services, as a statement
// of a year does.
func BenchmarkUsageYear(b *testing.B) {
	s, err := store.OpenPebble(b.TempDir(), store.PebbleOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for day := range 365 {
		for service := range 10 {
			l.CountUse(1, 1, false, fmt.Sprintf("SERVICIO%d", service), civil.Of(start.AddDate(0, 0, day)).Compact())
		}
	}
	if err := l.Close(); err != nil { // writes the counts
		b.Fatal(err)
	}
	if l, err = ledger.Open(s, ledger.Options{}); err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		rows := 0
		err := l.Usage(1, 1, false, 20261120, 20271119, func(ledger.Usage) error {
			rows++
			return nil
		})
		if err != nil || rows != 3650 {
			b.Fatalf("%d rows, %v", rows, err)
		}
	}
}
