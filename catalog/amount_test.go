package catalog

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestConvert(t *testing.T) {
	f := func(rate, amount, exact string, centavos, cents int64) {
		t.Helper()
		r, err := ParseRate(rate)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ParseAmount(amount)
		if err != nil {
			t.Fatal(err)
		}
		gotCentavos, gotExact := r.ToMXN(a)
		if got := r.ToUSD(a); gotCentavos != centavos || gotExact != exact || got != cents {
			t.Errorf("%s × %s: %s, %d centavos; ÷: %d centavos de dólar", amount, rate, gotExact, gotCentavos, got)
		}
	}
	f("18.8817", "100", "1888.17", 188817, 530)
	f("18.8817", "1", "18.8817", 1888, 5)
	f("20.2683", "1250.50", "25345.50915", 2534551, 6170)
	f("18.5000", "110", "2035.00", 203500, 595) // 110/18.5 = 5.945945…
	f("18.4308", "0", "0.00", 0, 0)
	f("18.4308", "0.000001", "0.0000184308", 0, 0)
	// Half a centavo goes up, less than half goes down.
	f("0.5000", "0.01", "0.005", 1, 2)
	f("0.4999", "0.01", "0.004999", 0, 2)
	f("1.0000", "0.005", "0.005", 1, 1)
	f("1.0000", "0.004999", "0.004999", 0, 0)
	f("1.0000", "0.995", "0.995", 100, 100)
	f("2.0000", "0.01", "0.02", 2, 1)
	f("2.0001", "0.01", "0.020001", 2, 0)
	// The largest of both.
	f("9999.9999", "999999999999.999999", "9999999899999999.9900000001", 999999989999999999, 10000000100)
}

// TestConvertIsExact compares with rationals.
func TestConvertIsExact(t *testing.T) {
	halfUp := func(r *big.Rat) int64 {
		r = new(big.Rat).Add(new(big.Rat).Mul(r, big.NewRat(100, 1)), big.NewRat(1, 2))
		return new(big.Int).Quo(r.Num(), r.Denom()).Int64()
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Int32Range(1, int32(maxRate)).Draw(t, "tipo"))
		a := Amount(rapid.Uint64Range(0, 999_999_999_999_999_999).Draw(t, "monto"))
		rate, amount := big.NewRat(int64(r), rateScale), big.NewRat(int64(a), amountScale)
		product := new(big.Rat).Mul(rate, amount)
		centavos, exact := r.ToMXN(a)
		if got, ok := new(big.Rat).SetString(exact); !ok || got.Cmp(product) != 0 || centavos != halfUp(product) {
			t.Fatalf("%s × %s = %s, %d centavos", a, r, exact, centavos)
		}
		if quotient := new(big.Rat).Quo(amount, rate); r.ToUSD(a) != halfUp(quotient) {
			t.Fatalf("%s ÷ %s = %d", a, r, r.ToUSD(a))
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%s: %v", r, err)
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Fatalf("%s: %v", a, err)
		}
	})
}

func TestParseAmountRefusals(t *testing.T) {
	f := func(in, kind string) {
		t.Helper()
		_, err := ParseAmount(in)
		problem(t, err, kind, "decimales")
	}
	for _, in := range []string{"", "-1", "+1", "1e3", "1,000", ".5", "5.", "1.1234567", "1 ", " 1", "0x10", "NaN", "Inf", "١٠", "1.2.3", "1_000"} {
		f(in, "string_pattern_mismatch")
	}
	f("1234567890123", "string_too_long")
	f(strings.Repeat("9", 1<<16), "string_too_long")
}

func TestParseRate(t *testing.T) {
	f := func(in string, want Rate) {
		t.Helper()
		got, err := ParseRate(in)
		if want == 0 != (err != nil) || got != want {
			t.Errorf("%q: %d %v, se esperaba %d", in, got, err, want)
		}
	}
	f("18.8817", 188817)
	f("18.5", 185000)
	f("18", 180000)
	f("3,073.5", 30735000)
	f("9999.9999", maxRate)
	for _, in := range []string{"", "0", "0.0000", "-18.1", "18,8817", "18.", ".5", "18.88171", "10000", "10,000", ",100", "1,00", "N/E", "1e2", "١٨"} {
		f(in, 0)
	}
	if got := fmt.Sprint(Rate(30735)); got != "3.0735" {
		t.Errorf("%s", got)
	}
}

func FuzzAmount(f *testing.F) {
	f.Add("1250.50")
	f.Add("3,073.5")
	f.Fuzz(func(t *testing.T, in string) {
		if a, err := ParseAmount(in); err == nil {
			if again, err := ParseAmount(a.String()); err != nil || again != a {
				t.Fatalf("%q: %s %v", in, a, err)
			}
		}
		if r, err := ParseRate(in); err == nil {
			if again, err := ParseRate(r.String()); err != nil || again != r {
				t.Fatalf("%q: %s %v", in, r, err)
			}
		}
	})
}
