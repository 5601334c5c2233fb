package query

import "sync"

const (
	// manyContractRows is from how many rows on what an RFC's contracts come to is
	// kept, and which are the newest: reading fewer costs less than the rest of a
	// request.
	manyContractRows = 1000
	// maxManyContracts bounds how many RFCs it is kept of; those of others are read
	// at every question. Each takes up to 60 KB.
	maxManyContracts = 1024
)

// manyContracts keeps what the contracts of those come to who have many: some have
// tens of thousands, and each question would read them all. It is derived from the
// rows and is never evidence. Its zero value is ready; safe for concurrent use.
type manyContracts struct {
	mu    sync.RWMutex
	byRFC map[uint64]*procurement
}

// of returns what is kept, or nil.
func (m *manyContracts) of(rfc uint64) *procurement {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byRFC[rfc]
}

func (m *manyContracts) keep(rfc uint64, p *procurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byRFC == nil {
		m.byRFC = map[uint64]*procurement{}
	}
	if len(m.byRFC) < maxManyContracts {
		m.byRFC[rfc] = p
	}
}

// take adds what other keeps.
func (m *manyContracts) take(other *manyContracts) {
	other.mu.RLock()
	defer other.mu.RUnlock()
	for rfc, p := range other.byRFC {
		m.keep(rfc, p)
	}
}
