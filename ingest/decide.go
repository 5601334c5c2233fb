package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

var (
	// ErrUndecidable says that there is nothing that a person could decide about a
	// version: it is not in quarantine, it cannot be read, or its bytes serve.
	ErrUndecidable = errors.New("no hay nada que decidir sobre esta versión")
	// ErrNewFault says that a version has faults that nobody was told of.
	ErrNewFault = errors.New("hay motivos que la cuarentena todavía no nombra")
)

// decidable are the faults of a table that can be read: a person who has looked
// may know better.
var decidable = []string{tabular.FewerRows, tabular.OlderCut, tabular.FutureCut, tabular.Withdrawn, tabular.NoRows, tabular.Unended, tabular.OtherList, tabular.Changed, tabular.Unread}

// Accept puts a version in quarantine into service, because a person says so:
// its kept official bytes are read again by today's reader, and become a version
// that names the one in quarantine. ErrUndecidable when it cannot be; ErrNewFault
// when it has faults now that neither its manifest nor the last attempt tells,
// such as a newer version in service since; snapshots.ErrDecision when who or why
// is missing. It holds the catalogue's lock.
//
// A version of an older date than the one in service becomes the newest of the
// history behind it: what it takes out of service stays in the history, and its
// bytes coming again are kept out (RETIRADA) until they are accepted in turn.
//
// The decision is written down before anything is published. When the process
// dies in between, Accept or the same bytes coming again complete it, under the
// decision that stands.
func Accept(ctx context.Context, c *snapshots.Catalogue, versionID int, who, why string, now time.Time) (Result, error) {
	unlock, err := c.Lock()
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	in, v, err := undecided(c, versionID, now)
	if err != nil {
		return Result{}, err
	}
	told := codesOf(v.Faults)
	for _, f := range v.Faults {
		if !slices.Contains(decidable, f.Code) {
			return Result{}, fmt.Errorf("%w: la versión %d no se pudo leer (%s: %s); si un lector más nuevo ya la lee, cargue otra vez el archivo", ErrUndecidable, v.ID, f.Code, f.Message)
		}
	}
	last, attempted, err := c.LastAttempt(v.Source)
	if err != nil {
		attempted = false // it is written anew with the next download
	}
	answered := last.Answered()
	attempted = attempted && answered != nil && answered.Outcome == snapshots.OutcomeQuarantined && answered.VersionID == v.ID
	if attempted {
		told = append(told, codesOf(answered.Faults)...)
	}
	if in.stage, err = stageAgain(c, v); err != nil {
		return Result{}, err
	}
	defer in.stage.Discard()
	if err := in.judgeAgain(ctx, v, told); err != nil {
		return Result{}, err
	}
	d, err := in.decide(v, told, who, why)
	if err != nil {
		return Result{}, err
	}
	accepted, err := in.unpublished(func(o *snapshots.Version) bool { return o.AcceptedFrom == v.ID })
	if err != nil {
		return Result{}, err
	}
	if accepted == nil {
		in.origin.AcceptedFrom = v.ID
		saved, err := in.save()
		if err != nil {
			return Result{}, err
		}
		accepted = &saved
	}
	result, err := in.publish(ctx, *accepted)
	if err != nil {
		return Result{}, err
	}
	result.Decision = &d
	if attempted { // what it found serves now
		last.Outcome, last.VersionID, last.Faults = snapshots.OutcomeActivated, accepted.ID, nil
		last.Notices = append(lacking(accepted), slices.DeleteFunc(last.Notices, func(n snapshots.Notice) bool { return n.Code == noticeUnread })...)
		err = c.RecordAttempt(last)
	}
	return result, err
}

// Reject writes down that a version in quarantine stays there: its bytes coming
// again change nothing, and Result.Decision says so. It takes back an acceptance
// that was never published. ErrUndecidable when the bytes serve, or when they
// were rejected already.
func Reject(c *snapshots.Catalogue, versionID int, who, why string, now time.Time) (snapshots.Decision, error) {
	unlock, err := c.Lock()
	if err != nil {
		return snapshots.Decision{}, err
	}
	defer unlock()
	_, v, err := undecided(c, versionID, now)
	if err != nil {
		return snapshots.Decision{}, err
	}
	d, ok, err := c.DecisionOf(v.ID)
	if err != nil {
		return snapshots.Decision{}, err
	}
	if ok && d.Decision == snapshots.DecisionRejected {
		return snapshots.Decision{}, fmt.Errorf("%w: %s ya rechazó la versión %d el %s", ErrUndecidable, d.Who, v.ID, d.At)
	}
	return c.Decide(snapshots.Decision{VersionID: v.ID, Decision: snapshots.DecisionRejected, Who: who, Why: why}, now)
}

// undecided finds a version in quarantine, and what serves in its place.
func undecided(c *snapshots.Catalogue, versionID int, now time.Time) (*ingestion, *snapshots.Version, error) {
	v, err := c.Version(versionID)
	if errors.Is(err, snapshots.ErrNotFound) {
		return nil, nil, fmt.Errorf("no hay una versión %d; vea cuáles con «cotejo sources show FUENTE»: %w", versionID, err)
	} else if err != nil {
		return nil, nil, err
	}
	if len(v.Faults) == 0 {
		return nil, nil, fmt.Errorf("%w: la versión %d no está en cuarentena", ErrUndecidable, v.ID)
	}
	source, ok := Lookup(v.Source)
	if !ok {
		return nil, nil, fmt.Errorf("%w: este programa no conoce la fuente «%s»", ErrUndecidable, v.Source)
	}
	in := &ingestion{Request: Request{Source: v.Source, Now: now}, source: &source, catalogue: c}
	if err := in.context(); err != nil {
		return nil, nil, err
	}
	if in.active != nil && in.active.SHA256 == v.SHA256 {
		return nil, nil, fmt.Errorf("%w: los bytes de la versión %d ya están en servicio, como versión %d", ErrUndecidable, v.ID, in.active.ID)
	}
	return in, &v, nil
}

// judgeAgain reads the staged bytes of a version in quarantine and applies the gates
// of today.
func (in *ingestion) judgeAgain(ctx context.Context, v *snapshots.Version, told []string) (err error) {
	if in.origin, err = originOf(v); err != nil {
		return err
	}
	sum, err := readInto(in.stage, in.source, func(int64, int) error { return ctx.Err() })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refusal, ok := errors.AsType[*tabular.Refusal](err); ok {
		return fmt.Errorf("%w: la versión %d no se puede leer (%w)", ErrUndecidable, v.ID, refusal)
	}
	if err != nil {
		return err
	}
	in.date(&sum)
	if undated(&in.origin) && strings.HasPrefix(v.Obtained, "archivo:") {
		return fmt.Errorf("%w: cargue otra vez el archivo de la versión %d y acepte la que resulte", ErrUndated, v.ID)
	}
	faults, err := in.gates(&sum, &in.origin)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if !slices.Contains(told, f.Code) {
			return fmt.Errorf("%w: la versión %d ahora también %s (%s); si aun así debe servir, cargue otra vez su archivo y acéptela, o cárguelo con --history si solo falta en la historia", ErrNewFault, v.ID, f.Message, f.Code)
		}
	}
	return nil
}

// decide writes an acceptance down, unless one stands that was not carried out.
func (in *ingestion) decide(v *snapshots.Version, told []string, who, why string) (snapshots.Decision, error) {
	d, ok, err := in.catalogue.DecisionOf(v.ID)
	if err != nil {
		return snapshots.Decision{}, err
	}
	if ok && d.Decision == snapshots.DecisionAccepted {
		if pending, err := in.pending(&d); pending || err != nil {
			return d, err
		}
	}
	slices.Sort(told)
	return in.catalogue.Decide(snapshots.Decision{
		VersionID: v.ID, Decision: snapshots.DecisionAccepted, Faults: slices.Compact(told), Who: who, Why: why,
	}, in.Now)
}

// decided applies what a person decided about the staged bytes: those that were
// rejected end here, and faults that were accepted are waived.
func (in *ingestion) decided() (result Result, done bool, err error) {
	if in.serves() {
		in.origin.AcceptedFrom = in.active.AcceptedFrom
		if in.active.Reader == in.source.Schema.Reader && !in.redates(in.active) {
			return Result{}, false, nil // unchanged: nothing to judge
		}
	}
	newest, held, err := in.newestDecision()
	if newest == nil || err != nil {
		return Result{}, false, err
	}
	switch {
	case newest.Decision == snapshots.DecisionRejected:
		if in.past() && onlyOld(held.Faults) {
			return Result{}, false, nil
		}
		return Result{Outcome: Quarantined, Version: *held, Faults: held.Faults, Edition: in.edition, Decision: newest}, true, nil
	case in.serves():
		if in.active.AcceptedFrom > 0 {
			in.waiver = newest
		}
	default:
		pending, err := in.pending(newest)
		if err != nil {
			return Result{}, false, err
		}
		if pending {
			in.waiver = newest
		}
	}
	return Result{}, false, nil
}

// newestDecision returns the newest decision about a version in quarantine with
// the staged bytes, and that version; nil when there is none.
func (in *ingestion) newestDecision() (newest *snapshots.Decision, held *snapshots.Version, err error) {
	versions, _, err := in.catalogue.Versions()
	if err != nil {
		return nil, nil, err
	}
	same := map[int]*snapshots.Version{}
	for i := range versions {
		if v := &versions[i]; v.Source == in.source.Schema.Source && v.SHA256 == in.stage.SHA256() && len(v.Faults) > 0 {
			same[v.ID] = v
		}
	}
	if len(same) == 0 {
		return nil, nil, nil
	}
	decisions, damaged, err := in.catalogue.Decisions()
	if err = errors.Join(append(damaged, err)...); err != nil {
		return nil, nil, err // one that cannot be read may keep these bytes out
	}
	in.accepted = map[int]bool{}
	for i := range decisions {
		if d := &decisions[i]; same[d.VersionID] != nil {
			newest, held = d, same[d.VersionID]
			in.accepted[d.VersionID] = d.Decision == snapshots.DecisionAccepted
		}
	}
	return newest, held, nil
}

// pending reports whether an acceptance was written down and never carried out:
// no version of it was published, and no other one since.
func (in *ingestion) pending(d *snapshots.Decision) (bool, error) {
	if in.entry != nil {
		decided, err := time.Parse(time.RFC3339, d.At)
		if err != nil {
			return false, err
		}
		if reset, err := time.Parse(time.RFC3339, in.entry.PublishedReset); err != nil || decided.Before(reset) {
			return false, err
		}
	}
	done, err := in.find(func(v *snapshots.Version) bool {
		return v.AcceptedFrom == d.VersionID && in.active != nil && (v.ID <= in.active.ID || slices.Contains(in.entry.Chain, v.ID))
	})
	return done == nil, err
}

// waive drops the faults that a person accepted.
func (in *ingestion) waive(faults []snapshots.Fault, o *snapshots.Origin) []snapshots.Fault {
	if in.waiver == nil || len(faults) == 0 {
		return faults
	}
	left := slices.DeleteFunc(faults, func(f snapshots.Fault) bool { return slices.Contains(in.waiver.Faults, f.Code) })
	if len(left) == 0 {
		o.AcceptedFrom = in.waiver.VersionID
	}
	return left
}

func codesOf(faults []snapshots.Fault) (codes []string) {
	for _, f := range faults {
		codes = append(codes, f.Code)
	}
	return codes
}

// onlyOld reports whether nothing is wrong with a file but its date: that keeps
// it from serving, and not out of the history.
func onlyOld(faults []snapshots.Fault) bool {
	return !slices.ContainsFunc(faults, func(f snapshots.Fault) bool { return f.Code != tabular.OlderCut })
}
