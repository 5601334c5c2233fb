package bench

import (
	"context"
	"path/filepath"

	"cotejo/bench/generate"
)

// syntheticList writes a complete list under article 69-B below dir; at scale 1 it has
// the size of the real one.
func syntheticList(ctx context.Context, dir string, scale float64) (path string, list generate.File, err error) {
	dir = filepath.Join(dir, "sinteticos")
	m, err := generate.Files(ctx, generate.Request{Dir: dir, Scale: scale, Seed: 69, Sources: []string{"sat_69b"}})
	if err != nil {
		return "", list, err
	}
	list = m.Files[0]
	return filepath.Join(dir, list.Name), list, nil
}
