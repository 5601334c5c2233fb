package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/jobs"
)

type ingestCmd struct {
	Sources []string `arg:"" optional:"" name:"fuente" help:"Fuentes; ninguna: todas."`
	File    []string `help:"Lee un archivo en lugar de descargar; .gz se desempaca. Con una sola fuente basta la ruta." placeholder:"FUENTE=RUTA"`
	Mirror  *string  `help:"Raíz desde la que se descarga." placeholder:"URL"`
	Corte   string   `help:"Fecha de corte, si el archivo no la dice." placeholder:"AAAA-MM-DD"`
	History bool     `help:"Archivos antiguos: entran en la historia por su fecha; lo que está en servicio sigue sirviendo."`
}

type ingestReply struct {
	Source  string   `json:"source"`
	Result  string   `json:"resultado"`
	Past    int      `json:"versiones_en_historia,omitempty"` // of --history
	Version int      `json:"source_version_id,omitempty"`
	Corte   string   `json:"corte,omitempty"`
	Rows    int      `json:"filas,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	Faults  []string `json:"motivos,omitempty"`
	// Rejected names who decided that these bytes stay in quarantine.
	Rejected string `json:"rechazada_por,omitempty"`
	Edition  string `json:"edicion_sha256,omitempty"`
	Lacks    string `json:"falta,omitempty"` // what has to be configured first
}

// Run loads each source in turn; one that fails keeps no other from its turn. A running server of the same data directory
// picks the new edition up by itself.
func (c *ingestCmd) Run(a *app) error {
	requests, replies, err := c.requests(a)
	if err != nil {
		return err
	}
	dir, err := a.openData(mayBeCreated)
	if err != nil {
		return err
	}
	var failures []error
	quarantined := 0
	for _, r := range requests {
		progress := ingest.NewProgress(a.stderr)
		r.Progress, r.Free = progress.Report, roomOn(a.config, dir)
		reply, err := dir.load(a.ctx, r)
		progress.Done()
		if err != nil && a.ctx.Err() != nil {
			return fmt.Errorf("%s: %w", r.Source, err)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.Source, err))
			continue
		}
		if reply.waits() {
			quarantined++
		}
		replies = append(replies, reply)
	}
	if len(replies) == 0 {
		return errors.Join(failures...)
	}
	err = a.print(replies, func() {
		for _, r := range replies {
			fmt.Fprint(a.stdout, r.text())
		}
	})
	if len(failures) > 0 {
		return errors.Join(append(failures, err)...)
	}
	if err == nil && quarantined > 0 {
		return exitWith(exitPartial, "%d de %d fuentes en cuarentena", quarantined, len(requests))
	}
	return err
}

// load brings one source up to date: on the command line and on schedule.
func (d *dataDir) load(ctx context.Context, r ingest.Request) (ingestReply, error) {
	result, err := ingest.Ingest(ctx, d.sources, r)
	if errors.Is(err, ingest.ErrNotOffered) {
		return ingestReply{Source: r.Source, Result: notOffered}, nil
	}
	if err != nil {
		return ingestReply{}, err
	}
	reply := newIngestReply(r.Source, &result)
	if r.History {
		for _, e := range result.Edition.Sources {
			if e.Source == r.Source {
				reply.Past = len(e.Chain)
			}
		}
	}
	return reply, nil
}

func newIngestReply(source string, result *ingest.Result) ingestReply {
	reply := ingestReply{Source: source, Result: string(result.Outcome), Edition: result.Edition.SHA256}
	if v := result.Version; v.ID != 0 {
		reply.Version, reply.Corte, reply.Rows, reply.SHA256 = v.ID, v.Corte.String(), v.Rows, v.SHA256
		for _, f := range result.Faults {
			reply.Faults = append(reply.Faults, f.Code+": "+f.Message)
		}
	}
	if result.Outcome == ingest.Quarantined && result.Decision != nil {
		reply.Rejected = result.Decision.Who
	}
	return reply
}

// waits reports whether a person has yet to decide about what came.
func (r *ingestReply) waits() bool {
	return r.Result == string(ingest.Quarantined) && r.Rejected == ""
}

// notOffered is the result for a list that the authority does not link.
const notOffered = "no_ofrecida"

// brief is one line for everybody: it names no person.
func (r *ingestReply) brief() string {
	switch outcome := ingest.Outcome(r.Result); {
	case r.Result == notOffered:
		return ingest.ErrNotOffered.Error()
	case outcome == ingest.Activated && r.Past > 1:
		return fmt.Sprintf("versión %d, corte %s, %d filas, en la historia (%d versiones)", r.Version, orUnknown(r.Corte), r.Rows, r.Past)
	case outcome == ingest.Activated:
		return fmt.Sprintf("versión %d, corte %s, %d filas", r.Version, orUnknown(r.Corte), r.Rows)
	case r.waits():
		return fmt.Sprintf("versión %d en cuarentena; se sigue sirviendo la anterior", r.Version)
	case outcome == ingest.Quarantined:
		return fmt.Sprintf("sin cambio: es la versión %d, que se rechazó", r.Version)
	default:
		return "sin cambio"
	}
}

// text is for a person on a terminal.
func (r *ingestReply) text() string {
	switch {
	case r.Lacks != "":
		return fmt.Sprintf("%s  - sin configurar: %s\n", r.Source, r.Lacks)
	case r.Result == notOffered:
		return fmt.Sprintf("%s  - %s\n", r.Source, r.brief())
	case r.Result == string(ingest.Activated):
		return fmt.Sprintf("%s  ✓ %s\n  sha256  %s\n  edición %s\n", r.Source, r.brief(), r.SHA256, r.Edition)
	case r.waits():
		return fmt.Sprintf("%s  ! %s\n  %s\n", r.Source, r.brief(), strings.Join(r.Faults, "\n  "))
	case r.Rejected != "":
		return fmt.Sprintf("%s  ✓ sin cambio: es la versión %d, que rechazó %s\n", r.Source, r.Version, r.Rejected)
	default:
		return fmt.Sprintf("%s  ✓ %s\n", r.Source, r.brief())
	}
}

func orUnknown(corte string) string {
	if corte == "" {
		return "desconocido"
	}
	return corte
}

// requests turns the command line into one request for each source. Who asks for
// all of them does not ask for those that cannot be had before something is
// configured: they are replied to already.
func (c *ingestCmd) requests(a *app) (requests []ingest.Request, lacking []ingestReply, err error) {
	var corte civil.Date
	if c.Corte != "" {
		if corte, err = civil.Parse(c.Corte); err != nil {
			return nil, nil, exitWith(exitUsage, "--corte: %w", err)
		}
	}
	if c.History && (len(c.File) == 0 || len(c.Sources) > 0) {
		return nil, nil, exitWith(exitUsage, "--history toma archivos: cotejo ingest --history --file FUENTE=RUTA")
	}
	if c.History && c.Corte != "" && len(c.File) > 1 {
		return nil, nil, exitWith(exitUsage, "--corte es la fecha de un archivo: cárguelos uno por uno")
	}
	names := c.Sources
	for _, f := range c.File {
		source, path, ok := strings.Cut(f, "=")
		if !ok && len(c.Sources) == 1 && len(c.File) == 1 { // the file of the source that is named
			source, path, ok, names = c.Sources[0], f, true, nil
		}
		if !ok {
			return nil, nil, exitWith(exitUsage, "--file «%s»: se espera FUENTE=RUTA, como sat_69b=Listado_completo_69-B.csv", f)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, nil, exitWith(exitUsage, "--file: no se puede leer el archivo: %w", err)
		}
		requests = append(requests, ingest.Request{Source: source, File: path, Corte: corte, History: c.History, Now: now()})
	}
	if len(names) == 0 && len(requests) == 0 {
		for _, id := range ingest.Sources() {
			if lacks := a.config.lacks(id); lacks != "" {
				lacking = append(lacking, ingestReply{Source: id, Result: string(jobs.Unconfigured), Lacks: lacks})
			} else {
				names = append(names, id)
			}
		}
	}
	for _, name := range names {
		requests = append(requests, ingest.Request{
			Source: name, Mirror: a.config.get("mirror"), Access: a.config.access(name), Corte: corte, Now: now(),
		})
	}
	for _, r := range requests {
		if !ingest.Known(r.Source) {
			return nil, nil, exitWith(exitUsage, "no existe la fuente «%s»; hay: %s", r.Source, strings.Join(ingest.Sources(), ", "))
		}
	}
	if len(requests) == 0 {
		return nil, nil, errors.New("no hay nada que cargar")
	}
	return requests, lacking, nil
}
