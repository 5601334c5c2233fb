package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cotejo/checks"
	"cotejo/snapshots"
)

const (
	classifyRFCs    = 100_000
	classifyHits    = 3 // of 100 RFCs: on some list
	classifyRepeats = 7
	// censusRows is about how many rows stand behind the RFCs that a census picks.
	censusRows = 100_000
)

// place is where a row of an edition stands: its source, by Source.Bit, and its number
// among the rows of the source that can be found, in key order, from 0.
type place struct {
	source uint
	row    int
}

// census is what a walk over all rows of an edition leaves: some RFCs, each listed
// one as probable as any other.
type census struct {
	rows   int // of RFCs that can be asked for
	listed []string
}

// takeCensus walks the edition and calls each, which may be nil, with every row
// that can be asked for.
func takeCensus(ed *snapshots.Edition, each func(rfc string, at place)) (*census, error) {
	total := 0
	for _, entry := range ed.Manifest().Sources {
		total += ed.Source(entry.Source).Version().Rows
	}
	// An RFC is picked by a hash of it, so that the lists agree on which.
	share := min(1, censusRows/float64(max(total, 1)))
	c := new(census)
	for _, entry := range ed.Manifest().Sources {
		s := ed.Source(entry.Source)
		if err := c.walk(s, share, func(rfc string, row int) {
			if each != nil {
				each(rfc, place{s.Bit(), row})
			}
		}); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.listed)
	c.listed = slices.Compact(c.listed)
	random := rand.New(rand.NewPCG(69, 4))
	random.Shuffle(len(c.listed), func(i, j int) { c.listed[i], c.listed[j] = c.listed[j], c.listed[i] })
	return c, nil
}

// walk walks one source. The RFC is the caller's to keep.
func (c *census) walk(s *snapshots.Source, share float64, each func(rfc string, row int)) (err error) {
	rows, err := s.Rows()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for row := 0; rows.Next(); row++ {
		packed, ok := checks.PackRFC(rows.Lookup())
		if !ok {
			continue // nobody can ask for it
		}
		rfc := string(rows.Lookup())
		if hash := packed * 0x9e3779b97f4a7c15; float64(hash>>11)/(1<<53) < share {
			c.listed = append(c.listed, rfc)
		}
		each(rfc, row)
		c.rows++
	}
	return nil
}

// questions are n RFCs to ask for, of which classifyHits in a hundred are listed
// and the others are mentioned nowhere. No RFC comes twice.
func questions(ed *snapshots.Edition, listed []string, n int) ([]string, error) {
	hits := n * classifyHits / 100
	if len(listed) < hits {
		return nil, fmt.Errorf("se necesitan %d RFC de las listas y hay %d", hits, len(listed))
	}
	random := rand.New(rand.NewPCG(69, 5))
	asked, taken := slices.Clone(listed[:hits]), make(map[string]bool, n)
	for len(asked) < n {
		rfc := RandomRFC(random)
		if key, ok := checks.PackRFC(rfc); !ok || taken[rfc] || !ed.Classify(key).None() {
			continue
		}
		taken[rfc] = true
		asked = append(asked, rfc)
	}
	random.Shuffle(n, func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	// One text, as a list that was read is, or a column of the other side.
	text := strings.Join(asked, "")
	for i, rfc := range asked {
		asked[i], text = text[:len(rfc)], text[len(rfc):]
	}
	return asked, nil
}

// answer is a row that was found: whose, by the place among the RFCs that were asked
// for, and where.
type answer struct {
	asked int
	place
}

// classifyAhead is how many RFCs are read before they are looked up.
const classifyAhead = 32

// classify appends the lists and rows of each RFC: one probe of the edition table,
// which knows both.
func classify(found []answer, ed *snapshots.Edition, asked []string) ([]answer, error) {
	var keys [classifyAhead]uint64
	for first := 0; first < len(asked); first += classifyAhead {
		next := asked[first:min(first+classifyAhead, len(asked))]
		for i, rfc := range next {
			var ok bool
			if keys[i], ok = checks.PackRFC(rfc); !ok {
				return nil, fmt.Errorf("«%s» no es un RFC", rfc)
			}
		}
		ed.Expect(keys[:len(next)])
		for i, key := range keys[:len(next)] {
			for source, rows := range ed.Classify(key).All() {
				for row := rows.First; row < rows.First+rows.N; row++ {
					found = append(found, answer{first + i, place{source, int(row)}})
				}
			}
		}
	}
	return found, nil
}

// joinShapes are the ways in which DuckDB holds the same rows, each a table of its
// own in memory: the fastest that is asked for the text of an RFC, as we are, is the
// baseline. The last is told beside it: there somebody has turned every RFC into a
// number already, which is a part of what our side does.
var joinShapes = []struct {
	name, table, make, key string
}{
	{"in the order of the lists", "lists", "create table lists as select source, rfc, row from loaded", "rfc"},
	{"sorted by RFC", "sorted", "create table sorted as select source, rfc, row from loaded order by rfc", "rfc"},
	{"ART index on the RFC", "indexed", "create table indexed as select source, rfc, row from loaded; create index by_rfc on indexed (rfc)", "rfc"},
	{"RFC as a number, made before", "packed", "create table packed as select source, packed, row from loaded order by packed", "packed"},
}

// measureClassify compares the edition with a hash join in DuckDB of the same RFCs
// and the same rows, and returns RFCs of the edition.
func measureClassify(ctx context.Context, h Host, ed *snapshots.Edition, dir string, n int, report *Report) (listed []string, err error) {
	h.Progress("clasificación: las mismas filas, en DuckDB")
	duck, err := startDuckDB(ctx, h, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, duck.stop()) }()
	rowsFile, askedFile := filepath.Join(dir, "filas.csv"), filepath.Join(dir, "preguntas.csv")
	var c *census
	if err := writeLines(rowsFile, func(w *bufio.Writer) (err error) {
		c, err = takeCensus(ed, func(rfc string, at place) {
			key, _ := checks.PackRFC(rfc)
			fmt.Fprintf(w, "%d,%s,%d,%d\n", at.source, rfc, key, at.row)
		})
		return err
	}); err != nil {
		return nil, err
	}
	asked, err := questions(ed, c.listed, n)
	if err != nil {
		return nil, err
	}
	if err := writeLines(askedFile, func(w *bufio.Writer) error {
		for i, rfc := range asked {
			key, _ := checks.PackRFC(rfc)
			fmt.Fprintf(w, "%d,%s,%d\n", i, rfc, key)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	const csv = "read_csv(%s, auto_detect=false, header=false, delim=',', columns={%s})"
	if err := duck.all(
		"create table loaded as from "+fmt.Sprintf(csv, quoted(rowsFile), "'source': 'UTINYINT', 'rfc': 'VARCHAR', 'packed': 'UBIGINT', 'row': 'UINTEGER'"),
		"create table asked as from "+fmt.Sprintf(csv, quoted(askedFile), "'n': 'UINTEGER', 'rfc': 'VARCHAR', 'packed': 'UBIGINT'"),
	); err != nil {
		return nil, err
	}
	for _, shape := range joinShapes {
		if err := duck.all(shape.make); err != nil {
			return nil, err
		}
	}
	return c.listed, c.compare(ed, asked, duck, report)
}

// compare repeats both sides in turn.
func (c *census) compare(ed *snapshots.Edition, asked []string, duck *duckDB, report *Report) error {
	join := func(shape int) string {
		s := joinShapes[shape]
		return fmt.Sprintf("create or replace temp table found as select a.n, l.source, l.row from asked a join %s l on a.%s = l.%s", s.table, s.key, s.key)
	}
	answers, err := classify(nil, ed, asked)
	if err != nil {
		return err
	}
	for shape := range joinShapes { // also warms
		if err := duck.all(join(shape)); err != nil {
			return err
		}
		if err := sameAnswers(duck, answers); err != nil {
			return fmt.Errorf("%s: %w", joinShapes[shape].name, err)
		}
	}
	var ours []float64
	theirs := make([][]float64, len(joinShapes))
	for range classifyRepeats {
		cpu, err := cpuOf(func() (err error) {
			answers, err = classify(answers[:0], ed, asked)
			return err
		})
		if err != nil {
			return err
		}
		ours = append(ours, cpu)
		for shape := range joinShapes {
			s, err := duck.run(join(shape))
			if err != nil {
				return err
			}
			theirs[shape] = append(theirs[shape], s.CPU)
		}
	}
	best := 0
	shapes := map[string]any{}
	for i, shape := range joinShapes {
		shapes[shape.name] = theirs[i]
		if shape.key == "rfc" && median(theirs[i]) < median(theirs[best]) {
			best = i
		}
	}
	report.Figures["classify_vs_duckdb_join"] = median(ratios(theirs[best], ours))
	report.Detail["classify"] = map[string]any{
		"rfcs": len(asked), "hits_percent": classifyHits, "rows_loaded": c.rows, "rows_found": len(answers), "lists": len(ed.Manifest().Sources),
		"baseline":   "DuckDB hash join in memory, one thread, tables (list, RFC, row) loaded and asked before, RFCs in a table, answer into a table: " + joinShapes[best].name,
		"measured":   "RFCs per CPU second ÷ the baseline's; both answer with the numbers of the rows, which both sides compare before",
		"cpu_s":      ours,
		"join_cpu_s": shapes,
	}
	return nil
}

// ErrOtherAnswer says that the two sides of a comparison do not agree: their times
// mean nothing.
var ErrOtherAnswer = errors.New("los dos lados no responden lo mismo")

// sameAnswers compares what the edition answered with the table found.
func sameAnswers(duck *duckDB, answers []answer) error {
	s, err := duck.run("from found order by all")
	if err != nil {
		return err
	}
	for i, row := range s.Rows {
		if i >= len(answers) || len(row) != 3 || row[0] != strconv.Itoa(answers[i].asked) || row[1] != strconv.FormatUint(uint64(answers[i].source), 10) || row[2] != strconv.Itoa(answers[i].row) {
			return fmt.Errorf("%w: fila %d: DuckDB dice %v", ErrOtherAnswer, i, row)
		}
	}
	if len(s.Rows) != len(answers) {
		return fmt.Errorf("%w: %d filas, y DuckDB %d", ErrOtherAnswer, len(answers), len(s.Rows))
	}
	return nil
}

// writeLines makes a file.
func writeLines(path string, write func(*bufio.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
