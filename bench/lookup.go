package bench

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"cotejo/checks"
	"cotejo/index"
)

const lookupRepeats = 5

// measureLookup compares the edition table with a Go map of the same n RFCs, each
// probed as often: half of the probes hit, in random order, each from the RFC's text.
func measureLookup(n int, report *Report) error {
	random := rand.New(rand.NewPCG(69, 2))
	baseline := make(map[string]uint64, n)
	var pairs []index.Pair
	keys := make([]string, 0, n)
	for len(keys) < n {
		rfc := RandomRFC(random)
		if _, repeated := baseline[rfc]; repeated {
			continue
		}
		packed, ok := checks.PackRFC(rfc)
		if !ok {
			return fmt.Errorf("RFC sintético %q no es válido", rfc)
		}
		baseline[rfc] = 1
		pairs = append(pairs, index.Pair{Key: packed, Rows: index.Rows{N: 1, First: uint32(len(keys))}})
		keys = append(keys, rfc)
	}
	table, err := index.NewTable(slices.Values(pairs))
	if err != nil {
		return err
	}
	defer table.Close()
	probes := make([]string, n)
	for i := range probes {
		if i%2 == 0 {
			probes[i] = keys[random.IntN(len(keys))]
		} else {
			probes[i] = RandomRFC(random)
		}
	}
	random.Shuffle(len(probes), func(i, j int) { probes[i], probes[j] = probes[j], probes[i] })

	ours := func() (found int) {
		for _, rfc := range probes {
			if key, ok := checks.PackRFC(rfc); ok && !table.Lookup(key).None() {
				found++
			}
		}
		return found
	}
	theirs := func() (found int) {
		for _, rfc := range probes {
			if baseline[rfc] != 0 {
				found++
			}
		}
		return found
	}
	if a, b := ours(), theirs(); a != b { // also warms both
		return fmt.Errorf("la tabla encontró %d RFC y el mapa %d", a, b)
	}
	var tableNs, mapNs, allocs []float64
	for range lookupRepeats {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took := nsPer(n, func() { ours() })
		runtime.ReadMemStats(&after)
		tableNs = append(tableNs, took)
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
		mapNs = append(mapNs, nsPer(n, func() { theirs() }))
	}

	report.Figures["lookup_vs_map"] = median(ratios(tableNs, mapNs))
	report.Figures["lookup_allocs"] = median(allocs) // of our side, per probe
	report.Detail["lookup"] = map[string]any{
		"baseline": "Go map[string]uint64, same RFCs, same probes", "keys": n, "probes": n,
		"hits": "1/2", "table_ns": tableNs, "map_ns": mapNs, "allocs": allocs,
	}
	return nil
}

func nsPer(n int, f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

// RandomRFC makes an RFC of the official form; one in five is an individual's.
func RandomRFC(random *rand.Rand) string {
	const letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	const alphanumeric = letters + digits
	b := make([]byte, 0, 13)
	n := 3
	if random.IntN(5) == 0 {
		n = 4
	}
	for range n {
		b = append(b, letters[random.IntN(len(letters))])
	}
	b = fmt.Appendf(b, "%02d%02d%02d", random.IntN(100), 1+random.IntN(12), 1+random.IntN(28))
	for range 2 {
		b = append(b, alphanumeric[random.IntN(len(alphanumeric))])
	}
	return string(append(b, digits[random.IntN(10)]))
}
