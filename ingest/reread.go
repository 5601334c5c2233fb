package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// readInto reads the sealed bytes of a stage into its rows. before is called
// ahead of every piece, with the bytes of this pass and the rows so far.
func readInto(stage *snapshots.Stage, source *Source, before func(bytes int64, rows int) error) (tabular.Summary, error) {
	stage.Begin(source.Schema)
	return readRows(source, observe(stage.Open, func(bytes int64) error { return before(bytes, stage.Rows()) }), func(row snapshots.Row) error {
		if err := stage.Add(row); err != nil {
			return tabular.Refuse(tabular.Broken, fmt.Sprintf("la fila %d no se puede guardar (%v); revise el archivo oficial", stage.Rows()+1, err))
		}
		return nil
	})
}

// readRows calls the reader of the source. A row that makes it panic is a reason
// to refuse the file and spares the process.
func readRows(source *Source, official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = tabular.Refuse(tabular.Failed, fmt.Sprintf("el lector falló con este archivo (%v); conserve el archivo y repórtelo", p))
		}
	}()
	return source.Read(official, add)
}

// reread brings the history of a source to the reader of today: it reads again
// the official bytes of every version that only another reader has read, under
// the dates that are recorded. except is what a version to be published stands
// for itself.
func reread(ctx context.Context, c *snapshots.Catalogue, source *Source, e *snapshots.EditionEntry, except string) error {
	reader := source.Schema.Reader
	if e.Reader == reader {
		return nil
	}
	missing, err := c.Unread(e, reader, except)
	if err != nil {
		return err
	}
	for i := range missing {
		if err := restage(ctx, c, source, &missing[i]); err != nil {
			return fmt.Errorf("el lector %d no pudo leer la versión %d de la historia: %w", reader, missing[i].ID, err)
		}
	}
	return nil
}

func restage(ctx context.Context, c *snapshots.Catalogue, source *Source, v *snapshots.Version) error {
	o, err := originOf(v)
	if err != nil {
		return err
	}
	stage, err := stageAgain(c, v)
	if err != nil {
		return err
	}
	defer stage.Discard()
	sum, err := readInto(stage, source, func(int64, int) error { return ctx.Err() })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	o.Encoding, o.Counts = sum.Encoding, sum.Counts
	_, err = stage.Accept(o)
	return err
}

// stageAgain seals the kept official bytes of a version in a new stage.
func stageAgain(c *snapshots.Catalogue, v *snapshots.Version) (*snapshots.Stage, error) {
	official, err := c.Official(*v)
	if err != nil {
		return nil, err
	}
	defer official.Close()
	return stageOf(c, v.Source, official)
}

// stageOf seals official bytes in a new stage.
func stageOf(c *snapshots.Catalogue, source string, official io.Reader) (*snapshots.Stage, error) {
	stage, err := c.Stage(source)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(stage, official); err == nil {
		err = stage.Seal()
	}
	if err != nil {
		stage.Discard()
		return nil, err
	}
	return stage, nil
}

// originOf is what a manifest says of where its bytes came from.
func originOf(v *snapshots.Version) (o snapshots.Origin, err error) {
	o = snapshots.Origin{
		URL: v.URL, Obtained: v.Obtained, Corte: v.Corte, CorteFrom: v.CorteFrom,
		Encoding: v.Encoding, Counts: v.Counts, AcceptedFrom: v.AcceptedFrom,
	}
	if o.Downloaded, err = time.Parse(time.RFC3339, v.Downloaded); err != nil {
		return o, err
	}
	if v.Published != "" {
		o.Published, err = time.Parse(time.RFC3339, v.Published)
	}
	return o, err
}

// RebuildReport is what Rebuild found.
type RebuildReport struct {
	Checked  int      // files of rows and of history
	Restored []string // of them, those that were missing or damaged and are whole again, by path
	Differs  []string // what is not as recorded and could not be mended, in Spanish
}

// Rebuild reads the official bytes of every accepted version again and folds
// every edition's history again, compares both with what is recorded, and puts
// back the files that were lost or damaged. It holds the catalogue's lock, and
// calls progress, which may be nil, before each file. What differs is in the
// report; err is for what kept it from looking on.
//
// The rows of a version that another reader read cannot be made here: their file
// is compared with its hash.
func Rebuild(ctx context.Context, c *snapshots.Catalogue, progress func(string)) (report RebuildReport, err error) {
	unlock, err := c.Lock()
	if err != nil {
		return report, err
	}
	defer unlock()
	if progress == nil {
		progress = func(string) {}
	}
	versions, damaged, err := c.Versions()
	if err != nil {
		return report, err
	}
	editions, unreadable, err := c.Editions()
	if err != nil {
		return report, err
	}
	for _, err := range slices.Concat(damaged, unreadable) {
		report.differs(err)
	}
	seen := map[snapshots.File]bool{}
	check := func(f snapshots.File, what string, rebuild func() (restored bool, err error)) error {
		if seen[f] {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		seen[f] = true
		progress(what)
		restored, err := rebuild()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var corrupt *snapshots.CorruptError
		var refusal *tabular.Refusal
		if err != nil && !errors.As(err, &corrupt) && !errors.As(err, &refusal) && !errors.Is(err, snapshots.ErrOtherPacking) {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		report.Checked++
		if err != nil {
			report.differs(fmt.Errorf("%s: %w", what, err))
		} else if restored {
			report.Restored = append(report.Restored, f.Path)
		}
		return nil
	}
	for _, v := range versions {
		if v.RowsFile == nil {
			continue // in quarantine
		}
		if err := check(*v.RowsFile, fmt.Sprintf("%s: filas de la versión %d", v.Source, v.ID), func() (bool, error) {
			return rebuildRows(ctx, c, v)
		}); err != nil {
			return report, err
		}
	}
	for _, m := range editions {
		for _, e := range m.Sources {
			if err := check(e.History, fmt.Sprintf("%s: historia de la edición %d", e.Source, m.Number), func() (bool, error) {
				return c.RebuildHistory(e)
			}); err != nil {
				return report, err
			}
		}
	}
	return report, nil
}

func rebuildRows(ctx context.Context, c *snapshots.Catalogue, v snapshots.Version) (restored bool, err error) {
	source, ok := Lookup(v.Source)
	if !ok || source.Schema.Reader != v.Reader {
		if err := c.Intact(*v.RowsFile); err != nil {
			return false, fmt.Errorf("la leyó el lector %d, que este programa no tiene: reconstrúyala con el programa de entonces: %w", v.Reader, err)
		}
		return false, nil
	}
	return c.Rebuild(v, source.Schema, func(official snapshots.Opener, add func(snapshots.Row) error) error {
		_, err := readRows(&source, observe(official, func(int64) error { return ctx.Err() }), add)
		return err
	})
}

// differs notes each thing once: a damaged manifest is met more than once.
func (r *RebuildReport) differs(err error) {
	if text := err.Error(); !slices.Contains(r.Differs, text) {
		r.Differs = append(r.Differs, text)
	}
}

// observe calls before ahead of every read, with the bytes that were read since
// the opening.
func observe(official snapshots.Opener, before func(bytes int64) error) snapshots.Opener {
	return func() (io.ReadCloser, error) {
		r, err := official()
		if err != nil {
			return nil, err
		}
		return &observed{ReadCloser: r, before: before}, nil
	}
}

type observed struct {
	io.ReadCloser
	n      int64
	before func(int64) error
}

func (o *observed) Read(p []byte) (int, error) {
	if err := o.before(o.n); err != nil {
		return 0, err
	}
	n, err := o.ReadCloser.Read(p)
	o.n += int64(n)
	return n, err
}
