package bench

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"cotejo/snapshots"
)

// Host gives a bench what only the program around it can: data directories and
// child processes.
type Host struct {
	// Prepare puts accounts into a data directory that has sources, and at least
	// records verifications, and returns a live key with money.
	Prepare func(ctx context.Context, dir string, records int) (key string, err error)
	// Edition is what a server makes of an edition before it answers from it.
	Edition snapshots.Prepare
	// Command runs this program again with other arguments and the defaults of
	// its configuration, as Prepare used them.
	Command func(ctx context.Context, args ...string) *exec.Cmd
	// Store is the PostgreSQL database that Ledger measures, each side in a schema of
	// its own; empty: a folder. The other benches take a folder.
	Store string
	// From is a folder of generated files that Company and Ingest load; empty: they
	// generate their own.
	From string
	// DuckDB is the program of bench/duckdb, which Company and Ingest compare with.
	DuckDB string
	// Progress tells a person who waits what is going on.
	Progress func(format string, args ...any)
}

// CompanySize is what the command line measures; full uses more records and longer
// repeats.
func CompanySize(full bool) Size {
	size := Size{Keys: 2_000_000, Scale: 1, RFCs: 100_000, Growth: [2]int{1_000_000, 10_000_000}, Records: 1_000_000, Repeats: 3, Window: 5 * time.Second}
	if full {
		size.Records, size.Repeats, size.Window = 5_000_000, 7, 10*time.Second
	}
	return size
}

// Company measures the company verification over all generated sources: the edition
// table, the search of rows, the engine, and the whole request over HTTP with its
// durable charge and record.
func Company(ctx context.Context, h Host, size Size) (_ Report, err error) {
	report := newReport("company")
	if err := checkDuckDB(h); err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)

	h.Progress("tabla de edición: %d RFC", size.Keys)
	if err := measureLookup(size.Keys, &report); err != nil {
		return report, err
	}
	d, err := openDataset(ctx, h, dir, size.Scale)
	if err != nil {
		return report, err
	}
	report.Detail["files"] = d.about()
	data := filepath.Join(dir, "datos")
	if _, err := d.load(ctx, h, data); err != nil {
		return report, err
	}
	listed, registro, err := measureEdition(ctx, h, data, dir, size.RFCs, &report)
	if err != nil {
		return report, err
	}
	if err := measureGrowth(ctx, h, filepath.Join(dir, "crecimiento"), size.Growth, size.RFCs, &report); err != nil {
		return report, err
	}
	return report, measureRequests(ctx, h, dir, data, listed, registro, size, &report)
}

// measureEdition measures what needs no server. It returns RFCs of the lists, and the
// bytes of a registro about one that is on none.
func measureEdition(ctx context.Context, h Host, data, dir string, rfcs int, report *Report) (listed []string, registro int, err error) {
	ed, err := openEdition(data)
	if err != nil {
		return nil, 0, err
	}
	defer ed.Release()
	if listed, err = measureClassify(ctx, h, ed, dir, rfcs, report); err != nil {
		return nil, 0, err
	}
	h.Progress("motor: %d RFC", rfcs)
	registro, err = measureEngine(ed, listed, rfcs, report)
	return listed, registro, err
}

// measureRequests asks the service and both baselines over HTTP.
func measureRequests(ctx context.Context, h Host, dir, data string, listed []string, registro int, size Size, report *Report) (err error) {
	h.Progress("preparando %d registros", size.Records)
	key, err := h.Prepare(ctx, data, size.Records)
	if err != nil {
		return err
	}
	stored, err := accountBytes(data)
	if err != nil {
		return err
	}

	server, err := startChild(ctx, dir, h.Command, "serve", "--data", data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	body, err := singleAnswer(server.addr, key, "/v1/empresa/ZZZ990101AB1") // on no list
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

	floor, err := startChild(ctx, dir, h.Command, "bench-bare", "--body", bodyFile, "--floor", filepath.Join(dir, "piso"), "--registro", strconv.Itoa(registro))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.stop()) }()

	ours, theirs, least := &side{name: "servicio", server: server}, &side{name: "servidor vacío", server: bare}, &side{name: "servidor de piso", server: floor}
	if err := compare(ctx, h, key, companies(listed), []*side{ours, theirs, least}, size.Repeats, size.Window); err != nil {
		return err
	}
	memory, err := server.anonymousMB()
	if err != nil {
		return err
	}
	report.Figures["http_vs_bare"] = median(ratios(ours.perCPU, theirs.perCPU))
	report.Figures["http_vs_floor"] = median(ratios(ours.perCPU, least.perCPU))
	report.Figures["floor_vs_bare"] = median(ratios(least.perCPU, theirs.perCPU))
	report.Figures["http_per_cpu_s"] = median(ours.perCPU)
	report.Figures["http_per_s"] = median(ours.perSecond)
	report.Figures["rss_anon_mb"] = memory
	report.Figures["record_bytes"] = float64(stored) / float64(size.Records)
	report.Detail["http"] = map[string]any{
		"baseline": "bare fasthttp handler, same body bytes", "connections": httpConnections,
		"hits_percent": httpHits, "records_before": size.Records,
		"organizations": 1, "wallets": 1, // so one group of sixteen takes every charge
		"window_s": size.Window.Seconds(), "body_bytes": len(body),
		"server_cpu": "from the end of its window before: work that was put off counts",
		"per_cpu_s":  ours.perCPU, "bare_per_cpu_s": theirs.perCPU, "floor_per_cpu_s": least.perCPU,
		"per_s": ours.perSecond, "bare_per_s": theirs.perSecond, "floor_per_s": least.perSecond,
		"floor": "the same, after HMAC of the key, SHA-256 of as many bytes as a registro has, and two keys in a shared durable write", "registro_bytes": registro,
	}
	report.Detail["record_bytes"] = "bytes of the account store on disk after preparation ÷ records: registro, acta, movement and logs"
	return nil
}

// accountsDir is the folder of the account store in a data directory.
const accountsDir = "cuentas"

// accountBytes is what the account store of a data directory takes on disk.
func accountBytes(data string) (total int64, err error) {
	err = filepath.WalkDir(filepath.Join(data, accountsDir), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
