package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cotejo/snapshots"
)

// past reports whether the file is to enter the history and not into service.
func (in *ingestion) past() bool { return in.History && in.active != nil }

// enterHistory gives the staged bytes their place in the history of the source.
func (in *ingestion) enterHistory(ctx context.Context) (Result, error) {
	known, err := in.inHistory()
	if err != nil {
		return Result{}, err
	}
	if known != nil {
		return Result{Outcome: Unchanged, Version: *known, Edition: in.edition}, nil
	}
	if len(in.faults) == 0 {
		if in.faults, err = in.read(ctx); err != nil {
			return Result{}, err
		}
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if len(in.faults) > 0 {
		return in.quarantine()
	}
	if day := in.origin.OrderDate(); in.active.OrderDate.Before(day) {
		return Result{}, fmt.Errorf("%w: el archivo es del %s y sirve la versión %d, del %s; cárguelo sin --history",
			snapshots.ErrNewer, day, in.active.ID, in.active.OrderDate)
	}
	// A process may have died before it could publish these.
	v, err := in.unpublished(func(v *snapshots.Version) bool {
		return v.Corte == in.origin.Corte && v.OrderDate == in.origin.OrderDate()
	})
	if err != nil {
		return Result{}, err
	}
	if v == nil {
		return in.activate(ctx)
	}
	return in.publish(ctx, *v)
}

// inHistory returns the version of the chain with the staged bytes, nil when
// there is none or when the operator corrects its date.
func (in *ingestion) inHistory() (*snapshots.Version, error) {
	if in.serves() {
		if in.redates(in.active) {
			return nil, errors.New("el archivo es el de la versión en servicio: corrija su fecha sin --history")
		}
		return in.active, nil
	}
	return in.find(func(v *snapshots.Version) bool {
		return slices.Contains(in.entry.Chain, v.ID) && !in.redates(v)
	})
}
