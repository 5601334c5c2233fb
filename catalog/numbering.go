package catalog

import (
	"errors"
	"fmt"
	"sort"
	"strconv"

	"cotejo/civil"
	"cotejo/snapshots"
)

// NumberingSource is the row schema of the national numbering plan: a row for each
// range of numbers that was assigned to a provider. Identity: its first and its
// last number, of ten digits.
var NumberingSource = snapshots.Schema{
	Source: "ift_numeracion",
	Reader: 1,
	// Ranges are assigned every week; the regulator states no rhythm for the file.
	MaxAge: 90,
	Columns: []snapshots.Column{
		{Name: "ZONA", Tracked: true},
		{Name: "NUMERACION_INICIAL", Tracked: true},
		{Name: "NUMERACION_FINAL", Tracked: true},
		{Name: "OCUPACION", Tracked: true},
		{Name: "MODALIDAD", Tracked: true},
		{Name: "RAZON_SOCIAL", Tracked: true},
		{Name: "FECHA_ASIGNACION", Tracked: true},
	},
}

// Columns of NumberingSource by position.
const (
	ColZone = iota
	ColFirst
	ColLast
	ColCount
	ColMode
	ColProvider
	ColAssigned
)

// Line is what a range of the numbering plan is for.
type Line string

const (
	Fixed  Line = "fijo"
	Mobile Line = "movil"
)

// Assignment is what the numbering plan says of a range. A number that was ported
// has another provider by now; its line stays.
type Assignment struct {
	Zone string
	// Mode is as published: FIJO, and CPP or MPP for mobile ones. Line is empty for
	// any other.
	Mode string
	Line Line
	// Provider got the range on Since, zero when the plan states no day.
	Provider string
	Since    civil.Date
	// Ambiguous: more than one range holds the number. Nothing else is said then.
	Ambiguous bool
}

var ambiguous = Assignment{Ambiguous: true}

// plan is the numbering plan, by number.
type plan struct {
	version Version
	ranges  []numberRange // ascending by first
}

type numberRange struct {
	first, last uint64
	reach       uint64 // the highest last number up to this range
	Assignment
}

// find returns the range of a number of ten digits, nil when none holds it, and an
// ambiguous one when several do.
func (p *plan) find(number string) *Assignment {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil
	}
	i := sort.Search(len(p.ranges), func(i int) bool { return n < p.ranges[i].first }) - 1
	// A range inside another one ends before it does.
	var found *Assignment
	for ; i >= 0 && n <= p.ranges[i].reach; i-- {
		r := &p.ranges[i]
		if n > r.last {
			continue
		}
		if found != nil {
			return &ambiguous
		}
		found = &r.Assignment
	}
	return found
}

// loadPlan reads the plan of a source.
func loadPlan(src *snapshots.Source) (*plan, error) {
	p := &plan{version: loadedVersion(src, "Plan Nacional de Numeración (Instituto Federal de Telecomunicaciones; desde 2025, Comisión Reguladora de Telecomunicaciones)",
		"Rangos asignados a proveedores a la fecha de la versión; la portabilidad cambia de proveedor números sueltos, no la modalidad de un rango")}
	p.ranges = make([]numberRange, 0, src.Version().Rows)
	texts := map[string]string{} // a provider has thousands of ranges
	kept := func(s string) string {
		if same, ok := texts[s]; ok {
			return same
		}
		s = string(append([]byte(nil), s...)) // not the whole row
		texts[s] = s
		return s
	}
	reach := uint64(0)
	err := src.All(func(row snapshots.Row) error {
		cells := row.Norm
		if len(cells) != len(NumberingSource.Columns) || !isASCII(cells[ColFirst], 10, 10, false) || !isASCII(cells[ColLast], 10, 10, false) {
			return fmt.Errorf("rango %q", row.ID)
		}
		r := numberRange{Assignment: Assignment{Zone: kept(cells[ColZone]), Mode: kept(cells[ColMode]), Provider: kept(cells[ColProvider])}}
		r.first, _ = strconv.ParseUint(cells[ColFirst], 10, 64)
		r.last, _ = strconv.ParseUint(cells[ColLast], 10, 64)
		switch r.Mode {
		case "FIJO":
			r.Line = Fixed
		case "CPP", "MPP":
			r.Line = Mobile
		}
		if day, err := civil.Parse(cells[ColAssigned]); err == nil {
			r.Since = day
		}
		reach = max(reach, r.last)
		r.reach = reach
		p.ranges = append(p.ranges, r)
		return nil
	})
	if err == nil && len(p.ranges) == 0 {
		err = errors.New("el plan no tiene rangos")
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
