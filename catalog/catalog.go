// Package catalog holds the official code lists that other answers lean on:
// banks, the SAT's regimen, uso_cfdi and forma_pago, telephone area codes, CLABE
// plazas, postal prefixes, and the FIX exchange rate.
//
// Every catalogue is a file in one format (see ReadFile), versioned by a day and
// by the SHA-256 of its bytes, and every answer says which version it is from and
// whether the key is in force on the day asked about. A key that ended is found,
// with its validity; a key that never was is ErrNotFound. What a catalogue cannot
// know is Unknown, never a guess.
//
// All types are immutable once read and safe for concurrent use. Nothing here
// knows a clock, the network or a disk.
//
// Start reading at Table.On, and at Series.At for the exchange rate.
package catalog

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cotejo/checks"
	"cotejo/civil"
)

// ErrNotFound is what errors.Is finds in every *NotFoundError.
var ErrNotFound = errors.New("la clave no está en el catálogo")

// NotFoundError says that a well-formed key is in no row of a version.
type NotFoundError struct {
	// Key is well formed, so it is safe to repeat.
	Key     string
	Version *Version
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("La clave %s no está en el catálogo %s, versión %s; revise la clave.", e.Key, e.Version.ID, e.Version.Date)
}

// Is makes errors.Is(err, ErrNotFound) hold.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Standing is whether a key is in force on a day. The zero Standing is Unknown.
type Standing uint8

const (
	// Unknown: the version says nothing about that day.
	Unknown Standing = iota
	// NotYet: the validity begins after that day.
	NotYet
	// InForce: the key may be used on that day.
	InForce
	// Ended: the key existed and ended before that day.
	Ended
)

// Vigente returns the Spanish fact of the API: true, false, or known=false for
// what the version does not say.
func (s Standing) Vigente() (vigente, known bool) { return s == InForce, s != Unknown }

// Validity is the first and the last day of a key, both included, as the SAT
// states them. A zero To is open; a zero From says that nothing is known.
type Validity struct {
	From, To civil.Date
}

// On returns the standing of a key with this validity.
func (v Validity) On(day civil.Date) Standing {
	switch {
	case v.From.IsZero():
		return Unknown
	case day.Before(v.From):
		return NotYet
	case !v.To.IsZero() && v.To.Before(day):
		return Ended
	}
	return InForce
}

// Answer is one row as a version has it, and its standing on the day asked about.
type Answer[T any] struct {
	Row      T
	Day      civil.Date
	Standing Standing
	// Version is shared and never changes.
	Version *Version
}

// row is what a catalogue is made of.
type row interface {
	// check returns the rule that a text breaks that cannot be a key of this
	// catalogue, or nil.
	check(key string) *checks.Problem
	// standing is that of the row on a day, as version has it.
	standing(day civil.Date, version *Version) Standing
}

// Table is a catalogue with one row for each key.
type Table[T row] struct {
	version Version
	keys    []string
	rows    []T
	places  map[string]int
}

// Version returns what the table was read from.
func (t *Table[T]) Version() *Version { return &t.version }

// All calls yield with each key and row, in the order of the file, which is that
// of the keys.
func (t *Table[T]) All(yield func(string, T) bool) {
	for i, key := range t.keys {
		if !yield(key, t.rows[i]) {
			return
		}
	}
}

// On returns the row of a key. The error is a *checks.Problem when key cannot be
// one, a *NotFoundError when it is none. A key that is found costs no allocation.
func (t *Table[T]) On(key string, day civil.Date) (Answer[T], error) {
	i, ok := t.places[key]
	if !ok {
		var zero T
		if problem := zero.check(key); problem != nil {
			return Answer[T]{}, problem
		}
		return Answer[T]{}, &NotFoundError{Key: key, Version: &t.version}
	}
	return t.at(i, day), nil
}

func (t *Table[T]) at(i int, day civil.Date) Answer[T] {
	return Answer[T]{Row: t.rows[i], Day: day, Standing: t.rows[i].standing(day, &t.version), Version: &t.version}
}

// add appends a row while the table is read.
func (t *Table[T]) add(key string, r T) error {
	if n := len(t.keys); n > 0 && t.keys[n-1] >= key {
		return fmt.Errorf("la clave %q no sigue a %q: las claves van en orden y una sola vez", key, t.keys[n-1])
	}
	var zero T
	if problem := zero.check(key); problem != nil {
		return problem
	}
	t.places[key] = len(t.keys)
	t.keys = append(t.keys, key)
	t.rows = append(t.rows, r)
	return nil
}

// readTable reads a file of one row for each key, which is its first column.
func readTable[T row](data []byte, id string, columns []string, parse func(f []string) (T, error)) (*Table[T], error) {
	t := &Table[T]{places: map[string]int{}}
	var err error
	t.version, err = ReadFile(data, id, columns, func(f []string) error {
		r, err := parse(f)
		if err != nil {
			return err
		}
		return t.add(f[0], r)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// isASCII reports whether s has from min to max bytes, all of them digits, or
// upper-case letters where those are allowed.
func isASCII(s string, min, max int, letters bool) bool {
	if len(s) < min || len(s) > max {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (!letters || c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// malformed is the problem of a text that cannot be a key.
func malformed(rule string) *checks.Problem {
	return &checks.Problem{Type: "string_pattern_mismatch", Rule: rule}
}

// Set is one version of every catalogue: what answers are given from. Embedded
// gives that of the binary, Of that of an edition.
type Set struct {
	Banks        *Banks
	Regimes      *Table[Regime]
	Uses         *Table[Use]
	PaymentForms *Table[PaymentForm]
	Phones       *Phones
	Plazas       *Plazas
	Postal       *Postal
	FIX          *Series

	loaded map[string]int // version that is in the Set, by ingested source
}

// Versions returns the version of each catalogue, ordered by id.
func (s *Set) Versions() []*Version {
	all := []*Version{
		s.Banks.Version(), s.Regimes.Version(), s.Uses.Version(), s.PaymentForms.Version(),
		s.Phones.Version(), s.Plazas.Version(), s.Postal.Version(), s.FIX.Version(),
	}
	slices.SortFunc(all, func(a, b *Version) int { return strings.Compare(a.ID, b.ID) })
	return all
}

//go:embed data
var files embed.FS

// Embedded returns the catalogues that the binary carries, read and hashed at
// the first call. A file that cannot be read is a mistake of the build and
// panics; the tests of this package read them all.
var Embedded = sync.OnceValue(func() *Set {
	return &Set{
		Banks:        embedded("bancos.csv", ReadBanks),
		Regimes:      embedded("regimen.csv", ReadRegimes),
		Uses:         embedded("uso_cfdi.csv", ReadUses),
		PaymentForms: embedded("forma_pago.csv", ReadPaymentForms),
		Phones:       embedded("telefono.csv", ReadPhones),
		Plazas:       embedded("plazas.csv", ReadPlazas),
		Postal:       embedded("cp_prefijos.csv", ReadPostal),
		FIX:          embedded("fix.csv.gz", ReadSeries),
	}
})

func embedded[T any](name string, read func([]byte) (*T, error)) *T {
	data, err := files.ReadFile("data/" + name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		data, err = Unpack(data)
	}
	if err != nil {
		panic(fmt.Sprintf("catalog: %s: %v", name, err))
	}
	t, err := read(data)
	if err != nil {
		panic(fmt.Sprintf("catalog: %s: %v", name, err))
	}
	return t
}
