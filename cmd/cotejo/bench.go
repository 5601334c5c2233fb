package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cotejo/accounts"
	"cotejo/bench"
	"cotejo/bench/generate"
	"cotejo/operation"
	"cotejo/products/company"
	"cotejo/snapshots"
)

// benchAskers is how many goroutines ask at once while a bench prepares.
const benchAskers = 128

type benchCmd struct {
	Name   string `arg:"" enum:"company,ingest,ledger,checks" help:"Qué medir: company, ingest, ledger o checks."`
	Full   bool   `help:"Más registros y repeticiones más largas."`
	From   string `help:"Carpeta de «bench generate» que company e ingest cargan; sin ella generan la suya, de tamaño real." placeholder:"CARPETA"`
	DuckDB string `name:"duckdb" help:"Programa con el que company e ingest se comparan (make duckdb); sin esto, el cotejo-duckdb que está junto a este." placeholder:"RUTA"`
}

func (c *benchCmd) Run(a *app) error {
	duckDB := c.DuckDB
	if duckDB == "" {
		own, err := os.Executable()
		if err != nil {
			return err
		}
		duckDB = filepath.Join(filepath.Dir(own), "cotejo-duckdb")
	}
	return a.bench(bench.Host{From: c.From, DuckDB: duckDB}, func(h bench.Host) (bench.Report, error) {
		switch c.Name {
		case "company":
			return bench.Company(a.ctx, h, bench.CompanySize(c.Full))
		case "ingest":
			return bench.Ingest(a.ctx, h, bench.IngestSize(c.Full))
		case "ledger":
			return bench.Ledger(a.ctx, h, c.Full)
		}
		return bench.Checks(a.ctx, h, c.Full)
	})
}

// bench measures with what only this program can give a bench, and prints.
func (a *app) bench(h bench.Host, measure func(bench.Host) (bench.Report, error)) (err error) {
	if h.Store, err = a.config.storeURL(); err != nil {
		return err
	}
	h.Prepare, h.Edition = prepareBench, prepareEdition
	h.Command = func(ctx context.Context, args ...string) *exec.Cmd {
		// Neither the machine's configuration nor its variables: prepareBench
		// does not know them either.
		cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"--config", os.DevNull}, args...)...)
		// Its one key asks as fast as it is answered.
		cmd.Env = append(cleanEnvironment(os.Environ()), "COTEJO_LIMITE_LLAVE=0")
		return cmd
	}
	h.Progress = func(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }
	report, err := measure(h)
	if err != nil {
		return err
	}
	a.json = true // a report is for programs
	return a.print(report, nil)
}

// benchBatchCmd measures lists of companies.
type benchBatchCmd struct {
	Scale float64 `default:"0.02" help:"Tamaño de las fuentes que genera: 1 es el de las publicaciones reales." placeholder:"N"`
	From  string  `help:"Carpeta de «bench generate» que carga en su lugar." placeholder:"CARPETA"`
	Full  bool    `help:"Más vueltas, y más largas."`
}

func (c *benchBatchCmd) Run(a *app) error {
	size := bench.BatchSize{Scale: c.Scale, Large: 100_000, Small: 1_000, Repeats: 3, Window: 5 * time.Second}
	if c.Full {
		size.Repeats, size.Window = 7, 10*time.Second
	}
	err := a.bench(bench.Host{From: c.From}, func(h bench.Host) (bench.Report, error) { return bench.Batch(a.ctx, h, size) })
	if errors.Is(err, generate.ErrRequest) {
		return exitWith(exitUsage, "%w", err)
	}
	return err
}

// benchGenerateCmd writes what benches and tests load.
type benchGenerateCmd struct {
	Out   string  `required:"" help:"Carpeta nueva o vacía." placeholder:"CARPETA"`
	Scale float64 `required:"" help:"1: el tamaño de las publicaciones reales; de 0.0001 a 1.5." placeholder:"N"`
	Seed  uint64  `default:"1" help:"La misma da los mismos bytes."`
}

func (c *benchGenerateCmd) Run(a *app) error {
	m, err := generate.Files(a.ctx, generate.Request{
		Dir: c.Out, Scale: c.Scale, Seed: c.Seed,
		Progress: func(f generate.File, done, of int) {
			fmt.Fprintf(a.stderr, "%d/%d  %-32s %9d filas  %8.1f MB\n", done, of, f.Source, f.Rows, float64(f.Bytes)/1e6)
		},
	})
	if errors.Is(err, generate.ErrRequest) {
		return exitWith(exitUsage, "%w", err)
	}
	if err != nil {
		return err
	}
	return a.print(m, func() {
		fmt.Fprintf(a.stdout, "cotejo ingest --corte %s", m.Corte)
		for _, f := range m.Files {
			fmt.Fprintf(a.stdout, " \\\n  --file '%s'", strings.ReplaceAll(f.Source+"="+filepath.Join(c.Out, f.Name), "'", `'\''`))
		}
		fmt.Fprintln(a.stdout)
	})
}

// benchBareCmd is the child process of a baseline: bare, or with the folder that
// it writes to, the floor.
type benchBareCmd struct {
	Body     string  `required:""`
	Addr     *string `required:""`
	Floor    string
	Registro int // bytes that the floor hashes
}

func (c *benchBareCmd) Run(a *app) error {
	if c.Floor != "" {
		return bench.ServeFloor(a.config.get("addr"), c.Body, c.Floor, c.Registro)
	}
	return bench.ServeBare(a.config.get("addr"), c.Body)
}

// prepareBench records verifications through the pipeline that serves requests,
// with as many askers as the sequencer likes.
func prepareBench(ctx context.Context, dir string, records int) (_ string, err error) {
	n, err := openNode(ctx, configuration{values: map[string]string{"data": dir}}, mustExist)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	_, orgs, err := n.accounts.CreateAccount(ctx, accounts.AccountRequest{Name: "Medición"})
	if err != nil {
		return "", err
	}
	if _, err := n.accounts.Credit(ctx, orgs[0].ID, 999_999_999_00, "medición"); err != nil {
		return "", err
	}
	key, _, err := n.accounts.CreateKey(ctx, accounts.KeyRequest{Org: orgs[0].ID, Mode: accounts.Live})
	if err != nil {
		return "", err
	}
	live, err := snapshots.NewLive(n.sources)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	pipeline := &operation.Pipeline{Live: live, Sandbox: live, Ledger: n.ledger, Accounts: n.accounts, Now: now}
	return key, recordMany(ctx, pipeline, key, records)
}

// recordMany asks for random companies until records are stored.
func recordMany(ctx context.Context, pipeline *operation.Pipeline, key string, records int) error {
	table, err := operation.NewTable(company.Operations(nil))
	if err != nil {
		return err
	}
	op := table.Find("verificarEmpresa")
	var left atomic.Int64
	left.Store(int64(records))
	var wg sync.WaitGroup
	failures := make(chan error, benchAskers)
	for i := range benchAskers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			random := rand.New(rand.NewPCG(uint64(i), 1))
			var body []byte
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				resp, err := pipeline.Do(ctx, &operation.Request{
					Operation: op, Key: []byte(key),
					Args: []operation.Arg{{In: operation.InPath, Name: "rfc", Value: bench.RandomRFC(random)}},
				}, body[:0])
				if err != nil {
					failures <- err
					return
				}
				body = resp.Body
			}
		}()
	}
	wg.Wait()
	close(failures)
	return errors.Join(<-failures, ctx.Err())
}
