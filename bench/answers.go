package bench

import (
	"crypto/sha256"
	"runtime"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/query"
	"cotejo/snapshots"
)

const engineRepeats = 5

// engineDay is the civil day that answers are asked about.
var engineDay = civil.Date{Year: 2026, Month: 9, Day: 30}

// answering is RFCs as the engine is asked for them.
type answering struct {
	ed        *snapshots.Edition
	questions []query.Question
	registro  []byte
}

func newAnswering(ed *snapshots.Edition, asked []string) (*answering, error) {
	a := &answering{ed: ed, registro: make([]byte, 0, 64<<10)}
	for _, rfc := range asked {
		parsed, err := checks.ParseRFC(rfc)
		if err != nil {
			return nil, err
		}
		a.questions = append(a.questions, query.Company{RFC: parsed, Sanciones: true})
	}
	return a, nil
}

// all answers every question and hashes the answer, as each charged one is.
func (a *answering) all() (err error) {
	for _, q := range a.questions {
		if a.registro, _, err = query.AppendRegistro(a.registro[:0], q, engineDay, a.ed); err != nil {
			return err
		}
		sha256.Sum256(a.registro)
	}
	return nil
}

// measureEngine measures answers without HTTP, accounts and records, and returns how
// many bytes the registro of an RFC has that no list mentions.
func measureEngine(ed *snapshots.Edition, listed []string, n int, report *Report) (cleanBytes int, err error) {
	asked, err := questions(ed, listed, n)
	if err != nil {
		return 0, err
	}
	a, err := newAnswering(ed, asked)
	if err != nil {
		return 0, err
	}
	if err := query.Warm(ed, nil); err != nil { // as a server does before it answers
		return 0, err
	}
	var perSecond []float64
	for i := range engineRepeats + 1 {
		cpu, err := cpuOf(a.all)
		if err != nil {
			return 0, err
		}
		if i > 0 { // the first is a warm-up
			perSecond = append(perSecond, float64(n)/cpu)
		}
	}
	var misses []string
	for _, rfc := range asked {
		if key, _ := checks.PackRFC(rfc); ed.Classify(key).None() {
			misses = append(misses, rfc)
		}
	}
	clean, err := newAnswering(ed, misses)
	if err != nil {
		return 0, err
	}
	allocs := []float64{}
	for range engineRepeats {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := clean.all()
		runtime.ReadMemStats(&after)
		if err != nil {
			return 0, err
		}
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(len(misses)))
	}
	report.Figures["engine_rfc_per_s_core"] = median(perSecond)
	report.Figures["miss_allocs"] = median(allocs)
	report.Detail["engine"] = map[string]any{
		"measured": "query.AppendRegistro and the SHA-256 of its bytes, one goroutine, per CPU second of the process; miss_allocs: of RFCs that no list mentions, into a buffer that is there",
		"rfcs":     len(asked), "hits_percent": classifyHits, "lists": len(ed.Manifest().Sources),
		"per_cpu_s": perSecond, "miss_allocs": allocs, "motor": query.Company{}.Motor(), "clean_registro_bytes": len(clean.registro),
	}
	return len(clean.registro), nil
}
