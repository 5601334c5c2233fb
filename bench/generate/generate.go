// Package generate writes files in the official formats, as large and as skewed as
// the real ones, for benches and tests: the lists under articles 69-B and 69 and the
// yearly files of public contracts. Every taxpayer, buyer and contract in them is
// invented, and the check digit of every RFC is a wrong one, so that none is likely to
// be anybody's.
//
// It promises that the same seed and scale give the same bytes on any machine, that
// memory does not grow with the rows (only with the distinct RFCs of one file), and
// that a folder has its manifest only when it is complete. What the files have is
// said in three tables: sat69b.go, art69.go and contracts.go, with the measured sizes
// and shares they follow. Sanctioned suppliers are not generated: no file of them has
// an RFC yet.
//
// Start reading at Files.
package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"cotejo/civil"
)

// Limits of a scale. Beyond the upper one the files would exceed what their sources
// may have.
const (
	MinScale = 0.0001
	MaxScale = 1.5
)

// Corte is the day of all files: those that state one state this, and the others are
// loaded with it.
var Corte = civil.Date{Year: 2026, Month: 8, Day: 31}

// Names of what stands beside the tables, whose names are SOURCE.csv.
const (
	ManifestName = "manifest.json"
	// SampleName is RFCs of the tables for hit mixes: lines of RFC, TAB and source, in
	// UTF-8, at most maxSample a source, in the order of the source's file.
	SampleName = "rfcs.txt"
)

// Request says what to write.
type Request struct {
	Dir   string // new or empty
	Scale float64
	Seed  uint64
	// Sources are ids, in any order; none: all of Sources.
	Sources []string
	// Progress is told of every file that is complete; nil: nobody waits.
	Progress func(f File, done, of int)
}

// Manifest is what was written.
type Manifest struct {
	Seed  uint64  `json:"seed"`
	Scale float64 `json:"scale"`
	Corte string  `json:"corte"`
	Files []File  `json:"files"`
}

// File is one table.
type File struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	Rows   int    `json:"rows"` // as a reader counts them: redacted ones too, blank ones not
	// RFCs counts the distinct ones that somebody can ask for: neither redacted ones nor
	// those that stand for a foreign supplier.
	RFCs int `json:"rfcs"`
	// Heaviest is the RFC with the most rows, the first of several.
	Heaviest     string `json:"heaviest"`
	HeaviestRows int    `json:"heaviest_rows"`
	Bytes        int64  `json:"bytes"`
	SHA256       string `json:"sha256"`

	// Sample is the RFCs of the source that SampleName has.
	Sample []string `json:"-"`
}

// File returns the file of a source; ok is false when there is none.
func (m *Manifest) File(source string) (f File, ok bool) {
	for _, f := range m.Files {
		if f.Source == source {
			return f, true
		}
	}
	return File{}, false
}

// ErrRequest says that a request cannot be met; the message says what to change.
var ErrRequest = errors.New("no se puede generar")

// table is one file to write.
type table struct {
	source string
	write  func(g *generator, out *file) error
}

// tables is every file, in the order in which they are written.
func tables() []table {
	all := []table{{"sat_69b", write69B}, {"sat_69b_bis", write69BBis}}
	return slices.Concat(all, art69Tables(), contractTables())
}

// Sources lists the ids of the sources for which there is a file.
func Sources() (ids []string) {
	for _, t := range tables() {
		ids = append(ids, t.source)
	}
	return ids
}

// Files writes the tables, the sample and, last, the manifest. A file has a temporary
// name until it is complete. When it fails, or ctx ends, what it had written is
// removed and the error returned.
func Files(ctx context.Context, r Request) (m Manifest, err error) {
	if !(r.Scale >= MinScale && r.Scale <= MaxScale) {
		return m, fmt.Errorf("%w: la escala es %v; de %v a %v, donde 1 es el tamaño real", ErrRequest, r.Scale, MinScale, MaxScale)
	}
	wanted := tables()
	for _, id := range r.Sources {
		if !slices.Contains(Sources(), id) {
			return m, fmt.Errorf("%w: no hay una fuente sintética «%s»; hay: %v", ErrRequest, id, Sources())
		}
	}
	if len(r.Sources) > 0 {
		wanted = slices.DeleteFunc(wanted, func(t table) bool { return !slices.Contains(r.Sources, t.source) })
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return m, err
	}
	if there, err := os.ReadDir(r.Dir); err != nil {
		return m, err
	} else if len(there) > 0 {
		return m, fmt.Errorf("%w: %s no está vacía; indique una carpeta nueva", ErrRequest, r.Dir)
	}
	var written []string
	defer func() {
		if err != nil {
			for _, name := range written {
				if e := os.Remove(filepath.Join(r.Dir, name)); !errors.Is(e, fs.ErrNotExist) {
					err = errors.Join(err, e)
				}
			}
		}
	}()
	m = Manifest{Seed: r.Seed, Scale: r.Scale, Corte: Corte.String()}
	for i, t := range wanted {
		f, err := r.write(ctx, t)
		if err != nil {
			return m, err
		}
		written = append(written, f.Name)
		m.Files = append(m.Files, f)
		if r.Progress != nil {
			r.Progress(f, i+1, len(wanted))
		}
	}
	var sample []byte
	for _, f := range m.Files {
		for _, rfc := range f.Sample {
			sample = fmt.Appendf(sample, "%s\t%s\n", rfc, f.Source)
		}
	}
	written = append(written, SampleName, ManifestName)
	if err := os.WriteFile(filepath.Join(r.Dir, SampleName), sample, 0o644); err != nil {
		return m, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	pending := filepath.Join(r.Dir, pendingName(ManifestName))
	written = append(written, filepath.Base(pending))
	if err := os.WriteFile(pending, append(text, '\n'), 0o644); err != nil {
		return m, err
	}
	return m, os.Rename(pending, filepath.Join(r.Dir, ManifestName))
}

// write writes one table. What is random in it depends on seed, scale and source
// alone, not on the other tables.
func (r *Request) write(ctx context.Context, t table) (File, error) {
	out, err := create(ctx, r.Dir, t.source, r.Seed)
	if err != nil {
		return File{}, err
	}
	g := newGenerator(r.Seed, r.Scale)
	if err := t.write(g, out); err != nil {
		return File{}, errors.Join(err, out.discard())
	}
	return out.finish()
}

// generator makes the content of one file.
type generator struct {
	seed  uint64
	scale float64

	// random is seeded anew for every taxpayer and every row, so that either is the
	// same wherever it comes again.
	pcg    *rand.PCG
	random *rand.Rand

	who taxpayer
	row record
}

func newGenerator(seed uint64, scale float64) *generator {
	pcg := rand.NewPCG(0, 0)
	return &generator{seed: seed, scale: scale, pcg: pcg, random: rand.New(pcg)}
}

// reseed begins the random numbers of one thing: a is what kind of thing, b which.
func (g *generator) reseed(a, b uint64) {
	g.pcg.Seed(mix(g.seed^mix(a)), mix(b))
}

// mix spreads a number over 64 bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// scaled is how many there are of what there are n of at scale 1, at least three,
// unless there never are.
func (g *generator) scaled(n int) int {
	return max(int(math.Round(float64(n)*g.scale)), min(n, 3))
}

// chance is true in so many of a million cases.
func (g *generator) chance(perMillion int) bool { return g.random.IntN(1_000_000) < perMillion }

// one picks one of several, all alike.
func one[T any](g *generator, of []T) T { return of[g.random.IntN(len(of))] }
