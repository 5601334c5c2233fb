package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// swapSource is the list that changes from one edition to the next.
const swapSource = "sat_69b"

// IngestSize is what the command line measures; full uses longer repeats.
func IngestSize(full bool) Size {
	size := Size{Scale: 1, Swaps: 20, Window: 5 * time.Second}
	if full {
		size.Window = 30 * time.Second
	}
	return size
}

// Ingest measures how sources of the real size are loaded, and what they cost the
// server that answers from them: its memory, and the moment at which one edition
// replaces another.
func Ingest(ctx context.Context, h Host, size Size) (_ Report, err error) {
	report := newReport("ingest")
	if err := checkDuckDB(h); err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	d, err := openDataset(ctx, h, dir, size.Scale)
	if err != nil {
		return report, err
	}
	report.Detail["files"] = d.about()
	data := filepath.Join(dir, "datos")
	if err := measureLoading(ctx, h, d, dir, data, &report); err != nil {
		return report, err
	}
	if err := measureServing(ctx, h, d, dir, data, size, &report); err != nil {
		return report, err
	}
	list, err := newChanging(d, swapSource)
	if err != nil {
		return report, err
	}
	return report, measureSwap(ctx, h, data, list, size.Swaps, &report)
}

// measureLoading loads the files into a data directory, and into DuckDB twice: a
// database file, which is the baseline because both then outlive the process, and one
// in memory.
func measureLoading(ctx context.Context, h Host, d *dataset, dir, data string, report *Report) error {
	copies := filepath.Join(dir, "latin1")
	if err := os.Mkdir(copies, 0o700); err != nil {
		return err
	}
	files := map[string]*csvFile{}
	for i := range d.Files {
		f := &d.Files[i]
		file, err := readable(d.path(f), copies)
		if err != nil {
			return err
		}
		files[f.Source] = &file
	}
	memory, err := d.readCSV(ctx, h, "", files)
	if err != nil {
		return err
	}
	database := filepath.Join(dir, "lineabase.duckdb")
	theirs, err := d.readCSV(ctx, h, database, files)
	if err != nil {
		return err
	}
	if err := errors.Join(d.countCSV(ctx, h, database, files), os.Remove(database), os.RemoveAll(copies)); err != nil {
		return err
	}
	cpu, err := d.load(ctx, h, data)
	if err != nil {
		return err
	}
	ours := 0.0
	for source, seconds := range cpu {
		ours += seconds
		files[source].Ingest = seconds
	}
	ed, err := openEdition(data)
	if err != nil {
		return err
	}
	err = d.check(ed)
	ed.Release()
	if err != nil {
		return err
	}
	report.Figures["cpu_vs_readcsv"] = ours / theirs
	report.Detail["loading"] = map[string]any{
		"measured": "user and system time of the children that load all files: ours, one for each file, verifies, normalises, sorts, compresses, compares with the version before and syncs to disk",
		"baseline": "DuckDB read_csv of the same files into tables of a database file, every column as text, one thread, one child; its dialect is told, strict_mode on, ignore_errors and null_padding off",
		"lenient":  "it is told how many records stand above the titles (sat_69b, sat_69b_bis); bytes that windows-1252 has and latin-1 has not, which it refuses, were replaced beforehand (bytes_replaced); rows without text are kept (blank_rows) and not counted",
		"cpu_s":    ours, "readcsv_cpu_s": theirs, "readcsv_memory_cpu_s": memory, "by_source": files,
	}
	return nil
}

// measureServing asks the service for RFCs of the lists, and others, and then for its
// memory.
func measureServing(ctx context.Context, h Host, d *dataset, dir, data string, size Size, report *Report) (err error) {
	ed, err := openEdition(data)
	if err != nil {
		return err
	}
	taken, err := takeCensus(ed, nil)
	ed.Release()
	if err != nil {
		return err
	}
	h.Progress("memoria del servicio")
	key, err := h.Prepare(ctx, data, 0)
	if err != nil {
		return err
	}
	server, err := startChild(ctx, dir, h.Command, "serve", "--data", data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	idle, err := server.anonymousMB()
	if err != nil {
		return err
	}
	asked, err := load(ctx, server.addr, key, companies(taken.listed), size.Window)
	if err != nil {
		return err
	}
	memory, err := server.anonymousMB()
	report.Figures["rss_anon_mb"] = memory
	report.Detail["serving"] = map[string]any{
		"measured": "RssAnon of the serving process, all files loaded, after a window of requests", "rss_anon_started_mb": idle,
		"requests": asked, "window_s": size.Window.Seconds(), "connections": httpConnections, "hits_percent": httpHits, "rows": taken.rows,
	}
	return err
}

// companies asks for companies of which httpHits in a hundred are listed.
func companies(listed []string) asking {
	return func(dst []byte, random *rand.Rand) []byte {
		rfc := ""
		if random.IntN(100) < httpHits {
			rfc = url.PathEscape(listed[random.IntN(len(listed))])
		} else {
			rfc = RandomRFC(random)
		}
		return append(append(dst, "/v1/empresa/"...), rfc...)
	}
}
