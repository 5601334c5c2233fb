package payroll

import (
	"crypto/sha256"
	"embed"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"cotejo/civil"
)

// Version is one version of a parameter table: a file under data.
type Version struct {
	Table   string     `json:"tabla"`
	Version string     `json:"version"`
	From    civil.Date `json:"vigencia_desde"`
	// To is the last day in force; zero, and absent in JSON, when no end is known.
	To           civil.Date `json:"vigencia_hasta,omitzero"`
	LegalBasis   string     `json:"fundamento"`
	Source       string     `json:"fuente"`
	Verification string     `json:"verificacion"` // how the figures were confirmed
	SHA256       string     `json:"sha256"`       // of the file's bytes
	File         string     `json:"-"`            // below data: uma/2026.csv
}

// covers reports whether the version is in force on a day.
func (v *Version) covers(day civil.Date) bool {
	return !day.Before(v.From) && (v.To.IsZero() || !v.To.Before(day))
}

//go:embed data/*/*.csv
var files embed.FS

// Tables returns every loaded version, by table and by beginning. The hashes
// were computed when the program started.
func Tables() []Version {
	var all []Version
	for _, t := range [][]Version{
		list(ceavTable), list(imssLimits), list(imssRates), list(isrTable), list(labourRules),
		list(taxExemptions), list(minimumWage), list(subsidyTable), list(umaTable), list(vacationTable),
	} {
		all = append(all, t...)
	}
	return all
}

// version is a table's version together with its figures.
type version[T any] struct {
	Version
	figures T
}

// table holds the versions of one table by beginning. Versions neither overlap
// nor leave a day between them uncovered.
type table[T any] []version[T]

// at returns the version in force on a day, *ErrNoTable when there is none.
func (t table[T]) at(day civil.Date) (*version[T], error) {
	for i := range t {
		if t[i].covers(day) {
			return &t[i], nil
		}
	}
	first, last := &t[0], &t[len(t)-1]
	return nil, &ErrNoTable{first.Table, day, first.From, last.To}
}

// on is at, but for the zero day the newest version.
func (t table[T]) on(day civil.Date) (*version[T], error) {
	if day.IsZero() {
		return &t[len(t)-1], nil
	}
	return t.at(day)
}

func list[T any](t table[T]) []Version {
	out := make([]Version, len(t))
	for i := range t {
		out[i] = t[i].Version
	}
	return out
}

// load reads a folder of data; decode turns a file's rows into figures. The
// files are part of the program, so one that cannot be read stops it at once.
func load[T any](name string, decode func(rows) T) table[T] {
	entries, err := fs.ReadDir(files, path.Join("data", name))
	if err != nil {
		panic(err)
	}
	var t table[T]
	for _, e := range entries {
		file := path.Join(name, e.Name())
		content, err := fs.ReadFile(files, path.Join("data", file))
		if err != nil {
			panic(err)
		}
		v, body := readVersion(file, content)
		t = append(t, version[T]{v, decode(body)})
	}
	t.order(name)
	return t
}

// order sorts the versions of a table and stops the program unless they follow
// each other day by day.
func (t table[T]) order(name string) {
	slices.SortFunc(t, func(a, b version[T]) int { return int(a.From.Compact()) - int(b.From.Compact()) })
	for i := range t {
		v := &t[i].Version
		if v.Table != name || path.Base(v.File) != v.Version+".csv" {
			v.broken("its names are not those of its file")
		}
		if i > 0 && (t[i-1].To.IsZero() || t[i-1].To.Days(v.From) != 1) {
			v.broken("it does not begin on the day after " + t[i-1].File)
		}
	}
}

// header names the lines that a file begins with, in order.
var header = [...]string{"tabla", "version", "vigencia_desde", "vigencia_hasta", "fundamento", "fuente", "verificacion"}

// readVersion reads the form that data/README.md describes.
func readVersion(file string, content []byte) (Version, rows) {
	sum := sha256.Sum256(content)
	v := Version{File: file, SHA256: hex.EncodeToString(sum[:])}
	text := string(content)
	var values [len(header)]string
	for i, name := range header {
		line, rest, _ := strings.Cut(text, "\n")
		value, ok := strings.CutPrefix(line, "# "+name+":")
		if !ok {
			v.broken("line " + fmt.Sprint(i+1) + " is not " + name)
		}
		values[i], text = strings.TrimSpace(value), rest
	}
	v.Table, v.Version = values[0], values[1]
	v.LegalBasis, v.Source, v.Verification = values[4], values[5], values[6]
	if v.From.UnmarshalText([]byte(values[2])) != nil || v.From.IsZero() || v.To.UnmarshalText([]byte(values[3])) != nil {
		v.broken("its validity is no pair of dates")
	}
	if !v.To.IsZero() && v.To.Before(v.From) || v.LegalBasis == "" || v.Source == "" || v.Verification == "" {
		v.broken("its header is not complete")
	}
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) < 2 {
		v.broken("it has no rows")
	}
	return v, rows{&v, all[0], all[1:]}
}

func (v *Version) broken(why string) { panic("payroll/data/" + v.File + ": " + why) }

// rows are the lines of a file below its titles.
type rows struct {
	of     *Version
	titles []string
	lines  [][]string
}

// has reports whether the file has a column.
func (r rows) has(title string) bool { return slices.Contains(r.titles, title) }

func (r rows) text(line []string, title string) string {
	i := slices.Index(r.titles, title)
	if i < 0 {
		r.of.broken("it has no column " + title)
	}
	return line[i]
}

// pesos reads a cell; an empty one is 0.
func (r rows) pesos(line []string, title string) Pesos {
	text := r.text(line, title)
	if text == "" {
		return 0
	}
	p, problem := ParsePesos(title, text)
	if problem != nil {
		r.of.broken(problem.Rule)
	}
	return p
}

// decimal reads a cell; an empty one is 0.
func (r rows) decimal(line []string, title string) Decimal {
	text := r.text(line, title)
	if text == "" {
		return 0
	}
	d, problem := ParseDecimal(title, text)
	if problem != nil {
		r.of.broken(problem.Rule)
	}
	return d
}

func (r rows) whole(line []string, title string) int {
	d := r.decimal(line, title)
	if d%decimalUnit != 0 {
		r.of.broken(title + " is not a whole number")
	}
	return int(d / decimalUnit)
}
