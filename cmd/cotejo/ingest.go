package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"cotejo/civil"
	"cotejo/ingest"
)

type ingestCmd struct {
	Sources []string `arg:"" optional:"" name:"fuente" help:"Fuentes; ninguna: todas."`
	File    []string `help:"Lee un archivo en lugar de descargar; .gz se desempaca." placeholder:"FUENTE=RUTA"`
	Mirror  *string  `help:"Raíz desde la que se descarga." placeholder:"URL"`
	Corte   string   `help:"Fecha de corte, si el archivo no la dice." placeholder:"AAAA-MM-DD"`
}

type ingestReply struct {
	Source  string   `json:"source"`
	Result  string   `json:"resultado"`
	Version int      `json:"source_version_id,omitempty"`
	Corte   string   `json:"corte,omitempty"`
	Rows    int      `json:"filas,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	Faults  []string `json:"motivos,omitempty"`
	Edition string   `json:"edicion_sha256,omitempty"`
}

// Run loads each source in turn. A running server of the same data directory
// picks the new edition up by itself.
func (c *ingestCmd) Run(a *app) error {
	requests, err := c.requests(a)
	if err != nil {
		return err
	}
	dir, err := a.openData(mayBeCreated)
	if err != nil {
		return err
	}
	var replies []ingestReply
	quarantined := 0
	for _, r := range requests {
		progress := ingest.NewProgress(a.stderr)
		r.Progress = progress.Report
		result, err := ingest.Ingest(a.ctx, dir.sources, r)
		progress.Done()
		if err != nil {
			return fmt.Errorf("%s: %w", r.Source, err)
		}
		reply := ingestReply{Source: r.Source, Result: string(result.Outcome)}
		if v := result.Version; v.ID != 0 {
			reply.Version, reply.Corte, reply.Rows, reply.SHA256 = v.ID, v.Corte.String(), v.Rows, v.SHA256
			for _, f := range result.Faults {
				reply.Faults = append(reply.Faults, f.Code+": "+f.Message)
			}
		}
		reply.Edition = result.Edition.SHA256
		if result.Outcome == ingest.Quarantined {
			quarantined++
		}
		replies = append(replies, reply)
	}
	err = a.print(replies, func() {
		for _, r := range replies {
			switch ingest.Outcome(r.Result) {
			case ingest.Activated:
				fmt.Fprintf(a.stdout, "%s  ✓ versión %d  corte %s  %d filas\n  sha256  %s\n  edición %s\n",
					r.Source, r.Version, orUnknown(r.Corte), r.Rows, r.SHA256, r.Edition)
			case ingest.Unchanged:
				fmt.Fprintf(a.stdout, "%s  ✓ sin cambio\n", r.Source)
			case ingest.Quarantined:
				fmt.Fprintf(a.stdout, "%s  ! versión %d en cuarentena; se sigue sirviendo la anterior\n  %s\n",
					r.Source, r.Version, strings.Join(r.Faults, "\n  "))
			}
		}
	})
	if err == nil && quarantined > 0 {
		return exitWith(exitPartial, "%d de %d fuentes en cuarentena", quarantined, len(requests))
	}
	return err
}

func orUnknown(corte string) string {
	if corte == "" {
		return "desconocido"
	}
	return corte
}

// requests turns the command line into one request for each source.
func (c *ingestCmd) requests(a *app) ([]ingest.Request, error) {
	var corte civil.Date
	if c.Corte != "" {
		var err error
		if corte, err = civil.Parse(c.Corte); err != nil {
			return nil, exitWith(exitUsage, "--corte: %w", err)
		}
	}
	var requests []ingest.Request
	for _, f := range c.File {
		source, path, ok := strings.Cut(f, "=")
		if !ok {
			return nil, exitWith(exitUsage, "--file «%s»: se espera FUENTE=RUTA, como sat_69b=Listado_completo_69-B.csv", f)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, &exitError{exitUsage, err}
		}
		requests = append(requests, ingest.Request{Source: source, File: path, Corte: corte, Now: now()})
	}
	names := c.Sources
	if len(names) == 0 && len(requests) == 0 {
		names = ingest.Sources()
	}
	for _, name := range names {
		requests = append(requests, ingest.Request{Source: name, Mirror: a.config.get("mirror"), Corte: corte, Now: now()})
	}
	for _, r := range requests {
		if !ingest.Known(r.Source) {
			return nil, exitWith(exitUsage, "no existe la fuente «%s»; hay: %s", r.Source, strings.Join(ingest.Sources(), ", "))
		}
	}
	if len(requests) == 0 {
		return nil, errors.New("no hay nada que cargar")
	}
	return requests, nil
}
