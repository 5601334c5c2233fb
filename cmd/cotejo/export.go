package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cotejo/accounts"
	"cotejo/admin"
	"cotejo/export"
	"cotejo/ingest"
	"cotejo/ledger"
)

type exportArgs struct {
	Kind string `json:"exportacion"`
	Dir  string `json:"carpeta"` // absolute
	Org  string `json:"org,omitempty"`
}

type exportReply struct {
	Dir     string        `json:"carpeta"`
	Kind    string        `json:"exportacion"`
	Files   []export.File `json:"archivos"`
	Batches uint64        `json:"lotes"` // of all groups, since the accounts began
	Sum     string        `json:"manifiesto_sha256"`
	Seconds float64       `json:"segundos"`
}

// size is how much was written, the manifest apart.
func (r *exportReply) size() (p export.Progress) {
	for _, f := range r.Files {
		p.Rows, p.Bytes = p.Rows+f.Rows, p.Bytes+f.Bytes
	}
	return p
}

// export exports the accounts of the open node, while it serves.
func (n *node) export(ctx context.Context, raw json.RawMessage, progress func(string)) (any, error) {
	var args exportArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	started := time.Now()
	org, err := n.orgOf(args.Org)
	if err != nil {
		return nil, err
	}
	if args.Kind == export.KindEvidence && org.Sandbox() {
		return nil, exitWith(exitUsage, "--org: %s es de pruebas y sus respuestas no son evidencia; la organización es %s", args.Org, accounts.FormatOrg(org.Entity()))
	}
	write := map[string]func(context.Context, string, export.Source) (export.Manifest, error){
		export.KindParquet: export.Parquet, export.KindEvidence: export.Evidence,
	}[args.Kind]
	if write == nil {
		return nil, exitWith(exitUsage, "no existe la exportación «%s»", args.Kind)
	}
	m, err := write(ctx, args.Dir, export.Source{
		Dir: n.path, Ledger: n.ledger, Org: org, Progress: exported(progress),
		Catalogue: n.sources, Anchor: anchorPath(n.config, n.path),
	})
	r := exportReply{Dir: args.Dir, Kind: args.Kind, Files: m.Files, Sum: m.Sum, Seconds: time.Since(started).Seconds()}
	for _, h := range m.Heads {
		r.Batches += h.Seq
	}
	return r, err
}

// orgOf reads the id of an organization that must exist; 0 is none.
func (n *node) orgOf(text string) (ledger.OrgID, error) {
	if text == "" {
		return 0, nil
	}
	id, err := accounts.ParseOrg(text)
	if err == nil {
		_, err = n.accounts.Organization(id)
	}
	return id, err
}

// exportEvery is the least time between two words of progress within a group.
const exportEvery = 200 * time.Millisecond

// exported says how far an export is, for exportProgress: at every group, and now and
// then within it.
func exported(progress func(string)) func(export.Progress) {
	var said time.Time
	group := -1
	return func(p export.Progress) {
		if p.Group == group && time.Since(said) < exportEvery {
			return
		}
		said, group = time.Now(), p.Group
		if line, err := json.Marshal(p); err == nil {
			progress(string(line))
		}
	}
}

// exportProgress draws what the owner of the accounts says: a bar on a terminal,
// otherwise a line for each group that is done.
type exportProgress struct {
	to   *ingest.Progress
	kind string
	at   export.Progress
}

func (p *exportProgress) line(text string) {
	var at export.Progress
	if json.Unmarshal([]byte(text), &at) != nil {
		return
	}
	if at.Group != p.at.Group {
		p.report(p.at.Group, at, true)
	}
	p.at = at
	p.report(at.Group, at, false)
}

// report tells of a group, whose rows and bytes are those of the export so far.
func (p *exportProgress) report(group int, at export.Progress, done bool) {
	p.to.Report(ingest.Step{
		Source: p.kind, Phase: ingest.Phase(fmt.Sprintf("grupo_%d/%d", group+1, export.Groups)),
		Bytes: at.Bytes, Rows: int(at.Rows), Done: done,
	})
}

type exportCmd struct {
	Parquet  string `xor:"what" required:"" placeholder:"CARPETA" help:"Tablas de registros, movimientos y uso, para SQL, en una carpeta nueva o vacía."`
	Evidence string `xor:"what" required:"" placeholder:"CARPETA" help:"Registros, actas, cadenas y manifiestos, para comprobarlos sin cotejo, en una carpeta nueva o vacía."`
	Org      string `help:"Solo lo de esta organización (org_…); en tablas, también lo de sus llaves de prueba." placeholder:"org_…"`
}

// Run asks whoever owns the data directory: a server goes on serving meanwhile.
func (c *exportCmd) Run(a *app) error {
	args := exportArgs{Kind: export.KindParquet, Dir: c.Parquet, Org: c.Org}
	if c.Evidence != "" {
		args.Kind, args.Dir = export.KindEvidence, c.Evidence
	}
	var err error
	if args.Dir, err = filepath.Abs(args.Dir); err != nil {
		return err
	}
	p := exportProgress{to: ingest.NewProgress(a.stderr), kind: args.Kind}
	var r exportReply
	err = a.executeTelling("export", mustExist, args, &r, p.line)
	if err == nil {
		p.report(export.Groups-1, r.size(), true)
	}
	p.to.Done()
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	if errors.Is(err, admin.ErrLost) {
		return fmt.Errorf("resultado desconocido: la exportación está completa si existe %s: %w", filepath.Join(args.Dir, export.ManifestName), err)
	}
	if err != nil {
		return err
	}
	return a.print(r, func() {
		fmt.Fprintf(a.stdout, "✓ %s en %s: %d archivos, %.1f MB, %.1f s\n", r.Kind, r.Dir, len(r.Files), float64(r.size().Bytes)/1e6, r.Seconds)
		for _, f := range r.Files {
			fmt.Fprintf(a.stdout, "  %-22s %10d filas  %12d bytes  %s\n", f.Path, f.Rows, f.Bytes, f.SHA256)
		}
		fmt.Fprintf(a.stdout, "manifiesto_sha256 %s\nContiene nombres y RFC: guárdela como se guarda un respaldo (docs/privacidad.md).\n", r.Sum)
	})
}
