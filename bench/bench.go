// Package bench holds what cotejo claims about its speed, as programs that
// print ratios. Each makes its own data, needs no network, and measures itself
// against a named baseline in the same run, because absolute times say more
// about the machine than about the program.
package bench

import (
	"bufio"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Report is what a bench prints: one object, nothing else.
type Report struct {
	Bench   string             `json:"bench"`
	Machine Machine            `json:"machine"`
	Figures map[string]float64 `json:"figures"` // medians
	Detail  map[string]any     `json:"detail"`  // sizes, repeats, baselines
}

// Machine is where the figures were taken.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
}

func newReport(name string) Report {
	return Report{
		Bench:   name,
		Machine: Machine{cpuModel(), runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()},
		Figures: map[string]float64{},
		Detail:  map[string]any{},
	}
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "desconocido"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, " \t:")
		}
	}
	return "desconocido"
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios divides pair by pair: repeats of the two sides alternate, so that a
// machine that slows down slows both.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}
