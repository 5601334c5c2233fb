package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"cotejo/checks"
)

const (
	checkTexts   = 100_000
	checkRepeats = 9
)

// Checks measures the validators: reading with check digit and fault, and a whole
// free call over HTTP, which counts its use and does not wait for the disk. full
// uses longer repeats.
func Checks(ctx context.Context, h Host, full bool) (_ Report, err error) {
	repeats, window := 5, 3*time.Second
	if full {
		repeats, window = 7, 10*time.Second
	}
	report := newReport("checks")
	h.Progress("validadores: %d textos", checkTexts)
	random := rand.New(rand.NewPCG(69, 3))
	err = errors.Join(
		measureCheck(&report, "rfc", random, RandomRFC, func(text string) bool {
			rfc, _, err := checks.ReadRFC(text)
			return err == nil && rfc.CheckDigit().Found != ""
		}),
		measureCheck(&report, "curp", random, randomCURP, func(text string) bool {
			curp, _, err := checks.ReadCURP(text)
			return err == nil && curp.Fault() == nil
		}),
		measureCheck(&report, "clabe", random, randomCLABE, func(text string) bool {
			clabe, _, err := checks.ReadCLABE(text)
			return err == nil && clabe.Fault() == nil
		}),
	)
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	return report, measureCLABE(ctx, h, dir, &report, repeats, window)
}

// measureCheck times valid on texts that it accepts.
func measureCheck(report *Report, name string, random *rand.Rand, text func(*rand.Rand) string, valid func(string) bool) error {
	texts := make([]string, checkTexts)
	for i := range texts {
		texts[i] = text(random)
	}
	refused := 0
	all := func() {
		for _, t := range texts {
			if !valid(t) {
				refused++
			}
		}
	}
	all() // warms
	var ns, allocs []float64
	for range checkRepeats {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ns = append(ns, nsPer(checkTexts, all))
		runtime.ReadMemStats(&after)
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/checkTexts)
	}
	if refused > 0 {
		return fmt.Errorf("%s: hay textos sintéticos que no son válidos", name)
	}
	report.Figures[name+"_ns"] = median(ns)
	report.Figures[name+"_allocs"] = median(allocs)
	report.Detail[name] = map[string]any{
		"texts": checkTexts, "measured": "reading a text in normal form, its check digit and its fault", "ns": ns, "allocs": allocs,
	}
	return nil
}

// measureCLABE compares the free call with the bare server.
func measureCLABE(ctx context.Context, h Host, dir string, report *Report, repeats int, window time.Duration) (err error) {
	list, err := generateDataset(ctx, h, dir, 0.1, "sat_69b") // the service has a source, and nothing here asks it
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "datos")
	if _, err := list.load(ctx, h, data); err != nil {
		return err
	}
	key, err := h.Prepare(ctx, data, 0)
	if err != nil {
		return err
	}
	server, err := startChild(ctx, dir, h.Command, "serve", "--data", data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	const path = "/v1/utilidades/clabe/"
	body, err := singleAnswer(server.addr, key, path+"002010077777777771")
	if err != nil {
		return err
	}
	bodyFile, err := writeBody(dir, body)
	if err != nil {
		return err
	}
	bare, err := startChild(ctx, dir, h.Command, "bench-bare", "--body", bodyFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()

	ours, theirs := &side{name: "servicio", server: server}, &side{name: "servidor vacío", server: bare}
	next := func(dst []byte, random *rand.Rand) []byte {
		return append(append(dst, path...), randomCLABE(random)...)
	}
	if err := compare(ctx, h, key, next, []*side{ours, theirs}, repeats, window); err != nil {
		return err
	}
	report.Figures["clabe_http_vs_bare"] = median(ratios(ours.perCPU, theirs.perCPU))
	report.Figures["clabe_http_per_cpu_s"] = median(ours.perCPU)
	report.Figures["clabe_http_per_s"] = median(ours.perSecond)
	report.Detail["clabe_http"] = map[string]any{
		"baseline": "bare fasthttp handler, same body bytes", "connections": httpConnections,
		"window_s": window.Seconds(), "body_bytes": len(body), "organizations": 1,
		"charged":   "no: the account has a package; uses are counted and written behind the answers",
		"per_cpu_s": ours.perCPU, "bare_per_cpu_s": theirs.perCPU, "per_s": ours.perSecond, "bare_per_s": theirs.perSecond,
	}
	return nil
}

// randomCLABE makes a valid CLABE.
func randomCLABE(random *rand.Rand) string {
	text := fmt.Sprintf("%03d%03d%011d0", 2+random.IntN(700), 10+random.IntN(970), random.IntN(100_000_000_000))
	clabe, _, err := checks.ReadCLABE(text)
	if err != nil {
		return text
	}
	return text[:len(text)-1] + clabe.CheckDigit().Expected
}

// randomCURP makes a valid CURP.
func randomCURP(random *rand.Rand) string {
	pick := func(from string) byte { return from[random.IntN(len(from))] }
	const consonants, vowels = "BCDFGHJKLMNPQRSTVWXYZ", "AEIOUX"
	text := fmt.Sprintf("%c%c%c%c%02d%02d%02d%c%s%c%c%c%c0",
		pick(consonants), pick(vowels), pick(consonants), pick(consonants),
		random.IntN(100), 1+random.IntN(12), 1+random.IntN(28), pick("HMX"),
		[]string{"DF", "NL", "JC", "YN", "NE"}[random.IntN(5)],
		pick(consonants), pick(consonants), pick(consonants), pick("0123456789ABC"))
	curp, _, err := checks.ReadCURP(text)
	if err != nil {
		return text
	}
	return text[:len(text)-1] + curp.CheckDigit().Expected
}
