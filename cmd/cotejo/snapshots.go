package main

import (
	"fmt"

	"cotejo/ingest"
	"cotejo/snapshots"
)

type snapshotsRebuild struct{}

type rebuildReply struct {
	Catalogue string   `json:"carpeta"`
	Checked   int      `json:"revisados"`
	Restored  []string `json:"repuestos"`
	Differs   []string `json:"difieren"`
}

// Run reads every official file again with today's readers and compares what
// that gives with what the manifests say. It runs beside a server; while it
// runs no source can be loaded.
func (c *snapshotsRebuild) Run(a *app) error {
	dir, err := a.openData(mustExist)
	if err != nil {
		return err
	}
	var replies []rebuildReply
	differs := 0
	for _, c := range []struct {
		name string
		*snapshots.Catalogue
	}{{dirSources, dir.sources}, {dirSandbox, dir.sandbox}} {
		r, err := ingest.Rebuild(a.ctx, c.Catalogue, func(line string) { fmt.Fprintf(a.stderr, "%s: %s\n", c.name, line) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		differs += len(r.Differs)
		replies = append(replies, rebuildReply{c.name, r.Checked, append([]string{}, r.Restored...), append([]string{}, r.Differs...)})
	}
	err = a.print(replies, func() {
		for _, r := range replies {
			fmt.Fprintf(a.stdout, "%s  %d revisados, %d repuestos, %d difieren\n", r.Catalogue, r.Checked, len(r.Restored), len(r.Differs))
			for _, path := range r.Restored {
				fmt.Fprintf(a.stdout, "  repuesto: %s\n", path)
			}
			for _, what := range r.Differs {
				fmt.Fprintf(a.stdout, "  NO COINCIDE: %s\n", what)
			}
		}
	})
	if err == nil && differs > 0 {
		return exitWith(exitVerifyNo, "lo que dan los archivos oficiales no es lo que dicen %d manifiestos; arriba se nombra qué", differs)
	}
	return err
}
