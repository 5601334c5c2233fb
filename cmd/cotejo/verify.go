package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"cotejo/admin"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/store"
)

type verifyArgs struct {
	ID string `json:"id"` // a verification id, or "all"
}

type verifyReply struct {
	Records  int             `json:"registros"`
	Coincide int             `json:"coinciden"`
	Findings []admin.Finding `json:"hallazgos"` // the one asked for; of all: those that do not agree
	Files    []string        `json:"archivos_alterados"`
	Ledger   []string        `json:"libro"` // invariants that do not hold
	OK       bool            `json:"coincide"`
}

const (
	maxFindings   = 100 // listed; all are counted
	progressEvery = 100_000
)

// verify recomputes one answer or all of them; of all, it also compares every
// snapshot file with its hash and proves the ledger's invariants.
func (n *node) verify(ctx context.Context, raw json.RawMessage, progress func(string)) (any, error) {
	var args verifyArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	v := admin.Verifier{Sources: n.sources, Sandbox: n.sandbox}
	defer v.Close()
	reply := verifyReply{Findings: []admin.Finding{}, Files: []string{}, Ledger: []string{}}
	check := func(r ledger.Record) {
		f := v.Check(r)
		reply.Records++
		if f.OK() {
			reply.Coincide++
		}
		if (!f.OK() || args.ID != "all") && len(reply.Findings) < maxFindings {
			reply.Findings = append(reply.Findings, f)
		}
	}

	if args.ID != "all" {
		id, ok := n.ledger.ParseID(args.ID)
		if !ok {
			return nil, exitWith(exitUsage, "«%s» no es un verification_id de este servicio (como COM-20261120-1a2b3c4d)", args.ID)
		}
		found, err := n.ledger.Lookup(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil, exitWith(exitNotFound, "no existe la verificación %s en esta carpeta de datos", args.ID)
		} else if err != nil {
			return nil, err
		}
		check(found)
		reply.OK = reply.Records == reply.Coincide
		return reply, nil
	}

	for _, c := range []*snapshots.Catalogue{n.sources, n.sandbox} {
		bad, err := c.Verify(func(f snapshots.File) { progress("archivo " + f.Path) })
		if err != nil {
			return nil, err
		}
		for _, b := range bad {
			reply.Files = append(reply.Files, b.Error())
		}
	}
	report, err := ledger.Check(n.store)
	if err != nil && !errors.Is(err, ledger.ErrIntegrity) {
		return nil, err
	}
	for _, v := range report.Violations {
		reply.Ledger = append(reply.Ledger, fmt.Sprintf("cuenta %d: %s", v.Account, v.What))
	}
	err = n.ledger.Records(func(_ ledger.AccountID, r ledger.Record) error {
		check(r)
		if reply.Records%progressEvery == 0 {
			progress(fmt.Sprintf("%d registros", reply.Records))
		}
		return ctx.Err()
	})
	reply.OK = reply.Records == reply.Coincide && len(reply.Files) == 0 && len(reply.Ledger) == 0
	return reply, err
}

type verifyCmd struct {
	ID string `arg:"" help:"verification_id, o «all» para todo." placeholder:"ID|all"`
}

func (c *verifyCmd) Run(a *app) error {
	var r verifyReply
	if err := a.execute("verify", verifyArgs{c.ID}, &r); err != nil {
		return err
	}
	err := a.print(r, func() {
		for _, f := range r.Findings {
			fmt.Fprintf(a.stdout, "%s  %s\n  registro %s\n  edición  %s\n", f.ID, f.Verdict, f.SHA256, f.Edition)
			if f.Detail != "" {
				fmt.Fprintf(a.stdout, "  %s\n", f.Detail)
			}
		}
		for _, f := range r.Files {
			fmt.Fprintf(a.stdout, "archivo alterado: %s\n", f)
		}
		for _, l := range r.Ledger {
			fmt.Fprintf(a.stdout, "libro: %s\n", l)
		}
		if c.ID == "all" {
			verdict := "coincide"
			if !r.OK {
				verdict = "NO COINCIDE"
			}
			fmt.Fprintf(a.stdout, "%d registros, %d coinciden: %s\n", r.Records, r.Coincide, verdict)
		}
	})
	if err == nil && !r.OK {
		return exitWith(exitVerifyNo, "lo guardado no coincide con lo publicado; arriba se nombra qué")
	}
	return err
}

type checkCmd struct {
	RFC         string `arg:"" help:"RFC."`
	Sancionados bool   `default:"true" negatable:"" help:"Incluye el directorio de proveedores sancionados."`
}

// Run answers from the newest edition on disk, beside any server.
func (c *checkCmd) Run(a *app) error {
	rfc, err := checks.ParseRFC(c.RFC)
	if err != nil {
		return exitWith(exitUsage, "%v\nNo se consultó ni se cobró nada.", err)
	}
	if rfc.Generic() {
		return exitWith(exitUsage, "%s es un RFC genérico: no identifica a nadie. No se consultó nada.", rfc)
	}
	dir, err := openDataDir(a.config.get("data"))
	if err != nil {
		return err
	}
	manifest, err := dir.sources.LatestEdition()
	if err != nil {
		return fmt.Errorf("%w. Cargue la primera fuente: cotejo ingest sat_69b --data %s", err, dir.path)
	}
	ed, err := dir.sources.OpenEdition(manifest)
	if err != nil {
		return err
	}
	defer ed.Release()
	today := civil.Of(now())
	registro, _, err := query.AppendRegistro(nil, query.Company{RFC: rfc, Sanciones: c.Sancionados}, today, ed)
	if err != nil {
		return err
	}
	if a.json {
		_, err = fmt.Fprintf(a.stdout, "%s\n", registro)
		return err
	}
	return printAnswer(a.stdout, registro, ed)
}

// printAnswer tells an answer in the order of the questions a person has: what
// the file says, how old it is, how to check it.
func printAnswer(w io.Writer, registro []byte, ed *snapshots.Edition) error {
	var r struct {
		Fecha     civil.Date `json:"fecha"`
		Resultado struct {
			RFC   string `json:"rfc"`
			Lista struct {
				Estado      string `json:"estado"`
				Situaciones []struct {
					Situacion string `json:"situacion"`
					Nombre    string `json:"nombre"`
				} `json:"situaciones"`
				Fuente *struct {
					SHA256 string     `json:"sha256"`
					Corte  civil.Date `json:"corte"`
				} `json:"fuente"`
			} `json:"sat_69b"`
		} `json:"resultado"`
	}
	if err := json.Unmarshal(registro, &r); err != nil {
		return err
	}
	list := r.Resultado.Lista
	fmt.Fprintf(w, "%s\n", r.Resultado.RFC)
	switch {
	case list.Fuente == nil:
		fmt.Fprintln(w, "  Listado 69-B    Fuente no cargada (no equivale a «no aparece»)")
		return nil
	case len(list.Situaciones) == 0:
		fmt.Fprintln(w, "  Listado 69-B    No aparece en esta versión (no es una aprobación)")
	}
	for _, s := range list.Situaciones {
		fmt.Fprintf(w, "  Listado 69-B    Aparece: %s   %s\n", s.Situacion, s.Nombre)
	}
	if !list.Fuente.Corte.IsZero() {
		fmt.Fprintf(w, "  corte %s (%d días antes)", list.Fuente.Corte, list.Fuente.Corte.Days(r.Fecha))
	}
	_, err := fmt.Fprintf(w, "  archivo %s\n  edición %s\n", list.Fuente.SHA256, ed.Manifest().SHA256)
	return err
}

type recomputeCmd struct {
	Registro string `arg:"" default:"-" help:"Registro o su encabezado {edicion_sha256, entrada, fecha, motor}; «-» lee la entrada estándar."`
	Sandbox  bool   `help:"Busca la edición entre las de pruebas."`
}

// Run writes the registro's exact bytes, without a newline: their SHA-256 is
// the registro_sha256 of the answer.
func (c *recomputeCmd) Run(a *app) error {
	in := io.Reader(os.Stdin)
	if c.Registro != "-" {
		f, err := os.Open(c.Registro)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, 16<<20))
	if err != nil {
		return err
	}
	header, err := query.ReadHeader(bytes.TrimSpace(text))
	if err != nil {
		return &exitError{exitUsage, err}
	}
	dir, err := openDataDir(a.config.get("data"))
	if err != nil {
		return err
	}
	catalogue := dir.sources
	if c.Sandbox {
		catalogue = dir.sandbox
	}
	manifest, err := catalogue.EditionBySHA256(header.Edition)
	if err != nil {
		return fmt.Errorf("edición %s: %w", header.Edition, err)
	}
	ed, err := catalogue.OpenEdition(manifest)
	if err != nil {
		return err
	}
	defer ed.Release()
	registro, err := query.Recompute(header, ed)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(registro)
	return err
}
