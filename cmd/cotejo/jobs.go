package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cotejo/accesslog"
	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/jobs"
	"cotejo/products/platform"
	"cotejo/query"
	"cotejo/snapshots"
)

// Scheduled work. Each source has a job of its name, twice a day: the SAT
// publishes in office hours, on no fixed day. The run at four finds what came out
// since the day before while its servers are idle; the one at one finds what came
// out in the morning, and is a second chance on the same day when the first met a
// server that was being maintained. A run that finds nothing new costs the
// index page, a 304 and the partial lists. Sources are ten minutes apart, and none is asked on the hour, when
// everybody asks.
func sourceSpec(i int) string {
	minute := 7 + 10*i
	return fmt.Sprintf("%d %d,%d * * *", minute%60, 4+minute/60, 13+minute/60)
}

// sourceSpecs are the schedules of the sources, in the order of ingest.Sources.
func sourceSpecs() (specs []string) {
	daily := 0
	for _, id := range ingest.Sources() {
		spec, every := rareSpec(id)
		if every == 0 {
			spec = sourceSpec(daily)
			daily++
		}
		specs = append(specs, spec)
	}
	return specs
}

// rareSpec is the schedule of a source that is not looked at every day, and the longest
// between two of its runs; zero for all others. The contracts of a year that is over
// change little and have 100 MB and more, and of the open-data table of sanctioned
// suppliers nobody knows whether it is still written: once a month, each on a night of
// its own. What of sanctioned suppliers an operator saves and loads has no address
// unless one is configured: once a week.
func rareSpec(id string) (spec string, every time.Duration) {
	for i, s := range query.Contratos[:len(query.Contratos)-1] {
		if s.Source == id {
			return fmt.Sprintf("40 1 %d * *", 2+3*i), month
		}
	}
	if id == query.SancionadosAbiertos.Source {
		return fmt.Sprintf("40 1 %d * *", 2+3*(len(query.Contratos)-1)), month
	}
	for i, s := range append(slices.Clone(query.Sancionados), query.SancionadosExportacion) {
		if s.Source == id {
			return fmt.Sprintf("10 2 * * %d", 1+i), week
		}
	}
	return "", 0
}

const (
	week  = 7 * 24 * time.Hour
	month = 31 * 24 * time.Hour
)

const (
	// cleanupSpec is before the sources: nothing else runs then.
	cleanupSpec = "30 3 * * *"
	// claimsSpec is as often as a claim becomes old enough.
	claimsSpec = "20 * * * *"
)

// fixSpec is after noon, when Banco de México determines the rate, and in the
// evening for what was late or corrected. It is every day so that no schedule has to
// know the holidays; the job asks on banking days.
const fixSpec = "20 12,18 * * *"

// openJobs lists the jobs of a node. Whoever owns the node runs them.
func openJobs(n *node, config configuration) (*jobs.Scheduler, error) {
	// One process loads one source at a time: the others wait for their turn.
	turn := make(chan struct{}, 1)
	var list []jobs.Job
	specs := sourceSpecs()
	for i, id := range ingest.Sources() {
		job := sourceJob(n.dataDir, id, specs[i], config, turn)
		if id == catalog.FIXSource.Source {
			job.Spec, job.Run = fixSpec, n.onBankingDays(id, job.Run)
		}
		list = append(list, job)
	}
	list = append(list,
		jobs.Job{Name: "limpieza", Spec: cleanupSpec, Run: n.clean},
		jobs.Job{Name: "reclamos", Spec: claimsSpec, Run: n.repairClaims})
	return jobs.Open(jobs.Config{Dir: filepath.Join(n.path, dirJobs), Jobs: list, Now: now})
}

func sourceJob(dir *dataDir, id, spec string, config configuration, turn chan struct{}) jobs.Job {
	return jobs.Job{Name: id, Spec: spec, Run: func(ctx context.Context, now time.Time, progress func(string)) (jobs.Result, error) {
		if lacks := config.lacks(id); lacks != "" {
			return jobs.Result{Status: jobs.Unconfigured, Detail: lacks}, nil
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return jobs.Result{}, context.Cause(ctx)
		}
		reply, err := dir.load(ctx, ingest.Request{
			Source: id, Mirror: config.get("mirror"), Access: config.access(id), Now: now, Free: roomOn(config, dir),
			Progress: func(s ingest.Step) {
				if s.Done {
					progress(fmt.Sprintf("%s: %s, %d bytes, %d filas", s.Source, s.Phase, s.Bytes, s.Rows))
				}
			},
		})
		if errors.Is(err, snapshots.ErrBusy) {
			return jobs.Result{Status: jobs.Busy, Detail: "otro proceso está cargando una fuente; se reintenta en unos minutos"}, err
		}
		if err != nil {
			return jobs.Result{Detail: dir.publicFailure(id, now)}, fmt.Errorf("%s: %w", id, err)
		}
		status := jobs.Unchanged
		switch {
		case reply.waits():
			status = jobs.Quarantined
		case reply.Result == string(ingest.Activated):
			status = jobs.OK
		}
		return jobs.Result{Status: status, Detail: reply.brief()}, nil
	}}
}

// onBankingDays runs a job on other days only while its source lacks a value of the
// last banking day: nothing is published then.
func (d *dataDir) onBankingDays(id string, run jobRun) jobRun {
	return func(ctx context.Context, now time.Time, progress func(string)) (jobs.Result, error) {
		today := civil.Of(now)
		if catalog.BankingDay(today) {
			return run(ctx, now, progress)
		}
		m, err := d.sources.LatestEdition()
		if err != nil && !errors.Is(err, snapshots.ErrNoEdition) {
			return jobs.Result{}, err
		}
		for _, e := range m.Sources {
			if e.Source == id && !e.OrderDate.Before(catalog.LastBankingDay(today)) {
				return jobs.Result{Status: jobs.Unchanged, Detail: "no es día hábil bancario, y la serie llega hasta el último"}, nil
			}
		}
		return run(ctx, now, progress)
	}
}

type jobRun = func(ctx context.Context, now time.Time, progress func(string)) (jobs.Result, error)

// publicFailure is what the attempt of that moment may tell everybody; "" when
// it wrote nothing down.
func (d *dataDir) publicFailure(source string, at time.Time) string {
	if a, ok, err := d.sources.LastAttempt(source); err == nil && ok && a.At == civil.Timestamp(at) {
		return a.Error
	}
	return ""
}

// clean does what limpieza does: it forgets requests that may no longer be
// repeated, the input of orders that may no longer be read, accesses of long ago and registrations whose code is over, finishes or
// gives up those that were left half-way, and writes down what expired in wallets that
// nobody uses.
func (n *node) clean(ctx context.Context, now time.Time, progress func(string)) (jobs.Result, error) {
	var done []string
	did := func(format string, args ...any) {
		done = append(done, fmt.Sprintf(format, args...))
		progress(done[len(done)-1])
	}
	keep, err := n.config.keepAccesses()
	if err == nil {
		var removed accesslog.Cleaned
		removed, err = accesslog.Clean(n.room(dirAccesses), keep, now)
		if removed.Files > 0 {
			did("%d archivos del registro de accesos, %d bytes", removed.Files, removed.Bytes)
		}
	}
	if !n.waits() {
		err = errors.Join(err, n.cleanAccounts(ctx, now, did))
	}
	if len(done) == 0 {
		return jobs.Result{Status: jobs.Unchanged, Detail: "nada que limpiar"}, err
	}
	return jobs.Result{Detail: strings.Join(done, "; ")}, err
}

// waits reports that another node has the accounts: what is done to them is its work.
func (n *node) waits() bool { return n.turn != nil && !n.turn.held() }

func (n *node) cleanAccounts(ctx context.Context, now time.Time, did func(string, ...any)) error {
	forgotten, err := n.ledger.ForgetOnce(ctx, now)
	if forgotten > 0 {
		did("%d marcas de repetición vencidas", forgotten)
	}
	orders, kept := n.ledger.ForgetOrders(ctx, now)
	if orders > 0 {
		did("%d lotes de consultas vencidos", orders)
	}
	wallets, swept := n.ledger.Sweep(ctx, now)
	if wallets > 0 {
		did("%d cuentas con abonos o retenciones vencidos", wallets)
	}
	pruned, unpruned := n.accounts.PruneRegistrations(ctx, now)
	if pruned.Forgotten > 0 {
		did("%d registros vencidos", pruned.Forgotten)
	}
	if pruned.Finished > 0 {
		did("%d registros terminados que no lo decían", pruned.Finished)
	}
	if pruned.Abandoned > 0 {
		did("%d registros a medias que nadie retomó", pruned.Abandoned)
	}
	return errors.Join(err, kept, swept, unpruned)
}

// repairClaims does what reclamos does: it frees what was claimed for an account and
// never made.
func (n *node) repairClaims(ctx context.Context, _ time.Time, progress func(string)) (jobs.Result, error) {
	if n.waits() {
		return jobs.Result{Status: jobs.Unchanged, Detail: "en espera: la hace el nodo que atiende las cuentas"}, nil
	}
	done, err := n.accounts.Repair(ctx)
	if done.Freed == 0 {
		return jobs.Result{Status: jobs.Unchanged, Detail: "nada a medias"}, err
	}
	detail := fmt.Sprintf("%d a medias, liberados", done.Freed)
	progress(detail)
	return jobs.Result{Detail: detail}, err
}

// jobStates is what health says of the jobs.
func (n *node) jobStates() []platform.Job {
	var list []platform.Job
	for _, s := range n.jobs.States() {
		_, every := rareSpec(s.Job)
		list = append(list, platform.Job{
			Name: s.Job, Status: string(s.Status), Last: s.Last, Detail: s.Detail, Success: s.Success, Next: s.Next, Every: every,
		})
	}
	return list
}

type jobReply struct {
	Job     string     `json:"job"`
	Status  string     `json:"status"`
	Last    string     `json:"corrida,omitempty"`
	Detail  string     `json:"detalle,omitempty"`
	Success string     `json:"ultimo_exito,omitempty"`
	Next    string     `json:"siguiente,omitempty"`
	Runs    []jobs.Run `json:"corridas"` // newest first
}

func (n *node) listJobs(context.Context, json.RawMessage, func(string)) (any, error) {
	var replies []jobReply
	for _, s := range n.jobs.States() {
		r := jobReply{
			Job: s.Job, Status: string(s.Status), Detail: s.Detail,
			Last: timestampOr(s.Last, ""), Success: timestampOr(s.Success, ""), Next: timestampOr(s.Next, ""), Runs: []jobs.Run{},
		}
		for i := len(s.Runs) - 1; i >= 0; i-- {
			r.Runs = append(r.Runs, s.Runs[i])
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// timestampOr is a moment, or none when it is zero.
func timestampOr(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return civil.Timestamp(t)
}

type jobArgs struct {
	Job string `json:"job"`
}

func (n *node) runJob(ctx context.Context, raw json.RawMessage, progress func(string)) (any, error) {
	var a jobArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	r, err := n.jobs.Run(ctx, a.Job, progress)
	if r.Status == jobs.Interrupted {
		return nil, exitWith(exitTryAgain, "la corrida de %s quedó a la mitad porque el servidor se está cerrando: reintente", a.Job)
	}
	return r, err
}

type jobsList struct{}

func (c *jobsList) Run(a *app) error {
	var replies []jobReply
	if err := a.execute("jobs.list", mustExist, struct{}{}, &replies); err != nil {
		return err
	}
	return a.print(replies, func() {
		for _, r := range replies {
			fmt.Fprintf(a.stdout, "%-30s %-12s última %s  siguiente %s\n", r.Job, r.Status, orDash(r.Last), orDash(r.Next))
			failure := ""
			if len(r.Runs) > 0 {
				failure = r.Runs[0].Error
			}
			if r.Detail != "" && !strings.Contains(failure, r.Detail) {
				fmt.Fprintf(a.stdout, "  %s\n", r.Detail)
			}
			if failure != "" {
				fmt.Fprintf(a.stdout, "  error: %s\n", failure)
			}
		}
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type jobsRun struct {
	Job string `arg:"" name:"tarea" help:"Su nombre; vea «cotejo jobs list»."`
}

func (c *jobsRun) Run(a *app) error {
	var r jobs.Run
	err := a.change("jobs.run", mustExist, jobArgs{c.Job}, &r, "jobs list")
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	if err != nil {
		return err
	}
	err = a.print(r, func() { fmt.Fprintf(a.stdout, "%s  %s: %s\n", c.Job, r.Status, r.Detail) })
	if err == nil && r.Status == jobs.Unconfigured {
		return exitWith(exitConfig, "%s", r.Detail)
	}
	if err == nil && r.Status == jobs.Quarantined {
		return exitWith(exitPartial, "%s en cuarentena; vea «cotejo sources show %s»", c.Job, c.Job)
	}
	return err
}
