package bench

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Host gives a bench what only the program around it can: data directories and
// child processes.
type Host struct {
	// Prepare makes a data directory that holds the given list as sat_69b and at
	// least records verifications, and returns a live key with money.
	Prepare func(ctx context.Context, dir, listFile string, records int) (key string, err error)
	// Command runs this program again with other arguments and the defaults of
	// its configuration, as Prepare used them.
	Command func(ctx context.Context, args ...string) *exec.Cmd
	// Store is the PostgreSQL database that Ledger measures, each side in a schema of
	// its own; empty: a folder. The other benches take a folder.
	Store string
	// Progress tells a person who waits what is going on.
	Progress func(format string, args ...any)
}

// Company measures the company verification: the edition table, and the whole
// request over HTTP with its durable charge and record. full uses more records
// and longer repeats.
func Company(ctx context.Context, h Host, full bool) (_ Report, err error) {
	records, repeats, window := 1_000_000, 3, 5*time.Second
	if full {
		records, repeats, window = 5_000_000, 7, 10*time.Second
	}
	report := newReport("company")
	dir, err := os.MkdirTemp("", "cotejo-bench-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)

	h.Progress("tabla de edición: %d RFC", lookupKeys)
	if err := measureLookup(&report); err != nil {
		return report, err
	}

	listFile, list, err := syntheticList(ctx, dir, 1)
	if err != nil {
		return report, err
	}
	var listed []string // as they are written in a path
	for _, rfc := range list.Sample {
		listed = append(listed, url.PathEscape(rfc))
	}
	data := filepath.Join(dir, "datos")
	h.Progress("preparando %d registros", records)
	key, err := h.Prepare(ctx, data, listFile, records)
	if err != nil {
		return report, err
	}

	bytesPerRecord, err := recordBytes(data, records)
	if err != nil {
		return report, err
	}

	server, err := startChild(ctx, dir, h.Command, "serve", "--data", data)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	body, err := typicalAnswer(server.addr, key, "/v1/empresa/ZZZ990101AB1") // on no list
	if err != nil {
		return report, err
	}
	bodyFile, err := writeBody(dir, body)
	if err != nil {
		return report, err
	}
	bare, err := startChild(ctx, dir, h.Command, "bench-bare", "--body", bodyFile)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()

	floor, err := startChild(ctx, dir, h.Command, "bench-bare", "--body", bodyFile, "--floor", filepath.Join(dir, "piso"))
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, floor.stop()) }()

	ours, theirs, least := &side{name: "servicio", server: server}, &side{name: "servidor vacío", server: bare}, &side{name: "servidor de piso", server: floor}
	next := func(dst []byte, random *rand.Rand) []byte {
		rfc := ""
		if random.IntN(100) < httpHits {
			rfc = listed[random.IntN(len(listed))]
		} else {
			rfc = RandomRFC(random)
		}
		return append(append(dst, "/v1/empresa/"...), rfc...)
	}
	if err := compare(ctx, h, key, next, []*side{ours, theirs, least}, repeats, window); err != nil {
		return report, err
	}
	memory, err := server.anonymousMB()
	if err != nil {
		return report, err
	}
	report.Figures["http_vs_bare"] = median(ratios(ours.perCPU, theirs.perCPU))
	report.Figures["http_vs_floor"] = median(ratios(ours.perCPU, least.perCPU))
	report.Figures["floor_vs_bare"] = median(ratios(least.perCPU, theirs.perCPU))
	report.Figures["http_per_cpu_s"] = median(ours.perCPU)
	report.Figures["http_per_s"] = median(ours.perSecond)
	report.Figures["rss_anon_mb"] = memory
	report.Figures["record_bytes"] = bytesPerRecord
	report.Detail["http"] = map[string]any{
		"baseline": "bare fasthttp handler, same body bytes", "connections": httpConnections,
		"hits_percent": httpHits, "list_rows": list.Rows, "records_before": records,
		"organizations": 1, "wallets": 1, // so one group of sixteen takes every charge
		"window_s": window.Seconds(), "body_bytes": len(body),
		"server_cpu": "from the end of its window before: work that was put off counts",
		"per_cpu_s":  ours.perCPU, "bare_per_cpu_s": theirs.perCPU, "floor_per_cpu_s": least.perCPU,
		"per_s": ours.perSecond, "bare_per_s": theirs.perSecond, "floor_per_s": least.perSecond,
		"floor": "the same, after HMAC of the key, SHA-256 of 1,000 bytes and two keys in a shared durable write",
	}
	report.Detail["record_bytes"] = "bytes of the account store on disk after preparation ÷ records: registro, acta, movement and logs"
	return report, nil
}

// recordBytes is what a record and its movement take on disk, on average.
func recordBytes(data string, records int) (float64, error) {
	var total int64
	err := filepath.WalkDir(filepath.Join(data, "cuentas"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return float64(total) / float64(records), err
}
