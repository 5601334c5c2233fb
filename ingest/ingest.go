// Package ingest brings official publications into the catalogue: it obtains the
// bytes, reads them into rows, checks them, and makes a new edition of what
// passes. What does not pass is kept with the reasons and never served; what has
// not changed makes no version.
//
// It promises that an interrupted or failed ingestion publishes nothing, and
// that the rows depend on the official bytes and the reader alone. It never
// answers questions and never decides what a row means for anyone.
//
// ingest.go is the way of one file from its server to an edition; source.go says
// which publications there are, obtain.go and download.go get their bytes,
// gates.go says what may be served. Reading a source is a folder of its own
// (sat69b) on top of what all tables share (tabular).
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// Request asks for one source to be brought up to date. Without Content, File
// and Mirror it is downloaded from its official address.
type Request struct {
	Source string // id

	// Content opens the official bytes and Name is what their file is called.
	Content func() (io.ReadCloser, error)
	Name    string
	// File is a path; a file packed with gzip is unpacked.
	File string
	// Mirror is the address that takes the place of the official one, without the
	// path of the publication.
	Mirror string

	Corte    civil.Date // cut date, for files that state none
	Now      time.Time
	Progress func(Step) // may be nil; called from the goroutine of Ingest
}

// Outcome is how an ingestion ended.
type Outcome string

const (
	// Activated: a new version is in a new edition.
	Activated Outcome = "activada"
	// Unchanged: the bytes are those of the version in service.
	Unchanged Outcome = "sin_cambio"
	// Quarantined: the bytes are kept and not served. The same bytes quarantined
	// again make no second version.
	Quarantined Outcome = "cuarentena"
)

// Result is what became of a file.
type Result struct {
	Outcome Outcome
	Version snapshots.Version         // the one that the bytes belong to
	Edition snapshots.EditionManifest // in service afterwards; zero when there is none
}

// Ingest holds the catalogue's lock while it works: snapshots.ErrBusy when
// another process does. ErrUnavailable and tabular.ErrTooLarge say that there
// was no file to judge; a file that must not be served is not an error but the
// outcome Quarantined. When ctx ends, nothing is published and its error is
// returned.
func Ingest(ctx context.Context, c *snapshots.Catalogue, r Request) (result Result, err error) {
	source, ok := Lookup(r.Source)
	if !ok {
		return Result{}, fmt.Errorf("no existe la fuente «%s»; hay: %v", r.Source, Sources())
	}
	unlock, err := c.Lock()
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	in := ingestion{Request: r, source: &source, catalogue: c}
	if err := in.context(); err != nil {
		return Result{}, err
	}
	if in.stage, err = c.Stage(source.Schema.Source); err != nil {
		return Result{}, err
	}
	defer in.stage.Discard()
	if err := in.obtain(ctx); err != nil {
		return Result{}, err
	}
	if len(in.faults) == 0 {
		if result, done, err := in.seen(); done || err != nil {
			return result, err
		}
		if in.faults, err = in.read(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, context.Cause(ctx)
	}
	if len(in.faults) > 0 {
		return in.quarantine()
	}
	return in.activate()
}

// ingestion is one file on its way.
type ingestion struct {
	Request
	source    *Source
	catalogue *snapshots.Catalogue
	edition   snapshots.EditionManifest // newest; zero when there is none
	active    *snapshots.Version        // in it; nil when there is none

	stage  *snapshots.Stage
	origin snapshots.Origin
	faults []snapshots.Fault // why the file must not be served
}

// context finds what is in service now.
func (in *ingestion) context() error {
	m, err := in.catalogue.LatestEdition()
	if errors.Is(err, snapshots.ErrNoEdition) {
		return nil
	}
	if err != nil {
		return err
	}
	in.edition = m
	for _, e := range m.Sources {
		if e.Source == in.source.Schema.Source {
			v, err := in.catalogue.Version(e.VersionID)
			if err != nil {
				return err
			}
			in.active = &v
		}
	}
	return nil
}

// obtain moves the official bytes into the stage.
func (in *ingestion) obtain(ctx context.Context) error {
	o, err := obtain(ctx, in.source, &in.Request)
	if err != nil {
		return err
	}
	defer o.body.Close()
	in.origin = snapshots.Origin{
		URL:        in.source.URL(),
		Obtained:   o.from,
		Corte:      in.Corte,
		Published:  o.published,
		Downloaded: in.Now,
	}
	var got int64
	buf := make([]byte, 128<<10)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := o.body.Read(buf)
		if got += int64(n); got > o.max {
			return fmt.Errorf("%w de %d bytes: %s", tabular.ErrTooLarge, o.max, o.from)
		}
		if _, err := in.stage.Write(buf[:n]); err != nil {
			return err
		}
		ended := err == io.EOF
		if errors.Is(err, io.ErrUnexpectedEOF) {
			ended = true
			in.faults = []snapshots.Fault{short(got, o.total)}
		} else if err != nil && !ended {
			return err
		}
		in.report(Step{Phase: Obtaining, Bytes: got, Total: o.total, Done: ended})
		if ended {
			return in.stage.Seal()
		}
	}
}

// seen ends the ingestion of bytes that need no reading: those in service, and
// those of a version that was accepted by a process that died before it could
// publish it.
func (in *ingestion) seen() (result Result, done bool, err error) {
	if in.active != nil && in.active.SHA256 == in.stage.SHA256() {
		err = in.catalogue.Checked(in.source.Schema.Source, in.Now)
		return Result{Unchanged, *in.active, in.edition}, true, err
	}
	v, err := in.find(func(v *snapshots.Version) bool {
		return len(v.Faults) == 0 && v.Reader == in.source.Schema.Reader && (in.active == nil || v.ID > in.active.ID)
	})
	if v == nil || err != nil {
		return Result{}, false, err
	}
	result, err = in.publish(*v)
	return result, true, err
}

// find returns the newest version of this source with the staged bytes that is
// wanted, nil when there is none.
func (in *ingestion) find(wanted func(*snapshots.Version) bool) (*snapshots.Version, error) {
	versions, err := in.catalogue.Versions()
	if err != nil {
		return nil, err
	}
	for i := len(versions) - 1; i >= 0; i-- {
		v := &versions[i]
		if v.Source == in.source.Schema.Source && v.SHA256 == in.stage.SHA256() && wanted(v) {
			return v, nil
		}
	}
	return nil, nil
}

// read maps the staged bytes to rows and says what keeps them from being served.
func (in *ingestion) read(ctx context.Context) ([]snapshots.Fault, error) {
	official, err := in.stage.Open()
	if err != nil {
		return nil, err
	}
	defer official.Close()
	in.stage.Begin(in.source.Schema)
	step := Step{Phase: Reading, Total: in.stage.Size()}
	sum, err := in.rows(&observed{Reader: official, before: func(n int64) error {
		step.Bytes = n
		in.report(step)
		return ctx.Err()
	}}, func(row snapshots.Row) error {
		step.Rows++
		if err := in.stage.Add(row); err != nil {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("la fila %d no se puede guardar (%v); revise el archivo oficial", step.Rows, err))
		}
		return nil
	})
	if sum.Corte.IsZero() {
		sum.Corte = in.Corte
	}
	in.origin.Corte, in.origin.Encoding, in.origin.Counts = sum.Corte, sum.Encoding, sum.Counts
	var refusal *tabular.Refusal
	switch {
	case errors.As(err, &refusal):
		return []snapshots.Fault{refusal.Fault}, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	step.Done = true
	in.report(step)
	return gates(&sum, in.active), nil
}

// rows calls the reader of the source. A row that makes it panic quarantines the
// file and spares the process.
func (in *ingestion) rows(official io.Reader, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = tabular.Refuse(tabular.Failed, fmt.Sprintf("el lector falló con este archivo (%v); conserve el archivo y repórtelo", p))
		}
	}()
	return in.source.Read(official, add)
}

// quarantine keeps the bytes and the reasons, once.
func (in *ingestion) quarantine() (Result, error) {
	known, err := in.find(func(v *snapshots.Version) bool { return len(v.Faults) > 0 })
	if err != nil {
		return Result{}, err
	}
	if known != nil {
		err := in.catalogue.Checked(in.source.Schema.Source, in.Now)
		return Result{Quarantined, *known, in.edition}, err
	}
	v, err := in.stage.Quarantine(in.origin, in.faults)
	if err != nil {
		return Result{}, err
	}
	return Result{Quarantined, v, in.edition}, nil
}

func (in *ingestion) activate() (Result, error) {
	step := Step{Phase: Saving, Rows: in.stage.Rows()}
	in.report(step)
	v, err := in.stage.Accept(in.origin)
	if err != nil {
		return Result{}, err
	}
	step.Done = true
	in.report(step)
	return in.publish(v)
}

func (in *ingestion) publish(v snapshots.Version) (Result, error) {
	step := Step{Phase: Publishing, Rows: v.Rows}
	in.report(step)
	m, err := in.catalogue.Publish(v, in.Now)
	if err != nil {
		return Result{}, err
	}
	step.Done = true
	in.report(step)
	return Result{Activated, v, m}, nil
}

func (in *ingestion) report(s Step) {
	if in.Progress != nil {
		s.Source = in.source.Schema.Source
		in.Progress(s)
	}
}

// observed calls before with the bytes read so far before every read.
type observed struct {
	io.Reader
	n      int64
	before func(n int64) error
}

func (o *observed) Read(p []byte) (int, error) {
	if err := o.before(o.n); err != nil {
		return 0, err
	}
	n, err := o.Reader.Read(p)
	o.n += int64(n)
	return n, err
}
