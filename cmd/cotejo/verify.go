package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/VictoriaMetrics/metrics"

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
	Intact   int             `json:"no_recalculables"` // their hashes hold; this binary lacks their engine
	Findings []admin.Finding `json:"hallazgos"`        // the one asked for; of all: those that do not agree
	Files    []string        `json:"archivos_alterados"`
	Ledger   []string        `json:"libro"`           // invariants that do not hold
	HalfWay  []string        `json:"a_medias"`        // claims that lead to nothing; the task reclamos frees them
	Anchor   string          `json:"ancla,omitempty"` // where it stands beside the accounts; of all only
	OK       bool            `json:"coincide"`
}

var verifyFailures = metrics.NewCounter("cotejo_verify_failures_total")

const (
	maxFindings   = 100 // listed; all are counted
	progressEvery = 100_000
)

// verify recomputes one answer or all of them; of all, it also compares every
// snapshot file with its hash and proves the ledger's invariants. What cannot be
// read any more is part of the report, never the end of it.
func (n *node) verify(ctx context.Context, raw json.RawMessage, progress func(string)) (any, error) {
	var args verifyArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	v := &admin.Verifier{Sources: n.sources, Sandbox: n.sandbox}
	defer v.Close()
	reply := &verifyReply{Findings: []admin.Finding{}, Files: []string{}, Ledger: []string{}, HalfWay: []string{}}
	var err error
	if args.ID == "all" {
		err = n.verifyAll(ctx, v, reply, progress)
	} else {
		err = n.verifyOne(ctx, v, args.ID, reply)
	}
	wrong := reply.Records - reply.Coincide - reply.Intact + len(reply.Files) + len(reply.Ledger)
	verifyFailures.Add(wrong)
	reply.OK = wrong == 0
	return reply, err
}

func (r *verifyReply) add(f admin.Finding, listed bool) {
	r.Records++
	switch {
	case f.Verdict == admin.NoRecalculado:
		r.Intact++
	case f.OK():
		r.Coincide++
	}
	if (listed || !f.OK()) && len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
	}
}

func (n *node) verifyOne(ctx context.Context, v *admin.Verifier, text string, reply *verifyReply) error {
	id, ok := n.ledger.ParseID(text)
	if !ok {
		return exitWith(exitUsage, "«%s» no es un verification_id de este servicio (como COM-20261120-1a2b3c4d)", text)
	}
	found, err := n.ledger.Lookup(id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return exitWith(exitNotFound, "no existe la verificación %s en esta carpeta de datos", text)
	case unreadable(err):
		reply.add(admin.Finding{ID: text, Verdict: admin.Ilegible, Detail: err.Error()}, true)
		return nil
	case err != nil:
		return err
	}
	f, err := v.Check(found)
	if err == nil {
		err = v.CheckOfficial(ctx, &f, found)
	}
	if err == nil {
		reply.add(f, true)
	}
	return err
}

func (n *node) verifyAll(ctx context.Context, v *admin.Verifier, reply *verifyReply, progress func(string)) error {
	for _, c := range []*snapshots.Catalogue{n.sources, n.sandbox} {
		bad, err := c.Verify(ctx, func(f snapshots.File) { progress("archivo " + f.Path) })
		if err != nil {
			return err
		}
		for _, b := range bad {
			reply.Files = append(reply.Files, b.Error())
		}
	}
	report, err := ledger.Check(ctx, n.store)
	if err != nil && !unreadable(err) {
		return err
	}
	for _, v := range report.Violations {
		reply.Ledger = append(reply.Ledger, v.String())
	}
	if err != nil && len(report.Violations) == 0 {
		reply.Ledger = append(reply.Ledger, err.Error())
	}
	found, err := n.accounts.Check(ctx)
	if err != nil && !unreadable(err) {
		return err
	}
	if err != nil {
		reply.Ledger = append(reply.Ledger, "cuentas: "+err.Error())
	}
	reply.Ledger = append(reply.Ledger, found.Violations...)
	for _, c := range found.HalfWay {
		reply.HalfWay = append(reply.HalfWay, fmt.Sprintf("%s %s, desde %s", c.Purpose(), c.ID(), civil.Timestamp(c.Made)))
	}
	var held bool
	if held, reply.Anchor = n.anchorState(); !held {
		reply.Ledger = append(reply.Ledger, "ancla: "+reply.Anchor)
	}
	var stopped error // why the walk was ended from here
	err = n.ledger.Records(func(_ ledger.AccountID, r ledger.Record) error {
		if stopped = ctx.Err(); stopped != nil {
			return stopped
		}
		var f admin.Finding
		if f, stopped = v.Check(r); stopped != nil {
			return stopped
		}
		reply.add(f, false)
		if reply.Records%progressEvery == 0 {
			progress(fmt.Sprintf("%d registros", reply.Records))
		}
		return nil
	})
	if err != nil && stopped == nil && unreadable(err) {
		reply.add(admin.Finding{Verdict: admin.Ilegible, Detail: err.Error() + "; los registros que le siguen no se revisaron"}, false)
		return nil
	}
	return err
}

// unreadable tells what is wrong with the stored bytes, which is a finding, from
// what kept this process from reading them.
func unreadable(err error) bool {
	var errno syscall.Errno
	var exit *exitError
	switch {
	case err == nil, errors.As(err, &errno), errors.As(err, &exit),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrFenced), errors.Is(err, ledger.ErrClosed):
		return false
	}
	return true
}

type verifyCmd struct {
	ID string `arg:"" help:"verification_id, o «all» para todo." placeholder:"ID|all"`
}

func (c *verifyCmd) Run(a *app) error {
	var r verifyReply
	if err := a.execute("verify", mustExist, verifyArgs{c.ID}, &r); err != nil {
		return err
	}
	err := a.print(r, func() {
		for _, f := range r.Findings {
			fmt.Fprintf(a.stdout, "%s  %s\n", cmp.Or(f.ID, "(sin identificador)"), f.Verdict)
			if f.SHA256 != "" {
				fmt.Fprintf(a.stdout, "  registro %s\n  edición  %s\n", f.SHA256, f.Edition)
			}
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
		for _, c := range r.HalfWay {
			fmt.Fprintf(a.stdout, "a medias: %s; no se puede usar, y la tarea reclamos la libera\n", c)
		}
		if c.ID == "all" {
			verdict := "coincide"
			if !r.OK {
				verdict = "NO COINCIDE"
			}
			intact := ""
			if r.Intact > 0 {
				intact = fmt.Sprintf(", %d íntegros que este binario no recalcula", r.Intact)
			}
			fmt.Fprintf(a.stdout, "ancla %s\n%d registros, %d coinciden%s: %s\n", r.Anchor, r.Records, r.Coincide, intact, verdict)
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
	EnFecha     string `help:"Pregunta además por un día pasado, del 1900-01-01 a hoy." placeholder:"AAAA-MM-DD"`
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
	today := civil.Of(now())
	q := query.Company{RFC: rfc, Sanciones: c.Sancionados}
	if c.EnFecha != "" {
		if q.Past, err = query.ParseEnFecha(c.EnFecha); err != nil {
			return exitWith(exitUsage, "--en-fecha: %v", err)
		}
		if today.Before(q.Past) {
			return exitWith(exitUsage, "--en-fecha %s es posterior a hoy, %s (Ciudad de México)", q.Past, today)
		}
	}
	dir, err := a.openData(mustExist)
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
	registro, _, err := query.AppendRegistro(nil, q, today, ed)
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
		Resultado struct {
			RFC     string     `json:"rfc"`
			EnFecha civil.Date `json:"en_fecha"`
			List    list       `json:"sat_69b"`
			Bis     list       `json:"sat_69b_bis"`
			Art69   art69      `json:"sat_art69"`
		} `json:"resultado"`
	}
	if err := json.Unmarshal(registro, &r); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", r.Resultado.RFC)
	r.Resultado.List.print(w, "69-B", r.Resultado.EnFecha)
	r.Resultado.Bis.print(w, "69-B Bis", r.Resultado.EnFecha)
	r.Resultado.Art69.print(w, r.Resultado.EnFecha)
	_, err := fmt.Fprintf(w, "  edición %s\n", ed.Manifest().SHA256)
	return err
}

// list is the block of a list in an answer.
type list struct {
	listVersion
	EnFecha *struct {
		Version  listVersion `json:"version_en_fecha"`
		Efectiva struct {
			Estado      string      `json:"estado"`
			Situaciones []situation `json:"situaciones"`
		} `json:"efectiva"`
	} `json:"en_fecha"`
}

// listVersion is what one version says.
type listVersion struct {
	Situaciones []situation `json:"situaciones"`
	Primera     string      `json:"primera_version"`
	Fuente      *struct {
		SHA256 string     `json:"sha256"`
		Corte  civil.Date `json:"corte"`
		Orden  civil.Date `json:"fecha_de_orden"`
		Dias   *int       `json:"antiguedad_dias"`
		Old    bool       `json:"desactualizada"`
	} `json:"fuente"`
}

type situation struct {
	Situacion string `json:"situacion"`
	Nombre    string `json:"nombre"`
	Fecha     string `json:"fecha"`
	Motivo    string `json:"motivo"`
}

func (l *list) print(w io.Writer, name string, day civil.Date) {
	label := func(text string) { fmt.Fprintf(w, "  %-30s", text) }
	label("Listado " + name)
	if l.Fuente == nil {
		fmt.Fprintln(w, "Fuente no cargada (no equivale a «no aparece»)")
		return
	}
	l.listVersion.print(w)
	label("")
	fmt.Fprintf(w, "corte %s", cmp.Or(l.Fuente.Corte.String(), "no dicho"))
	if l.Fuente.Dias != nil {
		fmt.Fprintf(w, " (%d días antes)", *l.Fuente.Dias)
	}
	if l.Fuente.Old {
		fmt.Fprint(w, "; DESACTUALIZADA: hay o debería haber una más nueva")
	}
	fmt.Fprintln(w)
	label("")
	fmt.Fprintf(w, "archivo %s\n", l.Fuente.SHA256)
	if l.EnFecha == nil {
		return
	}
	label("  listado al " + day.String())
	if v := &l.EnFecha.Version; v.Fuente == nil {
		fmt.Fprintf(w, "No hay versión: la primera es del %s (no equivale a «no aparece»)\n", v.Primera)
	} else {
		v.print(w)
		label("")
		fmt.Fprintf(w, "versión del %s, archivo %s\n", v.Fuente.Orden, v.Fuente.SHA256)
	}
	label("  vigente el " + day.String())
	if len(l.EnFecha.Efectiva.Situaciones) == 0 {
		fmt.Fprintln(w, "Ninguna situación, según las fechas de la versión más reciente")
	}
	for i, s := range l.EnFecha.Efectiva.Situaciones {
		if i > 0 {
			label("")
		}
		if s.Motivo != "" {
			fmt.Fprintf(w, "No se puede decir: %s   %s\n", s.Motivo, s.Nombre)
		} else {
			fmt.Fprintf(w, "%s desde %s   %s\n", s.Situacion, s.Fecha, s.Nombre)
		}
	}
}

func (v *listVersion) print(w io.Writer) {
	if len(v.Situaciones) == 0 {
		fmt.Fprintln(w, "No aparece en esta versión (no es una aprobación)")
	}
	for i, s := range v.Situaciones {
		if i > 0 {
			fmt.Fprintf(w, "  %-30s", "")
		}
		fmt.Fprintf(w, "Aparece: %s   %s\n", s.Situacion, s.Nombre)
	}
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
	dir, err := a.openData(mustExist)
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
