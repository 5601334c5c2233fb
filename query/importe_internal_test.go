package query

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTotalsAgreeWithBigNumbers: an importe is the number that was written, and so
// are sums of them, of either sign.
func TestTotalsAgreeWithBigNumbers(t *testing.T) {
	one := new(big.Int).Exp(big.NewInt(10), big.NewInt(importePlaces), nil)
	units := func(canonical string) *big.Int {
		whole, places, _ := strings.Cut(canonical, ".")
		n, ok := new(big.Int).SetString(whole+places+strings.Repeat("0", importePlaces-len(places)), 10)
		if !ok {
			t.Fatalf("%q", canonical)
		}
		return n
	}
	text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,9})\.[0-9]{2,18}`)
	rapid.Check(t, func(t *rapid.T) {
		var sum importe
		want := new(big.Int)
		for _, s := range rapid.SliceOfN(text, 1, 20).Draw(t, "importes") {
			a, ok := parseImporte(s)
			if !ok {
				t.Fatalf("%q", s)
			}
			n := units(s)
			want.Add(want, n)
			sum.add(a)
			limit := new(big.Int).Mul(one, big.NewInt(limitePlausible))
			if a.implausible() != (n.CmpAbs(limit) > 0) {
				t.Fatalf("%q: %v", s, a.implausible())
			}
		}
		if got := string(sum.appendTo(nil)); units(got).Cmp(want) != 0 {
			t.Fatalf("la suma es %s y no %s", got, want)
		} else if again, ok := AppendImporte(nil, got); !ok || string(again) != got {
			t.Fatalf("%q no es canónico", got)
		}
	})
}
