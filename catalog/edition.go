package catalog

import (
	"errors"
	"fmt"

	"cotejo/snapshots"
)

// Prepare makes the Set of an edition: the catalogues of the binary, replaced or
// completed by the sources that the edition has. What the edition before had in
// the same version is taken from it. It is a snapshots.Prepare.
func Prepare(e, before *snapshots.Edition) (any, error) {
	set, old := *Embedded(), Of(before)
	set.loaded = map[string]int{}
	for _, part := range parts {
		src := e.Source(part.source)
		if src == nil {
			continue
		}
		id := src.Version().ID
		set.loaded[part.source] = id
		if old.loaded[part.source] == id {
			part.take(&set, old)
			continue
		}
		if err := part.load(&set, src); err != nil {
			if _, damaged := errors.AsType[*snapshots.CorruptError](err); damaged {
				return nil, err
			}
			return nil, &snapshots.CorruptError{
				Path: src.Version().RowsFile.Path, Want: fmt.Sprintf("filas de %s que este programa entienda", part.source), Got: err.Error(),
			}
		}
	}
	return &set, nil
}

// Of is the Set of an edition that Prepare made; that of the binary of any other
// and of none.
func Of(e *snapshots.Edition) *Set {
	if e != nil {
		if set, ok := e.Prepared().(*Set); ok {
			return set
		}
	}
	return Embedded()
}

// parts are the sources that a Set is made of beside the files of the binary.
var parts = []struct {
	source string
	load   func(set *Set, src *snapshots.Source) error
	take   func(set, from *Set)
}{
	{
		FIXSource.Source,
		func(set *Set, src *snapshots.Source) (err error) {
			set.FIX, err = loadSeries(src, Embedded().FIX)
			return err
		},
		func(set, from *Set) { set.FIX = from.FIX },
	},
	{
		SPEISource.Source,
		func(set *Set, src *snapshots.Source) (err error) {
			set.Banks, err = loadBanks(src, Embedded().Banks)
			return err
		},
		func(set, from *Set) { set.Banks = from.Banks },
	},
	{
		NumberingSource.Source,
		func(set *Set, src *snapshots.Source) error {
			plan, err := loadPlan(src)
			set.Phones = Embedded().Phones.with(plan)
			return err
		},
		func(set, from *Set) { set.Phones = from.Phones },
	},
}

// loadedVersion describes the version of a source in an edition.
func loadedVersion(src *snapshots.Source, publication, coverage string) Version {
	v := src.Version()
	version := Version{
		ID: v.Source, Source: publication, URL: v.URL, Retrieved: v.Obtained, Coverage: coverage,
		Date: v.OrderDate, SHA256: v.SHA256, Rows: v.Rows,
		Loaded: &Loaded{
			ID: v.ID, Corte: v.Corte, Activated: src.Entry().PublishedReset, Published: v.Published, Downloaded: v.Downloaded,
		},
	}
	version.seal()
	return version
}
