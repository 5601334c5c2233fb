package ingest

import (
	"context"

	"cotejo/snapshots"
)

// quarantine keeps the bytes and the reasons, once.
func (in *ingestion) quarantine() (Result, error) {
	r := Result{Outcome: Quarantined, Faults: in.faults, Edition: in.edition}
	known, err := in.find(func(v *snapshots.Version) bool {
		return len(v.Faults) > 0 && !in.accepted[v.ID] && !in.redates(v)
	})
	if err != nil {
		return Result{}, err
	}
	if known != nil {
		r.Version = *known
		return r, nil
	}
	if r.Version, err = in.stage.Quarantine(in.origin, in.faults); err != nil {
		return Result{}, err
	}
	return r, nil
}

func (in *ingestion) activate(ctx context.Context) (Result, error) {
	v, err := in.save()
	if err != nil {
		return Result{}, err
	}
	return in.publish(ctx, v)
}

// save makes a version of the staged rows.
func (in *ingestion) save() (snapshots.Version, error) {
	step := Step{Phase: Saving, Rows: in.stage.Rows()}
	in.report(step)
	if err := in.room(); err != nil {
		return snapshots.Version{}, err
	}
	v, err := in.stage.Accept(in.origin)
	if err != nil {
		return snapshots.Version{}, err
	}
	step.Done = true
	in.report(step)
	return v, nil
}

// publish makes an edition in which v serves, or has a place in the history.
func (in *ingestion) publish(ctx context.Context, v snapshots.Version) (Result, error) {
	step := Step{Phase: Publishing, Rows: v.Rows}
	in.report(step)
	if err := in.room(); err != nil {
		return Result{}, err
	}
	except, publish := v.SHA256, in.catalogue.Publish
	if in.past() {
		except, publish = "", in.catalogue.PublishHistory
	}
	if in.entry != nil {
		if err := reread(ctx, in.catalogue, in.source, in.entry, except); err != nil {
			return Result{}, err
		}
	}
	m, err := publish(v, in.Now)
	if err != nil {
		return Result{}, err
	}
	step.Done = true
	in.report(step)
	return Result{Outcome: Activated, Version: v, Edition: m}, nil
}
