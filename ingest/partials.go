package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cotejo/civil"
	"cotejo/ingest/sat69b"
	"cotejo/query"
	"cotejo/snapshots"
)

// partials69B are the lists that the SAT publishes beside the complete one, in
// its folder, with the situation that each is of.
var partials69B = [...]struct{ file, situation string }{
	{"Definitivos.csv", "Definitivo"},
	{"Presuntos.csv", "Presunto"},
	{"Desvirtuados.csv", "Desvirtuado"},
	{"SentenciasFavorables.csv", "Sentencia Favorable"},
}

const (
	// maxPartial is several times what the largest of them has measured (3.8 MB).
	// One at a time is held in memory: only its end tells its encoding.
	maxPartial = 16 << 20
	// partialsDeadline bounds how long all of them may take together.
	partialsDeadline = 5 * time.Minute
	// maxExamples and maxExampleRunes bound what is kept of a difference, and
	// maxPartialMessage what a server can make us say of its failure (bytes).
	maxExamples       = 10
	maxExampleRunes   = 60
	maxPartialMessage = 400
)

// States of a snapshots.Partial.
const (
	partialAgrees   = "concuerda"
	partialDiffers  = "difiere"
	partialOtherCut = "otro_corte"
	partialMissing  = "no_obtenido"
)

// noticePartialDiffers is the code of the notice for each list that differs.
const noticePartialDiffers = "PARCIAL_DIFIERE"

// lookBeside compares the partial lists with what serves, and adds to the record
// of the attempt what they say. Where it finds another record, or another process
// keeps the catalogue, that is left for the next time.
func (in *ingestion) lookBeside(ctx context.Context, r *Result) {
	found := in.comparePartials(ctx, &r.Version)
	if found == nil {
		return
	}
	unlock, err := in.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	last, ok, err := in.catalogue.LastAttempt(r.Version.Source)
	if err != nil || !ok || last.At != civil.Timestamp(in.Now) || last.Outcome != string(r.Outcome) || last.VersionID != r.Version.ID {
		return
	}
	last.Partials, last.Notices = found, append(last.Notices, differing(found)...)
	_ = in.catalogue.RecordAttempt(last)
}

// comparePartials looks at the lists that the authority publishes beside v, which
// is in service, and says how far they agree with it. They are not kept, nothing
// is answered from them, and no failure of theirs is one of the ingestion.
//
// A file that someone had has no such neighbours: only a download does.
func (in *ingestion) comparePartials(ctx context.Context, v *snapshots.Version) []snapshots.Partial {
	if v.Source != query.Sat69B.Source || in.loose() {
		return nil
	}
	timed, cancel := context.WithTimeoutCause(ctx, partialsDeadline,
		fmt.Errorf("%w: las listas parciales no llegaron todas en %v", ErrUnavailable, partialsDeadline))
	defer cancel()
	listed, unread := rollOf(timed, func() (io.ReadCloser, error) { return in.catalogue.Official(*v) })
	d, err := overHTTP.reach(v.Source, in.Access)
	if err != nil {
		return nil // the list itself was not downloaded either
	}
	d = d.brief()
	var found []snapshots.Partial
	for _, list := range partials69B {
		address := in.beside(list.file)
		p := snapshots.Partial{File: list.file, URL: public(address), State: partialMissing}
		if unread != nil {
			p.Message = "la lista completa no se pudo leer en el equipo que carga las fuentes; ejecute ahí cotejo verify"
		} else if err := d.comparePartial(timed, &p, v, address, list.situation, listed, in.report); err != nil {
			what := err.Error()
			if f, ok := errors.AsType[*failure](err); ok {
				what = f.what
			}
			p.State, p.Message = partialMissing, cut(what, maxPartialMessage)
		}
		if ctx.Err() != nil {
			return nil // interrupted: nothing is known of the lists
		}
		found = append(found, p)
	}
	return found
}

// beside is the address of a file in the folder where the publication was found.
func (in *ingestion) beside(file string) string {
	return in.from.address[:strings.LastIndexByte(in.from.address, '/')+1] + file
}

// comparePartial fills p with what one list says beside v. A list that makes the
// reader panic spares the process.
func (d *downloader) comparePartial(ctx context.Context, p *snapshots.Partial, v *snapshots.Version, address, situation string, listed Roll, report func(Step)) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("el lector falló con este archivo (%v); repórtelo", fault)
		}
	}()
	content, err := d.content(ctx, address, maxPartial, report)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	p.SHA256 = hex.EncodeToString(sum[:])
	partial := func(add func(rfc, situation string) error) error {
		read, err := sat69b.ReadPartial(until(ctx, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}), add)
		p.Corte, p.Rows = read.Corte, read.Rows
		if err == nil && read.Unended {
			err = errors.New("su último renglón no termina: puede estar cortada")
		}
		return err
	}
	found, err := Compare(listed, situation, partial)
	switch {
	case err != nil:
		return err
	case p.Corte != v.Corte && !p.Corte.IsZero() && !v.Corte.IsZero():
		p.State = partialOtherCut
	case found.Missing == 0 && found.Extra == 0:
		p.State = partialAgrees
	default:
		p.State, p.Missing, p.Extra, p.Example = partialDiffers, found.Missing, found.Extra, found.Example
	}
	return nil
}

// Roll counts the rows of a list by situation and RFC. Redacted rows share one RFC.
type Roll map[string]map[string]int

// rollOf reads a list of any layout, complete or partial.
func rollOf(ctx context.Context, official snapshots.Opener) (Roll, error) {
	r := Roll{}
	_, err := sat69b.ReadPartial(until(ctx, official), r.add)
	return r, err
}

// until opens official bytes that cannot be read on when ctx has ended.
func until(ctx context.Context, official snapshots.Opener) snapshots.Opener {
	return observe(official, func(int64) error { return context.Cause(ctx) })
}

func (r Roll) add(rfc, situation string) error {
	if r[situation] == nil {
		r[situation] = map[string]int{}
	}
	r[situation][rfc]++
	return nil
}

// Difference is how a partial list differs from the complete one.
type Difference struct {
	Missing int      // rows in its situation that it lacks
	Extra   int      // rows that it has and the complete list has not, or not in its situation
	Example []string // RFC and situation of the first few: those it lacks by RFC, then the others as they come
}

// Compare says how the rows that partial gives, of a list of one situation, differ
// from those of the complete list in that situation: as multisets, without regard
// to order. Redacted rows can only be counted. It holds no row of partial, so its
// memory is that of complete. Errors of partial come back as they are.
func Compare(complete Roll, situation string, partial func(add func(rfc, situation string) error) error) (d Difference, err error) {
	left := maps.Clone(complete[situation])
	var extra []string
	err = partial(func(rfc, found string) error {
		if found == situation && left[rfc] > 0 {
			left[rfc]--
			return nil
		}
		if d.Extra++; len(extra) < maxExamples {
			extra = append(extra, example(rfc, found))
		}
		return nil
	})
	if err != nil {
		return Difference{}, err
	}
	maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
	for _, n := range left {
		d.Missing += n
	}
	for i, rfc := range slices.Sorted(maps.Keys(left)) {
		if i == maxExamples {
			break
		}
		d.Example = append(d.Example, example(rfc, situation))
	}
	// Of both kinds when there are both: half each, more where the other has fewer.
	keep := max(maxExamples-len(extra), maxExamples/2)
	d.Example = d.Example[:min(len(d.Example), keep)]
	d.Example = append(d.Example, extra[:min(len(extra), maxExamples-len(d.Example))]...)
	return d, nil
}

// example is RFC and situation as they may be kept: a cell can be of any length.
func example(rfc, situation string) string {
	text := rfc + " " + situation
	if runes := []rune(text); len(runes) > maxExampleRunes {
		text = string(runes[:maxExampleRunes]) + "…"
	}
	return text
}

// cut shortens a text to max bytes or few more.
func cut(text string, max int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max] + "…"
}

// differing returns a notice for each list that differs.
func differing(partials []snapshots.Partial) []snapshots.Notice {
	var notices []snapshots.Notice
	for _, p := range partials {
		if p.State != partialDiffers {
			continue
		}
		notices = append(notices, snapshots.Notice{Code: noticePartialDiffers, Message: fmt.Sprintf(
			"%s (corte %s) no concuerda con la lista completa: le faltan %d filas y le sobran %d. Se sigue respondiendo de la lista completa; compare ambas en la publicación oficial",
			p.File, cmp.Or(p.Corte.String(), "desconocido"), p.Missing, p.Extra)})
	}
	return notices
}
