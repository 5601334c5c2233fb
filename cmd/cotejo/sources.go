package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cotejo/ingest"
	"cotejo/products/platform"
	"cotejo/snapshots"
)

// The operator's commands on sources. They read and write the catalogue's files:
// a running server picks an edition up by itself.

type sourcesList struct{}

func (c *sourcesList) Run(a *app) error {
	dir, err := a.openData(mustExist)
	if err != nil {
		return err
	}
	states, err := dir.describeSources(a.config)
	if err != nil {
		return err
	}
	return a.print(states, func() {
		for _, s := range states {
			fmt.Fprint(a.stdout, sourceLine(&s))
		}
	})
}

// describeSources is what /v1/salud says of the newest edition.
func (d *dataDir) describeSources(config configuration) ([]platform.SourceState, error) {
	m, err := d.sources.LatestEdition()
	if err != nil && !errors.Is(err, snapshots.ErrNoEdition) {
		return nil, err
	}
	return platform.DescribeSources(d.sources, &m, now(), config.lacks), nil
}

// sourceLine says in a line what answers, and below what needs a look.
func sourceLine(s *platform.SourceState) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s %-13s ", s.Source, s.State)
	if s.VersionID != nil {
		fmt.Fprintf(&b, "versión %d  corte %s  %d filas  hace %d días ", *s.VersionID, orUnknown(text(s.Corte)), *s.Rows, *s.Age)
		if s.MaxAge != nil {
			fmt.Fprintf(&b, "(se espera cada %d)  ", *s.MaxAge)
		}
	}
	fmt.Fprintf(&b, "revisada %s\n", orDash(text(s.Checked)))
	if q := s.Quarantine; q != nil && q.Decision != nil {
		fmt.Fprintf(&b, "  versión %d en cuarentena, %s el %s\n", q.VersionID, q.Decision.Result, q.Decision.At)
	} else if q != nil {
		fmt.Fprintf(&b, "  versión %d en cuarentena; vea «cotejo sources show %s»\n", q.VersionID, s.Source)
	}
	if s.Failure != nil {
		fmt.Fprintf(&b, "  %s\n", *s.Failure)
	}
	if s.Help != nil {
		fmt.Fprintf(&b, "  %s\n", *s.Help)
	}
	for _, n := range s.Notices {
		fmt.Fprintf(&b, "  aviso %s: %s\n", n.Code, n.Message)
	}
	return b.String()
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

type sourcesShow struct {
	Source string `arg:"" name:"fuente" help:"Su id, como sat_69b."`
}

type sourceReply struct {
	platform.SourceState
	URL      string              `json:"url"`
	Partials []snapshots.Partial `json:"parciales"` // of the last attempt, with examples
	Versions []versionReply      `json:"versiones"` // newest first
}

type versionReply struct {
	ID         int               `json:"source_version_id"`
	State      string            `json:"estado"`
	Serving    bool              `json:"responde"`
	Corte      string            `json:"corte,omitempty"`
	Downloaded string            `json:"descargada"`
	Rows       int               `json:"filas"`
	SHA256     string            `json:"sha256"`
	Obtained   string            `json:"obtenida_de"`
	Faults     []snapshots.Fault `json:"motivos"`
	// Accepted is the version in quarantine whose bytes a person accepted as this one.
	Accepted  int                  `json:"aceptada_de,omitempty"`
	Decisions []snapshots.Decision `json:"decisiones"` // newest first
}

func (c *sourcesShow) Run(a *app) error {
	source, ok := ingest.Lookup(c.Source)
	if !ok {
		return exitWith(exitUsage, "no existe la fuente «%s»; hay: %s", c.Source, strings.Join(ingest.Sources(), ", "))
	}
	dir, err := a.openData(mustExist)
	if err != nil {
		return err
	}
	states, err := dir.describeSources(a.config)
	if err != nil {
		return err
	}
	r := sourceReply{SourceState: platform.SourceState{Source: c.Source, State: notOffered}, URL: source.URL(), Partials: []snapshots.Partial{}, Versions: []versionReply{}}
	for _, s := range states {
		if s.Source == c.Source {
			r.SourceState = s
		}
	}
	if last, ok, err := dir.sources.LastAttempt(c.Source); err == nil && ok {
		r.Partials = append(r.Partials, last.Partials...)
	}
	versions, damaged, err := dir.sources.Versions()
	if err != nil {
		return err
	}
	decisions, unread, err := dir.sources.Decisions()
	if err != nil {
		return err
	}
	damaged = append(damaged, unread...)
	for _, v := range slices.Backward(versions) {
		if v.Source == c.Source {
			r.Versions = append(r.Versions, newVersionReply(&v, r.VersionID != nil && *r.VersionID == v.ID, decisions))
		}
	}
	err = a.print(r, func() {
		fmt.Fprintf(a.stdout, "%s  %s\n", sourceLine(&r.SourceState), r.URL)
		for _, p := range r.Partials {
			fmt.Fprint(a.stdout, partialLines(&p))
		}
		for _, v := range r.Versions {
			fmt.Fprint(a.stdout, v.text())
		}
	})
	return errors.Join(append([]error{err}, damaged...)...)
}

func newVersionReply(v *snapshots.Version, serving bool, decisions []snapshots.Decision) versionReply {
	r := versionReply{
		ID: v.ID, State: v.State, Serving: serving, Corte: v.Corte.String(), Downloaded: v.Downloaded,
		Rows: v.Rows, SHA256: v.SHA256, Obtained: v.Obtained, Faults: append([]snapshots.Fault{}, v.Faults...),
		Accepted: v.AcceptedFrom, Decisions: []snapshots.Decision{},
	}
	for _, d := range slices.Backward(decisions) {
		if d.VersionID == v.ID {
			r.Decisions = append(r.Decisions, d)
		}
	}
	return r
}

func (v *versionReply) text() string {
	mark := " "
	if v.Serving {
		mark = "*"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %5d  %-10s  corte %-11s  descargada %s  %d filas\n         %s  %s\n",
		mark, v.ID, v.State, orUnknown(v.Corte), v.Downloaded, v.Rows, v.SHA256, v.Obtained)
	for _, f := range v.Faults {
		fmt.Fprintf(&b, "         %s: %s\n", f.Code, f.Message)
	}
	if v.Accepted != 0 {
		fmt.Fprintf(&b, "         son los bytes de la versión %d, que se aceptó\n", v.Accepted)
	}
	for _, d := range v.Decisions {
		fmt.Fprintf(&b, "         %s por %s el %s: %s\n", d.Decision, d.Who, d.At, d.Why)
	}
	return b.String()
}

func partialLines(p *snapshots.Partial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  parcial %s: %s  corte %s  %d filas", p.File, p.State, orUnknown(p.Corte.String()), p.Rows)
	if p.Missing+p.Extra > 0 { // counted only when both are of one corte
		fmt.Fprintf(&b, ", faltan %d, sobran %d", p.Missing, p.Extra)
	}
	b.WriteByte('\n')
	if p.Message != "" {
		fmt.Fprintf(&b, "    %s\n", p.Message)
	}
	for _, example := range p.Example {
		fmt.Fprintf(&b, "    %s\n", example)
	}
	return b.String()
}

// decision is what both commands of a decision take. Who and why are kept for
// good, in the catalogue.
type decision struct {
	Version int    `arg:"" name:"versión" help:"Su source_version_id; vea «cotejo sources show FUENTE»."`
	Who     string `required:"" help:"Quién decide." placeholder:"NOMBRE"`
	Why     string `required:"" help:"Por qué: qué se comparó y con qué." placeholder:"MOTIVO"`
}

type decisionReply struct {
	Decision snapshots.Decision `json:"decision"`
	Result   *ingestReply       `json:"resultado,omitempty"` // of an acceptance: what serves
}

type sourcesAccept struct{ decision }

func (c *sourcesAccept) Run(a *app) error {
	dir, err := a.openData(mustExist)
	if err != nil {
		return err
	}
	result, err := ingest.Accept(a.ctx, dir.sources, c.Version, c.Who, c.Why, now())
	if err != nil {
		return err
	}
	reply := newIngestReply(result.Version.Source, &result)
	return a.print(decisionReply{*result.Decision, &reply}, func() {
		fmt.Fprintf(a.stdout, "versión %d aceptada por %s\n%s", c.Version, result.Decision.Who, reply.text())
	})
}

type sourcesReject struct{ decision }

func (c *sourcesReject) Run(a *app) error {
	dir, err := a.openData(mustExist)
	if err != nil {
		return err
	}
	d, err := ingest.Reject(dir.sources, c.Version, c.Who, c.Why, now())
	if err != nil {
		return err
	}
	return a.print(decisionReply{Decision: d}, func() {
		fmt.Fprintf(a.stdout, "%s  versión %d rechazada por %s: sigue en cuarentena y no levanta más alertas\n", d.Source, d.VersionID, d.Who)
	})
}
