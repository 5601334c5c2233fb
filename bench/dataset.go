package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cotejo/bench/generate"
	"cotejo/snapshots"
)

// datasetSeed is that of the files that a bench generates for itself.
const datasetSeed = 69

// dataset is official-format files of every source that has RFCs.
type dataset struct {
	dir string
	generate.Manifest
}

// openDataset reads the folder of h.From or, when there is none, generates all sources
// in dir.
func openDataset(ctx context.Context, h Host, dir string, scale float64) (*dataset, error) {
	if h.From == "" {
		return generateDataset(ctx, h, dir, scale)
	}
	d := &dataset{dir: h.From}
	text, err := os.ReadFile(filepath.Join(h.From, generate.ManifestName))
	if err != nil {
		return nil, fmt.Errorf("%s no es una carpeta de «cotejo bench generate»: %w", h.From, err)
	}
	return d, json.Unmarshal(text, &d.Manifest)
}

// generateDataset writes the files of some sources, or of all, below dir.
func generateDataset(ctx context.Context, h Host, dir string, scale float64, sources ...string) (d *dataset, err error) {
	d = &dataset{dir: filepath.Join(dir, "archivos")}
	d.Manifest, err = generate.Files(ctx, generate.Request{
		Dir: d.dir, Scale: scale, Seed: datasetSeed, Sources: sources,
		Progress: func(f generate.File, done, of int) {
			h.Progress("generando %d de %d: %s, %d filas", done, of, f.Source, f.Rows)
		},
	})
	return d, err
}

func (d *dataset) path(f *generate.File) string { return filepath.Join(d.dir, f.Name) }

// rows is how many rows all files have.
func (d *dataset) rows() (n int) {
	for _, f := range d.Files {
		n += f.Rows
	}
	return n
}

// sample is RFCs that the files have.
func (d *dataset) sample() (rfcs []string, err error) {
	text, err := os.ReadFile(filepath.Join(d.dir, generate.SampleName))
	for line := range strings.Lines(string(text)) {
		rfc, _, _ := strings.Cut(line, "\t")
		rfcs = append(rfcs, rfc)
	}
	if err == nil && len(rfcs) == 0 {
		err = fmt.Errorf("%s no tiene RFC en %s", d.dir, generate.SampleName)
	}
	return rfcs, err
}

// about is what a report says of the files.
func (d *dataset) about() map[string]any {
	bytes := int64(0)
	for _, f := range d.Files {
		bytes += f.Bytes
	}
	return map[string]any{"scale": d.Scale, "seed": d.Seed, "sources": len(d.Files), "rows": d.rows(), "bytes": bytes}
}

// load loads every file into a data directory, each in a child process, and returns
// the processor time that each took.
func (d *dataset) load(ctx context.Context, h Host, data string) (map[string]float64, error) {
	cpu := map[string]float64{}
	for i := range d.Files {
		f := &d.Files[i]
		h.Progress("cargando %d de %d: %s, %d filas", i+1, len(d.Files), f.Source, f.Rows)
		cmd := h.Command(ctx, "ingest", "--data", data, "--corte", d.Corte, "--file", f.Source+"="+d.path(f))
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ingest %s: %w: %s", f.Source, err, said)
		}
		cpu[f.Source] = processCPU(cmd)
	}
	return cpu, nil
}

// catalogueOf opens the sources of a data directory.
func catalogueOf(data string) (*snapshots.Catalogue, error) {
	return snapshots.OpenCatalogue(filepath.Join(data, "fuentes"))
}

// openEdition opens the newest edition of a data directory.
func openEdition(data string) (*snapshots.Edition, error) {
	c, err := catalogueOf(data)
	if err != nil {
		return nil, err
	}
	m, err := c.LatestEdition()
	if err != nil {
		return nil, err
	}
	return c.OpenEdition(m)
}

// check compares the rows in service with those that were generated.
func (d *dataset) check(ed *snapshots.Edition) error {
	var all []error
	for _, f := range d.Files {
		if s := ed.Source(f.Source); s == nil {
			all = append(all, fmt.Errorf("%s no está en la edición", f.Source))
		} else if n := s.Version().Rows; n != f.Rows {
			all = append(all, fmt.Errorf("%w: %s tiene %d filas y se cargaron %d", ErrOtherAnswer, f.Source, f.Rows, n))
		}
	}
	return errors.Join(all...)
}
