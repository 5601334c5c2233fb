package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"cotejo/checks"
	"cotejo/index"
	"cotejo/query"
	"cotejo/snapshots"
)

const (
	engineQuestions = 20_000 // in a repeat
	engineHits      = 3      // percent of them about RFCs that some source mentions
)

// Engine measures the company engine on one core, with all its sources loaded:
// registro in canonical bytes and their SHA-256, no ledger and no HTTP. Sizes of
// the editions are synthetic rows; with full, a million and ten, else a tenth.
// Seconds are of the process's CPU, which a busy machine does not stretch as it
// does a clock.
func Engine(ctx context.Context, h Host, full bool) (_ Report, err error) {
	repeats, small := 5, 100_000
	if full {
		repeats, small = 9, 1_000_000
	}
	report := newReport("engine")
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	var sides []*engineSide
	defer func() {
		for _, s := range sides {
			s.edition.Release()
		}
	}()
	for i, rows := range []int{small, 10 * small} {
		e, err := publishEdition(filepath.Join(dir, fmt.Sprint(i)), rows, h.Progress)
		if err != nil {
			return report, err
		}
		s := &engineSide{edition: e}
		sides = append(sides, s)
		if err := s.prepare(); err != nil {
			return report, err
		}
	}
	one, ten := sides[0], sides[1]
	for i := range repeats {
		h.Progress("motor: vuelta %d de %d", i+1, repeats)
		for _, s := range sides {
			if err := errors.Join(ctx.Err(), s.run()); err != nil {
				return report, err
			}
		}
	}
	report.Figures["engine_rfc_per_s_core"] = 1e9 / median(ten.mixed.ns)
	report.Figures["engine_vs_sha256"] = median(ratios(ten.mixed.ns, ten.sum.ns))
	report.Figures["engine_clean_ns"] = median(ten.cleanOnes.ns)
	report.Figures["engine_clean_allocs"] = median(ten.cleanOnes.allocs)
	report.Figures["engine_hit_ns"] = median(ten.hit.ns)
	report.Figures["engine_hit_allocs"] = median(ten.hit.allocs)
	report.Figures["engine_registro_bytes"] = float64(ten.registroBytes)
	report.Figures["classify_clean_ns"] = median(ten.classify.ns)
	report.Figures["classify_clean_allocs"] = median(ten.classify.allocs)
	report.Figures["largest_company_ms"] = median(ten.largest.ns) / 1e6
	report.Figures["largest_contracts_ms"] = median(ten.largestList.ns) / 1e6
	report.Figures["growth_10x"] = median(ratios(ten.mixed.ns, one.mixed.ns))
	if full {
		report.Figures["growth_10m_vs_1m"] = report.Figures["growth_10x"]
	}
	report.Detail["engine"] = map[string]any{
		"baseline": "SHA-256 of as many bytes", "sources": len(ten.edition.Manifest().Sources),
		"rows": []int{one.edition.rows, ten.edition.rows}, "rfcs": []int{len(one.edition.listed), len(ten.edition.listed)},
		"questions": engineQuestions, "hits_percent": engineHits, "hits": "any RFC that a source mentions, each as often",
		"largest_contracts": largestContracts, "warm_cpu_s": []float64{one.warm, ten.warm}, "clock": "CPU seconds of the process",
		"ns": map[string][]float64{"mixed": ten.mixed.ns, "mixed_small": one.mixed.ns, "clean": ten.cleanOnes.ns, "hit": ten.hit.ns, "sha256": ten.sum.ns},
	}
	return report, nil
}

// engineSide is an edition and what was measured of it.
type engineSide struct {
	edition       *syntheticEdition
	clean, hits   []checks.RFC
	largestRFC    checks.RFC
	registroBytes int
	warm          float64
	buf           []byte

	mixed, cleanOnes, hit, sum, classify, largest, largestList timed
}

// timed is one measure, by repeat, of one question each.
type timed struct{ ns, allocs []float64 }

// prepare picks what is asked and checks that both ways to classify agree.
func (s *engineSide) prepare() error {
	random := rand.New(rand.NewPCG(69, 4))
	for len(s.clean) < engineQuestions {
		rfc, err := checks.ParseRFC(RandomRFC(random))
		if err != nil {
			return err
		}
		if s.edition.Mentions(rfc.Key()) == nil {
			s.clean = append(s.clean, rfc)
		}
	}
	listed := make([]string, engineQuestions)
	for i := range listed {
		listed[i] = s.edition.listed[random.IntN(len(s.edition.listed))]
	}
	var err error
	if s.hits, err = parsed(listed); err != nil {
		return err
	}
	if s.largestRFC, err = checks.ParseRFC(s.edition.largest); err != nil {
		return err
	}
	for _, rfc := range s.hits {
		var seen index.Set
		mentions, err := s.edition.Classify(rfc, func(of *snapshots.Source, _ snapshots.RowKey, _ snapshots.Cells) error {
			seen.Add(of.Bit())
			return nil
		})
		if err != nil {
			return err
		}
		if mentions == nil || *mentions != seen {
			return fmt.Errorf("la tabla dice %v de %s, y las filas %v", mentions, rfc, seen)
		}
	}
	start := cpuSeconds()
	err = query.Warm(s.edition.Edition, nil)
	s.warm = cpuSeconds() - start
	s.buf = make([]byte, 0, 1<<20)
	return err
}

// run measures everything once.
func (s *engineSide) run() error {
	var failed error
	ask := func(q query.Question) {
		registro, _, err := query.AppendRegistro(s.buf[:0], q, editionDay, s.edition.Edition)
		sha256.Sum256(registro)
		s.registroBytes, failed = len(registro), errors.Join(failed, err)
	}
	company := func(rfc checks.RFC) query.Question { return query.Company{RFC: rfc, Sanciones: true} }
	about := func(rfcs []checks.RFC) []query.Question {
		questions := make([]query.Question, len(rfcs))
		for i, rfc := range rfcs {
			questions[i] = company(rfc)
		}
		return questions
	}
	clean, hits := about(s.clean), about(s.hits)
	s.mixed.measure(engineQuestions, func(i int) {
		if i%100 < engineHits {
			ask(hits[i])
		} else {
			ask(clean[i])
		}
	})
	s.hit.measure(engineQuestions/10, func(i int) { ask(hits[i]) })
	s.largest.measure(100, func(int) { ask(company(s.largestRFC)) })
	s.largestList.measure(10, func(int) { ask(query.Contracts{RFC: s.largestRFC, Limit: query.MaxContracts}) })
	s.cleanOnes.measure(engineQuestions, func(i int) { ask(clean[i]) })
	text := s.buf[:s.registroBytes] // of the last of them
	s.sum.measure(engineQuestions, func(int) { sha256.Sum256(text) })
	none := func(*snapshots.Source, snapshots.RowKey, snapshots.Cells) error { return nil }
	s.classify.measure(engineQuestions, func(i int) {
		_, err := s.edition.Classify(s.clean[i], none)
		failed = errors.Join(failed, err)
	})
	return failed
}

func (t *timed) measure(n int, f func(i int)) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuSeconds()
	for i := range n {
		f(i)
	}
	took := cpuSeconds() - start
	runtime.ReadMemStats(&after)
	t.ns = append(t.ns, took*1e9/float64(n))
	t.allocs = append(t.allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
}

// cpuSeconds is what the process has used so far, its collector included.
func cpuSeconds() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}
