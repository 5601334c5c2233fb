package query

import (
	"sync/atomic"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
	"cotejo/snapshots"
)

// loaded is what an edition has loaded, and what its answers have in common. It is
// made once, from nothing but the edition, and changes no answer: an answer without it would have
// the same bytes and cost more.
type loaded struct {
	sat69B, bis *snapshots.Source // nil: not loaded
	art69       art69Sources
	sanctions   sanctions
	years       []contractYear
	lists       index.Set // sat69B, bis and art69
	contracts   index.Set // years

	sanctionsWithRFC, sanctionsWithoutRFC index.Set

	many manyContracts
	sums atomic.Pointer[contractSums] // nil until Warm
	day  atomic.Pointer[dayTexts]
}

// loadedIn returns that of ed. It does not allocate but for the
// first of them.
func loadedIn(ed *snapshots.Edition) *loaded { return ed.Derived(load).(*loaded) }

func load(ed *snapshots.Edition) any {
	s := &loaded{sat69B: ed.Source(Sat69B.Source), bis: ed.Source(Sat69BBis.Source)}
	for _, list := range [...]*snapshots.Source{s.sat69B, s.bis} {
		if list != nil {
			s.lists.Add(list.Bit())
		}
	}
	for i := range art69s {
		if list := ed.Source(art69s[i].Schema.Source); list != nil {
			s.art69[i] = list
			s.lists.Add(list.Bit())
		}
	}
	s.sanctions, s.sanctionsWithRFC, s.sanctionsWithoutRFC = sanctionsOf(ed)
	for i := range Contratos {
		if list := ed.Source(Contratos[i].Source); list != nil {
			s.years = append(s.years, contractYear{&Contratos[i], FirstContractYear + i, list})
			s.contracts.Add(list.Bit())
		}
	}
	return s
}

// dayTexts are parts of answers that say how old the versions are on one day, and
// so are the same for every RFC: most of the bytes of an answer.
type dayTexts struct {
	fecha                                    civil.Date
	sat69B, bis, art69, sanctions, contracts blockTexts
}

// blockTexts are those of a block of the company answer.
type blockTexts struct {
	fuentes []byte // the provenance of its sources, separated by commas
	none    []byte // the whole block of an RFC that no source mentions; empty while it is made
}

// ofNobody returns the block, if it is that of an RFC without mentions.
func (b *blockTexts) ofNobody(mentions index.Mentions) (block []byte, ok bool) {
	return b.none, mentions.None() && len(b.none) > 0
}

// on returns the texts of a day. Those of the latest day asked about are kept:
// nearly every question is about today.
func (s *loaded) on(fecha civil.Date) *dayTexts {
	kept := s.day.Load()
	if kept != nil && kept.fecha == fecha {
		return kept
	}
	t := s.makeTexts(fecha)
	if kept == nil || kept.fecha.Before(fecha) {
		s.day.Store(t)
	}
	return t
}

func (s *loaded) makeTexts(fecha civil.Date) *dayTexts {
	t := &dayTexts{fecha: fecha}
	fuente := func(dst []byte, schema *snapshots.Schema, list *snapshots.Source) []byte {
		if list == nil {
			return dst
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		chain := list.Chain()
		return appendFuente(dst, schema, &chain[len(chain)-1], fecha)
	}
	t.sat69B.fuentes = fuente(nil, &Sat69B, s.sat69B)
	t.bis.fuentes = fuente(nil, &Sat69BBis, s.bis)
	for i := range art69s {
		t.art69.fuentes = fuente(t.art69.fuentes, &art69s[i].Schema, s.art69[i])
	}
	for i := range s.years {
		t.contracts.fuentes = fuente(t.contracts.fuentes, s.years[i].schema, s.years[i].list)
	}
	// Nothing is read for an RFC that nobody mentions, so nothing can fail.
	var nobody index.Mentions
	t.sat69B.none, _, _, _ = Company{}.appendList(nil, lista69B, s.sat69B, nobody, &t.sat69B)
	t.bis.none, _, _, _ = Company{}.appendList(nil, lista69BBis, s.bis, nobody, &t.bis)
	t.art69.none, _ = Company{}.appendArt69(nil, &s.art69, nobody, &t.art69, new(CompanyBrief))
	t.sanctions.none, _ = Company{}.appendSanciones(nil, &s.sanctions, nobody, fecha, &t.sanctions, new(CompanyBrief))
	t.contracts.none, _ = s.appendContratacion(nil, nobody, checks.RFC{}, &t.contracts, new(CompanyBrief))
	return t
}
