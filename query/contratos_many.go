package query

import (
	"maps"
	"strings"
	"sync"

	"cotejo/snapshots"
)

const (
	// manyContractRows is from how many rows on what an RFC's contracts come to is
	// kept: reading fewer costs less than the rest of a request.
	manyContractRows = 1000
	// maxManyContracts bounds how many RFCs it is kept of; others are added up at
	// every question. Each takes up to 50 KB.
	maxManyContracts = 1024
)

// manyContracts keeps what the contracts of those come to who have many: some have
// tens of thousands, and each question would read them all. It is derived from the
// rows and is never evidence.
type manyContracts struct {
	mu  sync.RWMutex
	rfc map[string]*procurement
}

// of returns what is kept, or nil.
func (m *manyContracts) of(rfc string) *procurement {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.rfc[rfc]
}

func (m *manyContracts) keep(rfc string, p *procurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rfc == nil {
		m.rfc = map[string]*procurement{}
	}
	if len(m.rfc) < maxManyContracts {
		m.rfc[strings.Clone(rfc)] = p
	}
}

// take makes m hold what other does.
func (m *manyContracts) take(other *manyContracts) {
	other.mu.RLock()
	kept := maps.Clone(other.rfc)
	other.mu.RUnlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rfc = kept
}

// Warm adds up the contracts of everybody in ed who has many, so that no question
// waits for it. What before has of the same versions is taken from it; before may
// be nil. Without it answers are the same, and the first of each edition about such
// an RFC is slow.
func Warm(ed, before *snapshots.Edition) error {
	s := sharedOf(ed)
	if before != nil && sameContracts(s, sharedOf(before)) {
		s.many.take(sharedOf(before).many)
		return nil
	}
	added := map[string]bool{}
	for _, y := range s.years {
		for _, rfc := range y.list.Many() {
			if added[rfc] {
				continue
			}
			added[rfc] = true
			if _, err := s.procurementOf(&s.contracts, rfc, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameContracts reports whether two editions have the same contracts.
func sameContracts(a, b *shared) bool {
	if len(a.years) != len(b.years) {
		return false
	}
	for i := range a.years {
		x, y := a.years[i].list.Version(), b.years[i].list.Version()
		if a.years[i].year != b.years[i].year || x.RowsDigest != y.RowsDigest {
			return false
		}
	}
	return true
}
